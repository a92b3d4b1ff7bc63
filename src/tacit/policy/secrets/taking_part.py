"""Being in the data, and nothing else: the differential privacy of adding or removing one person.

Any record looks like absence, and absence like any record. No edge leads from one record to another; by way of absence
any two records look alike at twice the epsilon. With `where`, only records that satisfy it look like absence, and
nothing leads back: absence satisfies no predicate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.errors import PolicyError
from tacit.policy.domain import Domain, Record
from tacit.policy.edges.shapes import Absence, EdgeShape
from tacit.policy.files.spec import Row
from tacit.policy.files.yaml_entries import YamlEntry
from tacit.policy.secrets.family import (
    MOST_NAMES,
    ExamplePair,
    Fields,
    PolicyContext,
    Promise,
    Secrets,
)
from tacit.policy.secrets.picked_records import record_with, why_nobody
from tacit.policy.where import Where


@dataclass(frozen=True)
class TakingPart(Secrets):
    """Every record -> absence, and absence -> every record; with `where`, every record that satisfies it -> absence."""

    where: Where | None = None
    keyword: ClassVar[str] = "taking_part"
    rows: ClassVar[tuple[Row, ...]] = (
        Row("taking part", "`taking_part`", "anybody in the data like somebody who is not, and back", {"type": "null"}),
    )

    def check(self, domain: Domain) -> None:
        """Refuse predicates that the domain cannot answer."""
        if self.where is None:
            return
        try:
            self.where.compile(domain)
        except PolicyError as refusal:
            raise refusal.located(key="secrets.taking_part.where") from None

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        """Say no: no edge leads from one record to another."""
        return False

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        return []

    def absences(self, domain: Domain) -> list[Absence]:
        """Return the edges both ways, of everybody, or the ways out of those who are picked."""
        return [Absence() if self.where is None else Absence(self.where.compile(domain), joins=False)]

    def only_for(self, people: Where) -> Secrets:
        """Return the ways out of the data of those whom a predicate picks."""
        return TakingPart(people if self.where is None else self.where & people)

    def document(self) -> Any:
        return self.keyword if self.where is None else {self.keyword: None, "where": str(self.where)}

    @classmethod
    def read(cls, entry: YamlEntry, domain: Domain) -> Secrets:
        if not entry.is_empty:
            raise entry.refuse("must stand alone", given=entry.plain(), fix="Write `taking_part` without a colon.")
        return cls()

    def promise(self, domain: Domain) -> Promise:
        if self.where is not None:
            return Promise(
                f"taking part, of people for whom {self.where}: they look as if they were not in the data, not the "
                "other way round"
            )
        return Promise(
            "taking part: somebody in the data looks like somebody who is not in it",
            ", and the other way round",
            ", and the other way round; one record looks like another at twice the epsilon",
        )

    def candidates(self, domain: Domain, base: Fields) -> Iterator[ExamplePair]:
        """Yield somebody who leaves, somebody who joins, and records that differ."""
        if self.where is not None:
            test, text = self.where.compile(domain), str(self.where)
            inside = record_with(domain, test, base)
            outside = record_with(domain, test, base, picked=False)
            if inside is not None:
                yield ExamplePair(inside, None, f"the first satisfies {text}")
                yield ExamplePair(None, inside, if_not="who is not in the data has no record")
            if outside is not None:
                yield ExamplePair(outside, None, if_not=f"the first does not satisfy {text}")
            return
        yield ExamplePair(base, None, "taking part is secret")
        yield ExamplePair(None, base, "taking part is secret")
        for name, attribute in list(domain.attributes)[:MOST_NAMES]:
            for other in attribute.others(base[name])[:1]:
                yield ExamplePair(base, {**base, name: other}, if_not="only taking part is a secret")

    def why_empty(self, domain: Domain) -> str:
        """Say why there is no edge."""
        return "" if self.where is None else why_nobody(domain, self.where)

    def warnings(self, domain: Domain, setting: PolicyContext) -> Iterator[str]:
        """Say whose taking part is no secret."""
        if self.where is not None:
            yield (
                f"`taking_part` with `where` protects nobody outside `{self.where}`, and not that somebody is not in "
                "the data."
            )

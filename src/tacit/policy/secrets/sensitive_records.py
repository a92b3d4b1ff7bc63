"""Everything about the people that a predicate calls sensitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.errors import PolicyError
from tacit.policy.domain import Domain, Record, positions
from tacit.policy.edges.shapes import EdgeShape
from tacit.policy.files.spec import PREDICATE, Row
from tacit.policy.files.yaml_entries import YamlEntry
from tacit.policy.secrets.family import ExamplePair, Fields, PolicyContext, Promise, Secrets
from tacit.policy.secrets.one_attribute import Attributes
from tacit.policy.secrets.picked_records import is_picked, record_with, why_nobody
from tacit.policy.where import Where, where


@dataclass(frozen=True)
class SensitiveRecords(Secrets):
    """Every record that a predicate calls sensitive -> every value."""

    where: Where
    keyword: ClassVar[str] = "records"
    example: ClassVar[str] = '{records: "age < 18"}'
    rows: ClassVar[tuple[Row, ...]] = (
        Row("records", '`records: "age < 18"`', "these people like anybody; not the other way round", PREDICATE),
    )

    def check(self, domain: Domain) -> None:
        """Refuse predicates that the domain cannot answer."""
        try:
            self.where.compile(domain)
        except PolicyError as refusal:
            raise refusal.located(key="secrets.records") from None

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        """Say whether the hidden record is sensitive."""
        return hidden != cover and self.where.compile(domain).of_record(positions(domain, hidden))

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return one shape with a condition on the hidden side."""
        return [EdgeShape(any_elsewhere=True, only_from=self.where.compile(domain))]

    def only_for(self, people: Where) -> Secrets:
        """Return the sensitive records that another predicate picks as well."""
        return SensitiveRecords(self.where & people)

    def without_attributes(self, names: frozenset[str], domain: Domain) -> Secrets | None:
        """Return the other attributes of the same people, one at a time."""
        others = tuple(name for name in domain if name not in names)
        return Attributes(others).only_for(self.where) if others else None

    def document(self) -> Any:
        return {self.keyword: str(self.where)}

    @classmethod
    def read(cls, entry: YamlEntry, domain: Domain) -> Secrets:
        return cls(where(entry.text()))

    def promise(self, domain: Domain) -> Promise:
        """Say in plain words what is protected, and that others are not."""
        return Promise(
            f"everything about people for whom {self.where}",
            "; nothing about the others",
            "; about the others at twice the epsilon only",
        )

    def why_empty(self, domain: Domain) -> str:
        """Say why there is no edge."""
        return why_nobody(domain, self.where)

    def warnings(self, domain: Domain, setting: PolicyContext) -> Iterator[str]:
        """Say that others are not protected."""
        if setting.certain:
            yield (
                f"`records` protects nobody outside `{self.where}`: anything about them may be released exactly, and "
                "that somebody is not sensitive may be learnt for certain."
            )
        else:
            yield f"`records` protects nobody outside `{self.where}`; that somebody is not sensitive is no secret."

    def candidates(self, domain: Domain, base: Fields) -> Iterator[ExamplePair]:
        """Yield somebody who is sensitive and somebody who is not."""
        test, text = self.where.compile(domain), str(self.where)
        inside = record_with(domain, test, base)
        outside = record_with(domain, test, base, picked=False)
        if inside is None:
            return
        if outside is None:
            for name in domain:
                for other in domain[name].others(inside[name])[:1]:
                    yield ExamplePair(inside, {**inside, name: other}, f"the first satisfies {text}")
                    return
            return
        yield ExamplePair(inside, outside, f"the first satisfies {text}")
        yield ExamplePair(outside, inside, f"the first satisfies {text}", f"the first does not satisfy {text}")
        for name in domain:
            for other in domain[name].others(outside[name]):
                stays = {**outside, name: other}
                if not is_picked(domain, test, stays):
                    yield ExamplePair(outside, stays, if_not=f"the first does not satisfy {text}")
                    return

"""Secrets about whole records: of everybody, of some people, and being in the data.

`taking_part` is the differential privacy of adding or removing one person: any record looks like absence, and absence
like any record. No edge leads from one record to another; by way of absence any two records look alike at twice the
epsilon. With `where`, only records that satisfy it look like absence, and nothing leads back: absence satisfies no
predicate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.errors import PolicyError
from tacit.policy.domain import Domain, Record, positions
from tacit.policy.edges.shapes import Absence, EdgeShape
from tacit.policy.keys import PREDICATE, Row
from tacit.policy.secrets.attribute_values import Attributes
from tacit.policy.secrets.combined import is_picked, record_with, why_nobody
from tacit.policy.secrets.family import MOST_NAMES, ExamplePair, Fields, PolicyContext, Promise, Secrets, listed
from tacit.policy.where import Where, where
from tacit.policy.yaml_entries import YamlEntry


@dataclass(frozen=True)
class Everything(Secrets):
    """Every value -> every value: differential privacy."""

    keyword: ClassVar[str] = "everything"
    rows: ClassVar[tuple[Row, ...]] = (
        Row("everything", "`everything`", "any record like any other: differential privacy", {"type": "null"}),
    )

    def check(self, domain: Domain) -> None:
        """Accept any domain."""

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        """Say yes to every two different records."""
        return hidden != cover

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return one shape: anything may become anything."""
        return [EdgeShape(any_elsewhere=True)]

    def only_for(self, people: Where) -> Secrets:
        """Return the records that a predicate calls sensitive."""
        return SensitiveRecords(people)

    def without_attributes(self, names: frozenset[str], domain: Domain) -> Secrets | None:
        """Return the other attributes, one at a time."""
        others = tuple(name for name in domain if name not in names)
        return Attributes(others) if others else None

    def document(self) -> Any:
        return "everything"

    @classmethod
    def read(cls, entry: YamlEntry, domain: Domain) -> Secrets:
        if not entry.is_empty:
            raise entry.refuse("must stand alone", given=entry.plain(), fix="Write `everything` without a colon.")
        return cls()

    def promise(self, domain: Domain) -> Promise:
        return Promise(f"everything about a person: any values of {listed(list(domain))} look like any others")

    def candidates(self, domain: Domain, base: Fields) -> Iterator[ExamplePair]:
        """Yield records that differ in one attribute, and in all of them."""
        changed = dict(base)
        for number, (name, attribute) in enumerate(domain.attributes):
            for other in attribute.others(base[name])[:1]:
                changed[name] = other
                if number < MOST_NAMES:
                    yield ExamplePair(base, {**base, name: other}, "everything is secret")
        if sum(changed[name] != base[name] for name in domain) > 1:
            yield ExamplePair(base, changed, "everything is secret, all attributes at once")


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

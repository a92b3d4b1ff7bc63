"""Every value looks like every other: differential privacy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.policy.domain import Domain, Record
from tacit.policy.edges.shapes import EdgeShape
from tacit.policy.files.spec import Row
from tacit.policy.files.yaml_entries import YamlEntry
from tacit.policy.secrets.family import MOST_NAMES, ExamplePair, Fields, Promise, Secrets, listed
from tacit.policy.secrets.one_attribute import Attributes
from tacit.policy.secrets.sensitive_records import SensitiveRecords
from tacit.policy.where import Where


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

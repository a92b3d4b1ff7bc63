"""Values that differ in exactly one attribute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tacit.policy.domain import Domain, Record
from tacit.policy.edges.shapes import EdgeShape
from tacit.policy.files.spec import NAMES, Row
from tacit.policy.files.yaml_entries import YamlEntry
from tacit.policy.secrets.family import (
    MOST_NAMES,
    ExamplePair,
    Fields,
    PolicyContext,
    Promise,
    Secrets,
    changed,
    check_names,
    free,
    listed,
    read_names,
)


@dataclass(frozen=True)
class Attributes(Secrets):
    """Values that differ in exactly one of the listed attributes."""

    names: tuple[str, ...]
    keyword: ClassVar[str] = "attributes"
    example: ClassVar[str] = "{attributes: [disease]}"
    rows: ClassVar[tuple[Row, ...]] = (
        Row("attributes", "`attributes: [disease, smoker]`", "records that differ in one of these", NAMES),
    )

    def check(self, domain: Domain) -> None:
        """Refuse unknown or missing names."""
        check_names(self.names, domain, "secrets.attributes")

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        """Say whether exactly one attribute differs, and it is listed."""
        differing = changed(domain, hidden, cover)
        return len(differing) == 1 and differing[0] in self.names

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return one shape for each attribute."""
        return [free(domain, name) for name in self.names]

    def without_attributes(self, names: frozenset[str], domain: Domain) -> Secrets | None:
        """Return the same of the other attributes."""
        others = tuple(name for name in self.names if name not in names)
        return replace(self, names=others) if others else None

    def document(self) -> Any:
        return {self.keyword: list(self.names)}

    @classmethod
    def read(cls, entry: YamlEntry, domain: Domain) -> Secrets:
        return cls(tuple(read_names(entry, domain)))

    def promise(self, domain: Domain) -> Promise:
        if len(self.names) == 1:
            return Promise(f"the value of {self.names[0]}: any value looks like any other")
        return Promise(
            f"each of {listed(self.names)}, one at a time: any value looks like any other while the rest is as it is"
        )

    def why_empty(self, domain: Domain) -> str:
        """Say why there is no edge."""
        return "there is only one value" if all(domain[name].size == 1 for name in self.names) else ""

    def warnings(self, domain: Domain, setting: PolicyContext) -> Iterator[str]:
        """Say that it is one attribute at a time."""
        if len(self.names) < 2 or setting.known:
            return
        if setting.absence:
            yield "`attributes` protects one attribute at a time; several at once only at twice the epsilon."
        else:
            yield (
                f"`attributes` protects one attribute at a time. Two at once, say {self.names[0]} and {self.names[1]}, "
                "are protected at twice the epsilon, three at three times, and so on."
            )

    def candidates(self, domain: Domain, base: Fields) -> Iterator[ExamplePair]:
        """Yield records that differ in one attribute, and in two."""
        movable = [(name, domain[name].others(base[name])) for name in self.names]
        movable = [(name, others) for name, others in movable if others]
        for name, others in movable[:MOST_NAMES]:
            yield ExamplePair(base, {**base, name: others[-1]}, f"{name} is secret and nothing else differs")
        if len(movable) > 1:
            (first, some), (second, more) = movable[:2]
            both = {**base, first: some[-1], second: more[-1]}
            yield ExamplePair(base, both, if_not=f"{first} and {second} differ at once")

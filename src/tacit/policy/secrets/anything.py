"""Secrets that look like anything else: whole records, all or some of them; values of an attribute, all or some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tacit.errors import PolicyError
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain, Record, canonical, positions
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import FromTo, Relation
from tacit.policy.edges.shapes import EdgeShape, ItemMoves
from tacit.policy.keys import NAMES, PART, PREDICATE, Row
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
    is_picked,
    listed,
    listed_briefly,
    plain,
    plain_value,
    read_names,
    read_value,
    record_with,
    restricted_to,
    why_nobody,
)
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
        return hidden != cover

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        return [EdgeShape(any_elsewhere=True)]

    def only_for(self, people: Where) -> Secrets:
        return SensitiveRecords(people)

    def without_attributes(self, names: frozenset[str], domain: Domain) -> Secrets | None:
        others = tuple(name for name in domain if name not in names)
        return Attributes(others) if others else None

    def promise(self, domain: Domain) -> Promise:
        return Promise(f"everything about a person: any values of {listed(list(domain))} look like any others")

    def candidates(self, domain: Domain, base: Fields) -> Iterator[ExamplePair]:
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
        self.where.check(domain, key="secrets.records")

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        return hidden != cover and self.where.compile(domain).of_record(positions(domain, hidden))

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        return [EdgeShape(any_elsewhere=True, only_from=self.where.compile(domain))]

    def only_for(self, people: Where) -> Secrets:
        return SensitiveRecords(self.where & people)

    def without_attributes(self, names: frozenset[str], domain: Domain) -> Secrets | None:
        others = tuple(name for name in domain if name not in names)
        return Attributes(others).only_for(self.where) if others else None

    def document(self) -> Any:
        return {self.keyword: str(self.where)}

    @classmethod
    def read(cls, entry: YamlEntry, domain: Domain) -> Secrets:
        return cls(where(entry.text()))

    def promise(self, domain: Domain) -> Promise:
        return Promise(
            f"everything about people for whom {self.where}",
            "; nothing about the others",
            "; about the others at twice the epsilon only",
        )

    def why_empty(self, domain: Domain) -> str:
        return why_nobody(domain, self.where)

    def warnings(self, domain: Domain, setting: PolicyContext) -> Iterator[str]:
        if setting.certain:
            yield (
                f"`records` protects nobody outside `{self.where}`: anything about them may be released exactly, and "
                "that somebody is not sensitive may be learnt for certain."
            )
        else:
            yield f"`records` protects nobody outside `{self.where}`; that somebody is not sensitive is no secret."

    def candidates(self, domain: Domain, base: Fields) -> Iterator[ExamplePair]:
        test = self.where.compile(domain)
        inside, outside = (record_with(domain, test, base, picked=picked) for picked in (True, False))
        satisfies, does_not = f"the first satisfies {self.where}", f"the first does not satisfy {self.where}"
        if inside is None:
            return
        if outside is None:
            for name in domain:
                for other in domain[name].others(inside[name])[:1]:
                    yield ExamplePair(inside, {**inside, name: other}, satisfies)
                    return
            return
        yield ExamplePair(inside, outside, satisfies)
        yield ExamplePair(outside, inside, satisfies, does_not)
        for name in domain:
            for other in domain[name].others(outside[name]):
                stays = {**outside, name: other}
                if not is_picked(domain, test, stays):
                    yield ExamplePair(outside, stays, if_not=does_not)
                    return


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
        check_names(self.names, domain, "secrets.attributes")

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        differing = changed(domain, hidden, cover)
        return len(differing) == 1 and differing[0] in self.names

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        return [free(domain, name) for name in self.names]

    def without_attributes(self, names: frozenset[str], domain: Domain) -> Secrets | None:
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
        return "there is only one value" if all(domain[name].size == 1 for name in self.names) else ""

    def warnings(self, domain: Domain, setting: PolicyContext) -> Iterator[str]:
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
        movable = [(name, domain[name].others(base[name])) for name in self.names]
        movable = [(name, others) for name, others in movable if others]
        for name, others in movable[:MOST_NAMES]:
            yield ExamplePair(base, {**base, name: others[-1]}, f"{name} is secret and nothing else differs")
        if len(movable) > 1:
            (first, some), (second, more) = movable[:2]
            both = {**base, first: some[-1], second: more[-1]}
            yield ExamplePair(base, both, if_not=f"{first} and {second} differ at once")


@dataclass(frozen=True)
class SensitiveValues(Secrets):
    """r -> r' where r' differs from r only in attributes whose value in r is listed as sensitive.

    For a set of items the values are 1 (has it) and 0 (has it not), item by item.
    """

    sensitive: tuple[tuple[str, tuple[Value, ...]], ...]
    keyword: ClassVar[str] = "values"
    example: ClassVar[str] = "{values: {disease: [hiv]}}"
    rows: ClassVar[tuple[Row, ...]] = (
        Row(
            "values",
            "`values: {disease: [hiv]}`",
            "these values like any other; not the other way round",
            {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {"type": "array", "minItems": 1, "items": PART},
            },
        ),
        Row("", "`values: {visited: [1]}`", "of items: 1 is having one, 0 is being without"),
    )

    def check(self, domain: Domain) -> None:
        if not self.sensitive:
            raise PolicyError("must list an attribute", key="secrets.values", given={}, fix="Write {name: [values]}.")
        for name, values in self.sensitive:
            attribute = domain.attribute(name, key="secrets.values")
            if not values:
                raise PolicyError("must list a value", key=f"secrets.values.{name}", given=[], fix="Add one.")
            for value in values:
                if attribute.is_set:
                    if isinstance(value, bool) or value not in (0, 1):
                        rule = "must be 1 (has the item) or 0 (has it not)"
                        fix = "Write [1], [0] or [0, 1]."
                        raise PolicyError(rule, key=f"secrets.values.{name}", given=value, fix=fix)
                else:
                    canonical(attribute, value, key=f"secrets.values.{name}")

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        listed = dict(self.sensitive)
        for (name, attribute), a, b in zip(domain.attributes, hidden, cover, strict=True):
            if a == b:
                continue
            if name not in listed:
                return False
            if attribute.is_set:
                if (a - b and 1 not in listed[name]) or (b - a and 0 not in listed[name]):
                    return False
            elif a not in [canonical(attribute, value, key=name) for value in listed[name]]:
                return False
        return hidden != cover

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return one shape in which each listed attribute may leave its sensitive values."""
        relations: dict[str, Relation] = {}
        items: dict[str, ItemMoves] = {}
        grids: list[tuple[str, Value]] = []
        for name, values in self.sensitive:
            attribute = domain[name]
            axes = attribute.axes(name)
            if attribute.is_set:
                items[name] = ItemMoves(lose=1 in values, gain=0 in values)
            elif len(axes) > 1:
                grids.extend((name, cell) for cell in values)
            else:
                sensitive = Intervals.points(attribute.position(value) for value in values)
                relations[name] = FromTo(sensitive, Intervals.full(attribute.size), may_stay=True)
        # A grid has two axes, so each sensitive cell is a shape of its own (one grid at a time: refused otherwise).
        if len({name for name, _ in grids}) > 1:
            raise PolicyError("must list at most one grid", key="secrets.values", fix="Use records or everything.")
        shapes = [EdgeShape(relations, items)] if relations or items else []
        for name, cell in grids:
            leaving: dict[str, Relation] = {
                axis.name: FromTo(
                    Intervals.points([domain[name].places(name, cell)[axis.name]]), Intervals.full(axis.size)
                )
                for axis in domain.axes_of(name)
            }
            shapes.append(EdgeShape({**relations, **leaving}, items))
        return shapes

    def canonical(self, domain: Domain) -> Secrets:
        return SensitiveValues(
            tuple(
                (name, values)
                if domain[name].is_set
                else (name, tuple(canonical(domain[name], value, key=name) for value in values))
                for name, values in self.sensitive
            )
        )

    def without_attributes(self, names: frozenset[str], domain: Domain) -> Secrets | None:
        others = tuple((name, values) for name, values in self.sensitive if name not in names)
        return replace(self, sensitive=others) if others else None

    def document(self) -> Any:
        return {self.keyword: {name: [plain(value) for value in values] for name, values in self.sensitive}}

    @classmethod
    def read(cls, entry: YamlEntry, domain: Domain) -> Secrets:
        found = {}
        for name, given in entry.mapping().items():
            with given.blamed():
                attribute = domain.attribute(name)
            found[name] = [
                value.whole() if attribute.is_set else read_value(value, attribute) for value in given.listed()
            ]
            with given.blamed():
                values({name: found[name]}).check(domain)
        return values(found)

    def promise(self, domain: Domain) -> Promise:
        parts = []
        for name, values in self.sensitive:
            if domain[name].is_set:
                kinds = {1: "having", 0: "not having"}
                parts.append(f"{' and '.join(kinds[value] for value in values)} an item of {name}")
            else:
                parts.append(f"{name} being {listed([str(value) for value in values])}")
        return Promise(
            "; ".join(parts) + ": it looks as if it were otherwise (the other way round",
            " nothing is promised)",
            " at twice the epsilon only)",
        )

    def warnings(self, domain: Domain, setting: PolicyContext) -> Iterator[str]:
        learnt = "may be learnt for certain" if setting.certain else "is not protected by it"
        for name, values in self.sensitive:
            attribute = domain[name]
            if attribute.is_set:
                if 0 not in values:
                    yield (
                        f"`values` protects having an item of {name} (having visited), not being without it (having "
                        f"stayed away): that somebody does not have an item {learnt}."
                    )
                if 1 not in values:
                    yield f"`values` protects being without an item of {name}: that somebody has an item {learnt}."
            elif len(set(values)) < attribute.size:
                shown = listed_briefly([attribute.words(value) for value in values], "or")
                yield f"`values` protects {name} being {shown}, nothing else: that it is something else {learnt}."

    def candidates(self, domain: Domain, base: Fields) -> Iterator[ExamplePair]:
        for name, values in self.sensitive[:MOST_NAMES]:
            yield from _candidates(name, values, domain, base)


def _candidates(name: str, values: tuple[Value, ...], domain: Domain, base: Fields) -> Iterator[ExamplePair]:
    attribute = domain[name]
    if attribute.is_set:
        item = attribute.cell(min(6, attribute.cells - 1))
        has, has_not = {**base, name: [item]}, {**base, name: []}
        with_it, without = f"having an item of {name} is secret", f"not having an item of {name} is secret"
        yield ExamplePair(has, has_not, with_it, f"having an item of {name} is not listed as secret")
        yield ExamplePair(has_not, has, without, f"not having an item of {name} is not listed as secret")
        return
    sensitive = [plain(value) for value in values]
    hidden = sensitive[0]
    ordinary = [value for value in attribute.others(hidden) if value not in sensitive]
    cover = ordinary[0] if ordinary else (sensitive[1:] or [None])[0]
    if cover is None:
        return
    shown = attribute.words(hidden), attribute.words(cover)
    a, b = {**base, name: hidden}, {**base, name: cover}
    yield ExamplePair(a, b, f"{name} being {shown[0]} is secret")
    yield ExamplePair(
        b, a, f"{name} being {shown[1]} is secret, too", f"{name} being {shown[1]} is not listed as secret"
    )


def values(sensitive: Mapping[str, Iterable[Value]], *more: Any, where: Where | str | None = None) -> Secrets:
    """Protect these values by making them look like any other (asymmetric differential privacy)."""
    if more:
        meant = list(more[0]) if isinstance(more[0], list | tuple) else list(more)
        raise PolicyError(
            "must be one mapping",
            key="secrets.values",
            given=[sensitive, *more],
            fix=f"Write values({{{sensitive!r}: {meant!r}}})."
            if isinstance(sensitive, str) and all(isinstance(value, str | int) for value in meant)
            else 'Write values({"disease": ["hiv"]}).',
        )
    if not isinstance(sensitive, Mapping):
        raise PolicyError("must be a mapping", key="secrets.values", given=sensitive, fix='Write {"disease": ["hiv"]}.')
    for name, given in sensitive.items():
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise PolicyError("must be a list", key=f"secrets.values.{name}", given=given, fix="Write [value].")
    listed = tuple((name, tuple(plain_value(v) for v in given)) for name, given in sensitive.items())
    return restricted_to(SensitiveValues(listed), where)

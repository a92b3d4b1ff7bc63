"""Being in the data, and a list of pairs.

`taking_part` is the differential privacy of adding or removing one person: every record has an edge to absence, and
absence has an edge to every record. No edge connects two records, but the chain through absence makes any two records
look alike at twice the epsilon. With `where`, only records that satisfy it have an edge to absence, and absence has no
edge, because it satisfies no predicate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Final, TypeAlias

from tacit.errors import PolicyError, kind_of
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain, Record, canonical
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import FromTo
from tacit.policy.edges.shapes import Absence, EdgeShape, ItemMoves
from tacit.policy.keys import ANY, PART, Row, Schema, two
from tacit.policy.secrets.family import (
    MOST_NAMES,
    ExamplePair,
    Fields,
    PolicyContext,
    Promise,
    Secrets,
    plain,
    plain_value,
    read_value,
    record_with,
    restricted_to,
    why_nobody,
)
from tacit.policy.where import Where
from tacit.policy.yaml_entries import YamlEntry


@dataclass(frozen=True)
class TakingPart(Secrets):
    """Every record -> absence, and absence -> every record; with `where`, every record that satisfies it -> absence."""

    where: Where | None = None
    keyword: ClassVar[str] = "taking_part"
    rows: ClassVar[tuple[Row, ...]] = (
        Row("taking part", "`taking_part`", "anybody in the data like somebody who is not, and back", {"type": "null"}),
    )

    def check(self, domain: Domain) -> None:
        if self.where is not None:
            self.where.check(domain, key="secrets.taking_part.where")

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        return False

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        return []

    def absences(self, domain: Domain) -> list[Absence]:
        """Return the edges both ways, of everybody, or the ways out of those who are picked."""
        return [Absence() if self.where is None else Absence(self.where.compile(domain), joins=False)]

    def only_for(self, people: Where) -> Secrets:
        return TakingPart(people if self.where is None else self.where & people)

    def document(self) -> Any:
        return self.keyword if self.where is None else {self.keyword: None, "where": str(self.where)}

    def promise(self, domain: Domain) -> Promise:
        if self.where is not None:
            people = f"taking part, of people for whom {self.where}"
            return Promise(f"{people}: they look as if they were not in the data, not the other way round")
        return Promise(
            "taking part: somebody in the data looks like somebody who is not in it",
            ", and the other way round",
            ", and the other way round; one record looks like another at twice the epsilon",
        )

    def candidates(self, domain: Domain, base: Fields) -> Iterator[ExamplePair]:
        if self.where is not None:
            test = self.where.compile(domain)
            inside, outside = (record_with(domain, test, base, picked=picked) for picked in (True, False))
            if inside is not None:
                yield ExamplePair(inside, None, f"the first satisfies {self.where}")
                yield ExamplePair(None, inside, if_not="who is not in the data has no record")
            if outside is not None:
                yield ExamplePair(outside, None, if_not=f"the first does not satisfy {self.where}")
            return
        yield ExamplePair(base, None, "taking part is secret")
        yield ExamplePair(None, base, "taking part is secret")
        for name, attribute in list(domain.attributes)[:MOST_NAMES]:
            for other in attribute.others(base[name])[:1]:
                yield ExamplePair(base, {**base, name: other}, if_not="only taking part is a secret")

    def why_empty(self, domain: Domain) -> str:
        return "" if self.where is None else why_nobody(domain, self.where)

    def warnings(self, domain: Domain, setting: PolicyContext) -> Iterator[str]:
        if self.where is not None:
            yield (
                f"`taking_part` with `where` protects nobody outside `{self.where}`, and not that somebody is not in "
                "the data."
            )


_SIDE: Final[Schema] = {
    "anyOf": [{"type": "object", "additionalProperties": PART}, {"type": "array", "items": PART}, ANY]
}


@dataclass(frozen=True)
class Pairs(Secrets):
    """An explicit list of edges. Attributes that a pair does not mention stay as they are, whatever they are."""

    pairs: tuple[tuple[tuple[tuple[str, Value], ...], tuple[tuple[str, Value], ...]] | tuple[Value, Value], ...]
    keyword: ClassVar[str] = "pairs"
    example: ClassVar[str] = "{pairs: [[{disease: hiv}, {disease: flu}]]}"
    rows: ClassVar[tuple[Row, ...]] = (
        Row(
            "pairs",
            "`pairs: [[{ward: A}, {ward: B}]]`",
            "the first like the second; not the other way round",
            {"type": "array", "minItems": 1, "items": two(_SIDE)},
        ),
    )

    def check(self, domain: Domain) -> None:
        if not self.pairs:
            raise PolicyError("must list at least one pair", key="secrets.pairs", given=[], fix="Add [hidden, cover].")
        self.named(domain)

    def named(self, domain: Domain) -> list[_Named]:
        """Return both sides of each pair by attribute, or refuse."""
        return self._looked_up(domain).named

    def _looked_up(self, domain: Domain) -> _LookedUp:
        """Return the pairs as a domain reads them, read once: a graph may have thousands."""
        known: _LookedUp | None = self.__dict__.get("_last")
        if known is None or known.domain is not domain:
            known = _LookedUp(domain, self._read_by(domain))
            self.__dict__["_last"] = known
        return known

    def _read_by(self, domain: Domain) -> list[_Named]:
        named = []
        for number, (hidden, cover) in enumerate(self.pairs):
            key = f"secrets.pairs[{number}]"
            a, b = _partial(domain, hidden, key), _partial(domain, cover, key)
            for name in b:
                if name not in a:
                    raise PolicyError("must be given on the hidden side too", key=key, given=name, fix="Add its value.")
            b = {**a, **b}
            if a == b:
                raise PolicyError("must differ", key=key, given=[a, b], fix="Remove the pair.")
            named.append((a, b))
        return named

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        x, y = dict(zip(domain, hidden, strict=True)), dict(zip(domain, cover, strict=True))
        return any(
            (tuple(x[name] for name in names), tuple(y[name] for name in names)) in ends
            and all(x[name] == y[name] for name in domain if name not in names)
            for names, ends in self._looked_up(domain).ends.items()
        )

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return one shape for each pair, or for all pairs that move one axis from the same place."""
        known = self._looked_up(domain)
        if known.shapes is None:
            known.shapes = self._shapes(domain)
        return list(known.shapes)

    def _shapes(self, domain: Domain) -> list[EdgeShape]:
        covers: dict[Any, set[int]] = {}
        found: list[EdgeShape] = []
        for a, b in self.named(domain):
            sets = [name for name in a if domain[name].is_set]
            items = {
                name: ItemMoves(
                    lose=False, gain=False, exactly=(domain[name].positions(a[name]), domain[name].positions(b[name]))
                )
                for name in sets
            }
            starts, ends = (_places(domain, side) for side in (a, b))
            moved = [axis for axis in starts if starts[axis] != ends[axis]]
            if len(moved) == 1 and not items:
                covers.setdefault((tuple(starts.items()), moved[0]), set()).add(ends[moved[0]])
            else:
                found.append(_shape(starts, {axis: [at] for axis, at in ends.items()}, items))
        for (places, axis), reached in covers.items():
            found.append(_shape(dict(places), {**{name: [at] for name, at in places}, axis: reached}, {}))
        return found

    def canonical(self, domain: Domain) -> Secrets:
        """Return the pairs by attribute, in the order of the domain, so that nothing hangs on that order."""
        known = self._looked_up(domain)
        if known.canonical is None:
            pairs = [
                tuple((_MAPPING, tuple((name, side[name]) for name in domain if name in side)) for side in pair)
                for pair in known.named
            ]
            known.canonical = Pairs(tuple((hidden, cover) for hidden, cover in pairs))
            known.canonical.__dict__["_last"] = known  # the same pairs, read already
        return known.canonical

    def without_attributes(self, names: frozenset[str], domain: Domain) -> Secrets | None:
        pairs_left = [
            pair
            for pair, (a, b) in zip(self.pairs, self.named(domain), strict=True)
            if all(a[name] == b[name] for name in names if name in a)
        ]
        return Pairs(tuple(pairs_left)) if pairs_left else None

    def document(self) -> Any:
        return {self.keyword: [[_pair_document(side) for side in pair] for pair in self.pairs]}

    @classmethod
    def read(cls, entry: YamlEntry, domain: Domain) -> Secrets:
        found = []
        for pair in entry.listed():
            sides = pair.listed()
            if len(sides) != 2:
                raise pair.refuse("must be [hidden, cover]", given=pair.plain(), fix="Give two records.")
            found.append(tuple(_side(side, domain) for side in sides))
        read = pairs(found)
        try:
            if found:
                read.check(domain)
        except PolicyError:  # whichever it is: look again, one by one, to say where it stands
            for pair, both in zip(entry.listed(), found, strict=True):
                with pair.blamed():
                    pairs([both]).check(domain)
            raise
        return read

    def promise(self, domain: Domain) -> Promise:
        if len(self.pairs) == 1:
            return Promise("1 listed pair: the first record looks like the second")
        return Promise(f"{len(self.pairs):,} listed pairs: the first record of each looks like the second")

    def whole(self, domain: Domain) -> Iterator[tuple[Record, Record]]:
        """Yield the listed pairs as whole records; what a pair leaves open is filled in."""
        for a, b in self.named(domain):
            filled = {name: attribute.usual() for name, attribute in domain.attributes if name not in a}
            yield domain.record({**filled, **a}), domain.record({**filled, **b})

    def warnings(self, domain: Domain, setting: PolicyContext) -> Iterator[str]:
        if not all(self.has_edge(domain, b, a) for a, b in self.whole(domain)):
            yield "`pairs` protects from the first record to the second only; list the reverse as well if meant."

    def candidates(self, domain: Domain, base: Fields) -> Iterator[ExamplePair]:
        for pair in islice(self.whole(domain), MOST_NAMES):
            a, b = ({name: plain(value) for name, value in zip(domain, side, strict=True)} for side in pair)
            yield ExamplePair(a, b, "a listed pair")
            yield ExamplePair(b, a, "listed in both directions", "the pair is listed in the other direction only")


_Named: TypeAlias = tuple[dict[str, Value], dict[str, Value]]  # both sides of a pair, by attribute
_MAPPING: Final = "\0mapping"


class _LookedUp:
    """The pairs as one domain reads them, and as sets of both ends by the attributes that they mention."""

    def __init__(self, domain: Domain, named: list[_Named]) -> None:
        self.domain, self.named = domain, named
        self.shapes: list[EdgeShape] | None = None
        self.canonical: Pairs | None = None
        self.ends: dict[tuple[str, ...], set[Any]] = {}
        for pair in named:
            names = tuple(sorted(pair[0]))
            hidden, cover = (tuple(side[name] for name in names) for side in pair)
            self.ends.setdefault(names, set()).add((hidden, cover))


def _places(domain: Domain, side: Mapping[str, Value]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, value in side.items():
        if not domain[name].is_set:
            found |= domain[name].places(name, value)
    return found


def _shape(starts: Mapping[str, int], ends: Mapping[str, Iterable[int]], items: Mapping[str, ItemMoves]) -> EdgeShape:
    relations = {axis: FromTo(Intervals.points([at]), Intervals.points(ends[axis])) for axis, at in starts.items()}
    return EdgeShape(relations, items)


def _side(entry: YamlEntry, domain: Domain) -> Any:
    if entry.is_mapping:
        found = {}
        for name, value in entry.mapping().items():
            with value.blamed():
                found[name] = read_value(value, domain.attribute(name))
        return found
    if len(domain) == 1:
        return read_value(entry, next(iter(domain.values())))
    parts = entry.listed()
    if len(parts) != len(domain):
        fix = "Write {name: value, ..}."
        raise entry.refuse(f"must have the attributes {', '.join(domain)}", given=entry.plain(), fix=fix)
    return [read_value(part, attribute) for part, attribute in zip(parts, domain.values(), strict=True)]


def _partial(domain: Domain, side: Any, key: str) -> dict[str, Value]:
    if isinstance(side, tuple) and side and side[0] == _MAPPING:
        given = dict(side[1])
    else:
        return dict(zip(domain, domain.record(side), strict=True))
    for name in given:
        domain.attribute(name, key=key)
    return {name: canonical(domain[name], value, key=f"{key}.{name}") for name, value in given.items()}


def _frozen(side: Any) -> Any:
    if isinstance(side, Mapping):
        return (_MAPPING, tuple((name, _frozen_value(value)) for name, value in side.items()))
    return _frozen_value(side)


def _frozen_value(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return frozenset(value)
    return tuple(_frozen_value(part) for part in value) if isinstance(value, list | tuple) else plain_value(value)


def _pair_document(side: Any) -> Any:
    if isinstance(side, tuple) and side and side[0] == _MAPPING:
        return {name: plain(value) for name, value in side[1]}
    return [plain(part) for part in side] if isinstance(side, tuple) else plain(side)


def pairs(pairs: Iterable[tuple[Value, Value]], *, where: Where | str | None = None) -> Secrets:
    """Protect exactly these (hidden, cover) pairs. A side is a value, a tuple, or a mapping of some attributes."""
    if isinstance(pairs, str | Mapping) or not isinstance(pairs, Iterable):
        fix = 'Write pairs([("hiv", "flu")]), or for a rule one of within, partition, values, records.'
        raise PolicyError(f"must be a list of (hidden, cover), not {kind_of(pairs)}", key="secrets.pairs", fix=fix)
    listed = []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise PolicyError("must be [hidden, cover]", key="secrets.pairs", given=pair, fix="Give two records.")
        listed.append((_frozen(pair[0]), _frozen(pair[1])))
    return restricted_to(Pairs(tuple(listed)), where)


def graph(edges: Any, *, attribute: str | None = None, where: Where | str | None = None) -> Secrets:
    """Protect each value against those that it has an edge to, in a graph that you have.

    Args:
        edges: A NetworkX graph (each edge protects both ends, or in a directed one its first), a mapping from a hidden
            value to its covers, or a list of edges that protect both ends.
        attribute: The attribute whose values the nodes are; left out, nodes are records or the values of the only one.
        where: Only people with this have the secret.
    """
    if isinstance(edges, Mapping) and not hasattr(edges, "is_directed"):
        if any(isinstance(covers, str | Mapping) or not isinstance(covers, Iterable) for covers in edges.values()):
            fix = "Write graph({hidden: [cover, ..]})."
            raise PolicyError("must lead to lists of values", key="secrets.graph", given=edges, fix=fix)
        listed = [(hidden, cover) for hidden, covers in edges.items() for cover in covers]
    else:
        found = edges.edges() if hasattr(edges, "is_directed") else edges
        listed = list(found) if isinstance(found, Iterable) and not isinstance(found, str) else [found]
        if any(not isinstance(edge, tuple | list) or len(edge) != 2 for edge in listed):
            fix = "Give a NetworkX graph, graph({hidden: [cover, ..]}), or graph([(one, other), ..])."
            raise PolicyError("must be a graph", key="secrets.graph", given=kind_of(edges), fix=fix)
        if not (hasattr(edges, "is_directed") and edges.is_directed()):
            listed += [(other, one) for one, other in listed]
    if attribute is not None:
        listed = [({attribute: hidden}, {attribute: cover}) for hidden, cover in listed]
    found_pairs = {(_frozen(hidden), _frozen(cover)): (hidden, cover) for hidden, cover in listed}
    return pairs(found_pairs.values(), where=where)

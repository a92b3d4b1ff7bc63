"""The geometry of secret edges: how far one record may move, axis by axis, and which records edges lead to.

Every family of secrets is a union of *edge shapes*. A shape says for each axis how the position may change from
`hidden` to `cover` (a relation), optionally with one shared distance budget and a condition on `hidden`. Axes
that a shape does not list stay the same.

A predicate looks at an axis only through its atoms. Two positions in the same atoms are interchangeable, so an axis of
10^12 positions with three atoms has at most eight `classes`, and usually four.

The records that edges lead to are kept as boxes: one set of positions for each axis. If every axis moves by a relation
of its own, one edge leads from a box to a box. So a few boxes hold all records that k edges lead to, however many
records there are. If a box grows by the same amount on every edge, many edges are taken at once: nothing else can
happen before one of its ends reaches a position where some set of positions begins or ends. Listed pairs form a graph
instead: each edge starts at one place, and edges are followed one by one (`listed_legs`).
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import FromTo, Near, Relation, Same
from tacit.policy.where import Test


@dataclass(frozen=True)
class ItemMoves:
    """How a set of items may change: items may be lost, gained, or replaced by one fixed set (`exactly`)."""

    lose: bool
    gain: bool
    exactly: tuple[frozenset[int], frozenset[int]] | None = None

    def flag(self, position: int) -> FromTo:
        """Return how the yes/no axis of one item may change."""
        if self.exactly is not None:
            hidden, cover = self.exactly
            return FromTo(Intervals.points([int(position in hidden)]), Intervals.points([int(position in cover)]))
        may = Intervals.points([yes for yes, allowed in ((1, self.lose), (0, self.gain)) if allowed])
        return FromTo(may, Intervals.full(2), may_stay=True)

    def most_changed(self, items: int, most: int) -> int:
        """Return how many items may differ at most, of so many, of which one person may have `most`."""
        if self.exactly is not None:
            return len(self.exactly[0] ^ self.exactly[1])
        return min(items, most * (self.lose + self.gain))

    def within(self, other: ItemMoves) -> bool:
        """Say whether the other allows all that this one does."""
        if other.exactly is not None:
            return self == other
        if self.exactly is not None:
            hidden, cover = self.exactly
            return (other.lose or hidden <= cover) and (other.gain or cover <= hidden)
        return self.lose <= other.lose and self.gain <= other.gain


STAY_ITEMS = ItemMoves(lose=False, gain=False)


MOST_POWER: Final = 64  # with a higher one, distances are hardly other than the largest difference


@dataclass(frozen=True)
class Metric:
    """One distance budget shared by the `Near` axes and item sets of a shape, in the units of the attributes.

    `kind` says how differences add up: `l1`, `l2`, `l3` and so on to the root of a sum of powers, `linf` to the
    largest of them. Powers are compared as fractions, so that no distance is rounded.
    """

    theta: Fraction
    kind: str

    @staticmethod
    def is_kind(kind: str) -> bool:
        """Say whether this is a way to add up differences.

        >>> [kind for kind in ("l1", "l3", "linf", "l0", "l1.5", "l65") if Metric.is_kind(kind)]
        ['l1', 'l3', 'linf']
        """
        return kind == "linf" or (re.fullmatch("l[1-9][0-9]?", kind) is not None and int(kind[1:]) <= MOST_POWER)

    @property
    def power(self) -> int | None:
        """The power that differences are raised to; None where the largest of them counts."""
        return None if self.kind == "linf" else int(self.kind[1:])

    @property
    def limit(self) -> Fraction:
        """The most that may be spent: theta, raised to the power."""
        return self.theta ** (self.power or 1)

    def spent(self, distances: list[Fraction]) -> Fraction:
        """Return the distance, raised to the power, of a move with these parts."""
        if self.power is None:
            return max(distances, default=Fraction(0))
        return sum((d**self.power for d in distances), Fraction(0))

    def allows(self, distances: list[Fraction]) -> bool:
        """Say whether a move with these parts is within theta."""
        return self.spent(distances) <= self.limit

    def steps_left(self, distances: list[Fraction], spacing: Fraction | int) -> int:
        """Return how many positions one more axis may move if the others move this far; -1 if that is too far."""
        if not self.allows(distances):
            return -1
        if self.power is None:
            return int(self.theta // spacing)
        # the largest whole number of spacings whose power is not above what is left
        return _root(math.floor((self.limit - self.spent(distances)) / Fraction(spacing) ** self.power), self.power)


def _root(number: int, power: int) -> int:
    """Return the largest whole number whose power is not above a number.

    >>> [_root(number, 3) for number in (0, 7, 8, 10**60 - 1, 10**60)] == [0, 1, 2, 10**20 - 1, 10**20]
    True
    """
    if power <= 2:
        return number if power == 1 else math.isqrt(number)
    low, high = 0, 1 << (number.bit_length() // power + 1)  # low ** power <= number < high ** power
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**power <= number else (low, middle)
    return low


@dataclass(frozen=True)
class Absence:
    """Edges to absence from the records that satisfy `only_from`; with `joins`, also from absence to every record."""

    only_from: Test | None = None
    joins: bool = True


@dataclass(frozen=True)
class EdgeShape:
    """A set of edges: relations by axis, item moves by attribute, and what else must hold.

    An edge must change something; a shape with only `Same` axes has none. `any_elsewhere` says that axes and item
    sets that are not listed may change freely (they stay the same otherwise).
    """

    relations: Mapping[str, Relation] = field(default_factory=dict)
    items: Mapping[str, ItemMoves] = field(default_factory=dict)
    metric: Metric | None = None
    only_from: Test | None = None
    any_elsewhere: bool = False

    def __post_init__(self) -> None:
        # read-only, because a policy keeps its shapes
        object.__setattr__(self, "relations", MappingProxyType(dict(self.relations)))
        object.__setattr__(self, "items", MappingProxyType(dict(self.items)))

    def __reduce__(self) -> tuple[Any, ...]:
        # a mapping proxy cannot be copied
        return EdgeShape, (dict(self.relations), dict(self.items), self.metric, self.only_from, self.any_elsewhere)

    def only_for(self, test: Test) -> EdgeShape:
        """Return those of these edges whose hidden end satisfies a predicate."""
        both = test if self.only_from is None else self.only_from.joined(test, "and")
        return EdgeShape(self.relations, self.items, self.metric, both, self.any_elsewhere)

    def relation(self, axis: Axis) -> Relation:
        """Return how an axis may change. An item within a shared distance changes if that is 1 or more."""
        if axis.item is not None:
            moves = self.item_moves(axis.attribute)
            if self.metric is not None and axis.attribute in self.items and moves.exactly is None:
                return Near(int(self.metric.theta >= 1))
            return moves.flag(axis.item)
        listed = self.relations.get(axis.name)
        if listed is not None:
            return listed
        return FromTo(Intervals.full(axis.size), Intervals.full(axis.size)) if self.any_elsewhere else Same()

    def shares_distance(self, relation: Relation) -> bool:
        """Say whether a relation of this shape is limited by its shared distance."""
        return self.metric is not None and relation.shares_distance

    def moves(self, domain: Domain, name: str) -> bool:
        """Say whether an edge may change an attribute."""
        if domain[name].is_set:
            return self.item_moves(name) != STAY_ITEMS
        return any(self.relation(axis).can_move for axis in domain.axes_of(name))

    def item_moves(self, attribute: str) -> ItemMoves:
        """Return how a set of items may change."""
        return self.items.get(attribute, ItemMoves(lose=True, gain=True) if self.any_elsewhere else STAY_ITEMS)


MOST_COMBINATIONS: Final = 20_000  # of classes, of which those that satisfy a predicate are looked for


def classes(size: int, sets: Iterable[Intervals]) -> list[Intervals]:
    """Split the positions 0..size-1 into the classes that these sets tell apart.

    >>> [part.parts for part in classes(10, [Intervals.of([(2, 4)]), Intervals.of([(4, 9)])])]
    [((0, 1),), ((2, 3),), ((4, 4),), ((5, 9),)]
    """
    found = [Intervals.full(size)]
    for chosen in dict.fromkeys(sets):
        found = [part for piece in found for part in (piece.without(chosen), piece & chosen) if part]
    return sorted(found, key=lambda piece: piece.parts)


def axes_of(tests: Iterable[Test | None]) -> dict[str, tuple[Axis, list[Intervals]]]:
    """Return for each axis that these predicates mention the classes that they tell apart."""
    atoms: dict[str, tuple[Axis, list[Intervals]]] = {}
    for test in tests:
        for axis, positions in test.atoms if test is not None else ():
            atoms.setdefault(axis.name, (axis, []))[1].append(positions)
    return {name: (axis, classes(axis.size, sets)) for name, (axis, sets) in atoms.items()}


def cells(split: dict[str, tuple[Axis, list[Intervals]]]) -> Iterator[dict[str, Intervals]]:
    """Go through all combinations of one class for each axis."""
    for combination in product(*(parts for _, parts in split.values())):
        yield dict(zip(split, combination, strict=True))


def projected(test: Test | None, axis: Axis) -> Intervals:
    """Return the positions of an axis at which a predicate may hold, whatever the other axes are; never too few."""
    split = axes_of([test])
    if axis.name not in split or math.prod(len(parts) for _, parts in split.values()) > MOST_COMBINATIONS:
        return Intervals.full(axis.size)
    found = [cell[axis.name] for cell in cells(split) if holds(test, cell)]
    return Intervals.of(part for positions in found for part in positions)


def holds(test: Test | None, cell: dict[str, Intervals]) -> bool:
    """Return the predicate's answer for a combination of classes (no predicate: yes)."""
    if test is None:
        return True
    # classes never straddle an atom, so one member answers for all
    return bool(test.holds(lambda axis, found: cell[axis.name].lowest in found, lambda answer: not answer))


Places: TypeAlias = dict[Axis, int]  # a position for each axis
Box: TypeAlias = dict[Axis, Intervals]

_MOST_LAYERS: Final = 20_000
_MOST_LISTED: Final = 1_000_000  # edges that are gone through one by one
EFFORT: Final = 100_000  # boxes that are compared with boxes: about a second


class TooMany(Exception):
    """The search would take too long."""


@dataclass(frozen=True)
class Leg:
    """A part of a chain: several edges from one place to another, each as long as `reach` allows on each axis."""

    start: Places
    end: Places
    edges: int = 1
    reach: Mapping[Axis, int] = field(default_factory=dict)

    def places(self) -> Iterator[Places]:
        """Go through the places after each edge."""
        for number in range(1, self.edges):
            here = {}
            for axis, start in self.start.items():
                far = self.end[axis] - start
                moved = min(abs(far), number * self.reach.get(axis, 0))
                here[axis] = start + (moved if far > 0 else -moved)
            yield here
        if self.edges:
            yield self.end


@dataclass(frozen=True)
class BoxMove:
    """Edges that move each axis by a relation of its own (those without one stay) from a region of records."""

    relations: Mapping[Axis, Relation]
    region: Mapping[Axis, Intervals]

    @cached_property
    def listed(self) -> tuple[Places, Box] | None:
        """The one place at which all of these edges begin, and where they end; None if they begin at several."""
        start: Places = {}
        ends: Box = {}
        for axis, relation in self.relations.items():
            only = relation.single_start
            if only is None:
                return None
            start[axis], ends[axis] = only
        return start, ends

    def image(self, box: Box) -> Box | None:
        """Return the records that these edges lead to from a box, or None."""
        found: Box = {}
        for axis, part in box.items():
            start = part & self.region[axis] if axis in self.region else part
            if axis in self.relations:
                start = self.relations[axis].targets(start) & Intervals.full(axis.size)
            if not start:
                return None
            found[axis] = start
        return found

    def source(self, box: Box, places: Places) -> Places:
        """Return a place in a box from which an edge leads to these places, as near to them as can be."""
        found = {}
        for axis, place in places.items():
            part = box[axis] & self.region[axis] if axis in self.region else box[axis]
            here = Intervals.points([place])
            found[axis] = (part & (self.relations[axis].sources(here) if axis in self.relations else here)).closest_to(
                place
            )
        return found


@dataclass(frozen=True)
class _Reached:
    """A box, and how it was reached: from which other box, along which edges, and along how many."""

    box: Box
    before: _Reached | None = None
    move: BoxMove | None = None
    edges: int = 1


def shortest_legs(moves: Sequence[BoxMove], start: Places, end: Box, effort: int) -> list[Leg] | None:
    """Return a shortest chain of edges from a place to any place of a box, or None if there is none."""
    first = _Reached({axis: Intervals.points([place]) for axis, place in start.items()})
    visited, newest, layers, compared = [first], [first], 0, 0
    landmarks = {axis: _landmarks(axis, moves, part) for axis, part in end.items()}
    while newest:
        for reached in newest:
            met = {axis: part & end[axis] for axis, part in reached.box.items()}
            if all(met.values()):
                return _legs(reached, {axis: part.closest_to(start[axis]) for axis, part in met.items()})
        layers += 1
        found: list[_Reached] = []
        for reached in newest:
            for move in moves:
                box = move.image(reached.box)
                compared += len(found) + len(visited)
                if compared > effort or layers > _MOST_LAYERS:
                    raise TooMany
                if box is not None and not any(_within(box, other.box) for other in (*found, *visited)):
                    found = [other for other in found if not _within(other.box, box)]
                    found.append(_Reached(box, reached, move))
        if len(newest) == len(found) == 1 and (many := _undisturbed(newest[0].box, found[0].box, landmarks, visited)):
            found = [_grown(newest[0].box, found[0], many)]
        visited = [other for other in visited if not any(_within(other.box, one.box) for one in found)] + found
        newest = found
    return None


def listed_legs(moves: Sequence[BoxMove], start: Places, end: Box) -> list[Leg] | None:
    """Return a shortest chain if each move begins at one place: a search through a graph whose edges are listed."""
    axes = list(start)
    leading: dict[tuple[int, ...], dict[tuple[int, ...], list[tuple[BoxMove, list[list[int]]]]]] = {}
    for move in moves:
        assert move.listed is not None  # noqa: S101 - callers check `are_listed`
        begin, box = move.listed
        places = tuple(axes.index(axis) for axis in begin)
        ends = [[at for low, high in part for at in range(low, high + 1)] for part in box.values()]
        leading.setdefault(places, {}).setdefault(tuple(begin.values()), []).append((move, ends))
    first = tuple(start.values())
    before: dict[tuple[int, ...], tuple[int, ...] | None] = {first: None}
    newest = [first]
    while newest:
        for here in newest:
            if all(at in end[axis] for axis, at in zip(axes, here, strict=True)):
                return _listed_chain(axes, before, here)
        found = []
        for here in newest:
            for places, moved in leading.items():
                for move, ends in moved.get(tuple(here[place] for place in places), ()):
                    if any(here[axes.index(axis)] not in part for axis, part in move.region.items()):
                        continue
                    for reached in product(*ends):
                        there = list(here)
                        for place, at in zip(places, reached, strict=True):
                            there[place] = at
                        if (new := tuple(there)) not in before:
                            before[new] = here
                            found.append(new)
        newest = found
    return None


def are_listed(moves: Sequence[BoxMove]) -> bool:
    """Say whether each move begins at one place, and so few edges begin there that each can be looked at."""
    many = 0
    for move in moves:
        if move.listed is None:
            return False
        many += prod(part.count for part in move.listed[1].values())
    return many <= _MOST_LISTED


def _listed_chain(
    axes: Sequence[Axis], before: Mapping[tuple[int, ...], tuple[int, ...] | None], end: tuple[int, ...]
) -> list[Leg]:
    found, here = [], end
    while (earlier := before[here]) is not None:
        found.append(Leg(dict(zip(axes, earlier, strict=True)), dict(zip(axes, here, strict=True))))
        here = earlier
    return found[::-1]


def _within(small: Box, large: Box) -> bool:
    return all(part <= large[axis] for axis, part in small.items())


def _landmarks(axis: Axis, moves: Sequence[BoxMove], end: Intervals) -> list[int] | None:
    """Return the places on an axis where sets of positions begin and end; None if they are all over the axis."""
    found = {0, axis.size - 1, *(at for ends in end for at in ends)}
    for move in moves:
        sets = [move.region[axis]] if axis in move.region else []
        if axis in move.relations:
            if not move.relations[axis].grows_evenly:
                return None
            sets += move.relations[axis].told_apart(axis.size)
        found.update(at for positions in sets for low, high in positions for at in (low - 1, low, high, high + 1))
    return sorted(found)


def _undisturbed(
    before: Box, after: Box, landmarks: Mapping[Axis, list[int] | None], visited: Sequence[_Reached]
) -> int:
    """Return how many more edges surely let a box grow by the same again, with no other effect."""
    room: list[int] = []
    for axis, grown in after.items():
        old = before[axis]
        if old == grown:
            continue
        marks = landmarks[axis]
        if marks is None or len(old.parts) > 1 or len(grown.parts) > 1 or not old <= grown:
            return 0
        # other boxes do not grow any more: whether this one is inside of them must not change either
        others = [at for one in visited if one.box[axis] != old for ends in one.box[axis] for at in ends]
        marks = sorted({*marks, *others})
        if up := grown.highest - old.highest:
            place = bisect_left(marks, old.highest)
            room.append((marks[place] - grown.highest) // up if place < len(marks) else 0)
        if down := old.lowest - grown.lowest:
            place = bisect_right(marks, old.lowest) - 1
            room.append((grown.lowest - marks[place]) // down if place >= 0 else 0)
    return max(0, min(room, default=0) - 2)


def _grown(before: Box, reached: _Reached, many: int) -> _Reached:
    box = {}
    for axis, part in reached.box.items():
        old = before[axis]
        low, high = part.lowest, part.highest
        ends = low - many * (old.lowest - low), high + many * (high - old.highest)
        box[axis] = part if old == part else Intervals.of([ends])
    return _Reached(box, reached, reached.move, many)


def _legs(reached: _Reached, end: Places) -> list[Leg]:
    found: list[Leg] = []
    while reached.before is not None and reached.move is not None:
        earlier = reached.before
        if reached.edges == 1:
            start = reached.move.source(earlier.box, end)
            found.append(Leg(start, end))
        else:
            inner = earlier.before
            assert inner is not None  # noqa: S101 - what grows was reached from what it grew from
            grown = {axis: (part, inner.box[axis]) for axis, part in earlier.box.items()}
            reach = {
                axis: max(part.highest - old.highest, old.lowest - part.lowest) for axis, (part, old) in grown.items()
            }
            start = {axis: earlier.box[axis].closest_to(place) for axis, place in end.items()}
            found.append(Leg(start, end, reached.edges, reach))
        reached, end = earlier, start
    return found[::-1]

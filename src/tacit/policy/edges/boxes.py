"""Which records edges lead to, kept as boxes: one set of positions for each axis.

If every axis moves by a relation of its own, the records that one edge leads to from a box form a box again. So a few
boxes hold all records that k edges lead to, however many records there are. If a box only grows, and by the same on
every edge, many edges are taken at once: nothing else can happen before one of its ends reaches a position where some
set of positions begins or ends.

Listed pairs form a graph instead: each edge starts at one place, and edges are followed one by one (`listed_legs`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod
from typing import Final, TypeAlias

from tacit.policy.attributes.attribute import Axis
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import Relation

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
        assert move.listed is not None  # noqa: S101 - who calls this has asked `are_listed`
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
    """Return the box after so many more edges."""
    box = {}
    for axis, part in reached.box.items():
        old = before[axis]
        low, high = part.lowest, part.highest
        ends = low - many * (old.lowest - low), high + many * (high - old.highest)
        box[axis] = part if old == part else Intervals.of([ends])
    return _Reached(box, reached, reached.move, many)


def _legs(reached: _Reached, end: Places) -> list[Leg]:
    """Return the chain that led to a place in a box, from its beginning."""
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

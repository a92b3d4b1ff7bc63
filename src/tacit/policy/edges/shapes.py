"""The geometry of secret edges: how far one record may move, axis by axis.

Every family of secrets is a union of *edge shapes*. A shape says for each axis how the position may change from
`hidden` to `cover` (a relation), optionally with one shared distance budget and a condition on `hidden`. Axes
that a shape does not list stay the same.

A predicate looks at an axis only through its atoms. Two positions that lie in the same atoms are interchangeable, so
an axis of 10^12 positions with three atoms has at most eight `classes`, and usually four.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from types import MappingProxyType
from typing import Any, Final

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


@dataclass(frozen=True)
class Metric:
    """One distance budget shared by the `Near` axes and item sets of a shape, in the units of the attributes."""

    theta: Fraction
    kind: str

    def spent(self, distances: list[Fraction]) -> Fraction:
        """Return the distance (for l2: its square) of a move with these parts."""
        if self.kind == "linf":
            return max(distances, default=Fraction(0))
        return sum((d * d if self.kind == "l2" else d for d in distances), Fraction(0))

    def allows(self, distances: list[Fraction]) -> bool:
        """Say whether a move with these parts is within theta."""
        return self.spent(distances) <= (self.theta**2 if self.kind == "l2" else self.theta)

    def steps_left(self, distances: list[Fraction], spacing: Fraction | int) -> int:
        """Return how many positions one more axis may move if the others move this far; -1 if that is too far."""
        if not self.allows(distances):
            return -1
        if self.kind == "linf":
            return int(self.theta // spacing)
        if self.kind == "l1":
            return int((self.theta - self.spent(distances)) // spacing)
        # the largest whole number of spacings whose square is not above what is left of the squares
        return math.isqrt(math.floor((self.theta**2 - self.spent(distances)) / Fraction(spacing) ** 2))


@dataclass(frozen=True)
class Absence:
    """Edges between people and not being in the data: whoever `only_from` picks leaves; with `joins`, anybody joins."""

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
        # a policy keeps its shapes, and nobody may take an edge out of them
        object.__setattr__(self, "relations", MappingProxyType(dict(self.relations)))
        object.__setattr__(self, "items", MappingProxyType(dict(self.items)))

    def __reduce__(self) -> tuple[Any, ...]:
        # copies are made anew: what shows a mapping read-only cannot be copied itself
        return EdgeShape, (dict(self.relations), dict(self.items), self.metric, self.only_from, self.any_elsewhere)

    def only_for(self, test: Test) -> EdgeShape:
        """Return those of these edges whose hidden end satisfies a predicate."""
        both = test if self.only_from is None else self.only_from.joined(test, "and")
        return EdgeShape(self.relations, self.items, self.metric, both, self.any_elsewhere)

    def relation(self, axis: Axis) -> Relation:
        """Return how an axis may move. An item that has its share of a distance moves if that is 1 or more."""
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

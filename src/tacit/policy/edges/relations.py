"""The geometry of secret edges: how far one record may move, axis by axis.

Every family of secrets is a union of *edge shapes*. A shape says for each axis how the position may change from
`hidden` to `cover` (a relation), optionally with one shared distance budget and a condition on `hidden`. Axes
that a shape does not list stay the same. Relations answer with sets of positions and of differences, in closed form,
so that an axis with 10^12 positions costs no more than one with two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final, Protocol

from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.where import Test

_FEW_PAIRS: Final = 10_000  # of intervals, whose blocks are looked at one by one


class Relation(Protocol):
    """How the position on one axis may change along an edge."""

    def differences(self, hidden: Intervals, cover: Intervals) -> Intervals:
        """Return all values of `cover - hidden` with the ends in these two sets."""

    def sources(self, cover: Intervals) -> Intervals:
        """Return the hidden positions that may move to one of these (or beyond the axis; intersect it)."""

    def targets(self, hidden: Intervals) -> Intervals:
        """Return the cover positions that one of these may move to (or beyond the axis; intersect it)."""

    def allows(self, hidden: int, cover: int) -> bool:
        """Say whether one position may move to the other."""

    def within(self, other: Relation, size: int) -> bool:
        """Say whether the other relation surely allows all that this one does, on an axis of this size."""


@dataclass(frozen=True)
class Same:
    """The position does not change."""

    def differences(self, hidden: Intervals, cover: Intervals) -> Intervals:
        """Return {0} if the sets share a position."""
        return Intervals.points([0] if hidden & cover else [])

    def sources(self, cover: Intervals) -> Intervals:
        """Return the same positions."""
        return cover

    def targets(self, hidden: Intervals) -> Intervals:
        """Return the same positions."""
        return hidden

    def allows(self, hidden: int, cover: int) -> bool:
        """Say whether the two are the same."""
        return hidden == cover

    def within(self, other: Relation, size: int) -> bool:
        """Say whether staying is allowed everywhere by the other relation."""
        match other:
            case FromTo(sources, covers, may_stay):
                # every position must be allowed to stay: a block {a..b} allows a to stay only inside both sets
                return may_stay or Intervals.full(size) <= (sources & covers)
            case _:
                return True


@dataclass(frozen=True)
class FromTo:
    """From any position of one set to any position of another. `may_stay`: or no change at all, from anywhere."""

    hidden: Intervals
    cover: Intervals
    may_stay: bool = False

    def differences(self, hidden: Intervals, cover: Intervals) -> Intervals:
        """Return the differences over all pairs of positions."""
        start, end = hidden & self.hidden, cover & self.cover
        far = max(end.highest - start.lowest, start.highest - end.lowest) if start and end else 0
        found = end.minus(start, -abs(far), abs(far))
        return found | Intervals.points([0]) if self.may_stay and hidden & cover else found

    def sources(self, cover: Intervals) -> Intervals:
        """Return the hidden set if the cover set is met."""
        moved = self.hidden if cover & self.cover else Intervals()
        return moved | cover if self.may_stay else moved

    def targets(self, hidden: Intervals) -> Intervals:
        """Return the cover set if the hidden set is met."""
        moved = self.cover if hidden & self.hidden else Intervals()
        return moved | hidden if self.may_stay else moved

    def allows(self, hidden: int, cover: int) -> bool:
        """Say whether one position may move to the other."""
        return (hidden in self.hidden and cover in self.cover) or (self.may_stay and hidden == cover)

    def within(self, other: Relation, size: int) -> bool:
        """Say whether the other relation surely allows all that this one does."""
        stays = not self.may_stay or Same().within(other, size)
        pieces = [
            ((a, b), (c, d)) for a, b in self.hidden.parts for c, d in self.cover.parts if self.hidden and self.cover
        ]
        match other:
            case Same():
                moves = all(a == b == c == d for (a, b), (c, d) in pieces)
            case FromTo(sources, covers, may_stay):
                inside = self.hidden <= sources and self.cover <= covers
                moves = inside or (may_stay and all(a == b == c == d for (a, b), (c, d) in pieces))
            case Blocks(width):
                moves = all(a // width == b // width == c // width == d // width for (a, b), (c, d) in pieces)
            case Near(reach):
                moves = all(max(d - a, b - c) <= reach for (a, b), (c, d) in pieces)
            case _:
                moves = False
        return stays and moves


@dataclass(frozen=True)
class Blocks:
    """Within one block: positions 0..width-1, width..2*width-1, and so on."""

    width: int
    size: int

    def _block(self, position: int) -> tuple[int, int]:
        start = position // self.width * self.width
        return start, min(start + self.width, self.size) - 1

    def differences(self, hidden: Intervals, cover: Intervals) -> Intervals:
        """Return the differences inside blocks.

        Blocks between the ends of two intervals all look alike, so only those at the ends and next to them are tried.
        """
        if len(hidden.parts) * len(cover.parts) > _FEW_PAIRS:
            # those within the width of a block, of the positions that share one: never fewer than there are
            sharing = cover & self.sources(hidden)
            return sharing.minus(hidden & self.sources(cover), 1 - self.width, self.width - 1)
        found: list[tuple[int, int]] = []
        for start, end in hidden:
            for low, high in cover:
                ends = {self._block(position)[0] for position in (start, end, low, high, self.size - 1)}
                near = {near for at in ends for near in (at - self.width, at, at + self.width)}
                for first, last in {self._block(at) for at in near if 0 <= at < self.size}:
                    a, b = max(start, first), min(end, last)
                    c, d = max(low, first), min(high, last)
                    if a <= b and c <= d:
                        found.append((c - b, d - a))
        return Intervals.of(found)

    def sources(self, cover: Intervals) -> Intervals:
        """Return every position of every block that is met."""
        return Intervals.of((self._block(low)[0], self._block(high)[1]) for low, high in cover)

    def targets(self, hidden: Intervals) -> Intervals:
        """Return every position of every block that is met."""
        return self.sources(hidden)

    def allows(self, hidden: int, cover: int) -> bool:
        """Say whether the two are in one block."""
        return hidden // self.width == cover // self.width

    def within(self, other: Relation, size: int) -> bool:
        """Say whether the other relation surely allows all that this one does."""
        widest = min(self.width, size)
        match other:
            case FromTo(sources, covers, _):
                return Intervals.full(size) <= (sources & covers) or (widest == 1 and Same().within(other, size))
            case Blocks(width):
                return width % self.width == 0 or widest == 1 or width >= size
            case Near(reach):
                return reach >= widest - 1
            case _:
                return widest == 1


@dataclass(frozen=True)
class Near:
    """At most `reach` positions away. In a shape with a metric, further limited by the shared distance."""

    reach: int

    def differences(self, hidden: Intervals, cover: Intervals) -> Intervals:
        """Return the differences that are within reach."""
        return cover.minus(hidden, -self.reach, self.reach)

    def sources(self, cover: Intervals) -> Intervals:
        """Return what is within reach."""
        return cover.widened(self.reach)

    def targets(self, hidden: Intervals) -> Intervals:
        """Return what is within reach."""
        return hidden.widened(self.reach)

    def allows(self, hidden: int, cover: int) -> bool:
        """Say whether the two are within reach."""
        return abs(hidden - cover) <= self.reach

    def within(self, other: Relation, size: int) -> bool:
        """Say whether the other relation surely allows all that this one does."""
        reach = min(self.reach, size - 1)
        match other:
            case FromTo(sources, covers, _):
                return Intervals.full(size) <= (sources & covers) or (reach == 0 and Same().within(other, size))
            case Blocks(width):
                return width >= size or reach == 0
            case Near(their_reach):
                return reach <= their_reach
            case _:
                return reach == 0


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
        """Return how many positions one more axis may move when the others move by these; -1 if they went too far."""
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

    def relation(self, axis: str, size: int) -> Relation:
        """Return the relation on an axis."""
        if axis in self.relations:
            return self.relations[axis]
        if self.any_elsewhere:
            everything = Intervals.full(size)
            return FromTo(everything, everything)
        return Same()

    def moves(self, domain: Domain, name: str) -> bool:
        """Say whether an edge may change an attribute."""
        if domain[name].is_set:
            return self.item_moves(name) != STAY_ITEMS
        return any(self.relation(axis.name, axis.size) != Same() for axis in domain.axes_of(name))

    def item_moves(self, attribute: str) -> ItemMoves:
        """Return how a set of items may change."""
        return self.items.get(attribute, ItemMoves(lose=True, gain=True) if self.any_elsewhere else STAY_ITEMS)

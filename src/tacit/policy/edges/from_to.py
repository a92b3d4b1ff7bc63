"""From any position of one set to any position of another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Bools, Ints
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relation import Part, Relation, join_set, overlap
from tacit.policy.edges.same import Same


@dataclass(frozen=True)
class FromTo(Relation):
    """From any position of one set to any position of another. `may_stay`: or no change at all, from anywhere."""

    hidden: Intervals
    cover: Intervals
    may_stay: bool = False

    @property
    def can_move(self) -> bool:
        """Whether some edge begins in the first set, or staying is not allowed everywhere."""
        return bool(self.hidden) or not self.may_stay

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
        return (hidden in self.hidden and cover in self.cover) or (self.may_stay and hidden == cover)

    def within(self, other: Relation, size: int) -> bool:
        """Say whether the other allows all moves from set to set, and staying where this one does."""
        stays = not self.may_stay or other.allows_staying(size)
        return stays and other.allows_all(self.hidden, self.cover)

    def allows_all(self, hidden: Intervals, cover: Intervals) -> bool:
        """Say whether both sets are inside of these, or are one position that may stay."""
        inside = hidden <= self.hidden and cover <= self.cover
        return inside or (self.may_stay and Same().allows_all(hidden, cover))

    def allows_staying(self, size: int) -> bool:
        """Say whether every position is in both sets, or may stay."""
        # a block {a..b} allows a to stay only inside both sets
        return self.may_stay or Intervals.full(size) <= (self.hidden & self.cover)

    def told_apart(self, size: int) -> tuple[Intervals, ...]:
        """Return both sets, unless they are the whole axis."""
        return tuple(part for part in (self.hidden, self.cover) if part != Intervals.full(size))

    def telling(self, size: int) -> tuple[list[int], list[int]]:
        """Return the ends of the parts of both sets."""
        return [place for part in (self.hidden, self.cover) for low, high in part for place in (low, high)], []

    @property
    def single_start(self) -> tuple[int, Intervals] | None:
        """The one position of the hidden set, if it has one and nobody stays."""
        (low, high), *others = self.hidden.parts or [(0, 1)]
        return None if self.may_stay or others or low != high else (low, self.cover)

    def join(self, labels: Ints, starts: Intervals | None) -> None:
        """Connect the cover set with all that leads there."""
        hidden = self.hidden if starts is None else self.hidden & starts
        if hidden or starts is None:
            join_set(labels, self.cover | hidden)

    def sides(self, size: int) -> tuple[Bools, Bools, Bools, Bools]:
        """Edges start in one set and end in the other."""
        positions = np.arange(size, dtype=np.int64)
        starts, ends = self.hidden.marks(positions), self.cover.marks(positions)
        leaves = starts & ((self.cover.count > 1) | ~ends)
        arrives = ends & ((self.hidden.count > 1) | ~starts)
        return starts | self.may_stay, ends | self.may_stay, leaves, arrives

    def corners(self, hidden: Intervals, cover: Intervals) -> set[tuple[int, int]]:
        """Return the corners of a rectangle: that is the hull, whatever gaps the sets have."""
        found = {(x, y) for x in (hidden & self.hidden).ends for y in (cover & self.cover).ends}
        return found | (Same().corners(hidden, cover) if self.may_stay else set())

    def meets(self, hidden: list[Part], cover: list[Part]) -> Bools:
        """Return which pieces meet the sets on both sides, or share a position that may stay."""
        starts = np.array([bool(self.hidden & Intervals((piece,))) for piece in hidden])
        ends = np.array([bool(self.cover & Intervals((piece,))) for piece in cover])
        found: Bools = starts[:, None] & ends
        return found | overlap(hidden, cover) if self.may_stay else found

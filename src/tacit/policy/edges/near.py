"""From any position to any other within reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.arrays import Bools, Ints
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relation import Part, Relation, is_unlabelled, join_set, overlap


@dataclass(frozen=True)
class Near(Relation):
    """At most `reach` positions away. In a shape with a metric, further limited by the shared distance."""

    reach: int
    shares_distance: ClassVar[bool] = True

    @property
    def can_move(self) -> bool:
        """Whether another position is within reach."""
        return self.reach != 0

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

    def limited(self, reach: int) -> Relation:
        """Return the moves that a shared distance leaves; a negative reach leaves none."""
        return Near(reach)

    def within(self, other: Relation, size: int) -> bool:
        """Say whether the other allows all moves by so many positions."""
        return other.allows_near(min(self.reach, size - 1), size)

    def allows_all(self, hidden: Intervals, cover: Intervals) -> bool:
        """Say whether no two positions are further apart."""
        return all(max(d - a, b - c) <= self.reach for a, b in hidden for c, d in cover)

    def allows_near(self, reach: int, size: int) -> bool:
        """Say whether the reach is as large."""
        return reach <= self.reach

    def telling(self, size: int) -> tuple[list[int], list[int]]:
        return [], [self.reach]

    def join(self, labels: Ints, starts: Intervals | None) -> None:
        """Connect everything, or everything around each start."""
        if self.reach < 1:
            return
        if starts is None:
            labels[:] = 0
            return
        alone = is_unlabelled(labels)
        for low, high in starts.widened(self.reach):
            if alone:
                labels[max(low, 0) : high + 1] = max(low, 0)  # the stretches do not touch
            else:
                join_set(labels, Intervals(((low, high),)))

    def sides(self, size: int) -> tuple[Bools, Bools, Bools, Bools]:
        """Edges leave and arrive everywhere, if another position is within reach."""
        everywhere, moves = np.ones(size, dtype=np.bool_), np.full(size, self.reach >= 1 and size > 1)
        return everywhere, everywhere, moves, moves

    def corners(self, hidden: Intervals, cover: Intervals) -> set[tuple[int, int]]:
        """Return the corners of a band in each rectangle of two parts."""
        found: set[tuple[int, int]] = set()
        for a, b in self.reached_parts(hidden, cover):
            tried = [(x, y) for x in a for y in (max(b[0], x - self.reach), min(b[1], x + self.reach))]
            tried += [(x, y) for y in b for x in (max(a[0], y - self.reach), min(a[1], y + self.reach))]
            found |= {(x, y) for x, y in tried if abs(x - y) <= self.reach and a[0] <= x <= a[1] and b[0] <= y <= b[1]}
        return found

    def meets(self, hidden: list[Part], cover: list[Part]) -> Bools:
        """Return which pieces come within reach of each other."""
        return overlap(hidden, cover, self.reach)

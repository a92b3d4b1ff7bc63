"""A position that does not change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Bools, Ints
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relation import Part, Relation, overlap


@dataclass(frozen=True)
class Same(Relation):
    """The position does not change."""

    @property
    def can_move(self) -> bool:
        return False

    def differences(self, hidden: Intervals, cover: Intervals) -> Intervals:
        """Return {0} if the sets share a position."""
        return Intervals.points([0] if hidden & cover else [])

    def sources(self, cover: Intervals) -> Intervals:
        return cover

    def targets(self, hidden: Intervals) -> Intervals:
        return hidden

    def allows(self, hidden: int, cover: int) -> bool:
        """Say whether the two are the same."""
        return hidden == cover

    def within(self, other: Relation, size: int) -> bool:
        """Say whether staying is allowed everywhere by the other relation."""
        return other.allows_staying(size)

    def allows_all(self, hidden: Intervals, cover: Intervals) -> bool:
        """Say whether there is nothing but one position."""
        return all(a == b == c == d for a, b in hidden for c, d in cover)

    def join(self, labels: Ints, starts: Intervals | None) -> None:
        """Connect nothing."""

    def sides(self, size: int) -> tuple[Bools, Bools, Bools, Bools]:
        """Every edge stays where it is."""
        everywhere, nowhere = np.ones(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
        return everywhere, everywhere, nowhere, nowhere

    def corners(self, hidden: Intervals, cover: Intervals) -> set[tuple[int, int]]:
        """Return the ends of what both sets share: a diagonal."""
        return {(place, place) for place in (hidden & cover).ends}

    def meets(self, hidden: list[Part], cover: list[Part]) -> Bools:
        """Return which pieces share a position."""
        return overlap(hidden, cover)

"""What every relation says about itself: one method for each behaviour.

A relation says how the position on one axis may change from `hidden` to `cover` along an edge. It answers with sets of
positions and of differences, in closed form, so that an axis with 10^12 positions costs no more than one with two.
Where a set of positions is given, positions beyond the axis are in none of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from tacit.arrays import Bools, Ints
from tacit.policy.edges.intervals import Intervals

Part: TypeAlias = tuple[int, int]


class Relation(ABC):
    """How the position on one axis may change along an edge."""

    shares_distance: ClassVar[bool] = False  # whether a shape with a metric limits it further, by the shared distance
    grows_evenly: ClassVar[bool] = True  # whether an interval that grows by it grows by the same on every edge

    # ---- positions ----

    @abstractmethod
    def differences(self, hidden: Intervals, cover: Intervals) -> Intervals:
        """Return all values of `cover - hidden` with the ends in these two sets."""

    @abstractmethod
    def sources(self, cover: Intervals) -> Intervals:
        """Return the hidden positions that may move to one of these (or beyond the axis; intersect it)."""

    @abstractmethod
    def targets(self, hidden: Intervals) -> Intervals:
        """Return the cover positions that one of these may move to (or beyond the axis; intersect it)."""

    @abstractmethod
    def allows(self, hidden: int, cover: int) -> bool:
        """Say whether one position may move to the other."""

    @property
    def can_move(self) -> bool:
        """Whether it may change a position; if not, it lets every position stay and does nothing else."""
        return True

    def farthest(self, hidden: Intervals, cover: Intervals) -> int:
        """Return the largest distance of a move between these two sets; 0 if there is no move."""
        return max(map(abs, self.differences(hidden, cover).ends), default=0)

    def limited(self, reach: int) -> Relation:
        """Return the moves that are left by a shared distance, of which so many positions are left on this axis."""
        return self

    # ---- all that it allows ----

    @abstractmethod
    def within(self, other: Relation, size: int) -> bool:
        """Say whether the other relation surely allows all that this one does, on an axis of this size."""

    @abstractmethod
    def allows_all(self, hidden: Intervals, cover: Intervals) -> bool:
        """Say whether surely each position of one set may move to each position of the other."""

    def allows_staying(self, size: int) -> bool:
        """Say whether every position of an axis may stay."""
        return True

    def allows_near(self, reach: int, size: int) -> bool:
        """Say whether surely every move by at most so many positions is allowed on an axis of this size."""
        full = Intervals.full(size)
        return self.allows_all(full, full) or (reach == 0 and self.allows_staying(size))

    def allows_blocks(self, width: int, size: int) -> bool:
        """Say whether surely every move within blocks of this width is allowed on an axis of this size."""
        return self.allows_near(min(width, size) - 1, size)

    # ---- where something begins or ends ----

    def told_apart(self, size: int) -> tuple[Intervals, ...]:
        """Return the sets of positions that decide, by who is in them, whether edges begin or lead there."""
        return ()

    def telling(self, size: int) -> tuple[list[int], list[int]]:
        """Return positions at which something begins or ends, and lengths of moves that are worth trying."""
        return [], []

    @property
    def single_start(self) -> tuple[int, Intervals] | None:
        """The only position at which it lets an edge begin, with where it leads; None if there are others."""
        return None

    # ---- whole axes ----

    @abstractmethod
    def join(self, labels: Ints, starts: Intervals | None) -> None:
        """Give one label to all positions that moves connect; with `starts`, only moves that begin there count."""

    @abstractmethod
    def sides(self, size: int) -> tuple[Bools, Bools, Bools, Bools]:
        """Return for each position: may an edge start here, end here, leave it, arrive at it."""

    # ---- pieces and corners ----

    @abstractmethod
    def corners(self, hidden: Intervals, cover: Intervals) -> set[tuple[int, int]]:
        """Return moves (from, to) between two sets among which every convex function of both has its maximum.

        Between two intervals the possible moves are the whole points of a polygon (a rectangle, a band, a diagonal),
        whose corners are whole.
        """

    @abstractmethod
    def meets(self, hidden: list[Part], cover: list[Part]) -> Bools:
        """Return which pieces (rows) have a member that may move to a member of which other pieces (columns)."""

    def farthest_ends(self, starts: Ints, ends: Ints) -> Ints:
        """Return how far upwards moves from these starts lead, of those that go no further than these ends."""
        return ends

    def reached_parts(self, hidden: Intervals, cover: Intervals) -> Iterator[tuple[Part, Part]]:
        """Go through the parts of one set with the parts of the other that a move from there may reach."""
        for part in hidden:
            window, parts = self.targets(Intervals((part,))), cover.parts
            first = bisect_left(parts, window.lowest, key=lambda one: one[1])
            for end in parts[first : bisect_right(parts, window.highest, key=lambda one: one[0])]:
                yield part, end


def overlap(hidden: npt.ArrayLike, cover: npt.ArrayLike, reach: int = 0) -> Bools:
    """Return which pieces share a position, or come within reach of each other."""
    a, b = np.asarray(hidden), np.asarray(cover)
    return np.asarray((a[:, :1] - reach <= b[:, 1]) & (b[:, 0] <= a[:, 1:] + reach), dtype=np.bool_)


def is_unlabelled(labels: Ints) -> bool:
    """Say whether every position still has its own label."""
    return np.array_equal(labels, np.arange(len(labels)))  # labels only ever fall


def join_set(labels: Ints, positions: Intervals) -> None:
    """Give all positions of a set one label, together with whatever shares a label with them."""
    joined = np.zeros(len(labels), dtype=np.bool_)
    for low, high in positions:
        joined[labels[max(low, 0) : high + 1]] = True
    if joined.any():
        labels[joined[labels]] = int(np.argmax(joined))

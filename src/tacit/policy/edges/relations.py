"""How the position on one axis may change from `hidden` to `cover` along an edge.

A relation computes sets of positions and of differences in closed form, so that an axis with 10^12 positions costs no
more than one with two. No set that is passed to it has positions beyond the axis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

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
        """Whether it may change a position; if not, it allows every position to stay, and nothing else."""
        return True

    def farthest(self, hidden: Intervals, cover: Intervals) -> int:
        """Return the largest distance of a move between these two sets; 0 if there is no move."""
        return max(map(abs, self.differences(hidden, cover).ends), default=0)

    def limited(self, reach: int) -> Relation:
        """Return the moves by at most so many positions, which a shared distance allows on this axis."""
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
        """Return the sets of positions on which it depends whether an edge starts or ends at a position."""
        return ()

    def telling(self, size: int) -> tuple[list[int], list[int]]:
        """Return positions where sets start or end, and lengths of moves, for audits to try."""
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


@dataclass(frozen=True)
class Same(Relation):
    """The position does not change."""

    @property
    def can_move(self) -> bool:
        return False

    def differences(self, hidden: Intervals, cover: Intervals) -> Intervals:
        return Intervals.points([0] if hidden & cover else [])

    def sources(self, cover: Intervals) -> Intervals:
        return cover

    def targets(self, hidden: Intervals) -> Intervals:
        return hidden

    def allows(self, hidden: int, cover: int) -> bool:
        return hidden == cover

    def within(self, other: Relation, size: int) -> bool:
        return other.allows_staying(size)

    def allows_all(self, hidden: Intervals, cover: Intervals) -> bool:
        return all(a == b == c == d for a, b in hidden for c, d in cover)

    def join(self, labels: Ints, starts: Intervals | None) -> None:
        """Connect nothing."""

    def sides(self, size: int) -> tuple[Bools, Bools, Bools, Bools]:
        everywhere, nowhere = np.ones(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
        return everywhere, everywhere, nowhere, nowhere

    def corners(self, hidden: Intervals, cover: Intervals) -> set[tuple[int, int]]:
        return {(place, place) for place in (hidden & cover).ends}

    def meets(self, hidden: list[Part], cover: list[Part]) -> Bools:
        return overlap(hidden, cover)


@dataclass(frozen=True)
class FromTo(Relation):
    """From any position of one set to any position of another. `may_stay`: or no change at all, from anywhere."""

    hidden: Intervals
    cover: Intervals
    may_stay: bool = False

    @property
    def can_move(self) -> bool:
        return bool(self.hidden) or not self.may_stay

    def differences(self, hidden: Intervals, cover: Intervals) -> Intervals:
        start, end = hidden & self.hidden, cover & self.cover
        far = max(end.highest - start.lowest, start.highest - end.lowest) if start and end else 0
        found = end.minus(start, -abs(far), abs(far))
        return found | Intervals.points([0]) if self.may_stay and hidden & cover else found

    def sources(self, cover: Intervals) -> Intervals:
        moved = self.hidden if cover & self.cover else Intervals()
        return moved | cover if self.may_stay else moved

    def targets(self, hidden: Intervals) -> Intervals:
        moved = self.cover if hidden & self.hidden else Intervals()
        return moved | hidden if self.may_stay else moved

    def allows(self, hidden: int, cover: int) -> bool:
        return (hidden in self.hidden and cover in self.cover) or (self.may_stay and hidden == cover)

    def within(self, other: Relation, size: int) -> bool:
        stays = not self.may_stay or other.allows_staying(size)
        return stays and other.allows_all(self.hidden, self.cover)

    def allows_all(self, hidden: Intervals, cover: Intervals) -> bool:
        inside = hidden <= self.hidden and cover <= self.cover
        return inside or (self.may_stay and Same().allows_all(hidden, cover))

    def allows_staying(self, size: int) -> bool:
        # a block {a..b} allows a to stay only inside both sets
        return self.may_stay or Intervals.full(size) <= (self.hidden & self.cover)

    def told_apart(self, size: int) -> tuple[Intervals, ...]:
        return tuple(part for part in (self.hidden, self.cover) if part != Intervals.full(size))

    def telling(self, size: int) -> tuple[list[int], list[int]]:
        return [place for part in (self.hidden, self.cover) for low, high in part for place in (low, high)], []

    @property
    def single_start(self) -> tuple[int, Intervals] | None:
        (low, high), *others = self.hidden.parts or [(0, 1)]
        return None if self.may_stay or others or low != high else (low, self.cover)

    def join(self, labels: Ints, starts: Intervals | None) -> None:
        hidden = self.hidden if starts is None else self.hidden & starts
        if hidden or starts is None:
            join_set(labels, self.cover | hidden)

    def sides(self, size: int) -> tuple[Bools, Bools, Bools, Bools]:
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
        starts = np.array([bool(self.hidden & Intervals((piece,))) for piece in hidden])
        ends = np.array([bool(self.cover & Intervals((piece,))) for piece in cover])
        found: Bools = starts[:, None] & ends
        return found | overlap(hidden, cover) if self.may_stay else found


@dataclass(frozen=True)
class Near(Relation):
    """At most `reach` positions away. In a shape with a metric, further limited by the shared distance."""

    reach: int
    shares_distance: ClassVar[bool] = True

    @property
    def can_move(self) -> bool:
        return self.reach != 0

    def differences(self, hidden: Intervals, cover: Intervals) -> Intervals:
        return cover.minus(hidden, -self.reach, self.reach)

    def sources(self, cover: Intervals) -> Intervals:
        return cover.widened(self.reach)

    def targets(self, hidden: Intervals) -> Intervals:
        return hidden.widened(self.reach)

    def allows(self, hidden: int, cover: int) -> bool:
        return abs(hidden - cover) <= self.reach

    def limited(self, reach: int) -> Relation:
        """Return the moves that a shared distance leaves; a negative reach leaves none."""
        return Near(reach)

    def within(self, other: Relation, size: int) -> bool:
        return other.allows_near(min(self.reach, size - 1), size)

    def allows_all(self, hidden: Intervals, cover: Intervals) -> bool:
        return all(max(d - a, b - c) <= self.reach for a, b in hidden for c, d in cover)

    def allows_near(self, reach: int, size: int) -> bool:
        return reach <= self.reach

    def telling(self, size: int) -> tuple[list[int], list[int]]:
        return [], [self.reach]

    def join(self, labels: Ints, starts: Intervals | None) -> None:
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
        everywhere, moves = np.ones(size, dtype=np.bool_), np.full(size, self.reach >= 1 and size > 1)
        return everywhere, everywhere, moves, moves

    def corners(self, hidden: Intervals, cover: Intervals) -> set[tuple[int, int]]:
        found: set[tuple[int, int]] = set()
        for a, b in self.reached_parts(hidden, cover):
            tried = [(x, y) for x in a for y in (max(b[0], x - self.reach), min(b[1], x + self.reach))]
            tried += [(x, y) for y in b for x in (max(a[0], y - self.reach), min(a[1], y + self.reach))]
            found |= {(x, y) for x, y in tried if abs(x - y) <= self.reach and a[0] <= x <= a[1] and b[0] <= y <= b[1]}
        return found

    def meets(self, hidden: list[Part], cover: list[Part]) -> Bools:
        return overlap(hidden, cover, self.reach)


_FEW_PAIRS: Final = 10_000  # of intervals, whose blocks are looked at one by one


@dataclass(frozen=True)
class Blocks(Relation):
    """Within one block: positions 0..width-1, width..2*width-1, and so on."""

    width: int
    size: int
    grows_evenly: ClassVar[bool] = False

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
        return Intervals.of((self._block(low)[0], self._block(high)[1]) for low, high in cover)

    def targets(self, hidden: Intervals) -> Intervals:
        return self.sources(hidden)

    def allows(self, hidden: int, cover: int) -> bool:
        return hidden // self.width == cover // self.width

    def within(self, other: Relation, size: int) -> bool:
        return other.allows_blocks(self.width, size)

    def allows_all(self, hidden: Intervals, cover: Intervals) -> bool:
        width = self.width
        return all(a // width == b // width == c // width == d // width for a, b in hidden for c, d in cover)

    def allows_blocks(self, width: int, size: int) -> bool:
        return self.width % width == 0 or super().allows_blocks(width, size)

    def told_apart(self, size: int) -> tuple[Intervals, ...]:
        """Return the last position where it is alone in its block, and others are not."""
        return (Intervals.points([size - 1]),) if self.width > 1 and size % self.width == 1 else ()

    def telling(self, size: int) -> tuple[list[int], list[int]]:
        return [self.width - 1, (size - 1) // self.width * self.width], []

    def join(self, labels: Ints, starts: Intervals | None) -> None:
        only, width = None if starts is None else self.sources(starts), self.width
        if is_unlabelled(labels):
            places = np.arange(len(labels))
            joined = places // width * width
            labels[:] = joined if only is None else np.where(only.marks(places), joined, places)
            return
        for start in range(0, len(labels), width):
            if only is None or start in only:
                join_set(labels, Intervals.of([(start, min(start + width, len(labels)) - 1)]))

    def sides(self, size: int) -> tuple[Bools, Bools, Bools, Bools]:
        positions = np.arange(size, dtype=np.int64)
        everywhere, first = np.ones(size, dtype=np.bool_), positions // self.width * self.width
        moves = np.minimum(first + self.width, size) - first > 1
        return everywhere, everywhere, moves, moves

    def corners(self, hidden: Intervals, cover: Intervals) -> set[tuple[int, int]]:
        """Return the corners of the outermost blocks, which alone are corners of the hull.

        The first and the last block may be cut, so the two outermost at either end are taken.
        """
        found: set[tuple[int, int]] = set()
        for a, b in self.reached_parts(hidden, cover):
            first, last = max(a[0], b[0]) // self.width, min(a[1], b[1]) // self.width
            for block in {first, first + 1, last - 1, last}:
                if first <= block <= last:
                    low, high = block * self.width, block * self.width + self.width - 1
                    found |= {
                        (x, y) for x in (max(a[0], low), min(a[1], high)) for y in (max(b[0], low), min(b[1], high))
                    }
        return found

    def meets(self, hidden: list[Part], cover: list[Part]) -> Bools:
        return overlap(np.array(hidden) // self.width, np.array(cover) // self.width)

    def farthest_ends(self, starts: Ints, ends: Ints) -> Ints:
        return np.minimum(ends, (starts // self.width + 1) * self.width - 1)

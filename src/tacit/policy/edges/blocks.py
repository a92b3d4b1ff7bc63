"""From any position to any other in the same block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from tacit.arrays import Bools, Ints
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relation import Part, Relation, is_unlabelled, join_set, overlap

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
        """Return every position of every block that is met."""
        return Intervals.of((self._block(low)[0], self._block(high)[1]) for low, high in cover)

    def targets(self, hidden: Intervals) -> Intervals:
        """Return every position of every block that is met."""
        return self.sources(hidden)

    def allows(self, hidden: int, cover: int) -> bool:
        """Say whether the two are in one block."""
        return hidden // self.width == cover // self.width

    def within(self, other: Relation, size: int) -> bool:
        """Say whether the other allows all moves within these blocks."""
        return other.allows_blocks(self.width, size)

    def allows_all(self, hidden: Intervals, cover: Intervals) -> bool:
        """Say whether both sets lie in one block, part by part."""
        width = self.width
        return all(a // width == b // width == c // width == d // width for a, b in hidden for c, d in cover)

    def allows_blocks(self, width: int, size: int) -> bool:
        """Say whether these blocks consist of whole ones of the other width, or of everything."""
        return self.width % width == 0 or super().allows_blocks(width, size)

    def told_apart(self, size: int) -> tuple[Intervals, ...]:
        """Return the last position where it is alone in its block, and others are not."""
        return (Intervals.points([size - 1]),) if self.width > 1 and size % self.width == 1 else ()

    def telling(self, size: int) -> tuple[list[int], list[int]]:
        """Return the end of the first block and the beginning of the last."""
        return [self.width - 1, (size - 1) // self.width * self.width], []

    def join(self, labels: Ints, starts: Intervals | None) -> None:
        """Connect the positions of each block."""
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
        """Edges leave and arrive wherever a block has more than one position."""
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
        """Return which pieces have a block in common."""
        return overlap(np.array(hidden) // self.width, np.array(cover) // self.width)

    def farthest_ends(self, starts: Ints, ends: Ints) -> Ints:
        """Return the ends, or those of the blocks where these come first."""
        return np.minimum(ends, (starts // self.width + 1) * self.width - 1)

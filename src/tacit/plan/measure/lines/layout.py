"""Which sums of a line are measured: cells of several sizes, and sums that run on from block to block.

Guarantee   `moved(reach)` bounds, for each group of sums, how much a person changes in all who moves by at most
            `reach` values within a segment; `left()` the same for one who enters or leaves the count. Both are
            attained in all groups at once, so that no smaller numbers would do.
Assumes     People move within segments, and the count at the end of each segment is exact, unless people may leave
            (`plan/sensitivity/line_moves.py`).
Why         A move from u to v > u changes the running counts from u up to the one before v: d = v - u of them.
            Cells: two of each size whose border it crosses, and a border of the largest size is one of all smaller
            sizes. Ramps: each running count is part of one ramp, so all of them together change by d. Anchors: the
            d counts have at most ceil(d / block) block ends among them. A longest segment has a move that starts at,
            or crosses, the first border of the largest size, spans all d counts and the most block ends. Whoever
            leaves with the first value changes one cell of each size, every anchor, and every running count by one.
Reference   Blowfish privacy, section 7.2 (ordered hierarchical mechanism), repaired: roots are not measured again.
Checked by  tests/property/test_line_sums.py
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.errors import PlanError
from tacit.plan.sensitivity.line_moves import LineMoves

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Level:
    """Nodes of one size, in order: how many values each has, and its first child among the nodes below."""

    lengths: Ints
    first_child: Ints


@dataclass(frozen=True)
class LineLayout:
    """The sums that are measured on a line, in each segment by itself.

    A segment is a chain of blocks, and a block is a tree of cells: those of each size start anew at every larger cell,
    and the last one may be smaller. `cells` are the sizes that are measured, from large to small, down to single values
    (with blocks of one value they may be left out). A block may also have a `ramp`, the sum of its running counts; or
    an `anchor`, the running count at its end. What runs, runs from the start of the segment.

    Entries stand group by group: cells of each size, ramps, anchors, and last the exact counts at the ends of segments.

    >>> layout = LineLayout(segments=(10,), leaves=False, block=4, cells=(4, 1), ramps=True)
    >>> layout.sizes, layout.moved(reach=3)
    ((3, 10, 3, 1), (2, 2, 3, 0))
    """

    segments: tuple[int, ...]
    leaves: bool
    block: int
    cells: tuple[int, ...]
    ramps: bool = False
    anchors: bool = False

    def __post_init__(self) -> None:
        if not self.segments or min(self.segments) < 1 or (self.leaves and len(self.segments) > 1):
            raise PlanError("must be lengths from 1, and one only if people may leave", key="segments")
        descending = all(large > small for large, small in zip((self.block + 1, *self.cells), self.cells, strict=False))
        if self.block < 1 or not descending or (self.cells and self.cells[-1] != 1):
            raise PlanError("must fall from the block to single values", key="cells", given=list(self.cells))
        if not self.cells and (self.block > 1 or not (self.ramps or self.anchors)):
            raise PlanError("must be measured, or counts would not follow", key="cells", given=[])

    @property
    def values(self) -> int:
        """How many values the line has."""
        return sum(self.segments)

    @property
    def node_sizes(self) -> tuple[int, ...]:
        """The sizes of nodes from blocks to single values, measured or not."""
        return (self.block, *(size for size in self.cells if size < self.block))

    @property
    def names(self) -> tuple[str, ...]:
        """What each group of entries is, in words."""
        found = [f"cells of {size:,} values" if size > 1 else "single values" for size in self.cells]
        found += [f"ramps of {self.block:,} values"] if self.ramps else []
        found += [f"running counts after every {self.block:,} values"] if self.anchors else []
        return (*found, *(() if self.leaves else ("exact counts at ends",)))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many entries each group has."""
        kinds = Counter(self.segments)
        blocks = sum(many * _parts(length, self.block) for length, many in kinds.items())
        counts = []
        nodes = kinds
        for size in self.node_sizes:
            below: Counter[int] = Counter()
            for length, many in nodes.items():
                below[size] += many * (length // size)
                below[length % size] += many
            nodes = Counter({length: many for length, many in below.items() if length and many})
            counts += [sum(nodes.values())] if size in self.cells else []
        inner = blocks - (0 if self.leaves else len(self.segments))
        return (
            *counts,
            *((blocks,) if self.ramps else ()),
            *((inner,) if self.anchors else ()),
            *(() if self.leaves else (len(self.segments),)),
        )

    def moved(self, reach: int) -> tuple[int, ...]:
        """Return how much the longest move changes the entries of each group in all."""
        longest = max(self.segments)
        distance = min(reach, longest - 1)
        cells = [2 if distance > 0 and size < longest else 0 for size in self.cells]
        ramps = [distance] if self.ramps else []
        crossed = min(_parts(distance, self.block), _parts(longest, self.block) - 1)
        return (*cells, *ramps, *([crossed] if self.anchors else []), *(() if self.leaves else (0,)))

    def left(self) -> tuple[int, ...]:
        """Return how much somebody who enters or leaves changes the entries of each group in all."""
        if not self.leaves:
            return (0,) * len(self.sizes)
        ramps = [self.values] if self.ramps else []
        return (*(1 for _ in self.cells), *ramps, *([_parts(self.values, self.block)] if self.anchors else []))

    def profiles(self, moves: LineMoves) -> tuple[tuple[int, ...], ...]:
        """Return what the worst moves change: of people who stay, and of those who enter or leave where they may."""
        return (self.moved(moves.reach), *((self.left(),) if moves.leaves else ()))

    def levels(self) -> list[Level]:
        """Return the nodes of each size but single values, from blocks on."""
        lengths = np.array(self.segments, dtype=np.int64)
        found: list[Level] = []
        for size in self.node_sizes:
            many = -(-lengths // size)
            first = np.cumsum(many) - many
            if found:
                found[-1] = Level(lengths, first)
            if size > 1:
                inner = np.full(int(many.sum()), size, dtype=np.int64)
                inner[first + many - 1] = lengths - (many - 1) * size
                lengths = inner
                found.append(Level(lengths, first))  # its children are those of the next size
        return found

    def block_numbers(self) -> tuple[Ints, Ints]:
        """Return for each segment the number of its first and of its last block."""
        many = -(-np.array(self.segments, dtype=np.int64) // self.block)
        ends = np.cumsum(many)
        return ends - many, ends - 1

    def entries(self, counts: Ints) -> Ints:
        """Return all sums, from how many people have each value."""
        sums: dict[int, Ints] = {1: counts}
        below = counts
        for size, level in reversed(list(zip(self.node_sizes, self.levels(), strict=False))):
            below = sums[size] = np.add.reduceat(below, level.first_child)
        found = [sums[size] for size in self.cells]
        ends = np.cumsum(np.array(self.segments, dtype=np.int64)) - 1
        running = np.cumsum(counts)
        before = np.concatenate([[0], running[ends][:-1]])
        first, last = self.block_numbers()
        if self.ramps:
            here = running - np.repeat(before, self.segments)
            found.append(np.add.reduceat(here, self._block_starts()))
        if self.anchors:
            blocks = np.cumsum(below) - np.repeat(before, last - first + 1)
            found.append(blocks if self.leaves else np.delete(blocks, last))
        return np.concatenate([*found, *([] if self.leaves else [running[ends]])])

    def _block_starts(self) -> Ints:
        first, last = self.block_numbers()
        segments = np.array(self.segments, dtype=np.int64)
        starts = np.cumsum(segments) - segments
        own = np.arange(int(last[-1]) + 1) - np.repeat(first, last - first + 1)
        return np.asarray(np.repeat(starts, last - first + 1) + own * self.block)


def _parts(length: int, size: int) -> int:
    return -(-length // size)

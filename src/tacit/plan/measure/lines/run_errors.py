"""The variance of the error of any run of values after least squares, and its average over a workload.

The running count at a place of block k is (1 - s) a + s b + inside, with the running counts a and b at the block's
start and end, and an error inside of the block that depends on no other block. A ramp of the block is
(values - S) a + S b + inside, with S the sum of s, and moves the count at the place by h / D for each unit that it is
off, with D the variance of its own noise and inside. The counts at block ends are a Markov chain: their precision
matrix has three diagonals, from which come all variances and covariances, each from those before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from tacit.plan.measure.lines.block_trees import BlockTree, NodeClass
from tacit.plan.measure.lines.layout import LineLayout

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Every = Literal["ranges", "prefixes", "cells"]
_CHUNK: Final = 1 << 18  # runs that are looked at together
_MANY: Final = 2000  # blocks, from which on those in the middle may be alike
_ALIKE: Final = 1e-12
_LEAST: Final = 1e-300  # of a correlation, so that its logarithm is finite


@dataclass(frozen=True)
class BlockRules:
    """How the measured sums of a block bear on the counts at its start and end."""

    kind: NodeClass
    total: float  # precision of the block's total
    ramp: float  # precision of its ramp given the counts at both ends; 0 without one

    @property
    def at_start(self) -> float:
        """How often the ramp has the count at the start."""
        return self.kind.values - self.kind.s

    @property
    def precision(self) -> tuple[float, float, float]:
        """What the block adds to the precision matrix: of its start, of its end, between the two."""
        start, end = self.at_start, self.kind.s
        return (
            self.total + self.ramp * start**2,
            self.total + self.ramp * end**2,
            self.ramp * start * end - self.total,
        )


@dataclass(frozen=True, eq=False)
class BlockEndErrors:
    """The errors of the counts at the block ends of a segment; the start of the segment, which has none, is first.

    The covariance of two of them, i <= j, is variance[i] times the product of the shares from i to j.
    """

    rules: tuple[BlockRules, ...]  # of full blocks, where there is one, and of the last
    variance: Floats
    neighbours: Floats  # covariance of each block's start and end
    log_share: Floats  # added up
    sign: Floats  # multiplied
    matrix: tuple[Floats, Floats] | None  # factors of the precision matrix; None where no count is open

    @property
    def blocks(self) -> int:
        """How many blocks the segment has."""
        return len(self.variance) - 1

    def of_blocks(self, each: Sequence[float]) -> Floats:
        """Return a number for each block, from that of full ones and that of the last."""
        out = np.full(self.blocks, each[0], dtype=np.float64)
        out[-1] = each[-1]
        return out

    def variance_of(self, weights: Floats) -> float:
        """Return the variance of a weighted sum of the counts at block ends."""
        if self.matrix is None:
            return 0.0
        open_ends = weights[1 : 1 + len(self.matrix[0])]
        return float(open_ends @ solved_by(self.matrix, open_ends))


def chain_of(values: int, layout: LineLayout, rules: tuple[BlockRules, ...], anchor: float) -> BlockEndErrors:
    """Return the chain of a segment with so many values; `anchor` is the precision of measured counts at block ends."""
    blocks = -(-values // layout.block)
    start, end, between = (
        np.append(np.full(blocks - 1, full), last)
        for full, last in zip(rules[0].precision, rules[-1].precision, strict=True)
    )
    variance, share = np.zeros(blocks + 1), np.zeros(blocks + 1)
    diagonal = (end + np.append(start[1:], 0.0) + anchor)[: blocks if layout.leaves else blocks - 1]
    if not between.any():  # running counts that have nothing to do with each other
        variance[1 : len(diagonal) + 1] = 1 / diagonal
        alone = np.zeros(max(len(diagonal) - 1, 0))
        nothing = np.log(_LEAST) * np.arange(blocks + 1)
        return BlockEndErrors(rules, variance, np.zeros(blocks), nothing, share + 1, (diagonal, alone))
    matrix = None
    if len(diagonal):
        off = between[1 : len(diagonal)]
        matrix = factors(diagonal, off)
        backward = factors(diagonal[::-1], off[::-1])[0][::-1]
        variance[1 : len(diagonal) + 1] = 1 / (matrix[0] + backward - diagonal)
        share[2 : len(diagonal) + 1] = -off / backward[1:]
    steps = np.log(np.maximum(np.abs(share), _LEAST))
    steps[:2] = 0.0
    sign = np.where(share < 0, -1.0, 1.0)
    return BlockEndErrors(
        rules, variance, variance[:-1] * share[1:], np.cumsum(steps), np.cumprod(sign, dtype=np.float64), matrix
    )


def factors(diagonal: Floats, off: Floats) -> tuple[Floats, Floats]:
    """Return the pivots and multipliers of a matrix with three diagonals."""
    if not len(off):
        return diagonal.copy(), off.copy()
    from scipy.linalg import lapack  # takes longer to load than most plans to be made

    pivots, multipliers, info = lapack.dpttrf(diagonal, off)
    if info:
        raise ArithmeticError(info)
    return pivots, multipliers


def solved_by(matrix: tuple[Floats, Floats], right: Floats) -> Floats:
    """Return the solution of a system with three diagonals, from the factors of its matrix."""
    if not len(matrix[1]):
        return right / matrix[0]
    from scipy.linalg import lapack

    solution, info = lapack.dpttrs(*matrix, right)
    if info:
        raise ArithmeticError(info)
    return np.asarray(solution)


class RunErrors:
    """The errors of sums of values after least squares with exact totals, for noise of these variances by group."""

    def __init__(self, layout: LineLayout, variances: Sequence[float]) -> None:
        self.layout = layout
        self.tree = BlockTree(layout, variances)
        rest = list(variances[len(layout.cells) :])
        self.ramp = rest.pop(0) if layout.ramps else None
        self.anchor = 1 / rest.pop(0) if layout.anchors else 0.0
        self._many = Counter(layout.segments)
        self._chains: dict[int, BlockEndErrors] = {}  # by length; several sums are taken over each

    def rules(self, values: int) -> BlockRules:
        """Return how a block of so many values bears on the counts at its ends."""
        kind = self.tree.kind(0, values)
        return BlockRules(kind, 1 / kind.variance, 0.0 if self.ramp is None else 1 / (kind.h + self.ramp))

    def _chain(self, values: int) -> BlockEndErrors:
        if values not in self._chains:
            block = self.layout.block
            last = self.rules(values - (-(-values // block) - 1) * block)
            rules = (self.rules(block), last) if values > block else (last,)
            self._chains[values] = chain_of(values, self.layout, rules, self.anchor)
        return self._chains[values]

    def mean(self, workload: Every) -> float:
        """Return the average variance over all ranges, all prefixes or all single values."""
        values = self.layout.values
        if workload == "cells":
            return self._over_segments(lambda chain: _sums(chain, _single_values)) / values
        traces = self._over_segments(lambda chain: _sums(chain, _counts))
        if workload == "prefixes":
            return traces / values
        # over pairs of places 0..n, var(y_i - y_j) adds up to (n + 1) sum of var(y_i) - var(sum of y_i)
        sums = self._over_segments(_of_all_counts)
        return ((values + 1) * traces - sums) / (values * (values + 1) / 2)

    def _over_segments(self, number: Callable[[BlockEndErrors], float]) -> float:
        return sum(many * self._of_segment(values, number) for values, many in self._many.items())

    def _of_segment(self, values: int, number: Callable[[BlockEndErrors], float]) -> float:
        """Return a sum over a segment; over a long one, whose blocks in the middle are alike, from shorter ones."""
        more = -(-values // self.layout.block) - _MANY
        if more > 0:
            shorter = values - more * self.layout.block
            chain, before = self._chain(shorter), self._chain(shorter - self.layout.block)
            middle = chain.variance[_MANY // 2 - 1 : _MANY // 2 + 1]
            if np.ptp(middle) <= _ALIKE * middle[0]:
                return number(chain) + more * (number(chain) - number(before))
        return number(self._chain(values))

    def of_runs(self, low: Ints, high: Ints) -> Floats:
        """Return the variance of the count of each run of positions, both ends included."""
        low, high = np.broadcast_arrays(np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64))
        out = np.empty(low.shape, dtype=np.float64)
        for start in range(0, low.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            out.reshape(-1)[part] = self._of_runs(low.reshape(-1)[part], high.reshape(-1)[part])
        return out

    def _of_runs(self, low: Ints, high: Ints) -> Floats:
        # a run is the count at its last position minus that at the position before its first
        lengths, chain = np.array(self.layout.segments, dtype=np.int64), self._joined
        places = np.stack([np.maximum(low - 1, 0), high])
        ends = np.cumsum(lengths)
        segment = np.searchsorted(ends, places, side="right")
        here = places - (ends - lengths)[segment]
        number = here // self.layout.block
        values = np.minimum(self.layout.block, lengths[segment] - number * self.layout.block)
        block = chain.first[segment] + number
        near = (block[0] == block[1]) & (segment[0] == segment[1])
        count = self._in_block(here - number * self.layout.block, values, near)
        alone = count.variance(chain.variance[block], chain.variance[block + 1], chain.neighbours[block])
        # counts in one block share what is inside of it; in two blocks of a segment, the chain between them
        start, end = np.diff(count.start, axis=0)[0], np.diff(count.end, axis=0)[0]
        inside = count.inside.sum(axis=0) - 2 * count.shared
        difference = CountTerms(start, end, inside, inside)
        here_alone = difference.variance(
            chain.variance[block[0]], chain.variance[block[0] + 1], chain.neighbours[block[0]]
        )
        shared = np.zeros(low.shape)
        apart = np.flatnonzero((segment[0] == segment[1]) & ~near)
        for i, of_first in ((0, count.start[0]), (1, count.end[0])):
            for j, of_last in ((0, count.start[1]), (1, count.end[1])):
                between = chain.covariance(block[0, apart] + i, block[1, apart] + j)
                shared[apart] += of_first[apart] * of_last[apart] * between
        found = np.where(near, here_alone, alone.sum(axis=0) - 2 * shared)
        return np.maximum(np.where(low > 0, found, alone[1]), 0.0)  # of exact counts, rounding may leave less

    def _in_block(self, offset: Ints, values: Ints, together: Bools) -> CountTerms:
        """Return how the counts at two places of blocks each depend on the counts at the ends of their blocks."""
        tree, path = self.tree, []
        length = values
        for size in tree.sizes[1:]:
            child = offset // size
            path.append((length, child, together))
            length, offset = np.minimum(size, length - child * size), offset % size
            together = together & (child[0] == child[1])
        s, h, inside, shared = (
            np.ones(offset.shape),
            np.zeros(offset.shape),
            np.zeros(offset.shape),
            np.zeros(together.shape),
        )
        for level in range(len(path) - 1, -1, -1):
            length, child, together = path[level]
            size = tree.sizes[level + 1]
            full = tree.kind(level + 1, size)
            below = np.minimum(size, length - child * size)
            v = tree.numbers(level + 1, below, "variance")
            total = tree.numbers(level, length, "children")
            before = child * full.variance
            upto = before + s * v
            both = shared + before[0] + s[0] * s[1] * v[0] - upto[0] * upto[1] / total[0]
            shared = np.where(child[0] == child[1], both, upto[0] * (1 - upto[1] / total[0])) * together
            inside += before + s**2 * v - upto**2 / total
            if self.ramp is not None:
                k = tree.numbers(level + 1, below, "s") + np.maximum(length - (child + 1) * size, 0)
                earlier = full.variance * child * (full.s + length - size * (child + 1) / 2)
                h += earlier + s * v * k - upto * tree.numbers(level, length, "ramp_weight") / total
            s = upto / total
        if self.ramp is None:
            return CountTerms(1 - s, s, inside, shared)
        in_ramp = tree.numbers(0, values, "s")
        pull = h / (tree.numbers(0, values, "h") + self.ramp)
        return CountTerms(
            1 - s - pull * (values - in_ramp), s - pull * in_ramp, inside - pull * h, shared - pull[0] * h[1]
        )

    @cached_property
    def _joined(self) -> Joined:
        every = [self._chain(values) for values in self._many]
        starts = np.cumsum([0, *(len(chain.variance) for chain in every)]).tolist()
        first = dict(zip(self._many, starts, strict=False))
        return Joined(
            np.array([first[values] for values in self.layout.segments], dtype=np.int64),
            np.concatenate([chain.variance for chain in every]),
            np.concatenate([np.append(chain.neighbours, 0.0) for chain in every]),
            np.concatenate([chain.log_share for chain in every]),
            np.concatenate([chain.sign for chain in every]),
        )


@dataclass(frozen=True, eq=False)
class CountTerms:
    """Running counts: how much of the counts at the start and at the end of their blocks they have, and what is left.

    `inside` is the variance of what is left, `shared` the covariance of two places where they are in one block.
    """

    start: Floats
    end: Floats
    inside: Floats
    shared: Floats

    def variance(self, at_start: Floats, at_end: Floats, between: Floats) -> Floats:
        """Return the variances, from those at the ends of blocks."""
        return self.start**2 * at_start + self.end**2 * at_end + 2 * self.start * self.end * between + self.inside


@dataclass(frozen=True, eq=False)
class Joined:
    """The chains of all segments, one for each length, one after the other."""

    first: Ints  # of each segment
    variance: Floats
    neighbours: Floats
    log_share: Floats
    sign: Floats

    def covariance(self, one: Ints, other: Ints) -> Floats:
        """Return the covariance of the errors at two block ends of a segment, the first not after the other."""
        share = np.exp(self.log_share[other] - self.log_share[one]) * self.sign[one] * self.sign[other]
        return np.asarray(self.variance[one] * share)


def _sums(chain: BlockEndErrors, of: Callable[[BlockRules], tuple[float, float, float, float]]) -> float:
    """Return a sum over all places of variances, from sums over a block: of start^2, end^2, start * end, inside."""
    start, end, both, inside = (
        chain.of_blocks(each) for each in zip(*(of(rules) for rules in chain.rules), strict=True)
    )
    variance = chain.variance
    return float((start * variance[:-1] + end * variance[1:] + 2 * both * chain.neighbours + inside).sum())


def _counts(rules: BlockRules) -> tuple[float, float, float, float]:
    """Return the sums for the running counts, start = 1 - s - h * ramp * at_start and end = s - h * ramp * kind.s."""
    kind, a, b = rules.kind, rules.ramp * rules.at_start, rules.ramp * rules.kind.s
    return (
        kind.values - 2 * kind.s + kind.ss - 2 * a * (kind.h - kind.sh) + a**2 * kind.hh,
        kind.ss - 2 * b * kind.sh + b**2 * kind.hh,
        kind.s - kind.ss - b * (kind.h - kind.sh) - a * kind.sh + a * b * kind.hh,
        kind.within - rules.ramp * kind.hh,
    )


def _single_values(rules: BlockRules) -> tuple[float, float, float, float]:
    """Return the same for their differences, the single values."""
    kind, a, b = rules.kind, rules.ramp * rules.at_start, rules.ramp * rules.kind.s
    return (
        kind.step_ss + 2 * a * kind.step_sh + a**2 * kind.step_hh,
        kind.step_ss - 2 * b * kind.step_sh + b**2 * kind.step_hh,
        -kind.step_ss + (b - a) * kind.step_sh + a * b * kind.step_hh,
        kind.step_within - rules.ramp * kind.step_hh,
    )


def _of_all_counts(chain: BlockEndErrors) -> float:
    """Return the variance of the sum of all running counts."""
    kinds = [(rules.kind, rules.ramp, rules.at_start) for rules in chain.rules]
    start = chain.of_blocks([kind.values - kind.s - ramp * kind.h * at for kind, ramp, at in kinds])
    end = chain.of_blocks([kind.s - ramp * kind.h * kind.s for kind, ramp, _ in kinds])
    inside = chain.of_blocks([kind.h - ramp * kind.h**2 for kind, ramp, _ in kinds])
    return chain.variance_of(np.append(start, 0.0) + np.append(0.0, end)) + float(inside.sum())

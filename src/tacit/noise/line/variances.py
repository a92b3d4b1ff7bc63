"""Variances of noise on a line: of any run of values, and on average over all runs.

Numbers are right to 1e-3, relative: `noise/line/moments.py` says how they are computed. Segments are independent of
each other, and alike if they have the same length.

Where noise is nearly always zero, what is left of a variance after differences are taken may be rounding alone, and
negative. So no number is below a bound that is proven: let s be one where a run ends and zero elsewhere. Noise z has
the weight exp(-g(z)) with a norm g, so z + s has at least exp(-g(s)) times that of z, and the run, which is one larger
at z + s, falls at most like discrete Laplace noise of rate g(s) from each whole number to the next. Its size is
therefore stochastically no smaller, and neither is its variance.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.noise.draws import chunks
from tacit.noise.law import Kind
from tacit.noise.line.messages import Rates, cut_levels, kinds_of
from tacit.noise.line.moments import (
    CellMoments,
    PointMoments,
    Shortened,
    cell_moments,
    point_covariances,
    point_moments,
)

_AT_ONCE: Final = 1 << 17
_FEW: Final = 48  # points whose covariances are computed by themselves; with more, those of all are


class LineVariances:
    """The variances of the noise on a line with these segments."""

    def __init__(self, segments: tuple[int, ...], rates: Rates) -> None:
        self._lengths = np.array(segments, dtype=np.int64)
        self._begins = np.concatenate([[0], np.cumsum(self._lengths)])
        kinds, self._kind, self._many = np.unique(kinds_of(segments, rates), return_inverse=True, return_counts=True)
        self._segments = [SegmentVariances(abs(int(kind)), rates, free=bool(kind < 0)) for kind in kinds]

    def mean(self, kind: Kind) -> float:
        """Return the mean variance over all ranges, all prefixes or all cells."""
        # of n(n+1)/2 ranges, each running count ends n, and half of what both ends bound is at most the larger
        least = float(sum(many * one.least for many, one in zip(self._many, self._segments, strict=True)))
        return max(self._mean(kind), least / (int(self._lengths.sum()) + 1))

    def _mean(self, kind: Kind) -> float:
        values = int(self._lengths.sum())
        each = list(zip(self._many, self._segments, strict=True))
        if kind == "cells":
            return float(sum(many * one.units for many, one in each)) / values
        squares = float(sum(many * one.squares for many, one in each))
        if kind == "prefixes":
            return squares / values
        if kind != "ranges":
            raise PlanError(f"must be one of {', '.join(get_args(Kind))}", key="workload", given=kind)
        # the sum of (z_j - z_i)^2 over all i < j is (n+1) times the sum of squares, less the square of the sum
        of_sum = float(sum(many * one.of_sum for many, one in each))
        return ((values + 1) * squares - of_sum) / (values * (values + 1) / 2)

    def of_runs(self, low: Ints, high: Ints) -> Floats:
        """Return the variance of the noise in the sum of the values low to high, both included."""
        low, high = np.broadcast_arrays(low, high)
        shape, low, high = low.shape, low.ravel(), high.ravel() + 1
        if low.size and (low.min() < 0 or high.max() > self._begins[-1] or (low >= high).any()):
            raise PlanError("must lie on the line, and not end before it starts", key="run")
        out = np.empty(low.size)
        for part in chunks(low.size, _AT_ONCE):
            out[part] = self._some_runs(low[part], high[part])
        return out.reshape(shape)

    def _some_runs(self, start: Ints, stop: Ints) -> Floats:
        first = np.minimum(np.searchsorted(self._begins, start, "right") - 1, len(self._lengths) - 1)
        last = np.minimum(np.searchsorted(self._begins, stop, "right") - 1, len(self._lengths) - 1)
        out = np.zeros(start.size)
        zero = np.zeros(1, np.int64)
        for number, segment in enumerate(self._segments):
            together = np.flatnonzero((first == last) & (self._kind[first] == number))
            if together.size:
                begin = self._begins[first[together]]
                out[together] += segment.of_differences(start[together] - begin, stop[together] - begin)
            for where, ends in ((first, start), (last, stop)):
                alone = np.flatnonzero((first != last) & (self._kind[where] == number))
                if alone.size:
                    inside = ends[alone] - self._begins[where[alone]]
                    out[alone] += segment.of_differences(np.broadcast_to(zero, inside.shape), inside)
        return out


class SegmentVariances:
    """The variances of one segment. Positions run from 0, its start, to its length."""

    def __init__(self, length: int, rates: Rates, *, free: bool) -> None:
        self._length, self._rates, self._free = length, rates, free
        self._block, self._depth = rates.block, rates.levels
        self._blocks = -(-length // rates.block)
        rest = length % rates.block
        self._sizes = [rates.block >> level for level in (cut_levels(rest, rates.levels) if rest else [0])]
        self._known: tuple[Ints, Floats] = np.zeros(0, np.int64), np.zeros((0, 0))

    @cached_property
    def _cells(self) -> CellMoments:
        return cell_moments(self._length, self._rates, free=self._free)

    @cached_property
    def _points(self) -> PointMoments:
        return point_moments(self._length, self._rates, free=self._free)

    def _covariances(self, points: Ints) -> tuple[Ints, Floats]:
        """Return points, these among them, and their covariances: what was asked for before is kept.

        Few of them are computed by themselves, in a fraction of the time that all take.
        """
        known, found = self._known
        if not np.isin(points, known).all():
            known = np.union1d(known, points)
            if len(known) > _FEW:
                known = np.arange(self._cells.of.blocks + len(self._sizes))
            found = point_covariances(self._length, self._rates, known.tolist(), free=self._free)
            self._known = known, found
        return known, found

    def _summed(self, each: Floats, of: Shortened) -> float:
        """Return the sum over all blocks or anchors, where the middle one stands for those left out."""
        middle = each[of.lead + of.lag // 2] if of.blocks < self._blocks else 0.0
        return float(each.sum() + (self._blocks - of.blocks) * middle)

    @cached_property
    def units(self) -> float:
        """The sum of the variances of single values."""
        found, of = self._cells, self._cells.of
        blocks = self._summed(found.units[: of.blocks - 1], of) * self._block
        return blocks + float(np.dot(found.units[of.blocks - 1 :], self._sizes))

    @cached_property
    def squares(self) -> float:
        """The sum of the variances of all running counts."""
        found, of, block = self._points, self._points.of, self._block
        variances, after = found.anchor_variances, found.next_covariances
        inside = self._bump_squares(found.cells)
        blocks = _line_sum(variances[:-1], variances[1:], after[:-1], block) + inside[: of.blocks - 1]
        tail = np.diag(found.tail)
        last = sum(
            float(_line_sum(tail[i], tail[i + 1], found.tail[i, i + 1], size)) for i, size in enumerate(self._sizes)
        )
        return self._summed(blocks, of) + last + float(inside[of.blocks - 1 :].sum())

    @cached_property
    def of_sum(self) -> float:
        """The variance of the sum of all running counts."""
        found, of, block = self._points, self._points.of, self._block
        before = [block if of.blocks > 1 else 0, *self._sizes]
        after = [*self._sizes, 1]
        weights = np.array([(a + 1) / 2 * (a > 0) + (b - 1) / 2 for a, b in zip(before, after, strict=True)])
        each = block * (block * found.anchor_variances[1:] + 2 * found.onward[1:])
        if len(each):
            each[-1] = weights[0] * (weights[0] * found.anchor_variances[-1] + 2 * found.onward[-1])
        behind = float(weights[1:] @ found.tail[1:, 1:] @ weights[1:])
        # the sum of a bump over its cell is half of the cell's size
        inside = np.zeros(len(found.cells.bumps))
        for level, size, many in self._inner_cells(of):
            inside += many * found.cells.bumps[:, level] * (size / 2) ** 2
        return (
            self._summed(each, of)
            + behind
            + self._summed(inside[: of.blocks - 1], of)
            + float(inside[of.blocks - 1 :].sum())
        )

    def _inner_cells(self, of: Shortened) -> list[tuple[int, int, Floats]]:
        """Return for each level the size of its cells, and how many of them each cell between two points has."""
        sizes = np.array([self._block] * (of.blocks - 1) + self._sizes, dtype=np.float64)
        return [(level, self._block >> level, sizes / (self._block >> level)) for level in range(self._depth)]

    def _bump_squares(self, cells: CellMoments) -> Floats:
        out = np.zeros(len(cells.bumps))
        for level, size, many in self._inner_cells(cells.of):
            half = size // 2
            # heights 1/half, .., 1, .., 1/half
            heights = (half - 1) * (2 * half - 1) / (3 * half) + 1
            out += many * cells.bumps[:, level] * heights
        return out

    # ---- single runs ------------------------------------------------------------------------------------------------

    def of_differences(self, start: Ints, stop: Ints) -> Floats:
        """Return the variance of z[stop] - z[start], for start <= stop."""
        (cell, share, place), (cell_stop, share_stop, place_stop) = map(self._place, (start, stop))
        mapped, mapped_stop, far = self._mapped(cell, cell_stop, self._cells.of)
        ends = (mapped, mapped + 1, mapped_stop, mapped_stop + 1)
        known, covariances = self._covariances(np.unique(ends))
        weights = (share - 1, -share, 1 - share_stop, share_stop)
        points = [(np.searchsorted(known, end), weight) for end, weight in zip(ends, weights, strict=True)]
        out = np.zeros(start.size)
        for a, (point, weight) in enumerate(points):
            out += weight**2 * covariances[point, point]
            for b in range(a):
                other, factor = points[b]
                related = True if (a < 2) == (b < 2) else ~far
                out += 2 * weight * factor * related * covariances[point, other]
        bumps, same = self._cells.bumps, cell == cell_stop
        for level in range(self._depth):
            size = self._block >> level
            here, there = _height(place, size), _height(place_stop, size)
            shared = same & (place // size == place_stop // size)
            out += bumps[mapped, level] * here * (here - 2 * shared * there) + bumps[mapped_stop, level] * there**2
        return np.maximum(out, np.where(start < stop, np.maximum(self._least_at(start), self._least_at(stop)), 0.0))

    # ---- what no variance is below -----------------------------------------------------------------------------------

    @cached_property
    def _least_by_cells(self) -> Floats:
        """The least variance of a run that ends where a cell of 1, 2, 4, .., block values does, and no larger one."""
        rates = 2 * np.cumsum(self._rates.cells[::-1])
        rates[-1] += self._rates.anchor
        return _laplace_variance(rates)

    @cached_property
    def _least_at_end(self) -> float:
        """The same for a run that ends with the segment: zero where that is exact."""
        rate = sum(self._rates.cells) + (self._rates.end or 0.0)
        return float(_laplace_variance(np.array([rate]))[0]) if self._free else 0.0

    def _least_at(self, position: Ints) -> Floats:
        cells = np.bitwise_count(((position | self._block) & -(position | self._block)) - 1)  # largest that ends here
        inside = (position > 0) & (position < self._length)
        at_end = np.where(position == self._length, self._least_at_end, 0.0)
        return np.where(inside, self._least_by_cells[cells], at_end)

    @cached_property
    def least(self) -> float:
        """The sum of the least variances over all running counts."""
        ends = np.array([(self._length - 1) // (1 << level) for level in range(self._depth + 1)])
        alone = ends - np.append(ends[1:], 0)  # that are ends of no larger cells
        return float(alone @ self._least_by_cells) + self._least_at_end

    def _place(self, position: Ints) -> tuple[Ints, Floats, Ints]:
        """Return the cell between points that a position is in, how far along (as a share), and the place in it."""
        block = self._block
        cell = position // block
        begin, size = cell * block, np.full(position.shape, block)
        last = (self._blocks - 1) * block
        edges = last + np.concatenate([[0], np.cumsum(self._sizes)])
        behind = position >= last
        part = np.clip(np.searchsorted(edges, position[behind], "right") - 1, 0, len(self._sizes) - 1)
        cell[behind] = self._blocks - 1 + part
        begin[behind], size[behind] = edges[part], np.array(self._sizes)[part]
        place = position - begin
        return cell, place / size, place

    def _mapped(self, cell: Ints, cell_stop: Ints, of: Shortened) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """Return the cells of the shorter segment that stand for these, and whether they are far apart."""
        missing = self._blocks - of.blocks
        if not missing:
            return cell, cell_stop, np.zeros(cell.shape, np.bool_)
        far = cell_stop - cell >= of.lag

        def alone(one: Ints) -> Ints:
            return np.where(one < of.lead, one, np.where(one >= self._blocks - of.lead, one - missing, of.lead))

        shift = np.where(cell < of.lead, 0, np.where(cell_stop >= self._blocks - of.lead, missing, cell - of.lead))
        return (
            np.where(far, alone(cell), cell - shift),
            np.where(far, alone(cell_stop), cell_stop - shift),
            far,
        )


def _laplace_variance(rate: Floats) -> Floats:
    """Return the variance of discrete Laplace noise: 2 r / (1 - r)^2 with r = exp(-rate)."""
    return np.asarray(2 * np.exp(-rate) / np.expm1(-rate) ** 2)


def _line_sum(first: Floats | float, second: Floats | float, both: Floats | float, size: int) -> Floats:
    """Return the sum over t = 1..size of the variance of ((size-t) first + t second) / size."""
    squares, mixed = (size - 1) * (2 * size - 1) / (6 * size), (size - 1) * (size + 1) / (6 * size)
    return np.asarray(first * squares + second * (squares + 1) + 2 * both * mixed)


def _height(place: Ints, size: int) -> Floats:
    """Return the height of the bump of a cell of this size at a place: one in its middle."""
    inside = place % size
    return np.asarray(np.minimum(inside, size - inside) * (2 / size))

"""Second moments of noise on one segment of a line: at the ends of its cells, and inside of them.

Points are the start of the segment, its anchors, the ends of the whole cells that a last, shorter block is made of, and
the end. Between two neighbouring points lies a whole cell. Given its sum s, its halves are alike, so that each has mean
s/2, and so on: inside a cell the noise is a straight line between its points plus one bump for each smaller cell, all
uncorrelated. So covariances of the points and variances of the bumps say everything.

Forward messages f_k weigh what lies before anchor k, backward messages b_k what lies behind; times x they carry
expectations. All are arrays over -half .. half-1 in the order of the discrete Fourier transform, by which they are
convolved: to about 1e-12 of their largest value, which is enough for moments and would not be for draws.

In a long segment the anchors in the middle are all alike. Then a shorter one is computed, and its middle stands for
more. Where rates are small, neighbouring whole numbers hardly differ: moments are computed at two larger scales, and
taken to the true one along a straight line in the square of the scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.errors import PlanError
from tacit.noise.line.messages import Rates, cut_levels

Complex = NDArray[np.complex128]

_FINE: Final = (0.35, 0.5)  # largest rate at the scales that moments are computed at
_LARGEST_HALF: Final = 1 << 15
_LONGEST: Final = 600  # anchors until the messages must be alike
_ALIKE: Final = 1e-7


@dataclass(frozen=True)
class Shortened:
    """The segment that is computed: `blocks` blocks, the points of all but the last of which are `block` apart."""

    blocks: int
    lead: int  # anchors at either end that differ from those in the middle
    lag: int  # anchors further apart than this have nothing to do with each other


@dataclass(frozen=True, eq=False)
class CellMoments:
    """Second moments inside of the cells between neighbouring points."""

    of: Shortened
    bumps: Floats  # variance of the bump of each level, for each cell
    units: Floats  # variance of the sum of one value, for each cell


@dataclass(frozen=True, eq=False)
class PointMoments:
    """Second moments of the points, as far as sums over all running counts need them, and those inside of cells."""

    of: Shortened
    cells: CellMoments
    anchor_variances: Floats
    next_covariances: Floats  # of each anchor with the one behind it
    onward: Floats  # covariance of each anchor with the sum of all running counts that are not before the next one
    tail: Floats  # covariances of the points from the last anchor on


def cell_moments(length: int, rates: Rates, *, free: bool) -> CellMoments:
    """Return the second moments inside of the cells of a segment."""
    scales = _MomentScales(length, rates, free=free)
    return CellMoments(scales.of, *scales.taken(lambda segment, of: segment.cells(of)))


def point_moments(length: int, rates: Rates, *, free: bool) -> PointMoments:
    """Return the second moments of the points of a segment, and inside of its cells."""
    scales = _MomentScales(length, rates, free=free)
    cells = CellMoments(scales.of, *scales.taken(lambda segment, of: segment.cells(of)))
    return PointMoments(scales.of, cells, *scales.taken(lambda segment, of: segment.points(of)))


def point_covariances(length: int, rates: Rates, points: Sequence[int], *, free: bool) -> Floats:
    """Return the covariances of some points of the shortened segment, counted from its start, in rising order."""
    (found,) = _MomentScales(length, rates, free=free).taken(lambda segment, of: (segment.covariances(of, points),))
    return found


class _MomentScales:
    """A segment at its own scale or, where neighbouring whole numbers hardly differ, at two larger ones."""

    def __init__(self, length: int, rates: Rates, *, free: bool) -> None:
        # where blocks are single values, an anchor is held by its own rate and by those of the values on either side
        beside = 2 * rates.cells[0] if len(rates.cells) == 1 else 0.0
        largest = max(rates.anchor + beside, sum(rates.cells), rates.end or 0.0)
        goals = _FINE if largest < _FINE[0] else (largest,)
        self._scales = [goal / largest for goal in goals]
        self._segments = [_Segment(length, rates.times(scale), free=free) for scale in self._scales]
        lead, lag = (max(getattr(one, name) for one in self._segments) for name in ("lead", "lag"))
        blocks = self._segments[0].anchors + 1
        self.of = Shortened(min(blocks, 2 * lead + lag + 2) if lead else blocks, lead, lag)

    def taken(self, moments: Callable[[_Segment, Shortened], tuple[Floats, ...]]) -> list[Floats]:
        """Return moments in units of the true scale."""
        squares = [scale**2 for scale in self._scales]
        found = [
            [each * square for each in moments(segment, self.of)]
            for segment, square in zip(self._segments, squares, strict=True)
        ]
        if len(found) == 1:
            return found[0]
        by = (squares[0] - 1) / (squares[1] - squares[0])
        return [np.asarray(fine + by * (fine - coarse)) for fine, coarse in zip(*found, strict=True)]


class _FourierGrid:
    """Functions on -half .. half-1, in the order of the discrete Fourier transform."""

    def __init__(self, half: int) -> None:
        self.half, self.size = half, 2 * half
        self.x: Floats = np.asarray(np.fft.fftfreq(self.size) * self.size, dtype=np.float64)
        self.away = np.abs(self.x)
        self.inside = self.away <= half // 2

    def with_kernel(self, kernel: Floats) -> Complex:
        """Return a kernel as `by` takes it."""
        return np.fft.rfft(kernel)

    def by(self, kernel: Complex, function: Floats) -> Floats:
        """Return the convolution of an even kernel, transformed, with functions (last axis)."""
        return np.asarray(np.fft.irfft(np.fft.rfft(function) * kernel, self.size))

    def falling(self, rate: float) -> Floats:
        return np.asarray(np.exp(-rate * self.away))


class _Segment:
    """One segment at one scale: messages on a grid that is wide enough."""

    def __init__(self, length: int, rates: Rates, *, free: bool) -> None:
        self.length, self.rates, self.free = length, rates, free
        self.anchors = -(-length // rates.block) - 1
        self.rest = length % rates.block
        slowest = min(w for w in (rates.cells[-1] or rates.anchor, rates.end or np.inf) if w > 0)
        half = 64
        while half * slowest < 48:
            half *= 2
        while True:
            if half > _LARGEST_HALF:
                raise PlanError("has rates too small to predict its error", key="noise on a line", fix="Raise them.")
            if self._try(half):
                return
            half *= 2

    def _try(self, half: int) -> bool:
        rates, grid = self.rates, _FourierGrid(half)
        self.grid = grid
        self._levels()
        self._last_block()
        self.falling = grid.falling(rates.anchor)
        self.outside = grid.falling(rates.end or 0.0) if self.free else None
        # messages until they are alike, from either end
        start = np.zeros(grid.size)
        start[0] = 1.0
        forward, backward = [start], [self._before_last(self.messages[0])]
        self.lead = self.lag = 0
        while len(forward) <= self.anchors:
            ahead = self.falling * np.maximum(grid.by(self.block_kernel, forward[-1]), 0)
            behind = np.maximum(grid.by(self.block_kernel, self.falling * backward[-1]), 0)
            forward.append(ahead / ahead.sum())
            backward.append(behind / behind.sum())
            pairs = ((forward[-1], forward[-2]), (self.falling * backward[-1], self.falling * backward[-2]))
            if max(np.abs(new / new.sum() - old / old.sum()).sum() for new, old in pairs) < _ALIKE:
                self.lead = len(forward)
                break
            if len(forward) > _LONGEST and self.anchors > 2 * _LONGEST:
                raise PlanError("has anchors too long to predict its error", key="noise on a line", fix="Raise rates.")
        self._forward, self._backward = forward, backward
        if self.lead:
            met = [forward[-1] * backward[-1]]
            self.lag = self._find_lag(met[0])
        else:
            met = [f * b for f, b in zip(forward, backward[::-1], strict=True)]
        return all(one[~grid.inside].sum() <= 1e-10 * one.sum() for one in met)

    def _find_lag(self, marginal: Floats) -> int:
        grid, carried, back = self.grid, self._forward[-1] * self.grid.x, self._backward[-1]
        variance, lag = float((marginal * grid.x**2).sum() / marginal.sum()), 0
        # forward messages shrink by the same factor at each step
        shrunk = float((self.falling * grid.by(self.block_kernel, self._forward[-1])).sum())
        while lag < _LONGEST:
            lag += 1
            carried = self.falling * grid.by(self.block_kernel, carried) / shrunk
            if abs(float((carried * grid.x * back).sum() / marginal.sum())) < _ALIKE * variance:
                break
        return lag

    def _levels(self) -> None:
        """Messages of whole cells, and the mean square of a smaller cell given the sum of a larger one."""
        grid, cells = self.grid, self.rates.cells
        depth = len(cells) - 1
        whole = [grid.falling(cells[-1])]
        pairs: list[Floats] = []
        for rate in reversed(cells[:-1]):
            both = np.maximum(np.fft.irfft(np.fft.rfft(whole[0]) ** 2, grid.size), 0)
            pairs.insert(0, both)
            message = grid.falling(rate) * both
            whole.insert(0, message / message.sum())
        self.whole = whole
        self.block_kernel = grid.with_kernel(whole[0])
        # squares[outer][inner]: mean square of a cell of level inner in a cell of level outer, given the outer's sum
        squares: list[list[Floats]] = [[grid.x**2]]
        for outer in range(depth - 1, -1, -1):
            kernel = grid.with_kernel(whole[outer + 1])
            floor = np.maximum(pairs[outer], 1e-14 * pairs[outer].max())
            inner = np.stack(squares[0]) * whole[outer + 1]
            given = np.where(grid.inside, np.maximum(grid.by(kernel, inner), 0) / floor, 0.0)
            squares.insert(0, [grid.x**2, *given])
        self.squares = squares

    def _last_block(self) -> None:
        """Messages at the points of the last block, seen from the end; the first one is that of the whole block."""
        grid, cells = self.grid, self.rates.cells
        depth = len(cells) - 1
        self.parts = cut_levels(self.rest, depth) if self.rest else [0]
        starts = [0, *self.parts]
        self.cut_falling = [grid.falling(sum(cells[a:b])) for a, b in zip(starts, self.parts, strict=False)]
        self.part_kernels = [grid.with_kernel(self.whole[level]) for level in self.parts]
        message = self.cut_falling[-1] * self.whole[self.parts[-1]]
        messages = [message / message.sum()]
        for at in range(len(self.parts) - 2, -1, -1):
            message = self.cut_falling[at] * np.maximum(grid.by(self.part_kernels[at], messages[0]), 0)
            messages.insert(0, message / message.sum())
        self.messages = messages

    def _before_last(self, function: Floats) -> Floats:
        """Return what a function of the last block's sum weighs at the last anchor."""
        if self.outside is None:
            return function
        return self.grid.by(self.grid.with_kernel(self.outside), function)

    # ---- moments ----------------------------------------------------------------------------------------------------

    def points(self, of: Shortened) -> tuple[Floats, Floats, Floats, Floats]:
        anchors = of.blocks - 1
        forward, backward = self._messages(anchors)
        x, grid = self.grid.x, self.grid
        norms = self._norms(forward, backward)
        variances = np.array([(f * b * x**2).sum() / n for f, b, n in zip(forward, backward, norms, strict=True)])
        tail, carried = self._tail(forward[-1], backward[-1])
        # what lies behind each anchor, times the weight of it all
        sizes = [self.rates.block] * anchors + [self.rates.block >> level for level in self.parts]
        weights = _point_weights(sizes)
        onward, following = np.zeros(anchors + 1), np.zeros(anchors + 1)
        behind = sum((w * c for w, c in zip(weights[anchors + 1 :], carried, strict=True)), np.zeros(grid.size))
        for k in range(anchors, -1, -1):
            onward[k] = (forward[k] * x * behind).sum() / norms[k]
            if k:
                here = x * backward[k]
                # in the middle all anchors are alike, and so are neighbours
                alike = (
                    k < anchors and backward[k - 1] is backward[k] is backward[k + 1] and forward[k - 1] is forward[k]
                )
                if alike:
                    following[k - 1] = following[k]
                    (behind,) = self._pushed(np.stack([weights[k] * here + behind]), backward[k], backward[k - 1])
                else:
                    both = np.stack([here, weights[k] * here + behind])
                    one, behind = self._pushed(both, backward[k], backward[k - 1])
                    following[k - 1] = (forward[k - 1] * x * one).sum() / norms[k - 1]
        return variances, following, onward, tail

    def cells(self, of: Shortened) -> tuple[Floats, Floats]:
        return self._cells(*self._messages(of.blocks - 1))

    def _norms(self, forward: list[Floats], backward: list[Floats]) -> list[float]:
        return [float((f * b).sum()) for f, b in zip(forward, backward, strict=True)]

    def _pushed(self, functions: Floats, after: Floats, before: Floats) -> Floats:
        """Return what functions at an anchor weigh at the one before it, as `after` weighs `before` there."""
        # the sum of a convolution is the product of the sums
        factor = float(self.block_kernel[0].real * (self.falling * after).sum() / before.sum())
        return self.grid.by(self.block_kernel, self.falling * functions) / factor

    def _messages(self, anchors: int) -> tuple[list[Floats], list[Floats]]:
        """Return the messages of the start and so many anchors."""
        forward, backward = list(self._forward[: anchors + 1]), list(self._backward[: anchors + 1])
        while len(forward) <= anchors:
            forward.append(forward[-1])
            backward.append(backward[-1])
        return forward, backward[::-1]

    def _tail(self, forward: Floats, backward: Floats) -> tuple[Floats, list[Floats]]:
        """Return covariances of the last anchor, the points behind it and the end; what each weighs at the anchor."""
        grid, x, many = self.grid, self.grid.x, len(self.parts)
        norm = float((forward * backward).sum())
        # sums from the end back to each point, given the sum of the block; times that of the one before it
        first: list[Floats] = []
        second = np.zeros((many, many))
        weigh = forward if self.outside is None else grid.by(grid.with_kernel(self.outside), forward)
        for j in range(1, many):
            carried = x * self.messages[j]
            for i in range(j, -1, -1):
                if i:
                    square = self._to_block(x * carried, i)
                    second[i, j] = second[j, i] = (weigh * square).sum() / norm
                    carried = self._down(carried, i)
            first.append(carried)
        points = np.zeros((many + 1, many + 1))
        points[0, 0] = (forward * backward * x**2).sum() / norm
        end = np.zeros(grid.size)
        if self.outside is None:
            carried_on = [*first, end]
            points[1:many, 1:many] = second[1:, 1:]
        else:
            out = self.outside
            block = grid.with_kernel(self.messages[0])
            end = grid.by(block, x * out)
            carried_on = [*(end + grid.by(grid.with_kernel(out), one) for one in first), end]
            at_end = float((forward * grid.by(block, x**2 * out)).sum() / norm)
            shifted = grid.by(np.fft.rfft(x * out), forward)
            with_end = [float((one * shifted).sum() / norm) for one in first]
            for i in range(1, many):
                for j in range(1, many):
                    points[i, j] = at_end - with_end[i - 1] - with_end[j - 1] + second[i, j]
                points[i, many] = points[many, i] = at_end - with_end[i - 1]
            points[many, many] = at_end
        for j, one in enumerate(carried_on, start=1):
            points[0, j] = points[j, 0] = (forward * x * one).sum() / norm
        return points, carried_on

    def _down(self, function: Floats, at: int) -> Floats:
        """Return what a function at a point of the last block weighs at the point before it."""
        new = self.cut_falling[at - 1] * self.grid.by(self.part_kernels[at - 1], self.messages[at])
        pushed = self.cut_falling[at - 1] * self.grid.by(self.part_kernels[at - 1], function)
        return np.asarray(pushed * (self.messages[at - 1].sum() / new.sum()))

    def _to_block(self, function: Floats, at: int) -> Floats:
        while at:
            function = self._down(function, at)
            at -= 1
        return function

    def _cells(self, forward: list[Floats], backward: list[Floats]) -> tuple[Floats, Floats]:
        """Return the variances of bumps by level, and of single values, for each cell."""
        grid, depth = self.grid, len(self.rates.cells) - 1
        between = np.array(forward[:-1]).reshape(-1, grid.size)
        after = np.array([self.falling * b for b in backward[1:]]).reshape(-1, grid.size)
        meets = np.fft.irfft(np.fft.rfft(between) * np.fft.rfft(after), grid.size)
        laws = [(0, self.whole[0] * np.maximum(law, 0)) for law in meets]
        weigh = forward[-1] if self.outside is None else grid.by(grid.with_kernel(self.outside), forward[-1])
        for at, level in enumerate(self.parts):
            weigh = weigh * self.cut_falling[at]
            if at == len(self.parts) - 1:
                law = self.whole[level] * np.maximum(weigh, 0)
            else:
                law = self.whole[level] * np.maximum(grid.by(np.fft.rfft(weigh), self.messages[at + 1]), 0)
                weigh = np.maximum(grid.by(self.part_kernels[at], weigh), 0)
            laws.append((level, law))
        bumps, units = np.zeros((len(laws), depth)), np.zeros(len(laws))
        for number, (level, law) in enumerate(laws):
            share = law / law.sum()
            squares = np.array([float((share * one).sum()) for one in self.squares[level]])
            bumps[number, level:] = squares[1:] - squares[:-1] / 4
            units[number] = squares[-1]
        return bumps, units

    def covariances(self, of: Shortened, points: Sequence[int]) -> Floats:
        anchors, x = of.blocks - 1, self.grid.x
        lag = of.lag if of.lead else anchors
        forward, backward = self._messages(anchors)
        norms = self._norms(forward, backward)
        tail, carried = self._tail(forward[-1], backward[-1])
        place = {point: number for number, point in enumerate(points)}
        out = np.zeros((len(place), len(place)))
        late = [point for point in points if point >= anchors]
        behind = [point - anchors for point in late]
        at = [place[point] for point in late]
        out[np.ix_(at, at)] = tail[np.ix_(behind, behind)]
        last = [x * backward[anchors], *carried]
        functions, taken = np.array([last[number] for number in behind]).reshape(-1, self.grid.size), late
        for k in range(anchors - 1, max(min(points, default=0), 1) - 1, -1):
            # push all functions of later points back by one anchor, and take up this one if it is asked for
            if taken:
                functions = self._pushed(functions, backward[k + 1], backward[k])
            if k in place:
                at = [place[point] for point in taken]
                out[place[k], at] = out[at, place[k]] = (functions * (forward[k] * x)).sum(axis=1) / norms[k]
                out[place[k], place[k]] = (forward[k] * backward[k] * x**2).sum() / norms[k]
                functions, taken = np.concatenate([(x * backward[k])[np.newaxis], functions]), [k, *taken]
            keep = [min(point, anchors) - k <= lag for point in taken]
            if not all(keep):
                functions, taken = functions[keep], [point for point, kept in zip(taken, keep, strict=True) if kept]
        return out


def _point_weights(sizes: list[int]) -> list[float]:
    """Return how often each point counts in the sum of all running counts, of cells of these sizes."""
    before, after = [0, *sizes], [*sizes, 1]
    return [(a + 1) / 2 * (i > 0) + (b - 1) / 2 for i, (a, b) in enumerate(zip(before, after, strict=True))]

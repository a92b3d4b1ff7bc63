"""Which rectangles are asked for, and their mean variance under a strategy, for any noise.

Why     With weights `shares` of the levels (`plan/measure/regions.py`), the variance of a rectangle is the sum over
        levels of shares times the squared length of its indicator after averaging, less what ramps and the total tell:
        s' F^-1 s, where F is their covariance and s, linear in the shares, is what the rectangle adds to each of them.
        So the mean over rectangles needs the mean squared length for each level, and the mean of s s' for each pair of
        levels. Neither depends on the noise. Over all ranges of an axis both follow from how often two positions are
        inside together, a polynomial in the lower and the higher of them: sums over it are running sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.noise.law import Kind
from tacit.plan.measure.regions import Averages, GridStrategy, RegionModel, fit_of, model_of, per_ramp, starts_of
from tacit.plan.sensitivity.moves import GridMoves, Pair

_CANCELLED: Final = 1e-9  # share of a variance that rounding may be


@dataclass(frozen=True)
class Moments:
    """What a set of ranges asks of one axis of a region: for each pair of positions p, q, how often both are inside.

    That is product p q + lower min(p, q) + upper max(p, q) + constant, and for p = q `alone` more.

    >>> Moments.of_runs("ranges", [0], 3, 3).on_rows(np.eye(3)).round(3).tolist()  # of 6 ranges
    [[0.5, 0.333, 0.167], [0.333, 0.667, 0.333], [0.167, 0.333, 0.5]]
    """

    length: int
    product: float = 0.0
    lower: float = 0.0
    upper: float = 0.0
    constant: float = 0.0
    alone: float = 0.0

    @classmethod
    def of_runs(cls, kind: Kind, starts: Sequence[int], length: int, size: int) -> Moments:
        """Return this for all runs of a kind on a line of this size, added up over segments of one length."""
        start = np.array(starts, dtype=np.float64)
        many, left = float(len(starts)), size - start
        match kind:
            case "ranges":  # (lower + start + 1) (size - start - upper) of them hold both
                parts = -many, float(left.sum()), -float((start + 1).sum()), float(((start + 1) * left).sum())
                return cls(length, *(part / (size * (size + 1) / 2) for part in parts))
            case "prefixes":
                return cls(length, upper=-many / size, constant=float(left.sum()) / size)
            case "cells":
                return cls(length, alone=many / size)

    def beyond(self, one: int, other: int) -> float:
        """Return the sum over all pairs of a position from `one` on and a position from `other` on."""
        first, second = min(one, other), max(one, other)
        before, after = second - first, self.length - second
        lower, higher = _ordered(np.array([float(after)]))
        below, above = before * (first + second - 1) / 2, after * (second + self.length - 1) / 2
        found = self.product * (below + above) * above + self.constant * (before + after) * after + self.alone * after
        found += self.lower * (below * after + after**2 * second + float(lower[0]))
        return found + self.upper * (before * above + after**2 * second + float(higher[0]))

    @property
    def total(self) -> float:
        """The sum over all pairs of positions."""
        return self.beyond(0, 0)

    def averaged(self, side: int) -> float:
        """Return the mean squared length of the indicators after averaging over runs of `side` positions."""
        return _within_runs(self, side) / side

    def on_rows(self, rows: Floats) -> Floats:
        """Return the matrix of all pairs times functions of a position."""
        at = np.arange(self.length, dtype=np.float64)
        upto, moment = rows.cumsum(axis=-1), (at * rows).cumsum(axis=-1)
        whole, whole_moment = upto[..., -1:], moment[..., -1:]
        found = self.product * at * whole_moment + self.constant * whole
        found += self.lower * (moment + at * (whole - upto)) + self.upper * (at * upto + whole_moment - moment)
        return np.asarray(found + self.alone * rows)


@lru_cache(maxsize=4096)
def _within_runs(moments: Moments, side: int) -> float:
    """Return the sum over all pairs of positions that are in the same run of `side`."""
    first = np.arange(0, moments.length, side, dtype=np.float64)
    many = np.minimum(side, moments.length - first)
    steps = many * (many - 1) / 2
    lower, higher = _ordered(many)
    found = moments.product * (many * first + steps) ** 2 + moments.constant * many**2 + moments.alone * many
    found += moments.lower * (many**2 * first + lower) + moments.upper * (many**2 * first + higher)
    return float(found.sum())


def _ordered(many: Floats) -> tuple[Floats, Floats]:
    """Return the lower and the higher of two places 0, 1, .. of so many, added up over all pairs."""
    higher = (many - 1) * many * (4 * many + 1) / 6
    return many**2 * (many - 1) - higher, higher


@dataclass(frozen=True, eq=False)
class Asked:
    """What rectangles ask of a region, averaged: of each level, and of ramps and total for each pair of levels."""

    of_levels: Floats
    of_few: Floats

    @classmethod
    def of_all(cls, model: RegionModel, x: Moments, y: Moments) -> Asked:
        """Return this for the rectangles that are a range of one set times one of another."""
        axes = ((model.x, x), (model.y, y))
        traces = np.array([[moments.averaged(side) for side in axis.sides] for axis, moments in axes])
        rows = [axis.rows[:, :, : axis.size] for axis, _ in axes]
        seen = [moments.on_rows(own) for own, (_, moments) in zip(rows, axes, strict=True)]
        twice = [np.tensordot(far, own, axes=(2, 2)).swapaxes(1, 2) for far, own in zip(seen, rows, strict=True)]
        once = [far.sum(axis=2) for far in seen]
        levels, nx, ny = len(model.areas), len(model.x.ones), len(model.y.ones)
        few = nx + ny + model.region.has_total
        found = np.empty((levels, levels, few, few))
        along_x, along_y = slice(nx), slice(nx, nx + ny)
        found[:, :, along_x, along_x], found[:, :, along_y, along_y] = twice[0] * y.total, twice[1] * x.total
        found[:, :, along_x, along_y] = np.einsum("li,mj->lmij", *once)
        found[:, :, along_y, along_x] = np.einsum("mi,lj->lmji", *once)
        if model.region.has_total:
            whole = [_of_whole(axis, moments) for axis, moments in axes]
            found[:, :, -1, -1] = whole[0] * whole[1]
            for at, along in ((0, along_x), (1, along_y)):
                if axes[at][0].ones.size:
                    axis, other = axes[at][0], axes[1 - at]
                    own = np.einsum("lip,mp->lim", seen[at], axis.whole_rows()[:, : axis.size])
                    across = other[1].total - other[0].missing * [other[1].beyond(0, int(p)) for p in other[0].last]
                    ramps = (own * across).swapaxes(1, 2)  # level of the ramp, of the total, ramp
                    found[:, :, along, -1], found[:, :, -1, along] = ramps, ramps.swapaxes(0, 1)
        return cls(traces.prod(axis=0), found)

    @classmethod
    def of_listed(cls, model: RegionModel, ends: tuple[Ints, Ints, Ints, Ints], weights: Floats) -> Asked:
        """Return this for listed rectangles of the region, of which each counts with its weight."""
        x_low, x_high, y_low, y_high = ends
        kept = model.x.kept(x_low, x_high) * model.y.kept(y_low, y_high)
        wide, high = x_high - x_low + 1, y_high - y_low + 1
        seen = [model.x.inside(x_low, x_high) * high, model.y.inside(y_low, y_high) * wide]
        if model.region.has_total:
            seen.append((model.x.whole(x_low, x_high) * model.y.whole(y_low, y_high))[:, None])
        every = np.concatenate(seen, axis=1)
        return cls(kept @ weights, np.tensordot(every * weights, every, axes=(2, 2)).swapaxes(1, 2))


def _of_whole(axis: Averages, moments: Moments) -> Floats:
    """Return for each pair of levels what the runs ask of the region's indicator, averaged over the cells of both."""
    off, last = axis.missing, [int(place) for place in axis.last]
    alone = off * [moments.beyond(0, place) for place in last]
    both = np.array([[moments.beyond(one, other) for other in last] for one in last])
    return np.asarray(moments.total - alone[:, None] - alone + np.outer(off, off) * both)


class Prediction:
    """The mean variance of the rectangles that are asked for in a region, for any noise."""

    def __init__(self, model: RegionModel, asked: Asked) -> None:
        self.model, self._of_levels = model, asked.of_levels
        # differences of neighbouring levels, so that their weights below are positive and no digits cancel
        own = asked.of_few.copy()
        own[:-1] -= asked.of_few[1:]
        self._of_few = own.copy()
        self._of_few[:, :-1] -= own[:, 1:]

    def variance(self, variances: Floats) -> float:
        """Return the mean variance where the noise of levels and ramps, in this order, has these variances."""
        model, levels = self.model, len(self.model.areas)
        precisions = 1 / variances[:levels]
        shares, each = model.shares(precisions), 1 / np.cumsum(precisions * model.areas)
        plain = float(shares @ self._of_levels)
        asked = np.tensordot(np.outer(each, each), self._of_few, axes=2)
        if levels == len(variances):  # no ramps, so at most the total
            squared = float(shares @ model.squares)
            if not squared > 0:  # shares this small are lost to rounding: it is not known either
                return math.inf
            told = float(asked.sum()) / squared
        else:
            found = model.few(shares, per_ramp(model.region, variances[levels:]))
            from scipy.linalg import cho_solve  # takes longer to load than most plans to be made

            try:
                factor = np.linalg.cholesky(found)  # as `RegionFit` does: what is predicted can be fitted
            except np.linalg.LinAlgError:
                return math.inf
            told = float(np.trace(cho_solve((factor, True), asked)))
        left = plain - told
        # where noise is nearly always zero on some sums and not on others, digits cancel: it is not known then
        return left if left > _CANCELLED * plain else math.inf


Ends = tuple[int, int, int, int]
MOST_PIECES: Final = 2_000  # of a grid, cut along the ends of rectangles, whose pairs are looked at
AT_ONCE: Final = 1 << 16  # rectangles whose variances are worked out together


@dataclass(frozen=True)
class Workload:
    """All rectangles of a grid, or the listed ones: first and last position along x, then along y.

    On a line (of which y has one position) it may be another `kind` of runs.
    """

    sizes: tuple[int, int]
    listed: tuple[Ends, ...] | None = None
    kind: Kind = "ranges"

    @cached_property
    def ends(self) -> Ints:
        """The ends of the listed rectangles, a row for each."""
        found = np.array(self.listed, dtype=np.int64).reshape(-1, 4).copy()
        found.flags.writeable = False
        return found.view()  # which nobody can make writeable again

    @cached_property
    def deepest(self) -> int:
        """How many of the listed rectangles hold one cell at most."""
        marks = np.zeros((self.sizes[0] + 1, self.sizes[1] + 1), dtype=np.int64)
        x_low, x_high, y_low, y_high = self.ends.T
        for sign, x, y in (
            (1, x_low, y_low),
            (-1, x_high + 1, y_low),
            (-1, x_low, y_high + 1),
            (1, x_high + 1, y_high + 1),
        ):
            np.add.at(marks, (x, y), sign)
        return int(marks.cumsum(axis=0).cumsum(axis=1).max())

    @cached_property
    def widest(self) -> int:
        """How many of the listed rectangles hold one of two cells and not the other, at most (or a bound on it)."""
        bound = min(2 * self.deepest, len(self.ends))
        cuts = []
        for low, high, size in zip(self.ends.T[::2], self.ends.T[1::2], self.sizes, strict=True):
            starts = np.unique(np.concatenate([[0], low, high + 1]))
            cuts.append(starts[starts < size])
        if len(cuts[0]) * len(cuts[1]) > MOST_PIECES:
            return bound
        # between cuts all cells are in the same rectangles
        x, y = (part.reshape(-1, 1) for part in np.meshgrid(*cuts))
        x_low, x_high, y_low, y_high = self.ends.T
        inside = np.unique((x_low <= x) & (x <= x_high) & (y_low <= y) & (y <= y_high), axis=0).astype(np.int64)
        many = inside.sum(axis=1)
        return int((many[:, None] + many - 2 * inside @ inside.T).max())

    def some(self, most: int) -> Workload:
        """Return at most about so many of the listed rectangles, spread evenly."""
        if self.listed is None or len(self.listed) <= most:
            return self
        return Workload(self.sizes, self.listed[:: -(-len(self.listed) // most)])

    def predictor(self, strategy: GridStrategy, moves: GridMoves) -> Callable[[Floats], float]:
        """Return a function from the variances of the noise of each group to the mean variance of a rectangle."""
        parts = []
        if self.listed is not None:
            for shape, _, ends, times in _by_region(moves, self.ends):
                model = model_of(strategy.region(shape, has_total=moves.has_totals))
                parts.append(Prediction(model, Asked.of_listed(model, ends, times / len(self.ends))))
        else:
            for shape in moves.shapes:
                if moves.has_totals and shape == (1, 1):
                    continue
                model = model_of(strategy.region(shape, has_total=moves.has_totals))
                both = []
                for segments, length, size in zip(moves.segments, shape, self.sizes, strict=True):
                    starts = starts_of(segments)[np.array(segments) == length]
                    both.append(Moments.of_runs(self.kind, starts.tolist(), length, size))
                parts.append(Prediction(model, Asked.of_all(model, *both)))
        return lambda variances: sum(part.variance(variances) for part in parts)


def rectangle_variances(strategy: GridStrategy, variances: tuple[float, ...], moves: GridMoves, ends: Ints) -> Floats:
    """Return the variance of the estimate of each rectangle: regions have independent errors, so theirs add up."""
    found = np.zeros(len(ends))
    for first in range(0, len(ends), AT_ONCE):
        some = found[first : first + AT_ONCE]
        for shape, which, places, times in _by_region(moves, ends[first : first + AT_ONCE]):
            fit = fit_of(strategy.region(shape, has_total=moves.has_totals), variances)
            np.add.at(some, which, times * fit.variance(*places))
    return found


def _by_region(moves: GridMoves, ends: Ints) -> Iterator[tuple[Pair, Ints, tuple[Ints, Ints, Ints, Ints], Ints]]:
    """Cut rectangles at the ends of regions: yield each size of regions, which rectangles, noisy parts, how many."""
    along_x = _pieces(moves.segments[0], ends[:, 0], ends[:, 1])
    along_y = _pieces(moves.segments[1], ends[:, 2], ends[:, 3])
    for x_length, x_low, x_high, x_times in along_x:
        for y_length, y_low, y_high, y_times in along_y:
            times = x_times * y_times
            if moves.has_totals:  # the number of people in a whole region is exact
                whole = (x_high - x_low + 1 == x_length) & (y_high - y_low + 1 == y_length)
                times = np.where(whole, 0, times)
            lengths = x_length * (moves.sizes[1] + 1) + y_length
            for both in np.unique(lengths[times > 0]).tolist():
                here = np.flatnonzero((times > 0) & (lengths == both))
                places = x_low[here], x_high[here], y_low[here], y_high[here]
                yield divmod(both, moves.sizes[1] + 1), here, places, times[here]


def _pieces(segments: tuple[int, ...], low: Ints, high: Ints) -> list[tuple[Ints, Ints, Ints, Ints]]:
    """Cut ranges at the ends of segments: for each kind of piece the length of its segment, its ends, and how many."""
    lengths, starts = np.array(segments, dtype=np.int64), starts_of(segments)
    first, last = (np.searchsorted(starts, place, side="right") - 1 for place in (low, high))
    one = np.ones_like(low)
    head_end = np.where(first == last, high, starts[first] + lengths[first] - 1)
    found = [(lengths[first], low - starts[first], head_end - starts[first], one)]
    if len(segments) > 1:
        found.append((lengths[last], np.zeros_like(low), high - starts[last], (last > first).astype(np.int64)))
        for length in sorted(set(segments)):
            upto = np.concatenate([[0], np.cumsum(lengths == length)])
            whole = np.full_like(low, length)
            between = np.where(last > first + 1, upto[last] - upto[np.minimum(first + 1, len(segments))], 0)
            found.append((whole, np.zeros_like(low), whole - 1, between))
    return found

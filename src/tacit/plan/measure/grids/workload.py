"""Which rectangles are asked for, and their mean variance under a strategy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from tacit.plan.measure.grids.squares import Moments, Prediction, fit_of, model_of
from tacit.plan.measure.grids.strategy import GridStrategy, starts_of
from tacit.plan.question import Floats, Ints
from tacit.plan.sensitivity.grid_moves import GridMoves

Ends = tuple[int, int, int, int]
MOST_PIECES: Final = 2_000  # of a grid, cut along the ends of rectangles, whose pairs are looked at


@dataclass(frozen=True)
class Workload:
    """All rectangles of a grid, or the listed ones: first and last position along x, then along y."""

    sizes: tuple[int, int]
    listed: tuple[Ends, ...] | None = None

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
        if self.listed is not None:
            ends = self.ends

            def mean(variances: Floats) -> float:
                try:
                    return float(rectangle_variances(strategy, tuple(variances), moves, ends).mean())
                except np.linalg.LinAlgError:  # too unlike for least squares in doubles
                    return math.inf

            return mean
        parts = []
        for shape in moves.shapes:
            model = model_of(strategy.region(shape, has_total=moves.has_totals))
            both = []
            for segments, length, size in zip(moves.segments, shape, self.sizes, strict=True):
                each = zip(starts_of(segments).tolist(), segments, strict=True)
                both.append(Moments.of_all_ranges(tuple(one for one in each if one[1] == length), size))
            parts.append(Prediction(model, *both))
        return lambda variances: sum(part.variance(variances) for part in parts)


def rectangle_variances(strategy: GridStrategy, variances: tuple[float, ...], moves: GridMoves, ends: Ints) -> Floats:
    """Return the variance of the estimate of each rectangle: regions have independent errors, so theirs add up."""
    found = np.zeros(len(ends))
    along_x = _pieces(moves.segments[0], ends[:, 0], ends[:, 1])
    along_y = _pieces(moves.segments[1], ends[:, 2], ends[:, 3])
    for x_length, x_low, x_high, x_times in along_x:
        for y_length, y_low, y_high, y_times in along_y:
            times = x_times * y_times
            for shape in moves.shapes:
                here = np.flatnonzero((times > 0) & (x_length == shape[0]) & (y_length == shape[1]))
                if len(here):
                    fit = fit_of(strategy.region(shape, has_total=moves.has_totals), variances)
                    own = fit.variance(x_low[here], x_high[here], y_low[here], y_high[here])
                    found[here] += times[here] * own
    return found


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

"""Which rectangles are asked for, and their mean variance under a strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.plan.errors.runs import Kind
from tacit.plan.measure.sums.prediction import Asked, Moments, Prediction
from tacit.plan.measure.sums.regions import fit_of, model_of
from tacit.plan.measure.sums.strategy import GridStrategy, starts_of
from tacit.plan.sensitivity.moves import GridMoves, Pair

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

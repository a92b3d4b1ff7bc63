"""How to share out the loss among groups of sums, so that the average error of a workload is least.

Least squares with fixed weights has the error: sum over groups of c times the variance of the group's noise. For fixed
c the best rates r, of noise with variance 2 / r^2, under one bound on the sum of m r (m: what a move changes in the
group) are proportional to the cube root of c / m. Least squares then finds weights that are at least as good, so going
back and forth never leads to a larger error; steps somewhat longer than that get there sooner. By homogeneity, the
shares of the groups in the error are what the error's logarithm changes by when that of their variance does.

Where people may also leave, there are two bounds; some mixture of the two is the one that binds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tacit.plan.measure.lines.layout import LineLayout
from tacit.plan.measure.lines.run_errors import Every, RunErrors
from tacit.plan.sensitivity.line_moves import LineMoves

Floats = npt.NDArray[np.float64]
Workload: TypeAlias = Every | tuple[tuple[int, int], ...]  # a name, or runs of positions, both ends included
_MOST_RUNS: Final = 500  # listed runs that a search looks at; more are thinned out
_MOST_BLOCKS: Final = 100  # of a segment that a search looks at: errors further on are like those in the middle
_MOST_LENGTHS: Final = 3  # of segments that a search looks at
_MOST_LIKE: Final = 50  # segments of one length
_NOTHING: Final = 1e-9  # a variance, at loss 1, that is zero but for rounding
_STEP: Final = 1e-4  # of a variance, to see how the error depends on it
_LONGER: Final = 1.7  # than what never leads to a larger error
_MIXTURES: Final = np.append(np.linspace(0, 0.9, 10), 0.98)


def mean_error(layout: LineLayout, variances: Sequence[float], workload: Workload) -> float:
    """Return the average variance of the answers of a workload."""
    errors = RunErrors(layout, variances)
    if isinstance(workload, str):
        return errors.mean(workload)
    runs = np.array(workload, dtype=np.int64)
    return float(errors.of_runs(runs[:, 0], runs[:, 1]).mean())


@dataclass(frozen=True)
class RatedLayout:
    """Sums of a line with the rates that were found for them, and the average error at loss 1."""

    layout: LineLayout
    rates: tuple[float, ...]
    error: float


class RateSearch:
    """Looks for the best rates of layouts for people who move so, and a workload.

    `moves` are those of a shorter line, with few segments, whose errors are about those of the whole.
    """

    def __init__(self, moves: LineMoves, workload: Workload) -> None:
        self.moves = replace(moves, segments=_some(moves.segments)) if isinstance(workload, str) else moves
        self.workload = workload

    def error(self, layout: LineLayout, rates: Sequence[float | Fraction]) -> float:
        """Return about the average error with these rates; the segments of the layout do not matter."""
        here = replace(layout, segments=self.moves.segments)
        return self._error(self._model(here), np.array([float(rate) for rate in rates]))

    def best(self, layout: LineLayout, start: Sequence[float] | None = None, *, rounds: int = 4) -> RatedLayout:
        """Return the best rates that so many rounds lead to."""
        costs = np.array([moved[: self._groups(layout)] for moved in layout.profiles(self.moves)], dtype=np.float64)
        model = self._model(layout)
        rates = _scaled(1 / costs.max(axis=0) if start is None else np.array(start), costs)
        found = rates, self._error(model, rates)
        free = len(rates) > 1 and found[1] > _NOTHING  # where every run that is asked for is exact, all rates are good
        for _ in range(rounds if free else 0):
            rates = _next(rates, self._shares(model, *found), costs)
            error = self._error(model, rates)
            if error < found[1]:
                better = found[1] - error > 1e-4 * error
                found = rates, error
                if better:
                    continue
            break
        return RatedLayout(layout, tuple(found[0].tolist()), found[1])

    def _groups(self, layout: LineLayout) -> int:
        return len(layout.sizes) - (0 if layout.leaves else 1)

    def _model(self, layout: LineLayout) -> tuple[LineLayout, Workload]:
        """Return a shorter line whose errors are about those of the whole, and a smaller workload on it."""
        most, block, workload = _MOST_BLOCKS * layout.block, layout.block, self.workload
        if not isinstance(workload, str):
            runs = np.array(workload[:: -(-len(workload) // _MOST_RUNS)], dtype=np.int64)
            if len(layout.segments) > 1 or layout.values <= 2 * most:
                return layout, tuple(map(tuple, runs.tolist()))
            # far from the start, and ends far from each other, are all alike
            number = runs // block
            low = np.minimum(number[:, 0], _MOST_BLOCKS // 2)
            high = low + np.minimum(number[:, 1] - number[:, 0], _MOST_BLOCKS // 2 - 1)
            moved = np.stack([low, high], axis=1) * block + runs % block
            return replace(layout, segments=(most,)), tuple(map(tuple, moved.tolist()))
        segments = tuple(min(length, most + length % block) for length in layout.segments)
        return replace(layout, segments=segments), workload

    def _error(self, model: tuple[LineLayout, Workload], rates: Floats) -> float:
        layout, workload = model
        return mean_error(layout, [*(2 / rates**2).tolist(), *([] if layout.leaves else [0.0])], workload)

    def _shares(self, model: tuple[LineLayout, Workload], rates: Floats, error: float) -> Floats:
        """Return the share of each group in the error; they add up to one."""
        shares = np.empty(len(rates))
        for group in range(len(rates) - 1):
            more = rates.copy()
            more[group] /= (1 + _STEP) ** 0.5
            shares[group] = (self._error(model, more) / error - 1) / _STEP
        shares[-1] = 1 - shares[:-1].sum()
        return np.maximum(shares, 1e-6)


def _some(segments: tuple[int, ...]) -> tuple[int, ...]:
    """Return few segments in about the same proportions: the longest, and the lengths that most values are in."""
    many = Counter(segments)
    longest = max(many)
    kept = {longest, *sorted(many, key=lambda length: -length * many[length])[:_MOST_LENGTHS]}
    least = min(many[length] for length in kept)
    return tuple(length for length in sorted(kept) for _ in range(min(round(many[length] / least), _MOST_LIKE)))


def _scaled(rates: Floats, costs: Floats) -> Floats:
    """Return rates in the same proportion whose largest loss is 1."""
    return np.asarray(rates / (costs @ rates).max())


def _next(rates: Floats, shares: Floats, costs: Floats) -> Floats:
    """Return the best rates for least squares with fixed weights, or a little further."""
    tried = []
    for mixture in _MIXTURES if len(costs) > 1 else [1.0]:
        cost = costs[0] * mixture + costs[-1] * (1 - mixture) if len(costs) > 1 else costs[0]
        if cost.min() > 0:
            tried.append(_scaled(rates * (shares / (cost * rates)) ** (_LONGER / 3), costs))
    return min(tried, key=lambda each: float((shares * (rates / each) ** 2).sum()), default=rates)

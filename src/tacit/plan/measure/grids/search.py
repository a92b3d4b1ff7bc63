"""The best strategy for a workload, from public parameters alone: which cells, which ramps, and how much noise.

Candidates are kept by name with their expected error, so that a plan can show what else was tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tacit.noise.scales import SMALLEST_SCALE
from tacit.plan.measure.grids.strategy import GridStrategy, Weighted, variance_at
from tacit.plan.measure.grids.workload import Workload
from tacit.plan.question import Floats
from tacit.plan.sensitivity.grid_moves import GridMoves

MOST_FITTED: Final = 200  # listed rectangles that weights are chosen for
UNKNOWN: Final = 1e100  # variance that could not be predicted: a number, since searches take differences
MOST_RAMPS: Final = 96  # whose covariance is inverted
SIDES: Final = (*range(2, 17), 18, 20, 22, 24, 28, 32, 40, 48, 64, 80, 96, 128, 192, 256, 384, 512)
INNER: Final = (2, 3, 4, 5, 6, 8)
LONG: Final = 100  # cells along a side, below which a third level gains nothing
UNIT_CELLS: Final = "unit cells"
TWO_LEVELS: Final = "two-level grid"
THREE_LEVELS: Final = "three-level grid"
QUADTREE: Final = "quadtree"
RAMPS: Final = "cells and ramps"
LISTED: Final = "each rectangle by itself"


@dataclass(frozen=True)
class GridCandidate:
    """A way to measure, and the mean variance of a rectangle; no strategy: the listed rectangles themselves."""

    name: str
    variance: float
    weighted: Weighted | None
    scale: Fraction = Fraction(0)


Found = tuple[Weighted, float]


@lru_cache(maxsize=64)
def candidates(moves: GridMoves, workload: Workload, epsilon: Fraction) -> tuple[GridCandidate, ...]:
    """Return the best of each kind of strategy, the best of all first."""
    search = _StrategySearch(moves, workload, epsilon)
    found = list(search.best_of_each())
    return tuple(sorted(found, key=lambda one: one.variance))


def listed_change(moves: GridMoves, workload: Workload) -> int:
    """Return how many of the listed rectangles one person changes at most.

    Whoever moves changes those that hold one of two cells and not the other, whoever comes or leaves those that hold
    one. Where people are coupled, each change of a cell's count changes no more rectangles than hold the cell.
    """
    if moves.coupled is not None:
        return moves.coupled * workload.deepest
    return max(workload.widest if moves.pairs else 0, workload.deepest if moves.leaves else 0)


class _StrategySearch:
    def __init__(self, moves: GridMoves, workload: Workload, epsilon: Fraction) -> None:
        self.moves, self.workload, self.epsilon = moves, workload, epsilon
        self.fitted = workload.some(MOST_FITTED)
        self.longest = max(max(part) for part in moves.segments)

    def best_of_each(self) -> Iterator[GridCandidate]:
        """Yield the best candidate of each kind."""
        unit = self.weigh(GridStrategy())
        yield self.rated(UNIT_CELLS, unit)
        if self.workload.listed is not None:
            yield self.by_themselves()
        if self.moves.coupled is not None or self.longest == 1:
            return
        two = sorted((self.weigh(GridStrategy((1, side))) for side in self.sides()), key=_error)
        three = sorted(map(self.weigh, self.three_levels(two)), key=_error)
        if two:
            yield self.rated(TWO_LEVELS, two[0])
        if three:
            yield self.rated(THREE_LEVELS, three[0])
        yield self.rated(QUADTREE, self.even(GridStrategy(self.powers())))
        ramped = self.with_ramps([unit, *two[:1], *three[:1]])
        if ramped is not None:
            yield self.rated(RAMPS, ramped)

    def sides(self) -> list[int]:
        """Return the sides of coarse cells; a single cell for a region whose total is exact says nothing."""
        return [side for side in SIDES if side < self.longest]

    def powers(self) -> tuple[int, ...]:
        """Return the sides of a quadtree below its root."""
        return tuple(2**level for level in range(max(1, (self.longest - 1).bit_length())))

    def three_levels(self, two: list[Found]) -> Iterator[GridStrategy]:
        """Yield strategies with cells around the best of two levels."""
        if self.longest < LONG:
            return
        best = two[0][0].strategy.sides[1]
        for inner in INNER:
            for times in INNER:
                if inner * times < self.longest and best <= 2 * inner * times and inner <= 2 * best:
                    yield GridStrategy((1, inner, inner * times))

    def with_ramps(self, plain: list[Found]) -> Found | None:
        """Return the best strategy with ramps: first with cells around the best without, then with other widths."""
        farthest = [max((pair[axis] for pair in self.moves.pairs), default=0) for axis in (0, 1)]
        if not any(farthest) or self.moves.leaves:
            return None  # whoever enters or leaves changes ramps by a whole side
        sides = [weighted.strategy.sides for weighted, _ in plain]
        if len(sides) > 1:
            best = sides[1][1]
            sides += [(1, side) for side in (best // 2, 2 * best // 3, 3 * best // 2) if 1 < side < self.longest]
        widths = self.widths(farthest, 1.0)
        tried = [self.weigh(GridStrategy(levels, widths)) for levels in dict.fromkeys(sides)]
        for factor in (2 / 3, 3 / 2):
            others = self.widths(farthest, factor)
            if others != widths:
                levels = min(tried, key=_error)[0].strategy.sides
                tried.append(self.weigh(GridStrategy(levels, others)))
        return min(tried, key=_error)

    def widths(self, farthest: list[int], factor: float) -> tuple[int, int]:
        """Return widths of ramps for moves of these lengths, wider where there would be too many.

        About twice the root of the longest move is best for grids of many sizes.
        """
        found = [
            min(max(1, round(2 * factor * math.sqrt(far))), max(part)) if far else 0
            for far, part in zip(farthest, self.moves.segments, strict=True)
        ]
        many = sum(max(part) / width for width, part in zip(found, self.moves.segments, strict=True) if width)
        wider = max(1.0, many / MOST_RAMPS)
        return math.ceil(found[0] * wider), math.ceil(found[1] * wider)

    def rated(self, name: str, found: Found) -> GridCandidate:
        """Return a candidate with its error over the whole workload."""
        weighted, variance = found
        if self.fitted is not self.workload:
            variance = self.workload.predictor(weighted.strategy, self.moves)(np.array(weighted.variances))
        return GridCandidate(name, variance, weighted)

    def by_themselves(self) -> GridCandidate:
        """Return the candidate with noise on the listed rectangles."""
        scale = max(Fraction(listed_change(self.moves, self.workload)) / self.epsilon, SMALLEST_SCALE)
        (variance,) = variance_at(np.array([float(1 / scale)]))
        return GridCandidate(LISTED, float(variance), None, scale)

    def even(self, strategy: GridStrategy) -> Found:
        """Return a strategy with the same noise for all groups."""
        weighted = Weighted.at(strategy, np.ones(strategy.groups), strategy.changes(self.moves), self.epsilon)
        return weighted, self.fitted.predictor(strategy, self.moves)(np.array(weighted.variances))

    def weigh(self, strategy: GridStrategy) -> Found:
        """Return the noise of each group for which the mean variance is smallest, and that variance."""
        if strategy.groups == 1:
            return self.even(strategy)
        rows = strategy.changes(self.moves)
        changes = np.array(rows, dtype=np.float64)
        predict = self.fitted.predictor(strategy, self.moves)
        epsilon = float(self.epsilon)

        def rates(logs: Floats) -> Floats:
            raw = np.exp(np.clip(logs, -12, 12))
            return np.asarray(epsilon * raw / (changes @ raw).max())

        def error(logs: Floats) -> float:
            return min(predict(variance_at(rates(logs))), UNKNOWN)

        # in units of what each group costs; ramps along x and y are alike, so that there is one number less to find
        alike = [*range(len(strategy.sides)), *[len(strategy.sides)] * (strategy.groups - len(strategy.sides))]
        start = np.log(np.array([1.0, *[0.5] * (strategy.groups - 1)]) / np.maximum(changes.max(axis=0), 1.0))

        def around(free: Floats) -> Floats:
            # never so little noise on sums beside that of unit cells that digits cancel
            return np.asarray(start + np.concatenate([[0.0], np.clip(free, -8.0, 4.0)])[alike])

        if alike[-1] == 1:
            from scipy.optimize import minimize_scalar  # takes longer to load than most plans to be made

            line = minimize_scalar(
                lambda at: error(around(np.array([at]))), bounds=(-4, 4), method="bounded", options={"xatol": 0.02}
            )
            best = around(np.array([line.x]))
        else:
            simplex = np.vstack([np.zeros(alike[-1]), -np.eye(alike[-1])])
            best = around(_nelder_mead(lambda at: error(around(at)), simplex))
        weighted = Weighted.at(strategy, rates(best), rows, self.epsilon)
        return weighted, predict(np.array(weighted.variances))


def _error(found: Found) -> float:
    return found[1]


def _nelder_mead(error: Callable[[Floats], float], simplex: Floats) -> Floats:
    """Return about the point where a smooth function is least, from a simplex to start with."""
    from scipy.optimize import minimize

    options: Any = {
        "xatol": 0.05,
        "fatol": 3e-4 * error(simplex[0]),
        "maxfev": 40 * simplex.shape[1],
        "initial_simplex": simplex,
    }
    found: Any = minimize
    return np.asarray(found(error, simplex[0], method="Nelder-Mead", options=options).x, dtype=np.float64)

"""The best strategy for a workload, from public parameters alone: which cells, which ramps, and how much noise.

Sizes of cells are found from first guesses on: the steps between levels become larger or smaller while it helps.

Candidates are kept by name with their expected error, so that a plan can show what else was tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np

from tacit.errors import PlanError
from tacit.noise.scales import SMALLEST_SCALE
from tacit.plan.measure.sums.rates import best_rates, variance_at
from tacit.plan.measure.sums.strategy import GridStrategy, Weighted
from tacit.plan.measure.sums.workload import Workload, rectangle_variances
from tacit.plan.sensitivity.moves import GridMoves, Pair

MOST_FITTED: Final = 200  # listed rectangles that weights are chosen for
MOST_RAMPS: Final = 112  # whose covariance is inverted
MOST_PLACES: Final = 1 << 21  # ramps times positions that are looked at: long lines have fewer ramps
SIDES: Final = (*range(2, 17), 18, 20, 22, 24, 28, 32, 40, 48, 64, 80, 96, 128, 192, 256, 384, 512)
FAN_OUT: Final = 18  # cells in the next larger one, in the best trees for ranges
BY: Final = (1.5, 1.2, 1.08)  # times that steps between levels become larger or smaller, from coarse to fine
FOLLOWED: Final = 2  # guesses that are gone on from
FAR: Final = 3.0  # times the error of other sums: too far for better sizes to make up for
BETTER: Final = 0.9995  # of the error: less is not looked for
LONG: Final = 100  # cells along a side, below which a third level gains nothing
UNIT_CELLS: Final = "unit cells"
TWO_LEVELS: Final = "two-level grid"
NESTED: Final = {2: TWO_LEVELS, 3: "three-level grid"}
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
Sizes = tuple[tuple[int, ...], Pair]  # steps between levels of cells, and widths of ramps


@lru_cache(maxsize=64)
def candidates(
    moves: GridMoves, workload: Workload, epsilon: Fraction, *, thorough: bool = True
) -> tuple[GridCandidate, ...]:
    """Return the best of each kind of strategy, the best of all first; those of the first guesses, if not thorough."""
    search = _StrategySearch(moves, workload, epsilon, thorough=thorough)
    found = list(search.best_of_each())
    return tuple(sorted(found, key=lambda one: one.variance))


def listed_change(moves: GridMoves, workload: Workload) -> int:
    """Return how many of the listed rectangles one person changes at most.

    Whoever moves changes those that hold one of two cells and not the other, whoever comes or leaves those that hold
    one. Where people are coupled, each change of a cell's count changes no more rectangles than hold the cell.
    """
    if moves.coupled is not None:
        return moves.coupled * workload.deepest
    return max(workload.widest if moves.pairs else 0, workload.deepest if moves.may_enter_or_leave else 0)


class _StrategySearch:
    def __init__(self, moves: GridMoves, workload: Workload, epsilon: Fraction, *, thorough: bool) -> None:
        self.thorough = thorough
        self.moves, self.workload, self.epsilon = moves, workload, epsilon
        self.fitted = workload.some(MOST_FITTED)
        self.longest = max(max(part) for part in moves.segments)
        self.most_ramps = min(MOST_RAMPS, MOST_PLACES // self.longest)
        self.is_grid = min(moves.sizes) > 1
        self.seen: dict[GridStrategy, Found] = {}

    def best_of_each(self) -> Iterator[GridCandidate]:
        """Yield the best candidate of each kind."""
        unit = self.weigh(GridStrategy())
        yield self.rated(UNIT_CELLS, unit)
        if self.workload.listed is not None:
            yield self.by_themselves()
        if self.moves.coupled is not None or self.longest == 1:
            return
        nested = [found for levels in self.depths() if (found := self.nested(levels)) is not None]
        for found in nested:
            levels = found[0].strategy.groups
            yield self.rated(NESTED.get(levels, f"cells of {levels} sizes"), found)
        ramped = self.with_ramps([unit, *nested])
        if ramped is not None:
            yield self.rated(RAMPS, ramped)

    def depths(self) -> Iterable[int]:
        """Return the numbers of levels that are tried."""
        if self.is_grid:
            return (2, 3) if self.longest >= LONG else (2,)
        usual = round(math.log(self.longest) / math.log(FAN_OUT))
        return range(2, max(usual, 2) + 2)

    def nested(self, levels: int) -> Found | None:
        """Return the best strategy of so many levels of cells; None if no guess is one."""
        usual = round(self.longest ** (1 / levels))
        guesses = [(max(usual, 2),) * (levels - 1)]
        if levels == 2:
            guesses += [(side,) for side in (SIDES if self.is_grid else (usual // 2, 2 * usual))]
        if self.moves.may_enter_or_leave:  # all together, whose number is not exact
            guesses += [(*guess[1:], -(-self.longest // math.prod(guess[1:]))) for guess in guesses[:1]]
        return self.improved([(guess, (0, 0)) for guess in guesses], FOLLOWED)

    def improved(self, guesses: Iterable[Sizes], followed: int) -> Found | None:
        """Return a strategy near the best guesses of which no size can be changed so that it helps; None without."""
        tried = {guess: found for guess in guesses if (found := self.at(*guess)) is not None}
        ends = []
        hopeless = FAR * min((found[1] for found in self.seen.values()), default=math.inf)
        for sizes, found in sorted(tried.items(), key=lambda each: each[1][1])[:followed]:
            best = sizes, found
            for factor in BY if self.thorough and found[1] < hopeless else ():
                moved = True
                while moved:
                    moved = False
                    for other in _varied(*best[0], factor):
                        there = self.at(*other)
                        if there is not None and there[1] < best[1][1] * BETTER:
                            best, moved = (other, there), True
                            break
            ends.append(best[1])
        return min(ends, key=_error, default=None)

    def at(self, steps: tuple[int, ...], widths: Pair) -> Found | None:
        """Return cells, each so many times as long as the next smaller, and ramps; None if they do not fit."""
        sides = tuple(math.prod(steps[:level]) for level in range(len(steps) + 1))
        # a single cell says nothing for a region whose total is exact
        whole = len(steps) > 0 and sides[-1] >= self.longest
        fits = not whole or (self.moves.may_enter_or_leave and (len(sides) == 2 or sides[-2] < self.longest))
        if not fits or min(steps, default=2) < 2 or self.ramps(widths) > self.most_ramps:
            return None
        try:
            return self.weigh(GridStrategy(sides, widths))
        except PlanError:
            return None  # some sums would need more noise than can be drawn

    def ramps(self, widths: Pair) -> int:
        """Return how many ramps of these widths there are in the longest region."""
        return sum(-(-max(part) // width) for width, part in zip(widths, self.moves.segments, strict=True) if width)

    def with_ramps(self, plain: list[Found]) -> Found | None:
        """Return the best strategy with ramps, from cells around the best without on."""
        farthest = [max((pair[axis] for pair in self.moves.pairs), default=0) for axis in (0, 1)]
        if max(farthest) < (1 if self.is_grid else 2) or self.most_ramps < 2:
            return None  # on a line, running counts are as good where a move changes one
        steps = [_steps(weighted.strategy.sides) for weighted, _ in plain]
        guesses: list[Sizes] = []
        for widths in self.widths(farthest):
            inner = [(round(max(widths) ** (1 / levels)),) * (levels - 1) for levels in (2, 3)]
            guesses += [(each, widths) for each in [*steps, *inner]]
        return self.improved(dict.fromkeys(guesses), 1)

    def widths(self, farthest: list[int]) -> Iterator[Pair]:
        """Yield widths of ramps for moves of these lengths, wider where there would be too many.

        About twice the root of the longest move is good with few levels of cells, and most of the move with more; twice
        the move where people leave, who change all ramps.
        """
        for each in (
            [2 * math.sqrt(far) for far in farthest],
            [(2 if self.moves.may_enter_or_leave else 0.8) * far for far in farthest],
        ):
            x, y = (
                min(max(1, round(width)), max(part)) if far else 0
                for width, far, part in zip(each, farthest, self.moves.segments, strict=True)
            )
            while self.ramps((x, y)) > self.most_ramps:
                x, y = (math.ceil(1.1 * width) for width in (x, y))
            yield x, y

    def rated(self, name: str, found: Found) -> GridCandidate:
        """Return a candidate with its error over the whole workload."""
        weighted, variance = found
        if self.fitted is not self.workload:
            try:
                each = rectangle_variances(weighted.strategy, weighted.variances, self.moves, self.workload.ends)
                variance = float(each.mean())
            except np.linalg.LinAlgError:  # too unlike for least squares in doubles
                variance = math.inf
        return GridCandidate(name, variance, weighted)

    def by_themselves(self) -> GridCandidate:
        """Return the candidate with noise on the listed rectangles."""
        scale = max(Fraction(listed_change(self.moves, self.workload)) / self.epsilon, SMALLEST_SCALE)
        (variance,) = variance_at(np.array([float(1 / scale)]))
        return GridCandidate(LISTED, float(variance), None, scale)

    def weigh(self, strategy: GridStrategy) -> Found:
        """Return the noise of each group for which the mean variance is smallest, and that variance."""
        if strategy not in self.seen:
            rows = strategy.changes(self.moves)
            predict = self.fitted.predictor(strategy, self.moves)
            rates = best_rates(predict, rows, float(self.epsilon))
            weighted = Weighted.at(strategy, rates, rows, self.epsilon)
            self.seen[strategy] = weighted, predict(np.array(weighted.variances))
        return self.seen[strategy]


def _error(found: Found) -> float:
    return found[1]


def _steps(sides: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many times as long as the next smaller the cells of each level are."""
    return tuple(long // short for short, long in pairwise(sides))


def _varied(steps: tuple[int, ...], widths: Pair, factor: float) -> Iterator[Sizes]:
    """Yield sizes of which one is larger or smaller, by about this factor, also at the cost of the next."""

    def around(size: int) -> tuple[int, int]:
        return max(round(size * factor), size + 1), min(round(size / factor), size - 1)

    for place, step in enumerate(steps):
        if any(widths):
            yield (*steps[:place], *steps[place + 1 :]), widths
        for other in around(step):
            yield (*steps[:place], other, *steps[place + 1 :]), widths
            if place + 1 < len(steps) and other:
                following = round(step * steps[place + 1] / other)
                yield (*steps[:place], other, following, *steps[place + 2 :]), widths
    if any(widths):
        for other in around(max(widths)):
            x, y = (math.ceil(width * other / max(widths)) for width in widths)
            yield steps, (x, y)

"""The best strategy for a workload, from public parameters alone: which cells, which ramps, and how much noise.

Sizes of cells are found from first guesses on: the steps between levels become larger or smaller while it helps.
Candidates are kept by name with their expected error, so that a plan can show what else was tried. For each strategy,
epsilon is shared out among the groups of sums so that the mean error is least:

Why     With noise of variance v_g on group g, the error of least squares is the least of sums of c_g v_g over all
        unbiased ways to combine what is measured. So it is concave in the variances, and never above its tangent: for
        the c_g of some rates, those rates that make the sum of c_g v_g least lead to an error that is no larger. What a
        group's share of the error is, is what the error's logarithm changes by when that of its variance does.
        For fixed c_g the error is convex in the rates. With multipliers u >= 0 of the bounds (rows of changes, each of
        which may cost epsilon), a rate r of a group with price p = (u @ rows) is best where c_g v'(r) = -p: for
        v = 2 / r^2 it is (4 c_g / p)^(1/3). Multipliers of rows that cost more than others grow.
Reference   Li, Miklau, Hay, McGregor, Rastogi, The matrix mechanism (2015), for least squares on weighted sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np

from tacit.arrays import Floats
from tacit.errors import PlanError
from tacit.noise.draws import SMALLEST_SCALE
from tacit.plan.calibrate import drawable
from tacit.plan.measure.regions import GridStrategy, Weighted
from tacit.plan.measure.workload import Workload, rectangle_variances
from tacit.plan.sensitivity.moves import GridMoves, Pair

FINEST: Final = 4096  # rates are whole multiples of the largest over this, or a finer power of two: short fractions
ROUNDS: Final = 400  # of multipliers, for rates under several bounds
FEW_ROUNDS: Final = 40  # for a tangent, which is left again
SEARCHES: Final = 14  # tangents that are followed
LONGER: Final = 1.7  # than what never leads to a larger error: it gets there sooner
GOOD_ENOUGH: Final = 1e-4  # an improvement by a smaller share is not followed any further
_STEP: Final = 1e-4  # of a variance, to see how the error depends on it
_LEAST: Final = 1e-6  # share of an error
_FREE: Final = 1 / 64  # what sums are taken to change by that nobody changes, so that their rate stays a number
_ONE_GROUP: Final = 0.05  # of what one group costs do all others at a start
_LITTLE: Final = 2e-3  # of what the dearest group costs: with less, digits would cancel
_SETTLED: Final = 1e-4  # share by which rates move from round to round


def variance_at(rates: Floats) -> Floats:
    """Return the variance of two-sided geometric noise: 2q / (1 - q)^2 with q = exp(-rate)."""
    return np.asarray(0.5 / np.sinh(np.minimum(rates, float(1 / SMALLEST_SCALE)) / 2) ** 2)


def scales_of(rates: Floats, changes: Sequence[Sequence[int]], epsilon: Fraction) -> list[Fraction]:
    """Return scales of about these rates, of which the dearest row of changes costs epsilon exactly.

    It costs less where a scale had to be raised to the smallest that can be drawn. A group without a rate has scale 0.

    >>> scales_of(np.array([1.0, 2.0]), [(2, 2)], Fraction(1))
    [Fraction(6, 1), Fraction(3, 1)]
    """
    shares = rates / rates.max()
    # the smallest is right to a thousandth as well
    finest = FINEST * max(1, 2 ** math.ceil(math.log2(1000 / FINEST / shares[shares > 0].min())))
    whole = [max(round(finest * share), 1) if share else 0 for share in shares.tolist()]
    loss = max(sum(change * share for change, share in zip(row, whole, strict=True)) for row in changes)
    return [drawable(Fraction(loss, share) / epsilon) if share else Fraction(0) for share in whole]


def weighted_at(
    strategy: GridStrategy, shares: Floats, changes: Sequence[Sequence[int]], epsilon: Fraction
) -> Weighted:
    """Return rates in about these proportions, whose loss is epsilon exactly (or less, at the smallest scale)."""
    return Weighted(strategy, tuple(1 / scale for scale in scales_of(shares, changes, epsilon)))


def best_rates(error: Callable[[Floats], float], changes: Sequence[Sequence[int]], epsilon: float) -> Floats:
    """Return rates that make the error nearly least while no row of changes costs more than epsilon.

    `error` is a function of the variances of the groups, as that of least squares is: of degree one, and concave.
    """
    rows = np.unique(np.array(changes, dtype=np.float64), axis=0)
    rows = rows[[not any((row <= other).all() and (row < other).any() for other in rows) for row in rows]]
    rows[:, rows.max(axis=0) == 0] = _FREE
    # shares of the loss to begin with: some for all, or nearly everything for one
    each = np.eye(rows.shape[1]) * (1 - _ONE_GROUP) + _ONE_GROUP
    starts = [np.append(1.0, np.full(rows.shape[1] - 1, 0.5)), *each]
    tried = [_within(start / rows.max(axis=0), rows, epsilon) for start in starts]
    errors = [error(variance_at(rates)) for rates in tried]
    least = min(errors)
    rates = tried[errors.index(least)]
    for _ in range(SEARCHES if len(rates) > 1 and 0 < least < math.inf else 0):
        before, variances = least, variance_at(rates)
        weights = _shares(error, variances, least) / variances
        aim = least_rates(weights, rows, epsilon, rates, rounds=FEW_ROUNDS)
        for further in (rates * (aim / rates) ** LONGER, aim):
            costs = further * rows.max(axis=0)
            there = _within(further * np.maximum(1, _LITTLE * costs.max() / costs), rows, epsilon)
            found = error(variance_at(there))
            if found < least:
                rates, least = there, found
                break
        if least > before * (1 - GOOD_ENOUGH) or least <= 0:
            break
    return rates


def least_rates(
    weights: Floats, rows: Floats, epsilon: float, start: Floats | None = None, *, rounds: int = ROUNDS
) -> Floats:
    """Return rates that make the weighted sum of variances nearly least while no row costs more than epsilon."""
    multipliers = np.full(len(rows), 1.0 / len(rows))
    rates = _within(np.ones(len(weights)) if start is None else start, rows, epsilon)
    best, least = rates, float(weights @ variance_at(rates))
    for step in range(rounds):
        before = rates
        # by how much the logarithm of the variance falls where that of the rate rises: 2, and more for large rates
        steep = rates / np.tanh(rates / 2)
        price = np.maximum(multipliers @ rows, 1e-12) * rates
        moved = rates * (weights * variance_at(rates) * steep / price) ** (1 / (1 + steep))
        costs = rows @ moved
        rates = moved * (epsilon / costs.max())
        total = float(weights @ variance_at(rates))
        if total < least:
            best, least = rates, total
        if np.abs(rates / before - 1).max() < _SETTLED and step:
            break
        multipliers = multipliers * (costs / costs.max()) ** (2.0 / (1 + step / 40))
        multipliers /= multipliers.sum()
    return best


def _within(rates: Floats, rows: Floats, epsilon: float) -> Floats:
    """Return rates in the same proportion whose dearest row costs epsilon."""
    return np.asarray(rates * (epsilon / (rows @ rates).max()))


def _shares(error: Callable[[Floats], float], variances: Floats, least: float) -> Floats:
    """Return the share of each group in the error; they add up to one."""
    shares = np.empty(len(variances))
    for group in range(len(variances) - 1):
        more = variances.copy()
        more[group] *= 1 + _STEP
        shares[group] = (error(more) / least - 1) / _STEP
    shares[-1] = 1 - shares[:-1].sum()
    return np.where(np.isfinite(shares), np.maximum(shares, _LEAST), _LEAST)


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
            weighted = weighted_at(strategy, rates, rows, self.epsilon)
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

"""How to share out epsilon among groups of sums, so that the mean error of what follows from them is least.

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
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from tacit.arrays import Floats
from tacit.noise.scales import SMALLEST_SCALE
from tacit.plan.calibrate import drawable

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

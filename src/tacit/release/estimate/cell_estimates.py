"""From noisy counts to the best estimates: post-processing, which costs no privacy.

Nothing here sees true answers other than totals that no secret edge changes (`plan/sensitivity/exact_totals.py`). Each
of these but `following` is a projection on a convex set that holds the truth, so it never leads further away from it.
`release/estimate/agree.py` has the one for several tables.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats, Ints


def with_totals(values: Floats, groups: Ints, totals: Floats, variances: Floats) -> Floats:
    """Return the nearest values whose sums over groups are the exact totals (weighted least squares).

    What is missing in a group is shared out in proportion to how uncertain each value is.
    """
    missing = totals - np.bincount(groups, values, minlength=len(totals))
    doubt = np.bincount(groups, variances, minlength=len(totals))
    rate = np.divide(missing, doubt, out=np.zeros_like(missing), where=doubt > 0)
    return values + variances * of_groups(rate, groups)


def of_groups(numbers: Floats, groups: Ints) -> Floats:
    """Return for each value the number of its group."""
    return np.broadcast_to(numbers, groups.shape) if len(numbers) == 1 else numbers[groups]


def nonnegative(values: Floats, groups: Ints | None = None, totals: Floats | None = None) -> Floats:
    """Return the nearest values that are not negative and, if given, keep the groups' exact totals.

    Within a group this is the projection on a simplex: subtract what makes the positive parts add up. Newton's method
    from below finds it, since the sum of positive parts is convex: what is subtracted only grows, until the values that
    stay positive are the right ones.
    """
    if groups is None or totals is None:
        return np.asarray(np.maximum(values, 0.0))
    many = np.bincount(groups, minlength=len(totals))
    # within a group everything is reckoned from its largest value: large counts of one group drown no others
    top = np.full(len(totals), -np.inf)
    np.maximum.at(top, groups, values)
    below = values - top[groups]  # at most 0
    lowest = (np.bincount(groups, below, minlength=len(totals)) - totals) / np.maximum(many, 1)
    while True:
        kept = below > lowest[groups]
        counts = np.bincount(groups, kept, minlength=len(totals))
        sums = np.bincount(groups[kept], below[kept], minlength=len(totals))
        higher = np.divide(sums - totals, counts, out=lowest.copy(), where=counts > 0)
        if not (higher > lowest).any():
            return np.where(kept, np.maximum(below - lowest[groups], 0.0), 0.0)
        lowest = np.maximum(lowest, higher)


def increasing(values: Floats, exact: npt.NDArray[np.bool_] | None, truth_at_exact: Floats | None) -> Floats:
    """Return the nearest cumulative counts that never fall, between 0 and the exact ones."""
    from scipy.optimize import isotonic_regression  # takes longer to load than most releases to be made

    if exact is None or truth_at_exact is None or not exact.any():
        return np.maximum(np.asarray(isotonic_regression(values).x), 0.0)
    out = np.empty_like(values)
    start, floor = 0, 0.0
    for end, known in zip(np.flatnonzero(exact), truth_at_exact, strict=True):
        inner = values[start:end]
        if inner.size:
            out[start:end] = np.clip(np.asarray(isotonic_regression(inner).x), floor, known)
        out[end] = known
        start, floor = int(end) + 1, float(known)
    if start < len(values):
        out[start:] = np.maximum(np.asarray(isotonic_regression(values[start:]).x), floor)
    return out


def following(values: Floats, rising: Floats, exact: npt.NDArray[np.bool_] | None, alike: float) -> Floats:
    """Return rising counts of which those that stayed as they were follow the ones that were moved.

    `rising` moved some of the noisy values, by what is now known of their errors. Neighbours have errors that are much
    alike (their correlation is `alike`, and falls with the distance as that of an autoregression does), so those of the
    values that stayed are expected to be such parts of them. Else the step from a moved count to its neighbour would
    have all of the neighbour's error, where the noisy one has the little in which the two differ. The result may fall
    in places.
    """
    moved = rising != values
    settled = moved if exact is None else moved | exact
    if alike <= 0 or not moved.any():
        return rising
    at = np.arange(len(values))
    # the count before the first value is zero, without an error; after the last one there is nothing to follow
    before = np.maximum.accumulate(np.where(settled, at, -1))
    after = np.minimum.accumulate(np.where(settled, at, len(values))[::-1])[::-1]
    error = np.concatenate([values - rising, [0.0, 0.0]])  # at len(values), and at -1
    left, right = (alike ** (at - before)), np.where(after < len(values), alike ** (after - at), 0.0)
    between = 1 - (left * right) ** 2
    shared = (left * (1 - right**2) * error[before] + right * (1 - left**2) * error[after]) / np.where(
        settled, 1.0, between
    )
    return np.where(settled, rising, values - shared)

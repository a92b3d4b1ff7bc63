"""Bounds on noise of which only the variance is known, and that its law is symmetric and log-concave.

Guarantee   For whole-number noise z with P(z) = P(-z) and P(z)^2 >= P(z-1) P(z+1), and variance at most `variance`:
            P(|z| <= run_bound(level, variance)) >= level.
Assumes     The variance is no smaller than that of the law.
Why         Real numbers first. Among even log-concave densities of one variance, the probability to be at least t is
            linear, so it is largest for an extreme one: two conditions, total and variance, leave two degrees of
            freedom to its logarithm, which is then flat up to some point, falls along one line, and may be cut off. The
            largest quantile over all of these is found once for each level, in units of the standard deviation.
            Whole numbers: let Y have the density that joins the probabilities of z by lines in the logarithm, which is
            even and log-concave. It falls, so P(|z| >= m) <= P(|Y| >= m - 1). Joined by straight lines instead, it
            would be the density of z plus a triangle on -1..1, of variance 1/6. The lines in the logarithm lie below
            these, the more so the farther out, which takes weight from the outer intervals; inside one interval [k,
            k+1] the mean becomes no larger, and the mean square of the place in it grows by less than 0.001. So Var Y
            <= variance + 1/6 + 0.001.
            Runs of noise on a line are such laws: exp(-g), g a sum of rates times |differences|, has f(x) f(y) <=
            f(floor((x+y)/2)) f(ceil((x+y)/2)), and sums over coordinates keep that. A run is a difference of two
            coordinates, of which either may be taken as the origin.
Reference   Fradelizi, Guedon, The extreme points of subsets of s-concave probabilities and a geometric localization
            theorem (2004); Klartag, Lehec, Poisson processes and a four-function theorem in discrete space,
            arXiv:1907.08053, for sums over coordinates.
Checked by  tests/unit/noise/test_log_concave.py.
"""

from __future__ import annotations

from functools import lru_cache
from math import isfinite
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats
from tacit.errors import PlanError

_JOINED: Final = 1 / 6 + 0.001  # what joining whole numbers may add to the variance
_ROUNDED_UP: Final = 1 + 1e-6


def run_bound(level: float, variance: ArrayLike) -> Floats:
    """Return how far from zero noise of these variances is at most, at this level: whole numbers, zero for no noise.

    >>> run_bound(0.95, [0.0, 1.0, 100.0])
    array([ 0.,  3., 22.])
    """
    spread = np.asarray(variance, dtype=np.float64)
    bound = np.ceil(largest_quantile(float(level)) * np.sqrt(spread + _JOINED))
    return np.where(spread > 0, bound, 0.0)


@lru_cache(maxsize=256)
def largest_quantile(level: float) -> float:
    """Return the largest quantile of |x| over all even log-concave densities, in standard deviations."""
    if not (isfinite(level) and 0 < level < 1):
        raise PlanError("must lie strictly between 0 and 1", key="level", given=level)
    # flat for x < start, then falling like exp(-x), and cut off after `falls`; a grid, and finer ones around its best
    start, falls = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 160)]), np.geomspace(1e-4, 1e3, 160)
    best = 0.0
    for _ in range(6):
        grid = _quantiles(level, start[:, np.newaxis], falls)
        at, by = np.unravel_index(int(np.argmax(grid)), grid.shape)
        best = max(best, float(grid[at, by]))
        start, falls = _around(start, int(at)), _around(falls, int(by))
    return best * _ROUNDED_UP


def _around(points: Floats, at: int) -> Floats:
    return np.linspace(points[max(at - 1, 0)], points[min(at + 1, len(points) - 1)], 61)


def _quantiles(level: float, start: Floats, falls: Floats) -> Floats:
    """Return quantiles of |x| over the standard deviation, for densities of this shape."""
    left = np.exp(-falls)
    gone = -np.expm1(-falls)
    total = start + gone
    first = gone - falls * left  # of y and y^2 over the falling part
    second = 2 * first - falls**2 * left
    square = start**3 / 3 + start**2 * gone + 2 * start * first + second
    beyond = (1 - level) * total
    inside = start - (beyond - gone)
    quantile = np.where(beyond > gone, inside, start - np.log(np.minimum(left + beyond, 1.0)))
    return np.asarray(quantile / np.sqrt(np.maximum(square, 1e-300) / total))

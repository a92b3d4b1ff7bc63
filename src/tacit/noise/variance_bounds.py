"""Bounds on noise of which the variance is known: symmetric, log-concave noise, and sums of geometric noises.

Guarantee   `run_bound`: for whole-number noise z with P(z) = P(-z) and P(z)^2 >= P(z-1) P(z+1), and variance at most
            `variance`, P(|z| <= run_bound(level, variance)) >= level. `half_width`: the same for X = sum of w_j z_j,
            independent z_j, each two-sided geometric of a scale s_j out of a few.
Assumes     The variance is no smaller than that of the law.
Why         `run_bound`. Real numbers first. Among even log-concave densities of one variance, the probability to be at
            least t is linear, so it is largest for an extreme one: two conditions, total and variance, leave two
            degrees of freedom to its logarithm, which is then flat up to some point, falls along one line, and may be
            cut off. The largest quantile over all of these is found once for each level, in standard deviations.
            Whole numbers: let Y have the density that joins the probabilities of z by lines in the logarithm, which is
            even and log-concave. It falls, so P(|z| >= m) <= P(|Y| >= m - 1). Joined by straight lines instead, it
            would be the density of z plus a triangle on -1..1, of variance 1/6. The lines in the logarithm lie below
            these, the more so the farther out, which takes weight from the outer intervals; inside one interval [k,
            k+1] the mean becomes no larger, and the mean square of the place in it grows by less than 0.001. So Var Y
            <= variance + 1/6 + 0.001.
            Runs of noise on a line are such laws: exp(-g), g a sum of rates times |differences|, has f(x) f(y) <=
            f(floor((x+y)/2)) f(ceil((x+y)/2)), and sums over coordinates keep that. A run is a difference of two
            coordinates, of which either may be taken as the origin.
            `half_width`. A geometric is a rounded exponential: the whole part and the fraction of an exponential are
            independent. So y_j = z_j + f_j is Laplace noise of scale s_j, where f_j, independent of z_j, is the
            difference of two such fractions. Let Y = sum of w_j y_j = X + F.
            (1) P(X > t) P(F >= -a) <= P(Y > t - a). For the logarithm c of E exp(s f) of one fraction's difference,
            c(s) = g(r - s) + g(r + s) - 2 g(r) with r = 1/s_j and g(x) = log((1 - exp(-x)) / x), whose second
            derivative is the variance of an exponential cut to [0, 1], at most 1/12. So c(s) <= s^2/12, and P(F < -a)
            <= d for a = sqrt(log(1/d) W / 3) with W = sum of w_j^2. The same on the other side: all laws are even.
            (2) Y has an even log-concave density, as a sum of such, and the variance of that bounds its quantiles.
            (3) W <= Var X / the least variance of a z_j, and Var Y <= Var X times the largest ratio of 2 s_j^2 to it.
            Where noise is nearly always zero that says little, and Chebyshev's inequality bounds X by itself.
Reference   Fradelizi, Guedon, The extreme points of subsets of s-concave probabilities and a geometric localization
            theorem (2004); Klartag, Lehec, Poisson processes and a four-function theorem in discrete space,
            arXiv:1907.08053, for sums over coordinates.
Checked by  tests/unit/noise/test_variance_bounds.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from math import isfinite
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats
from tacit.errors import PlanError
from tacit.noise.two_scale import TwoScale

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


LEFT_OUT: Final = (0.003, 0.01, 0.03, 0.1, 0.3)  # probabilities d that are tried in (1)


def half_width(level: float, variances: Floats, laws: Iterable[TwoScale]) -> Floats:
    """Return t such that |X| <= t with at least this probability, for sums of these laws with these variances.

    >>> from fractions import Fraction
    >>> law = TwoScale(Fraction(100), Fraction(100))
    >>> (half_width(0.95, np.array([law.variance()]), [law]) / np.sqrt(law.variance())).round(2).tolist()
    [2.18]
    """
    factor = min(_factor(1 - level, tuple(laws)), 1 / math.sqrt(1 - level))
    return np.asarray(factor * np.sqrt(variances))


def _factor(outside: float, laws: tuple[TwoScale, ...]) -> float:
    """Return how many standard deviations of X hold it with all but this probability."""
    least = min((law.variance() for law in laws), default=0.0)
    if least <= 0:
        return math.inf
    wider = math.sqrt(max(2 * float(law.right) ** 2 / law.variance() for law in laws))
    found = []
    for left_out in LEFT_OUT:
        rare = outside * (1 - left_out)
        far = wider * largest_quantile(1 - rare)
        found.append(far + math.sqrt(-math.log(left_out) / (3 * least)))
    return min(found)

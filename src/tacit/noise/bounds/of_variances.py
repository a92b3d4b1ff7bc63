"""Bounds on weighted sums of independent two-sided geometric noises, from the variance of the sum alone.

Least squares makes an estimate of thousands of noisy numbers, each with a weight of its own; its law is not worked out.
What is bounded is X = sum of w_j z_j with independent z_j, each two-sided geometric of a scale s_j out of a few.

Why     A geometric is a rounded exponential: the whole part and the fraction of an exponential are independent. So
        y_j = z_j + f_j is Laplace noise of scale s_j, where f_j, independent of z_j, is the difference of two such
        fractions. Let Y = sum of w_j y_j = X + F.
        (1) P(X > t) P(F >= -a) <= P(Y > t - a). For the logarithm c of E exp(s f) of one fraction's difference,
        c(s) = g(r - s) + g(r + s) - 2 g(r) with r = 1/s_j and g(x) = log((1 - exp(-x)) / x), whose second derivative is
        the variance of an exponential cut to [0, 1], at most 1/12. So c(s) <= s^2/12, and P(F < -a) <= d for
        a = sqrt(log(1/d) W / 3) with W = sum of w_j^2. The same on the other side, since all laws are even.
        (2) Y has an even log-concave density, as a sum of such, and the variance of that bounds its quantiles
        (`noise/bounds/log_concave.py`).
        (3) W <= Var X / the least variance of a z_j, and Var Y <= Var X times the largest ratio of 2 s_j^2 to it.
        Where noise is nearly always zero that says little, and Chebyshev's inequality bounds X by itself.
Checked by tests/unit/noise/test_sum_bounds.py
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import numpy as np

from tacit.arrays import Floats
from tacit.noise.bounds.log_concave import largest_quantile
from tacit.noise.two_scale import TwoScale

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

"""How far counts on a line are off, for noise that was made for lines: variances, and bounds that hold.

Guarantee   The bounds of `spread(..)` hold the error of each run at least at the stated level.
Assumes     What the laws of noise say about themselves (`noise/line/law.py`, `noise/grouped.py`).
Why         Joint noise: the law of a run is symmetric and log-concave on whole numbers, and its variance bounds its
            quantiles (`noise/bounds/log_concave.py`).
            Measured sums: the error is X, a sum of w Z over independent entries with discrete Laplace noise Z of scale
            s. An exponential E is its whole part plus an independent rest, and the whole part is geometric, so
            Z + V = L is Laplace noise of scale s for an independent, symmetric V, the difference of two rests between 0
            and 1: E exp(tV) <= exp(t^2/4) by Hoeffding. So X + W, with W the sum of w V, is a sum of Laplace noises:
            symmetric and log-concave, with a variance that is larger than that of X by at most the largest ratio of
            2 s^2 to the variance of Z. Where X > t and W >= -a, X + W > t - a: P(X > t) P(W >= -a) <= P(X + W > t - a),
            and P(W < -a) <= exp(-a^2 / sum of w^2), whose sum is at most the variance of X over the least of Z.
            Chebyshev's inequality holds for every law, and is better where noise is nearly always zero.
Reference   Saumard, Wellner, Log-concavity and strong log-concavity: a review, arXiv:1404.5886.
Checked by  tests/statistical/test_line_strategies.py, tests/unit/plan/test_line_bounds.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

import numpy as np
import numpy.typing as npt

from tacit.noise.bounds.log_concave import largest_quantile, run_bound
from tacit.noise.line.law import LineNoise
from tacit.plan.errors.error_laws import AnySpread, ShapedSpread
from tacit.plan.errors.runs import Kind
from tacit.plan.measure.lines.line_sums import LineSums

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_ROUNDED_UP: Final = 1.001  # variances of joint noise are right to a thousandth
_LOST: Final = (0.005, 0.02, 0.05, 0.1, 0.2, 0.4)  # probability that smoothing may exceed what bounds are moved by


@dataclass(frozen=True, eq=False)
class JointErrors:
    """Running counts with noise that was drawn for all of them together."""

    noise: LineNoise

    def run_variance(self, low: Ints, high: Ints) -> Floats:
        """Return the variance of the estimated number of people at the positions low..high."""
        return self.noise.run_variance(low, high)

    def mean_variance(self, kind: Kind) -> float:
        """Return its mean over all ranges, all prefixes or all single positions."""
        return self.noise.mean_variance(kind)

    def spread(self, low: Ints, high: Ints) -> AnySpread:
        """Return what is known of the law of each run: symmetric, log-concave, of this variance."""
        return ShapedSpread(self.run_variance(low, high), bound_of_noise)


@dataclass(frozen=True, eq=False)
class SumErrors:
    """Running counts that follow from measured sums by least squares."""

    sums: LineSums

    def run_variance(self, low: Ints, high: Ints) -> Floats:
        """Return the variance of the estimated number of people at the positions low..high."""
        return self.sums.run_variance(low, high)

    def mean_variance(self, kind: Kind) -> float:
        """Return its mean over all ranges, all prefixes or all single positions."""
        return self.sums.mean_variance(kind)

    @cached_property
    def _smallest(self) -> tuple[float, float]:
        """The least variance of an entry with noise, and how much larger that of Laplace noise is at most."""
        noise = self.sums.noise
        noisy = [(var, float(scale)) for var, scale in zip(noise.variances(), noise.scales, strict=True) if scale]
        least = min(variance for variance, _ in noisy)
        more = max((2 * scale**2 / variance if variance else math.inf for variance, scale in noisy), default=1.0)
        return least, more

    def spread(self, low: Ints, high: Ints) -> AnySpread:
        """Return bounds for a weighted sum of independent draws of this variance."""
        return ShapedSpread(self.run_variance(low, high), partial(bound_of_sums, *self._smallest))


def bound_of_noise(level: float, variance: Floats) -> Floats:
    """Return what a run of joint noise of this variance exceeds with at most 1 - level."""
    return run_bound(level, variance * _ROUNDED_UP)


def bound_of_sums(least: float, more: float, level: float, variance: Floats) -> Floats:
    """Return what a weighted sum of discrete Laplace draws, of this variance, exceeds with at most 1 - level.

    `least` is the smallest variance of a draw, `more` the largest ratio of the variance of Laplace noise to it.
    """
    rare = 1 - level
    factor = math.sqrt(1 / rare)
    if least > 0 and more < math.inf:
        for lost in _LOST:
            smooth = math.sqrt(more) * largest_quantile(1 - rare * (1 - lost))
            factor = min(factor, smooth + math.sqrt(-math.log(lost) / least))
    return factor * np.sqrt(variance)

"""How far counts on a line are off, for noise that was made for lines: variances, and bounds that hold.

Guarantee   The bounds of `spread(..)` hold the error of each run at least at the stated level.
Assumes     What the laws of noise say about themselves (`noise/line/law.py`, `noise/grouped.py`).
Why         Joint noise: the law of a run is symmetric and log-concave on whole numbers, and its variance bounds its
            quantiles (`noise/bounds/log_concave.py`).
            Measured sums: weighted sums of independent two-sided geometric noise, bounded by their variance
            (`noise/bounds/of_variances.py`).
Reference   Saumard, Wellner, Log-concavity and strong log-concavity: a review, arXiv:1404.5886.
Checked by  tests/statistical/test_line_strategies.py, tests/unit/plan/test_line_bounds.py
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from tacit.arrays import Floats, Ints
from tacit.noise.bounds.log_concave import run_bound
from tacit.noise.bounds.of_variances import half_width
from tacit.noise.line.law import LineNoise
from tacit.plan.errors.error_laws import AnySpread, ShapedSpread
from tacit.plan.errors.runs import Kind
from tacit.plan.measure.sums.line_sums import LineSums

_ROUNDED_UP: Final = 1.001  # variances of joint noise are right to a thousandth


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

    def spread(self, low: Ints, high: Ints) -> AnySpread:
        """Return bounds for a weighted sum of independent draws of this variance."""
        noise = self.sums.noise
        laws = tuple(noise.law_of(group) for group, scale in enumerate(noise.scales) if scale)
        return ShapedSpread(self.run_variance(low, high), partial(half_width, laws=laws))


def bound_of_noise(level: float, variance: Floats) -> Floats:
    """Return what a run of joint noise of this variance exceeds with at most 1 - level."""
    return run_bound(level, variance * _ROUNDED_UP)

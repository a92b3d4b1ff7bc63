"""Two-scale noise: geometric on either side of zero. One-sided geometric and discrete Laplace noise are cases of it.

Guarantee   A rise of the query by r costs r/left and a fall by f costs f/right, exactly; a draw follows the law up to
            2^-170 in total variation, given an ideal keystream. Noise of scales s plus a draw of `widening` is noise
            of scales t * s, exactly.
Assumes     The keystream (`noise/keystream.py`). Scales are exact fractions, because the loss 1/scale is what a plan
            promises: 0.2 means one fifth.
Why         On each side of zero the law is geometric, so the ratio of neighbouring probabilities is exp(1/scale). Draws
            invert its distribution function (`noise/tables.py`). Two-scale noise is a geometric for the right side less
            one for the left. With a = exp(-1/(t * s)), a geometric of scale t * s counts successes of chance a before
            the first failure. Call a success small with chance a^t / a. The small ones before the first trial that is
            no small success are a geometric of scale s, since a trial is one with chance a^t = exp(-1/s). The trial
            after them is a failure with chance (1 - a)/(1 - a^t), and else a success, after which all starts anew. The
            remainder by t of a geometric of scale t * s is zero with just that chance.
Reference   Ghosh, Roughgarden, Sundararajan, Universally Utility-Maximizing Privacy Mechanisms, arXiv:0811.2841.
Checked by  tests/unit/noise/test_distributions.py, tests/unit/noise/test_noise.py, tests/statistical/test_noise.py,
            tests/property/test_noise_loss.py.

Numbers are accurate to 1e-12, relative, for probabilities down to 1e-300; a mean to 1e-12 of the larger scale.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, inf
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats, Ints
from tacit.noise.draws import Size, count_of, give_shape
from tacit.noise.keystream import current_stream
from tacit.noise.law import Law, quantile_of, whole_numbers
from tacit.noise.scales import LARGEST_SCALE, ScaleLike, as_scale
from tacit.noise.tables import two_scale_sampler


@dataclass(frozen=True)
class TwoScale(Law):
    """Noise on one integer: P(z) proportional to exp(-z/right) for z >= 0 and to exp(z/left) for z < 0.

    A side with scale 0 carries nothing: `TwoScale(s, 0)` is the one-sided geometric, `TwoScale(s, s)` the discrete
    Laplace, `TwoScale(0, 0)` the constant 0.

    >>> TwoScale(Fraction(2), Fraction(0)).loss(-1)
    Fraction(1, 2)
    """

    right: Fraction
    left: Fraction

    def __post_init__(self) -> None:
        for name in ("right", "left"):
            object.__setattr__(self, name, as_scale(getattr(self, name), key=name, zero=True))

    def loss(self, step: int) -> Fraction | float:
        """Return the worst log likelihood ratio hidden : cover when q(cover) - q(hidden) = step; inf if unbounded.

        z = output - q(hidden), so cover would need the noise z - step. A fall pushes it to the right, where every
        unit costs 1/right; a rise to the left.
        """
        scale = self.right if step < 0 else self.left
        return Fraction(0) if step == 0 else abs(step) / scale if scale else inf

    def document(self) -> dict[str, Any]:
        return {
            "shape": "two-scale",
            "right": str(self.right),
            "left": str(self.left),
            "standard_deviation": self.variance() ** 0.5,
        }

    def joint_log_pmf(self, points: ArrayLike) -> float:
        """Return the logarithm of the probability that independent draws are exactly these."""
        with np.errstate(divide="ignore"):
            return float(np.sum(np.log(self.pmf(points))))

    def pmf(self, k: ArrayLike) -> Floats:
        z = whole_numbers(k).astype(np.float64)
        return np.where(
            z >= 0,
            self.mass_right * _miss(self.right) * _decay(z, self.right),
            self.mass_left * _miss(self.left) * _decay(-1 - z, self.left),
        )

    def cdf(self, k: ArrayLike) -> Floats:
        z = whole_numbers(k).astype(np.float64)
        below, above = self._split(z)
        # The larger part is read as one minus the smaller, so that cdf and survival never contradict each other.
        return np.where(below < 0.5, below, 1 - above)

    def survival(self, k: ArrayLike) -> Floats:
        z = whole_numbers(k).astype(np.float64)
        below, above = self._split(z)
        return np.where(below < 0.5, 1 - below, above)

    def _split(self, z: Floats) -> tuple[Floats, Floats]:
        """Return P(noise <= z) and P(noise > z), both from positive terms."""
        below, above = self.mass_left * _decay(-1 - z, self.left), self.mass_right * _decay(z + 1, self.right)
        upto = self.mass_left + self.mass_right * _decayed(z + 1, self.right)
        beyond = self.mass_right + self.mass_left * _decayed(-1 - z, self.left)
        return np.where(z < 0, below, upto), np.where(z < 0, beyond, above)

    def quantile(self, p: float) -> int:
        return quantile_of(self, p, lowest=-ceil(760 * self.left) - 1, highest=ceil(760 * self.right))

    def mean(self) -> float:
        if self.right == self.left:
            return 0.0
        return self.mass_right * _mean(self.right) - self.mass_left * (1 + _mean(self.left))

    def variance(self) -> float:
        return _variance(self.right, self.left)

    @property
    def is_joint(self) -> bool:
        return False

    @property
    def reaches(self) -> tuple[bool, bool]:
        return self.left > 0, self.right > 0

    @property
    def is_even(self) -> bool:
        return self.right == self.left

    @property
    def name(self) -> str:
        if 0 in (self.left, self.right):
            return "one-sided geometric noise"
        return "discrete Laplace noise" if self.is_even else "two-scale noise"

    def on_sides(self, *, falls: bool, rises: bool) -> TwoScale:
        zero = Fraction(0)
        return TwoScale(self.right if falls else zero, self.left if rises else zero)

    def proven_loss(self, profiles: Iterable[tuple[int, int]], largest: int) -> Fraction | float:
        """Return the largest loss of steps with these (sum of falls, sum of rises)."""
        costs = []
        for fall, rise in profiles:
            if (fall and not self.right) or (rise and not self.left):
                return inf
            costs.append((Fraction(fall) / self.right if fall else 0) + (Fraction(rise) / self.left if rise else 0))
        return max(costs, default=Fraction(0)) + Fraction(0)

    @property
    def mass_left(self) -> float:
        """The probability that noise is negative."""
        return _masses(self.right, self.left)[1]

    @property
    def mass_right(self) -> float:
        """The probability that noise is zero or positive."""
        return _masses(self.right, self.left)[0]

    def draw(self, size: Size | None = None) -> int | Ints:
        """Draw: one number without `size`, else an int64 array of this shape."""
        count, stream = count_of(size), current_stream()
        if self.right == 0 and self.left > 0:
            return give_shape(-two_scale_sampler(self.left, self.right).draw(stream, count), size)
        return give_shape(two_scale_sampler(self.right, self.left).draw(stream, count), size)

    def draw_for(self, shape: tuple[int, ...]) -> Ints:
        """Draw noise for each entry by itself."""
        return np.asarray(self.draw(shape), dtype=np.int64)

    def widened(self, times: int) -> TwoScale | None:
        """Return the law with scales that are so many times as large; None where these cannot be drawn."""
        most = times * max(self.right, self.left)
        return TwoScale(times * self.right, times * self.left) if most <= LARGEST_SCALE else None

    def widening(self, times: int, shape: tuple[int, ...]) -> Ints:
        """Draw what makes noise of this law noise of the widened one: nothing, or one more than a geometric."""
        out = np.zeros(shape, dtype=np.int64)
        for scale, sign in ((self.right, 1), (self.left, -1)):
            if scale:
                wide = TwoScale(times * scale, Fraction(0))
                goes_on = wide.draw_for(shape) % times > 0
                out += sign * np.where(goes_on, 1 + wide.draw_for(shape), 0)
        return out


@overload
def discrete_laplace(scale: ScaleLike, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: ScaleLike, size: Size) -> Ints: ...
def discrete_laplace(scale: ScaleLike, size: Size | None = None) -> int | Ints:
    """Return integers z with P(z) proportional to exp(-|z| / scale): one without `size`, else an int64 array."""
    exact = as_scale(scale)
    return TwoScale(exact, exact).draw(size)


@overload
def geometric(scale: ScaleLike, size: None = None) -> int: ...
@overload
def geometric(scale: ScaleLike, size: Size) -> Ints: ...
def geometric(scale: ScaleLike, size: Size | None = None) -> int | Ints:
    """Return integers z >= 0 with P(z) proportional to exp(-z / scale): one-sided noise."""
    return TwoScale(as_scale(scale), Fraction(0)).draw(size)


@overload
def two_scale(right: ScaleLike, left: ScaleLike, size: None = None) -> int: ...
@overload
def two_scale(right: ScaleLike, left: ScaleLike, size: Size) -> Ints: ...
def two_scale(right: ScaleLike, left: ScaleLike, size: Size | None = None) -> int | Ints:
    """Return integers with P(z) proportional to exp(-z/right) for z >= 0 and exp(z/left) for z < 0; 0 is no side."""
    law = TwoScale(as_scale(right, key="right", zero=True), as_scale(left, key="left", zero=True))
    return law.draw(size)


def _miss(scale: Fraction) -> float:
    """Return 1 - exp(-1/scale): how likely a geometric is to be zero."""
    return -expm1(-float(1 / scale)) if scale else 1.0


def _hit(scale: Fraction) -> float:
    """Return exp(-1/scale): how likely a geometric is to be positive, and to go on."""
    return exp(-float(1 / scale)) if scale else 0.0


def _mean(scale: Fraction) -> float:
    """Return q/(1-q), the mean of a geometric."""
    return _hit(scale) / _miss(scale)


@lru_cache(maxsize=1024)  # asked for again and again, and made from fractions
def _masses(right: Fraction, left: Fraction) -> tuple[float, float]:
    """Return how likely noise of two scales is to be on the right (zero included) and on the left."""
    # The two sides are geometrics: z on the right, -1-z on the left. Their masses are in the ratio
    # 1/(1-q_right) : q_left/(1-q_left), written with 1-q = -expm1(-1/scale) so that large scales keep their digits.
    below = _hit(left) * _miss(right)
    return _miss(left) / (_miss(left) + below), below / (_miss(left) + below)


@lru_cache(maxsize=1024)
def _variance(right: Fraction, left: Fraction) -> float:
    """Return the variance of noise of two scales."""
    # Within the sides, then between them: positive terms only. A geometric has variance q / (1-q)^2.
    mass_right, mass_left = _masses(right, left)
    within = mass_right * _mean(right) / _miss(right)
    within += mass_left * _mean(left) / _miss(left)
    apart = _mean(right) + 1 + _mean(left)
    return within + mass_right * mass_left * apart**2


def _decay(z: Floats, scale: Fraction) -> Floats:
    """Return exp(-z/scale) for z >= 0 (one for negative z, which callers mask); at scale 0, one at zero only."""
    z = np.maximum(z, 0.0)
    return np.exp(-z / float(scale)) if scale else np.where(z == 0, 1.0, 0.0)


def _decayed(z: Floats, scale: Fraction) -> Floats:
    """Return 1 - exp(-z/scale), accurate where it is small."""
    z = np.maximum(z, 0.0)
    return -np.expm1(-z / float(scale)) if scale else np.where(z == 0, 0.0, 1.0)

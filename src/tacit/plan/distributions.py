"""Integer noise as mathematics: probabilities, moments, quantiles and losses, without any randomness.

Two shapes are enough for everything that Tacit adds to a count:

* `TwoScale`: one number; rises and falls of the query may have different heights.
* `Cube`: many numbers at once, of which one person moves any subset by one.

Both are frozen, hashable and public: a plan prints them, a certificate carries them, `mechanism.noise.sample` draws
from them. Scales are exact fractions, because the loss 1/scale is what a plan promises.

Accuracy: everything below is float64 computed from sums of positive terms or from functions that keep relative
accuracy in their tails. `TwoScale` is accurate to 1e-12, relative, for probabilities down to 1e-300. For `Cube` see
`tacit.plan.radius`: 1e-10 in most cases, 1e-8 in the upper tail for a million dimensions. A mean is accurate to
1e-12 of the larger scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, floor, inf, isfinite, log
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tacit.errors import PlanError, decimal_comma, is_word, kind_of
from tacit.plan.radius import FloatArray, IntArray, SmoothRadius, SummedRadius, radius_law

Sides = Literal["right", "left", "both"]
ScaleLike = int | float | str | Decimal | Fraction

SMALLEST_SCALE = Fraction(1, 100)
LARGEST_SCALE = Fraction(10**12)
MOST_DIMENSIONS = 10**6


def as_fraction(value: ScaleLike, *, key: str) -> Fraction:
    """Return the exact number that was written; a float means its shortest decimal form.

    What is given is looked at once, and a plain fraction is what goes on: a subclass of a number could be one value
    where it is charged and another where noise is made.

    >>> as_fraction(0.2, key="epsilon"), as_fraction("1/3", key="epsilon")
    (Fraction(1, 5), Fraction(1, 3))
    """
    fix = 'Write it as 2, 0.5, "1/3" or Fraction(1, 3).'
    if isinstance(value, Fraction):
        top, bottom = int(value.numerator), int(value.denominator)
        if not bottom:
            raise PlanError("must not divide by zero", key=key, fix=fix)
        return Fraction(top, bottom)
    if isinstance(value, (bool, np.bool_)):
        raise PlanError("must be a number", key=key, given=value, fix=fix)
    if isinstance(value, (int, np.integer)):
        return Fraction(int(value))
    if isinstance(value, (float, np.floating)):
        # str, not the binary value: whoever writes 0.2 means one fifth. str(np.float32(0.2)) is "0.2" as well.
        value = float.__repr__(value) if isinstance(value, float) else str(value)
    if not isinstance(value, (str, Decimal)):
        raise PlanError(f"must be a number, not {kind_of(value)}", key=key, fix=fix)
    plain = is_word(value) or isinstance(value, Decimal)  # before a text of some other class becomes a plain one
    value = str.__str__(value) if isinstance(value, str) else value
    parts = value.split("/") if isinstance(value, str) else [value]
    try:
        numbers = [Decimal(part) for part in parts]
    except InvalidOperation:
        numbers = []
    # The exponent is looked at before the fraction is formed: "1e999999999" would need a gigabyte.
    if len(numbers) not in (1, 2) or any(not x.is_finite() or (x and abs(x.adjusted()) > 400) for x in numbers):
        fix = decimal_comma(str(value)) or fix
        if plain:
            raise PlanError("must be a finite number", key=key, given=value, fix=fix)
        raise PlanError(f"must be a finite number, not {kind_of(value)}", key=key, fix=fix)
    if len(numbers) == 2 and not numbers[1]:
        raise PlanError("must not divide by zero", key=key, given=value, fix=fix)
    return Fraction(numbers[0]) / (Fraction(numbers[1]) if len(numbers) == 2 else 1)


def as_scale(value: ScaleLike, *, key: str = "scale", zero: bool = False) -> Fraction:
    """Return a scale as an exact fraction in [1/100, 10^12]; `zero` also allows 0, a side that carries nothing.

    >>> as_scale(0.2), as_scale("1/3"), as_scale(0, zero=True)
    (Fraction(1, 5), Fraction(1, 3), Fraction(0, 1))
    """
    scale = as_fraction(value, key=key)
    if zero and scale == 0:
        return scale
    if scale <= 0:
        rule = "must be zero or positive" if zero else "must be positive"
        raise PlanError(rule, key=key, given=value, fix="A scale is the step of the query divided by epsilon.")
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        fix = "Below, the noise is almost surely zero; above, it hides any count. Check epsilon and the units."
        raise PlanError("must lie between 0.01 and 10^12", key=key, given=value, fix=fix)
    return scale


@dataclass(frozen=True)
class TwoScale:
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
        """Return the law as plain, exact data."""
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

    def pmf(self, k: ArrayLike) -> FloatArray:
        """Return P(z = k)."""
        z = _integers(k).astype(np.float64)
        return np.where(
            z >= 0,
            self._mass_right * _miss(self.right) * _decay(z, self.right),
            self._mass_left * _miss(self.left) * _decay(-1 - z, self.left),
        )

    def cdf(self, k: ArrayLike) -> FloatArray:
        """Return P(z <= k)."""
        z = _integers(k).astype(np.float64)
        below, above = self._split(z)
        # The larger part is read as one minus the smaller, so that cdf and survival never contradict each other.
        return np.where(below < 0.5, below, 1 - above)

    def survival(self, k: ArrayLike) -> FloatArray:
        """Return P(z > k), accurate where it is small."""
        z = _integers(k).astype(np.float64)
        below, above = self._split(z)
        return np.where(below < 0.5, 1 - below, above)

    def _split(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return P(noise <= z) and P(noise > z), both from positive terms."""
        below, above = self._mass_left * _decay(-1 - z, self.left), self._mass_right * _decay(z + 1, self.right)
        upto = self._mass_left + self._mass_right * _decayed(z + 1, self.right)
        beyond = self._mass_right + self._mass_left * _decayed(-1 - z, self.left)
        return np.where(z < 0, below, upto), np.where(z < 0, beyond, above)

    def quantile(self, p: float) -> int:
        """Return the smallest k with P(z <= k) >= p, for 0 < p < 1."""
        return _quantile(self, p, lowest=-ceil(760 * self.left) - 1, highest=ceil(760 * self.right))

    def mean(self) -> float:
        """Return E z."""
        if self.right == self.left:
            return 0.0
        return self._mass_right * _mean(self.right) - self._mass_left * (1 + _mean(self.left))

    def variance(self) -> float:
        """Return E (z - E z)^2."""
        return _variance(self.right, self.left)

    def mean_absolute_error(self) -> float:
        """Return E |z - E z|."""
        # Twice the part on the side of the mean: E(z - mean; z >= k) = P(z >= k) (k - mean + E geometric), k >= mean.
        mean = self.mean()
        if mean >= 0:
            k = ceil(mean)
            return 2 * float(self.survival(k - 1)) * (k - mean + _mean(self.right))
        k = max(1, ceil(-mean))
        return 2 * float(self.cdf(-k)) * (k + mean + _mean(self.left))

    @property
    def _mass_left(self) -> float:
        return _masses(self.right, self.left)[1]

    @property
    def _mass_right(self) -> float:
        return _masses(self.right, self.left)[0]


@dataclass(frozen=True)
class Cube:
    """Noise on a vector of integers with joint weight exp(-max_i |x_i| / scale).

    `sides` restricts it to x >= 0 ("right"), x <= 0 ("left") or to nothing ("both"). Methods that take or return one
    number speak about one coordinate; all coordinates have the same law.

    >>> Cube(Fraction(2), 3, "right").loss([-1, 0, -1]), Cube(Fraction(2), 3, "right").loss([1, 0, 0])
    (Fraction(1, 2), inf)
    """

    scale: Fraction
    dimensions: int
    sides: Sides

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_scale(self.scale))
        if self.sides not in ("right", "left", "both"):
            raise PlanError('must be "right", "left" or "both"', key="sides", given=self.sides)
        whole = isinstance(self.dimensions, (int, np.integer)) and not isinstance(self.dimensions, bool)
        if not whole or not 1 <= self.dimensions <= MOST_DIMENSIONS:
            fix = "Ask for fewer counts at once, or split the query."
            raise PlanError(
                "must be a whole number from 1 to 1000000", key="dimensions", given=self.dimensions, fix=fix
            )
        object.__setattr__(self, "dimensions", int(self.dimensions))

    def loss(self, step: Sequence[int]) -> Fraction | float:
        """Return the worst log likelihood ratio hidden : cover when q(cover) - q(hidden) = step; inf if unbounded."""
        if len(step) != self.dimensions:
            raise PlanError(f"must have {self.dimensions} numbers", key="step", given=len(step))
        leaves = (self.sides == "right" and max(step) > 0) or (self.sides == "left" and min(step) < 0)
        return inf if leaves else max(abs(part) for part in step) / self.scale

    def log_weight(self, points: ArrayLike) -> FloatArray:
        """Return the logarithm of the joint weight of points (last axis: coordinates), -inf outside the support."""
        x = _integers(points)
        outside = np.zeros(x.shape[:-1], dtype=bool)
        if self.sides != "both":
            outside = np.any(x < 0 if self.sides == "right" else x > 0, axis=-1)
        return np.where(outside, -np.inf, -np.max(np.abs(x), axis=-1) / float(self.scale))

    def document(self) -> dict[str, Any]:
        """Return the law as plain, exact data."""
        return {
            "shape": "cube",
            "scale": str(self.scale),
            "dimensions": self.dimensions,
            "sides": self.sides,
            "standard_deviation": self.variance() ** 0.5,
        }

    def joint_log_pmf(self, points: ArrayLike) -> float:
        """Return the logarithm of the probability that one draw has exactly these coordinates."""
        # A radius m has probability n^d q^m / W with n values per coordinate; W is read off at the mode. All radii from
        # max|x| on lead to x: P(x) = q^max|x| / ((1 - q) W).
        m = floor(self.dimensions * self.scale)
        values = 2 * m + 1 if self.sides == "both" else m + 1
        log_total = self.dimensions * log(values) - m / float(self.scale) - log(float(self.radius_pmf(m)))
        return float(self.log_weight(points)) - log(_miss(self.scale)) - log_total

    def radius_pmf(self, m: ArrayLike) -> FloatArray:
        """Return P(m) of the radius of the mixture: weight (m+1)^d q^m, or (2m+1)^d q^m with both signs."""
        return self._radius().mass(_integers(m))

    def pmf(self, k: ArrayLike) -> FloatArray:
        """Return P(x_i = k)."""
        x = self._rightward(k)
        if self.sides == "both":
            return self._radius().tail(-1, np.abs(x)) / 2
        return np.where(x >= 0, self._radius().tail(-1, np.maximum(x, 0)), 0.0)

    def cdf(self, k: ArrayLike) -> FloatArray:
        """Return P(x_i <= k)."""
        if self.sides == "left":
            return self._above(-1 - _integers(k))
        return self._at_most(_integers(k))

    def survival(self, k: ArrayLike) -> FloatArray:
        """Return P(x_i > k), accurate where it is small."""
        if self.sides == "left":
            return self._at_most(-1 - _integers(k))
        return self._above(_integers(k))

    def quantile(self, p: float) -> int:
        """Return the smallest k with P(x_i <= k) >= p, for 0 < p < 1."""
        reach = self._radius().highest() + 1
        lowest = -1 if self.sides == "right" else -reach - 1
        return _quantile(self, p, lowest=lowest, highest=0 if self.sides == "left" else reach)

    def mean(self) -> float:
        """Return E x_i."""
        if self.sides == "both":
            return 0.0
        half = self._radius().moments()[0] / 2
        return half if self.sides == "right" else -half

    def variance(self) -> float:
        """Return E (x_i - E x_i)^2."""
        # A uniform choice among n values in a row has variance (n^2 - 1)/12; n = m+1, or 2m+1 around a fixed centre.
        first, second, _ = self._radius().moments()
        if self.sides == "both":
            return (second + first) / 3
        return (second + 2 * first) / 12 + (second - first**2) / 4

    def mean_absolute_error(self) -> float:
        """Return E |x_i - E x_i|."""
        if self.sides == "both":
            return self._radius().moments()[2]  # the mean of |x| over -m..m is m(m+1)/(2m+1)
        # n = m + 1 values 0..m, and K = floor(mean) + 1 of all values lie at or below the mean. The mean of |x - mean|
        # is mean - (n-1)/2 for n <= K, and (2 K mean - K(K-1))/n + (n-1)/2 - mean beyond. The two parts with (n-1)/2
        # - mean have equal expectations, because the whole has expectation zero.
        mean = abs(self.mean())
        k = np.asarray(floor(mean) + 1)
        beyond = float(self._radius().tail(1, k)) / 2 - (mean + 0.5) * float(self._radius().tail(0, k))
        return 2 * beyond + (2 * int(k) * mean - int(k) * (int(k) - 1)) * float(self._radius().tail(-1, k))

    def _radius(self) -> SummedRadius | SmoothRadius:
        return radius_law(self.scale, self.dimensions, both_signs=self.sides == "both")

    def _rightward(self, k: ArrayLike) -> IntArray:
        return -_integers(k) if self.sides == "left" else _integers(k)

    def _at_most(self, x: IntArray) -> FloatArray:
        if self.sides == "both":
            below = self._radius().excess(np.maximum(-1 - x, 0)) / 2
            return np.where(x < 0, below, 1 - self._radius().excess(np.maximum(x, 0)) / 2)
        below, above = self._split(x)
        return np.where(below < 0.5, below, 1 - above)

    def _above(self, x: IntArray) -> FloatArray:
        if self.sides == "both":
            return self._at_most(-1 - x)
        below, above = self._split(x)
        return np.where(below < 0.5, 1 - below, above)

    def _split(self, x: IntArray) -> tuple[FloatArray, FloatArray]:
        # Both parts are accurate where they are small; the larger one is always read as one minus the smaller, so
        # that cdf and survival never contradict each other.
        inside = np.maximum(x, 0)
        radius = self._radius()
        return np.where(x < 0, 0.0, radius.within(inside)), np.where(x < 0, 1.0, radius.excess(inside))


Distribution = TwoScale | Cube


def _integers(k: ArrayLike) -> IntArray:
    values = np.asarray(k)
    if values.dtype.kind not in "iu":
        message = "noise takes integer values: ask about integers"
        raise TypeError(message)
    return values.astype(np.int64)


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


def _decay(z: FloatArray, scale: Fraction) -> FloatArray:
    """Return exp(-z/scale) for z >= 0 (one for negative z, which callers mask); at scale 0, one at zero only."""
    z = np.maximum(z, 0.0)
    return np.exp(-z / float(scale)) if scale else np.where(z == 0, 1.0, 0.0)


def _decayed(z: FloatArray, scale: Fraction) -> FloatArray:
    """Return 1 - exp(-z/scale), accurate where it is small."""
    z = np.maximum(z, 0.0)
    return -np.expm1(-z / float(scale)) if scale else np.where(z == 0, 0.0, 1.0)


def _quantile(law: Distribution, p: float, *, lowest: int, highest: int) -> int:
    if not (isfinite(p) and 0 < p < 1):
        raise PlanError("must lie strictly between 0 and 1", key="p", given=p)

    # Near one P(z > k) still has digits where P(z <= k) has none left; 1 - p is exact from one half on.
    def reached(k: int) -> bool:
        return bool(law.cdf(k) >= p and (p < 0.5 or law.survival(k) <= 1 - p))

    while highest - lowest > 1:
        middle = (lowest + highest) // 2
        lowest, highest = (lowest, middle) if reached(middle) else (middle, highest)
    return highest

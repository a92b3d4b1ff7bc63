"""The law of the radius behind cube noise: expectations, without any randomness.

A cube of noise is a mixture. Draw a radius m = 0, 1, 2, .. with probability proportional to

    (m + c)^d exp(-m / scale),     c = 1 for one orthant (m + 1 values), c = 1/2 for all signs (2m + 1 values)

and then every coordinate uniformly among the values that the radius allows. Whatever one coordinate does is
therefore an expectation over u = m + c, and four of them are enough: `mass`, `tail`, `excess`, `within`.

Two ways to compute them, chosen by how many radii carry probability above exp(-760) of the largest one (all that a
float can hold):

* `SummedRadius`, up to 2^18 radii: sums of positive terms. Relative error below 1e-11, tails included.
* `SmoothRadius`, beyond: the sum is an integral (an incomplete gamma function) plus its Euler-Maclaurin correction.
  The term left out is about scale^-6 / 30000 and the scale is at least six there (375 for small d, where the law is
  steepest), so rounding decides: relative error below 1e-11, except for the upper tail of one
  coordinate (`excess`, a difference): 1e-10 for d <= 1000 and 1e-8 for d = 10^6, down to probabilities of 1e-200.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import exp, floor, lgamma, log, pi, sqrt

import numpy as np

from tacit.arrays import Floats, Ints

# exp(-745) is the smallest positive float: what lies further down cannot be seen in a probability.
_DEPTH = 760.0
_MOST_SUMMED = 1 << 18


class SummedRadius:
    """Expectations over the radius as sums over every radius that matters."""

    def __init__(self, scale: Fraction, dimensions: int, shift: float, lowest: int, highest: int) -> None:
        self._shift, self._lowest, self._highest = shift, lowest, highest
        u = np.arange(lowest, highest + 1, dtype=np.float64) + shift
        weight = np.exp(_log_weight(u, float(scale), dimensions, shift))
        weight /= weight.sum()
        self._u, self._weight = u, weight
        # Added up from the far end, so that a tail keeps its own relative accuracy. One entry more than radii: the
        # empty sum, for everything above the highest radius.
        self._tails = {power: _suffix_sums(weight * u**power) for power in (-2, -1, 0, 1, 2)}
        # E[(m-k)^+ / u] = sum over j >= k of E[1/u; m > j]: adding tails avoids the difference of two large sums.
        self._excess = np.append(_suffix_sums(self._tails[-1])[1:], 0.0)
        self._below = np.append(0.0, np.cumsum(weight))

    def moments(self) -> tuple[float, float]:
        """Return E m and E m^2."""
        m = self._u - self._shift
        return float(np.sum(self._weight * m)), float(np.sum(self._weight * m**2))

    def mass(self, radius: Ints) -> Floats:
        """Return P(m = radius)."""
        inside = (radius >= self._lowest) & (radius <= self._highest)
        return np.where(inside, self._weight[np.where(inside, radius - self._lowest, 0)], 0.0)

    def tail(self, power: int, radius: Ints) -> Floats:
        """Return E[u^power; m >= radius], the expectation over that part only."""
        return self._tails[power][self._place(radius)]

    def excess(self, radius: Ints) -> Floats:
        """Return E[max(m - radius, 0) / u] for radius >= 0: how often a coordinate of one orthant lies above."""
        place = self._place(radius)
        under = np.maximum(self._lowest - radius, 0).astype(np.float64)
        return np.asarray(self._excess[place] + under * self._tails[-1][0], dtype=np.float64)

    def within(self, radius: Ints) -> Floats:
        """Return 1 - excess(radius), accurate where it is small."""
        reached = self._below[np.clip(radius + 1 - self._lowest, 0, self._below.size - 1)]
        return reached + (radius + self._shift) * self.tail(-1, radius + 1)

    def highest(self) -> int:
        """Return a radius above which no float sees any probability."""
        return self._highest

    def _place(self, radius: Ints) -> Ints:
        return np.clip(radius - self._lowest, 0, self._weight.size)


class SmoothRadius:
    """Expectations over the radius when so many radii matter that sum and integral differ by a short series."""

    def __init__(self, scale: Fraction, dimensions: int, shift: float, highest: int) -> None:
        self._scale, self._d, self._shift, self._highest = float(scale), dimensions, shift, highest
        # The total weight in units of scale^(d+1) d!, less one: zero but for a correction of order scale^-2.
        start = (shift - 0.5) / self._scale
        self._total_less_one = float(self._correction(dimensions, start) - _lower(dimensions + 1, start))

    def moments(self) -> tuple[float, float]:
        """Return E m and E m^2."""
        c, all_of_it = self._shift, np.asarray(0)
        first, second = (float(self.tail(power, all_of_it)) for power in (1, 2))
        return first - c, second - 2 * c * first + c * c

    def mass(self, radius: Ints) -> Floats:
        """Return P(m = radius)."""
        x = np.maximum(radius + self._shift, self._shift) / self._scale
        return np.where(radius >= 0, _poisson(self._d, x) / self._scale, 0.0) / (1 + self._total_less_one)

    def tail(self, power: int, radius: Ints) -> Floats:
        """Return E[u^power; m >= radius], the expectation over that part only."""
        a = self._d + power
        # Midpoint rule: sum of f(u) over u >= U is the integral from U - 1/2 on, plus f'/24 - 7 f'''/5760 there.
        start = (np.maximum(radius, 0) + (self._shift - 0.5)) / self._scale
        integral = _upper(a + 1, start) + self._correction(a, start)
        # scale^(a+1) a! / (scale^(d+1) d!)
        d = float(self._d)
        pairs = 1 / (d * (d - 1)) if power == -2 else 0.0  # there are none in one dimension, where nobody asks
        units = self._scale**power * {-2: pairs, -1: 1 / d, 0: 1, 1: d + 1, 2: (d + 1) * (d + 2)}[power]
        return np.asarray(integral * units / (1 + self._total_less_one))

    def excess(self, radius: Ints) -> Floats:
        """Return E[max(m - radius, 0) / u] for radius >= 0: how often a coordinate of one orthant lies above."""
        y: Floats = np.asarray((radius + self._shift) / self._scale, dtype=np.float64)
        above = _upper(self._d + 1, y) - (y / self._d) * _upper(self._d, y)
        return np.asarray(np.maximum((above - self._kink(y)) / (1 + self._total_less_one), 0.0))

    def within(self, radius: Ints) -> Floats:
        """Return 1 - excess(radius), accurate where it is small."""
        y: Floats = np.asarray((radius + self._shift) / self._scale, dtype=np.float64)
        below = _lower(self._d + 1, y) + (y / self._d) * _upper(self._d, y)
        return np.asarray((below + self._kink(y) + self._total_less_one) / (1 + self._total_less_one))

    def highest(self) -> int:
        """Return a radius above which no float sees any probability."""
        return self._highest

    def _correction(self, a: int, x: Floats | float) -> Floats:
        # With f = x^a e^-x / a!, the j-th derivative is an alternating sum of Poisson weights of a, a-1, .., a-j.
        first = _poisson(a - 1, x) - _poisson(a, x)
        third = _poisson(a - 3, x) - 3 * _poisson(a - 2, x) + 3 * _poisson(a - 1, x) - _poisson(a, x)
        return np.asarray(first / (24 * self._scale**2) - 7 * third / (5760 * self._scale**4))

    def _kink(self, y: Floats) -> Floats:
        # Trapezoid rule for h(u) = (u - b) u^(d-1) e^(-u/scale) from its zero at b on: h'/12 - h'''/720 at b.
        d = self._d
        second = _poisson(d - 3, y) - 2 * _poisson(d - 2, y) + _poisson(d - 1, y)
        slope = _poisson(d - 1, y) / (12 * d * self._scale**2)
        return np.asarray(slope - 3 * second / (720 * d * self._scale**4))


@lru_cache(maxsize=8)
def radius_law(scale: Fraction, dimensions: int, *, both_signs: bool) -> SummedRadius | SmoothRadius:
    """Return the law of the radius of a cube; at most eight are kept, each below 17 MB."""
    shift = 0.5 if both_signs else 1.0
    mode = max(0, floor(dimensions * scale))
    lowest = _edge(scale, dimensions, shift, mode, upward=False)
    highest = _edge(scale, dimensions, shift, mode, upward=True)
    if highest - lowest < _MOST_SUMMED:
        return SummedRadius(scale, dimensions, shift, lowest, highest)
    return SmoothRadius(scale, dimensions, shift, highest)


def _log_weight(u: Floats, scale: float, d: int, shift: float) -> Floats:
    # Relative to the peak at u = d * scale. log1p keeps the digits that d * log(u) would lose when d is large.
    peak = max(shift, d * scale)
    away = (u - peak) / peak
    ratio = np.where(away > -0.5, np.log1p(np.maximum(away, -0.5)), np.log(u / peak))
    return np.asarray(d * ratio - (u - peak) / scale)


def _edge(scale: Fraction, d: int, shift: float, mode: int, *, upward: bool) -> int:
    """Return the last radius on one side of the mode whose weight a float can hold beside the largest."""

    def seen(radius: int) -> bool:
        return float(_log_weight(np.float64(radius + shift), float(scale), d, shift)) > -_DEPTH  # type: ignore[arg-type]

    if not upward and seen(0):
        return 0
    direction, near, far = (1, mode, mode + 1) if upward else (-1, mode, 0)
    while upward and seen(far):
        near, far = far, mode + 2 * (far - mode)
    while abs(far - near) > 1:
        middle = (near + far) // 2
        near, far = (middle, far) if seen(middle) else (near, middle)
    return near + direction if upward else near


def _suffix_sums(terms: Floats) -> Floats:
    return np.append(np.cumsum(terms[::-1])[::-1], 0.0)


def _poisson(a: int, x: Floats | float) -> Floats:
    """Return x^a e^-x / a!, zero for negative a."""
    x = np.asarray(x, dtype=np.float64)
    if a < 0:
        return np.zeros_like(x)
    if a < 16:
        return np.asarray(x**a * np.exp(-x) / exp(lgamma(a + 1)))
    # Stirling around x = a: the two large terms of a*log(x) - log(a!) never appear.
    stirling = 1 / (12 * a) - 1 / (360 * a**3) + 1 / (1260 * a**5) - 1 / (1680 * a**7)
    away = (x - a) / a
    with np.errstate(divide="ignore"):
        ratio = np.where(away > -0.5, np.log1p(np.maximum(away, -0.5)), np.log(x / a))
    return np.asarray(np.exp(a * ratio - (x - a) - stirling - log(sqrt(2 * pi * a))))


def _upper(a: int, x: Floats | float) -> Floats:
    from scipy.special import gammaincc  # takes longer to load than most plans to be made, and few need it

    return np.asarray(gammaincc(a, x), dtype=np.float64)


def _lower(a: int, x: Floats | float) -> Floats:
    from scipy.special import gammainc

    return np.asarray(gammainc(a, x), dtype=np.float64)

"""The radius of a cube of noise: expectations over its law, and exact draws of it, for up to a million dimensions.

A cube of noise is a mixture: a radius m = 0, 1, 2, .. has a probability proportional to

    (m + c)^d exp(-m / scale),     c = 1 for one orthant (m + 1 values), c = 1/2 for all signs (2m + 1 values)

and then every coordinate is uniform among the values that the radius allows. So whatever one coordinate does is an
expectation over u = m + c, and four of them are enough: `mass`, `tail`, `excess`, `within`. How they are computed
depends on how many radii have a probability above exp(-760) of the largest one, all that a float can hold:

* `SummedRadius`, up to 2^18 radii: sums of positive terms. Relative error below 1e-11, tails included.
* `SmoothRadius`, beyond: the sum is an integral (an incomplete gamma function) plus its Euler-Maclaurin correction.
  The term left out is about scale^-6 / 30000 and the scale is at least six there (375 for small d, where the law is
  steepest), so rounding decides: relative error below 1e-11, except for the upper tail of one
  coordinate (`excess`, a difference): 1e-10 for d <= 1000 and 1e-8 for d = 10^6, down to probabilities of 1e-200.

Guarantee   Draws: P(m) is proportional to (m + c)^d exp(-m/scale) up to 2^-170 in total variation. How many attempts a
            draw takes says nothing about the radius that is returned.
Assumes     Uniform words from `keystream`; scale in [1/100, 10^12] and d in 1 .. 10^6, both public.
Why         Few radii: a table (`draws.LazyTable`) of 192-bit thresholds from 100-digit decimals.
            Many radii: rejection. The log weight g is concave with its peak near u = m + c = d * scale and a width of
            about w = scale * sqrt(d + 1). Propose the peak plus two-sided geometric noise of scale w (exact, from
            `draws`) and accept with probability exp(g(m) - g(peak) + |m - peak|/w - L), where L is at least the
            maximum of the other terms. On each side of the peak that maximum is where the derivative
            d/u - 1/scale +- 1/w vanishes, a closed form. For large d the law is nearly normal, L = 1/2 and 76 % are
            accepted; 57 % for d = 1.
            The coin compares 64 uniform bits with a float and a bound on its error; when the two cannot be told apart
            (less than once in 10^8) 192 bits are compared with a 110-digit decimal. So no float ever decides.
Reference   Devroye, Non-Uniform Random Variate Generation (1986), sections II.3 and VII.2 (log-concave laws).
Checked by  tests/unit/noise/test_noise.py, tests/unit/noise/test_distributions.py, tests/statistical/test_noise.py.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, floor, lgamma, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ints
from tacit.noise.draws import KEPT_BITS, LazyTable, TabledDraws, chunks, two_scale_sampler
from tacit.noise.keystream import Keystream

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


# Weights below 2^-200 of the largest are left out of a table; since the law is log-concave, all of them together weigh
# less than 2^-183.
_TABLE_DEPTH = 200 * log(2)
_LARGEST_TABLE = 4096


class RejectedRadius:
    """Radii by rejection from a two-sided geometric around the peak."""

    def __init__(self, scale: Fraction, dimensions: int, *, both_signs: bool) -> None:
        self._scale, self._d = scale, dimensions
        # Sizes are kept as whole numbers: n = m + 1, or n = 2m + 1 = 2u.
        self._step, self._offset = (2, 1) if both_signs else (1, 1)
        self._peak = max(0, floor(dimensions * scale - Fraction(self._offset, self._step)))
        self._width = ceil(float(scale) * sqrt(dimensions + 1))
        self._proposal = two_scale_sampler(Fraction(self._width), Fraction(self._width))
        # Peak below 10^18 and proposal below 2 * 10^17, both signs double it: 3e18 at most, inside int64.
        self.largest = self._peak + 128 * self._width + 256
        self._bound = self._log_bound()

    def draw(self, stream: Keystream, count: int) -> Ints:
        """Return `count` radii."""
        out = np.empty(count, np.int64)
        for part in chunks(count):
            missing = np.arange(part.start, part.stop)
            while missing.size:
                away = self._proposal.draw(stream, missing.size)
                accepted = self.accept(stream, away)
                out[missing[accepted]] = self._peak + away[accepted]
                missing = missing[~accepted]
        return out

    def accept(self, stream: Keystream, away: Ints) -> NDArray[np.bool_]:
        """Toss the coin of every proposal peak + away."""
        words = stream.words(np.uint64, away.size)
        uniform = words * 2.0**-64
        chance, error = self._chance(away)
        accepted = uniform < chance
        for i in np.flatnonzero(np.abs(uniform - chance) <= error):
            accepted[i] = (int(words[i]) << 128 | stream.bits(128)) < self.exact_chance(int(away[i]))
        return accepted & (away >= -self._peak)

    def _chance(self, away: Ints) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        size_at_peak = self._step * self._peak + self._offset
        size = np.maximum(self._step * (self._peak + away) + self._offset, 1)
        change = self._step * away / size_at_peak
        # Far below the peak 1 + change loses its digits and the quotient does not; near the peak it is the other way.
        ratio = np.where(change > -0.5, np.log1p(np.maximum(change, -0.5)), np.log(size / size_at_peak))
        growth, decay, lift = self._d * ratio, away / float(self._scale), np.abs(away) / self._width
        chance = np.exp(np.minimum(growth - decay + lift - float(self._bound), 0.0))
        # Every term is off by a few units of 2^-53 of its size: 2^-48 allows for thirty. Another 2^-48 covers the
        # rounding of exp and of the 64-bit word.
        error = 2.0**-48 * (2 + chance * (np.abs(growth) + np.abs(decay) + lift + 1))
        return chance, error

    def exact_chance(self, away: int) -> int:
        """Return the probability of acceptance in units of 2^-192, from 110 digits."""
        size_at_peak = self._step * self._peak + self._offset
        size = self._step * (self._peak + away) + self._offset
        if size <= 0:
            return 0
        with localcontext() as context:
            context.prec = 110  # the terms stay below 10^8 and 2^192 has 58 digits: more than 40 to spare
            growth = self._d * (Decimal(size) / size_at_peak).ln()
            decay = Decimal(away) * self._scale.denominator / self._scale.numerator
            exponent = growth - decay + Decimal(abs(away)) / self._width - self._bound
            return int(exponent.exp() * (1 << KEPT_BITS))

    def _log_bound(self) -> Decimal:
        """Return L: no proposal is accepted with probability above one."""
        with localcontext() as context:
            context.prec = 60
            scale = Decimal(self._scale.numerator) / self._scale.denominator
            start = Decimal(self._peak) + Decimal(self._offset) / self._step
            bound = Decimal(0)
            for sign in (1, -1):
                # d log(u/start) - (u-start)/scale + sign (u-start)/width is largest at u = d / (1/scale - sign/width);
                # if that lies on the other side of the start, the maximum of this side is the zero at the start.
                u = self._d / (1 / scale - Decimal(sign) / self._width)
                if (u - start) * sign > 0:
                    top = self._d * (u / start).ln() - (u - start) / scale + sign * (u - start) / self._width
                    bound = max(bound, top)
            # Up, with room for the rounding of 60 digits.
            return (bound + Decimal("1e-9")).quantize(Decimal("1e-9"), rounding=ROUND_CEILING)


@lru_cache(maxsize=32)
def radius_sampler(scale: Fraction, dimensions: int, *, both_signs: bool) -> TabledDraws | RejectedRadius:
    """Return a sampler for the radius of a cube; each holds below 1 MB of tables."""
    shift = 0.5 if both_signs else 1.0
    peak = max(0, floor(dimensions * scale))
    # Within 2^-200 of a law with standard deviation w lie at least 2 * 16 w radii, so a wide one needs no search.
    if float(scale) * sqrt(dimensions + 1) < _LARGEST_TABLE:
        inside = _inside(float(scale), dimensions, shift, peak)
        if inside is not None:
            thresholds = _thresholds(scale, dimensions, *inside, both_signs=both_signs)
            return TabledDraws(LazyTable(thresholds, first=inside[0]))
    return RejectedRadius(scale, dimensions, both_signs=both_signs)


def _inside(scale: float, d: int, shift: float, peak: int) -> tuple[int, int] | None:
    """Return the first and last radius above 2^-200 of the largest weight, None if they are too many for a table."""
    u = np.arange(max(0, peak - _LARGEST_TABLE), peak + _LARGEST_TABLE + 1) + shift
    log_weight = d * np.log(u / (peak + shift)) - (u - peak - shift) / scale
    kept = np.flatnonzero(log_weight > np.max(log_weight) - _TABLE_DEPTH)
    lowest, highest = round(u[kept[0]] - shift), round(u[kept[-1]] - shift)
    if highest - lowest >= _LARGEST_TABLE or highest == peak + _LARGEST_TABLE:
        return None
    return lowest, highest


def _thresholds(scale: Fraction, d: int, lowest: int, highest: int, *, both_signs: bool) -> list[int]:
    with localcontext() as context:
        # 2^192 has 58 digits; a power loses 7 (d = 10^6), the running product and the sum 4 each.
        context.prec = 100
        q = (-Decimal(scale.denominator) / scale.numerator).exp()
        step = 2 if both_signs else 1
        middle = Decimal(step * ((lowest + highest) // 2) + 1)  # divides every size: powers stay moderate
        weights, decay = [], Decimal(1)
        for m in range(lowest, highest + 1):
            weights.append(((step * m + 1) / middle) ** d * decay)
            decay *= q
        total, running, thresholds = sum(weights), Decimal(0), []
        for weight in weights[:-1]:
            running += weight
            thresholds.append(int(running * (1 << KEPT_BITS) / total))
        return thresholds

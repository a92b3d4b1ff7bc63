"""Exact draws of the radius of a cube of noise, for every scale and up to a million dimensions.

Guarantee   P(m) is proportional to (m + c)^d exp(-m/scale), c = 1 (one orthant) or 1/2 (all signs), up to 2^-170 in
            total variation. How many attempts a draw takes says nothing about the radius that is returned.
Assumes     Uniform words from `keystream`; scale in [1/100, 10^12] and d in 1 .. 10^6, both public.
Why         Few radii: a table (`tables.LazyTable`) of 192-bit thresholds from 100-digit decimals.
            Many radii: rejection. The log weight g is concave with its peak near u = m + c = d * scale and a width of
            about w = scale * sqrt(d + 1). Propose the peak plus two-sided geometric noise of scale w (exact, from
            `tables`) and accept with probability exp(g(m) - g(peak) + |m - peak|/w - L), where L is at least the
            maximum of the other terms. On each side of the peak that maximum is where the derivative
            d/u - 1/scale +- 1/w vanishes, a closed form. For large d the law is nearly normal, L = 1/2 and 76 % are
            accepted; 57 % for d = 1.
            The coin compares 64 uniform bits with a float and a bound on its error; when the two cannot be told apart
            (less than once in 10^8) 192 bits are compared with a 110-digit decimal. So no float ever decides.
Reference   Devroye, Non-Uniform Random Variate Generation (1986), sections II.3 and VII.2 (log-concave laws).
Checked by  tests/unit/noise/test_noise.py, tests/statistical/test_noise.py.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, log, sqrt

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Ints
from tacit.noise.keystream import Keystream
from tacit.noise.tables import KEPT_BITS, LazyTable, chunks, two_scale_sampler

# Weights below 2^-200 of the largest are left out of a table; since the law is log-concave, all of them together weigh
# less than 2^-183.
_TABLE_DEPTH = 200 * log(2)
_LARGEST_TABLE = 4096


class TabledRadius:
    """Radii from one table."""

    def __init__(self, scale: Fraction, dimensions: int, lowest: int, highest: int, *, both_signs: bool) -> None:
        self._table = LazyTable(_thresholds(scale, dimensions, lowest, highest, both_signs=both_signs), first=lowest)
        self.largest = highest

    def draw(self, stream: Keystream, count: int) -> Ints:
        """Return `count` radii."""
        out = np.empty(count, np.int64)
        for part in chunks(count):
            out[part] = self._table.draw(stream, out[part].size)
        return out


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
def radius_sampler(scale: Fraction, dimensions: int, *, both_signs: bool) -> TabledRadius | RejectedRadius:
    """Return a sampler for the radius of a cube; each holds below 1 MB of tables."""
    shift = 0.5 if both_signs else 1.0
    peak = max(0, floor(dimensions * scale))
    # Within 2^-200 of a law with standard deviation w lie at least 2 * 16 w radii, so a wide one needs no search.
    if float(scale) * sqrt(dimensions + 1) < _LARGEST_TABLE:
        inside = _inside(float(scale), dimensions, shift, peak)
        if inside is not None:
            return TabledRadius(scale, dimensions, *inside, both_signs=both_signs)
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

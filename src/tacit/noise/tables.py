"""Exact draws from integer laws by a table that is refined only where it must be.

Guarantee   A draw differs from the stated law by less than 2^-170 in total variation, given uniform words. How much
            work a draw takes does not depend on the value drawn (up to an event of probability below 1e-18 per 32,768
            draws and to what the caches of the processor show).
Assumes     Uniform words from `keystream`. Scales are exact fractions.
Why         Inverse distribution function: the value is the number of thresholds P(z <= k) that a uniform 192-bit number
            U has reached. The first 16 bits of U settle almost every draw, because their bucket holds no threshold;
            the rest gets 48 more bits, and 128 more when 64 bits equal those of a threshold. Thresholds are computed
            with 256 bits or more and cut to 192, so each is off by less than 2^-191; there are fewer than 2^18 of them,
            and the tails left out weigh less than 2^-183: 2^18 * 2^-191 + 2^-183 < 2^-170.
            Large scales: the digits of a geometric are independent, since exp(-(a + 256 b)/s) is a product. So the
            last digits come from one table each, and what remains is geometric with scale s/256, s/65536, ..
Reference   Devroye, Non-Uniform Random Variate Generation (1986), chapters III.2 and X.2; Canonne, Kamath, Steinke,
            The Discrete Gaussian for Differential Privacy, arXiv:2004.00010 (exact discrete Laplace).
Checked by  tests/unit/noise/test_noise.py, tests/statistical/test_noise.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Ints
from tacit.noise.keystream import Keystream

KEPT_BITS = 192
GUARD_BITS = 64
# Words per round: 64 kB of words and as much of results stay in the nearest caches.
CHUNK = 1 << 15
# A direct table is fastest while few buckets hold a threshold (2 % at scale 100 with both signs, 14 % at 1000);
# beyond, one more digit costs less than refining.
LARGEST_DIRECT_SCALE = 120
_DIGIT_BITS = 8
_ONE = 1 << (KEPT_BITS + GUARD_BITS)
_LOW_BITS = (1 << 64) - 1


class LazyTable:
    """Values first, first+1, .. with P(value <= first + i) = thresholds[i] / 2^192; the last value takes the rest."""

    def __init__(self, thresholds: Sequence[int], first: int) -> None:
        thresholds = [t for t in thresholds if t < 1 << KEPT_BITS]
        last = first + len(thresholds)
        # The lowest number of the type marks a bucket that needs refining, so no value may equal it.
        kind: Any = next(
            k for k in (np.int16, np.int32, np.int64) if np.iinfo(k).min < first and last <= np.iinfo(k).max
        )
        self.first, self.last = first, last
        self._unsettled = kind(np.iinfo(kind).min)
        self._top64 = np.array([t >> 128 for t in thresholds], np.uint64)
        self._low128 = np.array([[(t >> 64) & _LOW_BITS, t & _LOW_BITS] for t in thresholds], np.uint64).reshape(-1, 2)
        start = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
        below = np.searchsorted(self._top64, start, "left")
        upto = np.searchsorted(self._top64, start + np.uint64((1 << 48) - 1), "right")
        self._root: NDArray[Any] = (first + below).astype(kind)
        self._root[below != upto] = self._unsettled
        self.refined_share = float(np.mean(below != upto))

    def draw(self, stream: Keystream, count: int) -> NDArray[Any]:
        """Return `count` <= CHUNK draws in the smallest type that holds them."""
        words = stream.words(np.uint16, count)
        values = np.take(self._root, words, mode="wrap")  # "wrap" skips a bounds check that 16 bits cannot fail
        unsettled = np.flatnonzero(values == self._unsettled)
        # Always refine the same number of words and forget what was not needed: otherwise the time of a draw would
        # tell whether it lies near a threshold or in the tail. Ten standard deviations above the mean, and every
        # word of a small draw.
        expected = count * self.refined_share
        quota = min(count, ceil(expected + 10 * sqrt(expected)) + 16) if self.refined_share else 0
        work = unsettled
        if unsettled.size < quota:
            work = np.concatenate([unsettled, np.arange(quota - unsettled.size)])
        if work.size:
            refined = self._refine(stream, words[work])
            values[unsettled] = refined[: unsettled.size]
        return values

    def _refine(self, stream: Keystream, words: NDArray[np.uint16]) -> NDArray[np.int64]:
        full = (words.astype(np.uint64) << np.uint64(48)) | (stream.words(np.uint64, words.size) >> np.uint64(16))
        reached = np.searchsorted(self._top64, full, "right")
        tied = np.flatnonzero((reached > 0) & (self._top64[np.maximum(reached, 1) - 1] == full))
        for i in tied:  # once in 2^64 / (number of thresholds) draws
            rest = stream.bits(128)
            run = range(int(np.searchsorted(self._top64, full[i], "left")), int(reached[i]))
            reached[i] = run.start + sum(self._low(j) <= rest for j in run)
        return self.first + reached

    def _low(self, i: int) -> int:
        high, low = self._low128[i]
        return int(high) << 64 | int(low)


class Digits:
    """Draws that are put together from a top table and tables of lower digits, all independent.

    With `signed`, the top table gives h for a positive and ~h = -1-h for a negative number, and the lower digits belong
    to the magnitude: z on the right, -1-z on the left, which is how a two-sided geometric splits.
    """

    def __init__(self, top: LazyTable, lower: Sequence[LazyTable], *, signed: bool) -> None:
        self._top, self._lower, self._signed = top, tuple(lower), signed
        # Tails are cut at 2^-184, that is at 128 scales: below 1.3e14 for the scales a plan may use (10^12) and 1.3e17
        # for the widest proposal of a cube's radius (10^15). Both are far inside int64 (9.2e18).
        self.largest = (max(abs(top.first), top.last) + 1) << (_DIGIT_BITS * len(self._lower))
        if self.largest >= 1 << 62:
            message = "noise would not fit into 64 bits"
            raise OverflowError(message)

    def draw(self, stream: Keystream, count: int) -> Ints:
        """Return `count` draws."""
        out = np.empty(count, np.int64)
        for part in chunks(count):
            into = out[part]
            into[:] = self._top.draw(stream, into.size)
            if not self._lower:
                continue
            sign = into >> np.int64(63)
            if self._signed:
                into ^= sign
            for table in self._lower:
                into <<= np.int64(_DIGIT_BITS)
                into |= table.draw(stream, into.size)
            if self._signed:
                into ^= sign
        return out


class TwoSided:
    """Draws for two large and different scales: a side, a geometric for each side, and the one that the side picks.

    Both are always drawn: the time then does not tell how many fell on which side.
    """

    def __init__(self, side: LazyTable, right: Digits, left: Digits) -> None:
        self._side, self._right, self._left = side, right, left

    def draw(self, stream: Keystream, count: int) -> Ints:
        """Return `count` draws."""
        out = np.empty(count, np.int64)
        for part in chunks(count):
            size = out[part].size
            side = self._side.draw(stream, size)
            right, left = self._right.draw(stream, size), self._left.draw(stream, size)
            out[part] = np.where(side < 0, ~left, right)
        return out


# A sampler holds at most about 1 MB of tables; 48 of them stay below 50 MB.
@lru_cache(maxsize=48)
def two_scale_sampler(right: Fraction, left: Fraction) -> Digits | TwoSided:
    """Return a sampler for P(z) ~ exp(-z/right) for z >= 0, exp(z/left) for z < 0; a scale 0 carries nothing."""
    q_right, q_left = _exp_fixed(right), _exp_fixed(left)
    # The left side weighs q_left/(1-q_left) against 1/(1-q_right).
    weight = (q_left * (_ONE - q_right)) // _ONE
    p_left = weight * _ONE // (_ONE - q_left + weight)
    if max(right, left) <= LARGEST_DIRECT_SCALE:
        return Digits(_signed_table(p_left, q_right, q_left), (), signed=True)
    if right == left or left == 0:
        digits = 0
        while right / 256**digits > LARGEST_DIRECT_SCALE:
            digits += 1
        q_top = _exp_fixed(right / 256**digits)
        lower = [_digit_table(right / 256**i) for i in reversed(range(digits))]
        return Digits(_signed_table(p_left, q_top, q_top if left else 0), lower, signed=left != 0)
    side = LazyTable([p_left >> GUARD_BITS], first=-1)
    zero = Fraction(0)
    sides = [two_scale_sampler(scale, zero) for scale in (right, left)]
    if not all(isinstance(one, Digits) for one in sides):
        message = "a one-sided law has one table of leading digits"
        raise AssertionError(message)
    return TwoSided(side, sides[0], sides[1])  # type: ignore[arg-type]


def chunks(count: int, size: int = CHUNK) -> Iterator[slice]:
    """Yield the slices that cover `count` draws."""
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def _exp_fixed(scale: Fraction) -> int:
    """Return exp(-1/scale) * 2^256, rounded down; 0 for the scale 0."""
    if scale == 0:
        return 0
    with localcontext() as context:
        # 2^256 has 78 digits. The exponent is at most 100, so 110 digits leave 30 for its rounding.
        context.prec = 110
        return int((-Decimal(scale.denominator) / Decimal(scale.numerator)).exp() * Decimal(_ONE))


def _signed_table(p_left: int, q_right: int, q_left: int) -> LazyTable:
    # P(z <= -k) = p_left q_left^(k-1) and P(z >= k) = p_right q_right^k, in units of 2^-256.
    below = _tail(p_left, q_left)
    above = _tail((_ONE - p_left) * q_right // _ONE, q_right)
    return LazyTable([*reversed(below), *((1 << KEPT_BITS) - t for t in above)], first=-len(below))


def _tail(first: int, q: int) -> list[int]:
    """Return first * q^i in units of 2^-192, down to 2^-184."""
    tail = []
    while first >> GUARD_BITS >= 256:
        tail.append(first >> GUARD_BITS)
        first = first * q // _ONE
    return tail


def _digit_table(scale: Fraction) -> LazyTable:
    # A geometric modulo 256: P(digit < k) = (1 - q^k) / (1 - q^256). The division costs as many bits as 256/scale has
    # zeros in front, 43 at most for scales up to 10^15: 256 bits leave more than 210.
    q, power, missing = _exp_fixed(scale), _ONE, []
    for _ in range(256):
        power = power * q // _ONE
        missing.append(_ONE - power)
    return LazyTable([(m << KEPT_BITS) // missing[-1] for m in missing[:-1]], first=0)

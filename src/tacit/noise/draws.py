"""Exact draws: uniform integers, coins and permutations by rejection, integer laws by tables; sizes and scales.

Guarantee   `uniform_below`, `bernoulli` and `permutation` are exact, given an ideal keystream. A draw from a table
            differs from the stated law by less than 2^-170 in total variation. Draws of one call, of different calls,
            threads and processes are independent. How much work a draw takes does not depend on the value drawn (for
            tables up to an event of probability below 1e-18 per 32,768 draws); caches and the clock of the machine are
            not controlled.
Assumes     The keystream (`noise/keystream.py`). Scales are exact fractions.
Why         Rejection takes away the few words that would make some results more likely than others.
            Inverse distribution function: the value is the number of thresholds P(z <= k) that a uniform 192-bit number
            U has reached. The first 16 bits of U settle almost every draw, because their bucket holds no threshold;
            the rest gets 48 more bits, and 128 more when 64 bits equal those of a threshold. Thresholds are computed
            with 256 bits or more and cut to 192, so each is off by less than 2^-191; there are fewer than 2^18 of them,
            and the tails left out weigh less than 2^-183: 2^18 * 2^-191 + 2^-183 < 2^-170.
            Large scales: the digits of a geometric are independent, since exp(-(a + 256 b)/s) is a product. So the
            last digits come from one table each, and what remains is geometric with scale s/256, s/65536, ..
Reference   Lemire, Fast Random Integer Generation in an Interval, arXiv:1805.10941; Devroye, Non-Uniform Random Variate
            Generation (1986), chapters III.2 and X.2; Canonne, Kamath, Steinke, The Discrete Gaussian for Differential
            Privacy, arXiv:2004.00010 (exact discrete Laplace).
Checked by  tests/unit/noise/test_noise.py, tests/statistical/test_noise.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import ceil, prod, sqrt
from operator import index
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from tacit.amounts import as_fraction
from tacit.arrays import Ints
from tacit.errors import PlanError
from tacit.noise.keystream import Keystream, current_stream

ScaleLike = int | float | str | Decimal | Fraction

SMALLEST_SCALE = Fraction(1, 100)
LARGEST_SCALE = Fraction(10**12)


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


Size = int | tuple[int, ...]


@overload
def uniform_below(n: int, size: None = None) -> int: ...
@overload
def uniform_below(n: int, size: Size) -> Ints: ...
def uniform_below(n: int, size: Size | None = None) -> int | Ints:
    """Return uniform integers in 0 .. n-1, for 1 <= n <= 2^63; exact, by rejection."""
    bound = _whole(n, "n")
    if not 1 <= bound <= 1 << 63:
        raise PlanError("must lie between 1 and 2^63", key="n", given=n)
    stream, out = current_stream(), np.empty(count_of(size), np.int64)
    for part in chunks(out.size):
        out[part] = uniform_upto(stream, np.full(out[part].size, bound, np.uint64), wide=bound > 1 << 32)
    return give_shape(out, size)


@overload
def bernoulli(p: ScaleLike, size: None = None) -> bool: ...
@overload
def bernoulli(p: ScaleLike, size: Size) -> NDArray[np.bool_]: ...
def bernoulli(p: ScaleLike, size: Size | None = None) -> bool | NDArray[np.bool_]:
    """Return coins that are true with the rational probability p, exactly."""
    chance = as_fraction(p, key="p")
    if not 0 <= chance <= 1:
        raise PlanError("must lie between 0 and 1", key="p", given=p)
    stream, out = current_stream(), np.ones(count_of(size), np.bool_)
    # Compare the binary digits of a uniform number with those of p, 64 at a time. Only a tie needs the next 64.
    digits, rest = divmod(chance * (1 << 64), 1)
    for part in chunks(out.size if chance < 1 else 0):
        words = stream.words(np.uint64, out[part].size)
        out[part] = words < np.uint64(int(digits))
        for i in np.flatnonzero(words == np.uint64(int(digits))):
            out[part.start + i] = _continued_coin(stream, rest)
    return bool(out[0]) if size is None else out.reshape(shape_of(size))


def permutation(n: int) -> Ints:
    """Return the integers 0 .. n-1 in an order in which all n! orders are equally likely."""
    count, stream = count_of(_whole(n, "n")), current_stream()
    while True:
        keys = stream.words(np.uint64, count)
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        # Distinct keys are ordered uniformly. Equal ones would be sorted by position, so then all keys are drawn anew.
        if not np.any(ranked[1:] == ranked[:-1]):
            return order.astype(np.int64, copy=False)


def uniform_upto(stream: Keystream, bound: NDArray[np.uint64], *, wide: bool) -> Ints:
    """Return one uniform integer below each bound; `wide` allows bounds above 2^32 (up to 2^63)."""
    draw = _uniform_wide if wide else _uniform_narrow
    out, rejected = draw(stream, bound)
    missing = np.flatnonzero(rejected)
    while missing.size:
        again, rejected = draw(stream, bound[missing])
        out[missing] = again
        missing = missing[rejected]
    return out.view(np.int64)


def _uniform_narrow(stream: Keystream, bound: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    # Word * bound / 2^32: every result gets floor or ceiling of 2^32 / bound words. Rejecting the products whose lower
    # half is under 2^32 mod bound takes the surplus word away. That is below the bound, so the slow remainder is
    # needed for few.
    product = stream.words(np.uint32, bound.size).astype(np.uint64)
    product *= bound
    lower = product & np.uint64(0xFFFFFFFF)
    rejected = lower < bound
    near = np.flatnonzero(rejected)
    rejected[near] = lower[near] < np.uint64(1 << 32) % bound[near]
    product >>= np.uint64(32)
    return product, rejected


def _uniform_wide(stream: Keystream, bound: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    # Word mod bound, without the last 2^64 mod bound words. Unsigned arithmetic wraps: 2^64 - bound is ~bound + 1.
    words = stream.words(np.uint64, bound.size)
    surplus = (~bound + np.uint64(1)) % bound
    return words % bound, words > ~surplus


def _continued_coin(stream: Keystream, rest: Fraction) -> bool:
    while rest:
        digits, rest = divmod(rest * (1 << 64), 1)
        word = stream.bits(64)
        if word != digits:
            return word < digits
    return False


def _whole(value: Any, key: str) -> int:
    try:
        whole = index(value)
    except TypeError:
        whole = -1
    if whole < 0 or isinstance(value, bool):
        raise PlanError("must be a whole number, zero or more", key=key, given=value)
    return whole


def shape_of(size: Size | None) -> tuple[int, ...]:
    """Return the shape that was asked for; of one draw, none."""
    if size is None:
        return ()
    return tuple(_whole(n, "size") for n in (size if isinstance(size, tuple) else (size,)))


def count_of(size: Size | None) -> int:
    """Return how many draws that are."""
    count = prod(shape_of(size))
    if count >= 1 << 40:
        raise PlanError("must stay below 2^40 draws in all", key="size", given=size, fix="Draw in parts.")
    return count


def give_shape(values: Ints, size: Size | None) -> int | Ints:
    """Return draws in the shape that was asked for."""
    return int(values[0]) if size is None else values.reshape(shape_of(size))


# ---- by tables -------------------------------------------------------------------------------------------------------

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


class TabledDraws:
    """Draws from a table or, of large numbers, from a top table and tables of lower digits, all independent.

    With `signed`, the top table gives h for a positive and ~h = -1-h for a negative number, and the lower digits belong
    to the magnitude: z on the right, -1-z on the left, which is how a two-sided geometric splits.
    """

    def __init__(self, top: LazyTable, lower: Sequence[LazyTable] = (), *, signed: bool = False) -> None:
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

    def __init__(self, side: LazyTable, right: TabledDraws | TwoSided, left: TabledDraws | TwoSided) -> None:
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
def two_scale_sampler(right: Fraction, left: Fraction) -> TabledDraws | TwoSided:
    """Return a sampler for P(z) ~ exp(-z/right) for z >= 0, exp(z/left) for z < 0; a scale 0 carries nothing."""
    q_right, q_left = _exp_fixed(right), _exp_fixed(left)
    # The left side weighs q_left/(1-q_left) against 1/(1-q_right).
    weight = (q_left * (_ONE - q_right)) // _ONE
    p_left = weight * _ONE // (_ONE - q_left + weight)
    if max(right, left) <= LARGEST_DIRECT_SCALE:
        return TabledDraws(_signed_table(p_left, q_right, q_left), (), signed=True)
    if right == left or left == 0:
        digits = 0
        while right / 256**digits > LARGEST_DIRECT_SCALE:
            digits += 1
        q_top = _exp_fixed(right / 256**digits)
        lower = [_digit_table(right / 256**i) for i in reversed(range(digits))]
        return TabledDraws(_signed_table(p_left, q_top, q_top if left else 0), lower, signed=left != 0)
    side = LazyTable([p_left >> GUARD_BITS], first=-1)
    zero = Fraction(0)
    return TwoSided(side, two_scale_sampler(right, zero), two_scale_sampler(left, zero))


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

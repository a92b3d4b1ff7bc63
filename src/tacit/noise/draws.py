"""Uniform integers, exact coins, permutations and scales: what the laws of noise are drawn with.

Guarantee   `uniform_below`, `bernoulli` and `permutation` are exact, given an ideal keystream. Draws of one call, of
            different calls, threads and processes are independent. How long a draw takes does not depend on what is
            drawn, as far as the number of operations goes; caches and the clock of the machine are not controlled.
Assumes     The keystream (`noise/keystream.py`).
Why         Rejection takes away the few words that would make some results more likely than others.
Reference   Lemire, Fast Random Integer Generation in an Interval, arXiv:1805.10941.
Checked by  tests/unit/noise/test_noise.py, tests/statistical/test_noise.py.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import prod
from operator import index
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from tacit.amounts import as_fraction
from tacit.arrays import Ints
from tacit.errors import PlanError
from tacit.noise.keystream import Keystream, current_stream
from tacit.noise.tables import chunks

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

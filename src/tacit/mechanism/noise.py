"""Integer noise: exact samplers, and the only door to randomness in Tacit.

Guarantee   Every draw follows the stated law on the integers up to 2^-170 in total variation, given an ideal
            keystream, so a loss that holds for the law holds for the draw but for that probability. Draws of one
            call, of different calls, threads and processes are independent. `uniform_below`, `bernoulli` and
            `permutation` are exact. How long a draw takes does not depend on what is drawn, as far as the number of
            operations goes; caches and the clock of the machine are not controlled.
Assumes     The keystream (see `tacit.mechanism.keystream`). Scales are exact: 0.2 means one fifth.
Why         Inverse distribution function with lazily refined uniform numbers (`tacit.mechanism.tables`). A cube is a
            mixture: sum over m >= max|x_i| of q^m is q^max / (1 - q), so a radius m with weight (m+1)^d q^m, or
            (2m+1)^d q^m with both signs (`tacit.mechanism.cube_radius`), and then coordinates uniform on 0..m, or
            -m..m, have joint weight exp(-max|x_i| / scale).
Reference   Ghosh, Roughgarden, Sundararajan, Universally Utility-Maximizing Privacy Mechanisms, arXiv:0811.2841, for
            the geometric; Hardt, Talwar, On the Geometry of Differential Privacy, arXiv:0907.3754, for noise
            shaped by the steps; Lemire, Fast Random Integer Generation in an Interval, arXiv:1805.10941.
Checked by  tests/unit/test_noise.py, tests/statistical/test_noise.py, tests/property/test_noise_loss.py.

There are no seeds. Tests replay a stream with `with noise.replayed(noise.Keystream(key=<32 bytes>)):`; while they do,
`noise.is_replayed()` is true, and a release says in its certificate that it promises nothing.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
from operator import index
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from tacit.errors import PlanError
from tacit.mechanism.cube_radius import radius_sampler
from tacit.mechanism.keystream import Keystream, current_stream, is_replayed, replayed
from tacit.mechanism.tables import CHUNK, IntArray, chunks, two_scale_sampler
from tacit.plan.amounts import as_fraction
from tacit.plan.distributions import (
    LARGEST_SCALE,
    MOST_DIMENSIONS,
    SMALLEST_SCALE,
    Cube,
    Distribution,
    ScaleLike,
    Sides,
    TwoScale,
    as_scale,
)

__all__ = [
    "Keystream",
    "bernoulli",
    "cube",
    "cube_is_supported",
    "discrete_laplace",
    "geometric",
    "is_replayed",
    "permutation",
    "replayed",
    "sample",
    "two_scale",
    "uniform_below",
]

Size = int | tuple[int, ...]


@overload
def discrete_laplace(scale: ScaleLike, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: ScaleLike, size: Size) -> IntArray: ...
def discrete_laplace(scale: ScaleLike, size: Size | None = None) -> int | IntArray:
    """Return integers z with P(z) proportional to exp(-|z| / scale): one without `size`, else an int64 array."""
    exact = as_scale(scale)
    return _shaped(_two_scale(exact, exact, _count(size)), size)


@overload
def geometric(scale: ScaleLike, size: None = None) -> int: ...
@overload
def geometric(scale: ScaleLike, size: Size) -> IntArray: ...
def geometric(scale: ScaleLike, size: Size | None = None) -> int | IntArray:
    """Return integers z >= 0 with P(z) proportional to exp(-z / scale): one-sided noise."""
    return _shaped(_two_scale(as_scale(scale), Fraction(0), _count(size)), size)


@overload
def two_scale(right: ScaleLike, left: ScaleLike, size: None = None) -> int: ...
@overload
def two_scale(right: ScaleLike, left: ScaleLike, size: Size) -> IntArray: ...
def two_scale(right: ScaleLike, left: ScaleLike, size: Size | None = None) -> int | IntArray:
    """Return integers with P(z) proportional to exp(-z/right) for z >= 0 and exp(z/left) for z < 0; 0 is no side."""
    law = TwoScale(as_scale(right, key="right", zero=True), as_scale(left, key="left", zero=True))
    return _shaped(_two_scale(law.right, law.left, _count(size)), size)


def cube(scale: ScaleLike, dimensions: int, size: Size | None = None, sides: Sides = "right") -> IntArray:
    """Return integer vectors with joint weight exp(-max_i |x_i| / scale); the last axis has `dimensions` entries.

    `sides` is "right" (x >= 0), "left" (x <= 0) or "both". Without `size` one vector.
    """
    law = Cube(as_scale(scale), dimensions, sides)
    rows, d = _count(size), law.dimensions
    radius = radius_sampler(law.scale, d, both_signs=sides == "both")
    # Which arithmetic is used follows from the largest radius that is possible, not from the one that is drawn.
    wide = 2 * radius.largest + 1 > 1 << 32
    stream = current_stream()
    out = np.empty((rows, d), np.int64)
    for part in chunks(rows, max(1, CHUNK // d)):
        m = radius.draw(stream, part.stop - part.start)[:, np.newaxis]
        values = 2 * m + 1 if sides == "both" else m + 1
        drawn = _uniform(stream, np.broadcast_to(values.astype(np.uint64), (m.size, d)).reshape(-1), wide=wide)
        out[part] = drawn.reshape(m.size, d)
        if sides == "both":
            out[part] -= m
        elif sides == "left":
            np.negative(out[part], out=out[part])
    return out.reshape((*_shape(size), d))


def cube_is_supported(scale: ScaleLike, dimensions: int) -> bool:
    """Return whether `cube` can draw exactly for this scale and number of dimensions; if not, it refuses first."""
    within = SMALLEST_SCALE <= as_fraction(scale, key="scale") <= LARGEST_SCALE
    return within and 1 <= dimensions <= MOST_DIMENSIONS


@overload
def sample(distribution: TwoScale, size: None = None) -> int: ...
@overload
def sample(distribution: Cube, size: Size | None = None) -> IntArray: ...
@overload
def sample(distribution: Distribution, size: Size) -> IntArray: ...
def sample(distribution: Distribution, size: Size | None = None) -> int | IntArray:
    """Draw from a distribution of `tacit.plan.distributions`."""
    match distribution:
        case TwoScale(right, left):
            return _shaped(_two_scale(right, left, _count(size)), size)
        case Cube(scale, dimensions, sides):
            return cube(scale, dimensions, size, sides)
    message = f"no sampler for {type(distribution).__name__}"
    raise TypeError(message)


@overload
def uniform_below(n: int, size: None = None) -> int: ...
@overload
def uniform_below(n: int, size: Size) -> IntArray: ...
def uniform_below(n: int, size: Size | None = None) -> int | IntArray:
    """Return uniform integers in 0 .. n-1, for 1 <= n <= 2^63; exact, by rejection."""
    bound = _whole(n, "n")
    if not 1 <= bound <= 1 << 63:
        raise PlanError("must lie between 1 and 2^63", key="n", given=n)
    stream, out = current_stream(), np.empty(_count(size), np.int64)
    for part in chunks(out.size):
        out[part] = _uniform(stream, np.full(out[part].size, bound, np.uint64), wide=bound > 1 << 32)
    return _shaped(out, size)


@overload
def bernoulli(p: ScaleLike, size: None = None) -> bool: ...
@overload
def bernoulli(p: ScaleLike, size: Size) -> NDArray[np.bool_]: ...
def bernoulli(p: ScaleLike, size: Size | None = None) -> bool | NDArray[np.bool_]:
    """Return coins that are true with the rational probability p, exactly."""
    chance = as_fraction(p, key="p")
    if not 0 <= chance <= 1:
        raise PlanError("must lie between 0 and 1", key="p", given=p)
    stream, out = current_stream(), np.ones(_count(size), np.bool_)
    # Compare the binary digits of a uniform number with those of p, 64 at a time. Only a tie needs the next 64.
    digits, rest = divmod(chance * (1 << 64), 1)
    for part in chunks(out.size if chance < 1 else 0):
        words = stream.words(np.uint64, out[part].size)
        out[part] = words < np.uint64(int(digits))
        for i in np.flatnonzero(words == np.uint64(int(digits))):
            out[part.start + i] = _continued_coin(stream, rest)
    return bool(out[0]) if size is None else out.reshape(_shape(size))


def permutation(n: int) -> IntArray:
    """Return the integers 0 .. n-1 in an order in which all n! orders are equally likely."""
    count, stream = _count(_whole(n, "n")), current_stream()
    while True:
        keys = stream.words(np.uint64, count)
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        # Distinct keys are ordered uniformly. Equal ones would be sorted by position, so then all keys are drawn anew.
        if not np.any(ranked[1:] == ranked[:-1]):
            return order.astype(np.int64, copy=False)


def _two_scale(right: Fraction, left: Fraction, count: int) -> IntArray:
    if right == 0 and left > 0:
        return -two_scale_sampler(left, right).draw(current_stream(), count)
    return two_scale_sampler(right, left).draw(current_stream(), count)


def _uniform(stream: Keystream, bound: NDArray[np.uint64], *, wide: bool) -> IntArray:
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


def _shape(size: Size | None) -> tuple[int, ...]:
    if size is None:
        return ()
    return tuple(_whole(n, "size") for n in (size if isinstance(size, tuple) else (size,)))


def _count(size: Size | None) -> int:
    count = prod(_shape(size))
    if count >= 1 << 40:
        raise PlanError("must stay below 2^40 draws in all", key="size", given=size, fix="Draw in parts.")
    return count


def _shaped(values: IntArray, size: Size | None) -> int | IntArray:
    return int(values[0]) if size is None else values.reshape(_shape(size))

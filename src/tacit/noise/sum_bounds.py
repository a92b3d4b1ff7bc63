"""Bounds on the error of an estimate: a sum of independent noises, each with its own weight.

An estimate by least squares is off by the sum over j of weight_j * (noise_j - its mean). Its law follows from its
characteristic function, a product of known ones, on a lattice of 2^14 points. What the lattice leaves open is added
outwards: the law is blurred by a little independent noise with bounded support, so that high frequencies may be left
out, and the bounds are moved by that support; what lies outside the lattice is bounded by Chernoff's inequality, which
also serves alone for levels too close to one for a lattice.

Cube noise is uniform on -m .. m given its radius m. Where there are many radii they are put into bins and rounded up.
That is outwards if all weights have the same size: uniform noise is symmetric with one peak, on one lattice, and among
such laws the sum is less peaked if one of them is. With other weights the sum has many peaks, and a larger radius need
not reach further. Then each draw gets a little more noise, uniform between -1/2 and 1/2: given its radius the sum is
now 2m+1 times a fixed law, so that rounding up is outwards, and the bounds are moved by what was added.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats
from tacit.noise.cube import Cube
from tacit.noise.law import Law
from tacit.noise.two_scale import TwoScale

Complexes = npt.NDArray[np.complex128]
Bounds: TypeAlias = tuple[float, float]
Term: TypeAlias = tuple[Law, float, int]  # a law, the weight of a draw, and how many independent draws
POINTS: Final = 1 << 14
BLUR: Final = 12  # points to each side
BLURS: Final = 6  # uniform draws that the blur is the sum of
NUMERICAL: Final = 5e-6  # probability that the lattice may be off by
RAREST: Final = 1e-4  # on one side; below, Chernoff's bound alone
FEW_RADII: Final = 100  # of a cube, which need no bins
SMOOTHED: Final = 1 / 20  # probability that the noise which smooths a cube exceeds what the bounds are moved by
APART: Final = 1 / 10  # of the error that may be left, for the difference of two sums
_TAIL: Final = 1e-7  # of the radius of a cube


@lru_cache(maxsize=8192)
def error_bounds(terms: tuple[Term, ...], level: float) -> tuple[float, float]:
    """Return (low, high), around zero, that hold the centred weighted sum with this probability.

    >>> from fractions import Fraction
    >>> law = TwoScale(Fraction(10), Fraction(10))
    >>> error_bounds(((law, 1.0, 1),), 0.95)
    (-30.0, 30.0)
    >>> low, high = error_bounds(((law, 0.5, 1), (law, -0.5, 1)), 0.95)  # with an exact total of two cells
    >>> round(low, 1), round(high, 1)
    (-20.6, 20.6)
    """
    parts = tuple(
        (law, weight, many) for law, weight, many in terms if weight != 0 and many > 0 and _moments(law)[1] > 0
    )
    if not parts:
        return 0.0, 0.0
    if len(parts) == 1 and parts[0][2] == 1:
        low, high = single_bounds(parts[0][0], parts[0][1], level)
    elif any(isinstance(law, Cube) and law.sides != "both" for law, _, _ in parts):
        # dependent and skewed: each within its own bound at a share of the error
        each = 1 - (1 - level) / sum(many for _, _, many in parts)
        ends = [(many, single_bounds(law, weight, each)) for law, weight, many in parts]
        low, high = sum(many * end[0] for many, end in ends), sum(many * end[1] for many, end in ends)
    else:
        rare = (1 - level) / 2
        far = rare if rare < RAREST else rare / 1000
        reach = _chernoff(parts, far, -1.0), _chernoff(parts, far, 1.0)
        far_end = max(-reach[0], reach[1])  # zero where a cube's radius hardly ever is anything else
        low, high = reach if rare < RAREST or far_end == 0 else _inverted(parts, rare, far_end)
    return min(float(low), 0.0), max(float(high), 0.0)


@lru_cache(maxsize=8192)
def bounds_near(terms: tuple[Term, ...], apart: tuple[tuple[Law, int, int], ...], level: float) -> Bounds:
    """Return bounds on the error of every sum of cells that differs a little from the one with these terms.

    `apart` has the law of the cells, by how many cells at most the sum differs there, and how many cells the block with
    an exact total has (0 where no total is exact). More variance is no reason for a wider interval: with noise that is
    nearly always zero the law has many peaks, and a sum of one cell more may well reach less far on one side. So the
    difference is bounded by itself, and the two bounds are added.

    The difference of m cells of n has the weights 1 - m/n (m times) and -m/n (n - m times), or the negative of that.
    With the cumulant function c of a draw around its mean, which is convex and 0 at 0, its own at s is
    m c((1 - m/n) s) + (n - m) c(-m s/n) <= M c(s) + n c(-M s/n) for every m <= M: that of M draws with weight 1 and n
    with weight -M/n. So Chernoff's bound for those holds for every such m.
    """
    moved = [part for part in apart if part[1]]
    if not moved:
        return error_bounds(terms, level)
    low, high = error_bounds(terms, 1 - (1 - level) * (1 - APART))
    further = 0.0
    for signs in product((1, -1), repeat=len(moved)):
        parts: list[Term] = []
        for sign, (law, most, whole) in zip(signs, moved, strict=True):
            parts.append((law, float(sign), most))
            if whole:
                parts.append((law, -sign * most / whole, whole))
        further = max(further, _chernoff(tuple(parts), (1 - level) * APART / 2, 1.0))
    return low - further, high + further


def far_bounds(terms: tuple[Term, ...], nats: float) -> Bounds:
    """Return bounds that the centred weighted sum leaves with probability at most exp(-nats) on each side.

    Chernoff's bound alone: for sums that were chosen among so many that no level between 0 and 1 is close enough to 1.
    """
    parts = tuple((law, weight, many) for law, weight, many in terms if weight != 0 and many > 0)
    if not parts:
        return 0.0, 0.0
    return _exceeded(parts, nats, -1.0), _exceeded(parts, nats, 1.0)


def single_bounds(law: Law, weight: float, level: float) -> tuple[float, float]:
    """Return the same for one draw: exact quantiles; one-sided noise is bounded by its own end."""
    left, right = law.reaches
    if not left:
        low, high = 0.0, float(law.quantile(level))
    elif not right:
        low, high = float(law.quantile(1 - level)), 0.0
    else:
        low, high = float(law.quantile((1 - level) / 2)), float(law.quantile((1 + level) / 2))
    ends = weight * (low - law.mean()), weight * (high - law.mean())
    return min(ends), max(ends)


def _inverted(parts: tuple[Term, ...], rare: float, reach: float) -> tuple[float, float]:
    """Return bounds with at most `rare` on each side, from the characteristic function on a lattice."""
    step = 2 * (reach * (1 + 2 * BLUR / POINTS)) / POINTS
    frequency: Floats = 2 * math.pi / (POINTS * step) * np.arange(POINTS // 2 + 1, dtype=np.float64)
    blurred = np.sinc(frequency * step * BLUR / BLURS / math.pi) ** BLURS * np.sinc(frequency * step / 2 / math.pi)
    mass = np.fft.irfft(np.conj(_characteristic(parts, frequency)) * blurred, POINTS)
    mass = np.clip(np.fft.fftshift(mass), 0.0, None)
    below = np.cumsum(mass)
    above = np.cumsum(mass[::-1])[::-1]
    centre = step * (np.arange(POINTS) - POINTS // 2)
    kept, added = _smoothing(parts)
    allowed = rare * (1 - 1 / 500) * kept - NUMERICAL
    first = int(np.searchsorted(below, allowed, side="right"))  # all lattice cells before this one may be left out
    last = POINTS - 1 - int(np.searchsorted(above[::-1], allowed, side="right"))
    outwards = step / 2 + BLUR * step + added
    return centre[first] - outwards, centre[last] + outwards


def _smoothing(parts: tuple[Term, ...]) -> tuple[float, float]:
    """Return the share of an error's probability that smoothing of a cube keeps, and how far it moves the bounds.

    Where x exceeds t and the added y, independent of it, is -a at least, x + y exceeds t - a: so
    P(x > t) P(y >= -a) <= P(x + y > t - a). A uniform draw from -1/2 .. 1/2 has E exp(sy) <= exp(s^2/24).
    """
    if not _is_smoothed(parts):
        return 1.0, 0.0
    return 1 - SMOOTHED, math.sqrt(-math.log(SMOOTHED) / 6 * sum(many * weight**2 for _, weight, many in parts))


def _cube_of(parts: tuple[Term, ...]) -> Cube | None:
    return next((law for law, _, _ in parts if isinstance(law, Cube)), None)


def _is_smoothed(parts: tuple[Term, ...]) -> bool:
    """Return whether radii of a cube are rounded up where that is not outwards by itself."""
    cube = _cube_of(parts)
    if cube is None or max(weights := [abs(weight) for _, weight, _ in parts]) == min(weights):
        return False
    return _radii(cube)[-1][0] - _radii(cube)[0][0] >= len(_radii(cube))  # some radii are missing


def _characteristic(parts: tuple[Term, ...], frequency: Floats) -> Complexes:
    total = np.zeros(len(frequency), dtype=np.complex128)
    for law, weight, many in parts:
        if isinstance(law, TwoScale) and law.right == law.left:
            # E exp(itz) = (1 - q)^2 / ((1 - q)^2 + 4 q sin(t/2)^2): a real number
            rate = float(1 / law.right)
            total.real -= many * np.log1p(
                math.exp(-rate) * (2 * np.sin(weight * frequency / 2) / math.expm1(-rate)) ** 2
            )
        elif isinstance(law, TwoScale):
            at = weight * frequency
            total += many * (np.log(_transform(law, 1j * at)) - 1j * at * _moments(law)[0])
        elif not isinstance(law, Cube):
            raise TypeError(law)
    out = np.exp(total)
    cube = _cube_of(parts)
    if cube is not None:
        mixed = np.zeros(len(frequency))
        smoothed = _is_smoothed(parts)
        of_cube = [(weight, many) for law, weight, many in parts if isinstance(law, Cube)]
        for radius, share in _radii(cube):
            known = np.full(len(frequency), share)
            for weight, many in of_cube:
                at = weight * frequency
                known *= (np.sinc((2 * radius + 1) * at / (2 * math.pi)) if smoothed else _uniform(radius, at)) ** many
            mixed += known
        out = out * mixed
    return out


@lru_cache(maxsize=256)  # asked for again and again, and made from fractions
def _moments(law: Law) -> tuple[float, float]:
    return law.mean(), law.variance()


@lru_cache(maxsize=256)
def _sides(law: TwoScale) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the probability of either side and what each step costs there, infinite where there is no side."""
    right, left = (float(1 / scale) if scale else math.inf for scale in (law.right, law.left))
    return (law.mass_right, right), (law.mass_left, left)


def _transform(law: TwoScale, s: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return E exp(s z) where it exists: a geometric to the right, and one more than that to the left."""
    (mass_right, right), (mass_left, left) = _sides(law)
    out = np.full(s.shape, mass_right, dtype=s.dtype)
    if right < math.inf:
        out = out * (math.expm1(-right) / np.expm1(s - right))
    if left < math.inf:
        out = out + mass_left * math.expm1(-left) * np.exp(-s) / np.expm1(-s - left)
    return out


def _uniform(radius: int, at: Floats) -> Floats:
    """Return the characteristic function of a uniform draw from -radius .. radius."""
    half = np.sin(at / 2)
    flat = np.abs(half) < 1e-12
    wide = np.sin((2 * radius + 1) * at / 2)
    return np.where(flat, 1.0, wide / np.where(flat, 1.0, (2 * radius + 1) * half))


@lru_cache(maxsize=64)
def _radii(law: Cube) -> tuple[tuple[int, float], ...]:
    """Return radii and their probabilities, where there are many in bins; what lies beyond the last is left out."""
    shares = np.concatenate([np.linspace(0, 0.9, 37)[1:], 1 - np.geomspace(0.1, _TAIL, 33)[1:]])
    radius = law.radius()

    def upto(share: float) -> int:
        low, high = -1, radius.highest()
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if float(radius.tail(0, np.asarray(middle + 1))) <= 1 - share else (middle, high)
        return high

    last = upto(1 - _TAIL)
    ends = list(range(last + 1)) if last < FEW_RADII else sorted({upto(float(share)) for share in shares})
    beyond = [1.0, *(float(radius.tail(0, np.asarray(end + 1))) for end in ends)]
    return tuple((end, before - after) for end, before, after in zip(ends, beyond, beyond[1:], strict=False))


def _chernoff(parts: tuple[Term, ...], rare: float, sign: float) -> float:
    """Return a bound that the sum exceeds (in the direction of `sign`) with probability at most `rare`."""
    return _exceeded(parts, -math.log(rare), sign)


def _exceeded(parts: tuple[Term, ...], need: float, sign: float) -> float:
    """Return the same for a probability of exp(-need)."""
    cube = _cube_of(parts)
    if cube is not None:
        # given the radius a sum of uniform draws: Hoeffding's bound, at a radius that is hardly ever exceeded
        radius = cube.radius().highest() if need > -math.log(2 * _TAIL) else _radii(cube)[-1][0]
        wide = math.sqrt(2 * (need + 1) * sum(many * weight**2 for _, weight, many in parts))
        return sign * radius * min(wide, sum(many * abs(weight) for _, weight, many in parts))
    limit = min(
        (
            1 / (abs(weight) * float(scale))
            for law, weight, _ in parts
            if isinstance(law, TwoScale)
            for scale in [law.right if weight * sign > 0 else law.left]
            if scale
        ),
        default=None,
    )
    spread = math.sqrt(sum(many * weight**2 * _moments(law)[1] for law, weight, many in parts))
    if limit is None:  # this side ends where all noises do
        return sum(abs(weight) * many * abs(_moments(law)[0]) for law, weight, many in parts) * sign
    s = np.unique(np.concatenate([limit * (1 - np.geomspace(1e-6, 0.999, 60)), np.geomspace(1e-2, 30, 80) / spread]))
    s = s[(s > 0) & (s < limit * (1 - 1e-7))]
    total = np.zeros(len(s))
    for law, weight, many in parts:
        if isinstance(law, TwoScale):
            at = sign * weight * s
            total += many * (np.log(_transform(law, at)) - at * _moments(law)[0])
    return sign * float(np.min((total + need) / s))


@lru_cache(maxsize=2**18)
def noise_bounds(noise: Law, plus: int, minus: int, level: float) -> tuple[float, float]:
    """Return (low, high) with low <= sum of `plus` entries minus sum of `minus` entries <= high at this level."""
    if plus + minus == 0:
        return 0.0, 0.0
    mean = (plus - minus) * noise.mean()
    low, high = error_bounds(((noise, 1.0, plus), (noise, -1.0, minus)), level)
    # whole numbers: what lies between two of them is not needed
    return float(math.ceil(mean + low - 1e-9 * (1 + abs(mean)))), float(
        math.floor(mean + high + 1e-9 * (1 + abs(mean)))
    )

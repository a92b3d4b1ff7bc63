"""Cube noise: many numbers at once, of which one person moves any subset by one.

Guarantee   A step that moves any number of entries by at most s costs s/scale, exactly (one-sided: only steps in that
            direction); a draw follows the law up to 2^-170 in total variation, given an ideal keystream.
Assumes     The keystream (`noise/keystream.py`). The scale is an exact fraction.
Why         A cube is a mixture: sum over m >= max|x_i| of q^m is q^max / (1 - q), so a radius m with weight (m+1)^d
            q^m, or (2m+1)^d q^m with both signs (`noise/cube_radius.py`), and then coordinates uniform on 0..m, or
            -m..m, have joint weight exp(-max|x_i| / scale).
Reference   Hardt, Talwar, On the Geometry of Differential Privacy, arXiv:0907.3754, for noise shaped by the steps.
Checked by  tests/unit/noise/test_distributions.py, tests/unit/noise/test_noise.py, tests/statistical/test_noise.py,
            tests/property/test_noise_loss.py.

Accuracy of the numbers: see `noise/cube_radius.py`: 1e-10 in most cases, 1e-8 in the upper tail for a million
dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import expm1, floor, inf, log
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tacit.amounts import as_fraction
from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.noise.cube_radius import SmoothRadius, SummedRadius, radius_law, radius_sampler
from tacit.noise.draws import (
    CHUNK,
    LARGEST_SCALE,
    SMALLEST_SCALE,
    ScaleLike,
    Size,
    as_scale,
    chunks,
    count_of,
    shape_of,
    uniform_upto,
)
from tacit.noise.keystream import current_stream
from tacit.noise.law import RAREST, Law, quantile_of, whole_numbers

Sides = Literal["right", "left", "both"]
MOST_DIMENSIONS = 10**6
MOST_RADII = 512  # that a mixture is made of


@dataclass(frozen=True)
class Cube(Law):
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
        if not isinstance(self.sides, str) or self.sides not in ("right", "left", "both"):
            raise PlanError('must be "right", "left" or "both"', key="sides", given=self.sides)
        if not _is_whole(self.dimensions) or not 1 <= self.dimensions <= MOST_DIMENSIONS:
            fix = "Ask for fewer counts at once, or split the query."
            raise PlanError(
                "must be a whole number from 1 to 1000000", key="dimensions", given=self.dimensions, fix=fix
            )
        object.__setattr__(self, "dimensions", int(self.dimensions))

    def loss(self, step: Sequence[int]) -> Fraction | float:
        if len(step) != self.dimensions:
            raise PlanError(f"must have {self.dimensions} numbers", key="step", given=len(step))
        leaves = (self.sides == "right" and max(step) > 0) or (self.sides == "left" and min(step) < 0)
        return inf if leaves else max(abs(part) for part in step) / self.scale

    def log_weight(self, points: ArrayLike) -> Floats:
        """Return the logarithm of the joint weight of points (last axis: coordinates), -inf outside the support."""
        x = whole_numbers(points)
        outside = np.zeros(x.shape[:-1], dtype=bool)
        if self.sides != "both":
            outside = np.any(x < 0 if self.sides == "right" else x > 0, axis=-1)
        return np.where(outside, -np.inf, -np.max(np.abs(x), axis=-1) / float(self.scale))

    def document(self) -> dict[str, Any]:
        return {
            "shape": "cube",
            "scale": str(self.scale),
            "dimensions": self.dimensions,
            "sides": self.sides,
            "standard_deviation": self.variance() ** 0.5,
        }

    def joint_log_pmf(self, points: ArrayLike) -> float:
        # A radius m has probability n^d q^m / W with n values per coordinate; W is read off at the mode. All radii from
        # max|x| on lead to x: P(x) = q^max|x| / ((1 - q) W).
        m = floor(self.dimensions * self.scale)
        values = 2 * m + 1 if self.sides == "both" else m + 1
        log_total = self.dimensions * log(values) - m / float(self.scale) - log(float(self.radius_pmf(m)))
        return float(self.log_weight(points)) - log(-expm1(-1 / float(self.scale))) - log_total

    def radius_pmf(self, m: ArrayLike) -> Floats:
        """Return P(m) of the radius of the mixture: weight (m+1)^d q^m, or (2m+1)^d q^m with both signs."""
        return self.radius().mass(whole_numbers(m))

    def pmf(self, k: ArrayLike) -> Floats:
        x = self._rightward(k)
        if self.sides == "both":
            return self.radius().tail(-1, np.abs(x)) / 2
        return np.where(x >= 0, self.radius().tail(-1, np.maximum(x, 0)), 0.0)

    def cdf(self, k: ArrayLike) -> Floats:
        if self.sides == "left":
            return self._above(-1 - whole_numbers(k))
        return self._at_most(whole_numbers(k))

    def survival(self, k: ArrayLike) -> Floats:
        if self.sides == "left":
            return self._at_most(-1 - whole_numbers(k))
        return self._above(whole_numbers(k))

    def given_shared(self) -> Iterator[tuple[float, int, Floats]]:
        """Yield the uniform laws that coordinates have given their radius.

        Of more than `MOST_RADII` radii that matter, so many in the middle of equally likely parts stand for all.
        """
        last = self.radius().highest()
        radii = np.arange(last + 1)
        chances = self.radius().mass(radii)
        if (chances > RAREST).sum() > MOST_RADII:
            below = np.cumsum(chances)
            radii = np.searchsorted(below, (np.arange(MOST_RADII) + 0.5) / MOST_RADII)
            chances = np.full(MOST_RADII, 1 / MOST_RADII)
        for radius, chance in zip(radii.tolist(), chances.tolist(), strict=True):
            if chance > RAREST:
                values = 2 * radius + 1 if self.sides == "both" else radius + 1
                yield chance, 0 if self.sides == "right" else -radius, np.full(values, 1 / values)

    def beside(self, k: ArrayLike, low: ArrayLike, high: ArrayLike) -> Floats:
        """Return P(x_i = k and low <= x_j <= high) for two coordinates.

        Given the radius both are uniform, so P(x_i = k, x_j = l) = E[1/n^2; m >= max(|k|, |l|)] for n values each: one
        number for all l up to |k|, and beyond it a sum of tails.
        """
        if self.dimensions < 2:
            raise PlanError("must have two coordinates at least", key="dimensions", given=self.dimensions)
        x, first, last = np.broadcast_arrays(*(self._rightward(one) for one in (k, low, high)))
        if self.sides == "left":
            first, last = last, first
        far = np.abs(x)
        reach = self.radius().highest()
        first, last = np.clip(first, -reach - 1, reach + 1), np.clip(last, -reach - 1, reach + 1)
        lowest = -far if self.sides == "both" else np.zeros_like(far)
        inside = np.maximum(np.minimum(last, far) - np.maximum(first, lowest) + 1, 0)
        found = inside * self.radius().tail(-2, far) + self._pairs(np.maximum(first, far + 1), last)
        if self.sides == "both":
            found = (found + self._pairs(np.maximum(-last, far + 1), -first)) / 4
        return np.where((last >= first) & ((x >= 0) | (self.sides == "both")), found, 0.0)

    def _pairs(self, first: Ints, last: Ints) -> Floats:
        """Return the sum of E[1/u^2; m >= j] over j from first to last."""
        radius = self.radius()
        shift = 0.5 if self.sides == "both" else 1.0

        def onwards(j: Ints) -> Floats:
            # sum over j' >= j of E[1/u^2; m >= j'] = E[(m - j + 1)/u^2; m >= j], and m = u - shift
            return np.asarray(radius.tail(-1, j) - (j - 1 + shift) * radius.tail(-2, j))

        return np.where(last >= first, np.maximum(onwards(first) - onwards(last + 1), 0.0), 0.0)

    def quantile(self, p: float) -> int:
        reach = self.radius().highest() + 1
        lowest = -1 if self.sides == "right" else -reach - 1
        return quantile_of(self, p, lowest=lowest, highest=0 if self.sides == "left" else reach)

    def mean(self) -> float:
        if self.sides == "both":
            return 0.0
        half = self.radius().moments()[0] / 2
        return half if self.sides == "right" else -half

    def variance(self) -> float:
        # A uniform choice among n values in a row has variance (n^2 - 1)/12; n = m+1, or 2m+1 around a fixed centre.
        first, second = self.radius().moments()
        if self.sides == "both":
            return (second + first) / 3
        return (second + 2 * first) / 12 + (second - first**2) / 4

    @property
    def is_joint(self) -> bool:
        return True

    @property
    def reaches(self) -> tuple[bool, bool]:
        return self.sides != "right", self.sides != "left"

    @property
    def is_even(self) -> bool:
        return self.sides == "both"

    @property
    def name(self) -> str:
        return "cube noise" if self.sides == "both" else "one-sided cube noise"

    def on_sides(self, *, falls: bool, rises: bool) -> Cube:
        return self

    def proven_loss(self, profiles: Iterable[tuple[int, int]], largest: int) -> Fraction | float:
        """Return the loss of steps in which no entry moves by more than `largest`, in a direction that noise has."""
        left, right = self.reaches
        leaves = any((fall and not right) or (rise and not left) for fall, rise in profiles)
        return inf if leaves else Fraction(largest) / self.scale

    def draw_for(self, shape: tuple[int, ...]) -> Ints:
        return self.draw(shape[:-1])

    def radius(self) -> SummedRadius | SmoothRadius:
        """Return the law of the radius."""
        return radius_law(self.scale, self.dimensions, both_signs=self.sides == "both")

    def _rightward(self, k: ArrayLike) -> Ints:
        return -whole_numbers(k) if self.sides == "left" else whole_numbers(k)

    def _at_most(self, x: Ints) -> Floats:
        if self.sides == "both":
            below = self.radius().excess(np.maximum(-1 - x, 0)) / 2
            return np.where(x < 0, below, 1 - self.radius().excess(np.maximum(x, 0)) / 2)
        below, above = self._split(x)
        return np.where(below < 0.5, below, 1 - above)

    def _above(self, x: Ints) -> Floats:
        if self.sides == "both":
            return self._at_most(-1 - x)
        below, above = self._split(x)
        return np.where(below < 0.5, 1 - below, above)

    def _split(self, x: Ints) -> tuple[Floats, Floats]:
        # Both parts are accurate where they are small; the larger one is always read as one minus the smaller, so
        # that cdf and survival never contradict each other.
        inside = np.maximum(x, 0)
        radius = self.radius()
        return np.where(x < 0, 0.0, radius.within(inside)), np.where(x < 0, 1.0, radius.excess(inside))

    def draw(self, size: Size | None = None) -> Ints:
        """Draw vectors; the last axis has `dimensions` entries. Without `size` one vector."""
        rows, d, sides = count_of(size), self.dimensions, self.sides
        radius = radius_sampler(self.scale, d, both_signs=sides == "both")
        # Which arithmetic is used follows from the largest radius that is possible, not from the one that is drawn.
        wide = 2 * radius.largest + 1 > 1 << 32
        stream = current_stream()
        out = np.empty((rows, d), np.int64)
        for part in chunks(rows, max(1, CHUNK // d)):
            m = radius.draw(stream, part.stop - part.start)[:, np.newaxis]
            values = 2 * m + 1 if sides == "both" else m + 1
            drawn = uniform_upto(stream, np.broadcast_to(values.astype(np.uint64), (m.size, d)).reshape(-1), wide=wide)
            out[part] = drawn.reshape(m.size, d)
            if sides == "both":
                out[part] -= m
            elif sides == "left":
                np.negative(out[part], out=out[part])
        return out.reshape((*shape_of(size), d))


def cube(scale: ScaleLike, dimensions: int, size: Size | None = None, sides: Sides = "right") -> Ints:
    """Return integer vectors with joint weight exp(-max_i |x_i| / scale); the last axis has `dimensions` entries.

    `sides` is "right" (x >= 0), "left" (x <= 0) or "both". Without `size` one vector.
    """
    return Cube(as_scale(scale), dimensions, sides).draw(size)


def cube_is_supported(scale: ScaleLike, dimensions: int) -> bool:
    """Return whether `cube` can draw exactly for this scale and number of dimensions; if not, it refuses first."""
    if not _is_whole(dimensions):
        raise PlanError(
            "must be a whole number", key="dimensions", given=dimensions, fix="Say how many answers there are."
        )
    within = SMALLEST_SCALE <= as_fraction(scale, key="scale") <= LARGEST_SCALE
    return within and 1 <= dimensions <= MOST_DIMENSIONS


def _is_whole(number: object) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)

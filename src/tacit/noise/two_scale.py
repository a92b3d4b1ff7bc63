"""Independent noise: geometric on either side of zero, the same for all entries or with a scale for each group.

Guarantee   `TwoScale`: a rise of the query by r costs r/left and a fall by f costs f/right, exactly. Noise of scales s
            plus a draw of `widening` is noise of scales t * s, exactly.
            `GroupedNoise`: a step that moves the entries of group g by m_g in all costs the sum of m_g / scale_g,
            exactly; an entry of a group with scale 0 carries no noise, so that a step which moves it costs infinitely
            much. Every draw of one entry follows the law up to 2^-170 in total variation, given an ideal keystream.
Assumes     The keystream (`noise/keystream.py`). Scales are exact fractions, because the loss 1/scale is what a plan
            promises: 0.2 means one fifth.
Why         On each side of zero the law is geometric, so the ratio of neighbouring probabilities is exp(1/scale). Draws
            invert its distribution function (`noise/draws.py`). Two-scale noise is a geometric for the right side less
            one for the left. With a = exp(-1/(t * s)), a geometric of scale t * s counts successes of chance a before
            the first failure. Call a success small with chance a^t / a. The small ones before the first trial that is
            no small success are a geometric of scale s, since a trial is one with chance a^t = exp(-1/s). The trial
            after them is a failure with chance (1 - a)/(1 - a^t), and else a success, after which all starts anew. The
            remainder by t of a geometric of scale t * s is zero with just that chance.
            Groups: entries are independent, and the log likelihood ratio of one under a move by m is at most m / scale,
            reached at all points beyond both ends of the move. There are outputs beyond the ends of every entry at
            once, so the costs of entries add up.
Reference   Ghosh, Roughgarden, Sundararajan, Universally Utility-Maximizing Privacy Mechanisms, arXiv:0811.2841.
Checked by  tests/unit/noise/test_distributions.py, tests/unit/noise/test_noise.py, tests/statistical/test_noise.py,
            tests/property/test_noise_loss.py, tests/unit/noise/test_grouped_noise.py,
            tests/property/test_line_sums.py.

Numbers are accurate to 1e-12, relative, for probabilities down to 1e-300; a mean to 1e-12 of the larger scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, inf
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.noise.draws import (
    LARGEST_SCALE,
    ScaleLike,
    Size,
    as_scale,
    count_of,
    give_shape,
    shape_of,
    two_scale_sampler,
)
from tacit.noise.keystream import current_stream
from tacit.noise.law import EvenJointLaw, Law, quantile_of, whole_numbers


@dataclass(frozen=True)
class TwoScale(Law):
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
        return {
            "shape": "two-scale",
            "right": str(self.right),
            "left": str(self.left),
            "standard_deviation": self.variance() ** 0.5,
        }

    def joint_log_pmf(self, points: ArrayLike) -> float:
        with np.errstate(divide="ignore"):
            return float(np.sum(np.log(self.pmf(points))))

    def pmf(self, k: ArrayLike) -> Floats:
        z = whole_numbers(k).astype(np.float64)
        return np.where(
            z >= 0,
            self.mass_right * _miss(self.right) * _decay(z, self.right),
            self.mass_left * _miss(self.left) * _decay(-1 - z, self.left),
        )

    def cdf(self, k: ArrayLike) -> Floats:
        z = whole_numbers(k).astype(np.float64)
        below, above = self._split(z)
        # The larger part is read as one minus the smaller, so that cdf and survival never contradict each other.
        return np.where(below < 0.5, below, 1 - above)

    def survival(self, k: ArrayLike) -> Floats:
        z = whole_numbers(k).astype(np.float64)
        below, above = self._split(z)
        return np.where(below < 0.5, 1 - below, above)

    def _split(self, z: Floats) -> tuple[Floats, Floats]:
        """Return P(noise <= z) and P(noise > z), both from positive terms."""
        below, above = self.mass_left * _decay(-1 - z, self.left), self.mass_right * _decay(z + 1, self.right)
        upto = self.mass_left + self.mass_right * _decayed(z + 1, self.right)
        beyond = self.mass_right + self.mass_left * _decayed(-1 - z, self.left)
        return np.where(z < 0, below, upto), np.where(z < 0, beyond, above)

    def quantile(self, p: float) -> int:
        return quantile_of(self, p, lowest=-ceil(760 * self.left) - 1, highest=ceil(760 * self.right))

    def mean(self) -> float:
        if self.right == self.left:
            return 0.0
        return self.mass_right * _mean(self.right) - self.mass_left * (1 + _mean(self.left))

    def variance(self) -> float:
        return _variance(self.right, self.left)

    @property
    def is_joint(self) -> bool:
        return False

    @property
    def reaches(self) -> tuple[bool, bool]:
        return self.left > 0, self.right > 0

    @property
    def is_even(self) -> bool:
        return self.right == self.left

    @property
    def name(self) -> str:
        if 0 in (self.left, self.right):
            return "one-sided geometric noise"
        return "discrete Laplace noise" if self.is_even else "two-scale noise"

    def on_sides(self, *, falls: bool, rises: bool) -> TwoScale:
        zero = Fraction(0)
        return TwoScale(self.right if falls else zero, self.left if rises else zero)

    def proven_loss(self, profiles: Iterable[tuple[int, int]], largest: int) -> Fraction | float:
        costs = []
        for fall, rise in profiles:
            if (fall and not self.right) or (rise and not self.left):
                return inf
            costs.append((Fraction(fall) / self.right if fall else 0) + (Fraction(rise) / self.left if rise else 0))
        return max(costs, default=Fraction(0)) + Fraction(0)

    @property
    def mass_left(self) -> float:
        """The probability that noise is negative."""
        return _masses(self.right, self.left)[1]

    @property
    def mass_right(self) -> float:
        """The probability that noise is zero or positive."""
        return _masses(self.right, self.left)[0]

    def draw(self, size: Size | None = None) -> int | Ints:
        count, stream = count_of(size), current_stream()
        if self.right == 0 and self.left > 0:
            return give_shape(-two_scale_sampler(self.left, self.right).draw(stream, count), size)
        return give_shape(two_scale_sampler(self.right, self.left).draw(stream, count), size)

    def draw_for(self, shape: tuple[int, ...]) -> Ints:
        return np.asarray(self.draw(shape), dtype=np.int64)

    def widened(self, times: int) -> TwoScale | None:
        """Return the law with scales that are so many times as large; None where these cannot be drawn."""
        most = times * max(self.right, self.left)
        return TwoScale(times * self.right, times * self.left) if most <= LARGEST_SCALE else None

    def widening(self, times: int, shape: tuple[int, ...]) -> Ints:
        """Draw what makes noise of this law noise of the widened one: nothing, or one more than a geometric."""
        out = np.zeros(shape, dtype=np.int64)
        for scale, sign in ((self.right, 1), (self.left, -1)):
            if scale:
                wide = TwoScale(times * scale, Fraction(0))
                goes_on = wide.draw_for(shape) % times > 0
                out += sign * np.where(goes_on, 1 + wide.draw_for(shape), 0)
        return out


@overload
def discrete_laplace(scale: ScaleLike, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: ScaleLike, size: Size) -> Ints: ...
def discrete_laplace(scale: ScaleLike, size: Size | None = None) -> int | Ints:
    """Return integers z with P(z) proportional to exp(-|z| / scale): one without `size`, else an int64 array."""
    exact = as_scale(scale)
    return TwoScale(exact, exact).draw(size)


@overload
def geometric(scale: ScaleLike, size: None = None) -> int: ...
@overload
def geometric(scale: ScaleLike, size: Size) -> Ints: ...
def geometric(scale: ScaleLike, size: Size | None = None) -> int | Ints:
    """Return integers z >= 0 with P(z) proportional to exp(-z / scale): one-sided noise."""
    return TwoScale(as_scale(scale), Fraction(0)).draw(size)


@overload
def two_scale(right: ScaleLike, left: ScaleLike, size: None = None) -> int: ...
@overload
def two_scale(right: ScaleLike, left: ScaleLike, size: Size) -> Ints: ...
def two_scale(right: ScaleLike, left: ScaleLike, size: Size | None = None) -> int | Ints:
    """Return integers with P(z) proportional to exp(-z/right) for z >= 0 and exp(z/left) for z < 0; 0 is no side."""
    law = TwoScale(as_scale(right, key="right", zero=True), as_scale(left, key="left", zero=True))
    return law.draw(size)


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
    # Within the sides, then between them: positive terms only. A geometric has variance q / (1-q)^2.
    mass_right, mass_left = _masses(right, left)
    within = mass_right * _mean(right) / _miss(right)
    within += mass_left * _mean(left) / _miss(left)
    apart = _mean(right) + 1 + _mean(left)
    return within + mass_right * mass_left * apart**2


def _decay(z: Floats, scale: Fraction) -> Floats:
    """Return exp(-z/scale) for z >= 0 (one for negative z, which callers mask); at scale 0, one at zero only."""
    z = np.maximum(z, 0.0)
    return np.exp(-z / float(scale)) if scale else np.where(z == 0, 1.0, 0.0)


def _decayed(z: Floats, scale: Fraction) -> Floats:
    """Return 1 - exp(-z/scale), accurate where it is small."""
    z = np.maximum(z, 0.0)
    return -np.expm1(-z / float(scale)) if scale else np.where(z == 0, 0.0, 1.0)


@dataclass(frozen=True)
class GroupedNoise(EvenJointLaw):
    """Noise on a vector of integers that is cut into groups: `sizes` entries each, with one scale each, in order.

    Methods that take or return one number speak about an entry that is picked at random.

    >>> law = GroupedNoise((2, 1), (Fraction(4), Fraction(0)))
    >>> law.loss([1, -1, 0]), law.loss([0, 0, 1])
    (Fraction(1, 2), inf)
    """

    sizes: tuple[int, ...]
    scales: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if len(self.sizes) != len(self.scales) or not self.sizes or min(self.sizes) < 0 or sum(self.sizes) < 1:
            raise PlanError("must have one scale for each group of entries", key="scales", given=len(self.scales))
        object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))
        object.__setattr__(self, "scales", tuple(as_scale(scale, key="scales", zero=True) for scale in self.scales))

    @property
    def entries(self) -> int:
        """How many entries there are in all."""
        return sum(self.sizes)

    def law_of(self, group: int) -> TwoScale:
        """Return the law of one entry of a group."""
        return TwoScale(self.scales[group], self.scales[group])

    def variances(self) -> tuple[float, ...]:
        """Return the variance of an entry of each group."""
        return tuple(self.law_of(group).variance() for group in range(len(self.sizes)))

    def loss_of(self, moved: Sequence[int]) -> Fraction | float:
        """Return what a step costs that moves the entries of each group by so much in all."""
        total = Fraction(0)
        for amount, scale in zip(moved, self.scales, strict=True):
            if amount and not scale:
                return inf
            total += Fraction(amount) / scale if amount else 0
        return total

    def loss(self, step: Sequence[int]) -> Fraction | float:
        if len(step) != self.entries:
            raise PlanError(f"must have {self.entries} numbers", key="step", given=len(step))
        return self.loss_of([sum(abs(int(part)) for part in step[entries]) for entries in self._parts()])

    def proven_loss(self, profiles: Iterable[tuple[int, int]], largest: int) -> Fraction | float:
        """Return a bound on the loss of steps with these (sum of falls, sum of rises), whichever group they move."""
        most = max((fall + rise for fall, rise in profiles), default=0)
        least = min(scale for size, scale in zip(self.sizes, self.scales, strict=True) if size)
        return Fraction(0) if not most else most / least if least else inf

    def document(self) -> dict[str, Any]:
        return {
            "shape": "grouped",
            "groups": [
                {"entries": size, "scale": str(scale), "standard_deviation": variance**0.5}
                for size, scale, variance in zip(self.sizes, self.scales, self.variances(), strict=True)
            ],
            "standard_deviation": self.variance() ** 0.5,
        }

    def joint_log_pmf(self, points: ArrayLike) -> float:
        x = whole_numbers(points)
        return float(sum(self.law_of(group).joint_log_pmf(x[entries]) for group, entries in enumerate(self._parts())))

    def pmf(self, k: ArrayLike) -> Floats:
        return self._mixed([law.pmf(k) for law in self._laws()])

    def cdf(self, k: ArrayLike) -> Floats:
        return self._mixed([law.cdf(k) for law in self._laws()])

    def survival(self, k: ArrayLike) -> Floats:
        return self._mixed([law.survival(k) for law in self._laws()])

    def quantile(self, p: float) -> int:
        reach = ceil(760 * max(self.scales))
        return quantile_of(self, p, lowest=-reach - 1, highest=reach)

    def variance(self) -> float:
        """Return the variance of an entry that is picked at random."""
        return float(np.average(self.variances(), weights=self.sizes))

    @property
    def name(self) -> str:
        return "discrete Laplace noise with a scale for each group"

    def draw(self, size: Size | None = None) -> Ints:
        """Draw vectors; the last axis has an entry for each place. Without `size` one vector."""
        return self.draw_for((*(() if size is None else shape_of(size)), self.entries))

    def draw_for(self, shape: tuple[int, ...]) -> Ints:
        if shape[-1] != self.entries:
            raise PlanError(f"must have {self.entries} entries", key="shape", given=shape[-1])
        out = np.empty(shape, dtype=np.int64)
        for group, entries in enumerate(self._parts()):
            out[..., entries] = self.law_of(group).draw_for((*shape[:-1], self.sizes[group]))
        return out

    def _parts(self) -> Iterator[slice]:
        start = 0
        for size in self.sizes:
            yield slice(start, start + size)
            start += size

    def _laws(self) -> list[TwoScale]:
        return [self.law_of(group) for group in range(len(self.sizes))]

    def _mixed(self, each: list[Floats]) -> Floats:
        return sum(
            (size / self.entries * numbers for size, numbers in zip(self.sizes, each, strict=True)),
            np.zeros_like(each[0]),
        )

"""The tilted cube: noise for counts that were chosen because they are large, which pays the choice back.

A count that was chosen with noise of rate b (it had to clear a bar) costs b if it falls by one, but only if it is not
far above the bar: a count that clears the bar by itself tells nothing by being chosen. The noise x >= 0 of the
measurement v = count + x is a mixture over a radius m, tilted towards large v near the bar:

    P(v) = sum over m >= max x of exp(-epsilon m) prod_i exp(rate min(v_i - floor, max(m, cap)))  /  Z(counts)

with floor = bar + 1. Why the choice and the measurement together cost epsilon, and not rate more for each chosen count:
let some counts fall by one.
(1) The choice becomes less likely by at most exp(rate) for each fallen count that is at most the floor.
(2) In the sum, the term of m at hidden is at most exp(epsilon) times that of m + 1 at cover: max x grows by at most
    one, and the tilt only grows with m.
(3) Z(counts) = sum over m of exp(-epsilon m) prod_i A_m(count_i - floor) with A_m(d) = sum over x = 0..m of
    exp(rate min(d + x, max(m, cap))). For d <= 0 no x <= m reaches the cap, so A_m(d - 1) = exp(-rate) A_m(d): each
    such fallen count makes Z smaller by exp(rate), which is exactly what (1) cost; for larger d, Z does not grow
    either.
The product is at most exp(epsilon), however many counts fall. It is finite because dimensions * rate < epsilon.

Counts that stand further than `cap` above the floor see no tilt: theirs is the plain one-sided cube. For them the law
has a second, wide hump, which the cap keeps below `exp(-HUMP)` of the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.plan.distributions import LARGEST_SCALE, SMALLEST_SCALE, Cube, TwoScale

Floats = npt.NDArray[np.float64]
HUMP: Final = 30
MOST_TILTED: Final = 10_000  # counts; estimating them takes about a second
_DEPTH: Final = 60  # what lies exp(-60) below the largest weight is not seen in a sum


@dataclass(frozen=True)
class TiltedCube:
    """Noise on `dimensions` chosen counts; `rate` is that of the noise they were chosen with, to clear `floor` - 1."""

    epsilon: Fraction
    rate: Fraction
    dimensions: int
    cap: int
    floor: int = 0

    def __post_init__(self) -> None:
        self.far()  # a scale that no noise has is refused with the plan, not when it is certified

    def at(self, floor: int) -> TiltedCube:
        """Return the same law for counts that had to clear another bar."""
        return replace(self, floor=floor)

    def far(self) -> Cube | TwoScale:
        """Return the law for counts that all stand far above the bar, but for its second hump."""
        if self.dimensions == 1:
            return TwoScale(1 / self.epsilon, Fraction(0))
        return Cube(1 / self.epsilon, self.dimensions, "right")

    def variances_apart(self) -> tuple[float, float]:
        """Return the variances of the noise where counts stand apart: of those far over the bar, and of the one at it.

        Given the radius m, the former are uniform on 0..m; the latter is m less a geometric number, cut off at m.
        """
        above = np.append(np.full(self.dimensions - 1, 2**40 + 2 * self.cap), -1)
        slack, rate = float(self.epsilon - self.dimensions * self.rate), float(self.rate)
        end = 2 * self.cap + math.ceil(_DEPTH / slack) if self.dimensions < 5 else 2 * self.cap
        m = np.unique(np.linspace(0, end, 20_000).astype(np.int64))
        weights = self.log_weight(m, above)
        mass = np.exp(weights - weights.max()) * np.diff(np.append(m, m[-1] + 1))
        mass /= mass.sum()
        beyond = np.exp(-rate * (m + 1)) / -np.expm1(-rate * (m + 1))
        step = math.exp(-rate) / -math.expm1(-rate)
        cut_mean = step - (m + 1) * beyond
        cut_variance = step * (1 + step) - (m + 1) ** 2 * beyond * (1 + beyond)

        def variance(mean: Floats, within: Floats) -> float:
            return float(mass @ within + mass @ mean**2 - (mass @ mean) ** 2)

        return variance(m / 2, (m**2 + 2 * m) / 12), variance(m - cut_mean, cut_variance)

    def document(self) -> dict[str, Any]:
        """Return the law as plain, exact data."""
        return {
            "shape": "tilted cube",
            "epsilon": str(self.epsilon),
            "rate": str(self.rate),
            "dimensions": self.dimensions,
            "cap": self.cap,
            "standard_deviation": self.far().variance() ** 0.5,
        }

    def log_mass(self, m: Any, above: Any) -> Floats:
        """Return log A_m(d) - rate max(m, cap) for counts that are d = `above` over the floor; arrays broadcast."""
        m, above, rate = np.asarray(m), np.asarray(above), float(self.rate)
        top = np.maximum(m, self.cap)
        # x = 0 .. tilted-1 lie under the top, at distances nearest .. nearest+tilted-1; the others are flat
        tilted = np.clip(top - above, 0, m + 1)
        flat = m + 1 - tilted
        nearest = np.maximum(top - above - tilted + 1, 1)
        geometric = np.expm1(-rate * tilted) / math.expm1(-rate)
        # without a flat part the first term of the sum is taken out, so that nothing underflows
        with np.errstate(divide="ignore"):
            return np.asarray(
                np.where(
                    flat > 0,
                    np.log(flat + np.exp(-rate) * geometric),
                    -rate * nearest + np.log(geometric),
                )
            )

    def log_weight(self, m: Any, above: Any) -> Floats:
        """Return the logarithm of the weight of each radius, for counts that are so far over the floor."""
        radii = np.asarray(m)
        total = -float(self.epsilon) * radii + self.dimensions * float(self.rate) * np.maximum(radii, self.cap)
        d, many = _grouped(above)
        return np.asarray(total + self.log_mass(radii[..., np.newaxis], d) @ many)

    def steepness(self, m: Any, above: Any) -> Floats:
        """Return a bound on log_weight(n + 1) - log_weight(n) for all n >= m.

        A_{n+1}(d) is its first term plus at most exp(rate) A_n(d). The first term over A_n(d) falls with n: up to the
        cap it is exp(rate d) / A_n(d), and beyond at most exp(rate) / (n + 1).
        """
        radii, rate = np.asarray(m), float(self.rate)
        d, many = _grouped(above)
        n = radii[..., np.newaxis]
        near = np.minimum(d, self.cap)
        first = np.where(
            d <= self.cap,
            np.exp(rate * (near - np.maximum(n, self.cap)) - self.log_mass(n, near)),
            math.exp(rate) / (n + 1),
        )
        return np.asarray(-float(self.epsilon) + np.log(math.exp(rate) + first) @ many)

    def reach(self, above: Any) -> int:
        """Return a radius beyond which the weights fall geometrically, at least by half of what they do in the end."""
        slack = float(self.epsilon - self.dimensions * self.rate)
        radius = max(self.cap, 1)
        while float(self.steepness(radius, above)) > -slack / 2:
            radius *= 2
        return radius

    def log_total(self, above: Any) -> float:
        """Return log Z for counts that are so far over the floor."""
        slack = float(self.epsilon - self.dimensions * self.rate)
        radii = np.arange(self.reach(above) + math.ceil(2 * _DEPTH / slack))
        return float(np.logaddexp.reduce(self.log_weight(radii, above)))

    def log_probability(self, counts: Any, noisy: Any) -> float:
        """Return the logarithm of the probability that these counts are measured as these noisy ones."""
        true, seen = np.asarray(counts, dtype=np.int64), np.asarray(noisy, dtype=np.int64)
        if (seen < true).any():
            return -math.inf
        least = int((seen - true).max())
        slack = float(self.epsilon - self.dimensions * self.rate)
        radii = least + np.arange(self.reach(true - self.floor) + math.ceil(2 * _DEPTH / slack))
        tilt = np.minimum((seen - self.floor)[:, np.newaxis], np.maximum(radii, self.cap)).sum(axis=0)
        terms = -float(self.epsilon) * radii + float(self.rate) * tilt
        return float(np.logaddexp.reduce(terms)) - self.log_total(true - self.floor)


def tilted_cube(dimensions: int, rate: Fraction, epsilon: Fraction) -> TiltedCube:
    """Return the noise for so many counts that were chosen with noise of this rate."""
    # Far counts: the weight is (m+1)^K exp(-epsilon m) up to the cap, with its peak at m = K/epsilon, and beyond
    # (m+1)^K exp(-slack m) with another at K/slack. The second is lower by K (ln(r) - cap rate) with r = epsilon/slack,
    # so this cap keeps it exp(-HUMP) lower.
    slack = epsilon - dimensions * rate
    return TiltedCube(
        epsilon, rate, dimensions, math.ceil((math.log(epsilon / slack) + HUMP / dimensions) / float(rate))
    )


def can_be_tilted(dimensions: int, rate: Fraction, epsilon: Fraction) -> bool:
    """Say whether such noise can be drawn and estimated: not too many counts, and scales that the samplers have."""
    widest = (dimensions + 10) / rate
    return dimensions <= MOST_TILTED and 1 / max(rate, epsilon) >= SMALLEST_SCALE and widest <= LARGEST_SCALE


def slack_for(dimensions: int) -> Fraction:
    """Return how many rates are left for the measurement alone: a quarter of all for few counts, three for many."""
    return min(Fraction(3), Fraction(dimensions, 3))


def _grouped(above: Any) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the distinct distances and how often each occurs; below the floor, all radii weigh alike.

    A_m(d) = exp(rate d) A_m(0) for d <= 0: a factor that is the same for all radii, but must stay in a total.
    """
    d, many = np.unique(np.asarray(above, dtype=np.int64), return_counts=True)
    return d, many.astype(np.float64)

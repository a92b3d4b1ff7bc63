"""The tilted cube: noise for counts that were chosen because they are large, which recovers what the choice cost.

A count that was chosen with noise of rate b (it had to clear a bar) costs b if it falls by one, but only if it is not
far above the bar: a count that clears the bar by itself tells nothing by being chosen. The noise x >= 0 of the
measurement v = count + x is a mixture over a radius m, tilted towards large v near the bar:

    P(v) = sum over m >= max x of exp(-epsilon m) prod_i exp(rate min(v_i - floor, max(m, cap)))  /  Z(counts)

with floor = bar + 1; where each count had a bar of its own, it has its own floor: all that follows is about how far
each count lies over its floor. Why the choice and the measurement together cost epsilon, and not rate more for each
chosen count: let some counts fall by one.
(1) The choice becomes less likely by at most exp(rate) for each fallen count that is at most its floor.
(2) In the sum, the term of m at hidden is at most exp(epsilon) times that of m + 1 at cover: max x grows by at most
    one, and the tilt only grows with m.
(3) Z(counts) = sum over m of exp(-epsilon m) prod_i A_m(count_i - floor) with A_m(d) = sum over x = 0..m of
    exp(rate min(d + x, max(m, cap))). For d <= 0 no x <= m reaches the cap, so A_m(d - 1) = exp(-rate) A_m(d): each
    such fallen count makes Z smaller by exp(rate), which is exactly what (1) cost; for larger d, Z does not grow
    either.
The product is at most exp(epsilon), however many counts fall. It is finite because dimensions * rate < epsilon.

Counts that stand further than `cap` above the floor see no tilt: theirs is the plain one-sided cube. For them the law
has a second, wide hump, which the cap keeps below `exp(-HUMP)` of the first.

Guarantee   Choice and measurement together cost epsilon. A draw follows the law up to 2^-120 in total variation, given
            an ideal keystream, so what holds for the law holds for the draw.
Assumes     Uniform and geometric integers from `noise/draws.py` and `noise/two_scale.py`; counts below 2^62.
Why         The law: see above. The draw: the radius depends on the counts, so there is no table of it. It is drawn by
            rejection under a staircase: the weight of every radius of a block is at most that of its first one times
            exp(steepness * width), because the steepness bounds all later steps (`TiltedCube.steepness`). Stairs are
            whole numbers, so blocks and places in them are drawn exactly, whatever rounding made the stairs; beyond the
            last block, a geometric. The coin compares 63 uniform bits with a float and a bound on its error, and where
            the two cannot be told apart (about once in 10^6) 189 bits with an 80-digit decimal. So no float ever
            decides. Given the radius m, a coordinate has weight 1 on the flat part at the top of 0..m and exp(-rate)
            less for each step below it: a uniform place, kept if a geometric number of rate `rate` reaches that far
            down. How many attempts are made depends on the counts only through how well the staircase fits; all
            attempts of a round are made in any case.
Reference   Devroye, Non-Uniform Random Variate Generation (1986), sections II.3 and VII.2.
Checked by  tests/unit/noise/test_tilted_cube.py, tests/statistical/test_selections.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats, Ints
from tacit.noise.cube import Cube
from tacit.noise.draws import LARGEST_SCALE, SMALLEST_SCALE, uniform_below
from tacit.noise.two_scale import TwoScale, geometric

HUMP: Final = 30
MOST_TILTED: Final = 10_000  # counts; estimating them takes about a second
_DEPTH: Final = 60  # what lies exp(-60) below the largest weight is not seen in a sum
_ATTEMPTS: Final = 32  # in a round; at least half are kept, so hardly ever is there a second round
_ROUNDS: Final = 60  # of splitting stairs in halves: as many as a radius has bits
_LOOSE: Final = 0.7  # a stair may stand so far, in logarithms, above the weights of its radii
_SEEN: Final = 30  # unless it lies so far under the highest weight
_BITS: Final = 60  # of the sum of all stairs: it must fit into a word
_MARGIN: Final = 1e-6  # of the stairs over the computed weights: far above rounding, far below what matters
_WORD: Final = 63


@dataclass(frozen=True)
class TiltedCube:
    """Noise on `dimensions` chosen counts; `rate` is that of the noise they were chosen with, to clear `floor` - 1.

    `floor` is one number, or one for each of the counts.
    """

    epsilon: Fraction
    rate: Fraction
    dimensions: int
    cap: int
    floor: int | tuple[int, ...] = 0

    def __post_init__(self) -> None:
        self.far()  # a scale that no noise has is refused with the plan, not when it is certified

    @property
    def name(self) -> str:
        """What the noise is called."""
        return "one-sided cube noise, tilted near the bar"

    def at(self, floor: int | tuple[int, ...]) -> TiltedCube:
        """Return the same law for counts that had to clear another bar, or each its own."""
        return replace(self, floor=floor)

    def over(self, counts: Ints) -> Ints:
        """Return how far each of the counts lies over its floor."""
        return counts - np.asarray(self.floor, dtype=np.int64)

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

    def measure(self, counts: Ints) -> Ints:
        """Return chosen counts with noise."""
        above = self.over(counts)
        return counts + _coordinates(above, Radius(self, above).draw(), self)

    def log_probability(self, counts: Any, noisy: Any) -> float:
        """Return the logarithm of the probability that these counts are measured as these noisy ones."""
        true, seen = np.asarray(counts, dtype=np.int64), np.asarray(noisy, dtype=np.int64)
        if (seen < true).any():
            return -math.inf
        least = int((seen - true).max())
        slack = float(self.epsilon - self.dimensions * self.rate)
        radii = least + np.arange(self.reach(self.over(true)) + math.ceil(2 * _DEPTH / slack))
        tilt = np.minimum(self.over(seen)[:, np.newaxis], np.maximum(radii, self.cap)).sum(axis=0)
        terms = -float(self.epsilon) * radii + float(self.rate) * tilt
        return float(np.logaddexp.reduce(terms)) - self.log_total(self.over(true))


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


def _coordinates(above: Ints, m: int, law: TiltedCube) -> Ints:
    """Return one number from 0..m for each count, with weight exp(rate * min(above + x, max(m, cap)))."""
    flat = np.clip(m + 1 - np.clip(max(m, law.cap) - above, 0, m + 1), 1, None)
    found = np.full(len(above), -1, dtype=np.int64)
    missing = np.arange(len(above))
    while len(missing):
        down = uniform_below(m + 1, len(missing))  # how far below the top of 0..m
        reaches = geometric(1 / law.rate, len(missing))
        kept = reaches >= down - flat[missing] + 1
        found[missing[kept]] = m - down[kept]
        missing = missing[~kept]
    return found


class Radius:
    """The law of the radius for given counts, ready to draw from."""

    def __init__(self, law: TiltedCube, above: Ints) -> None:
        self._law, self._above = law, np.maximum(above, 0)  # below the floor all radii weigh alike
        self._end = law.reach(self._above)
        self._starts, heights = self._staircase()
        self._widths = np.diff(np.append(self._starts, self._end))
        # beyond the last stair: a geometric that falls no faster than the weights
        slack = law.epsilon - law.dimensions * law.rate
        self._tail = 2 / slack
        end = float(law.log_weight(self._end, self._above)) + _MARGIN
        self._top = float(max(heights.max(), end))
        self._unit = _BITS - self._end.bit_length()  # the highest stair is 2^unit high
        stairs = [math.ceil(math.exp(height - self._top) * 2**self._unit) for height in heights]
        self._stairs = [int(width) * (stair + 1) for width, stair in zip(self._widths, stairs, strict=True)]
        of_tail = math.exp(end - self._top) / -math.expm1(-1 / float(self._tail))
        self._stairs.append(math.ceil(of_tail * 2**self._unit * (1 + 1e-9)) + 1)
        self._reached = np.cumsum(np.array(self._stairs, dtype=object))

    def _staircase(self) -> tuple[Ints, Floats]:
        """Return where blocks of radii start and a bound on the log weight in each: close where it matters."""
        law, starts = self._law, np.unique(np.append(0, np.geomspace(1, self._end, 128).astype(np.int64)))[:-1]
        for _ in range(_ROUNDS):
            ends = np.append(starts, self._end)
            weights = law.log_weight(ends, self._above)
            rises = np.maximum(law.steepness(starts, self._above), 0.0) * (np.diff(ends) - 1)
            heights = weights[:-1] + rises + _MARGIN
            loose = heights - np.minimum(weights[:-1], weights[1:]) > _LOOSE
            split = loose & (heights > weights.max() - _SEEN) & (np.diff(ends) > 1)
            if not split.any():
                break
            starts = np.sort(np.concatenate([starts, (starts + np.diff(ends) // 2)[split]]))
        return starts, heights

    def draw(self) -> int:
        """Return one radius."""
        while True:
            kept = [radius for radius, accepted in self._attempts() if accepted]
            if kept:
                return kept[0]

    def _attempts(self) -> Iterator[tuple[int, bool]]:
        """Propose radii and toss the coin of each."""
        total = int(self._reached[-1])
        places = uniform_below(total, _ATTEMPTS)
        blocks = np.searchsorted(self._reached.astype(np.int64), places, side="right")
        radii = np.array([self._place(int(block)) for block in blocks], dtype=np.int64)
        words = uniform_below(1 << _WORD, _ATTEMPTS)
        chances = np.exp(np.minimum(self._log_chance(radii, blocks), 0.0))
        error = self._error(radii)
        uniform = words * 2.0**-_WORD
        for radius, block, word, seen, chance, off in zip(radii, blocks, words, uniform, chances, error, strict=True):
            if abs(seen - chance) > off:
                yield int(radius), bool(seen < chance)
            else:
                yield int(radius), self._exact_coin(int(radius), int(block), int(word))

    def _place(self, block: int) -> int:
        if block == len(self._starts):
            return self._end + geometric(self._tail)
        return int(self._starts[block]) + uniform_below(int(self._widths[block]))

    def _log_chance(self, radii: Ints, blocks: Ints) -> Floats:
        """Return the logarithm of the weight of each radius over the height of its stair."""
        in_tail = blocks == len(self._starts)
        width = np.append(self._widths, 1)[blocks]
        stair = np.array(self._stairs, dtype=np.float64)[blocks] / width
        beyond = np.where(in_tail, (radii - self._end) / float(self._tail), 0.0)
        proposed = np.log(stair) + np.where(in_tail, math.log(-math.expm1(-1 / float(self._tail))), 0.0) - beyond
        return np.asarray(self._law.log_weight(radii, self._above) - self._top + self._unit * math.log(2) - proposed)

    def _error(self, radii: Ints) -> Floats:
        """Return a bound on the error of a chance.

        Every term of the log weight is off by a few units of 2^-53 of its size, and adding up n terms by n units of the
        sum of their sizes.
        """
        law = self._law
        size = float(law.epsilon) * radii + law.dimensions * (float(law.rate) * np.maximum(radii, law.cap) + 50)
        return np.asarray(2.0**-52 * (law.dimensions + 64) * (size + abs(self._top) + 100))

    def _exact_coin(self, radius: int, block: int, word: int) -> bool:
        """Compare 189 uniform bits with 80 digits of the chance."""
        bits = word << 126 | uniform_below(1 << 63) << 63 | uniform_below(1 << 63)
        with localcontext() as context:
            context.prec = 80
            chance = exact_weight(self._law, radius, self._above, self._top) * 2**self._unit
            if block == len(self._starts):
                pace = _decimal(1 / self._tail)
                chance *= ((radius - self._end) * pace).exp() / (self._stairs[block] * (1 - (-pace).exp()))
            else:
                chance *= Decimal(int(self._widths[block])) / self._stairs[block]
            return bits < int(chance * 2**189)


def exact_weight(law: TiltedCube, m: int, above: Ints, top: float) -> Decimal:
    """Return exp(log weight - top) with the digits of the context."""
    rate = _decimal(law.rate)
    step = (-rate).exp()
    highest = max(m, law.cap)
    exponent = law.dimensions * rate * highest - _decimal(law.epsilon) * m - Decimal(top)
    weight = Decimal(1)
    for distance, many in zip(*np.unique(above, return_counts=True), strict=True):
        tilted = min(max(highest - int(distance), 0), m + 1)
        flat = m + 1 - tilted
        nearest = max(highest - int(distance) - tilted + 1, 1)
        mass = flat + step**nearest * (1 - step**tilted) / (1 - step)
        weight *= mass ** int(many)
    return weight * exponent.exp()


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)

"""Exact draws of the noise that chosen counts are measured with: `tacit.plan.tilted.TiltedCube`.

Guarantee   The noise follows the stated law up to 2^-120 in total variation, given an ideal keystream. So what holds
            for the law (`plan/tilted.py`: choice and measurement together cost epsilon) holds for the draw.
Assumes     Uniform and geometric integers from `mechanism.noise`; counts below 2^62.
Why         The radius depends on the counts, so there is no table of it. It is drawn by rejection under a staircase:
            the weight of every radius of a block is at most that of its first one times exp(steepness * width), because
            the steepness bounds all later steps (`TiltedCube.steepness`). Stairs are whole numbers, so blocks and
            places in them are drawn exactly, whatever rounding made the stairs; beyond the last block, a geometric. The
            coin compares 63 uniform bits with a float and a bound on its error, and where the two cannot be told apart
            (about once in 10^6) 189 bits with an 80-digit decimal. So no float ever decides.
            Given the radius m, a coordinate has weight 1 on the flat part at the top of 0..m and exp(-rate) less for
            each step below it: a uniform place, kept if a geometric number of rate `rate` reaches that far down.
            How many attempts are made depends on the counts only through how well the staircase fits; all attempts of a
            round are made in any case.
Reference   Devroye, Non-Uniform Random Variate Generation (1986), sections II.3 and VII.2.
Checked by  tests/unit/test_tilted_cube.py, tests/statistical/test_selections.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from tacit.mechanism import noise
from tacit.plan.tilted import TiltedCube

IntArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_ATTEMPTS: Final = 32  # in a round; at least half are kept, so hardly ever is there a second round
_ROUNDS: Final = 60  # of splitting stairs in halves: as many as a radius has bits
_LOOSE: Final = 0.7  # a stair may stand so far, in logarithms, above the weights of its radii
_SEEN: Final = 30  # unless it lies so far under the highest weight
_BITS: Final = 60  # of the sum of all stairs: it must fit into a word
_MARGIN: Final = 1e-6  # of the stairs over the computed weights: far above rounding, far below what matters
_WORD: Final = 63


def measure_tilted(counts: IntArray, law: TiltedCube) -> IntArray:
    """Return chosen counts with noise."""
    above = counts - law.floor
    return counts + _coordinates(above, Radius(law, above).draw(), law)


def _coordinates(above: IntArray, m: int, law: TiltedCube) -> IntArray:
    """Return one number from 0..m for each count, with weight exp(rate * min(above + x, max(m, cap)))."""
    flat = np.clip(m + 1 - np.clip(max(m, law.cap) - above, 0, m + 1), 1, None)
    found = np.full(len(above), -1, dtype=np.int64)
    missing = np.arange(len(above))
    while len(missing):
        down = noise.uniform_below(m + 1, len(missing))  # how far below the top of 0..m
        reaches = noise.geometric(1 / law.rate, len(missing))
        kept = reaches >= down - flat[missing] + 1
        found[missing[kept]] = m - down[kept]
        missing = missing[~kept]
    return found


class Radius:
    """The law of the radius for given counts, ready to draw from."""

    def __init__(self, law: TiltedCube, above: IntArray) -> None:
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

    def _staircase(self) -> tuple[IntArray, Floats]:
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
        places = noise.uniform_below(total, _ATTEMPTS)
        blocks = np.searchsorted(self._reached.astype(np.int64), places, side="right")
        radii = np.array([self._place(int(block)) for block in blocks], dtype=np.int64)
        words = noise.uniform_below(1 << _WORD, _ATTEMPTS)
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
            return self._end + noise.geometric(self._tail)
        return int(self._starts[block]) + noise.uniform_below(int(self._widths[block]))

    def _log_chance(self, radii: IntArray, blocks: IntArray) -> Floats:
        """Return the logarithm of the weight of each radius over the height of its stair."""
        in_tail = blocks == len(self._starts)
        width = np.append(self._widths, 1)[blocks]
        stair = np.array(self._stairs, dtype=np.float64)[blocks] / width
        beyond = np.where(in_tail, (radii - self._end) / float(self._tail), 0.0)
        proposed = np.log(stair) + np.where(in_tail, math.log(-math.expm1(-1 / float(self._tail))), 0.0) - beyond
        return np.asarray(self._law.log_weight(radii, self._above) - self._top + self._unit * math.log(2) - proposed)

    def _error(self, radii: IntArray) -> Floats:
        """Return a bound on the error of a chance.

        Every term of the log weight is off by a few units of 2^-53 of its size, and adding up n terms by n units of the
        sum of their sizes.
        """
        law = self._law
        size = float(law.epsilon) * radii + law.dimensions * (float(law.rate) * np.maximum(radii, law.cap) + 50)
        return np.asarray(2.0**-52 * (law.dimensions + 64) * (size + abs(self._top) + 100))

    def _exact_coin(self, radius: int, block: int, word: int) -> bool:
        """Compare 189 uniform bits with 80 digits of the chance."""
        bits = word << 126 | noise.uniform_below(1 << 63) << 63 | noise.uniform_below(1 << 63)
        with localcontext() as context:
            context.prec = 80
            chance = exact_weight(self._law, radius, self._above, self._top) * 2**self._unit
            if block == len(self._starts):
                pace = _decimal(1 / self._tail)
                chance *= ((radius - self._end) * pace).exp() / (self._stairs[block] * (1 - (-pace).exp()))
            else:
                chance *= Decimal(int(self._widths[block])) / self._stairs[block]
            return bits < int(chance * 2**189)


def exact_weight(law: TiltedCube, m: int, above: IntArray, top: float) -> Decimal:
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

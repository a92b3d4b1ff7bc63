"""Grouped noise: independent two-sided geometric noise, with one scale for each group of entries.

Guarantee   A step that moves the entries of group g by m_g in all costs the sum of m_g / scale_g, exactly; an entry
            of a group with scale 0 carries no noise, so that a step which moves it costs infinitely much. A draw
            follows the law up to 2^-170 in total variation for each entry, given an ideal keystream.
Assumes     The keystream (`noise/keystream.py`). Scales are exact fractions.
Why         Entries are independent, and each has discrete Laplace noise (`noise/two_scale.py`), whose log likelihood
            ratio under a move by m is at most m / scale, and is that at all points beyond both ends of the move.
            There are outputs beyond the ends of every entry at once, so the costs of entries add up.
Reference   Ghosh, Roughgarden, Sundararajan, Universally Utility-Maximizing Privacy Mechanisms, arXiv:0811.2841.
Checked by  tests/unit/noise/test_grouped_noise.py, tests/property/test_line_sums.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.noise.draws import Size, shape_of
from tacit.noise.law import EvenJointLaw, quantile_of, whole_numbers
from tacit.noise.scales import as_scale
from tacit.noise.two_scale import TwoScale


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
        return most / min(scale for scale in self.scales if scale) if most else Fraction(0)

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

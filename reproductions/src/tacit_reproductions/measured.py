"""Numbers that were measured over many runs, each with its standard error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

OURS: Final = "Tacit"  # what our own mechanism is called beside those of others


@dataclass(frozen=True)
class Number:
    """A measured number with its standard error."""

    value: float
    error: float

    @classmethod
    def mean(cls, of: Floats) -> Number:
        """Return the mean of independent runs; runs without a number are left out."""
        seen = of[~np.isnan(of)]
        if not len(seen):
            return cls(math.nan, math.nan)
        return cls(float(seen.mean()), float(seen.std(ddof=1) / math.sqrt(len(seen))) if len(seen) > 1 else math.nan)

    @classmethod
    def mean_along(cls, of: Floats) -> Number:
        """Return the mean of runs in the order of a setting that varies slowly: neighbours differ by chance alone."""
        seen = of[~np.isnan(of)]
        if len(seen) < 2:
            return cls.mean(of)
        return cls(float(seen.mean()), float(np.sqrt(np.mean(np.diff(seen) ** 2) / 2 / len(seen))))

    @property
    def margin(self) -> float:
        """The standard error, or zero where a single run has none."""
        return self.error if math.isfinite(self.error) else 0.0

    def written(self, form: str) -> str:
        """Return the number and its standard error as a text."""
        return f"{self.value:{form}} ± {self.margin:{form}}"

    def over(self, other: Number) -> Number:
        """Return the ratio of two independent numbers."""
        ratio = self.value / other.value if other.value else math.inf
        spread = math.hypot(self.error / self.value, other.error / other.value) if self.value and other.value else 0.0
        return Number(ratio, ratio * spread if math.isfinite(ratio) else math.nan)

    def less(self, other: Number) -> Number:
        """Return the difference of two independent numbers."""
        return Number(self.value - other.value, math.hypot(self.error, other.error))


@dataclass(frozen=True)
class Runs(Number):
    """The mean of runs with its standard error, and between which numbers the middle half of them lies."""

    lower: float
    upper: float

    @classmethod
    def of(cls, runs: Floats) -> Runs:
        """Return what independent runs come to."""
        found = Number.mean(runs)
        lower, upper = np.quantile(runs, (0.25, 0.75))
        return cls(found.value, found.error, float(lower), float(upper))

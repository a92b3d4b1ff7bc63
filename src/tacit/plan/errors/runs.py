"""Runs of neighbouring positions on a line: which of them are asked for, and how wrong their counts are.

Whatever noise is added to, counts on a line are differences of estimated running counts. `LineErrors` is what every way
to estimate them says about itself: the variance of a run, the mean over all runs of a kind without listing them, and
bounds that hold, from the law of its error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from tacit.arrays import Bools, Floats, Ints
from tacit.noise.law import Law
from tacit.plan.errors.error_laws import AnySpread, of_cells, of_two_counts, read_only
from tacit.plan.measure.block_sums import PositionGroups, cells_in_sum

Kind = Literal["ranges", "prefixes", "cells"]


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs low..high of a line of so many values that a question is about: all of a kind, or listed ones."""

    values: int
    kind: Kind | None
    low: Ints | None = None
    high: Ints | None = None


class LineErrors(Protocol):
    """How far estimated counts of runs are off."""

    def run_variance(self, low: Ints, high: Ints) -> Floats:
        """Return the variance of the estimated number of people at the positions low..high."""

    def mean_variance(self, kind: Kind) -> float:
        """Return its mean over all ranges, all prefixes or all single positions."""

    def spread(self, low: Ints, high: Ints) -> AnySpread:
        """Return the law of the error of each run, or what is known of it."""


def mean_over(errors: LineErrors, runs: Runs) -> float:
    """Return the mean variance of the runs that are asked for."""
    if runs.kind is not None:
        return float(errors.mean_variance(runs.kind))
    assert runs.low is not None  # noqa: S101 - runs are of a kind or listed
    assert runs.high is not None  # noqa: S101
    return float(errors.run_variance(runs.low, runs.high).mean())


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Running counts with uncorrelated noise of one law, but for the exact ones."""

    noise: Law
    noisy: Bools

    def __post_init__(self) -> None:
        object.__setattr__(self, "noisy", read_only(self.noisy))

    @property
    def variance(self) -> float:
        """The variance of one of them."""
        return self.noise.variance()

    def spread(self, low: Ints, high: Ints) -> AnySpread:
        """A difference of at most two draws."""
        return of_two_counts(self.noise, self.noisy[high], (low > 0) & self.noisy[low - 1])

    def run_variance(self, low: Ints, high: Ints) -> Floats:
        """A difference of two counts, of which none, one or both are noisy."""
        before = (low > 0) & self.noisy[low - 1]
        return np.asarray(self.variance * (self.noisy[high].astype(np.float64) + before))

    def mean_variance(self, kind: Kind) -> float:
        """A count is the upper end of the p+1 ranges up to it and the lower end of the n-1-p behind it: n in all."""
        values, noisy = len(self.noisy), int(self.noisy.sum())
        match kind:
            case "ranges":
                return self.variance * 2 * noisy / (values + 1)
            case "prefixes":
                return self.variance * noisy / values
            case "cells":  # every count but the last is the lower end of one cell as well
                return self.variance * (2 * noisy - int(self.noisy[-1])) / values


@dataclass(frozen=True, eq=False)
class NoisyCells:
    """Sums of cells with uncorrelated noise of one law, in blocks with exact totals (`plan/measure/block_sums.py`)."""

    noise: Law
    values: int
    blocks: PositionGroups | None

    def __post_init__(self) -> None:
        if self.blocks is not None:
            object.__setattr__(
                self, "blocks", PositionGroups(read_only(self.blocks.first), read_only(self.blocks.last))
            )

    @property
    def variance(self) -> float:
        """The variance of one of them."""
        return self.noise.variance()

    def spread(self, low: Ints, high: Ints) -> AnySpread:
        """A sum of cells, with weights where totals are exact."""
        return of_cells(self.noise, low, high, self.blocks)

    def run_variance(self, low: Ints, high: Ints) -> Floats:
        """As many cells, less what exact totals tell."""
        return self.variance * cells_in_sum(low, high, self.blocks)

    def mean_variance(self, kind: Kind) -> float:
        """Sums over whole blocks in closed form.

        A block of m cells has the part k with the variance k (1 - k/m). Each of the (m^2 - 1)/6 that the parts
        k = 1..m from either end add up to is met once for every range that begins (ends) here and ends (begins) in
        another block; ranges within the block are those of k cells, m + 1 - k of them.
        """
        n = self.values
        if self.blocks is None:
            return self.variance * {"ranges": (n + 2) / 3, "prefixes": (n + 1) / 2, "cells": 1.0}[kind]
        starts = np.flatnonzero(self.blocks.first == np.arange(n))
        m = np.diff(starts, append=n).astype(np.float64)
        ends = (m * m - 1) / 6
        match kind:
            case "prefixes":
                total = ends
            case "cells":
                total = m - 1
            case "ranges":
                within = (m + 1) * ends - m * (m + 1) * (2 * m + 1) / 6 + m * (m + 1) ** 2 / 4
                total = within + (n - m) * ends
        return self.variance * float(total.sum()) / (n * (n + 1) / 2 if kind == "ranges" else n)

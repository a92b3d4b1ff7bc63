"""The sums that are measured on a grid: noise is added to these.

How they change is said by their strategy (`GridStrategy.changes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.plan.measure.measured import Measured
from tacit.plan.measure.sums.regions import Region, fit_of
from tacit.plan.measure.sums.strategy import GridStrategy, starts_of
from tacit.plan.measure.tally import CellCounts, Tally
from tacit.plan.question import columns_of, position, suffix
from tacit.plan.sensitivity.moves import GridMoves, Pair
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.where import Where


@dataclass(frozen=True)
class GridSums(Measured):
    """Everything that a strategy measures: group after group, in each first regions of one size, then of the next.

    The last group are the exact numbers of people in the regions, where there are such.
    """

    names: tuple[str, ...]
    strategy: GridStrategy
    segments: tuple[tuple[int, ...], tuple[int, ...]]
    has_totals: bool
    where: Where | None = None

    @classmethod
    def of(cls, names: tuple[str, ...], strategy: GridStrategy, moves: GridMoves, where: Where | None) -> GridSums:
        """Return what a strategy measures on the grid of these attributes."""
        return cls(names, strategy, moves.segments, moves.has_totals, where)

    def mentioned(self) -> frozenset[str]:
        return columns_of(self.where) | set(self.names)

    def group_sizes(self) -> tuple[int, ...]:
        """Return how many sums each group has."""
        each = [np.array(region.sum_sizes()) * len(starts) for region, starts in self._regions()]
        return tuple(int(size) for size in np.sum(each, axis=0))

    def size(self, domain: Domain) -> int:
        return sum(self.group_sizes())

    def tallies(self, policy: Policy) -> tuple[Tally, ...]:
        return (CellCounts(self.names, self.where),)

    def answers(self, tallied: Sequence[Any], domain: Domain) -> Ints:
        """Return the sums from the counts of cells."""
        return self.of_cells(np.asarray(tallied[0], dtype=np.int64).reshape(self.sizes))

    def added_by(self, record: Mapping[str, Any], domain: Domain) -> Ints:
        """Return the sums of a grid with one person on it."""
        cells = np.zeros(self.sizes, dtype=np.int64)
        at = 0
        for name in self.names:
            at = at * domain[name].size + position(domain, name, record[name])
        cells.reshape(-1)[at] = 1
        return self.of_cells(cells)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many cells the grid has along x and along y."""
        return sum(self.segments[0]), sum(self.segments[1])

    def cells(self, sums: Floats, variances: tuple[float, ...]) -> Floats:
        """Return the counts of all cells by least squares, from sums whose noise has these variances by group."""
        found = np.empty(self.sizes)
        parts = np.split(sums, np.cumsum(self.group_sizes())[:-1])
        for region, starts in self._regions():
            own = []
            for group, size in enumerate(region.sum_sizes()):
                many = size * len(starts)
                own.append(parts[group][:many].reshape(len(starts), -1))
                parts[group] = parts[group][many:]
            levels = [
                part.reshape(-1, *region.level_shape(level)) for level, part in enumerate(own[: len(region.sides)])
            ]
            cells = fit_of(region, variances).cells([*levels, *own[len(region.sides) :]])
            for (x, y), one in zip(starts, cells, strict=True):
                found[x : x + region.width, y : y + region.height] = one
        return found

    def of_cells(self, cells: Ints) -> Ints:
        """Return everything that is measured of these counts."""
        groups: list[list[Ints]] = []
        for region, starts in self._regions():
            own = np.stack([cells[x : x + region.width, y : y + region.height] for x, y in starts])
            for group, part in enumerate(region.sums(own)):
                if group == len(groups):
                    groups.append([])
                groups[group].append(part.reshape(-1))
        return np.concatenate([part for group in groups for part in group]).astype(np.int64)

    def _regions(self) -> Iterator[tuple[Region, list[Pair]]]:
        """Yield each size of regions, with where they begin."""
        x_starts, y_starts = (starts_of(part).tolist() for part in self.segments)
        by_size: dict[Pair, list[Pair]] = {}
        for x, wide in zip(x_starts, self.segments[0], strict=True):
            for y, high in zip(y_starts, self.segments[1], strict=True):
                by_size.setdefault((wide, high), []).append((x, y))
        for shape, starts in sorted(by_size.items()):
            yield self.strategy.region(shape, has_total=self.has_totals), starts

    def __str__(self) -> str:
        return f"sums({', '.join(self.names)}{suffix(self.where)})"

"""The sums that are measured on a grid or a line: noise is added to these, and counts follow by least squares.

How sums of a grid change is said by their strategy (`GridStrategy.changes`); those of a line carry their noise.

Guarantee   With the noise that the sums of a line carry, every edge of a policy whose moves are `moves` costs at most
            `loss(moves)`, exactly; some move that these allow costs that much. The bounds of `spread` hold the error
            of each run at least at the stated level.
Assumes     `moves` bounds what every edge does to the running counts (`plan/sensitivity/moves.py`).
Why         Noise is independent, so costs of groups add up: the sum over groups of what a move changes there, divided
            by the group's scale (`noise/two_scale.py`). A line is a grid with one row, and the strategy says what moves
            change, in all groups at once (`plan/measure/regions.py`). A longest segment has a move that crosses a
            border of the largest cells, which is one of all smaller cells, and that changes the ramps by its length;
            whoever leaves with the first value changes every ramp by its width. Counts at the ends of segments carry no
            noise; no move changes them. An estimated run is a weighted sum of independent two-sided geometric noise,
            which its variance bounds (`noise/variance_bounds.py`).
Reference   Hay, Rastogi, Miklau, Suciu, Boosting the Accuracy of Differentially Private Histograms Through Consistency,
            arXiv:0904.0942, for trees of sums with least squares; Blowfish privacy, section 7, for ordered values.
Checked by  tests/property/test_line_sums.py, tests/statistical/test_line_strategies.py,
            tests/unit/noise/test_variance_bounds.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import inf
from typing import Any

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.noise.law import Kind
from tacit.noise.two_scale import GroupedNoise
from tacit.noise.variance_bounds import half_width
from tacit.plan.error_laws import AnySpread, LineErrors, ShapedSpread
from tacit.plan.measure.measured import CellCounts, LineEntries, Measured, Tally
from tacit.plan.measure.regions import GridStrategy, Region, Weighted, fit_of, starts_of
from tacit.plan.measure.workload import Workload, rectangle_variances
from tacit.plan.question import cell_of, columns_of, suffix
from tacit.plan.sensitivity.moves import GridMoves, Pair
from tacit.plan.sensitivity.responses import Jump, PlacedResponse, RecordMove, Response
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
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

    def noise_of(self, weighted: Weighted) -> GroupedNoise:
        """Return the noise of all sums, where each group has its rate and the last group may be exact."""
        scales = (*(1 / rate for rate in weighted.rates), *([Fraction(0)] * self.has_totals))
        return GroupedNoise(self.group_sizes(), scales)

    def size(self, domain: Domain) -> int:
        return sum(self.group_sizes())

    def tallies(self, policy: Policy) -> tuple[Tally, ...]:
        return (CellCounts(self.names, self.where),)

    def answers(self, tallied: Sequence[Any], domain: Domain) -> Ints:
        return self.of_cells(np.asarray(tallied[0], dtype=np.int64).reshape(self.sizes))

    def added_by(self, record: Mapping[str, Any], domain: Domain) -> Ints:
        cells = np.zeros(self.sizes, dtype=np.int64)
        cells.reshape(-1)[cell_of(record, self.names, domain)] = 1
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


@dataclass(frozen=True)
class LineSums(GridSums, LineEntries, LineErrors):
    """Sums over the values of an ordered attribute, each to be blurred by its part of `noise`.

    `running` turns noisy sums into counts at or below each value, by least squares with the exact counts.

    >>> from tacit.plan.measure.regions import GridStrategy
    >>> moves = GridMoves.on_line((6,), reach=5, may_enter_or_leave=False)
    >>> sums = LineSums.on("age", None, Weighted(GridStrategy((1, 3)), (Fraction(1, 4), Fraction(1, 4))), moves)
    >>> exact = sums.of_counts(np.array([1, 0, 2, 5, 1, 1]))
    >>> exact.tolist(), sums.running(exact).round(9).tolist()
    ([1, 0, 2, 5, 1, 1, 3, 7, 10], [1.0, 1.0, 3.0, 8.0, 9.0, 10.0])
    """

    noise: GroupedNoise = field(kw_only=True)

    def __post_init__(self) -> None:
        exact = int(self.has_totals)
        noisy = self.noise.scales[: len(self.noise.scales) - exact]
        if self.noise.sizes != self.group_sizes() or not all(noisy):
            raise PlanError("must have a scale for every group that is not exact", key="noise", given=str(self.noise))
        if any(self.noise.scales[len(noisy) :]):
            raise PlanError("must leave exact counts alone", key="noise", given=str(self.noise))

    @classmethod
    def on(cls, name: str, where: Where | None, weighted: Weighted, moves: GridMoves) -> LineSums:
        """Return what a strategy measures on the line of an attribute."""
        noise = GridSums.of((name,), weighted.strategy, moves, where).noise_of(weighted)
        return cls((name,), weighted.strategy, moves.segments, moves.has_totals, where, noise=noise)

    @property
    def group_names(self) -> tuple[str, ...]:
        """What each group of entries is, in words."""
        sides, (width, _) = self.strategy.sides, self.strategy.ramps
        cells = [f"cells of {side:,} values" if side > 1 else "single values" for side in sides]
        ramps = [f"ramps of {width:,} values"] if width else []
        return (*cells, *ramps, *(["exact counts at ends"] if self.has_totals else []))

    def of_counts(self, counts: Ints) -> Ints:
        """Return all sums, from how many people have each value."""
        return self.of_cells(np.asarray(counts, dtype=np.int64)[:, None])

    def response(self, domain: Domain) -> Response:
        return LineSumsResponse(self, line=domain.axes_of(self.names[0])[0])

    # ---- what it costs, and what follows

    def changes(self, reach: int, *, may_enter_or_leave: bool = False) -> list[tuple[int, ...]]:
        """Return how much people who move so change the noisy groups in all; a row for each kind of move."""
        pairs = ((reach, 0),) if reach else ()
        return self.strategy.changes(GridMoves(self.segments, pairs, may_enter_or_leave, self.has_totals))

    def loss(self, moves: GridMoves) -> Fraction | float:
        """Return the largest loss of the noise along edges that move people so; inf if the sums do not fit them."""
        if moves.segments != self.segments or (moves.may_enter_or_leave and self.has_totals):
            return inf
        exact = (0,) * int(self.has_totals)
        rows = self.changes(moves.reach, may_enter_or_leave=moves.may_enter_or_leave)
        return max((self.noise.loss_of((*row, *exact)) for row in rows), default=Fraction(0))

    def running(self, entries: Floats) -> Floats:
        """Return the counts at or below each value, by least squares with the exact counts among the entries."""
        found = np.cumsum(self.cells(np.asarray(entries, dtype=np.float64), self._variances)[:, 0])
        if self.has_totals:  # also to the last digit; they stand by the length of their segments
            lengths = np.array(self.segments[0])
            totals = np.empty(len(lengths))
            totals[np.argsort(lengths, kind="stable")] = entries[-len(lengths) :]
            found[np.cumsum(lengths) - 1] = np.cumsum(totals)
        return np.asarray(found)

    def run_variance(self, low: Ints, high: Ints) -> Floats:
        low, high = np.broadcast_arrays(np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64))
        nothing = np.zeros(low.size, dtype=np.int64)
        ends = np.stack([low.reshape(-1), high.reshape(-1), nothing, nothing], axis=1)
        found = rectangle_variances(self.strategy, self._variances, self._moves, ends)
        return np.asarray(found.reshape(low.shape))

    def mean_variance(self, kind: Kind) -> float:
        predict = Workload(self.sizes, kind=kind).predictor(self.strategy, self._moves)
        return float(predict(np.array(self._variances)))

    def spread(self, low: Ints, high: Ints) -> AnySpread:
        """Return bounds for a weighted sum of independent draws of this variance."""
        laws = tuple(self.noise.law_of(group) for group, scale in enumerate(self.noise.scales) if scale)
        return ShapedSpread(self.run_variance(low, high), partial(half_width, laws=laws))

    @property
    def _variances(self) -> tuple[float, ...]:
        return self.noise.variances()[: self.strategy.groups]

    @property
    def _moves(self) -> GridMoves:
        return GridMoves.on_line(self.segments[0], 0, may_enter_or_leave=not self.has_totals)


@dataclass(frozen=True)
class LineSumsResponse(PlacedResponse):
    """Cells and ramps of a line: bounds over all groups together; the loss is counted group by group."""

    sums: LineSums

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """A move upwards lowers running counts and one cell of each size, and raises another cell."""
        for end in move.relation.differences(move.hidden, move.cover).ends:
            for row in self.sums.changes(abs(end)):
                cells, ramps = self._split(row)
                yield self._jump(cells // 2, cells // 2, ramps, falls=end > 0)

    def counted_at(self, places: Intervals) -> Iterable[Jump]:
        """All running counts from the position on rise, and one cell of each size."""
        if not places:
            return []
        if self.sums.has_totals:
            raise TypeError(self)  # sums for people who stay: the counts at the ends would give them away
        cells, ramps = self._split(self.sums.changes(0, may_enter_or_leave=True)[0])
        return [self._jump(cells, 0, ramps, falls=False)]

    def _split(self, row: tuple[int, ...]) -> tuple[int, int]:
        """Return by how much cells of all sizes change, and ramps."""
        levels = len(self.sums.strategy.sides)
        return sum(row[:levels]), sum(row[levels:])

    def _jump(self, rising: int, falling: int, ramps: int, *, falls: bool) -> Jump:
        """Return the jump of so many cells that rise and fall, and of ramps."""
        most = min(ramps, self.sums.strategy.ramps[0])  # of one ramp
        rise, fall = rising + (0 if falls else ramps), falling + (ramps if falls else 0)
        up, down = max(int(rising > 0), 0 if falls else most), max(int(falling > 0), most if falls else 0)
        return Jump(rise, fall, up, down, rising + falling + ramps * most, bound=True)

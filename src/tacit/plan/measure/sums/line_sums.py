"""Measured sums of a line, with the noise that each group of them has: what ranges and quantiles are read off.

Guarantee   With the noise that the sums carry, every edge of a policy whose moves are `moves` costs at most
            `loss(moves)`, exactly; some move that these allow costs that much.
Assumes     `moves` bounds what every edge does to the running counts (`plan/sensitivity/moves.py`).
Why         Noise is independent, so costs of groups add up: the sum over groups of what a move changes there, divided
            by the group's scale (`noise/grouped.py`). A line is a grid with one row, and the strategy says what moves
            change, in all groups at once (`plan/measure/sums/strategy.py`). A longest segment has a move that crosses
            a border of the largest cells, which is one of all smaller cells, and that changes the ramps by its length;
            whoever leaves with the first value changes every ramp by its width. Counts at the ends of segments carry no
            noise; no move changes them.
Reference   Hay, Rastogi, Miklau, Suciu, Boosting the Accuracy of Differentially Private Histograms Through Consistency,
            arXiv:0904.0942, for trees of sums with least squares; Blowfish privacy, section 7, for ordered values.
Checked by  tests/property/test_line_sums.py
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.noise.grouped import GroupedNoise
from tacit.plan.errors.runs import Kind
from tacit.plan.measure.measured import LineEntries
from tacit.plan.measure.sums.grid_sums import GridSums
from tacit.plan.measure.sums.strategy import Weighted
from tacit.plan.measure.sums.workload import Workload, rectangle_variances
from tacit.plan.questions.cumulative import refuse_several_rows
from tacit.plan.sensitivity.moves import GridMoves, LineMoves
from tacit.plan.sensitivity.responses import Jump, PlacedResponse, RecordMove, Response
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.policy import Policy
from tacit.policy.where import Where


@dataclass(frozen=True)
class LineSums(GridSums, LineEntries):
    """Sums over the values of an ordered attribute, each to be blurred by its part of `noise`.

    `running` turns noisy sums into counts at or below each value, by least squares with the exact counts.

    >>> from tacit.plan.measure.sums.strategy import GridStrategy
    >>> moves = LineMoves((6,), reach=5, may_enter_or_leave=False)
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
    def on(cls, name: str, where: Where | None, weighted: Weighted, moves: LineMoves) -> LineSums:
        """Return what a strategy measures on the line of an attribute."""
        grid = moves.grid
        plain = GridSums.of((name,), weighted.strategy, grid, where)
        scales = (*(1 / rate for rate in weighted.rates), *([Fraction(0)] if grid.has_totals else []))
        noise = GroupedNoise(plain.group_sizes(), scales)
        return cls((name,), weighted.strategy, grid.segments, grid.has_totals, where, noise=noise)

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

    def check_rows_of_one(self, policy: Policy) -> None:
        """Refuse people who own several rows."""
        refuse_several_rows(self, policy)

    # ---- what it costs, and what follows

    def changes(self, reach: int, *, may_enter_or_leave: bool = False) -> list[tuple[int, ...]]:
        """Return how much people who move so change the noisy groups in all; a row for each kind of move."""
        pairs = ((reach, 0),) if reach else ()
        return self.strategy.changes(GridMoves(self.segments, pairs, may_enter_or_leave, self.has_totals))

    def loss(self, moves: LineMoves) -> Fraction | float:
        """Return the largest loss of the noise along edges that move people so; inf if the sums do not fit them."""
        if moves.segments != self.segments[0] or (moves.may_enter_or_leave and self.has_totals):
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
        """Return the variance of the count of each run of positions, both ends included."""
        low, high = np.broadcast_arrays(np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64))
        nothing = np.zeros(low.size, dtype=np.int64)
        ends = np.stack([low.reshape(-1), high.reshape(-1), nothing, nothing], axis=1)
        found = rectangle_variances(self.strategy, self._variances, self._moves, ends)
        return np.asarray(found.reshape(low.shape))

    def mean_variance(self, kind: Kind) -> float:
        """Return the average variance over all ranges, all prefixes or all single values."""
        predict = Workload(self.sizes, kind=kind).predictor(self.strategy, self._moves)
        return float(predict(np.array(self._variances)))

    @property
    def _variances(self) -> tuple[float, ...]:
        return self.noise.variances()[: self.strategy.groups]

    @property
    def _moves(self) -> GridMoves:
        return GridMoves(self.segments, (), may_enter_or_leave=not self.has_totals, has_totals=self.has_totals)


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

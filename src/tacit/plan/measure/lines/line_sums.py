"""Measured sums of a line, with the noise that each group of them has: what ranges and quantiles are read off.

Guarantee   With the noise that the sums carry, every edge of a policy whose moves are `moves` costs at most
            `loss(moves)`, exactly; some move that these allow costs that much.
Assumes     `moves` bounds what every edge does to the running counts (`plan/sensitivity/line_moves.py`).
Why         Noise is independent, so costs of groups add up: the sum over groups of what a move changes there, divided
            by the group's scale (`noise/grouped.py`). The layout bounds what moves change, in all groups at once
            (`plan/measure/lines/layout.py`), so that the largest sum is that of the bounds. Counts at the ends of
            segments carry no noise; no move changes them.
Reference   Hay, Rastogi, Miklau, Suciu, Boosting the Accuracy of Differentially Private Histograms Through Consistency,
            arXiv:0904.0942, for trees of sums with least squares; Blowfish privacy, section 7, for ordered values.
Checked by  tests/property/test_line_sums.py
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import Any, ClassVar

import numpy as np

from tacit.errors import PlanError
from tacit.noise.grouped import GroupedNoise
from tacit.plan.measure.lines.layout import LineLayout
from tacit.plan.measure.lines.least_squares import running_counts
from tacit.plan.measure.lines.run_errors import Every, RunErrors
from tacit.plan.measure.measured import LineEntries
from tacit.plan.measure.tally import CellCounts, Tally
from tacit.plan.question import Floats, Ints, columns_of, position, suffix
from tacit.plan.questions.on_a_line import refuse_several_rows
from tacit.plan.sensitivity.line_moves import LineMoves
from tacit.plan.sensitivity.responses import Jump, RecordMove, Response, cover_ends, hidden_ends
from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.where import Where


@dataclass(frozen=True)
class LineSums(LineEntries):
    """Sums over the values of an ordered attribute that a layout lists, each to be blurred by its part of `noise`.

    `running` turns noisy sums into counts at or below each value, by least squares with the exact counts.

    >>> layout = LineLayout(segments=(6,), leaves=False, block=3, cells=(3, 1))
    >>> sums = LineSums("age", None, layout, GroupedNoise(layout.sizes, (Fraction(4), Fraction(4), Fraction(0))))
    >>> exact = layout.entries(np.array([1, 0, 2, 5, 1, 1]))
    >>> exact.tolist(), sums.running(exact).round(9).tolist()
    ([3, 7, 1, 0, 2, 5, 1, 1, 10], [1.0, 1.0, 3.0, 8.0, 9.0, 10.0])
    """

    name: str
    where: Where | None
    layout: LineLayout
    noise: GroupedNoise

    def __post_init__(self) -> None:
        scales = self.noise.scales if self.layout.leaves else self.noise.scales[:-1]
        if self.noise.sizes != self.layout.sizes or not all(scales):
            raise PlanError("must have a scale for every group that is not exact", key="noise", given=str(self.noise))
        if not self.layout.leaves and self.noise.scales[-1]:
            raise PlanError("must leave exact counts alone", key="noise", given=str(self.noise))

    def mentioned(self) -> frozenset[str]:
        """Return every attribute that the sums look at."""
        return columns_of(self.where) | {self.name}

    def size(self, domain: Domain) -> int:
        """Return how many sums there are."""
        return self.noise.entries

    def tallies(self, policy: Policy) -> tuple[Tally, ...]:
        """Return what rows are counted for."""
        return (CellCounts((self.name,), self.where),)

    def answers(self, tallied: Sequence[Any], domain: Domain) -> Ints:
        """Return all sums, group by group."""
        return self.layout.entries(np.asarray(tallied[0], dtype=np.int64))

    def added_by(self, record: Mapping[str, Any], domain: Domain) -> Ints:
        """Return the sums of one person."""
        counts = np.zeros(self.layout.values, dtype=np.int64)
        counts[position(domain, self.name, record[self.name])] = 1
        return self.layout.entries(counts)

    def response(self, domain: Domain) -> Response:
        """Return how the sums respond to moves."""
        return LineSumsResponse(domain.axes_of(self.name)[0], self.layout)

    def check_rows_of_one(self, policy: Policy) -> None:
        """Refuse people who own several rows."""
        refuse_several_rows(self, policy)

    # ---- what it costs, and what follows

    def loss(self, moves: LineMoves) -> Fraction | float:
        """Return the largest loss of the noise along edges that move people so; inf if the layout does not fit them."""
        if moves.segments != self.layout.segments or (moves.leaves and not self.layout.leaves):
            return inf
        return max(self.noise.loss_of(moved) for moved in self.layout.profiles(moves))

    def running(self, entries: Floats) -> Floats:
        """Return the counts at or below each value, by least squares with the exact counts among the entries."""
        return running_counts(self.layout, self.noise.variances(), entries)

    def run_variance(self, low: Ints, high: Ints) -> Floats:
        """Return the variance of the count of each run of positions, both ends included."""
        return self._errors.of_runs(low, high)

    def mean_variance(self, workload: Every) -> float:
        """Return the average variance over all ranges, all prefixes or all single values."""
        return self._errors.mean(workload)

    @cached_property
    def _errors(self) -> RunErrors:
        return RunErrors(self.layout, self.noise.variances())

    def __str__(self) -> str:
        return f"sums({self.name}: {', '.join(self.layout.names)}{suffix(self.where)})"


@dataclass(frozen=True)
class LineSumsResponse:
    """Cells, ramps and anchors of a line: bounds over all groups together; the loss is counted group by group."""

    line: Axis
    layout: LineLayout
    cells: tuple[str, ...] = ()
    items: str | None = None
    staying_may_show_more: ClassVar[bool] = False

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """A move upwards lowers running counts and one cell of each size, and raises another cell."""
        for end in move.relation.differences(move.hidden, move.cover).ends:
            moved = self.layout.moved(abs(end))
            sizes = sum(1 for _, many in zip(self.layout.cells, moved, strict=False) if many)
            yield self._jump(sizes, sizes, moved, falls=end > 0)

    def left(self, move: RecordMove) -> Iterable[Jump]:
        """All running counts from the hidden position on fall, and one cell of each size."""
        return [self._of_one(falls=True)] if hidden_ends(move) else []

    def entered(self, move: RecordMove) -> Iterable[Jump]:
        """All running counts from the cover position on rise, and one cell of each size."""
        return [self._of_one(falls=False)] if cover_ends(move) else []

    def _of_one(self, *, falls: bool) -> Jump:
        if not self.layout.leaves:
            raise TypeError(self)  # a layout for people who stay: the counts at the ends would give them away
        sizes = len(self.layout.cells)
        return self._jump(0 if falls else sizes, sizes if falls else 0, self.layout.left(), falls=falls)

    def _jump(self, rising: int, falling: int, moved: Sequence[int], *, falls: bool) -> Jump:
        """Return the jump of so many cells that rise and fall, and of what runs."""
        rest = moved[len(self.layout.cells) :]
        ramps = rest[0] if self.layout.ramps else 0
        anchors = rest[int(self.layout.ramps)] if self.layout.anchors else 0
        most = min(ramps, self.layout.block)  # of one ramp
        largest = max(most, int(anchors > 0))
        rise, fall = rising + (0 if falls else ramps + anchors), falling + (ramps + anchors if falls else 0)
        up, down = max(int(rising > 0), 0 if falls else largest), max(int(falling > 0), largest if falls else 0)
        return Jump(rise, fall, up, down, rising + falling + anchors + ramps * most, bound=True)

"""Counts of rectangles, from the estimates of all cells of a grid: post-processing, which costs no privacy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.plan.plans.grid_plan import NO_NOISE, GridPlan
from tacit.plan.question import in_words
from tacit.plan.questions.rectangles import in_rectangles
from tacit.release.estimate.measure import Measurements, measure
from tacit.release.results.record import NumbersRecord, ReleaseRecord, check_level, draw_record


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RectanglesRecord(NumbersRecord):
    """The result of a question about rectangles. `rectangle` tells any other one from the same measurements."""

    plan: GridPlan
    _cells: Floats | None = field(repr=False)  # estimates of all cells; None where only rectangles were measured
    _centre: Floats = field(repr=False)  # estimates of the answers, as they are: values may have been cut at zero

    def __post_init__(self) -> None:
        super().__post_init__()
        for array in (self._cells, self._centre):
            if array is not None:
                array.flags.writeable = False

    def rectangle(self, x_low: Any, x_high: Any, y_low: Any, y_high: Any) -> float:
        """Return the estimated number of people in a rectangle, all ends included."""
        estimate = self._estimate((x_low, x_high, y_low, y_high))
        return max(estimate, 0.0) if self.plan.nonnegative else estimate

    def interval(self, level: float = 0.95, *rectangle: Any) -> tuple[Any, Any]:
        """Return ends that hold each true answer with at least this probability, one at a time.

        With the four ends of a rectangle: the same for that rectangle.
        """
        check_level(level)
        if rectangle:
            ends = self._placed(rectangle)
            centre = np.array([self._estimate(rectangle)])
            lower, upper = self._around(level, ends, centre, np.array([self.rectangle(*rectangle)]))
            return float(lower[0]), float(upper[0])
        return self._around(level, self.plan.query.ends(self.plan.policy.domain), self._centre, self.values)

    def _around(self, level: float, ends: Ints, centre: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Return the ends of intervals: counts are whole and not negative, and the published value lies inside."""
        far = self.plan.half_widths(level, ends)
        slack = 1e-9 * (1 + np.abs(centre))
        lower = np.maximum(np.ceil(centre - far - slack), 0.0)
        upper = np.maximum(np.floor(centre + far + slack), 0.0)
        return np.minimum(lower, values), np.maximum(upper, values)

    def _placed(self, rectangle: tuple[Any, ...]) -> Ints:
        return np.array([self.plan.query.places(self.plan.policy.domain, rectangle)], dtype=np.int64)

    def _estimate(self, rectangle: tuple[Any, ...]) -> float:
        """Return the estimate of one rectangle, or refuse where it cannot be told."""
        ends = self._placed(rectangle)
        if self._cells is not None:
            found = float(in_rectangles(self._cells, ends)[0])
            return float(np.rint(found)) if self.plan.variances(ends)[0] < NO_NOISE else found
        same = np.flatnonzero((self.plan.query.ends(self.plan.policy.domain) == ends).all(axis=1))
        if not len(same):
            names = self.plan.query.names
            raise PlanError(
                f"cannot be told: only the listed rectangles of {in_words(names)} were measured, each by itself",
                key="rectangle",
                given=list(rectangle),
                fix=f"List it too, or ask for rectangles({', '.join(map(repr, names))}, 'all').",
            )
        return float(self._centre[same[0]])


def infer_rectangles(measured: Measurements, plan: GridPlan) -> RectanglesRecord:
    """Return the estimates of rectangles, or of all cells, from noisy sums."""
    query, domain = plan.query, plan.policy.domain
    entries = measured.noisy.astype(np.float64)
    cells = plan.cells(entries)
    ends = query.ends(domain)
    centre = entries if cells is None else cells.reshape(-1) if query.rectangles is None else in_rectangles(cells, ends)
    centre = np.where(plan.spread.exact(), np.rint(centre), centre)
    values = np.maximum(centre, 0.0) if plan.nonnegative else centre.copy()
    return RectanglesRecord(plan=plan, values=values, _cells=cells, _centre=centre)


@draw_record.register
def _(plan: GridPlan, truths: Sequence[Ints], rows: Any, coins: Any) -> Callable[[], ReleaseRecord]:
    return partial(infer_rectangles, measure(plan, *truths), plan)

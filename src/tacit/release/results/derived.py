"""Records of questions that are made of several parts: what follows from the releases of the parts; clusters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.plan.plans.derived import DerivedPlan
from tacit.plan.plans.kmeans import nearest
from tacit.plan.plans.rank_plan import RankPlan, step_of_values
from tacit.plan.plans.zoom import draw_stages
from tacit.plan.questions.clusters import ClustersPlan
from tacit.release.estimate.infer import infer
from tacit.release.estimate.measure import Measurements, measure
from tacit.release.results.ranges import LineRecord, RunningAnswers, RunningCounts
from tacit.release.results.record import LinearRecord, NumbersRecord, ReleaseRecord, draw_record
from tacit.release.results.value_files import decimals_for, number_text


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DerivedRecord(NumbersRecord):
    """The result of a question that is made of parts. `parts` are the releases of these."""

    plan: DerivedPlan
    parts: tuple[LinearRecord | LineRecord, ...]
    no_number: ClassVar[str] = "nobody"

    @cached_property
    def digits_for(self) -> float:
        """The smallest error that the published intervals speak of; the expected error is about an assumed number.

        An interval of 95% is about four standard errors wide.
        """
        if self.plan.is_exact:
            return 0.0
        lower, upper = self.interval()
        widths = upper - lower
        return float(min(widths[widths > 0], default=0.0)) / 4

    def ends(self, level: float) -> tuple[Floats, Floats]:
        return self.plan.query.ends(self.parts, self.plan.policy.domain, level)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LineDerivedRecord(RunningAnswers, DerivedRecord):
    """The result of a question that is read off running counts: it can tell any range besides."""

    parts: tuple[LineRecord]

    @property
    def line(self) -> RunningCounts:
        return self.parts[0].line

    def interval(self, level: float = 0.95, low: Any = None, high: Any = None) -> tuple[Any, Any]:
        """Return ends that hold each answer with this probability; with `low` and `high`, the people in this range."""
        return super().interval(level) if low is None and high is None else self.range_ends(level, low, high)


def derive(plan: DerivedPlan, parts: Sequence[LinearRecord | LineRecord]) -> DerivedRecord:
    """Return the record of a plan from the records of its parts."""
    kind = LineDerivedRecord if plan.parts[0].line is not None else DerivedRecord
    return kind(plan=plan, values=plan.query.values(parts, plan.policy.domain), parts=tuple(parts))  # type: ignore[arg-type]


@draw_record.register
def _(plan: DerivedPlan, truths: Sequence[Ints], rows: Any, coins: Any) -> Callable[[], ReleaseRecord]:
    measured = [measure(part, truth) for part, truth in zip(plan.parts, truths, strict=True)]
    return lambda: derive(plan, [infer(part, consistent=True) for part in measured])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankRecord(NumbersRecord):
    """The result of quantiles that were chosen by their ranks.

    What is known is how many people each rank may be off (`plan.rank_bounds(level)`), and nothing of other values near
    this rank: the interval is the whole range, and no column of the frame.
    """

    plan: RankPlan

    @property
    def digits_for(self) -> float:
        """The step of the values, one of which this is."""
        return float(step_of_values(self.plan.query, self.plan.policy.domain))

    def ends(self, level: float) -> tuple[Floats, Floats]:
        low, high = self.plan.query.range(self.plan.policy.domain)
        return np.full(self.values.shape, low), np.full(self.values.shape, high)

    def numbers(self, level: float = 0.95) -> dict[str, Floats]:
        """Return the value, and by how many people its rank is off at most."""
        return {"value": self.values, "rank off by at most": np.ceil(self.plan.rank_bounds(level))}

    def summary(self) -> str:
        if len(self.values) > 1:
            return super().summary()
        off = math.ceil(self.plan.rank_bounds()[0])
        value = number_text("value", self.values[0], self.digits_for)
        return f"{value} (95%: its rank is off by at most {off:,} {self.plan.query.who})"


@draw_record.register
def _(plan: RankPlan, truths: Sequence[Ints], rows: Any, coins: Any) -> Callable[[], ReleaseRecord]:
    attribute: Any = plan.policy.domain[plan.query.name]
    chosen = [float(attribute.number(place) * attribute.unit) for place in plan.draw(truths[0])]
    return lambda: RankRecord(plan=plan, values=np.array(chosen))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClustersRecord(DerivedRecord):
    """The result of a question for clusters, the heaviest first.

    `centres` has a row for each cluster, in the numbers of the data; `objective` is an estimate of the mean squared
    distance of a person to the nearest centre, NaN where nobody seems to be. `parts` are the counts of cells, the
    number of people and, where a look led to finer cells, the look; `settled` is the plan for this number of people.
    """

    plan: ClustersPlan
    centres: Floats
    objective: float
    settled: ClustersPlan
    _own: Ints = field(repr=False)  # which centre each cell of the grid belongs to

    @property
    def done(self) -> ClustersPlan:
        """What came of the plan: the cells that were counted, and the noise that they have."""
        return self.settled.done([part.plan for part in self.parts])

    @property
    def sizes(self) -> Floats:
        """How many people are nearest to each centre, estimated."""
        return self.values

    @property
    def own(self) -> Ints:
        """Which centre is nearest to each cell of the grid that was counted."""
        return self._own

    @cached_property
    def digits_for(self) -> float:
        """The error of the number of people around a centre: an interval for all regions at once is wider than that."""
        noise, grid = self.parts[0].plan.noise, self.parts[0].plan
        if noise is None:
            return 0.0
        unit = float(grid.query.unit(grid.policy.domain))
        return float(np.sqrt(noise.variance() * len(self._own) / len(self.values)) * unit)

    def predict(self, points: Any) -> npt.NDArray[np.int64]:
        """Return for each point the number of its nearest centre, counted from zero: a row of `centres`.

        Points are rows of coordinates, in the order of the columns of `centres`.
        """
        wide = self.centres.shape[1]
        try:
            given = np.asarray(points, dtype=np.float64)
        except (TypeError, ValueError):
            given = np.empty((0, 0, 0))
        if given.ndim == 1 and wide == 1:
            given = given[:, np.newaxis]
        if given.ndim != 2 or given.shape[1] != wide or not np.isfinite(given).all():
            # whose points these are is not known: nothing of them is repeated
            fix = f"Give rows of {wide} number{'s' * (wide != 1)}, in the order of {', '.join(self._columns())}."
            raise PlanError(f"must be a table of finite numbers with {wide} columns", key="points", fix=fix)
        return nearest(given, self.centres)

    def labels(self) -> dict[str, Any]:
        columns = self._columns()
        number = "cluster"
        while number in columns:
            number += " number"
        digits = decimals_for(self.settled.rmse / 10)
        places = np.round(self.centres, digits)
        return {
            number: list(range(1, len(self.values) + 1)),
            **{name: places[:, at].tolist() for at, name in enumerate(columns)},
        }

    def ends(self, level: float) -> tuple[Floats, Floats]:
        """Return ends that contain the number of people in the cells around each centre."""
        return self.plan.query.ends_of(self._own, self.parts, level)

    def _columns(self) -> tuple[str, ...]:
        return self.plan.query.columns(self.plan.policy.domain)


def clustered(plan: ClustersPlan, settled: ClustersPlan, parts: Sequence[LinearRecord | LineRecord]) -> ClustersRecord:
    """Return the record of a plan from those of cells, people and look; `settled` is the plan for these people."""
    found = plan.query.fit(parts)
    return ClustersRecord(
        plan=plan,
        values=found.people,
        parts=tuple(parts),
        centres=found.centres,
        objective=found.objective,
        settled=settled,
        _own=found.own,
    )


@draw_record.register
def _(plan: ClustersPlan, truths: Sequence[Ints], rows: Any, coins: Any) -> Callable[[], ReleaseRecord]:
    settled, parts = draw_stages(plan, *truths)
    measured = [Measurements(part.plan, part.noisy, None, None) for part in parts]
    return lambda: clustered(plan, settled, [infer(part) for part in measured])

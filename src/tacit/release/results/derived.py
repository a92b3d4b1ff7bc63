"""Records of questions that are made of several parts: what follows from the releases of the parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.plan.plans.derived import DerivedPlan
from tacit.release.estimate.infer import infer
from tacit.release.estimate.measure import Measurements, measure
from tacit.release.results.line import LineRecord, RunningAnswers, RunningCounts
from tacit.release.results.record import LinearRecord, NumbersRecord, ReleaseRecord, check_level, draw_record


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

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return lower and upper ends that hold the true answer with at least this probability, each by itself."""
        check_level(level)
        lower, upper = self.plan.query.ends(self.parts, self.plan.policy.domain, level)
        return np.minimum(lower, self.values), np.maximum(upper, self.values)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LineDerivedRecord(RunningAnswers, DerivedRecord):
    """The result of a question that is read off running counts: it can tell any range besides."""

    parts: tuple[LineRecord]

    @property
    def line(self) -> RunningCounts:
        """The running counts that the answers were read off."""
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
    return partial(_inferred, plan, [measure(part, truth) for part, truth in zip(plan.parts, truths, strict=True)])


def _inferred(plan: DerivedPlan, measured: Sequence[Measurements]) -> DerivedRecord:
    return derive(plan, [infer(part, consistent=True) for part in measured])

"""Records of questions that are made of several parts: what follows from the releases of the parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import ClassVar

import numpy as np

from tacit.plan.derived import DerivedPlan
from tacit.release.record import Floats, LinearRecord, NumbersRecord, check_level


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DerivedRecord(NumbersRecord):
    """The result of a question that is made of parts. `parts` are the releases of these."""

    plan: DerivedPlan
    parts: tuple[LinearRecord, ...]
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


@singledispatch
def derive(plan: DerivedPlan, parts: Sequence[LinearRecord]) -> DerivedRecord:
    """Return the record of a plan from the records of its parts."""
    return DerivedRecord(plan=plan, values=plan.query.values(parts, plan.policy.domain), parts=tuple(parts))

"""What is measured: noisy entries, and of the true ones only the numbers that no secret edge changes.

From here on nothing knows the true answers: `release/estimate/infer.py` works on measurements alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.plan.draws.additive import blur
from tacit.plan.plans.linear import LinearPlan


@dataclass(frozen=True, eq=False, repr=False)
class Measurements:
    """Noisy entries of what a plan adds noise to; the plan knows their laws.

    `totals` are exact: for each table those of the plan's groups of cells. `fixed` are the exact ones among the counts
    of a line.
    """

    plan: LinearPlan
    noisy: Ints
    totals: tuple[Floats, ...] | None
    fixed: Floats | None

    @classmethod
    def of(cls, plan: LinearPlan, truth: Ints, noisy: Ints) -> Measurements:
        """Return noisy entries with what the plan says is exact; nothing else of the true ones is kept."""
        totals = None
        if plan.groups is not None:
            starts = np.cumsum([len(group) for group in plan.groups])[:-1]
            parts = zip(plan.groups, np.split(truth, starts), strict=True)
            totals = tuple(np.bincount(group, part).astype(np.float64) for group, part in parts)
        return cls(plan, noisy, totals, plan.fixed_counts(truth))


def measure(plan: LinearPlan, truth: Ints) -> Measurements:
    """Add the noise of a plan to true entries."""
    return Measurements.of(plan, truth, blur(truth, plan))

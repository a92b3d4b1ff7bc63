"""One draw of whatever a selection's plan says: the output whose probability the plan's `log_probability` states.

Guarantee   For every secret edge hidden -> cover of the plan's policy and every set O of outputs:
            Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O].
Assumes     What the mechanism of the plan's kind assumes: `plan/draws/thresholds.py`, `plan/draws/top_k.py`.
Why         Each kind of plan has one mechanism, registered here, for releases and audits alike; a kind without one has
            no draw. Nothing is done to what the mechanism returns.
Reference   Those of the mechanisms.
Checked by  tests/statistical/test_selections.py
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from tacit.arrays import Ints
from tacit.plan.draws.thresholds import decide, scan
from tacit.plan.draws.top_k import choose, choose_and_measure, measure
from tacit.plan.plans.selection_plan import SelectionPlan
from tacit.plan.plans.thresholds import AbovePlan, BelowPlan
from tacit.plan.plans.top_k import BarOutput, BarPlan, TopKPlan


@singledispatch
def draw_output(plan: SelectionPlan, counts: Ints) -> Any:
    """Return one output for these true counts, as `plan.log_probability` takes it."""
    raise TypeError(type(plan).__name__)


@draw_output.register
def _(plan: BelowPlan, counts: Ints) -> int | None:
    return decide(int(counts[0]), plan)


@draw_output.register
def _(plan: AbovePlan, counts: Ints) -> tuple[tuple[bool, ...], tuple[int, ...]]:
    verdicts = scan(counts, plan)
    found = np.flatnonzero(verdicts == plan.costly)
    noisy = measure(counts[found], plan.measuring(found)).tolist() if plan.query.values else ()
    return tuple(verdicts.tolist()), tuple(noisy)


@draw_output.register
def _(plan: TopKPlan, counts: Ints) -> tuple[tuple[int, int], ...]:
    places = choose(counts, plan)
    return tuple(zip(places.tolist(), measure(counts[places], plan.measuring).tolist(), strict=True))


@draw_output.register
def _(plan: BarPlan, counts: Ints) -> BarOutput:
    return choose_and_measure(counts, plan)

"""One draw of whatever a selection's plan says: the output whose probability the plan's `log_probability` states.

Guarantee   That of the mechanism of the plan's kind: `mechanism/thresholds.py`, `mechanism/top_k.py`.
Assumes     The same.
Why         The same; this only finds the right one, for releases and audits alike.
Reference   The same.
Checked by  tests/statistical/test_selections.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.mechanism.thresholds import IntArray, decide, scan
from tacit.mechanism.top_k import choose, choose_and_measure, measure
from tacit.plan.ranking import BarPlan, TopKPlan
from tacit.plan.selection_plan import SelectionPlan
from tacit.plan.verdicts import AbovePlan, BelowPlan


def output_of(counts: IntArray, plan: SelectionPlan) -> Any:
    """Return one output for these true counts, as `plan.log_probability` takes it."""
    match plan:
        case BelowPlan():
            return decide(int(counts[0]), plan)
        case AbovePlan():
            verdicts = scan(counts, plan)
            found = np.flatnonzero(verdicts == plan.costly)
            noisy = measure(counts[found], plan.measuring(len(found))).tolist() if plan.query.values else ()
            return tuple(verdicts.tolist()), tuple(noisy)
        case TopKPlan():
            places = choose(counts, plan)
            return tuple(zip(places.tolist(), measure(counts[places], plan.measuring).tolist(), strict=True))
        case BarPlan():
            return choose_and_measure(counts, plan)
    raise TypeError(plan)

"""The loss of selections among a few counts: many outputs, at both ends of every edge, by the law of the plan.

A selection decides (which items, which verdicts) and measures. Decisions are gone through; of the noisy values those
are tried at which measuring loses most, which are the true ones at `hidden` for noise that is independent of the
decision. Counts of other people are tried around the threshold, or where items tie, and far away. So `low` is attained,
and often the truth; `high` is what the proof of the plan allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, Final

import numpy as np

from tacit.arrays import Ints
from tacit.audit.exact_audits.loss import ExactAudit, Loss, Witness
from tacit.audit.exact_audits.worlds import Neighbours, change_along, contributions, neighbours, records_to_try
from tacit.errors import PlanError
from tacit.plan.plans.selection_plan import SelectionPlan

MOST_COUNTS: Final = 5
MOST_OUTPUTS: Final = 1_500  # whose probabilities are compared
FAR: Final = 12  # people
ROUNDING: Final = 1e-10  # of log probabilities, which are sums of up to a few thousand terms


def selection_loss(plan: SelectionPlan) -> ExactAudit:
    """Return the worst loss of a selection among a few counts."""
    many = plan.base.size(plan.policy.domain)
    if many > MOST_COUNTS:
        raise PlanError(
            f"looks at {many:,} counts; its outputs can be gone through for at most {MOST_COUNTS}",
            key=str(plan.query),
            fix="Audit it by samples, or on a smaller domain.",
        )
    records, _ = records_to_try(plan.policy, plan.base)
    adds = contributions(plan.base, plan.policy.domain, records)
    changes: dict[tuple[int, ...], Neighbours] = {}
    for pair in neighbours(plan.policy, records):
        changes.setdefault(tuple(change_along(pair, adds).tolist()), pair)
    changes.pop((0,) * many, None)
    forward, backward, tried = 0.0, 0.0, 0
    witness: Witness | None = None
    likeliest = -math.inf
    for hidden, cover in _worlds(plan, list(changes), many):
        for output, chance, loss, back in _outputs(plan, hidden, cover):
            tried += 1
            if loss > forward + ROUNDING or (loss > forward - ROUNDING and chance > likeliest):
                witness, likeliest = Witness(hidden.tolist(), cover.tolist(), output), chance
            forward, backward = max(forward, loss), max(backward, back)
    proven = Loss.between(0, plan.epsilon if changes else 0).high
    both_ways = all(tuple(-part for part in change) in changes for change in changes)
    return ExactAudit(
        plan.mechanism,
        float(plan.epsilon),
        Loss(max(forward - ROUNDING, 0.0), max(forward, proven)),
        Loss(max(backward - ROUNDING, 0.0), max(backward, proven) if both_ways else math.inf),
        witness,
        tried,
        complete=False,
    )


def _worlds(plan: SelectionPlan, changes: list[tuple[int, ...]], many: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield counts of two neighbours, the most telling ones of others first: as many as outputs allow."""
    telling = plan.telling_counts(FAR)
    alike = sorted(product(*(range(len(own)) for own in telling)), key=lambda places: len(set(places)))
    others = [[own[place] for own, place in zip(telling, places, strict=True)] for places in alike]
    outputs = sum(1 for _ in _outputs(plan, np.ones(many, dtype=np.int64), np.zeros(many, dtype=np.int64)))
    room = max(1, MOST_OUTPUTS // max(1, outputs * len(changes)))
    for change in map(np.array, changes):
        for background in others[:room]:
            hidden = np.array(background) + np.maximum(-change, 0)  # the person is there
            yield hidden, hidden + change


def _outputs(plan: SelectionPlan, hidden: Ints, cover: Ints) -> Iterator[tuple[Any, float, float, float]]:
    """Yield outputs with their log probability at hidden and their loss forward and backward."""
    listed = {*plan.outputs_near(hidden, FAR), *plan.outputs_near(cover, FAR)}
    for output in sorted(listed, key=repr):
        here, there = (plan.log_probability(counts.tolist(), output) for counts in (hidden, cover))
        if max(here, there) > -math.inf:
            yield output, here, _ratio(here, there), _ratio(there, here)


def _ratio(here: float, there: float) -> float:
    """Return the log of a likelihood ratio; an output that cannot happen here is no loss."""
    return -math.inf if here == -math.inf else here - there

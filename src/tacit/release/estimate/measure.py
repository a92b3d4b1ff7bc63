"""From true answers, counted in one pass over the rows, to noisy measurements.

True answers must never leave the release stage. Of them, `Measurements` keep only the numbers that no secret edge
changes; `release/estimate/infer.py` works on measurements alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.errors import DataRefused
from tacit.plan.measure.measured import CellCounts, Measured, Tally
from tacit.plan.plans.linear import LinearPlan, blur
from tacit.policy.policy import Policy
from tacit.rows.rows import Rows


def true_answers(query: Measured, rows: Rows, policy: Policy) -> Ints:
    """Return the true answers of a query, flat, in the order of its labels."""
    _, (answers,) = count_once([(query, policy)], rows)
    return answers


def count_once(
    queries: Sequence[tuple[Measured, Policy]], rows: Rows, *, people: bool = False
) -> tuple[int | None, list[Ints]]:
    """Return the true answers of each query, and with `people` how many people there are, from one pass over the rows.

    Each query comes with the policy that it was planned under. What several queries need is counted once.
    """
    needed = [query.needed(policy) for query, policy in queries]
    everybody = [CellCounts(())] if people else []
    asked = list(dict.fromkeys([*everybody, *(tally for tallies in needed for tally in tallies)]))
    found = dict(zip(asked, rows.tally(asked), strict=True))
    answers = [
        query.answers([found[tally] for tally in tallies], policy.domain)
        for (query, policy), tallies in zip(queries, needed, strict=True)
    ]
    return (int(found[CellCounts(())]) if people else None), answers


def check_people(people: int | None, declared: int | None) -> None:
    """Refuse rows of another number of people than is declared, if one is: it is public, and bounds rest on it."""
    if declared is not None and people != declared:
        fix = "Correct known.size; rows that the domain drops do not count. What was asked stays charged."
        raise DataRefused(f"must hold the declared number of people, {declared:,}", fix=fix)


def counts_of(tallies: Sequence[Tally], rows: Rows, policy: Policy) -> list[Ints]:
    """Return what is counted for a table, from one pass; rows of another number of people than declared are refused."""
    declared = policy.known_people
    everybody = [] if declared is None else [CellCounts(())]
    found = rows.tally([*everybody, *tallies])
    if everybody:
        check_people(int(found[0]), declared)
    return found[len(everybody) :]


def check_answerable(rows: Rows, query: Measured, policy: Policy) -> None:
    """Refuse, before anything is charged, what these rows can never answer for a public reason."""
    for tally in query.needed(policy):
        rows.check(tally)


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

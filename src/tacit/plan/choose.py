"""From a question to a plan: how it will be answered, with which noise, how wrong it will be, and why.

A plan is made from the policy and public parameters alone, before any row is opened. It is printable, hashable data.
Cumulative counts and ranges may be answered through another query (cell counts, or cumulative counts) whose noise
is smaller after adding up; the strategy with the smallest expected error is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.amounts import as_epsilon
from tacit.errors import PlanError
from tacit.noise.law import Law
from tacit.plan.any_plan import AnyPlan
from tacit.plan.asked import AnyQuery
from tacit.plan.asked import asked as checked
from tacit.plan.noise_for import noise_for
from tacit.plan.predict import directions_for, expected_variance
from tacit.plan.queries import LARGEST_RELEASE, Cumulative, LinearQuery, Marginals, Ranges
from tacit.plan.ranking import plan_top_k
from tacit.plan.selection_plan import SelectionPlan, noise_name
from tacit.plan.selections import Above, Below, Selection, TopK
from tacit.plan.steps import largest_step
from tacit.plan.verdicts import plan_above, plan_below
from tacit.policy.policy import Policy


@dataclass(frozen=True)
class Plan(AnyPlan):
    """How a linear question will be answered. `base` is what noise is added to; answers are sums of its entries."""

    query: LinearQuery
    base: LinearQuery
    noise: Law | None
    answers: int
    variance: float
    one_sided_answers: bool = False

    @property
    def rmse(self) -> float:
        """The expected root mean squared error of one answer, averaged over the answers."""
        return math.sqrt(self.variance)

    @property
    def mechanism(self) -> str:
        """The name of the mechanism."""
        if self.one_sided_answers and self.noise is not None and all(self.noise.reaches):
            return "geometric noise on the sides that each answer needs"
        return noise_name(self.noise)

    @property
    def is_exact(self) -> bool:
        """Whether no secret edge changes any of the answers, so that nothing needs hiding."""
        return self.noise is None

    def predictions(self) -> list[str]:
        """Return what can be expected beside the error of an answer: nothing more."""
        return []

    def predicted(self) -> dict[str, Any]:
        """Return the same as plain data."""
        return {"value_rmse": self.rmse}

    def terms(self) -> list[str]:
        """Return what an answer means beside its interval: nothing more."""
        return []

    def noise_document(self) -> dict[str, Any] | None:
        """Return the noise as plain, exact data."""
        return None if self.noise is None else self.noise.document()

    def laws(self) -> list[tuple[Law, Any]]:
        """Return each law of the noise with the entries it is for (a mask, or all of them)."""
        if self.noise is None:
            return []
        sides = directions_for(self.base, self.policy) if self.one_sided_answers else None
        if sides is None or self.noise.is_joint:
            return [(self.noise, slice(None))]
        falls, rises = sides
        found: list[tuple[Law, Any]] = []
        for fall, rise in ((True, True), (True, False), (False, True), (False, False)):
            mask = (falls == fall) & (rises == rise)
            if mask.any():
                found.append((self.noise.on_sides(falls=fall, rises=rise), mask))
        return found

    def per_entry(self, number: Callable[[Law], float]) -> Any:
        """Return a number of the law of each entry, such as its mean, as an array."""
        out = np.zeros(self.base.size(self.policy.domain))
        for law, entries in self.laws():
            out[entries] = number(law)
        return out


def choose(query: Any, policy: Policy, epsilon: Any) -> Plan | SelectionPlan:
    """Return the plan with the smallest expected error for a question under a policy at this cost."""
    return best_plan(checked(query, policy.domain), policy, as_epsilon(epsilon))


def plain_plan(plan: AnyPlan) -> AnyPlan:
    """Return the plan of plain differential privacy for the same question at the same cost, to compare with."""
    return best_plan(plan.query, plan.policy.plain(), plan.epsilon)


def best_plan(asked: AnyQuery, policy: Policy, spent: Fraction) -> Plan | SelectionPlan:
    """Return the plan with the smallest expected error for a checked question."""
    match asked:
        case Below():
            return plan_below(asked, policy, spent)
        case Above():
            return plan_above(asked, policy, spent)
        case TopK():
            return plan_top_k(asked, policy, spent)
        case Selection():
            raise TypeError(asked)
        case _:
            return choose_linear(asked, policy, spent)


def choose_linear(asked: LinearQuery, policy: Policy, spent: Fraction) -> Plan:
    """Return the plan with the smallest expected error for a checked linear question."""
    answers = asked.size(policy.domain)
    if answers > LARGEST_RELEASE:
        raise PlanError(
            f"has {answers:,} answers, more than {LARGEST_RELEASE:,}",
            key=str(asked),
            fix="Ask about fewer attributes, or coarser ones.",
        )
    if isinstance(asked, Ranges) and policy.domain[asked.name].size > LARGEST_RELEASE:
        # ranges are read off the counts of all values
        raise PlanError(
            f"has {policy.domain[asked.name].size:,} values, more than {LARGEST_RELEASE:,}",
            key=asked.name,
            fix="Ask for counts with `where`, or declare a coarser step.",
        )
    plans = [_plan(asked, base, how, policy, spent) for base, how in _strategies(asked, policy)]
    return min(plans, key=lambda plan: plan.variance)


def _strategies(query: LinearQuery, policy: Policy) -> list[tuple[LinearQuery, str]]:
    found: list[tuple[LinearQuery, str]] = [(query, "direct")]
    if isinstance(query, Cumulative | Ranges) and policy.domain[query.name].size <= LARGEST_RELEASE:
        found.append((Marginals(((query.name,),), query.where), "by adding up noisy cells"))
    if isinstance(query, Ranges) and policy.domain[query.name].size <= LARGEST_RELEASE:
        found.append((Cumulative(query.name, query.where), "as differences of noisy cumulative counts"))
    return found


def _plan(query: LinearQuery, base: LinearQuery, strategy: str, policy: Policy, epsilon: Fraction) -> Plan:
    step = largest_step(base, policy)
    entries = base.size(policy.domain)
    sides = directions_for(base, policy) if query is base and step.l1 else None
    counts = () if sides is None else (int(sides[0].sum()), int(sides[1].sum()))
    noise, why = noise_for(step, epsilon, entries, *counts)
    if noise is not None and noise.is_joint:
        sides = None
    variance = expected_variance(query, base, policy, noise, sides)
    return Plan(
        query=query,
        base=base,
        policy=policy,
        epsilon=epsilon,
        step=step,
        noise=noise,
        why=why,
        answers=query.size(policy.domain),
        variance=variance,
        strategy=strategy,
        one_sided_answers=sides is not None,
    )

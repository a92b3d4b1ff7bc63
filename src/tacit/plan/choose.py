"""From a question to a plan: how it will be answered, with which noise, how wrong it will be, and why.

A plan is made from the policy and public parameters alone, before any row is opened. It is printable, hashable data.
A question may be answered through another one (cell counts, or cumulative counts) whose noise is smaller after adding
up; the way with the smallest expected error is chosen.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from tacit.amounts import as_epsilon
from tacit.errors import TacitError, safe_cause
from tacit.plan.calibrate import noise_for
from tacit.plan.fault import PlanningFault
from tacit.plan.measure.strategy import Strategy
from tacit.plan.plans.linear import LinearPlan
from tacit.plan.plans.plan import Plan
from tacit.plan.question import Linear, resolve
from tacit.plan.sensitivity.steps import measured_step
from tacit.policy.policy import Policy, as_policy

if TYPE_CHECKING:
    pass

_AS_GOOD: Final = 0.998


def choose(query: Any, policy: Policy, epsilon: Any) -> Plan:
    """Return the plan with the smallest expected error for a question under a policy at this cost."""
    try:
        plan: Plan = resolve(query, as_policy(policy).domain).plan(policy, as_epsilon(epsilon))
    except TacitError:
        raise
    except Exception as unforeseen:
        failure = PlanningFault(safe_cause(unforeseen))
    else:
        return plan
    raise failure


def plan_linear(query: Linear, policy: Policy, epsilon: Fraction) -> LinearPlan:
    """Return the plan with the smallest expected error for a checked linear question."""
    plans = every_plan(query, policy, epsilon)
    best = min(plans, key=lambda plan: plan.variance)
    tried = sorted(((plan.strategy, plan.mse) for plan in plans if plan.mse < math.inf), key=lambda one: one[1])
    return replace(best, compared=tuple(tried))


def every_plan(query: Linear, policy: Policy, epsilon: Fraction) -> list[LinearPlan]:
    """Return a plan for each way to answer a checked linear question."""
    query.check_size(policy.domain)
    plain = [Strategy(how, base) for base, how in query.bases(policy)]
    plans = [_plan(query, way, policy, epsilon) for way in plain]
    if any(plan.noise is None for plan in plans):
        return plans  # nothing needs hiding
    plainest = min(plan.variance for plan in plans)
    made = [_plan(query, way, policy, epsilon) for way in query.strategies(policy, epsilon)]
    # drop strategies that do not clearly beat a simpler one
    return plans + [plan for plan in made if not plainest * _AS_GOOD <= plan.variance <= plainest]


def _plan(query: Linear, way: Strategy, policy: Policy, epsilon: Fraction) -> LinearPlan:
    base = way.base
    step = measured_step(base, policy)
    sides = None
    noise, why = way.noise, way.why
    if way.loss is not None and way.loss > epsilon:
        raise PlanningFault("a noise that costs more than epsilon")
    if noise is None:
        sides = base.directions(policy) if query is base and step.l1 else None
        counts = () if sides is None else (int(sides[0].sum()), int(sides[1].sum()))
        noise, why = noise_for(step, epsilon, base.size(policy.domain), *counts, unit=base.unit(policy.domain))
    return LinearPlan(
        query=query,
        base=base,
        policy=policy,
        epsilon=epsilon,
        step=step,
        noise=noise,
        why=why,
        answers=query.size(policy.domain),
        strategy=way.name,
        sides=None if noise is not None and noise.is_joint else sides,
        drawn=way.drawn,
        own_errors=way.errors,
        own_loss=way.loss,
    )

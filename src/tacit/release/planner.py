"""Plans, each made once, and known by whoever made them.

Guarantee   Only a plan that was made here, under the policy that is charged, and that nobody changed since is ever
            executed.
Assumes     Nobody writes into the fields of a frozen object by force.
Why         A plan says which noise is added. One that was changed (`dataclasses.replace`), came out of a file or was
            made under another policy might add too little; it would be charged as if it had not. So a plan counts only
            as the very object that a planner made.
Checked by  tests/unit/test_plans.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

from tacit.plan.any_plan import AnyPlan
from tacit.plan.choose import choose
from tacit.policy.policy import Policy
from tacit.release.infer import check_options


class Planner:
    """Makes plans under one policy, and knows its own."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._made: WeakValueDictionary[int, AnyPlan] = WeakValueDictionary()  # by id: the object itself, no equal one

    @property
    def policy(self) -> Policy:
        """The policy of all plans."""
        return self._policy

    def plan(self, query: Any, epsilon: Any, *, consistent: bool = False, nonnegative: bool = False) -> AnyPlan:
        """Return the plan for a question at this cost, or refuse; `Session.plan` says what the options do."""
        plan: AnyPlan = choose(query, self.policy, epsilon)
        if consistent or nonnegative:
            plan = replace(plan, consistent=bool(consistent), nonnegative=bool(nonnegative))
        check_options(plan, consistent=plan.consistent)
        self._made[id(plan)] = plan
        return plan

    def has_made(self, plan: AnyPlan) -> bool:
        """Say whether this very object was made here."""
        return self._made.get(id(plan)) is plan

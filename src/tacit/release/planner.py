"""Plans, each made once, and known by whoever made them.

Guarantee   Of the plans that a caller hands in, only one that was made here, under the policy that is charged, and that
            nobody changed since is ever executed. `release/interactive.py` plans its questions by itself, under the
            policy that was charged, and takes no plan from anybody.
Assumes     Nobody writes into the fields of a frozen object by force.
Why         A plan says which noise is added. One that was changed (`dataclasses.replace`), came out of a file or was
            made under another policy might add too little; it would be charged as if it had not. So a plan counts only
            as the very object that a planner made.
Checked by  tests/unit/release/test_plans.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, final
from weakref import WeakValueDictionary

from tacit.errors import PlanError, kind_of
from tacit.plan.accuracy import Accuracy, plan_reaching
from tacit.plan.choose import choose
from tacit.plan.plans.plan import Plan
from tacit.plan.question import columns_of, resolve
from tacit.policy.application import Application
from tacit.policy.genuine import as_plain
from tacit.policy.policy import Policy, as_policy
from tacit.release.estimate.projections import check_agreement


@final
class Planner:
    """Makes plans under one policy, and knows its own."""

    def __init__(self, policy: Policy) -> None:
        self._policy = as_policy(policy)
        self._made: WeakValueDictionary[int, Plan] = WeakValueDictionary()  # by id: the object itself, no equal one

    @property
    def policy(self) -> Policy:
        """The policy of all plans."""
        return self._policy

    def plan(
        self,
        query: Any,
        cost: Any,
        at_most: Callable[[], Fraction] | None = None,
        /,
        *,
        consistent: bool = False,
        nonnegative: bool = False,
        application: str | None = None,
    ) -> Plan:
        """Return the plan for a question at this cost, or refuse; `Session.plan` says what the options do.

        The cost is an epsilon, or the accuracy that it must reach for `at_most` so much.
        """
        consistent, nonnegative = yes_or_no(consistent, "consistent"), yes_or_no(nonnegative, "nonnegative")

        asked, policy, by = admitted(query, self.policy, application)

        def plan_at(epsilon: Any) -> Plan:
            plan: Plan = choose(asked, policy, epsilon)
            plan = plan if by is None else replace(plan, asked_by=by, declared_in=self.policy)
            if consistent or nonnegative:
                plan = replace(plan, consistent=consistent, nonnegative=nonnegative)
            check_options(plan, consistent=plan.consistent)
            _check_nonnegative(plan)
            return plan

        if isinstance(cost, Accuracy):
            plan = plan_reaching(cost, plan_at, None if at_most is None else at_most())
        else:
            plan = plan_at(cost)
        self._made[id(plan)] = plan
        return plan

    def has_made(self, plan: Plan) -> bool:
        """Say whether this very object was made here."""
        return self._made.get(id(plan)) is plan


def admitted(query: Any, policy: Policy, application: str | None) -> tuple[Any, Policy, Application | None]:
    """Return a question with the policy that its answer must keep and who asks it, or refuse who may not ask it."""
    if not policy.applications:
        if application is not None:
            rule = "must be left out: the policy declares no applications"
            raise PlanError(rule, key="application", fix="Declare it below `applications` of the policy.")
        return query, policy, None
    asked = resolve(query, policy.domain)
    options = asked.options()
    own = options.get("application", "")
    by = policy.application(own if application is None else as_plain(application))
    if own not in ("", by.name):
        rule = f"must be one application, and the question names {own}"
        raise PlanError(rule, key="application", given=by.name, fix="Nothing was charged. Leave one of them out.")
    number = None if asked.each is None else asked.each.attribute
    looks_at = {*asked.mentioned(), *(() if number is None else [number])}
    if asked.each is not None:
        looks_at = {name for name in looks_at | columns_of(asked.picked) if name in policy.domain}
    by.may_ask(asked.word, looks_at | set(options.get("key", [])))
    return asked.coined_for(by.name), policy.promised_to(by), by


def yes_or_no(given: Any, key: str) -> bool:
    """Return an option that is True or False; any other thing has a truth of its own, and "no" would be yes."""
    if not isinstance(given, bool):
        fix = f"Say {key}=True, or leave it out."
        raise PlanError(f"must be True or False, not {kind_of(given)}", key=key, fix=fix)
    return given


def _check_nonnegative(plan: Plan) -> None:
    """Refuse to let no answer be below zero where true ones may be, and where noisy ones never are."""
    if plan.nonnegative and not plan.query.never_negative(plan.policy.domain):
        rule = "is for counts, and for totals of numbers that are never below zero"
        fix = "Leave it out; a mean and a quantile lie in the declared range anyway."
        raise PlanError(rule, key="nonnegative", given=str(plan.query), fix=fix)


def check_options(plan: Plan, *, consistent: bool) -> None:
    """Refuse post-processing that cannot be done, before anything is charged."""
    domain = plan.policy.domain
    if not consistent or len(plan.query.tables(domain)) < 2:
        return
    if plan.policy.per_person > 1 and plan.query.of != "rows":
        rule = "must not be asked for where a person counts in several cells, since true tables do not agree then"
        raise PlanError(rule, key="consistent", fix="Leave it out, or count rows: `of: rows`.")
    tables = plan.query.tables(domain)
    check_agreement(tables, [math.prod(domain[name].size for name in names) for names in tables])

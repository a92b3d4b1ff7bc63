"""From a question to a plan, and the plan in words: how it is answered, at which cost, and how wrong it will be.

A plan is made from the policy and public parameters alone, before any row is opened. It is printable, hashable data.
"""

from __future__ import annotations

import builtins
import math
import sys
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from tacit.amounts import as_epsilon, rough, shown
from tacit.drawing import Held, as_html
from tacit.errors import PlanError, TacitError, safe_cause, sealed
from tacit.plan.accuracy import Accuracy, cost_of, plan_reaching
from tacit.plan.plans.plan import Plan
from tacit.plan.question import PlanningFault
from tacit.plan.sensitivity.fact_cost import FactCost, costs_for_plan
from tacit.plan.sensitivity.steps import asked_under
from tacit.policy.policy import Policy, as_policy


def choose(query: Any, policy: Policy, epsilon: Any) -> Plan:
    """Return the plan with the smallest expected error for a question under a policy at this cost."""
    try:
        asked, policy = asked_under(query, as_policy(policy))
        plan: Plan = asked.plan(policy, as_epsilon(epsilon))
    except TacitError:
        raise
    except Exception as unforeseen:
        failure = PlanningFault(safe_cause(unforeseen))
    else:
        return plan
    raise failure


@dataclass(frozen=True, repr=False)
class Explanation(Held):
    """A plan beside the plan of plain differential privacy at the same epsilon, and what would remain."""

    plan: Plan
    remaining: Fraction | None = None
    leakage_refused: str = ""  # why limits on what applications learn would refuse the release
    files_refused: str = ""  # why the release would be refused for what its files hold
    shown_in: int | None = field(default=None, init=False, compare=False)  # the notebook cell that has shown it

    @property
    def plain(self) -> Plan:
        """The plan of plain differential privacy for the same question at the same epsilon; refused without."""
        found = self._compared
        if isinstance(found, PlanError):
            raise found.retold(PlanError)
        return found

    @property
    def plain_rmse(self) -> float | None:
        """The expected error of that plan; None if plain differential privacy cannot answer the question."""
        return None if isinstance(self._compared, PlanError) else self._compared.rmse

    @property
    def plain_refused(self) -> str:
        """Why plain differential privacy cannot answer the question; nothing if it can."""
        return self._compared.rule if isinstance(self._compared, PlanError) else ""

    @cached_property
    def _compared(self) -> Plan | PlanError:
        try:
            return self.plan.plain()
        except PlanError as refusal:  # it needs more noise than can be drawn; that does not concern this plan
            return refusal.retold(PlanError)

    @cached_property
    def knowledge(self) -> tuple[FactCost, ...]:
        """What each known fact costs, of those that change the noise, and which secrets would leave it alone."""
        return costs_for_plan(self.plan) if self.plan.policy.known else ()

    @property
    def gain(self) -> float:
        """How many times smaller the expected error is than under plain differential privacy; NaN if that has none."""
        plain = self.plain_rmse
        if plain is None:
            return math.nan
        if self.plan.rmse == 0:
            return math.inf if plain > 0 else 1.0
        return plain / self.plan.rmse

    @property
    def candidates(self) -> dict[str, float]:
        """Every way to answer that was tried, the best first, with the expected mean squared error of one answer."""
        return self.plan.tried

    @property
    def chosen(self) -> str:
        """The way that was chosen: the one with the smallest expected error."""
        return self.plan.chosen

    @property
    def expected_mse(self) -> float:
        """The expected mean squared error of one answer, averaged over all that are asked for."""
        return self.plan.mse

    def after(self, done: Plan) -> Explanation:
        """Return the same of what came of the plan: its error beside that of plain differential privacy."""
        return self if done is self.plan else replace(self, plan=done)

    def document(self) -> dict[str, Any]:
        """Return the explanation as plain data, for `--json`: the plan's own document, and what it is compared with."""
        return {
            **self.plan.document(),
            "knowledge": [cost.document() for cost in self.knowledge],
            "plain_dp_rmse": self.plain_rmse,
            "plain_dp_refused": self.plain_refused or None,
            "plain_dp_form": self.plan.policy.plain_form,
            "remaining": None if self.remaining is None else str(self.remaining),
            "leakage_refused": self.leakage_refused or None,
            "files_refused": self.files_refused or None,
        }

    def __repr__(self) -> str:
        return repr(self.plan).replace("<plan", "<explanation", 1)

    def show(self) -> None:
        """Print it; a notebook shows it once in a cell, also where the cell ends with it, marimo only there."""
        cell = notebook_cell()
        if cell is None and _in_marimo():
            return
        if cell is None:
            sys.stdout.write(f"{self}\n")
        else:
            self._ipython_display_()
            object.__setattr__(self, "shown_in", cell)

    def _ipython_display_(self) -> None:
        if self.shown_in is None or self.shown_in != notebook_cell():
            from IPython.display import display

            display({"text/plain": str(self), "text/html": as_html(self)}, raw=True)  # type: ignore[no-untyped-call]

    def __str__(self) -> str:
        *lines, error = self.plan.lines(reasons=True)
        is_exact = self.plan.rmse == 0 and self.gain != math.inf
        policy = self.plan.policy
        lines += [
            *(
                []
                if policy.person is None
                else [f"  of each person ({policy.person}) {policy.counted_in_words(self.plan.query.of)}"]
            ),
            error + (f" (exact, {self.plan.about})" if is_exact else ""),
            f"  plain differential privacy ({policy.plain_form}) at the same epsilon: {self._plain_words()}",
            *(f"  {cost.words}" for cost in self.knowledge),
            *self._table(),
        ]
        refused = self.files_refused or self.leakage_refused
        if refused:
            lines.append(f"  would be refused: {refused}")
        elif self.remaining is not None and self.remaining >= 0:
            lines.append(f"  budget that would remain: {shown(self.remaining)}")
        elif self.remaining is not None:
            lines.append(f"  more than the budget has: {shown(-self.remaining)} is missing")
        return "\n".join(lines)

    def _table(self) -> list[str]:
        """Return the ways that were tried, one on a line, with their errors beside that of the best."""
        tried = sorted(self.candidates.items(), key=lambda one: one[1])
        if len(tried) < 2 or self.expected_mse == 0:
            return []
        numbers = [rough(mse) for _, mse in tried]
        wide, deep = max(len(name) for name, _ in tried), max(len(number) for number in numbers)
        lines = [
            f"    {name:<{wide}}  {number:>{deep}}  {_ratio(mse / self.expected_mse, is_best=name == self.chosen)}"
            for (name, mse), number in zip(tried, numbers, strict=True)
        ]
        others = [mse for name, mse in tried if name != self.chosen]
        times = rough(others[0] / self.expected_mse, 3)
        won = f"  chosen because every other way that was compared has at least {times} times its mean squared error."
        return [f"{won} Expected of one answer:", *lines]

    def _plain_words(self) -> str:
        if self.plain_rmse is None:
            return f"no answer, since it {self.plain_refused}"
        error = rough(self.plain_rmse)
        if self.gain == math.inf:
            return f"{error} (here: exact, {self.plan.about})"
        if self.gain < 0.995:
            return f"{error} ({rough(1 / self.gain, 3)} times smaller: this policy promises more)"
        return f"{error} ({rough(self.gain, 3)} times larger)" if self.gain > 1.005 else error


def _ratio(times: float, *, is_best: bool) -> str:
    return "chosen" if is_best else f"{rough(times, 3)} times"


def notebook_cell() -> int | None:
    """Return the number of the notebook cell that is running; None outside of IPython."""
    shell = getattr(builtins, "get_ipython", lambda: None)()
    return None if shell is None else int(shell.execution_count)


def _in_marimo() -> bool:
    """Say whether a marimo notebook is running, which shows what a cell ends with and cannot tell that in advance."""
    marimo = sys.modules.get("marimo")
    return marimo is not None and bool(marimo.running_in_notebook())


@sealed
def explain(
    query: Any,
    policy: Any = None,
    epsilon: Any = None,
    *,
    error: Any = None,
    within: Any = None,
    level: Any = None,
    remaining: Any = None,
) -> Explanation:
    """Return what a release would cost and how wrong it would be; nothing is charged and no row is opened.

    Takes a question with a policy and an epsilon, or with how accurate the answer must be as in `Session.plan`, or a
    plan, which has all of it.
    """
    if isinstance(query, Plan):
        given = {"policy": policy, "epsilon": epsilon, "error": error, "within": within, "level": level}
        for key, option in given.items():
            if option is not None:
                raise PlanError("is part of the plan already", key=key, fix="Write explain(plan).")
        return Explanation(query, remaining)
    policy = as_policy(policy, fix="Write explain(query, policy, epsilon): the question first.")
    cost = cost_of(query, epsilon, error, within, level)
    if isinstance(cost, Accuracy):
        return Explanation(plan_reaching(cost, lambda at: choose(query, policy, at)), remaining)
    return Explanation(choose(query, policy, cost), remaining)

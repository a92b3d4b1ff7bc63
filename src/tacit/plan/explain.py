"""What a release would cost and how wrong it would be, in words and numbers, before any row is opened."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from tacit.amounts import shown
from tacit.errors import PlanError, sealed
from tacit.plan.any_plan import OF_THE_ROWS_KEPT, AnyPlan
from tacit.plan.choose import choose, plain_plan
from tacit.plan.knowledge_cost import FactCost, costs_for_plan
from tacit.policy.policy import as_policy


@dataclass(frozen=True)
class Explanation:
    """A plan beside the plan of plain differential privacy at the same epsilon, and what would remain."""

    plan: AnyPlan
    remaining: Fraction | None = None

    @cached_property
    def plain(self) -> AnyPlan:
        """The plan of plain differential privacy for the same question at the same epsilon."""
        return plain_plan(self.plan)

    @cached_property
    def knowledge(self) -> tuple[FactCost, ...]:
        """What each known fact costs, of those that change the noise, and which secrets would leave it alone."""
        return costs_for_plan(self.plan)

    @property
    def gain(self) -> float:
        """How many times smaller the expected error is than under plain differential privacy."""
        if self.plan.rmse == 0:
            return float("inf") if self.plain.rmse > 0 else 1.0
        return self.plain.rmse / self.plan.rmse

    @property
    def candidates(self) -> dict[str, float]:
        """Every way to answer that was tried, the best first, with the expected mean squared error of one answer."""
        return self.plan.ways

    @property
    def chosen(self) -> str:
        """The way that was chosen: the one with the smallest expected error."""
        return self.plan.way

    @property
    def expected_mse(self) -> float:
        """The expected mean squared error of one answer, averaged over all that are asked for."""
        return self.plan.mse

    def document(self) -> dict[str, Any]:
        """Return the explanation as plain data, for `--json`: the plan's own document, and what it is compared with."""
        return {
            **self.plan.document(),
            "knowledge": [cost.document() for cost in self.knowledge],
            "plain_dp_rmse": self.plain.rmse,
            "plain_dp_form": self.plan.policy.plain_form,
            "remaining": None if self.remaining is None else str(self.remaining),
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        *lines, error = self.plan.lines(reasons=True)
        is_exact = self.plan.rmse == 0 and self.gain != float("inf")
        lines += [
            error + (f" (exact, {OF_THE_ROWS_KEPT})" if is_exact else ""),
            f"  plain differential privacy ({self.plan.policy.plain_form}) at the same epsilon: {self.plain.rmse:.4g}"
            + self._times(),
            *(f"  {cost.words}" for cost in self.knowledge),
            *self._table(),
        ]
        if self.remaining is not None and self.remaining >= 0:
            lines.append(f"  budget that would remain: {shown(self.remaining)}")
        elif self.remaining is not None:
            lines.append(f"  more than the budget has: {shown(-self.remaining)} is missing")
        return "\n".join(lines)

    def _table(self) -> list[str]:
        """Return the ways that were tried, one on a line, with their errors beside that of the best."""
        tried = sorted(self.candidates.items(), key=lambda one: one[1])
        if len(tried) < 2 or self.expected_mse == 0:
            return []
        numbers = [f"{mse:,.4g}" for _, mse in tried]
        wide, deep = max(len(name) for name, _ in tried), max(len(number) for number in numbers)
        lines = [
            f"    {name:<{wide}}  {number:>{deep}}  {_ratio(mse / self.expected_mse, is_best=name == self.chosen)}"
            for (name, mse), number in zip(tried, numbers, strict=True)
        ]
        others = [mse for name, mse in tried if name != self.chosen]
        won = (
            f"  chosen because every other way that was compared is at least {others[0] / self.expected_mse:.3g} times "
        )
        won += "as wrong; mean squared error expected of one answer:"
        return [won, *lines]

    def _times(self) -> str:
        if self.gain == float("inf"):
            return f" (here: exact, {OF_THE_ROWS_KEPT})"
        if self.gain < 0.995:
            return f" ({1 / self.gain:.3g} times smaller: this policy promises more)"
        return f" ({self.gain:.3g} times larger)" if self.gain > 1.005 else ""


def _ratio(times: float, *, is_best: bool) -> str:
    return "chosen" if is_best else f"{times:.3g} times"


@sealed
def explain(query: Any, policy: Any = None, epsilon: Any = None, *, remaining: Any = None) -> Explanation:
    """Return what a release would cost and how wrong it would be; nothing is charged and no row is opened.

    Takes a question with a policy and an epsilon, or a plan, which has all three.
    """
    if isinstance(query, AnyPlan):
        for key, given in (("policy", policy), ("epsilon", epsilon)):
            if given is not None:
                raise PlanError("is part of the plan already", key=key, fix="Write explain(plan).")
        return Explanation(query, remaining)
    policy = as_policy(policy, fix="Write explain(query, policy, epsilon): the question first.")
    return Explanation(choose(query, policy, epsilon), remaining)

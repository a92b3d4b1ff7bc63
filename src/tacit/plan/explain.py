"""What a release would cost and how wrong it would be, in words and numbers, before any row is opened."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from tacit.errors import sealed
from tacit.plan.amounts import shown as shown
from tacit.plan.choose import AnyPlan, choose
from tacit.policy.policy import as_policy

# what every exact number, and every interval, is about: a row with a value that the domain does not have is dropped,
# or counts with the value that `clip` or `otherwise` puts in its place
OF_THE_ROWS_KEPT: Final = "of the rows that the domain keeps, with the values it gives them"


@dataclass(frozen=True)
class Explanation:
    """A plan beside the plan of plain differential privacy at the same epsilon, and what would remain."""

    plan: AnyPlan
    plain: AnyPlan
    remaining: Fraction | None = None

    @property
    def gain(self) -> float:
        """How many times smaller the expected error is than under plain differential privacy."""
        if self.plan.rmse == 0:
            return float("inf") if self.plain.rmse > 0 else 1.0
        return self.plain.rmse / self.plan.rmse

    def document(self) -> dict[str, Any]:
        """Return the explanation as plain data, for `--json`."""
        plan, step = self.plan, self.plan.step
        return {
            "query": plan.query.document(),
            "epsilon": str(plan.epsilon),
            "answers": plan.answers,
            "step": {"up": step.up, "down": step.down, "l1": step.l1, "l2": step.l2, "exact": step.exact},
            "derivation": list(step.why),
            "mechanism": plan.mechanism,
            "strategy": plan.strategy,
            "noise": plan.noise_document(),
            "why": plan.why_noise,
            "predicted": plan.predicted(),
            "expected_rmse": plan.rmse,
            "plain_dp_rmse": self.plain.rmse,
            "remaining": None if self.remaining is None else str(self.remaining),
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        plan, step = self.plan, self.plan.step
        bound = "largest step" if step.exact else "largest step (proven bound)"
        strategy = "" if plan.strategy == "direct" else f", {plan.strategy}"
        lines = [
            f"{plan.query}: {plan.answers:,} answer{'s' * (plan.answers != 1)} for epsilon {shown(plan.epsilon)}",
            f"  {bound}: up {step.up}, down {step.down}, in all {step.l1} (Euclidean {step.l2:.4g})",
            *(f"    because {reason}" for reason in step.why),
            f"  mechanism: {plan.mechanism}{strategy}",
            f"    because {plan.why_noise}",
            *(f"  {line}" for line in plan.predictions()),
            f"  expected error of one answer (root mean square): {plan.rmse:.4g}"
            + (f" (exact, {OF_THE_ROWS_KEPT})" if plan.rmse == 0 and self.gain != float("inf") else ""),
            f"  plain differential privacy at the same epsilon: {self.plain.rmse:.4g}" + self._times(),
        ]
        if self.remaining is not None and self.remaining >= 0:
            lines.append(f"  budget that would remain: {shown(self.remaining)}")
        elif self.remaining is not None:
            lines.append(f"  more than the budget has: {shown(-self.remaining)} is missing")
        return "\n".join(lines)

    def _times(self) -> str:
        if self.gain == float("inf"):
            return f" (here: exact, {OF_THE_ROWS_KEPT})"
        return f" ({self.gain:.3g} times larger)" if self.gain > 1.005 else ""


@sealed
def explain(query: Any, policy: Any, epsilon: Any, *, remaining: Any = None) -> Explanation:
    """Return what a release would cost and how wrong it would be; nothing is charged and no row is opened."""
    policy = as_policy(policy, fix="Write explain(query, policy, epsilon): the question first.")
    plan = choose(query, policy, epsilon)
    return Explanation(plan, choose(plan.query, policy.plain(), epsilon), remaining)

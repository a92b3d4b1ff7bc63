"""What is asked, and at what cost: everything here is computed from the policy and public parameters.

In reading order:

    leakage          which epsilons let nobody learn too much where attributes depend on each other
    questions        the questions, one module each
    choose           a whole plan, and the plan in words
    accuracy         the smallest epsilon that makes an answer as accurate as was asked
    calibrate        the least noise that hides a step
    error_laws       the laws of the errors of estimates, and the expected error of a plan
    sums_of_cells    the laws of margins and other sums of cells
    measure          what noise is added to
    plans            plans, one module for each kind
    question         the contract of a question
    question_keys    what job files may write for one
    sensitivity      how far answers move along secret edges
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.plan.leakage.budget import leakage_budget as leakage_budget
    from tacit.plan.leakage.leakage_plan import LeakagePlan as LeakagePlan

__all__ = ["LeakagePlan", "leakage_budget"]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: most plans need no optimisation."""
    if name == "leakage_budget":
        from tacit.plan.leakage.budget import leakage_budget

        return leakage_budget
    if name == "LeakagePlan":
        from tacit.plan.leakage.leakage_plan import LeakagePlan

        return LeakagePlan
    raise AttributeError(f"module 'tacit.plan' has no attribute {name!r}")

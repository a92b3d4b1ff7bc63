"""What questions about the order of an attribute's values share."""

from __future__ import annotations

from tacit.errors import PlanError
from tacit.plan.question import Linear, attribute_of
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy


def check_ordered(domain: Domain, name: str, keyword: str) -> None:
    """Refuse an attribute whose values have no order."""
    attribute = attribute_of(domain, name, keyword)
    axes = domain.axes_of(name)
    if len(axes) != 1 or not axes[0].ordered:
        ordered = "Declare ordered=True (in a file: `ordered: true`)."
        fix = ordered if attribute.measured == "names" else "Use a histogram."
        raise PlanError("must have an order", key=keyword, given=name, fix=fix)


def refuse_several_rows(query: Linear, policy: Policy) -> None:
    """Refuse people who own several rows: counted once in each cell, they count several times in sums of cells."""
    raise PlanError(
        "has no proven step where a person owns several rows",
        key=str(query),
        given=f"per_person={policy.per_person}",
        fix="Keep one row per person, or ask for a histogram.",
    )

"""What an audit that names no question asks about: a policy's first attribute that suits, secret ones first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.errors import PlanError
from tacit.policy.policy import Policy


def first_attribute(policy: Policy, keyword: str, fits: Callable[[Any], bool]) -> str:
    """Return the name of an attribute that a question can be asked about, or refuse."""
    for name in _secret_first(policy):
        if fits(policy.domain[name]):
            return name
    raise PlanError(
        f"has no attribute that {keyword} can be asked about", key="policy", fix="Ask another kind of question."
    )


def first_predicate(policy: Policy) -> str:
    """Return a predicate about a value that people may want to hide."""
    for name in _secret_first(policy):
        attribute = policy.domain[name]
        if attribute.is_set:
            return f"{name}.has({attribute.cell(0)!r})"
        if len(attribute.axes(name)) == 1:
            return f"{name} == {attribute.value(_sensitive(policy, name))!r}"
    raise PlanError("has no attribute to count by", key="policy", fix="Ask for a histogram.")


def has_order(attribute: Any) -> bool:
    """Say whether cumulative counts of an attribute make sense, beyond those of yes and no."""
    return bool(attribute.ordered and attribute.measured != "truth")


def has_cells(attribute: Any) -> bool:
    """Say whether an attribute has a list of values, or of items, that can be ranked."""
    return bool(attribute.measured != "places")


def can_be_added_up(attribute: Any) -> bool:
    """Say whether an attribute is a number."""
    return attribute.unit is not None


def _secret_first(policy: Policy) -> list[str]:
    return sorted(policy.domain, key=lambda name: name not in policy.moved_attributes)


def _sensitive(policy: Policy, name: str) -> int:
    """Return the position of a value from which some edge leads away."""
    (axis,) = policy.domain.axes_of(name)
    for place in range(min(axis.size, 1000)):
        for shape in policy.shapes:
            other = place - 1 if place else 1
            if other < axis.size and shape.relation(axis).allows(place, other):
                return place
    return 0

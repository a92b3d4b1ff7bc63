"""A question of each kind for any policy, so that a mechanism can be audited by its name alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import yaml

from tacit.errors import PlanError, nearest
from tacit.plan.asked import KEYWORDS, from_document
from tacit.policy.attributes import Attribute
from tacit.policy.policy import Policy


def question(keyword: str, policy: Policy) -> Any:
    """Return a question of this kind about the policy's first attribute that suits it, secret ones first."""
    if keyword not in KEYWORDS:
        raise PlanError("must be a kind of question", key="mechanism", given=keyword, fix=nearest(keyword, KEYWORDS))
    match keyword:
        case "count":
            return from_document({"count": {"where": _predicate(policy)}})
        case "below":
            return from_document({"below": {"where": _predicate(policy), "threshold": 3}})
        case "marginals":
            names = [name for name in policy.domain if not policy.domain[name].is_set]
            return from_document({"marginals": {"attributes": names, "ways": 1}})
        case "histogram":
            return from_document({"histogram": _first(policy, keyword, lambda _: True)})
        case "total":
            return from_document({"total": _first(policy, keyword, lambda one: one.unit is not None)})
        case "top_k" | "above":
            name = _first(policy, keyword, lambda one: one.measured != "places")
            said = {"k": 1} if keyword == "top_k" else {"threshold": 3, "at_most": 1}
            return from_document({keyword: {"attribute": name, **said}})
        case _:
            name = _first(policy, keyword, lambda one: one.ordered and one.measured != "truth")
            return from_document({keyword: name})


def _first(policy: Policy, keyword: str, suits: Callable[[Attribute], bool]) -> str:
    names = sorted(policy.domain, key=lambda name: name not in policy.moved_attributes)
    for name in names:
        if suits(policy.domain[name]):
            return name
    raise PlanError(
        f"has no attribute that {keyword} can be asked about", key="policy", fix="Ask another kind of question."
    )


def _predicate(policy: Policy) -> str:
    """Return a predicate about a value that people may want to hide."""
    names = sorted(policy.domain, key=lambda name: name not in policy.moved_attributes)
    for name in names:
        attribute = policy.domain[name]
        if attribute.is_set:
            return f"{name}.has({attribute.cell(0)!r})"
        if len(attribute.axes(name)) == 1:
            return f"{name} == {attribute.value(_sensitive(policy, name))!r}"
    raise PlanError("has no attribute to count by", key="policy", fix="Ask for a histogram.")


def _sensitive(policy: Policy, name: str) -> int:
    """Return the position of a value from which some edge leads away."""
    size = policy.domain[name].size
    for place in range(min(size, 1000)):
        for shape in policy.shapes:
            relation = shape.relation(name, size)
            other = place - 1 if place else 1
            if other < size and relation.allows(place, other):
                return place
    return 0


def written(said: str, keyword: str) -> Any:
    """Return the question of this kind that somebody wrote as a job file does: `histogram: [age]`."""
    try:
        document = yaml.safe_load(said)
    except yaml.YAMLError:
        document = None
    if document is None:
        raise PlanError("must be a question", key="ask", given=said, fix="For instance 'histogram: [age]'.")
    query = from_document(document)
    if keyword not in (document if isinstance(document, Mapping) else [document]):
        raise PlanError(
            f"must be a question of the kind {keyword}", key="ask", given=said, fix="Name that kind instead."
        )
    return query

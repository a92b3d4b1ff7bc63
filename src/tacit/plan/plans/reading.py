"""What to know about how cells are read before answers mean what they say, from policy and questions alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tacit.amounts import shown
from tacit.plan.question import Query
from tacit.policy.policy import Policy
from tacit.policy.secrets.family import listed_briefly

UNSEEN: Final = "Rows that do not fit the policy are left out unseen"


def not_asked(policy: Policy, queries: Iterable[Query]) -> list[str]:
    """Return the attributes for which rows are left out of answers that are not about them."""
    dropping = {name for name, attribute in policy.charged.domain.attributes if attribute.dropped != "nothing"}
    missed = {name for query in queries for name in dropping - query.asked_about}
    return [name for name in policy.charged.domain if name in missed]


def left_out(policy: Policy, queries: Iterable[Query]) -> str:
    """Say that rows are left out, and for which attributes that no answer is about; nothing if none can be."""
    if all(attribute.dropped == "nothing" for _, attribute in policy.charged.domain.attributes):
        return ""
    asked = list(queries)
    names = not_asked(policy, asked)
    if not names:
        return UNSEEN
    which = "the question" if len(asked) == 1 else "some question"
    return (
        f"{UNSEEN}, also if only a column that {which} does not use misfits ({listed_briefly(names)}): give that "
        "column a value as `otherwise` to keep them"
    )


def taken_down(query: Query, policy: Policy) -> list[str]:
    """Say of a mean or a total how far the reading of numbers may lower it, which no interval has."""
    if query.keyword not in ("mean", "total") or (query.each is not None and query.each.attribute is None):
        return []
    asked: Any = query
    name = asked.name if query.each is None else str(query.each.attribute)
    attribute: Any = policy.charged.domain[name]
    step = attribute.spacing * attribute.unit
    if step <= 1 or not attribute.clips:
        return []
    adds_up = query.keyword == "total" or (query.each is not None and query.each.each == "sum")
    return [
        f"Numbers of {name} are taken down to the next step of {shown(step)}, which no interval knows: this "
        f"{query.keyword} may be up to {shown(step)} too low{' for each row' if adds_up else ''}. A finer `step` of "
        f"{name} usually costs no noise."
    ]

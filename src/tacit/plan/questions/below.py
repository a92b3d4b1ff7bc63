"""`below`: whether fewer people than a threshold are picked."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

from tacit.plan.examples import first_predicate
from tacit.plan.plans.thresholds import BelowPlan, plan_below
from tacit.plan.question_keys import WHERE, Question, as_item
from tacit.plan.questions.count import Count
from tacit.plan.questions.selection import Selection, predicate_for, whole_threshold
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.keys import POSITIVE, Key
from tacit.policy.policy import Policy
from tacit.policy.where import Where


@dataclass(frozen=True)
class Below(Selection):
    """Whether fewer than `threshold` people are picked by a predicate."""

    where: Where
    threshold: int
    keyword: ClassVar[str] = "below"

    @property
    def counted(self) -> Count:
        """The count that is looked at."""
        return Count(self.where)

    def words(self, domain: Domain) -> str:
        return f"Whether fewer than {self.threshold:,} people are picked"

    def plan(self, policy: Policy, epsilon: Fraction) -> BelowPlan:
        """Return the plan of the comparison."""
        return plan_below(self, policy, epsilon)

    def check(self, domain: Domain) -> None:
        self.counted.check(domain)

    def document(self) -> Any:
        return {self.keyword: {"where": str(self.where), "threshold": self.threshold}}

    def __str__(self) -> str:
        return f"below({self.where}, {self.threshold})"


def below(
    predicate: Where | str | None = None,
    threshold: int | None = None,
    *,
    item: tuple[str, Value] | None = None,
    where: Where | str | None = None,
) -> Below:
    """Ask whether fewer than `threshold` people are picked by a predicate, or have an item.

    >>> str(below("age < 18", 5))
    'below(age < 18, 5)'
    >>> str(below(item=("clicked", 17), threshold=5))
    'below(clicked.has(17), 5)'
    """
    given = predicate if predicate is not None else where
    return Below(predicate_for(given, item, keyword="below"), whole_threshold(threshold, "below"))


_ITEM: Final = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": ["string", "number"]}}
BELOW: Final = Question(
    "below",
    keys=(
        WHERE,
        Key("threshold", POSITIVE, "Fewer people than this are below it.", required=True),
        Key("item", _ITEM, "[attribute, item]", read=as_item),
    ),
    read=lambda said: below(said.get("where"), said["threshold"], item=said.get("item")),
    example=lambda policy: below(first_predicate(policy), 3),
    shown=(
        ('`{below: {where: "age < 18", threshold: 5}}`', "whether fewer than 5 people are picked"),
        ("`{below: {item: [clicked, 17], threshold: 5}}`", "whether fewer than 5 people have an item"),
    ),
    either=("where", "item"),
)

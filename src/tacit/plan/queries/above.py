"""`above`: which items, or values, at least so many people have."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

from tacit.errors import PlanError
from tacit.plan.examples import first_attribute, has_cells
from tacit.plan.keys import ATTRIBUTE, WHERE, WHOLE, Key, Question
from tacit.plan.queries.selection import SelectionOfOne, whole_from_one, whole_threshold
from tacit.plan.query import read_where, suffix, with_where
from tacit.plan.verdicts import AbovePlan, plan_above
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy


@dataclass(frozen=True)
class Above(SelectionOfOne):
    """Which items (or values) at least `threshold` people have: asked in the order of the domain, until `at_most` are.

    `values` says whether the counts of those that are above are measured as well.
    """

    threshold: int
    at_most: int
    values: bool = True
    keyword: ClassVar[str] = "above"

    @property
    def _bound(self) -> tuple[str, int]:
        return "at_most", self.at_most

    def words(self, domain: Domain) -> str:
        """Return in words what is asked."""
        kind = self.kind(domain).capitalize()
        return f"{kind} of {self.name} that at least {self.threshold:,} people have"

    def plan(self, policy: Policy, epsilon: Fraction) -> AbovePlan:
        """Return the plan of the verdicts."""
        return plan_above(self, policy, epsilon)

    def document(self) -> Any:
        """Return what a job file says for this query."""
        said = {"attribute": self.name, "threshold": self.threshold, "at_most": self.at_most}
        return {self.keyword: with_where(said if self.values else {**said, "values": False}, self.where)}

    def __str__(self) -> str:
        return f"above({self.name}, {self.threshold}, at most {self.at_most}{suffix(self.where)})"


def above(
    name: str, threshold: int | None = None, *, at_most: int | None = None, values: bool = True, where: Any = None
) -> Above:
    """Ask which items at least `threshold` people have, until `at_most` were found; the other answers are free."""
    bound = whole_from_one(at_most, "above.at_most", "Say how many answers there may be at most: at_most=50.")
    if not isinstance(values, bool):
        raise PlanError("must be true or false", key="above.values", given=values, fix="Leave it out for true.")
    return Above(read_where(where), name, whole_threshold(threshold, "above"), bound, values)


ABOVE: Final = Question(
    "above",
    keys=(
        ATTRIBUTE,
        Key("threshold", WHOLE, "Fewer people than this are below it.", required=True),
        Key("at_most", WHOLE, "After so many answers that cost something it stops.", required=True),
        Key("values", {"type": "boolean", "default": True}, "Whether to measure what was found."),
        WHERE,
    ),
    read=lambda said: above(
        said["attribute"],
        said["threshold"],
        at_most=said["at_most"],
        values=said.get("values", True),
        where=said.get("where"),
    ),
    example=lambda policy: above(first_attribute(policy, "above", has_cells), 3, at_most=1),
    shown=(
        (
            "`{above: {attribute: clicked, threshold: 1000, at_most: 50}}`",
            "which items at least 1000 people have; after 50 of them it stops",
        ),
    ),
)

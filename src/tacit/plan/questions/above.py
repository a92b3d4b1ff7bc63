"""`above`: which items, or values, at least so many people have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np

from tacit.arrays import Ints
from tacit.errors import PlanError
from tacit.plan.examples import first_attribute, has_cells
from tacit.plan.plans.thresholds import AbovePlan, plan_above
from tacit.plan.question import read_where, suffix, with_where
from tacit.plan.question_keys import ATTRIBUTE, WHERE, Question
from tacit.plan.questions.selection import SelectionOfOne, whole_from_one, whole_threshold
from tacit.policy.domain import Domain
from tacit.policy.keys import BOOLEAN, POSITIVE, Key
from tacit.policy.policy import Policy


@dataclass(frozen=True)
class Above(SelectionOfOne):
    """Which items (or values) at least `threshold` people have: asked in the order of the domain, until `at_most` are.

    `threshold` is one number, or one for each item in the order of the domain. `values` says whether the counts of
    those that are above are measured as well.
    """

    threshold: int | tuple[int, ...]
    at_most: int
    values: bool = True
    keyword: ClassVar[str] = "above"

    @property
    def _bound(self) -> tuple[str, int]:
        return "at_most", self.at_most

    def words(self, domain: Domain) -> str:
        kind = self.kind(domain).capitalize()
        if isinstance(self.threshold, int):
            return f"{kind} of {self.name} that at least {self.threshold:,} people have"
        low, high = min(self.threshold), max(self.threshold)
        return f"{kind} of {self.name} that reach their own thresholds, {low:,} to {high:,} people"

    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have, and a list of thresholds that leaves somebody out."""
        super().check(domain)
        many = self.candidates(domain)
        if isinstance(self.threshold, tuple) and len(self.threshold) != many:
            raise PlanError(
                f"must be one number, or {many:,}: one for each of the {self.kind(domain)} of {self.name}",
                key="above.threshold",
                given=f"{len(self.threshold):,} numbers",
                fix="Write them in the order of the domain.",
            )

    def thresholds(self, many: int) -> Ints:
        """Return the threshold of each of so many items."""
        return np.broadcast_to(np.asarray(self.threshold, dtype=np.int64), many)

    def plan(self, policy: Policy, epsilon: Fraction) -> AbovePlan:
        """Return the plan of the verdicts."""
        return plan_above(self, policy, epsilon)

    def document(self) -> Any:
        threshold = self.threshold if isinstance(self.threshold, int) else list(self.threshold)
        said = {"attribute": self.name, "threshold": threshold, "at_most": self.at_most}
        return {self.keyword: with_where(said if self.values else {**said, "values": False}, self.where)}

    def __str__(self) -> str:
        return f"above({self.name}, {self.threshold_words}, at most {self.at_most}{suffix(self.where)})"

    @property
    def threshold_words(self) -> str:
        """The threshold, or between which numbers the thresholds lie."""
        if isinstance(self.threshold, int):
            return str(self.threshold)
        return f"{min(self.threshold)} to {max(self.threshold)}"


def above(
    name: str,
    threshold: int | Sequence[int] | None = None,
    *,
    at_most: int | None = None,
    values: bool = True,
    where: Any = None,
) -> Above:
    """Ask which items at least `threshold` people have, until `at_most` were found; the other answers are free.

    A list of thresholds has one for each item, in the order of the domain.

    >>> str(above("clicked", [3, 5, 4], at_most=2))
    'above(clicked, 3 to 5, at most 2)'
    """
    bound = whole_from_one(at_most, "above.at_most", "Say how many answers there may be at most: at_most=50.")
    if not isinstance(values, bool):
        raise PlanError("must be true or false", key="above.values", given=values, fix="Leave it out for true.")
    return Above(read_where(where), name, _one_or_each(threshold), bound, values)


def _one_or_each(given: Any) -> int | tuple[int, ...]:
    """Return one threshold, or one for each item."""
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(listed, list | tuple):
        return whole_threshold(given, "above")
    if not listed:
        raise PlanError("must have a number", key="above.threshold", fix="Write one for each item, or one for all.")
    return tuple(whole_threshold(one, "above") for one in listed)


_ONE_OR_EACH: Final = {"anyOf": [POSITIVE, {"type": "array", "items": POSITIVE, "minItems": 1}]}
ABOVE: Final = Question(
    "above",
    keys=(
        ATTRIBUTE,
        Key(
            "threshold",
            _ONE_OR_EACH,
            "Fewer people than this are below it. A list has one for each item, in the order of the domain.",
            required=True,
        ),
        Key("at_most", POSITIVE, "After so many answers that cost something it stops.", required=True),
        Key("values", {**BOOLEAN, "default": True}, "Whether to measure what was found."),
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
        (
            "`{above: {attribute: ward, threshold: [40, 25, 60], at_most: 2}}`",
            "the same with a threshold for each value, in the order of the domain",
        ),
    ),
)

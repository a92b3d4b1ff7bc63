"""`top_k`: the items, or values, that most people have, with how many have each."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

from tacit.plan.examples import first_attribute, has_cells
from tacit.plan.plans.top_k import BarPlan, TopKPlan, plan_top_k
from tacit.plan.question import read_where, suffix, with_where
from tacit.plan.question_keys import ATTRIBUTE, WHERE, Question
from tacit.plan.questions.selection import SelectionOfOne, whole_from_one
from tacit.policy.domain import Domain
from tacit.policy.keys import POSITIVE, Key
from tacit.policy.policy import Policy
from tacit.policy.where import Where


@dataclass(frozen=True)
class TopK(SelectionOfOne):
    """The `k` items (or values) that most people have, with how many have each."""

    k: int
    keyword: ClassVar[str] = "top_k"

    @property
    def _bound(self) -> tuple[str, int]:
        return "k", self.k

    def words(self, domain: Domain) -> str:
        return f"The {self.k:,} most frequent {self.kind(domain)} of {self.name}"

    def plan(self, policy: Policy, epsilon: Fraction) -> TopKPlan | BarPlan:
        return plan_top_k(self, policy, epsilon)

    def document(self) -> Any:
        return {self.keyword: with_where({"attribute": self.name, "k": self.k}, self.where)}

    def __str__(self) -> str:
        return f"top_k({self.name}, {self.k}{suffix(self.where)})"


def top_k(name: str, k: int | None = None, *, where: Where | str | None = None) -> TopK:
    """Ask for the `k` items that most people have, with how many have each."""
    return TopK(read_where(where), name, whole_from_one(k, "top_k.k", "For instance top_k('clicked', 10)."))


TOP_K: Final = Question(
    "top_k",
    keys=(ATTRIBUTE, Key("k", POSITIVE, "How many to choose.", required=True), WHERE),
    read=lambda said: top_k(said["attribute"], said["k"], where=said.get("where")),
    example=lambda policy: top_k(first_attribute(policy, "top_k", has_cells), 1),
    shown=(
        (
            "`{top_k: {attribute: clicked, k: 10}}`",
            "the ten items, or values, that most people have, with their counts",
        ),
    ),
)

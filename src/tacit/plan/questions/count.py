"""`count`: how many people there are, or how many a predicate picks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from tacit.arrays import Ints
from tacit.plan.examples import first_predicate
from tacit.plan.measure.tally import CellCounts, Tally
from tacit.plan.question import Linear, check_where, columns_of, read_where, with_where
from tacit.plan.question_keys import IN_A_HISTOGRAM, WHERE, Question
from tacit.plan.sensitivity.cells import everybody
from tacit.plan.sensitivity.responses import Response
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.where import Where


@dataclass(frozen=True)
class Count(Linear):
    """How many people there are, or how many a predicate picks."""

    where: Where | None = None
    keyword: ClassVar[str] = "count"

    def check(self, domain: Domain) -> None:
        check_where(self.where, domain)

    def mentioned(self) -> frozenset[str]:
        return columns_of(self.where)

    def size(self, domain: Domain) -> int:
        """Return how many numbers the answer has."""
        return 1

    def labels(self, domain: Domain) -> dict[str, Sequence[Value]]:
        return {"count of": [str(self.where) if self.where is not None else "everyone"]}

    def document(self) -> Any:
        return {self.keyword: with_where({}, self.where)}

    def words(self, domain: Domain) -> str:
        return "Number of people"

    def tallies(self, policy: Policy) -> tuple[Tally, ...]:
        return (CellCounts((), self.where),)

    def answers(self, tallied: Sequence[Any], domain: Domain) -> Ints:
        """Return the number of people."""
        return np.asarray(tallied[0], dtype=np.int64).reshape(1)

    def added_by(self, record: Mapping[str, Any], domain: Domain) -> Ints:
        return np.ones(1, dtype=np.int64)

    def response(self, domain: Domain) -> Response:
        """Return how the answer responds to moves."""
        return everybody().response(domain)

    def __str__(self) -> str:
        return f"count({self.where if self.where is not None else ''})"


def count(where_picked: Where | str | None = None, *, where: Where | str | None = None) -> Count:
    """Ask how many people there are, or how many a predicate picks."""
    return Count(read_where(where_picked if where_picked is not None else where))


COUNT: Final = Question(
    "count",
    keys=(WHERE,),
    read=lambda said: count(said.get("where")),
    example=lambda policy: count(first_predicate(policy)),
    shown=(('`count`, or `{count: "age < 18"}`', "how many people"),),
    by_group=IN_A_HISTOGRAM,
)

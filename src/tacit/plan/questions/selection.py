"""What questions share whose answer is a choice: is a count below a threshold, which are the largest, which are above.

Selections are not linear: what comes out is a verdict or a list of items, not a sum over people. Each looks at the
counts of one linear query, `counted`, whose steps along secret edges decide on the noise
(`plan/plans/selection_noise.py`).
What will be done is a plan of its own kind (`plan/plans/top_k.py`, `plan/plans/thresholds.py`).

"Above" means at least the threshold, "below" less than it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from operator import index
from typing import Any, Final

from tacit.errors import PlanError, is_word, kind_of
from tacit.plan.question import LARGEST_RELEASE, Query
from tacit.plan.questions.marginals import Marginals
from tacit.plan.sensitivity.cells import is_items
from tacit.policy.domain import Domain
from tacit.policy.where import Compare, Where, where

LARGEST_THRESHOLD: Final = 10**15


class Selection(Query):
    """A question about which counts are large. `counted` is the linear query whose answers it looks at."""

    def mentioned(self) -> frozenset[str]:
        return self.counted.mentioned()

    def candidates(self, domain: Domain) -> int:
        """Return how many counts are looked at."""
        return self.counted.size(domain)


@dataclass(frozen=True)
class SelectionOfOne(Selection):
    """A selection among the items of a set, or among the values of another attribute."""

    where: Where | None
    name: str

    @property
    def counted(self) -> Marginals:
        """The counts that are looked at."""
        return Marginals(((self.name,),), self.where)

    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have, and bounds that it makes pointless."""
        if not isinstance(self.name, str):
            raise PlanError("must name one attribute", key=self.keyword, given=self.name, fix="Quote its name.")
        try:
            self.counted.check(domain)
        except PlanError as refusal:
            # what a histogram refuses is what this query refuses
            raise (refusal.retold(PlanError, key=self.keyword) if refusal.key == "histogram" else refusal) from None
        many = self.candidates(domain)
        if many > LARGEST_RELEASE:
            raise PlanError(
                f"has {many:,} values, more than {LARGEST_RELEASE:,}",
                key=f"{self.keyword}: {self.name}",
                fix="Declare fewer values, or a coarser step.",
            )
        key, most = self._bound
        if most > many:
            raise PlanError(
                f"must be from 1 to {many:,}, the number of {self.kind(domain)} of {self.name}",
                key=f"{self.keyword}.{key}",
                given=most,
                fix="Lower it.",
            )

    def kind(self, domain: Domain) -> str:
        """Return what is chosen among, in words."""
        return "items" if is_items(domain[self.name]) else "values"

    @property
    @abstractmethod
    def _bound(self) -> tuple[str, int]:
        """The name and the value of what must not exceed the number of candidates."""


def predicate_for(predicate: Where | str | None, item: Any, *, keyword: str) -> Where:
    """Return the predicate that somebody wrote, or the one that asks for an item of a set."""
    if (predicate is None) == (item is None):
        raise PlanError(
            "must have a predicate or an item, and not both" if item is not None else "must say whom to count",
            key=keyword,
            fix=f"For instance {keyword}('age < 18', 5), or {keyword}(item=('clicked', 17), threshold=5).",
        )
    if predicate is not None:
        return where(predicate)
    if not isinstance(item, tuple | list) or len(item) != 2 or not isinstance(item[0], str):
        raise PlanError("must be (attribute, item)", key=f"{keyword}.item", given=item, fix="Write ('clicked', 17).")
    return Compare(item[0], "has", item[1])


def whole_threshold(given: Any, keyword: str) -> int:
    """Return a threshold, or refuse."""
    threshold = whole_from_one(given, f"{keyword}.threshold", "Write how many people; a count is never below 0.")
    if threshold > LARGEST_THRESHOLD:
        raise PlanError("must be at most 10^15", key=f"{keyword}.threshold", given=threshold, fix="Lower it.")
    return threshold


def whole_from_one(given: Any, key: str, fix: str) -> int:
    """Return a whole number from 1 on, or refuse."""
    try:
        whole = 0 if isinstance(given, bool) else int(index(given))  # a plain one, whatever subclass it was
    except TypeError:
        whole = 0
    if whole < 1:
        if is_word(given):
            raise PlanError("must be a whole number from 1", key=key, given=given, fix=fix)
        raise PlanError(f"must be a whole number from 1, not {kind_of(given)}", key=key, fix=fix)
    return whole

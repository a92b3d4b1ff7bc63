"""What is asked when the answer is a choice: is a count below a threshold, which are the largest, which are above.

Selections are not linear: what comes out is a verdict or a list of items, not a sum over people. Each looks at the
counts of one linear query, `counted`, whose steps along secret edges decide on the noise (`plan/selection_noise.py`).
What will be done is a plan of its own kind (`plan/ranking.py`, `plan/verdicts.py`).

"Above" means at least the threshold, "below" less than it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from operator import index
from typing import Any, ClassVar, Final

from tacit.errors import PlanError, is_word, kind_of
from tacit.plan.queries import LARGEST_RELEASE, Count, LinearQuery, Marginals, read_where, suffix, with_where
from tacit.policy.attributes import Items
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.where import Compare, Where, where

LARGEST_THRESHOLD: Final = 10**15


@dataclass(frozen=True)
class Selection(ABC):
    """A question about which counts are large. `counted` is the linear query whose answers it looks at."""

    where: Where | None
    keyword: ClassVar[str]

    @property
    @abstractmethod
    def counted(self) -> LinearQuery:
        """The counts that are looked at."""

    @abstractmethod
    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have."""

    @abstractmethod
    def document(self) -> Any:
        """Return what a job file says for this query."""

    def mentioned(self) -> frozenset[str]:
        """Return every attribute that the query looks at."""
        return self.counted.mentioned()

    def candidates(self, domain: Domain) -> int:
        """Return how many counts are looked at."""
        return self.counted.size(domain)


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

    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have."""
        self.counted.check(domain)

    def document(self) -> Any:
        """Return what a job file says for this query."""
        return {self.keyword: {"where": str(self.where), "threshold": self.threshold}}

    def __str__(self) -> str:
        return f"below({self.where}, {self.threshold})"


@dataclass(frozen=True)
class _OfOne(Selection):
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
            raise _about(self.keyword, refusal) from None
        many = self.candidates(domain)
        if many > LARGEST_RELEASE:
            raise PlanError(
                f"has {many:,} values, more than {LARGEST_RELEASE:,}",
                key=f"{self.keyword}: {self.name}",
                fix="Declare fewer values, or a coarser step.",
            )
        key, most = self._bound
        kind = "items" if isinstance(domain[self.name], Items) else "values"
        if most > many:
            raise PlanError(
                f"must be from 1 to {many:,}, the number of {kind} of {self.name}",
                key=f"{self.keyword}.{key}",
                given=most,
                fix="Lower it.",
            )

    @property
    @abstractmethod
    def _bound(self) -> tuple[str, int]:
        """The name and the value of what must not exceed the number of candidates."""


@dataclass(frozen=True)
class TopK(_OfOne):
    """The `k` items (or values) that most people have, with how many have each."""

    k: int
    keyword: ClassVar[str] = "top_k"

    @property
    def _bound(self) -> tuple[str, int]:
        return "k", self.k

    def document(self) -> Any:
        """Return what a job file says for this query."""
        return {self.keyword: with_where({"attribute": self.name, "k": self.k}, self.where)}

    def __str__(self) -> str:
        return f"top_k({self.name}, {self.k}{suffix(self.where)})"


@dataclass(frozen=True)
class Above(_OfOne):
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

    def document(self) -> Any:
        """Return what a job file says for this query."""
        said = {"attribute": self.name, "threshold": self.threshold, "at_most": self.at_most}
        return {self.keyword: with_where(said if self.values else {**said, "values": False}, self.where)}

    def __str__(self) -> str:
        return f"above({self.name}, {self.threshold}, at most {self.at_most}{suffix(self.where)})"


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
    return Below(picked(given, item, keyword="below"), whole_threshold(threshold, "below"))


def above(
    name: str, threshold: int | None = None, *, at_most: int | None = None, values: bool = True, where: Any = None
) -> Above:
    """Ask which items at least `threshold` people have, until `at_most` were found; the other answers are free."""
    bound = whole_from_one(at_most, "above.at_most", "Say how many answers there may be at most: at_most=50.")
    if not isinstance(values, bool):
        raise PlanError("must be true or false", key="above.values", given=values, fix="Leave it out for true.")
    return Above(read_where(where), name, whole_threshold(threshold, "above"), bound, values)


def top_k(name: str, k: int | None = None, *, where: Where | str | None = None) -> TopK:
    """Ask for the `k` items that most people have, with how many have each."""
    return TopK(read_where(where), name, whole_from_one(k, "top_k.k", "For instance top_k('clicked', 10)."))


def picked(predicate: Where | str | None, item: Any, *, keyword: str) -> Where:
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


def _about(keyword: str, refusal: PlanError) -> PlanError:
    """Return what a histogram refuses as what this query refuses."""
    if refusal.key != "histogram":
        return refusal
    said: dict[str, Any] = {"given": refusal.given} if refusal._has_given else {}
    return PlanError(refusal.rule, key=keyword, fix=refusal.fix, **said)

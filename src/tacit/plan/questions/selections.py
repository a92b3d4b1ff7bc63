"""`below`, `above` and `top_k`: is a count below a threshold, which counts are above it, and which are the largest.

The answer is a verdict or a list of items, not a sum over people. Each question looks at the counts of one linear
question, `counted`, whose steps along secret edges decide on the noise (`plan/plans/selection_plan.py`).

"Above" means at least the threshold, "below" less than it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import index
from typing import Any, ClassVar, Final

import numpy as np

from tacit.arrays import Ints
from tacit.errors import PlanError, is_word, kind_of
from tacit.plan.plans.thresholds import AbovePlan, BelowPlan, plan_above, plan_below
from tacit.plan.plans.top_k import BarPlan, TopKPlan, plan_top_k
from tacit.plan.question import LARGEST_RELEASE, Query, read_where, suffix
from tacit.plan.question_keys import (
    ATTRIBUTE,
    OF,
    WHERE,
    Question,
    as_item,
    first_attribute,
    first_predicate,
    has_cells,
)
from tacit.plan.questions.counts import Count, Marginals
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.keys import BOOLEAN, POSITIVE, Key
from tacit.policy.policy import Policy
from tacit.policy.where import Compare, Where, where

LARGEST_THRESHOLD: Final = 10**15


class Selection(Query):
    """A question about which counts are large. `counted` is the linear query whose answers it looks at."""

    readings: ClassVar[tuple[str, ...]] = ("people", "rows")

    def mentioned(self) -> frozenset[str]:
        return self.counted.mentioned()

    def candidates(self, domain: Domain) -> int:
        """Return how many counts are looked at."""
        return self.counted.size(domain)


@dataclass(frozen=True)
class SelectionOfOne(Selection):
    """A selection among the items of a set, or among the values of another attribute.

    `bounded` names what must not exceed how many these are.
    """

    bounded: ClassVar[str]
    where: Where | None
    name: str

    @property
    def counted(self) -> Marginals:
        return Marginals(((self.name,),), self.where, of=self.of)

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
            rule = f"has {many:,} values, more than {LARGEST_RELEASE:,}"
            raise PlanError(rule, key=f"{self.keyword}: {self.name}", fix="Declare fewer values, or a coarser step.")
        most = getattr(self, self.bounded)
        if most > many:
            rule = f"must be from 1 to {many:,}, the number of {self.kind(domain)} of {self.name}"
            raise PlanError(rule, key=f"{self.keyword}.{self.bounded}", given=most, fix="Lower it.")

    def kind(self, domain: Domain) -> str:
        """Return what is chosen among, in words."""
        return "items" if domain[self.name].is_set else "values"


def predicate_for(predicate: Where | str | None, item: Any, *, keyword: str) -> Where:
    """Return the predicate that somebody wrote, or the one that asks for an item of a set."""
    if (predicate is None) == (item is None):
        rule = "must have a predicate or an item, and not both" if item is not None else "must say whom to count"
        fix = f"For instance {keyword}('age < 18', 5), or {keyword}(item=('clicked', 17), threshold=5)."
        raise PlanError(rule, key=keyword, fix=fix)
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


@dataclass(frozen=True)
class Below(Selection):
    """Whether fewer than `threshold` people are picked by a predicate."""

    where: Where
    threshold: int
    keyword: ClassVar[str] = "below"

    @property
    def counted(self) -> Count:
        return Count(self.where, of=self.of)

    def words(self, domain: Domain) -> str:
        return f"Whether fewer than {self.threshold:,} {self.who} are picked"

    def plan(self, policy: Policy, epsilon: Fraction) -> BelowPlan:
        return plan_below(self, policy, epsilon)

    def check(self, domain: Domain) -> None:
        self.counted.check(domain)

    def document(self) -> Any:
        return {self.keyword: {"where": str(self.where), "threshold": self.threshold, **self.reading()}}

    def __str__(self) -> str:
        return f"below({self.where}, {self.threshold}{suffix(None, self.of)})"


def below(
    predicate: Where | str | None = None,
    threshold: int | None = None,
    *,
    item: tuple[str, Value] | None = None,
    where: Where | str | None = None,
    of: str | None = None,
) -> Below:
    """Ask whether fewer than `threshold` people are picked by a predicate, or have an item.

    >>> str(below("age < 18", 5))
    'below(age < 18, 5)'
    >>> str(below(item=("clicked", 17), threshold=5))
    'below(clicked.has(17), 5)'
    """
    given = predicate if predicate is not None else where
    return Below(predicate_for(given, item, keyword="below"), whole_threshold(threshold, "below"), of=of)


_ITEM: Final = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": ["string", "number"]}}
BELOW: Final = Question(
    "below",
    keys=(
        WHERE,
        OF,
        Key("threshold", POSITIVE, "Fewer people than this are below it.", required=True),
        Key("item", _ITEM, "[attribute, item]", read=as_item),
    ),
    ask=below,
    example=lambda policy: below(first_predicate(policy), 3),
    shown=(
        ('`{below: {where: "age < 18", threshold: 5}}`', "whether fewer than 5 people are picked"),
        ("`{below: {item: [clicked, 17], threshold: 5}}`", "whether fewer than 5 people have an item"),
    ),
    either=("where", "item"),
)


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
    bounded: ClassVar[str] = "at_most"

    def words(self, domain: Domain) -> str:
        kind = self.kind(domain).capitalize()
        if isinstance(self.threshold, int):
            return f"{kind} of {self.name} that at least {self.threshold:,} {self.who} have"
        low, high = min(self.threshold), max(self.threshold)
        return f"{kind} of {self.name} that reach their own thresholds, {low:,} to {high:,} {self.who}"

    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have, and a list of thresholds that leaves somebody out."""
        super().check(domain)
        many = self.candidates(domain)
        if isinstance(self.threshold, tuple) and len(self.threshold) != many:
            rule = f"must be one number, or {many:,}: one for each of the {self.kind(domain)} of {self.name}"
            given = f"{len(self.threshold):,} numbers"
            raise PlanError(rule, key="above.threshold", given=given, fix="Write them in the order of the domain.")

    def thresholds(self, many: int) -> Ints:
        """Return the threshold of each of so many items."""
        return np.broadcast_to(np.asarray(self.threshold, dtype=np.int64), many)

    def plan(self, policy: Policy, epsilon: Fraction) -> AbovePlan:
        return plan_above(self, policy, epsilon)

    def options(self) -> dict[str, Any]:
        threshold = self.threshold if isinstance(self.threshold, int) else list(self.threshold)
        values = {} if self.values else {"values": False}
        return {"attribute": self.name, "threshold": threshold, "at_most": self.at_most, **values}

    def __str__(self) -> str:
        each = self.threshold
        said = str(each) if isinstance(each, int) else f"{min(each)} to {max(each)}"
        return f"above({self.name}, {said}, at most {self.at_most}{suffix(self.where, self.of)})"


def above(
    name: str,
    threshold: int | Sequence[int] | None = None,
    *,
    at_most: int | None = None,
    values: bool = True,
    where: Any = None,
    of: str | None = None,
) -> Above:
    """Ask which items at least `threshold` people have, until `at_most` were found; the other answers are free.

    A list of thresholds has one for each item, in the order of the domain.

    >>> str(above("clicked", [3, 5, 4], at_most=2))
    'above(clicked, 3 to 5, at most 2)'
    """
    bound = whole_from_one(at_most, "above.at_most", "Say how many answers there may be at most: at_most=50.")
    if not isinstance(values, bool):
        raise PlanError("must be true or false", key="above.values", given=values, fix="Leave it out for true.")
    return Above(read_where(where), name, _one_or_each(threshold), bound, values, of=of)


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
        OF,
    ),
    ask=above,
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


@dataclass(frozen=True)
class TopK(SelectionOfOne):
    """The `k` items (or values) that most people have, with how many have each."""

    k: int
    keyword: ClassVar[str] = "top_k"
    bounded: ClassVar[str] = "k"

    def words(self, domain: Domain) -> str:
        return f"The {self.k:,} most frequent {self.kind(domain)} of {self.name}{self.of_rows}"

    def plan(self, policy: Policy, epsilon: Fraction) -> TopKPlan | BarPlan:
        return plan_top_k(self, policy, epsilon)

    def options(self) -> dict[str, Any]:
        return {"attribute": self.name, "k": self.k}

    def __str__(self) -> str:
        return f"top_k({self.name}, {self.k}{suffix(self.where, self.of)})"


def top_k(name: str, k: int | None = None, *, where: Where | str | None = None, of: str | None = None) -> TopK:
    """Ask for the `k` items that most people have, with how many have each."""
    return TopK(read_where(where), name, whole_from_one(k, "top_k.k", "For instance top_k('clicked', 10)."), of=of)


TOP_K: Final = Question(
    "top_k",
    keys=(ATTRIBUTE, Key("k", POSITIVE, "How many to choose.", required=True), WHERE, OF),
    ask=top_k,
    example=lambda policy: top_k(first_attribute(policy, "top_k", has_cells), 1),
    shown=(
        (
            "`{top_k: {attribute: clicked, k: 10}}`",
            "the ten items, or values, that most people have, with their counts",
        ),
    ),
)

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
from typing import Any, ClassVar, Final, overload

import numpy as np

from tacit.arrays import Ints
from tacit.errors import PlanError, is_word, kind_of
from tacit.plan.plans.thresholds import AbovePlan, BelowPlan, plan_above, plan_below
from tacit.plan.plans.top_k import BarPlan, TopKPlan, plan_top_k
from tacit.plan.question import LARGEST_RELEASE, Query, read_where, suffix
from tacit.plan.question_keys import (
    OF,
    WHERE,
    Question,
    as_item,
    first_attribute,
    first_predicate,
    has_cells,
)
from tacit.plan.questions.counts import Count, Marginals
from tacit.plan.questions.listed_counts import (
    PREDICATE,
    PREDICATES,
    Listed,
    ListedCounts,
    as_document,
    is_listed,
    read_listed,
    shortly,
)
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.keys import BOOLEAN, POSITIVE, TEXT, Key
from tacit.policy.policy import Policy
from tacit.policy.where import Compare, Where, where

LARGEST_THRESHOLD: Final = 10**15
_EITHER: Final = Key("attribute", TEXT)  # or predicates


class Selection(Query):
    """A question about which counts are large. `counted` is the linear query whose answers it looks at."""

    readings: ClassVar[tuple[str, ...]] = ("people", "rows")

    def mentioned(self) -> frozenset[str]:
        return self.counted.mentioned()

    def candidates(self, domain: Domain) -> int:
        """Return how many counts are looked at."""
        return self.counted.size(domain)


@dataclass(frozen=True)
class SelectionOfSome(Selection):
    """A selection among the items of a set, among the values of another attribute, or among listed predicates.

    `choices` is the name of the attribute, or the predicates. `bounded` names what must not exceed how many these are.
    """

    bounded: ClassVar[str]
    where: Where | None
    choices: str | Listed

    @property
    def counted(self) -> Marginals | ListedCounts:
        if isinstance(self.choices, str):
            return Marginals(((self.choices,),), self.where, of=self.of)
        return ListedCounts(self.choices, self.where, of=self.of)

    @property
    def called(self) -> str:
        """What a choice is: a value of the attribute, or a predicate."""
        return self.choices if isinstance(self.choices, str) else PREDICATE

    @property
    def shortly(self) -> str:
        """What is chosen among, as it stands in the name of the question."""
        return self.choices if isinstance(self.choices, str) else shortly(self.choices)

    @property
    def order(self) -> str:
        """Where the public order of the choices stands."""
        return "the domain" if isinstance(self.choices, str) else "the list"

    def things(self, domain: Domain) -> str:
        """Return what is chosen among, in words."""
        if not isinstance(self.choices, str):
            return "predicates of a list"
        return f"{'items' if domain[self.choices].is_set else 'values'} of {self.choices}"

    def cells(self, places: Ints, domain: Domain) -> list[Any]:
        """Return the items, values or names of predicates at these places."""
        if isinstance(self.choices, str):
            return [domain[self.choices].cell(place) for place in places.tolist()]
        return [self.choices[place][0] for place in places.tolist()]

    def options(self) -> dict[str, Any]:
        if isinstance(self.choices, str):
            return {"attribute": self.choices}
        return {"predicates": as_document(self.choices)}

    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have, and bounds that it makes pointless."""
        try:
            self.counted.check(domain)
        except PlanError as refusal:
            # what a histogram, or a list of counts, refuses is what this query refuses
            key = str(refusal.key)
            if key != "histogram" and not key.startswith("counts."):
                raise
            raise refusal.retold(
                PlanError, key=key.replace("counts", self.keyword, 1).replace("histogram", self.keyword)
            ) from None
        many = self.candidates(domain)
        if many > LARGEST_RELEASE:
            rule = f"has {many:,} values, more than {LARGEST_RELEASE:,}"
            raise PlanError(rule, key=f"{self.keyword}: {self.called}", fix="Declare fewer values, or a coarser step.")
        most = getattr(self, self.bounded)
        if most > many:
            rule = f"must be from 1 to {many:,}, the number of {self.things(domain)}"
            raise PlanError(rule, key=f"{self.keyword}.{self.bounded}", given=most, fix="Lower it.")


def _one_of(among: Any, predicates: Any, keyword: str) -> Any:
    """Return what is chosen among, which a job file writes below one of two keys; or refuse."""
    if (among is None) == (predicates is None):
        rule = "must name one attribute or list predicates, and not both"
        raise PlanError(
            rule, key=keyword, fix=f"For instance {keyword}('clicked', ..), or {keyword}(['age < 18'], ..)."
        )
    return among if predicates is None else predicates


def read_choices(among: Any, keyword: str) -> str | Listed:
    """Return the name of an attribute, or the predicates of a list."""
    if isinstance(among, str):
        return among
    if not is_listed(among):
        raise PlanError("must name one attribute, or list predicates", key=keyword, given=among, fix="Quote its name.")
    return read_listed(among, f"{keyword}.predicates")


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


@overload
def below(
    predicate: Where | str | None = None,
    threshold: int | None = None,
    *,
    item: tuple[str, Value] | None = None,
    where: Where | str | None = None,
    of: str | None = None,
) -> Below: ...
@overload
def below(
    predicate: Any = None,
    threshold: int | Sequence[int] | None = None,
    *,
    where: Where | str | None = None,
    predicates: Any = None,
    at_most: int,
    of: str | None = None,
) -> Above: ...
def below(
    predicate: Any = None,
    threshold: int | Sequence[int] | None = None,
    *,
    item: tuple[str, Value] | None = None,
    where: Where | str | None = None,
    predicates: Any = None,
    at_most: int | None = None,
    of: str | None = None,
) -> Below | Above:
    """Ask whether fewer than `threshold` people are picked by a predicate, or have an item.

    Of a list of predicates, ask which pick fewer, as `above` without values does.

    >>> str(below("age < 18", 5))
    'below(age < 18, 5)'
    >>> str(below(item=("clicked", 17), threshold=5))
    'below(clicked.has(17), 5)'
    """
    given = predicate if predicate is not None else where
    if predicates is not None:  # in a job file, `where` comes first
        return _above("below", predicates, threshold, at_most, given, of, values=False)
    if is_listed(predicate):
        return _above("below", predicate, threshold, at_most, where, of, values=False)
    if at_most is not None:
        raise PlanError("must be left out for one count", key="below.at_most", given=at_most, fix="Or list predicates.")
    return Below(predicate_for(given, item, keyword="below"), whole_threshold(threshold, "below"), of=of)


_ONE_OR_EACH: Final = {"anyOf": [POSITIVE, {"type": "array", "items": POSITIVE, "minItems": 1}]}
_ITEM: Final = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": ["string", "number"]}}
BELOW: Final = Question(
    "below",
    keys=(
        WHERE,
        OF,
        Key("threshold", _ONE_OR_EACH, "Fewer people than this are below it.", required=True),
        Key("item", _ITEM, "[attribute, item]", read=as_item),
        PREDICATES,
        Key("at_most", POSITIVE, "Of predicates: after so many answers that cost something it stops."),
    ),
    ask=below,
    example=lambda policy: below(first_predicate(policy), 3),
    shown=(
        ('`{below: {where: "age < 18", threshold: 5}}`', "whether fewer than 5 people are picked"),
        ("`{below: {item: [clicked, 17], threshold: 5}}`", "whether fewer than 5 people have an item"),
        (
            '`{below: {predicates: ["age < 18", "age > 80"], threshold: 5, at_most: 1}}`',
            "which predicates pick fewer than 5 people: what `above` answers without values",
        ),
    ),
    either=("where", "item", "predicates"),
)


@dataclass(frozen=True)
class Above(SelectionOfSome):
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
        things = self.things(domain)
        things, have = things[0].upper() + things[1:], "have" if isinstance(self.choices, str) else "satisfy"
        if isinstance(self.threshold, int):
            return f"{things} that at least {self.threshold:,} {self.who} {have}"
        low, high = min(self.threshold), max(self.threshold)
        return f"{things} that reach their own thresholds, {low:,} to {high:,} {self.who}"

    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have, and a list of thresholds that leaves somebody out."""
        super().check(domain)
        many = self.candidates(domain)
        if isinstance(self.threshold, tuple) and len(self.threshold) != many:
            rule = f"must be one number, or {many:,}: one for each of the {self.things(domain)}"
            given = f"{len(self.threshold):,} numbers"
            raise PlanError(rule, key="above.threshold", given=given, fix=f"Write them in the order of {self.order}.")

    def thresholds(self, many: int) -> Ints:
        """Return the threshold of each of so many items."""
        return np.broadcast_to(np.asarray(self.threshold, dtype=np.int64), many)

    def plan(self, policy: Policy, epsilon: Fraction) -> AbovePlan:
        return plan_above(self, policy, epsilon)

    def options(self) -> dict[str, Any]:
        threshold = self.threshold if isinstance(self.threshold, int) else list(self.threshold)
        values = {} if self.values else {"values": False}
        return {**super().options(), "threshold": threshold, "at_most": self.at_most, **values}

    def __str__(self) -> str:
        each = self.threshold
        said = str(each) if isinstance(each, int) else f"{min(each)} to {max(each)}"
        return f"above({self.shortly}, {said}, at most {self.at_most}{suffix(self.where, self.of)})"


def above(
    among: Any = None,
    threshold: int | Sequence[int] | None = None,
    *,
    at_most: int | None = None,
    values: bool = True,
    predicates: Any = None,
    where: Any = None,
    of: str | None = None,
) -> Above:
    """Ask which items at least `threshold` people have, until `at_most` were found; the other answers are free.

    `among` is the name of an attribute, or a list of predicates. A list of thresholds has one for each item, in the
    order of the domain, or of the list.

    >>> str(above("clicked", [3, 5, 4], at_most=2))
    'above(clicked, 3 to 5, at most 2)'
    """
    return _above("above", _one_of(among, predicates, "above"), threshold, at_most, where, of, values=values)


def _above(
    keyword: str, among: Any, threshold: Any, at_most: Any, where: Any, of: str | None, *, values: bool
) -> Above:
    """Return the question, or refuse in the words of whoever was asked."""
    choices = read_choices(among, keyword)
    fix = "Say how many answers there may be at most: at_most=50."
    bound = whole_from_one(at_most, f"{keyword}.at_most", fix)
    if not isinstance(values, bool):
        raise PlanError("must be true or false", key=f"{keyword}.values", given=values, fix="Leave it out for true.")
    return Above(read_where(where), choices, _one_or_each(threshold, keyword), bound, values, of=of)


def _one_or_each(given: Any, keyword: str) -> int | tuple[int, ...]:
    """Return one threshold, or one for each item."""
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(listed, list | tuple):
        return whole_threshold(given, keyword)
    if not listed:
        fix = "Write one for each item, or one for all."
        raise PlanError("must have a number", key=f"{keyword}.threshold", fix=fix)
    return tuple(whole_threshold(one, keyword) for one in listed)


ABOVE: Final = Question(
    "above",
    keys=(
        _EITHER,
        PREDICATES,
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
    either=("attribute", "predicates"),
)


@dataclass(frozen=True)
class TopK(SelectionOfSome):
    """The `k` items (or values) that most people have, with how many have each."""

    k: int
    keyword: ClassVar[str] = "top_k"
    bounded: ClassVar[str] = "k"

    def words(self, domain: Domain) -> str:
        return f"The {self.k:,} most frequent {self.things(domain)}{self.of_rows}"

    def plan(self, policy: Policy, epsilon: Fraction) -> TopKPlan | BarPlan:
        return plan_top_k(self, policy, epsilon)

    def options(self) -> dict[str, Any]:
        return {**super().options(), "k": self.k}

    def __str__(self) -> str:
        return f"top_k({self.shortly}, {self.k}{suffix(self.where, self.of)})"


def top_k(
    among: Any = None,
    k: int | None = None,
    *,
    predicates: Any = None,
    where: Where | str | None = None,
    of: str | None = None,
) -> TopK:
    """Ask for the `k` items that most people have, or the predicates that pick most, with how many each has.

    >>> str(top_k({"young": "age < 18", "old": "age >= 65"}, 1))
    'top_k(young, old, 1)'
    """
    choices = read_choices(_one_of(among, predicates, "top_k"), "top_k")
    return TopK(read_where(where), choices, whole_from_one(k, "top_k.k", "For instance top_k('clicked', 10)."), of=of)


TOP_K: Final = Question(
    "top_k",
    keys=(_EITHER, PREDICATES, Key("k", POSITIVE, "How many to choose.", required=True), WHERE, OF),
    ask=top_k,
    example=lambda policy: top_k(first_attribute(policy, "top_k", has_cells), 1),
    shown=(
        (
            "`{top_k: {attribute: clicked, k: 10}}`",
            "the ten items, or values, that most people have, with their counts",
        ),
        (
            '`{top_k: {predicates: {young: "age < 18", flu: "disease == \'flu\'"}, k: 1}}`',
            "the predicates that pick most people; `above` takes them as well",
        ),
    ),
    either=("attribute", "predicates"),
)

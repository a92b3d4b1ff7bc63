"""`median` and `quantiles`: read off one release of cumulative counts, or a single one chosen by its rank.

Which of the two has less error follows from public numbers (`plan/plans/rank_plan.py`). What follows is about counts.

The q-quantile is the smallest value v such that at least q of the people have at most v. Let F(t) be the number of
people up to position t, n of all, and t* the position of the quantile: F(t*) >= q n, and F(t*-1) < q n. So no interval
for F(t*) lies below q n, but with the probability that it misses; the first position whose interval reaches q n is a
lower end for t*. In the same way the last position whose predecessor's interval begins below q n is an upper end. Only
three intervals have to hold: those of F(t*), of F(t*-1) and of n, whatever the number of positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from tacit.amounts import as_fraction, shown
from tacit.arrays import Floats
from tacit.errors import PlanError, kind_of
from tacit.plan.plans.derived import Derived, Released, range_of
from tacit.plan.plans.rank_plan import RankPlan, plan_rank
from tacit.plan.question import suffix
from tacit.plan.question_keys import (
    ATTRIBUTE_OR_EACH,
    OF,
    OR_ROWS,
    WHERE,
    Question,
    about,
    as_decimals,
    can_be_added_up,
    first_attribute,
)
from tacit.plan.questions.counts import Marginals
from tacit.plan.questions.cumulative import Cumulative
from tacit.plan.questions.total import check_number
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.keys import Key
from tacit.policy.policy import Policy
from tacit.policy.where import Where

if TYPE_CHECKING:
    from tacit.plan.plans.derived import DerivedPlan
    from tacit.plan.plans.linear import LinearPlan

MOST_SHARES: Final = 1000
HALF: Final = Fraction(1, 2)


@dataclass(frozen=True)
class Quantiles(Derived):
    """For each share q the smallest value such that at least q of the people have at most that."""

    name: str
    shares: tuple[Fraction, ...]
    where: Where | None = None
    keyword: ClassVar[str] = "quantiles"
    roles: ClassVar[tuple[str, ...]] = ("cumulative counts",)
    measured: ClassVar[tuple[str, str]] = Cumulative.entry_words

    @property
    def counted(self) -> Cumulative:
        return Cumulative(self.name, self.where, of=self.of)

    @property
    def cells(self) -> Marginals:
        """The people at each value."""
        return Marginals(((self.name,),), self.where, of=self.of)

    def check(self, domain: Domain) -> None:
        check_number(domain, self.name, self.word, "Ask for `cumulative`.")
        super().check(domain)

    def mentioned(self) -> frozenset[str]:
        return self.counted.mentioned()

    def size(self, domain: Domain) -> int:
        return len(self.shares)

    def labels(self, domain: Domain) -> dict[str, Sequence[Value]]:
        return {f"share of {self.who} up to {self.name}": [shown(share) for share in self.shares]}

    @property
    def word(self) -> str:
        return "median" if self.shares == (HALF,) else self.keyword

    def options(self) -> dict[str, Any]:
        if self.shares == (HALF,):
            return {"attribute": self.name}
        listed = [shown(share) for share in self.shares]
        return {"attribute": self.name, "at": [float(text) if "/" not in text else text for text in listed]}

    def words(self, domain: Domain) -> str:
        return f"{self.word.capitalize()} of {self.name}{self.of_rows}{self.cut_words(domain)}"

    def unit_words(self, domain: Domain) -> str:
        return self.name

    def plan(self, policy: Policy, epsilon: Fraction) -> DerivedPlan | RankPlan:
        return self.plan_for(policy, epsilon, policy.known_people)

    def plan_for(self, policy: Policy, epsilon: Fraction, people: int | None) -> DerivedPlan | RankPlan:
        """Return the plan that reads quantiles off running counts, or that of a choice where this is better."""
        counts = replace(super().plan(policy, epsilon), known_people=people)
        return plan_rank(self, policy, epsilon, counts) or counts

    def parts(self, policy: Policy, epsilon: Fraction) -> tuple[LinearPlan, ...]:
        return (self.counted.plan(policy, epsilon),)

    def values(self, parts: Sequence[Released], domain: Domain) -> Floats:
        """Return the first value up to which the share is reached; nothing where it is exact that nobody is there."""
        counts = parts[0].values
        if parts[0].exact[-1] and counts[-1] == 0:
            return np.full(len(self.shares), np.nan)
        rounding = 1e-9 * max(1.0, float(counts[-1]))
        reached = [counts >= float(share) * counts[-1] - rounding for share in self.shares]
        return self._numbers([int(np.argmax(at)) if at.any() else len(at) - 1 for at in reached], domain)

    def ends(self, parts: Sequence[Released], domain: Domain, level: float) -> tuple[Floats, Floats]:
        """Return the first and the last value that may be the quantile; of all values, if there may be nobody."""
        is_known = bool(parts[0].exact[-1])
        if is_known and parts[0].values[-1] == 0:
            return np.full(len(self.shares), np.nan), np.full(len(self.shares), np.nan)
        if parts[0].exact.all():
            exact = self.values(parts, domain)
            return exact, exact
        # what may fail: the counts at the quantile and before it and, if it is noisy, the number of all
        lower, upper = parts[0].interval(1 - (1 - level) / (2 if is_known else 3))
        first, last = [], []
        if lower[-1] <= 0:
            return self._numbers([0] * len(self.shares), domain), self._numbers(
                [len(lower) - 1] * len(self.shares), domain
            )
        for share in map(float, self.shares):
            rounding = 1e-9 * max(1.0, float(upper[-1]))
            may_reach = upper >= share * lower[-1] - rounding
            may_miss = lower < share * upper[-1] + rounding
            first.append(int(np.argmax(may_reach)) if may_reach.any() else len(upper) - 1)
            # the position after the last one that may still lie below the share
            last.append(min(int(np.flatnonzero(may_miss)[-1]) + 1, len(upper) - 1) if may_miss.any() else 0)
        return self._numbers(first, domain), self._numbers(last, domain)

    def _numbers(self, places: list[int], domain: Domain) -> Floats:
        attribute: Any = domain[self.name]
        return np.array([float(attribute.number(place) * attribute.unit) for place in places], dtype=np.float64)

    def expected_error(self, parts: Sequence[LinearPlan], people: float) -> float:
        """Return how far off a value is if people are spread evenly over the range."""
        (counts,) = parts
        attribute: Any = counts.policy.domain[self.name]
        return counts.rmse / people * float(attribute.size * attribute.spacing * attribute.unit)

    def range(self, domain: Domain) -> tuple[float, float]:
        return range_of(domain[self.name])

    def prediction(self) -> str:
        return ", spread evenly over the range; where more are, it is smaller"

    def terms(self, parts: Sequence[LinearPlan]) -> list[str]:
        return [f"the smallest value such that at least this share of the {self.who} have at most that"]

    def __str__(self) -> str:
        shares = [] if self.shares == (HALF,) else [shown(share) for share in self.shares]
        return f"{self.word}({', '.join([self.name, *shares])}{suffix(self.where, self.of, self.each)})"


def quantiles(
    name: str | None = None,
    at: Iterable[Any] = (),
    *,
    where: Where | str | None = None,
    of: str | None = None,
    each: str | None = None,
    at_most: Any = None,
    step: Any = None,
) -> Quantiles:
    """Ask for the values up to which these shares of the people reach, for instance [0.25, 0.5, 0.75].

    With `each`, for those of one number of each person, as in `mean`.
    """
    fields = about("quantiles", name, where=where, of=of, each=each, at_most=at_most, step=step)
    return Quantiles(**fields, shares=_read_shares(at))


def median(
    name: str | None = None,
    *,
    where: Where | str | None = None,
    of: str | None = None,
    each: str | None = None,
    at_most: Any = None,
    step: Any = None,
) -> Quantiles:
    """Ask for the value up to which half of the people reach; with `each`, of one number of each, as in `mean`."""
    return Quantiles(**about("median", name, where=where, of=of, each=each, at_most=at_most, step=step), shares=(HALF,))


def _read_shares(given: Any) -> tuple[Fraction, ...]:
    example = "For instance [0.25, 0.5, 0.75]."
    listed = list(given) if isinstance(given, list | tuple | np.ndarray) else [given]
    if not 1 <= len(listed) <= MOST_SHARES:
        raise PlanError(f"must list 1 to {MOST_SHARES:,} shares", key="quantiles.at", given=len(listed), fix=example)
    found = []
    for one in listed:
        if isinstance(one, bool) or not isinstance(one, int | float | str | Fraction | np.number):
            raise PlanError(f"must be shares of the people, not {kind_of(one)}", key="quantiles.at", fix=example)
        share = as_fraction(float(one) if isinstance(one, np.number) else one, key="quantiles.at")
        if not 0 < share < 1:
            raise PlanError("must lie strictly between 0 and 1", key="quantiles.at", given=one, fix=example)
        found.append(share)
    return tuple(found)


_SHARE: Final = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "string", "pattern": r"^[0-9.]+(/[0-9.]+)?$"},
    ]
}
QUANTILES: Final = Question(
    "quantiles",
    keys=(
        *ATTRIBUTE_OR_EACH,
        Key(
            "at",
            {"anyOf": [*_SHARE["anyOf"], {"type": "array", "minItems": 1, "items": _SHARE}]},
            read=as_decimals,
            required=True,
        ),
        WHERE,
        OF,
    ),
    some=OR_ROWS,
    ask=quantiles,
    example=lambda policy: quantiles(first_attribute(policy, "quantiles", can_be_added_up), [0.25, 0.75]),
    shown=(
        (
            "`{quantiles: {attribute: age, at: [0.25, 0.5, 0.75]}}`",
            "the values up to which these shares of people reach",
        ),
    ),
)
MEDIAN: Final = Question(
    "median",
    keys=(*ATTRIBUTE_OR_EACH, WHERE, OF),
    some=OR_ROWS,
    ask=median,
    example=lambda policy: median(first_attribute(policy, "median", can_be_added_up)),
    shown=(("`{median: age}`", "the value up to which half of the people reach"),),
)

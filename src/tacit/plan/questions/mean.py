"""`mean`: noisy sums over noisy counts of the same people, one for each cell.

Everybody's number is counted from the middle of the declared range: a person who comes, leaves or changes cells moves a
sum by half of the range at most, and the error of a count matters only as far as the mean is off the middle. How
epsilon is shared out follows from public numbers: the variance of a sum, plus that of a count times the mean square of
a number that may be anywhere in the range, is to be as small as can be.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from tacit.arrays import Floats
from tacit.errors import PlanError
from tacit.plan.examples import can_be_added_up, first_attribute
from tacit.plan.plans.derived import Derived, Released, range_of
from tacit.plan.question import Linear, read_where
from tacit.plan.question_keys import ATTRIBUTE, BY, WHERE, Question
from tacit.plan.questions.count import Count
from tacit.plan.questions.marginals import Marginals
from tacit.plan.questions.total import Summed, Total, read_by
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.where import Where

if TYPE_CHECKING:
    from tacit.plan.plans.linear import LinearPlan

PARTS: Final = 64  # that epsilon is shared out in


@dataclass(frozen=True)
class Moment(Summed, Derived):
    """A number about the values that people have of an attribute, made of sums over them and of how many they are.

    `several_rows` says what else to ask for where people own several rows.
    """

    several_rows: ClassVar[str] = ""

    def middle(self, domain: Domain) -> int:
        """Return the middle of the range, in units."""
        attribute: Any = domain[self.name]
        return int((attribute.number(0) + attribute.number(attribute.size - 1)) // 2)

    def sums(self, domain: Domain) -> Total:
        """Return the sums, each number counted from the middle of the range."""
        return Total(self.name, self.where, self.by, self.middle(domain))

    def counts(self) -> Linear:
        """Return the counts of the same people."""
        return Marginals((self.by,), self.where) if self.by else Count(self.where)

    def check_rows_of_one(self, policy: Policy) -> None:
        """Refuse people who own several rows."""
        if policy.per_person > 1:
            raise PlanError(
                "must be about one row of each person, since people are counted once and every row is added up",
                key=self.keyword,
                given=f"per_person={policy.per_person}",
                fix=f"Keep one row per person. {self.several_rows}".rstrip(),
            )

    def prediction(self) -> str:
        return "; for ten times as many it is a tenth of that"

    def terms(self, parts: Sequence[LinearPlan]) -> list[str]:
        if not self.by:
            return []
        if parts[-1].is_exact:
            return [f"a group without people has no {self.keyword}: its value and its interval are empty"]
        return [f"a {self.keyword} is about groups that have people; which groups have none is not said exactly"]


@dataclass(frozen=True)
class Mean(Moment):
    """The mean of an attribute over the people; with `by`, one for each cell of these attributes."""

    keyword: ClassVar[str] = "mean"
    roles: ClassVar[tuple[str, ...]] = ("sums", "counts")
    measured: ClassVar[tuple[str, str]] = ("a sum", "sums")
    several_rows: ClassVar[str] = "A `total` over a `count` is the sum of a person, not the mean of a row."

    @property
    def counted(self) -> Total:
        """The sums, each number as it stands."""
        return Total(self.name, self.where, self.by)

    def parts(self, policy: Policy, epsilon: Fraction) -> tuple[LinearPlan, ...]:
        """Return the plans of the sums and of the counts."""
        self.check_rows_of_one(policy)
        sums, counts = self.sums(policy.domain), self.counts()
        whole = sums.plan(policy, epsilon), counts.plan(policy, epsilon)
        share = self._share(*whole)
        return sums.plan(policy, epsilon * share), counts.plan(policy, epsilon * (1 - share))

    def _share(self, sums: LinearPlan, counts: LinearPlan) -> Fraction:
        """Return the share of epsilon for the sums; nothing for what is exact anyway."""
        if counts.is_exact:
            return Fraction(1)
        if sums.is_exact:
            return Fraction(0)
        weight = self._mean_square(sums)

        @cache
        def error(part: int) -> float:
            share = Fraction(part, PARTS)
            of_sums, of_counts = (
                sums.variance_for(sums.epsilon * share),
                counts.variance_for(counts.epsilon * (1 - share)),
            )
            return of_sums + weight * of_counts

        # one variance falls and the other rises, so that halving finds the least error
        low, high = 1, PARTS - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if error(middle) <= error(middle + 1) else (middle + 1, high)
        return Fraction(low, PARTS)

    def _mean_square(self, sums: LinearPlan) -> float:
        """Return the mean square of a number that lies anywhere in the range, counted from its middle, in units."""
        attribute: Any = sums.policy.domain[self.name]
        return float(attribute.spacing * (attribute.size - 1)) ** 2 / 12

    def values(self, parts: Sequence[Released], domain: Domain) -> Floats:
        """Return sums over counts, inside of the range; nothing where it is exact that nobody is there."""
        sums, counts = parts
        low, high = self.range(domain)
        middle = self._middle(domain)
        means = sums.values / np.maximum(counts.values, 1.0)
        return np.where(is_nobody(counts), np.nan, middle + np.clip(means, low - middle, high - middle))

    def ends(self, parts: Sequence[Released], domain: Domain, level: float) -> tuple[Floats, Floats]:
        """Return the smallest and the largest ratio of a sum and a count that both lie in their intervals.

        The error is shared by the two; where one is exact the other has all of it. Where there may be nobody, it is the
        whole range; where there is nobody, nothing.
        """
        sums, counts = parts
        low, high = self.range(domain)
        middle = self._middle(domain)
        fewest, most = self._interval(counts, sums, level)
        least, largest = self._interval(sums, counts, level)
        may_be_nobody, nobody = fewest <= 0, is_nobody(counts)
        fewest, most = np.maximum(fewest, 1.0), np.maximum(most, 1.0)
        lower = middle + np.clip(np.minimum(least / fewest, least / most), low - middle, high - middle)
        upper = middle + np.clip(np.maximum(largest / fewest, largest / most), low - middle, high - middle)
        lower, upper = np.where(may_be_nobody, low, lower), np.where(may_be_nobody, high, upper)
        return np.where(nobody, np.nan, lower), np.where(nobody, np.nan, upper)

    @staticmethod
    def _interval(part: Released, other: Released, level: float) -> tuple[Floats, Floats]:
        return part.interval(level if other.exact.all() else (1 + level) / 2)

    def range(self, domain: Domain) -> tuple[float, float]:
        return range_of(domain[self.name])

    def _middle(self, domain: Domain) -> float:
        attribute: Any = domain[self.name]
        return float(self.middle(domain) * attribute.unit)

    def expected_error(self, parts: Sequence[LinearPlan], people: float) -> float:
        """Return the error of sum - mean * count, for a mean that may lie anywhere in the range, over the people."""
        sums, counts = parts
        attribute: Any = sums.policy.domain[self.name]
        together = sums.variance + self._mean_square(sums) * counts.variance
        return math.sqrt(together) / people * float(attribute.unit)


def is_nobody(counts: Released) -> Any:
    """Say of which cells it is said exactly that nobody is in them."""
    return counts.exact & (counts.values == 0)


def mean(name: str, by: str | Iterable[str] = (), *, where: Where | str | None = None) -> Mean:
    """Ask for the mean of an attribute; with `by`, for one mean in each cell of these attributes."""
    return Mean(name, read_where(where), read_by(by, "mean"))


MEAN: Final = Question(
    "mean",
    keys=(ATTRIBUTE, BY, WHERE),
    read=lambda said: mean(said["attribute"], by=said.get("by", ()), where=said.get("where")),
    example=lambda policy: mean(first_attribute(policy, "mean", can_be_added_up)),
    shown=(("`{mean: income}`, or `{mean: {attribute: income, by: sex}}`", "the mean of a number, of all or by cell"),),
)

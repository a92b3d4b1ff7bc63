"""`mean` and `variance`: from noisy sums, sums of squares and counts of the same people.

Numbers are counted from the middle of the declared range: then a person who joins, leaves or changes cells moves a sum
by half of the range at most, and an error of a count matters only as far as the mean is off the middle. A mean is
sums / people. A variance is squares / people - (sums / people)^2: it is divided by the number of people, not by one
less. The parts share epsilon so that the error of the answers is small; which shares follows from public numbers. A
mean whose count is not exact follows from two sums with all of epsilon, where these have less error (`two_sums.py`).

Guarantee   An interval of level L holds the true mean or variance with probability L at least.
Assumes     The intervals of the parts hold at their levels; there is somebody, or it is exact that there is nobody.
Why         The chance to miss is shared equally by the parts that have noise, so that all of them are in their
            intervals with probability L. A mean is a ratio, whose extremes are at the ends of both intervals.
            For given people n the variance grows with the squares q and falls with the size s of the sums. As a
            function of n, q / n - s^2 / n^2 grows up to n = 2 s^2 / q and falls from there on: its largest value is
            there, or at the nearest end; its smallest one is at an end. No variance is below zero, or above the square
            of half of the range (Popoviciu).
Reference   Popoviciu, Sur les équations algébriques ayant toutes leurs racines réelles, 1935; Bonferroni.
Checked by  tests/statistical/test_variance.py, tests/statistical/test_derived.py, tests/property/test_squares.py
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.plan.measure.measured import CellCounts, Tally
from tacit.plan.plans.derived import Derived, Released, range_of
from tacit.plan.question import Linear
from tacit.plan.question_keys import (
    ATTRIBUTE_OR_EACH,
    BY,
    OF,
    OR_ROWS,
    WHERE,
    Question,
    about,
    can_be_added_up,
    first_attribute,
)
from tacit.plan.questions.counts import Count, Marginals
from tacit.plan.questions.total import Numbers, Summed, Total, as_sums, by_words, check_products, read_by
from tacit.plan.questions.two_sums import SAID, TwoSums
from tacit.plan.sensitivity.responses import Jump, PlacedResponse, RecordMove, Response, corner_moves
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.policy import Policy
from tacit.policy.where import Where

if TYPE_CHECKING:
    from tacit.plan.plans.linear import LinearPlan


PARTS: Final = 64  # that epsilon is shared out in


@dataclass(frozen=True)
class Moment(Summed, Derived):
    """A number about the values that people have of an attribute, made of sums over them and of how many they are."""

    def middle(self, domain: Domain) -> int:
        """Return the middle of the range, in units."""
        attribute: Any = domain[self.name]
        return int((attribute.number(0) + attribute.number(attribute.size - 1)) // 2)

    def sums(self, domain: Domain) -> Total:
        """Return the sums, each number counted from the middle of the range."""
        return Total(self.name, self.where, self.by, self.middle(domain), of=self.of)

    def counts(self) -> Linear:
        """Return the counts of the same people."""
        return Marginals((self.by,), self.where, of=self.of) if self.by else Count(self.where, of=self.of)

    @abstractmethod
    def measured_for(self, domain: Domain) -> tuple[Linear, ...]:
        """Return the questions that it is made of, the counts last."""

    @abstractmethod
    def weights(self, domain: Domain) -> tuple[float, ...]:
        """Return what the variances of the parts are multiplied by in that of an answer, times people squared.

        That is for small errors, and a number that may lie anywhere in the range, counted from its middle, in units.
        """

    def check_size(self, policy: Policy) -> None:
        self.measured_for(policy.domain)[0].check_size(policy.domain)

    def parts(self, policy: Policy, epsilon: Fraction) -> tuple[LinearPlan, ...]:
        measured = self.measured_for(policy.domain)
        whole = [one.plan(policy, epsilon).variance for one in measured]
        weights = self.weights(policy.domain)
        shares = _shares([variance * weight for variance, weight in zip(whole, weights, strict=True)])
        return tuple(one.plan(policy, epsilon * share) for one, share in zip(measured, shares, strict=True))

    def square(self, domain: Domain) -> float:
        """Return the mean square of a number that lies anywhere in the range, counted from its middle, in units."""
        attribute: Any = domain[self.name]
        return float(attribute.spacing * max(attribute.size - 1, 1)) ** 2 / 12  # one value alone: as if of two

    def expected_error(self, parts: Sequence[LinearPlan], people: float) -> float:
        domain = parts[0].policy.domain
        together = sum(part.variance * weight for part, weight in zip(parts, self.weights(domain), strict=True))
        return math.sqrt(together) / people * float(self.counted.unit(domain))

    def within_range(
        self, lower: Floats, upper: Floats, parts: Sequence[Released], fewest: Floats, domain: Domain
    ) -> tuple[Floats, Floats]:
        """Return ends inside of the range: all of it where there may be nobody, nothing where there is nobody."""
        low, high = self.range(domain)
        lower = np.where(fewest <= 0, low, np.clip(lower, low, high))
        upper = np.where(fewest <= 0, high, np.clip(upper, low, high))
        nobody = is_nobody(parts[-1])
        return np.where(nobody, np.nan, lower), np.where(nobody, np.nan, upper)

    def prediction(self) -> str:
        return "; for ten times as many it is a tenth of that"

    def terms(self, parts: Sequence[LinearPlan]) -> list[str]:
        if not self.by:
            return []
        if parts[-1].is_exact:
            return [f"a group without {self.who} has no {self.keyword}: its value and its interval are empty"]
        return [f"a {self.keyword} is about groups that have {self.who}; which groups have none is not said exactly"]


@dataclass(frozen=True)
class Mean(Moment):
    """The mean of an attribute over the people; with `by`, one for each cell of these attributes."""

    keyword: ClassVar[str] = "mean"
    roles: ClassVar[tuple[str, ...]] = ("sums", "counts")  # or two sums alone
    measured: ClassVar[tuple[str, str]] = ("a sum", "sums")

    @property
    def counted(self) -> Total:
        return Total(self.name, self.where, self.by, of=self.of)

    def measured_for(self, domain: Domain) -> tuple[Linear, ...]:
        return self.sums(domain), self.counts()

    def parts(self, policy: Policy, epsilon: Fraction) -> tuple[LinearPlan, ...]:
        """Return the plan of two sums, or those of sums and counts, which are better where counts are exact."""
        split = super().parts(policy, epsilon)
        if split[-1].is_exact:
            return split
        pair = TwoSums(self.name, self.where, self.by, of=self.of).plan(policy, epsilon)
        pair = replace(pair, why=f"{SAID}; {pair.why}")
        return min((pair,), split, key=lambda parts: self.expected_error(parts, 1.0))

    def expected_error(self, parts: Sequence[LinearPlan], people: float) -> float:
        if len(parts) > 1:
            return super().expected_error(parts, people)
        pair, domain = parts[0].query, parts[0].policy.domain
        if not isinstance(pair, TwoSums) or domain[self.name].size == 1:
            return math.inf
        return math.sqrt(pair.error_of_mean(parts[0].variance)) / people * self._step(domain)

    def weights(self, domain: Domain) -> tuple[float, ...]:
        """The error is that of sum - mean * count, over the people."""
        return 1.0, self.square(domain)

    def values(self, parts: Sequence[Released], domain: Domain) -> Floats:
        """Return sums over counts, inside of the range; nothing where it is exact that nobody is there."""
        low, high = self.range(domain)
        middle = self._middle(domain)
        if len(parts) == 1:
            people, distances = self._pair(parts).people_and_distances(parts[0], domain)
            sums, nobody = (low - middle) * people + self._step(domain) * distances, np.False_
        else:
            sums, people, nobody = parts[0].values, parts[1].values, is_nobody(parts[1])
        means = sums / np.maximum(people, 1.0)
        return np.where(nobody, np.nan, middle + np.clip(means, low - middle, high - middle))

    def ends(self, parts: Sequence[Released], domain: Domain, level: float) -> tuple[Floats, Floats]:
        """Return the ends for two sums; or the smallest and the largest ratio of a sum and a count in their intervals.

        The error is shared by the two; where one is exact the other has all of it.
        """
        if len(parts) == 1:
            low, _ = self.range(domain)
            found = (low + self._step(domain) * end for end in self._pair(parts).ends(parts[0], domain, level))
            values = self.values(parts, domain)  # inside, also where no mean is likely
            lower, upper = (np.clip(end, *self.range(domain)) for end in found)
            return np.minimum(lower, values), np.maximum(upper, values)
        (least, largest), (fewest, most) = intervals(parts, level)
        people = np.maximum(fewest, 1.0), np.maximum(most, 1.0)
        lower = self._middle(domain) + np.minimum(*(least / end for end in people))
        upper = self._middle(domain) + np.maximum(*(largest / end for end in people))
        return self.within_range(lower, upper, parts, fewest, domain)

    def _pair(self, parts: Sequence[Released]) -> TwoSums:
        pair: Any = parts[0].plan.query
        found: TwoSums = pair
        return found

    def _step(self, domain: Domain) -> float:
        """Return how far numbers at neighbouring positions are apart."""
        attribute: Any = domain[self.name]
        return float(attribute.spacing * attribute.unit)

    def range(self, domain: Domain) -> tuple[float, float]:
        return range_of(domain[self.name])

    def _middle(self, domain: Domain) -> float:
        attribute: Any = domain[self.name]
        return float(self.middle(domain) * attribute.unit)


def intervals(parts: Sequence[Released], level: float) -> list[tuple[Floats, Floats]]:
    """Return intervals of the parts that hold together at this level; those that have noise share the chance to miss.

    An exact part has its numbers at both ends, whatever its level.
    """
    noisy = sum(not part.exact.all() for part in parts)
    return [part.interval(1 - (1 - level) / max(noisy, 1)) for part in parts]


def is_nobody(counts: Released) -> Any:
    """Say of which cells it is said exactly that nobody is in them."""
    return counts.exact & (counts.values == 0)


def mean(
    name: str | None = None,
    by: str | Iterable[str] = (),
    *,
    where: Where | str | None = None,
    of: str | None = None,
    each: str | None = None,
    at_most: Any = None,
    step: Any = None,
) -> Mean:
    """Ask for the mean of an attribute; with `by`, for one mean in each cell of these attributes.

    With `each`, for the mean over people of one number of each person: how many `rows` they have, or the `sum`, `mean`
    or `max` of the attribute in them, which is cut to `at_most` and rounded to `step`.
    """
    fields = about("mean", name, where=where, of=of, each=each, at_most=at_most, step=step, also=by)
    return Mean(**fields, by=read_by(by, "mean"))


MEAN: Final = Question(
    "mean",
    keys=(*ATTRIBUTE_OR_EACH, BY, WHERE, OF),
    some=OR_ROWS,
    ask=mean,
    example=lambda policy: mean(first_attribute(policy, "mean", can_be_added_up)),
    shown=(
        ("`{mean: income}`, or `{mean: {attribute: income, by: sex}}`", "the mean of a number, of all or by cell"),
        (
            "`{mean: {each: rows}}`",
            "how many rows a person has on average ([`each`](several-rows.md))",
        ),
    ),
)


@dataclass(frozen=True)
class Squares(Total):
    """The sum over the people of the squared distance of a number from `origin`; with `by`, one in each cell."""

    def check_size(self, domain: Domain) -> None:
        super().check_size(domain)
        size, numbers = domain[self.name].size, self.numbers(domain)
        largest = max(abs(numbers.at(place)) for place in (0, size - 1)) ** 2
        check_products(self.size(domain) * size, largest, "variance", self.name)

    def never_negative(self, domain: Domain) -> bool:
        return True

    def unit(self, domain: Domain) -> Fraction:
        return super().unit(domain) ** 2

    def unit_words(self, domain: Domain) -> str:
        return f"{self.name} squared"

    def words(self, domain: Domain) -> str:
        return f"Sum of squares of {self.name}{by_words(self.by)}"

    def tallies(self, policy: Policy) -> tuple[Tally, ...]:
        return (CellCounts((*self.by, self.name), self.where),)

    def answers(self, tallied: Sequence[Any], domain: Domain) -> Ints:
        size = domain[self.name].size
        numbers = self.numbers(domain)
        squares = np.array([numbers.at(place) ** 2 for place in range(size)], dtype=object)
        return as_sums(np.asarray(tallied[0]).astype(object).reshape(-1, size) @ squares)

    def added_by(self, record: Mapping[str, Any], domain: Domain) -> Ints:
        return super().added_by(record, domain) ** 2

    def response(self, domain: Domain) -> Response:
        line = domain.axes_of(self.name)[0]
        return SquareResponse(self.numbers(domain), line.size, cells=self.by, line=line)

    def __str__(self) -> str:
        return self.written("squares", self.name)


@dataclass(frozen=True)
class SquareResponse(PlacedResponse):
    """The sum of squares in each cell.

    Somebody who stays in a cell changes its sum by b^2 - a^2. Between positions whose numbers do not change sign this
    rises with the size of b and falls with that of a; along moves by one distance it is linear. So its ends lie at
    corners of the possible moves from positions of one sign to positions of one sign.
    """

    numbers: Numbers
    values: int
    staying_may_show_more: ClassVar[bool] = True

    def _signs(self, places: Intervals) -> list[Intervals]:
        """Return the positions whose numbers are not above zero, and those whose numbers are."""
        turn = -self.numbers.first // self.numbers.spacing  # the last position whose number is not above zero
        last = self.values - 1
        halves = [Intervals.of([(0, min(turn, last))])] if turn >= 0 else []
        halves += [Intervals.of([(max(turn + 1, 0), last)])] if turn < last else []
        return [places & half for half in halves]

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """A sum changes by the difference of the two squares; between two cells, one loses and the other gains."""
        for hidden in self._signs(move.hidden):
            for cover in self._signs(move.cover):
                for start, end in corner_moves(replace(move, hidden=hidden, cover=cover)):
                    lost, gained = self.numbers.at(start) ** 2, self.numbers.at(end) ** 2
                    yield Jump.of(-lost, gained) if move.changed else Jump.of(gained - lost)

    def counted_at(self, places: Intervals) -> Iterable[Jump]:
        return [Jump.of(self.numbers.at(end) ** 2) for end in places.ends]


@dataclass(frozen=True)
class Variance(Moment):
    """The variance of an attribute over the people, divided by their number; with `by`, one for each cell."""

    keyword: ClassVar[str] = "variance"
    roles: ClassVar[tuple[str, ...]] = ("squares", "sums", "counts")
    measured: ClassVar[tuple[str, str]] = ("a sum of squares", "sums of squares")

    @property
    def counted(self) -> Squares:
        return Squares(self.name, self.where, self.by, of=self.of)

    def unit_words(self, domain: Domain) -> str:
        return f"{self.name} squared"

    def words(self, domain: Domain) -> str:
        return f"Population variance of {self.name}{by_words(self.by)}{self.of_rows}{self.cut_words(domain)}"

    def terms(self, parts: Sequence[LinearPlan]) -> list[str]:
        divided = f"squared distances from the mean are divided by the number of {self.who}, not by one less"
        return [divided, *super().terms(parts)]

    def measured_for(self, domain: Domain) -> tuple[Linear, ...]:
        return (
            Squares(self.name, self.where, self.by, self.middle(domain), of=self.of),
            self.sums(domain),
            self.counts(),
        )

    def weights(self, domain: Domain) -> tuple[float, ...]:
        """With mean m and mean square q: 1 for squares, (2 m)^2 for sums, (q - 2 m^2)^2 for counts, about q^2."""
        square = self.square(domain)
        return 1.0, 4 * square, square**2

    def values(self, parts: Sequence[Released], domain: Domain) -> Floats:
        squares, sums, counts = parts
        people = np.maximum(counts.values, 1.0)
        found = squares.values / people - (sums.values / people) ** 2
        return np.where(is_nobody(counts), np.nan, np.clip(found, *self.range(domain)))

    def ends(self, parts: Sequence[Released], domain: Domain, level: float) -> tuple[Floats, Floats]:
        """Return the smallest and the largest variance of squares, sums and counts that lie in their intervals."""
        (fewest_squares, most_squares), (least, largest), (fewest, most) = intervals(parts, level)
        ends = np.maximum(fewest, 1.0), np.maximum(most, 1.0)
        near = np.where((least <= 0) & (largest >= 0), 0.0, np.minimum(abs(least), abs(largest)))
        far = np.maximum(abs(least), abs(largest))
        # the people with whom the variance is largest
        turn = np.divide(2 * near**2, most_squares, out=np.full_like(near, np.inf), where=most_squares > 0)
        people = np.clip(turn, *ends)
        upper = most_squares / people - (near / people) ** 2
        lower = np.minimum(*(fewest_squares / end - (far / end) ** 2 for end in ends))
        return self.within_range(lower, upper, parts, fewest, domain)

    def range(self, domain: Domain) -> tuple[float, float]:
        """Return zero and the largest variance: half of the people at either end of the range."""
        low, high = range_of(domain[self.name])
        return 0.0, ((high - low) / 2) ** 2


def _shares(errors: Sequence[float]) -> list[Fraction]:
    """Return shares of epsilon for parts with these errors at all of it: about those of the least sum of errors.

    Errors grow like one over the square of a share, so that each share should be as the cube root of the error. A part
    without an error gets nothing, but for the first one, if none has any.

    >>> [str(share) for share in _shares([8.0, 1.0, 1.0])], [str(share) for share in _shares([0.0, 0.0, 0.0])]
    (['1/2', '1/4', '1/4'], ['1', '0', '0'])
    """
    roots = np.cbrt(np.array(errors) / max(max(errors), np.finfo(np.float64).tiny))
    parts = [max(1, round(PARTS * float(root / roots.sum()))) if root else 0 for root in roots]
    largest = int(np.argmax(roots))
    parts[largest] += PARTS - sum(parts)
    return [Fraction(part, PARTS) for part in parts]


def variance(
    name: str | None = None,
    by: str | Iterable[str] = (),
    *,
    where: Where | str | None = None,
    of: str | None = None,
    each: str | None = None,
    at_most: Any = None,
    step: Any = None,
) -> Variance:
    """Ask for the variance of an attribute, divided by the number of people; with `by`, for one in each cell.

    With `each`, for that of one number of each person, as in `mean`.
    """
    fields = about("variance", name, where=where, of=of, each=each, at_most=at_most, step=step, also=by)
    return Variance(**fields, by=read_by(by, "variance"))


VARIANCE: Final = Question(
    "variance",
    keys=(*ATTRIBUTE_OR_EACH, BY, WHERE, OF),
    some=OR_ROWS,
    ask=variance,
    example=lambda policy: variance(first_attribute(policy, "variance", can_be_added_up)),
    shown=(
        (
            "`{variance: income}`, or `{variance: {attribute: income, by: sex}}`",
            "the variance of a number (divided by the number of people), of all or by cell",
        ),
    ),
)

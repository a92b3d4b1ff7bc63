"""The plan of one quantile or few: of all values the one whose rank is nearest is chosen, under noise.

Each of several quantiles is chosen by itself, with its share of epsilon. The q-quantile is the first value up to which
q of the people reach. Let F(v) be the people up to v, n all of them. The rank of v is off by d(v) = max(0, q n - F(v),
F(v-1) - q n), which is zero at the quantile. The value with the largest score -d(v) plus noise is released, and nothing
else. With q = a/c, where c is the same for all shares, the scores are whole in parts of 1/c of a person; they are
counted in still finer parts (`FINER`), so that noisy scores are hardly ever equal.

Guarantee   For every secret edge hidden -> cover of the plan's policy, every data set and every value v (of several
            quantiles, all values together): Pr[M(hidden) = v] <= exp(epsilon) * Pr[M(cover) = v]. For every data set,
            d(released value) exceeds its number in `rank_bounds(level)` with probability 1 - level at most.
Assumes     The plan's step bounds how far scores move along an edge. Denominators c up to `LARGEST_PART` keep scores of
            up to 10^11 people within 62 bits.
Why         Let D = max(q, 1-q). Somebody who comes or leaves changes q n - F(v) by q or 1-q, whatever v is, and
            F(v-1) - q n likewise: so no score rises or falls by more than D. A move within the people leaves n; upwards
            from x to y, F falls by one between them, so that a score changes by one at most. These bounds hold for any
            data set, so those of several moves add up. The noise of the choice (`plan/plans/selection_plan.py`) hides
            every step that lets no score rise or fall by more. Several choices have independent noise: of k, each at
            epsilon/k, the losses add up to epsilon.
            Rank: the value with d = 0 is beaten by one with d >= r only if a geometric exceeds another by as many parts
            as r has, say p. That has probability alpha^p / (1 + alpha), alpha = exp(-1/scale), and there are at most
            V - 1 such values.
Reference   Smith, Privacy-preserving Statistical Estimation with Optimal Convergence Rates, 2011, for the score;
            McKenna, Sheldon, Permute-and-Flip, arXiv:2010.12603, for the noise.
Checked by  tests/property/test_rank_plan.py
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from tacit.amounts import shown
from tacit.arrays import Bools, Ints
from tacit.noise.two_scale import TwoScale
from tacit.plan.plans.derived import PEOPLE
from tacit.plan.plans.plan import LEVEL
from tacit.plan.plans.selection_plan import SelectionPlan, selecting_noise
from tacit.plan.plans.top_k import largest_places, log_probability_of_choice
from tacit.plan.sensitivity.responses import Jump, PlacedResponse, RecordMove, Response
from tacit.plan.sensitivity.steps import LargestStep, of_all_rows, step_of_one_row
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.policy import Policy
from tacit.policy.where import Where

if TYPE_CHECKING:
    from tacit.plan.measure.measured import Measured
    from tacit.plan.plans.derived import DerivedPlan
    from tacit.plan.questions.quantiles import Quantiles

LARGEST_PART: Final = 10**6
FINER: Final = 16
CLEARLY: Final = 0.9
FEW: Final = 20  # choices; of more, each has too little of epsilon to be worth a try
AS_GOOD: Final = 1 / 4  # of a step of the values: an error that hardly ever leads to another value


@dataclass(frozen=True)
class RankScores:
    """How far the rank of each value of an attribute is off, negated: what steps are computed of."""

    name: str
    share: Fraction
    where: Where | None
    parts: int  # of a person, in which scores are whole
    listed: ClassVar[tuple[Where, ...]] = ()

    @property
    def wanted(self) -> int:
        """How many parts of each person the share is."""
        return int(self.share * self.parts)

    @property
    def farthest(self) -> int:
        """By how many parts somebody who comes or leaves may change a score."""
        return max(self.wanted, self.parts - self.wanted)

    def unit(self, domain: Domain) -> Fraction:
        """Return what one unit of a score is worth in people."""
        return Fraction(1, self.parts * FINER)

    def response(self, domain: Domain) -> Response:
        """Return how the scores respond to moves."""
        return RankResponse(self.parts, self.farthest, domain[self.name].size, line=domain.axes_of(self.name)[0])

    def of(self, cells: Ints) -> Ints:
        """Return the scores, from the people at each value."""
        upto = np.cumsum(cells, dtype=np.int64)
        wanted, part = self.wanted * FINER * upto[-1], self.parts * FINER
        off: Ints = np.maximum(wanted - part * upto, part * (upto - cells) - wanted)
        return np.minimum(-off, 0)


@dataclass(frozen=True)
class RankResponse(PlacedResponse):
    """Scores of so many values, in parts of a person, of which somebody who comes or leaves changes the most."""

    parts: int
    farthest: int
    values: int
    staying_may_show_more: ClassVar[bool] = True

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """Scores of the values between both ends change by one person, and by nothing where nobody moves."""
        ends = move.relation.differences(move.hidden, move.cover).ends
        return [self._jump(self.parts * FINER, abs(end) + 1) for end in ends if end]

    def counted_at(self, places: Intervals) -> Iterable[Jump]:
        return [self._jump(self.farthest * FINER, self.values)] if places else []

    def _jump(self, by: int, many: int) -> Jump:
        return Jump(by * many, by * many, by, by, by * by * many, bound=True)


@dataclass(frozen=True)
class RankPlan(SelectionPlan):
    """How quantiles will be chosen, each with its noise of `choosing`.

    `compared` are the errors of the running counts that it is better than.
    """

    query: Quantiles
    choosing: tuple[TwoScale, ...]
    known_people: int | None = field(default=None, kw_only=True)
    compared: tuple[tuple[str, float], ...] = field(default=(), compare=False, repr=False, kw_only=True)

    @cached_property
    def base(self) -> Measured:
        """The people at each value, from which the ranks follow."""
        return self.query.cells

    @property
    def watched(self) -> RankScores:
        return most_moved(self.query)

    @property
    def unit(self) -> Fraction:
        return self.watched.unit(self.policy.domain)

    @property
    def moved(self) -> tuple[str, str]:
        return "a rank", "ranks"

    @property
    def answers(self) -> int:
        """One value for each share."""
        return len(self.choosing)

    @property
    def values(self) -> int:
        """How many values are chosen among."""
        return int(self.policy.domain[self.query.name].size)

    @property
    def noise(self) -> TwoScale:
        """The noise of the choice; of several, the largest."""
        return max(self.choosing, key=lambda law: law.right)

    @property
    def deciding(self) -> TwoScale:
        return self.noise

    @property
    def mechanism(self) -> str:
        return "choice of the nearest rank under one-sided geometric noise"

    def plain(self) -> Any:
        """Return the plan of plain differential privacy, with its error stated for as many people."""
        return self.query.plan_for(self.policy.plain(), self.epsilon, self.known_people)

    def stated_for(self, many: int) -> RankPlan:
        return replace(self, known_people=many)

    # ---- errors

    def rank_bounds(self, level: float = LEVEL) -> list[float]:
        """Return by how many people the rank of each value is off at most, each with this probability."""
        return [self._rank_bound(float(law.right), level) for law in self.choosing]

    def _rank_bound(self, scale: float, level: float) -> float:
        tied = 1 + math.exp(-1 / scale)
        return max(0.0, scale * math.log((self.values - 1) / tied / (1 - level))) * float(self.unit)

    @property
    def people(self) -> float:
        """Whom the expected error is stated for."""
        return float(PEOPLE if self.known_people is None else max(self.known_people, 1))

    @cached_property
    def rmse(self) -> float:
        """The expected error of a value, if people are spread evenly over the range."""
        mean = sum(map(self._square, self.query.shares, self.choosing)) / self.answers
        return math.sqrt(mean) / self.people * self.values * float(step_of_values(self.query, self.policy.domain))

    def _square(self, part: Fraction, law: TwoScale) -> float:
        """Return the expected square of how far the rank of one value is off."""
        share, scale = float(part), float(law.right * self.unit)
        sides = [side * self.people / scale for side in (share, 1 - share)]
        # of a rank off by r, with weight exp(-|r|/scale) as far as there are people on its side
        squares = sum(2 - math.exp(-side) * (side**2 + 2 * side + 2) for side in sides)
        return scale**2 * squares / sum(-math.expm1(-side) for side in sides)

    def half_width(self, level: float = LEVEL) -> None:
        """Say that nothing is known of values: what is known is how far the rank is off."""

    @property
    def tried(self) -> dict[str, float]:
        return {self.strategy: self.mse, **dict(self.compared)}

    @property
    def assumption(self) -> str:
        return f"{self.people:,.0f} {self.query.who}"

    def rank_words(self) -> list[str]:
        """Return in words how far the rank of each value may be off."""
        who, value = self.query.who, "this value" if self.answers == 1 else "the value for {}"
        found = []
        for share, bound in zip(map(shown, self.query.shares), self.rank_bounds(), strict=True):
            off, this = math.ceil(bound), value.format(share)
            found.append(
                f"of n {who} at most {share} n + {off:,} have less than {this} and at least {share} n - {off:,} have "
                f"at most {this}, with probability {LEVEL:.0%}"
            )
        return found

    def predictions(self) -> list[str]:
        declare = "" if self.known_people is not None else "; for the error of your own, declare `known: [{size: N}]`"
        return [*self.rank_words(), f"the error below is for {self.assumption}{self.query.prediction()}{declare}"]

    def predicted(self) -> dict[str, Any]:
        return {"value_rmse": self.rmse, "people": self.people, "rank_off_by_at_most": self.rank_bounds()}

    def terms(self) -> list[str]:
        return [*self.query.terms(()), *(f"the value was chosen by its rank: {words}" for words in self.rank_words())]

    def noise_document(self) -> dict[str, Any]:
        laws = [{**law.document(), **self.unit_document()} for law in self.choosing]
        return {"choosing": laws[0] if self.answers == 1 else laws}

    # ---- what is drawn, and its law

    def draw(self, counts: Ints) -> list[int]:
        compared = [scores.of(counts) for scores in scores_of(self.query)]
        return [
            int(largest_places(scores + law.draw_for(scores.shape), 1)[0])
            for scores, law in zip(compared, self.choosing, strict=True)
        ]

    def log_probability(self, counts: Sequence[int], output: Sequence[int]) -> float:
        cells = np.asarray(counts, dtype=np.int64)
        choices = zip(scores_of(self.query), self.choosing, output, strict=True)
        return sum(log_probability_of_choice(law, scores.of(cells), [place]) for scores, law, place in choices)

    # ---- for audits

    def telling_others(self, moves: Bools) -> Ints:
        return np.full(len(moves), 2)

    def telling_counts(self, far: int) -> list[list[int]]:
        return [[1, 0, 2, far]] * self.values

    def outputs_near(self, counts: Ints, far: int) -> Iterator[tuple[int, ...]]:
        yield from product(range(len(counts)), repeat=self.answers)

    def row_of(self, output: Sequence[int], many: int) -> list[int]:
        return list(output)


def step_of_values(query: Quantiles, domain: Domain) -> Fraction:
    """Return how far neighbouring values are apart."""
    attribute: Any = domain[query.name]
    return Fraction(attribute.spacing * attribute.unit)


def scores_of(query: Quantiles) -> tuple[RankScores, ...]:
    """Return what is compared to choose each quantile."""
    parts = math.lcm(*(share.denominator for share in query.shares))
    return tuple(RankScores(query.name, share, query.where, parts) for share in query.shares)


def most_moved(query: Quantiles) -> RankScores:
    """Return the scores that move furthest."""
    return max(scores_of(query), key=lambda scores: scores.farthest)


def rank_step(query: Quantiles, policy: Policy) -> LargestStep:
    """Return how far scores move along a secret edge, of all rows of a person."""
    return _step(most_moved(query), query, policy)


def _step(scores: RankScores, query: Quantiles, policy: Policy) -> LargestStep:
    return of_all_rows(step_of_one_row(scores, policy), query.counted, policy)


def choosing_noises(query: Quantiles, policy: Policy, epsilon: Fraction) -> tuple[TwoScale, ...]:
    """Return the noise with which each quantile is chosen, each with the same share of epsilon."""
    each = epsilon / len(query.shares)
    return tuple(selecting_noise(_step(scores, query, policy), 1, each) for scores in scores_of(query))


def plan_rank(query: Quantiles, policy: Policy, epsilon: Fraction, counts: DerivedPlan) -> RankPlan | None:
    """Return the plan that chooses quantiles by their ranks, or None where running counts are as good.

    In ranks, the error of a choice is about sqrt(2) times the scale of its noise. Running counts tell an interval of
    values besides: they are kept where the people are known to be so many that either way finds the same value, and for
    several quantiles unless choices are clearly better.
    """
    (running,) = counts.parts
    watched = most_moved(query)
    if len(query.shares) > FEW or running.is_exact or watched.parts > LARGEST_PART:
        return None
    step = rank_step(query, policy)
    if step.l1 == 0:
        return None
    choosing = choosing_noises(query, policy, epsilon)
    same_value = counts.known_people is not None and counts.rmse < AS_GOOD * step_of_values(query, policy.domain)
    square = sum(float(law.right) ** 2 for law in choosing) / len(choosing)
    in_ranks = math.sqrt(2 * square) * watched.unit(policy.domain)
    if (
        same_value
        or any(law.left for law in choosing)
        or in_ranks >= running.rmse * (CLEARLY if len(choosing) > 1 else 1)
    ):
        return None
    why = "the value with the nearest rank is chosen, which costs less than to count the people up to every value"
    if len(choosing) > 1:
        why += f"; each of {len(choosing)} choices costs epsilon {shown(epsilon / len(choosing))}"
    return RankPlan(
        query,
        policy,
        epsilon,
        step,
        why,
        choosing,
        strategy="by rank",
        known_people=counts.known_people,
        compared=tuple((name, mse) for name, mse in counts.tried.items()),
    )

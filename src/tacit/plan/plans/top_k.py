"""Plans for `top_k`: choose the items, then measure what was chosen, which keeps selection bias out of values.

Where counts only fall, by one for each person, choice and measurement share the whole budget (`BarPlan`, see
`noise/tilted_cube.py`). Everywhere else each has a part of it (`TopKPlan`): the noise of the choice is forgotten and
the chosen counts get fresh noise, shaped for k counts, however many items there are. Nothing is done to what `draw`
returns.

Guarantee   For every secret edge hidden -> cover of the plan's policy, every data set and every set O of outputs (which
            items were chosen, the bar, noisy counts): Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O].
Assumes     The plan's step bounds how far the counts move along an edge (`plan/sensitivity/steps.py`).
Why         Ties are broken by the place in the domain, a fixed public order: all arguments compare (noisy count,
            place). In two parts: which items are chosen is hidden with `choosing_epsilon`
            (`plan/plans/selection_plan.py`), and the noisy counts of the choice are forgotten. The chosen counts then
            get fresh noise that hides any step of so many counts, `measuring_epsilon`; that it depends on the choice is
            sequential composition.
            With a bar (counts only fall, by one at most): K items are chosen with noise >= 0 of rate b, and the
            smallest of their noisy counts is kept as the bar. Given which chosen item i0 is at the bar, an item that
            was not chosen has a chance that never falls along an edge; i0 has a chance proportional to exp(-b (bar -
            count)) and needs count <= bar; another chosen one has exp(-b (bar - count)+), or bar + 1 for items after
            i0. So a fall by one costs at most exp(b), and nothing if the count is above bar + 1 (if it equals bar + 1
            and falls, the first kind loses nothing and the second exp(b) at most). That is what the measurement,
            `noise/tilted_cube.py` with floor = bar + 1, recovers: together they cost its epsilon. The sum of the K
            counts falls by at most K; noise of scale K / rest hides it at the rest of epsilon.
Reference   Asymmetric differential privacy, Algorithm 1, which releases the noisy counts it chose by: right (where
            counts only fall), but biased upwards, and with about ten times the variance.
Checked by  tests/property/test_selections_loss.py, tests/statistical/test_selections.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tacit.amounts import shown
from tacit.arrays import Bools, Ints
from tacit.noise import sample
from tacit.noise.law import Law
from tacit.noise.tilted_cube import TiltedCube, can_be_tilted, slack_for, tilted_cube
from tacit.noise.two_scale import TwoScale
from tacit.plan.calibrate import noise_for
from tacit.plan.plans.plan import noise_name
from tacit.plan.plans.selection_plan import SelectionPlan, measured_log_probability, selecting_noise
from tacit.plan.sensitivity.steps import LargestStep, largest_step
from tacit.policy.policy import Policy

if TYPE_CHECKING:
    from tacit.plan.questions.selections import TopK

CHOOSING_SHARE: Final = Fraction(2, 5)  # of the budget, where choice and measurement have their own parts
SPARE: Final = 25  # one more candidate for so many: the best of them are published
CENTRED: Final = 50  # candidates from which on their sum is measured as well
CENTRE_SHARE: Final = 2  # of as many parts as there are candidates, and a few more
NEARLY_ALL: Final = Fraction(5, 4)  # if there are no more items than so many times k, all are measured
_REACH: Final = 60  # scales; beyond, a geometric has less than 1e-26 left


@dataclass(frozen=True)
class RankingPlan(SelectionPlan):
    """How the largest counts will be chosen: what both ways have in common."""

    query: TopK

    @property
    def answers(self) -> int:
        """How many items are listed."""
        return self.query.k

    def telling_others(self, moves: Bools) -> Ints:
        return np.where(moves, self.most_noise, 0)

    def telling_counts(self, far: int) -> list[list[int]]:
        """Return for each item counts few enough to tie, and one that is far away."""
        return [[1, 0, 2, far]] * self.query.candidates(self.policy.domain)


@dataclass(frozen=True)
class TopKPlan(RankingPlan):
    """How the largest counts will be chosen and measured with a part of the budget each.

    `choosing` is None where there is nothing to hide, or where all counts are measured and the largest shown.
    """

    query: TopK
    choosing: TwoScale | None
    measuring: Law | None
    choosing_epsilon: Fraction
    measuring_epsilon: Fraction

    @property
    def noise(self) -> Law | None:
        """The law of the noise in the released numbers; None where they are exact."""
        return self.measuring

    @property
    def mechanism(self) -> str:
        if self.choosing is None:
            return noise_name(self.measuring)
        return f"choice by {noise_name(self.choosing)}, then {noise_name(self.measuring)} on what was chosen"

    def predictions(self) -> list[str]:
        if self.choosing is None:
            return []
        return [
            f"choosing costs epsilon {shown(self.choosing_epsilon)}: each count is compared with noise of standard "
            f"deviation {math.sqrt(self.choosing.variance()):.4g}",
            f"measuring the {self.query.k:,} chosen counts costs epsilon {shown(self.measuring_epsilon)}, with fresh "
            "noise: values have no selection bias",
        ]

    def predicted(self) -> dict[str, Any]:
        spread = 0.0 if self.choosing is None else math.sqrt(self.choosing.variance())
        return {"choosing_standard_deviation": spread, "value_rmse": self.rmse}

    def terms(self) -> list[str]:
        if self.measuring is None:
            return [f"these are the largest counts; equal ones are taken in the order of {self.query.order}"]
        if self.choosing is None:
            return ["all counts were measured, and those with the largest values are shown"]
        return ["items were chosen by noisy counts and then measured anew; which ones, and in which order, is covered"]

    def noise_document(self) -> dict[str, Any] | None:
        if self.measuring is None:
            return None
        if self.choosing is None:
            return self.measuring.document()
        return {
            "choosing": {"epsilon": str(self.choosing_epsilon), **self.choosing.document()},
            "measuring": {"epsilon": str(self.measuring_epsilon), **self.measuring.document()},
        }

    @property
    def measured(self) -> int:
        """How many counts are measured: all of them where nothing is chosen before."""
        is_whole = self.choosing is None and self.measuring is not None
        return self.query.candidates(self.policy.domain) if is_whole else self.query.k

    def draw(self, counts: Ints) -> tuple[tuple[int, int], ...]:
        compared = counts if self.choosing is None else counts + sample(self.choosing, len(counts))
        places = largest_places(compared, self.measured)
        noisy = counts[places] if self.measuring is None else self.measuring.measure(counts[places])
        return tuple(zip(places.tolist(), noisy.tolist(), strict=True))

    def log_probability(self, counts: Sequence[int], output: Sequence[tuple[int, int]]) -> float:
        """Return the logarithm of the probability of an output, given the true counts of all items.

        `output` has a pair (position of the item, noisy count) for each measured item, in any order: the order of a
        release, and which of them are published, follow from the noisy counts.
        """
        chosen = sorted((int(place), int(noisy)) for place, noisy in output)
        places = [place for place, _ in chosen]
        if len(set(places)) != self.measured or len(places) != self.measured:
            return -math.inf
        measured = measured_log_probability(
            self.measuring, [int(counts[place]) for place in places], [noisy for _, noisy in chosen]
        )
        return self.log_probability_of_choice(counts, places) + measured

    def log_probability_of_choice(self, counts: Sequence[int], places: Sequence[int]) -> float:
        """Return the logarithm of the probability that exactly the items at these positions are chosen."""
        true = np.asarray(counts, dtype=np.int64)
        if self.choosing is None:
            return 0.0 if set(largest_places(true, self.measured).tolist()) == set(places) else -math.inf
        return log_probability_of_choice(self.choosing, true, places)

    @property
    def deciding(self) -> TwoScale | None:
        return self.choosing

    def outputs_near(self, counts: Ints, far: int) -> Iterator[tuple[tuple[int, int], ...]]:
        for places in combinations(range(len(counts)), self.measured):
            yield tuple(zip(places, counts[list(places)].tolist(), strict=True))

    def row_of(self, output: Sequence[tuple[int, int]], many: int) -> list[int]:
        return [number for pair in output for number in pair]


class BarOutput(NamedTuple):
    """What comes out of a `BarPlan` before it is made readable: everything in it is covered by the promise."""

    places: tuple[int, ...]
    bar: int
    noisy: tuple[int, ...]
    centre: int | None


@dataclass(frozen=True)
class BarPlan(RankingPlan):
    """How the largest counts will be chosen and measured with noise that recovers what the choice cost.

    `candidates` items are chosen with noise of rate `law.rate` and measured with the law; the best k are published.
    `centring` is the noise of the sum of their counts, which tells how large the noise was on the whole.
    """

    query: TopK
    law: TiltedCube
    centring: TwoScale | None

    @property
    def candidates(self) -> int:
        """How many items are chosen and measured."""
        return self.law.dimensions

    @property
    def choosing(self) -> TwoScale:
        """The noise on each count that the choice is made by."""
        return TwoScale(1 / self.law.rate, Fraction(0))

    @property
    def noise(self) -> Law:
        """The law of the noise of counts that stand far above the smallest chosen one."""
        return self.law.far()

    @cached_property
    def rmse(self) -> float:
        """The expected root mean squared error of one value where counts stand apart.

        The smallest chosen count is at the bar; it is published only if there is none to spare.
        """
        far, at_bar = self.law.variances_apart()
        shown_at_bar = int(self.candidates == self.query.k)
        return math.sqrt(((self.query.k - shown_at_bar) * far + shown_at_bar * at_bar) / self.query.k)

    @property
    def mechanism(self) -> str:
        return f"choice by {noise_name(self.choosing)} over a bar, then one-sided cube noise, tilted near the bar"

    @property
    def largest_rmse(self) -> float:
        """About the expected error where all chosen counts stand close together: then the radius is hardly known."""
        from scipy.special import polygamma  # takes longer to load than most plans to be made

        rate, slack = float(self.law.rate), float(self.law.epsilon / self.law.rate) - self.candidates
        share = self.candidates / (self.candidates + slack)
        depth = -math.log1p(-share)
        within = 1 - depth**2 * (1 - share) / share**2
        # the radius is minus the logarithm of a beta variable over the rate; its variance is a trigamma
        return math.sqrt(float(polygamma(1, slack)) + within) / rate

    def predictions(self) -> list[str]:
        many = self.query.candidates(self.policy.domain)
        short = math.log(many / 0.05) / float(self.law.rate)
        spare = self.candidates - self.query.k
        extra = f", {spare} of them to spare" if spare else ""
        return [
            f"{self.candidates:,} items are chosen{extra}; with a chance of 95% no chosen count is more than "
            f"{short:,.0f} smaller than the {_ordinal(self.candidates)} largest",
            "values are corrected for the choice (in a crowd a small bias may stay), and no true count is above the "
            "upper end of its interval",
            f"the error below is for counts that stand apart; among many counts within {self.law.cap:,} of the "
            f"smallest chosen one it may reach {self.largest_rmse:,.4g}",
        ]

    def predicted(self) -> dict[str, Any]:
        spread = math.sqrt(self.choosing.variance())
        expected = {"value_rmse": self.rmse, "value_rmse_in_a_crowd": self.largest_rmse}
        return {"choosing_standard_deviation": spread, **expected}

    def terms(self) -> list[str]:
        return [
            f"{self.candidates:,} items were chosen by noisy counts and measured; the {self.query.k:,} with the "
            "largest values are shown: which ones, and in which order, is covered",
            "no true count is above the upper end of its interval",
        ]

    def noise_document(self) -> dict[str, Any] | None:
        centring = None if self.centring is None else self.centring.document()
        return {"choosing": self.choosing.document(), "measuring": self.law.document(), "centring": centring}

    def draw_choice(self, counts: Ints) -> tuple[Ints, int]:
        """Return the positions of the candidates, in order of position, and the smallest of their noisy counts."""
        compared = counts + sample(self.choosing, len(counts))
        places = largest_places(compared, self.candidates)
        return places, int(compared[places].min())

    def draw(self, counts: Ints) -> BarOutput:
        places, bar = self.draw_choice(counts)
        noisy = self.law.at(bar + 1).measure(counts[places])
        centre = None if self.centring is None else sum(counts[places].tolist()) + sample(self.centring)
        return BarOutput(tuple(places.tolist()), bar, tuple(noisy.tolist()), centre)

    def log_probability(self, counts: Sequence[int], output: BarOutput) -> float:
        places, bar, noisy, centre = output
        true = [int(counts[place]) for place in places]
        total = self.log_probability_of_choice(counts, places, bar)
        total += measured_log_probability(self.law.at(bar + 1), true, noisy)
        if self.centring is None:
            return total if centre is None else -math.inf
        return total + measured_log_probability(self.centring, [sum(true)], [centre or 0])

    def log_probability_of_choice(self, counts: Sequence[int], places: Sequence[int], bar: int) -> float:
        """Return the logarithm of the probability that exactly these items are chosen, the smallest one at the bar."""
        true = np.asarray(counts, dtype=np.int64)
        return float(_log_bars(self.choosing, true, places, np.array([bar]))[0])

    @property
    def deciding(self) -> TwoScale:
        return self.choosing

    def outputs_near(self, counts: Ints, far: int) -> Iterator[BarOutput]:
        for places in combinations(range(len(counts)), self.candidates):
            true = counts[list(places)]
            for bar, away in product((-1, 0, 1, far), (0, 1, far)):
                centre = None if self.centring is None else int(true.sum()) + away
                noisy = tuple((true + away).tolist())
                yield BarOutput(places, int(counts.max()) + bar, noisy, centre)

    def row_of(self, output: BarOutput, many: int) -> list[int]:
        return [*output.places, output.bar, *output.noisy, 0 if output.centre is None else output.centre]


def log_probability_of_choice(law: TwoScale, true: Ints, places: Sequence[int]) -> float:
    """Return the log probability that exactly the numbers at these places are the largest, each with this noise."""
    reach = _REACH * math.ceil(max(law.right, law.left)) + 1
    bars = np.arange(true.min() - reach, true.max() + reach + 1)
    return float(np.logaddexp.reduce(_log_bars(law, true, places, bars)))


def _log_bars(law: TwoScale, true: Any, places: Sequence[int], bars: Any) -> Any:
    """Return the log probability that exactly these items are chosen and that the smallest noisy count is each bar."""
    total = np.full(len(bars), -np.inf)
    # `last` is the chosen item whose noisy count is the bar, ties going to the earlier item: earlier items than `last`
    # beat it at equal counts, later ones do not.
    for last in places:
        with np.errstate(divide="ignore"):
            log_weight = np.log(law.pmf(bars - true[last]))
            for other in range(len(true)):
                if other == last:
                    continue
                at = bars - true[other] - (other < last)
                log_weight = log_weight + np.log(law.survival(at) if other in places else law.cdf(at))
        total = np.logaddexp(total, log_weight)
    return total


def largest_places(counts: Ints, k: int) -> Ints:
    """Return the positions of the k largest counts, in order of position; ties go to the earlier position.

    Which of several equal counts are taken depends on nothing but their places: a fixed, public order.
    """
    if k >= len(counts):
        return np.arange(len(counts), dtype=np.int64)
    level = np.partition(counts, len(counts) - k)[len(counts) - k]
    above = np.flatnonzero(counts > level)
    equal = np.flatnonzero(counts == level)[: k - len(above)]
    return np.sort(np.concatenate([above, equal]))


def plan_top_k(query: TopK, policy: Policy, epsilon: Fraction) -> TopKPlan | BarPlan:
    """Return the plan for a top-k list at this cost."""
    step, many = largest_step(query.counted, policy), query.candidates(policy.domain)
    zero = Fraction(0)
    if step.l1 == 0:
        why = "no secret edge changes any of the counts, so they are ranked and released exactly"
        return TopKPlan(query, policy, epsilon, step, why, None, None, zero, zero)
    measuring, why = noise_for(step, epsilon, many)
    if many == query.k:
        return TopKPlan(query, policy, epsilon, step, f"all are asked for; {why}", None, measuring, zero, epsilon)
    choose = epsilon * CHOOSING_SHARE
    fresh, because = noise_for(step.restricted(query.k), epsilon - choose, query.k)
    choosing = selecting_noise(step, query.k, choose)
    in_two = TopKPlan(query, policy, epsilon, step, because, choosing, fresh, choose, epsilon - choose)
    plans: list[TopKPlan | BarPlan] = [in_two]
    by_bar = _with_bar(query, policy, epsilon, step, many)
    if by_bar is not None:
        plans.append(by_bar)
    if many <= NEARLY_ALL * query.k:
        why = f"nearly all are asked for, so all are measured; {why}"
        plans.append(TopKPlan(query, policy, epsilon, step, why, None, measuring, zero, epsilon))
    return min(plans, key=lambda plan: plan.rmse)


def _with_bar(query: TopK, policy: Policy, epsilon: Fraction, step: LargestStep, many: int) -> BarPlan | None:
    """Return a plan whose measurement recovers what the choice cost, where counts only fall and by one at most."""
    candidates = query.k + query.k // SPARE
    if step.monotone != "falling" or step.down != 1 or candidates >= many:
        return None
    centre = CENTRE_SHARE if candidates >= CENTRED else 0
    rate = epsilon / (candidates + slack_for(candidates) + centre)
    if not can_be_tilted(candidates, rate, epsilon - centre * rate):
        return None
    law = tilted_cube(candidates, rate, epsilon - centre * rate)
    centring = TwoScale(candidates / (centre * rate), Fraction(0)) if centre else None
    why = (
        "counts only fall along secret edges, and by one: the measurement, which is tilted near the bar, recovers "
        "the privacy cost of the selection, so that both together cost epsilon"
    )
    return BarPlan(query, policy, epsilon, step, why, law, centring)


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"

"""Plans for `below` and `above`: verdicts about thresholds, some of them certain.

Where counts only fall along secret edges, noise only to the right hides them, and a noisy count under the threshold
proves that the true one is: "certainly below". Where they only rise it is the other way round: "certainly above". Where
they do both, no verdict can be certain (under differential privacy none ever is), and it says "probably".

`above` asks one item after the other in the order of the domain. Certain answers are free; the others cost, and after
`at_most` of them it stops. Nothing is done to what `draw` returns.

Guarantee   For every secret edge hidden -> cover of the plan's policy, every data set and every set O of outputs (which
            items were asked, verdicts, noisy counts): Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O].
            "Certainly below" is never said of a count that is not below, "certainly above" never of one that is.
Assumes     The plan's step bounds how far the counts move along an edge (`plan/sensitivity/steps.py`). Items are asked
            in the order of the domain; thresholds (one for all, or one for each item), the order and the number of
            costly answers are public.
Why         One count: the noisy count satisfies the promise (`plan/calibrate.py`), and verdict and value are read off
            it. Many counts that only fall: a verdict is above iff count + noise >= threshold, with independent noise >=
            0. Along an edge the chance of "below" never falls, so such an answer costs nothing. "Above" has the chance
            exp(-(threshold - count)+ / scale), which falls by at most exp(-d / scale) if the count falls by d. There
            are at most c of these answers, since it stops right after the c-th (not after one more), and the counts of
            c items fall by at most shift(step, c) in all: epsilon_test = shift / scale. How many items were asked is
            decided by these answers, so it is covered. Counts that only rise are the mirror image: noise <= 0, "above"
            is free and certain, "below" costs, and it stops after the c-th "below".
            Counts that do both: with noise >= 0 on the threshold as well, give the threshold u more at cover, where u
            is the largest rise: "below" stays. Each "above" with change s needs u - s more noise. In all u / scale of
            the threshold + shift(step, c) / scale of the tests. Or every count has its own two-scale noise, where one
            person moves few of them: then all noisy counts may be looked at, and stopping is only a choice.
            Values: given "above" the noise of a test says nothing more about a count under the threshold (a geometric
            has no memory), so it is forgotten, and what was found is measured with fresh noise for the step of as many
            counts as were found, which is public by then. Where counts only fall, by one at most, an "above" costs
            exp(1 / scale) only if the count is at most the threshold; a measurement by `noise/tilted_cube.py` with the
            threshold as its floor and rate 1 / scale pays that back, so that both together cost its epsilon.
Reference   Asymmetric differential privacy: section 5.1.1 and Algorithm 2, which stops one answer too late and so costs
            (c + 1) / c of what it says. Dwork, Naor, Reingold, Rothblum, Vadhan 2009 and Lyu, Su, Li, Understanding the
            Sparse Vector Technique, arXiv:1603.01699, for the noisy threshold.
Checked by  tests/property/test_selections_loss.py, tests/statistical/test_selections.py
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tacit.amounts import shown
from tacit.arrays import Bools, Floats, Ints
from tacit.noise import sample
from tacit.noise.law import Law
from tacit.noise.tilted_cube import TiltedCube, can_be_tilted, slack_for, tilted_cube
from tacit.noise.two_scale import TwoScale
from tacit.plan.calibrate import drawable, independent_noise, noise_for
from tacit.plan.plans.plan import noise_name
from tacit.plan.plans.selection_plan import SelectionPlan, fill_up, measured_log_probability, shift
from tacit.plan.sensitivity.steps import LargestStep, largest_step
from tacit.policy.policy import Policy

if TYPE_CHECKING:
    from tacit.plan.questions.selections import Above, Below

# Of what `above` may spend where tests and values have their own parts. A test has noise of scale c / epsilon, a value
# (cube noise) a standard deviation of c / (3.5 epsilon): with two thirds for the tests, the two are of the same size.
TESTING_SHARE: Final = Fraction(2, 3)
GAPS: Final = (1, 2, 5, 10)
CHANCES: Final = (0.5, 0.9, 0.99)
_REACH: Final = 60  # scales; beyond, a geometric has less than 1e-26 left


@dataclass(frozen=True)
class Words:
    """What the two verdicts of a plan are called, and which of them are certain."""

    below: str
    above: str
    below_is_certain: bool = False
    above_is_certain: bool = False

    def of(self, above: bool) -> str:  # noqa: FBT001
        """Return the word for one verdict."""
        return self.above if above else self.below

    def meaning(self) -> str:
        """Say how far the two verdicts can be trusted."""
        if self.below_is_certain and self.above_is_certain:
            return "both verdicts are exact"
        if not self.below_is_certain and not self.above_is_certain:
            return "either verdict may be wrong"
        certain, other = self.of(self.above_is_certain), self.of(self.below_is_certain)
        return f"{certain!r} is never wrong; {other!r} is what the noisy count says, and may be wrong"


ONE_SIDED: Final = {
    "falling": Words("certainly below", "above", below_is_certain=True),
    "rising": Words("below", "certainly above", above_is_certain=True),
}
EXACT: Final = Words("certainly below", "certainly above", below_is_certain=True, above_is_certain=True)
TWO_SIDED: Final = Words("probably below", "probably above")


@dataclass(frozen=True)
class ThresholdPlan(SelectionPlan):
    """How counts will be compared with a threshold: what one and many have in common."""

    query: Below | Above

    @property
    @abstractmethod
    def thresholds(self) -> Ints:
        """The threshold of each count."""

    @property
    def words(self) -> Words:
        """What the two verdicts are called."""
        return EXACT if self.step.l1 == 0 else ONE_SIDED.get(str(self.step.monotone), TWO_SIDED)

    def proved(self, is_above: Bools) -> tuple[Floats, Floats]:
        """Return between which numbers these verdicts alone prove the counts to be."""
        own = self.thresholds[: len(is_above)].astype(np.float64)
        floor = np.where(is_above & self.words.above_is_certain, own, 0.0)
        ceiling = np.where(~is_above & self.words.below_is_certain, own - 1, np.inf)
        return floor, ceiling

    def telling_counts(self, far: int) -> list[list[int]]:
        return [
            list(dict.fromkeys([at - 1, at, max(0, at - 2), at + far, max(0, at - far)]))
            for at in self.thresholds.tolist()
        ]


@dataclass(frozen=True)
class BelowPlan(ThresholdPlan):
    """How one count will be compared with a threshold."""

    query: Below
    noise: Law | None

    @property
    def thresholds(self) -> Ints:
        return np.array([self.query.threshold])

    @property
    def answers(self) -> int:
        """One verdict."""
        return 1

    @property
    def mechanism(self) -> str:
        return "exact" if self.noise is None else f"{noise_name(self.noise)}, compared with the threshold"

    def chance(self, gap: int) -> float:
        """Return the probability of the certain verdict if so many people would have to change before it were wrong.

        A count of threshold - gap is then called below. Where counts only rise, a count of threshold - 1 + gap is
        called above; where they do both, this is the probability that a count of threshold - gap is called below.
        """
        if self.noise is None:
            return 1.0
        return float(self.noise.survival(-gap) if self.step.monotone == "rising" else self.noise.cdf(gap - 1))

    def predictions(self) -> list[str]:
        if self.noise is None:
            return []
        rising = self.step.monotone == "rising"
        word, side = (self.words.above, "over") if rising else (self.words.below, "under")
        limit = f"{self.query.threshold - 1:,}" if rising else "the threshold"
        listed = ", ".join(f"{gap}: {100 * self.chance(gap):.4g}%" for gap in GAPS)
        return [f"chance of {word!r}, by how far the count is {side} {limit}: {listed}"]

    def predicted(self) -> dict[str, Any]:
        return {"chance_by_gap": {str(gap): self.chance(gap) for gap in GAPS}, "value_rmse": self.rmse}

    def terms(self) -> list[str]:
        return [self.words.meaning()]

    def hides(self, noisy: int) -> bool:
        """Say whether a noisy count is kept back because the verdict is certain, and free, without it."""
        if self.noise is None or self.step.monotone is None:
            return False
        return (noisy >= self.query.threshold) == (self.step.monotone == "rising")

    def draw(self, counts: Ints) -> int | None:
        """Return the noisy count, or None where the certain verdict stands alone."""
        noisy = int(counts[0]) + (sample(self.noise) if self.noise is not None else 0)
        return None if self.hides(noisy) else noisy

    def log_probability(self, counts: Sequence[int], output: int | None) -> float:
        """Return the logarithm of the probability of an output, given the true count (a list of one).

        `output` is the noisy count, or None where the certain verdict stands alone.
        """
        (true,), threshold = counts, self.query.threshold
        if output is not None:
            return -math.inf if self.hides(output) else measured_log_probability(self.noise, [true], [output])
        if self.noise is None or self.step.monotone is None:
            return -math.inf
        at = threshold - 1 - int(true)
        return _log(self.noise.survival(at) if self.step.monotone == "rising" else self.noise.cdf(at))

    def telling_others(self, moves: Bools) -> Ints:
        return np.full(len(moves), self.query.threshold - 1)

    def outputs_near(self, counts: Ints, far: int) -> Iterator[int | None]:
        yield None
        yield from (int(counts[0]) + away for away in range(-far, far + 1))

    def row_of(self, output: int | None, many: int) -> list[int]:
        return fill_up([] if output is None else [output], 1)


@dataclass(frozen=True)
class AbovePlan(ThresholdPlan):
    """How counts will be compared with their thresholds one after the other, and measured where they are above.

    `testing` is the noise of each comparison, `moving` that of all thresholds (only where counts rise and fall), and
    `offset` a public shift of them against the mean of both. Where counts only fall, by one at most, tests and
    values share the budget (`is_shared`): values are measured by a tilted cube, which recovers what the tests cost.
    """

    query: Above
    testing: TwoScale | None
    moving: TwoScale | None
    offset: int
    testing_epsilon: Fraction
    measuring_epsilon: Fraction
    is_shared: bool = False

    @property
    def costly(self) -> bool:
        """The verdict that costs, and of which there are at most so many: True for above, False for below."""
        return self.step.monotone != "rising"

    @property
    def answers(self) -> int:
        """How many items may be asked."""
        return self.query.candidates(self.policy.domain)

    @property
    def thresholds(self) -> Ints:
        return self.query.thresholds(self.answers)

    @property
    def noise(self) -> Law | None:
        """The law of the noise in the values if there are as many as may be; without values, that of the tests."""
        law = self._measuring_many(self.query.at_most) if self.query.values else self.testing
        return None if law is None else law.far()

    def measuring(self, found: Sequence[int] | Ints) -> Law | TiltedCube | None:
        """Return the law of the noise in the values of the items at these places: which they are is known by then."""
        own = self.query.threshold
        return self._measuring_many(len(found), own if isinstance(own, int) else tuple(own[place] for place in found))

    def _measuring_many(self, found: int, floor: int | tuple[int, ...] = 0) -> Law | TiltedCube | None:
        if self.testing is None or found == 0:
            return None
        if self.is_shared:
            return tilted_cube(found, 1 / self.testing.right, self.epsilon).at(floor)
        return _measuring_law(self.step, self.measuring_epsilon, found)

    @property
    def mechanism(self) -> str:
        if self.testing is None:
            return "exact"
        moved = "" if self.moving is None else " and a noisy threshold"
        tests = f"tests with {noise_name(self.testing)}{moved}"
        if not self.query.values:
            return tests
        tilted = ", tilted near the threshold" if self.is_shared else ""
        return f"{tests}, then {noise_name(self.noise)} on what was found{tilted}"

    def chance_below(self, gap: int) -> float:
        """Return the probability that one item with this count less than the threshold is called below."""
        if self.testing is None:
            return float(gap >= 1)
        moved, chances = self._moved()
        return float(np.sum(chances * self.testing.cdf(gap + self.offset + moved - 1)))

    def gap_for(self, chance: float) -> int:
        """Return how far under the threshold an item must be to be called below with this probability."""
        low, high = 0, 1
        while self.chance_below(high) < chance:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.chance_below(middle) >= chance else (middle, high)
        return high

    def predictions(self) -> list[str]:
        if self.testing is None:
            return []
        listed = ", ".join(f"{100 * chance:.4g}% from {self.gap_for(chance):,} on" for chance in CHANCES)
        its = "the" if isinstance(self.query.threshold, int) else "its"
        said = f"chance that an item is called {self.words.below!r}, by how far it is under {its} threshold: {listed}"
        if not self.query.values:
            return [said]
        many = f"the error below is for {self.query.at_most:,} found items, and smaller for fewer"
        if self.is_shared:
            return [said, f"{many}; counts close to the threshold or under it have more"]
        tests, values = shown(self.testing_epsilon), shown(self.measuring_epsilon)
        return [said, f"the budget is split, {tests} for the tests and {values} for the values; {many}"]

    def predicted(self) -> dict[str, Any]:
        if self.testing is None:
            return {"value_rmse": 0.0}
        gaps = {str(chance): self.gap_for(chance) for chance in CHANCES}
        return {"gap_by_chance_of_below": gaps, "value_rmse": self.rmse if self.query.values else None}

    def terms(self) -> list[str]:
        many, word = self.query.at_most, self.words.of(self.costly)
        return [
            self.words.meaning(),
            f"items are asked in the order of {self.query.order} until {many:,} were {word!r}; what comes after was "
            "not asked and has no row, and how many were asked is covered like every other answer",
        ]

    def noise_document(self) -> dict[str, Any] | None:
        if self.testing is None:
            return None
        cost = "recovered by the measurement" if self.is_shared else str(self.testing_epsilon)
        laws: dict[str, Any] = {"testing": {"epsilon": cost, **self.testing.document()}}
        if self.is_shared:
            law = self._measuring_many(self.query.at_most)
            return {**laws, "measuring": None if law is None else law.document()}
        if self.moving is not None:
            laws["threshold"] = {"offset": self.offset, **self.moving.document()}
        if self.query.values and self.noise is not None:
            laws["measuring"] = {"epsilon": str(self.measuring_epsilon), **self.noise.document()}
        return laws

    def draw_verdicts(self, counts: Ints) -> Bools:
        """Return for each item that is asked, in order, whether it is above; it stops after the last costly answer.

        Noise is drawn for all items, also for those that are not asked: the time it takes does not tell where it
        stopped.
        """
        thresholds, noisy = self.thresholds + self.offset, counts
        if self.testing is not None:
            noisy = counts + sample(self.testing, len(counts))
        if self.moving is not None:
            thresholds = thresholds + sample(self.moving)  # one draw for all of them
        is_above = noisy >= thresholds
        costly = np.flatnonzero(is_above == self.costly)
        many = int(costly[self.query.at_most - 1]) + 1 if len(costly) >= self.query.at_most else len(counts)
        return np.asarray(is_above[:many], dtype=np.bool_)

    def draw(self, counts: Ints) -> tuple[tuple[bool, ...], tuple[int, ...]]:
        verdicts = self.draw_verdicts(counts)
        found = np.flatnonzero(verdicts == self.costly)
        law = self.measuring(found) if self.query.values else None
        noisy = counts[found] if law is None else law.measure(counts[found])
        return tuple(verdicts.tolist()), tuple(noisy.tolist() if self.query.values else ())

    def log_probability(self, counts: Sequence[int], output: tuple[Sequence[bool], Sequence[int]]) -> float:
        """Return the logarithm of the probability of an output, given the true counts of all items.

        `output` is (verdicts, noisy counts): True for above, for each item that was asked, and the measured counts of
        those whose verdict cost something, in order (none where values are not asked for).
        """
        verdicts, noisy = output
        found = [place for place, above in enumerate(verdicts) if bool(above) == self.costly]
        if not self.query.values:
            return self.log_probability_of_verdicts(counts, verdicts) if not len(noisy) else -math.inf
        true = [int(counts[place]) for place in found]
        measured = measured_log_probability(self.measuring(found), true, noisy)
        return self.log_probability_of_verdicts(counts, verdicts) + measured

    def log_probability_of_verdicts(self, counts: Sequence[int], verdicts: Sequence[bool]) -> float:
        """Return the logarithm of the probability that the items that are asked get exactly these verdicts."""
        found = [place for place, above in enumerate(verdicts) if bool(above) == self.costly]
        if len(found) == self.query.at_most:
            if found[-1] != len(verdicts) - 1:
                return -math.inf  # it would have stopped before
        elif len(found) > self.query.at_most or len(verdicts) != len(counts):
            return -math.inf
        true = np.asarray(counts[: len(verdicts)], dtype=np.int64)
        is_above = np.asarray(verdicts, dtype=np.bool_)
        thresholds = self.thresholds[: len(verdicts)] + self.offset
        if self.testing is None:
            return 0.0 if ((true >= thresholds) == is_above).all() else -math.inf
        moved, chances = self._moved()
        log_total = np.log(chances)
        for count, threshold, above in zip(true, thresholds, is_above, strict=True):
            at = threshold + moved - 1 - count
            with np.errstate(divide="ignore"):
                log_total = log_total + np.log(self.testing.survival(at) if above else self.testing.cdf(at))
        return float(np.logaddexp.reduce(log_total))

    @property
    def deciding(self) -> TwoScale | None:
        return self.testing

    def telling_others(self, moves: Bools) -> Ints:
        """Return counts just under the threshold that move, and others whose verdict is clear and free."""
        at = self.thresholds
        return np.where(moves, at - 1, np.maximum(0, at - self.most_noise) if self.costly else at + self.most_noise)

    def outputs_near(self, counts: Ints, far: int) -> Iterator[tuple[tuple[bool, ...], tuple[int, ...]]]:
        many = len(counts)
        for asked in range(1, many + 1):
            for verdicts in product((False, True), repeat=asked):
                found = [place for place, above in enumerate(verdicts) if above == self.costly]
                stopped = len(found) == self.query.at_most and found[-1] == asked - 1
                if stopped or (asked == many and len(found) < self.query.at_most):
                    yield verdicts, tuple(counts[found].tolist() if self.query.values else ())

    def row_of(self, output: tuple[Sequence[bool], Sequence[int]], many: int) -> list[int]:
        verdicts, noisy = output
        return [*fill_up(verdicts, many), *fill_up(noisy, self.query.at_most)]

    def _moved(self) -> tuple[Any, Any]:
        """Return how far the thresholds may be moved, and the probability of each."""
        if self.moving is None:
            return np.zeros(1, np.int64), np.ones(1)
        moved = np.arange(_REACH * math.ceil(self.moving.right) + 1)
        return moved, self.moving.pmf(moved)


def plan_below(query: Below, policy: Policy, epsilon: Fraction) -> BelowPlan:
    """Return the plan for one decision at this cost."""
    step = largest_step(query.counted, policy)
    law, why = noise_for(step, epsilon, 1)
    if law is not None and step.monotone is not None:
        why += f", and {'one above' if step.monotone == 'rising' else 'a noisy count below'} the threshold is proof"
    return BelowPlan(query, policy, epsilon, step, why, law)


def plan_above(query: Above, policy: Policy, epsilon: Fraction) -> AbovePlan:
    """Return the plan for many decisions of which at most so many cost something."""
    step = largest_step(query.counted, policy)
    if step.l1 == 0:
        why = "no secret edge changes any of the counts, so every verdict is exact"
        return AbovePlan(query, policy, epsilon, step, why, None, None, 0, Fraction(0), Fraction(0))
    if query.values and step.monotone == "falling" and step.down == 1:
        shared = _shared(query, policy, epsilon, step)
        if shared is not None:
            return shared
    tests = epsilon * TESTING_SHARE if query.values else epsilon
    testing, moving, why = testing_noise(step, query.at_most, tests)
    # a shifted threshold could not prove anything, so it is shifted only where nothing is proved
    offset = round(testing.mean() - (moving.mean() if moving is not None else 0.0)) if step.monotone is None else 0
    return AbovePlan(query, policy, epsilon, step, why, testing, moving, offset, tests, epsilon - tests)


def _shared(query: Above, policy: Policy, epsilon: Fraction, step: LargestStep) -> AbovePlan | None:
    """Return a plan whose measurement recovers what the tests cost; None where too few counts move for it to help."""
    rate = epsilon / (query.at_most + slack_for(query.at_most))
    if not can_be_tilted(query.at_most, rate, epsilon) or 3 * step.largest_fall < query.at_most:
        return None
    why = (
        f"counts only fall along secret edges, and by one: {query.at_most:,} answers 'above' cost, the others are "
        "free; the measurement, which is tilted near the threshold, recovers the privacy cost of the selection, so "
        "that both together cost epsilon"
    )
    tests = TwoScale(1 / rate, Fraction(0))
    return AbovePlan(query, policy, epsilon, step, why, tests, None, 0, epsilon, epsilon, is_shared=True)


def testing_noise(step: LargestStep, at_most: int, epsilon: Fraction) -> tuple[TwoScale, TwoScale | None, str]:
    """Return the noise of each test, that of the threshold, and why (the docstring of this module proves it)."""
    zero = Fraction(0)
    if step.monotone == "falling":
        law = TwoScale(drawable(shift(step, at_most) / epsilon), zero)
        return law, None, f"counts only fall along secret edges: {at_most:,} answers 'above' cost, all others are free"
    if step.monotone == "rising":
        rises = min(at_most * step.up, step.largest_rise)
        law = TwoScale(zero, drawable(rises / epsilon))
        return law, None, f"counts only rise along secret edges: {at_most:,} answers 'below' cost, all others are free"
    of_all = independent_noise(step, epsilon)
    moved, tested = split_with_threshold(step, at_most, epsilon)
    if of_all.variance() <= moved.variance() + tested.variance():
        return of_all, None, "one person moves few counts in all, so hiding every count costs least"
    why = "counts rise and fall along secret edges, so the threshold must be noisy and no verdict certain"
    return tested, moved, why


def split_with_threshold(step: LargestStep, at_most: int, epsilon: Fraction) -> tuple[TwoScale, TwoScale]:
    """Return noise for the threshold and for the tests with the least variance together."""
    cost = shift(step, at_most)
    # (up / a)^2 + (cost / b)^2 with a + b = epsilon is least where a : b = up^(2/3) : cost^(2/3)
    share = Fraction((cost / step.up) ** (2 / 3)).limit_denominator(64)
    of_tests = epsilon * share / (1 + share)
    zero = Fraction(0)
    return TwoScale(drawable(step.up / (epsilon - of_tests)), zero), TwoScale(drawable(cost / of_tests), zero)


@lru_cache(maxsize=64)
def _measuring_law(step: LargestStep, epsilon: Fraction, found: int) -> Law | None:
    return noise_for(step.restricted(found), epsilon, found)[0]


def _log(chance: Any) -> float:
    return math.log(float(chance)) if chance > 0 else -math.inf

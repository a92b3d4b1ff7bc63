"""What all plans of selections share: the law of their outputs, and the least noise that hides who was chosen.

A plan holds public numbers only. `log_probability(counts, output)` says how likely an output is for given counts, so
that an audit can compare the two ends of an edge without drawing anything; and which counts and outputs it should try.

Guarantee   With noise to the right of scale `shift(step, k) / epsilon` on every count, which k counts are the largest
            (ties go to the earlier item) is as likely at `cover` as at `hidden` up to exp(epsilon), along every edge
            whose step lies within the given largest step. `LargestStep.restricted(k)` bounds what an edge does to any k
            counts.
Assumes     Whole-number counts; the step is an upper bound (`plan/sensitivity/steps.py`). The order that breaks ties is
            public.
Why         Let no count rise by more than u and none fall by more than d along an edge, and let `chosen` be the k
            winners at hidden. Give the losers the same noise at cover: each is at most u higher. Give each winner i,
            whose count changes by s_i, noise that is larger by u - s_i: it is then exactly u higher. Nobody passes
            anybody (comparing noisy counts, then places in a fixed order), so the same k win. Larger noise costs
            1/scale per unit, and the sum of u - s_i over the winners is at most k u plus what winners fall: `shift`.
            Noise to the left is never needed, whichever way the counts move.
            Where a person moves few counts in all, hiding every count is cheaper: the noise of `independent_noise` on
            all of them costs sum of falls / right + sum of rises / left, whatever is chosen from them afterwards.
Reference   Asymmetric differential privacy, Algorithm 1 (u = 0); its mixed case costs twice as much, as found here.
            McKenna, Sheldon, Permute-and-Flip, arXiv:2010.12603, for one-sided noise where counts move both ways.
Checked by  tests/property/test_selections_loss.py
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from tacit.arrays import Bools, Ints
from tacit.noise.law import Law
from tacit.noise.sum_bounds import error_bounds
from tacit.noise.tilted_cube import TiltedCube
from tacit.noise.two_scale import TwoScale
from tacit.plan.calibrate import drawable, independent_noise
from tacit.plan.plans.plan import LEVEL, Plan
from tacit.plan.question import Query
from tacit.plan.sensitivity.steps import LargestStep

NOTHING: Final = -(10**6)  # stands where an output has no number


@dataclass(frozen=True)
class SelectionPlan(Plan):
    """How one selection will be answered."""

    query: Query

    @property
    def parts(self) -> tuple[SelectionPlan, ...]:
        """The plan itself: it has one part."""
        return (self,)

    @property
    def rmse(self) -> float:
        return 0.0 if self.noise is None else math.sqrt(self.noise.variance())

    def half_width(self, level: float = LEVEL) -> float | None:
        return 0.0 if self.noise is None else max(map(abs, error_bounds(((self.noise, 1.0, 1),), level)))

    @abstractmethod
    def draw(self, counts: Ints) -> Any:
        """Return one output for these true counts, with the probability that `log_probability` states."""

    @abstractmethod
    def log_probability(self, counts: Sequence[int], output: Any) -> float:
        """Return the logarithm of the probability of an output for these true counts, -inf if it cannot happen."""

    # ---- for audits ----

    @property
    def most_noise(self) -> int:
        """A distance that the noise of the choice hardly ever bridges."""
        law = self.deciding
        return 1 if law is None else math.ceil(8 * math.sqrt(law.variance()))

    @property
    def deciding(self) -> Law | None:
        """The noise that the choice is made with; None by default, where there is none of its own."""
        return None

    @abstractmethod
    def telling_others(self, moves: Bools) -> Ints:
        """Return how many others have each item: most shows where counts that move are about to be chosen."""

    @abstractmethod
    def telling_counts(self, far: int) -> list[list[int]]:
        """Return for each count how many others it may have, the most telling first; `far` is far from what decides."""

    @abstractmethod
    def outputs_near(self, counts: Ints, far: int) -> Iterator[Any]:
        """Yield outputs with noisy values that are the true ones, near them, or `far` from them."""

    @abstractmethod
    def row_of(self, output: Any, many: int) -> list[int]:
        """Return an output for so many counts as a row of numbers, always as long."""


def fill_up(numbers: Iterable[Any], many: int) -> list[int]:
    """Return so many whole numbers: these, and `NOTHING` where there are none."""
    found = [int(number) for number in numbers]
    return [*found, *([NOTHING] * (many - len(found)))]


def measured_log_probability(law: Law | TiltedCube | None, counts: Sequence[int], noisy: Sequence[int]) -> float:
    """Return the logarithm of the probability that counts with this noise come out as these numbers."""
    if len(counts) != len(noisy):
        return -math.inf
    if not counts:
        return 0.0
    if law is None:
        return 0.0 if list(counts) == list(noisy) else -math.inf
    return law.log_probability(counts, noisy)


def shift(step: LargestStep, chosen: int) -> int:
    """Return how far the noise of so many chosen counts must move in all along an edge, at most."""
    return chosen * step.up + min(chosen * step.down, step.largest_fall)


def selecting_noise(step: LargestStep, chosen: int, epsilon: Fraction) -> TwoScale:
    """Return the least noise on each count that hides which of them are the largest."""
    of_winners = TwoScale(drawable(shift(step, chosen) / epsilon), Fraction(0))
    of_all = independent_noise(step, epsilon)
    return min((of_winners, of_all), key=lambda law: law.variance())

"""What all plans of selections share: a public face like that of `plan/choose.py`, and the law of their outputs.

A plan holds public numbers only. `log_probability(counts, output)` says how likely an output is for given counts, so
that an audit can compare the two ends of an edge without drawing anything; and which counts and outputs it should try.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tacit.arrays import Bools, Ints
from tacit.noise.cube.tilted import TiltedCube
from tacit.noise.law import Law
from tacit.plan.plans.plan import Plan

if TYPE_CHECKING:
    from tacit.plan.question import Linear
    from tacit.plan.questions.selection import Selection

NOTHING: Final = -(10**6)  # stands where an output has no number


@dataclass(frozen=True)
class SelectionPlan(Plan):
    """How one selection will be answered."""

    query: Selection

    @property
    def base(self) -> Linear:
        """The counts that are looked at."""
        return self.query.counted

    @property
    def parts(self) -> tuple[SelectionPlan, ...]:
        """The plan itself: it has one part."""
        return (self,)

    @property
    def is_exact(self) -> bool:
        """Whether no secret edge changes any of the counts, so that nothing needs hiding."""
        return self.step.l1 == 0

    @property
    @abstractmethod
    def noise(self) -> Law | None:
        """The law of the noise in the released numbers; None where they are exact."""

    @property
    @abstractmethod
    def answers(self) -> int:
        """How many answers there are, at most."""

    @property
    def rmse(self) -> float:
        return 0.0 if self.noise is None else math.sqrt(self.noise.variance())

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
    @abstractmethod
    def deciding(self) -> Law | None:
        """The noise that the choice is made with; None where there is none of its own."""

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


def noise_name(law: Law | None) -> str:
    """Return what a law of noise is called."""
    return "exact" if law is None else law.name


def measured_log_probability(law: Law | TiltedCube | None, counts: Sequence[int], noisy: Sequence[int]) -> float:
    """Return the logarithm of the probability that counts with this noise come out as these numbers."""
    if len(counts) != len(noisy):
        return -math.inf
    if not counts:
        return 0.0
    if law is None:
        return 0.0 if list(counts) == list(noisy) else -math.inf
    return law.log_probability(counts, noisy)

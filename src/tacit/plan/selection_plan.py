"""What all plans of selections share: a public face like that of `plan/choose.py`, and the law of their outputs.

A plan holds public numbers only. `log_probability(counts, output)` says how likely an output is for given counts, so
that an audit can compare the two ends of an edge without drawing anything.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.noise.law import Law
from tacit.noise.tilted_cube import TiltedCube
from tacit.plan.any_plan import AnyPlan

if TYPE_CHECKING:
    from tacit.plan.queries.selection import Selection
    from tacit.plan.query import Linear


@dataclass(frozen=True)
class SelectionPlan(AnyPlan):
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
        """The expected root mean squared error of one released number."""
        return 0.0 if self.noise is None else math.sqrt(self.noise.variance())

    @abstractmethod
    def log_probability(self, counts: Sequence[int], output: Any) -> float:
        """Return the logarithm of the probability of an output for these true counts, -inf if it cannot happen."""


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

"""What all plans of selections share: a public face like that of `plan/choose.py`, and the law of their outputs.

A plan holds public numbers only. `log_probability(counts, output)` says how likely an output is for given counts, so
that an audit can compare the two ends of an edge without drawing anything.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from tacit.plan.distributions import Cube, Distribution
from tacit.plan.steps import LargestStep
from tacit.plan.tilted import TiltedCube
from tacit.policy.policy import Policy

if TYPE_CHECKING:
    from tacit.plan.queries.selection import Selection
    from tacit.plan.query import Linear


@dataclass(frozen=True)
class SelectionPlan(ABC):
    """How one selection will be answered."""

    query: Selection
    policy: Policy
    epsilon: Fraction
    step: LargestStep
    why_noise: str
    strategy: ClassVar[str] = "direct"

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
    def noise(self) -> Distribution | None:
        """The law of the noise in the released numbers; None where they are exact."""

    @property
    @abstractmethod
    def answers(self) -> int:
        """How many answers there are, at most."""

    @property
    @abstractmethod
    def mechanism(self) -> str:
        """The name of the mechanism."""

    @property
    def rmse(self) -> float:
        """The expected root mean squared error of one released number."""
        return 0.0 if self.noise is None else math.sqrt(self.noise.variance())

    @abstractmethod
    def predictions(self) -> list[str]:
        """Return in words what can be expected, from public parameters alone."""

    @abstractmethod
    def predicted(self) -> dict[str, Any]:
        """Return the same as plain data."""

    @abstractmethod
    def terms(self) -> list[str]:
        """Return in words what an answer means, and what it does not: this goes into certificates."""

    @abstractmethod
    def noise_document(self) -> dict[str, Any] | None:
        """Return the laws of the noise as plain, exact data; None where there is none."""

    @abstractmethod
    def log_probability(self, counts: Sequence[int], output: Any) -> float:
        """Return the logarithm of the probability of an output for these true counts, -inf if it cannot happen."""


def noise_name(law: Distribution | None) -> str:
    """Return what a law of noise is called."""
    if law is None:
        return "exact"
    if isinstance(law, Cube):
        return "cube noise" if law.sides == "both" else "one-sided cube noise"
    if 0 in (law.left, law.right):
        return "one-sided geometric noise"
    return "discrete Laplace noise" if law.left == law.right else "two-scale noise"


def measured_log_probability(
    law: Distribution | TiltedCube | None, counts: Sequence[int], noisy: Sequence[int]
) -> float:
    """Return the logarithm of the probability that counts with this noise come out as these numbers."""
    if len(counts) != len(noisy):
        return -math.inf
    if not counts:
        return 0.0
    if isinstance(law, TiltedCube):
        return law.log_probability(counts, noisy)
    away = [int(seen) - int(true) for seen, true in zip(noisy, counts, strict=True)]
    if law is None:
        return -math.inf if any(away) else 0.0
    return law.joint_log_pmf(away)

"""Questions whose answers follow from releases of linear ones, each with its share of epsilon.

What is released are the noisy answers of the parts; everything after that is post-processing. The parts are planned,
charged together, and measured as if they had been asked; the costs of all parts add up to epsilon.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from tacit.amounts import shown
from tacit.plan.any_plan import AnyPlan
from tacit.plan.query import Floats, Linear, Query
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.knowledge import KnownSize
from tacit.policy.policy import Policy

if TYPE_CHECKING:
    from tacit.plan.choose import Plan

PEOPLE: Final = 1000  # whom errors are stated for, where their number is not known


class Released(Protocol):
    """What is known of a part after its release."""

    @property
    def values(self) -> Floats:
        """The estimates."""

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return ends that hold the true answers, each with this probability."""


class Derived(Query):
    """A question whose answers follow from those of linear ones. `roles` are what these are called."""

    roles: ClassVar[tuple[str, ...]]

    @abstractmethod
    def size(self, domain: Domain) -> int:
        """Return how many numbers the answer has."""

    @abstractmethod
    def labels(self, domain: Domain) -> dict[str, Sequence[Value]]:
        """Return the columns that say what each answer is about."""

    @abstractmethod
    def parts(self, policy: Policy, epsilon: Fraction) -> tuple[Plan, ...]:
        """Return the plans of the parts; their costs add up to epsilon."""

    @abstractmethod
    def values(self, parts: Sequence[Released], domain: Domain) -> Floats:
        """Return the answers from the estimates of the parts."""

    @abstractmethod
    def ends(self, parts: Sequence[Released], domain: Domain, level: float) -> tuple[Floats, Floats]:
        """Return ends that hold each true answer with this probability."""

    @abstractmethod
    def expected_error(self, parts: Sequence[Plan], people: float) -> float:
        """Return the expected error of an answer about so many people."""

    @abstractmethod
    def predictions(self, people: str) -> list[str]:
        """Return in words what the expected error is about."""

    @abstractmethod
    def terms(self) -> list[str]:
        """Return in words what an answer means."""

    def plan(self, policy: Policy, epsilon: Fraction) -> DerivedPlan:
        """Return the plan of all parts."""
        self.counted.check_size(policy.domain)
        parts = self.parts(policy, epsilon)
        step, why = parts[0].step, parts[0].why
        if len(parts) > 1:
            named = list(zip(self.roles, parts, strict=True))
            lines = tuple(f"{role}: {line}" for role, part in named for line in part.step.why)
            still = tuple(f"{role}: {line}" for role, part in named for line in part.step.still)
            step = replace(step, why=lines, still=still)
            why = "; ".join(f"{role} cost epsilon {shown(part.epsilon)}: {part.why}" for role, part in named)
        return DerivedPlan(self, policy, epsilon, step, why, parts, strategy=parts[0].strategy)


@dataclass(frozen=True)
class DerivedPlan(AnyPlan):
    """How the parts of a question will be answered. `step` is that of the first part, with the reasons of all."""

    query: Derived
    parts: tuple[Plan, ...]

    @property
    def base(self) -> Linear:
        """What noise is added to, in the first part."""
        return self.parts[0].base

    @property
    def answers(self) -> int:
        """How many answers there are."""
        return self.query.size(self.policy.domain)

    @property
    def is_exact(self) -> bool:
        """Whether no secret edge changes any of the parts."""
        return all(part.is_exact for part in self.parts)

    @property
    def mechanism(self) -> str:
        """The name of the mechanism of each part."""
        if len(self.parts) == 1:
            return self.parts[0].mechanism
        return ", ".join(f"{role}: {part.mechanism}" for role, part in self._named())

    @property
    def people(self) -> float:
        """How many people an answer is expected to be about: their number if it is known, shared out evenly."""
        known = next((fact.people for fact in self.policy.known if isinstance(fact, KnownSize)), None)
        cells = 1 if self.query.counted.never_falls else self.answers
        return float(PEOPLE) if known is None else max(known / cells, 1.0)

    @cached_property
    def rmse(self) -> float:
        """The expected root mean squared error of one answer about `people` people."""
        return 0.0 if self.is_exact else self.query.expected_error(self.parts, self.people)

    def predictions(self) -> list[str]:
        """Return in words what can be expected."""
        return [] if self.is_exact else self.query.predictions(f"{self.people:,.0f}")

    def predicted(self) -> dict[str, Any]:
        """Return the same as plain data."""
        parts = {role: {"epsilon": str(part.epsilon), "value_rmse": part.rmse} for role, part in self._named()}
        return {"value_rmse": self.rmse, "people": self.people, "parts": parts}

    def terms(self) -> list[str]:
        """Return in words what an answer means."""
        return self.query.terms()

    def noise_document(self) -> dict[str, Any] | None:
        """Return the noise of each part as plain, exact data."""
        if self.is_exact:
            return None
        return {
            role: {"epsilon": str(part.epsilon), **(part.noise_document() or {"law": "none"})}
            for role, part in self._named()
        }

    def _named(self) -> list[tuple[str, Plan]]:
        return list(zip(self.query.roles, self.parts, strict=True))

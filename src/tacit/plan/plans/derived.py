"""Questions whose answers follow from several linear ones, its parts, each with a share of epsilon.

The noisy answers of the parts are released, as if somebody had asked for them; everything after that is
post-processing. The costs of all parts add up to epsilon.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import numpy as np

from tacit.amounts import shown
from tacit.arrays import Bools, Floats
from tacit.plan.measure.measured import CellSums, Measured
from tacit.plan.plans.plan import LEVEL, MOST_SPREAD, Plan
from tacit.plan.question import PlanningFault, Query
from tacit.plan.sensitivity.steps import LargestStep
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy

if TYPE_CHECKING:
    from tacit.plan.plans.linear import LinearPlan

PEOPLE: Final = 1000  # whom errors are stated for, where their number is not known


class Released(Protocol):
    """What is known of a part after its release."""

    @property
    def plan(self) -> LinearPlan:
        """How it was released."""

    @property
    def values(self) -> Floats:
        """The estimates."""

    @property
    def exact(self) -> Bools:
        """Which of them have no noise."""

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of intervals that contain each true answer with this probability."""


@dataclass
class Typical:
    """What the release of a part would be without noise if so many people were in each group, evenly over the range."""

    plan: LinearPlan
    name: str  # of the attribute whose range it is
    people: float

    @cached_property
    def values(self) -> Floats:
        """The answers: those of one person at each place of the range, scaled to so many people."""
        query, domain = self.plan.query, self.plan.policy.domain
        attribute: Any = domain[self.name]
        places = attribute.size
        numbers = places * (attribute.number(0) + attribute.number(places - 1)) // 2
        tallied = []
        for tally in query.tallies(self.plan.policy):
            cells = math.prod(domain[name].size for name in tally.attributes if name != self.name)
            if isinstance(tally, CellSums):
                each = numbers
            elif self.name in tally.attributes:
                cells, each = cells * places, 1
            else:
                each = places
            tallied.append(np.full(cells, each, dtype=object))
        answers = query.answers(tallied, domain).astype(np.float64)
        return np.asarray(answers * (self.people / places * float(query.unit(domain))))

    @property
    def exact(self) -> Bools:
        """Which of them will have no noise."""
        return self.plan.spread.exact()

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of their intervals."""
        unit = float(self.plan.query.unit(self.plan.policy.domain))
        low, high = self.plan.spread.bounds(level)
        return self.values - high * unit, self.values - low * unit


def range_of(attribute: Any) -> tuple[float, float]:
    """Return the smallest and the largest number of an attribute."""
    ends = attribute.number(0), attribute.number(attribute.size - 1)
    low, high = (float(end * attribute.unit) for end in ends)
    return low, high


class Derived(Query):
    """A question whose answers follow from those of linear ones.

    `roles` names these, of a single part the first one does; `measured` names one number of the first part, and all of
    its numbers.
    """

    roles: ClassVar[tuple[str, ...]]
    measured: ClassVar[tuple[str, str]]

    @abstractmethod
    def size(self, domain: Domain) -> int:
        """Return how many numbers the answer has."""

    @abstractmethod
    def labels(self, domain: Domain) -> dict[str, Sequence[Value]]:
        """Return the columns that say what each answer is about."""

    @abstractmethod
    def parts(self, policy: Policy, epsilon: Fraction) -> tuple[LinearPlan, ...]:
        """Return the plans of the parts; their costs add up to epsilon."""

    @abstractmethod
    def values(self, parts: Sequence[Released], domain: Domain) -> Floats:
        """Return the answers from the estimates of the parts."""

    @abstractmethod
    def ends(self, parts: Sequence[Released], domain: Domain, level: float) -> tuple[Floats, Floats]:
        """Return ends that hold each true answer with this probability."""

    @abstractmethod
    def expected_error(self, parts: Sequence[LinearPlan], people: float) -> float:
        """Return the expected error of an answer about so many people, where the range does not bound it."""

    @abstractmethod
    def range(self, domain: Domain) -> tuple[float, float]:
        """Return the smallest and the largest number that an answer can be."""

    @abstractmethod
    def prediction(self) -> str:
        """Return in words how the expected error depends on the people."""

    @abstractmethod
    def terms(self, parts: Sequence[LinearPlan]) -> list[str]:
        """Return in words what an answer means."""

    def named(self, parts: Sequence[LinearPlan]) -> list[tuple[str, LinearPlan]]:
        """Return the parts, each with what it is called."""
        return list(zip(self.roles[: len(parts)], parts, strict=True))

    def check_size(self, policy: Policy) -> None:
        """Refuse more answers than can be released."""
        self.counted.check_size(policy.domain)

    def never_negative(self, domain: Domain) -> bool:
        """Say no: answers lie in the declared range anyway."""
        return False

    def plan(self, policy: Policy, epsilon: Fraction) -> Any:
        self.check_size(policy)
        parts = self.parts(policy, epsilon)
        if sum(part.epsilon for part in parts) != epsilon:
            raise PlanningFault("parts that do not cost epsilon together")
        step, why = parts[0].step, parts[0].why
        if len(parts) > 1:
            named = self.named(parts)
            step = step_of(named)
            why = "; ".join(f"{role} cost epsilon {shown(part.epsilon)}: {part.why}" for role, part in named)
        known = policy.known_people
        return DerivedPlan(self, policy, epsilon, step, why, parts, strategy=parts[0].strategy, known_people=known)

    def plan_for(self, policy: Policy, epsilon: Fraction, people: int | None) -> Any:
        """Return the plan with its error stated for so many people."""
        return replace(self.plan(policy, epsilon), known_people=people)


def step_of(named: Sequence[tuple[str, LinearPlan]]) -> LargestStep:
    """Return the step of the first part, with the reasons of all."""
    why, unmoved = (
        tuple(f"{role}: {line}" for role, part in named for line in getattr(part.step, reasons))
        for reasons in ("why", "unmoved_reasons")
    )
    return replace(named[0][1].step, why=why, unmoved_reasons=unmoved)


@dataclass(frozen=True)
class DerivedPlan(Plan):
    """How the parts of a question will be answered.

    `step` is that of the first part, with the reasons of all; `known_people` how many there are, if that is declared.
    """

    query: Derived
    parts: tuple[LinearPlan, ...]
    known_people: int | None = field(default=None, kw_only=True)

    def plain(self) -> DerivedPlan:
        """Return the plan of plain differential privacy, with its error stated for as many people."""
        plain: DerivedPlan = self.query.plan_for(self.policy.plain(), self.epsilon, self.known_people)
        return plain

    def stated_for(self, many: int) -> DerivedPlan:
        return replace(self, known_people=many)

    @property
    def base(self) -> Measured:
        """What noise is added to, in the first part."""
        return self.parts[0].base

    @property
    def answers(self) -> int:
        """How many answers there are."""
        return self.query.size(self.policy.domain)

    @property
    def is_exact(self) -> bool:
        return all(part.is_exact for part in self.parts)

    @property
    def post_processing(self) -> list[str]:
        """What is done to the noisy answers of the parts: cumulative counts are made not to fall in any case."""
        return ["consistent"] if self.query.counted.fitting(self.base) else []

    @property
    def moved(self) -> tuple[str, str]:
        """What the step is about: the numbers of the first part, or what they are read off."""
        first = self.parts[0]
        return self.query.measured if first.base == first.query else first.moved

    @property
    def has_error(self) -> bool:
        """Whether an answer may be off."""
        return not self.is_exact

    @property
    def mechanism(self) -> str:
        if len(self.parts) == 1:
            return self.parts[0].mechanism
        return ", ".join(f"{role}: {part.mechanism}" for role, part in self.named())

    @property
    def people(self) -> float:
        """The expected number of people in an answer: if their number is known, it is spread evenly over the groups."""
        if self.known_people is None:
            return float(PEOPLE)
        return max(self.known_people / (self.answers if self.query.split_by() else 1), 1.0)

    @cached_property
    def rmse(self) -> float:
        if not self.has_error:
            return 0.0
        low, high = self.query.range(self.policy.domain)
        return min(self.query.expected_error(self.parts, self.people), high - low)

    @property
    def largest_answer(self) -> float:
        """How far apart two answers can be."""
        low, high = self.query.range(self.policy.domain)
        return high - low

    def half_width(self, level: float = LEVEL) -> float | None:
        """Return that of answers about as many people as the error is for, spread evenly over the range."""
        if not self.has_error:
            return 0.0
        if any(part.answers > MOST_SPREAD for part in self.parts):
            return None
        query: Any = self.query  # about one attribute: clusters say nothing
        domain, parts = self.policy.domain, [Typical(part, query.name, self.people) for part in self.parts]
        values, (lower, upper) = query.values(parts, domain), query.ends(parts, domain, level)
        return float(max((upper - values).max(), (values - lower).max()))

    @property
    def drawing(self) -> tuple[str, ...]:
        return self.parts[0].drawing if len(self.parts) == 1 else ()

    @property
    def tried(self) -> dict[str, float]:
        """Of a single part, every strategy: errors of answers grow in proportion to those of the part."""
        if len(self.parts) > 1 or self.parts[0].mse == 0:
            return super().tried
        return {name: mse / self.parts[0].mse * self.mse for name, mse in self.parts[0].tried.items()}

    @property
    def assumption(self) -> str:
        if not self.has_error:
            return ""
        return f"{self.people:,.0f} {self.query.who}{' in each group' if self.query.split_by() else ''}"

    def predictions(self) -> list[str]:
        if not self.has_error:
            return []
        declare = "" if self.known_people is not None else "; for the error of your own, declare `known: [{size: N}]`"
        return [f"the error below is for {self.assumption}{self.query.prediction()}{declare}"]

    def predicted(self) -> dict[str, Any]:
        parts = {role: {"epsilon": str(part.epsilon), "value_rmse": part.rmse} for role, part in self.named()}
        return {"value_rmse": self.rmse, "people": self.people, "parts": parts}

    def terms(self) -> list[str]:
        return self.query.terms(self.parts)

    def noise_document(self) -> dict[str, Any] | None:
        if self.is_exact:
            return None
        return {
            role: {"epsilon": str(part.epsilon), **(part.noise_document() or {"law": "none"})}
            for role, part in self.named()
        }

    def named(self) -> list[tuple[str, LinearPlan]]:
        """Return the parts, each with what it is called."""
        return self.query.named(self.parts)

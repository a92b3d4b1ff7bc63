"""The plan of a linear question: noise is added to its own answers, or to a base that they are read off."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Bools, Floats, Ints
from tacit.noise.law import Law
from tacit.plan.calibrate import noise_for
from tacit.plan.errors.error_laws import AnySpread, read_only, spread_of
from tacit.plan.errors.predict import expected_variance, groups_used
from tacit.plan.measure.measured import LineEntries, Measured, Responding
from tacit.plan.plans.counted_tables import CountedTable, counted_tables
from tacit.plan.plans.plan import Plan
from tacit.plan.plans.selection_plan import noise_name
from tacit.plan.question import Linear
from tacit.plan.sensitivity.responses import Watched

if TYPE_CHECKING:
    from tacit.plan.errors.runs import LineErrors
    from tacit.plan.questions.on_a_line import OnALine


@dataclass(frozen=True)
class Line:
    """Answers that are counts of runs of values, read off the running counts that follow from measured entries."""

    asked: OnALine
    entries: LineEntries


@dataclass(frozen=True)
class LinearPlan(Plan):
    """How a linear question will be answered. `base` is what noise is added to; answers are sums of its entries."""

    query: Linear
    base: Measured
    noise: Law | None
    answers: int
    # which entries of the base can fall and which can rise, where each has noise on the sides that it needs
    sides: tuple[Bools, Bools] | None = field(default=None, compare=False, repr=False)
    # how the way was chosen that answers it: all that were tried with their expected mean squared errors, and a drawing
    compared: tuple[tuple[str, float], ...] = field(default=(), compare=False, repr=False)
    drawn: tuple[str, ...] = field(default=(), compare=False, repr=False)
    # of a noise that was made for what is asked: how wrong counts are, and what the dearest edge costs
    own_errors: LineErrors | None = field(default=None, compare=False, repr=False)
    own_loss: Fraction | float | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.sides is not None:
            object.__setattr__(self, "sides", (read_only(self.sides[0]), read_only(self.sides[1])))

    @cached_property
    def line(self) -> Line | None:
        """The line whose running counts answers are read off; None where they are read off none."""
        asked = self.query.about_a_line
        return Line(asked, self.base) if asked is not None and isinstance(self.base, LineEntries) else None

    @property
    def watched(self) -> Watched:
        return self.base if isinstance(self.base, Responding) else self.query

    @property
    def moved(self) -> tuple[str, str]:
        """What the step is about: answers, or what they are read off."""
        return super().moved if self.base == self.query else self.base.entry_words

    @cached_property
    def line_errors(self) -> LineErrors | None:
        """How far counts of runs are off, for answers that are read off running counts; None if unknown."""
        if self.own_errors is not None or self.noise is None or self.line is None:
            return self.own_errors
        return self.line.entries.line_errors(self.noise, self.groups, self.fixed, self.policy.domain)

    @property
    def tried(self) -> dict[str, float]:
        return dict(self.compared) or {self.strategy: self.mse}

    @cached_property
    def groups(self) -> tuple[Ints, ...] | None:
        """For each table a label per cell such that sums over equal labels are exact, and used; None if none is."""
        found = groups_used(self.query, self.base, self.policy, self.noise)
        return None if found is None else tuple(read_only(group) for group in found)

    @cached_property
    def fixed(self) -> Bools | None:
        """Which cumulative counts are exact, where answers are read off them; None if none is."""
        found = None if self.line is None else self.line.asked.exact_running(self.policy)
        return None if found is None else read_only(found)

    def fixed_counts(self, entries: Ints) -> Floats | None:
        """Return the running counts that are exact, from true entries; None if none is."""
        if self.line is None or self.fixed is None:
            return None
        return np.rint(self.line.entries.running(entries.astype(np.float64))[self.fixed])  # they are whole numbers

    @cached_property
    def spread(self) -> AnySpread:
        """The laws of the errors of the estimates."""
        return spread_of(self)

    @property
    def parts(self) -> tuple[LinearPlan, ...]:
        """The plan itself: it has one part."""
        return (self,)

    @property
    def one_sided_answers(self) -> bool:
        """Whether some entries have noise on one side only."""
        return self.sides is not None

    @cached_property
    def variance(self) -> float:
        """The expected variance of one answer, averaged over the answers, in units."""
        return expected_variance(self)

    def variance_for(self, epsilon: Fraction) -> float:
        """Return about what the expected variance of one answer would be at another cost."""
        if self.noise is None:
            return 0.0
        sides = () if self.sides is None else (int(self.sides[0].sum()), int(self.sides[1].sum()))
        noise, _ = noise_for(self.step, epsilon, self.base.size(self.policy.domain), *sides)
        return math.inf if noise is None else self.variance * noise.variance() / self.noise.variance()

    @property
    def rmse(self) -> float:
        return math.sqrt(self.variance) * float(self.query.unit(self.policy.domain))

    @property
    def mechanism(self) -> str:
        if self.one_sided_answers and self.noise is not None and all(self.noise.reaches):
            return "geometric noise on the sides that each answer needs"
        return noise_name(self.noise)

    @property
    def is_exact(self) -> bool:
        return self.noise is None

    def predictions(self) -> list[str]:
        return []

    def predicted(self) -> dict[str, Any]:
        return {"value_rmse": self.rmse}

    def terms(self) -> list[str]:
        return []

    def proven_loss(self, *, backward: bool = False) -> Fraction | float:
        """Return the loss that the largest step allows, along edges or back along them."""
        if self.noise is None or self.step.l1 == 0:
            return Fraction(0)
        if backward and self.one_sided_answers:
            return math.inf
        if self.own_loss is not None:
            return self.own_loss  # noise that is even, and made for how people move
        profiles = [(rise, fall) for fall, rise in self.step.profiles] if backward else self.step.profiles
        return self.noise.proven_loss(profiles, self.step.linf)

    def noise_document(self) -> dict[str, Any] | None:
        return None if self.noise is None else {**self.noise.document(), **self.unit_document()}

    def laws(self) -> list[tuple[Law, Any]]:
        """Return each law of the noise with the entries it is for (a mask, or all of them)."""
        if self.noise is None:
            return []
        if self.sides is None or self.noise.is_joint:
            return [(self.noise, slice(None))]
        falls, rises = self.sides
        found: list[tuple[Law, Any]] = []
        for fall, rise in ((True, True), (True, False), (False, True), (False, False)):
            mask = (falls == fall) & (rises == rise)
            if mask.any():
                found.append((self.noise.on_sides(falls=fall, rises=rise), mask))
        return found

    def counted_tables(self) -> Iterator[CountedTable]:
        return counted_tables(self)

    def per_entry(self, number: Callable[[Law], float]) -> Any:
        """Return a number of the law of each entry, such as its mean, as an array."""
        laws, size = self.laws(), self.base.size(self.policy.domain)
        if len(laws) == 1:
            return np.broadcast_to(number(laws[0][0]), (size,))
        out = np.zeros(size)
        for law, entries in laws:
            out[entries] = number(law)
        return out

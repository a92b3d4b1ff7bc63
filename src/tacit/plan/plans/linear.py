"""The plan of a linear question: noise is added to its own answers, or to a base that they are read off.

A question may be answered through another one (cell counts, or cumulative counts) whose noise is smaller after adding
up; of all plans the one with the smallest expected error is chosen. `blur` draws.

Guarantee   `blur`: for every secret edge hidden -> cover of the plan's policy, every data set and every set O of
            outputs: Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O]. Nothing is promised from cover to hidden.
Assumes     The plan's step bounds how far the answers move along an edge (`plan/sensitivity/steps.py`) and its noise
            hides that step (`plan/calibrate.py`). A plan without noise has a step of zero.
            A noise that was made for how one row moves (`_own_noise`) costs `per_person` times as much where a person
            owns several rows, which are changed one after the other (`plan/sensitivity/steps.py`).
Why         Noise on whole numbers has the same support whatever the answer, except that one-sided noise starts at it;
            it is one-sided only where answers never move the other way along edges. The likelihood ratio along an
            edge is the sum of the costs of the moves, at most epsilon.
Reference   Blowfish privacy, Theorem 5.1 (Laplace mechanism); asymmetric differential privacy (aLap), on integers.
Checked by  tests/property/test_noise_for.py, tests/statistical/test_additive.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tacit.arrays import Bools, Floats, Ints
from tacit.noise.law import Law
from tacit.noise.sum_bounds import Term
from tacit.plan.calibrate import noise_for
from tacit.plan.error_laws import AnySpread, Spread, expected_variance, groups_used, read_only, spread_of
from tacit.plan.measure.measured import LineEntries, Measured, Responding, Strategy
from tacit.plan.plans.plan import LEVEL, MOST_SPREAD, Plan, noise_name
from tacit.plan.question import Linear, PlanningFault
from tacit.plan.sensitivity.responses import Watched
from tacit.plan.sensitivity.steps import measured_step
from tacit.policy.policy import Policy

if TYPE_CHECKING:
    from tacit.plan.error_laws import LineErrors
    from tacit.plan.questions.cumulative import OnALine


@dataclass(frozen=True, eq=False)
class CountedTable:
    """A table of counts of everybody, one axis for each name. Arrays have an entry for each cell, in order.

    The estimate of a cell is off by the terms of `laws[which]`: independent noises with their weights, the cell's own
    first; none where it is exact. Sums over cells of the same number in `groups` are exact; None where none is used.
    """

    names: tuple[str, ...]
    shape: tuple[int, ...]
    laws: tuple[tuple[Term, ...], ...]
    which: Ints
    groups: Ints | None


@dataclass(frozen=True)
class Line:
    """Answers that are counts of runs of values, read off the running counts that follow from measured entries."""

    query: OnALine
    entries: LineEntries


@dataclass(frozen=True)
class LinearPlan(Plan):
    """How a linear question will be answered. `base` is what noise is added to; answers are sums of its entries."""

    query: Linear
    base: Measured = field()
    noise: Law | None
    answers: int
    # which entries of the base can fall and which can rise, where each has noise on the sides that it needs
    sides: tuple[Bools, Bools] | None = field(default=None, compare=False, repr=False)
    # all strategies that were tried with their expected mean squared errors, and a drawing of the one that was chosen
    compared: tuple[tuple[str, float], ...] = field(default=(), compare=False, repr=False)
    drawing: tuple[str, ...] = field(default=(), compare=False, repr=False)
    # of a noise that was made for this question: the errors of counts, and the loss of the worst edge
    own_errors: LineErrors | None = field(default=None, compare=False, repr=False)
    own_loss: Fraction | float | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.sides is not None:
            object.__setattr__(self, "sides", (read_only(self.sides[0]), read_only(self.sides[1])))

    @cached_property
    def line(self) -> Line | None:
        """The line from whose running counts the answers follow; None if they follow from none."""
        query = self.query.about_a_line
        return Line(query, self.base) if query is not None and isinstance(self.base, LineEntries) else None

    @property
    def watched(self) -> Watched:
        return self.base if isinstance(self.base, Responding) else self.query

    @property
    def moved(self) -> tuple[str, str]:
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
        found = None if self.line is None else self.line.query.exact_running(self.policy)
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

    @cached_property
    def variance(self) -> float:
        """The expected variance of one answer, averaged over the answers, in units."""
        return expected_variance(self)

    @property
    def rmse(self) -> float:
        return math.sqrt(self.variance) * float(self.query.unit(self.policy.domain))

    def half_width(self, level: float = LEVEL) -> float | None:
        if self.noise is None:
            return 0.0
        if self.answers > MOST_SPREAD:
            return None
        return self.spread.half_width(level) * float(self.query.unit(self.policy.domain))

    @property
    def largest_answer(self) -> float | None:
        people = self.policy.known_people
        return float(people * self.policy.per_person) if people is not None and self.query.counts_people else None

    @property
    def mechanism(self) -> str:
        if self.sides is not None and self.noise is not None and all(self.noise.reaches):
            return "geometric noise on the sides that each answer needs"
        return noise_name(self.noise)

    def proven_loss(self, *, backward: bool = False) -> Fraction | float:
        """Return the loss that the largest step allows, along edges or back along them."""
        if self.noise is None or self.step.l1 == 0:
            return Fraction(0)
        if backward and self.sides is not None:
            return math.inf
        if self.own_loss is not None:
            return self.own_loss  # noise that is even, and made for how people move
        profiles = [(rise, fall) for fall, rise in self.step.profiles] if backward else self.step.profiles
        return self.noise.proven_loss(profiles, self.step.linf)

    def laws(self) -> list[tuple[Law, Any]]:
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
        """Yield the tables whose cells are measured one by one; none where noise depends on places."""
        domain, spread = self.policy.domain, self.spread
        names = self.query.tables(domain)
        everybody = self.query.each is None and all(one.where is None for one in self.base.tallies(self.policy))
        if self.base.tables(domain) != names or not isinstance(spread, Spread) or not everybody:
            return
        if not all(law.is_alike for law, _ in self.laws()):
            return
        start = 0
        for number, table in enumerate(names):
            shape = tuple(domain[name].size for name in table)
            cells = slice(start, start + math.prod(shape))
            groups = None if self.groups is None else self.groups[number]
            yield CountedTable(table, shape, spread.laws, np.asarray(spread.which[cells]), groups)
            start = cells.stop

    def per_entry(self, number: Callable[[Law], float]) -> Any:
        """Return a number of the law of each entry, such as its mean, as an array."""
        laws, size = self.laws(), self.base.size(self.policy.domain)
        if len(laws) == 1:
            return np.broadcast_to(number(laws[0][0]), (size,))
        out = np.zeros(size)
        for law, entries in laws:
            out[entries] = number(law)
        return out


_AS_GOOD: Final = 0.998


def plan_linear(query: Linear, policy: Policy, epsilon: Fraction) -> LinearPlan:
    """Return the plan with the smallest expected error for a checked linear question."""
    plans = every_plan(query, policy, epsilon)
    best = min(plans, key=lambda plan: plan.variance)
    tried = sorted(((plan.strategy, plan.mse) for plan in plans if plan.mse < math.inf), key=lambda one: one[1])
    return replace(best, compared=tuple(tried))


def every_plan(query: Linear, policy: Policy, epsilon: Fraction) -> list[LinearPlan]:
    """Return a plan for each way to answer a checked linear question."""
    query.check_size(policy.domain)
    plain = [Strategy(how, base) for base, how in query.bases(policy)]
    plans = [_plan(query, strategy, policy, epsilon) for strategy in plain]
    if any(plan.noise is None for plan in plans):
        return plans  # nothing needs hiding
    plainest = min(plan.variance for plan in plans)
    made = [_plan(query, strategy, policy, epsilon) for strategy in _own_noise(query, policy, epsilon)]
    # drop strategies that do not clearly beat a simpler one
    return plans + [plan for plan in made if not plainest * _AS_GOOD <= plan.variance <= plainest]


def _own_noise(query: Linear, policy: Policy, epsilon: Fraction) -> list[Strategy]:
    """Return the ways whose noise is made for how one row moves: each of a person's rows has its share of epsilon."""
    if not query.counts_rows:
        return query.strategies(policy, epsilon)
    found = query.strategies(policy.of_one_row, epsilon / policy.per_person)
    return [one if one.loss is None else replace(one, loss=one.loss * policy.per_person) for one in found]


def _plan(query: Linear, strategy: Strategy, policy: Policy, epsilon: Fraction) -> LinearPlan:
    base = strategy.base
    step = measured_step(base, policy)
    sides = None
    noise, why = strategy.noise, strategy.why
    if strategy.loss is not None and strategy.loss > epsilon:
        raise PlanningFault("a noise that costs more than epsilon")
    if noise is None:
        sides = base.directions(policy) if query is base and step.l1 else None
        counts = () if sides is None else (int(sides[0].sum()), int(sides[1].sum()))
        noise, why = noise_for(step, epsilon, base.size(policy.domain), *counts, unit=base.unit(policy.domain))
    made = partial(LinearPlan, query, policy, epsilon, step, why, base, noise, query.size(policy.domain))
    sides = None if noise is not None and noise.is_joint else sides
    return made(
        strategy=strategy.name, sides=sides, drawing=strategy.drawn, own_errors=strategy.errors, own_loss=strategy.loss
    )


def blur(truth: Ints, plan: LinearPlan) -> Ints:
    """Return the true answers of a plan's base query with its noise added.

    The last axis holds the answers of one release; with further axes before it, each is a release of its own.
    """
    blurred = truth.copy()
    for law, entries in plan.laws():
        blurred[..., entries] += law.draw_for(blurred[..., entries].shape)
    return blurred

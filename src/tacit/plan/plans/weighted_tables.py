"""Several tables at once, each with its own noise: large tables, of which there are many cells, get less of it.

Guarantee   For every secret edge hidden -> cover, every data set and every set O of outputs:
            Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O].
Assumes     One row for each person, or counts of rows; nothing that is known couples people to others; noise is
            independent and two-sided geometric, with one scale for each table.
Why         Along an edge a table changes only if one of its attributes does: one cell falls and one rises, which costs
            2 over its scale; whoever enters or leaves the count changes one cell of every table. An edge of a shape
            changes no attribute that the shape keeps. So the sums below bound the loss of every edge, and the rates
            (1 / scale) are such that the largest of them is epsilon exactly. Of up to m rows of a person each changes
            the tables by so much, one after the other: m times the sum. A table that no edge changes is exact.
Reference   Least total variance under linear constraints on the rates (`plan/measure/grid_search.py`).
Checked by  tests/property/test_weighted_tables.py, tests/property/test_rows_of_people.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tacit.arrays import Ints
from tacit.errors import PlanError
from tacit.noise.law import Law
from tacit.noise.two_scale import GroupedNoise
from tacit.plan.error_laws import agreed_variance
from tacit.plan.measure.grid_search import least_rates, scales_of
from tacit.plan.plans.linear import LinearPlan, plan_linear
from tacit.plan.sensitivity.steps import couples_people, largest_step
from tacit.policy.policy import Policy

if TYPE_CHECKING:
    from tacit.plan.questions.counts import Marginals

STRATEGY: Final = "with its own noise for each table"
WORTH_IT: Final = 0.98  # of the variance with one noise for all: less gain is not worth several scales


@dataclass(frozen=True)
class TablesPlan(LinearPlan):
    """How several tables are answered, each with its own noise; a table without a scale is exact.

    `changes` has a row for each kind of edge: by how much the cells of each table change at most, all together.
    """

    noise: GroupedNoise
    changes: tuple[tuple[int, ...], ...] = field(kw_only=True, repr=False)
    same_noise: LinearPlan = field(kw_only=True, repr=False)  # the other way

    def laws(self) -> list[tuple[Law, Any]]:
        ends = np.cumsum(self.noise.sizes)
        return [
            (self.noise.law_of(table), slice(int(end) - size, int(end)))
            for table, (size, end) in enumerate(zip(self.noise.sizes, ends, strict=True))
        ]

    @property
    def variance(self) -> float:
        """The expected variance of one cell, averaged over all cells: exact totals take their share of each table."""
        agreed = agreed_variance(self)
        if agreed is not None:
            return agreed
        sizes = self.noise.sizes
        left = np.subtract(sizes, _exact_totals(self.groups, sizes))
        return float(np.dot(left, self.noise.variances()) / sum(self.noise.sizes))

    @property
    def tried(self) -> dict[str, float]:
        other = replace(self.same_noise, consistent=self.consistent)
        return {self.strategy: self.variance, "with the same noise for all tables": other.variance}

    def proven_loss(self, *, backward: bool = False) -> Fraction | float:
        """Return the loss of the worst edge; it is the same in both directions, since the noise is even."""
        return max(self.noise.loss_of(row) for row in self.changes)


def plan_tables(query: Marginals, policy: Policy, epsilon: Fraction) -> LinearPlan:
    """Return the plan with the smallest expected error for several checked tables."""
    plain = plan_linear(query, policy, epsilon)
    if plain.noise is None or (policy.per_person > 1 and not query.counts_rows):
        return plain
    if query.is_items(policy.domain) or couples_people(policy):
        return plain
    changes = table_changes(query, policy)
    if max(map(sum, changes), default=0) < plain.step.l1:
        return plain  # steps know of a change that shapes do not show: only they are believed
    sizes, groups = query.sizes(policy.domain), query.exact_groups(policy)
    left = [float(max(size - exact, 1)) for size, exact in zip(sizes, _exact_totals(groups, sizes), strict=True)]
    try:
        scales = scales_for(changes, left, epsilon)
    except PlanError:
        return plain  # some table would need more noise than can be drawn
    noise = GroupedNoise(tuple(sizes), tuple(scales))
    why = "tables of many cells have less noise: the mean squared error over all cells is least"
    made = partial(TablesPlan, query, policy, epsilon, plain.step, why, query, noise, plain.answers)
    own = made(strategy=STRATEGY, changes=tuple(changes), same_noise=plain)
    return own if own.variance < WORTH_IT * plain.variance else plain


def _exact_totals(groups: Sequence[Ints] | None, sizes: Sequence[int]) -> list[int]:
    """Return how many exact totals each table has: least squares leaves the error of so many cells fewer."""
    return [0] * len(sizes) if groups is None else [int(group.max()) + 1 for group in groups]


def table_changes(query: Marginals, policy: Policy) -> list[tuple[int, ...]]:
    """Return by how much the cells of each table change at most along the edges of each shape; none covers another."""
    from tacit.plan.questions.counts import Count

    found: set[tuple[int, ...]] = set()
    for shape in policy.shapes:
        moved = {
            name
            for names in query.sets
            for name in names
            for axis in policy.domain.axes_of(name)
            if axis.size > 1 and shape.relation(axis).can_move
        }
        found.add(tuple(2 * bool(moved.intersection(names)) for names in query.sets))
    if largest_step(Count(query.where), policy).l1 > 0:
        found.add((1,) * len(query.sets))
    found.discard((0,) * len(query.sets))
    found = {tuple(policy.per_person * change for change in row) for row in found}
    return [row for row in sorted(found) if not any(row != other and np.all(np.array(other) >= row) for other in found)]


def scales_for(changes: Sequence[tuple[int, ...]], weights: Sequence[float], epsilon: Fraction) -> list[Fraction]:
    """Return the scales of least weighted variance under which no row of changes costs more than epsilon; 0: exact.

    >>> [float(scale) for scale in scales_for([(2, 2)], [1.0, 8.0], Fraction(1, 100))]
    [600.0, 300.0]
    """
    rows = np.array(changes, dtype=np.float64)
    touched = rows.sum(axis=0) > 0
    rates = np.zeros(len(touched))
    rates[touched] = least_rates(np.asarray(weights)[touched], rows[:, touched], float(epsilon))
    return scales_of(rates, changes, epsilon)

"""How far people move on a grid along secret edges, and into which regions an exact number of people falls.

Guarantee   For every edge of the policy, a person who is counted before and after moves by at most `pairs` (along x and
            along y, one of these pairs bounds both), within one region; only with `may_enter_or_leave`
            may an edge change whether somebody is counted. No edge changes the number of people in a region.
Assumes     One row for each person. Where knowledge couples people, `coupled` bounds the sum of all changes of the
            counts of cells, and nothing else is said about moves.
Why         An edge belongs to a shape. Without a shared distance the two axes move independently, each by at most the
            largest difference of its relation; with one, a move along x leaves the rest of the distance to y. Regions
            are products of stretches between exact running counts (`plan/sensitivity/exact_totals.py`).
Reference   Blowfish privacy (distance thresholds and partitions).
Checked by  tests/property/test_grids.py
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.arrays import Ints
from tacit.plan.questions.count import Count
from tacit.plan.questions.marginals import Marginals
from tacit.plan.sensitivity.coupling import couples_people
from tacit.plan.sensitivity.steps import LargestStep, largest_step
from tacit.policy.attributes.attribute import Axis
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.shapes import EdgeShape
from tacit.policy.policy import Policy
from tacit.policy.where import Where

Pair = tuple[int, int]


@dataclass(frozen=True)
class GridMoves:
    """Moves on a grid. `segments` are the lengths of stretches along x and y whose products have exact totals."""

    segments: tuple[tuple[int, ...], tuple[int, ...]]
    pairs: tuple[Pair, ...]
    may_enter_or_leave: bool
    has_totals: bool
    coupled: int | None = None

    @property
    def sizes(self) -> Pair:
        """How many positions there are along x and along y."""
        return sum(self.segments[0]), sum(self.segments[1])

    @property
    def shapes(self) -> list[Pair]:
        """The different sizes of regions."""
        return [(wide, high) for wide in sorted(set(self.segments[0])) for high in sorted(set(self.segments[1]))]

    def within(self, shape: Pair) -> list[Pair]:
        """Return how far people move in a region of this size; no pair is below another."""
        clipped = {(min(dx, shape[0] - 1), min(dy, shape[1] - 1)) for dx, dy in self.pairs} - {(0, 0)}
        return [a for a in sorted(clipped) if not any(b != a and b[0] >= a[0] and b[1] >= a[1] for b in clipped)]


def grid_moves(names: tuple[str, ...], where: Where | None, policy: Policy) -> tuple[GridMoves, LargestStep]:
    """Return how people move on the grid of these attributes, and the largest step of the counts of its cells."""
    cells = Marginals((names,), where)
    step = largest_step(cells, policy)
    x, y = (axis for name in names for axis in policy.domain.axes_of(name))
    groups = cells.exact_groups(policy)
    segments = ((x.size,), (y.size,)) if groups is None else _segments(groups[0].reshape(x.size, y.size))
    if couples_people(policy):
        return GridMoves(segments, (), may_enter_or_leave=False, has_totals=groups is not None, coupled=step.l1), step
    pairs = frozenset(pair for shape in policy.shapes for pair in _pairs(shape, x, y))
    may_enter_or_leave = largest_step(Count(where), policy).l1 > 0
    found = GridMoves(segments, _outermost(pairs), may_enter_or_leave=may_enter_or_leave, has_totals=groups is not None)
    # what is derived here must cover what steps say of the cells; else nothing but the cells is measured
    most = max(2 * bool(found.pairs), int(may_enter_or_leave))
    return (
        found if most >= step.l1 else GridMoves(segments, (), may_enter_or_leave, groups is not None, step.l1)
    ), step


def _segments(groups: Ints) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the stretches along both axes that no group of cells reaches out of."""
    many = int(groups[0].max()) + 1  # groups are numbered row by row: label of x times this, plus label of y
    return _stretches(groups[:, 0] // many), _stretches(groups[0] % many)


def _stretches(labels: Ints) -> tuple[int, ...]:
    """Return the lengths of the shortest stretches such that no label is in two of them."""
    last = np.zeros(int(labels.max()) + 1, dtype=np.int64)
    np.maximum.at(last, labels, np.arange(len(labels)))
    ends = np.flatnonzero(np.maximum.accumulate(last[labels]) == np.arange(len(labels)))
    return tuple(int(length) for length in np.diff(ends, prepend=-1))


def _pairs(shape: EdgeShape, x: Axis, y: Axis) -> list[Pair]:
    """Return the farthest moves along the edges of one shape."""
    relations, full = [shape.relation(axis) for axis in (x, y)], [Intervals.full(axis.size) for axis in (x, y)]
    farthest = [relation.farthest(whole, whole) for relation, whole in zip(relations, full, strict=True)]
    if shape.metric is None or not all(relation.shares_distance for relation in relations):
        return [(farthest[0], farthest[1])]
    found = []
    for dx in range(farthest[0] + 1):
        left = shape.metric.steps_left([Fraction(dx * x.spacing)], y.spacing)
        if left >= 0:
            found.append((dx, min(left, farthest[1])))
    return found


def _outermost(pairs: frozenset[Pair]) -> tuple[Pair, ...]:
    """Keep the pairs that no other one covers."""
    kept: list[Pair] = []
    for dx, dy in sorted(pairs, reverse=True):
        if (dx, dy) != (0, 0) and (not kept or dy > kept[-1][1]):
            kept.append((dx, dy))
    return tuple(reversed(kept))

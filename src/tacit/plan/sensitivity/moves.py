"""How far people move on a line and on a grid along secret edges, and which regions hold an exact number of people.

Guarantee   Line: for every secret edge hidden -> cover, whoever is counted before and after changes at most `reach`
            running counts, all within one segment and none of them the last of it. Grid: such a person moves by at most
            `pairs` (one of these pairs bounds the moves along x and along y), within one region. Only with
            `may_enter_or_leave` may an edge change whether somebody is counted; on a line no running count is exact
            then, and there is one segment. No edge changes the number of people in a region.
Assumes     One row for each person. On a line, public knowledge that couples nobody; on a grid, where it couples
            people, `coupled` bounds the sum of all changes of the counts of cells, and nothing else is said.
Why         A move from position u to v changes the running counts from the lower of both up to the one before the
            higher, |u - v| of them. The step calculus (`plan/sensitivity/steps.py`) finds the largest such move over
            all edges, and whether some edge changes who is counted. No edge crosses an exact running count
            (`plan/sensitivity/exact_totals.py`), and regions are products of stretches between these.
            An edge belongs to a shape. Without a shared distance the two axes move independently, each by at most the
            largest difference of its relation; with one, a move along x leaves the rest of the distance to y.
Reference   Blowfish privacy (distance thresholds and partitions; section 7, the ordered mechanism), for every family.
Checked by  tests/property/test_line_moves.py, tests/property/test_grids.py
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.arrays import Ints
from tacit.plan.questions.counts import Count, Marginals
from tacit.plan.sensitivity.coupling import couples_people
from tacit.plan.sensitivity.exact_totals import exact_cumulative
from tacit.plan.sensitivity.responses import Jump, PlacedResponse, RecordMove, Response, running_counts_moved
from tacit.plan.sensitivity.steps import LargestStep, free_step, largest_step
from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain
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


@dataclass(frozen=True)
class LineMoves:
    """How far people move on a line, and whether they may enter or leave the count.

    `segments` are the lengths of the stretches of values between exact running counts: the count at the end of each is
    exact, unless people may enter or leave. `reach` says how many running counts the longest move changes.
    """

    segments: tuple[int, ...]
    reach: int
    may_enter_or_leave: bool

    @property
    def values(self) -> int:
        """How many values the line has."""
        return sum(self.segments)

    @property
    def grid(self) -> GridMoves:
        """The same moves on the grid of one row that the line is."""
        far = min(self.reach, max(self.segments) - 1)
        pairs = ((far, 0),) if far else ()
        return GridMoves(
            (self.segments, (1,)),
            pairs,
            may_enter_or_leave=self.may_enter_or_leave,
            has_totals=not self.may_enter_or_leave,
        )


def line_moves(name: str, where: Where | None, policy: Policy) -> LineMoves | None:
    """Return how people move on the line of an attribute; None where knowledge couples people, or rows a person.

    >>> from tacit.policy.attributes import Integers
    >>> from tacit.policy.secrets import partition, within
    >>> domain = Domain({"age": Integers(0, 9)})
    >>> line_moves("age", None, Policy(domain, within(3, "age")))
    LineMoves(segments=(10,), reach=3, may_enter_or_leave=False)
    >>> line_moves("age", None, Policy(domain, partition("age", width=4)))
    LineMoves(segments=(4, 4, 2), reach=3, may_enter_or_leave=False)
    """
    if policy.per_person > 1 or couples_people(policy):
        return None
    line = policy.domain.axes_of(name)[0]
    may_enter_or_leave = free_step(_Watching(where, _WhetherCounted(line=line)), policy).l1 > 0
    reach = free_step(_Watching(where, _Moved(line=line)), policy).l1
    exact = None if may_enter_or_leave else exact_cumulative(name, where, policy)
    ends = np.array([line.size - 1]) if exact is None else np.flatnonzero(exact)
    return LineMoves(tuple(np.diff(ends, prepend=-1).tolist()), reach, may_enter_or_leave)


@dataclass(frozen=True)
class _Watching:
    """One way to look at people whom a predicate picks."""

    where: Where | None
    seen: Response

    def response(self, domain: Domain) -> Response:
        return self.seen

    def unit(self, domain: Domain) -> Fraction:
        return Fraction(1)


class _Moved(PlacedResponse):
    """The running counts that a move changes; who enters or leaves is not looked at."""

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        return running_counts_moved(move)

    def counted_at(self, places: Intervals) -> Iterable[Jump]:
        return []


class _WhetherCounted(PlacedResponse):
    """Whether somebody is counted at all; where is not looked at."""

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        return []

    def counted_at(self, places: Intervals) -> Iterable[Jump]:
        return [Jump.by_ones(rise=1, fall=0)]

"""What secret edges leave as it is, and how far they move people on lines and grids.

A release may use exact totals as they are. Along an edge a person's position on each axis moves only within the axis'
*label*: all positions that edges connect. The combination of labels never changes, so the number of people with each
combination is public under the policy. With presence public and nothing else fixed there is one label everywhere: the
total number of people. Where only some people have a secret, cells at which no edge starts or ends are exact by
themselves. With knowledge that couples people, other people may move anywhere; then exactly what is known stays exact.

Under one-directional policies most cells move one way only: if `hiv` must look like any other disease, the count of
`hiv` only falls and all others only rise. Each cell then needs noise on one side only. `directions` errs on the side of
"can move": a cell that it calls fixed in a direction never moves that way.

Guarantee   Line: for every secret edge hidden -> cover, whoever is counted before and after changes at most `reach`
            running counts, all within one segment and none of them the last of it. Grid: such a person moves by at most
            `pairs` (one of these pairs bounds the moves along x and along y), within one region. Only with
            `may_enter_or_leave` may an edge change whether somebody is counted; on a line no running count is exact
            then, and there is one segment. No edge changes the number of people in a region.
Assumes     One row for each person. On a line, public knowledge that couples nobody; on a grid, where it couples
            people, `coupled` bounds the sum of all changes of the counts of cells, and nothing else is said.
Why         A move from position u to v changes the running counts from the lower of both up to the one before the
            higher, |u - v| of them. The step calculus (`plan/sensitivity/steps.py`) finds the largest such move over
            all edges, and whether some edge changes who is counted. No edge crosses an exact running count,
            and regions are products of stretches between these.
            An edge belongs to a shape. Without a shared distance the two axes move independently, each by at most the
            largest difference of its relation; with one, a move along x leaves the rest of the distance to y.
Reference   Blowfish privacy (distance thresholds and partitions; section 7, the ordered mechanism), for every family.
Checked by  tests/property/test_totals.py, tests/property/test_line_moves.py, tests/property/test_grids.py
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.arrays import Bools, Ints
from tacit.plan.sensitivity.responses import (
    CellTables,
    Jump,
    PlacedResponse,
    RecordMove,
    Response,
    everybody,
    running_counts_moved,
)
from tacit.plan.sensitivity.steps import LargestStep, couples_people, free_step, outermost, shape_jumps, step_of_one_row
from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.shapes import EdgeShape, axes_of, projected
from tacit.policy.policy import Policy
from tacit.policy.where import Test, Where

LARGEST: Final = 5_000_000  # cells; beyond this the planning would take longer than it saves
Pair = tuple[int, int]


# ---- what no secret edge changes -------------------------------------------------------------------------------------


def changes_who_counts(where: Where | None, policy: Policy) -> bool:
    """Say whether a secret edge may change whether somebody is in the data and picked by a predicate."""
    return free_step(everybody(where), policy).l1 > 0


def _may_change_who_counts(where: Where | None, policy: Policy) -> bool:
    """Say the same, also where others may have to make up for what somebody changes."""
    if policy.absences or where is None:
        return bool(policy.absences)
    return couples_people(policy) or changes_who_counts(where, policy)


def directions(query: CellTables, policy: Policy) -> tuple[Bools, Bools] | None:
    """Return which cells can fall and which can rise, or None where all can do both (or nobody looked)."""
    domain = policy.domain
    if query.is_items(domain) or query.size(domain) > LARGEST:
        return None
    if couples_people(policy):
        return None  # others move as well, and anywhere
    test = query.where.compile(domain) if query.where is not None else None
    falls, rises = [], []
    for names in query.sets:
        axes = [axis for name in names for axis in domain.axes_of(name)]
        places = dict(zip((a.name for a in axes), _grid([a.size for a in axes]), strict=True))
        inside = _possible(test, None, None, places, axes)
        fall, rise = np.zeros_like(inside), np.zeros_like(inside)
        for absence in policy.absences:
            fall |= _possible(test, absence.only_from, None, places, axes)
            rise |= inside & absence.joins
        for shape in policy.shapes:
            more_fall, more_rise = _by_shape(query, policy, shape, test, places, axes, inside)
            fall |= more_fall
            rise |= more_rise
        falls.append(fall)
        rises.append(rise)
    fall, rise = np.concatenate(falls), np.concatenate(rises)
    return None if (fall & rise).all() else (fall, rise)


def _by_shape(
    query: CellTables,
    policy: Policy,
    shape: EdgeShape,
    test: Test | None,
    places: dict[str, Ints],
    axes: Sequence[Axis],
    inside: Bools,
) -> tuple[Bools, Bools]:
    picked_changes = query.where is not None and any(
        True for _ in shape_jumps(everybody(query.where), policy.domain, shape)
    )
    start, end = np.ones(inside.shape, dtype=np.bool_), np.ones(inside.shape, dtype=np.bool_)
    leave, arrive = np.zeros(inside.shape, dtype=np.bool_), np.zeros(inside.shape, dtype=np.bool_)
    for axis in axes:
        relation = shape.relation(axis)
        may_start, may_end, may_leave, may_arrive = relation.sides(axis.size)
        if shape.only_from is not None:
            reached = relation.targets(projected(shape.only_from, axis)).marks(np.arange(axis.size, dtype=np.int64))
            may_end, may_arrive = may_end & reached, may_arrive & reached
        at = places[axis.name]
        start, end = start & may_start[at], end & may_end[at]
        leave, arrive = leave | may_leave[at], arrive | may_arrive[at]
    hidden = start & _possible(test, shape.only_from, shape, places, axes)
    sources = start & _possible(None, shape.only_from, shape, places, axes)
    fall = hidden & (leave | picked_changes)
    rise = end & inside & (arrive | picked_changes)
    if not picked_changes and sources.sum() == 1:
        rise &= ~sources  # the only cell that people can move away from is not one that they move to
    return fall, rise


def _possible(
    test: Test | None, condition: Test | None, shape: EdgeShape | None, places: dict[str, Ints], axes: Sequence[Axis]
) -> Bools:
    """Return for each cell whether some record in it satisfies both predicates (and may be an edge's hidden end)."""
    elsewhere = {n: found for n, found in axes_of([test, condition]).items() if n not in places}
    shape_of = next(iter(places.values())).shape
    found = np.zeros(shape_of, dtype=np.bool_)
    for combination in product(*(parts for _, parts in elsewhere.values())):
        chosen = dict(zip(elsewhere, combination, strict=True))
        if shape is not None and not all(
            shape.relation(elsewhere[name][0]).sources(Intervals.full(elsewhere[name][0].size)) & part
            for name, part in chosen.items()
            if elsewhere[name][0].item is None  # a set of items may hold any item before it moves
        ):
            continue
        here: Any = np.ones(shape_of, dtype=np.bool_)
        for predicate in (test, condition):
            if predicate is not None:
                here = here & predicate.holds(
                    lambda axis, positions, chosen=chosen: (  # type: ignore[misc]
                        positions.marks(places[axis.name])
                        if axis.name in places
                        else np.bool_(chosen[axis.name].lowest in positions)
                    ),
                    np.logical_not,
                )
        found |= here
    return found


def _grid(sizes: list[int]) -> list[Ints]:
    """Return the position on each axis for every cell, in the order of the answers."""
    return [part.reshape(-1).astype(np.int64) for part in np.indices(sizes)]


def axis_labels(policy: Policy, axis: Axis) -> Ints:
    """Return a label for each position such that no secret edge leads from one label to another."""
    labels = np.arange(axis.size, dtype=np.int64)
    for shape in policy.shapes:
        starts = None
        if shape.only_from is not None:
            starts = projected(shape.only_from, axis)
            if starts == Intervals.full(axis.size):
                starts = None
        shape.relation(axis).join(labels, starts)
    if not labels.any():
        return labels
    # without gaps, in the same order; labels are positions, so that nothing need be sorted
    there = np.zeros(len(labels), dtype=np.bool_)
    there[labels] = True
    return (np.cumsum(there) - 1)[labels].astype(np.int64)


def exact_groups(query: CellTables, policy: Policy) -> list[Ints] | None:
    """Return for each histogram a label per cell such that the sums over equal labels are exact; None if there is none.

    Sums are exact because no edge of the policy changes them. A restriction by `where` keeps this only if no edge
    changes whether somebody is picked. Labels are products: those of the first axis, within each those of the second,
    and so on.
    """
    if query.is_items(policy.domain) or _may_change_who_counts(query.where, policy):
        return None
    coupled = couples_people(policy)
    found = []
    for names in query.sets:
        known = _known_exactly(policy, names) if coupled else []
        groups = np.zeros(1, dtype=np.int64)
        for axis in (axis for name in names for axis in policy.domain.axes_of(name)):
            if not coupled:
                labels = axis_labels(policy, axis)
            elif axis.attribute in known:
                labels = np.arange(axis.size, dtype=np.int64)
            else:
                labels = np.zeros(axis.size, dtype=np.int64)
            # cells are written row by row: each of those so far becomes a run of cells
            many = int(labels.max()) + 1
            if many > 1:
                groups = np.add.outer(groups * many, labels).reshape(-1)
            else:
                groups = np.repeat(groups, axis.size) if groups.any() else np.zeros(len(groups) * axis.size, np.int64)
        found.append(groups)  # every combination of labels occurs, so the numbers have no gaps
    return found


def finest_groups(query: CellTables, policy: Policy) -> list[Ints] | None:
    """Return groups as `exact_groups` does, with cells that no edge changes alone: then no product of the axes' labels.

    >>> from tacit.policy.attributes import Flag, Integers
    >>> from tacit.policy.domain import Domain
    >>> from tacit.policy.secrets import within
    >>> domain = Domain({"age": Integers(0, 2), "ill": Flag()})
    >>> policy = Policy(domain, within(1, "age", where="ill == True"))
    >>> [groups(CellTables((("ill", "age"),)), policy)[0].tolist() for groups in (exact_groups, finest_groups)]
    [[0, 0, 0, 1, 1, 1], [0, 1, 2, 3, 3, 3]]
    """
    groups = exact_groups(query, policy)
    if groups is None or couples_people(policy):
        return groups
    return [
        _apart(group, CellTables((names,), query.where), policy)
        for names, group in zip(query.sets, groups, strict=True)
    ]


def _apart(groups: Ints, query: CellTables, policy: Policy) -> Ints:
    """Give cells that no edge changes labels of their own: where secrets are of some people, those of the others."""
    axes = [axis for names in query.sets for name in names for axis in policy.domain.axes_of(name)]
    if len(axes) < 2 or all(shape.only_from is None for shape in policy.shapes):
        return groups  # the labels of one axis say it already
    sides = directions(query, policy)
    if sides is None or (still := ~(sides[0] | sides[1])).sum() == 0:
        return groups
    own = np.where(still, int(groups.max()) + 1 + np.arange(len(groups)), groups)
    _, first, labels = np.unique(own, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))  # in the order of the cells, so that groups may stay unbroken
    return rank[labels].astype(np.int64)


def exact_cumulative(name: str, where: Where | None, policy: Policy) -> npt.NDArray[np.bool_] | None:
    """Return which cumulative counts no secret edge changes (with presence public, at least the last one).

    None where there is none, as where some edge changes whether `where` picks somebody.
    """
    if _may_change_who_counts(where, policy):
        return None
    axis = policy.domain.axes_of(name)[0]
    labels = np.zeros(axis.size, dtype=np.int64) if couples_people(policy) else axis_labels(policy, axis)
    # a count is exact if every label lies entirely at or below it, or entirely above it
    return _are_ends(labels)


def _are_ends(labels: Ints) -> Bools:
    """Return behind which positions no label of a position up to there is met again: always the last one."""
    if not labels.any():  # one label: people may move from end to end
        return np.asarray(np.arange(len(labels)) == len(labels) - 1)
    last = np.zeros(int(labels.max()) + 1, dtype=np.int64)
    np.maximum.at(last, labels, np.arange(len(labels)))
    return np.asarray(np.maximum.accumulate(last[labels]) == np.arange(len(labels)))


def _known_exactly(policy: Policy, names: Sequence[str]) -> list[str]:
    """Return the largest set of this histogram's attributes whose histogram is known."""
    known = [fact.histogram for fact in policy.known if set(fact.histogram) <= set(names)]
    return list(sorted(known, key=len)[-1] if known else ())


def exact_attributes(policy: Policy, names: Sequence[str]) -> tuple[str, ...]:
    """Return the attributes of a histogram that no edge changes, so that their own histogram is exact."""
    if couples_people(policy):
        return tuple(_known_exactly(policy, names))
    return tuple(
        name
        for name in names
        if all(len(np.unique(axis_labels(policy, axis))) == axis.size for axis in policy.domain.axes_of(name))
    )


# ---- moves on grids and lines ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GridMoves:
    """Moves on a grid. `segments` are the lengths of stretches along x and y whose products have exact totals."""

    segments: tuple[tuple[int, ...], tuple[int, ...]]
    pairs: tuple[Pair, ...]
    may_enter_or_leave: bool
    has_totals: bool
    coupled: int | None = None

    @classmethod
    def on_line(cls, segments: tuple[int, ...], reach: int, *, may_enter_or_leave: bool) -> GridMoves:
        """Return moves that change up to `reach` running counts of a line, which is a grid of one row.

        The running counts at the ends of segments are exact, unless people may enter or leave.
        """
        far = min(reach, max(segments) - 1)
        pairs = ((far, 0),) if far else ()
        return cls((segments, (1,)), pairs, may_enter_or_leave, has_totals=not may_enter_or_leave)

    @property
    def reach(self) -> int:
        """How far people move along x."""
        return max((dx for dx, _ in self.pairs), default=0)

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
        clipped = ((min(dx, shape[0] - 1), min(dy, shape[1] - 1)) for dx, dy in self.pairs)
        return list(outermost(clipped)[::-1])


def grid_moves(names: tuple[str, ...], where: Where | None, policy: Policy) -> tuple[GridMoves, LargestStep]:
    """Return how people move on the grid of these attributes, and the largest step of the counts of its cells."""
    cells = CellTables((names,), where)
    step = step_of_one_row(cells, policy)
    x, y = (axis for name in names for axis in policy.domain.axes_of(name))
    groups = exact_groups(cells, policy)
    segments = ((x.size,), (y.size,)) if groups is None else _segments(groups[0].reshape(x.size, y.size))
    if couples_people(policy):
        return GridMoves(segments, (), may_enter_or_leave=False, has_totals=groups is not None, coupled=step.l1), step
    pairs = outermost(pair for shape in policy.shapes for pair in _pairs(shape, x, y))[::-1]
    may_enter_or_leave = changes_who_counts(where, policy)
    found = GridMoves(segments, pairs, may_enter_or_leave=may_enter_or_leave, has_totals=groups is not None)
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
    return tuple(np.diff(np.flatnonzero(_are_ends(labels)), prepend=-1).tolist())


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


def line_moves(name: str, where: Where | None, policy: Policy) -> GridMoves | None:
    """Return how people move on the line of an attribute; None where knowledge couples people, or rows a person.

    >>> from tacit.policy.attributes import Integers
    >>> from tacit.policy.secrets import partition, within
    >>> domain = Domain({"age": Integers(0, 9)})
    >>> moves = line_moves("age", None, Policy(domain, within(3, "age")))
    >>> moves.segments[0], moves.reach
    ((10,), 3)
    >>> moves = line_moves("age", None, Policy(domain, partition("age", width=4)))
    >>> moves.segments[0], moves.reach
    ((4, 4, 2), 3)
    """
    if policy.per_person > 1 or couples_people(policy):
        return None
    line = policy.domain.axes_of(name)[0]
    may_enter_or_leave = changes_who_counts(where, policy)
    reach = free_step(_OnLine(((name,),), where), policy).l1
    exact = None if may_enter_or_leave else exact_cumulative(name, where, policy)
    ends = np.array([line.size - 1]) if exact is None else np.flatnonzero(exact)
    return GridMoves.on_line(tuple(np.diff(ends, prepend=-1).tolist()), reach, may_enter_or_leave=may_enter_or_leave)


@dataclass(frozen=True)
class _OnLine(CellTables):
    """The cells of one line, of which its running counts are looked at."""

    def response(self, domain: Domain) -> Response:
        return _Moved(line=domain.axes_of(self.sets[0][0])[0])


class _Moved(PlacedResponse):
    """The running counts that a move changes; who enters or leaves is not looked at."""

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        return running_counts_moved(move)

    def counted_at(self, places: Intervals) -> Iterable[Jump]:
        return []

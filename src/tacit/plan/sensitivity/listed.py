"""How the counts of a list of predicates move along secret edges: all of them together, in one direction or in both.

Guarantee   What `listed_moves` and `listed_presence` yield bounds what every edge does to all counts of the list. It is
            what edges do exactly, except for the jumps that are called bounds.
Assumes     Each number counts the people whom one predicate of the list picks.
Why         Predicates see of an axis only in which of their classes a position lies. A cell is one class for each axis
            that some predicate mentions; it tells what a person adds to the list. An edge leads from cell i to cell j
            iff each axis may move from its class to the other, all of them within what a shared distance leaves:
            the least distance between two classes is the gap between them. It lowers the counts that i has and j has
            not, |i| - |i and j| of them, and raises |j| - |i and j|; so one product of the table of cells with itself
            has the jumps of all edges.
            Where there are too many pairs of cells, each predicate is looked at by itself: an edge lowers at most those
            that some edge lowers, and no more than hold at once in some cell; rises likewise; and none does both.
Checked by  tests/property/test_listed.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tacit.arrays import Bools, Ints
from tacit.plan.sensitivity.responses import Jump, Watched, everybody
from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.shapes import Absence, EdgeShape, axes_of, cells
from tacit.policy.where import Test

if TYPE_CHECKING:
    from tacit.plan.sensitivity.steps import Restriction

MOST_PAIRED: Final = 4096  # cells, all pairs of which are looked at
MOST_CELLS: Final = 2**17  # cells that are gone through one by one
MOST_ENTRIES: Final = 2**27  # of a table of cells and predicates
MOST_AXES: Final = 16
MOST_DISTANCES: Final = 100_000  # combinations of distances on all axes but one
_ROWS: Final = 256  # of cells whose pairs are looked at together
_NEVER: Final = 2**62
Split: TypeAlias = dict[str, tuple[Axis, list[Intervals]]]


@dataclass(frozen=True, eq=False)
class CellTable:
    """The cells that some predicates tell apart, row by row, and which predicates hold in each."""

    split: Split

    @property
    def size(self) -> int:
        """How many cells there are."""
        return math.prod(len(parts) for _, parts in self.split.values())

    def holds(self, tests: Sequence[Test | None]) -> Bools:
        """Return for each cell (row) which of these predicates (columns) hold there; no predicate always does."""
        shape, names = [len(parts) for _, parts in self.split.values()], list(self.split)
        seen: dict[tuple[str, Intervals], Bools] = {}

        def at(axis: Axis, found: Intervals) -> Bools:
            marks = seen.get((axis.name, found))
            if marks is None:
                along = [1] * len(shape)
                along[names.index(axis.name)] = -1
                marks = np.array([part.lowest in found for part in self.split[axis.name][1]]).reshape(along)
                seen[axis.name, found] = marks
            return marks

        table = np.ones((self.size, len(tests)), dtype=np.bool_)
        for number, test in enumerate(tests):
            if test is not None:
                table[:, number] = np.broadcast_to(test.holds(at, np.logical_not), shape).reshape(-1)
        return table

    def possible(self, domain: Domain) -> Bools:
        """Say which cells a record may be in: nobody has more items than a set may hold."""
        found = np.ones(self.size, dtype=np.bool_)
        for name in domain:
            if domain[name].is_set:
                items = [axis for axis, _ in self.split.values() if axis.attribute == name]
                has = self.holds([Test.atom(axis, Intervals.points([1])) for axis in items])
                found &= has.sum(axis=1) <= domain[name].most_items
        return found

    def paired(self, shape: EdgeShape) -> Bools | None:
        """Say which cells (rows) edges of a shape may lead from to which others (columns); None if it takes too long.

        Of the cells' axes alone: what else must hold at an end is not looked at.
        """
        if self.size > MOST_PAIRED or len(self.split) > MOST_AXES:
            return None
        axes, many = list(self.split.values()), len(self.split)
        allowed: Bools = np.ones([1] * (2 * many), dtype=np.bool_)
        shared: list[tuple[npt.NDArray[np.int64], Axis]] = []
        for place, (axis, parts) in enumerate(axes):
            along = [1] * (2 * many)
            along[place] = along[many + place] = len(parts)
            relation = shape.relation(axis)
            runs = [run for part in parts for run in part]
            ends = np.array(runs, dtype=np.int64)
            starts = np.cumsum([0, *(len(part.parts) for part in parts[:-1])])
            rows = []
            for part in parts:  # hours of years have thousands of runs, and all pairs of them would fill the memory
                own = np.array(list(part), dtype=np.int64)
                gaps = np.maximum(0, np.maximum(own[:, None, 0] - ends[:, 1], ends[:, 0] - own[:, None, 1]))
                far = np.where(relation.meets(list(part), runs), gaps, _NEVER).min(axis=0)
                rows.append(np.minimum.reduceat(far, starts))
            least = np.stack(rows).reshape(along)
            allowed = allowed & (least < _NEVER)
            if shape.shares_distance(relation):
                shared.append((least, axis))
        if shape.metric is not None and shared:
            *others, (last, line) = shared
            values = [np.unique(least) for least, _ in others]
            if math.prod(map(len, values)) > MOST_DISTANCES:
                return None
            spent = product(*(_in_units(found, axis) for found, (_, axis) in zip(values, others, strict=True)))
            left = [min(shape.metric.steps_left(list(each), line.spacing), _NEVER - 1) for each in spent]
            at = tuple(np.searchsorted(found, least) for found, (least, _) in zip(values, others, strict=True))
            allowed = allowed & (last <= np.array(left, dtype=np.int64).reshape([len(found) for found in values])[at])
        sizes = [len(parts) for _, parts in axes]
        return np.asarray(np.broadcast_to(allowed, sizes * 2).reshape(self.size, self.size))


def _in_units(distances: Ints, axis: Axis) -> list[Fraction]:
    return [Fraction(int(distance) * axis.spacing) for distance in distances]


@dataclass(frozen=True, eq=False)
class _Listed:
    """A list of predicates, its cells, and which of them a record may be in and a restriction accepts."""

    query: Watched
    domain: Domain
    starts: Test | None
    only: Restriction

    @cached_property
    def tests(self) -> list[Test]:
        return [one.compile(self.domain) for one in self.query.listed]

    @cached_property
    def table(self) -> CellTable:
        split, cell = axes_of([*self.tests, self.starts, *self.only.tests]), self.only.cell
        return CellTable(
            {
                name: (axis, [part for part in parts if cell.get(name, part) == part])
                for name, (axis, parts) in split.items()
            }
        )

    @cached_property
    def picked(self) -> Bools | None:
        """Which predicates hold in each cell; None if there are too many cells."""
        if self.table.size > MOST_CELLS or self.table.size * len(self.tests) > MOST_ENTRIES:
            return None
        return self.table.holds(self.tests)

    @cached_property
    def ends(self) -> Bools:
        """The cells in which an edge may end."""
        accepted = np.fromiter(map(self.only.accepts, cells(self.table.split)), dtype=np.bool_, count=self.table.size)
        return np.asarray(accepted & self.table.possible(self.domain))

    @cached_property
    def begins(self) -> Bools:
        """The cells in which an edge may begin."""
        return np.asarray(self.ends & self.table.holds([self.starts])[:, 0])

    def one_by_one(self, jumps_of: Callable[[Watched], Iterator[Jump]]) -> Iterator[Jump]:
        """Bound the jumps of all predicates by those of each by itself."""
        most = len(self.query.listed)
        if self.picked is not None:
            most = int(self.picked.sum(axis=1).max())
        falls = rises = moves = 0
        for predicate in self.query.listed:
            found = list(jumps_of(everybody(predicate)))
            fall, rise = int(any(jump.fall for jump in found)), int(any(jump.rise for jump in found))
            falls, rises, moves = falls + fall, rises + rise, moves + (fall or rise)
        falls, rises = min(falls, most), min(rises, most)
        for fall, rise in {(falls, min(rises, moves - falls)), (min(falls, moves - rises), rises)} - {(0, 0)}:
            yield Jump.by_ones(rise=rise, fall=fall, bound=True)


def listed_moves(query: Watched, domain: Domain, shape: EdgeShape, only: Restriction) -> Iterator[Jump]:
    """Go through what the edges of one shape do to the counts of a list of predicates."""
    from tacit.plan.sensitivity.steps import shape_jumps

    listed = _Listed(query, domain, shape.only_from, only)
    pairs = listed.table.paired(shape)
    if pairs is None or listed.picked is None:
        yield from listed.one_by_one(lambda one: shape_jumps(one, domain, shape))
        return
    picked = listed.picked.astype(np.float32)  # sums of less than 2^24 ones are exact
    many, ends = picked.sum(axis=1), np.flatnonzero(listed.ends)
    most = np.full(picked.shape[1] + 1, -1, dtype=np.int64)  # for each number of falls, the most rises
    begins = np.flatnonzero(listed.begins)
    for start in range(0, len(begins), _ROWS):
        rows = begins[start : start + _ROWS]
        both, led = picked[rows] @ picked[ends].T, pairs[np.ix_(rows, ends)]
        falls, rises = (many[rows][:, None] - both)[led], (many[ends] - both)[led]
        np.maximum.at(most, falls.astype(np.int64), rises.astype(np.int64))
    for fall in np.flatnonzero(most >= 0).tolist():
        if fall or most[fall]:
            yield Jump.by_ones(rise=int(most[fall]), fall=fall)


def listed_presence(query: Watched, domain: Domain, absence: Absence, only: Restriction) -> Iterator[Jump]:
    """Go through what somebody's leaving or joining the data does to the counts of a list of predicates."""
    from tacit.plan.sensitivity.steps import presence_jumps

    listed = _Listed(query, domain, absence.only_from, only)
    if listed.picked is None:
        yield from listed.one_by_one(lambda one: presence_jumps(one, domain, absence))
        return
    many = listed.picked.sum(axis=1)
    if leaving := int(many[listed.begins].max(initial=0)):
        yield Jump.by_ones(rise=0, fall=leaving)
    if absence.joins and (joining := int(many[listed.ends].max(initial=0))):
        yield Jump.by_ones(rise=joining, fall=0)

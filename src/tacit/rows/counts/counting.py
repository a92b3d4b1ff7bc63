"""What tallies ask of rows, what one pass must count so that every tally can be made of it, and how it is counted.

What is no table of the domain is refused before a row is read. Tallies over few cells are sums of a joint table, which
is counted once for all of them: a need is such a table, or a tally that is too large for one. Where a person may be in
several cells, marginals are no sums of a joint table, and every tally is a need of its own.

A row's cell is the mixed-radix number of its positions. On a declared domain it is a perfect hash, so that counting is
one addition per row.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.arrays import Bools, Ints
from tacit.errors import PlanError
from tacit.plan.measure.measured import CellCounts, CellSums, Tally
from tacit.policy.attributes import Attribute
from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.where import Test
from tacit.rows.cells.encoder import Codes

_MOST_CELLS: Final = 2**31


def where_of(tally: Tally, domain: Domain) -> Test | None:
    """Return the test that picks the people of a tally, if there is one."""
    return None if tally.where is None else tally.where.compile(domain)


def asked_of(tally: CellCounts | CellSums, where: Test | None, domain: Domain) -> CompiledTally:
    """Return what a tally asks for, or refuse what is no table."""
    if isinstance(tally, CellSums) and domain.attribute(tally.name, key="total").unit is None:
        raise no_total(tally.name)
    names = tally.by if isinstance(tally, CellSums) else tally.names
    for name in names:
        domain.attribute(name, key="counts")
    if any(domain[name].is_set for name in names):
        raise no_cells(names)
    if math.prod(domain[name].size for name in names) > _MOST_CELLS:
        raise PlanError("must have at most 2^31 cells", key="histogram", given=list(names), fix="Ask for fewer.")
    return CompiledTally(names, where, tally.name if isinstance(tally, CellSums) else None)


def numbers_of(domain: Domain, name: str) -> tuple[int, int]:
    """Return the number at an attribute's first position, and how far one is from the next, in its unit."""
    return domain[name].number(0), domain[name].spacing


def items_of(domain: Domain, name: str) -> Attribute:
    """Return a set of items, or refuse what is none."""
    attribute = domain.attribute(name, key="item_counts")
    if not attribute.is_set:
        raise PlanError("must be a set of items", key="item_counts", given=name, fix="Ask for a histogram.")
    return attribute


def no_cells(names: tuple[str, ...]) -> PlanError:
    """Say that a set of items has no cells."""
    return PlanError("must not be a set of items", key="counts", given=list(names), fix="Ask for its item counts.")


def no_total(name: str) -> PlanError:
    """Say that an attribute has no numbers."""
    return PlanError("must be declared as integers or decimals", key="total", given=name, fix="Count it instead.")


JOINT: Final = 2**20  # cells of a table that is counted once instead of once for each of its marginals
_BINS: Final = 2**16  # cells up to which a batch is counted by itself and then added: no more than it has rows
MOST_BINS: Final = 2**27  # cells that are counted in memory here
HALF: Final = 2**31  # numbers are added up in two halves, so that no sum of 64 bits overflows


@dataclass(frozen=True)
class CompiledTally:
    """A tally with its predicate compiled: people in the cells of `names`, or the positions of `added` summed there."""

    names: tuple[str, ...]
    where: Test | None = None
    added: str | None = None

    def attributes(self, domain: Domain) -> frozenset[str]:
        """Return the attributes that are needed, those of the predicate included."""
        own = frozenset(self.names if self.added is None else (*self.names, self.added))
        if self.where is None:
            return own
        axes = {axis.name for axis, _ in self.where.atoms}
        return own | {name for name in domain for axis in domain.axes_of(name) if axis.name in axes}

    def is_about_cells(self, domain: Domain) -> bool:
        """Say whether the predicate asks for nothing but attributes with one position a row: for no item of a set."""
        if self.where is None:
            return True
        axes = {axis.name for name in domain for axis in domain.axes_of(name)}
        return all(axis.name in axes for axis, _ in self.where.atoms)


class CountedTallies:
    """The needs of some tallies, and each tally as a function of what was counted."""

    def __init__(
        self, asked: Sequence[CompiledTally], domain: Domain, *, joint_is_safe: bool, most: int = JOINT
    ) -> None:
        self._domain = domain
        self._sizes = {name: domain[name].size for name in domain}
        self.needs: list[CompiledTally] = []
        self._joints: list[frozenset[str]] = []  # attributes of the joint tables, which are the first needs
        self._from: list[tuple[bool, int]] = []  # of each tally: whether it comes from a joint table, and which need
        own: list[CompiledTally] = []
        whole = {one: self._cells(one.attributes(domain)) for one in asked}
        placed: dict[CompiledTally, tuple[bool, int]] = {}
        for one in sorted(whole, key=lambda one: whole[one], reverse=True):
            is_table = one.where is None and one.added is None
            if joint_is_safe and one.is_about_cells(domain) and (is_table or whole[one] <= most):
                placed[one] = (True, self._place(one.attributes(domain), most))
            else:
                placed[one] = (False, len(own))
                own.append(one)
        joints = [CompiledTally(tuple(name for name in domain if name in joint)) for joint in self._joints]
        self.needs = [*joints, *own]
        self._from = [(joint, at if joint else at + len(joints)) for joint, at in (placed[one] for one in asked)]
        self._asked = list(asked)

    def _cells(self, names: Iterable[str]) -> int:
        return math.prod(map(self._sizes.__getitem__, names))

    def _place(self, names: frozenset[str], most: int) -> int:
        """Put a tally into the first joint table that it does not make too large."""
        for number, joint in enumerate(self._joints):
            if names <= joint:
                return number
            if self._cells(joint | names) <= max(most, self._cells(joint)):
                self._joints[number] = joint | names
                return number
        self._joints.append(names)
        return len(self._joints) - 1

    def tallies(self, found: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Return each tally: counts in the order of its names, or sums of positions with their counts."""
        return [
            self._of_joint(one, found[at], self.needs[at].names) if joint else found[at]
            for one, (joint, at) in zip(self._asked, self._from, strict=True)
        ]

    def _of_joint(self, one: CompiledTally, table: Ints, names: tuple[str, ...]) -> npt.NDArray[Any]:
        if one.where is not None:
            table = np.where(self._picked(one.where, names), table, 0)
        if one.added is None:
            return _ordered(table, names, one.names)
        *_, size = sizes = [self._domain[name].size for name in (*one.names, one.added)]
        by_value = _ordered(table, names, (*one.names, one.added)).reshape(-1, size)
        sums = np.zeros((len(by_value), 2), dtype=object)
        sums[:, 0] = _dot(by_value, np.arange(size, dtype=np.int64))
        sums[:, 1] = by_value.sum(axis=1)
        return sums.reshape(*sizes[:-1], 2)

    def _picked(self, where: Test, names: tuple[str, ...]) -> Bools:
        """Say which cells of a joint table a predicate picks."""

        def codes(name: str) -> Ints:
            shape = [1] * len(names)
            shape[names.index(name)] = -1
            return np.arange(self._domain[name].size, dtype=np.int64).reshape(shape)

        return holds_at(where, self._domain, codes)


def on_axis(axis: Axis, domain: Domain, positions: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the positions on one axis of an attribute, which may have two, for positions of the attribute."""
    parts = domain.axes_of(axis.attribute)
    inner = math.prod(part.size for part in parts[[part.name for part in parts].index(axis.name) + 1 :])
    return positions if len(parts) == 1 else np.asarray(positions // inner % axis.size)


def holds_at(where: Test, domain: Domain, codes: Callable[[str], Any]) -> Bools:
    """Say for positions of attributes whether a predicate holds; the size of an attribute is in no set."""

    def holds(axis: Axis, wanted: Intervals) -> Bools:
        places = on_axis(axis, domain, np.asarray(codes(axis.attribute), dtype=np.int64))
        if axis.size > 2**16:
            return wanted.marks(places.reshape(-1)).reshape(places.shape)
        return np.asarray(wanted.marks(np.arange(axis.size + 1, dtype=np.int64))[places])

    return np.asarray(where.holds(holds, np.logical_not), dtype=np.bool_)


def _ordered(table: Ints, names: tuple[str, ...], wanted: tuple[str, ...]) -> Ints:
    """Return the marginal table of some attributes, with its axes in their order."""
    left = [name for name in names if name in wanted]
    others = tuple(place for place, name in enumerate(names) if name not in wanted)
    summed = np.asarray(table.sum(axis=others, dtype=np.int64)) if others else table
    # a copy also where nothing is summed: no two tallies share their numbers
    return np.array(summed.transpose([left.index(name) for name in wanted]), order="C")


def _dot(table: Ints, numbers: Ints) -> Any:
    """Multiply exactly: in 64 bits where nothing can overflow, else with Python's own whole numbers."""
    people, largest = int(table.sum()), int(numbers.max(initial=0))
    if people * largest < 2**62:
        return (table @ numbers).astype(object)
    return table.astype(object) @ numbers.astype(object)


class Bins:
    """What has been counted so far for some needs. Batches may come from several threads, in any order."""

    def __init__(self, needs: Sequence[CompiledTally], domain: Domain) -> None:
        self._domain, self._needs = domain, needs
        self._sizes = {name: domain[name].size for name in domain}
        self._shapes = [tuple(self._sizes[name] for name in need.names) for need in needs]
        self._counts = [np.zeros(math.prod(shape), dtype=np.int64) for shape in self._shapes]
        self._sums: list[npt.NDArray[Any]] = [
            np.zeros(0 if need.added is None else len(counts), dtype=object)
            for need, counts in zip(needs, self._counts, strict=True)
        ]
        self._lock = threading.Lock()

    def add_people(self, records: Sequence[tuple[Mapping[str, Codes], Bools | None]], people: int) -> None:
        """Count people by their records: the first of each person, the second, .. and who has one (None: everybody).

        A person counts once in each cell, and each record of hers counts in a sum.
        """
        for number, need in enumerate(self._needs):
            before: list[tuple[Ints, Bools | None]] = []
            for codes, has in records:
                counts = has
                if need.where is not None:
                    holds = np.broadcast_to(holds_at(need.where, self._domain, codes.__getitem__), (people,))
                    counts = holds if has is None else has & holds
                cells = self._cells(need, codes, people)
                if need.added is None:
                    fresh = counts
                    for other, counted in before:
                        again = other == cells if counted is None else (other == cells) & counted
                        fresh = ~again if fresh is None else fresh & ~again
                    before.append((cells, counts))
                    self._count(number, cells if fresh is None else cells[fresh])
                else:
                    added = codes[need.added]
                    self._sum(number, *((cells, added) if counts is None else (cells[counts], added[counts])))

    def _cells(self, need: CompiledTally, codes: Mapping[str, Codes], rows: int) -> npt.NDArray[Any]:
        """Return the mixed-radix number of each row."""
        size = math.prod(self._sizes[name] for name in need.names)
        cells: npt.NDArray[Any] = np.zeros(rows, dtype=np.int32 if size < 2**31 else np.int64)
        for place, name in enumerate(need.names):
            if place:
                cells *= self._sizes[name]
                cells += codes[name]
            else:
                cells[...] = codes[name]
        return cells

    def _count(self, number: int, cells: npt.NDArray[Any]) -> None:
        counts = self._counts[number]
        if len(counts) <= _BINS:
            found = np.bincount(cells, minlength=len(counts))
            with self._lock:
                counts += found
        else:
            places = cells.astype(np.intp, copy=False)  # several times faster than any other type
            with self._lock:
                np.add.at(counts, places, 1)

    def _sum(self, number: int, cells: npt.NDArray[Any], added: Codes) -> None:
        """Add positions up. In two halves: the float sums of `bincount` are then exact for every batch."""
        bins, places = len(self._counts[number]), added.astype(np.int64)
        low = np.bincount(cells, weights=(places % HALF).astype(np.float64), minlength=bins).astype(np.int64)
        high = np.bincount(cells, weights=(places // HALF).astype(np.float64), minlength=bins).astype(np.int64)
        found = np.bincount(cells, minlength=bins)
        with self._lock:
            self._counts[number] += found
            filled = np.flatnonzero(found)
            self._sums[number][filled] += high[filled].astype(object) * HALF + low[filled].astype(object)

    def found(self) -> list[npt.NDArray[Any]]:
        """Return what was counted for each need."""
        tables: list[npt.NDArray[Any]] = []
        for need, shape, counts, sums in zip(self._needs, self._shapes, self._counts, self._sums, strict=True):
            if need.added is None:
                tables.append(counts.reshape(shape))
            else:
                tables.append(np.stack([sums, counts.astype(object)], axis=-1).reshape(*shape, 2))
        return tables

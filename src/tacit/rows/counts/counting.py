"""What tallies ask of rows, what one pass must count so that every tally can be made of it, and how it is counted.

What is no table of the domain is refused before a row is read. Tallies over few cells are sums of a joint table, which
is counted once for all of them: a need is such a table, or a tally that is too large for one. Where a person may be in
several cells, marginals of people are no sums of a joint table, and every such tally is a need of its own.

A row's cell is the mixed-radix number of its positions. On a declared domain it is a perfect hash, so that counting is
one addition per row.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.arrays import Bools, Ints
from tacit.errors import PlanError
from tacit.plan.measure.measured import CellSums, ItemHolders, OfNumbers, Tally
from tacit.policy.attributes import Attribute
from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.person_numbers import PersonGrid
from tacit.policy.where import Test
from tacit.rows.cells.encoder import Codes

_MOST_CELLS: Final = 2**31


def where_of(tally: Tally, domain: Domain) -> Test | None:
    """Return the test that picks the people of a tally, if there is one."""
    return None if tally.where is None else tally.where.compile(domain)


def asked_of(tally: Tally, where: Test | None, domain: Domain) -> CompiledTally:
    """Return what a tally asks for, or refuse what is no table."""
    if isinstance(tally, OfNumbers):
        return CompiledTally((), where, each=tally.grid, read=tally.grid.number.attribute or _smallest(domain))
    if isinstance(tally, ItemHolders):
        items_of(domain, tally.name)
        return CompiledTally((), where, items=tally.name)
    if isinstance(tally, CellSums) and domain.attribute(tally.name, key="total").unit is None:
        raise no_total(tally.name)
    names = tally.by if isinstance(tally, CellSums) else tally.names
    for name in names:
        domain.attribute(name, key="counts")
    if any(domain[name].is_set for name in names):
        raise no_cells(names)
    if math.prod(domain[name].size for name in names) > _MOST_CELLS:
        raise PlanError("must have at most 2^31 cells", key="histogram", given=list(names), fix="Ask for fewer.")
    if isinstance(tally, CellSums):
        return CompiledTally(names, where, tally.name, rows=True)
    return CompiledTally(names, where, rows=tally.rows)


def tally_of_numbers(tally: OfNumbers, people: Ints) -> npt.NDArray[Any]:
    """Return a tally of people's numbers, from how many people have each."""
    domain = Domain({tally.grid.number.name: tally.grid.values})
    compiled = asked_of(tally.tally, None, domain)
    (found,) = CountedTallies([compiled], domain, one_row_each=True, most=max(JOINT, len(people))).tallies(
        [people if compiled.attributes else people.sum()]
    )
    return in_units(found, compiled, domain)


def in_units(table: npt.NDArray[Any], compiled: CompiledTally, domain: Domain) -> npt.NDArray[Any]:
    """Return sums of positions as sums of numbers; counts as they are."""
    if compiled.added is None:
        return table
    first, spacing = numbers_of(domain, compiled.added)
    return np.asarray(first * table[..., 1] + spacing * table[..., 0], dtype=object)


def _smallest(domain: Domain) -> str:
    """Return the attribute with the fewest values: rows are counted by something that they have."""
    return min((name for name in domain if not domain[name].is_set), key=lambda name: domain[name].size)


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
_FEW: Final = 8  # rows of a person that are compared with each other; more are sorted
HALF: Final = 2**31  # numbers are added up in two halves, so that no sum of 64 bits overflows


@dataclass(frozen=True)
class CompiledTally:
    """A tally with its predicate compiled.

    It asks for the people in the cells of `names`, for the positions of `added` summed there, or for the people who
    have each of the `items` of a set. With `rows` every row counts, else a person once in each cell. With `each`, for
    the people at each place of their number, which is made of the attribute `read`.
    """

    names: tuple[str, ...]
    where: Test | None = None
    added: str | None = None
    items: str | None = None
    rows: bool = False
    each: PersonGrid | None = None
    read: str | None = None

    @cached_property
    def attributes(self) -> frozenset[str]:
        """The attributes and sets of items that are looked at, those of the predicate included."""
        asked = () if self.where is None else (axis.attribute for axis, _ in self.where.atoms)
        return frozenset([*self.names, *asked, *filter(None, (self.added, self.items, self.read))])

    @property
    def is_about_cells(self) -> bool:
        """Whether nothing is asked for but attributes with one position a row: no item of a set."""
        return self.items is None and (self.where is None or all(axis.item is None for axis, _ in self.where.atoms))


class CountedTallies:
    """The needs of some tallies, and each tally as a function of what was counted."""

    def __init__(
        self, asked: Sequence[CompiledTally], domain: Domain, *, one_row_each: bool, most: int = JOINT
    ) -> None:
        self._domain = domain
        self._sizes = {name: domain[name].size for name in domain}
        self.needs: list[CompiledTally] = []
        self._joints: list[frozenset[str]] = []  # attributes of the joint tables, which are the first needs
        self._from: list[tuple[bool, int]] = []  # of each tally: whether it comes from a joint table, and which need
        own: list[CompiledTally] = []
        whole = {one: self._cells(one.attributes) for one in asked}
        placed: dict[CompiledTally, tuple[bool, int]] = {}
        for one in sorted(whole, key=lambda one: whole[one], reverse=True):
            is_table = one.where is None and one.added is None
            adds_up = (one_row_each or one.rows) and one.each is None
            if adds_up and one.is_about_cells and (is_table or whole[one] <= most):
                placed[one] = (True, self._place(one.attributes, most))
            else:
                placed[one] = (False, len(own))
                own.append(one)
        if not one_row_each and frozenset() in self._joints:  # rows are counted by something that they have
            self._joints[self._joints.index(frozenset())] = frozenset({_smallest(domain)})
        named = [tuple(name for name in domain if name in joint) for joint in self._joints]
        joints = [CompiledTally(names, rows=not one_row_each) for names in named]
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
        margins: dict[tuple[int, frozenset[str]], _Margin] = {}

        def margin(at: int, wanted: frozenset[str]) -> _Margin:
            if (at, wanted) not in margins:  # one for all predicates about the same
                names = tuple(name for name in self.needs[at].names if name in wanted)
                margins[at, wanted] = _Margin(_ordered(found[at], self.needs[at].names, names), names, self._domain)
            return margins[at, wanted]

        return [
            self._of_joint(one, margin(at, one.attributes)) if joint else found[at]
            for one, (joint, at) in zip(self._asked, self._from, strict=True)
        ]

    def _of_joint(self, one: CompiledTally, margin: _Margin) -> npt.NDArray[Any]:
        if one.added is None and not one.names and one.where is not None:
            return margin.total(one.where)
        table = margin.table if one.where is None else np.where(margin.picked(one.where), margin.table, 0)
        if one.added is None:
            return _ordered(table, margin.names, one.names)
        *_, size = sizes = [self._domain[name].size for name in (*one.names, one.added)]
        by_value = _ordered(table, margin.names, (*one.names, one.added)).reshape(-1, size)
        sums = np.zeros((len(by_value), 2), dtype=object)
        sums[:, 0] = _dot(by_value, np.arange(size, dtype=np.int64))
        sums[:, 1] = by_value.sum(axis=1)
        return sums.reshape(*sizes[:-1], 2)


class _Margin:
    """A joint table, summed over all but some attributes, and predicates about these.

    Which cells a predicate picks are the bits of one long number, so that predicates are put together fast.
    """

    def __init__(self, table: Ints, names: tuple[str, ...], domain: Domain) -> None:
        self.table, self.names, self._domain = table, names, domain
        self._bytes = -(-table.size // 8)
        self._every = (1 << (8 * self._bytes)) - 1
        self._bits: dict[tuple[Axis, Intervals], int] = {}

    def picked(self, where: Test) -> Bools:
        """Say which cells a predicate picks."""
        return self._marks(where).reshape(self.table.shape)

    def total(self, where: Test) -> Ints:
        """Return how many people a predicate picks."""
        return np.asarray(self.table.reshape(-1)[self._marks(where)].sum(dtype=np.int64))

    def _marks(self, where: Test) -> Bools:
        found: int = where.holds(self._bits_of, lambda bits: self._every ^ bits)
        marks = np.unpackbits(np.frombuffer(found.to_bytes(self._bytes, "big"), np.uint8), count=self.table.size)
        return marks.view(np.bool_)

    def _bits_of(self, axis: Axis, wanted: Intervals) -> int:
        if (axis, wanted) not in self._bits:
            marks = np.broadcast_to(holds_at(Test.atom(axis, wanted), self._domain, self._codes), self.table.shape)
            self._bits[axis, wanted] = int.from_bytes(np.packbits(marks).tobytes(), "big")
        return self._bits[axis, wanted]

    def _codes(self, name: str) -> Ints:
        shape = [1] * len(self.names)
        shape[self.names.index(name)] = -1
        return np.arange(self._domain[name].size, dtype=np.int64).reshape(shape)


def on_axis(axis: Axis, domain: Domain, positions: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the positions on one axis of an attribute, which may have two, for positions of the attribute."""
    parts = domain.axes_of(axis.attribute)
    inner = math.prod(part.size for part in parts[[part.name for part in parts].index(axis.name) + 1 :])
    return positions if len(parts) == 1 else np.asarray(positions // inner % axis.size)


def holds_at(
    where: Test, domain: Domain, codes: Callable[[str], Any], has: Callable[[str, int], Bools] | None = None
) -> Bools:
    """Say for positions of attributes whether a predicate holds; the size of an attribute is in no set.

    `has` says who has an item of a set.
    """

    def holds(axis: Axis, wanted: Intervals) -> Bools:
        if axis.item is not None and has is not None:
            return np.where(has(axis.attribute, axis.item), 1 in wanted, 0 in wanted)
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


class Records(NamedTuple):
    """Rows that count: their positions, how many there are, and who has which items of a set.

    `who` is the number of each row's person, if a person may have several: rows of one stand together. Of each set
    there are the rows (then one for each person) that have an item, and which one, each pair once.
    """

    codes: Mapping[str, Codes]
    rows: int
    who: npt.NDArray[Any] | None = None
    items: Mapping[str, tuple[Ints, Ints]] = {}

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        arrays = [*self.codes.values(), *(one for pair in self.items.values() for one in pair)]
        return sum(one.nbytes for one in arrays) + (0 if self.who is None else self.who.nbytes)


def changes(cells: npt.NDArray[Any]) -> Bools:
    """Say which cells differ from those before them; the first does."""
    found = np.ones(len(cells), dtype=np.bool_)
    np.not_equal(cells[1:], cells[:-1], out=found[1:])
    return found


def repeated(who: npt.NDArray[Any], cells: npt.NDArray[Any]) -> Bools:
    """Say which cells a person has had in an earlier row; the rows of a person stand together."""
    found = np.zeros(len(who), dtype=np.bool_)
    longest = int(np.diff(np.flatnonzero(changes(who)), append=len(who)).max(initial=0))
    if longest > _FEW:
        pairs = who.astype(np.int64) * (int(cells.max()) + 1) + cells
        order = np.argsort(pairs, kind="stable")
        found[order] = ~changes(pairs[order])
    else:
        for back in range(1, longest):
            found[back:] |= (who[back:] == who[:-back]) & (cells[back:] == cells[:-back])
    return found


def _numbers(need: CompiledTally, grid: PersonGrid, records: Records, picked: Any) -> Ints:
    """Return the place of the number of each person of whose rows some are picked; those of one stand together."""
    places = records.codes[need.read or ""][picked].astype(np.int64)
    begins = np.ones(len(places), dtype=np.bool_) if records.who is None else changes(records.who[picked])
    starts = np.flatnonzero(begins)
    if not len(starts):
        return starts
    made = np.maximum if grid.number.each == "max" else np.add
    return grid.places(np.diff(starts, append=len(places)), made.reduceat(places, starts))


class Bins:
    """What has been counted so far for some needs. Batches may come from several threads, in any order."""

    def __init__(self, needs: Sequence[CompiledTally], domain: Domain) -> None:
        self._domain, self._needs = domain, needs
        self._sizes = {name: domain[name].size for name in domain if not domain[name].is_set}
        self._shapes = [
            tuple(self._sizes[name] for name in need.names) if need.items is None else (domain[need.items].cells,)
            for need in needs
        ]
        for number, need in enumerate(needs):
            if need.each is not None:
                self._shapes[number] = (need.each.values.size,)
        self._counts = [np.zeros(math.prod(shape), dtype=np.int64) for shape in self._shapes]
        self._sums: list[npt.NDArray[Any]] = [
            np.zeros(0 if need.added is None else len(counts), dtype=object)
            for need, counts in zip(needs, self._counts, strict=True)
        ]
        self._lock = threading.Lock()

    def add(self, records: Records) -> None:
        """Count people by their records: once in each cell, and each record in a sum or where rows are counted."""

        def has(name: str, item: int) -> Bools:
            rows, items = records.items[name]
            found = np.zeros(records.rows, dtype=np.bool_)
            found[rows[items == item]] = True
            return found

        for number, need in enumerate(self._needs):
            picked: Any = slice(None)
            if need.where is not None:
                holds = holds_at(need.where, self._domain, records.codes.__getitem__, has)
                picked = np.broadcast_to(holds, (records.rows,))
            if need.items is not None:
                rows, items = records.items[need.items]
                self._count(number, items if need.where is None else items[picked[rows]])
                continue
            if need.each is not None:
                self._count(number, _numbers(need, need.each, records, picked))
                continue
            cells = self._cells(need, records.codes, records.rows)[picked]
            if need.added is not None:
                self._sum(number, cells, records.codes[need.added][picked])
            else:
                who = None if need.rows else records.who
                self._count(number, cells if who is None else cells[~repeated(who[picked], cells)])

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
        bins = len(self._counts[number])
        filled, at = (np.arange(bins), cells) if bins <= _BINS else np.unique(cells, return_inverse=True)
        places, rows = added.astype(np.int64), np.bincount(at, minlength=len(filled))
        low = np.bincount(at, weights=(places % HALF).astype(np.float64), minlength=len(filled)).astype(np.int64)
        high = np.bincount(at, weights=(places // HALF).astype(np.float64), minlength=len(filled)).astype(np.int64)
        there = np.flatnonzero(rows)
        with self._lock:
            self._counts[number][filled] += rows
            self._sums[number][filled[there]] += high[there].astype(object) * HALF + low[there].astype(object)

    def found(self) -> list[npt.NDArray[Any]]:
        """Return what was counted for each need."""
        tables: list[npt.NDArray[Any]] = []
        for need, shape, counts, sums in zip(self._needs, self._shapes, self._counts, self._sums, strict=True):
            if need.added is None:
                tables.append(counts.reshape(shape))
            else:
                tables.append(np.stack([sums, counts.astype(object)], axis=-1).reshape(*shape, 2))
        return tables

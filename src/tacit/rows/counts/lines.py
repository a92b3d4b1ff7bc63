"""The lines that Spark counts: one for each row, or for each row of a person.

Guarantee   A row has a line iff every attribute of the domain has a position for it, it counts, and the test of what is
            asked holds, whatever else is asked: all questions see the same people. What a person adds depends on that
            person's rows alone, as a bag: shuffling rows changes nothing.
Why         Rows are filtered by the `valid` of each attribute (`rows/cells/readings.py`), also of those that nobody
            asks for. Where every row is a person, its list of items is read within the row, and each known item counts
            once (`rows/sources/spark_lists.py`). Where rows have owners, they are put together by the person column and
            by nothing else; which of them count is said in `rows/counts/row_choice.py`.
Checked by  tests/contract/test_rows_engines.py, tests/contract/test_cells.py, tests/contract/test_one_pass.py,
            tests/property/test_rows_people.py.

With a set of items each person has one record: the other attributes come from the person's first row, the items from
all rows that fit (one item per row, or lists of them). Of more items than `at_most`, those count that occur first: by
`order`, then by their place in a list, then by their place in the domain.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.policy.edges.intervals import Intervals
from tacit.policy.where import Test
from tacit.rows.cells.kinds import code_of
from tacit.rows.cells.readings import Code, DataColumn, Expr, Positions, never
from tacit.rows.counts.counting import items_of
from tacit.rows.counts.row_choice import Slot, place_of, with_person_keys
from tacit.rows.sources.source import Opened
from tacit.rows.sources.spark_lists import ListReading, has, keyed, list_reading


@dataclass(frozen=True, eq=False)
class HeldItems:
    """Items and who has them: a frame, the expressions that tell items apart, and one that asks for an item."""

    frame: Any
    keys: Sequence[Expr]
    has: Callable[[int], Expr] = lambda _: nw.lit(value=False)


class Addition(NamedTuple):
    """Lines to add up: a frame, the expressions to group by, and how far a number is above the lowest one."""

    frame: Any
    keys: Sequence[Expr]
    above: Expr


def grouped(frame: Any, keys: Sequence[Expr], *, distinct: tuple[str, ...] = (), lines: Expr | None = None) -> Any:
    """Count the lines in each group of keys as "n"; lines that agree in `distinct` and the keys count once.

    `lines` is the expression that counts, for lines that already stand for several.
    """
    names = [f"k{place}" for place in range(len(keys))]
    aliased = [key.alias(name) for key, name in zip(keys, names, strict=True)]
    counted = nw.len() if lines is None else lines
    if distinct:
        frame = frame.select(*distinct, *aliased).unique()
    elif aliased:
        frame = frame.select(*aliased, *(() if lines is None else ("n",)))
    if not names:
        return frame.select(counted.alias("n"))
    return frame.group_by(*names).agg(counted.alias("n"))


def asked_in(where: Test | None) -> tuple[set[str], dict[str, tuple[str, int, str]]]:
    """Return the attributes that a test asks for, and its items: axis -> set, place, and the name of a mark."""
    axes = sorted({axis for axis, _ in where.atoms} if where is not None else [], key=lambda axis: axis.name)
    items = {}
    for number, axis in enumerate(axis for axis in axes if axis.item is not None):
        assert axis.item is not None  # noqa: S101 - chosen above
        items[axis.name] = (axis.attribute, axis.item, f"h{number}")
    return {axis.attribute for axis in axes if axis.item is None}, items


def holds(where: Test, atom: Callable[[str, Intervals], Expr]) -> Expr:
    """Say on each line whether a test holds, where `atom` says whether the position on an axis lies in a set."""
    return where.holds(lambda axis, found: atom(axis.name, found), lambda e: ~e)


def either(has: Expr, positions: Intervals) -> Expr:
    """Say whether having an item (1) or being without it (0) lies in a set."""
    yes, no = 1 in positions, 0 in positions
    if yes and no:
        return has | ~has
    return has if yes else ~has if no else has & ~has


def key_columns(table: pa.Table) -> list[pa.ChunkedArray]:
    """Return what groups are told apart by."""
    return [table.column(name) for name in table.column_names if name != "n"]


def whole(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return a column of whole numbers; the sum of no lines is missing, which is 0."""
    return np.asarray(column.cast(pa.int64()).fill_null(0).to_numpy(), dtype=np.int64)


# ---------------------------------------------------------------------- every row is a person


class RowLines:
    """One line for each row."""

    owner: tuple[str, ...] = ()

    def __init__(self, opened: Opened) -> None:
        self._opened, self._codes = opened, opened.codes
        self._lists = {name: _lists_of(opened, name) for name, one in opened.items.items() if one.reading == "list"}

    def grouped(self, names: tuple[str, ...], where: Test | None, *, rows: bool = False) -> Any:
        """Group by raw cells where these repeat, then check and map only the distinct ones and group by position.

        Checking every cell of 50 million rows costs as much as grouping them; checking each distinct cell is free.
        """
        asked, _ = asked_in(where)
        late = {name: self._codes[name] for name in names if self._codes[name].repeats and name not in asked}
        early = [key for name in names if name not in late for key in self._codes[name].keys]
        frame = self._rows(frozenset(names), where, late=frozenset(late))
        if not late:
            return grouped(frame, early)
        raw = list(dict.fromkeys(column.name for code in late.values() for column in code.columns))
        mapped = [f"q{place}" for place in range(len(early))]
        if mapped:
            frame = frame.with_columns(*(key.alias(name) for key, name in zip(early, mapped, strict=True)))
        frame = frame.group_by(*raw, *mapped).agg(nw.len().alias("n"))
        frame = self._opened.with_numbers(frame, [column for code in late.values() for column in code.numbers])
        done = iter(mapped)
        keys = []
        for name in names:
            valid = self._codes[name].valid
            for key in self._codes[name].keys:
                if name not in late:
                    keys.append(nw.col(next(done)))
                else:
                    # not a filter: DuckDB would move it below the first grouping, back to every row
                    keys.append(key if valid is None else nw.when(valid).then(key))
        return grouped(frame, keys, lines=nw.col("n").sum().cast(nw.Int64))

    def slots(self, names: frozenset[str]) -> Any:
        """Return the slots of each row."""
        slots = [slot for name in sorted(names) for slot in self._opened.layout.slots[name]]
        return self._rows(names, None).select(*(slot.kept.alias(slot.name) for slot in slots))

    def added(self, name: str, names: tuple[str, ...], where: Test | None) -> Addition:
        """Return one line for each row that `where` picks, ready to be added up."""
        ((first, _, _),) = self._codes[name].ranges
        frame = self._rows(frozenset({name, *names}), where)
        keys = [key for one in names for key in self._codes[one].keys]
        return Addition(frame, keys, self._codes[name].keys[0].cast(nw.Int64) - first)

    def held(self, name: str, where: Test | None) -> HeldItems:
        """Return the items of the rows that `where` picks, one line for each item of a row."""
        column, (_, code) = self._opened.items[name], self._lists[name]
        frame = self._rows(frozenset(), where, carry=name)
        frame = self._opened.engine.dialect.unrolled(frame, column.name, "place")
        frame = self._opened.with_numbers(frame, code.numbers)
        return HeldItems(frame if code.valid is None else frame.filter(code.valid), code.keys)

    def positions(self, table: pa.Table, names: tuple[str, ...]) -> list[Positions]:
        """Return the positions behind the keys of attributes."""
        columns = iter(key_columns(table))
        found = []
        for name in names:
            code = self._codes[name]
            found.append(code.decode([next(columns) for _ in code.keys]))
        return found

    def item_positions(self, name: str, keys: Sequence[pa.ChunkedArray]) -> Positions:
        """Return the positions behind the keys of items."""
        return self._lists[name][1].decode(keys)

    def _rows(
        self,
        names: frozenset[str],
        where: Test | None,
        *,
        late: frozenset[str] = frozenset(),
        carry: str | None = None,
    ) -> Any:
        """Return one line per row that is in the data and that `where` picks, ready to be grouped by `names`.

        Attributes in `late` are selected as they are; their caller checks and maps them. The keys of the set `carry`
        come along, as a list.
        """
        opened = self._opened
        asked, items = asked_in(where)
        codes = {name: code for name, code in self._codes.items() if name in names | asked or code.valid is not None}
        lists = dict.fromkeys([name for name, _, _ in items.values()] + ([] if carry is None else [carry]))
        columns = dict.fromkeys(column for code in codes.values() for column in code.columns)
        frame = opened.select([*columns, *(opened.items[name] for name in lists)])
        checked = [code for name, code in codes.items() if name not in late]
        frame = opened.with_numbers(frame, dict.fromkeys(column for code in checked for column in code.numbers))
        for code in checked:
            if code.valid is not None:
                frame = frame.filter(code.valid)
        keys = {mark: (name, self._lists[name][0].key(place)) for name, place, mark in items.values()}
        marks = {mark: (opened.items[name].name, key) for mark, (name, key) in keys.items() if key is not None}
        if lists:
            read = {opened.items[name].name: self._lists[name][0] for name in lists}
            native = nw.to_native(frame)
            native = native.withColumns({name: keyed(native[name], reading) for name, reading in read.items()})
            native = native.withColumns({mark: has(native[name], key) for mark, (name, key) in marks.items()})
            frame = nw.from_native(native).lazy()

        def atom(axis: str, positions: Intervals) -> Expr:
            if axis in opened.axes:
                name, part = opened.axes[axis]
                return self._codes[name].atom(part, positions)
            name, _, mark = items[axis]
            return either(nw.col(mark) if mark in marks else never(opened.items[name]), positions)

        return frame if where is None else frame.filter(holds(where, atom))


def _lists_of(opened: Opened, name: str) -> tuple[ListReading, Code]:
    """Return how a column of lists is read, and the keys that are made of them."""
    attribute, element = opened.domain[name], opened.item_codes[name].columns[0]
    reading = list_reading(attribute, element)
    return reading, code_of(attribute, (replace(reading.element or element, raw=element.raw, name=element.name),))


# ---------------------------------------------------------------------- rows have owners


class PeopleLines:
    """One line for each row of a person that counts."""

    owner: tuple[str, ...] = ("u",)

    def __init__(self, opened: Opened) -> None:
        self._opened, self._codes, self._slots = opened, opened.codes, opened.layout.slots
        self._order = opened.order
        self._order_column = {} if opened.order is None else {"o": opened.order.raw}
        self._sequence = [] if opened.order is None else opened.order.names

    def grouped(self, names: tuple[str, ...], where: Test | None, *, rows: bool = False) -> Any:
        """Group by the slots of attributes; a person counts once in each group, or each of their rows."""
        keys = [nw.col(slot.name) for name in names for slot in self._slots[name]]
        once = self._opened.per_person > 1 and not rows
        return grouped(self._people(frozenset(names), where), keys, distinct=("u",) if once else ())

    def slots(self, names: frozenset[str]) -> Any:
        """Return the slots of each row that counts."""
        return self._people(names, None)

    def added(self, name: str, names: tuple[str, ...], where: Test | None) -> Addition:
        """Return one line for each row that counts and that `where` picks, ready to be added up."""
        frame = self._people(frozenset({name, *names}), where)
        keys = [nw.col(slot.name) for one in names for slot in self._slots[one]]
        (slot,) = self._slots[name]
        return Addition(frame, keys, nw.col(slot.name) - (slot.low - slot.base))

    def owned(self, name: str, where: Test | None, *, summed: bool) -> Any:
        """Return one line for each row that counts and that `where` picks: "u", and "k0", to be added up, or zero."""
        above = self.added(name, (), where).above if summed else nw.lit(0)
        return self._people(frozenset({name}), where).select("u", k0=above.cast(nw.Int64))

    def held(self, name: str, where: Test | None) -> HeldItems:
        """Return the known items of the people that `where` picks: "u" and the item, at most `at_most` a person."""
        opened = self._opened
        attribute, code, source = items_of(opened.domain, name), opened.item_codes[name], opened.items[name]
        is_list, bounded = source.reading == "list", attribute.at_most is not None
        order = self._order_column if bounded else {}
        frame = self._fitting((source,), {}, order).select("u", source.name, *order)
        if where is not None:
            frame = frame.join(self._people(frozenset(), where).select("u"), on="u", how="inner")
        if is_list:
            frame = opened.engine.dialect.unrolled(frame, source.name, "place")
        frame = opened.with_numbers(frame, code.numbers)
        if code.valid is not None:
            frame = frame.filter(code.valid)
        if attribute.at_most is None or not code.keys:
            return HeldItems(frame, code.keys, lambda place: code.atom("", Intervals.points([place])))
        place = place_of(attribute.cells, code).alias("i")
        sequence = [*self._sequence, "place"] if is_list else self._sequence
        frame = self._with_order(frame).select("u", place, *sequence)
        if len(sequence) <= 1:
            frame = frame.group_by("u", "i").agg(*(nw.col(one).min() for one in sequence))
        else:
            again = nw.col("i").cum_count().over("u", "i", order_by=sequence)
            frame = frame.with_columns(again=again).filter(nw.col("again") == 1)
        rank = nw.col("i").cum_count().over("u", order_by=[*sequence, "i"])
        frame = frame.with_columns(nth=rank).filter(nw.col("nth") <= attribute.at_most)
        return HeldItems(frame, (nw.col("i"),), lambda place: nw.col("i") == place)

    def positions(self, table: pa.Table, names: tuple[str, ...]) -> list[Positions]:
        """Return the positions behind the slots of attributes."""
        columns = map(whole, key_columns(table))
        return [self._opened.layout.code_of(name, itertools.islice(columns, len(self._slots[name]))) for name in names]

    def item_positions(self, name: str, keys: Sequence[pa.ChunkedArray]) -> Positions:
        """Return the positions of items: their places, or what is behind their keys."""
        if items_of(self._opened.domain, name).at_most is not None:
            return whole(keys[0])
        return self._opened.item_codes[name].decode(keys)

    def _people(self, names: frozenset[str], where: Test | None) -> Any:
        """Return one line per row that counts and that `where` picks: "u", and the slots of `names`."""
        asked, items = asked_in(where)
        frame = self._kept({slot for name in names | asked for slot in self._slots[name]})
        for name in dict.fromkeys(name for name, _, _ in items.values()):
            held = self.held(name, None)
            marks = {mark: place for other, place, mark in items.values() if other == name}
            has = [held.has(place).cast(nw.Int8).alias(mark) for mark, place in marks.items()]
            owners = held.frame.select("u", *has).group_by("u").agg(*(nw.col(mark).max() for mark in marks))
            frame = frame.join(owners, on="u", how="left")

        def atom(axis: str, positions: Intervals) -> Expr:
            if axis not in self._opened.axes:
                return either((nw.col(items[axis][2]) == 1).fill_null(value=False), positions)
            name, part = self._opened.axes[axis]
            return self._slots[name][part == "column"].lies_in(positions)

        return frame if where is None else frame.filter(holds(where, atom))

    def _kept(self, slots: Iterable[Slot]) -> Any:
        """Return the rows of each person that count: "u" and these slots."""
        opened, layout = self._opened, self._opened.layout
        wanted = sorted(slots, key=lambda slot: slot.name)
        if not wanted:
            # nothing is read from a row, so which one is first does not matter
            return self._fitting((), {}, {}).select("u").unique()
        assert opened.person is not None  # noqa: S101 - for the type checker
        frame = self._with_order(self._fitting((), self._codes, self._order_column))
        frame = with_person_keys(opened.engine.dialect, frame, opened.person)
        frame = frame.select("u", "key", *self._sequence, *layout.packed())
        frame = layout.first(frame, self._sequence, opened.per_person)
        return frame.select("u", *(slot.unpacked.alias(slot.name) for slot in wanted))

    def _fitting(self, columns: Sequence[DataColumn], codes: Mapping[str, Code], more: Mapping[str, str]) -> Any:
        """Return the rows that fit the domain: "u", these columns, what some codes look at, and more columns."""
        tests = {name: code for name, code in self._codes.items() if code.valid is not None}
        read = {**tests, **codes}.values()
        frame = self._opened.select(dict.fromkeys([*columns, *(one for code in read for one in code.columns)]), more)
        frame = self._opened.with_numbers(frame, dict.fromkeys(one for code in read for one in code.numbers))
        for code in tests.values():
            frame = frame.filter(code.valid)
        return frame

    def _with_order(self, frame: Any) -> Any:
        """Add what rows are sorted by."""
        if self._order is None:
            return frame
        return self._order.added(self._opened.engine.dialect, frame)


def lines_of(opened: Opened) -> RowLines | PeopleLines:
    """Return how lines are made of rows: by themselves, or by their owners."""
    return RowLines(opened) if opened.person is None else PeopleLines(opened)

"""Lines that an engine counts where rows have owners: those rows of each person that count, and the items she has.

Guarantee   What a person adds depends on that person's rows alone, as a bag: shuffling rows changes nothing. A row in
            which some attribute of the domain has no position is no row of anybody. A row that counts has a line iff
            the test of what is asked holds.
Why         Rows are put together by the person column and by nothing else. Which rows of a person count,
            `rows/counts/row_choice.py` says, whatever is asked.
Checked by  tests/property/test_rows_people.py, tests/contract/test_rows_engines.py, tests/contract/test_one_pass.py.

With a set of items each person has one record: the other attributes come from the person's first row, the items from
all rows that fit (one item per row, or lists of them). Of more items than `at_most`, those count that occur first: by
`order`, then by their place in a list, then by their place in the domain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.policy.edges.intervals import Intervals
from tacit.policy.where import Test
from tacit.rows.cells.readings import Code, DataColumn, Expr, Positions
from tacit.rows.counts.lines import Addition, HeldItems, asked_in, either, grouped, holds, key_columns, whole
from tacit.rows.counts.row_choice import Slot, place_of
from tacit.rows.counts.row_keys import with_person_keys
from tacit.rows.sources.asked_tables import items_of
from tacit.rows.sources.opened import Opened


class PeopleLines:
    """One line for each row of a person that counts."""

    owner: tuple[str, ...] = ("u",)

    def __init__(self, opened: Opened) -> None:
        self._opened, self._codes, self._slots = opened, opened.codes, opened.layout.slots
        self._order = opened.order
        self._order_column = {} if opened.order is None else {"o": opened.order.raw}
        self._sequence = [] if opened.order is None else opened.order.names

    def grouped(self, names: tuple[str, ...], where: Test | None) -> Any:
        """Group by the slots of attributes; a person with several rows counts once in each group."""
        keys = [nw.col(slot.name) for name in names for slot in self._slots[name]]
        return grouped(
            self._people(frozenset(names), where), keys, distinct=("u",) if self._opened.per_person > 1 else ()
        )

    def slots(self, names: frozenset[str]) -> Any:
        """Return the slots of each row that counts."""
        return self._people(names, None)

    def added(self, name: str, names: tuple[str, ...], where: Test | None) -> Addition:
        """Return one line for each row that counts and that `where` picks, ready to be added up."""
        frame = self._people(frozenset({name, *names}), where)
        keys = [nw.col(slot.name) for one in names for slot in self._slots[one]]
        (slot,) = self._slots[name]
        return Addition(frame, keys, nw.col(slot.name) - (slot.low - slot.base))

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
            frame = nw.from_native(opened.engine.unrolled(nw.to_native(frame), source.name, "place")).lazy()
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
        columns = iter(key_columns(table))
        found = []
        for name in names:
            positions = np.zeros(table.num_rows, dtype=np.int64)
            for slot, axis in zip(self._slots[name], self._opened.domain.axes_of(name), strict=True):
                positions = positions * axis.size + slot.positions(whole(next(columns)))
            found.append(positions)
        return found

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
        frame = with_person_keys(opened.engine, frame, opened.person)
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
        if self._order.numbers:
            frame = nw.from_native(self._opened.engine.numbers(nw.to_native(frame), self._order.numbers)).lazy()
        return self._order.added(frame)

"""Lines that an engine counts where every row is a person, with its list of items read within the row.

Guarantee   A row has a line iff every attribute of the domain has a position for it and the test of what is asked
            holds, whatever else is asked: all questions see the same people.
Why         Rows are filtered by the `valid` of each attribute (`rows/cells/readings.py`), also of those that nobody
            asks for. Of a list, each known item counts once (`rows/cells/item_lists.py`).
Checked by  tests/contract/test_rows_engines.py, tests/contract/test_cells.py, tests/contract/test_one_pass.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.policy.edges.intervals import Intervals
from tacit.policy.where import Test
from tacit.rows.cells.readings import Expr, Positions, never
from tacit.rows.counts.lines import Addition, HeldItems, asked_in, either, grouped, holds, key_columns
from tacit.rows.sources.opened import Opened


class RowLines:
    """One line for each row."""

    owner: tuple[str, ...] = ()

    def __init__(self, opened: Opened) -> None:
        self._opened, self._engine, self._codes = opened, opened.engine, opened.codes

    def grouped(self, names: tuple[str, ...], where: Test | None) -> Any:
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
        column, (_, code) = self._opened.items[name], self._opened.lists[name]
        frame = self._rows(frozenset(), where, carry=name)
        frame = nw.from_native(self._engine.unrolled(nw.to_native(frame), column.name, "place")).lazy()
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
        return self._opened.lists[name][1].decode(keys)

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
        if lists:
            read = {opened.items[name].name: opened.lists[name][0] for name in lists}
            frame = nw.from_native(self._engine.keyed(nw.to_native(frame), read)).lazy()
        keys = {mark: (name, opened.lists[name][0].key(place)) for name, place, mark in items.values()}
        marks = {mark: (opened.items[name].name, key) for mark, (name, key) in keys.items() if key is not None}
        if marks:
            frame = nw.from_native(self._engine.having(nw.to_native(frame), marks)).lazy()

        def atom(axis: str, positions: Intervals) -> Expr:
            if axis in opened.axes:
                name, part = opened.axes[axis]
                return self._codes[name].atom(part, positions)
            name, _, mark = items[axis]
            return either(nw.col(mark) if mark in marks else never(opened.items[name]), positions)

        return frame if where is None else frame.filter(holds(where, atom))

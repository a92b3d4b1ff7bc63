"""The only door to people's rows: any frame or file goes in, counts per cell of the declared domain come out.

Guarantee   Only counts and totals leave the engine (and, for what shows records as they are, positions of single rows:
            `rows/records.py`), each row counted at the position that `rows/encode.py` gives it
            on every engine. An answer is a sum over people of something that depends on that person's rows alone, as a
            bag: shuffling rows changes nothing, and one person changes an answer by what one person can add. Once
            reading has begun, every failure is one fixed sentence without cause or context.
Assumes     A source has the same rows each time it is read. That columns and files are still those that were found is
            looked at before anything is charged, and before and after each reading.
Why         A row is in the data iff every attribute of the domain has a position for it, whatever is asked: all
            queries see the same people. Rows are put together by the person column and by nothing else; no row has a
            number. Which rows of a person count, `rows/first_rows.py` says; after that, a person counts once in each
            cell, and every kept row in a total. A name means one column: one that is read must be there once, and no
            other may differ from it in case only.
Checked by  tests/property/test_rows_people.py, tests/contract/test_rows_engines.py,
            tests/contract/test_rows_changed.py, tests/unit/test_rows.py, tests/unit/test_rows_canary.py.

With a set of items each person has one record: the other attributes come from the person's first row, the items from
all rows (one item per row, or lists of them). Of more items than `at_most`, those count that occur first: by `order`,
then by their place in a list, then by their place in the domain. Without `person`, each row with its list of items is a
person, read within the row (`rows/item_lists.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused, InternalError, sealed
from tacit.plan.tally import CellCounts, CellSums, ItemHolders, Tally
from tacit.policy.domain import Domain
from tacit.policy.intervals import Intervals
from tacit.policy.where import Test
from tacit.rows.asked_tables import asked_of, items_of, numbers_of, where_of
from tacit.rows.counting import JOINT, Asked, Counted
from tacit.rows.encode import Code, Column, Expr, Helper, Positions, never
from tacit.rows.engines import NAMES, PERSON, Engine, MakeFrame, engine_for, unreadable, with_readings
from tacit.rows.first_rows import Layout, Order, Slot, place_of
from tacit.rows.guard import closed
from tacit.rows.item_counts import CountedItems, Counts, ItemCounts
from tacit.rows.item_lists import ListReading, list_reading
from tacit.rows.kinds import code_of
from tacit.rows.named_columns import NamedColumns, check_shared, columns_of
from tacit.rows.one_pass import OnePass
from tacit.rows.records import Asked as RecordsAsked
from tacit.rows.records import Work, decoded, worked_on
from tacit.rows.row_names import check_type

_HALF: Final = 2**31  # totals are summed in two halves so that no engine's 64-bit sum can overflow
_CHANGED: Final = "the rows must stay as they were when they were opened"
_CHANGED_FIX: Final = "Open a new session, and let nobody write the file or change the table while it lives."
_rehearsed: Final[set[Any]] = set()  # the shapes of rows that were found countable
_TIMES: Final = (nw.Time, nw.Duration)


class Rows(Protocol):
    """Rows that can be counted. `kind` says where they live."""

    kind: str

    def check(self, tally: Tally) -> None:
        """Refuse, without opening a row, what these rows can never answer."""

    def tally(self, tallies: Sequence[Tally]) -> list[npt.NDArray[Any]]:
        """Return what every tally asks for: one array each."""

    def check_naming(self, key: Sequence[str]) -> None:
        """Refuse, without opening a row, attributes and columns that cannot name rows."""

    def records(self, names: Sequence[str], key: Sequence[str], work: Work) -> Iterator[Any]:
        """Yield what work returns for the positions of each batch of rows; see `rows/records.py`."""

    @property
    def frame(self) -> MakeFrame:
        """What makes a frame of the user's own kind out of columns that may be shown; it knows no row."""


@sealed
def open_rows(
    source: Any,
    domain: Domain,
    *,
    person: str | None = None,
    per_person: int = 1,
    order: str | None = None,
    item: str | None = None,
    moved: frozenset[str] | None = None,
) -> Rows:
    """Check a source against a domain, by its schema alone, and return rows that are ready to be counted.

    Args:
        source: a path to CSV or Parquet files (or a pattern, or a list of paths), a pandas, polars, Arrow, DuckDB,
            Spark or Ibis table, or `ItemCounts`.
        domain: the declared attributes; each must be a column of the source.
        person: the column that says whose row it is. Without it every row is a person.
        per_person: how many rows of one person are kept: the first ones by `order`, then by their content.
        order: the column that says which rows of a person come first; without it their content says it.
        item: the column that holds the items of the domain's set, if it is not called like the attribute.
        moved: the attributes that some secret edge of the policy changes; None: any of them may be secret.
    """
    for key, name in (("person", person), ("order", order), ("item", item)):
        if name is not None and not isinstance(name, str):
            raise DataRefused(f"{key} must be the name of a column", fix="Give its name as a text.")
    if isinstance(source, ItemCounts):
        return CountedItems(source, domain)
    if isinstance(per_person, bool) or not isinstance(per_person, int) or per_person < 1:
        raise DataRefused("per_person must be a whole number from 1", fix="Leave it out for one row per person.")
    return _EngineRows(source, domain, person=person, per_person=per_person, order=order, item=item, moved=moved)


class _EngineRows:
    """Rows in an engine, grouped there and decoded here."""

    def __init__(
        self,
        source: Any,
        domain: Domain,
        *,
        person: str | None,
        per_person: int,
        order: str | None,
        item: str | None,
        moved: frozenset[str] | None,
    ) -> None:
        self._domain, self._per_person = domain, per_person
        sets = [name for name, attribute in domain.items() if attribute.is_set]
        if item is not None and len(sets) != 1:
            raise DataRefused("item can only be given for a domain with one set of items", fix="Leave it out.")
        if sets and per_person > 1:
            raise DataRefused("per_person must be 1 in a domain with a set of items", fix="Leave it out.")
        if order is not None and person is None:
            raise DataRefused("order needs person", fix="Name the column that says whose row it is.")
        raw_of = columns_of(domain, item)
        declared = frozenset(raw for names in raw_of.values() for raw in names)
        lists = frozenset(raw_of[name][0] for name in sets)
        self._engine: Engine = engine_for(source, lists=lists, declared=declared)
        self.kind = self._engine.kind
        self._columns = NamedColumns(self._engine, declared)
        column = self._columns.read

        self._codes: dict[str, Code] = {}
        self._item_codes: dict[str, Code] = {}
        self._item_columns: dict[str, Column] = {}
        self._lists: dict[str, tuple[ListReading, Code]] = {}
        for name, attribute in domain.items():
            columns = tuple(column(raw) for raw in raw_of[name])
            if not attribute.is_set:
                self._codes[name] = code_of(attribute, columns)
                continue
            self._item_columns[name] = columns[0]
            element = columns[0].element or columns[0]
            element = replace(element, raw=columns[0].raw, name=columns[0].name)
            self._item_codes[name] = code_of(attribute, (element,))
            if columns[0].reading == "list":
                reading = list_reading(attribute, element)
                keys = replace(reading.element or element, raw=element.raw, name=element.name)
                self._lists[name] = reading, code_of(attribute, (keys,))
        check_shared(raw_of, moved)
        single = [one for one in self._item_columns.values() if one.reading != "list"]
        if len(single) > 1:
            raise DataRefused("only one set of items can have one row per item", fix="Use columns of lists.")
        if single and person is None:
            raise DataRefused(
                "has one item per row, so person must be named",
                column=single[0].raw,
                fix="Name the column that says whose row it is, or give a column of lists.",
            )
        self._person = None if person is None else column(person)
        ordered = None if order is None else column(order)
        for given in (self._person, ordered):
            if given is not None and given.reading == "list":
                raise DataRefused("must hold one value per row", column=given.raw, fix="Name another column.")
        self._order = None if ordered is None else self._ordered(ordered)
        self._layout = Layout(domain, self._codes, moved)
        self._pass = OnePass(
            self._engine,
            domain,
            self._codes,
            person=self._person,
            per_person=per_person,
            order=self._order,
            ranked=list(self._layout.slots),
        )
        self._axes = {axis.name: (name, axis.part) for name in domain for axis in domain.axes_of(name)}
        self._rehearse(moved)

    def _ordered(self, column: Column) -> Order:
        if column.reading == "other":
            refusal = DataRefused(
                "must hold numbers, dates or texts, because rows are ordered by it",
                column=column.raw,
                fix="Name another column, or convert it first.",
            )

            def found() -> Any:
                native = closed(self._engine.emptied, refusal).select({"c": column.raw})
                return nw.from_native(native).lazy().collect_schema()["c"]

            if closed(found, refusal) not in _TIMES:
                raise refusal
        return Order(column, column.raw)

    def __repr__(self) -> str:
        return f"Rows({self.kind})"

    # ------------------------------------------------------------------ before anything is charged

    def _rehearse(self, moved: frozenset[str] | None) -> None:
        """Count no rows of the same types, so that what fails by a type, or by an engine, fails before any charge."""
        uncountable = DataRefused("the engine cannot count rows of these types", fix="Convert the columns first.")
        shapes = closed(self._shapes, uncountable)
        place = self._engine.place
        known = (place, frozenset(shapes), self._per_person > 1, moved is None)
        if place is not None and known in _rehearsed:
            return
        engine = closed(self._engine.emptied, uncountable)
        codes = {name: self._codes[name] for name in shapes.values() if name in self._codes}

        def fails(some: Mapping[str, Code], items: Mapping[str, Column], *, owned: bool) -> bool:
            return _fails(lambda: self._over(engine, some, items, moved, owned=owned).count_nothing())

        if fails(codes, self._item_columns, owned=True):
            for name, code in codes.items():
                if fails({name: code}, {}, owned=False):
                    raise self._wrong_type(code.columns[0])
            if self._person is not None and fails({}, {}, owned=True):
                raise self._wrong_type(self._person)
            if not fails(codes, {}, owned=True):
                raise self._wrong_type(next(iter(self._item_columns.values())))
            raise uncountable if self._order is None else self._wrong_type(self._order.column)
        _rehearsed.add(known)

    def _shapes(self) -> dict[Any, str]:
        """Return what decides whether columns can be counted, their types and how they are read, and one for each."""

        def types(*columns: Column) -> tuple[str, ...]:
            return tuple(self._engine.type_of(column.raw) for column in columns)

        found: dict[Any, str] = {}
        for name, code in self._codes.items():
            read = (len(code.keys), len(code.numbers), code.valid is None, len(code.ranges))
            found[type(self._domain[name]), types(*code.columns), read] = name
        for role, column in (("person", self._person), ("order", None if self._order is None else self._order.column)):
            if column is not None:
                found[role, types(column)] = role
        for name, column in self._item_columns.items():
            bounded = self._domain[name].most is not None
            found[type(self._domain[name]), types(column), bounded, len(self._item_codes[name].numbers)] = name
        return found

    def _wrong_type(self, column: Column) -> DataRefused:
        # no more than the name: a type may list the values of a column
        called = re.match(r"\w+(\([-0-9, ]*\))?", self._engine.type_of(column.raw))
        return DataRefused(
            f"has a type that cannot be counted here: {called[0] if called else 'unknown'}",
            column=column.raw,
            fix="Convert it first: to whole numbers, decimals of at most 38 digits, or texts.",
        )

    def _over(
        self,
        engine: Engine,
        codes: Mapping[str, Code],
        items: Mapping[str, Column],
        moved: frozenset[str] | None,
        *,
        owned: bool,
    ) -> _EngineRows:
        """Return rows like these in another engine, with some of the attributes and, if `owned`, with owners."""
        other = copy(self)
        other._engine, other._codes = engine, dict(codes)
        other._person, other._order = (self._person, self._order) if owned else (None, None)
        other._item_columns = dict(items)
        other._layout = Layout(self._domain, codes, moved)
        other._pass = OnePass(
            engine,
            self._domain,
            codes,
            person=other._person,
            per_person=self._per_person,
            order=other._order,
            ranked=list(other._layout.slots),
            looker=None if self.kind == "pyspark" else self._pass.looker(),
        )
        return other

    def count_nothing(self) -> None:
        """Do with rows of which there are none everything that fails if their types cannot be counted."""
        with self._engine.quiet():
            self._pass.rehearse()
            names, tables, owner = tuple(self._codes), [], ["u"]
            slots = [slot for name in names for slot in self._layout.slots[name]]
            marks = [slot.name for slot in slots]
            if self._person is not None:
                frame = self._people(frozenset(names), None)
                tables.append(_grouped(frame, [nw.col(mark) for mark in marks], distinct=("u",)))
            elif names:
                frame, owner = self._rows(frozenset(names), None), []
                frame = frame.select(*(slot.kept.alias(slot.name) for slot in slots))
                tables.append(self._grouped_twice(names, None))
            if marks:
                tables.append(nw.from_native(self._engine.stacked(nw.to_native(frame), owner, marks, "t")).lazy())
            for name in self._item_columns:
                held = self._held_in_rows(name, None) if self._person is None else self._held(name)
                tables.append(_grouped(held.frame, held.keys, distinct=() if self._person is None else ("u",)))
            for table in tables:
                self._engine.rehearse(nw.to_native(table))

    # ------------------------------------------------------------------ what can be asked

    def check(self, tally: Tally) -> None:
        """Refuse rows whose columns are no longer those that were found; they can answer whatever can be asked."""
        closed(self._check_unchanged, DataRefused(_CHANGED, fix=_CHANGED_FIX))

    def _check_unchanged(self) -> None:
        with self._engine.quiet():
            if not self._engine.unchanged():
                raise DataRefused(_CHANGED, fix=_CHANGED_FIX)

    def tally(self, tallies: Sequence[Tally]) -> list[npt.NDArray[Any]]:
        """Return what every tally asks for, all of them in one pass where batches are counted here."""
        return self._tallied([(tally, where_of(tally, self._domain)) for tally in tallies])

    def counts(self, names: tuple[str, ...], where: Test | None = None) -> Counts:
        """Count the people in each cell of these attributes; with no name, all of them (a 0-d array)."""
        (found,) = self._tallied([(CellCounts(names), where)])
        return found

    def item_counts(self, name: str, where: Test | None = None) -> Counts:
        """Count for each item of a set the people who have it."""
        (found,) = self._tallied([(ItemHolders(name), where)])
        return found

    def total(self, name: str, where: Test | None = None) -> int:
        """Add up a whole-number attribute over the people."""
        (found,) = self._tallied([(CellSums(name), where)])
        return int(found[()])

    def _tallied(self, asked: Sequence[tuple[Tally, Test | None]]) -> list[npt.NDArray[Any]]:
        found: list[npt.NDArray[Any] | None] = [None] * len(asked)
        tables: dict[int, Asked] = {}
        for number, (tally, where) in enumerate(asked):
            if isinstance(tally, ItemHolders):
                items_of(self._domain, tally.name)
                continue
            tables[number] = asked_of(tally, where, self._domain)
        for number, (tally, where) in enumerate(asked):
            if isinstance(tally, ItemHolders):
                found[number] = self._held_items(tally.name, where)
        for (number, one), table in zip(tables.items(), self._tabled(list(tables.values())), strict=True):
            added = None if one.added is None else numbers_of(self._domain, one.added)
            if added is not None:
                first, spacing = added
                table = np.asarray(first * table[..., 1] + spacing * table[..., 0], dtype=object)
            found[number] = table
        return [one for one in found if one is not None]

    def _tabled(self, asked: Sequence[Asked]) -> list[npt.NDArray[Any]]:
        """Return the counts of people, or sums of positions with their counts, for each table."""
        if not asked:
            return []
        # over few rows a large joint table costs more than it saves
        most = JOINT if self._engine.rows is None else min(JOINT, max(self._engine.rows // 4, 2**10))
        plan = Counted(asked, self._domain, joint_is_safe=self._per_person == 1, most=most)
        here = [number for number, need in enumerate(plan.needs) if self._pass.can_count(need)]
        found: list[Any] = [None] * len(plan.needs)
        if here:

            def read() -> list[npt.NDArray[Any]] | None:
                self._check_unchanged()
                tables = self._pass.counted([plan.needs[number] for number in here])
                self._check_unchanged()  # else columns may have moved while they were read
                return tables

            tables = closed(read, unreadable())
            for number, table in zip(here, tables, strict=True) if tables is not None else ():
                found[number] = table
        left = [number for number, one in enumerate(found) if one is None]
        together = [number for number in left if self._can_pile(plan.needs[number], len(left))]
        if len(together) > 1:
            tables = self._piled_cells([plan.needs[number] for number in together])
            for number, table in zip(together, tables, strict=True):
                found[number] = table
        for number, need in enumerate(plan.needs):
            if found[number] is None:
                found[number] = self._grouped_cells(need) if need.added is None else self._summed(need)
        return closed(lambda: plan.tallies(found), InternalError("counting rows"))

    def _grouped_cells(self, need: Asked) -> Counts:
        """Let the engine group the rows."""
        names, where, people = need.names, need.where, self._person is not None
        shape = tuple(self._domain[name].size for name in names)

        def grouped() -> Any:
            if not people:
                return self._grouped_twice(names, where)
            keys = [nw.col(slot.name) for name in names for slot in self._layout.slots[name]]
            return _grouped(
                self._people(frozenset(names), where), keys, distinct=("u",) if self._per_person > 1 else ()
            )

        table = self._read(grouped)
        positions = self._slot_positions if people else self._key_positions
        return closed(lambda: _cells(table, positions(table, names), shape), InternalError("counting rows"))

    def _can_pile(self, need: Asked, needs: int) -> bool:
        """Say whether the cells of a need, one of so many, fit into 62 bits as the engine numbers them."""
        if need.added is not None or not need.is_about_cells(self._domain):
            return False
        slots = [slot for name in need.names for slot in self._layout.slots[name]]
        asked, _ = self._asked(need.where)
        wide = any(not slot.bits for name in {*need.names, *asked} for slot in self._layout.slots[name])
        return not wide and math.prod(slot.missing for slot in slots) * needs < 2**62

    def _piled_cells(self, needs: Sequence[Asked]) -> list[Counts]:
        """Let the engine count several tables in one go: one line for each row and table, with a number for its cell.

        The number is the mixed-radix number of the slots, times the number of tables, plus which table it is.
        """
        names = frozenset().union(*(need.attributes(self._domain) for need in needs))
        marks = [f"t{number}" for number in range(len(needs))]

        def piled() -> Any:
            if self._person is None:
                slots = [slot for name in sorted(names) for slot in self._layout.slots[name]]
                frame = self._rows(names, None).select(*(slot.kept.alias(slot.name) for slot in slots))
            else:
                frame = self._people(names, None)
            cells = [self._cell_of(need, len(needs)) + number for number, need in enumerate(needs)]
            owner = ["u"] if self._per_person > 1 else []
            frame = frame.select(*owner, *(cell.alias(mark) for cell, mark in zip(cells, marks, strict=True)))
            frame = nw.from_native(self._engine.stacked(nw.to_native(frame), owner, marks, "t")).lazy()
            frame = frame.filter(~nw.col("t").is_null())
            return _grouped(frame, [nw.col("t")], distinct=tuple(owner))

        table = self._read(piled)

        def decoded() -> list[Counts]:
            numbers, people = _whole(table.column("k0")), _whole(table.column("n"))
            tables = []
            for number, need in enumerate(needs):
                ours = numbers % len(needs) == number
                cells, places = numbers[ours] // len(needs), []
                for name in reversed(need.names):
                    parts = []
                    for slot in reversed(self._layout.slots[name]):
                        parts.append(slot.positions(cells % slot.missing))
                        cells = cells // slot.missing
                    sizes = [axis.size for axis in self._domain.axes_of(name)]
                    places.append(np.ravel_multi_index(tuple(reversed(parts)), tuple(sizes)))
                shape = tuple(self._domain[name].size for name in need.names)
                counts = np.zeros(math.prod(shape), dtype=np.int64)
                np.add.at(counts, _cell_numbers(int(ours.sum()), places[::-1], shape), people[ours])
                tables.append(counts.reshape(shape))
            return tables

        return closed(decoded, InternalError("counting rows"))

    def _cell_of(self, need: Asked, needs: int) -> Expr:
        """Return the number of a row's cell, times `needs`; missing where the need does not count the row."""
        cell: Any = nw.lit(0, nw.Int64)
        for slot in (slot for name in need.names for slot in self._layout.slots[name]):
            cell = cell * slot.missing + nw.col(slot.name)
        cell = cell * needs
        if need.where is None:
            return cell

        def atom(axis: str, positions: Intervals) -> Expr:
            name, part = self._axes[axis]
            return self._layout.slots[name][part == "column"].lies_in(positions)

        return nw.when(need.where.holds(lambda axis, found: atom(axis.name, found), lambda e: ~e)).then(cell)

    def _held_items(self, name: str, where: Test | None) -> Counts:
        attribute = items_of(self._domain, name)

        def grouped() -> Any:
            held = self._held_in_rows(name, where) if self._person is None else self._held(name, where)
            return _grouped(held.frame, held.keys, distinct=() if self._person is None else ("u",))

        table = self._read(grouped)

        def decoded() -> Counts:
            counts = np.zeros(attribute.cells, dtype=np.int64)
            keys = [table.column(name) for name in table.column_names if name != "n"]
            places = self._item_positions(name, keys)
            people = _whole(table.column("n"))
            np.add.at(counts, places[places >= 0], people[places >= 0])
            return counts

        code = self._item_codes[name]
        return closed(decoded, InternalError("counting items")) if code.keys else np.zeros(attribute.cells, np.int64)

    def _summed(self, need: Asked) -> npt.NDArray[Any]:
        """Let the engine add positions up: sums, and how many rows were added."""
        name, people = need.added or "", self._person is not None
        ((first, _, step),) = self._codes[name].ranges
        shape = tuple(self._domain[one].size for one in need.names)

        def summed() -> Any:
            if not people:
                frame = self._rows(frozenset({name, *need.names}), need.where)
                keys = [key for one in need.names for key in self._codes[one].keys]
                above = self._codes[name].keys[0].cast(nw.Int64) - first
            else:
                frame = self._people(frozenset({name, *need.names}), need.where)
                keys = [nw.col(slot.name) for one in need.names for slot in self._layout.slots[one]]
                (slot,) = self._layout.slots[name]
                above = nw.col(slot.name) - (slot.low - slot.base)
            # every kept row counts, also if two of a person are equal: a sum over distinct values could jump by a whole
            # value when one of them moves by one
            by = [f"g{place}" for place in range(len(keys))]
            frame = frame.select(*(key.alias(one) for key, one in zip(keys, by, strict=True)), k0=above)
            frame = frame.select(*by, low=nw.col("k0") % _HALF, rest=nw.col("k0") - nw.col("k0") % _HALF)
            # rest is a multiple of 2^31 below 2^63, so the division is exact in any engine
            frame = frame.select(*by, "low", high=(nw.col("rest") / _HALF).cast(nw.Int64))
            # a sum may be wider than what it adds up, and a connection may hand out wide numbers as bytes
            sums = [nw.col(one).sum().cast(nw.Int64).alias(one) for one in ("low", "high")]
            lines = nw.len().cast(nw.Int64).alias("n")
            return frame.group_by(*by).agg(*sums, lines) if by else frame.select(*sums, lines)

        table = self._read(summed)
        positions = self._slot_positions if people else self._key_positions

        def decoded() -> npt.NDArray[Any]:
            places = positions(table.drop_columns(["low", "high"]), need.names)
            found = np.zeros((math.prod(shape), 2), dtype=object)
            columns = (_whole(table.column(one)).tolist() for one in ("low", "high", "n"))
            for cell, low, high, lines in zip(_cell_numbers(table.num_rows, places, shape), *columns, strict=True):
                if cell >= 0:
                    found[cell] += (high * _HALF + low) // step, lines
            return found.reshape(*shape, 2)

        return closed(decoded, InternalError("adding up rows"))

    def check_naming(self, key: Sequence[str]) -> None:
        """Refuse columns that are not there, or hold no names; and rows whose columns are no longer those found."""
        closed(self._check_unchanged, DataRefused(_CHANGED, fix=_CHANGED_FIX))
        self._naming(key)
        self._days(key)

    def _naming(self, key: Sequence[str]) -> dict[str, Column]:
        """Return the columns of a key that are no attributes."""
        return self._named({raw: self._columns.read(raw) for raw in key if raw not in self._codes})

    def _days(self, key: Sequence[str]) -> dict[str, Column]:
        """Return the columns that attributes of a key read days from, where their type leaves open what is one."""
        codes = {name: self._codes[name] for name in key if name in self._codes}
        dated = {name: one for name, code in codes.items() for one in code.numbers if isinstance(one, Column)}
        return self._named({name: one for name, one in dated.items() if one.as_date and one.reading != "date"})

    def _named(self, columns: Mapping[str, Column]) -> dict[str, Column]:
        for name, column in columns.items():
            check_type(column, name)
        return {name: replace(column, name=f"{NAMES}{column.name}") for name, column in columns.items()}

    def records(self, names: Sequence[str], key: Sequence[str], work: Work) -> Iterator[Any]:
        """Yield what work returns for the positions of each batch of rows, whoever owns them."""
        self._check_unchanged()
        dropping = (name for name, code in self._codes.items() if code.valid is not None)
        asked = RecordsAsked(
            tuple(dict.fromkeys([*names, *dropping])), frozenset(key), self._naming(key), self._days(key)
        )
        found = worked_on(self._engine, self._domain, self._codes, asked, work)
        if found is None:
            alone = self._over(self._engine, self._codes, {}, None, owned=False)
            found = decoded(self._parts(lambda: alone.selected(asked)), self._codes, asked, self._domain, work)
        yield from found
        self._check_unchanged()  # else columns may have moved while they were read

    def selected(self, asked: RecordsAsked) -> Any:
        """Return the keys of attributes, missing where a row has no position, and what names rows."""
        codes = [self._codes[name] for name in asked.names]
        columns = dict.fromkeys(column for code in codes for column in code.columns)
        looked_at = [*asked.naming.values(), *asked.days.values()]
        frame = self._select([*columns, *looked_at])
        frame = self._with_numbers(frame, dict.fromkeys(helper for code in codes for helper in code.numbers))
        keys = [key if code.valid is None else nw.when(code.valid).then(key) for code in codes for key in code.keys]
        named = [key.alias(f"k{place}") for place, key in enumerate(keys)]
        return frame.select(*named, *(nw.col(column.name) for column in looked_at))

    @property
    def frame(self) -> MakeFrame:
        """What makes a frame of the user's own kind out of columns that may be shown."""
        return self._engine.frame

    # ------------------------------------------------------------------ how it is read

    def _read(self, build: Callable[[], Any]) -> pa.Table:
        def collected() -> pa.Table:
            self._check_unchanged()
            with self._engine.quiet():
                table = build().collect(backend="pyarrow").to_arrow()
            self._check_unchanged()  # else columns may have moved while they were read
            return table

        return closed(collected, unreadable())

    def _parts(self, build: Callable[[], Any]) -> Iterator[pa.Table]:
        """Read some rows at a time."""
        with self._engine.quiet():
            parts = self._engine.parts(nw.to_native(build()))
            while (table := closed(lambda: next(parts, None), unreadable())) is not None:
                yield table

    def _select(self, columns: Iterable[Column], more: Mapping[str, str] | None = None) -> Any:
        """Select columns, and whose row it is ("u"); rows of nobody are left out."""
        wanted = {column.name: column.raw for column in columns} | dict(more or {})
        if self._person is not None:
            wanted[PERSON] = self._person.raw
        frame = nw.from_native(self._engine.select(wanted)).lazy()
        if self._person is None:
            return frame
        frame = frame.filter(~nw.col("u").is_null())
        if self._person.reading == "real":
            frame = frame.filter(~nw.col("u").cast(nw.Float64).is_nan())
        return frame

    def _with_numbers(self, frame: Any, columns: Iterable[Helper]) -> Any:
        """Add the helper columns: numbers that texts spell, and dates."""
        return with_readings(self._engine, frame, columns)

    def _with_order(self, frame: Any) -> Any:
        """Add what rows are sorted by."""
        if self._order is None:
            return frame
        if self._order.numbers:
            frame = nw.from_native(self._engine.numbers(nw.to_native(frame), self._order.numbers)).lazy()
        return self._order.added(frame)

    @property
    def _order_column(self) -> dict[str, str]:
        return {} if self._order is None else {"o": self._order.raw}

    @property
    def _sequence(self) -> list[str]:
        return [] if self._order is None else self._order.names

    def _asked(self, where: Test | None) -> tuple[set[str], dict[str, tuple[str, int, str]]]:
        """Return the attributes that a test asks for, and its items: axis -> set, place, and the name of a mark."""
        axes = sorted({axis for axis, _ in where.atoms} if where is not None else [], key=lambda axis: axis.name)
        items = {}
        for number, axis in enumerate(axis for axis in axes if axis.item is not None):
            assert axis.item is not None  # noqa: S101 - chosen above
            items[axis.name] = (axis.attribute, axis.item, f"h{number}")
        return {axis.attribute for axis in axes if axis.item is None}, items

    # ------------------------------------------------------------------ where every row is a person

    def _grouped_twice(self, names: tuple[str, ...], where: Test | None) -> Any:
        """Group by raw cells where these repeat, then check and map only the distinct ones and group by position.

        Checking every cell of 50 million rows costs as much as grouping them; checking each distinct cell is free.
        """
        asked, _ = self._asked(where)
        late = {name: self._codes[name] for name in names if self._codes[name].repeats and name not in asked}
        early = [key for name in names if name not in late for key in self._codes[name].keys]
        frame = self._rows(frozenset(names), where, late=frozenset(late))
        if not late:
            return _grouped(frame, early)
        raw = list(dict.fromkeys(column.name for code in late.values() for column in code.columns))
        mapped = [f"q{place}" for place in range(len(early))]
        if mapped:
            frame = frame.with_columns(*(key.alias(name) for key, name in zip(early, mapped, strict=True)))
        frame = frame.group_by(*raw, *mapped).agg(nw.len().alias("n"))
        frame = self._with_numbers(frame, [column for code in late.values() for column in code.numbers])
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
        return _grouped(frame, keys, lines=nw.col("n").sum().cast(nw.Int64))

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
        asked, items = self._asked(where)
        codes = {name: code for name, code in self._codes.items() if name in names | asked or code.valid is not None}
        lists = dict.fromkeys([name for name, _, _ in items.values()] + ([] if carry is None else [carry]))
        columns = dict.fromkeys(column for code in codes.values() for column in code.columns)
        frame = self._select([*columns, *(self._item_columns[name] for name in lists)])
        checked = [code for name, code in codes.items() if name not in late]
        frame = self._with_numbers(frame, dict.fromkeys(column for code in checked for column in code.numbers))
        for code in checked:
            if code.valid is not None:
                frame = frame.filter(code.valid)
        if lists:
            read = {self._item_columns[name].name: self._lists[name][0] for name in lists}
            frame = nw.from_native(self._engine.keyed(nw.to_native(frame), read)).lazy()
        keys = {mark: (name, self._lists[name][0].key(place)) for name, place, mark in items.values()}
        marks = {mark: (self._item_columns[name].name, key) for mark, (name, key) in keys.items() if key is not None}
        if marks:
            frame = nw.from_native(self._engine.having(nw.to_native(frame), marks)).lazy()

        def atom(axis: str, positions: Intervals) -> Expr:
            if axis in self._axes:
                name, part = self._axes[axis]
                return self._codes[name].atom(part, positions)
            name, _, mark = items[axis]
            return _either(nw.col(mark) if mark in marks else never(self._item_columns[name]), positions)

        if where is not None:
            frame = frame.filter(where.holds(lambda axis, found: atom(axis.name, found), lambda e: ~e))
        return frame

    def _held_in_rows(self, name: str, where: Test | None) -> _Held:
        """Return the items of the rows that `where` picks, one line for each item of a row."""
        column, (_, code) = self._item_columns[name], self._lists[name]
        frame = self._rows(frozenset(), where, carry=name)
        frame = nw.from_native(self._engine.unrolled(nw.to_native(frame), column.name, "place")).lazy()
        frame = self._with_numbers(frame, code.numbers)
        return _Held(frame if code.valid is None else frame.filter(code.valid), code.keys)

    def _item_positions(self, name: str, keys: Sequence[pa.ChunkedArray]) -> Positions:
        if self._person is not None and items_of(self._domain, name).at_most is not None:
            return _whole(keys[0])
        code = self._lists[name][1] if self._person is None else self._item_codes[name]
        return code.decode(keys)

    # ------------------------------------------------------------------ where rows have owners

    def _people(self, names: frozenset[str], where: Test | None) -> Any:
        """Return one line per row that counts and that `where` picks: "u", and the slots of `names`."""
        asked, items = self._asked(where)
        dropping = {name for name, code in self._codes.items() if code.valid is not None}
        slots = {slot for name in names | asked | dropping for slot in self._layout.slots[name]}
        frame = self._kept(slots)
        for name in sorted(dropping):
            for slot in self._layout.slots[name]:
                frame = frame.filter(slot.has_place)
        for name in dict.fromkeys(name for name, _, _ in items.values()):
            held = self._held(name)
            marks = {mark: place for other, place, mark in items.values() if other == name}
            has = [held.has(place).cast(nw.Int8).alias(mark) for mark, place in marks.items()]
            owners = held.frame.select("u", *has).group_by("u").agg(*(nw.col(mark).max() for mark in marks))
            frame = frame.join(owners, on="u", how="left")

        def atom(axis: str, positions: Intervals) -> Expr:
            if axis not in self._axes:
                return _either((nw.col(items[axis][2]) == 1).fill_null(value=False), positions)
            name, part = self._axes[axis]
            return self._layout.slots[name][part == "column"].lies_in(positions)

        if where is not None:
            frame = frame.filter(where.holds(lambda axis, found: atom(axis.name, found), lambda e: ~e))
        return frame

    def _kept(self, slots: Iterable[Slot]) -> Any:
        """Return the rows of each person that count: "u" and these slots."""
        wanted = sorted(slots, key=lambda slot: slot.name)
        if not wanted:
            # nothing is read from a row, so which one is first does not matter
            return self._select(()).select("u").unique()
        columns = dict.fromkeys(column for code in self._codes.values() for column in code.columns)
        frame = self._select(columns, self._order_column)
        frame = self._with_numbers(frame, dict.fromkeys(n for code in self._codes.values() for n in code.numbers))
        frame = self._with_order(frame).select("u", *self._sequence, *self._layout.packed())
        words = self._layout.words
        if self._per_person == 1 and self._order is None and len(words) == 1:
            frame = frame.group_by("u").agg(nw.col(words[0]).min())
        else:
            rank = nw.col(words[0]).cum_count().over("u", order_by=[*self._sequence, *words])
            frame = frame.with_columns(rank=rank).filter(nw.col("rank") <= self._per_person)
        return frame.select("u", *(slot.unpacked.alias(slot.name) for slot in wanted))

    def _held(self, name: str, where: Test | None = None) -> _Held:
        """Return the known items of the people that `where` picks: "u" and the item, at most `at_most` a person."""
        attribute, code, source = items_of(self._domain, name), self._item_codes[name], self._item_columns[name]
        is_list, bounded = source.reading == "list", attribute.at_most is not None
        frame = self._select((source,), self._order_column if bounded else None)
        if where is not None or any(other.valid is not None for other in self._codes.values()):
            frame = frame.join(self._people(frozenset(), where).select("u"), on="u", how="inner")
        if is_list:
            frame = nw.from_native(self._engine.unrolled(nw.to_native(frame), source.name, "place")).lazy()
        frame = self._with_numbers(frame, code.numbers)
        if code.valid is not None:
            frame = frame.filter(code.valid)
        if attribute.at_most is None or not code.keys:
            return _Held(frame, code.keys, lambda place: code.atom("", Intervals.points([place])))
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
        return _Held(frame, (nw.col("i"),), lambda place: nw.col("i") == place)

    # ------------------------------------------------------------------ from groups to positions

    def _key_positions(self, table: pa.Table, names: tuple[str, ...]) -> list[Positions]:
        columns = iter(table.column(name) for name in table.column_names if name != "n")
        found = []
        for name in names:
            code = self._codes[name]
            found.append(code.decode([next(columns) for _ in code.keys]))
        return found

    def _slot_positions(self, table: pa.Table, names: tuple[str, ...]) -> list[Positions]:
        columns = iter(table.column(name) for name in table.column_names if name != "n")
        found = []
        for name in names:
            positions = np.zeros(table.num_rows, dtype=np.int64)
            for slot, axis in zip(self._layout.slots[name], self._domain.axes_of(name), strict=True):
                positions = positions * axis.size + slot.positions(_whole(next(columns)))
            found.append(positions)
        return found


@dataclass(frozen=True, eq=False)
class _Held:
    """Items and who has them: a frame, the expressions that tell items apart, and one that asks for an item."""

    frame: Any
    keys: Sequence[Expr]
    has: Callable[[int], Expr] = lambda _: nw.lit(value=False)


def _fails(work: Callable[[], None]) -> bool:
    """Say whether work on rows of which there are none fails, which only their types can be the reason for."""
    failure = DataRefused("the rows cannot be counted")
    try:
        closed(work, failure)
    except DataRefused as raised:
        return raised is failure
    return False


def _either(has: Expr, positions: Intervals) -> Expr:
    """Say whether having an item (1) or being without it (0) lies in a set."""
    yes, no = 1 in positions, 0 in positions
    if yes and no:
        return has | ~has
    return has if yes else ~has if no else has & ~has


def _cells(table: pa.Table, places: Sequence[Positions], shape: tuple[int, ...]) -> Counts:
    """Add the people of each group to the cell that its positions say."""
    people, cells = _whole(table.column("n")), _cell_numbers(table.num_rows, places, shape)
    counts = np.zeros(math.prod(shape), dtype=np.int64)
    np.add.at(counts, cells[cells >= 0], people[cells >= 0])
    return counts.reshape(shape)


def _cell_numbers(groups: int, places: Sequence[Positions], shape: tuple[int, ...]) -> Counts:
    """Return the cell of each group; -1 where one of its positions is -1, which is no position."""
    cells = np.zeros(groups, dtype=np.int64)
    inside = np.ones(groups, dtype=np.bool_)
    for positions, size in zip(places, shape, strict=True):
        inside &= positions >= 0
        cells = cells * size + positions
    return np.where(inside, cells, -1)


def _grouped(frame: Any, keys: Sequence[Expr], *, distinct: tuple[str, ...] = (), lines: Expr | None = None) -> Any:
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


def _whole(column: pa.ChunkedArray) -> Counts:
    return np.asarray(column.cast(pa.int64()).fill_null(0).to_numpy(), dtype=np.int64)  # the sum of no lines is missing

"""The only door to people's rows: any frame or file goes in, counts per cell of the declared domain come out.

Guarantee   Only counts and totals leave the engine, each row counted at the position that `release/encode.py` gives it
            on every engine. Once reading has begun, every failure is one fixed sentence without cause or context.
Assumes     The engine returns the rows in the same order each time when `person` is given without `order`.
Why         A row is in the data iff every attribute of the domain has a position for it, whatever is asked: all
            queries see the same people. A person's first `per_person` rows are kept before anything is looked at,
            so that no other person's rows matter; after that, a person counts once in each cell, and every kept row
            in a total.
Checked by  tests/contract/test_rows_engines.py, tests/unit/test_rows.py, tests/unit/test_rows_canary.py.

With a set of items each person has one record: the other attributes come from the person's first row, the items from
all rows (one item per row, or lists of them). Without `person`, each row with its list of items is a person.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final, Protocol

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused, InternalError, PlanError, nearest
from tacit.policy.domain import Attribute, Domain, Grid, Integers, Items
from tacit.policy.intervals import Intervals
from tacit.policy.where import Test
from tacit.release.encode import Code, Column, Expr, code_of
from tacit.release.engines import PERSON, Engine, closed, engine_for

Counts = npt.NDArray[np.int64]
_MOST_CELLS: Final = 2**31
_HALF: Final = 2**31  # totals are summed in two halves so that no engine's 64-bit sum can overflow
_UNREADABLE: Final = "the engine could not read the rows"
_UNREADABLE_FIX: Final = (
    "No detail is shown because rows were open: check that the file or table is complete by reading it outside Tacit."
)


class Rows(Protocol):
    """Rows that can be counted. `kind` says where they live."""

    kind: str

    def check(self, names: tuple[str, ...], where: Test | None) -> None:
        """Refuse, without opening a row, what these rows can never answer."""

    def counts(self, names: tuple[str, ...], where: Test | None = None) -> Counts:
        """Count the people in each cell of these attributes; with no name, all of them (a 0-d array)."""

    def item_counts(self, name: str, where: Test | None = None) -> Counts:
        """Count for each item of a set the people who have it."""

    def total(self, name: str, where: Test | None = None) -> int:
        """Add up a whole-number attribute over the people."""

    def frame(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """Make a frame of the user's own kind out of columns that may be shown."""


@dataclass(frozen=True, eq=False, repr=False)
class ItemCounts:
    """Rows when only the counts per item exist: how many people have each item, out of how many.

    `at_most` of the domain is then a promise about how the counts were made; nothing can check it here.
    """

    counts: Counts
    people: int

    def __init__(self, counts: Sequence[int] | npt.NDArray[Any], *, people: int) -> None:
        array = np.asarray(counts)
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
            raise DataRefused("item counts must be a list of whole numbers", fix="Give one count per item.")
        if isinstance(people, bool) or not isinstance(people, int | np.integer) or people < 0:
            raise DataRefused("people must be a whole number from 0", fix="Say how many people were counted.")
        if (array < 0).any() or (array > int(people)).any():
            raise DataRefused("item counts must lie between 0 and the number of people", fix="Count each person once.")
        frozen = array.astype(np.int64)
        frozen.flags.writeable = False
        object.__setattr__(self, "counts", frozen)
        object.__setattr__(self, "people", int(people))

    def __repr__(self) -> str:
        return f"ItemCounts({len(self.counts)} items)"


def open_rows(
    source: Any,
    domain: Domain,
    *,
    person: str | None = None,
    per_person: int = 1,
    order: str | None = None,
    item: str | None = None,
) -> Rows:
    """Check a source against a domain, by its schema alone, and return rows that are ready to be counted.

    Args:
        source: a path to CSV or Parquet files (or a pattern, or a list of paths), a pandas, polars, Arrow, DuckDB,
            Spark or Ibis table, or `ItemCounts`.
        domain: the declared attributes; each must be a column of the source.
        person: the column that says whose row it is. Without it every row is a person.
        per_person: how many rows of one person are kept: the first ones by `order`.
        order: the column that says which rows of a person come first; without it, the order of the source.
        item: the column that holds the items of the domain's set, if it is not called like the attribute.
    """
    for key, name in (("person", person), ("order", order), ("item", item)):
        if name is not None and not isinstance(name, str):
            raise DataRefused(f"{key} must be the name of a column", fix="Give its name as a text.")
    if isinstance(source, ItemCounts):
        return _CountedItems(source, domain)
    if isinstance(per_person, bool) or not isinstance(per_person, int) or per_person < 1:
        raise DataRefused("per_person must be a whole number from 1", fix="Leave it out for one row per person.")
    return _EngineRows(source, domain, person=person, per_person=per_person, order=order, item=item)


class _CountedItems:
    """Item counts, asked as rows."""

    kind = "items"

    def __init__(self, source: ItemCounts, domain: Domain) -> None:
        self._source, self._domain = source, domain
        ((name, items), *others) = domain.items()
        if others or not isinstance(items, Items):
            raise DataRefused("item counts need a domain with one set of items", fix="Declare only the items.")
        if items.count != len(source.counts):
            raise DataRefused("must have one count per item of the domain", column=name, fix="Check the two lengths.")

    def check(self, names: tuple[str, ...], where: Test | None) -> None:
        """Refuse what item counts alone cannot answer."""
        if names and names != tuple(self._domain):
            raise _no_cells(names)
        if names and where is not None:
            raise DataRefused("item counts cannot be restricted to some people", fix="Give the rows.")
        if where is not None and len({axis.name for axis, _ in where.atoms}) > 1:
            raise DataRefused("item counts cannot say how many people have two items together", fix="Give the rows.")

    def counts(self, names: tuple[str, ...], where: Test | None = None) -> Counts:
        """Count the people, or those who have (or lack) one item."""
        if names:
            raise _no_cells(names)
        self.check(names, where)
        if where is None:
            return np.array(self._source.people, dtype=np.int64)
        axis = where.atoms[0][0].name
        having = int(self._source.counts[int(axis.rpartition("[")[2].rstrip("]"))])
        picked = (having if where.of_record({axis: 1}) else 0) + (
            self._source.people - having if where.of_record({axis: 0}) else 0
        )
        return np.array(picked, dtype=np.int64)

    def item_counts(self, name: str, where: Test | None = None) -> Counts:
        """Return the counts."""
        _items(self._domain, name)
        self.check((name,), where)
        return self._source.counts.copy()

    def total(self, name: str, where: Test | None = None) -> int:
        """Refuse: items have no total."""
        raise _no_total(name)

    def frame(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """Return a pandas frame."""
        return pd.DataFrame(dict(columns))

    def __repr__(self) -> str:
        return "Rows(items)"


class _EngineRows:
    """Rows in an engine, grouped there and decoded here."""

    def __init__(
        self, source: Any, domain: Domain, *, person: str | None, per_person: int, order: str | None, item: str | None
    ) -> None:
        self._domain, self._per_person = domain, per_person
        sets = [name for name, attribute in domain.items() if isinstance(attribute, Items)]
        if item is not None and len(sets) != 1:
            raise DataRefused("item can only be given for a domain with one set of items", fix="Leave it out.")
        if sets and per_person > 1:
            raise DataRefused("per_person must be 1 in a domain with a set of items", fix="Leave it out.")
        if order is not None and person is None:
            raise DataRefused("order needs person", fix="Name the column that says whose row it is.")
        raw_of = {name: _raw(name, attribute, item) for name, attribute in domain.items()}
        declared = frozenset(raw for names in raw_of.values() for raw in names)
        lists = frozenset(raw_of[name][0] for name in sets)
        self._engine: Engine = engine_for(source, lists=lists, declared=declared)
        self.kind = self._engine.kind
        schema = closed(self._engine.schema, DataRefused("the columns of the source could not be listed"))
        found: dict[str, Column] = {}

        def column(raw: str) -> Column:
            if raw not in schema:
                fix = _pointer(raw, declared, list(schema), is_file=self.kind == "file")
                raise DataRefused("must be a column of the data", column=raw, fix=fix)
            return found.setdefault(raw, replace(schema[raw], raw=raw, name=f"c{len(found)}"))

        self._codes: dict[str, Code] = {}
        self._item_codes: dict[str, Code] = {}
        self._item_columns: dict[str, Column] = {}
        for name, attribute in domain.items():
            columns = tuple(column(raw) for raw in raw_of[name])
            if not isinstance(attribute, Items):
                self._codes[name] = code_of(attribute, columns)
                continue
            self._item_columns[name] = columns[0]
            element = columns[0].element or columns[0]
            element = replace(element, raw=columns[0].raw, name=columns[0].name)
            self._item_codes[name] = code_of(attribute, (element,))
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
        self._order = None if order is None else column(order)
        for given in (self._person, self._order):
            if given is not None and given.reading == "list":
                raise DataRefused("must hold one value per row", column=given.raw, fix="Name another column.")
        self._axes = {
            axis.name: (name, axis.name.removeprefix(name).lstrip("."))
            for name in domain
            for axis in domain.axes_of(name)
        }

    def __repr__(self) -> str:
        return f"Rows({self.kind})"

    # ------------------------------------------------------------------ what can be asked

    def check(self, names: tuple[str, ...], where: Test | None) -> None:
        """Refuse nothing: rows can answer whatever the policy's domain can ask."""

    def counts(self, names: tuple[str, ...], where: Test | None = None) -> Counts:
        """Count the people in each cell of these attributes; with no name, all of them (a 0-d array)."""
        for name in names:
            self._domain.attribute(name, key="counts")
        if any(isinstance(self._domain[name], Items) for name in names):
            raise _no_cells(names)
        shape = tuple(self._domain[name].size for name in names)
        if math.prod(shape) > _MOST_CELLS:
            raise PlanError("must have at most 2^31 cells", key="histogram", given=list(names), fix="Ask for fewer.")
        codes = [self._codes[name] for name in names]
        keys = [key for code in codes for key in code.keys]

        def grouped() -> Any:
            if self._per_person > 1:
                return _grouped(self._picked(frozenset(names), where), keys, distinct=("u",))
            return self._grouped_twice(names, where)

        table = self._read(grouped)
        return closed(lambda: self._decoded(table, names, shape), InternalError("counting rows"))

    def item_counts(self, name: str, where: Test | None = None) -> Counts:
        """Count for each item of a set the people who have it."""
        attribute = _items(self._domain, name)
        code = self._item_codes[name]

        def grouped() -> Any:
            return _grouped(self._had(name, where), list(code.keys), distinct=("u",))

        table = self._read(grouped)

        def decoded() -> Counts:
            counts = np.zeros(attribute.count, dtype=np.int64)
            places = code.decode([table.column(f"k{place}") for place in range(len(code.keys))])
            people = _whole(table.column("n"))
            np.add.at(counts, places[places >= 0], people[places >= 0])
            return counts

        return closed(decoded, InternalError("counting items")) if code.keys else np.zeros(attribute.count, np.int64)

    def total(self, name: str, where: Test | None = None) -> int:
        """Add up a whole-number attribute over the people."""
        attribute = self._domain.attribute(name, key="total")
        if not isinstance(attribute, Integers):
            raise _no_total(name)

        def summed() -> Any:
            frame = self._picked(frozenset({name}), where)
            chosen = [self._codes[name].keys[0].cast(nw.Int64).alias("k0")]
            # every kept row counts, also if two of a person are equal: a sum over distinct values could jump by a whole
            # value when one of them moves by one
            frame = frame.select(*chosen)
            above = nw.col("k0") - attribute.low
            frame = frame.select(low=above % _HALF, rest=above - above % _HALF)
            # rest is a multiple of 2^31 below 2^63, so the division is exact in any engine
            frame = frame.select("low", high=(nw.col("rest") / _HALF).cast(nw.Int64))
            return frame.select(nw.col("low").sum(), nw.col("high").sum(), nw.len().alias("n"))

        (row,) = self._read(summed).to_pylist()
        return int(row["high"] or 0) * _HALF + int(row["low"] or 0) + attribute.low * int(row["n"])

    def frame(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """Make a frame of the user's own kind out of columns that may be shown."""
        return self._engine.frame(columns)

    # ------------------------------------------------------------------ how it is read

    def _read(self, build: Callable[[], Any]) -> pa.Table:
        def collected() -> pa.Table:
            with self._engine.quiet():
                return build().collect(backend="pyarrow").to_arrow()

        return closed(collected, DataRefused(_UNREADABLE, fix=_UNREADABLE_FIX))

    def _frame(self, columns: Sequence[Column], numbers: Iterable[Column], *, row: bool) -> Any:
        """Select columns, with their number readings, whose row it is ("u") and which came first ("o", "r")."""
        wanted = {column.name: column.raw for column in columns}
        if self._person is not None:
            wanted[PERSON] = self._person.raw
        if row and self._order is not None:
            wanted["o"] = self._order.raw
        frame = nw.from_native(self._engine.select(wanted, row="r" if row else None)).lazy()
        frame = self._with_numbers(frame, numbers)
        if self._person is None:
            return frame.with_columns(u=nw.col("r")) if row else frame
        frame = frame.filter(~nw.col("u").is_null())
        if self._person.reading == "real":
            frame = frame.filter(~nw.col("u").cast(nw.Float64).is_nan())
        if row and self._order is not None:
            if self._order.reading == "real":
                # engines sort NaN differently; like a missing value it comes last
                frame = frame.with_columns(o=nw.when(~nw.col("o").cast(nw.Float64).is_nan()).then(nw.col("o")))
            frame = frame.with_columns(o_missing=nw.col("o").is_null())
        return frame

    @property
    def _sequence(self) -> list[str]:
        return ["r"] if self._order is None else ["o_missing", "o", "r"]

    def _with_numbers(self, frame: Any, columns: Iterable[Column]) -> Any:
        """Add the number readings of text columns."""
        read = {column.number: column.name for column in columns}
        return nw.from_native(self._engine.numbers(nw.to_native(frame), read)).lazy() if read else frame

    def _grouped_twice(self, names: tuple[str, ...], where: Test | None) -> Any:
        """Group by raw cells where these repeat, then check and map only the distinct ones and group by position.

        Checking every cell of 50 million rows costs as much as grouping them; checking each distinct cell is free.
        """
        asked = set() if where is None else {self._axes[a.name][0] for a, _ in where.atoms if a.name in self._axes}
        late = {name: self._codes[name] for name in names if self._codes[name].repeats and name not in asked}
        early = [key for name in names if name not in late for key in self._codes[name].keys]
        frame = self._picked(frozenset(names), where, late=frozenset(late))
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
        return _grouped(frame, keys, lines=nw.col("n").sum())

    def _picked(
        self,
        names: frozenset[str],
        where: Test | None,
        *,
        late: frozenset[str] = frozenset(),
        carry: Column | None = None,
    ) -> Any:
        """Return one line per kept row that is in the data and that `where` picks, ready to be grouped by `names`.

        Attributes in `late` are selected as they are; their caller checks and maps them. The list column `carry`
        comes along.
        """
        atoms = () if where is None else where.atoms
        asked = {self._axes[axis.name][0] for axis, _ in atoms if axis.name in self._axes}
        marks = {axis: f"h{place}" for place, axis in enumerate(sorted({a.name for a, _ in atoms} - set(self._axes)))}
        codes = [code for name, code in self._codes.items() if name in names | asked or code.valid is not None]
        columns = dict.fromkeys(column for code in codes for column in code.columns)
        if carry is not None:
            columns[carry] = None
        row = bool(codes) if self._person is not None else bool(marks) or carry is not None
        checked = [code for name, code in self._codes.items() if code in codes and name not in late]
        frame = self._frame(tuple(columns), [column for code in checked for column in code.numbers], row=row)
        if self._person is not None and codes:
            rank = nw.col("r").cum_count().over("u", order_by=self._sequence)
            frame = frame.with_columns(rank=rank).filter(nw.col("rank") <= self._per_person)
        elif self._person is not None:
            # nothing is read from a row, so which one is first does not matter
            frame = frame.select("u").unique()
        for code in checked:
            if code.valid is not None:
                frame = frame.filter(code.valid)
        for axis, mark in marks.items():
            name, _, place = axis.rpartition("[")
            has_it = self._item_codes[name].atom("", Intervals.points([int(place.rstrip("]"))]))
            owners = self._had(name).filter(has_it).select("u").unique().with_columns(nw.lit(1).alias(mark))
            frame = frame.join(owners, on="u", how="left")
        if where is not None:
            frame = frame.filter(where.holds(lambda axis, found: self._atom(axis.name, found, marks), lambda e: ~e))
        return frame

    def _atom(self, axis: str, positions: Intervals, marks: Mapping[str, str]) -> Expr:
        if axis in self._axes:
            name, part = self._axes[axis]
            return self._codes[name].atom(part, positions)
        has = ~nw.col(marks[axis]).is_null()
        yes, no = 1 in positions, 0 in positions
        if yes and no:
            return has | ~has
        return has if yes else ~has if no else has & ~has

    def _had(self, name: str, where: Test | None = None) -> Any:
        """Return the known items of the people that `where` picks: "u" and the item, at most `at_most` a person."""
        attribute, code, source = _items(self._domain, name), self._item_codes[name], self._item_columns[name]
        is_list, sequence = source.reading == "list", list(self._sequence)
        in_data = any(other.valid is not None for other in self._codes.values())
        if self._person is None:
            frame = self._picked(frozenset(), where, carry=source)
        else:
            frame = self._frame((source,), () if is_list else code.numbers, row=attribute.at_most is not None)
            if where is not None or in_data:
                frame = frame.join(self._picked(frozenset(), where).select("u"), on="u", how="inner")
        if is_list:
            frame = nw.from_native(self._engine.unrolled(nw.to_native(frame), source.name, "place")).lazy()
            frame = self._with_numbers(frame, code.numbers)
            sequence.append("place")
        if code.valid is not None:
            frame = frame.filter(code.valid)
        if attribute.at_most is not None and code.keys:
            keys = [f"k{place}" for place in range(len(code.keys))]
            frame = frame.with_columns(*(key.alias(alias) for key, alias in zip(code.keys, keys, strict=True)))
            again = nw.col("r").cum_count().over("u", *keys, order_by=sequence)
            frame = frame.with_columns(again=again).filter(nw.col("again") == 1)
            rank = nw.col("r").cum_count().over("u", order_by=sequence)
            frame = frame.with_columns(nth=rank).filter(nw.col("nth") <= attribute.at_most).drop(*keys)
        return frame

    def _decoded(self, table: pa.Table, names: tuple[str, ...], shape: tuple[int, ...]) -> Counts:
        people = _whole(table.column("n"))
        cells = np.zeros(len(people), dtype=np.int64)
        inside = np.ones(len(people), dtype=np.bool_)
        column = 0
        for name, size in zip(names, shape, strict=True):
            code = self._codes[name]
            found = [table.column(f"k{column + offset}") for offset in range(len(code.keys))]
            column += len(code.keys)
            positions = code.decode(found)
            inside &= positions >= 0
            cells = cells * size + positions
        counts = np.zeros(math.prod(shape), dtype=np.int64)
        np.add.at(counts, cells[inside], people[inside])
        return counts.reshape(shape)


def _pointer(raw: str, declared: frozenset[str], known: list[str], *, is_file: bool) -> str:
    """Return the sentence that helps to find a column; a file without a header has a person's values for names."""
    found = sum(name in known for name in declared)
    if not found:
        return "No declared column was found: is there a header?"
    if not is_file:
        return nearest(raw, sorted(known))
    match = get_close_matches(raw, sorted(known), n=1, cutoff=0.6) if 2 * found >= len(declared) else []
    return f"Did you mean {match[0]!r}?" if match else "Check the name in the header of the file."


def _raw(name: str, attribute: Attribute, item: str | None) -> tuple[str, ...]:
    if isinstance(attribute, Grid):
        return attribute.of
    return (item,) if item is not None and isinstance(attribute, Items) else (name,)


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


def _items(domain: Domain, name: str) -> Items:
    attribute = domain.attribute(name, key="item_counts")
    if not isinstance(attribute, Items):
        raise PlanError("must be a set of items", key="item_counts", given=name, fix="Ask for a histogram.")
    return attribute


def _no_cells(names: tuple[str, ...]) -> PlanError:
    return PlanError("must not be a set of items", key="counts", given=list(names), fix="Ask for its item counts.")


def _no_total(name: str) -> PlanError:
    return PlanError("must be declared as integers", key="total", given=name, fix="Count it instead.")

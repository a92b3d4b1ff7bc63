"""The borders to the engines: the few things that narwhals does not say for all of them.

An engine selects columns under plain names (so that dots, quotes and spaces in the data's own names never matter
again), reads texts as numbers without ever failing on one, reads and unrolls lists, says whether its columns are still
those that were found, and makes a frame of the user's own kind. Everything else is narwhals. No engine numbers rows:
rows have no place, so that nothing can be put together by it.

pandas frames and Arrow tables are buffers, not engines: DuckDB counts them in place, without a copy of what is typed.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import os
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused
from tacit.rows.batches import BATCH, Piece, is_text, of_columns, of_parquet, of_reader
from tacit.rows.date_texts import arrow_date, arrow_moment, duckdb_date, duckdb_day, polars_date, spark_date
from tacit.rows.encode import NUMBER, Column, Derived, Helper, column_of, decimal_column
from tacit.rows.file_columns import csv_header, files_of, parquet_columns, refuse_one_name_twice
from tacit.rows.file_identity import Identities, identities, identity
from tacit.rows.file_kinds import not_well_formed
from tacit.rows.frames import as_arrow, as_pandas
from tacit.rows.guard import cancelled_by_interrupt
from tacit.rows.guard import closed as closed
from tacit.rows.item_lists import DuckDBLists, Key, ListReading, PolarsLists, SparkLists
from tacit.rows.object_cells import decoded, id_of, lists_of, text_of, texts_of
from tacit.rows.planned_files import files_of_plan, files_of_relation
from tacit.rows.spark_log import log_off
from tacit.rows.spill import private_folder

PERSON: Final = "u"  # the name under which the column that says whose row it is gets selected
_ORDER: Final = "o"  # and the one that says which rows come first
_EVENTS: Final = ("t", "e")  # and, of events, when they were and which
_LONGEST_LINE: Final = 16 * 2**20
_OLDEST_POLARS: Final = (1, 18)  # not a dependency, so that no installer sees to it
# of DuckDB: what Arrow holds without a change
_STREAMED: Final = {
    *("boolean", "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"),
    *("float", "double", "decimal", "varchar", "date", "timestamp"),
}
_KINDS: Final = "a path, a pandas, polars, Arrow, DuckDB, Spark or Ibis table, or ItemCounts"


MakeFrame = Callable[[Mapping[str, Sequence[Any]]], Any]


class Engine(Protocol):
    """What rows need of the place where they are. A `native` is a lazy frame of the engine."""

    kind: str

    def schema(self) -> dict[str, Column]:
        """Return how each column is read; looks at no row."""

    def names(self) -> list[str]:
        """Return the names of all columns, as often as they are there; looks at no row."""

    def unchanged(self) -> bool:
        """Say whether the source still has the columns that were found when it was opened; looks at no row."""

    def select(self, columns: Mapping[str, str]) -> Any:
        """Return the raw columns (new name -> raw name)."""

    def numbers(self, native: Any, columns: Mapping[str, str]) -> Any:
        """Add the number reading of text columns (new name -> column)."""

    def dates(self, native: Any, columns: Mapping[str, tuple[str, str]]) -> Any:
        """Add the UTC dates of columns (new name -> column, precision); see `rows/date_cells.py`."""

    def keyed(self, native: Any, columns: Mapping[str, ListReading]) -> Any:
        """Replace list columns by the keys of their items, each once; see `rows/item_lists.py`."""

    def having(self, native: Any, marks: Mapping[str, tuple[str, Key]]) -> Any:
        """Add true/false columns (new name -> list column and key) that say whether a list holds a key."""

    def unrolled(self, native: Any, column: str, place: str) -> Any:
        """Return one row per element of a list column, with the element's place in its list."""

    def stacked(self, native: Any, kept: Sequence[str], columns: Sequence[str], name: str) -> Any:
        """Return a line for each row and column: the cell under a new name, and the kept columns of its row."""

    @property
    def frame(self) -> MakeFrame:
        """What makes a frame of the user's kind; it knows nothing of the rows, since records keep it."""

    def pieces(self, columns: Mapping[str, str]) -> list[Piece] | None:
        """Return the raw columns (new name -> raw name) as batches; None if the engine counts better by itself."""

    place: Any  # what decides, beside the types of columns, what can be counted; None if that cannot be said

    def emptied(self) -> Engine:
        """Return the engine with the same columns and no row."""

    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        """Return no rows of the raw columns (new name -> raw name), in the types that `pieces` gives them."""

    def rehearse(self, native: Any) -> None:
        """Do with a frame over no rows what fails if its types cannot be counted; on Spark no job runs."""

    def type_of(self, raw: str) -> str:
        """Return what the type of a column is called; looks at no row."""

    def helper(self) -> duckdb.DuckDBPyConnection:
        """Return a connection to an embedded DuckDB of ours."""

    keeps: bool  # whether the rows are the same as long as `unchanged` says so
    rows: int | None  # how many there are, where that is known without reading them

    def quiet(self, *cancel: Callable[[], object]) -> contextlib.AbstractContextManager[None]:
        """Keep the engine from showing or logging anything while rows are read; `cancel` what an interrupt must end."""


def engine_for(source: Any, *, lists: frozenset[str], declared: frozenset[str]) -> Engine:
    """Return the engine that a source lives in.

    `lists` names the columns that may hold sets of items, `declared` all columns that the domain speaks of.
    """
    # whatever an object does when it is asked what it is, it may quote what it holds
    return closed(lambda: _engine_for(source, lists, declared), DataRefused(f"rows must be {_KINDS}"))


def _engine_for(source: Any, lists: frozenset[str], declared: frozenset[str]) -> Engine:
    if isinstance(source, str | Path) or (isinstance(source, list | tuple) and source):
        return files(source if isinstance(source, list | tuple) else [source], declared)
    source = nw.to_native(source, pass_through=True)  # a narwhals frame stands for what it wraps
    module, name = type(source).__module__.split(".")[0], type(source).__name__
    if isinstance(source, pd.DataFrame):
        return _Pandas(source, lists)
    if isinstance(source, pa.Table):
        return _Arrow(source)
    if isinstance(source, duckdb.DuckDBPyRelation):
        return _DuckDB("duckdb", source)
    if module == "polars" and name in ("DataFrame", "LazyFrame"):
        return _Polars(source)
    if module == "pyspark" and name == "DataFrame" and hasattr(source, "sparkSession"):
        return _Spark(source)
    if module == "ibis" and hasattr(source, "to_pyarrow") and hasattr(source, "schema"):
        return _ibis(source)
    raise DataRefused(f"rows must be {_KINDS}", fix=f"A {module} {name} is none of them.")


def unreadable() -> DataRefused:
    """Return the one sentence about rows that an engine failed on."""
    return DataRefused(
        "the engine could not read the rows",
        fix="No detail is shown because rows were open: check that the file or table is complete by reading it outside "
        "Tacit.",
    )


def with_readings(engine: Engine, frame: Any, helpers: Iterable[Helper]) -> Any:
    """Add the helper columns: numbers that texts spell, dates, and what is computed from them."""
    wanted = list(helpers)
    columns = [helper for helper in wanted if isinstance(helper, Column)]
    numbers = {column.number: column.name for column in columns if not column.as_date}
    dates = {column.number: (column.name, column.as_date) for column in columns if column.as_date}
    if numbers:
        frame = nw.from_native(engine.numbers(nw.to_native(frame), numbers)).lazy()
    if dates:
        frame = nw.from_native(engine.dates(nw.to_native(frame), dates)).lazy()
    derived = {helper.number: helper.expression for helper in wanted if isinstance(helper, Derived)}
    for name, expression in derived.items():  # one after the other: each may look at those before it
        frame = frame.with_columns(expression.alias(name))
    return frame


def duckdb_readings(relation: Any, helpers: Iterable[Helper]) -> Any:
    """Return a relation of DuckDB with the helper columns, whatever engine its cells came from."""
    return with_readings(_DuckDB("duckdb", relation), nw.from_native(relation).lazy(), helpers)


def _schema(native: Any) -> dict[str, Column]:
    return {name: column_of(dtype) for name, dtype in nw.from_native(native).lazy().collect_schema().items()}


_warnings_lock = threading.RLock()


@contextlib.contextmanager
def _no_warnings() -> Iterator[None]:
    # an engine's warning may quote a cell; the filters are global, hence one reader at a time
    with _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _cancelled(*cancel: Callable[[], object]) -> Iterator[None]:
    def every() -> None:
        for one in cancel:
            with contextlib.suppress(Exception):  # nothing to cancel any more
                one()

    with cancelled_by_interrupt(every) if cancel else contextlib.nullcontext():
        yield


class _DuckDB:
    """A DuckDB relation: the user's own, or one that we make over files and buffers."""

    keeps = False
    place: Any = None
    rows: int | None = None

    def __init__(self, kind: str, relation: Any) -> None:
        self.kind = kind
        self._relation = relation
        self._connection: Any = None  # ours, if there is one; a user's is not ours to interrupt
        self._found: Any = None

    def schema(self) -> dict[str, Column]:
        """Return how each column is read."""
        self._found = self._columns()
        found = _schema(self._relation)
        kinds = zip(self._relation.columns, self._relation.types, strict=True)
        unknown = {"null": Column("text"), "timestamptz_ns": Column("time")}  # to narwhals
        return found | {name: unknown[kind.id] for name, kind in kinds if kind.id in unknown}

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return list(self._relation.columns)

    def unchanged(self) -> bool:
        """Bind the relation again, and look at the files that its plan reads: those may be read by position."""
        return bool(self._found == self._columns())

    def _columns(self) -> Any:
        fresh = self._relation.project("*")
        return list(fresh.columns), [str(kind) for kind in fresh.types], identities(files_of_relation(self._relation))

    def relation(self, columns: Mapping[str, str]) -> Any:
        """Return a relation that has these raw columns."""
        types = dict(zip(self._relation.columns, self._relation.types, strict=True))
        chosen = (f"{_exact(_name(raw), types[raw])} AS {new}" for new, raw in columns.items())
        return self._relation.project(", ".join(chosen) or "1 AS one")

    def select(self, columns: Mapping[str, str]) -> Any:
        """Select columns under new names."""
        return self.relation(columns)

    def numbers(self, native: Any, columns: Mapping[str, str]) -> Any:
        """Read texts as numbers: whatever is not one becomes missing."""
        return read_numbers(native, columns)

    def dates(self, native: Any, columns: Mapping[str, tuple[str, str]]) -> Any:
        """Read dates."""
        kinds = {name: kind.id for name, kind in zip(native.columns, native.types, strict=True)}
        read = (f", {duckdb_date(column, kinds[column], form)} AS {new}" for new, (column, form) in columns.items())
        return native.project("*" + "".join(read))

    def keyed(self, native: Any, columns: Mapping[str, ListReading]) -> Any:
        """Read lists."""
        read = (f"{DuckDBLists(_sql_number).keyed(column, reading)} AS {column}" for column, reading in columns.items())
        return native.project(f"* REPLACE ({', '.join(read)})") if columns else native

    def having(self, native: Any, marks: Mapping[str, tuple[str, Key]]) -> Any:
        """Look into lists."""
        has = DuckDBLists(_sql_number).has
        return native.project("*" + "".join(f", {has(column, key)} AS {new}" for new, (column, key) in marks.items()))

    def unrolled(self, native: Any, column: str, place: str) -> Any:
        """Unroll a list column."""
        kind = dict(zip(native.columns, native.types, strict=True))[column]
        element = _exact(f"unnest({column})", dict(kind.children)["child"])
        return native.project(f"* REPLACE ({element} AS {column}), unnest(range(len({column}))) AS {place}")

    def stacked(self, native: Any, kept: Sequence[str], columns: Sequence[str], name: str) -> Any:
        """Stack columns by SQL of our own: narwhals asks DuckDB's default connection, which knows other tables."""
        return native.project(", ".join([*kept, f"unnest([{', '.join(columns)}]) AS {name}"]))

    @property
    def frame(self) -> MakeFrame:
        """Make a relation, or a pandas frame when the rows came from files."""
        return as_pandas if self.kind == "file" else _as_relation

    @contextlib.contextmanager
    def quiet(self, *cancel: Callable[[], object]) -> Iterator[None]:
        """Keep quiet, and end at once when interrupted."""
        ours = () if self._connection is None else (self._connection.interrupt,)
        with _no_warnings(), _cancelled(*ours, *cancel):
            yield

    def pieces(self, columns: Mapping[str, str]) -> list[Piece] | None:
        """Stream the columns, if Arrow holds them without a change."""
        relation = self.relation(columns)
        if not all(kind.id in _STREAMED for kind in relation.types):
            return None
        return of_reader(lambda: relation.to_arrow_reader(BATCH))

    def emptied(self) -> Engine:
        """Limit the relation to no row, which reads none."""
        other = copy.copy(self)
        other._relation = self._relation.limit(0)
        return other

    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        """Read no rows."""
        return self.relation(columns).limit(0).to_arrow_table()

    def rehearse(self, native: Any) -> None:
        """Read no rows."""
        native.to_arrow_table()

    def type_of(self, raw: str) -> str:
        """Return the name of a type."""
        return str(self.relation({"c": raw}).types[0])

    def helper(self) -> duckdb.DuckDBPyConnection:
        """Return a connection beside our own, or one to a DuckDB of its own beside the user's."""
        return embedded() if self._connection is None else self._connection.cursor()


def _exact(expression: str, kind: Any) -> str:
    """Return an expression of this type whose texts are compared sign by sign.

    A collation, of a column or of the whole connection, would make one of texts that differ in case or accents, and
    which of them stands for all would be one person's doing. It clings to every expression that is made of this one.
    """
    return f"(CAST({expression} AS VARCHAR) COLLATE C)" if kind.id in ("varchar", "enum") else expression


def read_numbers(relation: Any, columns: Mapping[str, str]) -> Any:
    """Add the number reading of text columns (new name -> column) to a DuckDB relation."""
    read = "".join(f", {_sql_number(f'CAST({column} AS VARCHAR)')} AS {new}" for new, column in columns.items())
    return relation.project("*" + read)


def _sql_number(text: str) -> str:
    text = f"({text} COLLATE C)"
    return (
        f"CASE WHEN lower({text}) = 'true' THEN 1::DOUBLE WHEN lower({text}) = 'false' THEN 0::DOUBLE "
        f"WHEN regexp_matches({text}, {_quoted(NUMBER)}) THEN TRY_CAST(trim({text}) AS DOUBLE) END"
    )


class _Buffers(_DuckDB, ABC):
    """Columns in memory, read in place by an embedded DuckDB."""

    keeps = True

    def __init__(self, kind: str, table: Any, names: Sequence[Any]) -> None:
        super().__init__(kind, None)
        self._table = table
        self.rows = len(table)
        self._names = [name for name in names if isinstance(name, str)]  # no domain can mean any other name
        self._connection = embedded()
        self._converted: dict[tuple[str, str], pa.ChunkedArray] = {}

    def schema(self) -> dict[str, Column]:
        """Return how each column is read."""
        return {name: self.column(name) for name in self._names if self._names.count(name) == 1}

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return self._names

    def unchanged(self) -> bool:
        """Say yes: the columns are our own."""
        return True

    @abstractmethod
    def column(self, name: str) -> Column:
        """Return how a column is read."""

    @abstractmethod
    def cells(self, name: str, *, whose: bool) -> Any:
        """Return a column as Arrow holds it; `whose` says that it is read as the ids of people."""

    def emptied(self) -> Engine:
        """Keep no row."""
        other = copy.copy(self)
        other._table, other.rows, other._converted = self._table[:0], 0, {}
        return other

    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        """Return no rows."""
        return pa.table(self._cells_of(columns)).slice(0, 0)

    def pieces(self, columns: Mapping[str, str]) -> list[Piece] | None:
        """Cut the columns into batches."""
        found = self._cells_of(columns)
        if not all(_is_held(column.type) for column in found.values()):
            return None
        return of_columns(found, len(self._table))

    def _cells_of(self, columns: Mapping[str, str]) -> dict[str, pa.ChunkedArray]:
        keys = {new: (raw, new if new in (PERSON, _ORDER, *_EVENTS) else "") for new, raw in columns.items()}
        for raw, role in keys.values():
            if (raw, role) not in self._converted:
                self._converted[raw, role] = _plain(self.cells(raw, whose=role == PERSON), role)
        return {new: self._converted[key] for new, key in keys.items()}

    def relation(self, columns: Mapping[str, str]) -> Any:
        """Hand the columns to DuckDB."""
        table = pa.table(self._cells_of(columns))
        if not columns:
            table = pa.table({"one": pa.array(np.ones(len(self._table), dtype=np.int8))})
        return self._connection.from_arrow(table)


class _Arrow(_Buffers):
    """An Arrow table."""

    place = "pyarrow"

    def __init__(self, table: Any) -> None:
        super().__init__("pyarrow", table, table.column_names)

    def column(self, name: str) -> Column:
        """Return how a column is read."""
        return _arrow_column(self._table.schema.field(name).type)

    def type_of(self, raw: str) -> str:
        """Return the name of a type."""
        return str(self._table.schema.field(raw).type)

    def cells(self, name: str, *, whose: bool) -> Any:
        """Return a column."""
        return self._table.column(name)

    @property
    def frame(self) -> MakeFrame:
        """Make an Arrow table."""
        return as_arrow


class _Pandas(_Buffers):
    """A pandas frame. Columns of Python objects are read as texts, or as lists of items where items are expected."""

    place = "pandas"

    def __init__(self, table: Any, lists: frozenset[str]) -> None:
        # what is done to the frame from now on, its names included, is done to another one
        super().__init__("pandas", table.copy(deep=False), list(table.columns))
        self._lists = lists
        self._dtypes = dict(zip(table.columns, table.dtypes, strict=True))

    def column(self, name: str) -> Column:
        """Return how a column is read."""
        dtype = self._dtypes[name]
        if dtype == np.dtype(object):
            return Column("list", element=Column("text")) if name in self._lists else Column("text")
        if isinstance(dtype, pd.CategoricalDtype):
            dtype = dtype.categories.dtype
            if dtype == np.dtype(object):
                return Column("text")
        if isinstance(dtype, pd.ArrowDtype):
            return _arrow_column(dtype.pyarrow_dtype)
        if isinstance(dtype, pd.DatetimeTZDtype):
            return Column("time")
        return _pandas_column(dtype)

    def type_of(self, raw: str) -> str:
        """Return the name of a type."""
        dtype = self._table.dtypes[raw]
        kind = f"{dtype} of {dtype.categories.dtype}" if isinstance(dtype, pd.CategoricalDtype) else str(dtype)
        return f"{kind} with lists" if raw in self._lists else kind

    def cells(self, name: str, *, whose: bool) -> Any:
        """Return a column."""
        column, read = self._table[name], id_of if whose else text_of
        if getattr(column.dtype, "kind", "") == "c":  # Arrow has no such numbers; as anything but ids they are refused
            return texts_of(column, read)
        if column.dtype == np.dtype(object):
            return lists_of(column) if name in self._lists and not whose else texts_of(column, read)
        if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.categories.dtype == np.dtype(object):
            codes = column.cat.codes.to_numpy()
            return texts_of(column.cat.categories, read).take(pa.array(codes, mask=codes < 0))
        if isinstance(column.dtype, pd.StringDtype):
            with contextlib.suppress(UnicodeEncodeError, pa.ArrowInvalid):
                return pa.Array.from_pandas(column)
            return texts_of(column, read)  # a text that no encoding can hold
        return pa.Array.from_pandas(column)

    @property
    def frame(self) -> MakeFrame:
        """Make a pandas frame."""
        return as_pandas


@functools.lru_cache(maxsize=256)  # a frame has many columns of few types
def _pandas_column(dtype: Any) -> Column:
    empty = pd.DataFrame({"c": pd.Series([], dtype=dtype)})
    return column_of(nw.from_native(empty, eager_only=True).schema["c"])


def _arrow_column(kind: pa.DataType) -> Column:
    """Return how an Arrow column of this type is read; a dictionary is read as what is in it."""
    types = pa.types
    if types.is_dictionary(kind):
        return _arrow_column(kind.value_type)
    if types.is_null(kind):
        return Column("text")
    if types.is_date(kind):
        return Column("date")
    if types.is_decimal(kind) and kind.bit_width <= 128:
        return decimal_column(kind.precision, kind.scale)
    if types.is_list(kind) or types.is_large_list(kind):
        return Column("list", element=_arrow_column(kind.value_type))
    return column_of(nw.from_native(pa.table({"c": pa.array([], type=kind)}), eager_only=True).schema["c"])


def _plain(cells: Any, role: str = "") -> pa.ChunkedArray:
    """Return a column in a type that DuckDB reads. A timestamp stands for its day, but in ids, orders and events."""
    if isinstance(cells, pa.Array):
        cells = pa.chunked_array([cells])
    kind = cells.type
    if pa.types.is_dictionary(kind) and not is_text(kind.value_type):
        return _plain(cells.cast(kind.value_type), role)
    compared, happened = role in (PERSON, _ORDER), role in _EVENTS
    is_time = pa.types.is_timestamp(kind) or pa.types.is_date64(kind) or (pa.types.is_duration(kind) and compared)
    if is_time and not happened:
        read = arrow_moment if compared else arrow_date
        kind = read(pa.array([], kind)).type
        return pa.chunked_array([read(chunk) for chunk in cells.chunks], type=kind)
    if pa.types.is_null(kind):
        return cells.cast(pa.string())
    if pa.types.is_float16(kind):
        return cells.cast(pa.float32())
    if is_text(kind) or pa.types.is_dictionary(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        with contextlib.suppress(pa.ArrowInvalid):
            cells.validate(full=True)
            return cells
        return pa.chunked_array([_decodable(chunk) for chunk in cells.chunks])
    return cells


def _is_held(kind: pa.DataType) -> bool:
    """Say whether cells of this type mean the same to Arrow and to DuckDB."""
    types = pa.types
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(
        is_text(kind)
        or types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_float32(kind)
        or types.is_float64(kind)
        or types.is_date32(kind)
        or types.is_timestamp(kind)
        or types.is_decimal128(kind)
    )


def _decodable(cells: pa.Array) -> pa.Array:
    """Return texts, or lists of them, without the bytes that are no UTF-8: these become missing."""
    kind = cells.type
    if pa.types.is_dictionary(kind):
        return _decodable(cells.dictionary).take(cells.indices)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = np.asarray(cells.value_lengths().fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        return pa.LargeListArray.from_arrays(pa.array(ends, type=pa.int64()), _decodable(cells.flatten()))
    if not is_text(kind):
        return cells
    raw = cells.cast(pa.large_binary()).to_pylist()
    return pa.array([None if cell is None else decoded(cell) for cell in raw], type=pa.large_string())


def files(paths: Sequence[str | Path], declared: frozenset[str]) -> Engine:
    """Return an engine over CSV or Parquet files; a path may be a pattern such as `data/*.parquet`."""
    if not all(isinstance(path, str | Path) for path in paths):
        raise DataRefused(f"rows must be {_KINDS}", fix="A list may hold paths only.")
    found, are_csv = files_of(paths)
    return _csv(found, declared) if are_csv else _parquet(found)


def _parquet(paths: Sequence[Path]) -> Engine:
    before = identities(paths)
    columns = parquet_columns(paths)
    connection = embedded()
    listed = ", ".join(map(_literal, paths))
    # a folder called like a column does not speak for the column that the file has
    options = ", hive_partitioning=false" + (", union_by_name=true" if len(paths) > 1 else "")
    relation = None
    coarse = {name for name, leaves in columns if any(_is_coarse(logical) for leaf in leaves for _, logical, _ in leaf)}
    with contextlib.suppress(Exception):
        query = f"FROM read_parquet([{listed}]{options})"
        relation = connection.sql(query)
        if coarse:  # DuckDB renames the second of two columns alike
            named = zip(relation.columns, columns, strict=True)
            kept = [_name(ours) for ours, (name, _) in named if name not in coarse]
            relation = connection.sql(f"SELECT {', '.join(kept) or '1 AS one'} {query}")
    if relation is None:
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        raise DataRefused(f"file {str(paths[0])!r}{more} must be readable as Parquet", fix="Write it again.")
    return _Parquet(relation, connection, before, paths, columns, frozenset(coarse))


def _is_coarse(logical: str) -> bool:
    return logical.startswith("Timestamp(") and "milliseconds" in logical


def _csv(paths: Sequence[Path], declared: frozenset[str]) -> Engine:
    # Dialect, names and types come from the header and from us, never from what the rows look like: every column is
    # text, a missing field is empty and unquoted.
    before = identities(paths)
    headers = [csv_header(path) for path in paths]
    delimiter, names = headers[0]
    for path, header in zip(paths, headers, strict=True):
        if header != headers[0]:
            raise DataRefused(f"file {str(path)!r} must have the same header as {str(paths[0])!r}", fix="Rewrite it.")
    if not declared <= set(names):  # without a header line these would be the first person's values
        refuse_one_name_twice(names)
    connection = embedded()

    def read(some: Sequence[Path]) -> Any:
        columns = ", ".join(f"'k{place}': 'VARCHAR'" for place in range(len(names)))
        listed = ", ".join(map(_literal, some))
        return connection.sql(
            f"SELECT * FROM read_csv([{listed}], auto_detect=false, delim={_quoted(delimiter)}, "  # noqa: S608
            f"quote='\"', escape='\"', header=true, columns={{{columns}}}, ignore_errors=false, strict_mode=true, "
            f"max_line_size={_LONGEST_LINE}, buffer_size={2 * _LONGEST_LINE}, parallel=true, nullstr='', "
            f"allow_quoted_nulls=false, compression='auto', hive_partitioning=false)"
        )

    # Before anything is charged, every field of every line is looked at once, so that no later question fails or loses
    # a row. Each file by itself: with parallel=false, or for many files at once, DuckDB 2.0 ends a file in silence
    # where a quote is never closed.
    every = ", ".join(f"count(k{place})" for place in range(len(names)))
    for path in paths:
        refusal = not_well_formed(path)
        if not closed(functools.partial(_ends_in_time, path), refusal):
            raise refusal
        closed(functools.partial(lambda path: read([path]).aggregate(every).fetchall(), path), refusal)
    return _Csv(read(paths), connection, before, (delimiter, names))


def _ends_in_time(path: Path) -> bool:
    """Say whether the last line is not too long: DuckDB leaves out one that fills its buffer, without a word."""
    if path.name.lower().endswith(".gz") or path.stat().st_size <= _LONGEST_LINE:
        return True
    with path.open("rb") as lines:
        lines.seek(-_LONGEST_LINE, os.SEEK_END)
        tail = lines.read().rstrip(b"\r\n")
    return b"\n" in tail or b"\r" in tail


class _Files(_DuckDB):
    """Files, read by an embedded DuckDB that lives as long as the rows. `before` is what they were when opened."""

    keeps = True

    def __init__(
        self, relation: Any, connection: duckdb.DuckDBPyConnection, before: Identities, names: Sequence[str]
    ) -> None:
        super().__init__("file", relation)
        self._connection = connection
        self._before = before
        self._names = list(names)

    def names(self) -> list[str]:
        """Return the names of all columns: those in the file, since DuckDB renames the second of two alike."""
        return self._names

    def unchanged(self) -> bool:
        """Say whether the files are those that were opened."""
        return identities(self._before) == self._before


class _Parquet(_Files):
    """Parquet files, whose row groups Arrow reads where it understands their columns just as DuckDB does.

    `coarse` columns hold milliseconds. DuckDB makes microseconds of them, which not all of them are, and fails on one
    even where only the statistics of a file have it; so its relation has none of them, and Arrow reads them for it.
    """

    place = "parquet"

    def __init__(
        self,
        relation: Any,
        connection: duckdb.DuckDBPyConnection,
        before: Identities,
        paths: Sequence[Path],
        leaves: Sequence[tuple[str, Any]],
        coarse: frozenset[str],
    ) -> None:
        super().__init__(relation, connection, before, [name for name, _ in leaves])
        self._paths, self._coarse = paths, coarse
        # a dot in a name is the way to a part of a column to Arrow
        self._flat = {name: found[0][0] for name, found in leaves if "." not in name and len(found) == 1}
        # read as dictionaries, whatever a file says that a column is to be read as
        self._texts = frozenset(name for name, leaf in self._flat.items() if leaf == ("BYTE_ARRAY", "String", 0))
        self._halves = frozenset(
            name for name, found in leaves if any(leaf[1] == "Float16" for one in found for leaf in one)
        )
        self._types = self._arrow_types()

    def schema(self) -> dict[str, Column]:
        """Return how each column is read; DuckDB widens floats of 16 bits, and they still stand for what they did."""
        found = super().schema() | {name: _arrow_column(self._type(name)) for name in self._coarse}
        return {name: replace(column, bits=16) if name in self._halves else column for name, column in found.items()}

    def _type(self, name: str) -> pa.DataType:
        kind = min(self._types[name], key=str)  # files may tell a zone in different ways
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def relation(self, columns: Mapping[str, str]) -> Any:
        """Return a relation that has these raw columns."""
        if not self._coarse & set(columns.values()):
            return super().relation(columns)
        import pyarrow.dataset as ds

        arrow = {raw: self._type(raw) for raw in columns.values()}
        events = {raw for new, raw in columns.items() if new in _EVENTS}
        moments = {raw for raw in self._coarse & set(arrow) - events if pa.types.is_timestamp(arrow[raw])}
        kinds = {raw: pa.int64() if raw in moments else kind for raw, kind in arrow.items()}
        dataset = pa.schema(kinds).empty_table()
        if self._paths:
            dataset = ds.dataset([str(path) for path in self._paths], schema=pa.schema(kinds), format="parquet")
        found = _DuckDB(self.kind, self._connection.from_arrow(dataset)).relation(columns)
        dates = [new for new, raw in columns.items() if raw in moments and new not in (PERSON, _ORDER)]
        read = ", ".join(f"{duckdb_day(new, arrow[columns[new]].unit)} AS {new}" for new in dates)
        return found.project(f"* REPLACE ({read})") if dates else found

    def pieces(self, columns: Mapping[str, str]) -> list[Piece] | None:
        """Return the row groups, or a stream."""
        return (
            of_parquet(self._paths, columns, self._texts) if self._read_by_arrow(columns) else super().pieces(columns)
        )

    def _read_by_arrow(self, columns: Mapping[str, str]) -> bool:
        """Say whether Arrow reads these columns as DuckDB does, in one type each."""
        read = self.schema()
        for raw in columns.values():
            kinds = self._types[raw]
            alike = raw in self._flat and self._flat[raw][0] != "INT96" and len(kinds) == 1
            if not alike or not all(_is_held(kind) and _arrow_column(kind) == read[raw] for kind in kinds):
                return False
        return True

    def emptied(self) -> Engine:
        """Read no file."""
        other = copy.copy(self)
        other._relation, other._paths = self._relation.limit(0), ()
        return other

    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        """Return no rows, in the types that Arrow finds in the files."""
        types = {new: next(iter(self._types[raw])) for new, raw in columns.items()}
        return pa.schema(types).empty_table() if self._read_by_arrow(columns) else super().nothing(columns)

    def type_of(self, raw: str) -> str:
        """Return the name of a type: to DuckDB, and to Arrow."""
        kinds = dict(zip(self._relation.columns, self._relation.types, strict=True))
        return f"{kinds.get(raw)}, {self._flat.get(raw)}, {sorted(map(str, self._types[raw]))}"

    def _arrow_types(self) -> dict[str, set[pa.DataType]]:
        """Return the types that each column has to Arrow in the files: a file can say more than its columns."""
        import pyarrow.parquet as pq

        found: dict[str, set[pa.DataType]] = {}
        for path in self._paths:
            with pq.ParquetFile(path, read_dictionary=sorted(self._texts)) as file:
                for field in file.schema_arrow:
                    found.setdefault(field.name, set()).add(field.type)
        return found


class _Csv(_Files):
    """CSV files: every column is text, under the names of the header, which need not be names that SQL can tell.

    DuckDB is told how many columns there are and reads them by place; so the header is looked at again, too.
    """

    place = "csv"

    def __init__(
        self,
        relation: Any,
        connection: duckdb.DuckDBPyConnection,
        before: Identities,
        header: tuple[str, list[str]],
    ) -> None:
        super().__init__(relation, connection, before, [name for name in header[1] if name])
        self._header = header
        self._places = {name: f"k{place}" for place, name in enumerate(header[1]) if name}

    def schema(self) -> dict[str, Column]:
        """Return how each column is read."""
        return {name: Column("text") for name in self._places}

    def type_of(self, raw: str) -> str:
        """Return the name of the one type."""
        return "VARCHAR"

    def unchanged(self) -> bool:
        """Say whether the files are those that were opened, headers included."""
        return super().unchanged() and all(csv_header(Path(path)) == self._header for path in self._before)

    def relation(self, columns: Mapping[str, str]) -> Any:
        """Return a relation that has these raw columns."""
        return super().relation({new: self._places[raw] for new, raw in columns.items()})


_numbers: Final = itertools.count()


def embedded() -> duckdb.DuckDBPyConnection:
    """Return a DuckDB in this process that fetches nothing, shows nothing and spills into a private folder."""
    # no extension is fetched from the network, and no progress bar is drawn over the user's terminal
    settings: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    connection = duckdb.connect(":memory:", config=settings)
    connection.execute("SET enable_progress_bar = false")
    spill = private_folder(os.getpid()) / str(next(_numbers))
    connection.execute(f"SET temp_directory = {_quoted(str(spill))}")  # made when needed, removed with the connection
    return connection


def _literal(path: Path) -> str:
    """Return a path as SQL that means this one file, whatever is in its name."""
    return _quoted("".join(f"[{sign}]" if sign in "[*?" else sign for sign in str(path)))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


class _Polars:
    """A polars frame, eager or lazy."""

    kind = "polars"

    def __init__(self, source: Any) -> None:
        import polars as pl

        # what older ones lack would be missed only after the charge
        if tuple(map(int, pl.__version__.split(".")[:2])) < _OLDEST_POLARS:
            oldest = ".".join(map(str, _OLDEST_POLARS))
            raise DataRefused(f"polars must be at least version {oldest}", fix=f"pip install 'polars>={oldest}'.")
        self._lazy = source.lazy()
        self._scans = isinstance(source, pl.LazyFrame)
        self.place = ("polars", self._scans)
        self.rows: int | None = None if self._scans else len(source)
        self.keeps = not self._scans  # a plan may read something else next time; a frame does not change
        self._found: Any = None
        self._files: Identities = {}

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return list(self._lazy.collect_schema().names())

    def unchanged(self) -> bool:
        """Look at the columns again, and at the files that a plan may read by position."""
        import polars as pl

        same = self._identities() == self._files
        return same and bool(self._lazy.select(pl.all()).collect_schema() == self._found)

    def _identities(self) -> Identities:
        return identities(files_of_plan(self._lazy)) if self._scans else {}

    def schema(self) -> dict[str, Column]:
        """Return how each column is read."""
        import polars as pl

        self._files = self._identities()
        self._found = self._lazy.collect_schema()
        nothing = {name for name, dtype in self._found.items() if dtype == pl.Null}
        return {name: Column("text") if name in nothing else found for name, found in _schema(self._lazy).items()}

    def select(self, columns: Mapping[str, str]) -> Any:
        """Select columns under new names."""
        import polars as pl
        from polars import selectors

        # a selector, because pl.col reads a name like ^a.*$ as a pattern
        chosen = [selectors.by_name(raw).as_expr().alias(new) for new, raw in columns.items()]
        return self._lazy.select(chosen) if chosen else self._lazy.select(pl.int_range(pl.len()).alias("one"))

    def pieces(self, columns: Mapping[str, str]) -> list[Piece] | None:
        """Cut the columns of a frame into batches; of a plan, leave the counting to polars."""
        if self._scans:
            return None
        import polars as pl

        held = (
            pl.Int8,
            pl.Int16,
            pl.Int32,
            pl.Int64,
            pl.UInt8,
            pl.UInt16,
            pl.UInt32,
            pl.UInt64,
            pl.Float32,
            pl.Float64,
        )
        texts = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Date, pl.Datetime, pl.Decimal, pl.Null)
        if not all(self._found[raw] in (*held, *texts) for raw in columns.values()):  # Arrow may lack the type
            return None
        table = self.select(columns).collect().to_arrow()
        found = {new: _plain(table.column(new), new) for new in columns}
        if not all(_is_held(column.type) for column in found.values()):
            return None
        return of_columns(found, table.num_rows)

    def emptied(self) -> Engine:
        """Make a frame of the same columns: whatever a plan does, none of it is done."""
        import polars as pl

        other = copy.copy(self)
        other._lazy, other.rows = pl.DataFrame(schema=self._found).lazy(), 0
        return other

    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        """Return no rows."""
        table = self.select(columns).collect().to_arrow()
        cells = {new: _plain(table.column(new), new) for new in columns}
        return pa.table(cells).slice(0, 0)

    def rehearse(self, native: Any) -> None:
        """Read no rows."""
        native.collect().to_arrow()

    def type_of(self, raw: str) -> str:
        """Return the name of a type."""
        return str(self._found[raw])

    def helper(self) -> duckdb.DuckDBPyConnection:
        """Return a DuckDB of its own."""
        return embedded()

    def numbers(self, native: Any, columns: Mapping[str, str]) -> Any:
        """Read texts as numbers."""
        import polars as pl

        return native.with_columns(
            _polars_number(pl.col(column).cast(pl.String)).alias(new) for new, column in columns.items()
        )

    def dates(self, native: Any, columns: Mapping[str, tuple[str, str]]) -> Any:
        """Read dates."""
        kinds = native.collect_schema()
        return native.with_columns(
            polars_date(column, kinds[column], form).alias(new) for new, (column, form) in columns.items()
        )

    def keyed(self, native: Any, columns: Mapping[str, ListReading]) -> Any:
        """Read lists."""
        import polars as pl

        functions = PolarsLists(_polars_number)
        return native.with_columns(
            functions.keyed(pl.col(column), reading).alias(column) for column, reading in columns.items()
        )

    def having(self, native: Any, marks: Mapping[str, tuple[str, Key]]) -> Any:
        """Look into lists."""
        import polars as pl

        has = PolarsLists(_polars_number).has
        return native.with_columns(has(pl.col(column), key).alias(new) for new, (column, key) in marks.items())

    def unrolled(self, native: Any, column: str, place: str) -> Any:
        """Unroll a list column."""
        import polars as pl

        filled = native.filter(pl.col(column).list.len() > 0)
        return filled.with_columns(pl.int_ranges(pl.col(column).list.len()).alias(place)).explode(column, place)

    def stacked(self, native: Any, kept: Sequence[str], columns: Sequence[str], name: str) -> Any:
        """Stack columns."""
        return native.unpivot(on=columns, index=kept, value_name=name).select(*kept, name)

    @property
    def frame(self) -> MakeFrame:
        """Make a polars frame."""
        return _as_polars

    @contextlib.contextmanager
    def quiet(self, *cancel: Callable[[], object]) -> Iterator[None]:
        """Keep quiet."""
        with _no_warnings(), _cancelled(*cancel):
            yield


def _polars_number(text: Any) -> Any:
    import polars as pl

    lower = text.str.to_lowercase()
    spelled = pl.when(text.str.contains(NUMBER)).then(text.str.strip_chars(" ")).cast(pl.Float64, strict=False)
    return pl.when(lower == "true").then(1.0).when(lower == "false").then(0.0).otherwise(spelled)


class _Spark:
    """A Spark DataFrame."""

    kind = "pyspark"
    keeps = False
    rows: int | None = None

    def pieces(self, columns: Mapping[str, str]) -> list[Piece] | None:
        """Leave the counting to Spark."""
        return None

    def emptied(self) -> Engine:
        """Limit the frame to no row."""
        other = copy.copy(self)
        other._source = self._source.limit(0)
        return other

    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        """Return no rows: there are no pieces."""
        return pa.table({})

    def rehearse(self, native: Any) -> None:
        """Look at the types of the plan: Spark checks them when it makes one, and no job runs."""
        _ = native.schema

    def type_of(self, raw: str) -> str:
        """Return the name of a type."""
        return str(self._source.schema[raw].dataType.simpleString())

    def helper(self) -> duckdb.DuckDBPyConnection:
        """Return a DuckDB of its own."""
        return embedded()

    def __init__(self, source: Any) -> None:
        self._source = source
        self.place = ("pyspark", id(source.sparkSession))
        self._files: dict[str, Any] = {}

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return list(self._source.columns)

    def unchanged(self) -> bool:
        """Look at the files again: Spark made its plan when the frame was made, and reads texts by position."""
        return all(self._file(address) == found for address, found in self._files.items())

    def _file(self, address: str) -> Any:
        if address.startswith("file:"):
            return identity(unquote(urlsplit(address).path))
        context = self._source.sparkSession.sparkContext
        path = context._jvm.org.apache.hadoop.fs.Path(address)
        status = path.getFileSystem(context._jsc.hadoopConfiguration()).getFileStatus(path)
        return status.getLen(), status.getModificationTime()

    def schema(self) -> dict[str, Column]:
        """Return how each column is read."""
        # columnar files are read by name
        with self.quiet():  # listing files plans the question, and a plan may fail on a cell and log it
            # not to be passed over: a question about other columns may have a plan that does not fail
            listed = closed(lambda: list(self._source.inputFiles()), unreadable())
        by_place = [name for name in listed if not name.endswith((".parquet", ".orc"))]
        self._files = {address: self._file(address) for address in by_place}
        found = {}
        names = self._source.columns
        for field in self._source.schema.fields:
            if sum(name.casefold() == field.name.casefold() for name in names) > 1:
                continue  # Spark cannot tell which one is meant, and nobody may ask for it
            empty = field.dataType.typeName() == "void"
            plain = self._source.select(_spark_column(field.name).alias("c"))
            found[field.name] = Column("text") if empty else _schema(plain)["c"]
        return found

    def select(self, columns: Mapping[str, str]) -> Any:
        """Select columns under new names."""
        from pyspark.sql import functions

        chosen = [_spark_column(raw).alias(new) for new, raw in columns.items()] or [functions.lit(1).alias("one")]
        return self._source.select(*chosen)

    def numbers(self, native: Any, columns: Mapping[str, str]) -> Any:
        """Read texts as numbers."""
        from pyspark.sql import functions

        texts = ((new, functions.col(column).cast("string")) for new, column in columns.items())
        return native.select("*", *(_spark_number(text).alias(new) for new, text in texts))

    def dates(self, native: Any, columns: Mapping[str, tuple[str, str]]) -> Any:
        """Read dates."""
        kinds = {field.name: field.dataType.typeName() for field in native.schema.fields}
        return native.withColumns(
            {new: spark_date(column, kinds[column], form) for new, (column, form) in columns.items()}
        )

    def keyed(self, native: Any, columns: Mapping[str, ListReading]) -> Any:
        """Read lists."""
        from pyspark.sql import functions

        keyed = SparkLists(_spark_number).keyed
        return native.withColumns(
            {column: keyed(functions.col(column), reading) for column, reading in columns.items()}
        )

    def having(self, native: Any, marks: Mapping[str, tuple[str, Key]]) -> Any:
        """Look into lists."""
        from pyspark.sql import functions

        has = SparkLists(_spark_number).has
        return native.withColumns({new: has(functions.col(column), key) for new, (column, key) in marks.items()})

    def unrolled(self, native: Any, column: str, place: str) -> Any:
        """Unroll a list column."""
        from pyspark.sql import functions

        others = [name for name in native.columns if name != column]
        return native.select(*others, functions.posexplode(column).alias(place, column))

    def stacked(self, native: Any, kept: Sequence[str], columns: Sequence[str], name: str) -> Any:
        """Stack columns."""
        return native.unpivot(list(kept), list(columns), "v", name).select(*kept, name)

    @property
    def frame(self) -> MakeFrame:
        """Make a Spark DataFrame."""
        return functools.partial(_as_spark, self._source.sparkSession)

    @contextlib.contextmanager
    def quiet(self, *cancel: Callable[[], object]) -> Iterator[None]:
        """Keep quiet: Spark writes the text of a failure, cell included, to its own log."""
        with _no_warnings(), log_off(self._source), _cancelled(*cancel):
            yield


def _spark_number(text: Any) -> Any:
    from pyspark.sql import functions

    lower = functions.lower(text)
    # in Java, $ would also match before a line break at the end
    spelled = text.rlike(NUMBER.removesuffix("$") + r"\z")
    number = functions.when(lower == "true", 1.0).when(lower == "false", 0.0)
    return number.when(spelled, functions.trim(text).try_cast("double"))


def _spark_column(raw: str) -> Any:
    from pyspark.sql import functions

    return functions.col("`" + raw.replace("`", "``") + "`")


def _ibis(source: Any) -> Engine:
    """Return the engine of an Ibis table: the DuckDB that it lives in.

    How other backends compare texts is up to their collations, which Ibis cannot ask for.
    """
    backend = source.get_backend()
    if backend.name != "duckdb":
        raise DataRefused(
            f"an Ibis table must live in DuckDB, and this one lives in {backend.name}, "
            "which may take texts that differ for the same",
            fix="Give table.to_pyarrow(), or open it in its own engine: a polars or Spark frame.",
        )
    return _IbisOnDuckDB(source, backend)


class _IbisOnDuckDB(_DuckDB):
    """An Ibis table, as the relation that it stands for."""

    def __init__(self, source: Any, backend: Any) -> None:
        backend._run_pre_execute_hooks(source)  # names the tables in memory
        super().__init__("ibis", backend.con.sql(backend.compile(source)))
        self._source = source  # tables in memory live as long as it does

    def names(self) -> list[str]:
        """Return the names of all columns: DuckDB renames the second of two that differ in case only."""
        return list(self._source.columns)

    @property
    def frame(self) -> MakeFrame:
        """Make an Ibis table in memory."""
        return _as_ibis


def _as_relation(columns: Mapping[str, Sequence[Any]]) -> Any:
    return duckdb.from_arrow(as_arrow(columns))


def _as_polars(columns: Mapping[str, Sequence[Any]]) -> Any:
    import polars as pl

    return pl.DataFrame(as_arrow(columns))


def _as_spark(session: Any, columns: Mapping[str, Sequence[Any]]) -> Any:
    return session.createDataFrame(as_arrow(columns))


def _as_ibis(columns: Mapping[str, Sequence[Any]]) -> Any:
    import ibis

    return ibis.memtable(as_arrow(columns))

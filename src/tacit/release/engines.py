"""The borders to the engines: the few things that narwhals does not say for all of them.

An engine selects columns under plain names (so that dots, quotes and spaces in the data's own names never matter
again), reads texts as numbers without ever failing on one, unrolls lists, numbers the rows in the order in which the
source delivers them, and makes a frame of the user's own kind. Everything else is narwhals.

pandas frames and Arrow tables are buffers, not engines: DuckDB counts them in place, without a copy of what is typed.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import functools
import glob
import gzip
import itertools
import logging
import math
import os
import shutil
import tempfile
import threading
import uuid
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused, TacitError
from tacit.release.encode import EXACT, NUMBER, Column, column_of, spelling

Found = TypeVar("Found")
PERSON: Final = "u"  # the name under which the column that says whose row it is gets selected
_DELIMITERS: Final = ",;\t|"
_LONGEST_LINE: Final = 16 * 2**20
_LONGEST_PATH: Final = 4096
_MOST_DIGITS: Final = 4000  # Python itself refuses to spell whole numbers of more than 4300
_SPARK_LOGGERS: Final = ("py4j", "pyspark", "SQLQueryContextLogger", "DataFrameQueryContextLogger")
_KINDS: Final = "a path, a pandas, polars, Arrow, DuckDB, Spark or Ibis table, or ItemCounts"


class Engine(Protocol):
    """What rows need of the place where they are. A `native` is a lazy frame of the engine."""

    kind: str

    def schema(self) -> dict[str, Column]:
        """Return how each column is read; looks at no row."""

    def select(self, columns: Mapping[str, str], *, row: str | None) -> Any:
        """Return the raw columns (new name -> raw name), with the row number under `row` if it is wanted."""

    def numbers(self, native: Any, columns: Mapping[str, str]) -> Any:
        """Add the number reading of text columns (new name -> column)."""

    def unrolled(self, native: Any, column: str, place: str) -> Any:
        """Return one row per element of a list column, with the element's place in its list."""

    def frame(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """Make a frame of the user's kind."""

    def quiet(self) -> contextlib.AbstractContextManager[None]:
        """Keep the engine from showing or logging anything while rows are read."""


def closed(work: Callable[[], Found], refusal: TacitError) -> Found:
    """Do work on open rows; whatever goes wrong becomes `refusal`, raised where no handler is active.

    Inside a handler, even `raise .. from None` would keep the engine's exception, cell included, as `__context__`. The
    traceback goes too: its frames hold true answers, which debuggers and error trackers print.
    """
    failure: BaseException
    try:
        return work()
    except TacitError as known:
        failure = known.with_traceback(None)
    except (KeyboardInterrupt, SystemExit) as ended:
        failure = type(ended)()
    except BaseException as unknown:  # not Exception: a panic inside polars is none
        # DuckDB turns Ctrl-C into an exception of its own
        failure = KeyboardInterrupt() if type(unknown).__name__ == "InterruptException" else refusal
    failure.__context__ = failure.__cause__ = None
    raise failure


def engine_for(source: Any, *, lists: frozenset[str], declared: frozenset[str]) -> Engine:
    """Return the engine that a source lives in.

    `lists` names the columns that may hold sets of items, `declared` all columns that the domain speaks of.
    """
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
        return _Ibis(source)
    raise DataRefused(f"rows must be {_KINDS}", fix=f"A {module} {name} is none of them.")


def _schema(native: Any) -> dict[str, Column]:
    return {name: column_of(dtype) for name, dtype in nw.from_native(native).lazy().collect_schema().items()}


def _arrow(columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Make an Arrow table of labels and answers; a column of several types becomes a column of texts."""
    arrays = {}
    for name, values in columns.items():
        listed = [value.item() if isinstance(value, np.generic) else value for value in values]
        if len({type(value) for value in listed if value is not None}) > 1:
            whole = all(type(value) in (int, float) for value in listed if value is not None)
            listed = [value if value is None else float(value) if whole else str(value) for value in listed]
        arrays[name] = pa.array(listed)
    return pa.table(arrays)


_warnings_lock = threading.RLock()


@contextlib.contextmanager
def _no_warnings() -> Iterator[None]:
    # an engine's warning may quote a cell; the filters are global, hence one reader at a time
    with _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class _DuckDB:
    """A DuckDB relation: the user's own, or one that we make over files and buffers."""

    def __init__(self, kind: str, relation: Any) -> None:
        self.kind = kind
        self._relation = relation

    def schema(self) -> dict[str, Column]:
        """Return how each column is read."""
        return _schema(self._relation)

    def relation(self, columns: Mapping[str, str]) -> Any:
        """Return a relation that has these raw columns."""
        return self._relation.project(", ".join(f"{_name(raw)} AS {new}" for new, raw in columns.items()) or "1 AS one")

    def select(self, columns: Mapping[str, str], *, row: str | None) -> Any:
        """Select columns under new names."""
        chosen = self.relation(columns)
        return chosen if row is None else chosen.project(f"*, row_number() OVER () AS {row}")

    def numbers(self, native: Any, columns: Mapping[str, str]) -> Any:
        """Read texts as numbers: whatever is not one becomes missing."""
        read = "".join(
            f", CASE WHEN lower({text}) = 'true' THEN 1::DOUBLE WHEN lower({text}) = 'false' THEN 0::DOUBLE "
            f"WHEN regexp_matches({text}, {_quoted(NUMBER)}) THEN TRY_CAST(trim({text}) AS DOUBLE) END AS {new}"
            for new, text in ((new, f"CAST({column} AS VARCHAR)") for new, column in columns.items())
        )
        return native.project("*" + read)

    def unrolled(self, native: Any, column: str, place: str) -> Any:
        """Unroll a list column."""
        return native.project(f"* REPLACE (unnest({column}) AS {column}), unnest(range(len({column}))) AS {place}")

    def frame(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """Return a relation, or a pandas frame when the rows came from files."""
        return pd.DataFrame(dict(columns)) if self.kind == "file" else duckdb.from_arrow(_arrow(columns))

    def quiet(self) -> contextlib.AbstractContextManager[None]:
        """Keep quiet."""
        return _no_warnings()


class _Buffers(_DuckDB):
    """Columns in memory, read in place by an embedded DuckDB."""

    def __init__(self, kind: str, table: Any, names: Sequence[Any]) -> None:
        super().__init__(kind, None)
        self._table = table
        self._names = [name for name in names if isinstance(name, str)]  # no domain can mean any other name
        self._connection = _embedded()
        self._converted: dict[tuple[str, bool], pa.ChunkedArray] = {}

    def schema(self) -> dict[str, Column]:
        """Return how each column is read."""
        for name in self._names:
            if self._names.count(name) > 1:
                raise DataRefused("must be there only once", column=name, fix="Rename the second one.")
        return {name: self.column(name) for name in self._names}

    def column(self, name: str) -> Column:
        """Return how a column is read."""
        raise NotImplementedError

    def cells(self, name: str, *, whose: bool) -> Any:
        """Return a column as Arrow holds it; `whose` says that it is read as the ids of people."""
        raise NotImplementedError

    def relation(self, columns: Mapping[str, str]) -> Any:
        """Hand the columns to DuckDB."""
        keys = {new: (raw, new == PERSON) for new, raw in columns.items()}
        for raw, whose in keys.values():
            if (raw, whose) not in self._converted:
                self._converted[raw, whose] = _plain(self.cells(raw, whose=whose))
        table = pa.table({new: self._converted[key] for new, key in keys.items()})
        if not columns:
            table = pa.table({"one": pa.array(np.ones(len(self._table), dtype=np.int8))})
        return self._connection.from_arrow(table)


class _Arrow(_Buffers):
    """An Arrow table."""

    def __init__(self, table: Any) -> None:
        super().__init__("pyarrow", table, table.column_names)

    def column(self, name: str) -> Column:
        """Return how a column is read."""
        kind = self._table.schema.field(name).type
        if pa.types.is_null(kind):
            return Column("text")
        if pa.types.is_float16(kind):
            return Column("real")
        if pa.types.is_dictionary(kind):
            return Column("text" if _has_spelling(kind.value_type) else "other")
        return column_of(nw.from_native(self._table.select([name]).slice(0, 0), eager_only=True).schema[name])

    def cells(self, name: str, *, whose: bool) -> Any:
        """Return a column."""
        return self._table.column(name)

    def frame(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """Return an Arrow table."""
        return _arrow(columns)


class _Pandas(_Buffers):
    """A pandas frame. Columns of Python objects are read as texts, or as lists of items where items are expected."""

    def __init__(self, table: Any, lists: frozenset[str]) -> None:
        super().__init__("pandas", table, list(table.columns))
        self._lists = lists

    def column(self, name: str) -> Column:
        """Return how a column is read."""
        dtype = self._table.dtypes[name]
        if dtype == np.dtype(object):
            return Column("list", element=Column("text")) if name in self._lists else Column("text")
        if dtype == np.dtype(np.float16):
            return Column("real")
        if isinstance(dtype, pd.CategoricalDtype):
            return Column("text" if _are_plain(dtype.categories.dtype) else "other")
        return column_of(nw.from_native(self._table[[name]].iloc[:0], eager_only=True).schema[name])

    def cells(self, name: str, *, whose: bool) -> Any:
        """Return a column."""
        column, read = self._table[name], _id if whose else _text
        if column.dtype == np.dtype(object):
            return _lists(column) if name in self._lists and not whose else _texts(column, read)
        if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.categories.dtype == np.dtype(object):
            codes = column.cat.codes.to_numpy()
            return _texts(column.cat.categories, read).take(pa.array(codes, mask=codes < 0))
        if isinstance(column.dtype, pd.StringDtype):
            with contextlib.suppress(UnicodeEncodeError, pa.ArrowInvalid):
                return pa.Array.from_pandas(column)
            return _texts(column, read)  # a text that no encoding can hold
        return pa.Array.from_pandas(column)

    def frame(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """Return a pandas frame."""
        return pd.DataFrame(dict(columns))


def _are_plain(dtype: Any) -> bool:
    """Say whether the categories of a pandas column are texts, numbers, truths or Python objects."""
    if isinstance(dtype, pd.ArrowDtype):
        return _has_spelling(dtype.pyarrow_dtype)
    return isinstance(dtype, pd.StringDtype) or dtype == np.dtype(object) or dtype.kind in "biuf"


def _plain(cells: Any) -> pa.ChunkedArray:
    """Return a column in a type that DuckDB reads."""
    if isinstance(cells, pa.Array):
        cells = pa.chunked_array([cells])
    kind = cells.type
    if pa.types.is_dictionary(kind) and not _is_text(kind.value_type):
        values = cells.cast(kind.value_type)
        return values.cast(pa.string()) if _has_spelling(kind.value_type) else values
    if pa.types.is_null(kind):
        return cells.cast(pa.string())
    if pa.types.is_float16(kind):
        return cells.cast(pa.float32())
    if _is_text(kind) or pa.types.is_dictionary(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        with contextlib.suppress(pa.ArrowInvalid):
            cells.validate(full=True)
            return cells
        return pa.chunked_array([_decodable(chunk) for chunk in cells.chunks])
    return cells


def _decodable(cells: pa.Array) -> pa.Array:
    """Return texts, or lists of them, without the bytes that are no UTF-8: these become missing."""
    kind = cells.type
    if pa.types.is_dictionary(kind):
        return _decodable(cells.dictionary).take(cells.indices)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = np.asarray(cells.value_lengths().fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        return pa.LargeListArray.from_arrays(pa.array(ends, type=pa.int64()), _decodable(cells.flatten()))
    if not _is_text(kind):
        return cells
    raw = cells.cast(pa.large_binary()).to_pylist()
    return pa.array([None if cell is None else _decoded(cell) for cell in raw], type=pa.large_string())


def _decoded(cell: bytes) -> str | None:
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _has_spelling(kind: pa.DataType) -> bool:
    types = pa.types
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return bool(_is_text(kind) or numeric or types.is_boolean(kind) or types.is_null(kind))


def _texts(cells: Any, read: Callable[[Any], str | None]) -> pa.Array:
    """Return the reading of a column of Python objects; what is no plain value becomes missing."""
    return pa.array([read(cell) for cell in cells.to_numpy(dtype=object)], type=pa.large_string())


def _lists(cells: Any) -> pa.Array:
    """Return a column of lists of texts; a single value is a list of one."""
    listed: list[list[str | None]] = []
    for cell in cells.to_numpy(dtype=object):
        kind = type(cell)  # not isinstance, which asks the object itself; nor its own way to be walked
        if issubclass(kind, list | tuple):
            walked: Iterable[Any] = list.__iter__(cell) if issubclass(kind, list) else tuple.__iter__(cell)
            listed.append([_text(item) for item in walked])
        elif issubclass(kind, np.ndarray):
            found = np.ndarray.tolist(cell) if cell.dtype.kind in "biufUO" else None  # a dimension of none is one value
            listed.append([_text(item) for item in found] if type(found) is list else [_text(found)])
        elif issubclass(kind, set | frozenset):
            walked = set.__iter__(cell) if issubclass(kind, set) else frozenset.__iter__(cell)
            # a set has no order, and Python's own order of texts changes from run to run
            listed.append([*sorted(text for text in map(_text, walked) if text is not None)])
        else:
            listed.append([_text(cell)])
    return pa.array(listed, type=pa.list_(pa.string()))


def _value(cell: Any) -> Any:
    """Return a cell as a plain str, int, float, bool or Decimal where it is one; only its type is asked."""
    kind = type(cell)
    if issubclass(kind, str):
        return str.__str__(cell)
    if issubclass(kind, np.bool_ | np.integer | np.floating) and not issubclass(kind, np.timedelta64):
        return np.generic.item(cell)
    return cell


def _text(cell: Any) -> str | None:
    # only plain types are read: an object's own __str__ or __eq__ is never called
    cell = _value(cell)
    kind = type(cell)
    if kind is str:
        return cell if cell.isascii() or _encodable(cell) else None
    if kind is bool:
        return "true" if cell else "false"
    if kind is int:
        return str(cell) if abs(cell) < 10**30 else ("1e99" if cell > 0 else "-1e99")
    if kind is Decimal and not cell.is_nan():  # a signalling NaN would raise
        cell = float(cell)
    if type(cell) is float and not math.isnan(cell):
        if abs(cell) < EXACT:
            return spelling(cell)
        return "1e99" if cell > 0 else "-1e99"  # beyond every domain that texts can have
    return None


def _id(cell: Any) -> str | None:
    """Return the text that stands for a person: the same for equal ids, different for different ones.

    As in a CSV, an id 7 is the id "7". Ids are compared and never shown.
    """
    cell = _value(cell)
    kind = type(cell)
    if kind is str:
        return str(cell) if _encodable(cell) else "\0text:" + cell.encode("utf-8", "surrogatepass").hex()
    if kind is bool:
        return "true" if cell else "false"
    if kind is int:
        return str(cell) if abs(cell) < 10**_MOST_DIGITS else hex(cell)
    if issubclass(kind, uuid.UUID):
        return str(uuid.UUID(int=cell.int))
    if issubclass(kind, bytes):
        return "\0bytes:" + bytes.hex(cell)
    if kind is float:
        if not math.isfinite(cell):
            return None if math.isnan(cell) else repr(cell)
        return str(int(cell)) if cell == int(cell) else _digits(Decimal(repr(cell)))
    if kind is Decimal:
        return None if cell.is_nan() else _digits(cell) if cell.is_finite() else repr(float(cell))
    return None


def _digits(number: Decimal) -> str:
    """Return every digit of a number, spelled in one way whatever its trailing zeros."""
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - the number is finite
    spelled = "".join(map(str, digits)).lstrip("0")
    kept = spelled.rstrip("0")
    exponent += len(spelled) - len(kept)
    if not kept:
        return "0"
    minus = "-" if sign else ""
    if abs(exponent) > _MOST_DIGITS:
        return f"{minus}{kept}e{exponent}"
    if exponent >= 0:
        return minus + kept + "0" * exponent
    kept = kept.rjust(1 - exponent, "0")
    return f"{minus}{kept[:exponent]}.{kept[exponent:]}"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def files(paths: Sequence[str | Path], declared: frozenset[str]) -> Engine:
    """Return an engine over CSV or Parquet files; a path may be a pattern such as `data/*.parquet`."""
    found: list[Path] = []
    for path in paths:
        if not isinstance(path, str | Path):
            raise DataRefused(f"rows must be {_KINDS}", fix="A list may hold paths only.")
        text = str(path)
        if len(text.splitlines()) != 1 or "\0" in text or len(text) > _LONGEST_PATH:  # the rows themselves: show none
            raise DataRefused("rows given as a text must be a path", fix="Write them to a file, or open a frame.")
        if _is_file(path):
            found.append(Path(path))
            continue
        matches = sorted(Path(match) for match in glob.glob(text, recursive=True) if _is_file(match))
        if not matches:
            is_pattern = glob.has_magic(text)
            raise DataRefused(
                f"file {text!r} must exist" if not is_pattern else f"pattern {text!r} must match a file",
                fix="Check the path; it is relative to the folder you started in."
                if not Path(path).is_absolute()
                else "",
            )
        found.extend(matches)
    formats = {_format(path) for path in found}
    if len(formats) > 1:
        raise DataRefused("files must all be CSV or all be Parquet", fix="Open them one kind at a time.")
    return _csv(found, declared) if formats == {"csv"} else _parquet(found)


def _is_file(path: str | Path) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _format(path: Path) -> str:
    name = path.name.lower()
    if name.endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz")):
        return "csv"
    if name.endswith((".parquet", ".pq")):
        return "parquet"
    raise DataRefused(
        f"file {str(path)!r} must end in .csv, .tsv, .csv.gz, .tsv.gz or .parquet",
        fix="Rename it, or open it with pandas or polars first.",
    )


def _parquet(paths: Sequence[Path]) -> Engine:
    connection = _embedded()
    listed = ", ".join(map(_literal, paths))
    options = ", union_by_name=true" if len(paths) > 1 else ""
    relation = None
    with contextlib.suppress(Exception):
        relation = connection.sql(f"SELECT * FROM read_parquet([{listed}]{options})")  # noqa: S608 - quoted above
    if relation is None:
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        raise DataRefused(f"file {str(paths[0])!r}{more} must be readable as Parquet", fix="Write it again.")
    return _OwnConnection(relation, connection)


def _csv(paths: Sequence[Path], declared: frozenset[str]) -> Engine:
    # Dialect, names and types come from the header and from us, never from what the rows look like: every column is
    # text, a missing field is empty and unquoted.
    headers = [_header(path) for path in paths]
    delimiter, names = headers[0]
    for path, header in zip(paths, headers, strict=True):
        if header != headers[0]:
            raise DataRefused(f"file {str(path)!r} must have the same header as {str(paths[0])!r}", fix="Rewrite it.")
    twice = [name for name in names if name and names.count(name) > 1]
    if twice and declared <= set(names):
        raise DataRefused("must be there only once", column=twice[0], fix="Rename the second one.")
    if twice:  # without a header line these would be the first person's values
        raise DataRefused("a column name is there twice", fix="Is there a header? Rename the second one.")
    connection = _embedded()

    def read(some: Sequence[Path]) -> Any:
        columns = ", ".join(f"'k{place}': 'VARCHAR'" for place in range(len(names)))
        listed = ", ".join(map(_literal, some))
        return connection.sql(
            f"SELECT * FROM read_csv([{listed}], auto_detect=false, delim={_quoted(delimiter)}, "  # noqa: S608
            f"quote='\"', escape='\"', header=true, columns={{{columns}}}, ignore_errors=false, strict_mode=true, "
            f"max_line_size={_LONGEST_LINE}, buffer_size={2 * _LONGEST_LINE}, parallel=true, nullstr='', "
            f"allow_quoted_nulls=false, compression='auto')"
        )

    # Before anything is charged, every field of every line is looked at once, so that no later question fails or loses
    # a row. Each file by itself: with parallel=false, or for many files at once, DuckDB 2.0 ends a file in silence
    # where a quote is never closed.
    every = ", ".join(f"count(k{place})" for place in range(len(names)))
    for path in paths:
        refusal = DataRefused(
            f"file {str(path)!r} must be well-formed CSV: as many fields in every line as in the header, quotes "
            "closed, one kind of line end",
            fix="Write it again as UTF-8 with a CSV library.",
        )
        if not closed(functools.partial(_ends_in_time, path), refusal):
            raise refusal
        closed(functools.partial(lambda path: read([path]).aggregate(every).fetchall(), path), refusal)
    return _Csv(read(paths), connection, names)


def _ends_in_time(path: Path) -> bool:
    """Say whether the last line is not too long: DuckDB leaves out one that fills its buffer, without a word."""
    if path.name.lower().endswith(".gz") or path.stat().st_size <= _LONGEST_LINE:
        return True
    with path.open("rb") as lines:
        lines.seek(-_LONGEST_LINE, os.SEEK_END)
        tail = lines.read().rstrip(b"\r\n")
    return b"\n" in tail or b"\r" in tail


def _header(path: Path) -> tuple[str, list[str]]:
    packed = path.name.lower().endswith(".gz")
    opened = gzip.open if packed else open
    raw = b""
    with contextlib.suppress(OSError, EOFError, zlib.error), opened(path, "rb") as lines:
        raw = lines.readline(1 << 20).partition(b"\r")[0].rstrip(b"\n")
    first = _decoded(raw.removeprefix(codecs.BOM_UTF8))
    if first is None:
        raise DataRefused(
            f"file {str(path)!r} must be UTF-8", fix="Save it as UTF-8, or open it with pandas and its encoding."
        )
    names: list[str] | None = None
    delimiter = max(_DELIMITERS, key=_outside_quotes(first).count)
    with contextlib.suppress(StopIteration, csv.Error):
        names = next(csv.reader([first], delimiter=delimiter))
    if not names or not any(names):
        raise DataRefused(f"file {str(path)!r} must begin with a line of column names", fix="Add the header.")
    return delimiter, names


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])


class _OwnConnection(_DuckDB):
    """Files, read by an embedded DuckDB that lives as long as the rows."""

    def __init__(self, relation: Any, connection: duckdb.DuckDBPyConnection) -> None:
        super().__init__("file", relation)
        self._connection = connection


class _Csv(_OwnConnection):
    """CSV files: every column is text, under the names of the header, which need not be names that SQL can tell."""

    def __init__(self, relation: Any, connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> None:
        super().__init__(relation, connection)
        self._places = {name: f"k{place}" for place, name in enumerate(names) if name}

    def schema(self) -> dict[str, Column]:
        """Return how each column is read."""
        return {name: Column("text") for name in self._places}

    def relation(self, columns: Mapping[str, str]) -> Any:
        """Return a relation that has these raw columns."""
        return super().relation({new: self._places[raw] for new, raw in columns.items()})


_numbers: Final = itertools.count()


def _embedded() -> duckdb.DuckDBPyConnection:
    # no extension is fetched from the network, and no progress bar is drawn over the user's terminal
    settings: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    connection = duckdb.connect(":memory:", config=settings)
    connection.execute("SET enable_progress_bar = false")
    spill = _private_folder(os.getpid()) / str(next(_numbers))
    connection.execute(f"SET temp_directory = {_quoted(str(spill))}")  # made when needed, removed with the connection
    return connection


@functools.cache
def _private_folder(_process: int) -> Path:
    """Make the folder, open to this user alone, for what does not fit into memory; a fork makes one of its own."""
    path = tempfile.mkdtemp(prefix="tacit-")
    # not atexit, which the processes of multiprocessing skip; of a fork, only the maker removes it
    Finalize(None, shutil.rmtree, args=(path, True), exitpriority=0)
    return Path(path)


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
        self._lazy = source.lazy()

    def schema(self) -> dict[str, Column]:
        """Return how each column is read."""
        import polars as pl

        nothing = {name for name, dtype in self._lazy.collect_schema().items() if dtype == pl.Null}
        return {name: Column("text") if name in nothing else found for name, found in _schema(self._lazy).items()}

    def select(self, columns: Mapping[str, str], *, row: str | None) -> Any:
        """Select columns under new names."""
        import polars as pl
        from polars import selectors

        # a selector, because pl.col reads a name like ^a.*$ as a pattern
        chosen = [selectors.by_name(raw).as_expr().alias(new) for new, raw in columns.items()]
        native = self._lazy.select(chosen) if chosen else self._lazy.select(pl.int_range(pl.len()).alias("one"))
        return native if row is None else native.with_row_index(row)

    def numbers(self, native: Any, columns: Mapping[str, str]) -> Any:
        """Read texts as numbers."""
        import polars as pl

        read = []
        for new, column in columns.items():
            text = pl.col(column).cast(pl.String)
            lower = text.str.to_lowercase()
            spelled = pl.when(text.str.contains(NUMBER)).then(text.str.strip_chars(" ")).cast(pl.Float64, strict=False)
            truth = pl.when(lower == "true").then(1.0).when(lower == "false").then(0.0)
            read.append(truth.otherwise(spelled).alias(new))
        return native.with_columns(read)

    def unrolled(self, native: Any, column: str, place: str) -> Any:
        """Unroll a list column."""
        import polars as pl

        filled = native.filter(pl.col(column).list.len() > 0)
        return filled.with_columns(pl.int_ranges(pl.col(column).list.len()).alias(place)).explode(column, place)

    def frame(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """Return a polars frame."""
        import polars as pl

        return pl.DataFrame(_arrow(columns))

    def quiet(self) -> contextlib.AbstractContextManager[None]:
        """Keep quiet."""
        return _no_warnings()


class _Spark:
    """A Spark DataFrame."""

    kind = "pyspark"

    def __init__(self, source: Any) -> None:
        self._source = source

    def schema(self) -> dict[str, Column]:
        """Return how each column is read."""
        found = {}
        for field in self._source.schema.fields:
            empty = field.dataType.typeName() == "void"
            plain = self._source.select(_spark_column(field.name).alias("c"))
            found[field.name] = Column("text") if empty else _schema(plain)["c"]
        return found

    def select(self, columns: Mapping[str, str], *, row: str | None) -> Any:
        """Select columns under new names."""
        from pyspark.sql import functions

        chosen = [_spark_column(raw).alias(new) for new, raw in columns.items()] or [functions.lit(1).alias("one")]
        if row is not None:
            chosen.append(functions.monotonically_increasing_id().alias(row))
        return self._source.select(*chosen)

    def numbers(self, native: Any, columns: Mapping[str, str]) -> Any:
        """Read texts as numbers."""
        from pyspark.sql import functions

        read = []
        for new, column in columns.items():
            text = functions.col(column).cast("string")
            lower = functions.lower(text)
            # in Java, $ would also match before a line break at the end
            spelled = text.rlike(NUMBER.removesuffix("$") + r"\z")
            number = functions.when(lower == "true", 1.0).when(lower == "false", 0.0)
            read.append(number.when(spelled, functions.trim(text).try_cast("double")).alias(new))
        return native.select("*", *read)

    def unrolled(self, native: Any, column: str, place: str) -> Any:
        """Unroll a list column."""
        from pyspark.sql import functions

        others = [name for name in native.columns if name != column]
        return native.select(*others, functions.posexplode(column).alias(place, column))

    def frame(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """Return a Spark DataFrame."""
        return self._source.sparkSession.createDataFrame(_arrow(columns))

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep quiet: Spark writes the text of a failure, cell included, to its own log."""
        with _no_warnings(), _spark_log_off(self._source):
            yield


@contextlib.contextmanager
def _spark_log_off(source: Any) -> Iterator[None]:
    level = None
    # a logger does not ask its parent whether it is disabled, and some are made only when something fails
    known = [name for name in list(logging.root.manager.loggerDict) if name.split(".")[0] in _SPARK_LOGGERS]
    loggers = [logging.getLogger(name) for name in {*_SPARK_LOGGERS, *known}]
    before = [logger.disabled for logger in loggers]
    with contextlib.suppress(Exception):  # over Spark Connect the log is the server's
        context = source.sparkSession.sparkContext
        root = context._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
        level = root.getLevel().toString()
        context.setLogLevel("OFF")
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was
        if level is not None:
            with contextlib.suppress(Exception):
                source.sparkSession.sparkContext.setLogLevel(level)


def _spark_column(raw: str) -> Any:
    from pyspark.sql import functions

    return functions.col("`" + raw.replace("`", "``") + "`")


class _Ibis:
    """An Ibis table, on whatever backend it lives."""

    kind = "ibis"

    def __init__(self, source: Any) -> None:
        self._source = source

    def schema(self) -> dict[str, Column]:
        """Return how each column is read."""
        nothing = {name for name, dtype in self._source.schema().items() if dtype.is_null()}
        return {name: Column("text") if name in nothing else found for name, found in _schema(self._source).items()}

    def select(self, columns: Mapping[str, str], *, row: str | None) -> Any:
        """Select columns under new names."""
        import ibis

        chosen = {new: self._source[raw] for new, raw in columns.items()} or {"one": ibis.literal(1)}
        native = self._source.select(**chosen)
        return native if row is None else native.mutate(**{row: ibis.row_number()})

    def numbers(self, native: Any, columns: Mapping[str, str]) -> Any:
        """Read texts as numbers."""
        import ibis

        read = {}
        for new, column in columns.items():
            text = native[column].cast("string")
            lower = text.lower()
            spelled = text.re_search(NUMBER).ifelse(text.strip(), ibis.null("string")).try_cast("float64")
            read[new] = (lower == "true").ifelse(1.0, (lower == "false").ifelse(0.0, spelled))
        return native.mutate(**read)

    def unrolled(self, native: Any, column: str, place: str) -> Any:
        """Unroll a list column."""
        return native.unnest(column, offset=place)

    def frame(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """Return an Ibis table in memory."""
        import ibis

        return ibis.memtable(_arrow(columns))

    def quiet(self) -> contextlib.AbstractContextManager[None]:
        """Keep quiet."""
        return _no_warnings()

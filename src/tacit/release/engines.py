"""The borders to the engines: the few things that narwhals does not say for all of them.

An engine selects columns under plain names (so that dots, quotes and spaces in the data's own names never matter
again), reads texts as numbers without ever failing on one, unrolls lists, numbers the rows in the order in which the
source delivers them, and makes a frame of the user's own kind. Everything else is narwhals.

pandas frames and Arrow tables are buffers, not engines: DuckDB counts them in place, without a copy of what is typed.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import gzip
import logging
import math
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Protocol

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused
from tacit.release.encode import EXACT, NUMBER, Column, column_of, spelling

_DELIMITERS: Final = ",;\t|"
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


def engine_for(source: Any, *, lists: frozenset[str]) -> Engine:
    """Return the engine that a source lives in. `lists` names the columns that may hold sets of items."""
    if isinstance(source, str | Path) or (isinstance(source, list | tuple) and source):
        return files(source if isinstance(source, list | tuple) else [source])
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
        self._converted: dict[str, pa.ChunkedArray] = {}

    def schema(self) -> dict[str, Column]:
        """Return how each column is read."""
        for name in self._names:
            if self._names.count(name) > 1:
                raise DataRefused("must be there only once", column=name, fix="Rename the second one.")
        return {name: self.column(name) for name in self._names}

    def column(self, name: str) -> Column:
        """Return how a column is read."""
        raise NotImplementedError

    def cells(self, name: str) -> Any:
        """Return a column as Arrow holds it."""
        raise NotImplementedError

    def relation(self, columns: Mapping[str, str]) -> Any:
        """Hand the columns to DuckDB."""
        for raw in columns.values():
            if raw not in self._converted:
                self._converted[raw] = _plain(self.cells(raw))
        table = pa.table({new: self._converted[raw] for new, raw in columns.items()})
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
        return column_of(nw.from_native(self._table.select([name]).slice(0, 0), eager_only=True).schema[name])

    def cells(self, name: str) -> Any:
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
        return column_of(nw.from_native(self._table[[name]].iloc[:0], eager_only=True).schema[name])

    def cells(self, name: str) -> Any:
        """Return a column."""
        column = self._table[name]
        if column.dtype != np.dtype(object):
            return pa.Array.from_pandas(column)
        return _lists(column) if name in self._lists else _texts(column)

    def frame(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """Return a pandas frame."""
        return pd.DataFrame(dict(columns))


def _plain(cells: Any) -> pa.ChunkedArray:
    """Return a column in a type that DuckDB reads."""
    if isinstance(cells, pa.Array):
        cells = pa.chunked_array([cells])
    kind = cells.type
    if pa.types.is_dictionary(kind) and not _is_text(kind.value_type):
        return cells.cast(kind.value_type).cast(pa.string())
    if pa.types.is_null(kind):
        return cells.cast(pa.string())
    return cells.cast(pa.float32()) if pa.types.is_float16(kind) else cells


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _texts(cells: Any) -> pa.Array:
    """Return the text reading of a column of Python objects; what is no plain value becomes missing."""
    return pa.array([_text(cell) for cell in cells.to_numpy(dtype=object)], type=pa.string())


def _lists(cells: Any) -> pa.Array:
    """Return a column of lists of texts; a single value is a list of one."""
    listed: list[list[str | None]] = []
    for cell in cells.to_numpy(dtype=object):
        if isinstance(cell, list | tuple | np.ndarray):
            listed.append([_text(item) for item in cell])
        elif isinstance(cell, set | frozenset):
            # a set has no order, and Python's own order of texts changes from run to run
            listed.append([*sorted(text for text in map(_text, cell) if text is not None)])
        else:
            listed.append([_text(cell)])
    return pa.array(listed, type=pa.list_(pa.string()))


def _text(cell: Any) -> str | None:
    # only plain types are read: an object's own __str__ or __eq__ is never called
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, str):
        text = str.__str__(cell)
        return text if text.isascii() or _encodable(text) else None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if type(cell) is int:
        return str(cell) if abs(cell) < 10**30 else ("1e99" if cell > 0 else "-1e99")
    if type(cell) is Decimal and not cell.is_nan():  # a signalling NaN would raise
        cell = float(cell)
    if type(cell) is float and not math.isnan(cell):
        if abs(cell) < EXACT:
            return spelling(cell)
        return "1e99" if cell > 0 else "-1e99"  # beyond every domain that texts can have
    return None


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def files(paths: Sequence[str | Path]) -> Engine:
    """Return an engine over CSV or Parquet files; a path may be a pattern such as `data/*.parquet`."""
    found: list[Path] = []
    for path in paths:
        if not isinstance(path, str | Path):
            raise DataRefused(f"rows must be {_KINDS}", fix="A list may hold paths only.")
        if Path(path).is_file():
            found.append(Path(path))
            continue
        matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True) if Path(match).is_file())
        if not matches:
            is_pattern = glob.has_magic(str(path))
            raise DataRefused(
                f"file {str(path)!r} must exist" if not is_pattern else f"pattern {str(path)!r} must match a file",
                fix="Check the path; it is relative to the folder you started in."
                if not Path(path).is_absolute()
                else "",
            )
        found.extend(matches)
    formats = {_format(path) for path in found}
    if len(formats) > 1:
        raise DataRefused("files must all be CSV or all be Parquet", fix="Open them one kind at a time.")
    return _csv(found) if formats == {"csv"} else _parquet(found)


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
    listed = ", ".join(_quoted(str(path)) for path in paths)
    options = ", union_by_name=true" if len(paths) > 1 else ""
    relation = None
    with contextlib.suppress(Exception):
        relation = connection.sql(f"SELECT * FROM read_parquet([{listed}]{options})")  # noqa: S608 - quoted above
    if relation is None:
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        raise DataRefused(f"file {str(paths[0])!r}{more} must be readable as Parquet", fix="Write it again.")
    return _OwnConnection(relation, connection)


def _csv(paths: Sequence[Path]) -> Engine:
    # Dialect, names and types come from the header and from us, never from what the rows look like: every column is
    # text, a missing field is empty and unquoted, a line with too few or too many fields is no row.
    headers = [_header(path) for path in paths]
    delimiter, names = headers[0]
    for path, header in zip(paths, headers, strict=True):
        if header != headers[0]:
            raise DataRefused(f"file {str(path)!r} must have the same header as {str(paths[0])!r}", fix="Rewrite it.")
    for name in names:
        if names.count(name) > 1:
            raise DataRefused("must be there only once", column=name, fix="Rename the second one.")
    connection = _embedded()
    columns = ", ".join(f"'k{place}': 'VARCHAR'" for place in range(len(names)))
    listed = ", ".join(_quoted(str(path)) for path in paths)
    relation = connection.sql(
        f"SELECT * FROM read_csv([{listed}], auto_detect=false, delim={_quoted(delimiter)}, quote='\"', escape='\"', "  # noqa: S608
        f"header=true, columns={{{columns}}}, ignore_errors=true, nullstr='', allow_quoted_nulls=false, "
        f"compression='auto')"
    )
    renamed = relation.project(", ".join(f"k{place} AS {_name(name)}" for place, name in enumerate(names)))
    return _OwnConnection(renamed, connection)


def _header(path: Path) -> tuple[str, list[str]]:
    packed = path.name.lower().endswith(".gz")
    opened = gzip.open if packed else open
    names: list[str] | None = None
    delimiter = ","
    with contextlib.suppress(OSError, EOFError, StopIteration, csv.Error, ValueError):
        with opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as lines:
            first = lines.readline(1 << 20)
        delimiter = max(_DELIMITERS, key=_outside_quotes(first).count)
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


def _embedded() -> duckdb.DuckDBPyConnection:
    # no extension is fetched from the network, and no progress bar is drawn over the user's terminal
    settings: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    connection = duckdb.connect(":memory:", config=settings)
    connection.execute("SET enable_progress_bar = false")
    return connection


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

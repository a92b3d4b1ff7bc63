"""Parquet and CSV files, read by an embedded DuckDB that lives as long as the rows."""

from __future__ import annotations

import copy
import functools
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused, Unread
from tacit.rows.cells.readings import DataColumn
from tacit.rows.counts.batches import Batch, Piece, of_parquet
from tacit.rows.files.identity import Identities, identities
from tacit.rows.files.table_files import (
    Columns,
    check_columns,
    csv_columns,
    csv_header,
    files_of,
    not_in_encoding,
    not_well_formed,
    parquet_columns,
    refuse_one_name_twice,
    text_of_file,
    together,
)
from tacit.rows.files.written import UTF_8
from tacit.rows.guard import blind, closed
from tacit.rows.sources.buffers import arrow_column, is_held, legible
from tacit.rows.sources.duckdb_engine import DuckDBEngine, duckdb_second, embedded, quoted, quoted_name
from tacit.rows.sources.engine import (
    EVENTS,
    NAMES,
    ORDER,
    PERSON,
    Engine,
    role_of,
    unreadable,
)
from tacit.rows.spill import private_folder

_LONGEST_LINE: Final = 16 * 2**20
NO_ENCODING: Final = "encoding must be left out: CSV files alone have one"


def files(paths: Sequence[str | Path], declared: frozenset[str], encoding: str = UTF_8) -> Engine:
    """Return an engine over CSV or Parquet files; a path may be a pattern such as `data/*.parquet`."""
    found, are_csv = files_of(paths)
    if not are_csv and encoding != UTF_8:
        raise DataRefused(NO_ENCODING, fix="Leave it out.")
    return _csv(found, declared, encoding) if are_csv else _parquet(found, declared)


def _parquet(paths: Sequence[Path], declared: frozenset[str]) -> Engine:
    before = identities(paths)
    columns_of = {path: parquet_columns(path) for path in paths}
    check_columns(declared, columns_of)
    columns = together(columns_of)
    connection = embedded()
    listed = ", ".join(map(_literal, paths))
    # a folder called like a column does not speak for the column that the file has
    options = ", hive_partitioning=false" + (", union_by_name=true" if len(paths) > 1 else "")
    coarse = {name for name, leaves in columns if any(_is_coarse(logical) for leaf in leaves for _, logical, _ in leaf)}
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""

    def bound() -> Any:
        query = f"FROM read_parquet([{listed}]{options})"
        relation = connection.sql(query)
        if coarse:  # DuckDB renames the second of two columns alike
            # of several files DuckDB puts together names that differ in case
            names = [name for name, _ in columns] if len(paths) == 1 else relation.columns
            left_out = {name.casefold() for name in coarse}
            named = zip(relation.columns, names, strict=True)
            kept = [quoted_name(ours) for ours, name in named if name.casefold() not in left_out]
            relation = connection.sql(f"SELECT {', '.join(kept) or '1 AS one'} {query}")
        return relation

    # statistics of columns are read here too, and they hold cells
    relation = closed(
        bound,
        unreadable(),
        {
            duckdb.OperationalError: unreadable(),
            duckdb.Error: DataRefused(
                f"file {str(paths[0])!r}{more} must be readable as Parquet", fix="Write it again."
            ),
        },
    )
    return ParquetEngine(relation, connection, before, columns_of, columns, frozenset(coarse))


def _is_coarse(logical: str) -> bool:
    return logical.startswith("Timestamp(") and "milliseconds" in logical


def _csv(paths: Sequence[Path], declared: frozenset[str], encoding: str) -> Engine:
    # Dialect, names and types come from the header and from us, never from what the rows look like: every column is
    # text, a missing field is empty and unquoted.
    before = identities(paths)
    headers = {path: csv_header(path, encoding) for path in paths}
    for _, names in headers.values():
        if not declared <= set(names):  # without a header line these would be the first person's values
            refuse_one_name_twice(names)
    check_columns(declared, {path: csv_columns(names) for path, (_, names) in headers.items()})
    copies = None if encoding == UTF_8 else Copies(paths, encoding)
    for path, read in zip(paths, copies.paths if copies else paths, strict=True):
        if not blind(functools.partial(_ends_in_time, read), "looking at the end of a file"):
            raise not_well_formed(path)
    engine = CsvEngine(embedded(), before, headers, copies)
    engine.look_through(declared)
    return engine


def _ends_in_time(path: Path) -> bool:
    """Say whether the last line is not too long: DuckDB leaves out one that fills its buffer, without a word."""
    if path.name.lower().endswith(".gz") or path.stat().st_size <= _LONGEST_LINE:
        return True
    with path.open("rb") as lines:
        lines.seek(-_LONGEST_LINE, os.SEEK_END)
        tail = lines.read().rstrip(b"\r\n")
    return b"\n" in tail or b"\r" in tail


class _Files(DuckDBEngine):
    """Files, read by an embedded DuckDB that lives as long as the rows. `before` is what they were when opened."""

    keeps = True
    is_file = True

    def __init__(
        self, relation: Any, connection: duckdb.DuckDBPyConnection, before: Identities, names: Sequence[str]
    ) -> None:
        super().__init__("file", relation)
        self.connection = connection
        self._before = before
        self._names = list(names)

    def names(self) -> list[str]:
        """Return the names of all columns: those in the file, since DuckDB renames the second of two alike."""
        return self._names

    def unchanged(self) -> bool:
        """Say whether the files are those that were opened."""
        return identities(self._before) == self._before


class ParquetEngine(_Files):
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
        columns_of: Mapping[Path, Columns],
        leaves: Sequence[tuple[str, Any]],
        coarse: frozenset[str],
    ) -> None:
        super().__init__(relation, connection, before, [name for name, _ in leaves])
        self._paths, self._coarse, self._columns_of = tuple(columns_of), coarse, columns_of
        self._legibly = False  # whether Arrow reads the rows for DuckDB, which fails on texts that are no UTF-8
        # columns that are not made of parts; a dot in a name is the way to a part of a column to Arrow
        self._flat = {name: found[0][0] for name, found in leaves if "." not in name and len(found) == 1}
        # read as dictionaries, whatever a file says that a column is to be read as
        text = [[("BYTE_ARRAY", "String", 0)]]
        everywhere = [{name for name, kinds in listed if kinds == text} for listed in columns_of.values()]
        self._texts = frozenset(self._flat).intersection(*everywhere)
        self._halves = frozenset(
            name for name, found in leaves if any(leaf[1] == "Float16" for one in found for leaf in one)
        )
        self._types = self._arrow_types()

    def schema(self) -> dict[str, DataColumn]:
        """Return how each column is read; DuckDB widens floats of 16 bits, and they still stand for what they did."""
        found = super().schema() | {name: arrow_column(self._type(name)) for name in self._coarse}
        return {name: replace(column, bits=16) if name in self._halves else column for name, column in found.items()}

    def try_column(self, raw: str) -> None:
        """Refuse files that differ in a column that nobody has named before."""
        check_columns([raw], self._columns_of)

    def _type(self, name: str) -> pa.DataType:
        kind = min(self._types[name], key=str)  # files may tell a zone in different ways
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def relation(self, columns: Mapping[str, str]) -> Any:
        legibly = self._legibly and self._read_by_arrow(columns)
        if not legibly and not self._coarse & set(columns.values()):
            return super().relation(columns)
        import pyarrow.dataset as ds

        arrow = {raw: self._type(raw) for raw in columns.values()}
        kept = {raw for new, raw in columns.items() if role_of(new) in (*EVENTS, NAMES)}
        moments = {raw for raw in self._coarse & set(arrow) - kept if pa.types.is_timestamp(arrow[raw])}
        kinds = {raw: pa.int64() if raw in moments else kind for raw, kind in arrow.items()}
        dataset = pa.schema(kinds).empty_table()
        if legibly:
            dataset = self._legible_rows(pa.schema(kinds))
        elif self._paths:
            dataset = ds.dataset([str(path) for path in self._paths], schema=pa.schema(kinds), format="parquet")
        found = DuckDBEngine(self.kind, self.connection.from_arrow(dataset)).relation(columns)
        dates = [new for new, raw in columns.items() if raw in moments and new not in (PERSON, ORDER)]
        read = ", ".join(
            f"make_timestamp({duckdb_second(new, arrow[columns[new]].unit)} * 1000000) AS {new}" for new in dates
        )
        return found.project(f"* REPLACE ({read})") if dates else found

    def legible(self) -> Engine:
        """Let Arrow read the rows, which is slower."""
        other = copy.copy(self)
        other._legibly = True
        return other

    def _legible_rows(self, schema: pa.Schema) -> pa.RecordBatchReader:
        """Return the rows to be read once; texts that are no UTF-8 are missing."""
        pieces = of_parquet(self._paths, {name: name for name in schema.names}, self._texts)

        def batches() -> Iterator[pa.RecordBatch]:
            for piece in pieces:
                for batch in _legible(piece):
                    cells = [batch.columns[field.name].cast(field.type) for field in schema]
                    yield pa.RecordBatch.from_arrays(cells, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def pieces(self, columns: Mapping[str, str]) -> list[Piece]:
        """Return the row groups, or a stream."""
        if not self._read_by_arrow(columns):
            return super().pieces(columns)
        # a file may hold texts that are none, and one person's must not make the others unreadable
        return [functools.partial(_legible, piece) for piece in of_parquet(self._paths, columns, self._texts)]

    def _read_by_arrow(self, columns: Mapping[str, str]) -> bool:
        """Say whether Arrow reads these columns as DuckDB does, in one type each."""
        read = self.schema()
        for raw in columns.values():
            kinds = self._types[raw]
            alike = raw in self._flat and self._flat[raw][0] != "INT96" and len(kinds) == 1
            if not alike or not all(is_held(kind) and arrow_column(kind) == read[raw] for kind in kinds):
                return False
        return True

    def emptied(self) -> Engine:
        other = copy.copy(self)
        other.base_relation, other._paths = self.base_relation.limit(0), ()
        return other

    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        """Return no rows, in the types that Arrow finds in the files."""
        types = {new: next(iter(self._types[raw])) for new, raw in columns.items()}
        return pa.schema(types).empty_table() if self._read_by_arrow(columns) else super().nothing(columns)

    def type_of(self, raw: str) -> str:
        """Return the name of a type: to DuckDB, and to Arrow."""
        kinds = dict(zip(self.base_relation.columns, self.base_relation.types, strict=True))
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


class Copies:
    """CSV files in another encoding, copied into UTF-8: in the private folder, as long as this lives."""

    def __init__(self, paths: Sequence[Path], encoding: str) -> None:
        self.encoding = encoding
        self.paths: list[Path] = []
        unwritten = Unread("files in another encoding could not be copied into the folder for temporary files")
        for path in paths:
            refusal = not_in_encoding(path, encoding)
            copied = closed(lambda path=path: _copied(path, encoding), unwritten, {UnicodeError: refusal})  # type: ignore[misc]
            weakref.finalize(self, copied.unlink, missing_ok=True)
            self.paths.append(copied)


def _copied(path: Path, encoding: str) -> Path:
    handle, name = tempfile.mkstemp(".csv", dir=private_folder(os.getpid()))
    try:
        with text_of_file(path, encoding) as text, open(handle, "w", encoding=UTF_8, newline="") as copy:
            shutil.copyfileobj(text, copy)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


class CsvEngine(_Files):
    """CSV files: every column is text, under the names of the header, which need not be names that SQL can tell.

    DuckDB is told how many columns there are and reads them by place; so headers are looked at again, too. Files with
    different headers are read apart.
    """

    place = "csv"

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        before: Identities,
        headers: Mapping[Path, tuple[str, list[str]]],
        copies: Copies | None = None,
    ) -> None:
        self._columns_of = {path: csv_columns(names) for path, (_, names) in headers.items()}
        super().__init__(None, connection, before, [name for name, _ in together(self._columns_of) if name])
        self._headers = headers
        self._alike: dict[str, list[Path]] = {}  # files with one header, by what DuckDB is told of it
        for path, header in headers.items():
            self._alike.setdefault(repr(header), []).append(path)
        self._copies = copies
        self._in_utf8 = dict(zip(headers, copies.paths, strict=True)) if copies else {}
        self._has_rows = True
        self._legible: set[str] = set()  # the columns that were looked through

    def look_through(self, columns: Set[str]) -> None:
        """Refuse files in which a line, or a field of these columns, cannot be read, so that no later question fails.

        Each file by itself: with parallel=false, or for many files at once, DuckDB 2.0 ends a file in silence where a
        quote is never closed. What is wrong with a line is found in any column, letters that are no UTF-8 in those that
        are read. Each reading costs something for every column of the file, so that there are few.
        """
        for path, (_, names) in self._headers.items():
            # DuckDB reads the first column to count rows, whatever it is
            places = {0} | {place for place, name in enumerate(names) if name in columns}
            query = f"SELECT {', '.join(f'count(k{place})' for place in sorted(places))} FROM {self._rows([path])}"  # noqa: S608
            closed(
                lambda query=query: self.connection.execute(query).fetchall(),  # type: ignore[misc]
                unreadable(),
                {duckdb.InvalidInputException: not_well_formed(path)},
            )
        self._legible |= columns

    def _rows(self, paths: Sequence[Path]) -> str:
        """Return files with one header as a table of SQL."""
        delimiter, names = self._headers[paths[0]]
        columns = ", ".join(f"'k{place}': 'VARCHAR'" for place in range(len(names)))
        read = [self._in_utf8.get(path, path) for path in paths]
        return (
            f"read_csv([{', '.join(map(_literal, read))}], auto_detect=false, delim={quoted(delimiter)}, "
            f"quote='\"', escape='\"', header=true, columns={{{columns}}}, ignore_errors=false, strict_mode=true, "
            f"max_line_size={_LONGEST_LINE}, buffer_size={2 * _LONGEST_LINE}, parallel=true, nullstr='', "
            f"allow_quoted_nulls=false, compression='auto', hive_partitioning=false)"
        )

    def try_column(self, raw: str) -> None:
        """Look through a column that nobody has named before."""
        check_columns([raw], self._columns_of)
        if raw not in self._legible:
            with self.quiet():
                self.look_through({raw})

    def schema(self) -> dict[str, DataColumn]:
        return {name: DataColumn("text") for name in self._names}

    def type_of(self, raw: str) -> str:
        return "VARCHAR"

    def unchanged(self) -> bool:
        encoding = self._copies.encoding if self._copies else UTF_8
        return super().unchanged() and all(csv_header(path, encoding) == told for path, told in self._headers.items())

    def relation(self, columns: Mapping[str, str]) -> Any:
        if not self._has_rows:
            return self.connection.sql(f"{_chosen(dict.fromkeys(columns, 'NULL'))} WHERE false")
        parts = []
        for paths in self._alike.values():
            _, names = self._headers[paths[0]]
            cells = {new: f"k{names.index(raw)}" for new, raw in columns.items()}
            parts.append(f"{_chosen(cells)} FROM {self._rows(paths)}")
        return self.connection.sql(" UNION ALL ".join(parts))

    def emptied(self) -> Engine:
        other = copy.copy(self)
        other._has_rows = False
        return other


def _chosen(cells: Mapping[str, str]) -> str:
    listed = ", ".join(f"(CAST({cell} AS VARCHAR) COLLATE C) AS {new}" for new, cell in cells.items())
    return f"SELECT {listed or '1 AS one'}"


def _legible(piece: Piece) -> Iterator[Batch]:
    for batch in piece():
        yield Batch(batch.rows, {name: legible(cells) for name, cells in batch.columns.items()})


def _literal(path: str | Path) -> str:
    """Return a path as SQL that means this one file, whatever is in its name."""
    return quoted("".join(f"[{sign}]" if sign in "[*?" else sign for sign in str(path)))

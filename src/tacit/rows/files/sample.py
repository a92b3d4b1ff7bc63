"""A random sample of a whole table, for drafts: of a file or of a frame, with the names of its columns.

Files are opened as releases open them (`files`), so that a draft is refused for what a release would be refused
for. The first line of a CSV file is taken for names only if it looks like names or somebody says so. Nothing here is
part of a release: a sample holds people's cells.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import narwhals as nw
import numpy as np

from tacit.errors import DataRefused, Unread, is_path
from tacit.noise.keystream import current_stream
from tacit.rows.files.headers import known_names
from tacit.rows.files.table_files import (
    broken_line,
    csv_header,
    is_csv,
    is_file,
    not_there,
    refuse_no_file,
    refuse_one_name_twice,
    shown_path,
)
from tacit.rows.files.written import UTF_8
from tacit.rows.guard import closed
from tacit.rows.sources.duckdb_engine import DuckDBEngine, quoted
from tacit.rows.sources.engine import Engine
from tacit.rows.sources.file_engines import files

MOST_COLUMNS: Final = 500


@dataclass(frozen=True)
class Sample:
    """Some rows of a table, drawn at random from all of them: the cells of its first columns by name.

    `rows` is how many rows the whole table has, `columns_in_all` how many columns. `unsure` are the places of columns
    whose names nothing but their place in the first line of a file speaks for.
    """

    columns: tuple[tuple[Any, list[Any]], ...]
    rows: int
    columns_in_all: int
    unsure: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        return f"Sample({len(self.columns)} columns)"  # the cells are people's


def sample_of(source: Any, size: int, *, has_header: bool = False, encoding: str = UTF_8) -> Sample:
    """Draw rows from a path or a frame.

    Args:
        source: A path to a CSV or Parquet file, or a frame.
        size: How many rows at most.
        has_header: Somebody affirms that the first line of the CSV file holds names.
        encoding: That of a CSV file.
    """
    is_path = isinstance(source, str | Path)
    found = _of_file(source, size, encoding, has_header=has_header) if is_path else _of_frame(source, size)
    if not found.columns:
        raise DataRefused("the data must have at least one column", fix="Check the file.")
    return found


def selected(engine: Engine, columns: Mapping[str, str]) -> Any:
    """Return raw columns of an engine under new names (new name -> raw name)."""
    return engine.select(columns)


# ---- files ----------------------------------------------------------------------------------------------------------


def _of_file(path: str | Path, size: int, encoding: str, *, has_header: bool) -> Sample:
    if not is_path(path) and not is_file(path):
        raise not_there(str(path))
    refuse_no_file(path)
    paths = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))] or [Path(path)]
    text = is_csv(paths[0])
    try:
        names = csv_header(paths[0], encoding)[1] if text and is_file(paths[0]) else []
        engine = files([path], frozenset(names[:MOST_COLUMNS]), encoding)
        refusal = None
    except DataRefused as refused:
        refusal = refused
    if refusal is not None:
        raise _with_the_line(refusal, paths, encoding, text=text)
    if text:
        refuse_one_name_twice(csv_header(paths[0], encoding)[1])
    raw = list(closed(engine.schema, Unread("the columns of the file could not be listed")))
    shown = raw[:MOST_COLUMNS]
    unreadable = Unread(f"file {shown_path(path)} could not be read")
    relation = selected(engine, {f"c{place}": name for place, name in enumerate(shown)})
    table = closed(lambda: _drawn(relation, size).to_arrow_table(), unreadable)
    cells = [table.column(place).to_pylist() for place in range(len(shown))]
    rows, again = closed(lambda: _counted(relation, shown if text and not has_header else ()), unreadable)
    sure: frozenset[int] | None = frozenset(range(len(shown)))
    if text and not has_header:
        sure = known_names(shown, cells, again)
    if sure is None:
        del table, cells, again
        raise DataRefused(
            f"the first line of {shown_path(path)} may hold a person's values instead of column names, so nothing of "
            "it is shown",
            fix="Add a line of names at the top. If it is one, say so: --has-header (in Python has_header=True).",
        )
    return Sample(tuple(zip(shown, cells, strict=True)), rows, len(raw), frozenset(range(len(shown))) - sure)


def _with_the_line(refusal: DataRefused, paths: Sequence[Path], encoding: str, *, text: bool) -> DataRefused:
    """Return the refusal of a malformed file with the line that is wrong; it is shown to whoever holds the file."""
    if not text or "well-formed" not in refusal.rule:
        return refusal
    for path in paths:
        delimiter, names = csv_header(path, encoding)
        if (found := broken_line(path, delimiter, len(names), encoding)) is not None:
            return found
    return refusal


def _drawn(relation: duckdb.DuckDBPyRelation, size: int) -> Any:
    # a reservoir over all rows: every row has the same chance, wherever it stands
    return relation.query("whole_table", f"SELECT * FROM whole_table USING SAMPLE reservoir({size} ROWS)")  # noqa: S608


def _counted(relation: duckdb.DuckDBPyRelation, names: Sequence[str]) -> tuple[int, list[int]]:
    """Return how many rows there are, and how often each column holds its own name."""
    asked = ["count(*)"]
    for place, name in enumerate(names):
        asked.append(f"count(*) FILTER (WHERE c{place} = {quoted(name)})")
    rows, *again = relation.aggregate(", ".join(asked)).fetchall()[0]
    return int(rows), [int(times) for times in again]


# ---- frames ---------------------------------------------------------------------------------------------------------


def _of_frame(frame: Any, size: int) -> Sample:
    def drawn() -> Sample:
        table, rows = _rows_of(nw.to_native(frame, pass_through=True), size)
        names = table.columns[:MOST_COLUMNS]
        columns = tuple((name, table.get_column(name).to_list()) for name in names)
        return Sample(columns, rows, len(table.columns))

    no_table = DataRefused(
        "the data must be a CSV or parquet file or a frame with one name for each column",
        fix="Give a path, or a pandas, polars, pyarrow or DuckDB frame.",
    )
    # an engine's words may quote a row; these two are what narwhals says of what is no frame
    means = {TypeError: no_table, nw.exceptions.NarwhalsError: no_table}
    return closed(drawn, Unread("the data could not be read"), means)


def _rows_of(native: Any, size: int) -> tuple[Any, int]:
    """Return some rows as an eager frame, and how many there are."""
    module = type(native).__module__.split(".")[0]
    if isinstance(native, duckdb.DuckDBPyRelation):
        rows = int(native.aggregate("count(*)").fetchall()[0][0])
        lines = nw.from_native(_drawn(native, size)).lazy()
        return nw.from_native(DuckDBEngine("duckdb", native).collected(lines), eager_only=True), rows
    if module == "pyspark":
        from pyspark.sql import functions

        return _collected(native.orderBy(functions.rand()).limit(size)), int(native.count())
    if module == "ibis":
        import ibis

        return _collected(native.order_by(ibis.random()).limit(size)), int(native.count().to_pyarrow().as_py())
    frame = nw.from_native(native)
    if isinstance(frame, nw.LazyFrame):
        import polars as pl

        rows = int(native.select(pl.len()).collect().item())
        picked = native.select(pl.all().gather(_positions(rows, size).tolist()))
        return nw.from_native(picked.collect(), eager_only=True), rows
    rows = len(frame)
    return frame[_positions(rows, size).tolist()] if rows else frame, rows


def _collected(lazy: Any) -> Any:
    return nw.from_native(lazy).lazy().collect(backend="pyarrow")


def _positions(rows: int, size: int) -> Any:
    """Return the places of some rows, every set of them as likely as any other."""
    if rows <= size:
        return np.arange(rows)
    # those with the smallest random words are a random set, whatever their number
    words = current_stream().words(np.uint64, rows)
    return np.sort(np.argpartition(words, size)[:size])

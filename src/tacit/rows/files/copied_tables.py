"""Tables that people have in workbooks and databases, as CSV files that Tacit reads: rows as they are, for the holder.

Guarantee   A file is made that is not there yet, open to this user alone, and removed if it cannot be finished. No cell
            is part of a refusal.
Checked by  tests/unit/draft/test_from_what_people_have.py.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import duckdb

from tacit.errors import DataRefused, Exit, Unread
from tacit.rows.files.table_files import is_file, not_there, shown_path
from tacit.rows.guard import closed
from tacit.rows.sources.duckdb_engine import quoted_name

WORKBOOKS: Final = (".xlsx", ".xlsm")
DATABASES: Final = (".duckdb", ".db", ".sqlite", ".sqlite3")
POSTGRES: Final = ("postgresql://", "postgres://")
_AT_ONCE: Final = 10_000
_SQLITE: Final = b"SQLite format 3"
_TABLES: Final = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY 1"
_SQLITE_TABLES: Final = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY 1"


def is_other_table(source: str) -> bool:
    """Say whether this is a workbook or a database, whose tables are copied into CSV files first."""
    return source.lower().endswith((*WORKBOOKS, *DATABASES)) or source.startswith(POSTGRES)


def copied_table(source: str, table: str | None, folder: Path) -> Path:
    """Copy a sheet or a table into a CSV file in a folder, and return its path.

    Raises:
        DataRefused: If there is no such table, or there is a file of that name already.
    """
    is_address = source.startswith(POSTGRES)
    if not is_address and not is_file(source):
        raise not_there(source)
    shown = "the database" if is_address else f"file {shown_path(source)}"
    return closed(
        lambda: _copied(source, table, folder, shown), Unread(f"{shown} could not be read, or its rows be written")
    )


def _copied(source: str, table: str | None, folder: Path, shown: str) -> Path:
    with _opened_table(source) as (names, rows_of):
        if table is None and len(names) != 1:
            listed = ", ".join(map(repr, names[:20])) or "none"
            raise DataRefused(f"{shown} must have one table, or one must be named", fix=f"Say --table; found {listed}.")
        name = names[0] if table is None else table
        if name not in names:
            listed = ", ".join(map(repr, names[:20])) or "none"
            raise DataRefused(f"{shown} must have the table that is named", fix=f"It has {listed}.")
        stem = name if source.startswith(POSTGRES) or len(names) > 1 else Path(source).stem
        path = folder / f"{''.join(sign if sign.isalnum() or sign in '-_' else '_' for sign in stem)}.csv"
        if path.exists():
            raise DataRefused(
                f"file {shown_path(path)} must not exist yet", fix="Move it; the rows are copied into it."
            )
        _written(path, rows_of(name))
    return path


def _written(path: Path, rows: Iterator[Sequence[Any]]) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(handle, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([_text(cell) for cell in row] for row in rows)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _text(cell: Any) -> Any:
    """Return a cell as CSV has it: a moment at midnight is a date, since workbooks have no others."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, datetime.datetime):
        return (
            cell.date().isoformat() if cell.time() == datetime.time() and cell.tzinfo is None else cell.isoformat(" ")
        )
    return cell


@contextlib.contextmanager
def _opened_table(source: str) -> Iterator[tuple[list[str], Any]]:
    """Open a workbook or a database: the names of its tables, and what yields the rows of one, its header first."""
    if source.lower().endswith(WORKBOOKS):
        try:
            from openpyxl import load_workbook
        except ImportError:
            load_workbook = None
        if load_workbook is None:
            fix = "Install it: pip install 'tacit[xlsx]'. Or save the sheet as CSV."
            raise DataRefused("a workbook is read by openpyxl, which is not there", fix=fix)
        with closing(load_workbook(source, read_only=True, data_only=True)) as book:
            yield book.sheetnames, lambda name: _sheet(book[name])
        return
    if source.startswith(POSTGRES):
        connection: Any = _connected(source)
    else:
        with open(source, "rb") as file:
            is_sqlite = file.read(len(_SQLITE)) == _SQLITE
        address = Path(source).absolute().as_uri() + "?mode=ro"
        connection = sqlite3.connect(address, uri=True) if is_sqlite else duckdb.connect(source, read_only=True)
    with closing(connection), closing(connection.cursor()) as cursor:
        cursor.execute(_SQLITE_TABLES if isinstance(connection, sqlite3.Connection) else _TABLES)
        yield [str(name) for (name,) in cursor.fetchall()], lambda name: _selected(cursor, name)


def _connected(address: str) -> Any:
    """Return a connection to a server; that there is none is no fact about its rows."""
    try:
        import psycopg

        return psycopg.connect(address)
    except ImportError:
        fix = "Install it: pip install 'tacit[postgres]'. Or export the table as CSV."
        refusal = DataRefused("a PostgreSQL database is read by psycopg, which is not there", fix=fix)
    except psycopg.Error:  # its text may repeat the address, and with it a password
        fix = "Check the address and the password, and whether the server answers."
        refusal = DataRefused("the database cannot be reached", fix=fix, exit_code=Exit.UNREACHABLE)
    raise refusal


def _sheet(sheet: Any) -> Iterator[Sequence[Any]]:
    """Yield the rows of a sheet as wide as its first one; empty ones are left out."""
    width = 0
    for row in sheet.iter_rows(values_only=True):
        if not width:
            width = max((place for place, cell in enumerate(row, 1) if cell is not None), default=0)
        if any(cell is not None for cell in row[:width]):
            yield [*row[:width], *[None] * (width - len(row))]


def _selected(cursor: Any, name: str) -> Iterator[Sequence[Any]]:
    cursor.execute(f"SELECT * FROM {quoted_name(name)}")  # noqa: S608
    yield [column[0] for column in cursor.description]
    while rows := cursor.fetchmany(_AT_ONCE):
        yield from rows

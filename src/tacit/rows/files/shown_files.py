"""Rows that may be shown and numbers of keys, in files where they are too many for memory; sorted where needed.

Guarantee   The file of rows is a function of the rows that were given, as a bag, and of what their cells may be:
            neither its groups nor its types, pages or encodings tell in which batches or in which order they came. Of
            the numbers of keys it is only said whether one was given twice. Both files lie in a folder of this user
            alone, and go with the object that made them, at the latest with the process.
Assumes     What is given as rows may be shown: nothing here looks at people's rows. Numbers of keys are below 2^63, and
            it may be said whether a key is there twice (`plan/plans/records.py`).
Why         A table of fifty million rows is as large as what it was made from. Rows that come in order stay as they
            are; others are sorted by an embedded DuckDB, which spills what does not fit into memory, and written by
            the same writer. Batches are cut from the source, so that a row group for each would tell how many rows of
            a batch are not shown. Rows that do not differ in what they are sorted by must not differ at all: keys are
            unique, and rows without one are sorted by all that they show.
            Rows that are not shown leave nothing behind, but two of them, or one that is shown and one that is not,
            must not share a key either. Numbers that rise from row to row are all different. Others are sorted and
            compared with the one before.
Checked by  tests/unit/rows/test_shown_files.py, tests/contract/test_true_records_engines.py
"""

from __future__ import annotations

import itertools
import os
import shutil
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.plan.question import Labels
from tacit.rows.sources.duckdb_engine import embedded, quoted, quoted_name
from tacit.rows.sources.frames import CellTypes, TableWriter, as_arrow, cells_like, read_columns
from tacit.rows.spill import private_folder

_MEMORY: Final = "1GB"  # for sorting
_AT_A_TIME: Final = 2**17  # sorted rows, or numbers, that are read
_numbers: Final = itertools.count()


class KeyNumbers:
    """Numbers that are given some at a time."""

    def __init__(self) -> None:
        self.path = private_folder(os.getpid()) / f"keys-{next(_numbers)}.parquet"
        self._writer = TableWriter(self.path, {"n": cells_like([0], every=False)})
        self._remove = weakref.finalize(self, _remove, self.path)
        self._rises = RisingNumbers()

    def add(self, numbers: npt.NDArray[np.uint64]) -> None:
        """Take some numbers."""
        self._rises.add(numbers)
        self._writer.write({"n": numbers.view(np.int64)})

    def are_unique(self) -> bool:
        """Say whether no number was given twice, and forget them."""
        self._writer.close()
        try:
            return self._rises.so_far or self._none_follows_itself()
        finally:
            self._remove()

    def _none_follows_itself(self) -> bool:
        connection = embedded()
        connection.execute(f"SET memory_limit = '{_MEMORY}'")
        rising = RisingNumbers()
        relation = connection.read_parquet(str(self.path)).order("n")
        for batch in relation.to_arrow_reader(_AT_A_TIME):
            rising.add(batch.column(0).to_numpy().view(np.uint64))
            if not rising.so_far:
                return False
        return True


class RisingNumbers:
    """Whether numbers that come some at a time rise from one to the next."""

    def __init__(self) -> None:
        self.so_far = True
        self._last: int | None = None

    def add(self, numbers: npt.NDArray[np.uint64]) -> None:
        """Take some numbers."""
        if not len(numbers):
            return
        follows = self._last is None or int(numbers[0]) > self._last
        self.so_far &= bool(follows and (numbers[1:] > numbers[:-1]).all())
        self._last = int(numbers[-1])


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


class ShownFile:
    """A Parquet file of rows."""

    def __init__(self, cells: Mapping[str, CellTypes]) -> None:
        self._cells = dict(cells)
        self.path = _new_path()
        self.rows = 0
        self._rises = RisingNumbers()
        self._writer: TableWriter | None = TableWriter(self.path, self._cells)
        self._remove = weakref.finalize(self, _remove, self.path)

    def add(self, numbers: npt.NDArray[np.uint64], columns: Mapping[str, Any]) -> None:
        """Write some rows; the numbers say in which order they should be."""
        if not len(numbers):
            return
        self._rises.add(numbers)
        assert self._writer is not None  # noqa: S101 - not finished yet
        self._writer.write(columns)
        self.rows += len(numbers)

    def finish(self, by: Mapping[str, Sequence[Any] | None], asked: Sequence[str], *, unique: bool) -> bool:
        """Sort rows that did not come in order; say whether they are unique, if they must be.

        `by` are the columns that they are sorted by, each with its values in their order; None: as values compare.
        Those that are not `asked` for are dropped.
        """
        self.finished()
        if self._rises.so_far and set(by) <= set(asked):
            return True
        connection = embedded()
        rows = f"read_parquet({quoted(str(self.path))})"
        columns = {name: quoted_name(name) for name in (*by, *asked)}
        kept = ", ".join(f"t.{columns[name]}" for name in asked)
        if self._rises.so_far:
            self._replace(connection, f"SELECT {kept} FROM {rows} t", asked)  # noqa: S608 - quoted
            return True
        if unique:
            grouped = ", ".join(columns[name] for name in by)
            twice = f"SELECT 1 FROM {rows} GROUP BY {grouped} HAVING count(*) > 1 LIMIT 1"  # noqa: S608 - quoted
            if connection.sql(twice).fetchall():
                return False
        joins, order = [], []
        for place, (name, values) in enumerate(by.items()):
            if values is None:
                order.append(f"t.{columns[name]}")
                continue
            connection.register(f"o{place}", as_arrow({"v": list(values), "p": range(len(values))}))
            joins.append(f"JOIN o{place} ON t.{columns[name]} = o{place}.v")
            order.append(f"o{place}.p")
        sorted_rows = f"SELECT {kept} FROM {rows} t {' '.join(joins)} ORDER BY {', '.join(order)}"  # noqa: S608 - quoted
        self._replace(connection, sorted_rows, asked)
        return True

    def finished(self) -> ShownFile:
        """End the file where rows came in the order that they should have."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        return self

    def _replace(self, connection: Any, rows: str, asked: Sequence[str]) -> None:
        """Write the columns that a statement selects, and remove what was there."""
        path = _new_path()
        writer = TableWriter(path, {name: self._cells[name] for name in asked})
        for batch in connection.sql(rows).to_arrow_reader(_AT_A_TIME):
            writer.write(dict(zip(batch.schema.names, batch.columns, strict=True)))
        writer.close()
        self._remove()
        self.path, self._remove = path, weakref.finalize(self, _remove, path)

    def columns(self) -> dict[str, Labels]:
        """Return all columns, in memory."""
        return read_columns(self.path)

    def copy(self, path: Path) -> None:
        """Write the rows to another place."""
        shutil.copyfile(self.path, path)


def _new_path() -> Path:
    return private_folder(os.getpid()) / f"shown-{next(_numbers)}.parquet"

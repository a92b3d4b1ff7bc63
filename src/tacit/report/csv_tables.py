"""The released numbers as files for colleagues: one for each table, and cross tables of two attributes.

NAME.csv has all answers of a release. Marginals also get NAME.SEX-AGE.csv for each table, and every table of two
attributes NAME.cross.csv or NAME.SEX-AGE.cross.csv, whose rows are the values of the longer attribute. `share` is a
value divided by the sum of its table's values. Labels are made safe for spreadsheets. A table that is too large for one
is NAME.parquet or NAME.SEX-AGE.parquet, without a cross table (`release/results/value_files.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.release.results.record import ReleaseRecord
from tacit.release.results.value_files import LARGEST_CSV, write_cross_table, write_table

MOST_TABLES: Final = 200  # more files than that nobody opens one by one
_WIDEST: Final = 500  # columns of a cross table
_LONGEST: Final = 60
_SHARE_DIGITS: Final = 4


@dataclass(frozen=True)
class _HistogramTable:
    """One histogram of a release: the labels and numbers of its cells, and its shape."""

    names: tuple[str, ...]
    shape: tuple[int, ...]
    labels: dict[str, Sequence[Any]]
    numbers: dict[str, npt.NDArray[np.float64]]

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return math.prod(self.shape)


def write_release(folder: Path, name: str, record: ReleaseRecord) -> list[str]:
    """Write all tables of a release and return the names of the files, that with all answers first."""
    tables = _tables(record)
    error = record.digits_for
    written = [record.write_values(folder, name) if len(tables) != 1 else _write(folder, name, tables[0], error)]
    names = record.plan.query.split_by()
    if len(names) == 2 and min(shape := _shape(record, names)) <= _WIDEST and record.plan.answers <= LARGEST_CSV:
        written.append(f"{name}.cross.csv")
        _write_cross(
            folder / written[-1], _HistogramTable(names, shape, record.filed_labels(), record.numbers()), error
        )
    parts = _part_names(tables) if len(tables) > 1 else [""]
    for table, part in zip(tables if len(tables) <= MOST_TABLES else [], parts, strict=False):
        if part:
            written.append(_write(folder, f"{name}{part}", table, error))
        if len(table.names) == 2 and min(table.shape) <= _WIDEST and table.cells <= LARGEST_CSV:
            written.append(f"{name}{part}.cross.csv")
            _write_cross(folder / written[-1], table, error)
    return written


def _tables(record: ReleaseRecord) -> list[_HistogramTable]:
    query, domain = record.plan.query, record.plan.policy.domain
    labels, numbers = record.filed_labels(), record.numbers()
    found, start = [], 0
    for names in query.tables(domain):
        size = math.prod(domain[each].size for each in names)
        cut = slice(start, start + size)
        start += size
        found.append(
            _HistogramTable(
                names,
                _shape(record, names),
                {each: labels[each][cut] for each in [*names, *(key for key in labels if key not in record.labels())]},
                {key: column[cut] for key, column in numbers.items()},
            )
        )
    return found


def _shape(record: ReleaseRecord, names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(record.plan.policy.domain[each].size for each in names)


def _part_names(tables: list[_HistogramTable]) -> list[str]:
    """Return what each table's file is called after the name of the release; no two are called the same."""
    taken: set[str] = set()
    found = []
    for number, table in enumerate(tables, start=1):
        words = "-".join(re.sub(r"[^A-Za-z0-9_]+", "_", each).strip("_") for each in table.names)[:_LONGEST]
        name = words if re.search(r"[A-Za-z0-9]", words) and words.lower() not in taken else f"table-{number}"
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        found.append(f".{name}")
    return found


def _write(folder: Path, name: str, table: _HistogramTable, error: float) -> str:
    values = table.numbers["value"]
    total = float(values.sum())
    share = np.round(values / total, _SHARE_DIGITS) if total > 0 else np.full(len(values), np.nan)
    return write_table(folder, name, table.cells, table.labels, table.numbers, error=error, shares=share)


def _write_cross(path: Path, table: _HistogramTable, error: float) -> None:
    values = table.numbers["value"].reshape(table.shape)
    along, across = (0, 1) if table.shape[0] >= table.shape[1] else (1, 0)
    grid = values if along == 0 else values.T
    # the values of each attribute, in the order in which its cells come
    rows, columns = (list(dict.fromkeys(table.labels[table.names[place]])) for place in (along, across))
    heading = f"{table.names[along]} by {table.names[across]}"
    write_cross_table(path, heading, rows, columns, grid, error=error)

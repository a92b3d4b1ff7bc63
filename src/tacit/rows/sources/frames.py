"""Columns that may be shown, as frames of the user's own kind and as Parquet files: labels and released numbers.

Each label is turned into a cell once and then handed to all the rows that have it; no loop goes over rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped,unused-ignore]

from tacit.plan.question import Labels

ROWS_IN_A_GROUP: Final = 2**18  # of a file that is written bit by bit; larger ones cost more memory than they save


def as_pandas(columns: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return a pandas frame, with the types that pandas would find for lists."""
    return pd.DataFrame(
        {
            name: pd.Series(pd.Series(column.values).array.take(column.which)) if isinstance(column, Labels) else column
            for name, column in columns.items()
        }
    )


def as_arrow(columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Return an Arrow table; a column of several types becomes a column of texts."""
    return pa.table(
        {
            name: _cells(column.values).take(pa.array(column.which)) if isinstance(column, Labels) else _cells(column)
            for name, column in columns.items()
        }
    )


def write_parquet(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write a Parquet file; labels that repeat are stored once, as the entries of a dictionary."""
    import pyarrow.parquet as pq

    table = pa.table({name: _stored(column) for name, column in columns.items()})
    numbers = [name for name, column in columns.items() if isinstance(column, np.ndarray)]
    pq.write_table(table, path, compression="zstd", write_statistics=numbers)


@dataclass(frozen=True, eq=False)
class CellTypes:
    """What the cells of a column may be: their type, and every value where these are few."""

    type: pa.DataType
    entries: pa.Array | None

    @property
    def stored(self) -> pa.DataType:
        """The type of the column while it is written: the entries of a dictionary, or the values themselves."""
        return self.type if self.entries is None else pa.dictionary(pa.int32(), self.type)

    def array(self, column: Sequence[Any] | pa.Array) -> pa.Array:
        """Return a column of this type: labels, whole numbers, or what was read from a file."""
        if isinstance(column, pa.Array):
            if self.entries is None:
                return column.cast(self.type)
            found = pc.index_in(column, value_set=self.entries, skip_nulls=True)
            return pa.DictionaryArray.from_arrays(found, self.entries)
        if not isinstance(column, Labels):
            return _cells(column).cast(self.type)
        if self.entries is None:
            return self._values(column.values).take(pa.array(column.which))
        which = np.asarray(column.which)
        return pa.DictionaryArray.from_arrays(
            pa.array(which.astype(np.int32), mask=which == len(self.entries)), self.entries
        )

    def _values(self, values: Sequence[Any]) -> pa.Array:
        texts = pa.types.is_string(self.type)
        return pa.array([str(one) if texts and one is not None else one for one in values], type=self.type)


def cells_like(values: Sequence[Any], *, every: bool) -> CellTypes:
    """Return what the cells of a column may be, from its values or, if not `every` one is given, some that tell.

    >>> cells_like(["m", "f"], every=True).stored
    DictionaryType(dictionary<values=string, indices=int32, ordered=0>)
    """
    found = _cells(values)
    return CellTypes(found.type, found if every and not pa.types.is_nested(found.type) else None)


class TableWriter:
    """A Parquet file that is written bit by bit, and has no trace of the bits.

    Its groups have ROWS_IN_A_GROUP rows each, however many came at a time, and its types are given from the start: the
    file is a function of the rows in it, in their order.
    """

    def __init__(self, path: Path, cells: Mapping[str, CellTypes]) -> None:
        import pyarrow.parquet as pq

        self._cells = dict(cells)
        self._schema = pa.schema([(name, one.stored) for name, one in cells.items()])
        self._waiting: list[pa.Table] = []
        self._writer = pq.ParquetWriter(
            path,
            self._schema,
            # whole numbers that follow each other take few bits, and nothing is left to be made smaller
            compression={name: "none" if name in self._numbers else "snappy" for name in cells},
            use_dictionary=[name for name in cells if name not in self._numbers],
            column_encoding=dict.fromkeys(self._numbers, "DELTA_BINARY_PACKED"),
            # the lowest and the highest of few values help nobody to find a row, and cost as much as writing them
            write_statistics=[name for name, one in cells.items() if one.entries is None],
            store_schema=False,  # plain types for whoever reads it
        )

    @property
    def _numbers(self) -> list[str]:
        return [name for name, one in self._cells.items() if one.entries is None and pa.types.is_integer(one.type)]

    def write(self, columns: Mapping[str, Any]) -> None:
        """Write some rows, as soon as they fill a group."""
        arrays = [one.array(columns[name]) for name, one in self._cells.items()]
        self._waiting.append(pa.Table.from_arrays(arrays, schema=self._schema))
        if sum(table.num_rows for table in self._waiting) < ROWS_IN_A_GROUP:
            return
        rows = pa.concat_tables(self._waiting)
        full = rows.num_rows - rows.num_rows % ROWS_IN_A_GROUP
        for start in range(0, full, ROWS_IN_A_GROUP):
            self._write_group(rows.slice(start, ROWS_IN_A_GROUP))
        self._waiting = [rows.slice(full)]

    def close(self) -> None:
        """Write what is left, and finish the file."""
        rest = pa.concat_tables(self._waiting) if self._waiting else self._schema.empty_table()
        if rest.num_rows:
            self._write_group(rest)
        self._writer.close()

    def _write_group(self, rows: pa.Table) -> None:
        # in one chunk, because pages end where chunks do
        self._writer.write_table(rows.combine_chunks(), row_group_size=ROWS_IN_A_GROUP)


def read_columns(path: Path) -> dict[str, Labels]:
    """Return the columns of a Parquet file of ours, each value once; None for what is missing."""
    import pyarrow.parquet as pq

    found = {}
    for name, column in zip((table := pq.read_table(path)).column_names, table.columns, strict=True):
        encoded = column.combine_chunks().dictionary_encode()
        values = encoded.dictionary.to_pylist()
        which = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
        found[name] = Labels([*values, None] if encoded.null_count else values, which)
    return found


def _stored(column: Sequence[Any]) -> pa.Array:
    """Return a column as it is stored: a dictionary of labels, if they repeat and are texts or numbers."""
    if not isinstance(column, Labels):
        return _cells(column)
    cells, which = _cells(column.values), pa.array(column.which)
    if len(cells) > len(column) // 2 or pa.types.is_nested(cells.type):
        return cells.take(which)
    if not cells.null_count:
        return pa.DictionaryArray.from_arrays(which, cells)
    # no label is a missing cell, not an entry
    there = cells.is_valid().to_numpy(zero_copy_only=False)
    renumbered = pa.array((np.cumsum(there) - 1)[column.which], mask=~there[column.which])
    return pa.DictionaryArray.from_arrays(renumbered.cast(pa.int32()), cells.drop_null())


def _cells(values: Sequence[Any]) -> pa.Array:
    """Return an Arrow array; one of several types, or of numbers beyond 64 bits, becomes one of texts."""
    if isinstance(values, range) and values[0] >= -(2**63) and values[-1] < 2**63:
        return pa.array(values[0] + np.arange(len(values)) * values.step)
    if isinstance(values, np.ndarray) and values.dtype != object:
        return pa.array(values)
    listed = [value.item() if isinstance(value, np.generic) else value for value in values]
    if len({type(value) for value in listed if value is not None}) > 1:
        whole = all(type(value) in (int, float) for value in listed if value is not None)
        listed = [value if value is None else float(value) if whole else str(value) for value in listed]
    elif any(type(value) is int and not -(2**63) <= value < 2**63 for value in listed):
        listed = [value if value is None else str(value) for value in listed]  # Arrow would refuse to hold it
    return pa.array(listed)

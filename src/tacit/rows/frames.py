"""Columns that may be shown, as frames of the user's own kind and as Parquet files: labels and released numbers.

Each label is turned into a cell once and then handed to all the rows that have it; no loop goes over rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.plan.labels import Labels


def as_pandas(columns: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return a pandas frame, with the types that pandas would find for lists."""
    return pd.DataFrame(
        {
            name: pd.Series(column.values).take(column.which).reset_index(drop=True)
            if isinstance(column, Labels)
            else column
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


class TableWriter:
    """A Parquet file that is written batch by batch; the first batch says what the types are."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None

    def write(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Write some rows."""
        import pyarrow.parquet as pq

        table = pa.table({name: _entries(column) for name, column in columns.items()})
        if self._writer is None:
            names = [name for name, column in columns.items() if isinstance(column, Labels)]
            self._writer = pq.ParquetWriter(
                self._path,
                table.schema,
                use_dictionary=names,
                # whole numbers that follow each other take few bits
                column_encoding={name: "DELTA_BINARY_PACKED" for name in columns if name not in names},
                store_schema=False,  # plain types for whoever reads it
            )
        self._writer.write_table(table if table.schema == self._writer.schema else table.cast(self._writer.schema))

    def close(self) -> None:
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()


def _entries(column: Sequence[Any]) -> pa.Array:
    """Return labels as the entries of a dictionary, none for what is missing; numbers as they are."""
    if not isinstance(column, Labels):
        return _cells(column)
    has_none = bool(len(column.values)) and column.values[-1] is None
    entries = _cells(column.values[:-1] if has_none else column.values)
    if pa.types.is_null(entries.type):
        entries = entries.cast(pa.string())
    which = np.asarray(column.which)
    missing = which == len(entries) if has_none else None
    return pa.DictionaryArray.from_arrays(pa.array(which.astype(np.int32), mask=missing), entries)


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
    """Return an Arrow array; one of several types becomes one of texts."""
    if isinstance(values, range) and values[0] >= -(2**63) and values[-1] < 2**63:
        return pa.array(values[0] + np.arange(len(values)) * values.step)
    if isinstance(values, np.ndarray) and values.dtype != object:
        return pa.array(values)
    listed = [value.item() if isinstance(value, np.generic) else value for value in values]
    if len({type(value) for value in listed if value is not None}) > 1:
        whole = all(type(value) in (int, float) for value in listed if value is not None)
        listed = [value if value is None else float(value) if whole else str(value) for value in listed]
    return pa.array(listed)

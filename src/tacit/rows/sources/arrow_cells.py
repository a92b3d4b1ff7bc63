"""Cells as Arrow holds them: how they are read, and what of them means the same to DuckDB."""

from __future__ import annotations

import contextlib
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.rows.cells.date_texts import arrow_date, arrow_moment
from tacit.rows.cells.object_cells import decoded
from tacit.rows.cells.readings import DataColumn, column_of, decimal_column
from tacit.rows.counts.batches import is_text
from tacit.rows.sources.engine import (
    EVENTS,
    NAMES,
    ORDER,
    PERSON,
)


def arrow_column(kind: pa.DataType) -> DataColumn:
    """Return how an Arrow column of this type is read; a dictionary is read as what is in it."""
    types = pa.types
    if types.is_dictionary(kind):
        return arrow_column(kind.value_type)
    if types.is_null(kind):
        return DataColumn("text")
    if types.is_date(kind):
        return DataColumn("date")
    if types.is_decimal(kind) and kind.bit_width <= 128:
        return decimal_column(kind.precision, kind.scale)
    if types.is_list(kind) or types.is_large_list(kind):
        return DataColumn("list", element=arrow_column(kind.value_type))
    return column_of(nw.from_native(pa.table({"c": pa.array([], type=kind)}), eager_only=True).schema["c"])


def plain_cells(cells: Any, role: str = "") -> pa.ChunkedArray:
    """Return a column in a type that DuckDB reads.

    A timestamp stands for its day, but in ids, orders, events and names of rows.
    """
    if isinstance(cells, pa.Array):
        cells = pa.chunked_array([cells])
    kind = cells.type
    if pa.types.is_dictionary(kind) and not is_text(kind.value_type):
        return plain_cells(cells.cast(kind.value_type), role)
    compared, happened = role in (PERSON, ORDER), role in (*EVENTS, NAMES)
    is_time = pa.types.is_timestamp(kind) or pa.types.is_date64(kind) or (pa.types.is_duration(kind) and compared)
    if role == NAMES and pa.types.is_time(kind):
        return cells.cast(pa.string())
    if is_time and (not happened or (role == NAMES and pa.types.is_date64(kind))):
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


def legible(cells: pa.Array) -> pa.Array:
    """Return texts of which those that are no UTF-8 are missing; other cells as they are."""
    texts = cells.dictionary if pa.types.is_dictionary(cells.type) else cells
    if not is_text(texts.type):
        return cells
    with contextlib.suppress(pa.ArrowInvalid):
        texts.validate(full=True)
        return cells
    return _decodable(cells)


def is_held(kind: pa.DataType) -> bool:
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

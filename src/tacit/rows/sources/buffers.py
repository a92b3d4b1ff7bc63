"""Columns in memory: pandas frames and Arrow tables, which DuckDB counts in place, without a copy of what is typed.

Cells are read as Arrow holds them; what of them does not mean the same to DuckDB is converted first.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.rows.cells.number_cells import arrow_moment, arrow_second
from tacit.rows.cells.object_cells import decoded, id_of, lists_of, text_of, texts_of
from tacit.rows.cells.readings import DataColumn, column_of, decimal_column
from tacit.rows.counts.batches import Piece, is_text, of_columns
from tacit.rows.sources.duckdb_engine import DuckDBEngine, shared_embedded
from tacit.rows.sources.engine import (
    EVENTS,
    NAMES,
    ORDER,
    PERSON,
    Engine,
    MakeFrame,
    role_of,
)
from tacit.rows.sources.frames import as_arrow, as_pandas


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
    if _is_list(kind):
        return DataColumn("list", element=arrow_column(kind.value_type))
    return column_of(nw.from_native(pa.table({"c": pa.array([], type=kind)}), eager_only=True).schema["c"])


def plain_cells(cells: Any, role: str = "") -> pa.ChunkedArray:
    """Return a column in a type that DuckDB reads.

    A timestamp stands for its second, but in ids, orders, events and names of rows.
    """
    if isinstance(cells, pa.Array):
        cells = pa.chunked_array([cells])
    kind = cells.type
    if pa.types.is_dictionary(kind) and not is_text(kind.value_type):
        return plain_cells(cells.cast(kind.value_type), role)
    spans = pa.types.is_duration(kind)
    compared, happened = role in (PERSON, ORDER), role in (*EVENTS, NAMES) or (role == PERSON and not spans)
    is_time = pa.types.is_timestamp(kind) or pa.types.is_date64(kind) or (spans and compared)
    if role == NAMES and pa.types.is_time(kind):
        return cells.cast(pa.string())
    if is_time and (not happened or (role == NAMES and pa.types.is_date64(kind))):
        read = arrow_moment if compared else arrow_second
        kind = read(pa.array([], kind)).type
        return pa.chunked_array([read(chunk) for chunk in cells.chunks], type=kind)
    if pa.types.is_null(kind):
        return cells.cast(pa.string())
    if pa.types.is_float16(kind):
        return cells.cast(pa.float32())
    if is_text(kind) or pa.types.is_dictionary(kind) or _is_list(kind):
        with contextlib.suppress(pa.ArrowInvalid):
            cells.validate(full=True)
            return cells
        return pa.chunked_array([_decodable(chunk) for chunk in cells.chunks])
    return cells


def legible(cells: pa.Array) -> pa.Array:
    """Return texts, or lists of them, of which those that are no UTF-8 are missing; other cells as they are."""
    texts = cells.dictionary if pa.types.is_dictionary(cells.type) else cells
    if not is_text(texts.type) and not _is_list(texts.type):
        return cells
    with contextlib.suppress(pa.ArrowInvalid):
        texts.validate(full=True)
        return cells
    return _decodable(cells)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def is_held(kind: pa.DataType) -> bool:
    """Say whether cells of this type mean the same to Arrow and to DuckDB."""
    types = pa.types
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    if _is_list(kind):
        return is_held(kind.value_type)
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
    if _is_list(kind):
        lengths = np.asarray(cells.value_lengths().fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        return pa.LargeListArray.from_arrays(pa.array(ends, type=pa.int64()), _decodable(cells.flatten()))
    if not is_text(kind):
        return cells
    raw = cells.cast(pa.large_binary()).to_pylist()
    return pa.array([None if cell is None else decoded(cell) for cell in raw], type=pa.large_string())


class Buffers(DuckDBEngine, ABC):
    """Columns in memory, read in place by an embedded DuckDB."""

    keeps = True

    def __init__(self, kind: str, table: Any, names: Sequence[Any]) -> None:
        super().__init__(kind, None)
        self._table = table
        self.rows = len(table)
        self._names = [name for name in names if isinstance(name, str)]  # no domain can mean any other name
        self.connection = shared_embedded()
        self._converted: dict[tuple[str, str], pa.ChunkedArray] = {}

    def names(self) -> list[str]:
        return self._names

    def unchanged(self) -> bool:
        """Say yes: the columns are our own."""
        return True

    @abstractmethod
    def cells(self, name: str, role: str) -> Any:
        """Return a column as Arrow holds it; `role` says what it is read for."""

    def emptied(self) -> Engine:
        other = copy.copy(self)
        other._table, other.rows, other._converted = self._table[:0], 0, {}
        return other

    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        found = pa.table(self.cells_of(columns)).slice(0, 0)
        return found if all(map(is_held, found.schema.types)) else super().nothing(columns)

    def pieces(self, columns: Mapping[str, str]) -> list[Piece]:
        """Cut the columns into batches; DuckDB does so where it holds cells in another way."""
        found = self.cells_of(columns)
        if not all(is_held(column.type) for column in found.values()):
            return super().pieces(columns)
        return of_columns(found, len(self._table))

    def cells_of(self, columns: Mapping[str, str]) -> dict[str, pa.ChunkedArray]:
        """Return the columns in types that DuckDB reads."""
        keys = {new: (raw, role_of(new)) for new, raw in columns.items()}
        for raw, role in keys.values():
            if (raw, role) not in self._converted:
                self._converted[raw, role] = plain_cells(self.cells(raw, role), role)
        return {new: self._converted[key] for new, key in keys.items()}

    def relation(self, columns: Mapping[str, str]) -> Any:
        """Hand the columns to DuckDB."""
        table = pa.table(self.cells_of(columns))
        if not columns:
            table = pa.table({"one": pa.array(np.ones(len(self._table), dtype=np.int8))})
        return self.connection.from_arrow(table)


class ArrowEngine(Buffers):
    """An Arrow table."""

    place = "pyarrow"

    def __init__(self, table: Any) -> None:
        super().__init__("pyarrow", table, table.column_names)

    def schema(self) -> dict[str, DataColumn]:
        fields = self._table.schema
        return {name: arrow_column(fields.field(name).type) for name in self._names if self._names.count(name) == 1}

    def type_of(self, raw: str) -> str:
        return str(self._table.schema.field(raw).type)

    def cells(self, name: str, role: str) -> Any:
        return self._table.column(name)

    @property
    def frame(self) -> MakeFrame:
        return as_arrow


class PandasEngine(Buffers):
    """A pandas frame. Columns of Python objects are read as texts, or as lists of items where items are expected."""

    place = "pandas"

    def __init__(self, table: Any, lists: frozenset[str]) -> None:
        # what is done to the frame from now on, its names included, is done to another one
        super().__init__("pandas", table.copy(deep=False), list(table.columns))
        self._lists = lists
        self._dtypes = dict(zip(table.columns, table.dtypes, strict=True))

    def schema(self) -> dict[str, DataColumn]:
        return {name: self._column(name) for name in self._names if self._names.count(name) == 1}

    def _column(self, name: str) -> DataColumn:
        dtype = self._dtypes[name]
        if dtype == np.dtype(object):
            return DataColumn("list", element=DataColumn("text")) if name in self._lists else DataColumn("text")
        if isinstance(dtype, pd.CategoricalDtype):
            dtype = dtype.categories.dtype
            if dtype == np.dtype(object):
                return DataColumn("text")
        if isinstance(dtype, pd.ArrowDtype):
            return arrow_column(dtype.pyarrow_dtype)
        if isinstance(dtype, pd.DatetimeTZDtype):
            return DataColumn("time", zoned=True)
        return _pandas_column(dtype)

    def type_of(self, raw: str) -> str:
        dtype = self._table.dtypes[raw]
        kind = f"{dtype} of {dtype.categories.dtype}" if isinstance(dtype, pd.CategoricalDtype) else str(dtype)
        return f"{kind} with lists" if raw in self._lists else kind

    def cells(self, name: str, role: str) -> Any:
        column, read = self._table[name], id_of if role == PERSON else text_of
        if getattr(column.dtype, "kind", "") == "c":  # Arrow has no such numbers; as anything but ids they are refused
            return texts_of(column, read)
        if column.dtype == np.dtype(object):
            return lists_of(column) if name in self._lists and role != PERSON else texts_of(column, read)
        if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.categories.dtype == np.dtype(object):
            codes = column.cat.codes.to_numpy()
            return texts_of(column.cat.categories, read).take(pa.array(codes, mask=codes < 0))
        if isinstance(column.dtype, pd.StringDtype):
            with contextlib.suppress(UnicodeEncodeError, pa.ArrowInvalid):
                return pa.Array.from_pandas(column)
            return texts_of(column, read)  # a text that no encoding can hold
        return pa.Array.from_pandas(column)

    @property
    def frame(self) -> MakeFrame:
        return as_pandas


@functools.lru_cache(maxsize=256)  # a frame has many columns of few types
def _pandas_column(dtype: Any) -> DataColumn:
    empty = pd.DataFrame({"c": pd.Series([], dtype=dtype)})
    return column_of(nw.from_native(empty, eager_only=True).schema["c"])

"""Buffers, not engines: DuckDB counts pandas frames and Arrow tables in place, without a copy of what is typed."""

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

from tacit.rows.cells.object_cells import id_of, lists_of, text_of, texts_of
from tacit.rows.cells.readings import DataColumn, column_of
from tacit.rows.counts.batches import Piece, of_columns
from tacit.rows.sources.arrow_cells import arrow_column, is_held, plain_cells
from tacit.rows.sources.duckdb_engine import DuckDBEngine, shared_embedded
from tacit.rows.sources.engine import (
    PERSON,
    Engine,
    MakeFrame,
    role_of,
)
from tacit.rows.sources.frames import as_arrow, as_pandas


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

    def schema(self) -> dict[str, DataColumn]:
        return {name: self.column(name) for name in self._names if self._names.count(name) == 1}

    def names(self) -> list[str]:
        return self._names

    def unchanged(self) -> bool:
        """Say yes: the columns are our own."""
        return True

    @abstractmethod
    def column(self, name: str) -> DataColumn:
        """Return how a column is read."""

    @abstractmethod
    def cells(self, name: str, *, whose: bool) -> Any:
        """Return a column as Arrow holds it; `whose` says that it is read as the ids of people."""

    def emptied(self) -> Engine:
        other = copy.copy(self)
        other._table, other.rows, other._converted = self._table[:0], 0, {}
        return other

    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        return pa.table(self._cells_of(columns)).slice(0, 0)

    def pieces(self, columns: Mapping[str, str]) -> list[Piece] | None:
        """Cut the columns into batches."""
        found = self._cells_of(columns)
        if not all(is_held(column.type) for column in found.values()):
            return None
        return of_columns(found, len(self._table))

    def _cells_of(self, columns: Mapping[str, str]) -> dict[str, pa.ChunkedArray]:
        keys = {new: (raw, role_of(new)) for new, raw in columns.items()}
        for raw, role in keys.values():
            if (raw, role) not in self._converted:
                self._converted[raw, role] = plain_cells(self.cells(raw, whose=role == PERSON), role)
        return {new: self._converted[key] for new, key in keys.items()}

    def relation(self, columns: Mapping[str, str]) -> Any:
        """Hand the columns to DuckDB."""
        table = pa.table(self._cells_of(columns))
        if not columns:
            table = pa.table({"one": pa.array(np.ones(len(self._table), dtype=np.int8))})
        return self.connection.from_arrow(table)


class ArrowEngine(Buffers):
    """An Arrow table."""

    place = "pyarrow"

    def __init__(self, table: Any) -> None:
        super().__init__("pyarrow", table, table.column_names)

    def column(self, name: str) -> DataColumn:
        return arrow_column(self._table.schema.field(name).type)

    def type_of(self, raw: str) -> str:
        return str(self._table.schema.field(raw).type)

    def cells(self, name: str, *, whose: bool) -> Any:
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

    def column(self, name: str) -> DataColumn:
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

    def cells(self, name: str, *, whose: bool) -> Any:
        column, read = self._table[name], id_of if whose else text_of
        if getattr(column.dtype, "kind", "") == "c":  # Arrow has no such numbers; as anything but ids they are refused
            return texts_of(column, read)
        if column.dtype == np.dtype(object):
            return lists_of(column) if name in self._lists and not whose else texts_of(column, read)
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

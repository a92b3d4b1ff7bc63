"""Positions of the rows of a batch: each distinct cell is looked at once, by the definition in `rows/encode.py`.

A look-up table goes from the ways in which Arrow holds a cell (the entry of a dictionary, a small whole number) to the
position that the expressions of its `Code` give it. The expressions are run by an embedded DuckDB, and every result
carries the number of the cell that was asked for, so that no order of rows matters. Cells that do not repeat
(coordinates, long numbers) are given to the expressions as they are.

A position is kept in the smallest unsigned type that holds the size of the attribute, which stands for "no position".
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Final

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import InternalError
from tacit.rows.batches import Batch, is_text, roomy
from tacit.rows.date_texts import arrow_date
from tacit.rows.encode import Code
from tacit.rows.engines import duckdb_readings
from tacit.rows.guard import closed

Codes = npt.NDArray[Any]  # positions in the smallest type; the size of the attribute stands for none
_WIDEST_TABLE: Final = 2**22  # entries of a look-up table by number
_NARROW_TABLE: Final = 2**16
_MOST_NAMES: Final = 2**12  # entries of a dictionary that are looked up one by one
_MOST_KNOWN: Final = 2**16


def smallest(size: int) -> np.dtype[Any]:
    """Return the smallest type that holds the positions of an attribute, and its size."""
    return np.dtype(np.min_scalar_type(size)) if size < 2**32 else np.dtype(np.int64)


class Encoder:
    """From batches of raw cells to positions, for some attributes."""

    def __init__(self, codes: Mapping[str, Code], sizes: Mapping[str, int], connection: Any) -> None:
        evaluator = _Evaluator(connection)
        self._columns = {name: _Column(code, sizes[name], evaluator) for name, code in codes.items()}

    def codes(self, name: str, batch: Batch) -> Codes:
        """Return the positions of an attribute in the rows of a batch."""
        return self._columns[name].codes(batch)


class _Evaluator:
    """The expressions of a code, run on cells. One at a time: look-ups are rare, and DuckDB has threads of its own."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def positions(self, code: Code, size: int, columns: Mapping[str, pa.Array]) -> Codes:
        """Return the position of each row of cells."""
        rows = len(next(iter(columns.values())))
        table = pa.table({**columns, "row": pa.array(np.arange(rows, dtype=np.int64))})
        names = [f"k{place}" for place in range(len(code.keys))]
        with self._lock:
            frame = self._connection.from_arrow(table)
            keys = [key if code.valid is None else nw.when(code.valid).then(key) for key in code.keys]
            chosen = [key.alias(name) for key, name in zip(keys, names, strict=True)]
            found = duckdb_readings(frame, code.numbers).select("row", *chosen).collect(backend="pyarrow").to_arrow()
        keys_found = [found.column(name) for name in names]
        places = closed(lambda: code.decode(keys_found), InternalError("counting rows"))
        positions = np.full(rows, size, dtype=smallest(size))
        positions[found.column("row").to_numpy()] = np.where(places < 0, size, places)
        return positions


class _Column:
    """How the positions of one attribute are found, and what is known of them so far."""

    def __init__(self, code: Code, size: int, evaluator: _Evaluator) -> None:
        self._code, self._size, self._evaluator = code, size, evaluator
        self._names = [column.name for column in code.columns]
        self._known: dict[Any, int] = {}  # text -> position
        self._last: tuple[pa.Array, Codes] | None = None  # the dictionary of another batch, looked up
        self._low, self._table = 0, np.zeros(0, dtype=smallest(size))  # positions of whole numbers from `low`
        self._nothing: int | None = None  # the position of a missing cell
        self._varied = False  # cells hardly repeat: nothing is gained by looking for equal ones
        self._lock = threading.Lock()

    def codes(self, batch: Batch) -> Codes:
        """Return the positions of a batch."""
        if len(self._names) > 1 or self._varied:
            return self._evaluated({name: arrow_date(plain(batch.columns[name])) for name in self._names})
        cells = arrow_date(batch.columns[self._names[0]])
        kind = cells.type
        if not len(cells):
            return np.zeros(0, dtype=smallest(self._size))
        if not pa.types.is_dictionary(kind):
            truths = pa.types.is_boolean(kind)
            if truths or pa.types.is_integer(kind):
                found = self._by_number(cells.cast(pa.uint8()) if truths else cells, kind)
                if found is not None:
                    return found
            cells = cells.dictionary_encode()
            if len(cells.dictionary) > len(cells) // 2 and len(cells) > _MOST_NAMES:
                self._varied = True
        return self._by_entry(cells)

    def _evaluated(self, columns: Mapping[str, pa.Array]) -> Codes:
        return self._evaluator.positions(self._code, self._size, columns)

    def _of_cells(self, cells: pa.Array) -> Codes:
        return self._evaluated({self._names[0]: cells})

    def _of_nothing(self, kind: pa.DataType) -> int:
        if self._nothing is None:
            self._nothing = int(self._of_cells(pa.nulls(1, kind))[0])
        return self._nothing

    # ------------------------------------------------------------------ whole numbers

    def _by_number(self, cells: pa.Array, kind: pa.DataType) -> Codes | None:
        """Look whole numbers up in a table; None if they lie too far apart for one."""
        ends = pc.min_max(cells).as_py()
        low, high = ends["min"], ends["max"]
        if low is None:
            return np.full(len(cells), self._of_nothing(kind), dtype=smallest(self._size))
        with self._lock:
            known = self._known_from(low, high, kind)
        if known is None:
            return None
        first, table = known
        missing = cells.is_null().to_numpy(zero_copy_only=False) if cells.null_count else None
        numbers = cells.fill_null(low) if cells.null_count else cells
        numbers = numbers.to_numpy(zero_copy_only=False)
        bits = 8 * numbers.dtype.itemsize
        unsigned = np.dtype(f"u{numbers.dtype.itemsize}")
        # the difference, taken around 2^bits, is right for every type
        found: Codes = table[numbers.view(unsigned) - unsigned.type(first % 2**bits)]
        if missing is not None:
            found[missing] = self._of_nothing(kind)
        return found

    def _known_from(self, low: int, high: int, kind: pa.DataType) -> tuple[int, Codes] | None:
        first, table = self._low, self._table
        if len(table) and first <= low and high < first + len(table):
            return first, table
        if len(table):
            low, high = min(low, first), max(high, first + len(table) - 1)
        if high - low >= max(_NARROW_TABLE, min(4 * self._size, _WIDEST_TABLE)):
            return None
        numbers = pa.array(np.arange(low, high + 1, dtype=np.uint64 if high >= 2**63 else np.int64))
        self._low, self._table = low, self._of_cells(numbers.cast(kind))
        return self._low, self._table

    # ------------------------------------------------------------------ everything else

    def _by_entry(self, cells: pa.Array) -> Codes:
        """Look the entries of a dictionary up."""
        last = self._last
        if last is not None and last[0].equals(cells.dictionary):
            table = last[1]
        else:
            table = np.append(self._entries(cells.dictionary), 0)
            self._last = cells.dictionary, table
        indices = cells.indices
        if indices.null_count:
            table = table.copy()
            table[-1] = self._of_nothing(cells.type.value_type)
            indices = indices.fill_null(len(table) - 1) if _fits(indices.type, len(table)) else _wide(indices, table)
        found: Codes = table[indices.to_numpy(zero_copy_only=False)]
        return found

    def _entries(self, entries: pa.Array) -> Codes:
        entries.validate(full=True)  # a Parquet file may hold texts that are none
        if len(entries) > _MOST_NAMES or not is_text(entries.type):
            return self._of_cells(entries)
        names = entries.to_pylist()
        with self._lock:
            known = dict(self._known)
        if new := [name for name in dict.fromkeys(names) if name not in known]:
            found = self._of_cells(pa.array(new, type=entries.type))
            known.update(zip(new, found.tolist(), strict=True))
            with self._lock:
                self._known = known if len(known) <= _MOST_KNOWN else {}
        return np.array([known[name] for name in names], dtype=smallest(self._size))


def plain(cells: pa.Array) -> pa.Array:
    """Return cells without the dictionary that they may be stored with; texts have one type however they came."""
    return roomy(cells.dictionary).take(cells.indices) if pa.types.is_dictionary(cells.type) else roomy(cells)


def _fits(kind: pa.DataType, entries: int) -> bool:
    return bool(entries <= 2 ** (kind.bit_width - 1))


def _wide(indices: pa.Array, table: Codes) -> pa.Array:
    return indices.cast(pa.int64()).fill_null(len(table) - 1)

"""Positions of the rows of a batch: each distinct cell is read once, as `rows/cells/readings.py` defines.

A look-up table goes from the ways in which Arrow holds a cell (the entry of a dictionary, a small whole number) to the
position that the expressions of its `Code` give it. The expressions are run by an embedded DuckDB, and every result
carries the number of the cell that was asked for, so that no order of rows matters. Cells that do not repeat
(coordinates, long numbers) are given to the expressions as they are.

Which whole numbers are looked up is declared: those of the attribute's range, one below for all below, one above for
all above, and a missing one. Of a range that is too wide for a table, and whose positions are counted from its first
number on, only the ends are looked up. Neither they nor the way that is taken depend on the numbers in the data, so
that the time does not tell how far out a person's number is.

A position is kept in the smallest unsigned type that holds the size of the attribute, which stands for "no position".
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import InternalError
from tacit.rows.cells.number_cells import arrow_date, arrow_second
from tacit.rows.cells.readings import Code
from tacit.rows.counts.batches import Batch, is_text, plain
from tacit.rows.guard import closed
from tacit.rows.sources.duckdb_engine import DUCKDB

Codes = npt.NDArray[Any]  # positions in the smallest type; the size of the attribute stands for none
_WIDEST_TABLE: Final = 2**20  # entries of a look-up table by number; wider ranges are not looked up
_FEW_NUMBERS: Final = 2**12  # that one column may add to a query for several
_MOST_NAMES: Final = 2**12  # entries of a dictionary that are looked up one by one
_MOST_KNOWN: Final = 2**16


def smallest(size: int) -> np.dtype[Any]:
    """Return the smallest type that holds the positions of an attribute, and its size."""
    return np.dtype(np.min_scalar_type(size)) if size < 2**32 or size == 2**63 else np.dtype(np.int64)


class Encoder:
    """From batches of raw cells to positions, for some attributes."""

    def __init__(self, codes: Mapping[str, Code], sizes: Mapping[str, int], connection: Any) -> None:
        self._evaluator, self._codes = _Evaluator(connection), codes
        self._columns = {name: _ColumnEncoder(code, sizes[name], self._evaluator) for name, code in codes.items()}
        self._lock = threading.Lock()

    def prepare(self, names: Iterable[str], batch: Batch) -> None:
        """Look whole numbers up before they are asked for, those of all columns in one query."""
        with self._lock:
            asked: dict[str, tuple[_ColumnEncoder, pa.Array]] = {}
            for name in names:
                column = self._columns[name]
                numbers = column.first_numbers(batch)
                if numbers is not None and column.name not in asked:
                    asked[column.name] = (column, numbers)
            if len(asked) < 2:
                return
            tables = self._evaluator.together([(column.code, column.size, cells) for column, cells in asked.values()])
            for (column, cells), table in zip(asked.values(), tables, strict=True):
                column.learn(cells.type, table)

    def codes(self, name: str, batch: Batch) -> Codes:
        """Return the positions of an attribute in the rows of a batch."""
        return self._columns[name].codes(batch)

    def rehearse(self, batch: Batch) -> None:
        """Do with a batch of no rows, for all attributes at once, what fails if its types cannot be looked up."""
        self._evaluator.rehearse(self._codes.values(), {name: plain(cells) for name, cells in batch.columns.items()})
        for cells in batch.columns.values():
            if not pa.types.is_dictionary(cells.type):
                cells.dictionary_encode()


class _Evaluator:
    """The expressions of a code, run on cells. One at a time: look-ups are rare, and DuckDB has threads of its own."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def positions(self, code: Code, size: int, columns: Mapping[str, pa.Array]) -> Codes:
        """Return the position of each row of cells."""
        return self._evaluated([(code, size)], columns)[0]

    def together(self, asked: Sequence[tuple[Code, int, pa.Array]]) -> list[Codes]:
        """Return the positions of cells of several columns, each of which has an attribute of its own."""
        longest = max(len(cells) for _, _, cells in asked)
        columns = {
            code.columns[0].name: pa.concat_arrays([cells, pa.nulls(longest - len(cells), cells.type)])
            for code, _, cells in asked
        }
        found = self._evaluated([(code, size) for code, size, _ in asked], columns)
        return [positions[: len(cells)] for positions, (_, _, cells) in zip(found, asked, strict=True)]

    def _evaluated(self, codes: Sequence[tuple[Code, int]], columns: Mapping[str, pa.Array]) -> list[Codes]:
        rows = len(next(iter(columns.values())))
        table = pa.table({**columns, "row": pa.array(np.arange(rows, dtype=np.int64))})
        names = [[f"k{number}_{place}" for place in range(len(code.keys))] for number, (code, _) in enumerate(codes)]
        with self._lock:
            frame = nw.from_native(self._connection.from_arrow(table)).lazy()
            chosen = [
                (key if code.valid is None else nw.when(code.valid).then(key)).alias(name)
                for (code, _), named in zip(codes, names, strict=True)
                for key, name in zip(code.keys, named, strict=True)
            ]
            helpers = [helper for code, _ in codes for helper in code.numbers]
            found = DUCKDB.with_readings(frame, helpers).select("row", *chosen).collect(backend="pyarrow").to_arrow()
        row, positions = found.column("row").to_numpy(), []
        for (code, size), named in zip(codes, names, strict=True):
            keys = [found.column(name) for name in named]
            places = np.broadcast_to(closed(partial(code.decode, keys), InternalError("counting rows")), row.shape)
            of_rows = np.full(rows, size, dtype=smallest(size))
            of_rows[row[places >= 0]] = places[places >= 0]
            positions.append(of_rows)
        return positions

    def rehearse(self, codes: Iterable[Code], columns: Mapping[str, pa.Array]) -> None:
        """Run the expressions of several codes on no rows."""
        keys = [nw.when(code.valid).then(key) if code.valid is not None else key for code in codes for key in code.keys]
        helpers = dict.fromkeys(helper for code in codes for helper in code.numbers)
        frame = nw.from_native(self._connection.from_arrow(pa.table(dict(columns)))).lazy()
        frame = DUCKDB.with_readings(frame, helpers)
        frame.select(*(key.alias(f"k{place}") for place, key in enumerate(keys))).collect(backend="pyarrow")


class _ColumnEncoder:
    """How the positions of one attribute are found, and what is known of them so far."""

    def __init__(self, code: Code, size: int, evaluator: _Evaluator) -> None:
        self.code, self.size, self._evaluator = code, size, evaluator
        self._names = [column.name for column in code.columns]
        self.name = self._names[0]
        self._read = arrow_second if code.tells_time else arrow_date
        self._known: dict[Any, int] = {}  # text -> position
        self._last: tuple[pa.Array, Codes] | None = None  # the dictionary of another batch, looked up
        self._tables: dict[
            pa.DataType, Codes
        ] = {}  # positions of the whole numbers of `_numbers`, and of a missing one
        self._nothing: int | None = None  # the position of a missing cell
        self._varied = False  # cells hardly repeat: nothing is gained by looking for equal ones
        self._lock = threading.Lock()

    def codes(self, batch: Batch) -> Codes:
        """Return the positions of a batch."""
        if len(self._names) > 1 or self._varied:
            return self._evaluated({name: self._read(plain(batch.columns[name])) for name in self._names})
        cells = self._read(batch.columns[self._names[0]])
        kind = cells.type
        if not len(cells):
            return np.zeros(0, dtype=smallest(self.size))
        if not pa.types.is_dictionary(kind):
            if _is_whole(kind):
                return self._of_cells(cells) if self._ends(kind) is None else self._by_number(cells)
            cells = cells.dictionary_encode()
            if len(cells.dictionary) > len(cells) // 2 and len(cells) > _MOST_NAMES:
                self._varied = True
        return self._by_entry(cells)

    def _evaluated(self, columns: Mapping[str, pa.Array]) -> Codes:
        return self._evaluator.positions(self.code, self.size, columns)

    def _of_cells(self, cells: pa.Array) -> Codes:
        return self._evaluated({self._names[0]: cells})

    def _of_nothing(self, kind: pa.DataType) -> int:
        if self._nothing is None:
            self._nothing = int(self._of_cells(pa.nulls(1, kind))[0])
        return self._nothing

    # ------------------------------------------------------------------ whole numbers

    def _ends(self, kind: pa.DataType) -> tuple[int, int] | None:
        """Return the first and the last whole number of a type that are looked up; None if the range is too wide."""
        if self.code.span is None:
            return None
        if self.code.span[1] - self.code.span[0] >= _WIDEST_TABLE and not self.code.is_counted:
            return None
        low, high = _limits(kind)
        # one number stands for all below the range, one for all above; where the type has none, nothing does
        first, last = (min(max(end, low), high) for end in (self.code.span[0] - 1, self.code.span[1] + 1))
        return first, last

    def _by_number(self, cells: pa.Array) -> Codes:
        """Look whole numbers up in the table of their type; where the range is wide, it has the ends alone."""
        kind = cells.type
        ends = self._ends(kind)
        assert ends is not None  # noqa: S101 - for the type checker
        with self._lock:
            table = self._tables.get(kind)
            if table is None:
                asked = (
                    [_from_to(end, end, kind)[:1] for end in ends] if _are_far(ends) else [_from_to(*ends, kind)[:-1]]
                )
                table = self._tables[kind] = self._of_cells(pa.concat_arrays([*asked, pa.nulls(1, kind)]))
        if pa.types.is_boolean(kind):
            cells = cells.cast(pa.uint8())
        missing = cells.is_null().to_numpy(zero_copy_only=False) if cells.null_count else None
        numbers = (cells.fill_null(0) if cells.null_count else cells).to_numpy(zero_copy_only=False)
        first, last = (numbers.dtype.type(end) for end in ends)
        unsigned = np.dtype(f"u{numbers.dtype.itemsize}")
        # the difference, taken around 2^bits, is right for every type; numpy takes places fastest by its own type
        places = np.clip(numbers, first, last).view(unsigned)
        places -= first.view(unsigned)
        found: Codes
        if _are_far(ends):
            found = self._counted(places, ends, table)
        else:
            found = table.take(places.view(np.intp) if places.itemsize == np.intp().itemsize else places)
        if missing is not None:
            found[missing] = table[-1]
        return found

    def _counted(self, places: npt.NDArray[Any], ends: tuple[int, int], table: Codes) -> Codes:
        """Return the positions of numbers by their places between the ends: all but the ends count from the first."""
        assert self.code.span is not None  # noqa: S101 - for the type checker
        shift = np.uint64((ends[0] - self.code.span[0]) % 2**64)
        found: Codes = (places.astype(np.uint64, copy=False) + shift).astype(smallest(self.size))
        np.putmask(found, places == 0, table[0])
        np.putmask(found, places == ends[1] - ends[0], table[1])
        return found

    def first_numbers(self, batch: Batch) -> pa.Array | None:
        """Return the whole numbers that a first batch needs, if they are few; None if it needs none."""
        if len(self._names) > 1 or not batch.rows:
            return None
        kind = batch.columns[self.name].type
        ends = self._ends(kind) if _is_whole(kind) else None
        if ends is None or _are_far(ends) or ends[1] - ends[0] >= _FEW_NUMBERS or kind in self._tables:
            return None
        return _from_to(*ends, kind)

    def learn(self, kind: pa.DataType, table: Codes) -> None:
        """Take the positions of the whole numbers of a type for known."""
        with self._lock:
            self._tables.setdefault(kind, table)

    # ------------------------------------------------------------------ everything else

    def _by_entry(self, cells: pa.Array) -> Codes:
        """Look the entries of a dictionary up."""
        last = self._last
        if last is not None and last[0].equals(cells.dictionary):
            table = last[1]
        else:
            entries = self._entries(cells.dictionary)
            table = np.append(entries, entries.dtype.type(0))  # with one more place, for what is missing
            self._last = cells.dictionary, table
        indices = cells.indices
        if indices.null_count:
            table = table.copy()
            table[-1] = self._of_nothing(cells.type.value_type)
            indices = indices.fill_null(len(table) - 1) if _fits(indices.type, len(table)) else _wide(indices, table)
        found: Codes = table.take(indices.to_numpy(zero_copy_only=False))
        return found

    def _entries(self, entries: pa.Array) -> Codes:
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
        return np.array([known[name] for name in names], dtype=smallest(self.size))


def _are_far(ends: tuple[int, int]) -> bool:
    """Say whether a table would have too many entries: the range, and one number on each side."""
    return ends[1] - ends[0] - 2 >= _WIDEST_TABLE


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(kind) or pa.types.is_integer(kind))


def _limits(kind: pa.DataType) -> tuple[int, int]:
    """Return the lowest and the highest number of a type."""
    if pa.types.is_boolean(kind):
        return 0, 1
    limits = np.iinfo(kind.to_pandas_dtype())
    return int(limits.min), int(limits.max)


def _from_to(first: int, last: int, kind: pa.DataType) -> pa.Array:
    """Return all whole numbers from the first to the last, and a missing one."""
    # counted from zero: the last may be the highest number of its type
    numbers = np.arange(last - first + 1, dtype=np.uint64) + np.uint64(first % 2**64)
    numbers = numbers if last >= 2**63 else numbers.view(np.int64)
    return pa.concat_arrays([pa.array(numbers).cast(kind), pa.nulls(1, kind)])


def _fits(kind: pa.DataType, entries: int) -> bool:
    return bool(entries <= 2 ** (kind.bit_width - 1))


def _wide(indices: pa.Array, table: Codes) -> pa.Array:
    return indices.cast(pa.int64()).fill_null(len(table) - 1)

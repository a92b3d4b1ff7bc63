"""Polars frames, eager or lazy."""

from __future__ import annotations

import contextlib
import copy
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import duckdb
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused
from tacit.rows.cells.date_texts import polars_date
from tacit.rows.cells.item_lists import Key, ListReading, PolarsLists
from tacit.rows.cells.readings import NUMBER, DataColumn
from tacit.rows.counts.batches import BATCH, Piece, of_columns
from tacit.rows.files.identity import Identities, identities
from tacit.rows.files.planned_files import files_of_plan
from tacit.rows.sources.arrow_cells import is_held, plain_cells
from tacit.rows.sources.duckdb_engine import shared_embedded
from tacit.rows.sources.engine import (
    Engine,
    MakeFrame,
    cancelled,
    no_warnings,
    role_of,
    schema_of,
)
from tacit.rows.sources.frames import as_arrow

_OLDEST_POLARS: Final = (1, 18)  # not a dependency, so that no installer sees to it


class PolarsEngine:
    """A polars frame, eager or lazy."""

    kind = "polars"

    def __init__(self, source: Any) -> None:
        import polars as pl

        # what older ones lack would be missed only after the charge
        if tuple(map(int, pl.__version__.split(".")[:2])) < _OLDEST_POLARS:
            oldest = ".".join(map(str, _OLDEST_POLARS))
            raise DataRefused(f"polars must be at least version {oldest}", fix=f"pip install 'polars>={oldest}'.")
        self._lazy = source.lazy()
        self._scans = isinstance(source, pl.LazyFrame)
        self.place = ("polars", self._scans)
        self.rows: int | None = None if self._scans else len(source)
        self.keeps = not self._scans  # a plan may read something else next time; a frame does not change
        self._found: Any = None
        self._files: Identities = {}

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return list(self._lazy.collect_schema().names())

    def unchanged(self) -> bool:
        """Look at the columns again, and at the files that a plan may read by position."""
        import polars as pl

        same = self._identities() == self._files
        return same and bool(self._lazy.select(pl.all()).collect_schema() == self._found)

    def _identities(self) -> Identities:
        return identities(files_of_plan(self._lazy)) if self._scans else {}

    def schema(self) -> dict[str, DataColumn]:
        """Return how each column is read."""
        import polars as pl

        self._files = self._identities()
        self._found = self._lazy.collect_schema()
        nothing = {name for name, dtype in self._found.items() if dtype == pl.Null}
        return {name: DataColumn("text") if name in nothing else found for name, found in schema_of(self._lazy).items()}

    def try_column(self, raw: str) -> None:
        """No cell makes it fail."""

    def select(self, columns: Mapping[str, str]) -> Any:
        """Select columns under new names."""
        import polars as pl
        from polars import selectors

        # a selector, because pl.col reads a name like ^a.*$ as a pattern
        chosen = [selectors.by_name(raw).as_expr().alias(new) for new, raw in columns.items()]
        return self._lazy.select(chosen) if chosen else self._lazy.select(pl.int_range(pl.len()).alias("one"))

    def pieces(self, columns: Mapping[str, str]) -> list[Piece] | None:
        """Cut the columns of a frame into batches; of a plan, leave the counting to polars."""
        if self._scans:
            return None
        import polars as pl

        held = (
            pl.Int8,
            pl.Int16,
            pl.Int32,
            pl.Int64,
            pl.UInt8,
            pl.UInt16,
            pl.UInt32,
            pl.UInt64,
            pl.Float32,
            pl.Float64,
        )
        texts = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Date, pl.Datetime, pl.Decimal, pl.Null)
        if not all(self._found[raw] in (*held, *texts) for raw in columns.values()):  # Arrow may lack the type
            return None
        table = self.select(columns).collect().to_arrow()
        found = {new: plain_cells(table.column(new), role_of(new)) for new in columns}
        if not all(is_held(column.type) for column in found.values()):
            return None
        return of_columns(found, table.num_rows)

    def parts(self, native: Any) -> Iterator[pa.Table]:
        """Let polars go through a plan bit by bit; older ones cannot."""
        if not hasattr(native, "collect_batches"):
            yield native.collect().to_arrow()
            return
        for frame in native.collect_batches(chunk_size=BATCH, maintain_order=True):
            yield frame.to_arrow()

    def emptied(self) -> Engine:
        """Make a frame of the same columns: whatever a plan does, none of it is done."""
        import polars as pl

        other = copy.copy(self)
        other._lazy, other.rows = pl.DataFrame(schema=self._found).lazy(), 0
        return other

    def legible(self) -> Engine:
        """Texts of this engine are UTF-8."""
        return self

    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        """Return no rows."""
        table = self.select(columns).collect().to_arrow()
        cells = {new: plain_cells(table.column(new), role_of(new)) for new in columns}
        return pa.table(cells).slice(0, 0)

    def rehearse(self, native: Any) -> None:
        """Read no rows."""
        native.collect().to_arrow()

    def type_of(self, raw: str) -> str:
        """Return the name of a type."""
        return str(self._found[raw])

    def helper(self) -> duckdb.DuckDBPyConnection:
        """Return a connection to the DuckDB of this process."""
        return shared_embedded()

    def numbers(self, native: Any, columns: Mapping[str, str]) -> Any:
        """Read texts as numbers."""
        import polars as pl

        return native.with_columns(
            _polars_number(pl.col(column).cast(pl.String)).alias(new) for new, column in columns.items()
        )

    def dates(self, native: Any, columns: Mapping[str, tuple[str, str]]) -> Any:
        """Read dates."""
        kinds = native.collect_schema()
        return native.with_columns(
            polars_date(column, kinds[column], form).alias(new) for new, (column, form) in columns.items()
        )

    def hashed(self, native: Any, new: str, column: str) -> Any:
        """Hash texts, which polars leaves to us: each different one of a batch once."""
        import polars as pl

        kind = native.collect_schema()[column]
        text = pl.col(column) if kind in (pl.String, pl.Binary) else pl.col(column).cast(pl.String)
        return native.with_columns(text.map_batches(_polars_hashes, pl.Int64, is_elementwise=True).alias(new))

    def keyed(self, native: Any, columns: Mapping[str, ListReading]) -> Any:
        """Read lists."""
        import polars as pl

        functions = PolarsLists(_polars_number)
        return native.with_columns(
            functions.keyed(pl.col(column), reading).alias(column) for column, reading in columns.items()
        )

    def having(self, native: Any, marks: Mapping[str, tuple[str, Key]]) -> Any:
        """Look into lists."""
        import polars as pl

        has = PolarsLists(_polars_number).has
        return native.with_columns(has(pl.col(column), key).alias(new) for new, (column, key) in marks.items())

    def unrolled(self, native: Any, column: str, place: str) -> Any:
        """Unroll a list column."""
        import polars as pl

        filled = native.filter(pl.col(column).list.len() > 0)
        return filled.with_columns(pl.int_ranges(pl.col(column).list.len()).alias(place)).explode(column, place)

    def stacked(self, native: Any, kept: Sequence[str], columns: Sequence[str], name: str) -> Any:
        """Stack columns."""
        return native.unpivot(on=columns, index=kept, value_name=name).select(*kept, name)

    @property
    def frame(self) -> MakeFrame:
        """Make a polars frame."""
        return _as_polars

    @contextlib.contextmanager
    def quiet(self, *cancel: Callable[[], object]) -> Iterator[None]:
        """Keep quiet."""
        with no_warnings(), cancelled(*cancel):
            yield


def _polars_number(text: Any) -> Any:
    import polars as pl

    lower = text.str.to_lowercase()
    spelled = pl.when(text.str.contains(NUMBER)).then(text.str.strip_chars(" ")).cast(pl.Float64, strict=False)
    return pl.when(lower == "true").then(1.0).when(lower == "false").then(0.0).otherwise(spelled)


def _polars_hashes(texts: Any) -> Any:
    import polars as pl

    cells = texts.unique().drop_nulls()
    hashes = [_hash(cell if isinstance(cell, bytes) else cell.encode()) for cell in cells.to_list()]
    return texts.replace_strict(cells, pl.Series(hashes, dtype=pl.Int64), default=None, return_dtype=pl.Int64)


def _hash(cell: bytes) -> int:
    return int(hashlib.sha256(cell).hexdigest()[:13], 16)


def _as_polars(columns: Mapping[str, Sequence[Any]]) -> Any:
    import polars as pl

    return pl.DataFrame(as_arrow(columns))

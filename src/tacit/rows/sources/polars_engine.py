"""Polars frames, eager or lazy, handed to DuckDB as Arrow holds their columns; a plan is worked out batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused
from tacit.rows.cells.readings import DataColumn
from tacit.rows.counts.batches import BATCH, Batch, Piece, joined, plain, shared
from tacit.rows.files.identity import Identities, identities
from tacit.rows.files.planned_files import files_of_plan
from tacit.rows.sources.buffers import Buffers, is_held, plain_cells
from tacit.rows.sources.duckdb_engine import DuckDBEngine
from tacit.rows.sources.engine import NAMES, PERSON, MakeFrame, role_of, schema_of
from tacit.rows.sources.frames import as_arrow

_OLDEST_POLARS: Final = (1, 18)  # not a dependency, so that no installer sees to it
_WIDEST_DECIMAL: Final = 10**38 - 1


class PolarsEngine(Buffers):
    """A polars frame, eager or lazy."""

    def __init__(self, source: Any) -> None:
        import polars as pl

        # what older ones lack would be missed only after the charge
        if tuple(map(int, pl.__version__.split(".")[:2])) < _OLDEST_POLARS:
            oldest = ".".join(map(str, _OLDEST_POLARS))
            raise DataRefused(f"polars must be at least version {oldest}", fix=f"pip install 'polars>={oldest}'.")
        self._scans = isinstance(source, pl.LazyFrame)
        self._frame = pl.DataFrame() if self._scans else source.clone()
        super().__init__("polars", self._frame, ())
        self._lazy = source.lazy()
        self.place = ("polars", self._scans)
        self.keeps = not self._scans  # a plan may read something else next time; a frame does not change
        if self._scans:
            self.rows = None
        self._found: Any = None
        self._files: Identities = {}

    def names(self) -> list[str]:
        return list(self._lazy.collect_schema().names())

    def unchanged(self) -> bool:
        """Look at the columns again, and at the files that a plan may read by position."""
        import polars as pl

        same = self._identities() == self._files
        return same and bool(self._lazy.select(pl.all()).collect_schema() == self._found)

    def _identities(self) -> Identities:
        return identities(files_of_plan(self._lazy)) if self._scans else {}

    def schema(self) -> dict[str, DataColumn]:
        import polars as pl

        self._files = self._identities()
        self._found = self._lazy.collect_schema()
        nothing = {name for name, dtype in self._found.items() if dtype == pl.Null}
        return {name: DataColumn("text") if name in nothing else found for name, found in schema_of(self._lazy).items()}

    def type_of(self, raw: str) -> str:
        return str(self._found[raw])

    def cells(self, name: str, role: str) -> Any:
        return _as_held(self._frame.get_column(name), role)

    def emptied(self) -> PolarsEngine:
        """Make a frame of the same columns: whatever a plan does, none of it is done."""
        import polars as pl

        other = PolarsEngine(pl.DataFrame(schema=self._found))
        other.schema()
        return other

    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        return self.emptied().nothing(columns) if self._scans else super().nothing(columns)

    def _typed(self, columns: Mapping[str, str]) -> pa.Schema:
        return pa.table(self.emptied().cells_of(columns)).schema

    def pieces(self, columns: Mapping[str, str]) -> list[Piece]:
        """Cut a frame into batches; polars works a plan out in some."""
        if not self._scans:
            return super().pieces(columns)
        if not all(map(is_held, self._typed(columns).types)):
            return DuckDBEngine.pieces(self, columns)
        return shared(lambda: self._frames(columns), lambda frame: _batch(frame, columns))

    def relation(self, columns: Mapping[str, str]) -> Any:
        """Hand the columns to DuckDB, those of a plan to be read once."""
        if not self._scans:
            return super().relation(columns)
        types = self._typed(columns) if columns else pa.schema({"one": pa.int8()})
        schema = pa.schema({field.name: plain(pa.array([], field.type)).type for field in types})

        def batches() -> Iterator[pa.RecordBatch]:
            for frame in self._frames(columns):
                found = _batch(frame, columns).columns if columns else {"one": pa.repeat(pa.scalar(1), len(frame))}
                yield pa.record_batch([plain(found[field.name]).cast(field.type) for field in schema], schema=schema)

        return self.connection.from_arrow(pa.RecordBatchReader.from_batches(schema, batches()))

    def _frames(self, columns: Mapping[str, str]) -> Iterator[Any]:
        """Let polars go through a plan bit by bit; older ones cannot."""
        import polars as pl
        from polars import selectors

        # a selector, because pl.col reads a name like ^a.*$ as a pattern
        chosen = [selectors.by_name(raw).as_expr().alias(new) for new, raw in columns.items()]
        plan = self._lazy.select(chosen or pl.int_range(pl.len()).alias("one"))
        if not hasattr(plan, "collect_batches"):
            return iter([plan.collect()])
        return iter(plan.collect_batches(chunk_size=BATCH, maintain_order=True))

    @property
    def frame(self) -> MakeFrame:
        return _as_polars


def _batch(frame: Any, columns: Mapping[str, str]) -> Batch:
    cells = {new: plain_cells(_as_held(frame.get_column(new), role_of(new)), role_of(new)) for new in columns}
    return Batch(len(frame), {new: joined(column) for new, column in cells.items()})


def _as_held(column: Any, role: str) -> Any:
    """Return a column as Arrow holds it; Arrow has no whole numbers of 128 bits."""
    import polars as pl

    if column.dtype in (pl.Int128, getattr(pl, "UInt128", pl.Int128)):
        if role in (PERSON, NAMES):
            return column.cast(pl.String).to_arrow()
        column = column.clip(-_WIDEST_DECIMAL if column.dtype == pl.Int128 else 0, _WIDEST_DECIMAL)
        column = column.cast(pl.Decimal(38, 0))
    return column.to_arrow()


def _as_polars(columns: Mapping[str, Sequence[Any]]) -> Any:
    import polars as pl

    return pl.DataFrame(as_arrow(columns))

"""Ibis tables, as the DuckDB relations that they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.errors import DataRefused
from tacit.rows.guard import closed
from tacit.rows.sources.duckdb_engine import DuckDBEngine
from tacit.rows.sources.engine import (
    Engine,
    MakeFrame,
    unreadable,
)
from tacit.rows.sources.frames import as_arrow


def ibis_engine(source: Any) -> Engine:
    """Return the engine of an Ibis table: the DuckDB that it lives in.

    How other backends compare texts is up to their collations, which Ibis cannot ask for.
    """
    backend = source.get_backend()
    if backend.name != "duckdb":
        raise DataRefused(
            f"an Ibis table must live in DuckDB, and this one lives in {backend.name}, "
            "which may take texts that differ for the same",
            fix="Give table.to_pyarrow(), or open it in its own engine: a polars or Spark frame.",
        )
    return closed(lambda: IbisEngine(source, backend), unreadable())  # Arrow may fail on a cell of a table in memory


class IbisEngine(DuckDBEngine):
    """An Ibis table, as the relation that it stands for."""

    def __init__(self, source: Any, backend: Any) -> None:
        backend._run_pre_execute_hooks(source)  # names the tables in memory
        super().__init__("ibis", backend.con.sql(backend.compile(source)))
        self._source = source  # tables in memory live as long as it does

    def names(self) -> list[str]:
        """Return the names of all columns: DuckDB renames the second of two that differ in case only."""
        return list(self._source.columns)

    @property
    def frame(self) -> MakeFrame:
        """Make an Ibis table in memory."""
        return _as_ibis


def _as_ibis(columns: Mapping[str, Sequence[Any]]) -> Any:
    import ibis

    return ibis.memtable(as_arrow(columns))

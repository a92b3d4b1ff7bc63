"""Which engine a source lives in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import duckdb
import narwhals as nw
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused, InternalError
from tacit.rows.guard import blind, closed
from tacit.rows.sources.buffers import ArrowEngine, PandasEngine
from tacit.rows.sources.duckdb_engine import DuckDBEngine
from tacit.rows.sources.engine import Engine
from tacit.rows.sources.file_engines import files
from tacit.rows.sources.ibis_engines import ibis_engine
from tacit.rows.sources.polars_engine import PolarsEngine
from tacit.rows.sources.spark_engine import SparkEngine

_KINDS: Final = "a path, a pandas, polars, Arrow, DuckDB, Spark or Ibis table, or ItemCounts"


def engine_for(source: Any, *, lists: frozenset[str], declared: frozenset[str]) -> Engine:
    """Return the engine that a source lives in.

    `lists` names the columns that may hold sets of items, `declared` all columns that the domain speaks of.
    """
    # whatever an object does when it is asked what it is, it may quote what it holds
    opened = closed(
        lambda: _engine_for(source, lists, declared),
        InternalError("asking rows what they are", paid=False),
        {Exception: DataRefused(f"rows must be {_KINDS}")},
    )
    return blind(opened, "opening rows")


def _engine_for(source: Any, lists: frozenset[str], declared: frozenset[str]) -> Callable[[], Engine]:
    """Return what makes the engine: only a class that is none of these is asked for here, and that is said."""
    if isinstance(source, str | Path) or (isinstance(source, list | tuple) and source):
        listed = source if isinstance(source, list | tuple) else [source]
        if not all(isinstance(path, str | Path) for path in listed):
            raise DataRefused(f"rows must be {_KINDS}", fix="A list may hold paths only.")
        paths = [str(path) for path in listed]
        return lambda: files(paths, declared)
    source = nw.to_native(source, pass_through=True)  # a narwhals frame stands for what it wraps
    module, name = type(source).__module__.split(".")[0], type(source).__name__
    if isinstance(source, pd.DataFrame):
        return lambda: PandasEngine(source, lists)
    if isinstance(source, pa.Table):
        return lambda: ArrowEngine(source)
    if isinstance(source, duckdb.DuckDBPyRelation):
        return lambda: DuckDBEngine("duckdb", source)
    if module == "polars" and name in ("DataFrame", "LazyFrame"):
        return lambda: PolarsEngine(source)
    if module == "pyspark" and name == "DataFrame" and hasattr(source, "sparkSession"):
        return lambda: SparkEngine(source)
    if module == "ibis" and hasattr(source, "to_pyarrow") and hasattr(source, "schema"):
        return lambda: ibis_engine(source)
    raise DataRefused(f"rows must be {_KINDS}", fix=f"A {module} {name} is none of them.")

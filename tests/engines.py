"""One Arrow table in every kind of source: what tests of several engines go through.

A test that needs a source of its own adds it: `{**ENGINES, "duckdb table": stored}`. A folder may get many files.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import ibis
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.policy.attributes import Attribute
from tacit.rows.cells.kinds import code_of
from tacit.rows.cells.readings import DataColumn
from tacit.rows.sources.source import engine_for

Source = Callable[[pa.Table, Path], Any]
SPARK = pytest.param("spark", marks=pytest.mark.spark)


def new_file(folder: Path, kind: str) -> Path:
    """Return the path of a file that is not there yet."""
    return folder / f"{len(list(folder.iterdir()))}.{kind}"


def as_parquet(table: pa.Table, folder: Path, **options: Any) -> Path:
    """Return a Parquet file with row groups of seven rows, unless another size is given."""
    path = new_file(folder, "parquet")
    pq.write_table(table, path, **{"row_group_size": 7, **options})
    return path


def as_csv(table: pa.Table, folder: Path) -> Path:
    """Return a CSV file, in which every cell is a text."""
    path = new_file(folder, "csv")
    table.to_pandas(types_mapper=pd.ArrowDtype).to_csv(path, index=False)
    return path


ENGINES: dict[str, Source] = {
    "pandas": lambda table, _: table.to_pandas(),
    "pandas-arrow": lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table, _: pl.DataFrame(table),
    "polars-lazy": lambda table, _: pl.DataFrame(table).lazy(),
    "pyarrow": lambda table, _: table,
    "duckdb": lambda table, _: duckdb.connect().from_arrow(table),
    "ibis": lambda table, _: ibis.memtable(table),
    "csv": as_csv,
    "parquet": as_parquet,
}


def stored_table(table: pa.Table, _: Path) -> Any:
    """A table that DuckDB holds itself; the relation keeps its connection."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'America/New_York'")
    connection.register("given", table)
    connection.execute("CREATE TABLE moments AS SELECT * FROM given")
    return connection.table("moments")


def in_engine(
    engine: str, table: pa.Table, folder: Path, request: pytest.FixtureRequest, engines: dict[str, Source] = ENGINES
) -> Any:
    """Return a table in one of the engines, or in Spark: in one partition, whose rows keep their order."""
    if engine == "spark":
        return request.getfixturevalue("spark").createDataFrame(table).coalesce(1)
    return engines[engine](table, folder)


def by_the_engine(frame: Any, attribute: Attribute) -> list[int | None]:
    """Return the positions that the engine itself computes, where no batches are counted."""
    engine = engine_for(frame, lists=frozenset(), declared=frozenset({"d"}))
    read: DataColumn = replace(engine.schema()["d"], raw="d", name="c0")
    code = code_of(attribute, (read,))
    native = nw.from_native(engine.select({"i": "i", "c0": "d"})).lazy()
    (key,), valid = code.keys, code.valid
    chosen = (key if valid is None else nw.when(valid).then(key)).alias("key")
    with engine.quiet():
        chosen = engine.dialect.with_readings(native, code.numbers).select(nw.col("i").cast(nw.Int64), chosen)
        found = chosen.collect(backend="pyarrow").to_arrow().sort_by("i")
    return [None if place < 0 else int(place) for place in code.decode([found.column("key")])]

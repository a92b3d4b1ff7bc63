"""One Arrow table in every kind of source: what tests of several engines go through.

A test that needs a source of its own adds it: `{**ENGINES, "duckdb table": stored}`. A folder may get many files.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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


def in_engine(
    engine: str, table: pa.Table, folder: Path, request: pytest.FixtureRequest, engines: dict[str, Source] = ENGINES
) -> Any:
    """Return a table in one of the engines, or in Spark: in one partition, whose rows keep their order."""
    if engine == "spark":
        return request.getfixturevalue("spark").createDataFrame(table).coalesce(1)
    return engines[engine](table, folder)

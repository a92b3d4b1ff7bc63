"""The borders to the engines: the few things that narwhals does not say for all of them, one module for each engine.

An engine selects columns under plain names (so that dots, quotes and spaces in the data's own names never matter
again), reads texts as numbers without ever failing on one, reads and unrolls lists, says whether its columns are still
those that were found, and makes a frame of the user's own kind. Everything else is narwhals. No engine numbers rows:
rows have no place, so that nothing can be put together by it.

In reading order:

    engine         what every engine says in its own way, and what they share
    choice         which engine a source lives in
    duckdb_engine  relations of the user, and the embedded DuckDB that reads files and buffers
    arrow_cells    cells as Arrow holds them
    buffers        pandas frames and Arrow tables, which DuckDB counts in place
    file_engines   Parquet and CSV files
    polars_engine  polars frames, eager or lazy
    spark_engine   Spark frames
    ibis_engines   Ibis tables in DuckDB
"""

from tacit.rows.sources.engines.choice import engine_for
from tacit.rows.sources.engines.duckdb_engine import DuckDBEngine, duckdb_readings, embedded, read_numbers
from tacit.rows.sources.engines.engine import NAMES, PERSON, Engine, MakeFrame, unreadable, with_readings
from tacit.rows.sources.engines.file_engines import files

__all__ = [
    "NAMES",
    "PERSON",
    "DuckDBEngine",
    "Engine",
    "MakeFrame",
    "duckdb_readings",
    "embedded",
    "engine_for",
    "files",
    "read_numbers",
    "unreadable",
    "with_readings",
]

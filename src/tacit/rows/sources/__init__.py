"""Any frame, table or file as a source of rows with named columns: one module for each kind of source.

A source selects columns under plain names (so that dots, quotes and spaces in the data's own names never matter
again), says whether its columns are still those that were found, and makes a frame of the user's own kind. Its dialect
(`rows/cells/readings.py`) reads texts as numbers without ever failing on one, and unrolls lists. Everything else is
narwhals. No source numbers rows: rows have no place, so that nothing can be put together by it.

A new kind of source is a module here, a line in `source` and an extra of the package.

In reading order:

    frames         columns that may be shown, as frames and Parquet files
    spark_log      Spark's log, off while rows are read
    engine         what every source says in its own way, and what they share
    duckdb_engine  what cells mean in SQL, relations of the user, Ibis tables, and the embedded DuckDB
    buffers        pandas frames and Arrow tables, which DuckDB counts in place
    file_engines   Parquet and CSV files
    polars_engine  polars frames, eager or lazy, handed to DuckDB in batches
    spark_engine   Spark frames
    source         a source as it is opened: its engine, which column is what, how rows are selected and read
    spark_lists    how lists of items are read in Spark: each row by itself
"""

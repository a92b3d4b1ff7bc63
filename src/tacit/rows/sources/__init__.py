"""Any frame, table or file as a source of rows with named columns.

In reading order:

    asked_tables   what a tally asks for, or the refusal of what is no table
    frames         columns that may be shown, as frames and Parquet files
    spark_log      Spark's log, off while rows are read
    engines        the few things that each engine needs said in its own way
    named_columns  columns by name, and where a missing one may be
    opened         a source as it was opened: which column is what, and how rows are selected and read
    opening        what a source must have, by its schema alone
"""

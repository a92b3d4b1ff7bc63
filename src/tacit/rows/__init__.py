"""People's rows: any frame or file goes in, counts per cell of the domain come out.

Frames and files are opened by the engines here alone. Two modules of other folders look at the cells of what was
opened, and a test keeps it at these two: `release/row_check.py`, for the holder of the rows, and `monitor/events.py`.

In reading order:

    rows           the only door: tallies go in, counts and sums come out
    asked_tables   what a tally asks for, or the refusal of what is no table
    item_counts    rows of which only the counts per item exist
    opening        what a source must have, by its schema alone
    named_columns  columns by name, and where a missing one may be
    opened         a source as it was opened: which column is what, and how rows are selected and read
    rehearsal      counting no rows of the same types, before any charge
    engines        the few things that each engine needs said in its own way
    kinds          how the cells of each kind of attribute are read: one line for a kind
    encode         from a raw cell to a position of the domain, the same on every engine
    integer_cells  how whole numbers are read: flags, integers, and what has positions in steps
    grid_cells     the same for the cells of a map
    listed_cells   the same for categories
    decimal_cells  the same for decimals
    date_cells     the same for dates
    date_texts     the UTC day that a cell is, found by the engine
    unexpected     which cells are unexpected, and in what way
    row_keys       keys by which rows of a person are chosen, as at random
    first_rows     which rows of a person count
    chosen_rows    the same, for batches of sorted rows
    counting       what one pass must count so that every tally can be made of it
    one_pass       everything that a job counts, in one pass over batches of rows
    engine_tables  tables that the engine itself counts
    lines          the lines that an engine counts: what both ways to make them share
    row_lines      where every row is a person
    people_lines   where rows have owners
    records        the positions of every row, for what shows records
    row_names      what names a row, in one spelling
    positions      the positions of a batch: each distinct cell is looked at once
    batches        columns of a source in batches, and threads that work on them
    item_lists     lists of items, each row by itself
    object_cells   cells that are Python objects
    frames         columns that may be shown, as frames and Parquet files
    shown_files    rows that may be shown and do not fit into memory
    key_numbers    keys of which none may be there twice
    guard          what leaves when work on rows fails or is interrupted
    spill          the folder for what does not fit into memory
    spark_log      Spark's log, off while rows are read
    file_identity  whether a file is still the one that was opened
    planned_files  which files a lazy plan reads
    file_contents  whether files hold what they held before
    file_kinds     what a file of rows must be
    file_columns   which files there are, and the names of their columns
    headers        whether a first line holds names or values
    groups         rows counted by their cells, without a domain, for their holder
    one_of_each    one row of each set of rows, picked by a fair coin
    sample         a random sample of a table, for drafts
    draft          a first draft of a policy from a sample
"""

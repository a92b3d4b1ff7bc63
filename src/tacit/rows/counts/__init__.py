"""Counts of rows and of people, for every tally that a job asks for.

In reading order:

    batches        columns of a source in batches, and threads that work on them
    counting       what tallies ask for, and what one pass must count so that all of them can be made of it
    row_choice     which rows of a person count
    chosen_rows    the same, for batches of sorted rows
    one_pass       everything that a job counts, in one pass over batches of rows
    lines          the lines that Spark counts, one for each row or for each row of a person
    engine_tables  tables that Spark counts
    dry_run        counting no rows of the same types, before any charge
    records        the positions of every row, for what shows records
    item_counts    rows of which only the counts per item exist
    groups         rows counted by their cells, without a domain, for their holder
"""

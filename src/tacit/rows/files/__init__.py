"""Files of rows: their kinds, columns, identity and contents.

In reading order:

    written        how texts are written: decimal commas, forms of dates, encodings
    headers        whether a first line holds names or values
    identity       whether files are still those that were opened, and hold what they held before
    table_files    what a file of rows must be, which files there are, and the names of their columns
    planned_files  which files a lazy plan reads
    copied_tables  tables of workbooks and databases, copied into CSV files
    sample         a random sample of a table, for drafts
    shown_files    rows that may be shown, and numbers of keys, that do not fit into memory
"""

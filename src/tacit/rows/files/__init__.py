"""Files of rows: their kinds, columns, identity and contents.

In reading order:

    headers        whether a first line holds names or values
    identity       whether a file is still the one that was opened
    kinds          what a file of rows must be
    columns        which files there are, and the names of their columns
    contents       whether files hold what they held before
    planned_files  which files a lazy plan reads
    sample         a random sample of a table, for drafts
    shown_files    rows that may be shown and do not fit into memory
"""

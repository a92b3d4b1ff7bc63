"""Checks and true counts for the curator alone, who holds the rows.

In reading order:

    key_check       whether a key names every row once
    private_counts  true counts for audits, for the curator
    warning         whom true counts are for
    row_check       which cells of the rows do not fit the domain
"""

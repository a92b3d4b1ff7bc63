"""The database of a ledger: entries in a chain, rows under one seal, one transaction at a time.

In reading order:

    page          one transaction: the head row, entries, running sums, and rows under one seal
    book          opens one page after the other, seals it, and takes over ledgers of an older Tacit
    verification  a whole ledger looked at
    summed        what charges rest on, summed up entry by entry
    chain         entries are hashed one after the other, so that an edit is noticed
    row_seals     one seal over all rows that are no entries
    database      opened, checked, locked
    schema        its tables
    address       where a ledger may be
    faults        what a database says when it cannot go on, as one sentence each
"""

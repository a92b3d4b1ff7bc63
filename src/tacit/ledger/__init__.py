"""Who may still spend what: the budget of each data set, in one file or database that several processes share.

In reading order:

    ledger        grants, charges and reservations, each in one transaction
    book          opens one page after the other, seals it, and takes over ledgers of an older Tacit
    page          one transaction: the head row, entries, running sums, and rows under one seal
    accounts      what a ledger gives out: accounts, receipts, runs
    statement     what all charges promise together
    rules         what a charge must keep, refused before anything is written
    coins         the secrets of coins that are remembered, and what was paid for them
    contents      what files held when coins were made for their rows
    applications  what applications were shown, and which release would tell too much
    leakage_book  the limits that hold, and what releases have shown
    table_book    which tables were published, and which other would undo what they promise
    verification  a whole ledger looked at
    summed        what charges rest on, summed up entry by entry
    coin_seals    names, marks and seals of coins, lines and files
    row_seals     one seal over all rows that are no entries
    chain         entries are hashed one after the other, so that an edit is noticed
    store         the database: opened, checked, locked
    tables        its tables
    address       where a ledger may be
    input         what may be written into it
    names         one spelling for each account
    faults        what a database says when it cannot go on, as one sentence each
"""

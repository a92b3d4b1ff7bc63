"""Who may still spend what: the budget of each data set, in one file or database that several processes share.

In reading order:

    ledger        grants, charges and reservations, each in one transaction
    payment       charges that are made together, and the rules that they must keep
    clauses       what else a charge must keep: limits on what applications learn, and tables
    coins         secrets of coins that are remembered, what was paid for them, and what files held
    applications  what applications were shown, and which release would tell too much
    accounts      what a ledger hands out: accounts, receipts, runs, statements
    input         what may be written into a ledger, and one spelling for each name
    page          one transaction: the head row, entries, running sums, and rows under one seal
    summed        what charges rest on, summed up entry by entry
    verification  a whole ledger looked at
    chain         entries are hashed one after the other, and all other rows sealed, so that an edit is noticed
    database      opened, checked, locked; its errors as one sentence each
    schema        its tables
    address       where a ledger may be
"""

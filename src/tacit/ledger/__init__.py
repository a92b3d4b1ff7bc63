"""Who may still spend what: the budget of each data set, in one file or database that several processes share.

In reading order:

    ledger        grants, charges and reservations, each in one transaction
    payment       charges that are made together, and the rules that they must keep
    clauses       what else a charge must keep: limits on what applications learn, and tables
    coins         secrets of coins that are remembered, what was paid for them, and what files held
    applications  what applications were shown, and which release would tell too much
    accounts      accounts, receipts, runs and statements; sums of entries that a charge depends on
    input         where a ledger may be, exact epsilons, names, notes, policies and keys
    page          one transaction: the head row, entries, sums, and rows under one seal
    verification  a whole ledger examined
    chain         tables; hashes that chain entries and seal all other rows, so that an edit is noticed
    database      opened, checked, locked; its errors as one sentence each
"""

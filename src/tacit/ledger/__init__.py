"""Who may still spend what: the budget of each data set, in one file or database that several processes share.

In reading order:

    ledger     grants, charges and reservations, each in one transaction
    payment    charges that are made together, and the clauses that they must keep
    accounts   what a ledger gives out: accounts, receipts, runs
    statement  what all charges promise together
    rules      what a charge must keep, refused before anything is written
    clauses    what else a charge must keep: coins, contents, limits and tables
    store      the database: entries, seals and transactions
    input      what may be written into a ledger
    names      one spelling for each account
"""

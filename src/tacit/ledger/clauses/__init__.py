"""What a charge must keep beside budgets: coins that are remembered, and what records and tables may show.

In reading order:

    clause        the contract: prepared outside of the lock, checked and noted in the transaction
    coins         the secrets of coins that are remembered, and what was paid for them
    contents      what files held when coins were made for their rows
    coin_seals    names, marks and seals of coins, lines and files
    leakage       the limits that hold, and what releases have shown
    applications  what applications were shown, and which release would tell too much
    tables        which tables were published, and which other would undo what they promise
"""

"""Exact audits: the worst loss of a mechanism whose output distribution can be written down.

In reading order:

    loss             what it finds
    worlds           records, edges and neighbouring data sets, from the definitions
    possible_worlds  what somebody learns who knows what the policy declares, or more
    selections       the loss of selections among a few counts
    exact_audit      the exact audit
"""

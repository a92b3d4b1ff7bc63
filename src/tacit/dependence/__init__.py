"""How attributes depend on each other, and what an observer learns from those that are released or suppressed.

A dependence is public, as a policy is. Nothing here opens rows. A planner asks how much a release would tell; an audit
asks how much one told.

In reading order:

    factor       tables with most cells zero, in logarithms, and exact inference on them
    given        tables, frames and networks, as people write them
    unrolled     networks over days and people, from the tables of one day of one person
    dependence   a joint distribution of attributes
    suppression  what an observer of released and suppressed attributes believes, on average and at worst
    nearby       the same between two numbers, where there are too many outcomes
"""

"""How attributes depend on each other, and what somebody learns who sees some of them released and others not.

A dependence is public, as a policy is. Nothing here opens rows; a planner asks how much a release would tell, an audit
how much one did tell.

In reading order:

    factor          tables with most cells zero, in logarithms
    elimination     exact inference on them
    given_tables    tables and frames, as people give them
    given_networks  networks, as people give them
    dependence      a joint distribution of attributes
    suppression     what somebody believes who sees some attributes released and others not
    information     every outcome that somebody could see: what they tell on average, and at worst
"""

"""The geometry of secret edges: which records they connect, directly and in chains.

In reading order:

    intervals  sets of positions on one axis
    relations  how a position may change: not at all, from one set to another, within reach, within a block
    shapes     the sets of edges that families of secrets are made of, and the records that they lead to
    chains     the shortest chain of edges between two records
"""

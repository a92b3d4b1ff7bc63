"""The geometry of secret edges: which records they connect, in boxes and in chains.

In reading order:

    intervals  sets of positions on one axis
    classes    positions that no predicate tells apart
    relations  the shapes that secret edges have
    boxes      which records edges lead to
    chains     the shortest chain of edges between two records
"""

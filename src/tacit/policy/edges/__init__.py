"""The geometry of secret edges: which records they connect, in boxes and in chains.

In reading order:

    intervals  sets of positions on one axis
    classes    positions that no predicate tells apart
    relation   every behaviour of a relation, which says how a position may change
    same       not at all
    from_to    from one set to another
    blocks     within a block
    near       within reach
    shapes     the sets of edges that families of secrets are made of
    boxes      which records edges lead to
    chains     the shortest chain of edges between two records
"""

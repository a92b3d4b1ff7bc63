"""How far one person can move an answer along a secret edge.

In reading order:

    responses             how answers move with one record
    cells                 counts of people in cells, and how they move
    coupling              the same under public knowledge
    steps                 how far they move along secret edges
    exact_totals          what no secret edge changes, and which cells only rise or only fall
    fact_cost             what it costs that something is known
    moves                 how far people move on lines and grids, and which regions hold an exact number of them
    parallel_composition  groups whose costs do not add up
"""

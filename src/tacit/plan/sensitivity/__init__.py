"""How far one person can move an answer along a secret edge.

In reading order:

    responses             how answers move with one record
    cells                 counts of people in cells, and how they move
    weighted_sums         sums of one number times another, and how they move
    coupling              the same under public knowledge
    steps                 how far they move along secret edges
    directions            which answers can rise, which can fall
    exact_totals          what no secret edge changes
    fact_cost             what it costs that something is known
    grid_moves            how far people move, and which regions hold an exact number of them
    line_moves            how people move on a line
    parallel_composition  groups whose costs do not add up
"""

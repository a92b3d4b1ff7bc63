"""How far one person can move an answer along a secret edge.

In reading order:

    responses             how answers move with one record; counts of people in cells
    steps                 how far they move along secret edges
    listed                the same for a list of predicates, all together
    known_cells           how many people move together where counts are known
    coupling              the same under public knowledge that couples people
    moves                 what no secret edge changes, and how far people move on lines and grids
    fact_cost             what it costs that something is known
    parallel_composition  groups whose costs do not add up
"""

"""What releases say about protected attributes, as functions of the release probabilities.

In reading order:

    measured_tables  joint tables, by value or as sensitive or not
    convex_terms     what single releases say, convex in the release probability
    joint_terms      what several releases say together, and a convex function that is never less
    posterior_terms  how sure any outcome could make a coalition
"""

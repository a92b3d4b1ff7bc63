"""Plans: one module for each kind.

In reading order:

    counted_tables   tables of counts: the noise of each cell, and exact sums
    grid_plan        the plan of a question about rectangles
    kmeans           k-means on released numbers
    plan             what every plan has
    linear           plans of linear questions
    derived          plans of questions that are made of several parts
    selection_noise  the least noise that hides a choice
    selection_plan   what such plans share
    thresholds       `below` and `above`
    top_k            `top_k`
    visible_records  which records may be shown as they are
    records          plans that show records
    weighted_tables  several tables, each with its own noise
    zoom             which of these cells are cut, after a look
"""

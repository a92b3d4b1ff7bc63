"""Plans: one module for each kind.

In reading order:

    grid_plan        the plan of a question about rectangles
    kmeans           k-means on released numbers
    reading          what to know about how cells are read
    plan             what every plan has
    linear           plans of linear questions, and the best of them
    derived          plans of questions that are made of several parts
    selection_plan   what plans of choices share, and the least noise that hides a choice
    thresholds       `below` and `above`
    top_k            `top_k`
    rank_plan        one quantile, chosen by its rank
    visible_records  which records may be shown as they are
    records          plans that show records
    weighted_tables  several tables, each with its own noise
    zoom             look at cells, then count those anew where people are
"""

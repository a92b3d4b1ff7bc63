"""Charts: one module for each kind of answer.

In reading order:

    chart_parts       the parts of charts, and the registries of questions
    asking_graph      who asks for what, what depends on what, and who colludes
    cluster_charts    centres among cells
    disclosure_chart  what is disclosed, and how wrong counts are, against epsilon
    linear_charts     counts, tables, lines and sums
    derived_charts    means and quantiles
    record_charts     records as they are
    release_charts    one chart for every kind of question
    leakage_charts    what applications could learn from what is left out
    points            where places are on a map
    monitor_chart     verdicts over time, and a map of places
    selection_charts  verdicts, and what was chosen
"""

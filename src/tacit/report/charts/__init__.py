"""Charts: what the parts are, and how each kind of answer is drawn.

In reading order:

    chart_parts       the parts of charts, and the registries of questions
    line_charts       along an axis: time, numbers, an order of names
    histogram_charts  tables of numbers: bars, heat maps, maps, panels
    question_charts   counts, sums, lines, rectangles, means, quantiles, true records, verdicts, what was chosen
    cluster_charts    centres among cells
    release_charts    one chart for every kind of question
    audit_charts      what applications could learn, and what noisy counts disclose
    monitor_charts    what monitors have published: a table, charts and files
"""

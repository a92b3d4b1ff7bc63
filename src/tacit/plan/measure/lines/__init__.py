"""Ways to measure a line: which sums, with which noise, and what follows from them.

In reading order:

    layout         which sums are measured, and how far one person moves them
    block_trees    what least squares knows about a tree of measured cells
    run_errors     the error of any run of values, before anything is measured
    least_squares  from noisy sums to running counts
    line_sums      measured sums with their noise
    weights        how to share out the loss among groups of sums
    search         which sizes of cells and blocks are best
    scheme         sums with the rates of their noise at epsilon 1
    trees          cells within cells
    ordered        the published strategies, repaired
    ramps          block averages of running counts, and cells
    candidates     all of them, for people who move so and a workload
    joint          one noise for all running counts: its block and its rates
"""

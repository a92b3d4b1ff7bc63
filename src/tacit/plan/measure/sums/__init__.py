"""Sums of neighbouring cells on a grid or a line: what is measured, with which noise, and what follows from it.

A line is a grid with one row.

In reading order:

    regions     least squares on one region, and the variance of any rectangle
    prediction  the mean variance of the rectangles that are asked for, for any noise
    rates       how to share out epsilon among groups of sums
    strategy    what is measured, as data: groups of sums, their changes, their noise
    workload    which rectangles are asked for, and their mean variance
    search      the best strategy for a workload
    grid_sums   the measured sums of a grid as a linear question
    line_sums   those of a line, from which running counts follow
"""

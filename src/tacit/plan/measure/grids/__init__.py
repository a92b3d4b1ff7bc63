"""Counts of rectangles on a grid: what is measured, with which noise, and what follows from it.

In reading order:

    squares   least squares on one region, and the variance of any rectangle
    strategy  what is measured, as data: groups of sums, their changes, their noise
    workload  which rectangles are asked for, and their mean variance
    search    the best strategy for a workload
    sums      the measured sums as a linear question
"""

"""What noise is added to: tables, sums on lines and grids, and soft cells.

In reading order:

    measured         the contract of what is counted, and of a way to answer
    regions          what is measured on a grid or a line, and least squares on one region
    workload         which rectangles are asked for, and their mean variance for any noise
    grid_search      the best strategy for a workload, and how it shares out epsilon
    sums             the measured sums of a grid or a line, from which counts follow
    line_strategies  every way to measure a line that is worth trying
    soft_cells       people shared out between the cells of a coarse grid
    cluster_grids    which of these grids is best for clusters
"""

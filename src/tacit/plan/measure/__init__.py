"""What noise is added to: tables, sums on lines and grids, and soft cells.

In reading order:

    measured         the contract of what is counted
    block_sums       sums of noisy cells with exact totals
    cell_weights     from noisy counts of cells to weights
    strategy         a way to answer
    tally            what rows are counted for
    sums             sums of neighbouring cells on a grid or a line
    joint_line       one noise for all running counts: its block and its rates
    line_strategies  every way to measure a line that is worth trying
    soft_cells       people shared out between the cells of a coarse grid
    cluster_grids    which of these grids, for clusters
"""

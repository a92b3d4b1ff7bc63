"""People's rows: any frame or file goes in, counts per cell of the domain come out.

Frames and files are opened by the engines here alone. Two modules of other folders look at the cells of what was
opened, and a test keeps it at these two: `release/curator/row_check.py`, for the holder of the rows, and
`monitor/events/`.

In reading order:

    guard    what leaves when work on rows fails or is interrupted
    spill    the folder for what does not fit into memory
    rows     the only door: tallies go in, counts and sums come out
    cells    from a raw cell to a position
    counts   counts of rows and people
    files    files of rows: kinds, columns, identity
    sources  any frame or file as a source of named columns
"""

"""From a raw cell to a position of the domain, the same on every engine.

In reading order:

    readings        from a raw cell to a position of the domain, and what each engine must say in its own expressions
    number_cells    how numbers are read: flags, integers, decimals, the cells of a map, and dates
    category_cells  how categories are read
    kinds           how each kind of attribute is read, and which cells are unexpected: one line for a kind
    encoder         the positions of a batch: each distinct cell is looked at once
    object_cells    cells that are Python objects
    row_names       what names a row, in one spelling
"""

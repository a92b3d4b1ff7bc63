"""From a raw cell to a position of the domain, the same on every engine.

In reading order:

    date_texts      the UTC day that a cell is, found by the engine
    key_numbers     keys of which none may be there twice
    readings        from a raw cell to a position of the domain, the same on every engine
    category_cells  the same for categories
    encoder         the positions of a batch: each distinct cell is looked at once
    integer_cells   how whole numbers are read: flags, integers, and what has positions in steps
    grid_cells      the same for the cells of a map
    item_lists      how lists of items are read: each row by itself
    dialect         what an engine's own expressions must say of cells
    object_cells    cells that are Python objects
    row_names       what names a row, in one spelling
    unexpected      which cells are unexpected, and in what way
    date_cells      the same for dates
    decimal_cells   the same for decimals
    kinds           how the cells of each kind of attribute are read: one line for a kind
"""

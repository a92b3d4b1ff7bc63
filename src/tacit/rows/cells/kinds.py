"""How the cells of each kind of attribute are read: one line for a kind.

What a kind means without rows is in `policy/attributes/`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tacit.policy.attributes import Attribute, Categories, Dates, Decimals, Flag, Grid, Integers, Items
from tacit.rows.cells import category_cells, date_cells, decimal_cells, grid_cells, integer_cells, unexpected
from tacit.rows.cells.readings import Code, DataColumn, check_cells
from tacit.rows.cells.unexpected import Unexpected


class CellReading(NamedTuple):
    """How a kind is read from its columns, and which of their cells are unexpected."""

    code: Callable[[Any, tuple[DataColumn, ...]], Code]
    unexpected: Callable[[Any, tuple[DataColumn, ...]], Unexpected]


def _item_code(attribute: Items, columns: tuple[DataColumn, ...]) -> Code:
    """Return how one item of a set is read; unknown items have no position and are ignored."""
    check_cells(columns[0], dates=True)
    return code_of(attribute.item_attribute, columns)


def _unknown_items(attribute: Items, columns: tuple[DataColumn, ...]) -> Unexpected:
    return unexpected_of(attribute.item_attribute, columns)


CELLS: Final[dict[type[Attribute], CellReading]] = {
    Integers: CellReading(integer_cells.integers_code, unexpected.integers_unexpected),
    Decimals: CellReading(decimal_cells.decimals_code, decimal_cells.decimals_unexpected),
    Dates: CellReading(date_cells.dates_code, date_cells.dates_unexpected),
    Categories: CellReading(category_cells.categories_code, unexpected.categories_unexpected),
    Flag: CellReading(integer_cells.flag_code, unexpected.flag_unexpected),
    Grid: CellReading(grid_cells.grid_code, unexpected.grid_unexpected),
    Items: CellReading(_item_code, _unknown_items),
}


def code_of(attribute: Attribute, columns: tuple[DataColumn, ...]) -> Code:
    """Return how an attribute is read from its columns (two for a grid), or refuse by the schema alone."""
    return CELLS[type(attribute)].code(attribute, columns)


def unexpected_of(attribute: Attribute, columns: tuple[DataColumn, ...]) -> Unexpected:
    """Yield the tests of each kind of unexpected cell; no cell passes two of them."""
    return CELLS[type(attribute)].unexpected(attribute, columns)

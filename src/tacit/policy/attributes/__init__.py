"""The kinds of attributes: each a class that holds everything about it that needs no rows.

In reading order:

    attribute   every behaviour of a kind
    numbers     whole numbers of a range, and numbers on a lattice such as tenths
    dates       days, weeks, months, quarters or years
    categories  a value out of a list, and yes or no
    grid        a cell of a map
    items       a set of items
"""

from __future__ import annotations

from typing import Final

from tacit.policy.attributes.attribute import Attribute
from tacit.policy.attributes.categories import Categories, Flag
from tacit.policy.attributes.dates import Dates
from tacit.policy.attributes.grid import Grid
from tacit.policy.attributes.items import Items
from tacit.policy.attributes.numbers import Decimals, Integers

KINDS: Final[dict[str, type[Attribute]]] = {
    one.kind: one
    for one in (
        Integers,
        Decimals,
        Dates,
        Categories,
        Flag,
        Grid,
        Items,
    )
}

__all__ = ["KINDS", "Attribute", "Categories", "Dates", "Decimals", "Flag", "Grid", "Integers", "Items"]

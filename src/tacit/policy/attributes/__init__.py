"""The kinds of attributes: each a module that holds everything about it that needs no rows.

In reading order:

    attribute   every behaviour of a kind
    integers    whole numbers of a range
    decimals    numbers on a lattice such as tenths
    dates       days, weeks, months, quarters or years
    categories  a value out of a list
    flag        yes or no
    grid        a cell of a map
    items       a set of items
"""

from __future__ import annotations

from typing import Final

from tacit.policy.attributes.attribute import Attribute
from tacit.policy.attributes.categories import Categories
from tacit.policy.attributes.dates import Dates
from tacit.policy.attributes.decimals import Decimals
from tacit.policy.attributes.flag import Flag
from tacit.policy.attributes.grid import Grid
from tacit.policy.attributes.integers import Integers
from tacit.policy.attributes.items import Items

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

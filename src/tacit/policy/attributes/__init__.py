"""The kinds of attributes: each a class that holds everything about it that needs no rows.

In reading order:

    attribute       every behaviour of a kind
    plain_values    whole numbers of a range, a value out of a list, and yes and no
    decimals        numbers on a lattice such as tenths
    dates           periods that are counted, and dates by day, week, month, quarter or year
    times           times by hours, minutes or other equal steps
    several_axes    a cell of a map, and a set of items
"""

from __future__ import annotations

from typing import Final

from tacit.policy.attributes.attribute import Attribute
from tacit.policy.attributes.dates import Dates
from tacit.policy.attributes.decimals import Decimals
from tacit.policy.attributes.plain_values import Categories, Flag, Integers
from tacit.policy.attributes.several_axes import Grid, Items
from tacit.policy.attributes.times import Times

KINDS: Final[dict[str, type[Attribute]]] = {
    one.kind: one for one in (Integers, Decimals, Dates, Times, Categories, Flag, Grid, Items)
}

__all__ = ["KINDS", "Attribute", "Categories", "Dates", "Decimals", "Flag", "Grid", "Integers", "Items", "Times"]

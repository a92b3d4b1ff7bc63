"""Lists of items, each row by itself: which items a list holds is worked out inside the row, in one scan.

Where nobody is named as the owner, a row with its list is a person. Its items could be found by unrolling the lists
and putting the pieces together again; that would need a number for each row, and engines number rows as it suits them:
a second scan in another order would give one person another one's items. The list functions of an engine need none.

A list becomes the list of its **keys**, each once: what `rows/cells/readings.py` would tell apart in its elements.
Numbers are their own keys, texts too, but where an item is a number a text stands for the number that it spells, in one
and the same spelling. With `at_most` only the keys of known items stay, in the order in which they first occur, and the
first so many of them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from tacit.policy.attributes import Attribute, Categories
from tacit.rows.cells.category_cells import Meanings, meanings_of
from tacit.rows.cells.readings import DataColumn, spelling

Key: TypeAlias = str | float | bool
Keys: TypeAlias = Literal["cells", "texts", "numbers", "both"]


@dataclass(frozen=True)
class ListReading:
    """How a list column is read as a set of items.

    `keys` says what the elements become: the cells as they are (numbers, truths), texts, the numbers that texts spell
    (where items are numbered), or both (a text, or one and the same spelling of an item's number). `meanings` says
    which items they are; `span` holds the first and the last item where items are numbered. Cells with `fractions` may
    be no whole numbers.
    """

    keys: Keys
    meanings: Meanings
    span: tuple[int, int] | None
    fractions: bool
    truths: bool
    at_most: int | None

    @property
    def element(self) -> DataColumn | None:
        """How the keys are read, where they are not read like the elements."""
        return (
            DataColumn("real")
            if self.keys == "numbers"
            else DataColumn("text")
            if self.keys in ("texts", "both")
            else None
        )

    def key(self, place: int) -> Key | None:
        """Return the key of an item, or None where no cell of such a column can mean it."""
        if self.span is not None:
            return self._number_key(self.span[0] + place)
        for text, found in self.meanings.texts.items():
            if found == place:
                return text
        for number, found in self.meanings.numbers.items():
            if found == place:
                return self.spelled[number] if self.keys == "both" else self._number_key(number)
        return None

    @property
    def spelled(self) -> dict[float, str]:
        """The one spelling of each item that is a number, among texts; it is no text of an item."""
        return {number: self._spelling(number) for number in self.meanings.numbers}

    def _spelling(self, number: float) -> str:
        shortest = spelling(number)
        if math.isinf(number):
            sign, word = shortest[:-3], "infinity"
            tried = (sign + word[:place].upper() + word[place:] for place in range(len(word)))
        else:
            start = shortest if "." in shortest else f"{shortest}."
            tried = (start + "0" * zeros for zeros in itertools.count())
        return next(text for text in tried if text not in self.meanings.texts)

    def _number_key(self, number: float) -> Key | None:
        if self.truths:
            return bool(number) if number in (0, 1) else None
        return float(number) if self.fractions else number


def list_reading(attribute: Attribute, element: DataColumn) -> ListReading:
    """Return how the lists of a column with such elements are read."""
    numbers = attribute.item_numbers
    by_text = element.reading in ("text", "date") or element.parsed
    fractions = element.reading == "real" or by_text
    truths = element.reading == "truth"
    if numbers is not None:
        keys: Keys = "numbers" if by_text else "cells"
        ends = numbers.start, numbers.stop - 1
        return ListReading(keys, Meanings(), ends, fractions, truths, attribute.at_most)
    meanings = meanings_of(cast("Categories", attribute.item_attribute), element)  # no numbers, so names
    keys = "cells" if not by_text else "both" if meanings.numbers or meanings.folded else "texts"
    return ListReading(keys, meanings, None, fractions, truths, attribute.at_most)

"""Lists of items in Spark, each row by itself: which items a list holds is worked out inside the row, in one scan.

Where nobody is named as the owner, a row with its list is a person. Its items could be found by unrolling the lists
and putting the pieces together again; that would need a number for each row, and Spark numbers rows as it suits it: a
second scan in another order would give one person another one's items. Functions of lists need none.

A list becomes the list of its **keys**, each once: what `rows/cells/readings.py` would tell apart in its elements.
Numbers are their own keys, texts too, but where an item is a number a text stands for the number that it spells, in one
and the same spelling. With `at_most` only the keys of known items stay, in the order in which they first occur, and the
first so many of them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from tacit.policy.attributes import Attribute, Categories
from tacit.rows.cells.category_cells import Meanings, meanings_of
from tacit.rows.cells.readings import NOT_PLAIN, DataColumn, spelling
from tacit.rows.sources.spark_engine import SPARK

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


# ---- in Spark's own expressions --------------------------------------------------------------------------------------


def keyed(cells: Any, reading: ListReading) -> Any:
    """Return the keys of lists, each once; at most `at_most` known ones."""
    from pyspark.sql import functions as f

    if reading.keys != "cells":
        cells = cells.cast("array<string>")
    if reading.keys == "numbers":
        cells = f.transform(cells, lambda cell: SPARK.number(cell))
    elif reading.keys == "both":
        cells = f.transform(cells, lambda cell: _either(cell, reading))
    if reading.at_most is None:
        return f.array_distinct(cells)
    known = f.array_distinct(f.filter(cells, lambda key: _known(key, reading)))
    return f.slice(known, 1, reading.at_most)


def has(cells: Any, key: Key) -> Any:
    """Say whether lists hold a key; a missing list does not."""
    from pyspark.sql import functions as f

    return f.coalesce(f.array_contains(cells, f.lit(key)), f.lit(False))


def _either(text: Any, reading: ListReading) -> Any:
    """Return the key of a text that may be an item itself, or spell one.

    As `rows/cells/readings.py` has it: a text that is an item goes first, then a truth in other letters, then what
    spells an item's number (plainly, where the item is a text itself).
    """
    from pyspark.sql import functions as f

    meanings, number = reading.meanings, SPARK.number(text)
    found = f.when(_among(text, list(meanings.texts)), text)
    for said, others in meanings.folded.items():
        found = found.when(_among(text, others), f.lit(said))
    plainly = ~text.rlike(NOT_PLAIN)
    for value, key in sorted(reading.spelled.items(), key=lambda one: one[0] in meanings.plain):
        meant = f.coalesce(number == value, f.lit(False))
        found = found.when(meant & plainly if value in meanings.plain else meant, f.lit(key))
    return found.otherwise(text)


def _known(key: Any, reading: ListReading) -> Any:
    from pyspark.sql import functions as f

    if reading.span is not None:
        number = key.cast("int") if reading.truths else key
        inside = (number >= reading.span[0]) & (number <= reading.span[1])
        if reading.fractions:
            inside = inside & (f.floor(f.when(inside, number)) == number)
        return f.coalesce(inside, f.lit(False))
    if reading.keys in ("texts", "both"):
        return _among(key, [*reading.meanings.texts, *reading.spelled.values()])
    numbers = reading.meanings.numbers
    return _among(key, [bool(value) for value in numbers] if reading.truths else list(numbers))


def _among(element: Any, values: list[Any]) -> Any:
    from pyspark.sql import functions as f

    return f.coalesce(element.isin(values), f.lit(False)) if values else f.lit(False)

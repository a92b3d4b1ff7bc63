"""Lists of items, each row by itself: which items a list holds is worked out inside the row, in one scan.

Where nobody is named as the owner, a row with its list is a person. Its items could be found by unrolling the lists
and putting the pieces together again; that would need a number for each row, and engines number rows as it suits them:
a second scan in another order would give one person another one's items. The list functions of an engine need none.

A list becomes the list of its **keys**, each once: what `rows/cells/readings.py` would tell apart in its elements.
Numbers
are their own keys, texts too, but where an item is a number a text stands for the number that it spells, in one and the
same spelling. With `at_most` only the keys of known items stay, in the order in which they first occur, and the first
so many of them.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from tacit.policy.attributes import Attribute, Categories
from tacit.rows.cells.category_cells import Meanings, meanings_of
from tacit.rows.cells.readings import NOT_PLAIN, DataColumn, spelling

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
    meanings = meanings_of(cast("Categories", attribute.each), element)  # no numbers, so names
    keys = "cells" if not by_text else "both" if meanings.numbers or meanings.folded else "texts"
    return ListReading(keys, meanings, None, fractions, truths, attribute.at_most)


class ListFunctions(ABC):
    """What the list functions of an engine must say; expressions are the engine's own.

    The order of work is the same everywhere: keys, known ones (only if there is a bound), each once, the first so many.
    """

    def keyed(self, column: Any, reading: ListReading) -> Any:
        """Return the keys of a list, each once; at most `at_most` known ones."""
        cells = self.of_texts(column) if reading.keys != "cells" else column
        match reading.keys:
            case "numbers":
                cells = self.mapped(cells, self.number)
            case "both":
                cells = self.mapped(cells, lambda cell: self._either(cell, reading))
            case _:
                pass
        if reading.at_most is None:
            return self.once(cells)
        return self.first(self.kept(cells, lambda key: self._known(key, reading)), reading.at_most)

    def _either(self, text: Any, reading: ListReading) -> Any:
        # as `rows/cells/readings.py` has it: a text that is an item goes first, then a truth in other letters, then
        # what
        # spells an item's number (plainly, where the item is a text itself)
        meanings, spelled = reading.meanings, reading.spelled
        cases = [(self.among(text, list(meanings.texts)), text)]
        cases += [(self.among(text, others), self.constant(said)) for said, others in meanings.folded.items()]
        anyhow = {number: key for number, key in spelled.items() if number not in meanings.plain}
        plain = {number: key for number, key in spelled.items() if number in meanings.plain}
        number = self.number(text)
        if anyhow:
            cases.append((self.among(number, list(anyhow)), self.looked_up(number, anyhow)))
        if plain:
            is_plain = self.both(self.among(number, list(plain)), self.is_plain(text))
            cases.append((is_plain, self.looked_up(number, plain)))
        return self.chosen(cases, text)

    def _known(self, key: Any, reading: ListReading) -> Any:
        if reading.span is not None:
            return self.between(key, *reading.span, fractions=reading.fractions, truths=reading.truths)
        texts, numbers = reading.meanings.texts, reading.meanings.numbers
        if reading.keys in ("texts", "both"):
            return self.among(key, [*texts, *reading.spelled.values()])
        return self.among(key, [bool(value) for value in numbers] if reading.truths else list(numbers))

    number: Callable[[Any], Any]

    @abstractmethod
    def of_texts(self, column: Any) -> Any:
        """Return a list column as lists of texts."""

    @abstractmethod
    def mapped(self, column: Any, made: Callable[[Any], Any]) -> Any:
        """Return what is made of each element."""

    @abstractmethod
    def kept(self, column: Any, condition: Callable[[Any], Any]) -> Any:
        """Return the elements for which a condition holds, each once, in the order in which they first occur."""

    @abstractmethod
    def once(self, column: Any) -> Any:
        """Return the elements, each once, in any order."""

    @abstractmethod
    def first(self, column: Any, many: int) -> Any:
        """Return the first elements."""

    @abstractmethod
    def among(self, element: Any, values: list[Any]) -> Any:
        """Say whether an element is one of the values."""

    @abstractmethod
    def between(self, element: Any, low: int, high: int, *, fractions: bool, truths: bool) -> Any:
        """Say whether an element is a whole number of a range."""

    @abstractmethod
    def chosen(self, cases: list[tuple[Any, Any]], otherwise: Any) -> Any:
        """Return what stands beside the first condition that holds."""

    @abstractmethod
    def looked_up(self, number: Any, table: dict[float, str]) -> Any:
        """Return the text that a table has for a number of the table."""

    @abstractmethod
    def constant(self, text: str) -> Any:
        """Return a text that is the same on every row."""

    @abstractmethod
    def is_plain(self, text: Any) -> Any:
        """Say whether a text that has a number reading plainly spells it."""

    def both(self, one: Any, other: Any) -> Any:
        """Say whether two conditions hold."""
        return one & other

    @abstractmethod
    def has(self, column: Any, key: Key) -> Any:
        """Say whether a list holds a key; a missing list does not."""


class DuckDBLists(ListFunctions):
    """Expressions are SQL texts."""

    def __init__(self, number: Callable[[str], str]) -> None:
        self.number = number

    def of_texts(self, column: str) -> str:
        """Cast."""
        return f"CAST({column} AS VARCHAR[])"

    def mapped(self, column: str, made: Callable[[Any], Any]) -> str:
        """Return a list comprehension."""
        return f"[{made('x')} for x in {column}]"

    def kept(self, column: str, condition: Callable[[Any], Any]) -> str:
        """Return a list comprehension; an element counts where it occurs first."""
        return f"[x for x, i in {column} if {condition('x')} AND list_position({column}, x) = i]"

    def once(self, column: str) -> str:
        """Return the distinct elements."""
        return f"list_distinct({column})"

    def first(self, column: str, many: int) -> str:
        """Slice."""
        return f"list_slice({column}, 1, {many})"

    def among(self, element: str, values: list[Any]) -> str:
        """Return IN; of texts sign by sign, whatever the collation of the connection."""
        if values and isinstance(values[0], str):
            element = f"({element} COLLATE C)"
        return f"coalesce({element} IN ({', '.join(map(_sql, values))}), false)" if values else "false"

    def between(self, element: str, low: int, high: int, *, fractions: bool, truths: bool) -> str:
        """Compare."""
        number = f"CAST({element} AS INTEGER)" if truths else element
        inside = f"{number} >= {low} AND {number} <= {high}"
        # of a number that is no number and of infinity nothing is below the upper end
        return (
            f"coalesce({inside} AND floor({number}) = {number}, false)" if fractions else f"coalesce({inside}, false)"
        )

    def chosen(self, cases: list[tuple[Any, Any]], otherwise: str) -> str:
        """Return CASE."""
        return f"CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in cases)} ELSE {otherwise} END"

    def looked_up(self, number: str, table: dict[float, str]) -> str:
        """Return CASE, which looks at the number once."""
        return f"CASE {number} {' '.join(f'WHEN {_sql(value)} THEN {_sql(key)}' for value, key in table.items())} END"

    def constant(self, text: str) -> str:
        """Quote."""
        return _sql(text)

    def is_plain(self, text: str) -> str:
        """Match."""
        return f"NOT regexp_matches({text}, {_sql(NOT_PLAIN)})"

    def both(self, one: str, other: str) -> str:
        """Return AND."""
        return f"({one} AND {other})"

    def has(self, column: str, key: Key) -> str:
        """Return list_contains."""
        return f"coalesce(list_contains({column}, {_sql(key)}), false)"


def _sql(value: Key) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if math.isfinite(value) else f"'{value}'::DOUBLE"


class PolarsLists(ListFunctions):
    """Expressions of polars."""

    def __init__(self, number: Callable[[Any], Any]) -> None:
        self.number = number

    def of_texts(self, column: Any) -> Any:
        """Cast."""
        import polars as pl

        return column.cast(pl.List(pl.String))

    def mapped(self, column: Any, made: Callable[[Any], Any]) -> Any:
        """Evaluate in each list."""
        import polars as pl

        return column.list.eval(made(pl.element()))

    def kept(self, column: Any, condition: Callable[[Any], Any]) -> Any:
        """Filter each list."""
        import polars as pl

        return column.list.eval(pl.element().filter(condition(pl.element()))).list.unique(maintain_order=True)

    def once(self, column: Any) -> Any:
        """Return the distinct elements."""
        return column.list.unique()

    def first(self, column: Any, many: int) -> Any:
        """Return the head."""
        return column.list.head(many)

    def among(self, element: Any, values: list[Any]) -> Any:
        """Return is_in; decimals are compared as the floats that they are read as."""
        import polars as pl

        if values and isinstance(values[0], float):
            element = element.cast(pl.Float64)
        return element.is_in(values).fill_null(value=False) if values else pl.lit(value=False)

    def between(self, element: Any, low: int, high: int, *, fractions: bool, truths: bool) -> Any:
        """Compare."""
        import polars as pl

        number = element.cast(pl.Int8) if truths else element
        inside = (number >= low) & (number <= high)
        return ((inside & (number.floor() == number)) if fractions else inside).fill_null(value=False)

    def chosen(self, cases: list[tuple[Any, Any]], otherwise: Any) -> Any:
        """Return when, then."""
        import polars as pl

        found = otherwise
        for when, then in reversed(cases):
            found = pl.when(when).then(then).otherwise(found)
        return found

    def looked_up(self, number: Any, table: dict[float, str]) -> Any:
        """Replace."""
        import polars as pl

        return number.replace_strict(table, default=None, return_dtype=pl.String)

    def constant(self, text: str) -> Any:
        """Return a literal."""
        import polars as pl

        return pl.lit(text)

    def is_plain(self, text: Any) -> Any:
        """Match."""
        return ~text.str.contains(NOT_PLAIN)

    def has(self, column: Any, key: Key) -> Any:
        """Compare each element; `contains` would insist on the very type of the elements."""
        import polars as pl

        return column.list.eval(pl.element() == key).list.any().fill_null(value=False)


class SparkLists(ListFunctions):
    """Columns of Spark."""

    def __init__(self, number: Callable[[Any], Any]) -> None:
        self.number = number

    def of_texts(self, column: Any) -> Any:
        """Cast."""
        return column.cast("array<string>")

    def mapped(self, column: Any, made: Callable[[Any], Any]) -> Any:
        """Transform."""
        from pyspark.sql import functions

        return functions.transform(column, lambda element: made(element))

    def kept(self, column: Any, condition: Callable[[Any], Any]) -> Any:
        """Filter."""
        from pyspark.sql import functions

        return functions.array_distinct(functions.filter(column, lambda element: condition(element)))

    def once(self, column: Any) -> Any:
        """Return the distinct elements."""
        from pyspark.sql import functions

        return functions.array_distinct(column)

    def first(self, column: Any, many: int) -> Any:
        """Slice."""
        from pyspark.sql import functions

        return functions.slice(column, 1, many)

    def among(self, element: Any, values: list[Any]) -> Any:
        """Return isin."""
        from pyspark.sql import functions

        return functions.coalesce(element.isin(values), functions.lit(False)) if values else functions.lit(False)

    def between(self, element: Any, low: int, high: int, *, fractions: bool, truths: bool) -> Any:
        """Compare."""
        from pyspark.sql import functions

        number = element.cast("int") if truths else element
        inside = (number >= low) & (number <= high)
        if fractions:
            inside = inside & (functions.floor(functions.when(inside, number)) == number)
        return functions.coalesce(inside, functions.lit(False))

    def chosen(self, cases: list[tuple[Any, Any]], otherwise: Any) -> Any:
        """Return when."""
        from pyspark.sql import functions

        ((when, then), *others) = cases
        found = functions.when(when, then)
        for when, then in others:
            found = found.when(when, then)
        return found.otherwise(otherwise)

    def looked_up(self, number: Any, table: dict[float, str]) -> Any:
        """Return when."""
        from pyspark.sql import functions

        cases = [(number == value, functions.lit(key)) for value, key in table.items()]
        return self.chosen(cases, functions.lit(None).cast("string"))

    def constant(self, text: str) -> Any:
        """Return a literal."""
        from pyspark.sql import functions

        return functions.lit(text)

    def is_plain(self, text: Any) -> Any:
        """Match."""
        return ~text.rlike(NOT_PLAIN)

    def has(self, column: Any, key: Key) -> Any:
        """Return array_contains, which is missing where a list holds a missing element."""
        from pyspark.sql import functions

        return functions.coalesce(functions.array_contains(column, functions.lit(key)), functions.lit(False))

"""What an engine's own expressions must say of cells, so that narwhals can do everything else.

Narwhals has no word for a number that a text spells, for a UTC day, for a hash or for the items of a list. Each engine
says these in its own expressions; what is asked, and in which order, is the same for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw

from tacit.rows.cells.item_lists import Key, ListReading
from tacit.rows.cells.readings import ComputedColumn, DataColumn, Helper


class Dialect(ABC):
    """How an engine reads cells. Frames are narwhals' lazy ones; a `native` is the engine's own, as expressions are."""

    def with_readings(self, frame: Any, helpers: Iterable[Helper]) -> Any:
        """Add the helper columns: numbers that texts spell, dates, and what is computed from them."""
        wanted = list(helpers)
        columns = [helper for helper in wanted if isinstance(helper, DataColumn)]
        frame = self.with_numbers(frame, {column.number: column.name for column in columns if not column.as_date})
        dates = {column.number: (column.name, column.as_date) for column in columns if column.as_date}
        kinds = self.kinds(nw.to_native(frame)) if dates else {}
        frame = self._with(frame, {new: self.date(name, kinds[name], form) for new, (name, form) in dates.items()})
        for helper in wanted:
            if isinstance(helper, ComputedColumn):  # one after the other: each may look at those before it
                frame = frame.with_columns(helper.expression.alias(helper.number))
        return frame

    def with_numbers(self, frame: Any, columns: Mapping[str, str]) -> Any:
        """Add the number reading of text columns (new name -> column): whatever spells no number becomes missing."""
        return self._with(frame, {new: self.number(self.text(column)) for new, column in columns.items()})

    def with_hash(self, frame: Any, new: str, column: str) -> Any:
        """Add 52 bits of the SHA-256 of a column's text, as a whole number; missing where the cell is."""
        return self._with(frame, {new: self.hashed(column, self.kinds(nw.to_native(frame))[column])})

    def with_item_keys(self, frame: Any, columns: Mapping[str, ListReading]) -> Any:
        """Replace list columns by the keys of their items, each once; see `rows/cells/item_lists.py`."""
        return self._with(frame, {name: self._keyed(self.column(name), reading) for name, reading in columns.items()})

    def with_marks(self, frame: Any, marks: Mapping[str, tuple[str, Key]]) -> Any:
        """Add true/false columns (new name -> list column and key) that say whether a list holds a key."""
        return self._with(frame, {new: self.has(self.column(column), key) for new, (column, key) in marks.items()})

    def unrolled(self, frame: Any, column: str, place: str) -> Any:
        """Return one row per element of a list column, with the element's place in its list."""
        return nw.from_native(self.native_unrolled(nw.to_native(frame), column, place)).lazy()

    def stacked(self, frame: Any, kept: Sequence[str], columns: Sequence[str], name: str) -> Any:
        """Return a line for each row and column: the cell under a new name, and the kept columns of its row."""
        return frame.unpivot(list(columns), index=list(kept), value_name=name).select(*kept, name)

    def _with(self, frame: Any, expressions: Mapping[str, Any]) -> Any:
        return nw.from_native(self.added(nw.to_native(frame), expressions)).lazy() if expressions else frame

    def _keyed(self, column: Any, reading: ListReading) -> Any:
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
        # what spells an item's number (plainly, where the item is a text itself)
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

    # ------------------------------------------------------------------ what each engine says

    @abstractmethod
    def column(self, name: str) -> Any:
        """Return the expression of a column."""

    @abstractmethod
    def kinds(self, native: Any) -> Mapping[str, Any]:
        """Return the type of each column, as the engine knows it."""

    @abstractmethod
    def added(self, native: Any, expressions: Mapping[str, Any]) -> Any:
        """Add columns to a frame, or replace those of the same name."""

    @abstractmethod
    def text(self, name: str) -> Any:
        """Return a column as texts."""

    @abstractmethod
    def number(self, text: Any) -> Any:
        """Return the number that a text spells, missing where it spells none."""

    @abstractmethod
    def date(self, name: str, kind: Any, precision: str) -> Any:
        """Return the UTC date of a column of this type; see `rows/cells/dates.py`."""

    @abstractmethod
    def hashed(self, name: str, kind: Any) -> Any:
        """Return the first 13 hexadecimal digits of the SHA-256 of a column's text, as a whole number."""

    @abstractmethod
    def native_unrolled(self, native: Any, column: str, place: str) -> Any:
        """Return one row per element of a list column, with the element's place in its list."""

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

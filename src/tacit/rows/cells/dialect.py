"""What an engine's own expressions must say of cells, so that narwhals can do everything else.

Narwhals has no word for a number that a text spells, for a UTC day, for a hash or for the items of a list. Each engine
says these in its own expressions; what is asked, and in which order, is the same for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import narwhals as nw

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

    def unrolled(self, frame: Any, column: str, place: str) -> Any:
        """Return one row per element of a list column, with the element's place in its list."""
        return nw.from_native(self.native_unrolled(nw.to_native(frame), column, place)).lazy()

    def _with(self, frame: Any, expressions: Mapping[str, Any]) -> Any:
        return nw.from_native(self.added(nw.to_native(frame), expressions)).lazy() if expressions else frame

    # ------------------------------------------------------------------ what each engine says

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

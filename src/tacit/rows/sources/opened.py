"""A source as it was opened: which column is what, how each attribute is read from it, and how rows are selected.

Guarantee   Whatever is read from the engine is read here. Rows without an owner are dropped: those where the person
            column is missing or NaN. Once reading has begun, every failure is one fixed sentence without cause or
            context.
Assumes     A source has the same rows each time it is read. That columns and files are still those that were found is
            looked at before anything is charged, and before and after each reading.
Why         Columns are selected under plain names, so that a name of the data never meets an expression of ours. No row
            has a number: lines are put together by the person column and by nothing else.
Checked by  tests/contract/test_rows_engines.py, tests/contract/test_rows_changed.py,
            tests/unit/rows/test_rows_canary.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import narwhals as nw
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused, Unread
from tacit.policy.domain import Domain
from tacit.rows.cells.item_lists import ListReading
from tacit.rows.cells.readings import Code, DataColumn, Helper
from tacit.rows.counts.row_choice import Order, WordLayout
from tacit.rows.guard import blind, closed
from tacit.rows.sources.engine import PERSON, Engine, unreadable

_CHANGED: Final = "the rows must stay as they were when they were opened"
_CHANGED_FIX: Final = "Open a new session, and let nobody write the file or change the table while it lives."


@dataclass(frozen=True, eq=False, repr=False)
class Opened:
    """An engine, and what its columns are: of attributes, of sets of items, whose row it is, which rows come first.

    `codes` say how attributes are read that have one position a row. Of a set of items, `items` is the column and
    `item_codes` says how one item is read; where the column has lists, `lists` says how these are read, and the keys
    that an engine makes of them. `moved` are the attributes that some secret edge changes (None: any of them may be
    secret); they are laid out last.
    """

    engine: Engine
    domain: Domain
    codes: Mapping[str, Code]
    items: Mapping[str, DataColumn]
    item_codes: Mapping[str, Code]
    lists: Mapping[str, tuple[ListReading, Code]]
    person: DataColumn | None
    per_person: int
    order: Order | None
    moved: frozenset[str] | None
    layout: WordLayout = field(init=False)
    axes: Mapping[str, tuple[str, str]] = field(init=False)  # name of an axis -> its attribute, and which part it is

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", WordLayout(self.domain, self.codes, self.moved))
        axes = {axis.name: (name, axis.part) for name in self.domain for axis in self.domain.axes_of(name)}
        object.__setattr__(self, "axes", axes)

    def over(
        self, engine: Engine, codes: Mapping[str, Code], items: Mapping[str, DataColumn], *, owned: bool
    ) -> Opened:
        """Return the same in another engine, with some of the attributes and, if `owned`, with owners."""
        person, order = (self.person, self.order) if owned else (None, None)
        return replace(self, engine=engine, codes=dict(codes), items=dict(items), person=person, order=order)

    # ------------------------------------------------------------------ how it is read

    def check(self) -> None:
        """Refuse rows whose columns are no longer those that were found; looks at no row."""

        def looked_at() -> bool:
            with self.engine.quiet():
                # a plan of the user's may fail on a cell where it is made: even the statistics of a file hold some
                return closed(self.engine.unchanged, Unread("the columns of the rows could not be looked at again"))

        if not blind(looked_at, "looking whether the rows have changed", paid=True):
            raise DataRefused(_CHANGED, fix=_CHANGED_FIX)

    def read(self, build: Callable[[], Any]) -> pa.Table:
        """Let the engine work out a frame, and return what comes of it."""

        def collected() -> pa.Table:
            self.check()
            with self.engine.quiet():
                table = build().collect(backend="pyarrow").to_arrow()
            self.check()  # else columns may have moved while they were read
            return table

        return closed(collected, unreadable())

    def parts(self, build: Callable[[], Any]) -> Iterator[pa.Table]:
        """Read some rows at a time."""
        with self.engine.quiet():
            parts = self.engine.parts(nw.to_native(build()))
            while (table := closed(lambda: next(parts, None), unreadable())) is not None:
                yield table

    # ------------------------------------------------------------------ what a frame begins with

    def select(self, columns: Iterable[DataColumn], more: Mapping[str, str] | None = None) -> Any:
        """Select columns, and whose row it is ("u"); rows of nobody are left out."""
        wanted = {column.name: column.raw for column in columns} | dict(more or {})
        if self.person is not None:
            wanted[PERSON] = self.person.raw
        frame = nw.from_native(self.engine.select(wanted)).lazy()
        if self.person is None:
            return frame
        frame = frame.filter(~nw.col("u").is_null())
        if self.person.reading == "real":
            frame = frame.filter(~nw.col("u").cast(nw.Float64).is_nan())
        return frame

    def with_numbers(self, frame: Any, columns: Iterable[Helper]) -> Any:
        """Add the helper columns: numbers that texts spell, and dates."""
        return self.engine.dialect.with_readings(frame, columns)

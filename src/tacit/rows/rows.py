"""The only door to people's rows: any frame or file goes in, counts per cell of the declared domain come out.

Guarantee   Only counts and totals leave the engine (and, for what shows records as they are, positions of single rows:
            `rows/counts/records.py`), each row counted at the position that `rows/cells/readings.py` gives it
            on every engine. An answer is a sum over people of something that depends on that person's rows alone, as a
            bag: shuffling rows changes nothing, and one person changes an answer by what one person can add. Once
            reading has begun, every failure is one fixed sentence without cause or context.
Assumes     A source has the same rows each time it is read (`rows/sources/source.py` looks whether it may not).
Why         A row is in the data iff every attribute of the domain has a position for it, whatever is asked: all
            queries see the same people. `rows/counts/row_choice.py` defines which of a person's rows count; after that,
            a person counts once in each cell, and every kept row in a total and in a count of rows. All tables are
            counted in one pass over batches of rows (`rows/counts/one_pass.py`); Spark, whose rows are elsewhere,
            groups them itself (`rows/counts/engine_tables.py`).
Checked by  tests/property/test_rows_people.py, tests/contract/test_rows_engines.py,
            tests/contract/test_rows_changed.py, tests/contract/test_one_pass.py, tests/unit/rows/test_rows.py,
            tests/unit/rows/test_rows_canary.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy.typing as npt

from tacit.errors import DataRefused, InternalError, sealed
from tacit.plan.measure.measured import CellCounts, CellSums, ItemHolders, OfNumbers, Tally
from tacit.policy.domain import Domain
from tacit.policy.where import Test
from tacit.rows.counts.counting import JOINT, CountedTallies, asked_of, in_units, tally_of_numbers, where_of
from tacit.rows.counts.dry_run import counter_of, rehearse
from tacit.rows.counts.item_counts import CountedItems, Counts, ItemCounts
from tacit.rows.counts.records import Work, asked_records, worked_on
from tacit.rows.guard import closed
from tacit.rows.sources.engine import MakeFrame, unreadable
from tacit.rows.sources.source import NamedColumns, Opened, opened_source


class Rows(Protocol):
    """Rows that can be counted. `kind` says where they live."""

    kind: str

    def check(self, tally: Tally) -> None:
        """Refuse, without opening a row, what these rows can never answer."""

    def tally(self, tallies: Sequence[Tally]) -> list[npt.NDArray[Any]]:
        """Return what every tally asks for: one array each."""

    def check_naming(self, key: Sequence[str]) -> None:
        """Refuse, without opening a row, attributes and columns that cannot name rows."""

    def records(self, names: Sequence[str], key: Sequence[str], work: Work) -> Iterator[Any]:
        """Yield what work returns for the positions of each batch of rows; see `rows/counts/records.py`."""

    @property
    def frame(self) -> MakeFrame:
        """What makes a frame of the user's own kind out of columns that may be shown; it knows no row."""


@sealed
def open_rows(
    source: Any,
    domain: Domain,
    *,
    person: str | None = None,
    per_person: int = 1,
    order: str | None = None,
    item: str | None = None,
    moved: frozenset[str] | None = None,
) -> Rows:
    """Check a source against a domain, by its schema alone, and return rows that are ready to be counted.

    Args:
        source: a path to CSV or Parquet files (or a pattern, or a list of paths), a pandas, polars, Arrow, DuckDB,
            Spark or Ibis table, or `ItemCounts`.
        domain: the declared attributes; each must be a column of the source.
        person: the column that says whose row it is. Without it every row is a person.
        per_person: how many of the rows of one person that fit the domain count.
        order: the column that says which rows of a person come first; without it they are chosen as at random.
        item: the column that holds the items of the domain's set, if it is not called like the attribute.
        moved: the attributes that some secret edge of the policy changes; None: any of them may be secret.
    """
    for key, name in (("person", person), ("order", order), ("item", item)):
        if name is not None and not isinstance(name, str):
            raise DataRefused(f"{key} must be the name of a column", fix="Give its name as a text.")
    if isinstance(source, ItemCounts):
        return CountedItems(source, domain)
    if isinstance(per_person, bool) or not isinstance(per_person, int) or per_person < 1:
        raise DataRefused("per_person must be a whole number from 1", fix="Leave it out for one row per person.")
    found, columns = opened_source(
        source, domain, person=person, per_person=per_person, order=order, item=item, moved=moved
    )
    return _EngineRows(found, columns)


class _EngineRows:
    """Rows in an engine."""

    def __init__(self, found: Opened, columns: NamedColumns) -> None:
        self._opened, self._columns, self._domain = found, columns, found.domain
        self.kind = found.engine.kind
        self._counter = counter_of(found)
        rehearse(found, self._counter)

    def __repr__(self) -> str:
        return f"Rows({self.kind})"

    def check(self, tally: Tally) -> None:
        """Refuse rows whose columns are no longer those that were found; they can answer whatever can be asked."""
        self._opened.check()

    def tally(self, tallies: Sequence[Tally]) -> list[npt.NDArray[Any]]:
        """Return what every tally asks for, all of them in one pass where batches are counted here."""
        found = self._tallied([(tally, where_of(tally, self._domain)) for tally in tallies])

        def made() -> list[npt.NDArray[Any]]:
            pairs = zip(tallies, found, strict=True)
            return [tally_of_numbers(one, table) if isinstance(one, OfNumbers) else table for one, table in pairs]

        return closed(made, InternalError("counting rows"))

    def counts(self, names: tuple[str, ...], where: Test | None = None, *, rows: bool = False) -> Counts:
        """Count the people, or the rows, in each cell of these attributes; with no name, all of them (a 0-d array)."""
        (found,) = self._tallied([(CellCounts(names, rows=rows), where)])
        return found

    def item_counts(self, name: str, where: Test | None = None) -> Counts:
        """Count for each item of a set the people who have it."""
        (found,) = self._tallied([(ItemHolders(name), where)])
        return found

    def total(self, name: str, where: Test | None = None) -> int:
        """Add up a whole-number attribute over the people."""
        (found,) = self._tallied([(CellSums(name), where)])
        return int(found[()])

    def _tallied(self, asked: Sequence[tuple[Tally, Test | None]]) -> list[npt.NDArray[Any]]:
        compiled = [asked_of(tally, where, self._domain) for tally, where in asked]
        # over few rows a large joint table costs more than it saves
        rows = self._opened.engine.rows
        most = JOINT if rows is None else min(JOINT, max(rows // 4, 2**10))
        plan = CountedTallies(compiled, self._domain, one_row_each=self._opened.per_person == 1, most=most)

        def read() -> list[npt.NDArray[Any]]:
            self._opened.check()
            tables = self._counter.counted(plan.needs)
            self._opened.check()  # else columns may have moved while they were read
            return tables

        found = closed(read, unreadable()) if asked else []
        tables = closed(lambda: plan.tallies(found), InternalError("counting rows"))
        return [in_units(table, one, self._domain) for table, one in zip(tables, compiled, strict=True)]

    def check_naming(self, key: Sequence[str]) -> None:
        """Refuse columns that are not there, or hold no names; and rows whose columns are no longer those found."""
        self._opened.check()
        asked_records(self._opened, self._columns, (), key)

    def records(self, names: Sequence[str], key: Sequence[str], work: Work) -> Iterator[Any]:
        """Yield what work returns for the positions of each batch of rows, whoever owns them."""
        self._opened.check()
        yield from worked_on(self._opened, asked_records(self._opened, self._columns, names, key), work)
        self._opened.check()  # else columns may have moved while they were read

    @property
    def frame(self) -> MakeFrame:
        """What makes a frame of the user's own kind out of columns that may be shown."""
        return self._opened.engine.frame

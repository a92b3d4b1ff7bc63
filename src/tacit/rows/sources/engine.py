"""What every engine says in its own way, and what they share."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import duckdb
import narwhals as nw
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import Unread
from tacit.rows.cells.item_lists import Key, ListReading
from tacit.rows.cells.readings import ComputedColumn, DataColumn, Helper, column_of
from tacit.rows.counts.batches import Piece
from tacit.rows.guard import cancelled_by_interrupt

PERSON: Final = "u"  # the name under which the column that says whose row it is gets selected
ORDER: Final = "o"  # and the one that says which rows come first
EVENTS: Final = ("t", "e")  # and, of events, when they were and which
NAMES: Final = "name_"  # what the names of columns begin with that name rows
KINDS: Final = "a path, a pandas, polars, Arrow, DuckDB, Spark or Ibis table, or ItemCounts"


MakeFrame = Callable[[Mapping[str, Sequence[Any]]], Any]


class Engine(Protocol):
    """What rows need of the place where they are. A `native` is a lazy frame of the engine."""

    kind: str

    def schema(self) -> dict[str, DataColumn]:
        """Return how each column is read; looks at no row."""

    def names(self) -> list[str]:
        """Return the names of all columns, as often as they are there; looks at no row."""

    def unchanged(self) -> bool:
        """Say whether the source still has the columns that were found when it was opened; looks at no row."""

    def try_column(self, raw: str) -> None:
        """Read a column once if one of its cells may be what the engine fails on, so that it fails before a charge."""

    def select(self, columns: Mapping[str, str]) -> Any:
        """Return the raw columns (new name -> raw name)."""

    def numbers(self, native: Any, columns: Mapping[str, str]) -> Any:
        """Add the number reading of text columns (new name -> column)."""

    def dates(self, native: Any, columns: Mapping[str, tuple[str, str]]) -> Any:
        """Add the UTC dates of columns (new name -> column, precision); see `rows/cells/date_cells.py`."""

    def hashed(self, native: Any, new: str, column: str) -> Any:
        """Add 52 bits of the SHA-256 of a column's text, as a whole number; missing where the cell is."""

    def keyed(self, native: Any, columns: Mapping[str, ListReading]) -> Any:
        """Replace list columns by the keys of their items, each once; see `rows/cells/item_lists.py`."""

    def having(self, native: Any, marks: Mapping[str, tuple[str, Key]]) -> Any:
        """Add true/false columns (new name -> list column and key) that say whether a list holds a key."""

    def unrolled(self, native: Any, column: str, place: str) -> Any:
        """Return one row per element of a list column, with the element's place in its list."""

    def stacked(self, native: Any, kept: Sequence[str], columns: Sequence[str], name: str) -> Any:
        """Return a line for each row and column: the cell under a new name, and the kept columns of its row."""

    @property
    def frame(self) -> MakeFrame:
        """What makes a frame of the user's kind; it knows nothing of the rows, since records keep it."""

    def pieces(self, columns: Mapping[str, str]) -> list[Piece] | None:
        """Return the raw columns (new name -> raw name) as batches; None if the engine counts better by itself."""

    def parts(self, native: Any) -> Iterator[pa.Table]:
        """Read a frame of the engine, some rows at a time."""

    place: Any  # what decides, beside the types of columns, what can be counted; None if that cannot be said

    def emptied(self) -> Engine:
        """Return the engine with the same columns and no row."""

    def legible(self) -> Engine:
        """Return an engine to which texts that are no UTF-8 are missing, where this one fails on them; else itself."""

    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        """Return no rows of the raw columns (new name -> raw name), in the types that `pieces` gives them."""

    def rehearse(self, native: Any) -> None:
        """Do with a frame over no rows what fails if its types cannot be counted; on Spark no job runs."""

    def type_of(self, raw: str) -> str:
        """Return what the type of a column is called; looks at no row."""

    def helper(self) -> duckdb.DuckDBPyConnection:
        """Return a connection to an embedded DuckDB of ours."""

    keeps: bool  # whether the rows are the same as long as `unchanged` says so
    rows: int | None  # how many there are, where that is known without reading them

    def quiet(self, *cancel: Callable[[], object]) -> contextlib.AbstractContextManager[None]:
        """Keep the engine from showing or logging anything while rows are read; `cancel` what an interrupt must end."""


def role_of(new: str) -> str:
    """Return what a column is read for: its name, or what that begins with, where it is more than an attribute."""
    if new.startswith(NAMES):
        return NAMES
    return new if new in (PERSON, ORDER, *EVENTS) else ""


def unreadable() -> Unread:
    """Return the one sentence about rows that an engine failed on."""
    return Unread("the engine could not read the rows")


def with_readings(engine: Engine, frame: Any, helpers: Iterable[Helper]) -> Any:
    """Add the helper columns: numbers that texts spell, dates, and what is computed from them."""
    wanted = list(helpers)
    columns = [helper for helper in wanted if isinstance(helper, DataColumn)]
    numbers = {column.number: column.name for column in columns if not column.as_date}
    dates = {column.number: (column.name, column.as_date) for column in columns if column.as_date}
    if numbers:
        frame = nw.from_native(engine.numbers(nw.to_native(frame), numbers)).lazy()
    if dates:
        frame = nw.from_native(engine.dates(nw.to_native(frame), dates)).lazy()
    derived = {helper.number: helper.expression for helper in wanted if isinstance(helper, ComputedColumn)}
    for name, expression in derived.items():  # one after the other: each may look at those before it
        frame = frame.with_columns(expression.alias(name))
    return frame


def schema_of(native: Any) -> dict[str, DataColumn]:
    """Return how narwhals reads each column."""
    return {name: column_of(dtype) for name, dtype in nw.from_native(native).lazy().collect_schema().items()}


_warnings_lock = threading.RLock()


@contextlib.contextmanager
def no_warnings() -> Iterator[None]:
    """Show no warning: one of an engine may quote a cell."""
    # the filters are global, hence one reader at a time
    with _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def cancelled(*cancel: Callable[[], object]) -> Iterator[None]:
    """End what is going on when an interrupt comes."""

    def every() -> None:
        for one in cancel:
            with contextlib.suppress(Exception):  # nothing to cancel any more
                one()

    with cancelled_by_interrupt(every) if cancel else contextlib.nullcontext():
        yield

"""What every engine says in its own way, and what they share."""

from __future__ import annotations

import contextlib
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import narwhals as nw
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import Unread
from tacit.rows.cells.readings import DataColumn, Dialect, column_of
from tacit.rows.counts.batches import Piece
from tacit.rows.files.written import Written
from tacit.rows.guard import cancelled_by_interrupt

PERSON: Final = "u"  # the name under which the column that says whose row it is gets selected
ORDER: Final = "o"  # and the one that says which rows come first
EVENTS: Final = ("t", "e")  # and, of events, when they were and which
NAMES: Final = "name_"  # what the names of columns begin with that name rows


MakeFrame = Callable[[Mapping[str, Sequence[Any]]], Any]


class Engine(ABC):
    """What rows need of the place where they are. A `native` is a lazy frame of the engine."""

    kind: str
    is_file = False  # whether columns have the names of a first line, which may hold somebody's values
    dialect: Dialect
    counts = False  # whether it counts by itself, since the rows are elsewhere
    connection: Any = None  # to an embedded DuckDB of ours, where the rows are read by one
    place: Any = None  # what decides, beside the types of columns, what can be counted; None if that cannot be said
    keeps = False  # whether the rows are the same as long as `unchanged` says so
    rows: int | None = None  # how many there are, where that is known without reading them
    written = Written(None)  # how the texts are written

    def columns(self) -> dict[str, DataColumn]:
        """Return how each column is read, as its texts are written; looks at no row."""
        comma, form = self.written.decimal == ",", self.written.form
        return {
            name: replace(column, comma=comma, form=form) if column.reading == "text" else column
            for name, column in self.schema().items()
        }

    @abstractmethod
    def schema(self) -> dict[str, DataColumn]:
        """Return how each column is read; looks at no row."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all columns, as often as they are there; looks at no row."""

    @abstractmethod
    def type_of(self, raw: str) -> str:
        """Return what the type of a column is called; looks at no row."""

    @abstractmethod
    def unchanged(self) -> bool:
        """Say whether the source still has the columns that were found when it was opened; looks at no row."""

    @abstractmethod
    def select(self, columns: Mapping[str, str]) -> Any:
        """Return the raw columns (new name -> raw name)."""

    def collected(self, frame: Any) -> pa.Table:
        """Work out a lazy frame over these rows."""
        return frame.collect(backend="pyarrow").to_arrow()

    @abstractmethod
    def emptied(self) -> Engine:
        """Return the engine with the same columns and no row."""

    @property
    @abstractmethod
    def frame(self) -> MakeFrame:
        """What makes a frame of the user's kind; it knows nothing of the rows, since records keep it."""

    @contextlib.contextmanager
    def quiet(self, *cancel: Callable[[], object]) -> Iterator[None]:
        """Keep the engine from showing or logging anything while rows are read; `cancel` what an interrupt must end."""
        with no_warnings(), cancelled(*cancel):
            yield

    @abstractmethod
    def pieces(self, columns: Mapping[str, str]) -> list[Piece]:
        """Return the raw columns (new name -> raw name) as batches."""

    @abstractmethod
    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        """Return no rows of the raw columns (new name -> raw name), in the types that `pieces` gives them."""

    def try_column(self, raw: str) -> None:  # noqa: B027 - most engines have nothing to try
        """Read a column once if one of its cells may be what the engine fails on, so that it fails before a charge."""

    def legible(self) -> Engine:
        """Return an engine to which texts that are no UTF-8 are missing, where this one fails on them; else itself."""
        return self


def role_of(new: str) -> str:
    """Return what a column is read for: its name, or what that begins with, where it is more than an attribute."""
    if new.startswith(NAMES):
        return NAMES
    return new if new in (PERSON, ORDER, *EVENTS) else ""


def unreadable() -> Unread:
    """Return the one sentence about rows that an engine failed on."""
    return Unread("the engine could not read the rows")


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

"""Cells of events: times (whole numbers, or dates; UTC where they have no zone), and which persons and ids are equal.

Persons and ids are the same across batches, files, engines and restarts iff their texts are (`identity`): texts as they
are, numbers and texts of plain decimals by their value (1, 1.0 and "1.0" are one, "007" is not 7), true and "True" are
one (and not 1), dates by their timestamp.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.arrays import Bools, Ints
from tacit.monitor.clock import LONGEST, UNITS, Clock, iso_date, moment_of, ticks_of
from tacit.rows.cells.readings import number_in, spelling

Span = tuple[int, int]

_TRUNCATED: Final = {UNITS["day"]: "1d", UNITS["hour"]: "1h", UNITS["minute"]: "1m", UNITS["second"]: "1s"}


@dataclass(frozen=True)
class TimeColumn:
    """How a column of times is read: `whole`, `real`, `datetime`, `date` or `text`."""

    kind: str
    zone: str | None
    clock: Clock

    def inside(self, span: Span) -> Any:
        """Return in the engine which times matter, or None where only the decoded ones can tell."""
        if self.kind in ("whole", "real"):
            low, high = (min(max(tick, -LONGEST), LONGEST) for tick in span)
            return (nw.col("t") >= low) & (nw.col("t") < high)
        # polars compares times of one zone only
        if self.kind != "datetime" or self.zone not in (None, "UTC", "Etc/UTC"):
            return None
        start, end = (nw.lit(moment_of(tick, zoned=self.zone is not None)) for tick in span)
        return (nw.col("t") >= start) & (nw.col("t") < end)

    def missing(self) -> Any:
        """Return in the engine which rows have no time."""
        empty = nw.col("t").is_null()
        return empty | nw.col("t").cast(nw.Float64).is_nan() if self.kind == "real" else empty

    def unit(self) -> str | None:
        """Return the coarsest unit that times may be cut to without crossing the border of a step."""
        if self.kind != "datetime" or self.zone is not None:
            return None
        fits = (name for unit, name in _TRUNCATED.items() if not (self.clock.every % unit or self.clock.start % unit))
        return next(fits, None)

    def ticks(self, column: pa.ChunkedArray) -> tuple[Ints, Bools]:
        """Return the times, and which of them are there."""
        if self.kind == "text":
            return self._of_texts(column)
        if self.kind in ("whole", "real"):
            values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
            there = np.isfinite(values) & (np.abs(values) < LONGEST)
            return np.floor(np.where(there, values, 0.0)).astype(np.int64), there
        there = ~np.asarray(column.is_null().to_numpy(), dtype=np.bool_)
        moments = column.cast(pa.timestamp("us", tz=self.zone), safe=False).cast(pa.int64()).fill_null(0)
        return np.asarray(moments.to_numpy(), dtype=np.int64), there

    def keys(self, column: pa.ChunkedArray, ticks: Ints, timed: Bools) -> list[str | None]:
        """Return a text for each time: the same for equal times, whatever the type of their column; "" for no time."""
        if self.clock.dates:
            return [str(tick) if there else "" for tick, there in zip(ticks.tolist(), timed.tolist(), strict=True)]
        codes, texts = coded(column)
        numbers = [number_in(text) for text in texts]
        spelled = ["" if found is None else spelling(found) for found in numbers]
        return [spelled[code] if code >= 0 else "" for code in codes.tolist()]

    def _of_texts(self, column: pa.ChunkedArray) -> tuple[Ints, Bools]:
        codes, texts = coded(column)
        read: Callable[[str], int | None] = _date_ticks if self.clock.dates else _number_ticks
        found = [read(text) for text in texts]
        ticks = np.array([*(tick or 0 for tick in found), 0], dtype=np.int64)
        there = np.array([*(tick is not None for tick in found), False], dtype=np.bool_)
        return ticks[codes], there[codes]


def time_text(cell: Any) -> Any:
    """Return the time in a Python object as a text; other cells stay."""
    if isinstance(cell, datetime.date) and not pd.isna(cell):
        return cell.isoformat()
    if isinstance(cell, np.datetime64) and not np.isnat(cell):
        return pd.Timestamp(cell).isoformat()
    return cell


def _date_ticks(text: str) -> int | None:
    return ticks_of(iso_date(text))


def _number_ticks(text: str) -> int | None:
    number = number_in(text)
    return math.floor(number) if number is not None and abs(number) < LONGEST else None


_NUMBER_STARTS: Final = frozenset("-0123456789")
_PLAIN_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_MOMENTS: Final = ("\0moment:", "\0zoned:")  # how `object_cells.id_of` spells them, in nanoseconds since
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def identity(value: Any) -> str | None:
    """Return the one text of a person or of an event: whatever the type of the column, the same is the same.

    >>> {identity(one) for one in (1, 1.0, "1", "1.0", Decimal("1.00"))}, identity("007"), identity(True)
    ({'1'}, '007', 'true')
    """
    match value:
        case str() if value.startswith("\0date:"):
            return value.removeprefix("\0date:")
        case str() if value.startswith(_MOMENTS):  # a Python object; a typed column gives the moment itself
            kind, _, since = value.partition(":")
            moment = _EPOCH + datetime.timedelta(microseconds=int(since) // 1000)
            return identity(moment if kind == "\0zoned" else moment.replace(tzinfo=None))
        case str():
            return _plain_text(value)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return None if not math.isfinite(value) else spelling(value)
        case Decimal():
            return None if not value.is_finite() else _plain_text(format(value, "f"))
        case bytes():
            return "\0bytes:" + value.hex()
        case datetime.datetime() | datetime.date():
            ticks = ticks_of(value)
            return None if ticks is None else moment_of(ticks, zoned=False).isoformat().removesuffix("T00:00:00")
        case None:
            return None
    return str(value)


def coded(column: pa.ChunkedArray, named: Callable[[str], str] = str) -> tuple[Ints, list[str]]:
    """Return the number of each cell's text in a list of texts, -1 for cells without one; equal values are one text."""
    cells = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(cells, pa.ChunkedArray):
        cells = pa.concat_arrays(cells.chunks) if cells.num_chunks else pa.array([], type=cells.type)
    if not pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_encode()
    values, kind = cells.dictionary, cells.dictionary.type
    indices = cells.indices.cast(pa.int64())
    if pa.types.is_integer(kind) and not values.null_count:
        # different values, different texts: nothing to compare
        codes = np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
        return codes, list(map(str, values.to_pylist()))
    texts: dict[str, int] = {}
    places = []
    for value in values.to_pylist():
        text = identity(value)
        text = text if text is None or text.startswith("\0") else named(text)
        places.append(-1 if text is None else texts.setdefault(text, len(texts)))
    numbers = np.array([*places, -1], dtype=np.int64)
    codes = np.asarray(indices.fill_null(len(places)).to_numpy(zero_copy_only=False), dtype=np.int64)
    return numbers[codes], list(texts)


def _plain_text(text: str) -> str:
    """Return a text as it is, but a plain decimal without what its value does not need."""
    if text[:1] in "tTfF" and text.lower() in ("true", "false"):
        return text.lower()
    if text[:1] not in _NUMBER_STARTS or not _PLAIN_NUMBER.fullmatch(text):
        return text
    shortest = text.rstrip("0").removesuffix(".") if "." in text else text
    return "0" if shortest == "-0" else shortest

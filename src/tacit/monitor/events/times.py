"""The times of a batch: whole numbers, or dates (without a zone: UTC)."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.arrays import Bools, Ints
from tacit.monitor.clock import LONGEST, UNITS, Clock, iso_date, moment_of, ticks_of
from tacit.monitor.events.identity import coded
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

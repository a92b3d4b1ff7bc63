"""From a batch of events, which is private, to the few numbers that a monitor needs: places, times, and whose visit.

A batch is a path or pattern of CSV or Parquet files, a frame of any engine that `rows/sources` knows, an iterable of
records (mappings, or bare places), or nothing at all. A row has a place, and may have a time, a person and an id of the
event. Places are read as `rows/cells/readings.py` reads them; rows with an unknown place, or without a person where one
is asked for, are left out. Persons are told apart by the rule for names of rows (`rows/cells/row_names.py`), in which 7
and "007" are one: one person who counted as two would be seen twice. A state that an older Tacit began keeps telling
people apart by their texts. No cell makes this fail. Whatever a batch does while it is read, also code of the caller
that makes it, becomes one fixed sentence; an interrupt stays one. Everything returned is private.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.arrays import Bools, Ints
from tacit.errors import DataRefused, InternalError, TacitError, Unread
from tacit.monitor.clock import Clock
from tacit.monitor.event_cells import TimeColumn, coded, time_text
from tacit.policy.attributes import Attribute
from tacit.policy.edges.intervals import Intervals
from tacit.policy.yaml_entries import TABLE_NAMES
from tacit.rows.cells.kinds import code_of
from tacit.rows.cells.readings import Code, DataColumn
from tacit.rows.cells.row_names import person_name
from tacit.rows.files.written import Written
from tacit.rows.guard import closed
from tacit.rows.sources.engine import PERSON, Engine
from tacit.rows.sources.source import engine_for

Span = tuple[int, int]

NAMES: Final = "as rows"  # how people are told apart (`rows/cells/row_names.py`); a state keeps the rule it began by
OPTIONAL_TIME: Final = "time"  # the default column: a batch without it is taken as of its arrival


@dataclass(frozen=True)
class EventColumns:
    """Where a row's place, person, time and id are; all public. `time` is None to go by arrival alone.

    `names` is the rule by which people are told apart: that of names of rows, or "" for texts as they are.
    """

    places: Attribute
    place: str
    person: str | None = None
    event: str | None = None
    time: str | None = OPTIONAL_TIME
    clock: Clock = field(default_factory=Clock)
    names: str = NAMES


@dataclass(frozen=True, eq=False, repr=False)
class Events:
    """What was read of a batch, line by line; a line stands for `rows` rows that agree in everything else.

    `places` are positions in the domain. `timed` says which lines have a readable time, `ticks` is that time. `people`
    are numbers of `names`. `keys` tell events apart: their ids (None: a row without one is an event of its own) or,
    without such a column, their times. `has_time` says whether the batch has a column of times.
    """

    rows: Ints
    places: Ints
    ticks: Ints
    timed: Bools
    people: Ints | None = None
    names: list[str] | None = None
    keys: list[str | None] | None = None
    has_time: bool = False

    def where(self, kept: Bools) -> Events:
        """Return only some of the lines."""
        if kept.all():
            return self
        return Events(
            self.rows[kept],
            self.places[kept],
            self.ticks[kept],
            self.timed[kept],
            None if self.people is None else self.people[kept],
            self.names,
            None if self.keys is None else [key for key, keep in zip(self.keys, kept.tolist(), strict=True) if keep],
            self.has_time,
        )


_RECORDS: Final = object()  # stands for a batch that is gone through record by record


def batch_name(batch: Any) -> str | None:
    """Return what a batch of files is known by: their paths, and when they were last written. None for frames.

    A file that is fed again is the same batch; one that was written anew under the same name is another.
    """
    if not _is_files(batch):
        return None
    paths = [batch] if isinstance(batch, str | Path) else batch
    found: list[str] = []
    for path in paths:
        try:
            matches = [str(path)] if os.path.isfile(path) else sorted(glob.glob(str(path), recursive=True))
            found += [f"{os.path.realpath(match)}@{os.stat(match).st_mtime_ns}" for match in matches]
        except (OSError, ValueError):
            return None  # the reader says what is wrong with it
    return "|".join(found) or None


def frame_of(batch: Any, columns: EventColumns) -> Any:
    """Return a batch as an engine can read it, None if there is nothing in it; refuse a text that is no path."""
    _refuse_text(batch)
    frame = closed(lambda: _as_frame(batch, columns), unreadable())
    if frame is not _RECORDS:
        return frame
    found = closed(lambda: _gathered(batch, columns), unreadable())
    if found is None:
        raise unreadable()
    return closed(lambda: _of_objects(found), unreadable())


def unreadable() -> Unread:
    """Return the one sentence for whatever goes wrong while events are read."""
    return Unread("the engine could not read the events", fix="Nothing was counted and the clock did not move.")


def _refuse_text(batch: Any) -> None:
    """Refuse a text that is no path, without repeating it: it may be the rows themselves."""
    if type(batch) is Written:
        raise DataRefused("events must be written in Tacit's own way", fix="Convert their numbers and dates first.")
    if not isinstance(batch, str) or batch.lower().endswith(TABLE_NAMES):
        return
    try:
        found = os.path.isfile(batch) or bool(glob.glob(batch, recursive=True))
    except (OSError, ValueError, re.error):
        found = False
    if not found:
        raise DataRefused(
            "a text must be the path of a CSV or Parquet file of events",
            fix="Check the path; rows are given as a frame, or as a list of records.",
        )


def _is_files(batch: Any) -> bool:
    """Say whether a batch names files: a path or pattern, or several `Path`s. A list of texts is one of bare places."""
    several = isinstance(batch, list | tuple) and bool(batch) and all(isinstance(one, Path) for one in batch)
    return isinstance(batch, str | Path) or several


def _as_frame(batch: Any, columns: EventColumns) -> Any:
    """Return a batch that an engine can read, or `_RECORDS`. Objects that are dates become texts."""
    if isinstance(batch, pd.DataFrame):
        name = columns.time
        if name in batch.columns and isinstance(batch[name], pd.Series) and batch[name].dtype == np.dtype(object):
            # still of objects: a type that is inferred from the cells would let one cell decide what is refused
            texts = pd.Series([time_text(cell) for cell in batch[name]], index=batch.index, dtype=object)
            return batch.assign(**{str(name): texts})
        return batch
    if _is_files(batch) or isinstance(nw.from_native(batch, pass_through=True), nw.LazyFrame):
        return batch
    is_records = isinstance(batch, Iterable) and not isinstance(batch, Mapping | bytes)
    if not is_records or hasattr(batch, "columns") or hasattr(batch, "schema"):
        return batch  # a frame, or what the engines refuse
    return _RECORDS


def _of_objects(found: Mapping[str, list[Any]]) -> Any:
    """Return a frame of records, or None if there is none."""
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in found.items()})
    return frame if len(frame) else None


def _gathered(batch: Iterable[Any], columns: EventColumns) -> dict[str, list[Any]] | None:
    """Go through records. None if the caller's code raised a refusal of ours, which may quote a row there."""
    wanted = [name for name in (columns.place, columns.person, columns.event, columns.time) if name is not None]
    # Records have a time where a column is named, whatever keys they have: if one record that has the key could decide
    # it for all, a single visit would decide how all others are read.
    found: dict[str, list[Any]] = {name: [] for name in wanted}
    try:
        for record in batch:
            said = record if isinstance(record, Mapping) else {columns.place: record}
            for name, cells in found.items():
                cell = said.get(name)
                cells.append(time_text(cell) if name == columns.time else cell)
    except TacitError:
        return None
    return found


def read_events(batch: Any, columns: EventColumns, *, only: int | None = None, span: Span | None = None) -> Events:
    """Read a batch. `only` is the one place to look at; `span` bounds the times that matter, the end excluded.

    Lines outside the span may still be there; lines without a readable time always are.
    """
    if batch is None or (frame := frame_of(batch, columns)) is None:
        return _nothing(columns)
    return closed(lambda: _Reader(frame, columns, only, span), unreadable()).read()


class _Reader:
    """One batch in its engine: columns are checked by their names and types, then grouped there and decoded here."""

    def __init__(self, batch: Any, columns: EventColumns, only: int | None, span: Span | None) -> None:
        self._columns, self._only, self._span = columns, only, span
        named = [columns.place, columns.person, columns.event, columns.time]
        declared = frozenset(name for name in named if name is not None)
        self._engine: Engine = engine_for(batch, lists=frozenset(), declared=declared)
        schema = closed(self._engine.schema, Unread("the columns of the batch could not be listed"))
        self._has_time = columns.time is not None and (columns.time in schema or columns.time != OPTIONAL_TIME)
        wanted = {"c0": columns.place, PERSON: columns.person, "e": columns.event}
        self._raw = {new: raw for new, raw in wanted.items() if raw is not None}
        if self._has_time:
            self._raw["t"] = str(columns.time)
        for raw in self._raw.values():
            if raw not in schema:
                # the columns that are there are not named: of a batch without a header they are somebody's values
                fix = f"Check the name in the header{' of the file' * self._engine.is_file}."
                raise DataRefused("must be a column of the batch", column=raw, fix=fix)
        for name in (PERSON, "e"):
            if name in self._raw and schema[self._raw[name]].reading == "list":
                raise DataRefused("must hold one value per row", column=self._raw[name], fix="Name another column.")
        place = replace(schema[columns.place], raw=columns.place, name="c0")
        self._code: Code = _places_in(columns.places, place)
        # names are looked up when they are decoded; a million of them in an expression would be slow
        self._valid = None if columns.places.item_attribute.measured == "names" else self._code.valid
        self._time = self._time_column(schema) if self._has_time else None

    def _time_column(self, schema: Mapping[str, DataColumn]) -> TimeColumn:
        raw = self._raw["t"]
        native = self._engine.select({"t": raw})
        dtype = closed(lambda: nw.from_native(native).lazy().collect_schema()["t"], unreadable())
        column, clock = schema[raw], self._columns.clock
        if dtype == nw.Datetime or dtype == nw.Date:
            kind = "date" if dtype == nw.Date else "datetime"
        elif column.reading in ("whole", "wide", "real"):
            kind = "real" if column.reading == "real" else "whole"
        elif column.reading == "text":
            return TimeColumn("text", None, clock)
        else:
            raise DataRefused(
                "must hold whole numbers or dates", column=raw, fix="Convert it, or say time=None to go by batches."
            )
        if clock.dates and kind in ("whole", "real"):
            raise DataRefused("holds numbers, but the clock of the monitor has dates", column=raw, fix="Make it dates.")
        if not clock.dates and kind in ("date", "datetime"):
            rule = "holds dates, so the monitor needs a clock with dates"
            fix = "Say start='2020-03-01', every='1 day' (MapMonitor: at=..), or time=None to go by batches."
            raise DataRefused(rule, column=raw, fix=fix)
        return TimeColumn(kind, getattr(dtype, "time_zone", None), clock)

    def read(self) -> Events:
        """Group the rows in the engine, then turn the groups into positions, times and names."""

        def collected() -> pa.Table:
            with self._engine.quiet():
                return self._engine.collected(self._grouped())

        table = closed(collected, unreadable())
        return closed(lambda: self._decoded(table), InternalError("reading events"))

    def _grouped(self) -> Any:
        frame = nw.from_native(self._engine.select(self._raw)).lazy()
        if PERSON in self._raw:
            frame = frame.filter(~nw.col(PERSON).is_null())
        if self._time is not None:
            if self._span is not None and (inside := self._time.inside(self._span)) is not None:
                frame = frame.filter(inside | self._time.missing())
            if PERSON not in self._raw and "e" not in self._raw and (unit := self._time.unit()) is not None:
                frame = frame.with_columns(t=nw.col("t").dt.truncate(unit))
        keys: list[str] = [name for name in (PERSON, "e", "t") if name in self._raw]
        if self._only is not None:
            frame = self._with_numbers(frame)
            if self._valid is not None:
                frame = frame.filter(self._valid)
            frame = frame.filter(self._code.atom("", Intervals.points([self._only])))
            return _counted(frame, keys)
        # raw cells first: they repeat, so checking and mapping each distinct one costs nothing
        frame = self._with_numbers(_counted(frame, [*keys, "c0"]))
        valid, named = self._valid, self._code.keys
        places = named if valid is None else [nw.when(valid).then(key) for key in named]
        return frame.select(*keys, "n", *(key.alias(f"k{number}") for number, key in enumerate(places)))

    def _with_numbers(self, frame: Any) -> Any:
        return self._engine.dialect.with_readings(frame, self._code.numbers)

    def _decoded(self, table: pa.Table) -> Events:
        lines = table.num_rows
        rows = np.asarray(table.column("n").cast(pa.int64()).fill_null(0).to_numpy(), dtype=np.int64)
        if self._only is not None:
            places = np.full(lines, self._only, dtype=np.int64)
        else:
            found = self._code.decode([table.column(f"k{number}") for number in range(len(self._code.keys))])
            places = np.broadcast_to(found, (lines,)).astype(np.int64)
        ticks, timed = np.zeros(lines, dtype=np.int64), np.zeros(lines, dtype=np.bool_)
        if self._time is not None:
            ticks, timed = self._time.ticks(table.column("t"))
        by_name = person_name if self._columns.names == NAMES else str
        people, names = coded(table.column(PERSON), by_name) if PERSON in self._raw else (None, None)
        keys: list[str | None] | None = None
        if "e" in self._raw:
            numbers, texts = coded(table.column("e"))
            keys = [texts[number] if number >= 0 else None for number in numbers.tolist()]
        elif people is not None and self._only is not None:
            keys = [""] * lines if self._time is None else self._time.keys(table.column("t"), ticks, timed)
        kept = (rows > 0) & (places >= 0)
        if people is not None:
            kept &= people >= 0
        return Events(rows, places, ticks, timed, people, names, keys, self._has_time).where(kept)


def _places_in(places: Attribute, column: DataColumn) -> Code:
    """Return how places are read. A batch without a visit may have a column of any type, and is no reason to refuse."""
    if column.reading in ("time", "list", "other"):
        return code_of(places, (column,))
    with contextlib.suppress(DataRefused):
        return code_of(places, (column,))
    return code_of(places, (replace(column, reading="text", parsed=False),))


def _counted(frame: Any, keys: list[str]) -> Any:
    if not keys:
        return frame.select(nw.len().alias("n"))
    return frame.group_by(*keys).agg(nw.len().alias("n"))


def _nothing(columns: EventColumns) -> Events:
    empty, none = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
    has_people, has_keys = columns.person is not None, columns.event is not None or columns.person is not None
    return Events(
        empty, empty, empty, none, empty if has_people else None, [] if has_people else None, [] if has_keys else None
    )

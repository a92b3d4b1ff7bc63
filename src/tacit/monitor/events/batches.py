"""From what somebody feeds to what an engine reads: files, frames, or records that are gathered one by one.

Whatever a batch does while it is read, also code of the caller that makes it, becomes one fixed sentence; an interrupt
stays one.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import narwhals as nw
import numpy as np
import pandas as pd

from tacit.errors import DataRefused, TacitError, Unread
from tacit.monitor.events.columns import EventColumns
from tacit.monitor.events.times import time_text
from tacit.policy.yaml_entries import TABLE_NAMES
from tacit.rows.guard import closed

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

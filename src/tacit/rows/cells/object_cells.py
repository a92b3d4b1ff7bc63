"""Cells that are Python objects, as pandas keeps them: each is read by its own type, and none is ever called.

A column of objects has no type until its cells are looked at, and what is refused must not depend on one person's cell;
so such a column is one of texts, each cell the text that a CSV of the column would have. Of numbers, truths and dates
that is their text reading (`readings.py`); of times and durations what Python spells; of bytes, the UTF-8 that they
are. What is none of these is missing.
"""

from __future__ import annotations

import datetime
import math
import uuid
import zoneinfo
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.rows.cells.readings import spelling

_MOST_DIGITS: Final = 4000  # Python itself refuses to spell whole numbers of more than 4300
_LARGEST: Final = 400  # digits; a number of more is beyond every float, and so beyond every domain
_SPELLED: Final = (datetime.date, datetime.datetime, datetime.time, datetime.timedelta, pd.Timestamp, pd.Timedelta)
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)
_NANOSECONDS: Final = {
    "W": 604_800_000_000_000,
    "D": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 10**9,
    "ms": 10**6,
    "us": 1000,
    "ns": 1,
}
_DEEPEST: Final = 20
_ZONES: Final = (type(None), datetime.timezone, zoneinfo.ZoneInfo)  # a zone of any other kind is code of its own


def texts_of(cells: Any, read: Callable[[Any], str | None]) -> pa.Array:
    """Return the reading of a column of Python objects; what is no plain value becomes missing."""
    return pa.array([read(cell) for cell in cells.to_numpy(dtype=object)], type=pa.large_string())


def lists_of(cells: Any) -> pa.Array:
    """Return a column of lists of texts; a single value is a list of one."""
    listed: list[list[str | None]] = []
    for cell in cells.to_numpy(dtype=object):
        kind = type(cell)  # not isinstance, which asks the object itself; nor its own way to be walked
        if issubclass(kind, list | tuple):
            walked: Iterable[Any] = list.__iter__(cell) if issubclass(kind, list) else tuple.__iter__(cell)
            listed.append([text_of(item) for item in walked])
        elif issubclass(kind, np.ndarray):
            found = np.ndarray.tolist(cell) if cell.dtype.kind in "biufUO" else None  # a dimension of none is one value
            listed.append([text_of(item) for item in found] if type(found) is list else [text_of(found)])
        elif issubclass(kind, set | frozenset):
            walked = set.__iter__(cell) if issubclass(kind, set) else frozenset.__iter__(cell)
            # a set has no order, and Python's own order of texts changes from run to run
            listed.append([*sorted(text for text in map(text_of, walked) if text is not None)])
        else:
            listed.append([text_of(cell)])
    return pa.array(listed, type=pa.list_(pa.string()))


def _value(cell: Any) -> Any:
    """Return a cell as a plain str, int, float, complex, bool or Decimal where it is one; only its type is asked."""
    kind = type(cell)
    if issubclass(kind, str):
        return str.__str__(cell)
    if issubclass(kind, np.bool_ | np.integer | np.floating | np.complexfloating) and not issubclass(
        kind, np.timedelta64
    ):
        return np.generic.item(cell)
    return cell


def text_of(cell: Any) -> str | None:
    """Return the text reading of an object, or None where it has none."""
    # only plain types are read: an object's own __str__ or __eq__ is never called
    cell = _value(cell)
    kind = type(cell)
    if kind is str:
        return cell if cell.isascii() or _encodable(cell) else None
    if kind is bool:
        return "true" if cell else "false"
    if kind is int:
        return str(cell) if abs(cell) < 10**_LARGEST else ("inf" if cell > 0 else "-inf")
    if kind is float:
        return None if math.isnan(cell) else spelling(cell)
    if kind is Decimal:
        return _decimal_text(cell)
    if kind is bytes:
        return decoded(cell)
    if kind is np.datetime64:
        return _moment_text(cell)
    if kind in _SPELLED and type(getattr(cell, "tzinfo", None)) in _ZONES:
        return str(cell)
    return str(uuid.UUID(int=cell.int)) if kind is uuid.UUID else None


def _moment_text(cell: np.datetime64) -> str | None:
    """Return what numpy spells, with the minutes that it leaves out, and no more than nanoseconds."""
    if np.isnat(cell):
        return None
    unit, _ = np.datetime_data(cell.dtype)
    spelled = str(cell) + (":00" if unit == "h" else "")
    return spelled[: len("2024-05-01T00:00:00.000000000")] if unit in ("ps", "fs", "as") else spelled


def _decimal_text(cell: Decimal) -> str | None:
    if cell.is_nan():  # a signalling NaN would raise when compared
        return None
    if cell.is_infinite() or cell.adjusted() > _LARGEST:
        return "inf" if cell > 0 else "-inf"
    return "0" if not cell or cell.adjusted() < -_LARGEST else _digits(cell)


def id_of(cell: Any, depth: int = 0) -> str | None:
    """Return the text that stands for a person: the same for equal ids, different for different ones.

    As in a CSV, an id 7 is the id "7". Ids are compared and never shown. Those that no CSV spells begin with a zero
    byte and their kind. `depth` says how many collections the cell is in.
    """
    cell = _value(cell)
    kind = type(cell)
    if kind is str:
        return str(cell) if _encodable(cell) else "\0text:" + cell.encode("utf-8", "surrogatepass").hex()
    if kind is bool:
        return "true" if cell else "false"
    if kind is int:
        return str(cell) if abs(cell) < 10**_MOST_DIGITS else hex(cell)
    if issubclass(kind, uuid.UUID):
        return str(uuid.UUID(int=cell.int))
    if issubclass(kind, bytes):
        return "\0bytes:" + bytes.hex(cell)
    if kind is float:
        if not math.isfinite(cell):
            return None if math.isnan(cell) else repr(cell)
        return str(int(cell)) if cell == int(cell) else _digits(Decimal(repr(cell)))
    if kind is Decimal:
        return None if cell.is_nan() else _digits(cell) if cell.is_finite() else repr(float(cell))
    if kind is complex:
        parts = [id_of(cell.real), id_of(cell.imag)]
        return None if None in parts else parts[0] if parts[1] == "0" else f"\0complex:{parts[0]},{parts[1]}"
    return _time_id(cell) or _collection_id(cell, depth)


def _time_id(cell: Any) -> str | None:
    """Return the id that a date or a time is: equal moments are one, in whatever zone they are told."""
    kind = type(cell)
    zone = type(getattr(cell, "tzinfo", None)) if kind in _SPELLED else type(None)
    if kind is pd.Timestamp:
        return _steps("moment" if zone is type(None) else "zoned", cell.asm8)
    if kind is pd.Timedelta:
        return _steps("duration", cell.asm8)
    if kind is np.datetime64 or kind is np.timedelta64:
        return _steps("moment" if kind is np.datetime64 else "duration", cell)
    if kind is datetime.date:
        return f"\0date:{cell.isoformat()}"
    if kind is datetime.timedelta:
        return f"\0duration:{cell // _MICROSECOND * 1000}"
    if zone not in _ZONES:
        return None
    if kind is datetime.time:
        return f"\0time:{cell.isoformat()}"
    if kind is datetime.datetime:
        since = (cell - _EPOCH.replace(tzinfo=None if cell.tzinfo is None else datetime.UTC)) // _MICROSECOND
        return f"\0{'moment' if cell.tzinfo is None else 'zoned'}:{since * 1000}"
    return None


def _steps(name: str, cell: Any) -> str | None:
    """Return a time of numpy as nanoseconds, or in its own unit where that is no number of these."""
    if np.isnat(cell):
        return None
    unit, many = np.datetime_data(cell.dtype)
    if unit in ("Y", "M") and type(cell) is np.datetime64:
        cell, unit, many = cell.astype("M8[D]"), "D", 1
    steps = int(cell.astype(np.int64)) * many
    return f"\0{name}:{steps * _NANOSECONDS[unit]}" if unit in _NANOSECONDS else f"\0{name}:{steps}{unit}"


def _collection_id(cell: Any, depth: int) -> str | None:
    """Return the id that a tuple, list, set or dictionary is; none if one of its parts could be no id."""
    kind = type(cell)
    if depth >= _DEEPEST:  # no cell decides whether Python's own depth is enough
        return None
    if issubclass(kind, dict):
        name, walked = "dict", [part for pair in dict.items(cell) for part in pair]
    elif issubclass(kind, tuple | list):
        name, walked = "list", list(tuple.__iter__(cell) if issubclass(kind, tuple) else list.__iter__(cell))
    elif issubclass(kind, set | frozenset):
        name, walked = "set", list(set.__iter__(cell) if issubclass(kind, set) else frozenset.__iter__(cell))
    else:
        return None
    found = []
    for part in walked:
        spelled = "\0nothing" if part is None else id_of(part, depth + 1)
        if spelled is None:
            return None
        found.append(f"{len(spelled)}:{spelled}")
    if name == "dict":
        found = sorted(map("".join, zip(found[::2], found[1::2], strict=True)))
    return f"\0{name}:" + "".join(sorted(found) if name == "set" else found)


def _digits(number: Decimal) -> str:
    """Return every digit of a number, spelled in one way whatever its trailing zeros."""
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - the number is finite
    spelled = "".join(map(str, digits)).lstrip("0")
    kept = spelled.rstrip("0")
    exponent += len(spelled) - len(kept)
    if not kept:
        return "0"
    minus = "-" if sign else ""
    if abs(exponent) > _MOST_DIGITS:
        return f"{minus}{kept}e{exponent}"
    if exponent >= 0:
        return minus + kept + "0" * exponent
    kept = kept.rjust(1 - exponent, "0")
    return f"{minus}{kept[:exponent]}.{kept[exponent:]}"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def decoded(cell: bytes) -> str | None:
    """Return the text that bytes are in UTF-8, or None."""
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return None

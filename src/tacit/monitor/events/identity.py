"""When two persons or events are the same, whatever the type of their column.

Ids are the same across batches, files, engines and restarts iff their texts are (`identity`): texts as they are,
numbers and texts of plain decimals by their value (1, 1.0 and "1.0" are one, "007" is not 7), true and "True" are one
(and not 1), dates by their moment.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.arrays import Ints
from tacit.monitor.clock import moment_of, ticks_of
from tacit.rows.cells.readings import spelling

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

"""The UTC day that a cell is, on every engine alike, and its week, month, quarter or year.

A date is itself. A timestamp is the day that it lies in; one with a time zone is an instant, and its day is that of
UTC. A text is read if it is written as ISO 8601 has it: `2024-05-01`, optionally with a time (`2024-05-01T23:30`,
`2024-05-01 23:30:00.5`) and then optionally with an offset (`Z`, `+02:00`, `-0530`, `+02`; of old zones also
`+00:53:28`), by which it becomes UTC. Where days are gathered into months or quarters, `2024-05` is read as well, and
into years, `2024`. Anything else has no date. Years are those from 1 to 9999; earlier and later dates are out of every
range.

A timestamp is a whole number of steps since 1970, of seconds to nanoseconds, and its day is that number divided by the
steps of a day, rounded down: no other unit holds every such number, and one person's must neither fail nor be rounded.
An infinite one lies before or after all others.
"""

from __future__ import annotations

from typing import Any, Final

import narwhals as nw
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused
from tacit.policy.attributes import Dates
from tacit.policy.attributes.attribute import CLIP
from tacit.rows.cells.number_cells import lattice_key, on_lattice
from tacit.rows.cells.readings import Code, ComputedColumn, DataColumn, Expr, with_date

_31: Final = "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
_30: Final = "(0[469]|11)-(0[1-9]|[12][0-9]|30)"
_28: Final = "02-(0[1-9]|1[0-9]|2[0-8])"
_LEAP: Final = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29"
_DAY: Final = f"([0-9]{{4}}-({_31}|{_30}|{_28})|{_LEAP})"
_OFFSET: Final = "(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9]|:[0-5][0-9]:[0-5][0-9])?)"
_TIME: Final = rf"[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{{1,9}})?)?{_OFFSET}?"
FORMS: Final = {
    "day": f"^{_DAY}({_TIME})?",
    "month": "^[0-9]{4}-(0[1-9]|1[0-2])",
    "year": "^[0-9]{4}",
}
SHIFT: Final = r":[0-9.:]*([+-])([0-9]{2}):?([0-9]{2})?:?([0-9]{2})?"  # the offset of a text that has one
SECONDS: Final = r"^.{16}:([0-9]{2})"
DAY_SECONDS: Final = 86_400
BEFORE: Final = -719_163  # days since 1970: 0000-12-31
AFTER: Final = 2_932_897  # 10000-01-01
STEPS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # in a second
_LARGEST: Final = 2**63 - 1


def arrow_date(cells: pa.Array) -> pa.Array:
    """Return the UTC dates of Arrow's timestamps; anything else is returned as it is."""
    kind = cells.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date64(kind)):
        return cells
    numbers = cells.cast(pa.int64())
    missing = np.asarray(numbers.is_null().to_numpy(zero_copy_only=False)) if numbers.null_count else None
    steps = np.asarray((numbers.fill_null(0) if numbers.null_count else numbers).to_numpy())
    days = np.floor_divide(steps, DAY_SECONDS * STEPS["ms" if pa.types.is_date64(kind) else kind.unit])
    return pa.array(np.clip(days, BEFORE, AFTER).astype(np.int32), mask=missing).cast(pa.date32())


def arrow_names(cells: Any) -> Any:
    """Return Arrow's cells as they name rows: moments as the days that they begin, and times of the day as texts.

    None if a moment is told with a time zone, or begins no day.
    """
    if pa.types.is_time(cells.type):
        return cells.cast(pa.string())
    if not pa.types.is_timestamp(cells.type):
        return cells
    steps = cells.cast(pa.int64()).drop_null().to_numpy()
    if cells.type.tz is not None or (steps % (DAY_SECONDS * STEPS[cells.type.unit])).any():
        return None
    return cells.cast(pa.date32())


def arrow_moment(cells: pa.Array) -> pa.Array:
    """Return Arrow's times and spans as whole numbers, which are equal and sorted alike; anything else as it is.

    DuckDB would make microseconds of some of them, which not every moment is.
    """
    is_time = pa.types.is_timestamp(cells.type) or pa.types.is_duration(cells.type)
    return cells.cast(pa.int64()) if is_time else cells


def shorter_forms(precision: str) -> list[tuple[str, str]]:
    """Return the shorter forms that are read, and what makes days of them."""
    return {"day": [], "month": [("month", "-01")], "year": [("month", "-01"), ("year", "-01-01")]}[precision]


PRECISION: Final = {"day": "day", "week": "day", "month": "month", "quarter": "month", "year": "year"}
_AFTER: Final = 10**7  # the number of every period after the year 9999


def dates_code(attribute: Dates, columns: tuple[DataColumn, ...]) -> Code:
    """Return how dates are read, or refuse by the schema alone."""
    (column,) = columns
    if column.reading not in ("text", "date", "time"):
        raise DataRefused(
            "must hold dates, timestamps or texts such as 2024-05-01",
            column=column.raw,
            fix="Convert the column to dates first, or declare what it holds.",
        )
    dated = with_date(column, PRECISION[attribute.by])
    first, last = attribute.ticks
    otherwise: int | str | None = attribute.otherwise
    if otherwise is not None and otherwise != CLIP:
        otherwise = first + attribute.position(otherwise)
    tick = tick_of(dated, attribute.by)
    key, valid = lattice_key(nw.col(tick.number), first, last, 1, otherwise, real=False)
    return on_lattice(column, key, valid, (first, last, 1), numbers=(dated, tick))


def tick_of(column: DataColumn, by: str) -> ComputedColumn:
    """Return how to compute the number of a cell's period, as `policy/attributes/dates_decimals.py` counts them."""
    date = nw.col(column.number)
    year, month = date.dt.year().cast(nw.Int64), date.dt.month().cast(nw.Int64)
    match by:
        case "month":
            tick = year * 12 + month - 1
        case "quarter":
            tick = year * 4 + _whole_part(month - 1, 3)
        case "year":
            tick = year
        case _:
            before = year - 1
            leap_days = _whole_part(before, 4) - _whole_part(before, 100) + _whole_part(before, 400)
            tick = before * 365 + leap_days + date.dt.ordinal_day().cast(nw.Int64)
            tick = tick if by == "day" else _whole_part(tick - 1, 7)
    # only years from 1 to 9999 reach the arithmetic: of negative numbers engines divide in different ways
    inner = nw.when((year >= 1) & (year <= 9999)).then(tick)
    late = nw.when(year > 9999).then(nw.lit(_AFTER, nw.Int64)).otherwise(inner)
    return ComputedColumn(f"t{by}_{column.name}", nw.when(year < 1).then(nw.lit(-1, nw.Int64)).otherwise(late))


def _whole_part(number: Expr, by: int) -> Expr:
    return ((number - number % by) / by).cast(nw.Int64)  # exact in any engine, for numbers that are not negative

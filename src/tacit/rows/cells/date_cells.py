"""Cells of dates: from the UTC day (found as `rows/cells/date_texts.py` says) to a day, week, month, quarter or year.

Years are those from 1 to 9999; earlier and later dates are out of every range.
"""

from __future__ import annotations

from typing import Final

import narwhals as nw

from tacit.errors import DataRefused
from tacit.policy.attributes import Dates
from tacit.policy.attributes.attribute import CLIP
from tacit.rows.cells.integer_cells import lattice_key, on_lattice
from tacit.rows.cells.readings import Code, ComputedColumn, DataColumn, Expr, with_date
from tacit.rows.cells.unexpected import Unexpected

_PRECISION: Final = {"day": "day", "week": "day", "month": "month", "quarter": "month", "year": "year"}
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
    dated = with_date(column, _PRECISION[attribute.by])
    first, last = attribute.ticks
    otherwise: int | str | None = attribute.otherwise
    if otherwise is not None and otherwise != CLIP:
        otherwise = first + attribute.position(otherwise)
    tick = _tick(dated, attribute.by)
    key, valid = lattice_key(nw.col(tick.number), first, last, 1, otherwise, real=False)
    return on_lattice(column, key, valid, (first, last, 1), numbers=(dated, tick))


def _tick(column: DataColumn, by: str) -> ComputedColumn:
    """Return how to compute the number of a cell's period, as `policy/attributes/categories_dates.py` counts them."""
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


def dates_unexpected(attribute: Dates, columns: tuple[DataColumn, ...]) -> Unexpected:
    """Yield cells that are no date of the range."""
    (column,) = columns
    missing = nw.col(column.name).is_null()
    first, last = attribute.ticks
    tick = nw.col(_tick(with_date(column, _PRECISION[attribute.by]), attribute.by).number)
    yield "missing", missing
    yield "not a date", ~missing & tick.is_null()
    yield "before", (tick < first).fill_null(False)
    yield "after", (tick > last).fill_null(False)

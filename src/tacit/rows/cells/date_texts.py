"""The UTC day that a cell is, found by the engine, on every engine alike.

A date is itself. A timestamp is the day that it lies in; one with a time zone is an instant, and its day is that of
UTC. A text is read if it is written as ISO 8601 has it: `2024-05-01`, optionally with a time (`2024-05-01T23:30`,
`2024-05-01 23:30:00.5`) and then optionally with an offset (`Z`, `+02:00`, `-0530`, `+02`; of old zones also
`+00:53:28`), by which it becomes UTC. Where days are gathered into months or quarters, `2024-05` is read as well, and
into years, `2024`. Anything else has no date.

A timestamp is a whole number of steps since 1970, of seconds to nanoseconds, and its day is that number divided by the
steps of a day, rounded down: no other unit holds every such number, and one person's must neither fail nor be rounded.
An infinite one lies before or after all others.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

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
_SHIFT: Final = r":[0-9.:]*([+-])([0-9]{2}):?([0-9]{2})?:?([0-9]{2})?"  # the offset of a text that has one
_SECONDS: Final = r"^.{16}:([0-9]{2})"
_DAY_SECONDS: Final = 86_400
_BEFORE: Final = -719_163  # days since 1970: 0000-12-31
_AFTER: Final = 2_932_897  # 10000-01-01
_STEPS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # in a second
_LARGEST: Final = 2**63 - 1


def arrow_date(cells: pa.Array) -> pa.Array:
    """Return the UTC dates of Arrow's timestamps; anything else is returned as it is."""
    kind = cells.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date64(kind)):
        return cells
    numbers = cells.cast(pa.int64())
    missing = np.asarray(numbers.is_null().to_numpy(zero_copy_only=False)) if numbers.null_count else None
    steps = np.asarray((numbers.fill_null(0) if numbers.null_count else numbers).to_numpy())
    days = np.floor_divide(steps, _DAY_SECONDS * _STEPS["ms" if pa.types.is_date64(kind) else kind.unit])
    return pa.array(np.clip(days, _BEFORE, _AFTER).astype(np.int32), mask=missing).cast(pa.date32())


def arrow_names(cells: Any) -> Any:
    """Return Arrow's cells as they name rows: moments as the days that they begin, and times of the day as texts.

    None if a moment is told with a time zone, or begins no day.
    """
    if pa.types.is_time(cells.type):
        return cells.cast(pa.string())
    if not pa.types.is_timestamp(cells.type):
        return cells
    steps = cells.cast(pa.int64()).drop_null().to_numpy()
    if cells.type.tz is not None or (steps % (_DAY_SECONDS * _STEPS[cells.type.unit])).any():
        return None
    return cells.cast(pa.date32())


def arrow_moment(cells: pa.Array) -> pa.Array:
    """Return Arrow's times and spans as whole numbers, which are equal and sorted alike; anything else as it is.

    DuckDB would make microseconds of some of them, which not every moment is.
    """
    is_time = pa.types.is_timestamp(cells.type) or pa.types.is_duration(cells.type)
    return cells.cast(pa.int64()) if is_time else cells


def duckdb_date(column: str, kind: str, precision: str) -> str:
    """Return SQL for the UTC date of a column of this type."""
    if kind in ("varchar", "enum"):
        return _sql_date(f"(CAST({column} AS VARCHAR) COLLATE C)", precision)
    if kind in ("date", "timestamp_s", "timestamp_ms"):
        # compared in their own unit, because not all of them are microseconds; an infinite date has no year
        first, after = (f"CAST({_sql_day(day)} AS {kind})" for day in (_BEFORE + 1, _AFTER))
        day = f"CAST(TRY_CAST({column} AS TIMESTAMP) AS DATE)" if kind != "date" else column
        early = f"WHEN {column} < {first} THEN {_sql_day(_BEFORE)}"
        return f"CASE {early} WHEN {column} >= {after} THEN {_sql_day(_AFTER)} ELSE {day} END"
    unit = "ns" if kind.endswith("_ns") else "us"
    # infinity is the largest number of steps, as Arrow holds it; it has no number in DuckDB
    far = f"CASE WHEN {column} > TIMESTAMP '2000-01-01' THEN {_LARGEST} WHEN {column} IS NOT NULL THEN -{_LARGEST} END"
    return duckdb_day(f"coalesce(epoch_{unit}({column}), {far})", unit)


def duckdb_day(steps: str, unit: str) -> str:
    """Return SQL for the date that lies so many steps after 1970 began."""
    many = _DAY_SECONDS * _STEPS[unit]
    days = f"({steps} // {many} - CASE WHEN {steps} % {many} < 0 THEN 1 ELSE 0 END)"
    far = f"WHEN {days} < {_BEFORE} THEN {_BEFORE} WHEN {days} > {_AFTER} THEN {_AFTER}"
    return f"DATE '1970-01-01' + CAST(CASE {far} ELSE {days} END AS INTEGER)"


def _sql_day(days: int) -> str:
    return f"(DATE '1970-01-01' + {days})"


def _sql_date(text: str, precision: str) -> str:
    def group(number: int) -> str:
        return f"regexp_extract({text}, '{_SHIFT}$', {number})"

    def whole(part: str) -> str:
        return f"coalesce(TRY_CAST({part} AS INTEGER), 0)"

    minutes = f"({whole(f'substr({text}, 12, 2)')} * 60 + {whole(f'substr({text}, 15, 2)')})"
    rest = whole(f"regexp_extract({text}, '{_SECONDS}', 1)")
    seconds = f"({minutes} * 60 + {rest})"
    offset = f"(({whole(group(2))} * 60 + {whole(group(3))}) * 60 + {whole(group(4))})"
    utc = f"({seconds} - CASE WHEN {group(1)} = '-' THEN -{offset} ELSE {offset} END)"
    shift = f"CASE WHEN {utc} < 0 THEN -1 WHEN {utc} >= {_DAY_SECONDS} THEN 1 ELSE 0 END"
    cases = [f"WHEN starts_with({text}, '0000') THEN NULL"]
    cases += [f"WHEN regexp_matches({text}, '{FORMS['day']}$') THEN TRY_CAST(substr({text}, 1, 10) AS DATE) + {shift}"]
    for form, ending in _shorter(precision):
        cases.append(f"WHEN regexp_matches({text}, '{FORMS[form]}$') THEN TRY_CAST({text} || '{ending}' AS DATE)")
    return f"CASE {' '.join(cases)} END"


def _shorter(precision: str) -> list[tuple[str, str]]:
    """Return the shorter forms that are read, and what makes days of them."""
    return {"day": [], "month": [("month", "-01")], "year": [("month", "-01"), ("year", "-01-01")]}[precision]


def polars_date(column: str, kind: Any, precision: str) -> Any:
    """Return the UTC date of a column of this type."""
    import polars as pl

    cell = pl.col(column)
    if kind == pl.Date or isinstance(kind, pl.Datetime):
        days = cell.to_physical().cast(pl.Int64)
        if isinstance(kind, pl.Datetime):
            days = days // (_DAY_SECONDS * _STEPS[kind.time_unit])
        return days.clip(_BEFORE, _AFTER).cast(pl.Int32).cast(pl.Date)
    text = cell.cast(pl.String)
    sign, hours, rest, last = (text.str.extract(f"{_SHIFT}$", number) for number in (1, 2, 3, 4))

    def whole(part: Any) -> Any:
        return part.cast(pl.Int64, strict=False).fill_null(0)

    minutes = whole(text.str.slice(11, 2)) * 60 + whole(text.str.slice(14, 2))
    seconds = minutes * 60 + whole(text.str.extract(_SECONDS, 1))
    offset = (whole(hours) * 60 + whole(rest)) * 60 + whole(last)
    utc = seconds - pl.when(sign == "-").then(-offset).otherwise(offset)
    shift = pl.when(utc < 0).then(-1).when(utc >= _DAY_SECONDS).then(1).otherwise(0)
    day = text.str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False) + pl.duration(days=shift)
    found = pl.when(text.str.starts_with("0000")).then(None).when(text.str.contains(f"{FORMS['day']}$")).then(day)
    for form, ending in _shorter(precision):
        first = (text + ending).str.to_date("%Y-%m-%d", strict=False)
        found = found.when(text.str.contains(f"{FORMS[form]}$")).then(first)
    return found.otherwise(None)


def spark_date(column: str, kind: str, precision: str) -> Any:
    """Return the UTC date of a column of this type."""
    from pyspark.sql import functions as f

    cell = f.col(column)
    if kind in ("date", "timestamp_ntz"):
        return cell.cast("date")
    if kind == "timestamp":
        steps, many = f"unix_micros({column})", f"{_DAY_SECONDS * _STEPS['us']}L"
        return f.expr(f"date_add(DATE'1970-01-01', CAST({steps} div {many} - IF({steps} % {many} < 0, 1, 0) AS INT))")
    text = cell.cast("string")
    sign, hours, rest, last = (f.regexp_extract(text, rf"{_SHIFT}\z", number) for number in (1, 2, 3, 4))

    def whole(part: Any) -> Any:
        return f.coalesce(part.try_cast("int"), f.lit(0))

    minutes = whole(f.substring(text, 12, 2)) * 60 + whole(f.substring(text, 15, 2))
    seconds = minutes * 60 + whole(f.regexp_extract(text, _SECONDS, 1))
    offset = (whole(hours) * 60 + whole(rest)) * 60 + whole(last)
    utc = seconds - f.when(sign == "-", -offset).otherwise(offset)
    shift = f.when(utc < 0, -1).when(utc >= _DAY_SECONDS, 1).otherwise(0)
    day = f.date_add(f.substring(text, 1, 10).try_cast("date"), shift)
    # in Java, $ would also match before a line break at the end
    found = f.when(text.startswith("0000"), None).when(text.rlike(rf"{FORMS['day']}\z"), day)
    for form, ending in _shorter(precision):
        first = f.concat(text, f.lit(ending)).try_cast("date")
        found = found.when(text.rlike(rf"{FORMS[form]}\z"), first)
    return found

"""The UTC day that a cell is, found by the engine, on every engine alike.

A date is itself. A timestamp is the day that it lies in; one with a time zone is an instant, and its day is that of
UTC. A text is read if it is written as ISO 8601 has it: `2024-05-01`, optionally with a time (`2024-05-01T23:30`,
`2024-05-01 23:30:00.5`) and then optionally with an offset (`Z`, `+02:00`, `-0530`, `+02`), by which it becomes UTC.
Where days are gathered into months or quarters, `2024-05` is read as well, and into years, `2024`. Anything else has
no date.
"""

from __future__ import annotations

from typing import Any, Final

_31: Final = "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
_30: Final = "(0[469]|11)-(0[1-9]|[12][0-9]|30)"
_28: Final = "02-(0[1-9]|1[0-9]|2[0-8])"
_LEAP: Final = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29"
_DAY: Final = f"([0-9]{{4}}-({_31}|{_30}|{_28})|{_LEAP})"
_OFFSET: Final = "(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)"
_TIME: Final = rf"[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{{1,9}})?)?{_OFFSET}?"
FORMS: Final = {
    "day": f"^{_DAY}({_TIME})?",
    "month": "^[0-9]{4}-(0[1-9]|1[0-2])",
    "year": "^[0-9]{4}",
}
SHIFT: Final = r":[0-9.:]*([+-])([0-9]{2}):?([0-9]{2})?"  # the offset of a text that has one


def duckdb_date(column: str, kind: str, precision: str) -> str:
    """Return SQL for the UTC date of a column of this type."""
    if kind in ("varchar", "enum"):
        return _sql_date(f"(CAST({column} AS VARCHAR) COLLATE C)", precision)
    day = f"CAST({column} AS DATE)"
    if kind == "timestamp with time zone":
        day = f"CAST(make_timestamp(epoch_us({column})) AS DATE)"  # whatever zone the connection has
    return f"CASE WHEN isfinite({column}) THEN {day} END"


def _sql_date(text: str, precision: str) -> str:
    def group(number: int) -> str:
        return f"regexp_extract({text}, '{SHIFT}$', {number})"

    def whole(part: str) -> str:
        return f"coalesce(TRY_CAST({part} AS INTEGER), 0)"

    minutes = f"({whole(f'substr({text}, 12, 2)')} * 60 + {whole(f'substr({text}, 15, 2)')})"
    offset = f"({whole(group(2))} * 60 + {whole(group(3))})"
    utc = f"({minutes} - CASE WHEN {group(1)} = '-' THEN -{offset} ELSE {offset} END)"
    shift = f"CASE WHEN {utc} < 0 THEN -1 WHEN {utc} >= 1440 THEN 1 ELSE 0 END"
    cases = [f"WHEN starts_with({text}, '0000') THEN NULL"]
    cases += [f"WHEN regexp_matches({text}, '{FORMS['day']}$') THEN TRY_CAST(substr({text}, 1, 10) AS DATE) + {shift}"]
    for form, rest in _shorter(precision):
        cases.append(f"WHEN regexp_matches({text}, '{FORMS[form]}$') THEN TRY_CAST({text} || '{rest}' AS DATE)")
    return f"CASE {' '.join(cases)} END"


def _shorter(precision: str) -> list[tuple[str, str]]:
    """Return the shorter forms that are read, and what makes days of them."""
    return {"day": [], "month": [("month", "-01")], "year": [("month", "-01"), ("year", "-01-01")]}[precision]


def polars_date(column: str, kind: Any, precision: str) -> Any:
    """Return the UTC date of a column of this type."""
    import polars as pl

    cell = pl.col(column)
    if kind == pl.Date:
        return cell
    if isinstance(kind, pl.Datetime):
        return (cell if kind.time_zone is None else cell.dt.convert_time_zone("UTC")).dt.date()
    text = cell.cast(pl.String)
    sign, hours, rest = (text.str.extract(f"{SHIFT}$", number) for number in (1, 2, 3))

    def whole(part: Any) -> Any:
        return part.cast(pl.Int64, strict=False).fill_null(0)

    minutes = whole(text.str.slice(11, 2)) * 60 + whole(text.str.slice(14, 2))
    offset = whole(hours) * 60 + whole(rest)
    utc = minutes - pl.when(sign == "-").then(-offset).otherwise(offset)
    shift = pl.when(utc < 0).then(-1).when(utc >= 1440).then(1).otherwise(0)
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
        days = f.floor(f.unix_micros(cell) / f.lit(86_400_000_000)).cast("int")
        return f.date_add(f.lit("1970-01-01").cast("date"), days)
    text = cell.cast("string")
    sign, hours, rest = (f.regexp_extract(text, rf"{SHIFT}\z", number) for number in (1, 2, 3))

    def whole(part: Any) -> Any:
        return f.coalesce(part.try_cast("int"), f.lit(0))

    minutes = whole(f.substring(text, 12, 2)) * 60 + whole(f.substring(text, 15, 2))
    offset = whole(hours) * 60 + whole(rest)
    utc = minutes - f.when(sign == "-", -offset).otherwise(offset)
    shift = f.when(utc < 0, -1).when(utc >= 1440, 1).otherwise(0)
    day = f.date_add(f.substring(text, 1, 10).try_cast("date"), shift)
    # in Java, $ would also match before a line break at the end
    found = f.when(text.startswith("0000"), None).when(text.rlike(rf"{FORMS['day']}\z"), day)
    for form, ending in _shorter(precision):
        first = f.concat(text, f.lit(ending)).try_cast("date")
        found = found.when(text.rlike(rf"{FORMS[form]}\z"), first)
    return found

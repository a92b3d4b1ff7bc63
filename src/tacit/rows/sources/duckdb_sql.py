"""DuckDB's SQL for what cells mean: numbers and dates that texts spell, lists of items, and the names of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tacit.rows.cells.dates import AFTER, BEFORE, DAY_SECONDS, FORMS, SECONDS, SHIFT, STEPS, shorter_forms
from tacit.rows.cells.dialect import Dialect
from tacit.rows.cells.readings import NUMBER
from tacit.rows.sources.engine import NAMES, PERSON

_LARGEST: Final = 2**63 - 1
_WIDEST: Final = 10**38 - 1  # the widest number of Arrow's
_AS_TEXTS: Final = ("hugeint", "uhugeint", "bit", "time with time zone", "enum", "variant", "union")


def quoted(text: str) -> str:
    """Return a text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def quoted_name(text: str) -> str:
    """Return the name of a column as SQL, whatever is in it."""
    return '"' + text.replace('"', '""') + '"'


def exact(expression: str, kind: Any) -> str:
    """Return an expression of this type whose texts are compared sign by sign. Cells of no type are missing texts.

    A collation, of a column or of the whole connection, would make one of texts that differ in case or accents, and
    which of them stands for all would be one person's doing. It clings to every expression that is made of this one.
    """
    return f"(CAST({expression} AS VARCHAR) COLLATE C)" if kind.id in ("varchar", "enum", "null") else expression


def held(column: str, kind: Any, role: str) -> str:
    """Return SQL for cells of this type that Arrow and DuckDB hold alike, each cell in its own way.

    Persons and names that Arrow would change are texts; other numbers beyond its widest are the widest, which lies
    outside of every domain.
    """
    if kind.id == "list":
        element = held("x", dict(kind.children)["child"], role)
        return column if element == "x" else f"[{element} for x in {column}]"
    if kind.id in ("hugeint", "uhugeint") and role not in (PERSON, NAMES):
        return (
            f"CAST(greatest(least({column}, {_WIDEST}), {-_WIDEST if kind.id == 'hugeint' else 0}) AS DECIMAL(38, 0))"
        )
    return f"CAST({column} AS VARCHAR)" if kind.id in _AS_TEXTS else column


def _date(column: str, kind: str, precision: str) -> str:
    """Return SQL for the UTC date of a column of this type."""
    if kind in ("varchar", "enum"):
        return _sql_date(f"(CAST({column} AS VARCHAR) COLLATE C)", precision)
    if kind in ("date", "timestamp_s", "timestamp_ms"):
        # compared in their own unit, because not all of them are microseconds; an infinite date has no year
        first, after = (f"CAST({_sql_day(day)} AS {kind})" for day in (BEFORE + 1, AFTER))
        day = f"CAST(TRY_CAST({column} AS TIMESTAMP) AS DATE)" if kind != "date" else column
        early = f"WHEN {column} < {first} THEN {_sql_day(BEFORE)}"
        return f"CASE {early} WHEN {column} >= {after} THEN {_sql_day(AFTER)} ELSE {day} END"
    unit = "ns" if kind.endswith("_ns") else "us"
    # infinity is the largest number of steps, as Arrow holds it; it has no number in DuckDB
    far = f"CASE WHEN {column} > TIMESTAMP '2000-01-01' THEN {_LARGEST} WHEN {column} IS NOT NULL THEN -{_LARGEST} END"
    return duckdb_day(f"coalesce(epoch_{unit}({column}), {far})", unit)


def duckdb_day(steps: str, unit: str) -> str:
    """Return SQL for the date that lies so many steps after 1970 began."""
    many = DAY_SECONDS * STEPS[unit]
    days = f"({steps} // {many} - CASE WHEN {steps} % {many} < 0 THEN 1 ELSE 0 END)"
    far = f"WHEN {days} < {BEFORE} THEN {BEFORE} WHEN {days} > {AFTER} THEN {AFTER}"
    return f"DATE '1970-01-01' + CAST(CASE {far} ELSE {days} END AS INTEGER)"


def _sql_day(days: int) -> str:
    return f"(DATE '1970-01-01' + {days})"


def _sql_date(text: str, precision: str) -> str:
    def group(number: int) -> str:
        return f"regexp_extract({text}, '{SHIFT}$', {number})"

    def whole(part: str) -> str:
        return f"coalesce(TRY_CAST({part} AS INTEGER), 0)"

    minutes = f"({whole(f'substr({text}, 12, 2)')} * 60 + {whole(f'substr({text}, 15, 2)')})"
    rest = whole(f"regexp_extract({text}, '{SECONDS}', 1)")
    seconds = f"({minutes} * 60 + {rest})"
    offset = f"(({whole(group(2))} * 60 + {whole(group(3))}) * 60 + {whole(group(4))})"
    utc = f"({seconds} - CASE WHEN {group(1)} = '-' THEN -{offset} ELSE {offset} END)"
    shift = f"CASE WHEN {utc} < 0 THEN -1 WHEN {utc} >= {DAY_SECONDS} THEN 1 ELSE 0 END"
    cases = [f"WHEN starts_with({text}, '0000') THEN NULL"]
    cases += [f"WHEN regexp_matches({text}, '{FORMS['day']}$') THEN TRY_CAST(substr({text}, 1, 10) AS DATE) + {shift}"]
    for form, ending in shorter_forms(precision):
        cases.append(f"WHEN regexp_matches({text}, '{FORMS[form]}$') THEN TRY_CAST({text} || '{ending}' AS DATE)")
    return f"CASE {' '.join(cases)} END"


class _DuckDBDialect(Dialect):
    """Expressions are SQL texts."""

    def kinds(self, native: Any) -> Mapping[str, Any]:
        return dict(zip(native.columns, native.types, strict=True))

    def added(self, native: Any, expressions: Mapping[str, Any]) -> Any:
        there = [f"{made} AS {name}" for name, made in expressions.items() if name in native.columns]
        new = [f", {made} AS {name}" for name, made in expressions.items() if name not in native.columns]
        replaced = f" REPLACE ({', '.join(there)})" if there else ""
        return native.project(f"*{replaced}{''.join(new)}")

    def text(self, name: str) -> str:
        return f"CAST({name} AS VARCHAR)"

    def number(self, text: str) -> str:
        text = f"({text} COLLATE C)"
        return (
            f"CASE WHEN lower({text}) = 'true' THEN 1::DOUBLE WHEN lower({text}) = 'false' THEN 0::DOUBLE "
            f"WHEN regexp_matches({text}, {quoted(NUMBER)}) THEN TRY_CAST(trim({text}) AS DOUBLE) END"
        )

    def date(self, name: str, kind: Any, precision: str) -> str:
        return _date(name, kind.id, precision)

    def hashed(self, name: str, kind: Any) -> str:
        return f"CAST('0x' || substr(sha256({self.text(name)}), 1, 13) AS BIGINT)"

    def native_unrolled(self, native: Any, column: str, place: str) -> Any:
        element = exact(f"unnest({column})", dict(self.kinds(native)[column].children)["child"])
        return native.project(f"* REPLACE ({element} AS {column}), unnest(range(len({column}))) AS {place}")


DUCKDB: Final = _DuckDBDialect()

"""DuckDB's SQL for what cells mean: numbers and dates that texts spell, lists of items, and the names of columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import narwhals as nw

from tacit.rows.cells.dates import AFTER, BEFORE, DAY_SECONDS, FORMS, SECONDS, SHIFT, STEPS, shorter_forms
from tacit.rows.cells.dialect import Dialect
from tacit.rows.cells.item_lists import Key
from tacit.rows.cells.readings import NOT_PLAIN, NUMBER

_LARGEST: Final = 2**63 - 1


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

    def column(self, name: str) -> str:
        return name

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

    def stacked(self, frame: Any, kept: Sequence[str], columns: Sequence[str], name: str) -> Any:
        # SQL of our own: narwhals asks DuckDB's default connection, which knows other tables
        found = nw.to_native(frame).project(", ".join([*kept, f"unnest([{', '.join(columns)}]) AS {name}"]))
        return nw.from_native(found).lazy()

    def of_texts(self, column: str) -> str:
        return f"CAST({column} AS VARCHAR[])"

    def mapped(self, column: str, made: Callable[[Any], Any]) -> str:
        return f"[{made('x')} for x in {column}]"

    def kept(self, column: str, condition: Callable[[Any], Any]) -> str:
        # an element counts where it occurs first
        return f"[x for x, i in {column} if {condition('x')} AND list_position({column}, x) = i]"

    def once(self, column: str) -> str:
        return f"list_distinct({column})"

    def first(self, column: str, many: int) -> str:
        return f"list_slice({column}, 1, {many})"

    def among(self, element: str, values: list[Any]) -> str:
        if values and isinstance(values[0], str):  # sign by sign, whatever the collation of the connection
            element = f"({element} COLLATE C)"
        return f"coalesce({element} IN ({', '.join(map(_sql, values))}), false)" if values else "false"

    def between(self, element: str, low: int, high: int, *, fractions: bool, truths: bool) -> str:
        number = f"CAST({element} AS INTEGER)" if truths else element
        inside = f"{number} >= {low} AND {number} <= {high}"
        # of a number that is no number and of infinity nothing is below the upper end
        return (
            f"coalesce({inside} AND floor({number}) = {number}, false)" if fractions else f"coalesce({inside}, false)"
        )

    def chosen(self, cases: list[tuple[Any, Any]], otherwise: str) -> str:
        return f"CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in cases)} ELSE {otherwise} END"

    def looked_up(self, number: str, table: dict[float, str]) -> str:
        return f"CASE {number} {' '.join(f'WHEN {_sql(value)} THEN {_sql(key)}' for value, key in table.items())} END"

    def constant(self, text: str) -> str:
        return _sql(text)

    def is_plain(self, text: str) -> str:
        return f"NOT regexp_matches({text}, {_sql(NOT_PLAIN)})"

    def both(self, one: str, other: str) -> str:
        return f"({one} AND {other})"

    def has(self, column: str, key: Key) -> str:
        return f"coalesce(list_contains({column}, {_sql(key)}), false)"


def _sql(value: Key) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if math.isfinite(value) else f"'{value}'::DOUBLE"


DUCKDB: Final = _DuckDBDialect()

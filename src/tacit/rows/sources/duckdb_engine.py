"""DuckDB: what cells mean in its SQL, relations of the user, Ibis tables, and the embedded one that reads files."""

from __future__ import annotations

import atexit
import contextlib
import copy
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import duckdb
import narwhals as nw
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused
from tacit.rows.cells.number_cells import AFTER, BEFORE, DAY_SECONDS, FORMS, SECONDS, SHIFT, STEPS, shorter_forms
from tacit.rows.cells.readings import NUMBER, DataColumn, Dialect
from tacit.rows.counts.batches import BATCH, Piece, of_reader
from tacit.rows.files.identity import identities
from tacit.rows.files.planned_files import files_of_relation, reads_arrow
from tacit.rows.files.written import DateForm
from tacit.rows.guard import blind, closed
from tacit.rows.sources.engine import (
    NAMES,
    PERSON,
    Engine,
    MakeFrame,
    cancelled,
    no_warnings,
    role_of,
    schema_of,
    unreadable,
)
from tacit.rows.sources.frames import as_arrow, as_pandas
from tacit.rows.spill import private_folder

_LARGEST: Final = 2**63 - 1
WIDEST: Final = 10**38 - 1  # the widest number of Arrow's
_HUGE: Final = (NAMES, pa.decimal256(39, 0))
_NUMBERS: Final = {"boolean": ("", pa.bool_()), "hugeint": _HUGE, "uhugeint": _HUGE}  # the role to read as, and type
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
    outside of every domain. True and false are 1 and 0: a connection may hand them out as a type of its own.
    """
    if kind.id == "list":
        element = held("x", dict(kind.children)["child"], role)
        return column if element == "x" else f"[{element} for x in {column}]"
    if kind.id == "boolean" and not role:
        return f"CAST({column} AS TINYINT)"
    if kind.id in ("hugeint", "uhugeint") and role not in (PERSON, NAMES):
        return f"CAST(greatest(least({column}, {WIDEST}), {-WIDEST if kind.id == 'hugeint' else 0}) AS DECIMAL(38, 0))"
    return f"CAST({column} AS VARCHAR)" if kind.id in _AS_TEXTS else column


def _moment(column: str, kind: str, precision: str) -> str:
    """Return SQL for the UTC date of a column of this type, or for its second."""
    timed = precision == "second"
    if kind in ("varchar", "enum"):
        return _sql_moment(f"(CAST({column} AS VARCHAR) COLLATE C)", precision)
    if kind in ("date", "timestamp_s", "timestamp_ms"):
        # compared in their own unit, because not all of them are microseconds; an infinite date has no year
        first, after = (f"CAST({_sql_day(day)} AS {kind})" for day in (BEFORE + 1, AFTER))
        day = f"CAST(TRY_CAST({column} AS TIMESTAMP) AS DATE)" if kind != "date" else column
        if timed:
            day = duckdb_second(f"epoch_us(TRY_CAST({column} AS TIMESTAMP))", "us")
        early, late = (str(end * DAY_SECONDS) if timed else _sql_day(end) for end in (BEFORE, AFTER))
        return f"CASE WHEN {column} < {first} THEN {early} WHEN {column} >= {after} THEN {late} ELSE {day} END"
    unit = "ns" if kind.endswith("_ns") else "us"
    # infinity is the largest number of steps, as Arrow holds it; it has no number in DuckDB
    far = f"CASE WHEN {column} > TIMESTAMP '2000-01-01' THEN {_LARGEST} WHEN {column} IS NOT NULL THEN -{_LARGEST} END"
    steps = f"coalesce(epoch_{unit}({column}), {far})"
    if timed:
        return duckdb_second(steps, unit)
    return f"DATE '1970-01-01' + CAST({_floored(steps, DAY_SECONDS * STEPS[unit], 1)} AS INTEGER)"


def duckdb_second(steps: str, unit: str) -> str:
    """Return SQL for the second that lies so many steps after 1970 began; any out of all ranges is just out."""
    return _floored(steps, STEPS[unit], DAY_SECONDS)


def _floored(steps: str, many: int, per_day: int) -> str:
    """Return SQL for steps divided by so many, rounded down; before and after all days, the nearest is as good."""
    whole = f"({steps} // {many} - CASE WHEN {steps} % {many} < 0 THEN 1 ELSE 0 END)"
    early, late = BEFORE * per_day, AFTER * per_day
    return f"CASE WHEN {whole} < {early} THEN {early} WHEN {whole} > {late} THEN {late} ELSE {whole} END"


def _sql_day(days: int) -> str:
    return f"(DATE '1970-01-01' + {days})"


def _sql_moment(text: str, precision: str) -> str:
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
    day = f"TRY_CAST(substr({text}, 1, 10) AS DATE)"
    found = f"({day} - DATE '1970-01-01') * {DAY_SECONDS} + {utc}" if precision == "second" else f"{day} + {shift}"
    cases = [f"WHEN starts_with({text}, '0000') THEN NULL"]
    cases += [f"WHEN regexp_matches({text}, '{FORMS['day']}$') THEN {found}"]
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

    def swapped(self, text: str) -> str:
        return f"translate({text}, '.,', ',.')"

    def iso(self, text: str, form: DateForm) -> str:
        def part(group: int) -> str:
            return f"regexp_extract({text}, '^{form.pattern}$', {group})"

        day = " || '-' || ".join([part(form.year), *(f"lpad({part(one)}, 2, '0')" for one in (form.month, form.day))])
        return f"CASE WHEN regexp_matches({text}, '^{form.pattern}$') THEN {day} || {part(4)} ELSE {text} END"

    def date(self, name: str, kind: Any, precision: str) -> str:
        return _moment(name, kind.id, precision)

    def hashed(self, name: str, kind: Any) -> str:
        return f"CAST('0x' || substr(sha256({self.text(name)}), 1, 13) AS BIGINT)"

    def native_unrolled(self, native: Any, column: str, place: str) -> Any:
        element = exact(f"unnest({column})", dict(self.kinds(native)[column].children)["child"])
        return native.project(f"* REPLACE ({element} AS {column}), unnest(range(len({column}))) AS {place}")


DUCKDB: Final = _DuckDBDialect()


# to narwhals
_UNKNOWN: Final = {
    "null": DataColumn("text"),
    "timestamptz_ns": DataColumn("time", zoned=True),
    "time_ns": DataColumn("other", clock=True),
}


class DuckDBEngine(Engine):
    """A DuckDB relation: the user's own, or one that we make over files and buffers."""

    dialect = DUCKDB

    def __init__(self, kind: str, relation: Any) -> None:
        self.kind = kind
        self.base_relation = relation
        self._found: Any = None

    def schema(self) -> dict[str, DataColumn]:
        self._found = self._columns()
        found = schema_of(self.base_relation)
        kinds = zip(self.base_relation.columns, self.base_relation.types, strict=True)
        return found | {name: _UNKNOWN[kind.id] for name, kind in kinds if kind.id in _UNKNOWN}

    def names(self) -> list[str]:
        return list(self.base_relation.columns)

    def unchanged(self) -> bool:
        """Bind the relation again, and look at the files that its plan reads: those may be read by position."""
        with contextlib.suppress(duckdb.ProgrammingError):  # it cannot be bound any more: a table or column is gone
            return bool(self._found == self._columns())
        return False

    def _columns(self) -> Any:
        fresh = self.base_relation.project("*")
        return (
            list(fresh.columns),
            [str(kind) for kind in fresh.types],
            identities(files_of_relation(self.base_relation)),
        )

    def relation(self, columns: Mapping[str, str]) -> Any:
        """Return a relation that has these raw columns."""
        types = dict(zip(self.base_relation.columns, self.base_relation.types, strict=True))
        chosen = (f"{exact(quoted_name(raw), types[raw])} AS {new}" for new, raw in columns.items())
        return self.base_relation.project(", ".join(chosen) or "1 AS one")

    def try_column(self, raw: str) -> None:
        """Read a column once if it may hold moments of Arrow's that are not microseconds: DuckDB fails on far ones.

        Its own type does not tell of which unit they were, and a cast of the user's fails in the same way, so nothing
        is said of the reason. Our own relations have none of them.
        """
        if self.connection is not None:
            return
        kinds = dict(zip(self.base_relation.columns, self.base_relation.types, strict=True))
        if raw in kinds and kinds[raw].id == "timestamp with time zone" and reads_arrow(self.base_relation):
            with self.quiet():
                self.base_relation.aggregate(f"count({quoted_name(raw)})").fetchall()

    def select(self, columns: Mapping[str, str]) -> Any:
        """Select columns under new names."""
        return self.relation(columns)

    @property
    def frame(self) -> MakeFrame:
        """Make a relation, or a pandas frame when the rows came from files."""
        return as_pandas if self.is_file else _as_relation

    @contextlib.contextmanager
    def quiet(self, *cancel: Callable[[], object]) -> Iterator[None]:
        """Keep quiet, and end at once when interrupted."""
        ours = () if self.connection is None else (self.connection.interrupt,)
        with no_warnings(), cancelled(*ours, *cancel):
            yield

    def pieces(self, columns: Mapping[str, str]) -> list[Piece]:
        """Stream the columns, as Arrow holds them."""
        relation = self._held(columns)
        return of_reader(lambda: relation.to_arrow_reader(BATCH))

    def _held(self, columns: Mapping[str, str]) -> Any:
        relation = self.relation(columns)
        kinds = zip(relation.columns, relation.types, strict=True)
        return relation.project(", ".join(f"{held(name, kind, role_of(name))} AS {name}" for name, kind in kinds))

    def collected(self, frame: Any) -> pa.Table:
        """Work out a lazy frame; how the connection hands out its types changes nothing. Huge numbers are exact."""
        relation = nw.to_native(frame)
        named = zip(relation.columns, relation.types, strict=True)
        kinds = {name: kind for name, kind in named if kind.id in _NUMBERS}
        cells = [
            f"{held(quoted_name(name), kind, _NUMBERS[kind.id][0])} AS {quoted_name(name)}"
            for name, kind in kinds.items()
        ]
        table = (relation.project(f"* REPLACE ({', '.join(cells)})") if cells else relation).to_arrow_table()
        for name, kind in kinds.items():
            place = table.column_names.index(name)
            table = table.set_column(place, name, table.column(place).cast(_NUMBERS[kind.id][1]))
        return table

    def emptied(self) -> Engine:
        """Limit the relation to no row, which reads none."""
        other = copy.copy(self)
        other.base_relation = self.base_relation.limit(0)
        return other

    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        return self._held(columns).limit(0).to_arrow_table()

    def type_of(self, raw: str) -> str:
        return str(self.relation({"c": raw}).types[0])


_numbers: Final = itertools.count()
_shared: Final[list[duckdb.DuckDBPyConnection]] = []  # the DuckDB of this process, once it is there


def embedded() -> duckdb.DuckDBPyConnection:
    """Return a DuckDB of its own in this process: it fetches nothing, shows nothing, spills into a private folder."""
    return blind(_started, "starting DuckDB")


def _started() -> duckdb.DuckDBPyConnection:
    # no extension is fetched from the network
    settings: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    connection = _without_a_bar(duckdb.connect(":memory:", config=settings))
    spill = ""  # to DuckDB: nowhere, as where nothing can be written
    with contextlib.suppress(OSError):
        spill = str(private_folder(os.getpid()) / str(next(_numbers)))
    connection.execute(f"SET temp_directory = {quoted(spill)}")  # made when needed, removed with the connection
    return connection


def _without_a_bar(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Draw no bar over the user's terminal. In a notebook without ipywidgets it is off, and DuckDB refuses the word."""
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        connection.execute("SET enable_progress_bar = false")
    return connection


def shared_embedded() -> duckdb.DuckDBPyConnection:
    """Return a connection of its own to one DuckDB for the whole process, for rows that are in memory already.

    It takes longer to start a DuckDB than to count a small table. Tables and interrupts belong to a connection; limits
    of memory and what is kept of files belong to a DuckDB, so whoever needs these takes one of its own.
    """
    for known in _shared:
        with contextlib.suppress(duckdb.Error):  # one that has failed for good, and would refuse all that come after
            return _beside(known)
    started = embedded()
    _shared[:] = [started]
    return blind(lambda: _beside(started), "starting DuckDB")


def looker_of(engine: Engine) -> duckdb.DuckDBPyConnection:
    """Return a connection beside that of an engine, or one to the DuckDB of this process: one is never the user's."""
    return shared_embedded() if engine.connection is None else engine.connection.cursor()


def _beside(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    return _without_a_bar(connection.cursor())


atexit.register(_shared.clear)  # before what it needs is taken apart
if hasattr(os, "register_at_fork"):
    # a child has none of the threads of a DuckDB, and would wait for them at its end
    os.register_at_fork(before=_shared.clear)


def _as_relation(columns: Mapping[str, Sequence[Any]]) -> Any:
    return duckdb.from_arrow(as_arrow(columns))


def ibis_engine(source: Any) -> Engine:
    """Return the engine of an Ibis table: the DuckDB that it lives in.

    How other backends compare texts is up to their collations, which Ibis cannot ask for.
    """
    backend = source.get_backend()
    if backend.name != "duckdb":
        raise DataRefused(
            f"an Ibis table must live in DuckDB, and this one lives in {backend.name}, "
            "which may take texts that differ for the same",
            fix="Give table.to_pyarrow(), or open it in its own engine: a polars or Spark frame.",
        )
    return closed(lambda: IbisEngine(source, backend), unreadable())  # Arrow may fail on a cell of a table in memory


class IbisEngine(DuckDBEngine):
    """An Ibis table, as the relation that it stands for."""

    def __init__(self, source: Any, backend: Any) -> None:
        backend._run_pre_execute_hooks(source)  # names the tables in memory
        super().__init__("ibis", backend.con.sql(backend.compile(source)))
        self._source = source  # tables in memory live as long as it does

    def names(self) -> list[str]:
        """Return the names of all columns: DuckDB renames the second of two that differ in case only."""
        return list(self._source.columns)

    @property
    def frame(self) -> MakeFrame:
        """Make an Ibis table in memory."""
        return _as_ibis


def _as_ibis(columns: Mapping[str, Sequence[Any]]) -> Any:
    import ibis

    return ibis.memtable(as_arrow(columns))

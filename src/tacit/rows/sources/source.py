"""A source as it is opened: which engine it lives in, which column is what, and how rows are selected and read.

Guarantee   What is refused when a source is opened depends on the names and types of columns and on what was declared,
            never on a row. Whatever is read from the engine is read here. Rows without an owner are dropped: those
            where the person column is missing or NaN. Once reading has begun, every failure is one fixed sentence
            without cause or context.
Assumes     A source has the same rows each time it is read. That columns and files are still those that were found is
            looked at before anything is charged, and before and after each reading.
Why         A name means one column: one that is read must be there once, and no other may differ from it in case only.
            A missing one is pointed at without a value. Columns are selected under plain names, so that a name of the
            data never meets an expression of ours. No row has a number: lines are put together by the person column
            and by nothing else. What fails by a type is found out with no rows (`rows/counts/dry_run.py`).
Checked by  tests/contract/test_rows_engines.py, tests/contract/test_rows_changed.py, tests/unit/rows/test_rows.py,
            tests/contract/test_wrong_shapes.py, tests/unit/rows/test_rows_canary.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import duckdb
import narwhals as nw
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused, InternalError, Unread, nearest
from tacit.policy.domain import Domain
from tacit.rows.cells.kinds import code_of
from tacit.rows.cells.readings import Code, DataColumn, Helper
from tacit.rows.counts.row_choice import Order, WordLayout
from tacit.rows.files.headers import known_columns
from tacit.rows.files.written import UTF_8, written
from tacit.rows.guard import blind, closed
from tacit.rows.sources.buffers import ArrowEngine, PandasEngine
from tacit.rows.sources.duckdb_engine import DuckDBEngine, ibis_engine
from tacit.rows.sources.engine import PERSON, Engine, unreadable
from tacit.rows.sources.file_engines import NO_ENCODING, files
from tacit.rows.sources.polars_engine import PolarsEngine
from tacit.rows.sources.spark_engine import SparkEngine

_KINDS: Final = "a path, a pandas, polars, Arrow, DuckDB, Spark or Ibis table, one of these in a Written, or ItemCounts"


def engine_for(source: Any, *, lists: frozenset[str], declared: frozenset[str]) -> Engine:
    """Return the engine that a source lives in.

    `lists` names the columns that may hold sets of items, `declared` all columns that the domain speaks of.
    """
    # whatever an object does when it is asked what it is, it may quote what it holds
    told = written(source)
    opened = closed(
        lambda: _engine_for(told.rows, lists, declared, told.encoding),
        InternalError("asking rows what they are", paid=False),
        {Exception: DataRefused(f"rows must be {_KINDS}")},
    )
    engine = blind(opened, "opening rows")
    engine.written = replace(told, rows=None)
    return engine


def _engine_for(source: Any, lists: frozenset[str], declared: frozenset[str], encoding: str) -> Callable[[], Engine]:
    """Return what makes the engine: only a class that is none of these is asked for here, and that is said."""
    if isinstance(source, str | Path) or (isinstance(source, list | tuple) and source):
        listed = source if isinstance(source, list | tuple) else [source]
        if not all(isinstance(path, str | Path) for path in listed):
            raise DataRefused(f"rows must be {_KINDS}", fix="A list may hold paths only.")
        paths = [str(path) for path in listed]
        return lambda: files(paths, declared, encoding)
    if encoding != UTF_8:
        raise DataRefused(NO_ENCODING, fix="Leave it out.")
    source = nw.to_native(source, pass_through=True)  # a narwhals frame stands for what it wraps
    module, name = type(source).__module__.split(".")[0], type(source).__name__
    if isinstance(source, pd.DataFrame):
        return lambda: PandasEngine(source, lists)
    if isinstance(source, pa.Table):
        return lambda: ArrowEngine(source)
    if isinstance(source, duckdb.DuckDBPyRelation):
        return lambda: DuckDBEngine("duckdb", source)
    if module == "polars" and name in ("DataFrame", "LazyFrame"):
        return lambda: PolarsEngine(source)
    if module == "pyspark" and name == "DataFrame" and hasattr(source, "sparkSession"):
        return lambda: SparkEngine(source)
    if module == "ibis" and hasattr(source, "to_pyarrow") and hasattr(source, "schema"):
        return lambda: ibis_engine(source)
    fix = f"A {module} {name} is none of them."
    if module in ("builtins", "numpy", "pandas"):
        fix += " Make a table of it first: pandas.DataFrame(..)."
    raise DataRefused(f"rows must be {_KINDS}", fix=fix)


def columns_of(domain: Domain, item: str | None) -> dict[str, tuple[str, ...]]:
    """Return the data columns that each attribute is read from."""
    return {name: attribute.read_from(name, item) for name, attribute in domain.items()}


class NamedColumns:
    """The columns of a source, found by name. A name means one column, or it is refused."""

    def __init__(self, engine: Engine, declared: frozenset[str]) -> None:
        unlisted = Unread("the columns of the source could not be listed")
        self._names = closed(engine.names, unlisted)
        self._schema = closed(engine.columns, unlisted)
        self._declared = declared
        self._engine = engine
        self._is_file = engine.is_file
        self._found: dict[str, DataColumn] = {}

    def read(self, raw: str) -> DataColumn:
        """Return a column under a plain name."""
        if raw not in self._names:
            fix = _pointer(raw, self._declared, self._names, is_file=self._is_file)
            raise DataRefused("must be a column of the data", column=raw, fix=fix)
        if self._names.count(raw) > 1:
            raise DataRefused("must be there only once", column=raw, fix="Rename the second one.")
        alike = [name for name in self._names if name != raw and name.casefold() == raw.casefold()]
        if alike:
            # some engines would read the other one; of a file without a header, its name would be a value
            other = "another column" if self._is_file and alike[0] not in self._declared else repr(alike[0])
            raise DataRefused(f"must differ from {other} in more than case", column=raw, fix="Rename one of them.")
        if raw not in self._found:
            closed(lambda: self._engine.try_column(raw), unreadable())
        return self._found.setdefault(raw, replace(self._schema[raw], raw=raw, name=f"c{len(self._found)}"))


def check_shared(raw_of: Mapping[str, tuple[str, ...]], moved: frozenset[str] | None) -> None:
    """Refuse two attributes that read one column, if an edge moves one of them: it would move both in every row."""
    readers: dict[str, str] = {}
    for name, columns in raw_of.items():
        for column in columns:
            other = readers.setdefault(column, name)
            if other != name and (moved is None or {name, other} & moved):
                raise DataRefused(
                    f"must not be read as {other!r} and as {name!r} if one of them is secret",
                    column=column,
                    fix="Keep one of the two, or make none of them secret.",
                )


def _pointer(raw: str, declared: frozenset[str], known: list[str], *, is_file: bool) -> str:
    """Return the sentence that helps to find a column; a file without a header has a person's values for names."""
    found = sum(name in known for name in declared)
    if not found:
        return "No declared column was found: is there a header?"
    if not is_file:
        return nearest(raw, sorted(known))
    match = get_close_matches(raw, sorted(known), n=1, cutoff=0.6) if 2 * found >= len(declared) else []
    if match:
        return f"Did you mean {match[0]!r}?"
    return known_columns(known, declared) or "Check the name in the header of the file."


_CHANGED: Final = "the rows must stay as they were when they were opened"
_CHANGED_FIX: Final = "Open a new session, and let nobody write the file or change the table while it lives."


@dataclass(frozen=True, eq=False, repr=False)
class Opened:
    """An engine, and what its columns are: of attributes, of sets of items, whose row it is, which rows come first.

    `codes` say how attributes are read that have one position a row. Of a set of items, `items` is the column and
    `item_codes` says how one item is read, in a list or by itself. `moved` are the attributes that some secret edge
    changes (None: any of them may be secret); they are laid out last.
    """

    engine: Engine
    domain: Domain
    codes: Mapping[str, Code]
    items: Mapping[str, DataColumn]
    item_codes: Mapping[str, Code]
    person: DataColumn | None
    per_person: int
    order: Order | None
    moved: frozenset[str] | None

    @cached_property
    def layout(self) -> WordLayout:
        """How the attributes of a row are laid out on words."""
        return WordLayout(self.domain, self.codes, self.moved)

    @cached_property
    def axes(self) -> dict[str, tuple[str, str]]:
        """The attribute of each axis, by its name, and which part of it the axis is."""
        return {axis.name: (name, axis.part) for name in self.domain for axis in self.domain.axes_of(name)}

    def over(
        self, engine: Engine, codes: Mapping[str, Code], items: Mapping[str, DataColumn], *, owned: bool
    ) -> Opened:
        """Return the same in another engine, with some of the attributes and, if `owned`, with owners."""
        person, order = (self.person, self.order) if owned else (None, None)
        return replace(self, engine=engine, codes=dict(codes), items=dict(items), person=person, order=order)

    # ------------------------------------------------------------------ how it is read

    def check(self) -> None:
        """Refuse rows whose columns are no longer those that were found; looks at no row."""

        def looked_at() -> bool:
            with self.engine.quiet():
                # a plan of the user's may fail on a cell where it is made: even the statistics of a file hold some
                return closed(self.engine.unchanged, Unread("the columns of the rows could not be looked at again"))

        if not blind(looked_at, "looking whether the rows have changed", paid=True):
            raise DataRefused(_CHANGED, fix=_CHANGED_FIX)

    def read(self, build: Callable[[], Any]) -> pa.Table:
        """Let the engine work out a frame, and return what comes of it."""
        with self.engine.quiet():
            return self.engine.collected(build())

    # ------------------------------------------------------------------ what a frame begins with

    def select(self, columns: Iterable[DataColumn], more: Mapping[str, str] | None = None) -> Any:
        """Select columns, and whose row it is ("u"); rows of nobody are left out."""
        wanted = {column.name: column.raw for column in columns} | dict(more or {})
        if self.person is not None:
            wanted[PERSON] = self.person.raw
        frame = nw.from_native(self.engine.select(wanted)).lazy()
        if self.person is None:
            return frame
        frame = frame.filter(~nw.col("u").is_null())
        if self.person.reading == "real":
            frame = frame.filter(~nw.col("u").cast(nw.Float64).is_nan())
        return frame

    def with_numbers(self, frame: Any, columns: Iterable[Helper]) -> Any:
        """Add the helper columns: numbers that texts spell, and dates."""
        return self.engine.dialect.with_readings(frame, columns)


_TIMES: Final = (nw.Time, nw.Duration)


def opened_source(
    source: Any,
    domain: Domain,
    *,
    person: str | None,
    per_person: int,
    order: str | None,
    item: str | None,
    moved: frozenset[str] | None,
) -> tuple[Opened, NamedColumns]:
    """Return what the columns of a source are, and its columns by name; the options are those of `rows.open_rows`."""
    sets = [name for name, attribute in domain.items() if attribute.is_set]
    if item is not None and len(sets) != 1:
        raise DataRefused("item can only be given for a domain with one set of items", fix="Leave it out.")
    if sets and per_person > 1:
        raise DataRefused("per_person must be 1 in a domain with a set of items", fix="Leave it out.")
    if order is not None and person is None:
        raise DataRefused("order needs person", fix="Name the column that says whose row it is.")
    raw_of = columns_of(domain, item)
    declared = frozenset(raw for names in raw_of.values() for raw in names)
    named_here = declared | {name for name in (person, order) if name is not None}
    engine: Engine = engine_for(source, lists=frozenset(raw_of[name][0] for name in sets), declared=named_here)
    named = NamedColumns(engine, declared)

    codes: dict[str, Code] = {}
    items: dict[str, DataColumn] = {}
    item_codes: dict[str, Code] = {}
    for name, attribute in domain.items():
        columns = tuple(named.read(raw) for raw in raw_of[name])
        if not attribute.is_set:
            codes[name] = code_of(attribute, columns)
            continue
        items[name] = columns[0]
        element = columns[0].element or columns[0]
        element = replace(element, raw=columns[0].raw, name=columns[0].name)
        item_codes[name] = code_of(attribute, (element,))
    check_shared(raw_of, moved)
    single = [one for one in items.values() if one.reading != "list"]
    if len(single) > 1:
        raise DataRefused("only one set of items can have one row per item", fix="Use columns of lists.")
    if single and person is None:
        raise DataRefused(
            "has one item per row, so person must be named",
            column=single[0].raw,
            fix="Name the column that says whose row it is, or give a column of lists.",
        )
    owner = None if person is None else named.read(person)
    ordered = None if order is None else named.read(order)
    for given in (owner, ordered):
        if given is not None and given.reading == "list":
            raise DataRefused("must hold one value per row", column=given.raw, fix="Name another column.")
    if owner is not None and owner.reading == "other" and "interval" in engine.type_of(owner.raw).lower():
        raise DataRefused(
            "must not hold intervals, since engines differ in which of them are equal",
            column=owner.raw,
            fix="Name people by whole numbers or texts.",
        )
    first = None if ordered is None else _order(ordered, engine)
    return Opened(engine, domain, codes, items, item_codes, owner, per_person, first, moved), named


def _order(column: DataColumn, engine: Engine) -> Order:
    """Return what rows are ordered by, or refuse a column whose type has no order."""
    if column.reading == "other":
        refusal = DataRefused(
            "must hold numbers, dates or texts, because rows are ordered by it",
            column=column.raw,
            fix="Name another column, or convert it first.",
        )

        def found() -> Any:
            try:
                native = engine.emptied().select({"c": column.raw})
            except duckdb.NotImplementedException:  # a type of Arrow's that DuckDB does not have
                return None
            return nw.from_native(native).lazy().collect_schema()["c"]

        if blind(found, "looking at the type of a column") not in _TIMES:
            raise refusal
    return Order(column, column.raw)

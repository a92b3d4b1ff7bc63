"""A dry run on an empty table, so that types that cannot be counted are refused before any charge.

Guarantee   What is refused here depends on the types of columns and on the engine, never on a row, and names a column
            by the name that was declared for it.
Why         An engine with the same columns and no row is asked for everything that may be asked of rows. What it fails
            on, one attribute alone, the owners or the order tell apart. Types that were found countable are not tried
            again. What fails without any column, or because the machine refuses, is no matter of types.
Checked by  tests/contract/test_rehearsal.py, tests/unit/rows/test_rows_canary.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import duckdb

from tacit.errors import DataRefused, InternalError, safe_cause
from tacit.rows.cells.readings import Code, DataColumn
from tacit.rows.counts.one_pass import OnePass
from tacit.rows.guard import blind
from tacit.rows.sources.engine import Engine
from tacit.rows.sources.source import Opened

if TYPE_CHECKING:
    from tacit.rows.counts.engine_tables import EngineTables

_STAGE: Final = "trying out the types of columns"
_rehearsed: Final[set[Any]] = set()  # the shapes of rows that were found countable


def counter_of(opened: Opened, *, looker: Callable[[], Any] | None = None) -> OnePass | EngineTables:
    """Return what counts these rows."""
    if not opened.engine.counts:
        return OnePass(opened, looker=looker)
    from tacit.rows.counts.engine_tables import EngineTables

    return EngineTables(opened)


def rehearse(opened: Opened, counter: OnePass | EngineTables) -> None:
    """Refuse rows of types that cannot be counted; `counter` counts these rows."""
    shapes = blind(lambda: _shapes(opened), _STAGE)
    place = opened.engine.place
    known = (place, frozenset(shapes), opened.per_person > 1, opened.moved is None)
    if place is not None and known in _rehearsed:
        return
    engine = blind(opened.engine.emptied, _STAGE)
    codes = {name: opened.codes[name] for name in shapes.values() if name in opened.codes}

    def fault(some: Mapping[str, Code], items: Mapping[str, DataColumn], *, owned: bool) -> InternalError | None:
        def work() -> None:
            none = opened.over(engine, some, items, owned=owned)
            with engine.quiet():
                counter_of(none, looker=counter.looker).rehearse()

        return _fault(work)

    if fault(codes, opened.items, owned=True):
        if ours := fault({}, {}, owned=False):
            raise ours
        for name, code in codes.items():
            if fault({name: code}, {}, owned=False):
                raise _wrong_type(opened.engine, code.columns[0])
        if opened.person is not None and fault({}, {}, owned=True):
            raise _wrong_type(opened.engine, opened.person)
        if not fault(codes, {}, owned=True):
            raise _wrong_type(opened.engine, next(iter(opened.items.values())))
        if opened.order is not None:
            raise _wrong_type(opened.engine, opened.order.column)
        raise DataRefused("the engine cannot count rows of these types", fix="Convert the columns first.")
    _rehearsed.add(known)


def _shapes(opened: Opened) -> dict[Any, str]:
    """Return what decides whether columns can be counted, their types and how they are read, and one for each."""
    domain = opened.domain

    def types(*columns: DataColumn) -> tuple[str, ...]:
        return tuple(opened.engine.type_of(column.raw) for column in columns)

    found: dict[Any, str] = {}
    for name, code in opened.codes.items():
        told = tuple((column.comma, column.form) for column in code.columns)
        read = (len(code.keys), len(code.numbers), code.valid is None, len(code.ranges), told)
        found[type(domain[name]), types(*code.columns), read] = name
    for role, column in (("person", opened.person), ("order", None if opened.order is None else opened.order.column)):
        if column is not None:
            found[role, types(column)] = role
    for name, column in opened.items.items():
        bounded = domain[name].at_most is not None
        found[type(domain[name]), types(column), bounded, len(opened.item_codes[name].numbers)] = name
    return found


def _wrong_type(engine: Engine, column: DataColumn) -> DataRefused:
    # no more than the name: a type may list the values of a column
    called = re.match(r"\w+(\([-0-9, ]*\))?", engine.type_of(column.raw))
    return DataRefused(
        f"has a type that cannot be counted here: {called[0] if called else 'unknown'}",
        column=column.raw,
        fix="Convert it first: to whole numbers, decimals of at most 38 digits, or texts.",
    )


def _fault(work: Callable[[], None]) -> InternalError | None:
    """Return how work on rows of which there are none fails, for which their types may be the reason."""

    def tried() -> None:
        try:
            work()
        except (OSError, MemoryError, duckdb.OperationalError) as refused:  # by the machine, whatever the types
            raise InternalError("trying out the engine", safe_cause(refused), paid=False) from None

    try:
        blind(tried, _STAGE)
    except DataRefused:
        return None
    except InternalError as fault:
        if fault.stage != _STAGE:
            raise
        return fault
    return None

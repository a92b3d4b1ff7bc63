"""What a source must have for a domain, by its schema alone: which column is what, or the refusal of what is missing.

Guarantee   What is refused here depends on the names and types of columns and on what was declared, never on a row.
Why         A name means one column: one that is read must be there once, and no other may differ from it in case only
            (`rows/sources/named_columns.py`). What fails by a type is found out with no rows
            (`rows/counts/dry_run.py`).
Checked by  tests/unit/rows/test_rows.py, tests/contract/test_wrong_shapes.py, tests/unit/rows/test_rows_canary.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import duckdb
import narwhals as nw

from tacit.errors import DataRefused
from tacit.policy.domain import Domain
from tacit.rows.cells.item_lists import ListReading, list_reading
from tacit.rows.cells.kinds import code_of
from tacit.rows.cells.readings import Code, DataColumn
from tacit.rows.counts.row_choice import Order
from tacit.rows.guard import blind
from tacit.rows.sources.choice import engine_for
from tacit.rows.sources.engine import Engine
from tacit.rows.sources.named_columns import NamedColumns, check_shared, columns_of
from tacit.rows.sources.opened import Opened

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
    lists: dict[str, tuple[ListReading, Code]] = {}
    for name, attribute in domain.items():
        columns = tuple(named.read(raw) for raw in raw_of[name])
        if not attribute.is_set:
            codes[name] = code_of(attribute, columns)
            continue
        items[name] = columns[0]
        element = columns[0].element or columns[0]
        element = replace(element, raw=columns[0].raw, name=columns[0].name)
        item_codes[name] = code_of(attribute, (element,))
        if columns[0].reading == "list":
            reading = list_reading(attribute, element)
            keys = replace(reading.element or element, raw=element.raw, name=element.name)
            lists[name] = reading, code_of(attribute, (keys,))
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
    first = None if ordered is None else _order(ordered, engine)
    return Opened(engine, domain, codes, items, item_codes, lists, owner, per_person, first, moved), named


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

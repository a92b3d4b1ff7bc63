"""Positions of every row, batch by batch, for what shows records as they are; no batch is kept here.

Guarantee   Work gets the rows that are in the data, each with the position that `rows/cells/readings.py` gives its
            cells, and of columns that name a row and are no attributes the value itself; nothing else of them, and no
            place in a file. With a key it also gets the rows that the domain drops, with the cells that have no
            position marked, and how many rows are none of these. Once reading has begun, every failure is one fixed
            sentence.
Assumes     What work does with a batch depends on that batch alone. What it returns comes in the order of the source,
            so that rows that are sorted already need not be sorted again; whoever keeps it must not keep that order.
            What names a row has a value in every possible data set, so that it may be said that one has none.
Why         Batches come from the engine in pieces that may be read at the same time (`rows/counts/batches.py`). What
            names a row has one spelling, however the source is written (`rows/cells/row_names.py`).
Checked by  tests/contract/test_true_records_engines.py, tests/contract/test_row_names.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tacit.rows.cells.encoder import Codes, Encoder
from tacit.rows.cells.readings import DataColumn
from tacit.rows.cells.row_names import Named, check_days, check_type, missing_key, named, timed_key
from tacit.rows.counts.batches import Batch, Piece, Workers
from tacit.rows.guard import closed
from tacit.rows.sources.duckdb_engine import looker_of
from tacit.rows.sources.engine import NAMES, unreadable
from tacit.rows.sources.source import NamedColumns, Opened


@dataclass(frozen=True)
class AskedColumns:
    """What is looked at: attributes, those of them that must have a value in every row, and columns that name rows.

    `days` are the columns of attributes that name rows by dates, as they are: a moment must name a day.
    """

    names: tuple[str, ...]
    key: frozenset[str]
    naming: Mapping[str, DataColumn]
    days: Mapping[str, DataColumn]


Work = Callable[[Mapping[str, Codes], Mapping[str, Named], int], Any]


def asked_records(opened: Opened, columns: NamedColumns, names: Sequence[str], key: Sequence[str]) -> AskedColumns:
    """Return what is looked at for some attributes and a key, or refuse columns that are not there or hold no names."""
    for name in key:
        if name in opened.codes and opened.codes[name].tells_time:
            raise timed_key(name)
    dropping = (name for name, code in opened.codes.items() if code.valid is not None)
    naming = _named({raw: columns.read(raw) for raw in key if raw not in opened.codes})
    return AskedColumns(tuple(dict.fromkeys([*names, *dropping])), frozenset(key), naming, _days(opened, key))


def _days(opened: Opened, key: Sequence[str]) -> dict[str, DataColumn]:
    """Return the columns that attributes of a key read days from, where their type leaves open what is one."""
    codes = {name: opened.codes[name] for name in key if name in opened.codes}
    dated = {name: one for name, code in codes.items() for one in code.numbers if isinstance(one, DataColumn)}
    return _named({name: one for name, one in dated.items() if one.as_date and one.reading != "date"})


def _named(columns: Mapping[str, DataColumn]) -> dict[str, DataColumn]:
    for name, column in columns.items():
        check_type(column, name)
    return {name: replace(column, name=f"{NAMES}{column.name}") for name, column in columns.items()}


def worked_on(opened: Opened, asked: AskedColumns, work: Work) -> Iterator[Any]:
    """Return what work returns for the positions of each batch of rows, whoever owns them."""
    engine, codes, names = opened.engine, opened.codes, asked.names
    columns = {column.name: column.raw for name in names for column in codes[name].columns}
    columns |= {column.name: column.raw for column in (*asked.naming.values(), *asked.days.values())}
    with engine.quiet():
        pieces = engine.pieces(columns)
    sizes = {name: opened.domain[name].size for name in names}
    looker = looker_of(engine)
    encoder = Encoder({name: codes[name] for name in names}, sizes, looker)

    def done(numbered: tuple[int, Batch | None]) -> tuple[int, Any]:
        piece, batch = numbered
        if batch is None:
            return piece, None
        encoder.prepare(names, batch)
        positions = {name: encoder.codes(name, batch) for name in names}
        names_of_rows = {name: named(batch.columns[column.name], column, name) for name, column in asked.naming.items()}
        for name, column in asked.days.items():
            check_days(batch.columns[column.name], column, name)
        return piece, work(*_kept(positions, names_of_rows, sizes, asked.key, batch.rows))

    def results() -> Iterator[Any]:
        # a stream has one piece for each thread, all the same: one reader keeps its order
        own = pieces if len(set(map(id, pieces))) > 1 else pieces[:1]
        if engine.counts:  # its rows come one after the other, in this thread
            with engine.quiet():
                batches = own[0]()
                while (batch := closed(lambda: next(batches, None), unreadable())) is not None:
                    yield done((0, batch))[1]
            return
        workers: Any = Workers([_numbered(piece, at) for at, piece in enumerate(own)], done)  # type: ignore[arg-type]
        with engine.quiet(workers.stop, looker.interrupt):
            yield from _in_order(workers.results())

    return results()


def _numbered(piece: Piece, at: int) -> Any:
    """Return a piece whose batches say which piece they are of, and which says that it has ended."""

    def batches() -> Iterator[tuple[int, Batch | None]]:
        yield from ((at, batch) for batch in piece())
        yield at, None

    return batches


def _in_order(results: Iterator[tuple[int, Any]]) -> Iterator[Any]:
    """Yield results piece after piece; those of one piece come in its order. None is the end of a piece."""
    first = 0
    waiting: dict[int, list[Any]] = {}
    for piece, result in results:
        waiting.setdefault(piece, []).append(result)
        while first in waiting:
            ready, waiting[first] = waiting[first], []
            yield from (one for one in ready if one is not None)
            if not ready or ready[-1] is not None:
                break
            del waiting[first]
            first += 1


# ---- which rows are there -------------------------------------------------------------------------------------------


def _kept(
    positions: dict[str, Codes],
    names_of_rows: dict[str, Named],
    sizes: Mapping[str, int],
    key: frozenset[str],
    rows: int,
) -> tuple[dict[str, Codes], dict[str, Named], int]:
    """Return the rows, and how many of them the domain keeps; refuse those whose key has no value.

    With a key the others stay, the size of an attribute standing for what has no position: that a key is not there
    would tell what is in its cells. Without one they are left out.
    """
    there: Any = None
    for name, codes in positions.items():
        missing = codes == sizes[name]
        if missing.any():
            if name in key:
                raise missing_key(name)
            there = ~missing if there is None else there & ~missing
    if there is None:
        return positions, names_of_rows, rows
    if key:
        return positions, names_of_rows, int(there.sum())
    some = {name: codes[there] for name, codes in positions.items()}
    return some, {name: one.some(there) for name, one in names_of_rows.items()}, int(there.sum())

"""Positions of every row, batch by batch, for what shows records as they are; no batch is kept here.

Guarantee   Work gets the rows that are in the data, each with the position that `rows/encode.py` gives its cells, and
            of columns that name a row and are no attributes the value itself; nothing else of them, and no place in a
            file. With a key it also gets the rows that the domain drops, with the cells that have no position marked,
            and how many rows are none of these. Once reading has begun, every failure is one fixed sentence.
Assumes     What work does with a batch depends on that batch alone. What it returns comes in the order of the source,
            so that rows that are sorted already need not be sorted again; whoever keeps it must not keep that order.
            What names a row has a value in every possible data set, so that it may be said that one has none.
Why         Batches come from the engine in pieces that may be read at the same time (`rows/batches.py`). Engines that
            have none (Spark, lazy plans) select the keys of the positions, and hand them over some at a time; they are
            decoded here. What names a row has one spelling, however the source is written (`rows/row_names.py`).
Checked by  tests/contract/test_true_records_engines.py, tests/contract/test_row_names.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.policy.domain import Domain
from tacit.rows.batches import BATCH, Batch, Piece, Workers
from tacit.rows.encode import Code, Column
from tacit.rows.engines import Engine
from tacit.rows.positions import Codes, Encoder
from tacit.rows.row_names import Named, check_days, missing_key, named


@dataclass(frozen=True)
class Asked:
    """What is looked at: attributes, those of them that must have a value in every row, and columns that name rows.

    `days` are the columns of attributes that name rows by dates, as they are: a moment must name a day.
    """

    names: tuple[str, ...]
    key: frozenset[str]
    naming: Mapping[str, Column]
    days: Mapping[str, Column]


Work = Callable[[Mapping[str, Codes], Mapping[str, Named], int], Any]


def worked_on(
    engine: Engine, domain: Domain, codes: Mapping[str, Code], asked: Asked, work: Work
) -> Iterator[Any] | None:
    """Yield what work returns for the positions of each batch of rows; None if the engine has no batches."""
    names = list(dict.fromkeys([*asked.names, *(name for name, code in codes.items() if code.valid is not None)]))
    columns = {column.name: column.raw for name in names for column in codes[name].columns}
    columns |= {column.name: column.raw for column in (*asked.naming.values(), *asked.days.values())}
    with engine.quiet():
        pieces = engine.pieces(columns)
    if pieces is None:
        return None
    sizes = {name: domain[name].size for name in names}
    looker = engine.helper()
    encoder = Encoder({name: codes[name] for name in names}, sizes, looker)

    def done(numbered: tuple[int, Batch | None]) -> tuple[int, Any]:
        piece, batch = numbered
        if batch is None:
            return piece, None
        encoder.prepare(names, batch)
        positions = {name: encoder.codes(name, batch) for name in names}
        names_of_rows = {name: named(batch.columns[column.name], column, name) for name, column in asked.naming.items()}
        for name, column in asked.days.items():
            check_days(batch.columns[column.name], name)
        return piece, work(*_kept(positions, names_of_rows, sizes, asked.key, batch.rows))

    def results() -> Iterator[Any]:
        # a stream has one piece for each thread, all the same: one reader keeps its order
        own = pieces if len(set(map(id, pieces))) > 1 else pieces[:1]
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


def decoded(
    tables: Iterable[Any], codes: Mapping[str, Code], asked: Asked, domain: Domain, work: Work
) -> Iterator[Any]:
    """Yield what work returns for rows of which an engine has selected the keys of attributes, then what names them."""
    sizes = {name: domain[name].size for name in asked.names}
    for table in tables:
        for start in range(0, table.num_rows, BATCH):
            part = table.slice(start, BATCH)
            columns = iter(part.columns)
            found = {name: codes[name].decode([next(columns) for _ in codes[name].keys]) for name in asked.names}
            positions = {name: np.where(at < 0, sizes[name], at) for name, at in found.items()}
            names_of_rows = {name: named(next(columns), column, name) for name, column in asked.naming.items()}
            for name in asked.days:
                check_days(next(columns), name)
            yield work(*_kept(positions, names_of_rows, sizes, asked.key, part.num_rows))


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

"""Rows grouped by columns that are public, and by a sensitive one: how many people have each combination.

Which values the public columns have is read off the data: whoever names a column as public says that it may be. The
cells of the sensitive columns mean what they mean everywhere (`rows/encode.py`), and a row whose sensitive cell has no
position is not in the data, nor is one whose public cell is missing. A type that cannot hold the listed values is
refused by the type. The engine groups the rows once; what comes out is in an order that follows from public cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused, InternalError, sealed
from tacit.plan.tally import CellCounts
from tacit.policy.attributes import Attribute, Integers
from tacit.policy.domain import Domain
from tacit.rows.engines import Engine, MakeFrame, engine_for, unreadable
from tacit.rows.guard import closed
from tacit.rows.rows import open_rows

Ints = npt.NDArray[np.int64]
_WHICH: Final = "which cell it is"


@dataclass(frozen=True, eq=False, repr=False)
class PublicGroups:
    """Groups of people with the same public cells: the values of each public column, and which of them a group has.

    `counts` has one row for each group and one column for each combination of sensitive values. `frame` makes frames of
    the kind that the rows were.
    """

    values: tuple[tuple[Any, ...], ...]
    which: Ints
    counts: Ints
    frame: MakeFrame

    def __repr__(self) -> str:
        return f"PublicGroups({len(self.which)} groups)"


@sealed
def count_groups(source: Any, public: Sequence[str], sensitive: Mapping[str, Attribute]) -> PublicGroups:
    """Count the people of each combination of public cells and sensitive values, in one grouping of the engine."""
    names = [*public, *sensitive]
    engine = engine_for(source, lists=frozenset(), declared=frozenset(names))
    unlisted = DataRefused("the columns of the rows could not be listed")
    found, readings = closed(engine.names, unlisted), closed(engine.schema, unlisted)
    for name in names:
        alike = [other for other in found if other.casefold() == name.casefold()]
        if alike != [name]:  # some engines would read the other one
            rule = "must be a column of the rows, once, and no other may differ from it in case only"
            raise DataRefused(rule, column=name, fix="Check its name.")
        if readings[name].reading in ("list", "other"):
            raise DataRefused("must hold one value per row", column=name, fix="Convert it to texts or whole numbers.")
    table = closed(lambda: _grouped(engine, names), unreadable())
    return closed(lambda: _put_together(table, public, sensitive, engine.frame), InternalError("grouping rows"))


def _grouped(engine: Engine, names: Sequence[str]) -> pa.Table:
    columns = {f"c{place}": name for place, name in enumerate(names)}
    with engine.quiet():
        frame = nw.from_native(engine.select(columns)).lazy()
        lines = frame.group_by(*columns).agg(nw.len().cast(nw.Int64).alias("n"))
        return lines.collect(backend="pyarrow").to_arrow()


def _positions(cells: pa.ChunkedArray, name: str, attribute: Attribute) -> Ints:
    """Return the position of each cell, and -1 for one that is not in the data."""
    coded = pa.chunked_array(cells).combine_chunks().dictionary_encode()
    distinct, which = coded.dictionary, coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    # one more cell, so that there is one: its position is never looked at
    table = pa.table({name: pa.concat_arrays([distinct, pa.nulls(1, distinct.type)])})
    domain = Domain({name: attribute, _WHICH: Integers(0, len(distinct))})
    rows = open_rows(table.append_column(_WHICH, pa.array(np.arange(len(distinct) + 1))), domain)
    (found,) = rows.tally([CellCounts((_WHICH, name))])
    places: Ints = np.where(found.any(axis=1), found.argmax(axis=1), -1)
    return np.asarray(places[which])  # -1 is the missing cell, which is the last


def _put_together(
    table: pa.Table, public: Sequence[str], sensitive: Mapping[str, Attribute], frame: MakeFrame
) -> PublicGroups:
    lines = table.column("n").to_numpy()
    place, kept = np.zeros(len(lines), np.int64), np.ones(len(lines), np.bool_)
    for number, (name, attribute) in enumerate(sensitive.items(), start=len(public)):
        own = _positions(table.column(f"c{number}"), name, attribute)
        kept &= own >= 0
        place = place * attribute.size + own
    values, columns = [], []
    for number in range(len(public)):
        coded = table.column(f"c{number}").combine_chunks().dictionary_encode()
        cells = coded.dictionary.to_pylist()
        missing = np.array([cell is None or cell != cell for cell in cells] + [True])  # NaN differs from itself
        which = coded.indices.fill_null(len(cells)).to_numpy(zero_copy_only=False)
        order = [at for _, _, at in sorted((str(type(cell)), cell, at) for at, cell in enumerate(cells))]
        rank = np.empty(len(cells) + 1, np.int64)
        rank[order] = np.arange(len(cells))
        kept &= ~missing[which]
        values.append(tuple(cells[at] for at in order))
        columns.append(rank[which])
    whole = np.stack(columns, axis=1)[kept] if columns else np.zeros((int(kept.sum()), 0), np.int64)
    groups, of = np.unique(whole, axis=0, return_inverse=True) if columns else (whole[:1], np.zeros(len(whole), int))
    size = int(np.prod([attribute.size for attribute in sensitive.values()]))
    counts = np.zeros((len(groups), size), np.int64)
    np.add.at(counts, (of.ravel(), place[kept]), lines[kept])
    return PublicGroups(tuple(values), groups, counts, frame)

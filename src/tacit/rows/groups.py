"""Rows counted by the cells that they have, without a declared domain: for the holder of the rows alone.

A release counts at declared positions (`rows/rows.py`). Whoever holds the rows may also ask which values there are;
nothing that is found here may become part of a release. Every row is a person. A missing cell is a value of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused, nearest, sealed
from tacit.rows.engines import engine_for
from tacit.rows.guard import closed
from tacit.rows.item_counts import ItemCounts

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Groups:
    """How many rows have each combination of cells that occurs.

    `values` are the different cells of each column, in order, None for a missing one; `codes` has for each column the
    place of every combination's cell among them.
    """

    values: tuple[tuple[Any, ...], ...]
    codes: tuple[Ints, ...]
    counts: Ints


@sealed
def group_counts(source: Any, names: Sequence[str]) -> Groups:
    """Count the rows of any source by the cells of these columns, in its own engine."""
    if isinstance(source, ItemCounts):
        raise DataRefused("item counts have no cells to group by", fix="Give the rows.")
    engine = engine_for(source, lists=frozenset(), declared=frozenset(names))
    schema = closed(engine.schema, DataRefused("the columns of the source could not be listed"))
    for name in names:
        if name not in schema:
            fix = "Check the name in the header of the file." if engine.kind == "file" else nearest(name, list(schema))
            raise DataRefused("must be a column of the data", column=name, fix=fix)
        if schema[name].reading == "list":
            raise DataRefused("must hold one value per row", column=name, fix="Name another column.")
    keys = [f"c{place}" for place in range(len(names))]

    def counted() -> Groups:
        frame = nw.from_native(engine.select(dict(zip(keys, names, strict=True)))).lazy()
        with engine.quiet():
            table = frame.group_by(*keys).agg(nw.len().alias("n")).collect(backend="pyarrow").to_arrow()
        counts = np.asarray(table.column("n").cast(pa.int64()).to_numpy(), dtype=np.int64)
        listed = [_encoded(table.column(key)) for key in keys]
        return Groups(tuple(values for values, _ in listed), tuple(codes for _, codes in listed), counts)

    return closed(counted, DataRefused("the rows could not be read", fix="Check that they are complete."))


def _encoded(column: pa.ChunkedArray) -> tuple[tuple[Any, ...], Ints]:
    """Return the different cells in order, a missing one last, and the place of each cell among them."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    found = coded.dictionary.to_pylist()
    order = sorted(
        range(len(found)), key=lambda place: (found[place] is None, str(type(found[place])), found[place] or 0)
    )
    rank = np.empty(len(found), dtype=np.int64)
    rank[order] = np.arange(len(found))
    codes = np.asarray(coded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    return tuple(found[place] for place in order), rank[codes]

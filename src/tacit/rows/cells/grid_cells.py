"""How a cell of a map is read from its two columns: its row and column, or coordinates."""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.policy.attributes import Grid
from tacit.policy.attributes.attribute import CLIP
from tacit.policy.edges.intervals import Intervals
from tacit.rows.cells.integer_cells import lattice_key
from tacit.rows.cells.readings import (
    Code,
    DataColumn,
    Expr,
    Positions,
    check_cells,
    check_whole,
    never,
    number_of,
    parsed_columns,
    whole_keys,
    whole_number,
    within,
)


def grid_code(attribute: Grid, columns: tuple[DataColumn, ...]) -> Code:
    """Return how a cell of a map is read from its two columns, or refuse by the schema alone."""
    for column in columns:
        check_cells(column)
        check_whole(column, clip=attribute.clips or attribute.low is not None)
    keys: list[Expr] = []
    valids: list[Expr] = []
    sizes = (attribute.rows, attribute.columns)
    clip = CLIP if attribute.clips else None
    for part, (column, size) in enumerate(zip(columns, sizes, strict=True)):
        if attribute.low is None or attribute.high is None:
            number, real = number_of(column)
            key, valid = lattice_key(number, 0, size - 1, 1, clip, real=real)
        else:
            key, valid = _coordinate(column, attribute.low[part], attribute.high[part], size, clip=clip is not None)
        keys.append(key)
        valids.append(valid)
    both: Expr | None = valids[0] & valids[1]
    if isinstance(attribute.otherwise, tuple):
        keys = [
            nw.when(both).then(key).otherwise(whole_number(cell))
            for key, cell in zip(keys, attribute.otherwise, strict=True)
        ]
        both = None

    def decode(found: Sequence[pa.ChunkedArray]) -> Positions:
        (rows, no_row), (cells, no_column) = whole_keys(found[0]), whole_keys(found[1])
        return np.where(no_row | no_column, -1, rows * attribute.columns + cells)

    def atom(part: str, positions: Intervals) -> Expr:
        place = 0 if part == "row" else 1
        return within(keys[place], list(positions), never(columns[place]))

    ranges = tuple((0, size - 1, 1) for size in sizes)
    return Code(columns, parsed_columns(columns), tuple(keys), both, False, decode, atom, ranges)


def _coordinate(column: DataColumn, low: float, high: float, cells: int, *, clip: bool) -> tuple[Expr, Expr]:
    number = nw.col(column.name) if column.reading == "wide" else number_of(column)[0]
    number = number.cast(nw.Float64)
    low, high = float(low), float(high)
    inside = (number >= low) & (number <= high)
    share = ((nw.when(inside).then(number) - low) / (high - low) * float(cells)).floor()
    # the upper end belongs to the last cell, and so does what rounding pushes onto it
    cell = nw.when(number >= high).then(whole_number(cells - 1)).otherwise(share)
    if clip:
        cell = nw.when(number <= low).then(whole_number(0)).otherwise(cell)
        bounded = nw.when(~number.is_null()).then(cell).cast(nw.Int64)
    else:
        bounded = nw.when(inside).then(cell).cast(nw.Int64)
    bounded = nw.when(bounded >= cells - 1).then(whole_number(cells - 1)).otherwise(bounded)
    return bounded, ~number.is_null() if clip else inside

"""How whole numbers are read: flags, integers, and every kind whose positions are whole numbers in steps.

What a cell's number is, `rows/cells/readings.py` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import narwhals as nw
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused
from tacit.policy.attributes import Flag, Integers
from tacit.policy.attributes.attribute import CLIP
from tacit.policy.edges.intervals import Intervals
from tacit.rows.cells.readings import (
    Code,
    DataColumn,
    Expr,
    Helper,
    Positions,
    check_cells,
    check_exact,
    check_truths,
    check_whole,
    never,
    number_of,
    parsed_columns,
    whole_keys,
    whole_number,
    within,
)


def flag_code(attribute: Flag, columns: tuple[DataColumn, ...]) -> Code:
    """Return how a flag is read: as the numbers 0 and 1."""
    (column,) = columns
    check_cells(column)
    otherwise = None if attribute.otherwise is None else int(attribute.otherwise)
    return _integers(Integers(0, 1, otherwise=otherwise), column)


def integers_code(attribute: Integers, columns: tuple[DataColumn, ...]) -> Code:
    """Return how integers are read, or refuse by the schema alone."""
    (column,) = columns
    check_cells(column)
    check_whole(column, clip=attribute.clips)
    if attribute.high - attribute.low >= 2**63:
        raise DataRefused("must have a domain narrower than 2^63", column=column.raw, fix="Narrow the range.")
    check_truths(column, attribute.low, attribute.high, clip=attribute.clips)
    check_exact(column, max(abs(attribute.low), abs(attribute.high)))
    return _integers(attribute, column)


def _integers(attribute: Integers, column: DataColumn) -> Code:
    number, real = number_of(column)
    ends = attribute.low, attribute.high, attribute.step
    key, valid = lattice_key(number, *ends, attribute.otherwise, real=real)
    found = on_lattice(column, key, valid, ends, numbers=parsed_columns((column,)), span=ends[:2])
    return replace(found, is_counted=attribute.step == 1)


def on_lattice(
    column: DataColumn,
    key: Expr,
    valid: Expr | None,
    ends: tuple[int, int, int],
    *,
    numbers: tuple[Helper, ...],
    span: tuple[int, int] | None = None,
) -> Code:
    """Return the code of an attribute whose key is a whole number from low to high in steps."""
    low, _, step = ends

    def decode(keys: Sequence[pa.ChunkedArray]) -> Positions:
        values, missing = whole_keys(keys[0])
        return np.where(missing, -1, (values - low) // step)

    def atom(_: str, positions: Intervals) -> Expr:
        return within(key, [(low + first * step, low + last * step) for first, last in positions], never(column))

    return Code((column,), numbers, (key,), valid, column.reading != "real", decode, atom, (ends,), span)


def lattice_key(
    number: Expr, low: int, high: int, step: int, otherwise: int | str | None, *, real: bool
) -> tuple[Expr, Expr | None]:
    """Return the value of the range that a number stands for, and which numbers stand for one (None: all).

    `real` says that numbers may have fractions.
    """
    if otherwise == CLIP:
        # only numbers within the range are rounded: Ibis makes 64-bit integers of them, and others could fail there
        inner = nw.when((number > low) & (number < high)).then(number).floor() if real else number.cast(nw.Int64)
        key = (
            nw.when(number <= low)
            .then(whole_number(low))
            .otherwise(nw.when(number >= high).then(whole_number(high)).otherwise(inner))
        )
        key = nw.when(~number.is_null()).then(key).cast(nw.Int64)
        return (key - (key - low) % step if step > 1 else key), ~number.is_null()
    inside = (number >= low) & (number <= high)
    if real:
        inside = inside & (nw.when(inside).then(number).floor() == number)
    if step > 1:
        # only numbers within the range reach the subtraction, so that it cannot overflow
        bounded = nw.when(inside).then(number).cast(nw.Int64)
        inside = inside & ((bounded - low) % step == 0)
    if otherwise is not None:
        return nw.when(inside).then(number).otherwise(whole_number(int(otherwise))).cast(nw.Int64), None
    return (nw.when(inside).then(number).cast(nw.Int64) if real else number), inside

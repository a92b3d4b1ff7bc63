"""Cells of decimals: the number reading, put on the lattice.

A value of the lattice is the 64-bit float next to it: whole / scale, which every engine divides to the nearest float.
Values have at most 15 digits, so no two share a float. A cell is a value if it is that float; what lies between two of
them is rounded down or unexpected, as for integers.
"""

from __future__ import annotations

import narwhals as nw

from tacit.errors import DataRefused
from tacit.policy.attributes import Decimals
from tacit.policy.attributes.attribute import CLIP
from tacit.rows.encode import (
    Code,
    Column,
    Derived,
    Expr,
    check_cells,
    check_truths,
    lattice_key,
    number_of,
    on_lattice,
    parsed_columns,
)
from tacit.rows.unexpected import Unexpected, no_number


def decimals_code(attribute: Decimals, columns: tuple[Column, ...]) -> Code:
    """Return how decimals are read, or refuse by the schema alone."""
    (column,) = columns
    check_cells(column)
    digits = len(str(attribute.scale)) - 1
    if column.decimals > digits and not attribute.clips:
        raise DataRefused(
            f"holds decimals with {column.decimals} digits after the point, and the steps have {digits}",
            column=column.raw,
            fix="Declare otherwise: clip to round them down, or a smaller step.",
        )
    check_truths(column, float(attribute.low), float(attribute.high), clip=attribute.clips)
    ends = attribute.scaled
    otherwise = attribute.otherwise
    if otherwise is not None and otherwise != CLIP:
        otherwise = ends[0] + attribute.position(otherwise) * ends[2]
    real = number_of(column)[1]
    helpers = _wholes(attribute, column)
    key, valid = lattice_key(nw.col(helpers[-1].number), *ends, otherwise, real=real)
    return on_lattice(column, key, valid, ends, numbers=(*parsed_columns((column,)), *helpers))


def _wholes(attribute: Decimals, column: Column) -> list[Derived]:
    """Return how to compute the number reading times the scale, with a half for what lies between two whole numbers."""
    number, real = number_of(column)
    (low, high, _), scale = attribute.scaled, attribute.scale
    name = f"w{scale}_{low}_{high}_{column.name}".replace("-", "m")
    if not real:
        # beyond these every number is alike, and the product could overflow
        first, last = low // scale - 1, -(-high // scale) + 1
        inner = nw.when((number > first) & (number < last)).then(number.cast(nw.Int64) * scale)
        outer = nw.when(number <= first).then(nw.lit(low - 1, nw.Int64)).otherwise(inner)
        return [Derived(name, nw.when(number >= last).then(nw.lit(high + 1, nw.Int64)).otherwise(outer))]
    first_float, last_float, by = low / scale, high / scale, float(scale)
    inside = nw.when((number >= first_float) & (number <= last_float)).then(number)
    # The product may be one off; it is set right by divisions, which are exact to the nearest float. By a column: some
    # engines divide by a constant as they multiply by its reciprocal, and that is another float.
    guess, below, tens = nw.col(f"g{name}"), nw.col(f"b{name}"), nw.col(f"s{name}")
    above = nw.when((guess + 1.0) / tens <= number).then(guess + 1.0).otherwise(guess)
    exact = nw.when(below / tens == number).then(below).otherwise(below + 0.5)
    outer = nw.when(number < first_float).then(nw.lit(float(low - 1), nw.Float64)).otherwise(exact)
    return [
        Derived(f"g{name}", (inside * by).floor().cast(nw.Float64)),
        Derived(f"s{name}", guess * 0.0 + by),
        Derived(f"b{name}", nw.when(guess / tens > number).then(guess - 1.0).otherwise(above)),
        Derived(name, nw.when(number > last_float).then(nw.lit(float(high + 1), nw.Float64)).otherwise(outer)),
    ]


def decimals_unexpected(attribute: Decimals, columns: tuple[Column, ...]) -> Unexpected:
    """Yield cells that are no number of the lattice."""
    (column,) = columns
    missing, unread = yield from no_number(column)
    real = number_of(column)[1]
    wholes = nw.col(_wholes(attribute, column)[-1].number)
    low, high, step = attribute.scaled
    is_number = ~missing & ~unread
    yield "below", (is_number & (wholes < low)).fill_null(False)
    yield "above", (is_number & (wholes > high)).fill_null(False)
    inside = (is_number & (wholes >= low) & (wholes <= high)).fill_null(False)
    on_step: Expr = lattice_key(wholes, low, high, step, None, real=real)[1]
    yield "off step", inside & ~on_step.fill_null(False)

"""Cells of decimals: the number reading, put on the lattice.

A value of the lattice is the 64-bit float next to it: whole / scale, which every engine divides to the nearest float.
Values have at most 15 digits, so no two share a float. A cell is a value if it is that float; what lies between two of
them is rounded down or unexpected, as for integers.

A column of 32-bit (or 16-bit) floats holds the nearest ones of that width: 36.6 is 36.599998 there. So a cell of such a
column is a value if it is the float of its own width next to it; where two values share one, the nearer of the two.
"""

from __future__ import annotations

import narwhals as nw

from tacit.errors import DataRefused
from tacit.policy.attributes import Decimals
from tacit.policy.attributes.attribute import CLIP
from tacit.rows.cells.integer_cells import lattice_key, on_lattice
from tacit.rows.cells.readings import (
    Code,
    ComputedColumn,
    DataColumn,
    Expr,
    check_cells,
    check_truths,
    number_of,
    parsed_columns,
)
from tacit.rows.cells.unexpected import Unexpected, no_number


def decimals_code(attribute: Decimals, columns: tuple[DataColumn, ...]) -> Code:
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
    span = ends[0] // attribute.scale, -(-ends[1] // attribute.scale)
    return on_lattice(column, key, valid, ends, numbers=(*parsed_columns((column,)), *helpers), span=span)


def _wholes(attribute: Decimals, column: DataColumn) -> list[ComputedColumn]:
    """Return how to compute the number reading times the scale, with a half for what lies between two whole numbers."""
    number, real = number_of(column)
    (low, high, step), scale = attribute.scaled, attribute.scale
    name = f"w{scale}_{low}_{high}_{step}_{column.name}".replace("-", "m")
    if not real:
        # beyond these every number is alike, and the product could overflow
        first, last = low // scale - 1, -(-high // scale) + 1
        inner = nw.when((number > first) & (number < last)).then(number.cast(nw.Int64) * scale)
        outer = nw.when(number <= first).then(nw.lit(low - 1, nw.Int64)).otherwise(inner)
        return [ComputedColumn(name, nw.when(number >= last).then(nw.lit(high + 1, nw.Int64)).otherwise(outer))]
    first_float, last_float, by = low / scale, high / scale, float(scale)
    inside = nw.when((number >= first_float) & (number <= last_float)).then(number)
    # The product may be one off; it is set right by divisions, which are exact to the nearest float. By a column: some
    # engines divide by a constant as they multiply by its reciprocal, and that is another float.
    guess, below, tens = nw.col(f"g{name}"), nw.col(f"b{name}"), nw.col(f"s{name}")
    above = nw.when((guess + 1.0) / tens <= number).then(guess + 1.0).otherwise(guess)
    exact = nw.when(below / tens == number).then(below).otherwise(below + 0.5)
    outer = nw.when(number < first_float).then(nw.lit(float(low - 1), nw.Float64)).otherwise(exact)
    found = nw.when(number > last_float).then(nw.lit(float(high + 1), nw.Float64)).otherwise(outer)
    nearest = _nearest(attribute, number, column.bits, name) if column.bits < 64 else []
    if nearest:
        whole = nw.col(nearest[-1].number)
        found = nw.when(whole.is_null()).then(found).otherwise(whole)
    return [
        *nearest,
        ComputedColumn(f"g{name}", (inside * by).floor().cast(nw.Float64)),
        ComputedColumn(f"s{name}", guess * 0.0 + by),
        ComputedColumn(f"b{name}", nw.when(guess / tens > number).then(guess - 1.0).otherwise(above)),
        ComputedColumn(name, found),
    ]


def _nearest(attribute: Decimals, number: Expr, bits: int, name: str) -> list[ComputedColumn]:
    """Return how to compute the value (times the scale) whose nearest float of so many bits is the number, or nothing.

    Rounding never swaps two numbers, so only the value at or below the number and the next one can be meant.
    """
    (low, high, step), scale = attribute.scaled, attribute.scale
    number = nw.when((number > (low - step) / scale) & (number < (high + step) / scale)).then(number)
    steps, below, by = nw.col(f"p{name}"), nw.col(f"q{name}"), nw.col(f"r{name}")
    lower, upper = (nw.col(f"{letter}{name}") for letter in "lu")
    is_lower = (_rounded(lower / by, bits) == number) & (lower >= low)
    is_upper = (_rounded(upper / by, bits) == number) & (upper <= high)
    is_nearer = is_lower & ~(is_upper & (steps - below > 0.5))
    return [
        ComputedColumn(f"d{name}", number * 0.0 + float(step)),
        ComputedColumn(f"r{name}", number * 0.0 + float(scale)),
        ComputedColumn(f"p{name}", (number * float(scale) - float(low)) / nw.col(f"d{name}")),
        ComputedColumn(f"q{name}", steps.floor().cast(nw.Float64)),
        ComputedColumn(f"l{name}", below * float(step) + float(low)),
        ComputedColumn(f"u{name}", lower + float(step)),
        ComputedColumn(f"n{name}", nw.when(is_nearer).then(lower).otherwise(nw.when(is_upper).then(upper))),
    ]


def _rounded(number: Expr, bits: int) -> Expr:
    """Return the nearest float of so many bits, by 64-bit arithmetic alone: not every engine has the narrow types.

    With p digits, n * (2^(53-p) + 1) less what it exceeds n by has lost all but the first p digits of n (Veltkamp).
    Floats of 16 bits are whole multiples of 2^-24 where they are small.
    """
    digits = 24 if bits == 32 else 11
    spread = number * (2.0 ** (53 - digits) + 1.0)
    found = spread - (spread - number)
    if bits == 32:
        return found  # no decimal of at most 15 digits and 30 zeros is small enough to have fewer digits
    shift = 1.5 * 2.0**28  # 64-bit floats of this size are multiples of 2^-24
    return nw.when((number < 2.0**-14) & (number > -(2.0**-14))).then((number + shift) - shift).otherwise(found)


def decimals_unexpected(attribute: Decimals, columns: tuple[DataColumn, ...]) -> Unexpected:
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

"""How numbers and dates are read: flags, integers, decimals, cells of a map, and the UTC days of cells.

What a cell's number is, `readings.py` says.

A value of decimals is the 64-bit float next to it: whole / scale, which every engine divides to the nearest float.
Values have at most 15 digits, so no two share a float. A cell is a value if it is that float; what lies between two of
them is rounded down or unexpected, as for integers. A column of 32-bit (or 16-bit) floats holds the nearest ones of
that width: 36.6 is 36.599998 there. So a cell of such a column is a value if it is the float of its own width next to
it; where two values share one, the nearer of the two.

A date is itself. A timestamp is the day that it lies in; one with a time zone is an instant, and its day is that of
UTC. A text is read if it is written as ISO 8601 has it: `2024-05-01`, optionally with a time (`2024-05-01T23:30`,
`2024-05-01 23:30:00.5`) and then optionally with an offset (`Z`, `+02:00`, `-0530`, `+02`; of old zones also
`+00:53:28`), by which it becomes UTC. Where days are gathered into months or quarters, `2024-05` is read as well, and
into years, `2024`. Anything else has no date. Years are those from 1 to 9999; earlier and later dates are out of every
range.

A time is read from the same timestamps and texts, to the second. The type of a column says whether its timestamps are
instants, and a text with an offset is one. An instant is told by the clocks of the declared zone, whose offsets from
UTC are computed once for each attribute (`policy/attributes/times.py`), so that no engine's own zones are asked.
Without a declared zone it is no time: columns of instants are refused, and texts with an offset are unexpected.

A timestamp is a whole number of steps since 1970, of seconds to nanoseconds, and its day (or second) is that number
divided by the steps of a day, rounded down: no other unit holds every such number, and one person's must neither fail
nor be rounded. An infinite one lies before or after all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import narwhals as nw
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused
from tacit.policy.attributes import Dates, Decimals, Flag, Grid, Integers, Times
from tacit.policy.attributes.attribute import CLIP
from tacit.policy.edges.intervals import Intervals
from tacit.rows.cells.readings import (
    Code,
    ComputedColumn,
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
    with_date,
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
    helpers = wholes_of(attribute, column)
    key, valid = lattice_key(nw.col(helpers[-1].number), *ends, otherwise, real=real)
    span = ends[0] // attribute.scale, -(-ends[1] // attribute.scale)
    return on_lattice(column, key, valid, ends, numbers=(*parsed_columns((column,)), *helpers), span=span)


def wholes_of(attribute: Decimals, column: DataColumn) -> list[ComputedColumn]:
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


_31: Final = "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
_30: Final = "(0[469]|11)-(0[1-9]|[12][0-9]|30)"
_28: Final = "02-(0[1-9]|1[0-9]|2[0-8])"
_LEAP: Final = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29"
_DAY: Final = f"([0-9]{{4}}-({_31}|{_30}|{_28})|{_LEAP})"
_OFFSET: Final = "(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9]|:[0-5][0-9]:[0-5][0-9])?)"
_TIME: Final = rf"[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{{1,9}})?)?{_OFFSET}?"
FORMS: Final = {
    "day": f"^{_DAY}({_TIME})?",
    "month": "^[0-9]{4}-(0[1-9]|1[0-2])",
    "year": "^[0-9]{4}",
}
SHIFT: Final = r":[0-9.:]*([+-])([0-9]{2}):?([0-9]{2})?:?([0-9]{2})?"  # the offset of a text that has one
SECONDS: Final = r"^.{16}:([0-9]{2})"
DAY_SECONDS: Final = 86_400
BEFORE: Final = -719_163  # days since 1970: 0000-12-31
AFTER: Final = 2_932_897  # 10000-01-01
STEPS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # in a second
_LARGEST: Final = 2**63 - 1


def arrow_date(cells: pa.Array) -> pa.Array:
    """Return the UTC dates of Arrow's timestamps; anything else is returned as it is."""
    return _in_steps(cells, DAY_SECONDS, pa.int32(), pa.date32())


def arrow_second(cells: pa.Array) -> pa.Array:
    """Return Arrow's timestamps rounded down to seconds, without a zone, and dates in days; anything else as it is."""
    return arrow_date(cells) if pa.types.is_date64(cells.type) else _in_steps(cells, 1, pa.int64(), pa.timestamp("s"))


def _in_steps(cells: pa.Array, seconds: int, number: pa.DataType, kind: pa.DataType) -> pa.Array:
    """Return timestamps in steps of so many seconds, rounded down; those out of all ranges are just out of them."""
    if not (pa.types.is_timestamp(cells.type) or pa.types.is_date64(cells.type)):
        return cells
    numbers = cells.cast(pa.int64())
    missing = np.asarray(numbers.is_null().to_numpy(zero_copy_only=False)) if numbers.null_count else None
    steps = np.asarray((numbers.fill_null(0) if numbers.null_count else numbers).to_numpy())
    a_second = STEPS["ms" if pa.types.is_date64(cells.type) else cells.type.unit]
    # the first second of the day after the last is out of all ranges, and so is every later one
    first, after = (day * DAY_SECONDS // seconds for day in (BEFORE, AFTER))
    found = np.clip(np.floor_divide(steps, seconds * a_second), first, after)
    return pa.array(found.astype(number.to_pandas_dtype()), mask=missing).cast(kind)


def arrow_names(cells: Any) -> Any:
    """Return Arrow's cells as they name rows: moments as the days that they begin, and times of the day as texts.

    None if a moment is told with a time zone, or begins no day.
    """
    if pa.types.is_time(cells.type):
        return cells.cast(pa.string())
    if not pa.types.is_timestamp(cells.type):
        return cells
    steps = cells.cast(pa.int64()).drop_null().to_numpy()
    if cells.type.tz is not None or (steps % (DAY_SECONDS * STEPS[cells.type.unit])).any():
        return None
    return cells.cast(pa.date32())


def arrow_moment(cells: pa.Array) -> pa.Array:
    """Return Arrow's times and spans as whole numbers, which are equal and sorted alike; anything else as it is.

    DuckDB would make microseconds of some of them, which not every moment is.
    """
    is_time = pa.types.is_timestamp(cells.type) or pa.types.is_duration(cells.type)
    return cells.cast(pa.int64()) if is_time else cells


def shorter_forms(precision: str) -> list[tuple[str, str]]:
    """Return the shorter forms that are read, and what makes days of them."""
    return {"second": [], "day": [], "month": [("month", "-01")], "year": [("month", "-01"), ("year", "-01-01")]}[
        precision
    ]


PRECISION: Final = {"day": "day", "week": "day", "month": "month", "quarter": "month", "year": "year"}
_AFTER: Final = 10**7  # the number of every period after the year 9999


def dates_code(attribute: Dates, columns: tuple[DataColumn, ...]) -> Code:
    """Return how dates are read, or refuse by the schema alone."""
    (column,) = columns
    if column.reading not in ("text", "date", "time"):
        raise DataRefused(
            "must hold dates, timestamps or texts such as 2024-05-01",
            column=column.raw,
            fix="Convert the column to dates first, or declare what it holds.",
        )
    dated = with_date(column, PRECISION[attribute.by])
    first, last = attribute.ticks
    otherwise: int | str | None = attribute.otherwise
    if otherwise is not None and otherwise != CLIP:
        otherwise = first + attribute.position(otherwise)
    tick = tick_of(dated, attribute.by)
    key, valid = lattice_key(nw.col(tick.number), first, last, 1, otherwise, real=False)
    return on_lattice(column, key, valid, (first, last, 1), numbers=(dated, tick))


def times_code(attribute: Times, columns: tuple[DataColumn, ...]) -> Code:
    """Return how times are read, or refuse by the schema alone."""
    (column,) = columns
    if column.reading not in ("text", "time"):
        fix = "Declare {dates: [from, to]}." if column.reading == "date" else _FROM_NUMBERS
        rule = "must hold timestamps, or texts such as 2024-05-01T14:05"
        raise DataRefused(rule, column=column.raw, fix=fix)
    if column.zoned and attribute.zone is None:
        raise DataRefused(
            "holds moments with a time zone, and no zone is declared whose clocks tell the time",
            column=column.raw,
            fix="Declare the zone, for instance zone: Europe/Berlin, or zone: UTC.",
        )
    otherwise: int | str | None = attribute.otherwise
    if otherwise is not None and otherwise != CLIP:
        otherwise = attribute.position(otherwise)
    timed, tick = steps_of(attribute, column)
    first, last = attribute.ticks
    key, valid = lattice_key(nw.col(tick.number), first, last, 1, otherwise, real=False)
    return on_lattice(column, key, valid, (first, last, 1), numbers=(timed, tick))


_FROM_NUMBERS: Final = "Make timestamps first; of seconds since 1970 by pandas.to_datetime(column, unit='s', utc=True)."
_INSTANT: Final = "[T ][0-9:.]+(Z|[+-])"  # of a text that is read: whether it has an offset


def steps_of(attribute: Times, column: DataColumn) -> tuple[DataColumn, ComputedColumn]:
    """Return how to compute the number of a cell's step: -1 before the first, and one more than the last after it."""
    timed = with_date(column, "second")
    second, many, name = nw.col(timed.number), attribute.size, f"t{attribute.seconds}_{timed.number}"
    if column.zoned:
        second = _on_the_clock(second, attribute, column)
    elif column.reading == "text":
        told = _on_the_clock(second, attribute, column) if attribute.zone else nw.when(never(column)).then(second)
        second = nw.when(column.text.str.contains(_INSTANT)).then(told).otherwise(second)
    since = second - attribute.first
    inside = nw.when((since >= 0) & (since < many * attribute.seconds)).then(since)
    late = (
        nw.when(since >= many * attribute.seconds)
        .then(whole_number(many))
        .otherwise(_whole_part(inside, attribute.seconds))
    )
    return timed, ComputedColumn(name, nw.when(since < 0).then(whole_number(-1)).otherwise(late))


def _on_the_clock(second: Expr, attribute: Times, column: DataColumn) -> Expr:
    """Return what the clocks of the zone show at a second of UTC, as seconds since 1970 on that clock."""
    during: dict[int, list[tuple[int, int]]] = {}
    starts = [start for start, _ in attribute.offsets]
    for (_, offset), start, end in zip(attribute.offsets, starts, [*starts[1:], AFTER * DAY_SECONDS + 1], strict=True):
        during.setdefault(offset, []).append((start, end - 1))
    usual, *others = sorted(during, key=lambda offset: len(during[offset]))[::-1]
    found = second + usual
    for offset in others:
        found = nw.when(within(second, during[offset], never(column))).then(second + offset).otherwise(found)
    return found


def tick_of(column: DataColumn, by: str) -> ComputedColumn:
    """Return how to compute the number of a cell's period, as `policy/attributes/dates.py` counts them."""
    date = nw.col(column.number)
    year, month = date.dt.year().cast(nw.Int64), date.dt.month().cast(nw.Int64)
    match by:
        case "month":
            tick = year * 12 + month - 1
        case "quarter":
            tick = year * 4 + _whole_part(month - 1, 3)
        case "year":
            tick = year
        case _:
            before = year - 1
            leap_days = _whole_part(before, 4) - _whole_part(before, 100) + _whole_part(before, 400)
            tick = before * 365 + leap_days + date.dt.ordinal_day().cast(nw.Int64)
            tick = tick if by == "day" else _whole_part(tick - 1, 7)
    # only years from 1 to 9999 reach the arithmetic: of negative numbers engines divide in different ways
    inner = nw.when((year >= 1) & (year <= 9999)).then(tick)
    late = nw.when(year > 9999).then(nw.lit(_AFTER, nw.Int64)).otherwise(inner)
    return ComputedColumn(f"t{by}_{column.name}", nw.when(year < 1).then(nw.lit(-1, nw.Int64)).otherwise(late))


def _whole_part(number: Expr, by: int) -> Expr:
    return ((number - number % by) / by).cast(nw.Int64)  # exact in any engine, for numbers that are not negative

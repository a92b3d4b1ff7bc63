"""How the cells of each kind of attribute are read, and which are unexpected and in what way: one line for a kind.

What a kind means without rows is in `policy/attributes/`. For the check of rows each kind yields its tests of
unexpected cells under the words below; no cell passes two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import narwhals as nw

from tacit.policy.attributes import Attribute, Categories, Dates, Decimals, Flag, Grid, Integers, Items, Times
from tacit.rows.cells.category_cells import categories_code
from tacit.rows.cells.number_cells import (
    PRECISION,
    dates_code,
    decimals_code,
    flag_code,
    grid_code,
    integers_code,
    lattice_key,
    steps_of,
    tick_of,
    times_code,
    wholes_of,
)
from tacit.rows.cells.readings import Code, DataColumn, Expr, check_cells, number_of, with_date

Unexpected: TypeAlias = Iterator[tuple[str, Expr]]
_DATE: Final = r"^\s*[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([T ].*)?$"
_SHORT: Final = r"^\s*([0-9]{4}[-/.])?([0-9][-/.][0-9]{1,2}|[0-9]{2}[-/.][0-9])([-/.][0-9]{4})?([T ].*)?$"
_COMMA: Final = r"^\s*-?[0-9]+(,[0-9]+)+\s*$"
_POINT: Final = r"^\s*-?[0-9]+(\.[0-9]+)+\s*$"
UNEXPECTED: Final = {
    "missing": "missing",
    "near": "would match a category in other case or without spaces around",
    "unknown": "that are no category",
    "not true or false": "neither true, false, 1 nor 0",
    "date": "dates",
    "comma": "numbers with a comma",
    "point": "numbers with a point",
    "not a number": "that are no numbers",
    "below": "below the range",
    "above": "above the range",
    "decimal": "decimals",
    "off step": "between two steps",
    "offset": "times with an offset from UTC",
    "form": "dates in another form",
    "short form": "dates in another form, with a day or month of one digit",
    "not a date": "that are no dates",
    "not a time": "that are no times",
    "before": "before the first",
    "after": "after the last",
}


def flag_unexpected(attribute: Flag, columns: tuple[DataColumn, ...]) -> Unexpected:
    """Yield cells that are neither true nor false."""
    missing, number, _ = readings(columns[0])
    yield "missing", missing
    yield "not true or false", ~missing & (number.is_null() | ((number != 0) & (number != 1)))


def integers_unexpected(attribute: Integers, columns: tuple[DataColumn, ...]) -> Unexpected:
    """Yield cells that are no whole number of the range."""
    yield from _out_of_range(columns, [(attribute.low, attribute.high, attribute.step)])


def grid_unexpected(attribute: Grid, columns: tuple[DataColumn, ...]) -> Unexpected:
    """Yield cells off the map."""
    if attribute.low is None or attribute.high is None:
        yield from _out_of_range(columns, [(0, attribute.rows - 1, 1), (0, attribute.columns - 1, 1)])
    else:
        yield from _out_of_range(
            columns, [(low, high, None) for low, high in zip(attribute.low, attribute.high, strict=True)]
        )


def categories_unexpected(attribute: Categories, columns: tuple[DataColumn, ...]) -> Unexpected:
    """Yield cells that are none of the categories."""
    (column,) = columns
    missing, _, _ = readings(column)
    known: Any = categories_code(
        Categories(attribute.values), (column,)
    ).valid  # without `otherwise` there is always a test
    yield "missing", missing
    if column.reading != "text":
        yield "unknown", ~missing & ~known
        return
    bare = column.text.str.strip_chars().str.to_lowercase()
    texts = sorted({value.strip().lower() for value in attribute.values if isinstance(value, str)})
    near = bare.is_in(texts).fill_null(False) if texts else missing & ~missing
    yield "near", ~missing & ~known & near
    yield "unknown", ~missing & ~known & ~near


def _out_of_range(columns: tuple[DataColumn, ...], ranges: Sequence[tuple[Any, Any, int | None]]) -> Unexpected:
    """Yield the kinds for one or two columns of numbers; of two, the first kind that either has counts."""
    found: dict[str, Expr] = {}
    for column, (low, high, step) in zip(columns, ranges, strict=True):
        for kind, test in _no_number_of(column, low, high, step):
            found[kind] = test if kind not in found else found[kind] | test
    earlier: Expr | None = None
    for kind in (kind for kind in UNEXPECTED if kind in found):
        yield kind, found[kind] if earlier is None else found[kind] & ~earlier
        earlier = found[kind] if earlier is None else earlier | found[kind]


def _no_number_of(column: DataColumn, low: Any, high: Any, step: int | None) -> Unexpected:
    _, number, real = readings(column)
    yield from no_number(column)
    is_number = ~number.is_null()
    yield "below", (is_number & (number < low)).fill_null(False)
    yield "above", (is_number & (number > high)).fill_null(False)
    inside = (is_number & (number >= low) & (number <= high)).fill_null(False)
    if step is None:
        return
    whole = (number.floor() == number).fill_null(False) if real else inside
    if real:
        yield "decimal", inside & ~whole
    if step > 1:
        bounded = nw.when(inside & whole).then(number).cast(nw.Int64)
        yield "off step", (inside & whole & ((bounded - low) % step != 0)).fill_null(False)


def no_number(column: DataColumn) -> Generator[tuple[str, Expr], None, tuple[Expr, Expr]]:
    """Yield cells that have no number reading, by kind; return which are missing and which are unreadable."""
    missing, number, _ = readings(column)
    yield "missing", missing
    unread = ~missing & number.is_null()
    rest = unread
    if column.reading == "text":
        sign, numbers = ("point", _POINT) if column.comma else ("comma", _COMMA)
        date, other = (column.text.str.contains(pattern).fill_null(False) for pattern in (_DATE, numbers))
        yield "date", unread & date
        yield sign, unread & other & ~date
        rest = unread & ~date & ~other
    yield "not a number", rest
    return missing, unread


def readings(column: DataColumn) -> tuple[Expr, Expr, bool]:
    """Return which cells are missing, the number that a cell is read as, and whether it may have decimals."""
    cell = nw.col(column.name)
    match column.reading:
        case "whole":
            return cell.is_null(), cell.cast(nw.Int64), False
        case "truth":
            return cell.is_null(), cell.cast(nw.Int64), False
        case "text":
            return cell.is_null(), nw.col(column.number), True
        case _:
            # NaN is a missing number on every engine; a whole number beyond 2^53 is beyond every range for decimals
            real = cell.cast(nw.Float64)
            missing = cell.is_null() | real.is_nan().fill_null(False) if column.reading == "real" else cell.is_null()
            return missing, nw.when(~missing).then(real), column.reading == "real"


def decimals_unexpected(attribute: Decimals, columns: tuple[DataColumn, ...]) -> Unexpected:
    """Yield cells that are no number of the lattice."""
    (column,) = columns
    missing, unread = yield from no_number(column)
    real = number_of(column)[1]
    wholes = nw.col(wholes_of(attribute, column)[-1].number)
    low, high, step = attribute.scaled
    is_number = ~missing & ~unread
    yield "below", (is_number & (wholes < low)).fill_null(False)
    yield "above", (is_number & (wholes > high)).fill_null(False)
    inside = (is_number & (wholes >= low) & (wholes <= high)).fill_null(False)
    on_step: Expr = lattice_key(wholes, low, high, step, None, real=real)[1]
    yield "off step", inside & ~on_step.fill_null(False)


def dates_unexpected(attribute: Dates, columns: tuple[DataColumn, ...]) -> Unexpected:
    """Yield cells that are no date of the range."""
    (column,) = columns
    tick = tick_of(with_date(column, PRECISION[attribute.by]), attribute.by)
    return _out_of_time(column, tick.number, attribute.ticks, "not a date")


def times_unexpected(attribute: Times, columns: tuple[DataColumn, ...]) -> Unexpected:
    """Yield cells that are no time of the range."""
    (column,) = columns
    timed, tick = steps_of(attribute, column)
    return _out_of_time(column, tick.number, attribute.ticks, "not a time", second=nw.col(timed.number))


def _out_of_time(
    column: DataColumn, number: str, ends: tuple[int, int], unreadable: str, second: Expr | None = None
) -> Unexpected:
    missing, tick = nw.col(column.name).is_null(), nw.col(number)
    yield "missing", missing
    unread = ~missing & tick.is_null()
    if second is not None:  # it was read, but no declared clock tells it
        yield "offset", unread & ~second.is_null()
        unread = unread & second.is_null()
    if column.reading == "text":
        form = column.text.str.contains(_DATE).fill_null(False)
        short = form & column.text.str.contains(_SHORT).fill_null(False)
        yield "form", unread & form & ~short
        yield "short form", unread & short
        unread = unread & ~form
    yield unreadable, unread
    yield "before", (tick < ends[0]).fill_null(False)
    yield "after", (tick > ends[1]).fill_null(False)


class CellReading(NamedTuple):
    """How a kind is read from its columns, and which of their cells are unexpected."""

    code: Callable[[Any, tuple[DataColumn, ...]], Code]
    unexpected: Callable[[Any, tuple[DataColumn, ...]], Unexpected]


def _item_code(attribute: Items, columns: tuple[DataColumn, ...]) -> Code:
    """Return how one item of a set is read; unknown items have no position and are ignored."""
    check_cells(columns[0], dates=True)
    return code_of(attribute.item_attribute, columns)


def _unknown_items(attribute: Items, columns: tuple[DataColumn, ...]) -> Unexpected:
    return unexpected_of(attribute.item_attribute, columns)


CELLS: Final[dict[type[Attribute], CellReading]] = {
    Integers: CellReading(integers_code, integers_unexpected),
    Decimals: CellReading(decimals_code, decimals_unexpected),
    Dates: CellReading(dates_code, dates_unexpected),
    Times: CellReading(times_code, times_unexpected),
    Categories: CellReading(categories_code, categories_unexpected),
    Flag: CellReading(flag_code, flag_unexpected),
    Grid: CellReading(grid_code, grid_unexpected),
    Items: CellReading(_item_code, _unknown_items),
}


def code_of(attribute: Attribute, columns: tuple[DataColumn, ...]) -> Code:
    """Return how an attribute is read from its columns (two for a grid), or refuse by the schema alone."""
    return CELLS[type(attribute)].code(attribute, columns)


def unexpected_of(attribute: Attribute, columns: tuple[DataColumn, ...]) -> Unexpected:
    """Yield the tests of each kind of unexpected cell; no cell passes two of them."""
    return CELLS[type(attribute)].unexpected(attribute, columns)

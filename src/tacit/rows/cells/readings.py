"""From a raw cell to a position of the domain: one total function, the same on every engine.

Every cell has two readings, whatever the type of its column and whatever file or engine holds it:

* a **number**: of a number, itself (of a decimal, the nearest 64-bit float); of true and false, 1 and 0; of a text, the
  nearest 64-bit float to the decimal number that it spells (`NUMBER`; also `inf` and `infinity`) or, for `true` and
  `false` in any case, 1 and 0; of anything else, and of NaN, none.
* a **text**: of a text, itself; of true and false, `true` and `false`; of a number, its shortest decimal spelling; of a
  date, `2024-05-01`.

Integers, flags and coordinates are compared with the number reading (`number_cells.py`), categories
with both (`category_cells.py`).

A cell that has no position (unknown, missing, out of range, off step) goes where the attribute's `otherwise` says, or
drops its row. What no value of a type can be (dates as integers, decimals as integers without `clip`) is refused by the
type. A dictionary is a way to store values, not a type. Python objects have no type before they are looked at, and one
person's cell must not decide what is refused, so a column of them is one of texts (`object_cells.py`).

The work is split so that only small results leave the engine: a `Code` holds the narwhals expressions that the engine
groups by (already bounded by the domain, so that a column of garbage cannot make more groups than the domain has
cells) and the vectorised numpy step that turns the distinct groups into positions.

Narwhals has no word for a number that a text spells, for a UTC day, for a hash or for the items of a list. Each engine
says these in its own expressions; what is asked, and in which order, is the same for all of them.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused
from tacit.policy.edges.intervals import Intervals
from tacit.rows.files.written import DateForm

Expr: TypeAlias = Any  # a narwhals expression; narwhals is outside the type checker's reach
Positions: TypeAlias = npt.NDArray[np.int64]
Reading: TypeAlias = Literal["whole", "wide", "real", "truth", "text", "date", "time", "list", "other"]

# What a text must look like to be a number. No plus sign, no grouping, at most three digits of exponent: every engine
# parses exactly these texts, each to the nearest 64-bit float, infinite beyond the largest.
NUMBER: Final = r"^ *-?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?|[iI][nN][fF]([iI][nN][iI][tT][yY])?) *$"
SPELLED: Final = re.compile(NUMBER.removesuffix("$") + r"\Z")
# Where a text that has a number reading does not plainly spell it: a space, a leading zero, or it is true or false.
NOT_PLAIN: Final = r"^[ tTfF]|^-?0[0-9]| $"
_SWAPPED: Final = str.maketrans(".,", ",.")
EXACT: Final = 2**53  # below this, whole numbers survive a 64-bit float
_WIDEST: Final = 2**62  # the domain's own bound on whole numbers
_MOST_DIGITS: Final = 15  # of a decimal that every engine turns into the nearest float


@dataclass(frozen=True)
class DataColumn:
    """A data column: how it can be read, its own name, and the plain name it has inside our queries.

    The `element` of a list column says how what is in the lists can be read. A `parsed` number is read from its
    spelling: engines turn long decimals into floats in different ways. `decimals` is how many digits come after the
    point of each cell, by its type, and `bits` how wide its floats are. `as_date` says that the helper column is a
    date, and the shortest form in which a text may name one: `day` (2024-05-01), `month` (also 2024-05) or `year`
    (also 2024); or that it is a time, in seconds since 1970: `second`. `zoned` moments have a time zone, and a `clock`
    is the time of some day: what names rows must know. Texts may have a decimal `comma`, and dates in another `form`
    (`rows/files/written.py`).
    """

    reading: Reading
    signed: bool = True
    parsed: bool = False
    decimals: int = 0
    bits: int = 64
    element: DataColumn | None = None
    raw: str = ""
    name: str = ""
    as_date: str = ""
    zoned: bool = False
    clock: bool = False
    comma: bool = False
    form: DateForm | None = None

    def plain(self, cell: Any) -> Any:
        """Return a cell as Tacit itself writes it."""
        if self.form is not None and isinstance(cell, str):
            cell = self.form.as_iso(cell)
        if self.comma and isinstance(cell, str) and SPELLED.match(swapped := cell.translate(_SWAPPED)):
            return swapped
        return cell

    @property
    def number(self) -> str:
        """The name of the helper column: the number that the cell's text spells, or the UTC date or time."""
        return f"{self.as_date or ('comma' if self.comma else 'n')}_{self.name}"

    @property
    def text(self) -> Expr:
        """The text in the column."""
        return nw.col(self.name).cast(nw.String)


@dataclass(frozen=True, eq=False)  # expressions do not compare to true or false
class ComputedColumn:
    """A helper column that is computed from others; with a name of its own, its expression is written once."""

    number: str
    expression: Expr


Helper: TypeAlias = DataColumn | ComputedColumn


@dataclass(frozen=True, eq=False)
class Code:
    """How one attribute is grouped by in the engine and decoded from the groups.

    `numbers` are the helper columns that everything else looks at, in order (`rows/cells/readings.py` adds them).
    `keys` are the expressions to group by: equal keys mean equal positions, and the other way round. `valid` picks
    the rows that have a position (None: all of them). `decode` turns the key columns of the groups into positions
    (-1 for a group that has none). `atom` says in the engine whether the position (or the `row`, `column` of a grid)
    lies in a set. `atom` and `keys` may be used only on rows that `valid` picks.
    `repeats` says that the raw cells are few and repeat (names, ages), so that it pays to group by them first and to
    look at each distinct cell once; coordinates do not repeat. `ranges` are the lowest and the highest key and the step
    from one to the next, for each key, where keys are whole numbers. `span` are the first and the last whole number
    that the attribute tells apart in a column of them: all below the first have one position (or none), and all above
    the last. It is declared, never read off the data. Where it `is_counted`, a whole number of the span is at the
    position that it has there, the first at 0.
    """

    columns: tuple[DataColumn, ...]
    numbers: tuple[Helper, ...]
    keys: tuple[Expr, ...]
    valid: Expr | None
    repeats: bool
    decode: Callable[[Sequence[pa.ChunkedArray]], Positions]
    atom: Callable[[str, Intervals], Expr]
    ranges: tuple[tuple[int, int, int], ...] = ()
    span: tuple[int, int] | None = None
    is_counted: bool = False

    @property
    def tells_time(self) -> bool:
        """Whether moments are read to the second."""
        return any(isinstance(helper, DataColumn) and helper.as_date == "second" for helper in self.numbers)


def column_of(dtype: Any) -> DataColumn:
    """Say how a column of this narwhals type is read."""
    if dtype in (nw.Int8, nw.Int16, nw.Int32, nw.Int64):
        return DataColumn("whole")
    if dtype in (nw.UInt8, nw.UInt16, nw.UInt32):
        return DataColumn("whole", signed=False)
    if dtype in (nw.UInt64, nw.UInt128):
        return DataColumn("wide", signed=False)
    if dtype == nw.Int128:
        return DataColumn("wide")
    if dtype in (nw.Float16, nw.Float32, nw.Float64):
        return DataColumn("real", bits=16 if dtype == nw.Float16 else 32 if dtype == nw.Float32 else 64)
    if dtype == nw.Decimal:
        return decimal_column(dtype.precision, dtype.scale)
    if dtype == nw.Boolean:
        return DataColumn("truth")
    if dtype == nw.String or dtype == nw.Categorical or dtype == nw.Enum:
        return DataColumn("text")
    if dtype == nw.Date:
        return DataColumn("date")
    if dtype == nw.Datetime:
        return DataColumn("time", zoned=dtype.time_zone is not None)
    if dtype == nw.Time:
        return DataColumn("other", clock=True)
    if dtype == nw.List:
        return DataColumn("list", element=column_of(dtype.inner))
    return DataColumn("other")


def with_date(column: DataColumn, shortest: str) -> DataColumn:
    """Return the column with a date or time as its helper, with the shortest form in which a text may name one."""
    return replace(column, as_date=shortest)


def decimal_column(precision: int, scale: int) -> DataColumn:
    """Say how a column of decimals of so many digits, so many of them after the point, is read."""
    return DataColumn("real", parsed=precision > _MOST_DIGITS or scale < 0, decimals=max(scale, 0))


def number_in(text: str) -> float | None:
    """Return the number that a text spells, or None: the definition that every engine's parser is tested against."""
    if text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    return float(text) if SPELLED.match(text) else None


def spelling(number: float) -> str:
    """Return the text reading of a number: its shortest decimal spelling, without an exponent."""
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return str(int(number)) if number == int(number) else format(Decimal(repr(number)), "f")


def never(column: DataColumn) -> Expr:
    """Return an expression that is false on every row, in every engine."""
    return nw.col(column.name).is_null() & ~nw.col(column.name).is_null()


def check_cells(column: DataColumn, *, dates: bool = False) -> None:
    """Refuse columns of a type whose cells have neither reading; `dates`: the attribute has names, which dates have."""
    if column.reading in ("time", "list", "other"):
        raise DataRefused(
            "must hold texts, numbers or true/false",
            column=column.raw,
            fix="Convert the column to text first." if dates else "Make whole numbers of it first: days, years, cents.",
        )
    if column.reading == "date" and not dates:
        raise DataRefused(
            "holds dates, which are no numbers",
            column=column.raw,
            fix="Declare {dates: [from, to]}, or make whole numbers of them first: years.",
        )


def check_truths(column: DataColumn, low: float, high: float, *, clip: bool) -> None:
    """Refuse true and false for a range that has neither 1 nor 0."""
    truths = [value for value in (0, 1) if low <= value <= high]
    if column.reading == "truth" and not truths and not clip:
        raise unreachable("holds true and false, which count as 1 and 0, and the range has neither", column)


def check_exact(column: DataColumn, largest: int) -> None:
    """Refuse whole numbers that the readings of a column do not tell apart."""
    if largest >= EXACT and column.reading in ("text", "real"):
        raise DataRefused(
            "must have a whole-number type because its domain goes beyond 2^53",
            column=column.raw,
            fix="Cast it to a 64-bit integer first.",
        )
    if largest > _WIDEST:
        raise DataRefused("must have a domain within 62 bits", column=column.raw, fix="Convert the column to text.")


def check_whole(column: DataColumn, *, clip: bool) -> None:
    """Refuse decimals for whole numbers, unless they are rounded down."""
    if column.decimals and not clip:
        raise DataRefused(
            f"holds decimals with {column.decimals} digits after the point, which are no whole numbers",
            column=column.raw,
            fix="Declare otherwise: clip to round them down, or {decimals: [low, high], step: 0.01}.",
        )


def unreachable(rule: str, column: DataColumn) -> DataRefused:
    """Say that no value of a column can be what is declared."""
    return DataRefused(rule, column=column.raw, fix="Declare what the column holds, or convert it first.")


def number_of(column: DataColumn) -> tuple[Expr, bool]:
    """Return the number reading of a column, missing where there is none, and whether it can have fractions."""
    cell = nw.col(column.name)
    match column.reading:
        case "whole":
            return (cell if column.signed else cell.cast(nw.Int64)), False
        case "truth":
            return cell.cast(nw.Int64), False
        case "wide":
            # beyond the widest domain every value of a sign is alike, and a cast to 64 bits could fail
            fits = (cell <= _WIDEST) & (cell >= -_WIDEST) if column.signed else cell <= _WIDEST
            number = (
                nw.when(cell > _WIDEST)
                .then(whole_number(_WIDEST + 1))
                .otherwise(nw.when(fits).then(cell).cast(nw.Int64))
            )
            if column.signed:
                number = nw.when(cell < -_WIDEST).then(whole_number(-_WIDEST - 1)).otherwise(number)
            return number, False
        case "text":
            return nw.col(column.number), True
        case _ if column.parsed:
            return nw.col(column.number), True
        case _:
            # engines disagree on how NaN compares; as a missing value it does not compare at all
            real = cell.cast(nw.Float64)
            return nw.when(~real.is_nan()).then(real), True


def parsed_columns(columns: Iterable[DataColumn]) -> tuple[DataColumn, ...]:
    """Return the columns whose numbers are read from texts."""
    return tuple(column for column in columns if column.reading == "text" or column.parsed)


def whole_number(value: int) -> Expr:
    """Return a whole number that has a type."""
    return nw.lit(value, nw.Int64)


def within(key: Expr, ranges: list[tuple[int, int]], nowhere: Expr) -> Expr:
    """Say in the engine whether a whole number lies in one of the ranges; `nowhere` is what no range at all gives."""
    points = [low for low, high in ranges if low == high]
    parts = [(key >= low) & (key <= high) for low, high in ranges if low < high]
    if points:
        parts.append(key.cast(nw.Int64).is_in(points))
    if not parts:
        return nowhere
    while len(parts) > 1:  # pairwise, so that a long list does not become a deep tree
        parts = [parts[i] | parts[i + 1] if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    return parts[0]


def whole_keys(keys: pa.ChunkedArray) -> tuple[Positions, npt.NDArray[np.bool_]]:
    """Return keys that are whole numbers, and which are missing."""
    missing = np.asarray(keys.is_null().to_numpy(), dtype=np.bool_)
    return np.asarray(keys.cast(pa.int64()).fill_null(0).to_numpy(), dtype=np.int64), missing


class Dialect(ABC):
    """How an engine reads cells. Frames are narwhals' lazy ones; a `native` is the engine's own, as expressions are."""

    def with_readings(self, frame: Any, helpers: Iterable[Helper]) -> Any:
        """Add the helper columns: numbers that texts spell, dates, and what is computed from them."""
        wanted = list(helpers)
        columns = [helper for helper in wanted if isinstance(helper, DataColumn)]
        numbers, dates = ([one for one in columns if bool(one.as_date) is dated] for dated in (False, True))
        frame = self._with(frame, {one.number: self._number(one) for one in numbers})
        told = {f"i_{one.name}": self.iso(self.text(one.name), one.form) for one in dates if one.form is not None}
        frame = self._with(frame, told)
        kinds = self.kinds(nw.to_native(frame)) if dates else {}
        cells = {one: one.name if one.form is None else f"i_{one.name}" for one in dates}
        frame = self._with(
            frame, {one.number: self.date(cell, kinds[cell], one.as_date) for one, cell in cells.items()}
        )
        for helper in wanted:
            if isinstance(helper, ComputedColumn):  # one after the other: each may look at those before it
                frame = frame.with_columns(helper.expression.alias(helper.number))
        return frame

    def _number(self, column: DataColumn) -> Any:
        text = self.text(column.name)
        return self.number(self.swapped(text) if column.comma else text)

    def with_numbers(self, frame: Any, columns: Mapping[str, str]) -> Any:
        """Add the number reading of text columns (new name -> column): whatever spells no number becomes missing."""
        return self._with(frame, {new: self.number(self.text(column)) for new, column in columns.items()})

    def with_plain(self, frame: Any, column: DataColumn) -> Any:
        """Replace a column by its texts as Tacit itself writes them, where they are written in another way."""
        text = self.text(column.name)
        if column.form is not None:
            text = self.iso(text, column.form)
        if column.comma:
            text = self.swapped(text)
        return self._with(frame, {column.name: text} if column.comma or column.form else {})

    def with_hash(self, frame: Any, new: str, column: str) -> Any:
        """Add 52 bits of the SHA-256 of a column's text, as a whole number; missing where the cell is."""
        return self._with(frame, {new: self.hashed(column, self.kinds(nw.to_native(frame))[column])})

    def unrolled(self, frame: Any, column: str, place: str) -> Any:
        """Return one row per element of a list column, with the element's place in its list."""
        return nw.from_native(self.native_unrolled(nw.to_native(frame), column, place)).lazy()

    def _with(self, frame: Any, expressions: Mapping[str, Any]) -> Any:
        return nw.from_native(self.added(nw.to_native(frame), expressions)).lazy() if expressions else frame

    # ------------------------------------------------------------------ what each engine says

    @abstractmethod
    def kinds(self, native: Any) -> Mapping[str, Any]:
        """Return the type of each column, as the engine knows it."""

    @abstractmethod
    def added(self, native: Any, expressions: Mapping[str, Any]) -> Any:
        """Add columns to a frame, or replace those of the same name."""

    @abstractmethod
    def text(self, name: str) -> Any:
        """Return a column as texts."""

    @abstractmethod
    def number(self, text: Any) -> Any:
        """Return the number that a text spells, missing where it spells none."""

    @abstractmethod
    def swapped(self, text: Any) -> Any:
        """Return a text with points for its commas and commas for its points."""

    @abstractmethod
    def iso(self, text: Any, form: DateForm) -> Any:
        """Return a text that has this form as ISO 8601 writes it, any other as it is."""

    @abstractmethod
    def date(self, name: str, kind: Any, precision: str) -> Any:
        """Return the UTC date of a column of this type, or its `second`: how many since 1970, of UTC or as written.

        See `rows/cells/number_cells.py`.
        """

    @abstractmethod
    def hashed(self, name: str, kind: Any) -> Any:
        """Return the first 13 hexadecimal digits of the SHA-256 of a column's text, as a whole number."""

    @abstractmethod
    def native_unrolled(self, native: Any, column: str, place: str) -> Any:
        """Return one row per element of a list column, with the element's place in its list."""

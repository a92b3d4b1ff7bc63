"""From a raw cell to a position of the domain: one total function, the same on every engine.

Every cell has two readings, whatever the type of its column and whatever file or engine holds it:

* a **number**: of a number, itself (of a decimal, the nearest 64-bit float); of true and false, 1 and 0; of a text, the
  nearest 64-bit float to the decimal number that it spells (`NUMBER`; also `inf` and `infinity`) or, for `true` and
  `false` in any case, 1 and 0; of anything else, and of NaN, none.
* a **text**: of a text, itself; of true and false, `true` and `false`; of a number, its shortest decimal spelling; of a
  date, `2024-05-01`.

Integers, flags, coordinates and number categories are compared with the number reading. A text category is the cell's
if it is its text reading. Where no text category is, one that *plainly* spells a number (no space, no leading zero)
takes the cells that plainly spell the same number, and one that says true or false those that say the same in other
letters: `1`, `1.0` and `1e0` are one category, as are `True` and `TRUE`, but `007` is not `7`. So a number or a truth
counts alike in a typed column and spelled in a CSV. A typed column has no spelling of its own: two categories that one
of its values could be (`1` and `1.0`) are refused there, as are categories that no value of its type can be.

A cell that has no position (unknown, missing, out of range, off step) goes where the attribute's `otherwise` says, or
drops its row. What no value of a type can be (dates as integers, decimals as integers without `clip`) is refused by the
type. A dictionary is a way to store values, not a type. Python objects have no type before they are looked at, and one
person's cell must not decide what is refused, so a column of them is one of texts (`object_cells.py`).

The work is split so that only small results leave the engine: a `Code` holds the narwhals expressions that the engine
groups by (already bounded by the domain, so that a column of garbage cannot make more groups than the domain has
cells) and the vectorised numpy step that turns the distinct groups into positions.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused
from tacit.policy.attributes import Categories, Flag, Grid, Integers
from tacit.policy.attributes.attribute import CLIP
from tacit.policy.intervals import Intervals

Expr: TypeAlias = Any  # a narwhals expression; narwhals is outside the type checker's reach
Positions: TypeAlias = npt.NDArray[np.int64]
Reading: TypeAlias = Literal["whole", "wide", "real", "truth", "text", "date", "time", "list", "other"]

# What a text must look like to be a number. No plus sign, no grouping, at most three digits of exponent: every engine
# parses exactly these texts, each to the nearest 64-bit float, infinite beyond the largest.
NUMBER: Final = r"^ *-?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?|[iI][nN][fF]([iI][nN][iI][tT][yY])?) *$"
_NUMBER: Final = re.compile(NUMBER.removesuffix("$") + r"\Z")
# Where a text that has a number reading does not plainly spell it: a space, a leading zero, or it is true or false.
NOT_PLAIN: Final = r"^[ tTfF]|^-?0[0-9]| $"
# What looks like a number and is the text reading of none, because of a leading zero, a plus sign or a space; and NaN.
_PADDED: Final = re.compile(r"(?=[ +]|-?0[0-9]|.* \Z) *[+-]?[0-9]+(\.[0-9]*)? *\Z|[nN][aA][nN]\Z")
EXACT: Final = 2**53  # below this, whole numbers survive a 64-bit float
_WIDEST: Final = 2**62  # the domain's own bound on whole numbers
_MOST_DIGITS: Final = 15  # of a decimal that every engine turns into the nearest float
_HOLDS: Final[dict[str, str]] = {"truth": "true and false", "date": "dates"}


@dataclass(frozen=True)
class Column:
    """A data column: how it can be read, its own name, and the plain name it has inside our queries.

    The `element` of a list column says how what is in the lists can be read. A `parsed` number is read from its
    spelling: engines turn long decimals into floats in different ways. `decimals` is how many digits come after the
    point of each cell, by its type, and `bits` how wide its floats are. `as_date` says that the helper column is a
    date, and the shortest form in which a text may name one: `day` (2024-05-01), `month` (also 2024-05) or `year`
    (also 2024). `zoned` moments have a time zone, and a `clock` is the time of some day: what names rows must know.
    """

    reading: Reading
    signed: bool = True
    parsed: bool = False
    decimals: int = 0
    bits: int = 64
    element: Column | None = None
    raw: str = ""
    name: str = ""
    as_date: str = ""
    zoned: bool = False
    clock: bool = False

    @property
    def number(self) -> str:
        """The name of the helper column: the number that the cell's text spells, or the UTC date that it is."""
        return f"{self.as_date or 'n'}_{self.name}"

    @property
    def text(self) -> Expr:
        """The text in the column."""
        return nw.col(self.name).cast(nw.String)


@dataclass(frozen=True, eq=False)  # expressions do not compare to true or false
class Derived:
    """A helper column that is computed from others; with a name of its own, its expression is written once."""

    number: str
    expression: Expr


Helper: TypeAlias = Column | Derived


@dataclass(frozen=True, eq=False)
class Code:
    """How one attribute is grouped by in the engine and decoded from the groups.

    `numbers` are the helper columns that everything else looks at, in order (`rows/engines` adds them).
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

    columns: tuple[Column, ...]
    numbers: tuple[Helper, ...]
    keys: tuple[Expr, ...]
    valid: Expr | None
    repeats: bool
    decode: Callable[[Sequence[pa.ChunkedArray]], Positions]
    atom: Callable[[str, Intervals], Expr]
    ranges: tuple[tuple[int, int, int], ...] = ()
    span: tuple[int, int] | None = None
    is_counted: bool = False


def column_of(dtype: Any) -> Column:
    """Say how a column of this narwhals type is read."""
    if dtype in (nw.Int8, nw.Int16, nw.Int32, nw.Int64):
        return Column("whole")
    if dtype in (nw.UInt8, nw.UInt16, nw.UInt32):
        return Column("whole", signed=False)
    if dtype in (nw.UInt64, nw.UInt128):
        return Column("wide", signed=False)
    if dtype == nw.Int128:
        return Column("wide")
    if dtype in (nw.Float16, nw.Float32, nw.Float64):
        return Column("real", bits=16 if dtype == nw.Float16 else 32 if dtype == nw.Float32 else 64)
    if dtype == nw.Decimal:
        return decimal_column(dtype.precision, dtype.scale)
    if dtype == nw.Boolean:
        return Column("truth")
    if dtype == nw.String or dtype == nw.Categorical or dtype == nw.Enum:
        return Column("text")
    if dtype == nw.Date:
        return Column("date")
    if dtype == nw.Datetime:
        return Column("time", zoned=dtype.time_zone is not None)
    if dtype == nw.Time:
        return Column("other", clock=True)
    if dtype == nw.List:
        return Column("list", element=column_of(dtype.inner))
    return Column("other")


def with_date(column: Column, shortest: str) -> Column:
    """Return the column with a date as its helper; `shortest` is the shortest form in which a text may name one."""
    return replace(column, as_date=shortest)


def decimal_column(precision: int, scale: int) -> Column:
    """Say how a column of decimals of so many digits, so many of them after the point, is read."""
    return Column("real", parsed=precision > _MOST_DIGITS or scale < 0, decimals=max(scale, 0))


def number_in(text: str) -> float | None:
    """Return the number that a text spells, or None: the definition that every engine's parser is tested against."""
    if text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    return float(text) if _NUMBER.match(text) else None


def spelling(number: float) -> str:
    """Return the text reading of a number: its shortest decimal spelling, without an exponent."""
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return str(int(number)) if number == int(number) else format(Decimal(repr(number)), "f")


def never(column: Column) -> Expr:
    """Return an expression that is false on every row, in every engine."""
    return nw.col(column.name).is_null() & ~nw.col(column.name).is_null()


def check_cells(column: Column, *, dates: bool = False) -> None:
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


def check_truths(column: Column, low: float, high: float, *, clip: bool) -> None:
    """Refuse true and false for a range that has neither 1 nor 0."""
    truths = [value for value in (0, 1) if low <= value <= high]
    if column.reading == "truth" and not truths and not clip:
        raise _unreachable("holds true and false, which count as 1 and 0, and the range has neither", column)


def _check_categories(attribute: Categories, column: Column) -> None:
    """Refuse what no value of a column of this type can be, and what its values cannot tell apart."""
    typed = column.reading in ("whole", "wide", "real")
    largest = max((abs(value) for value in attribute.values if not isinstance(value, str)), default=0)
    texts = [value for value in attribute.values if isinstance(value, str)]
    padded = [text for text in texts if _PADDED.match(text)]
    if padded and typed:
        raise DataRefused(
            f"holds numbers, but the category {padded[0]!r} is a text that no number spells",
            column=column.raw,
            fix=f"Read the column as text: dtype={{{column.raw!r}: str}} in pandas.",
        )
    if typed:
        meant = [number for text in texts if (number := _meant(text)) is not None and math.isfinite(number)]
        largest = max([largest, *(abs(int(number)) for number in meant)])
    _check_exact(column, largest)


def _check_exact(column: Column, largest: int) -> None:
    """Refuse whole numbers that the readings of a column do not tell apart."""
    if largest >= EXACT and column.reading in ("text", "real"):
        raise DataRefused(
            "must have a whole-number type because its domain goes beyond 2^53",
            column=column.raw,
            fix="Cast it to a 64-bit integer first.",
        )
    if largest > _WIDEST:
        raise DataRefused("must have a domain within 62 bits", column=column.raw, fix="Convert the column to text.")


def check_whole(column: Column, *, clip: bool) -> None:
    """Refuse decimals for whole numbers, unless they are rounded down."""
    if column.decimals and not clip:
        raise DataRefused(
            f"holds decimals with {column.decimals} digits after the point, which are no whole numbers",
            column=column.raw,
            fix="Declare otherwise: clip to round them down, or {decimals: [low, high], step: 0.01}.",
        )


def _unreachable(rule: str, column: Column) -> DataRefused:
    return DataRefused(rule, column=column.raw, fix="Declare what the column holds, or convert it first.")


def number_of(column: Column) -> tuple[Expr, bool]:
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
            number = nw.when(cell > _WIDEST).then(_int(_WIDEST + 1)).otherwise(nw.when(fits).then(cell).cast(nw.Int64))
            if column.signed:
                number = nw.when(cell < -_WIDEST).then(_int(-_WIDEST - 1)).otherwise(number)
            return number, False
        case "text":
            return nw.col(column.number), True
        case _ if column.parsed:
            return nw.col(column.number), True
        case _:
            # engines disagree on how NaN compares; as a missing value it does not compare at all
            real = cell.cast(nw.Float64)
            return nw.when(~real.is_nan()).then(real), True


def parsed_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return the columns whose numbers are read from texts."""
    return tuple(column for column in columns if column.reading == "text" or column.parsed)


def flag_code(attribute: Flag, columns: tuple[Column, ...]) -> Code:
    """Return how a flag is read: as the numbers 0 and 1."""
    (column,) = columns
    check_cells(column)
    otherwise = None if attribute.otherwise is None else int(attribute.otherwise)
    return _integers(Integers(0, 1, otherwise=otherwise), column)


def integers_code(attribute: Integers, columns: tuple[Column, ...]) -> Code:
    """Return how integers are read, or refuse by the schema alone."""
    (column,) = columns
    check_cells(column)
    check_whole(column, clip=attribute.clips)
    if attribute.high - attribute.low >= 2**63:
        raise DataRefused("must have a domain narrower than 2^63", column=column.raw, fix="Narrow the range.")
    check_truths(column, attribute.low, attribute.high, clip=attribute.clips)
    _check_exact(column, max(abs(attribute.low), abs(attribute.high)))
    return _integers(attribute, column)


def _integers(attribute: Integers, column: Column) -> Code:
    number, real = number_of(column)
    ends = attribute.low, attribute.high, attribute.step
    key, valid = lattice_key(number, *ends, attribute.otherwise, real=real)
    found = on_lattice(column, key, valid, ends, numbers=parsed_columns((column,)), span=ends[:2])
    return replace(found, is_counted=attribute.step == 1)


def on_lattice(
    column: Column,
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
        values, missing = _whole(keys[0])
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
            nw.when(number <= low).then(_int(low)).otherwise(nw.when(number >= high).then(_int(high)).otherwise(inner))
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
        return nw.when(inside).then(number).otherwise(_int(int(otherwise))).cast(nw.Int64), None
    return (nw.when(inside).then(number).cast(nw.Int64) if real else number), inside


def grid_code(attribute: Grid, columns: tuple[Column, ...]) -> Code:
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
            nw.when(both).then(key).otherwise(_int(cell)) for key, cell in zip(keys, attribute.otherwise, strict=True)
        ]
        both = None

    def decode(found: Sequence[pa.ChunkedArray]) -> Positions:
        (rows, no_row), (cells, no_column) = _whole(found[0]), _whole(found[1])
        return np.where(no_row | no_column, -1, rows * attribute.columns + cells)

    def atom(part: str, positions: Intervals) -> Expr:
        place = 0 if part == "row" else 1
        return within(keys[place], list(positions), never(columns[place]))

    ranges = tuple((0, size - 1, 1) for size in sizes)
    return Code(columns, parsed_columns(columns), tuple(keys), both, False, decode, atom, ranges)


def _coordinate(column: Column, low: float, high: float, cells: int, *, clip: bool) -> tuple[Expr, Expr]:
    number = nw.col(column.name) if column.reading == "wide" else number_of(column)[0]
    number = number.cast(nw.Float64)
    low, high = float(low), float(high)
    inside = (number >= low) & (number <= high)
    share = ((nw.when(inside).then(number) - low) / (high - low) * float(cells)).floor()
    # the upper end belongs to the last cell, and so does what rounding pushes onto it
    cell = nw.when(number >= high).then(_int(cells - 1)).otherwise(share)
    if clip:
        cell = nw.when(number <= low).then(_int(0)).otherwise(cell)
        bounded = nw.when(~number.is_null()).then(cell).cast(nw.Int64)
    else:
        bounded = nw.when(inside).then(cell).cast(nw.Int64)
    bounded = nw.when(bounded >= cells - 1).then(_int(cells - 1)).otherwise(bounded)
    return bounded, ~number.is_null() if clip else inside


@dataclass
class Meanings:
    """What stands for a category in a column of one type: each text and each number for one place.

    A number of `plain` is meant only by cells that plainly spell it, any other number by every cell that has it. Texts
    that differ from a category in case alone are `folded` into it.
    """

    texts: dict[str, int] = field(default_factory=dict)
    numbers: dict[float, int] = field(default_factory=dict)
    plain: set[float] = field(default_factory=set)
    folded: dict[str, list[str]] = field(default_factory=dict)


def categories_code(attribute: Categories, columns: tuple[Column, ...]) -> Code:
    """Return how categories are read, or refuse by the schema alone."""
    (column,) = columns
    check_cells(column, dates=True)
    _check_categories(attribute, column)
    meanings = meanings_of(attribute, column)
    texts, numbers = meanings.texts, meanings.numbers
    number = number_of(column)[0] if numbers else None
    if number is not None and column.reading in ("whole", "truth"):
        number = number.cast(nw.Int64)
    cell = column.text
    for said, others in meanings.folded.items():
        cell = nw.when(column.text.is_in(others)).then(nw.lit(said, nw.String)).otherwise(cell)
    other = None if attribute.otherwise is None else attribute.position(attribute.otherwise)
    by_number = None if number is None or column.reading != "text" else _by_number(meanings, column, number)

    everywhere = Intervals.full(attribute.size)

    def spelled(positions: Intervals) -> Expr:
        """Say on each row whether its text is one of these categories; missing counts as no."""
        wanted = [text for text, place in texts.items() if place in positions]
        return cell.is_in(wanted).fill_null(False) if wanted else never(column)

    def numbered(positions: Intervals) -> Expr:
        """Say on each row whether its number is one of these categories."""
        wanted = [value for value, place in numbers.items() if place in positions]
        if number is None or not wanted:
            return never(column)
        listed = number.is_in(wanted).fill_null(False)
        return listed if by_number is None else listed & by_number

    def hits(positions: Intervals) -> Expr:
        if not texts or number is None:
            return spelled(positions) if texts else numbered(positions)
        return spelled(positions) | numbered(positions)

    # a missing key stands for `otherwise`, so the category that `otherwise` names must have no key of its own
    keyed = everywhere if other is None else everywhere.without(Intervals.points([other]))
    keys: list[Expr] = []
    if texts:
        known = None if by_number is None else ~by_number  # no long list of names where none is needed
        chosen = spelled(keyed) if other is not None else known
        keys.append(cell if chosen is None else nw.when(chosen).then(cell))
    if number is not None:
        chosen = numbered(keyed) if other is not None else by_number
        keys.append(number if chosen is None else nw.when(chosen).then(number))

    def decode(found: Sequence[pa.ChunkedArray]) -> Positions:
        tables: list[dict[Any, int]] = [table for table in (texts, numbers) if table]
        positions = np.full(len(found[0]) if found else 1, -1 if other is None else other, dtype=np.int64)
        for keys_found, table in zip(found, tables, strict=True):
            places = _looked_up(keys_found, table)
            positions = np.where(places >= 0, places, positions)
        return positions

    def atom(_: str, positions: Intervals) -> Expr:
        if other is not None and other in positions:
            return ~hits(everywhere.without(positions))
        return hits(positions)

    needed = parsed_columns((column,)) if numbers else ()
    whole = [number for number in numbers if isinstance(number, int)]  # all of them in a column of whole numbers
    return Code(
        (column,),
        needed,
        tuple(keys),
        hits(everywhere) if other is None else None,
        True,
        decode,
        atom,
        span=(min(whole), max(whole)) if whole else None,
    )


def _by_number(meanings: Meanings, column: Column, number: Expr) -> Expr:
    """Say on each row of a text column whether the cell is compared as a number: its own text goes first."""
    compared = ~column.text.str.contains(NOT_PLAIN)
    if anyhow := [value for value in meanings.numbers if value not in meanings.plain]:
        compared = compared | number.is_in(anyhow)
    compared = compared & ~number.is_null()
    if listed := [text for text in meanings.texts if number_in(text) is not None]:
        said = [text for others in (meanings.folded.get(one, []) for one in listed) for text in others]
        compared = compared & ~column.text.is_in([*listed, *said])
    return compared.fill_null(False)


def meanings_of(attribute: Categories, column: Column) -> Meanings:
    """Return what stands for each category in a column of this type, or refuse what its values cannot tell apart."""
    found = Meanings()
    if column.reading == "text":
        _add_texts(found, attribute)
    for place, value in enumerate(attribute.values) if column.reading != "text" else ():
        if column.reading == "date":
            if isinstance(value, str):
                found.texts[value] = place
        elif (number := _typed(value, column.reading)) is not None:
            if number in found.numbers:
                first = attribute.values[found.numbers[number]]
                raise DataRefused(
                    f"holds {_HOLDS.get(column.reading, 'numbers')}, "
                    f"of which the categories {first!r} and {value!r} are the same one",
                    column=column.raw,
                    fix="Keep one of them, or convert the column to text.",
                )
            found.numbers[number] = place
    if not found.texts and not found.numbers:
        raise _unreachable(f"holds {_HOLDS.get(column.reading, 'numbers')}, and no category is one of them", column)
    return found


def _add_texts(found: Meanings, attribute: Categories) -> None:
    """Say what texts mean: each category itself, and the first that spells a number or a truth its other spellings."""
    numbers = {float(int(value)): place for place, value in enumerate(attribute.values) if not isinstance(value, str)}
    found.numbers.update(numbers)
    for place, value in enumerate(attribute.values):
        if not isinstance(value, str):
            continue
        number = _meant(value)
        if number is not None and number not in found.numbers and (abs(number) < EXACT or math.isinf(number)):
            found.numbers[float(number)] = place
            found.plain.add(float(number))
            continue
        found.texts[value] = place
        said = value.lower()
        if (
            said in ("true", "false")
            and float(said == "true") not in numbers
            and not any(text.lower() == said for text in found.folded)
        ):
            listed = {text for text in attribute.values if isinstance(text, str)}
            found.folded[value] = [text for text in _in_all_cases(said) if text not in listed]


def _in_all_cases(word: str) -> list[str]:
    return ["".join(letters) for letters in itertools.product(*((letter, letter.upper()) for letter in word))]


def _meant(text: str) -> float | int | None:
    """Return the number that a text plainly spells, whole where it is whole, or None."""
    if re.match(r"(0|-?[1-9][0-9]{0,300})\Z", text):
        return int(text)
    if not _NUMBER.match(text) or re.search(NOT_PLAIN, text):
        return None
    number = float(text)
    return int(number) if math.isfinite(number) and number == int(number) else number


def _typed(value: Any, reading: Reading) -> float | int | None:
    """Return the number that a category is in a column of numbers or truths, or None where no such number is one."""
    if reading == "truth" and isinstance(value, str):
        return {"true": 1, "false": 0}.get(value.lower())
    number = _meant(value) if isinstance(value, str) else int(value)
    if number is None or (reading == "truth" and number not in (0, 1)):
        return None
    if reading == "real":
        return float(number)
    return number if isinstance(number, int) else None


def _int(value: int) -> Expr:
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


def _whole(keys: pa.ChunkedArray) -> tuple[Positions, npt.NDArray[np.bool_]]:
    missing = np.asarray(keys.is_null().to_numpy(), dtype=np.bool_)
    return np.asarray(keys.cast(pa.int64()).fill_null(0).to_numpy(), dtype=np.int64), missing


def _looked_up(keys: pa.ChunkedArray, table: dict[Any, int]) -> Positions:
    """Return the position of each key, -1 where it is missing or not in the table; one Python step per distinct key."""
    coded = keys.combine_chunks()
    if isinstance(coded, pa.ChunkedArray):
        coded = pa.concat_arrays(coded.chunks) if coded.num_chunks else pa.array([], type=coded.type)
    if not pa.types.is_dictionary(coded.type):
        coded = coded.dictionary_encode()
    places = np.array([table.get(key, -1) for key in coded.dictionary.to_pylist()] + [-1], dtype=np.int64)
    codes = coded.indices.cast(pa.int64()).fill_null(len(places) - 1)
    return places[np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int64)]

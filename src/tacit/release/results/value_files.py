"""Released numbers as files (CSV, and Parquet for tables that no spreadsheet opens) and as texts for people.

Which kind of file a table gets follows from the number of its answers by policy and question, never from what was
released.

In CSV, a text that a spreadsheet would take for a formula (it begins with `=`, `+`, `-`, `@`, a tab or a line end) gets
an apostrophe before it, and so does one that begins with an apostrophe, and one that would be written like a number of
its column: any two labels stay different. Numbers stay numbers. A column of numbers with the name of a label gets
another name. Numbers are rounded to half of the expected error or finer, which makes the error larger by one percent at
most; ends of intervals are rounded outwards, so that no interval gets narrower. Rounded numbers need not add up to the
last digit; `record.values` has all digits.

Parquet files have the same columns and the same rounded numbers; labels are as in the policy. Texts (reports, captions,
the terminal) have the same digits, with commas between thousands.
"""

from __future__ import annotations

import csv
import math
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import numpy as np

from tacit.arrays import Floats

if TYPE_CHECKING:
    from tacit.plan.plans.plan import Plan

LARGEST_CSV: Final = 1_000_000  # answers in one file: a spreadsheet opens 1,048,576 lines
_FORMULA: Final = re.compile(r"['=+\-@\t\r\n＝＋－＠]")
_PLAIN_NUMBER: Final = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?")
_MOST_DECIMALS: Final = 6
_CACHED: Final = 2**16  # numbers that are rounded at a time: they stay in the processor's cache
_OUTWARDS: Final = {"lower": np.floor, "upper": np.ceil}


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Open a file that appears all at once, in the place of an earlier one, for everybody to read; or not at all."""
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            yield file
        os.chmod(draft, 0o644)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def spreadsheet_safe(cell: Any) -> Any:
    """Return a label that no spreadsheet takes for a formula; a number, also one that is written as text, stays.

    What begins with an apostrophe got one here, also if it had one before: no two texts become the same.

    >>> [spreadsheet_safe(cell) for cell in ("=1+1", "'=1+1", "-5", "@x", "flu", -5)]
    ["'=1+1", "''=1+1", '-5', "'@x", 'flu', -5]
    """
    if not isinstance(cell, str) or not _FORMULA.match(cell) or _PLAIN_NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"


def decimals_for(error: float) -> int:
    """Return how many decimals mean something beside an expected error: the last one counts half of it or less.

    >>> [decimals_for(error) for error in (0, 141, 5.48, 1.4, 0.15)]
    [6, 0, 0, 1, 2]
    """
    if not 0 < error < math.inf:
        return _MOST_DECIMALS  # exact: whatever there is
    # rounding to a unit u adds u^2/12 to the variance: with u = error/2, a factor of 1.0104 to the error
    return min(max(0, math.ceil(math.log10(2 / error))), _MOST_DECIMALS)


def file_name(stem: str, answers: int) -> str:
    """Return what the file of a table with so many answers is called.

    >>> file_name("ages", 121), file_name("visits", 10_000_000)
    ('ages.csv', 'visits.parquet')
    """
    return f"{stem}.csv" if answers <= LARGEST_CSV else f"{stem}.parquet"


def planned_file_name(stem: str, plan: Plan) -> str:
    """Return what the file of a plan's table is called; how many true records there are is not known before."""
    return file_name(stem, plan.answers) if plan.records is None else f"{stem}.parquet"


def rounded(name: str, numbers: Floats, decimals: int) -> list[Any]:
    """Return a column of numbers as CSV has it; `lower` is rounded down and `upper` up."""
    return _as_cells(_turned(name, numbers, decimals))


def _as_cells(numbers: Floats) -> list[Any]:
    return [int(number) if number.is_integer() else "" if math.isnan(number) else number for number in numbers.tolist()]


def _all_turned(numbers: Mapping[str, Floats], decimals: int, shares: Floats | None) -> dict[str, Floats]:
    """Return all columns of numbers as they are written; where there is one number, no digit is turned outwards."""
    turned = {name: _turned(name, column, decimals) for name, column in numbers.items()}
    if _OUTWARDS.keys() <= numbers.keys():
        exact = numbers["lower"] == numbers["upper"]
        turned |= {end: np.where(exact, turned["value"], turned[end]) for end in _OUTWARDS}
    if shares is not None:
        turned["share"] = _turned("share", shares, _MOST_DECIMALS)
    return turned


def _turned(name: str, numbers: Floats, decimals: int) -> Floats:
    scale, turn = 10.0**decimals, _OUTWARDS.get(name, np.round)
    turned = np.empty(len(numbers), dtype=np.float64)
    for start in range(0, len(numbers), _CACHED):
        part = slice(start, start + _CACHED)
        scaled = numbers[part] * scale
        whole = np.round(scaled)
        # what misses a whole number by no more than the product's own rounding is that number; no infinite end is
        with np.errstate(invalid="ignore"):
            is_whole = np.abs(scaled - whole) <= np.maximum(1e-6, 4 * np.spacing(np.abs(scaled)))
        # a zero has no sign: -0.0 would look like another number
        turned[part] = np.where(is_whole, whole, turn(scaled)) / scale + 0.0
    return turned


def side_by_side(labels: Mapping[str, Any], numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return labels and numbers as the columns of one table; numbers that are called like a label get another name.

    >>> list(side_by_side({"value": ["low", "high"], "sex": ["f", "f"]}, {"value": [7, 9], "lower": [5, 7]}))
    ['value', 'sex', 'value (released)', 'lower']
    """
    columns = dict(labels)
    for name, column in numbers.items():
        columns[unlike(name, columns)] = column
    return columns


def unlike(name: str, taken: Iterable[Any]) -> str:
    """Return a name for a column of ours that is none of these; in several engines case makes no difference."""
    others = {str(other).casefold() for other in taken}
    while name.casefold() in others:
        name = f"{name} (released)"
    return name


def write_table(
    folder: Path,
    name: str,
    answers: int,
    labels: Mapping[str, Sequence[Any]],
    numbers: Mapping[str, Floats],
    *,
    error: float,
    shares: Floats | None = None,
) -> str:
    """Write labels and numbers to a file of this name, of the kind that so many answers have; return its whole name.

    `error` is the expected error of one of the values, `shares` are a last column.
    """
    path = folder / file_name(name, answers)
    if answers <= LARGEST_CSV:
        write_csv(path, labels, numbers, error=error, shares=shares)
    else:
        from tacit.rows.sources.frames import write_parquet

        write_parquet(path, side_by_side(labels, _all_turned(numbers, decimals_for(error), shares)))
    return path.name


def write_csv(
    path: Path,
    labels: Mapping[str, Sequence[Any]],
    numbers: Mapping[str, Floats],
    *,
    error: float,
    shares: Floats | None = None,
) -> None:
    """Write labels and numbers as CSV."""
    columns = written_columns(labels, numbers, error=error, shares=shares)
    _write(path, list(columns), list(columns.values()))


def written_columns(
    labels: Mapping[str, Sequence[Any]],
    numbers: Mapping[str, Floats],
    *,
    error: float,
    shares: Floats | None = None,
) -> dict[str, Sequence[Any]]:
    """Return labels, and numbers with the digits that mean something, as the columns of one table."""
    turned = _all_turned(numbers, decimals_for(error), shares)
    return side_by_side(labels, {name: _as_cells(column) for name, column in turned.items()})


def write_cross_table(
    path: Path, heading: str, rows: Sequence[Any], across: Sequence[Any], grid: Floats, *, error: float
) -> None:
    """Write values by two attributes as CSV: one down, below `heading`, and one across."""
    decimals = decimals_for(error)
    columns = [rounded("value", column, decimals) for column in grid.T]
    _write(path, [unlike(heading, across), *across], [rows, *columns])


def _write(path: Path, names: Sequence[Any], columns: Sequence[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        _write_columns(file, names, columns)


def write_frame(frame: Any, file: TextIO) -> None:
    """Write a pandas frame as CSV whose texts no spreadsheet takes for formulas or for several lines."""
    from pandas import NA as missing  # noqa: N811 - not a constant of ours

    columns = [
        rounded(name, frame[name].to_numpy(dtype=np.float64, na_value=np.nan), _MOST_DECIMALS)
        if frame[name].dtype.kind == "f"
        else [None if cell is missing else cell for cell in frame[name].tolist()]
        for name in frame.columns
    ]
    _write_columns(file, list(frame.columns), columns)


def _write_columns(file: TextIO, names: Sequence[Any], columns: Sequence[Sequence[Any]]) -> None:
    headings, safe = _told_apart(names), [_told_apart(column) for column in columns]
    # a carriage return alone ends a line for many readers, but is no reason to quote for the writer
    has_returns = any(isinstance(cell, str) and "\r" in cell for column in (headings, *safe) for cell in column)
    writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC if has_returns else csv.QUOTE_MINIMAL)
    writer.writerow(headings)
    writer.writerows(zip(*safe, strict=True))


def _told_apart(cells: Sequence[Any]) -> list[Any]:
    """Return the cells of one column, or the headings, as they are written: safe, and no two of them alike.

    >>> _told_apart([1, "1", "'1", 0.00001, None])
    [1, "'1", "''1", Decimal('0.00001'), None]
    """
    numbers = {str(_plain(cell)) for cell in cells if not isinstance(cell, str) and cell is not None}
    return [
        _plain(cell) if not isinstance(cell, str) else f"'{cell}" if cell in numbers else spreadsheet_safe(cell)
        for cell in cells
    ]


def _plain(number: Any) -> Any:
    """Return a number that is written with its own digits and no exponent."""
    if not isinstance(number, float) or not math.isfinite(number):
        return number
    return Decimal(np.format_float_positional(number, trim="0"))


def number_texts(name: str, numbers: Floats, error: float) -> list[str]:
    """Return a column of numbers as texts; one that is no finite number is empty.

    >>> number_texts("value", np.array([1234.56, -0.2]), error=5.0)
    ['1,235', '0']
    >>> number_texts("lower", np.array([35.46]), error=1.0), number_texts("upper", np.array([35.42]), error=1.0)
    (['35.4'], ['35.5'])
    """
    return [_text(number) for number in rounded(name, np.asarray(numbers, dtype=np.float64), decimals_for(error))]


def number_text(name: str, number: float, error: float) -> str:
    """Return one number of such a column."""
    return number_texts(name, np.array([number]), error)[0]


def with_interval(value: float, lower: float, upper: float, error: float, *, before: str = "") -> str:
    """Return a value with its interval in brackets; an exact one (error 0) stands alone. What is about nobody says so.

    >>> with_interval(12.0, 9.4, 15.1, 2.0, before="95% interval "), with_interval(3.0, 3.0, 3.0, 0.0)
    ('12 (95% interval 9 to 16)', '3')
    """
    if math.isnan(value):
        return "nobody"
    text = number_text("value", value, error)
    if error == 0:
        return text
    return f"{text} ({before}{number_text('lower', lower, error)} to {number_text('upper', upper, error)})"


def _text(number: Any) -> str:
    return f"{number:,}" if isinstance(number, int | float) and math.isfinite(number) else ""

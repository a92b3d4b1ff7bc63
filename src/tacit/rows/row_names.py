"""Names of rows, from columns that are no attributes: each in one spelling, however a table is written.

Guarantee   Cells that mean the same name give equal values on every engine and in every type, and others never do: a
            coin is made from that value alone, and that no key is there twice is checked on it.
Assumes     Columns that name a row are public: that one has no value, or no exact one, may be said.
Why         A name is a whole number, a date or a text, and a text that spells one of the others is that:
            - Numbers: a sign, zeros in front, zeros behind the point and the exponents that programs write (1e+05,
              1.0E7) do not matter, in any number of digits; 2.10 and 2.1 are one name. 12e4 is a text, since nobody
              writes a number so and many ids look so.
            - Floats that are not whole, or so large that a neighbour may have been rounded to them, name nobody: they
              would be other names than those of the numbers that they came from.
            - Dates: a moment stands for its day in UTC, as in attributes; without a zone, for the day that it says.
            - Times of the day: seconds that are zero, and zeros behind their point, do not matter.
            - Texts: without the space around them and without signs that nobody sees (a byte order mark, a space of no
              width), in Unicode's composed form; `True` is `true`. Case matters.
            Names that are taken for one where they should be two are refused as a key that is there twice; names that
            were taken for two would give one record two coins for the price of one. So in doubt they are one.
Checked by  tests/contract/test_row_names.py
"""

from __future__ import annotations

import datetime
import decimal
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tacit.errors import DataRefused
from tacit.rows.encode import Column

NAMING: Final = ("whole", "wide", "real", "text", "date", "time")  # how columns are read that may name a row
Name: TypeAlias = int | str
Refusal: TypeAlias = Callable[[str], DataRefused]

_EXACT: Final = {16: 2**11, 32: 2**24, 64: 2**53}  # below these, floats of so many bits hold every whole number
_FITS: Final = range(-(2**63), 2**63)  # whole numbers that frames of every kind can show; larger ones are texts
_NUMERAL: Final = re.compile(r"([-+]?)([0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?")
_MOMENT: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::[0-9]{2}(?:\.[0-9]*)?)? ?(?:[zZ]|([-+])([0-9]{2}):?([0-9]{2})?)?)?"
)

_CLOCK: Final = re.compile(r"([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]*))?)?")


@dataclass(frozen=True, eq=False)
class Named:
    """A column that names rows: each value once, and for every row which of them it has.

    `spelled` has how names are shown that are shown in another way: the one of the table.
    """

    values: Sequence[Name]
    which: npt.NDArray[Any]
    spelled: Mapping[Name, str] = field(default_factory=dict)

    def some(self, picked: npt.NDArray[np.bool_]) -> Named:
        """Return some of the rows."""
        return Named(self.values, self.which[picked], self.spelled)


def missing_key(name: str) -> DataRefused:
    """Return the refusal of a key without a value; it says nothing of what keys are, which may be a secret."""
    return DataRefused(
        "must have a value in every row, since it is part of the key (that every row has one is taken as known, so "
        "that this may be said)",
        column=name,
        fix="Fill it in or remove the row, and ask again: by the same key that costs nothing more. Another key is "
        "charged anew.",
    )


def not_a_name(name: str) -> DataRefused:
    """Return the refusal of a column that does not name rows."""
    return DataRefused(
        "must hold whole numbers, texts or dates, because it names rows (keys are public, so that this may be said)",
        column=name,
        fix="Name another column, or convert it first.",
    )


def not_exact(name: str) -> DataRefused:
    """Return the refusal of floats that stand for several whole numbers."""
    return DataRefused(
        "must not name rows by floats that are too large to tell whole numbers apart (keys are public, so that this "
        "may be said)",
        column=name,
        fix="Read the column as whole numbers or as texts from where it came from. What was asked stays charged.",
    )


def named(cells: Any, column: Column, name: str) -> Named:
    """Return what names the rows, each value once, in its one spelling."""
    if hasattr(cells, "chunks"):
        cells = cells.combine_chunks()
    encoded = cells if hasattr(cells, "dictionary") else cells.dictionary_encode()
    if encoded.indices.null_count:
        raise missing_key(name)
    values: list[Name] = []
    spelled: dict[Name, str] = {}
    for cell in encoded.dictionary.to_pylist():
        found = name_of(cell, column.bits)
        if callable(found):
            raise found(name)
        values.append(found)
        if isinstance(cell, str) and isinstance(found, str) and "." in found and _NUMERAL.fullmatch(found):
            spelled[found] = min(cell.strip(), spelled.get(found, cell.strip()))
    return Named(values, encoded.indices.to_numpy(zero_copy_only=False), spelled)


def in_one_list(parts: Sequence[Named]) -> tuple[list[Name], npt.NDArray[np.int64]]:
    """Return all names in order, numbers before texts, as they are shown; and which of them each row has."""
    values = sorted(
        {value for part in parts for value in part.values}, key=lambda value: (isinstance(value, str), value)
    )
    place = {value: at for at, value in enumerate(values)}
    which = [np.array([place[value] for value in part.values], dtype=np.int64)[part.which] for part in parts]
    shown: dict[Name, Name] = {}
    for value, spelling in _pairs(parts):
        shown[value] = min(spelling, str(shown.get(value, spelling)))
    return [shown.get(value, value) for value in values], np.concatenate([np.zeros(0, dtype=np.int64), *which])


def _pairs(parts: Sequence[Named]) -> Iterable[tuple[Name, str]]:
    return (pair for part in parts for pair in part.spelled.items())


def name_of(cell: Any, bits: int = 64) -> Name | Refusal:
    r"""Return the one spelling of a name, or the refusal of what is none; `bits` is how wide a float was.

    >>> [name_of(cell) for cell in (7, 7.0, "007", "+7.00", " 7 ", decimal.Decimal("7.00"), "7e+00", "B7", "12e4")]
    [7, 7, 7, 7, 7, 7, 7, 'B7', '12e4']
    >>> [name_of(cell) for cell in ("1700000000000000007.0", "-0", "2.10", "1" + 19 * "0")]
    [1700000000000000007, 0, '2.1', '10000000000000000000']
    >>> [name_of(cell) for cell in ("2024-01-05 00:00:00", "2024-01-05T00:30+01:00", datetime.date(2024, 1, 5))]
    ['2024-01-05', '2024-01-04', '2024-01-05']
    >>> [name_of(cell) for cell in ("10:30", "10:30:00.000", "10:30:01.50", "True", "e\u0301 \u200b")]
    ['10:30:00', '10:30:00', '10:30:01.5', 'true', 'é']
    >>> [name_of(cell).__name__ for cell in ("", None, float("nan"), 1.5, 2.0**53, "1.7e+18")]
    ['missing_key', 'missing_key', 'missing_key', 'not_a_name', 'not_exact', 'not_exact']
    """
    if cell is None or cell != cell:  # NaN
        return missing_key
    if isinstance(cell, str):
        return _of_text(cell)
    if isinstance(cell, datetime.date):
        return _of_date(cell)
    if isinstance(cell, float):
        if cell % 1 != 0:
            return not_a_name
        return int(cell) if abs(cell) < _EXACT[bits] else not_exact
    if isinstance(cell, decimal.Decimal):
        found = _of_text(format(cell, "f"))
        return not_a_name if isinstance(found, str) and "." in found else found
    return _whole(int(cell))


def _whole(number: int) -> Name:
    return number if number in _FITS else str(number)


def _of_date(cell: datetime.date) -> Name:
    if isinstance(cell, datetime.datetime):
        cell = (cell if cell.tzinfo is None else cell.astimezone(datetime.UTC)).date()
    return cell.isoformat()


def _of_text(cell: str) -> Name | Refusal:
    text = cell if cell.isascii() else "".join(sign for sign in cell if unicodedata.category(sign) != "Cf")
    text = text.strip()
    if not text:
        return missing_key
    number = _of_numeral(text)
    if number is not None:
        return number
    day = _of_moment(text)
    if day is not None:
        return day
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        fraction = (clock[3] or "").rstrip("0")
        return f"{clock[1]}:{clock[2] or '00'}{fraction and '.'}{fraction}"
    return text.lower() if text.lower() in ("true", "false") else unicodedata.normalize("NFC", text)


def _of_numeral(text: str) -> Name | Refusal | None:
    """Return the number that a text spells, digit by digit, since there may be very many; None if it spells none."""
    parts = _NUMERAL.fullmatch(text)
    if parts is None:
        return None
    sign, whole, fraction, power = (part or "" for part in parts.groups())
    if not (whole or fraction[1:]) or (power and not fraction and power[1] not in "+-"):
        return None
    digits, point = whole + fraction[1:], len(whole) + int(power[1:] or 0)
    digits = digits.rjust(len(digits) - min(point, 0), "0").ljust(point, "0")
    before, after = digits[: max(point, 0)].lstrip("0"), digits[max(point, 0) :].rstrip("0")
    sign = "-" if sign == "-" and (before or after) else ""
    if after:
        return f"{sign}{before or '0'}.{after}"
    is_short = len(before) <= len(str(_FITS.stop))
    if power and not (is_short and int(before or "0") < _EXACT[64]):
        return not_exact
    return _whole(int(f"{sign}{before or '0'}")) if is_short else sign + before


def _of_moment(text: str) -> Name | None:
    """Return the day in UTC that a text spells, None if it spells none."""
    parts = _MOMENT.fullmatch(text)
    if parts is None:
        return None
    date, hours, minutes, sign, *zone = parts.groups()
    try:
        moment = datetime.datetime.fromisoformat(date) + datetime.timedelta(
            hours=int(hours or 0), minutes=int(minutes or 0)
        )
        offset = datetime.timedelta(hours=int(zone[0] or 0), minutes=int(zone[1] or 0))
        return (moment + offset if sign == "-" else moment - offset).date().isoformat()
    except (ValueError, OverflowError):  # no such day
        return None

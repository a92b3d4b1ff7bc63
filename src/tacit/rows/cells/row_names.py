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
            - Dates: a moment at midnight stands for its day. Other moments, and those of a time zone, name nobody: told
              with another zone, or without one, the same moment lies in another day, and its row would get the coin of
              the row before or after it, which was shown. That also holds where a key is an attribute of dates; an
              attribute of times names nobody at all.
            - Times of the day: seconds that are zero, and zeros behind their point, do not matter.
            - Texts: without the space around them and signs of formatting (a byte order mark, a space of no width), in
              one case and one width of letters (Unicode's compatibility form of the folded capitals; a dot above an i
              does not matter). They are shown as they are written.
            - Other signs that nobody sees (selectors of variants, fillers, joiners, control characters) are in no name
              of a row: such a text is refused. Dropped like the others, it would have another coin than an earlier
              Tacit gave it on the same line; kept, it would have another than the text without them.
            What a text is read as is found here, for all engines: no two of them fold letters in the same way.
            Names that are taken for one where they should be two are refused as a key that is there twice; names that
            were taken for two would give one record two coins for the price of one. So in doubt they are one.
            People are told apart by the same rule (`person_name`), but nothing may be refused for one person's cell:
            signs that nobody sees are dropped, and what names no row stays the folded text.
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
from tacit.ledger.input import is_unseen, without_unseen
from tacit.rows.cells.number_cells import arrow_names
from tacit.rows.cells.readings import DataColumn

_NAMING: Final = ("whole", "wide", "real", "text", "date", "time")  # how columns are read that may name a row
Name: TypeAlias = int | str
Refusal: TypeAlias = Callable[[str], DataRefused]

_EXACT: Final = {16: 2**11, 32: 2**24, 64: 2**53}  # below these, floats of so many bits hold every whole number
_FITS: Final = range(-(2**63), 2**63)  # whole numbers that frames of every kind can show; larger ones are texts
_NUMERAL: Final = re.compile(r"([-+]?)([0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?")
# of folded texts: a zone is an offset, a letter or two, or a name such as utc or europe/berlin
_ZONE: Final = (
    r"( ?(?:[-+][0-9]{1,2}(?::?[0-9]{2}){0,2}|[a-z]{1,5}|[a-z_]+/[-+a-z0-9_/]+)?(?: [a-z]{1,5}| ?\[[^\]]*\])?)"
)
_CLOCK: Final = re.compile(rf"([0-9]{{2}}:[0-9]{{2}})(?::([0-9]{{2}})(?:[.,]([0-9]*))?)?{_ZONE}")
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")  # all but white space
_MOMENT: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[t ](.*))?")


@dataclass(frozen=True, eq=False)
class Named:
    """A column that names rows: each value once, and for every row which of them it has.

    A name that is written in two ways is there for each. `spelled` has how names are shown that are shown in another
    way, by their place: the one of the table.
    """

    values: Sequence[Name]
    which: npt.NDArray[Any]
    spelled: Mapping[int, str] = field(default_factory=dict)

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
        "must hold whole numbers, texts or dates, because it names rows (taken as known, so it may be said)",
        column=name,
        fix="Name another column, or convert it first.",
    )


def zoned_key(name: str) -> DataRefused:
    """Return the refusal of a column of moments with a time zone, by its type."""
    return DataRefused(
        "must not hold moments of a time zone, because it names rows: in which day one lies would hang on the zone",
        column=name,
        fix="Add a column of dates, and one of times if a day has several rows, and name these.",
    )


def timed_key(name: str) -> DataRefused:
    """Return the refusal of an attribute of times: the same moments, told by other clocks, would have other coins."""
    return DataRefused(
        "must not name rows: which time a moment is hangs on the clocks that it is told by",
        column=name,
        fix="Add a column of dates, and one of hours if a day has several rows, and name these.",
    )


def not_a_day(name: str) -> DataRefused:
    """Return the refusal of a moment that is not the beginning of a day, or that is told with a time zone."""
    return DataRefused(
        "must hold dates, or moments at midnight without a time zone, because it names rows (whether it does is taken "
        "as known)",
        column=name,
        fix="If it has hours, add a column of days and one of hours, and name both. What was asked stays charged.",
    )


def not_exact(name: str) -> DataRefused:
    """Return the refusal of floats that stand for several whole numbers."""
    return DataRefused(
        "must not name rows by floats that are too large to tell whole numbers apart (that none does is taken as "
        "known, so that this may be said)",
        column=name,
        fix="Read the column as whole numbers or as texts from where it came from. What was asked stays charged.",
    )


def unseen_sign(name: str) -> DataRefused:
    """Return the refusal of a text with signs that nobody sees."""
    return DataRefused(
        "must not hold control characters or other signs that nobody sees, because it names rows: the same name "
        "without them would have another coin (that no key has one is taken as known, so that this may be said)",
        column=name,
        fix="Remove them, and ask again: by the same key that costs nothing more.",
    )


def check_type(column: DataColumn, name: str) -> None:
    """Refuse a column whose type says that it cannot name rows."""
    if column.reading not in _NAMING and not column.clock:
        raise not_a_name(name)
    if column.zoned:
        raise zoned_key(name)


def check_days(cells: Any, column: DataColumn, name: str) -> None:
    """Refuse moments that name no day, in a column that an attribute of dates is read from; it sees to other cells."""
    for cell in _encoded(cells, name).dictionary.to_pylist():
        if isinstance(cell, str) and _of_moment(_folded(column.plain(cell))) is not_a_day:
            raise not_a_day(name)


def named(cells: Any, column: DataColumn, name: str) -> Named:
    """Return what names the rows, each value once, in its one spelling."""
    encoded = _encoded(cells, name)
    if encoded.indices.null_count:
        raise missing_key(name)
    values: list[Name] = []
    spelled: dict[int, str] = {}
    for place, cell in enumerate(map(column.plain, encoded.dictionary.to_pylist())):
        found = name_of(cell, column.bits)
        if callable(found):
            raise found(name)
        values.append(found)
        if isinstance(cell, str) and isinstance(found, str) and cell != found and _is_shown_as_written(cell, found):
            spelled[place] = cell.strip() if cell.isascii() else unicodedata.normalize("NFC", cell.strip())
    return Named(values, encoded.indices.to_numpy(zero_copy_only=False), spelled)


def _encoded(given: Any, name: str) -> Any:
    cells = arrow_names(given)
    if cells is None:
        raise not_a_day(name)
    if hasattr(cells, "chunks"):
        cells = cells.combine_chunks()
    return cells if hasattr(cells, "dictionary") else cells.dictionary_encode()


def _is_shown_as_written(cell: str, found: str) -> bool:
    """Say whether a name that differs from what was written is a text, or a number that is not whole."""
    if found in ("true", "false"):
        return False
    return _folded(cell) == found or ("." in found and _NUMERAL.fullmatch(found) is not None)


def in_one_list(parts: Sequence[Named]) -> tuple[list[Name], npt.NDArray[np.int64]]:
    """Return all names in order, numbers before texts; and which of them each row has."""
    values = sorted(
        {value for part in parts for value in part.values}, key=lambda value: (isinstance(value, str), value)
    )
    place = {value: at for at, value in enumerate(values)}
    which = [np.array([place[value] for value in part.values], dtype=np.int64)[part.which] for part in parts]
    return values, np.concatenate([np.zeros(0, dtype=np.int64), *which])


def as_written(values: Sequence[Name], parts: Iterable[Named]) -> list[Name]:
    """Return names as they are shown: of several ways in which rows write one, always the same."""
    shown: dict[Name, str] = {}
    for part in parts:
        used = np.bincount(part.which, minlength=len(part.values)) if part.spelled else ()
        for place, spelling in part.spelled.items():
            if used[place]:
                value = part.values[place]
                shown[value] = min(spelling, shown.get(value, spelling))
    return [shown.get(value, value) for value in values]


def name_of(cell: Any, bits: int = 64) -> Name | Refusal:
    r"""Return the one spelling of a name, or the refusal of what is none; `bits` is how wide a float was.

    >>> [name_of(cell) for cell in (7, 7.0, "007", "+7.00", " 7 ", decimal.Decimal("7.00"), "7e+00", "B7", "12e4")]
    [7, 7, 7, 7, 7, 7, 7, 'b7', '12e4']
    >>> [name_of(cell) for cell in ("1700000000000000007.0", "-0", "2.10", "1" + 19 * "0")]
    [1700000000000000007, 0, '2.1', '10000000000000000000']
    >>> [name_of(cell) for cell in ("2024-01-05 00:00:00", datetime.date(2024, 1, 5), datetime.datetime(2024, 1, 5))]
    ['2024-01-05', '2024-01-05', '2024-01-05']
    >>> [name_of(cell) for cell in ("10:30", "10:30:00.000", "10:30:01.50", "True", "E\u0301 \u200b")]
    ['10:30:00', '10:30:00', '10:30:01.5', 'true', 'é']
    >>> [name_of(cell).__name__ for cell in ("", None, float("nan"), 1.5, 2.0**53, "1.7e+18", "2024-01-05 00:30")]
    ['missing_key', 'missing_key', 'missing_key', 'not_a_name', 'not_exact', 'not_exact', 'not_a_day']
    >>> {name_of(cell).__name__ for cell in ("a\ufe0f", "a\u034f", "\u3164", "7\0", "a\1b", "\u180ba")}
    {'unseen_sign'}
    """
    if cell is None or cell != cell:  # NaN
        return missing_key
    if isinstance(cell, str):
        return _of_text(cell)
    if isinstance(cell, datetime.date | datetime.time):
        return _of_text(cell.isoformat())
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


def _of_text(cell: str) -> Name | Refusal:
    text = _folded(cell)
    if not text:
        return missing_key
    if is_unseen(text) or _CONTROL.search(text):
        return unseen_sign
    number = _of_numeral(text)
    if number is not None:
        return number
    day = _of_moment(text)
    if day is not None:
        return day
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        return text
    fraction = (clock[3] or "").rstrip("0")
    return not_a_day if clock[4] else f"{clock[1]}:{clock[2] or '00'}{fraction and '.'}{fraction}"


def _folded(text: str) -> str:
    """Return a text without what programs change in it: space around it, unseen signs, case and form of its letters."""
    if text.isascii():
        return text.strip().lower()
    seen = "".join(sign for sign in text if unicodedata.category(sign) != "Cf")  # such as a space of no width
    # capitals first: a dotless i has the capital of other ones
    folded = unicodedata.normalize("NFKC", seen).upper().casefold()
    return unicodedata.normalize("NFKC", folded).replace("i\u0307", "i").strip()


def person_name(text: str) -> str:
    r"""Return the one text of a person, by the rule of names; whatever the cell, there is one.

    >>> {person_name(text) for text in ("7", "007", "+7.0", " 7 ", "7\ufe0f", "\u200b7\0")}
    {'7'}
    >>> person_name("Ann\u3164"), person_name("2024-01-05 00:30"), person_name("\u034f")
    ('ann', '2024-01-05 00:30', '')
    """
    seen = _CONTROL.sub("", without_unseen(unicodedata.normalize("NFKC", text) if not text.isascii() else text))
    found = name_of(seen)
    return _folded(seen) if callable(found) else str(found)


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


def _of_moment(text: str) -> Name | Refusal | None:
    """Return the day that a folded text spells, or the refusal of another moment; None if it spells none."""
    parts = _MOMENT.fullmatch(text)
    if parts is None:
        return None
    try:
        day = datetime.date.fromisoformat(parts[1]).isoformat()
    except ValueError:  # no such day
        return None
    if parts[2] is None:
        return day
    clock = _CLOCK.fullmatch(parts[2])
    if clock is None:
        return None
    is_midnight = clock[1] == "00:00" and not (clock[2] or "").strip("0") and not (clock[3] or "").strip("0")
    return day if is_midnight and not clock[4] else not_a_day

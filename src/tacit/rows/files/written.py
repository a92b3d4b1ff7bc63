"""How the texts of a table are written where that is not Tacit's own way: decimal commas, day-first dates, encodings.

Guarantee   Each text is read by itself, as was declared. What the other cells look like decides nothing.
Assumes     One table is read in one way. Two releases that read it in different ways are about two tables.
Why         `5,500` may be five and a half or five thousand, and `01.02.2024` two days, so nothing is guessed. With a
            decimal comma, a text with a point is no number. Dates in the form of ISO 8601 are read beside the declared
            one, since no declared form can mean another day by them. What names rows is read in the same way: the same
            row, written in two ways, has one name.
Checked by  tests/contract/test_written.py.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Final

from tacit.errors import PolicyError, kind_of, sealed
from tacit.policy.keys import TEXT, Key
from tacit.policy.yaml_entries import YamlEntry

UTF_8: Final = "utf-8"
ENCODINGS: Final = (UTF_8, "utf-16", "latin-1", *(f"cp125{page}" for page in range(9)), "iso-8859-15", "mac-roman")
_CODECS: Final = {"ascii": UTF_8, "utf-8-sig": UTF_8} | {codecs.lookup(name).name: name for name in ENCODINGS}
_PARTS: Final = re.compile(r"(YYYY|MM?|DD?)([./-]?)(YYYY|MM?|DD?)\2(YYYY|MM?|DD?)")
_DIGITS: Final = {"YYYY": "[0-9]{4}", "MM": "[0-9]{2}", "DD": "[0-9]{2}", "M": "[0-9]{1,2}", "D": "[0-9]{1,2}"}


@dataclass(frozen=True)
class DateForm:
    """How texts write dates: a pattern without its ends, and its groups; the fourth is the time of day, if there is."""

    pattern: str
    year: int
    month: int
    day: int

    def as_iso(self, text: str) -> str:
        """Return a text of this form as ISO 8601 writes it, any other as it is: what every engine is tested against."""
        found = re.fullmatch(self.pattern, text)
        if found is None:
            return text
        return f"{found[self.year]}-{found[self.month]:0>2}-{found[self.day]:0>2}{found[4] or ''}"


def date_form(written: str) -> DateForm:
    """Return how dates are written, or refuse a form that has no year, month and day or could mean two days.

    >>> date_form("D.M.YYYY").as_iso("1.5.2024 10:30")
    '2024-05-01 10:30'
    >>> date_form("MM/DD/YYYY").as_iso("2024-05-01")
    '2024-05-01'
    """
    found = _PARTS.fullmatch(written.upper())
    parts = [found[1], found[3], found[4]] if found else []
    order = "".join(part[0] for part in parts)
    if found is None or order not in ("YMD", "DMY", "MDY") or (not found[2] and written.upper() != "YYYYMMDD"):
        named = {"%Y": "YYYY", "%m": "MM", "%d": "DD", "%y": "YYYY"}
        meant = re.sub(r"%[YmdyHMS]", lambda one: named.get(one[0], ""), written).strip(" :T")
        likely = meant if meant != written and _PARTS.fullmatch(meant) else "DD.MM.YYYY"
        raise PolicyError(
            "must say how dates are written: DD, MM and YYYY (D and M where one digit may do), with one of . / - "
            "between them, or YYYYMMDD; the time of day is read without being named",
            key="format",
            given=written,
            fix=f"For instance {likely}.",
        )
    separator = f"[{found[2]}]" if found[2] else ""
    body = separator.join(f"({_DIGITS[part]})" for part in parts)
    return DateForm(f"{body}([T ][0-9:.+Z -]*)?", *(order.index(part) + 1 for part in "YMD"))


def encoding_named(written: str) -> str:
    """Return the one name of an encoding, or refuse one that is not read."""
    known: str | None = None
    try:
        known = _CODECS.get(codecs.lookup(written).name)
    except (LookupError, ValueError):  # no encoding, or a text that can be no name
        known = None
    if known is None:
        fix = f"One of {', '.join(ENCODINGS)}."
        raise PolicyError("must be an encoding that is read", key="encoding", given=written, fix=fix)
    return known


def _read_decimal(entry: YamlEntry) -> str:
    word = entry.text()
    if word not in (".", ","):
        raise entry.refuse("must be a point or a comma", given=word, fix='Write ",", with the quotes, or leave it out.')
    return word


def _read_format(entry: YamlEntry) -> str:
    with entry.blamed():
        date_form(entry.text())
    return entry.text()


def _read_encoding(entry: YamlEntry) -> str:
    with entry.blamed():
        return encoding_named(entry.text())


DECIMAL: Final = Key(
    "decimal",
    {"enum": [".", ","]},
    "The sign before the decimals of numbers that are texts.",
    "a point",
    read=_read_decimal,
)
FORMAT: Final = Key(
    "format",
    TEXT,
    "How dates that are texts are written, such as `DD.MM.YYYY`; dates such as 2024-05-01 are read as well.",
    "dates such as 2024-05-01 only",
    read=_read_format,
)
ENCODING: Final = Key(
    "encoding", TEXT, "The encoding of CSV files, such as `cp1252` or `utf-16`.", UTF_8, read=_read_encoding
)


@dataclass(frozen=True)
class Written:
    """Rows whose texts are written in another way: a path, a frame or a table, to be given wherever rows are.

    Args:
        rows: The rows.
        decimal: The sign before the decimals of numbers: "." or ",". With a comma, texts with a point are no numbers.
        format: How dates are written, such as "DD.MM.YYYY"; dates in the form of ISO 8601 are read as well.
        encoding: The encoding of CSV files, such as "cp1252" or "utf-16".

    >>> Written("visits.csv", decimal=",", format="DD.MM.YYYY", encoding="windows-1252").encoding
    'cp1252'
    """

    rows: Any = field(repr=False)  # rows may show cells
    decimal: Annotated[str, DECIMAL] = "."
    format: Annotated[str, FORMAT] = ""
    encoding: Annotated[str, ENCODING] = UTF_8

    @sealed
    def __init__(self, rows: Any, decimal: str = ".", format: str = "", encoding: str = UTF_8) -> None:  # noqa: A002 - the name of the key
        for key, value in (("decimal", decimal), ("format", format), ("encoding", encoding)):
            if not isinstance(value, str):
                fix = "For instance decimal=',', format='DD.MM.YYYY', encoding='cp1252'."
                raise PolicyError(f"must be a text, not {kind_of(value)}", key=key, fix=fix)
        if decimal not in (".", ","):
            raise PolicyError("must be a point or a comma", key="decimal", given=decimal, fix="Say decimal=','.")
        if type(rows) is Written:
            raise PolicyError("must be rows, not another Written", key="rows", fix="Say everything in one.")
        if format:
            date_form(format)
        said = {"rows": rows, "decimal": decimal, "format": format, "encoding": encoding_named(encoding)}
        for key, value in said.items():
            object.__setattr__(self, key, value)

    @cached_property
    def form(self) -> DateForm | None:
        """How dates are written; None: as ISO 8601 says."""
        return date_form(self.format) if self.format else None

    @property
    def texts_read(self) -> str:
        """How numbers and dates that are texts are read, in words."""
        read = f"numbers such as 1{self.decimal}5 and dates such as {self.format or 'YYYY-MM-DD'}"
        return f"Texts are read as {read}. If they are written otherwise: tc.Written(rows, decimal=.., format=..)"

    @property
    def keys(self) -> dict[str, str]:
        """What was declared, under the names of the keys."""
        plain = Written(None)
        said = {name: getattr(self, name) for name in ("decimal", "format", "encoding")}
        return {name: value for name, value in said.items() if value != getattr(plain, name)}


def written(rows: Any) -> Written:
    """Return rows with how they are written; in Tacit's own way where nothing was said."""
    return rows if type(rows) is Written else Written(rows)

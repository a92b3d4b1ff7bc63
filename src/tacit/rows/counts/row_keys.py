"""Keys that put the rows of a person in an order as at random, the same on every engine.

Guarantee   A key is a function of who the person is, of the words it is given and of a number, all whole numbers, and
            of nothing else. For persons who are whole numbers, texts or dates it is the same on every engine and in
            every kind of file.
Assumes     Nothing: whatever function of these it were, the promise would hold (`rows/counts/row_choice.py`). That rows
            are chosen fairly is a matter of statistics, and is tested as one.
Why         Engines have no hash in common, but all multiply whole numbers of 64 bits. A key starts at a public
            constant; each number is added to it, modulo a prime below 2^26, and the sum is raised to the third power,
            which is a permutation because 3 does not divide the prime less one. Two more rounds spread the last number:
            without them, 1, 2, 3 and 4 would not come in all orders equally often. Adding alone would leave the
            distances between keys the same for everybody.
            The person is a number first: of whole numbers, and of texts that spell them (`17`, `17.0`), the last 18
            digits; of floats those left of the point; of moments, which name nobody, 0; of all else 52 bits of the
            SHA-256 of its text. Persons who share a number (`7` and `007`) stay apart: they get the same keys, that
            is all. Truth values, bytes, moments and floats that are not whole are spelled or held differently from
            source to source, and so are their keys: one account should be charged for one source of these.
Checked by  tests/unit/rows/test_row_keys.py, tests/property/test_rows_people.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import narwhals as nw
import numpy as np
import numpy.typing as npt

from tacit.rows.cells.dialect import Dialect
from tacit.rows.cells.readings import EXACT, DataColumn, Expr
from tacit.rows.sources.engine import PERSON

Numbers = npt.NDArray[np.int64]

KEY: Final = 26  # bits of a key
_PRIME: Final = 2**KEY - 5
_START: Final = 41_421_356  # public, and the same for all releases: other rows would count under another one
_FINISHING: Final = 2  # rounds
_DIGITS: Final = 18  # of a number that fits into 64 bits
_WHOLE: Final = r"^-?[0-9]+(\.0*)?\z"  # \z because in Java $ would match before a line break
_MARK: Final = r"^\x00(date|time):"  # of a Python object that is no text (`rows/cells/object_cells.py`)
_NO_DIGIT: Final = r"-|\.0*\z"


def with_person_keys(dialect: Dialect, frame: Any, person: DataColumn) -> Any:
    """Add the key of each row's person, as "key"; the person is the column "u"."""
    frame, number = _numbered(dialect, frame, person)
    frame = frame.with_columns(key=_START + number % _PRIME)
    return frame.with_columns(key=_cubed(nw.col("key")))


def with_words(frame: Any, words: Sequence[tuple[str, int]]) -> Any:
    """Mix words, each with its number of bits, into "key"."""
    for word, bits in words:
        part = nw.col(word) if bits <= KEY else _folded(nw.col(word)) % _PRIME
        frame = _mixed(frame, part)
    return frame


def with_numbers(frame: Any, number: str) -> Any:
    """Mix a last number into "key"."""
    frame = _mixed(frame, nw.col(number) % _PRIME)
    for _ in range(_FINISHING):
        frame = _mixed(frame, nw.lit(0, nw.Int64))
    return frame


def whole_keys(persons: Numbers) -> Numbers:
    """Return the keys of persons who are whole numbers."""
    below = ((-1 - persons) % 10**_DIGITS + 1) % 10**_DIGITS
    keys: Numbers = _cubed(_START + np.where(persons < 0, below, persons % 10**_DIGITS) % _PRIME)
    return keys


def row_keys(persons: Numbers, words: Sequence[tuple[Numbers, int]], numbers: Numbers) -> Numbers:
    """Mix words, each with its number of bits, and a last number into the keys of persons."""
    keys: Numbers = persons
    for word, bits in words:
        part = word if bits <= KEY else np.where(word < 0, -1 - word, word) % _PRIME
        keys = _cubed(keys + part + _START)
    keys = _cubed(keys + numbers % _PRIME + _START)
    for _ in range(_FINISHING):
        keys = _cubed(keys + _START)
    return keys


def _numbered(dialect: Dialect, frame: Any, person: DataColumn) -> tuple[Any, Expr]:
    """Return the number of a person, and the frame that it is read from."""
    cell = nw.col(PERSON)
    if person.reading == "whole":
        return frame, _last_digits(cell.cast(nw.Int64))
    if person.reading == "real" and not person.decimals and not person.parsed:
        real = cell.cast(nw.Float64)
        small = (real > -EXACT) & (real < EXACT)
        return frame, _last_digits(nw.when(small).then(real).otherwise(nw.lit(0.0)).floor().cast(nw.Int64))
    if person.reading == "other":  # no text that narwhals knows of
        return dialect.with_hash(frame, "h_spread", PERSON), nw.col("h_spread")
    if person.reading == "time":
        return frame, nw.lit(0, nw.Int64)
    text = cell.cast(nw.String).str.replace_all(_MARK, "")
    frame = frame.with_columns(h_text=nw.when(~text.str.contains(_WHOLE)).then(text))
    is_spelled = nw.col("h_text").is_null()
    digits = nw.when(is_spelled).then(text.str.replace_all(_NO_DIGIT, "")).otherwise(nw.lit(""))
    digits = nw.concat_str(nw.lit("0" * _DIGITS), digits).str.slice(-_DIGITS, _DIGITS)
    frame = dialect.with_hash(frame, "h_spread", "h_text")
    return frame, nw.when(is_spelled).then(digits.cast(nw.Int64)).otherwise(nw.col("h_spread"))


def _last_digits(number: Expr) -> Expr:
    """Return the last digits of a whole number, without its sign."""
    below = (_folded(number) % 10**_DIGITS + 1) % 10**_DIGITS
    return nw.when(number < 0).then(below).otherwise(_folded(number) % 10**_DIGITS)


def _folded(number: Expr) -> Expr:
    """Return a number that is not below 0; engines do not agree on what is left of one that is."""
    return nw.when(number < 0).then(nw.lit(-1, nw.Int64) - number).otherwise(number)


def _cubed(key: Any) -> Any:
    return key * key % _PRIME * key % _PRIME  # of a key below 2^28, so that no product has more than 56 bits


def _mixed(frame: Any, part: Expr) -> Any:
    return frame.with_columns(key=nw.col("key") + part + _START).with_columns(key=_cubed(nw.col("key")))

"""Which rows of a person count, as a matter of that person's rows alone.

Guarantee   The rows of a person that count are a function of the rows of that person, as a bag: no other person's rows,
            no order in which an engine hands out rows, no file, partition or thread matters. The function is the same
            on every engine. If two rows of a person agree in `order` and in every attribute that no secret edge moves,
            which of them counts changes no answer about such attributes.
Assumes     `order` names a column that no secret edge moves (`release/session.py` looks).
Why         Rows are sorted by `order`, then by the places of their values in the domain: first those of attributes that
            no secret edge moves, then the others. Rows that still tie are equal wherever anything is asked. The places
            come from `rows/encode.py`, which is one function for all engines.
Checked by  tests/property/test_rows_people.py, tests/contract/test_rows_engines.py.

What is promised to somebody who owns more rows than count is promised about the rows that count: a secret edge moves a
person from one such record (or few records) to another. What changes in a row so that another row counts in its place
is a move from what counted before to what counts then, and it is protected iff the policy has that edge.

Places are whole numbers, so a row is packed into a few words of 52 bits, which every engine adds, compares and takes
apart exactly. The first row of each person is then the smallest word: a plain group-by, no sort.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw
import numpy as np
import numpy.typing as npt

from tacit.policy.attributes import Attribute
from tacit.policy.domain import Domain
from tacit.policy.intervals import Intervals
from tacit.rows.encode import Code, Column, Expr, within

_WORD: Final = 52  # bits: whole numbers of so many are exact in a 64-bit float, which some engines divide by
_PART: Final = 18  # digits: whole numbers of so many fit into 64 bits
_PARTS: Final = ("o_high", "o_middle", "o_low")
_LAST: Final = 2**63 - 1  # stands for "no place" in a word of its own


@dataclass(frozen=True, eq=False)
class Slot:
    """One whole number that a row has: the key of an attribute, or of one side of a grid.

    A row keeps `key - base`, or `missing` where it has no place. Position 0 has the key `low`, each next one `step`
    more. The number stands in a word, `shift` bits from its right end, and is `bits` wide (0: the word is its own).
    """

    name: str
    key: Expr
    valid: Expr | None
    low: int
    step: int
    base: int
    missing: int
    bits: int
    word: str = ""
    shift: int = 0

    @property
    def kept(self) -> Expr:
        """The number as a row keeps it."""
        stored = self.key.cast(nw.Int64) - self.base if self.base else self.key.cast(nw.Int64)
        last = nw.lit(self.missing, nw.Int64)
        return stored if self.valid is None else nw.when(self.valid).then(stored).otherwise(last)

    @property
    def unpacked(self) -> Expr:
        """The number, taken out of its word."""
        word = nw.col(self.word)
        if not self.bits:
            return word
        if self.shift:
            # a multiple of a power of two below 2^52, so that the division is exact in any engine
            word = ((word - word % 2**self.shift) / 2**self.shift).cast(nw.Int64)
        return word % 2**self.bits

    @property
    def has_place(self) -> Expr:
        """Whether an unpacked row has a place here."""
        return nw.col(self.name) != self.missing

    def lies_in(self, positions: Intervals) -> Expr:
        """Say whether the number of an unpacked row is the key of one of the positions."""
        cell = nw.col(self.name)
        start = self.low - self.base
        ranges = [(start + first * self.step, start + last * self.step) for first, last in positions]
        return within(cell, ranges, cell != cell)  # false on every row: no number is missing

    def positions(self, found: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the positions behind kept numbers that have one."""
        return (found - (self.low - self.base)) // self.step


class Layout:
    """How the attributes of a row are laid out on words: attributes that no secret edge moves first."""

    def __init__(self, domain: Domain, codes: Mapping[str, Code], moved: frozenset[str] | None) -> None:
        public_first = sorted(codes, key=lambda name: moved is None or name in moved)  # stable: the domain's order
        self.slots: dict[str, tuple[Slot, ...]] = {}
        self.words: list[str] = []
        names = (f"s{number}" for number in range(2 * len(codes)))
        made = [(name, list(_slots(domain[name], codes[name], names))) for name in public_first]
        self._laid_out(made)

    def _laid_out(self, made: Sequence[tuple[str, Sequence[Slot]]]) -> None:
        room = 0
        parts: list[list[tuple[str, Slot]]] = []
        for attribute, slots in made:
            for slot in slots:
                if not slot.bits or room < slot.bits:
                    parts.append([])
                    room = _WORD if slot.bits else 0
                parts[-1].append((attribute, slot))
                room -= slot.bits
        for number, part in enumerate(parts):
            word, shift = f"w{number}", sum(slot.bits for _, slot in part)
            self.words.append(word)
            for attribute, slot in part:
                shift -= slot.bits
                placed = _placed(slot, word, shift)
                self.slots[attribute] = (*self.slots.get(attribute, ()), placed)

    def packed(self) -> list[Expr]:
        """Return the words, as expressions over the columns of the source."""
        words: dict[str, Any] = {}
        for slots in self.slots.values():
            for slot in slots:
                part = slot.kept * 2**slot.shift if slot.shift else slot.kept
                words[slot.word] = words[slot.word] + part if slot.word in words else part
        return [words[word].alias(word) for word in self.words]


def place_of(size: int, code: Code) -> Expr:
    """Return the place of a row's value among so many, for an attribute with one key; defined where the code is valid.

    Of numbers: how far it is from the lowest one, which orders rows alike.
    """
    if code.ranges:
        ((low, _, _),) = code.ranges
        return code.keys[0].cast(nw.Int64) - low if low else code.keys[0].cast(nw.Int64)
    # one question for each binary digit of the place, not one for each category
    digits = [
        nw.when(code.atom("", Intervals.points(place for place in range(size) if place >> digit & 1)))
        .then(nw.lit(1 << digit, nw.Int64))
        .otherwise(nw.lit(0, nw.Int64))
        for digit in range((size - 1).bit_length())
    ]
    total = nw.lit(0, nw.Int64) if not digits else digits[0]
    for digit in digits[1:]:
        total = total + digit
    return total


def _slots(attribute: Attribute, code: Code, names: Iterator[str]) -> Iterator[Slot]:
    for key, (low, high, step) in zip(code.keys, code.ranges, strict=False):
        yield _slot(next(names), key, code.valid, low, high, step)
    if not code.ranges:
        yield _slot(next(names), place_of(attribute.size, code), code.valid, 0, attribute.size - 1)


def _slot(name: str, key: Expr, valid: Expr | None, low: int, high: int, step: int = 1) -> Slot:
    size = high - low + 1
    bits = size.bit_length()  # one number more than there are: "no place"
    if bits > _WORD:
        return Slot(name, key, valid, low, step, base=0, missing=_LAST, bits=0)
    return Slot(name, key, valid, low, step, base=low, missing=size, bits=bits)


def _placed(slot: Slot, word: str, shift: int) -> Slot:
    return Slot(slot.name, slot.key, slot.valid, slot.low, slot.step, slot.base, slot.missing, slot.bits, word, shift)


@dataclass(frozen=True)
class Order:
    """The column that says which rows come first, under the name "o". Numbers first, then texts; nothing comes last.

    Texts that spell numbers are numbers, so that a CSV has the order of a typed column; other texts go by their
    code points, which for dates in the form of ISO 8601 is their order.
    """

    column: Column
    raw: str

    @property
    def numbers(self) -> dict[str, str]:
        """The number readings that are needed: new name -> column."""
        return {"o_number": "o"} if self.column.reading == "text" else {}

    @property
    def names(self) -> list[str]:
        """What rows are sorted by."""
        if self.column.reading == "text":
            return ["o_missing", "o_text", "o_number", *_PARTS, "o"]
        return ["o_missing", "o"]

    def added(self, frame: Any) -> Any:
        """Add what rows are sorted by; the number reading is there."""
        if self.column.reading == "real":
            # engines sort NaN differently; like a missing value it comes last
            frame = frame.with_columns(o=nw.when(~nw.col("o").cast(nw.Float64).is_nan()).then(nw.col("o")))
        frame = frame.with_columns(o_missing=nw.col("o").is_null())
        if self.column.reading != "text":
            return frame
        text, number = nw.col("o").cast(nw.String), nw.col("o_number")
        # Beyond 2^53 a float does not tell whole numbers apart: those that any type can hold are compared by their
        # digits, in parts that fit into 64 bits. \z because in Java $ would match before a line break at the end.
        whole = nw.when(text.str.contains(rf"^-?[0-9]{{1,{_PART * len(_PARTS)}}}\z")).then(text).otherwise(nw.lit("0"))
        padding = nw.lit("0" * _PART * len(_PARTS))
        digits = nw.concat_str(padding, whole.str.replace_all("-", "", literal=True))
        minus = whole.str.starts_with("-")
        parts = {}
        for place, name in enumerate(_PARTS):
            part = digits.str.slice(-_PART * (len(_PARTS) - place), _PART).cast(nw.Int64)
            parts[name] = nw.when(minus).then(-1 * part).otherwise(part)
        return frame.with_columns(o_text=number.is_null(), o=nw.when(number.is_null()).then(text), **parts)

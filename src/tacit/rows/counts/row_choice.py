"""Which rows of a person count; that depends only on that person's rows.

Guarantee   The rows of a person that count are a function of the rows of that person, as a bag: no other person's rows,
            no order in which an engine hands out rows, no file, partition or thread matters. The function is the same
            on every engine. Which public cells count does not depend on secret ones. A row that does not fit the domain
            is no row: it takes the place of none. A key of a row is a function of who the person is, of the words it is
            given and of a number, all whole numbers, and of nothing else. For persons who are whole numbers, texts or
            dates it is the same on every engine and in every kind of file.
Assumes     `order` names a column that no secret edge moves (`release/session.py` looks). Of the function that makes
            keys nothing is assumed: whatever it were, the promise would hold. That rows are chosen fairly is a matter
            of statistics, and is tested as one.
Why         (1) Rows without a place in the domain are left out. (2) The others go by `order`, if there is one. (3) Rows
            that agree in it and in every attribute that no secret edge moves (the public ones) are numbered 1, 2, ..
            by the places of their other values. (4) Rows go by a key, a fixed public function of the person, the public
            places and that number, and then by their content: keys are as good as drawn at random, and every row of a
            person has the same chance to count, also of several that look alike. The first `per_person` rows count.
            Places come from `rows/cells/readings.py`, which is one function for all engines.
            Let one row of a person move along a secret edge. Its public cells stay, so the keys of that person's rows
            stay, and so do the public cells and the numbers that count. What changes is who has which number among the
            rows with the same public cells:
            * Where no two rows of the person agree in these, the row that moved alone is another one, if it counts.
            * Where one attribute moves, and has an order, the row with a given number moves to where the next one was,
              towards the end of the move, or stays; so it moves by no more than the row that moved, and between its
              ends. That is an edge of `within`, `everything`, `attributes`, and of `partition` into intervals.
            * Otherwise (several attributes that move, `values`, `records`, `pairs`, blocks that are no intervals,
              secrets of some people by what moves) a row may come to count by a move that is no edge. What is promised
              to somebody who owns more rows than count is then promised about the rows that count.
            A key of the whole row, or of the public cells without the number, would not do: the first lets another row
            count at every move, the second takes the smallest of those that look alike.
            Engines have no hash in common, but all multiply whole numbers of 64 bits. A key starts at a public
            constant; each number is added to it, modulo a prime below 2^26, and the sum is raised to the third power,
            which is a permutation because 3 does not divide the prime less one. Two more rounds spread the last number:
            without them, 1, 2, 3 and 4 would not come in all orders equally often. Adding alone would leave the
            distances between keys the same for everybody.
            The person is a number first: of whole numbers, and of texts that spell them (`17`, `17.0`), the last 18
            digits; of floats those left of the point; of moments, which name nobody, 0; of all else 52 bits of the
            SHA-256 of its text. Persons who share a number (`7` and `007`) stay apart: they get the same keys, that
            is all. Truth values, bytes, moments and floats that are not whole are spelled or held differently from
            source to source, and so are their keys: one account should be charged for one source of these.
Checked by  tests/property/test_rows_people.py, tests/property/test_rows_that_count.py,
            tests/contract/test_rows_engines.py, tests/unit/rows/test_row_keys.py.

Places are whole numbers, so a row is packed into a few words of 52 bits, which every engine adds, compares and takes
apart exactly: public attributes first, each kind in words of its own, and in the order of their names, so that it does
not matter in which order a domain declares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import narwhals as nw
import numpy as np
import numpy.typing as npt

from tacit.policy.attributes import Attribute
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.rows.cells.readings import EXACT, Code, DataColumn, Dialect, Expr, within
from tacit.rows.sources.engine import ORDER, PERSON

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


Places = npt.NDArray[np.int64]

_WORD: Final = 52  # bits: whole numbers of so many are exact in a 64-bit float, which some engines divide by
_PART: Final = 18  # digits: whole numbers of so many fit into 64 bits
_PARTS: Final = ("o_high", "o_middle", "o_low")
_WIDE: Final = 63  # bits of a number that does not fit into a word with others


@dataclass(frozen=True, eq=False)
class Slot:
    """One whole number that a row has: the key of an attribute, or of one side of a grid.

    A row that fits keeps `key - base`, a number below `size` where it shares a word. Position 0 has the key `low`, each
    next one `step` more. The number stands in a word, `shift` bits from its right end, and is `bits` wide (0: the word
    is its own).
    """

    name: str
    key: Expr
    low: int
    step: int
    base: int
    size: int
    bits: int
    word: str = ""
    shift: int = 0

    @property
    def kept(self) -> Expr:
        """The number as a row keeps it."""
        return self.key.cast(nw.Int64) - self.base if self.base else self.key.cast(nw.Int64)

    @property
    def unpacked(self) -> Expr:
        """The number, taken out of its word."""
        return _taken(self.word, self.shift, self.bits) if self.bits else nw.col(self.word)

    def lies_in(self, positions: Intervals) -> Expr:
        """Say whether the number of an unpacked row is the key of one of the positions."""
        cell = nw.col(self.name)
        start = self.low - self.base
        ranges = [(start + first * self.step, start + last * self.step) for first, last in positions]
        return within(cell, ranges, cell != cell)  # false on every row: no number is missing

    def positions(self, found: Places) -> Places:
        """Return the positions behind kept numbers."""
        return (found - (self.low - self.base)) // self.step

    def numbers(self, positions: Places) -> Places:
        """Return the kept numbers of positions."""
        return positions * self.step + (self.low - self.base)


class WordLayout:
    """How the attributes of a row are laid out on words: `public` ones, that no secret edge moves, and the `others`."""

    def __init__(self, domain: Domain, codes: Mapping[str, Code], moved: frozenset[str] | None) -> None:
        self.slots: dict[str, tuple[Slot, ...]] = {}
        self._sizes = {name: tuple(axis.size for axis in domain.axes_of(name)) for name in codes}
        self.bits: dict[str, int] = {}  # of each word
        public = [name for name in sorted(codes) if moved is not None and name not in moved]
        names = (f"s{number}" for number in range(2 * len(codes)))
        self.public = self._laid_out([(name, list(_slots(domain[name], codes[name], names))) for name in public])
        others = [name for name in sorted(codes) if name not in public]
        self.others = self._laid_out([(name, list(_slots(domain[name], codes[name], names))) for name in others])

    @property
    def words(self) -> list[str]:
        """All words."""
        return [*self.public, *self.others]

    def _laid_out(self, made: Sequence[tuple[str, Sequence[Slot]]]) -> list[str]:
        room = 0
        parts: list[list[tuple[str, Slot]]] = []
        for attribute, slots in made:
            for slot in slots:
                if not slot.bits or room < slot.bits:
                    parts.append([])
                    room = _WORD if slot.bits else 0
                parts[-1].append((attribute, slot))
                room -= slot.bits
        words = [f"w{number}" for number in range(len(self.bits), len(self.bits) + len(parts))]
        for word, part in zip(words, parts, strict=True):
            shift = sum(slot.bits for _, slot in part)
            self.bits[word] = shift or _WIDE
            for attribute, slot in part:
                shift -= slot.bits
                placed = replace(slot, word=word, shift=shift)
                self.slots[attribute] = (*self.slots.get(attribute, ()), placed)
        return words

    def packed(self) -> list[Expr]:
        """Return the words, as expressions over the columns of the source."""
        words: dict[str, Any] = {}
        for slots in self.slots.values():
            for slot in slots:
                part = slot.kept * 2**slot.shift if slot.shift else slot.kept
                words[slot.word] = words[slot.word] + part if slot.word in words else part
        return [words[word].alias(word) for word in self.words]

    def words_of(self, codes: Mapping[str, npt.NDArray[Any]], rows: int) -> dict[str, Places]:
        """Return the words of rows whose positions are known."""
        words = {word: np.zeros(rows, dtype=np.int64) for word in self.words}
        for name, slots in self.slots.items():
            for slot, places in zip(slots, np.unravel_index(codes[name], self._sizes[name]), strict=True):
                words[slot.word] += slot.numbers(places.astype(np.int64, copy=False)) << slot.shift
        return words

    def codes_of(self, words: Mapping[str, Places], names: Iterable[str]) -> dict[str, Places]:
        """Return the positions of some attributes."""
        found = {}
        for name in names:
            kept = (
                words[slot.word] >> slot.shift & (2**slot.bits - 1) if slot.bits else words[slot.word]
                for slot in self.slots[name]
            )
            found[name] = self.code_of(name, kept)
        return found

    def code_of(self, name: str, kept: Iterable[Places]) -> Places:
        """Return the positions of an attribute, from the numbers that its slots keep."""
        parts = [slot.positions(numbers) for slot, numbers in zip(self.slots[name], kept, strict=True)]
        return parts[0] if len(parts) == 1 else np.ravel_multi_index(tuple(parts), self._sizes[name])

    def ranked(self, frame: Any, sequence: Sequence[str]) -> Any:
        """Replace the "key" of persons by that of rows, which go by `sequence`, by it, and by their words."""
        frame = with_words(frame, [(word, self.bits[word]) for word in self.public])
        alike = [PERSON, *sequence, *self.public]
        number = nw.col("key").cum_count().over(*alike, order_by=self.others or self.public)
        return with_numbers(frame.with_columns(number=number), "number")

    def first(self, frame: Any, sequence: Sequence[str], many: int) -> Any:
        """Return the first rows of each person, so many of them: "u" and their words."""
        frame = self.ranked(frame, sequence)
        if many > 1 or sequence or KEY + sum(self.bits.values()) > _WORD:
            rank = nw.col("key").cum_count().over(PERSON, order_by=[*sequence, "key", *self.words])
            return frame.with_columns(rank=rank).filter(nw.col("rank") <= many).select(PERSON, *self.words)
        # the key and all words fit into one, and the first row has the smallest: a plain group-by, no sort
        one = nw.col("key")
        for word in self.words:
            one = one * 2 ** self.bits[word] + nw.col(word)
        frame = frame.select(PERSON, one=one).group_by(PERSON).agg(nw.col("one").min())
        left, found = sum(self.bits.values()), []
        for word in self.words:
            left -= self.bits[word]
            found.append(_taken("one", left, self.bits[word]).alias(word))
        return frame.select(PERSON, *found)


def _taken(word: str, shift: int, bits: int) -> Expr:
    """Return the number that stands in a word, so many bits from its right end."""
    found = nw.col(word)
    if shift:
        # a multiple of a power of two below 2^52, so that the division is exact in any engine
        found = ((found - found % 2**shift) / 2**shift).cast(nw.Int64)
    return found % 2**bits


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
        yield _slot(next(names), key, low, high, step)
    if not code.ranges:
        yield _slot(next(names), place_of(attribute.size, code), 0, attribute.size - 1)


def _slot(name: str, key: Expr, low: int, high: int, step: int = 1) -> Slot:
    size = high - low + 1
    bits = max(1, (size - 1).bit_length())
    if bits > _WORD:
        return Slot(name, key, low, step, base=0, size=size, bits=0)
    return Slot(name, key, low, step, base=low, size=size, bits=bits)


@dataclass(frozen=True)
class Order:
    """The column that says which rows come first, under the name "o". Numbers first, then texts; nothing comes last.

    Texts that spell numbers are numbers, so that a CSV has the order of a typed column; other texts go by their
    code points, which for dates in the form of ISO 8601 is their order.
    """

    column: DataColumn
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

    def added(self, dialect: Dialect, frame: Any) -> Any:
        """Add what rows are sorted by."""
        frame = dialect.with_plain(frame, replace(self.column, name=ORDER))
        frame = dialect.with_numbers(frame, self.numbers)
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

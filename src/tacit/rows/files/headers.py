"""Whether the first line of a file holds names, or a person's values.

Guarantee   A name that `known_names` returns has a reason of its own that no row of values gives: either all cells
            below it are numbers, dates or flags and it is not, or all its words are those that columns are called by
            and nobody's values are. A line is taken for names only if that holds for most of its columns.
Assumes     No person's row has words in most of the columns in which everybody else's has numbers.
Why         A CSV file does not say whether it has a header, and without one its first row would be shown as names of
            columns. That values repeat below proves nothing: the first person may have a rare one. Nor does the look of
            a word: anna_smith is a user, and Mary Ward a person.
Checked by  tests/unit/rows/test_headers.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

_LONGEST_NAME: Final = 64
_MOST_WORDS: Final = 8
_MOST: Final = 0.9
_WORDS_OF_A_NAME: Final = 4
_MOST_LISTED: Final = 20
_VALUE: Final = re.compile(
    r"""(?ix) \s* (?:
        [-+]? [$€£¥]? \s* [-+]? (?: [0-9][0-9.,'\s_]* | \.[0-9]+ ) (?: e[-+]?[0-9]+ )? \s* [%€$£¥]?  # an amount
      | [0-9]{1,4} [-/.] [0-9]{1,2} [-/.] [0-9]{1,4} .*                                              # a date
      | [0-9]{1,2} : [0-9]{2} .*                                                                     # a time
      | [<>]=? \s* [0-9] .*                                                                          # <=50K
      | true | false | n/?a | n\.a\.? | nan | null | nil | none | \?+ | -+ | \.+
      | unk | unknown | missing | refused | declined | withdrawn | deceased                          # no amount given
      | not [\s_-] \w+
      | \S+ @ \S+ \. \S+                                                                             # an address
      | https?:// .*
      | \+? [0-9(] [0-9()\s/-]{6,}                                                                   # a telephone
      | [0-9a-f]{8} - [0-9a-f]{4} - .*                                                               # a UUID
      | (?: [0-9a-f]{2} [:-]? ){7,}                                                                  # a digest
    ) \s*"""
)
# Words that name columns and are never values: no surname, job, place or answer is one of them.
_COLUMNS: Final = """
    id ids uuid guid name names firstname lastname surname forename username fullname dob age ages sex gender date
    datetime timestamp year month weekday birthday birthdate birthyear birthplace city country region county district
    province zip zipcode postcode postalcode address email phone telephone income incomes salary wage wages amount
    cost costs total count counts number nr num qty quantity status category categories type kind score scores value
    values code codes lat lon lng latitude longitude location disease diseases diagnosis diagnoses symptom symptoms
    outcome outcomes treatment education occupation workclass fnlwgt relationship race ethnicity religion nationality
    language citizenship height weight bmi rate ratio label description duration frequency percentage
    percent average mean median minimum maximum latency visits purchases who
"""
# These are surnames and values too (ward, student, married), so they prove nothing; beside those above they are names.
_COMPANY: Final = """
    a by for from hr hrs in is of on or per the to with and no
    person people patient patients user users customer client member student employee household hospital ward clinic
    doctor state town street place day days week weeks hour hours minute minutes time times first last middle full
    home work job company marital married children birth born death native capital gain loss group level class unit
    units price product item items order orders visit visited key index flag text note notes comment comments title
    start end begin min max sum share target source new old current previous primary secondary mail area room bed
    cell size length width my your his her their other all any main sub test result results
"""
_WORDS: Final = frozenset(_COLUMNS.split())
_BESIDE: Final = frozenset(_COMPANY.split()) | _WORDS
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")  # also of birthDate and BirthDate


def looks_like_a_value(name: str) -> bool:
    """Say whether a text is what stands in a cell rather than above a column.

    >>> [text for text in ("age", "2019", "1.5", "a@b.org", "2020-01-31", "who is it?") if looks_like_a_value(text)]
    ['2019', '1.5', 'a@b.org', '2020-01-31']
    """
    if len(name) > _LONGEST_NAME or len(name.split()) > _MOST_WORDS or len(name.splitlines()) > 1:
        return True
    return _VALUE.fullmatch(name) is not None


def known_names(
    names: Sequence[str], below: Sequence[Sequence[str | None]], again: Sequence[int]
) -> frozenset[int] | None:
    """Return the places of the cells of a first line that are names for certain, or None if it may be a person's row.

    Args:
        names: The cells of the first line.
        below: Some cells of each column below.
        again: How often the first cell of each column occurs in the whole of it below.
    """
    columns = {
        place: (name, [cell for cell in cells if cell is not None])
        for place, (name, cells) in enumerate(zip(names, below, strict=True))
        if name
    }
    if any(again) or any(looks_like_a_value(name) or _is_one_of_them(name, cells) for name, cells in columns.values()):
        return None
    called = {place for place, (name, _) in columns.items() if _is_called_so(name)}
    typed = {place for place, (_, cells) in columns.items() if cells and all(map(_VALUE.fullmatch, cells))}
    # one word above numbers could be a person's only value; two could not, and a word that names columns is no value
    if 2 * len(called | typed) <= len(columns) or not (called or len(typed) > 1):
        return None
    beside = {place for place, (name, _) in columns.items() if set(_words(name)) <= _BESIDE and _words(name)}
    return frozenset(called | typed | beside)


def _words(name: str) -> list[str]:
    """Return the words of a name in small letters, or none where it has letters that are no part of any."""
    found = _WORD.findall(name)
    return [word.lower() for word in found] if sum(map(len, found)) == sum(map(str.isalpha, name)) else []


def _is_called_so(name: str) -> bool:
    """Say whether all words of a text are those of columns, and one of them is nothing else."""
    words = _words(name)
    return 0 < len(words) <= _WORDS_OF_A_NAME and set(words) <= _BESIDE and not _WORDS.isdisjoint(words)


def _is_one_of_them(name: str, cells: list[str]) -> bool:
    """Say whether a text with digits has the shape that nearly all cells of its column have: P-001 above P-002."""
    if not cells or not any(letter.isdigit() for letter in name):
        return False
    return sum(_shape(cell) == _shape(name) for cell in cells) > _MOST * len(cells)


def _shape(text: str) -> str:
    return "".join("0" if sign.isdigit() else "a" if sign.isalpha() else sign for sign in text)


_ID: Final = re.compile(r"(?:^|.*[_\W])(?:id|key|uuid|guid|ssn|index|number|nr|no)|.*[a-z](?:Id|ID)", re.DOTALL)
# what names a person says so by itself, also where the values repeat
_PERSON: Final = re.compile(
    r"(?i)(?:id|uuid|guid|ssn|e?mail|name|(?:(?:user|person|people|patient|customer|client|member|subject|employee|"
    r"student|household|respondent)s?[_\W]?(?:id|uuid|key|number|nr|no|name)?))"
)


def is_called_a_person(name: str) -> bool:
    """Say whether a column is called like one that names people."""
    return _PERSON.fullmatch(name) is not None


def is_called_an_id(name: str) -> bool:
    """Say whether a column is called like an identifier of people or of anything else."""
    return is_called_a_person(name) or bool(_ID.fullmatch(name) or _ID.fullmatch(name.lower()))


def known_columns(names: Sequence[str], declared: Collection[str]) -> str:
    """Return the sentence that lists the columns of a file, or nothing where its first line may hold values.

    A first line that has two of the declared names, and half of them, is a header.

    >>> known_columns(["age", "sex", "city"], ["age", "sex", "income"])
    'Known columns: age, sex, city.'
    >>> known_columns(["age", "Anna"], ["age", "sex"])
    ''
    """
    found = sum(name in names for name in declared)
    if found < 2 or 2 * found < len(declared) or any(looks_like_a_value(name) for name in names if name):
        return ""
    listed = [name for name in names if name and name.isprintable()]
    more = ", .." if len(listed) > _MOST_LISTED else ""
    return f"Known columns: {', '.join(listed[:_MOST_LISTED])}{more}."

"""How categories are read: which texts and numbers stand for each, in a column of one type.

Number categories are compared with the number reading of a cell. A text category is the cell's if it is its text
reading. Where no text category is, one that *plainly* spells a number (no space, no leading zero) takes the cells that
plainly spell the same number, and one that says true or false those that say the same in other letters: `1`, `1.0` and
`1e0` are one category, as are `True` and `TRUE`, but `007` is not `7`. So a number or a truth counts alike in a typed
column and spelled in a CSV. A typed column has no spelling of its own: two categories that one of its values could be
(`1` and `1.0`) are refused there, as are categories that no value of its type can be.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import narwhals as nw
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused
from tacit.policy.attributes import Categories
from tacit.policy.edges.intervals import Intervals
from tacit.rows.cells.readings import (
    EXACT,
    NOT_PLAIN,
    SPELLED,
    Code,
    DataColumn,
    Expr,
    Positions,
    Reading,
    check_cells,
    check_exact,
    never,
    number_in,
    number_of,
    parsed_columns,
    unreachable,
)

# What looks like a number and is the text reading of none, because of a leading zero, a plus sign or a space; and NaN.
_PADDED: Final = re.compile(r"(?=[ +]|-?0[0-9]|.* \Z) *[+-]?[0-9]+(\.[0-9]*)? *\Z|[nN][aA][nN]\Z")
_HOLDS: Final[dict[str, str]] = {"truth": "true and false", "date": "dates"}


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


def categories_code(attribute: Categories, columns: tuple[DataColumn, ...]) -> Code:
    """Return how categories are read, or refuse by the schema alone."""
    column = replace(columns[0], comma=False)  # categories are texts as they stand
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


def _by_number(meanings: Meanings, column: DataColumn, number: Expr) -> Expr:
    """Say on each row of a text column whether the cell is compared as a number: its own text goes first."""
    compared = ~column.text.str.contains(NOT_PLAIN)
    if anyhow := [value for value in meanings.numbers if value not in meanings.plain]:
        compared = compared | number.is_in(anyhow)
    compared = compared & ~number.is_null()
    if listed := [text for text in meanings.texts if number_in(text) is not None]:
        said = [text for others in (meanings.folded.get(one, []) for one in listed) for text in others]
        compared = compared & ~column.text.is_in([*listed, *said])
    return compared.fill_null(False)


def meanings_of(attribute: Categories, column: DataColumn) -> Meanings:
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
        raise unreachable(f"holds {_HOLDS.get(column.reading, 'numbers')}, and no category is one of them", column)
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
    if not SPELLED.match(text) or re.search(NOT_PLAIN, text):
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


def _check_categories(attribute: Categories, column: DataColumn) -> None:
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
    check_exact(column, largest)


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

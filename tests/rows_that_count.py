"""Which rows of a person count, written out in plain Python from the definition in `rows/counts/row_choice.py`."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tacit.policy.attributes import Attribute, Integers

Row = TypeVar("Row")
START, PRIME = 41_421_356, 2**26 - 5


def person_number(who: Any) -> int:
    """Return the number of a person: 17 is also "17", 17.0 and "17.0"."""
    if isinstance(who, float):
        return abs(int(who // 1)) % 10**18
    if re.fullmatch(r"-?[0-9]+(\.0*)?", str(who)):
        return abs(int(str(who).split(".")[0])) % 10**18
    return int(hashlib.sha256(str(who).encode()).hexdigest()[:13], 16)


def row_key(who: Any, words: Sequence[tuple[int, int]], number: int) -> int:
    """Return the key of a row: words with their bits, and its number among rows that look alike."""
    numbers = [person_number(who), *(word for word, _ in words), number, 0, 0]
    found = 0
    for one in numbers:
        found = pow(found + one + START, 3, PRIME)
    return found


def words_of(places: Mapping[str, int], domain: Mapping[str, Attribute]) -> list[tuple[int, int]]:
    """Pack the places of some attributes, numbers by how far they are above the lowest, into words of 52 bits."""
    words: list[tuple[int, int]] = []
    for name in sorted(places):
        attribute, number = domain[name], places[name]
        step = attribute.step if isinstance(attribute, Integers) else 1
        bits = max(1, ((attribute.size - 1) * step).bit_length())
        if not words or words[-1][1] + bits > 52:
            words.append((0, 0))
        word, used = words[-1]
        words[-1] = (word << bits | number * step, used + bits)
    return words


def in_order(
    who: Any,
    rows: Sequence[Row],
    places: Callable[[Row], Mapping[str, int]],
    domain: Mapping[str, Attribute],
    moved: frozenset[str] | None,
    when: Callable[[Row], Any] = lambda _: 0,
) -> list[Row]:
    """Return the rows of one person that fit, as they come first: the first `per_person` of them count."""

    def public(row: Row) -> dict[str, int]:
        return {name: place for name, place in places(row).items() if moved is not None and name not in moved}

    def others(row: Row) -> list[int]:
        return [place for name, place in sorted(places(row).items()) if moved is None or name in moved]

    alike: Counter[Any] = Counter()
    ranked = []
    for row in sorted(rows, key=others):
        same = (when(row), *sorted(public(row).items()))
        alike[same] += 1
        key = row_key(who, words_of(public(row), domain), alike[same])
        ranked.append(((when(row), key, sorted(public(row).items()), others(row)), row))
    return [row for _, row in sorted(ranked, key=lambda pair: pair[0])]

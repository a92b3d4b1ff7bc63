"""Taxonomies: which general value each value of an attribute becomes, read from a file.

    job:
      Professional: [Engineer, Lawyer]
      Artist: {Stage: [Dancer, Singer], Studio: [Painter]}
    age:
      "[30-35)": [30..34]
      "[35-40)": [35..39]

Every attribute is a tree: names of classes with what is in them, down to lists of values; `30..34` are whole numbers.
At level 1 a value becomes the class at the top of its branch, at level 2 the class below that, and so on; a branch that
ends before is its value. At level 0 all values are one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tacit.errors import DataRefused, PlanError, PolicyError, kind_of, nearest
from tacit.policy.yaml_entries import YamlEntry, YamlSource

ANYTHING: Final = "*"
MOST_NUMBERS: Final = 100_000
_NUMBERS: Final = re.compile(r"(-?\d{1,15})\.\.(-?\d{1,15})")


@dataclass(frozen=True)
class Taxonomy:
    """The classes that each value of each attribute is in, from the top of its branch down."""

    branches: Mapping[str, Mapping[str, tuple[str, ...]]]

    @classmethod
    def load(cls, path: str | Path) -> Taxonomy:
        """Read a taxonomy from a YAML file, or refuse with the line that is wrong."""
        if not isinstance(path, str | Path):
            raise PlanError(f"must be the path of a file, not {kind_of(path)}", key="taxonomy", fix="Name a YAML file.")
        source = YamlSource.open(
            path,
            file=Path(path).name,
            whole="the taxonomy",
            refusal=PolicyError,
            kind="a taxonomy",
            if_table="Write it as YAML: attribute, classes, lists of values.",
            if_missing="Check the path.",
        )
        return cls({name: _branches(tree) for name, tree in source.read().mapping().items()})

    def general(self, name: str, values: Sequence[Any], level: int) -> list[str]:
        """Return what each of these values becomes; refuse values that are in no class."""
        if name not in self.branches:
            fix = nearest(name, list(self.branches))
            raise PlanError("must be an attribute of the taxonomy", key="levels", given=name, fix=fix)
        branches = self.branches[name]
        texts = [text_of(value) for value in values]
        if not all(text in branches for text in texts):
            # which ones is a matter of the rows
            raise DataRefused(
                "has values that the taxonomy misses", column=name, fix="Put every value that may occur into a class."
            )
        return [
            ANYTHING if level == 0 else (*branches[text][:level], text)[min(level, len(branches[text]) + 1) - 1]
            for text in texts
        ]


def text_of(value: Any) -> str:
    """Return a value as a taxonomy writes it: a whole number without a point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _branches(tree: YamlEntry) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for text, branch, entry in _leaves(tree, ()):
        if text in found:
            raise entry.refuse("must be in one class only", given=text, fix="Leave it out of the other.")
        found[text] = branch
    return found


def _leaves(entry: YamlEntry, branch: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...], YamlEntry]]:
    """Yield every value with the classes that it is in."""
    if entry.is_mapping:
        for name, below in entry.mapping().items():
            yield from _leaves(below, (*branch, name))
        return
    if not branch:
        raise entry.refuse("must have classes with values", fix="Write Artist: [Dancer, Singer].")
    for one in entry.one_or_more():
        if one.is_list or one.is_mapping or one.is_empty:
            raise one.refuse("must be a value", fix="Write a text, a number, or 30..34 for several numbers.")
        text = text_of(one.plain())
        numbers = _NUMBERS.fullmatch(text)
        if numbers is None:
            yield text, branch, one
            continue
        first, last = int(numbers[1]), int(numbers[2])
        if not first <= last < first + MOST_NUMBERS:
            raise one.refuse(f"must be at most {MOST_NUMBERS:,} numbers, the smaller end first", given=text)
        for number in range(first, last + 1):
            yield str(number), branch, one

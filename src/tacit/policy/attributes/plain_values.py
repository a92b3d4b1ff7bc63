"""Whole numbers of a range, a value out of a list, and yes and no."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any, Final

import numpy as np

from tacit.errors import PolicyError
from tacit.policy.attributes.attribute import Attribute, OrderedAttribute, Value, alike, rank_of_number
from tacit.policy.genuine import as_plain, settle
from tacit.policy.keys import BOOLEAN, POSITIVE, VALUE, WHOLE, Key, Keys, Row, otherwise_key, two
from tacit.policy.yaml_entries import YamlEntry

_MOST_OTHERS: Final = 100
_NOT_WHOLE: Final = "Round it, or declare decimals:"


def _whole(entry: YamlEntry) -> int:
    """Read a whole number; a refusal of a fraction names the kind for fractions."""
    if entry.tag == "float" and not float(entry.real()).is_integer():
        fix = f"{_NOT_WHOLE} {{decimals: [0, 1], step: 0.1}}."
        raise entry.refuse("must be a whole number", given=entry.plain(), fix=fix)
    return entry.whole()


@dataclass(frozen=True)
class Integers(OrderedAttribute):
    """A whole number from `low` to `high`, both included, in steps of `step`.

    `otherwise` is for unexpected values. A value of the range: missing and unreadable cells, decimals and numbers out
    of range or between two steps count as that value. `"clip"`: numbers out of range count as the nearest end, decimals
    and numbers between two steps as the next lower step; rows with a missing or unreadable cell are dropped. None:
    every row with an unexpected value is dropped.

    >>> Integers(17, 90).size
    74
    """

    low: int
    high: int
    step: int = 1
    otherwise: int | str | None = None

    kind = "integers"
    keys = Keys(
        Key("low", WHOLE, read=_whole, required=True),
        Key("high", WHOLE, read=_whole, required=True),
        Key("step", {**POSITIVE, "default": 1}, read=_whole),
        otherwise_key(WHOLE, _whole),
    )
    nested = True
    row = Row("`integers: [low, high]`", "`step`, `otherwise`: a value or `clip`", "whole numbers, both ends included")
    example = "{integers: [0, 99]}"
    measured = "numbers"
    ordered = True

    def __post_init__(self) -> None:
        settle(self)
        for key in ("low", "high", "step"):
            if isinstance(getattr(self, key), bool) or not isinstance(getattr(self, key), int):
                fix = f"{_NOT_WHOLE} tc.Decimals(0, 1, step=0.1)."
                raise PolicyError("must be a whole number", key=f"integers.{key}", given=getattr(self, key), fix=fix)
        if self.step < 1:
            raise PolicyError("must be at least 1", key="integers.step", given=self.step, fix="Leave it out for 1.")
        if self.low > self.high:
            fix = "Swap the two."
            raise PolicyError("must not be above high", key="integers.low", given=(self.low, self.high), fix=fix)
        if max(abs(self.low), abs(self.high)) > 2**62:
            fix = "Use a smaller range."
            raise PolicyError("must fit into 62 bits", key="integers", given=(self.low, self.high), fix=fix)
        if (self.high - self.low) % self.step:
            rule = "must be a whole number of steps above low"
            fix = f"Use {self.high - (self.high - self.low) % self.step}."
            raise PolicyError(rule, key="integers.high", given=self.high, fix=fix)
        self.settle_otherwise(has_right_type=type(self.otherwise) is int)

    @property
    def size(self) -> int:
        return (self.high - self.low) // self.step + 1

    @property
    def distance(self) -> int:
        return self.step

    def position(self, value: Value) -> int:
        whole = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
        if (
            isinstance(value, bool)
            or not whole
            or not self.low <= value <= self.high
            or (int(value) - self.low) % self.step
        ):
            steps = f" in steps of {self.step}" if self.step > 1 else ""
            fix = "Change it."
            raise PolicyError(f"must be a whole number from {self.low} to {self.high}{steps}", given=value, fix=fix)
        return (int(value) - self.low) // self.step

    def value(self, position: int) -> int:
        return self.low + position * self.step

    def every_cell(self) -> Sequence[int]:
        """Return all values lazily."""
        return range(self.low, self.low + self.size * self.step, self.step)

    def rank(self, operand: Value) -> Fraction | float:
        number = rank_of_number(operand)
        return number if isinstance(number, float) else (number - self.low) / self.step

    @property
    def unit(self) -> Fraction:
        return Fraction(1)

    @property
    def spacing(self) -> int:
        return self.step

    def number(self, position: int) -> int:
        return self.value(position)

    @classmethod
    def read(cls, entry: YamlEntry, main: YamlEntry | None, places: dict[str, YamlEntry]) -> Attribute:
        if main is not None:
            ends = main.listed()
            if len(ends) != 2 or {"low", "high"} & set(places):
                raise main.refuse("must be [low, high]", given=main.plain(), fix="For instance [0, 99].")
            places |= {"low": ends[0], "high": ends[1]}
        for name in ("low", "high"):
            if name not in places:
                fix = "Write {integers: [low, high]}."
                raise entry.refuse(f"must have the key {name}", given=sorted(places), fix=fix)
        return cls(**cls.keys.read(places))

    @classmethod
    def schemas(cls) -> list[dict[str, Any]]:
        ends = two(WHOLE, "[low, high], both included.")
        return [
            cls.keys.without("low", "high").schema("Whole numbers.", first={cls.kind: ends}),
            Keys().schema("Whole numbers.", first={cls.kind: cls.keys.schema()}),
            cls.keys.schema("Whole numbers from low to high, both included."),
        ]

    def document(self) -> Any:
        return {self.kind: [self.low, self.high], **self.not_default()}

    def read_value(self, entry: YamlEntry) -> Value:
        return entry.whole()

    def usual(self) -> Value:
        """Return a round number that is not an end."""
        value = self.value(self.size // 3)
        rounded = value - value % 10
        fits = self.size > 20 and rounded >= self.low and (rounded - self.low) % self.step == 0
        return rounded if fits else value

    @classmethod
    def examples(cls) -> Iterator[Attribute]:
        yield cls(0, 5)
        yield cls(10, 30, 5)


@dataclass(frozen=True)
class Categories(OrderedAttribute):
    """A value out of a list. `otherwise` is the category of unexpected values (None: row dropped).

    >>> Categories(["flu", "hiv", "other"], otherwise="other").position("hiv")
    1
    """

    values: tuple[Value, ...]
    ordered: bool = False
    otherwise: Value | None = None

    kind = "categories"
    keys = Keys(
        Key("ordered", {**BOOLEAN, "default": False}, "Whether their order means anything."),
        Key("otherwise", VALUE, "What unexpected values count as.", "the row is dropped", read=YamlEntry.value),
    )
    row = Row("`categories: [..]`", "`ordered`, `otherwise`: one of them", "texts, whole numbers or true/false")
    example = "{categories: [a, b]}"
    measured = "names"
    watched = "cells"

    def __init__(
        self, values: Iterable[Value], *more: Value, ordered: bool = False, otherwise: Value | None = None
    ) -> None:
        if more or isinstance(values, str) or not isinstance(values, Iterable):
            given = [values, *more] if more else values
            example = given if more and all(isinstance(value, str | int) for value in given) else "[a, b, ..]"
            fix = f"Write Categories({example})."
            raise PolicyError("must be one list of values", key="categories", given=given, fix=fix)
        otherwise = as_plain(otherwise)
        for key, field in (("values", as_plain(tuple(values))), ("ordered", ordered), ("otherwise", otherwise)):
            object.__setattr__(self, key, field)
        if not self.values:
            raise PolicyError("must not be empty", key="categories", given=[], fix="List at least one value.")
        for value in self.values:
            if not isinstance(value, str | int | bool):
                fix = "Quote it."
                raise PolicyError("must be texts, whole numbers or true/false", key="categories", given=value, fix=fix)
        if len(set(self.values)) != len(self.values):  # 1 and true are one value to every engine
            twice = next(v for i, v in enumerate(self.values) if v in self.values[:i])
            raise PolicyError("must not repeat a value", key="categories", given=twice, fix="Remove one of them.")
        if not isinstance(ordered, bool):
            raise PolicyError("must be true or false", key="ordered", given=ordered, fix="Leave it out.")
        if otherwise is not None and not (isinstance(otherwise, Hashable) and otherwise in self.values):
            fix = "Leave it out to drop rows with unexpected values."
            if isinstance(otherwise, str | int):
                fix = f"Add {otherwise!r} to the list, or leave `otherwise` out to drop rows with unexpected values."
            raise PolicyError("must be one of the categories", key="otherwise", given=otherwise, fix=fix)

    @property
    def size(self) -> int:
        return len(self.values)

    def position(self, value: Value) -> int:
        try:
            return self.values.index(value)
        except ValueError:
            raise PolicyError("must be one of the categories", given=value, fix=alike(value, self.values)) from None

    def value(self, position: int) -> Value:
        return self.values[position]

    def every_cell(self) -> Sequence[Value]:
        return self.values

    def rank(self, operand: Value) -> Fraction:
        if not self.ordered:
            fix = "Declare ordered=True (in a file: `ordered: true`), or use `in`."
            raise PolicyError("must not compare unordered categories", fix=fix)
        return Fraction(self.position(operand))

    @property
    def clips(self) -> bool:
        """Never: `clip` is a category like any other."""
        return False

    @classmethod
    def read(cls, entry: YamlEntry, main: YamlEntry | None, places: dict[str, YamlEntry]) -> Attribute:
        assert main is not None  # noqa: S101 - there is no other way to write it
        values = [value.value() for value in main.listed()]
        with main.blamed(places):
            return cls(values, **cls.keys.read(places))

    @classmethod
    def schemas(cls) -> list[dict[str, Any]]:
        listed = {"type": "array", "items": VALUE, "minItems": 1, "uniqueItems": True}
        return [cls.keys.schema("A value out of a list.", first={cls.kind: listed})]

    def document(self) -> Any:
        return {self.kind: list(self.values), **self.not_default()}

    def read_value(self, entry: YamlEntry) -> Value:
        return entry.value()

    def words(self, value: Value) -> str:
        text = str(value)
        return text if text and len(text) <= 40 and text.isprintable() else repr(text[:40])

    def usual(self) -> Value:
        return self.values[0]

    def others(self, value: Value) -> list[Value]:
        """Return other values in their order."""
        return [other for other in self.values[:_MOST_OTHERS] if other != value]

    @classmethod
    def examples(cls) -> Iterator[Attribute]:
        yield cls(["flu", "hiv", "none"])
        yield cls(["early", "late", "end"], ordered=True)


@dataclass(frozen=True)
class Flag(OrderedAttribute):
    """Yes or no: True/False or 1/0 in the data. `otherwise` is True, False, or None (row dropped)."""

    otherwise: bool | None = None

    kind = "flag"
    keys = Keys(Key("otherwise", BOOLEAN, "What unexpected values count as.", "the row is dropped"))
    nested = True
    row = Row("`flag`", "`{flag: {otherwise: false}}`", "true and false, 1 and 0")
    example = "flag"
    measured = "truth"
    watched = "itself"
    ordered = True

    def __post_init__(self) -> None:
        settle(self)
        is_value = isinstance(self.otherwise, Hashable) and self.otherwise in (True, False)
        if self.otherwise is not None and not is_value:
            raise PolicyError("must be true or false", key="otherwise", given=self.otherwise, fix="Leave it out.")

    @property
    def size(self) -> int:
        return 2

    def position(self, value: Value) -> int:
        if isinstance(value, Integral | np.bool_) and value in (0, 1):
            return int(value)
        raise PolicyError("must be true or false", given=value, fix="Write true or false.")

    def value(self, position: int) -> bool:
        return bool(position)

    def rank(self, operand: Value) -> Fraction | float:
        """Return the number itself: no is 0, and yes is 1."""
        return rank_of_number(operand)

    @classmethod
    def read(cls, entry: YamlEntry, main: YamlEntry | None, places: dict[str, YamlEntry]) -> Attribute:
        if main is not None and not main.is_empty:
            fix = "Write `flag` alone, or {flag: {otherwise: ..}}."
            raise main.refuse("must be a mapping", given=main.plain(), fix=fix)
        return cls(**cls.keys.read(places))

    @classmethod
    def schemas(cls) -> list[dict[str, Any]]:
        return [
            {"const": cls.kind, "description": "Yes or no."},
            cls.keys.schema("Yes or no.", first={cls.kind: {"type": "null"}}),
            Keys().schema("Yes or no.", first={cls.kind: cls.keys.schema()}),
        ]

    def document(self) -> Any:
        return self.kind if self.otherwise is None else {self.kind: {"otherwise": bool(self.otherwise)}}

    def read_value(self, entry: YamlEntry) -> Value:
        return entry.yes_or_no() if entry.tag == "bool" else entry.value()

    def words(self, value: Value) -> str:
        return "yes" if value else "no"

    @classmethod
    def examples(cls) -> Iterator[Attribute]:
        yield cls()

"""A value out of a list, and yes or no."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.errors import PolicyError
from tacit.policy.attributes.attribute import Attribute, OrderedAttribute, Value, alike, rank_of_number
from tacit.policy.genuine import as_plain, settle
from tacit.policy.keys import BOOLEAN, VALUE, Key, Keys, Row
from tacit.policy.yaml_entries import YAML_TAG, YamlEntry


@dataclass(frozen=True)
class Categories(OrderedAttribute):
    """A value out of a list. `otherwise` names the category that unexpected values count as (None: row dropped).

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
            raise PolicyError(
                "must be one list of values", key="categories", given=given, fix=f"Write Categories({example})."
            )
        object.__setattr__(self, "values", as_plain(tuple(values)))
        otherwise = as_plain(otherwise)
        object.__setattr__(self, "ordered", ordered)
        object.__setattr__(self, "otherwise", otherwise)
        if not self.values:
            raise PolicyError("must not be empty", key="categories", given=[], fix="List at least one value.")
        for value in self.values:
            if not isinstance(value, str | int | bool):
                raise PolicyError(
                    "must be texts, whole numbers or true/false", key="categories", given=value, fix="Quote it."
                )
        if len(set(self.values)) != len(self.values):  # 1 and true are one value to every engine
            twice = next(v for i, v in enumerate(self.values) if v in self.values[:i])
            raise PolicyError("must not repeat a value", key="categories", given=twice, fix="Remove one of them.")
        if not isinstance(ordered, bool):
            raise PolicyError("must be true or false", key="ordered", given=ordered, fix="Leave it out.")
        if otherwise is not None and not (isinstance(otherwise, Hashable) and otherwise in self.values):
            raise PolicyError(
                "must be one of the categories",
                key="otherwise",
                given=otherwise,
                fix=f"Add {otherwise!r} to the list, or leave `otherwise` out to drop rows with unexpected values."
                if isinstance(otherwise, str | int)
                else "Leave it out to drop rows with unexpected values.",
            )

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
        """Return the position of a category, where the order means something."""
        if not self.ordered:
            raise PolicyError(
                "must not compare unordered categories",
                fix="Declare ordered=True (in a file: `ordered: true`), or use `in`.",
            )
        return Fraction(self.position(operand))

    @property
    def clips(self) -> bool:
        """Whether values out of range count as the nearest end: no, `clip` is a category like any other."""
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
        ordered = {"ordered": True} if self.ordered else {}
        otherwise = {} if self.otherwise is None else {"otherwise": self.otherwise}
        return {self.kind: list(self.values), **ordered, **otherwise}

    def read_value(self, entry: YamlEntry) -> Value:
        return entry.value()

    def words(self, value: Value) -> str:
        text = str(value)
        return text if text and len(text) <= 40 and text.isprintable() else repr(text[:40])

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
        if isinstance(value, bool | int) and value in (0, 1):
            return int(value)
        raise PolicyError("must be true or false", given=value, fix="Write true or false.")

    def value(self, position: int) -> bool:
        return bool(position)

    def rank(self, operand: Value) -> Fraction | float:
        """Return where a number stands between no, which is 0, and yes, which is 1."""
        return rank_of_number(operand)

    @classmethod
    def read(cls, entry: YamlEntry, main: YamlEntry | None, places: dict[str, YamlEntry]) -> Attribute:
        if main is not None and not main.is_empty:
            raise main.refuse(
                "must be a mapping", given=main.plain(), fix="Write `flag` alone, or {flag: {otherwise: ..}}."
            )
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
        return entry.yes_or_no() if entry.node.tag == f"{YAML_TAG}bool" else entry.value()

    def words(self, value: Value) -> str:
        return "yes" if value else "no"

    @classmethod
    def examples(cls) -> Iterator[Attribute]:
        yield cls()

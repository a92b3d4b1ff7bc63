"""What a person's record may look like: a finite product of declared, public attributes.

A domain is never read off the data. Each attribute is laid out on one or more *axes* with positions 0, 1, 2, ..:
categories in the order given, integers from `low` upwards, a grid on two axes. A set of items has one yes/no axis
for each item, made only when somebody asks for that item, so that a domain with a million items costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any, Final, TypeAlias

from tacit.errors import PolicyError, nearest

Value: TypeAlias = Any
Record: TypeAlias = tuple[Value, ...]
CLIP: Final = "clip"


@dataclass(frozen=True)
class Axis:
    """One line of positions. `ordered` says whether distances and cumulative counts mean anything on it."""

    name: str
    size: int
    ordered: bool
    spacing: int = 1


@dataclass(frozen=True)
class Categories:
    """A value out of a list. `otherwise` names the category that unexpected values count as (None: row dropped).

    >>> Categories(["flu", "hiv", "other"], otherwise="other").position("hiv")
    1
    """

    values: tuple[Value, ...]
    ordered: bool = False
    otherwise: Value | None = None

    def __init__(
        self, values: Iterable[Value], *more: Value, ordered: bool = False, otherwise: Value | None = None
    ) -> None:
        if more or isinstance(values, str) or not isinstance(values, Iterable):
            given = [values, *more] if more else values
            example = given if more and all(isinstance(value, str | int) for value in given) else "[a, b, ..]"
            raise PolicyError(
                "must be one list of values", key="categories", given=given, fix=f"Write Categories({example})."
            )
        object.__setattr__(self, "values", tuple(values))
        object.__setattr__(self, "ordered", ordered)
        object.__setattr__(self, "otherwise", otherwise)
        if not self.values:
            raise PolicyError("must not be empty", key="categories", given=[], fix="List at least one value.")
        for value in self.values:
            if not isinstance(value, str | int | bool):
                raise PolicyError(
                    "must be texts, whole numbers or true/false",
                    key="categories",
                    given=value,
                    fix="Quote it.",
                )
        if len(set(self.values)) != len(self.values):  # 1 and true are one value to every engine
            twice = next(v for i, v in enumerate(self.values) if v in self.values[:i])
            raise PolicyError("must not repeat a value", key="categories", given=twice, fix="Remove one of them.")
        if otherwise is not None and otherwise not in self.values:
            raise PolicyError(
                "must be one of the categories",
                key="otherwise",
                given=otherwise,
                fix=f"Add {otherwise!r} to the list, or leave `otherwise` out to drop rows with unexpected values.",
            )

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.values)

    def axes(self, name: str) -> tuple[Axis, ...]:
        """Lay the attribute out on axes."""
        return (Axis(name, self.size, self.ordered),)

    def position(self, value: Value) -> int:
        """Return the position of a value, or refuse."""
        try:
            return self.values.index(value)
        except ValueError:
            raise PolicyError("must be one of the categories", given=value, fix=_alike(value, self.values)) from None

    def value(self, position: int) -> Value:
        """Return the value at a position."""
        return self.values[position]


@dataclass(frozen=True)
class Integers:
    """A whole number from `low` to `high`, both included, in steps of `step`.

    `otherwise` says what unexpected values count as. A value of the range: missing and unreadable cells, decimals and
    numbers out of range or between two steps all count as that value. `"clip"`: numbers out of range count as the
    nearest end, decimals and numbers between two steps as the next lower step; rows with a missing or unreadable cell
    are dropped. None: every row with an unexpected value is dropped.

    >>> Integers(17, 90).size
    74
    """

    low: int
    high: int
    step: int = 1
    otherwise: int | str | None = None

    def __post_init__(self) -> None:
        for key in ("low", "high", "step"):
            if isinstance(getattr(self, key), bool) or not isinstance(getattr(self, key), int):
                raise PolicyError(
                    "must be a whole number", key=f"integers.{key}", given=getattr(self, key), fix="Round it."
                )
        if self.step < 1:
            raise PolicyError("must be at least 1", key="integers.step", given=self.step, fix="Leave it out for 1.")
        if self.low > self.high:
            raise PolicyError(
                "must not be above high", key="integers.low", given=(self.low, self.high), fix="Swap the two."
            )
        if max(abs(self.low), abs(self.high)) > 2**62:
            raise PolicyError(
                "must fit into 62 bits",
                key="integers",
                given=(self.low, self.high),
                fix="Use a smaller range.",
            )
        if (self.high - self.low) % self.step:
            raise PolicyError(
                "must be a whole number of steps above low",
                key="integers.high",
                given=self.high,
                fix=f"Use {self.high - (self.high - self.low) % self.step}.",
            )
        if self.otherwise is not None and self.otherwise != CLIP:
            if isinstance(self.otherwise, bool) or not isinstance(self.otherwise, int):
                raise PolicyError(
                    "must be a value of the range or 'clip'",
                    key="otherwise",
                    given=self.otherwise,
                    fix="Did you mean 'clip'?" if isinstance(self.otherwise, str) else "Use 'clip'.",
                )
            self.position(self.otherwise)

    @property
    def size(self) -> int:
        """Number of values."""
        return (self.high - self.low) // self.step + 1

    @property
    def unit(self) -> Fraction:
        """What numbers are counted in when they are added up."""
        return Fraction(1)

    @property
    def spacing(self) -> int:
        """How many units lie between two neighbouring values."""
        return self.step

    def number(self, position: int) -> int:
        """Return the value at a position in units."""
        return self.low + self.step * position

    def axes(self, name: str) -> tuple[Axis, ...]:
        """Lay the attribute out on axes."""
        return (Axis(name, self.size, ordered=True, spacing=self.step),)

    def position(self, value: Value) -> int:
        """Return the position of a value, or refuse."""
        whole = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
        if (
            isinstance(value, bool)
            or not whole
            or not self.low <= value <= self.high
            or (int(value) - self.low) % self.step
        ):
            steps = f" in steps of {self.step}" if self.step > 1 else ""
            raise PolicyError(
                f"must be a whole number from {self.low} to {self.high}{steps}", given=value, fix="Change it."
            )
        return (int(value) - self.low) // self.step

    def value(self, position: int) -> int:
        """Return the value at a position."""
        return self.low + position * self.step


@dataclass(frozen=True)
class Flag:
    """Yes or no: True/False or 1/0 in the data. `otherwise` is True, False, or None (row dropped)."""

    otherwise: bool | None = None

    def __post_init__(self) -> None:
        if self.otherwise is not None and self.otherwise not in (True, False):
            raise PolicyError("must be true or false", key="otherwise", given=self.otherwise, fix="Leave it out.")

    @property
    def size(self) -> int:
        """Number of values."""
        return 2

    def axes(self, name: str) -> tuple[Axis, ...]:
        """Lay the attribute out on axes."""
        return (Axis(name, 2, ordered=True),)

    def position(self, value: Value) -> int:
        """Return the position of a value, or refuse."""
        if isinstance(value, bool | int) and value in (0, 1):
            return int(value)
        raise PolicyError("must be true or false", given=value, fix="Write true or false.")

    def value(self, position: int) -> bool:
        """Return the value at a position."""
        return bool(position)


@dataclass(frozen=True)
class Grid:
    """A cell of a map: `rows` x `columns` cells; a value is the pair (row, column).

    `of` names the two data columns. Without `low` and `high` they hold cell numbers; with them they hold
    coordinates, and cell (0, 0) starts at `low`: Grid(400, 300, of=("lat", "lon"), low=(30, -125), high=(50, -110)).
    `otherwise` is a cell, `"clip"`, or None (row dropped).
    """

    rows: int
    columns: int
    of: tuple[str, str] = ("row", "column")
    low: tuple[float, float] | None = None
    high: tuple[float, float] | None = None
    otherwise: tuple[int, int] | str | None = None

    def __post_init__(self) -> None:
        for key in ("of", "low", "high", "otherwise"):
            value = getattr(self, key)
            if isinstance(value, list):
                object.__setattr__(self, key, tuple(value))
        for key in ("rows", "columns"):
            given = getattr(self, key)
            if isinstance(given, bool) or not isinstance(given, int) or given < 1:
                raise PolicyError("must be at least 1", key=f"grid.{key}", given=given, fix="Count the cells.")
        of_texts = isinstance(self.of, tuple) and all(isinstance(name, str) for name in self.of)
        if not of_texts or len(set(self.of)) != 2 or len(self.of) != 2:
            raise PolicyError("must name two columns", key="grid.of", given=self.of, fix="Write [latitude, longitude].")
        if (self.low is None) != (self.high is None):
            raise PolicyError("must come with high", key="grid.low", given=self.low, fix="Give both or neither.")
        if self.low is not None and self.high is not None:
            ends = (self.low, self.high)
            if not all(isinstance(end, tuple) and len(end) == 2 and all(map(_is_finite, end)) for end in ends):
                raise PolicyError("must be two numbers each", key="grid.low, grid.high", given=ends, fix="Fix them.")
            if not (self.low[0] < self.high[0] and self.low[1] < self.high[1]):
                raise PolicyError("must be below high", key="grid.low", given=(self.low, self.high), fix="Swap them.")
        if isinstance(self.otherwise, str) and self.otherwise != CLIP:
            raise PolicyError(
                "must be a cell or 'clip'", key="otherwise", given=self.otherwise, fix="Did you mean 'clip'?"
            )
        if self.otherwise is not None and not isinstance(self.otherwise, str):
            self.position(self.otherwise)

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.rows * self.columns

    def axes(self, name: str) -> tuple[Axis, ...]:
        """Lay the attribute out on axes."""
        return (
            Axis(f"{name}.row", self.rows, ordered=True),
            Axis(f"{name}.column", self.columns, ordered=True),
        )

    def position(self, value: Value) -> int:
        """Return the cell number of a cell, or refuse."""
        fits = isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(part, int) for part in value)
        if not fits or not (0 <= value[0] < self.rows and 0 <= value[1] < self.columns):
            raise PolicyError(
                f"must be a cell [row, column] below [{self.rows}, {self.columns}]",
                given=value,
                fix="Change it.",
            )
        return int(value[0]) * self.columns + int(value[1])

    def value(self, position: int) -> tuple[int, int]:
        """Return the cell with this number."""
        return divmod(position, self.columns)


@dataclass(frozen=True)
class Items:
    """A set of items out of a list: what was bought, clicked or visited.

    `items` is how many there are (then they are called first, first + 1, ..), or their names. `at_most` bounds how
    many items one person may have; more are dropped before anything is counted. Unknown items are ignored.
    """

    items: int | tuple[Value, ...]
    first: int = 0
    at_most: int | None = None

    def __init__(self, items: int | Iterable[Value], *more: Value, first: int = 0, at_most: int | None = None) -> None:
        if more or isinstance(items, str) or not isinstance(items, int | Iterable):
            given = [items, *more] if more else items
            raise PolicyError("must be a number or a list", key="items", given=given, fix="Write 1000 or [a, b, ..].")
        listed = items if isinstance(items, int) else tuple(items)
        object.__setattr__(self, "items", listed)
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "at_most", at_most)
        if isinstance(listed, bool) or (isinstance(listed, int) and listed < 1) or listed == ():
            raise PolicyError("must have at least one item", key="items", given=listed, fix="Count them.")
        for item in listed if isinstance(listed, tuple) else ():
            if isinstance(item, bool) or not isinstance(item, str | int):
                raise PolicyError("must be texts or whole numbers", key="items", given=item, fix="Quote it.")
        if isinstance(first, bool) or not isinstance(first, int):
            raise PolicyError("must be a whole number", key="items.first", given=first, fix="Leave it out for 0.")
        if isinstance(listed, tuple) and first != 0:
            raise PolicyError(
                "must not be given for items with names", key="items.first", given=first, fix="Remove it."
            )
        if isinstance(listed, tuple) and len(set(listed)) != len(listed):
            raise PolicyError("must not repeat an item", key="items", given=listed, fix="Remove the second one.")
        counted = isinstance(at_most, int) and not isinstance(at_most, bool)
        if at_most is not None and not (counted and 1 <= at_most <= self.count):
            raise PolicyError(
                f"must be from 1 to {self.count}",
                key="items.at_most",
                given=at_most,
                fix="Leave it out for no bound.",
            )

    @property
    def count(self) -> int:
        """Number of items."""
        return self.items if isinstance(self.items, int) else len(self.items)

    @property
    def most(self) -> int:
        """The largest number of items that one person may have."""
        return self.count if self.at_most is None else self.at_most

    @property
    def size(self) -> int:
        """Number of possible sets."""
        if self.at_most is None:
            return int(2**self.count)
        sets = ways = 1
        for chosen in range(self.at_most):
            ways = ways * (self.count - chosen) // (chosen + 1)  # exact: these are binomial coefficients
            sets += ways
        return sets

    def axes(self, name: str) -> tuple[Axis, ...]:
        """Return no axis: items get theirs one by one, by `item_axis`."""
        return ()

    def item_position(self, item: Value) -> int:
        """Return the position of an item, or refuse."""
        if isinstance(self.items, int):
            if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item - self.first < self.items:
                last = self.first + self.items - 1
                raise PolicyError(f"must be an item from {self.first} to {last}", given=item, fix="Change it.")
            return item - self.first
        try:
            return self.items.index(item)
        except ValueError:
            raise PolicyError("must be one of the items", given=item, fix=_alike(item, self.items)) from None

    def item(self, position: int) -> Value:
        """Return the item at a position."""
        return self.first + position if isinstance(self.items, int) else self.items[position]

    def positions(self, value: Value) -> frozenset[int]:
        """Return the positions of a set of items, or refuse."""
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise PolicyError("must be a set of items", given=value, fix="Write a list of items.")
        found = frozenset(self.item_position(item) for item in value)
        if len(found) > self.most:
            raise PolicyError(f"must have at most {self.most} items", given=sorted(found), fix="Remove some.")
        return found


Attribute: TypeAlias = Categories | Integers | Flag | Grid | Items
KINDS: Final[dict[str, type[Attribute]]] = {
    "categories": Categories,
    "integers": Integers,
    "flag": Flag,
    "grid": Grid,
    "items": Items,
}


@dataclass(frozen=True)
class Domain(Mapping[str, Attribute]):
    """The declared attributes by name. Public; never read off the data.

    >>> domain = Domain({"age": Integers(17, 90), "disease": Categories(["flu", "hiv"])})
    >>> domain.size
    148
    >>> domain.record({"disease": "hiv", "age": 20})
    (20, 'hiv')
    """

    attributes: tuple[tuple[str, Attribute], ...]

    def __init__(self, attributes: Mapping[str, Attribute]) -> None:
        if not isinstance(attributes, Mapping):
            raise PolicyError(
                "must be a mapping", key="domain", given=attributes, fix='Write {"age": tc.Integers(17, 90)}.'
            )
        object.__setattr__(self, "attributes", tuple(attributes.items()))
        if not self.attributes:
            raise PolicyError("must have at least one attribute", key="domain", given={}, fix="Declare a column.")
        for name, attribute in self.attributes:
            if not isinstance(name, str) or len(name.splitlines()) != 1 or any(mark in name for mark in "[]\n`"):
                raise PolicyError(
                    "must be a text without brackets, backticks or line breaks",
                    key="domain: attribute name",
                    given=name,
                    fix="Rename the column first.",
                )
            if not isinstance(attribute, Categories | Integers | Flag | Grid | Items):
                raise PolicyError(
                    "must be Integers, Categories, Flag, Grid or Items",
                    key=f"domain.{name}",
                    given=attribute,
                    fix="For instance tc.Integers(0, 99).",
                )
        taken = [axis.name for name, attribute in self.attributes for axis in attribute.axes(name)]
        for name in taken:
            if taken.count(name) > 1:
                raise PolicyError("must not be used twice", key="domain", given=name, fix="Rename one attribute.")

    def __getitem__(self, name: str) -> Attribute:
        for known, attribute in self.attributes:
            if known == name:
                return attribute
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    @property
    def size(self) -> int:
        """Number of possible records, as an exact integer."""
        return math.prod(attribute.size for _, attribute in self.attributes)

    def attribute(self, name: str, *, key: str = "attribute") -> Attribute:
        """Return an attribute, or refuse with the nearest known name."""
        if not isinstance(name, str) or name not in self:
            raise PolicyError("must be an attribute of the domain", key=key, given=name, fix=_alike(name, list(self)))
        return self[name]

    def axes_of(self, name: str) -> tuple[Axis, ...]:
        """Return the fixed axes of an attribute (none for a set of items)."""
        return self[name].axes(name)

    def axis(self, name: str) -> Axis:
        """Return an axis by its name: `age`, `place.row`, `clicked[7]`."""
        for attribute in self:
            for axis in self.axes_of(attribute):
                if axis.name == name:
                    return axis
        return Axis(name, 2, ordered=True)

    def record(self, value: Value) -> Record:
        """Turn what a user writes for one person into a canonical record, or refuse.

        Accepts a mapping with every attribute, a sequence in the order of the domain, or, in a domain with one
        attribute, the bare value.
        """
        if isinstance(value, Mapping):
            unknown = [name for name in value if name not in self]
            if unknown:
                self.attribute(unknown[0], key="record")
            missing = [name for name in self if name not in value]
            if missing:
                raise PolicyError(
                    "must give every attribute",
                    key="record",
                    given=dict(value),
                    fix=f"Add {', '.join(missing)}.",
                )
            parts: Sequence[Value] = [value[name] for name in self]
        elif len(self) == 1 and not self._is_whole_record(value):
            parts = [value]
        elif isinstance(value, tuple | list) and len(value) == len(self):
            parts = value
        else:
            raise PolicyError(
                f"must have the attributes {', '.join(self)}",
                key="record",
                given=value,
                fix="Write a mapping.",
            )
        return tuple(
            canonical(attribute, part, key=name) for (name, attribute), part in zip(self.attributes, parts, strict=True)
        )

    def _is_whole_record(self, value: Value) -> bool:
        """Say whether a 1-tuple is a record with its one value rather than the bare value.

        No cell has one part, and no item is itself a list or set, so the two never look the same.
        """
        if not isinstance(value, tuple) or len(value) != 1:
            return False
        is_set = isinstance(next(iter(self.values())), Items)
        return not is_set or isinstance(value[0], set | frozenset | list | tuple)


def canonical(attribute: Attribute, value: Value, *, key: str) -> Value:
    """Return the one way a value of an attribute is written, or refuse naming the key."""
    try:
        if isinstance(attribute, Items):
            return frozenset(attribute.item(position) for position in attribute.positions(value))
        return attribute.value(attribute.position(value))
    except PolicyError as refusal:
        raise refusal.located(key=key) from None


def _alike(name: Value, known: Sequence[Value]) -> str:
    """Return the sentence that points to a known name which is the same but for case, spaces and quotes, or nearest."""

    def bare(value: Value) -> str:
        return " ".join(str(value).casefold().split())

    for one in known:
        if bare(one) == bare(name):
            return f"Did you mean {one!r}?"
    texts = [str(one) for one in known[:_MOST_TRIED]]
    said = nearest(str(name), texts)
    if said.startswith("Known: ") and len(known) > _MOST_SHOWN:
        said = f"Known: {', '.join(texts[:_MOST_SHOWN])}, .."
    return said


_MOST_TRIED: Final = 1000  # names that a misspelled one is compared with
_MOST_SHOWN: Final = 50


def _is_finite(number: Value) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)


def item_axis(name: str, position: int) -> str:
    """Return the name of the yes/no axis of one item."""
    return f"{name}[{position}]"

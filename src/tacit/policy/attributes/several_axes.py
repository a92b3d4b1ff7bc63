"""Kinds with more than one axis: a cell of a map, and a set of items."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from numbers import Integral
from typing import Any, Final, Literal

from tacit.errors import PolicyError
from tacit.policy.attributes.attribute import CLIP, Attribute, Axis, Value, alike
from tacit.policy.attributes.plain_values import Categories, Integers
from tacit.policy.edges.intervals import Intervals
from tacit.policy.genuine import as_plain, settle
from tacit.policy.keys import POSITIVE, WHOLE, Key, Keys, Row, otherwise_key, read_two, two
from tacit.policy.yaml_entries import YamlEntry

_PARTS = ("row", "column")
_PLACE: Final = two({"type": "number"})
_CELL: Final = two({"type": "integer", "minimum": 0})


def _is_whole(number: Value) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool)


def _is_finite(number: Value) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)


def _two_of(read: Callable[[YamlEntry], Value]) -> Callable[[YamlEntry], tuple[Value, ...]]:
    return lambda entry: tuple(map(read, read_two(entry)))


@dataclass(frozen=True)
class Grid(Attribute):
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

    kind = "grid"
    keys = Keys(
        Key("rows", POSITIVE, required=True),
        Key("columns", POSITIVE, required=True),
        Key(
            "of",
            two({"type": "string"}),
            "The two data columns, for instance [latitude, longitude].",
            read=_two_of(YamlEntry.text),
        ),
        Key("low", _PLACE, "Where cell [0, 0] starts.", "the columns hold cell numbers", read=_two_of(YamlEntry.real)),
        Key("high", _PLACE, "Where the last cell ends.", read=_two_of(YamlEntry.real)),
        otherwise_key(_CELL, _two_of(YamlEntry.whole), "The cell of places off the map: clip, or [row, column]."),
    )
    nested = True
    row = Row(
        "`grid: {rows, columns}`", "`of`, `low`, `high`, `otherwise`: `[row, column]` or `clip`", "cells of a map"
    )
    example = "{grid: ..}"
    measured = "places"

    def __post_init__(self) -> None:
        settle(self)
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
            fix = "Did you mean 'clip'?"
            raise PolicyError("must be a cell or 'clip'", key="otherwise", given=self.otherwise, fix=fix)
        if self.otherwise is not None and not isinstance(self.otherwise, str):
            self.position(self.otherwise)

    @property
    def size(self) -> int:
        return self.rows * self.columns

    def position(self, value: Value) -> int:
        fits = isinstance(value, tuple | list) and len(value) == 2 and all(map(_is_whole, value))
        if not fits or not (0 <= value[0] < self.rows and 0 <= value[1] < self.columns):
            fix = "Change it."
            raise PolicyError(f"must be a cell [row, column] below [{self.rows}, {self.columns}]", given=value, fix=fix)
        return int(value[0]) * self.columns + int(value[1])

    def value(self, position: int) -> tuple[int, int]:
        return divmod(position, self.columns)

    def every_cell(self) -> Sequence[tuple[int, int]]:
        return list(product(range(self.rows), range(self.columns)))

    def axes(self, name: str) -> tuple[Axis, ...]:
        sizes = (self.rows, self.columns)
        return tuple(Axis(name, size, ordered=True, part=part) for size, part in zip(sizes, _PARTS, strict=True))

    def places(self, name: str, value: Value) -> dict[str, int]:
        return {axis.name: place for axis, place in zip(self.axes(name), value, strict=True)}

    def distances(self, a: Value, b: Value) -> list[Fraction]:
        return [Fraction(abs(x - y)) for x, y in zip(a, b, strict=True)]

    def atom(self, name: str, part: str, symbol: str, operand: Value) -> tuple[Axis, Intervals]:
        if symbol == "has":
            raise PolicyError("must be asked of a set of items", fix="Use == or in.")
        if part not in _PARTS:
            raise PolicyError("must say row or column", fix=f"Write {name}.row or {name}.column.")
        axis = self.axes(name)[_PARTS.index(part)]
        return axis, Integers(0, axis.size - 1).picked(symbol, operand)

    @property
    def coordinates(self) -> tuple[tuple[float, float], ...]:
        """The middle of the first cell, and the size of a cell; without coordinates, the numbers of the cells."""
        if self.low is None or self.high is None:
            return (0.0, 1.0), (0.0, 1.0)
        sizes = [
            (high - low) / many for low, high, many in zip(self.low, self.high, (self.rows, self.columns), strict=True)
        ]
        return tuple((low + size / 2, size) for low, size in zip(self.low, sizes, strict=True))

    @classmethod
    def read(cls, entry: YamlEntry, main: YamlEntry | None, places: dict[str, YamlEntry]) -> Attribute:
        if main is not None:
            raise main.refuse("must be a mapping", given=main.plain(), fix="Write {grid: {rows: 40, columns: 30}}.")
        for name in ("rows", "columns"):
            if name not in places:
                fix = f"Add `{name}: ..` to the grid."
                raise entry.refuse(f"must have the key {name}", given=sorted(places), fix=fix)
        return cls(**cls.keys.read(places))

    @classmethod
    def schemas(cls) -> list[dict[str, Any]]:
        *inside, otherwise = cls.keys
        return [
            Keys().schema("A cell of a map.", first={cls.kind: cls.keys.schema()}),
            Keys(otherwise).schema("A cell of a map.", first={cls.kind: Keys(*inside).schema()}),
        ]

    def document(self) -> Any:
        return {self.kind: {"rows": self.rows, "columns": self.columns, "of": list(self.of), **self.not_default()}}

    def read_value(self, entry: YamlEntry) -> Value:
        return tuple(part.whole() for part in entry.listed())

    def read_from(self, name: str, item: str | None = None) -> tuple[str, ...]:
        return self.of

    def as_cells(self, value: Value) -> tuple[Any, ...]:
        if self.low is None or self.high is None:
            return tuple(value)
        return tuple(
            low + (high - low) * (2 * at + 1) / (2 * many)
            for low, high, at, many in zip(self.low, self.high, value, (self.rows, self.columns), strict=True)
        )

    def words(self, value: Value) -> str:
        return f"cell ({value[0]}, {value[1]})"

    def usual(self) -> Value:
        return [self.rows // 2, self.columns // 2]

    def others(self, value: Value) -> list[Value]:
        cell = self.position(value)
        near = [cell + 1, cell - 1, cell + self.columns, 0]
        return [list(self.value(at)) for at in near if 0 <= at < self.size and at != cell]

    def apart(self, value: Value, steps: int) -> tuple[Value, Value | None]:
        row, column = value
        if row + steps < self.rows:
            return value, [row + steps, column]
        return [0, column], [steps, column] if steps < self.rows else None

    def block(self, value: Value, widths: Sequence[int]) -> tuple[Value, Value | None, Value | None]:
        first = [part // width * width for part, width in zip(value, widths, strict=True)]
        ends = (self.rows - 1, self.columns - 1)
        last = [min(at + width - 1, end) for at, width, end in zip(first, widths, ends, strict=True)]
        after = [min(at + width, end) for at, width, end in zip(first, widths, ends, strict=True)]
        return first, last, after

    def moved_into(self, name: str, value: Value, parts: Mapping[Axis, Intervals]) -> Value:
        return [
            parts[axis].closest_to(place) if axis in parts else place
            for axis, place in zip(self.axes(name), value, strict=True)
        ]

    @classmethod
    def examples(cls) -> Iterator[Attribute]:
        yield cls(2, 3)


_MOST_ITEMS: Final = 100  # in one example
_MOST_BITS: Final = 100_000  # of the number of sets


@dataclass(frozen=True)
class Items(Attribute):
    """A set of items out of a list: what was bought, clicked or visited.

    `items` is their number (then they are called first, first + 1, ..), or their names. `at_most` bounds the number of
    items of one person; more are dropped before anything is counted. Unknown items are ignored.
    """

    items: int | tuple[Value, ...]
    first: int = 0
    at_most: int | None = None

    kind = "items"
    keys = Keys(
        Key("first", {**WHOLE, "default": 0}, "The number of the first item."),
        Key("at_most", POSITIVE, "The most items that one person may have."),
    )
    row = Row("`items: n` or `items: [..]`", "`first`, `at_most`", "sets of items")
    example = "{items: 1000}"
    measured = "sets"
    is_set = True
    watched = "cells"

    def __init__(self, items: int | Iterable[Value], *more: Value, first: int = 0, at_most: int | None = None) -> None:
        if more or isinstance(items, str) or not isinstance(items, int | Iterable):
            given = [items, *more] if more else items
            raise PolicyError("must be a number or a list", key="items", given=given, fix="Write 1000 or [a, b, ..].")
        listed, first, at_most = as_plain((items if isinstance(items, int) else tuple(items), first, at_most))
        for key, value in (("items", listed), ("first", first), ("at_most", at_most)):
            object.__setattr__(self, key, value)
        if isinstance(listed, bool) or (isinstance(listed, int) and listed < 1) or listed == ():
            raise PolicyError("must have at least one item", key="items", given=listed, fix="Count them.")
        for item in listed if isinstance(listed, tuple) else ():
            if isinstance(item, bool) or not isinstance(item, str | int):
                raise PolicyError("must be texts or whole numbers", key="items", given=item, fix="Quote it.")
        if isinstance(first, bool) or not isinstance(first, int):
            raise PolicyError("must be a whole number", key="items.first", given=first, fix="Leave it out for 0.")
        if isinstance(listed, tuple) and first != 0:
            fix = "Remove it."
            raise PolicyError("must not be given for items with names", key="items.first", given=first, fix=fix)
        if isinstance(listed, tuple) and len(set(listed)) != len(listed):
            raise PolicyError("must not repeat an item", key="items", given=listed, fix="Remove the second one.")
        counted = isinstance(at_most, int) and not isinstance(at_most, bool)
        if at_most is not None and not (counted and 1 <= at_most <= self.count):
            fix = "Leave it out for no bound."
            raise PolicyError(f"must be from 1 to {self.count}", key="items.at_most", given=at_most, fix=fix)

    @property
    def count(self) -> int:
        """Number of items."""
        return self.items if isinstance(self.items, int) else len(self.items)

    @property
    def most_items(self) -> int:
        return self.count if self.at_most is None else self.at_most

    @property
    def size(self) -> int:
        """Number of possible sets, but 2^100,000 at most."""
        if self.at_most is None:
            return 1 << min(self.count, _MOST_BITS)
        sets = subsets = 1
        for chosen in range(self.at_most):
            subsets = subsets * (self.count - chosen) // (chosen + 1)  # exact: these are binomial coefficients
            sets += subsets
            if sets.bit_length() > _MOST_BITS:
                return 1 << _MOST_BITS
        return sets

    def position(self, value: Value) -> int:
        """Refuse: each item has an axis with a position, but the set has none."""
        raise PolicyError("must be asked item by item", given=sorted(self.positions(value)), fix="Ask for one item.")

    def value(self, position: int) -> Value:
        """Refuse: each item has an axis with a position, but the set has none."""
        raise PolicyError("must be asked item by item", given=position, fix="Ask for one item.")

    def canonical(self, value: Value) -> Value:
        return frozenset(self.item(position) for position in self.positions(value))

    def every_value(self) -> list[Value]:
        names = [self.item(place) for place in range(self.count)]
        return [frozenset(chosen) for many in range(self.most_items + 1) for chosen in combinations(names, many)]

    @property
    def cells(self) -> int:
        return self.count

    def cell(self, position: int) -> Value:
        return self.item(position)

    def every_cell(self) -> Sequence[Value]:
        return range(self.first, self.first + self.items) if isinstance(self.items, int) else self.items

    @property
    def log10_size(self) -> float:
        if self.at_most is None:
            return self.count * math.log10(2)
        chosen = min(self.most_items, self.count / 2)
        subsets = math.lgamma(self.count + 1) - math.lgamma(chosen + 1) - math.lgamma(self.count - chosen + 1)
        return subsets / math.log(10)

    @property
    def item_attribute(self) -> Attribute:
        if isinstance(self.items, int):
            return Integers(self.first, self.first + self.items - 1)
        return Categories(self.items)

    @property
    def item_numbers(self) -> range | None:
        return range(self.first, self.first + self.items) if isinstance(self.items, int) else None

    def with_at_most(self, most: int) -> Attribute:
        return Items(self.items, first=self.first, at_most=most)

    def telling_sets(self, mentioned: Sequence[int]) -> Iterator[Value]:
        """Yield full sets, the empty set, and sets of one and two items."""
        most = min(self.most_items, self.count)
        yield frozenset(self.item(place) for place in range(most))
        yield frozenset()
        yield frozenset(self.item(place) for place in range(self.count - most, self.count))
        for place in [*mentioned[:4], 0, self.count - 1]:
            yield frozenset({self.item(place)})
        yield frozenset(self.item(place) for place in range(min(2, most)))

    def cell_position(self, item: Value) -> int:
        if isinstance(self.items, int):
            if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item - self.first < self.items:
                last = self.first + self.items - 1
                raise PolicyError(f"must be an item from {self.first} to {last}", given=item, fix="Change it.")
            return item - self.first
        try:
            return self.items.index(item)
        except ValueError:
            raise PolicyError("must be one of the items", given=item, fix=alike(item, self.items)) from None

    def item(self, position: int) -> Value:
        """Return the item at a position."""
        return self.first + position if isinstance(self.items, int) else self.items[position]

    def positions(self, value: Value) -> frozenset[int]:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise PolicyError("must be a set of items", given=value, fix="Write a list of items.")
        found = frozenset(self.cell_position(item) for item in value)
        if len(found) > self.most_items:
            raise PolicyError(f"must have at most {self.most_items} items", given=sorted(found), fix="Remove some.")
        return found

    def axes(self, name: str) -> tuple[Axis, ...]:
        """Return none: `item_axis` makes the axis of an item."""
        return ()

    def item_axis(self, name: str, position: int) -> Axis:
        """Return the yes/no axis of one item."""
        return Axis(name, 2, ordered=True, item=position)

    def places(self, name: str, value: Value) -> dict[str, int]:
        return {self.item_axis(name, place).name: 1 for place in self.positions(value)}

    def distances(self, a: Value, b: Value) -> list[Fraction]:
        return [Fraction(1)] * len(a ^ b)

    def atom(self, name: str, part: str, symbol: str, operand: Value) -> tuple[Axis, Intervals]:
        if symbol != "has":
            raise PolicyError("must ask for one item", fix=f"Write {name}.has(item).")
        return self.item_axis(name, self.cell_position(operand)), Intervals.points([1])

    @classmethod
    def read(cls, entry: YamlEntry, main: YamlEntry | None, places: dict[str, YamlEntry]) -> Attribute:
        assert main is not None  # noqa: S101 - there is no other way to write it
        named = main.is_list
        if named and "first" in places:
            raise places["first"].refuse("must not be given for items with names", fix="Remove it.")
        with main.blamed(places):
            items = [value.value() for value in main.listed()] if named else main.whole()
            return cls(items, **cls.keys.read(places))

    @classmethod
    def schemas(cls) -> list[dict[str, Any]]:
        number = {**POSITIVE, "description": "How many items there are."}
        names = {"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 1, "uniqueItems": True}
        return [
            cls.keys.schema("A set of numbered items.", first={cls.kind: number}),
            cls.keys.without("first").schema("A set of items with names.", first={cls.kind: names}),
        ]

    def document(self) -> Any:
        items = self.items if isinstance(self.items, int) else list(self.items)
        return {self.kind: items, **self.not_default()}

    def read_value(self, entry: YamlEntry) -> Value:
        return frozenset(item.value() for item in entry.listed())

    def read_from(self, name: str, item: str | None = None) -> tuple[str, ...]:
        return (name if item is None else item,)

    def as_cells(self, value: Value) -> tuple[Any, ...]:
        return (sorted(value, key=str),)

    @property
    def dropped(self) -> Literal["nothing"]:
        """None: unknown items are ignored."""
        return "nothing"

    def words(self, value: Value) -> str:
        shown = [str(item) for item in value[:5]]
        more = f", and {len(value) - 5} more" if len(value) > 5 else ""
        return "{" + ", ".join(shown) + more + "}"

    def notes(self, name: str) -> Iterator[str]:
        if self.at_most is not None:
            yield f"Of {name}, at most {self.at_most} items of a person are counted; more are left out."

    def usual(self) -> Value:
        return []

    def others(self, value: Value) -> list[Value]:
        few = [self.item(place) for place in range(min(self.count, 7))]
        return [items for items in ([few[-1]], []) if items != value]

    def apart(self, value: Value, steps: int) -> tuple[Value, Value | None]:
        if steps > min(self.most_items, _MOST_ITEMS):
            return value, None
        return [], [self.item(place) for place in range(steps)]

    def block(self, value: Value, widths: Sequence[int]) -> tuple[Value, Value | None, Value | None]:
        raise PolicyError("must not be a set of items", fix="Use within to protect some of the items.")

    def moved_into(self, name: str, value: Value, parts: Mapping[Axis, Intervals]) -> Value:
        chosen = set(self.positions(value))
        for axis, part in parts.items():
            if axis.attribute == name and axis.item is not None:
                (chosen.add if 1 in part else chosen.discard)(axis.item)
        return [self.item(place) for place in sorted(chosen)]

    @classmethod
    def examples(cls) -> Iterator[Attribute]:
        yield cls(3)
        yield cls(["gym", "cafe"], at_most=1)

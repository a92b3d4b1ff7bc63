"""A set of items out of a list."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, Final, Literal

from tacit.errors import PolicyError
from tacit.policy.attributes.attribute import Attribute, Axis, Value, alike
from tacit.policy.attributes.categories import Categories
from tacit.policy.attributes.numbers import Integers
from tacit.policy.edges.intervals import Intervals
from tacit.policy.genuine import as_plain
from tacit.policy.keys import POSITIVE, WHOLE, Key, Keys, Row
from tacit.policy.yaml_entries import YamlEntry

_MOST_ITEMS: Final = 100  # in one example
_MOST_BITS: Final = 100_000  # of the number of sets


@dataclass(frozen=True)
class Items(Attribute):
    """A set of items out of a list: what was bought, clicked or visited.

    `items` is how many there are (then they are called first, first + 1, ..), or their names. `at_most` bounds how
    many items one person may have; more are dropped before anything is counted. Unknown items are ignored.
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
                f"must be from 1 to {self.count}", key="items.at_most", given=at_most, fix="Leave it out for no bound."
            )

    @property
    def count(self) -> int:
        """Number of items."""
        return self.items if isinstance(self.items, int) else len(self.items)

    @property
    def most_items(self) -> int:
        """The largest number of items that one person may have."""
        return self.count if self.at_most is None else self.at_most

    @property
    def size(self) -> int:
        """Number of possible sets, but 2^100,000 at most."""
        if self.at_most is None:
            return 1 << min(self.count, _MOST_BITS)
        sets = ways = 1
        for chosen in range(self.at_most):
            ways = ways * (self.count - chosen) // (chosen + 1)  # exact: these are binomial coefficients
            sets += ways
            if sets.bit_length() > _MOST_BITS:
                return 1 << _MOST_BITS
        return sets

    def position(self, value: Value) -> int:
        """Refuse: a set has a position on the axis of each item, and none of its own."""
        raise PolicyError("must be asked item by item", given=sorted(self.positions(value)), fix="Ask for one item.")

    def value(self, position: int) -> Value:
        """Refuse: a set has a position on the axis of each item, and none of its own."""
        raise PolicyError("must be asked item by item", given=position, fix="Ask for one item.")

    def canonical(self, value: Value) -> Value:
        """Return a set of items."""
        return frozenset(self.item(position) for position in self.positions(value))

    def every_value(self) -> list[Value]:
        """Return every set, small ones first."""
        names = [self.item(place) for place in range(self.count)]
        return [frozenset(chosen) for many in range(self.most_items + 1) for chosen in combinations(names, many)]

    @property
    def cells(self) -> int:
        return self.count

    def cell(self, position: int) -> Value:
        """Return the item at a position."""
        return self.item(position)

    def every_cell(self) -> Sequence[Value]:
        return range(self.first, self.first + self.items) if isinstance(self.items, int) else self.items

    @property
    def log10_size(self) -> float:
        if self.at_most is None:
            return self.count * math.log10(2)
        chosen = min(self.most_items, self.count / 2)
        ways = math.lgamma(self.count + 1) - math.lgamma(chosen + 1) - math.lgamma(self.count - chosen + 1)
        return ways / math.log(10)

    @property
    def item_attribute(self) -> Attribute:
        if isinstance(self.items, int):
            return Integers(self.first, self.first + self.items - 1)
        return Categories(self.items)

    @property
    def item_numbers(self) -> range | None:
        """What the items are called where that is numbers in their order."""
        return range(self.first, self.first + self.items) if isinstance(self.items, int) else None

    def with_at_most(self, most: int) -> Attribute:
        return Items(self.items, first=self.first, at_most=most)

    def telling_sets(self, mentioned: Sequence[int]) -> Iterator[Value]:
        """Yield full sets, the empty one, and sets of one and two items."""
        most = min(self.most_items, self.count)
        yield frozenset(self.item(place) for place in range(most))
        yield frozenset()
        yield frozenset(self.item(place) for place in range(self.count - most, self.count))
        for place in [*mentioned[:4], 0, self.count - 1]:
            yield frozenset({self.item(place)})
        yield frozenset(self.item(place) for place in range(min(2, most)))

    def cell_position(self, item: Value) -> int:
        """Return the position of an item, or refuse."""
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
        """Return the positions of a set of items, or refuse."""
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise PolicyError("must be a set of items", given=value, fix="Write a list of items.")
        found = frozenset(self.cell_position(item) for item in value)
        if len(found) > self.most_items:
            raise PolicyError(f"must have at most {self.most_items} items", given=sorted(found), fix="Remove some.")
        return found

    def axes(self, name: str) -> tuple[Axis, ...]:
        """Return no axis: items get theirs one by one, by `item_axis`."""
        return ()

    def item_axis(self, name: str, position: int) -> Axis:
        """Return the yes/no axis of one item."""
        return Axis(name, 2, ordered=True, item=position)

    def places(self, name: str, value: Value) -> dict[str, int]:
        """Return 1 on the axis of each item that is in the set."""
        return {self.item_axis(name, place).name: 1 for place in self.positions(value)}

    def distances(self, a: Value, b: Value) -> list[Fraction]:
        """Return one for each item that only one of the two sets has."""
        return [Fraction(1)] * len(a ^ b)

    def atom(self, name: str, part: str, symbol: str, operand: Value) -> tuple[Axis, Intervals]:
        """Return what asks for one item."""
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
        said: dict[str, Any] = {self.kind: self.items if isinstance(self.items, int) else list(self.items)}
        if isinstance(self.items, int) and self.first != 0:
            said["first"] = self.first
        if self.at_most is not None:
            said["at_most"] = self.at_most
        return said

    def read_value(self, entry: YamlEntry) -> Value:
        """Read a set of items."""
        return frozenset(item.value() for item in entry.listed())

    def read_from(self, name: str, item: str | None = None) -> tuple[str, ...]:
        """Return the column of items."""
        return (name if item is None else item,)

    def as_cells(self, value: Value) -> tuple[Any, ...]:
        """Return the set as a list."""
        return (sorted(value, key=str),)

    @property
    def dropped(self) -> Literal["nothing"]:
        """Which rows are left out: none, unknown items are ignored."""
        return "nothing"

    def words(self, value: Value) -> str:
        shown = [str(item) for item in value[:5]]
        more = f", and {len(value) - 5} more" if len(value) > 5 else ""
        return "{" + ", ".join(shown) + more + "}"

    def notes(self, name: str) -> Iterator[str]:
        """Say how many items count."""
        if self.at_most is not None:
            yield f"Of {name}, at most {self.at_most} items of a person are counted; more are left out."

    def usual(self) -> Value:
        return []

    def others(self, value: Value) -> list[Value]:
        """Return a set of one item, and the empty set."""
        few = [self.item(place) for place in range(min(self.count, 7))]
        return [items for items in ([few[-1]], []) if items != value]

    def apart(self, value: Value, steps: int) -> tuple[Value, Value | None]:
        """Return the empty set, and a set of so many items."""
        if steps > min(self.most_items, _MOST_ITEMS):
            return value, None
        return [], [self.item(place) for place in range(steps)]

    def block(self, value: Value, widths: Sequence[int]) -> tuple[Value, Value | None, Value | None]:
        """Refuse: sets have no blocks."""
        raise PolicyError("must not be a set of items", fix="Use within to protect some of the items.")

    def moved_into(self, name: str, value: Value, parts: Mapping[Axis, Intervals]) -> Value:
        """Return the nearest set that has and lacks what these say."""
        chosen = set(self.positions(value))
        for axis, part in parts.items():
            if axis.attribute == name and axis.item is not None:
                (chosen.add if 1 in part else chosen.discard)(axis.item)
        return [self.item(place) for place in sorted(chosen)]

    @classmethod
    def examples(cls) -> Iterator[Attribute]:
        yield cls(3)
        yield cls(["gym", "cafe"], at_most=1)

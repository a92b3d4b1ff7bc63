"""The contract of every kind of attribute: one method for each behaviour, so that no other code tests for the class.

A kind is a frozen dataclass that implements `Attribute`, or `OrderedAttribute` if its values are on one axis (all but
grids and sets of items). What needs rows (how cells become positions) is registered in `rows/`, by kind.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal, TypeAlias

from tacit.drawing import Held
from tacit.errors import PolicyError, nearest
from tacit.policy.edges.intervals import Intervals
from tacit.policy.keys import Keys, Row
from tacit.policy.yaml_entries import YamlEntry, one_line

Value: TypeAlias = Any
CLIP: Final = "clip"
_MOST_TRIED: Final = 1000  # names that are compared with a misspelled one
_MOST_SHOWN: Final = 50


@dataclass(frozen=True)
class Axis:
    """One line of positions of an attribute: its only one, a `part` of it (`row`, `column`), or one `item` of a set.

    `ordered`: distances and cumulative counts have a meaning. `spacing` is the distance between neighbouring positions.
    """

    attribute: str
    size: int
    ordered: bool
    spacing: Fraction | int = 1
    part: str = ""
    item: int | None = None

    @property
    def name(self) -> str:
        """The name, unique in a domain: `age`, `place.row`, `clicked[7]`."""
        if self.item is not None:
            return f"{self.attribute}[{self.item}]"
        return f"{self.attribute}.{self.part}" if self.part else self.attribute


class Attribute(Held, ABC):
    """The values that one column may have."""

    kind: ClassVar[str]  # the word in a policy file
    keys: ClassVar[Keys]  # the other keys beside it
    nested: ClassVar[bool] = False  # whether the keys may also stand below the word
    row: ClassVar[Row]  # of the table in docs/files.md
    example: ClassVar[str]  # in a policy file
    other_words: ClassVar[tuple[str, ...]] = ()  # that people try first
    measured: ClassVar[Literal["names", "truth", "numbers", "times", "places", "sets"]]
    is_set: ClassVar[bool] = False  # many values at once, each with an axis of its own
    watched: ClassVar[Literal["cells", "itself", "never"]] = "never"  # what a monitor uses as places
    ordered: bool = False  # whether cumulative counts have a meaning
    distance_unit: str = ""  # the unit of distances, if it has a name: month
    at_most: int | None = None  # how many cells of a set one person may be in; None: no bound
    otherwise: Any = None  # what unexpected values count as (None: their rows are dropped)

    # ---- values and their positions ----

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of values."""

    @abstractmethod
    def position(self, value: Value) -> int:
        """Return the position of a value, or refuse."""

    @abstractmethod
    def value(self, position: int) -> Value:
        """Return the value at a position."""

    def canonical(self, value: Value) -> Value:
        """Return the canonical form of a value, or refuse."""
        return self.value(self.position(value))

    def every_value(self) -> list[Value]:
        """Return every value, in order."""
        return [self.value(place) for place in range(self.size)]

    @property
    def cells(self) -> int:
        """Number of cells of a histogram."""
        return self.size

    def cell(self, position: int) -> Value:
        """Return the value or item that a cell of a histogram counts."""
        return self.value(position)

    def every_cell(self) -> Sequence[Value]:
        """Return what each cell of a histogram counts, in order; there may be millions of them."""
        return [self.cell(place) for place in range(self.cells)]

    def positions(self, value: Value) -> frozenset[int]:
        """Return the cells of a histogram that count somebody with this value."""
        return frozenset({self.position(value)})

    @property
    def most_items(self) -> int:
        """How many cells one person may be in."""
        return 1

    @property
    def log10_size(self) -> float:
        """The logarithm of the number of values, which for a set of items may have thousands of digits."""
        return math.log10(self.size)

    def cell_position(self, value: Value) -> int:
        """Return the cell of a histogram that counts this value or item, or refuse."""
        return self.position(value)

    @property
    def item_attribute(self) -> Attribute:
        """The attribute whose values the cells count: for a set, that of a single item."""
        return self

    @property
    def item_numbers(self) -> range | None:
        """The numbers of the items of a set, in order; None if the items have names."""
        return None

    def with_at_most(self, most: int) -> Attribute:
        """Return the attribute with another bound on the number of cells of one person."""
        return self

    def telling_sets(self, mentioned: Sequence[int]) -> Iterator[Value]:
        """Yield sets for an audit to try, the most informative first; predicates mention these items."""
        return iter(())

    # ---- axes ----

    @abstractmethod
    def axes(self, name: str) -> tuple[Axis, ...]:
        """Return the axes of the attribute (none for a set of items, where each item has one)."""

    @abstractmethod
    def places(self, name: str, value: Value) -> dict[str, int]:
        """Return the position of a value on each axis, by the name of the axis; only of items in the set."""

    @abstractmethod
    def distances(self, a: Value, b: Value) -> list[Fraction]:
        """Return the distance between two values on each axis."""

    @abstractmethod
    def atom(self, name: str, part: str, symbol: str, operand: Value) -> tuple[Axis, Intervals]:
        """Return the positions on one axis for which a comparison with a constant is true."""

    def together(self, least: int) -> int:
        """Return how many neighbouring values, at least so many, are best drawn as one."""
        return least

    # ---- adding up ----

    @property
    def unit(self) -> Fraction | None:
        """The unit of sums; None if values cannot be added."""
        return None

    @property
    def spacing(self) -> int:
        """How many units lie between a position and the next."""
        return 1

    def number(self, position: int) -> int:
        """Return the value at a position in units, a whole number."""
        raise PolicyError("must be numbers", given=self.kind, fix="Count it instead.")

    @property
    def coordinates(self) -> tuple[tuple[float, float], ...]:
        """The number of the first position of each axis and the step to the next; empty if values are not numbers."""
        if self.unit is None:
            return ()
        return ((float(self.number(0) * self.unit), float(self.spacing * self.unit)),)

    # ---- policy files ----

    @classmethod
    @abstractmethod
    def read(cls, entry: YamlEntry, main: YamlEntry | None, places: dict[str, YamlEntry]) -> Attribute:
        """Read the attribute from the entry below its word (`main`) and those of its other keys (`places`)."""

    @classmethod
    @abstractmethod
    def schemas(cls) -> list[dict[str, Any]]:
        """Return the JSON schemas of all ways to write it."""

    @abstractmethod
    def document(self) -> Any:
        """Return its entry in a policy file."""

    def __str__(self) -> str:
        return one_line(self.document())

    def not_default(self) -> dict[str, Any]:
        """Return the values of the other keys that differ from their defaults, for the document."""
        defaults = {key.name: getattr(type(self), key.name, MISSING) for key in self.keys}
        given = {name: getattr(self, name) for name, usual in defaults.items() if usual is not MISSING}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in given.items()
            if value != defaults[name]
        }

    @abstractmethod
    def read_value(self, entry: YamlEntry) -> Value:
        """Read one value."""

    def read_end(self, text: str) -> Value:
        """Read one end of a range such as 0..17, or raise ValueError."""
        return int(text)

    def read_range(self, text: str) -> tuple[Value, Value]:
        """Read the two ends of a range such as 0..17, or refuse."""
        low, dots, high = text.partition("..")
        try:
            ends = self.read_end(low), self.read_end(high)
            if not dots or ends[0] > ends[1]:
                raise ValueError
        except ValueError:
            fix = "Change it."
            raise PolicyError("must be a list of values or a range like '0..17'", given=text, fix=fix) from None
        return ends

    def read_values(self, entry: YamlEntry) -> list[Value]:
        """Read one value, or all values of a range such as 0..17."""
        text = entry.node.value
        if isinstance(text, str) and ".." in text and not self._is_value(text):
            first, last = (self.position(end) for end in self.read_range(text))
            return [self.value(place) for place in range(first, last + 1)]
        return [self.canonical(self.read_value(entry))]

    def _is_value(self, text: str) -> bool:
        try:
            self.position(text)
        except PolicyError:
            return False
        return True

    def read_width(self, entry: YamlEntry) -> Fraction | int:
        """Read the width of a block."""
        return entry.whole()

    @classmethod
    @abstractmethod
    def examples(cls) -> Iterator[Attribute]:
        """Yield small ones, for audits and property tests."""

    # ---- rows ----

    def read_from(self, name: str, item: str | None = None) -> tuple[str, ...]:
        """Return the data columns that hold it; `item` is the column of items, if it has another name."""
        return (name,)

    def as_cells(self, value: Value) -> tuple[Any, ...]:
        """Return the cells that hold a value, one for each column."""
        return (value,)

    @property
    def clips(self) -> bool:
        """Whether values out of range count as the nearest end."""
        return is_clip(self.otherwise)

    @property
    def dropped(self) -> Literal["unexpected", "unreadable", "nothing"]:
        """The cells for which a row is left out."""
        return "unexpected" if self.otherwise is None else "unreadable" if self.clips else "nothing"

    # ---- words and examples, for `describe` ----

    def words(self, value: Value) -> str:
        """Return a value in words."""
        return str(value)

    def notes(self, name: str) -> Iterator[str]:
        """Yield notes for a reader of the policy."""
        return iter(())

    @abstractmethod
    def usual(self) -> Value:
        """Return an ordinary value, as JSON has it: not an end of a range."""

    @abstractmethod
    def others(self, value: Value) -> list[Value]:
        """Return a few other values, the simplest first."""

    @abstractmethod
    def apart(self, value: Value, steps: int) -> tuple[Value, Value | None]:
        """Return two values at this distance, starting at the given one if possible."""

    @abstractmethod
    def block(self, value: Value, widths: Sequence[int]) -> tuple[Value, Value | None, Value | None]:
        """Return the first and the last value of the block around a value, and one of the next block."""

    @abstractmethod
    def moved_into(self, name: str, value: Value, parts: Mapping[Axis, Intervals]) -> Value:
        """Return the nearest value to the given one in these sets of positions."""


class OrderedAttribute(Attribute):
    """A kind whose values are on one axis."""

    def axes(self, name: str) -> tuple[Axis, ...]:
        return (Axis(name, self.size, self.ordered, self.distance),)

    @property
    def distance(self) -> Fraction | int:
        """The distance between neighbouring values."""
        return 1

    def places(self, name: str, value: Value) -> dict[str, int]:
        return {name: self.position(value)}

    def distances(self, a: Value, b: Value) -> list[Fraction]:
        return [Fraction(abs(self.position(a) - self.position(b)) * self.distance)]

    @abstractmethod
    def rank(self, operand: Value) -> Fraction | float:
        """Return the place of a constant among the positions: maybe between two of them, or beyond all of them."""

    def atom(self, name: str, part: str, symbol: str, operand: Value) -> tuple[Axis, Intervals]:
        if symbol == "has":
            raise PolicyError("must be asked of a set of items", fix="Use == or in.")
        if part:
            raise PolicyError(
                "must not have a part",
                given=part,
                fix="Grids have row and column; dates and times have year, month and others.",
            )
        (axis,) = self.axes(name)
        return axis, self.picked(symbol, operand)

    def picked(self, symbol: str, operand: Value) -> Intervals:
        """Return the positions for which a comparison is true."""
        everything = Intervals.full(self.size)
        match symbol:
            case "in":
                if isinstance(operand, str) or not hasattr(operand, "__iter__"):
                    raise PolicyError("must be followed by a list", given=operand, fix="Write in [a, b].")
                return Intervals.points(self.position(value) for value in operand)
            case "==":
                return Intervals.points([self.position(operand)])
            case "!=":
                return everything.without(Intervals.points([self.position(operand)]))
        rank = self.rank(operand)
        if isinstance(rank, float):
            below = self.size if rank > 0 else -1  # infinite
        else:
            below = math.ceil(rank) - 1 if symbol in ("<", ">=") else math.floor(rank)
        lower = Intervals.of([(0, max(-1, min(below, self.size - 1)))])
        return lower if symbol in ("<", "<=") else everything.without(lower)

    def settle_otherwise(self, *, has_right_type: bool = True) -> None:
        """Refuse an `otherwise` that is neither clip nor a value; write a value in its canonical way."""
        given = self.otherwise
        if given is None or is_clip(given):
            return
        if not has_right_type:
            fix = "Did you mean 'clip'?" if isinstance(given, str) else "Use 'clip'."
            raise PolicyError("must be a value of the range or 'clip'", key="otherwise", given=given, fix=fix)
        try:
            object.__setattr__(self, "otherwise", self.canonical(given))
        except PolicyError as refusal:
            raise refusal.located(key="otherwise") from None

    def usual(self) -> Value:
        return self.value(self.size // 3)

    def others(self, value: Value) -> list[Value]:
        """Return the neighbours of a value and the ends."""
        place = self.position(value)
        near = dict.fromkeys([place + 1, place - 1, self.size - 1, 0])
        return [self.value(at) for at in near if 0 <= at < self.size and at != place]

    def apart(self, value: Value, steps: int) -> tuple[Value, Value | None]:
        place = self.position(value)
        if place + steps >= self.size:
            place = 0
        return self.value(place), self.value(place + steps) if place + steps < self.size else None

    def block(self, value: Value, widths: Sequence[int]) -> tuple[Value, Value | None, Value | None]:
        first = self.position(value) // widths[0] * widths[0]
        last, after = (at if at < self.size else None for at in (first + widths[0] - 1, first + widths[0]))
        return (
            self.value(first),
            None if last is None else self.value(last),
            None if after is None else self.value(after),
        )

    def moved_into(self, name: str, value: Value, parts: Mapping[Axis, Intervals]) -> Value:
        place = self.position(value)
        found = next((part for axis, part in parts.items() if axis.attribute == name), None)
        return self.value(place if found is None else found.closest_to(place))


def rank_of_number(operand: Value) -> Fraction | float:
    """Return the exact number for a comparison; infinite ones unchanged."""
    if isinstance(operand, int) and not isinstance(operand, bool):
        return Fraction(operand)  # of any size: a float has at most 309 digits
    if not isinstance(operand, float) or math.isnan(operand):
        raise PolicyError("must compare with a number", given=operand, fix="Remove the quotes.")
    return operand if math.isinf(operand) else Fraction(float.__repr__(operand))


def alike(name: Value, known: Sequence[Value]) -> str:
    """Return a hint at the known name that differs only in case, spaces or quotes, or at the nearest one."""

    def bare(value: Value) -> str:
        return " ".join(str(value).casefold().split())

    for one in known:
        if bare(one) == bare(name):
            return f"Did you mean {one!r}?"
    return nearest(str(name), [str(one) for one in known[:_MOST_TRIED]], most=_MOST_SHOWN)


def is_clip(given: Any) -> bool:
    """Say whether this is the word `clip`; it may be an array, so `==` alone would not do."""
    return isinstance(given, str) and given == CLIP

"""A cell of a map."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from tacit.errors import PolicyError
from tacit.policy.attributes.attribute import CLIP, Attribute, Axis, Value
from tacit.policy.attributes.numbers import Integers
from tacit.policy.edges.intervals import Intervals
from tacit.policy.genuine import settle
from tacit.policy.keys import POSITIVE, Key, Keys, Row, clip_or, clip_or_schema, read_two, two
from tacit.policy.yaml_entries import YamlEntry

_PARTS = ("row", "column")


def _is_finite(number: Value) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)


def _two_texts(entry: YamlEntry) -> tuple[str, ...]:
    return tuple(part.text() for part in read_two(entry))


def _two_numbers(entry: YamlEntry) -> tuple[float, ...]:
    return tuple(part.real() for part in read_two(entry))


def _cell(entry: YamlEntry) -> tuple[int, ...]:
    return tuple(part.whole() for part in read_two(entry))


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
            "of", two({"type": "string"}), "The two data columns, for instance [latitude, longitude].", read=_two_texts
        ),
        Key(
            "low",
            two({"type": "number"}),
            "Where cell [0, 0] starts.",
            "the columns hold cell numbers",
            read=_two_numbers,
        ),
        Key("high", two({"type": "number"}), "Where the last cell ends.", read=_two_numbers),
        Key(
            "otherwise",
            clip_or_schema(two({"type": "integer", "minimum": 0})),
            "The cell of places off the map: clip, or [row, column].",
            "the row is dropped",
            read=clip_or(_cell),
        ),
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
            raise PolicyError(
                "must be a cell or 'clip'", key="otherwise", given=self.otherwise, fix="Did you mean 'clip'?"
            )
        if self.otherwise is not None and not isinstance(self.otherwise, str):
            self.position(self.otherwise)

    @property
    def size(self) -> int:
        return self.rows * self.columns

    def position(self, value: Value) -> int:
        fits = isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(part, int) for part in value)
        if not fits or not (0 <= value[0] < self.rows and 0 <= value[1] < self.columns):
            raise PolicyError(
                f"must be a cell [row, column] below [{self.rows}, {self.columns}]", given=value, fix="Change it."
            )
        return int(value[0]) * self.columns + int(value[1])

    def value(self, position: int) -> tuple[int, int]:
        """Return the cell with this number."""
        return divmod(position, self.columns)

    def every_cell(self) -> Sequence[tuple[int, int]]:
        """Return all cells, row by row."""
        return list(product(range(self.rows), range(self.columns)))

    def axes(self, name: str) -> tuple[Axis, ...]:
        sizes = (self.rows, self.columns)
        return tuple(Axis(name, size, ordered=True, part=part) for size, part in zip(sizes, _PARTS, strict=True))

    def places(self, name: str, value: Value) -> dict[str, int]:
        return {axis.name: place for axis, place in zip(self.axes(name), value, strict=True)}

    def distances(self, a: Value, b: Value) -> list[Fraction]:
        """Return how far two cells are apart in rows and in columns."""
        return [Fraction(abs(x - y)) for x, y in zip(a, b, strict=True)]

    def atom(self, name: str, part: str, symbol: str, operand: Value) -> tuple[Axis, Intervals]:
        """Return the rows or columns that a comparison picks."""
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
                raise entry.refuse(
                    f"must have the key {name}", given=sorted(places), fix=f"Add `{name}: ..` to the grid."
                )
        return cls(**cls.keys.read(places))

    @classmethod
    def schemas(cls) -> list[dict[str, Any]]:
        *inside, otherwise = cls.keys
        return [
            Keys().schema("A cell of a map.", first={cls.kind: cls.keys.schema()}),
            Keys(otherwise).schema("A cell of a map.", first={cls.kind: Keys(*inside).schema()}),
        ]

    def document(self) -> Any:
        said: dict[str, Any] = {"rows": self.rows, "columns": self.columns, "of": list(self.of)}
        if self.low is not None and self.high is not None:
            said |= {"low": list(self.low), "high": list(self.high)}
        if self.otherwise is not None:
            said["otherwise"] = CLIP if self.otherwise == CLIP else list(self.otherwise)
        return {self.kind: said}

    def read_value(self, entry: YamlEntry) -> Value:
        return tuple(part.whole() for part in entry.listed())

    def read_from(self, name: str, item: str | None = None) -> tuple[str, ...]:
        return self.of

    def as_cells(self, value: Value) -> tuple[Any, ...]:
        """Return the cell numbers, or the coordinates of the middle of the cell."""
        if self.low is None or self.high is None:
            return tuple(value)
        return tuple(
            low + (high - low) * (2 * at + 1) / (2 * many)
            for low, high, at, many in zip(self.low, self.high, value, (self.rows, self.columns), strict=True)
        )

    def words(self, value: Value) -> str:
        return f"cell ({value[0]}, {value[1]})"

    def usual(self) -> Value:
        """Return the cell in the middle."""
        return [self.rows // 2, self.columns // 2]

    def others(self, value: Value) -> list[Value]:
        """Return cells beside one, and the first."""
        cell = self.position(value)
        near = [cell + 1, cell - 1, cell + self.columns, 0]
        return [list(self.value(at)) for at in near if 0 <= at < self.size and at != cell]

    def apart(self, value: Value, steps: int) -> tuple[Value, Value | None]:
        """Return two cells so many rows apart."""
        row, column = value
        if row + steps < self.rows:
            return value, [row + steps, column]
        return [0, column], [steps, column] if steps < self.rows else None

    def block(self, value: Value, widths: Sequence[int]) -> tuple[Value, Value | None, Value | None]:
        """Return the corners of a block, and of the next one, or the end of the map."""
        first = [part // width * width for part, width in zip(value, widths, strict=True)]
        ends = (self.rows - 1, self.columns - 1)
        last = [min(at + width - 1, end) for at, width, end in zip(first, widths, ends, strict=True)]
        after = [min(at + width, end) for at, width, end in zip(first, widths, ends, strict=True)]
        return first, last, after

    def moved_into(self, name: str, value: Value, parts: Mapping[Axis, Intervals]) -> Value:
        """Return the nearest cell in these rows and columns."""
        return [
            parts[axis].closest_to(place) if axis in parts else place
            for axis, place in zip(self.axes(name), value, strict=True)
        ]

    @classmethod
    def examples(cls) -> Iterator[Attribute]:
        yield cls(2, 3)

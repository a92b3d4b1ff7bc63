"""Whole numbers of a range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any, Final

from tacit.errors import PolicyError
from tacit.policy.attributes.attribute import Attribute, OrderedAttribute, Value, is_clip, rank_of_number
from tacit.policy.files.spec import POSITIVE, WHOLE, Key, Keys, Row, clip_or, clip_or_schema, two
from tacit.policy.files.yaml_entries import YAML_TAG, YamlEntry
from tacit.policy.genuine import settle

_NOT_WHOLE: Final = "Round it, or declare decimals:"


def _whole(entry: YamlEntry) -> int:
    """Read a whole number; there is another kind for fractions."""
    if entry.node.tag == f"{YAML_TAG}float" and not float(entry.real()).is_integer():
        fix = f"{_NOT_WHOLE} {{decimals: [0, 1], step: 0.1}}."
        raise entry.refuse("must be a whole number", given=entry.plain(), fix=fix)
    return entry.whole()


@dataclass(frozen=True)
class Integers(OrderedAttribute):
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

    kind = "integers"
    keys = Keys(
        Key("low", WHOLE, read=_whole, required=True),
        Key("high", WHOLE, read=_whole, required=True),
        Key("step", {**POSITIVE, "default": 1}, read=_whole),
        Key(
            "otherwise",
            clip_or_schema(WHOLE),
            "What unexpected values count as: clip, or a value of the range.",
            "the row is dropped",
            read=clip_or(_whole),
        ),
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
            raise PolicyError(
                "must not be above high", key="integers.low", given=(self.low, self.high), fix="Swap the two."
            )
        if max(abs(self.low), abs(self.high)) > 2**62:
            raise PolicyError(
                "must fit into 62 bits", key="integers", given=(self.low, self.high), fix="Use a smaller range."
            )
        if (self.high - self.low) % self.step:
            raise PolicyError(
                "must be a whole number of steps above low",
                key="integers.high",
                given=self.high,
                fix=f"Use {self.high - (self.high - self.low) % self.step}.",
            )
        if self.otherwise is not None and not is_clip(self.otherwise):
            if isinstance(self.otherwise, bool) or not isinstance(self.otherwise, int):
                raise PolicyError(
                    "must be a value of the range or 'clip'",
                    key="otherwise",
                    given=self.otherwise,
                    fix="Did you mean 'clip'?" if isinstance(self.otherwise, str) else "Use 'clip'.",
                )
            try:
                self.position(self.otherwise)
            except PolicyError as refusal:
                raise refusal.located(key="otherwise") from None

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
            raise PolicyError(
                f"must be a whole number from {self.low} to {self.high}{steps}", given=value, fix="Change it."
            )
        return (int(value) - self.low) // self.step

    def value(self, position: int) -> int:
        return self.low + position * self.step

    def every_cell(self) -> Sequence[int]:
        """Return all values, none of which is made before it is asked for."""
        return range(self.low, self.low + self.size * self.step, self.step)

    def rank(self, operand: Value) -> Fraction | float:
        number = rank_of_number(operand)
        return number if isinstance(number, float) else (number - self.low) / self.step

    @property
    def unit(self) -> Fraction:
        """What numbers are counted in."""
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
                raise entry.refuse(
                    f"must have the key {name}", given=sorted(places), fix="Write {integers: [low, high]}."
                )
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
        step = {"step": self.step} if self.step != 1 else {}
        otherwise = {} if self.otherwise is None else {"otherwise": self.otherwise}
        return {self.kind: [self.low, self.high], **step, **otherwise}

    def read_value(self, entry: YamlEntry) -> Value:
        return entry.whole()

    def usual(self) -> Value:
        """Return a round number that is not an end."""
        value = self.value(self.size // 3)
        rounded = value - value % 10
        fits = self.size > 20 and rounded >= self.low and (rounded - self.low) % self.step == 0
        return rounded if fits else value

    def others(self, value: Value) -> list[Value]:
        """Return the neighbours of a value and the ends."""
        return self.near(value)

    @classmethod
    def examples(cls) -> Iterator[Attribute]:
        yield cls(0, 5)
        yield cls(10, 30, 5)

"""Numbers on a lattice: tenths, quarters, hundredths.

A decimal value is low + position x step, a decimal number with at most 15 digits. Such a number and the 64-bit float
next to it stand for each other, so values are given as floats and compared as the decimals that they print as.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

from tacit.errors import PolicyError
from tacit.policy.attributes.attribute import Attribute, OrderedAttribute, Value, rank_of_number
from tacit.policy.genuine import as_plain
from tacit.policy.keys import Key, Keys, Row, otherwise_key, read_two, two
from tacit.policy.yaml_entries import YamlEntry

_MOST_DIGITS: Final = 15  # of a decimal number that a 64-bit float stands for
_NUMBER: Final[dict[str, Any]] = {"type": "number"}


@dataclass(frozen=True)
class Decimals(OrderedAttribute):
    """A decimal number from `low` to `high`, both included, in steps of `step`. Write numbers, or texts such as "0.1".

    `otherwise` says what unexpected values count as, as for integers: a value of the range for all of them; `"clip"`:
    numbers out of range count as the nearest end, numbers between two steps as the next lower step; None: row dropped.

    >>> Decimals(35, 42, step=0.1).position(36.6)
    16
    >>> Decimals(35, 42, step=0.1).value(16)
    36.6
    """

    low: Decimal
    high: Decimal
    step: Decimal
    otherwise: float | str | None = None

    kind = "decimals"
    keys = Keys(
        Key("step", {"type": "number", "exclusiveMinimum": 0}, required=True),
        otherwise_key(_NUMBER, YamlEntry.real),
    )
    row = Row(
        "`decimals: [low, high]`",
        "`step` (must be given), `otherwise`: a value or `clip`",
        "decimal numbers, both ends included, at most 15 digits",
    )
    example = "{decimals: [0, 1], step: 0.1}"
    other_words = ("float", "floats", "real", "reals", "number", "numbers", "decimal", "fraction", "fractions")
    measured = "numbers"
    ordered = True

    def __init__(self, low: Any, high: Any, step: Any, otherwise: Any = None) -> None:
        low, high, step, otherwise = as_plain((low, high, step, otherwise))
        for key, given in (("low", low), ("high", high), ("step", step)):
            object.__setattr__(self, key, _decimal(given, f"decimals.{key}"))
        object.__setattr__(self, "otherwise", otherwise)
        if self.step <= 0:
            raise PolicyError("must be positive", key="decimals.step", given=step, fix="For instance 0.1.")
        if self.low > self.high:
            raise PolicyError("must not be above high", key="decimals.low", given=(low, high), fix="Swap the two.")
        if max(abs(self.low), abs(self.high), self.step) * self.scale > 10**_MOST_DIGITS:
            rule = f"must have at most {_MOST_DIGITS} digits, those after the point of the step included"
            raise PolicyError(rule, key="decimals", given=[low, high], fix="Use a smaller range or a larger step.")
        rest = (self.high - self.low) % self.step
        if rest:
            fix = f"Use {self.high - rest}."
            raise PolicyError("must be a whole number of steps above low", key="decimals.high", given=high, fix=fix)
        self.settle_otherwise(has_right_type=not isinstance(otherwise, str))

    @cached_property
    def scale(self) -> int:
        """The power of ten that makes whole numbers of all values."""
        digits = max(-int(number.as_tuple().exponent) for number in (self.low, self.step))
        return int(10 ** max(0, digits))

    @cached_property
    def scaled(self) -> tuple[int, int, int]:
        """Low, high and step, times the scale."""
        low, high, step = (int(number * self.scale) for number in (self.low, self.high, self.step))
        return low, high, step

    @property
    def size(self) -> int:
        low, high, step = self.scaled
        return (high - low) // step + 1

    @property
    def distance(self) -> Fraction:
        return Fraction(self.step)

    def position(self, value: Value) -> int:
        place = None if isinstance(value, str) else _rank(value, self)
        if place is None or place.denominator != 1 or not 0 <= place < self.size:
            rule = f"must be a number from {self.low} to {self.high} in steps of {self.step}"
            raise PolicyError(rule, given=value, fix="Change it.")
        return int(place)

    def value(self, position: int) -> float:
        low, _, step = self.scaled
        return (low + position * step) / self.scale  # of two whole numbers, so it is the nearest float

    def every_cell(self) -> Sequence[float]:
        low, high, step = self.scaled
        return [number / self.scale for number in range(low, high + 1, step)]

    def rank(self, operand: Value) -> Fraction | float:
        number = rank_of_number(operand)
        return number if isinstance(number, float) else (number - Fraction(self.low)) / Fraction(self.step)

    @property
    def unit(self) -> Fraction:
        """The unit of values: the step, or a part of it if low is not a multiple of the step."""
        low, _, step = self.scaled
        return Fraction(math.gcd(low, step), self.scale)

    @property
    def spacing(self) -> int:
        low, _, step = self.scaled
        return step // math.gcd(low, step)

    def number(self, position: int) -> int:
        low, _, step = self.scaled
        return (low + position * step) // math.gcd(low, step)

    @classmethod
    def read(cls, entry: YamlEntry, main: YamlEntry | None, places: dict[str, YamlEntry]) -> Attribute:
        if main is None or not main.is_list or "step" not in places:
            given = entry.plain() if main is None else main.plain()
            fix = "For instance {decimals: [0, 1], step: 0.1}."
            raise entry.refuse("must be [low, high], with a step", given=given, fix=fix)
        low, high = read_two(main)
        with main.blamed({"low": low, "high": high, **places}):
            return cls(low.real(), high.real(), **cls.keys.read(places))

    @classmethod
    def schemas(cls) -> list[dict[str, Any]]:
        ends = two(_NUMBER, "[low, high], both included.")
        return [cls.keys.schema("Decimal numbers.", first={cls.kind: ends})]

    def document(self) -> Any:
        low, high, step = (_plain(number) for number in (self.low, self.high, self.step))
        return {self.kind: [low, high], "step": step, **self.not_default()}

    def read_value(self, entry: YamlEntry) -> Value:
        return entry.real()

    def read_end(self, text: str) -> Value:
        return Fraction(text.strip())

    def read_width(self, entry: YamlEntry) -> Fraction | int:
        return Fraction(entry.node.value) if entry.tag == "float" else entry.whole()

    def words(self, value: Value) -> str:
        return format(Decimal(repr(float(value))), f".{len(str(self.scale)) - 1}f")

    @classmethod
    def examples(cls) -> Iterator[Attribute]:
        yield cls(0, Decimal("0.4"), Decimal("0.1"))
        yield cls(Decimal("-0.25"), Decimal("1.25"), Decimal("0.5"))


def _decimal(given: Any, key: str) -> Decimal:
    try:
        if isinstance(given, bool) or not isinstance(given, int | float | str | Decimal):
            raise ValueError
        number = Decimal(float.__repr__(given) if isinstance(given, float) else given)
        if not number.is_finite() or abs(number.adjusted()) > 2 * _MOST_DIGITS:
            raise ValueError
    except (ValueError, ArithmeticError):
        raise PolicyError("must be a decimal number", key=key, given=given, fix="For instance 0.1.") from None
    return number.normalize() + 0


def _rank(value: Value, attribute: Decimals) -> Fraction | None:
    """Return the position of a number, maybe between two positions, or None if it is not a finite number."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = Decimal(float.__repr__(value))
    if isinstance(value, bool) or not isinstance(value, int | Decimal | Fraction):
        return None
    if isinstance(value, Decimal) and not value.is_finite():
        return None
    return (Fraction(value) - Fraction(attribute.low)) / Fraction(attribute.step)


def _plain(number: Decimal) -> int | float:
    return int(number) if number == int(number) else float(number)

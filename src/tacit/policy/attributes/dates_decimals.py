"""Dates by day, week, month, quarter or year, and numbers on a lattice: tenths, quarters, hundredths.

Dates are texts: 2024-03-01, 2024-W10, 2024-03, 2024-Q1, 2024. Weeks are those of ISO 8601: they start on Monday, and
the first one of a year is the one with its first Thursday.

A decimal value is low + position x step, a decimal number with at most 15 digits. Such a number and the 64-bit float
next to it stand for each other, so values are given as floats and compared as the decimals that they print as.
"""

from __future__ import annotations

import calendar
import datetime
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

from tacit.errors import PolicyError, nearest
from tacit.policy.attributes.attribute import Attribute, OrderedAttribute, Value, rank_of_number
from tacit.policy.genuine import as_plain
from tacit.policy.keys import Key, Keys, Row, otherwise_key, read_two, two
from tacit.policy.yaml_entries import YamlEntry

PERIODS: Final = ("day", "week", "month", "quarter", "year")
_EXAMPLES: Final = dict(zip(PERIODS, ("2024-03-01", "2024-W10", "2024-03", "2024-Q1", "2024"), strict=True))
_DAY: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_FORMS: Final = {
    "day": _DAY,
    "week": re.compile(r"([0-9]{4})-W([0-9]{2})"),
    "month": re.compile(r"([0-9]{4})-([0-9]{2})"),
    "quarter": re.compile(r"([0-9]{4})-Q([1-4])"),
    "year": re.compile(r"([0-9]{4})"),
}
_TEXT: Final[dict[str, Any]] = {"type": ["string", "integer"]}


def _read_date(entry: YamlEntry) -> str:
    """Return the text of a date, quoted or not, whatever type YAML gives it."""
    if entry.is_list or entry.is_mapping or entry.is_empty:
        raise entry.refuse("must be a date", given=entry.plain(), fix="For instance 2024-03-01.")
    return str(entry.node.value)


@dataclass(frozen=True)
class Dates(OrderedAttribute):
    """A date from `start` to `end`, both included, `by` day, week, month, quarter or year.

    The ends are texts or `datetime.date`s; a day stands for the period that it lies in. `otherwise` is a value of the
    range for all unexpected cells, `"clip"` (dates out of range count as the nearest end; rows without a date are
    dropped), or None (row dropped).

    >>> Dates("2024-01-01", "2024-12-31", by="month").value(2)
    '2024-03'
    """

    start: str
    end: str
    by: str = "day"
    otherwise: str | None = None

    kind = "dates"
    keys = Keys(
        Key("by", {"enum": list(PERIODS), "default": "day"}, "What days are gathered into.", read=YamlEntry.text),
        otherwise_key(_TEXT, _read_date),
    )
    row = Row(
        "`dates: [from, to]`",
        "`by`: `day`, `week`, `month`, `quarter` or `year`; `otherwise`: a value or `clip`",
        "`2024-03-01`, `2024-W10`, `2024-03`, `2024-Q1`, `2024`, both ends included",
    )
    example = "{dates: [2024-01-01, 2024-12-31]}"
    other_words = ("date", "datetime", "datetimes", "time", "times", "timestamp", "timestamps")
    measured = "times"
    ordered = True

    def __init__(self, start: Any, end: Any, by: str = "day", otherwise: Any = None) -> None:
        start, end, by, otherwise = as_plain((start, end, by, otherwise))
        if not isinstance(by, str) or by not in PERIODS:
            fix = nearest(by, PERIODS) if isinstance(by, str) else "Say by='month'."
            raise PolicyError("must be day, week, month, quarter or year", key="dates.by", given=by, fix=fix)
        object.__setattr__(self, "by", by)
        ticks = []
        for key, given in (("start", start), ("end", end)):
            found = _tick(given, by, days=True)
            if found is None:
                raise PolicyError(
                    f"must be a date such as 2024-03-01, or a {by} such as {_EXAMPLES[by]}"
                    if by != "day"
                    else "must be a date such as 2024-03-01",
                    key=f"dates.{key}",
                    given=str(given),
                    fix=_no_such(given, by, days=True) or _other_period(given, by),
                )
            ticks.append(found)
            object.__setattr__(self, key, _label(found, by))
        if ticks[0] > ticks[1]:
            raise PolicyError("must not end before it starts", key="dates", given=[start, end], fix="Swap the two.")
        object.__setattr__(self, "otherwise", otherwise)
        self.settle_otherwise()

    @cached_property
    def ticks(self) -> tuple[int, int]:
        """The numbers of the first and the last period, counted from the year 1."""
        first, last = (_tick(text, self.by) for text in (self.start, self.end))
        assert first is not None  # noqa: S101 - they were read when this was made
        assert last is not None  # noqa: S101 - the same
        return first, last

    @property
    def size(self) -> int:
        first, last = self.ticks
        return last - first + 1

    def position(self, value: Value) -> int:
        tick, (first, last) = _tick(value, self.by), self.ticks
        if tick is None or not first <= tick <= last:
            rule = f"must be a {self.by} from {self.start} to {self.end}"
            fix = "Change it." if tick is not None else _no_such(value, self.by) or self._like("Write it like")
            raise PolicyError(rule, given=str(value) if isinstance(value, datetime.date) else value, fix=fix)
        return tick - first

    def value(self, position: int) -> str:
        return _label(self.ticks[0] + position, self.by)

    def rank(self, operand: Value) -> Fraction:
        tick = _tick(operand, self.by)
        if tick is None:
            fix = _no_such(operand, self.by) or self._like("In quotes, for instance")
            raise PolicyError(f"must compare with a {self.by}", given=operand, fix=fix)
        return Fraction(tick - self.ticks[0])

    def _like(self, start: str) -> str:
        return f"{start} {_EXAMPLES[self.by]!r}."

    @property
    def distance_unit(self) -> str:  # type: ignore[override]
        """What distances are counted in."""
        return self.by

    @classmethod
    def read(cls, entry: YamlEntry, main: YamlEntry | None, places: dict[str, YamlEntry]) -> Attribute:
        assert main is not None  # noqa: S101 - there is no other way to write it
        if not main.is_list:
            raise main.refuse("must be [from, to]", given=main.plain(), fix="For instance [2024-01-01, 2024-12-31].")
        start, end = read_two(main)
        with main.blamed({"start": start, "end": end, **places}):
            return cls(_read_date(start), _read_date(end), **cls.keys.read(places))

    @classmethod
    def schemas(cls) -> list[dict[str, Any]]:
        ends = two(_TEXT, "[from, to], both included: dates, or periods as `by` says.")
        return [cls.keys.schema("Dates.", first={cls.kind: ends})]

    def document(self) -> Any:
        return {self.kind: [self.start, self.end], **self.not_default()}

    def read_value(self, entry: YamlEntry) -> Value:
        return _read_date(entry)

    def read_end(self, text: str) -> Value:
        if _tick(text.strip(), self.by) is None:
            raise ValueError
        return text.strip()

    def read_width(self, entry: YamlEntry) -> int:
        """Read the width of a block: a number of days, weeks, and so on."""
        if entry.tag == "int":
            return entry.whole()
        half = self.size // 2
        fix = f"Write the number alone, for instance {7 if self.by == 'day' else 2}."
        if half:
            ends = self.start, self.value(half - 1), self.value(half), self.end
            fix += " Blocks of different lengths, such as months, are listed: blocks: [{}..{}, {}..{}].".format(*ends)
        raise entry.refuse(f"must be a number of {self.by}s", given=entry.plain(), fix=fix)

    @classmethod
    def examples(cls) -> Iterator[Attribute]:
        yield cls("2024-02-28", "2024-03-02")
        yield cls("2023-11", "2024-02", by="month")


def _other_period(given: Any, by: str) -> str:
    """Return what to write instead of the end of a range of days, which may be one of longer periods."""
    meant = next((other for other in PERIODS if by == "day" and _tick(given, other) is not None), "")
    return "Write year, month and day" + (f", or say `by: {meant}`." if meant else ".")


def tick_of(day: datetime.date, by: str) -> int:
    """Return the number of the period that a day lies in; the year 1 has the lowest ones."""
    if by in ("day", "week"):
        return day.toordinal() if by == "day" else (day.toordinal() - 1) // 7
    many = {"month": 12, "quarter": 4, "year": 1}[by]  # of a year
    return day.year * many + (day.month - 1) * many // 12


def _tick(value: Value, by: str, *, days: bool = False) -> int | None:
    """Return the number of a period, given as a text or by one of its days (a text of a day only with `days`)."""
    if isinstance(value, datetime.date):
        return tick_of(value, by)
    if isinstance(value, int) and not isinstance(value, bool) and by == "year":
        value = f"{value:04}"
    if not isinstance(value, str):
        return None
    form = _FORMS[by].fullmatch(value) or (_DAY.fullmatch(value) if days else None)
    if form is None:
        return None
    parts = [int(part) for part in form.groups()]
    try:
        if len(parts) == 3:
            return tick_of(datetime.date(*parts), by)
        if by == "week":
            return tick_of(datetime.date.fromisocalendar(parts[0], parts[1], 1), by)
        month = parts[1] if len(parts) > 1 else 1
        return tick_of(datetime.date(parts[0], 3 * month if by == "quarter" else month, 1), by)
    except ValueError:
        return None  # no such day


def _no_such(value: Value, by: str, *, days: bool = False) -> str:
    """Return the sentence about a date in the right form that does not exist, or the empty text."""
    if not isinstance(value, str):
        return ""
    if days and by != "day" and _DAY.fullmatch(value):
        by = "day"
    form = _FORMS[by].fullmatch(value)
    if form is None or _tick(value, by) is not None:
        return ""
    year, part = int(form[1]), int(form.groups()[1:2][0]) if by in ("day", "week", "month") else 0
    many = ""
    if by == "week" and year and part:
        many = f": {form[1]} has {datetime.date(year, 12, 28).isocalendar().week}"
    elif by == "day" and year and 1 <= part <= 12 and int(form[3]):
        many = f": {form[1]}-{form[2]} has {calendar.monthrange(year, part)[1]}"
    return f"There is no such {by}{many}."


def _label(tick: int, by: str) -> str:
    match by:
        case "day":
            return datetime.date.fromordinal(tick).isoformat()
        case "week":
            year, week, _ = datetime.date.fromordinal(7 * tick + 1).isocalendar()
            return f"{year:04}-W{week:02}"
        case "month":
            return f"{tick // 12:04}-{tick % 12 + 1:02}"
        case "quarter":
            return f"{tick // 4:04}-Q{tick % 4 + 1}"
        case _:
            return f"{tick:04}"


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

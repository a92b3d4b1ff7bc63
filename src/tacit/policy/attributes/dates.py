"""Periods that are counted, and dates by day, week, month, quarter or year.

Dates are texts: 2024-03-01, 2024-W10, 2024-03, 2024-Q1, 2024. Weeks are those of ISO 8601: they start on Monday, and
the first one of a year is the one with its first Thursday.
"""

from __future__ import annotations

import calendar
import datetime
import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.errors import PolicyError, nearest
from tacit.policy.attributes.attribute import Attribute, Axis, OrderedAttribute, Value
from tacit.policy.attributes.plain_values import Integers
from tacit.policy.edges.intervals import Intervals
from tacit.policy.genuine import as_plain
from tacit.policy.keys import Key, Keys, Row, otherwise_key, read_two, two
from tacit.policy.yaml_entries import YamlEntry

PERIODS: Final = ("day", "week", "month", "quarter", "year")
_EXAMPLES: Final = dict(zip(PERIODS, ("2024-03-01", "2024-W10", "2024-03", "2024-Q1", "2024"), strict=True))
DAY: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_FORMS: Final = {
    "day": DAY,
    "week": re.compile(r"([0-9]{4})-W([0-9]{2})"),
    "month": re.compile(r"([0-9]{4})-([0-9]{2})"),
    "quarter": re.compile(r"([0-9]{4})-Q([1-4])"),
    "year": re.compile(r"([0-9]{4})"),
}
_PARTS_OF: Final = {
    **{"day": ("weekday", "month", "year"), "week": (), "month": ("month", "year")},
    **dict.fromkeys(("quarter", "year"), ("year",)),
}
TEXT_OR_NUMBER: Final[dict[str, Any]] = {"type": ["string", "integer"]}


def read_date(entry: YamlEntry) -> str:
    """Return the text of a date, quoted or not, whatever type YAML gives it."""
    if entry.is_list or entry.is_mapping or entry.is_empty:
        raise entry.refuse("must be a date", given=entry.plain(), fix="For instance 2024-03-01.")
    return str(entry.node.value)


_PARTS: Final = {"hour": (0, 23), "weekday": (1, 7), "month": (1, 12), "year": (1, 9999)}


def _numbers(starts: npt.NDArray[np.datetime64], part: str) -> npt.NDArray[np.int64]:
    """Return the year, month, weekday (Monday is 1) or hour of moments."""
    unit = {"hour": "h", "weekday": "D", "month": "M", "year": "Y"}[part]
    since = starts.astype(f"datetime64[{unit}]").astype(np.int64)
    match part:
        case "hour":
            return since % 24
        case "weekday":
            return (since + 3) % 7 + 1  # 1970 began on a Thursday
        case "month":
            return since % 12 + 1
        case _:
            return since + 1970


class InTime(OrderedAttribute):
    """Periods that are counted, from that of `start` to that of `end`, both included."""

    start: str
    end: str
    measured = "times"
    ordered = True

    @property
    @abstractmethod
    def ticks(self) -> tuple[int, int]:
        """The numbers of the first and the last period."""

    @property
    @abstractmethod
    def period(self) -> str:
        """What a value is: month."""

    @abstractmethod
    def tick(self, value: Value) -> int | None:
        """Return the number of the period that a value names, or None if it names none."""

    @abstractmethod
    def label(self, tick: int) -> str:
        """Return the text of a period."""

    @property
    @abstractmethod
    def parts(self) -> tuple[str, ...]:
        """What a predicate may ask of a value, beside which one it is: its year, month, weekday or hour."""

    @property
    @abstractmethod
    def starts(self) -> npt.NDArray[np.datetime64]:
        """When each period starts."""

    @abstractmethod
    def meant(self, value: Value) -> str:
        """Return the sentence about a value that names no period although it has the right form, or the empty text."""

    @property
    def size(self) -> int:
        first, last = self.ticks
        return last - first + 1

    def position(self, value: Value) -> int:
        tick, (first, last) = self.tick(value), self.ticks
        if tick is None or not first <= tick <= last:
            rule = f"must be a {self.period} from {self.start} to {self.end}"
            fix = "Change it." if tick is not None else self.meant(value) or self._like("Write it like")
            raise PolicyError(rule, given=str(value) if isinstance(value, datetime.date) else value, fix=fix)
        return tick - first

    def value(self, position: int) -> str:
        return self.label(self.ticks[0] + position)

    def rank(self, operand: Value) -> Fraction:
        tick = self.tick(operand)
        if tick is None:
            fix = self.meant(operand) or self._like("In quotes, for instance")
            given = str(operand) if isinstance(operand, datetime.date) else operand
            raise PolicyError(f"must compare with a {self.period}", given=given, fix=fix)
        return Fraction(tick - self.ticks[0])

    def _like(self, start: str) -> str:
        return f"{start} {self.start!r}."

    def atom(self, name: str, part: str, symbol: str, operand: Value) -> tuple[Axis, Intervals]:
        if not part or symbol == "has":
            return super().atom(name, part, symbol, operand)
        numbers = self.numbers(name, part)
        (axis,) = self.axes(name)
        low, high = _PARTS[part]
        held = Integers(low, high).picked(symbol, operand).marks(numbers - low)
        ends = np.flatnonzero(np.diff(held.astype(np.int8), prepend=0, append=0)).tolist()
        return axis, Intervals.of((first, after - 1) for first, after in zip(ends[::2], ends[1::2], strict=True))

    def numbers(self, name: str, part: str) -> npt.NDArray[np.int64]:
        """Return the year, month, weekday or hour of each value, or refuse what is no part of it."""
        if part not in self.parts:
            fix = f"Ask for {' or '.join(f'{name}.{one}' for one in self.parts)}." if self.parts else "Name a value."
            raise PolicyError(f"must be a part that a {self.period} has", given=part, fix=fix)
        return _numbers(self.starts, part)

    @classmethod
    def read(cls, entry: YamlEntry, main: YamlEntry | None, places: dict[str, YamlEntry]) -> Attribute:
        assert main is not None  # noqa: S101 - there is no other way to write it
        if not main.is_list:
            raise main.refuse("must be [from, to]", given=main.plain(), fix="For instance [2024-01-01, 2024-12-31].")
        start, end = read_two(main)
        with main.blamed({"start": start, "end": end, **places}):
            return cls(read_date(start), read_date(end), **cls.keys.read(places))  # type: ignore[call-arg]

    def document(self) -> Any:
        return {self.kind: [self.start, self.end], **self.not_default()}

    def read_value(self, entry: YamlEntry) -> Value:
        return read_date(entry)

    def read_end(self, text: str) -> Value:
        if self.tick(text.strip()) is None:
            raise ValueError
        return text.strip()

    def read_width(self, entry: YamlEntry) -> int:
        """Read the width of a block: a number of days, weeks, and so on."""
        if entry.tag == "int":
            return entry.whole()
        half, unit = self.size // 2, self.distance_unit
        fix = f"Write the number alone, for instance {7 if unit == 'day' else 2 * self.distance}."
        if half:
            ends = self.start, self.value(half - 1), self.value(half), self.end
            fix += " Blocks of different lengths, such as months, are listed: blocks: [{}..{}, {}..{}].".format(*ends)
        raise entry.refuse(f"must be a number of {unit}s", given=entry.plain(), fix=fix)


@dataclass(frozen=True)
class Dates(InTime):
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
        otherwise_key(TEXT_OR_NUMBER, read_date),
    )
    row = Row(
        "`dates: [from, to]`",
        "`by`: `day`, `week`, `month`, `quarter` or `year`; `otherwise`: a value or `clip`",
        "`2024-03-01`, `2024-W10`, `2024-03`, `2024-Q1`, `2024`, both ends included",
    )
    example = "{dates: [2024-01-01, 2024-12-31]}"
    other_words = ("date",)

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
                    fix=no_such(given, by, days=True) or _other_period(given, by),
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
    def period(self) -> str:
        return self.by

    def tick(self, value: Value) -> int | None:
        return _tick(value, self.by)

    def label(self, tick: int) -> str:
        return _label(tick, self.by)

    @property
    def parts(self) -> tuple[str, ...]:
        return _PARTS_OF[self.by]

    @property
    def starts(self) -> npt.NDArray[np.datetime64]:
        ticks = np.arange(self.ticks[0], self.ticks[1] + 1)
        match self.by:
            case "day" | "week":
                days = ticks if self.by == "day" else 7 * ticks + 1
                return (days - datetime.date(1970, 1, 1).toordinal()).astype("datetime64[D]")
            case _:
                many = {"month": 1, "quarter": 3, "year": 12}[self.by]
                return (ticks * many - 1970 * 12).astype("datetime64[M]")

    def meant(self, value: Value) -> str:
        return no_such(value, self.by)

    def _like(self, start: str) -> str:
        return f"{start} {_EXAMPLES[self.by]!r}."

    @property
    def distance_unit(self) -> str:  # type: ignore[override]
        """What distances are counted in."""
        return self.by

    @classmethod
    def schemas(cls) -> list[dict[str, Any]]:
        ends = two(TEXT_OR_NUMBER, "[from, to], both included: dates, or periods as `by` says.")
        return [cls.keys.schema("Dates.", first={cls.kind: ends})]

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
    form = _FORMS[by].fullmatch(value) or (DAY.fullmatch(value) if days else None)
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


def no_such(value: Value, by: str, *, days: bool = False) -> str:
    """Return the sentence about a date in the right form that does not exist, or the empty text."""
    if not isinstance(value, str):
        return ""
    if days and by != "day" and DAY.fullmatch(value):
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

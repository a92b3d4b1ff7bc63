"""Dates by day, week, month, quarter or year, and times by hours, minutes or other equal steps.

Dates are texts: 2024-03-01, 2024-W10, 2024-03, 2024-Q1, 2024. Weeks are those of ISO 8601: they start on Monday, and
the first one of a year is the one with its first Thursday.

Times are what a clock on a wall shows: 2024-03-01T14:05 is the step that starts then. In a zone that changes between
summer and winter time, the hour that is left out in spring is there and nobody is in it, and the hour that comes twice
in autumn is one hour, in which all are who were there in either. So steps are equal on the clock, and distances too.
"""

from __future__ import annotations

import calendar
import datetime
import functools
import re
import zoneinfo
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
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
from tacit.policy.keys import TEXT, Key, Keys, Row, otherwise_key, read_two, two
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
_PARTS_OF: Final = {
    **{"day": ("weekday", "month", "year"), "week": (), "month": ("month", "year")},
    **dict.fromkeys(("quarter", "year"), ("year",)),
}
_TEXT: Final[dict[str, Any]] = {"type": ["string", "integer"]}


def _read_date(entry: YamlEntry) -> str:
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


class _InTime(OrderedAttribute):
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
        if part not in self.parts:
            fix = f"Ask for {' or '.join(f'{name}.{one}' for one in self.parts)}." if self.parts else "Name a value."
            raise PolicyError(f"must be a part that a {self.period} has", given=part, fix=fix)
        (axis,) = self.axes(name)
        low, high = _PARTS[part]
        held = Integers(low, high).picked(symbol, operand).marks(_numbers(self.starts, part) - low)
        ends = np.flatnonzero(np.diff(held.astype(np.int8), prepend=0, append=0)).tolist()
        return axis, Intervals.of((first, after - 1) for first, after in zip(ends[::2], ends[1::2], strict=True))

    @classmethod
    def read(cls, entry: YamlEntry, main: YamlEntry | None, places: dict[str, YamlEntry]) -> Attribute:
        assert main is not None  # noqa: S101 - there is no other way to write it
        if not main.is_list:
            raise main.refuse("must be [from, to]", given=main.plain(), fix="For instance [2024-01-01, 2024-12-31].")
        start, end = read_two(main)
        with main.blamed({"start": start, "end": end, **places}):
            return cls(_read_date(start), _read_date(end), **cls.keys.read(places))  # type: ignore[call-arg]

    def document(self) -> Any:
        return {self.kind: [self.start, self.end], **self.not_default()}

    def read_value(self, entry: YamlEntry) -> Value:
        return _read_date(entry)

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
class Dates(_InTime):
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
        return _no_such(value, self.by)

    def _like(self, start: str) -> str:
        return f"{start} {_EXAMPLES[self.by]!r}."

    @property
    def distance_unit(self) -> str:  # type: ignore[override]
        """What distances are counted in."""
        return self.by

    @classmethod
    def schemas(cls) -> list[dict[str, Any]]:
        ends = two(_TEXT, "[from, to], both included: dates, or periods as `by` says.")
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


_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_STEP: Final = re.compile(r"(?:([1-9][0-9]{0,5}) )?(second|minute|hour|day)s?")
_MOMENT: Final = re.compile(_DAY.pattern + r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?)?")
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_FIRST, _LAST = (datetime.datetime(*day) for day in ((1, 1, 3), (9999, 12, 29)))  # all zones have these days


@dataclass(frozen=True)
class Times(_InTime):
    """A time from `start` to `end`, both included, in steps of a number of seconds, minutes, hours or days.

    A value is the step that starts then, on the clocks of `zone` (such as "Europe/Berlin" or "UTC"). Moments with a
    time zone are told in that zone; without one they are taken to be told in it. Without `zone`, times are as they are
    written, and moments with a zone do not fit. A day stands for its first step as `start`, and for its last as `end`.
    `otherwise` is as for dates.

    >>> times = Times("2024-01-01", "2024-12-31", step="15 minutes", zone="Europe/Berlin")
    >>> times.size, times.value(57), times.end
    (35136, '2024-01-01T14:15', '2024-12-31T23:45')
    """

    start: str
    end: str
    step: str = "hour"
    zone: str | None = None
    otherwise: str | None = None

    kind = "times"
    keys = Keys(
        Key(
            "step",
            {"type": "string", "pattern": f"^{_STEP.pattern}$", "default": "hour"},
            "How long a step is, such as 15 minutes.",
            read=lambda entry: str(entry.plain()),  # also a number without its unit, which is refused with the rule
        ),
        Key(
            "zone", TEXT, "The time zone whose clocks tell the time, such as Europe/Berlin or UTC.", read=YamlEntry.text
        ),
        otherwise_key(_TEXT, _read_date),
    )
    row = Row(
        "`times: [from, to]`",
        "`step`: `hour`, `15 minutes` and the like; `zone`; `otherwise`: a value or `clip`",
        "`2024-03-01T14:15`, the start of a step; both ends included",
    )
    example = "{times: [2024-01-01, 2024-12-31], step: hour}"
    other_words = ("datetime", "datetimes", "time", "timestamp", "timestamps")

    def __init__(
        self, start: Any, end: Any, step: str = "hour", zone: str | None = None, otherwise: Any = None
    ) -> None:
        start, end, step, zone, otherwise = as_plain((start, end, step, zone, otherwise))
        found = _STEP.fullmatch(step) if isinstance(step, str) else None
        if found is None:
            rule = "must be a number of seconds, minutes, hours or days"
            raise PolicyError(rule, key="times.step", given=step, fix="For instance 'hour' or '15 minutes'.")
        many = int(found[1] or 1)
        object.__setattr__(self, "step", found[2] if many == 1 else f"{many} {found[2]}s")
        object.__setattr__(self, "zone", zone)
        if zone is not None:
            _zone(zone)
        seconds = []
        for key, given in (("start", start), ("end", end)):
            second = self._second(given, last=key == "end")
            if second is None:
                rule = "must be a day such as 2024-03-01, or a time such as 2024-03-01T14:00 without a zone"
                fix = _no_such(given, "day") or "Write year, month, day, hours and minutes."
                raise PolicyError(rule, key=f"times.{key}", given=str(given), fix=fix)
            seconds.append(second)
        if seconds[0] > seconds[1]:
            raise PolicyError("must not end before it starts", key="times", given=[start, end], fix="Swap the two.")
        object.__setattr__(self, "first", seconds[0])
        object.__setattr__(self, "start", self.label(0))
        object.__setattr__(self, "end", self.label((seconds[1] - seconds[0]) // self.seconds))
        object.__setattr__(self, "otherwise", otherwise)
        self.settle_otherwise()

    @property
    def distance(self) -> int:
        """The distance between neighbouring values, in the unit of the step."""
        number, _, unit = self.step.partition(" ")
        return int(number) if unit else 1

    @property
    def distance_unit(self) -> str:  # type: ignore[override]
        """What distances are counted in."""
        return self.step.rpartition(" ")[2].removesuffix("s")

    @cached_property
    def seconds(self) -> int:
        """How long a step is."""
        return self.distance * _UNITS[self.distance_unit]

    @cached_property
    def first(self) -> int:
        """The start of the first step, in seconds since 1970 began on the clocks of the zone."""
        second = self._second(self.start)
        assert second is not None  # noqa: S101 - it was read when this was made
        return second

    @cached_property
    def ticks(self) -> tuple[int, int]:
        """The numbers of the first step, which is 0, and the last."""
        last = self._second(self.end)
        assert last is not None  # noqa: S101 - it was read when this was made
        return 0, (last - self.first) // self.seconds

    @property
    def period(self) -> str:
        return f"time in steps of {self.distance} {self.distance_unit}{'s' * (self.distance > 1)}"

    @property
    def _by_day(self) -> bool:
        """Whether every step starts at midnight."""
        return not (self.seconds % _UNITS["day"] or self.first % _UNITS["day"])

    def tick(self, value: Value) -> int | None:
        is_day = not isinstance(value, datetime.datetime) and (
            isinstance(value, datetime.date) or (isinstance(value, str) and _DAY.fullmatch(value) is not None)
        )
        # `<= 2024-03-01` would leave out nearly all of that day
        second = None if is_day and not self._by_day else self._second(value)
        if second is None or (second - self.first) % self.seconds:
            return None
        return (second - self.first) // self.seconds

    def label(self, tick: int) -> str:
        moment = _EPOCH + datetime.timedelta(seconds=self.first + tick * self.seconds)
        if self._by_day:
            return moment.date().isoformat()
        return moment.isoformat(timespec="seconds" if self.first % 60 or self.seconds % 60 else "minutes")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("hour", "weekday", "month", "year")

    @property
    def starts(self) -> npt.NDArray[np.datetime64]:
        return (self.first + self.seconds * np.arange(self.size)).astype("datetime64[s]")

    def meant(self, value: Value) -> str:
        second = self._second(value)
        if second is None:
            return _no_such(value, "day")
        return f"The step that it lies in is {self.label((second - self.first) // self.seconds)!r}."

    def _second(self, value: Value, *, last: bool = False) -> int | None:
        """Return a moment in seconds since 1970 began on the clocks of the zone; a day is its first or last one."""
        is_day = False
        if isinstance(value, str) and (form := _MOMENT.fullmatch(value)):
            is_day = form[4] is None
            try:
                value = datetime.datetime(*(int(part or 0) for part in form.groups()))  # type: ignore[arg-type]
            except ValueError:
                return None  # no such day or time
        elif isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            is_day, value = True, datetime.datetime(value.year, value.month, value.day)
        if not isinstance(value, datetime.datetime) or (value.tzinfo is not None and self.zone is None):
            return None
        if value.tzinfo is not None and self.zone is not None:
            value = value.astimezone(_zone(self.zone)).replace(tzinfo=None)
        second: int = (value - _EPOCH) // datetime.timedelta(seconds=1)
        return second + _UNITS["day"] - 1 if is_day and last else second

    @cached_property
    def offsets(self) -> list[tuple[int, int]]:
        """How many seconds the clocks of the zone are ahead of UTC, and from which second (UTC, since 1970) on.

        From before the first value to after the last. Zones are looked at day by day: no clock was ever changed back
        and forth within four days.
        """
        if self.zone is None:
            return [(0, 0)]
        zone, second, day = _zone(self.zone), datetime.timedelta(seconds=1), datetime.timedelta(days=1)

        def ahead(moment: datetime.datetime) -> int:
            offset = moment.replace(tzinfo=datetime.UTC).astimezone(zone).utcoffset()
            assert offset is not None  # noqa: S101 - a zone has one
            return offset // second

        now, end = (
            min(max(_EPOCH + at * second + around, _FIRST), _LAST)
            for at, around in ((self.first, -2 * day), (self.first + self.size * self.seconds, 2 * day))
        )
        found = [((now - _EPOCH) // second, ahead(now))]
        while now < end:
            low, high = now, min(now + day, end)
            now, new = high, ahead(high)
            if new != found[-1][1]:
                while high - low > second:  # the last moment before the change, and the first one after
                    middle = low + (high - low) // second // 2 * second
                    low, high = (low, middle) if ahead(middle) == new else (middle, high)
                found.append(((high - _EPOCH) // second, new))
        return found

    def together(self, least: int) -> int:
        """Return the steps of a minute, an hour, a day or a week: parts of a day would hide what is between days."""
        lengths = (*_UNITS.values(), 7 * _UNITS["day"])
        return next((one // self.seconds for one in lengths if one >= least * self.seconds), least)

    def notes(self, name: str) -> Iterator[str]:
        if self.zone is not None and len(self.offsets) > 1:
            yield (
                f"{name} is what clocks in {self.zone} show: an hour that comes twice when they are set back counts as "
                "one, and an hour that is left out stays empty."
            )

    @classmethod
    def schemas(cls) -> list[dict[str, Any]]:
        ends = two(_TEXT, "[from, to], both included: times such as 2024-03-01T14:00, or days.")
        return [cls.keys.schema("Times.", first={cls.kind: ends})]

    @classmethod
    def examples(cls) -> Iterator[Attribute]:
        yield cls("2024-03-01T22:00", "2024-03-02T02:00")
        yield cls("2024-03-31", "2024-03-31", step="90 minutes", zone="Europe/Berlin")


@functools.cache
def _zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones() - {"localtime"})  # which is another one on each machine


def _zone(name: Any) -> zoneinfo.ZoneInfo:
    """Return a time zone by its name, or refuse."""
    if isinstance(name, str) and name in _zones():
        return zoneinfo.ZoneInfo(name)
    rule = "must be the name of a time zone that this machine knows"
    cities = {one.rpartition("/")[2].casefold(): one for one in sorted(_zones())}
    near = get_close_matches(str(name).rpartition("/")[2].casefold(), cities, n=1)
    fix = f"Did you mean {cities[near[0]]!r}?" if near else "For instance Europe/Berlin."
    raise PolicyError(rule, key="times.zone", given=name, fix=fix)

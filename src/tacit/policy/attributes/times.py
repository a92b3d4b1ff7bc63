"""Times by hours, minutes or other equal steps.

Times are what a clock on a wall shows: 2024-03-01T14:05 is the step that starts then. In a zone that changes between
summer and winter time, the hour that is left out in spring is there and nobody is in it, and the hour that comes twice
in autumn is one hour, in which all are who were there in either. So steps are equal on the clock, and distances too.
"""

from __future__ import annotations

import datetime
import functools
import re
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.errors import PolicyError
from tacit.policy.attributes.attribute import Attribute, Value
from tacit.policy.attributes.dates import DAY, TEXT_OR_NUMBER, InTime, no_such, read_date
from tacit.policy.genuine import as_plain
from tacit.policy.keys import TEXT, Key, Keys, Row, otherwise_key, two
from tacit.policy.yaml_entries import YamlEntry

_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_STEP: Final = re.compile(r"(?:([1-9][0-9]{0,5}) )?(second|minute|hour|day)s?")
_MOMENT: Final = re.compile(DAY.pattern + r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?)?")
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_FIRST, _LAST = (datetime.datetime(*day) for day in ((1, 1, 3), (9999, 12, 29)))  # all zones have these days


@dataclass(frozen=True)
class Times(InTime):
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
        otherwise_key(TEXT_OR_NUMBER, read_date),
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
                fix = no_such(given, "day") or "Write year, month, day, hours and minutes."
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
            isinstance(value, datetime.date) or (isinstance(value, str) and DAY.fullmatch(value) is not None)
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
            return no_such(value, "day")
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

        ends = self.first - 2 * _UNITS["day"], self.first + self.size * self.seconds + 2 * _UNITS["day"]
        years = ((_FIRST - _EPOCH) // second, (_LAST - _EPOCH) // second)
        now, end = (_EPOCH + min(max(at, years[0]), years[1]) * second for at in ends)
        found = [(ends[0], ahead(now))]
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
        ends = two(TEXT_OR_NUMBER, "[from, to], both included: times such as 2024-03-01T14:00, or days.")
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

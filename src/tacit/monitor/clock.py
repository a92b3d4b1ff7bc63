"""The public clock of a monitor: which step a time belongs to.

Step 0 begins at `start` and every step lasts `every`: whole numbers, or dates with a duration. The step of a time never
depends on other events.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tacit.arrays import Ints
from tacit.errors import PlanError

LONGEST: Final = 10**15  # of a number that can stand for a time; dates reach 3 * 10^17 microseconds
_SECOND: Final = 1_000_000
UNITS: Final = {
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3600 * _SECOND,
    "day": 86_400 * _SECOND,
    "week": 604_800 * _SECOND,
}
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_FARTHEST: Final = 280 * 365 * UNITS["day"]


@dataclass(frozen=True)
class Clock:
    """The public clock: step 0 begins at `start`, each step lasts `every`. Dates are microseconds since 1970, UTC."""

    start: int = 0
    every: int = 1
    dates: bool = False

    def step_of(self, ticks: Ints) -> Ints:
        """Return the step that each time belongs to."""
        return (ticks - self.start) // self.every

    def tick(self, step: int) -> int:
        """Return the time at which a step begins."""
        return self.start + step * self.every

    def shown(self, step: int) -> int | str:
        """Return the time at which a step begins as people write it."""
        tick = self.tick(step)
        if not self.dates:
            return tick
        try:
            said = _EPOCH + datetime.timedelta(microseconds=tick)
        except OverflowError:
            return f"step {step}"
        whole_days = not (self.every % UNITS["day"] or self.start % UNITS["day"])
        return said.date().isoformat() if whole_days else said.replace(tzinfo=None).isoformat()

    def document(self) -> dict[str, Any]:
        """Return the clock as plain data."""
        return {"start": self.start, "every": self.every, "dates": self.dates}


def as_clock(start: Any, every: Any, *, start_key: str = "start") -> Clock:
    """Return the clock that a user describes, or refuse: numbers go by 1, dates need the length of a step.

    >>> as_clock("2020-03-01", "1 day").shown(2)
    '2020-03-03'
    >>> as_clock(None, None).step_of(np.array([7])).tolist()
    [7]
    """
    start, every = (value.item() if isinstance(value, np.integer) else value for value in (start, every))
    if start is None and not isinstance(every, str | datetime.timedelta):
        start = 0
    if start is None:
        rule = "must be given where a step has a duration"
        raise PlanError(rule, key=start_key, fix=f"Say {start_key}='2020-03-01', when the first step begins.")
    if isinstance(start, int) and not isinstance(start, bool):
        if abs(start) > LONGEST:
            raise PlanError(f"must lie within {LONGEST:,}", key=start_key, given=start, fix="Count from a later start.")
        length = 1 if every is None else every
        if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= LONGEST:
            rule = "must be a whole number from 1 where times are numbers"
            fix = f"For times that are dates, say {start_key}='2020-03-01', every='1 day'."
            raise PlanError(rule, key="every", given=every, fix=fix)
        return Clock(start, length)
    return Clock(_start_ticks(start, start_key), _duration(every), dates=True)


def _start_ticks(start: Any, key: str) -> int:
    ticks = ticks_of(iso_date(start) if isinstance(start, str) else start)
    if ticks is None:
        raise PlanError(
            "must be a whole number or a date", key=key, given=start, fix="For instance '2020-03-01' (UTC if no zone)."
        )
    return ticks


def _duration(every: Any) -> int:
    length = 0
    if isinstance(every, datetime.timedelta):
        length = every // datetime.timedelta(microseconds=1)
    elif isinstance(every, str) and (said := re.fullmatch(r"\s*(\d{1,9})?\s*([a-z]+?)s?\s*", every)):
        length = int(said[1] or 1) * UNITS.get(said[2], 0)
    if not 0 < length <= 10**17:
        given = str(every) if isinstance(every, datetime.timedelta) else every
        fix = "For instance '1 day', '6 hours', '15 minutes' or '1 week'."
        raise PlanError("must say how long a step lasts where times are dates", key="every", given=given, fix=fix)
    return length


def iso_date(text: str) -> datetime.datetime | None:
    """Return the moment that a text says, or None."""
    try:
        return datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        return None


def ticks_of(moment: Any) -> int | None:
    """Return a date as microseconds since 1970 (UTC where it has no zone), or None for anything else."""
    if not isinstance(moment, datetime.date) or moment != moment:  # pandas has a date that is none
        return None
    if not isinstance(moment, datetime.datetime):
        moment = datetime.datetime(moment.year, moment.month, moment.day)
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
    return int((zoned - _EPOCH) // datetime.timedelta(microseconds=1))


def moment_of(tick: int, *, zoned: bool) -> datetime.datetime:
    """Return a time as an engine compares it, cut to what dates with nanoseconds can say."""
    moment = _EPOCH + datetime.timedelta(microseconds=min(max(tick, -_FARTHEST), _FARTHEST))
    return moment if zoned else moment.replace(tzinfo=None)

"""Who was where in a building, step by step, and what a day in a room comes to: arrival, leaving, absences, share.

The data that document 001 speaks of are not public. Work places in Berkeley stand in for them: whether somebody is
there was inferred from plug loads, every quarter of an hour, for a year.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit_reproductions.data import present

BERKELEY: Final = "occupancy/berkeley_19desks_15min.parquet"
DAY: Final = 24 * 60  # minutes
WORK: Final = (8 * 60, 17 * 60)  # the hours of which the share occupied is taken
DEFAULT_START: Final = 9 * 60  # when lights go on unless a room starts later

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Whether each room was occupied, for each day and each step of it: `table[room, day, step]`."""

    name: str
    rooms: tuple[str, ...]
    dates: npt.NDArray[np.datetime64]
    step: int  # minutes
    table: Bools

    @property
    def times(self) -> Ints:
        """The minute of the day at which each step is read."""
        return np.arange(self.table.shape[2]) * self.step


@dataclass(frozen=True, eq=False)
class Days:
    """One row for each room and work day with somebody there; times are minutes since midnight."""

    room: Ints
    date: npt.NDArray[np.datetime64]
    arrival: Ints
    leaving: Ints
    absences: Ints
    mean_absence: Floats
    share: Floats

    def __len__(self) -> int:
        return len(self.room)


def days_of(occupancy: Occupancy) -> Days:
    """Return what can be read off every work day (Monday to Friday) on which a room was occupied at all.

    An absence is a run of empty steps between arrival and leaving. The share is that of the steps from 8:00 to 17:00.
    """
    weekday = (occupancy.dates.astype("datetime64[D]").astype(np.int64) + 3) % 7  # 1970-01-01 was a Thursday
    there = occupancy.table & (weekday < 5)[np.newaxis, :, np.newaxis]
    room, day = np.nonzero(there.any(axis=2))
    own = there[room, day]
    steps = own.shape[1]
    first, last = own.argmax(axis=1), steps - 1 - own[:, ::-1].argmax(axis=1)
    at = np.arange(steps)
    inside = (at >= first[:, np.newaxis]) & (at <= last[:, np.newaxis])
    away = inside & ~own
    started = away & ~np.concatenate([np.zeros((len(own), 1), np.bool_), away[:, :-1]], axis=1)
    absences = started.sum(axis=1)
    length = away.sum(axis=1) * occupancy.step
    work = (occupancy.times >= WORK[0]) & (occupancy.times < WORK[1])
    return Days(
        room=room.astype(np.int64),
        date=occupancy.dates[day],
        arrival=(first * occupancy.step).astype(np.int64),
        leaving=((last + 1) * occupancy.step).astype(np.int64),
        absences=absences.astype(np.int64),
        mean_absence=np.divide(length, absences, out=np.zeros(len(own)), where=absences > 0),
        share=own[:, work].mean(axis=1),
    )


def read_occupancy(folder: Path) -> Occupancy:
    """Return the work places in Berkeley."""
    return occupancy_of_file(present(folder / BERKELEY), "Berkeley, 19 work places")


def occupancy_of_file(file: Path, name: str) -> Occupancy:
    """Return what a Parquet file with the columns `space` (or `room`), `time` and `occupied` says, in equal steps."""
    import pandas as pd

    frame: Any = pd.read_parquet(file)
    spaces = frame["space" if "space" in frame else "room"]
    rooms, room = np.unique(spaces.to_numpy(), return_inverse=True)
    times = frame["time"].to_numpy("datetime64[m]")
    dates, date = np.unique(times.astype("datetime64[D]"), return_inverse=True)
    minute = (times - times.astype("datetime64[D]")).astype(np.int64)
    step = int(np.gcd.reduce(minute))
    table = np.zeros((len(rooms), len(dates), DAY // step), dtype=np.bool_)
    table[room, date, minute // step] = frame["occupied"].to_numpy() > 0
    return Occupancy(name, tuple(f"room {one}" for one in rooms), dates, step, table)


def made_up_occupancy(rooms: int = 12, days: int = 84) -> Occupancy:
    """Return made-up rooms, each with habits of its own: late days are often short days, and days with few hours there.

    How a day goes is drawn from the noise that is replayed or fresh, like everything else here.
    """
    step, steps = 15, DAY // 15
    dates = np.datetime64("2024-01-01", "D") + np.arange(days)
    usual = 8 * 60 + 15 * noise.uniform_below(7, rooms)  # 8:00 to 9:30
    late = noise.bernoulli("0.25", (rooms, days))
    start = usual[:, np.newaxis] + np.where(late, 60 + 15 * noise.uniform_below(8, (rooms, days)), 0)
    start = start + 15 * (noise.uniform_below(3, (rooms, days)) - 1)
    short = np.where(late, noise.bernoulli("0.6", (rooms, days)), noise.bernoulli("0.1", (rooms, days)))
    end = np.where(short, 15 * 60, 17 * 60) + 15 * noise.uniform_below(6, (rooms, days))
    at = np.arange(steps) * step
    there = (at >= start[..., np.newaxis]) & (at < end[..., np.newaxis])
    lunch = (at >= 12 * 60) & (at < 12 * 60 + 45)
    # somebody who came late is away more often; a quarter of an hour each, in pairs
    away = noise.bernoulli("0.06", (rooms, days, steps)) | (
        late[..., np.newaxis] & noise.bernoulli("0.1", (rooms, days, steps))
    )
    away = away | np.roll(away, 1, axis=2)
    absent = noise.bernoulli("0.08", (rooms, days))  # a day off
    table = there & ~lunch & ~away & ~absent[..., np.newaxis]
    return Occupancy("made up", tuple(f"room {number + 1}" for number in range(rooms)), dates, step, table)


def clock(minutes: float) -> str:
    """Return a time of the day.

    >>> clock(555)
    '9:15'
    """
    whole = round(minutes)
    return f"{whole // 60}:{whole % 60:02d}"

"""Where a row's place, person, time and id are, and what was read of a batch: private, line by line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tacit.arrays import Bools, Ints
from tacit.monitor.clock import Clock
from tacit.policy.attributes import Attribute

Span = tuple[int, int]

NAMES: Final = "as rows"  # how people are told apart (`rows/cells/row_names.py`); a state keeps the rule it began by
OPTIONAL_TIME: Final = "time"  # the default column: a batch without it is taken as of its arrival


@dataclass(frozen=True)
class EventColumns:
    """Where a row's place, person, time and id are; all public. `time` is None to go by arrival alone.

    `names` is the rule by which people are told apart: that of names of rows, or "" for texts as they are.
    """

    places: Attribute
    place: str
    person: str | None = None
    event: str | None = None
    time: str | None = OPTIONAL_TIME
    clock: Clock = field(default_factory=Clock)
    names: str = NAMES


@dataclass(frozen=True, eq=False, repr=False)
class Events:
    """What was read of a batch, line by line; a line stands for `rows` rows that agree in everything else.

    `places` are positions in the domain. `timed` says which lines have a readable time, `ticks` is that time. `people`
    are numbers of `names`. `keys` tell events apart: their ids (None: a row without one is an event of its own) or,
    without such a column, their times. `has_time` says whether the batch has a column of times.
    """

    rows: Ints
    places: Ints
    ticks: Ints
    timed: Bools
    people: Ints | None = None
    names: list[str] | None = None
    keys: list[str | None] | None = None
    has_time: bool = False

    def where(self, kept: Bools) -> Events:
        """Return only some of the lines."""
        if kept.all():
            return self
        return Events(
            self.rows[kept],
            self.places[kept],
            self.ticks[kept],
            self.timed[kept],
            None if self.people is None else self.people[kept],
            self.names,
            None if self.keys is None else [key for key, keep in zip(self.keys, kept.tolist(), strict=True) if keep],
            self.has_time,
        )

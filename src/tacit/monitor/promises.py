"""What a monitor promises, in words: who or what is protected, which events count, and what each verdict means.

Nothing here depends on an event: the words follow from the policy and from what the publisher chose.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from tacit.amounts import shown
from tacit.monitor.alarm import ABOVE, CERTAINLY_BELOW
from tacit.monitor.events import EventColumns
from tacit.monitor.history import ALREADY_ALARMED, NOT_ASKED, PAUSED

_REACHED: Final = (
    "the noisy count reached the threshold; the count is at most the value, and may still be below the threshold"
)


@dataclass(frozen=True)
class Promised(ABC):
    """What a monitor says about itself.

    Attributes:
        threshold: from which count on a place may alarm.
        epsilon: what the whole life costs.
        visits: how many visits of a person count; None where single visits are protected.
        columns: where events say who, where and when.
    """

    threshold: int
    epsilon: Fraction
    visits: int | None
    columns: EventColumns

    @property
    def each(self) -> str:
        """What one counted visit costs, as text."""
        return shown(self.epsilon / (self.visits or 1))

    @abstractmethod
    def taken_away(self) -> str:
        """Say what is not there any more at the other end of a secret edge of the policy that is charged."""

    @abstractmethod
    def protects(self) -> str:
        """Say what looks as if it had not happened, and what it pays."""

    @abstractmethod
    def counted(self) -> list[str]:
        """Say which events count, and for how long, also those that are late, early, out of order or twice there."""

    @abstractmethod
    def words(self) -> dict[str, str]:
        """Say what each verdict means."""

    @abstractmethod
    def one_id(self) -> str:
        """Say how rows with one id count."""

    def duplicates(self, same: str) -> str:
        """Say how duplicates are told and count, where rows are the `same` that agree in these."""
        person, event = self.columns.person, self.columns.event
        if event is not None:
            key = event if person is None else f"{person} and {event}"
            said = f"rows with the same {key} {self.one_id()}; a row without {event} is a visit of its own"
        elif person is not None:
            said = f"rows with the same {same} are one visit"
        else:
            said = "every row is a visit of its own, for there is no person and no id to tell duplicates by"
        return said if person is None else f"{said}; rows without {person} are left out"


@dataclass(frozen=True)
class PlacePromise(Promised):
    """What a monitor of one place says; a visit counts for `window` steps, and an alarm silences it for as many."""

    window: int

    def taken_away(self) -> str:
        return "one visit" if self.visits is None else "all visits of one person to the place"

    def protects(self) -> str:
        if self.visits is None:
            return (
                f"one visit: it looks as if it had not happened, at a cost of {self.each} over the whole life, because "
                "it is counted in at most one alarm. A person pays for each visit: with at most v visits within any "
                f"window, at most v * {self.each} for each alarm, and again for each further alarm"
            )
        return (
            f"one person: the first {self.visits} visits of a person over the whole life of the monitor are counted, "
            "later ones never. Any of the counted visits look as if they, and those that are not counted, had not "
            f"happened, at a cost of {self.each} for each and {shown(self.epsilon)} in all, because each is counted in "
            "at most one alarm"
        )

    def one_id(self) -> str:
        return "count once in each step in which one of them counts" if self.visits is None else "are one visit"

    def counted(self) -> list[str]:
        window = f"{self.window} step{'s' * (self.window > 1)}"
        bound = [] if self.visits is None else [f"of each person the first {self.visits} visits, in order of arrival"]
        return [
            f"a visit counts from the step at which it has both happened and arrived, until its time is {window} ago",
            "late: counts for what is left of its window; left out where nothing is left",
            f"early: waits for its time; left out where that is more than {window} ahead",
            "without a readable time: is taken to happen when it arrives",
            "out of order: makes no difference within a batch",
            f"duplicates: {self.duplicates('person, place and time')}",
            *bound,
        ]

    def words(self) -> dict[str, str]:
        return {
            CERTAINLY_BELOW: f"fewer than {self.threshold} counted visits: certain",
            ABOVE: _REACHED,
            PAUSED: f"a public timer: for {self.window - 1} steps after an alarm nothing is said, whatever happens",
        }


@dataclass(frozen=True)
class MapPromise(Promised):
    """What a monitor of many places says; `is_asked_at_times` where not every step decides."""

    is_asked_at_times: bool

    def taken_away(self) -> str:
        return "one visit" if self.visits is None else "all visits of one person to the monitored places"

    def protects(self) -> str:
        why = "because it is counted at one place, and a place alarms at most once"
        if self.visits is None:
            return (
                f"one visit: it looks as if it had been nowhere (not: elsewhere), at a cost of {self.each}, {why}. A "
                f"person who makes v visits in the designated time pays v * {self.each}"
            )
        many = "visit is" if self.visits == 1 else f"{self.visits} visits at different places are"
        return (
            f"one person: of each person the first {many} counted, by batch, then time, then place; all others in the "
            f"designated time never. A person looks as if nowhere (not: elsewhere), at a cost of {self.each} for each "
            f"counted visit and {shown(self.epsilon)} in all, {why}"
        )

    def one_id(self) -> str:
        return "count once at each place"

    def counted(self) -> list[str]:
        which = "all events" if self.columns.time is None else "events in the designated time"
        return [
            f"{which}, from their arrival on; what arrives later is added to what was there",
            "without a readable time: left out, in batches that have a column of times",
            "out of order: makes no difference within a batch",
            f"duplicates: {self.duplicates('person and place')}",
        ]

    def words(self) -> dict[str, str]:
        return {
            CERTAINLY_BELOW: f"fewer than {self.threshold} counted visits so far: certain",
            ABOVE: _REACHED,
            ALREADY_ALARMED: "the place alarmed at an earlier update and is not answered again",
            **({NOT_ASKED: "no step at which places are decided"} if self.is_asked_at_times else {}),
        }

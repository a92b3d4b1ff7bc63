"""Which visits of a batch count, and when: what a monitor adds to its journal, in the transaction of the step.

A visit counts at one place of a map, and at a single place in steps that span at most the window, so that it is in at
most one alarm (`monitor/monitor.py` says why that is needed). Rows that are one visit count where any of them would:
if one of them were chosen, taking it away would let another one count in its stead.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from tacit.arrays import Ints
from tacit.monitor import journal
from tacit.monitor.events.columns import EventColumns, Events, Span
from tacit.monitor.history import Places, size_of
from tacit.monitor.journal import FOREVER


@dataclass(frozen=True)
class PlaceCounting:
    """A visit to one place counts from its arrival, until `window` steps after its time; `visits` of a person."""

    columns: EventColumns
    window: int
    visits: int | None

    def count(self, db: sqlite3.Connection, at: int, events: Events) -> None:
        """Add what a batch brings at a step."""
        journal.expire(db, at)
        steps = np.where(events.timed, self.columns.clock.step_of(events.ticks), at)
        near = (steps > at - self.window) & (steps <= at + self.window)
        events, steps = events.where(near), steps[near]
        # from when it has both happened and arrived, until its time leaves the window: at most `window` steps
        first, last = np.maximum(steps, at), steps + self.window - 1
        if events.keys is None:
            journal.add_visits(db, _tallied(first, last, events.rows))
            return
        if self.visits is None:
            self._count_visits(db, at, events, first, last)
            return
        lines = np.repeat(np.arange(len(steps)), _visits_in(events))
        keys, names = events.keys, events.names or [""]
        # by when they happened, or arrived; then by what tells them apart: whatever order an engine returns them in
        texts = np.array(["" if key is None else key for key in keys], dtype=np.str_)
        lines = lines[np.lexsort((texts[lines], events.ticks[lines], ~events.timed[lines], steps[lines]))]
        people = [0] * len(steps) if events.people is None else events.people.tolist()
        # After its window a visit with a readable time is too late to count; an id, or a time that cannot be read, may
        # come again at any time and must not count again, so it is remembered.
        too_late = (events.timed | (not events.has_time)) & (self.columns.event is None)
        arrived, ends = f"arrived at step {at}", np.where(too_late, last, FOREVER).tolist()
        asked = [(names[people[n]], arrived if keys[n] == "" else keys[n], ends[n]) for n in lines.tolist()]
        kept = lines[journal.keep_new(db, asked, at_most=self.visits, remember=True)]
        journal.add_visits(db, _tallied(first[kept], last[kept], np.ones(len(kept), dtype=np.int64)))

    def _count_visits(self, db: sqlite3.Connection, at: int, events: Events, first: Ints, last: Ints) -> None:
        """Let rows with one key count once in each step in which any of them counts.

        If the first of them counted instead of the others, taking it away would let another one in, and the count
        would rise at the steps of that one.
        """
        keys, names = events.keys or [], events.names or [""]
        single = np.array([key is None for key in keys], dtype=np.bool_)
        journal.add_visits(db, _tallied(first[single], last[single], events.rows[single]))
        people = [0] * len(keys) if events.people is None else events.people.tolist()
        arrived, spans = f"arrived at step {at}", zip(people, keys, first.tolist(), last.tolist(), strict=True)
        asked = [(names[who], key or arrived, low, high) for who, key, low, high in spans if key is not None]
        pieces = np.array(journal.cover_new(db, asked), dtype=np.int64).reshape(-1, 2)
        journal.add_visits(db, _tallied(pieces[:, 0], pieces[:, 1], np.ones(len(pieces), dtype=np.int64)))


@dataclass(frozen=True)
class MapCounting:
    """What counts on a map: visits in the designated time, the first of a person or the first `visits` places."""

    columns: EventColumns
    places: Places
    visits: int | None

    def slot(self) -> Span:
        """Return the designated time, from and until."""
        return self.columns.clock.tick(0), self.columns.clock.tick(1)

    def count(self, db: sqlite3.Connection, at: int, events: Events) -> None:
        """Add what a batch brings at a step."""
        if events.has_time:
            low, high = self.slot()
            events = events.where(events.timed & (events.ticks >= low) & (events.ticks < high))
        if not isinstance(self.places.positions, range):
            events = events.where(np.isin(events.places, np.asarray(self.places.positions, dtype=np.int64)))
        places, visits = events.places, events.rows
        if events.keys is not None or events.people is not None:
            people, places, keys = self._in_order(events)
            names = events.names or [""]
            asked = [(names[person], key, FOREVER) for person, key in zip(people.tolist(), keys, strict=True)]
            places = places[journal.keep_new(db, asked, at_most=self.visits, remember=self.visits != 1)]
            visits = np.ones(len(places), dtype=np.int64)
        totals = np.bincount(places, visits).astype(np.int64)
        found = np.flatnonzero(totals)
        journal.add_to_places(db, zip(found.tolist(), totals[found].tolist(), strict=True))

    def _in_order(self, events: Events) -> tuple[Ints, Ints, Iterable[str | None]]:
        """Return person, place and key of the visits: of each person by time and then place, or of each event."""
        if events.people is None:
            lines = np.repeat(np.arange(len(events.rows)), _visits_in(events))
            places = events.places[lines]
            # Rows with one id count once at each of their places. If one place were chosen, taking that visit away
            # would let another place count in its stead.
            keys = [events.keys[n] if events.keys is not None else None for n in lines.tolist()]
            ids = [None if key is None else f"{at}|{key}" for at, key in zip(places.tolist(), keys, strict=True)]
            return np.zeros(len(lines), dtype=np.int64), places, ids
        if self.visits != 1:
            lines = np.lexsort((events.places, events.ticks, events.people))
            return events.people[lines], events.places[lines], map(str, events.places[lines].tolist())
        # only the first of each person, without sorting all: the least of time and place in one number each
        size = size_of(self.places.attribute)
        moments, when = np.unique(events.ticks, return_inverse=True)
        least = np.full(len(events.names or []), len(moments) * size, dtype=np.int64)
        np.minimum.at(least, events.people, when.reshape(-1) * size + events.places)
        people = np.flatnonzero(least < len(moments) * size)
        return people, least[people] % size, repeat(None, len(people))


def _visits_in(events: Events) -> Ints:
    """Return how many visits each line stands for: rows of one event are one, rows without an id one each."""
    return np.where([key is None for key in events.keys or []], events.rows, 1)


def _tallied(first: Ints, last: Ints, visits: Ints) -> Iterator[tuple[int, int, int]]:
    """Add up visits that count in the same steps."""
    ends, which = np.unique(np.stack([first, last], axis=1), axis=0, return_inverse=True)
    totals = np.bincount(which.reshape(-1), visits, minlength=len(ends)).astype(np.int64)
    return zip(ends[:, 0].tolist(), ends[:, 1].tolist(), totals.tolist(), strict=True)

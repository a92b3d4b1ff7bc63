"""Which visits of a batch count, and when: what a monitor adds to its state, in the transaction of the step.

A visit counts at one place of a map, and at a single place in steps that span at most the window, so that it is in at
most one alarm (`monitor/monitor.py` says why that is needed). Rows that are one visit count where any of them would:
if one of them were chosen, taking it away would let another one count in its place.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

import numpy as np

from tacit.arrays import Ints
from tacit.monitor.events import EventColumns, Events, Span
from tacit.monitor.history import Places

FOREVER: Final = 2**62


@dataclass(frozen=True)
class PlaceCounting:
    """A visit to one place counts from its arrival, until `window` steps after its time; `visits` of a person."""

    columns: EventColumns
    window: int
    visits: int | None

    def count(self, db: sqlite3.Connection, at: int, events: Events) -> None:
        """Add what a batch brings at a step."""
        expire(db, at)
        steps = np.where(events.timed, self.columns.clock.step_of(events.ticks), at)
        near = (steps > at - self.window) & (steps <= at + self.window)
        events, steps = events.where(near), steps[near]
        # from when it has both happened and arrived, until its time leaves the window: at most `window` steps
        first, last = np.maximum(steps, at), steps + self.window - 1
        if events.keys is None:
            add_visits(db, _tallied(first, last, events.rows))
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
        kept = lines[keep_new(db, asked, at_most=self.visits, remember=True)]
        add_visits(db, _tallied(first[kept], last[kept], np.ones(len(kept), dtype=np.int64)))

    def _count_visits(self, db: sqlite3.Connection, at: int, events: Events, first: Ints, last: Ints) -> None:
        """Let rows with one key count once in each step in which any of them counts.

        If the first of them counted instead of the others, taking it away would let another one in, and the count
        would rise at the steps of that one.
        """
        keys, names = events.keys or [], events.names or [""]
        single = np.array([key is None for key in keys], dtype=np.bool_)
        add_visits(db, _tallied(first[single], last[single], events.rows[single]))
        people = [0] * len(keys) if events.people is None else events.people.tolist()
        arrived, spans = f"arrived at step {at}", zip(people, keys, first.tolist(), last.tolist(), strict=True)
        asked = [(names[who], key or arrived, low, high) for who, key, low, high in spans if key is not None]
        pieces = np.array(cover_new(db, asked), dtype=np.int64).reshape(-1, 2)
        add_visits(db, _tallied(pieces[:, 0], pieces[:, 1], np.ones(len(pieces), dtype=np.int64)))


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
            places = places[keep_new(db, asked, at_most=self.visits, remember=self.visits != 1)]
            visits = np.ones(len(places), dtype=np.int64)
        totals = np.bincount(places, visits).astype(np.int64)
        found = np.flatnonzero(totals)
        add_to_places(db, zip(found.tolist(), totals[found].tolist(), strict=True))

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
        size = self.places.attribute.cells
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


def add_visits(db: sqlite3.Connection, visits: Iterable[tuple[int, int, int]]) -> None:
    """Let visits count: (first step, last step, how many)."""
    db.executemany(
        "INSERT INTO private_visits VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET visits = visits + excluded.visits",
        visits,
    )


def add_to_places(db: sqlite3.Connection, visits: Iterable[tuple[int, int]]) -> None:
    """Let visits count: (place, how many)."""
    db.executemany(
        "INSERT INTO private_places VALUES (?, ?) ON CONFLICT DO UPDATE SET visits = visits + excluded.visits", visits
    )


def visits_now(db: sqlite3.Connection, step: int) -> int:
    """Return how many visits count at a step."""
    found = db.execute("SELECT sum(visits) FROM private_visits WHERE first <= ? AND last >= ?", (step, step)).fetchone()
    return int(found[0] or 0)


def visits_by_place(db: sqlite3.Connection) -> list[tuple[int, int]]:
    """Return how many visits count at each place that has any."""
    return db.execute("SELECT place, visits FROM private_places").fetchall()


def expire(db: sqlite3.Connection, step: int) -> None:
    """Forget what counted before this step and never will again."""
    db.execute("DELETE FROM private_visits WHERE last < ?", (step,))
    db.execute("DELETE FROM private_seen WHERE last < ?", (step,))
    db.execute("DELETE FROM private_covered WHERE last < ?", (step,))


def keep_new(
    db: sqlite3.Connection, asked: Sequence[tuple[str, str | None, int]], *, at_most: int | None, remember: bool
) -> list[int]:
    """Return the numbers of the visits that are no duplicate and within the bound of their person; note them.

    A visit is (person, event, last step at which it may count), in the order in which visits of a person are kept;
    the event None is like no other. What is kept of a person depends on this person's visits alone. `at_most` bounds
    the visits of a person that are ever kept; `remember` says that the same event may come again.
    """
    before = _already(db, "private_people", "person, kept", asked) if at_most is not None else []
    seen = set(_already(db, "private_seen", "person, event", asked)) if remember else set()
    many: dict[str, int] = dict(before)
    known, kept = set(seen), []
    for number, (person, event, _) in enumerate(asked):
        if event is not None and (person, event) in known:
            continue
        if at_most is not None:
            if many.get(person, 0) >= at_most:
                continue
            many[person] = many.get(person, 0) + 1
        if event is not None:
            known.add((person, event))
        kept.append(number)
    # in the order of the keys, in which a tree of a million people is built without searching
    if at_most is not None:
        changed = sorted({asked[number][0] for number in kept})
        db.executemany("INSERT OR REPLACE INTO private_people VALUES (?, ?)", ((name, many[name]) for name in changed))
    if remember:
        new = sorted((asked[n][0], event, asked[n][2]) for n in kept if (event := asked[n][1]) is not None)
        db.executemany("INSERT INTO private_seen VALUES (?, ?, ?)", new)
    return kept


def cover_new(db: sqlite3.Connection, asked: Iterable[tuple[str, str, int, int]]) -> list[tuple[int, int]]:
    """Return the steps, as (first, last), in which visits count that did not count already; note them.

    A visit is (person, event, first step, last step). Visits with one key count once in each step that any of them
    asks for: if one of them is taken away, others count where they did before and nowhere else.
    """
    listed = sorted(set(asked))
    covered: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for person, event, first, last in _already(db, "private_covered", "person, event, first, last", listed):
        covered.setdefault((person, event), []).append((first, last))
    new: list[tuple[str, str, int, int]] = []
    for person, event, first, last in listed:
        before = covered.setdefault((person, event), [])
        pieces = [(first, last)]
        for start, end in before:
            halves = ((half, piece) for piece in pieces for half in ((piece[0], start - 1), (end + 1, piece[1])))
            pieces = [(max(a, low), min(b, high)) for (a, b), (low, high) in halves if max(a, low) <= min(b, high)]
        before += pieces
        new += [(person, event, low, high) for low, high in pieces]
    db.executemany("INSERT INTO private_covered VALUES (?, ?, ?, ?)", sorted(new))
    return [(low, high) for _, _, low, high in new]


def _already(db: sqlite3.Connection, table: str, columns: str, asked: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return what is known about the people who ask."""
    if db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is None:  # noqa: S608 - both are ours
        return []
    db.execute("CREATE TEMP TABLE asking (person TEXT PRIMARY KEY) WITHOUT ROWID")
    try:
        db.executemany("INSERT INTO asking VALUES (?)", ((name,) for name in sorted({person for person, *_ in asked})))
        return db.execute(f"SELECT {columns} FROM {table} JOIN asking USING (person)").fetchall()  # noqa: S608
    finally:
        db.execute("DROP TABLE asking")

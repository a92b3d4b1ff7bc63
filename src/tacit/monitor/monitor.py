"""Monitors: whether places are below a threshold, step after step, with one guarantee for the life of the monitor.

Guarantee   For every secret edge hidden -> cover of the monitor's `policy`, which is the one that the ledger is charged
            under and the certificate names, every stream of other visits and every set O of verdict sequences:
            Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O], over the whole life and across restarts. Nothing is
            promised from cover to hidden. "Certainly below" is never wrong about the visits that are counted. That
            policy is the given one about single visits, where visits of a person are not bounded. Where they are, it
            is about persons, whose rows may become any others with the new set of places: it has only edges to sets
            without a monitored place, with `at_most: 1` where the given policy has others (`kept_policy`).
Assumes     The clock is public: batches come, and steps pass, whatever they hold. Nobody but the publisher reads the
            state, and there is one of it: a copy that goes on by itself draws noise of its own about the same visits.
            Along secret edges visits are taken away and never added: derived from the policy, refused otherwise.
Why         "Certainly below" only becomes more likely when a visit is taken away, so it is free; an alarm costs
            epsilon / v for each counted visit of the unit (`monitor/alarm.py`). PlaceMonitor: a visit counts in steps
            that span at most `window`, and after an alarm a public timer lets `window` steps pass, so each visit is in
            at most one alarm; a person's first v visits over the life of the monitor are kept, so a person pays at most
            v times epsilon / v. MapMonitor: a visit counts at one place, and a place alarms at most once. Duplicates
            count where any of them would, so that none counts in the place of another. Of the visits of a person that
            are bounded, one would, and a set of places does not say how often or when somebody was there; so there the
            policy has only edges that take all monitored visits away. When a monitor is silent follows from its
            published verdicts alone.
Reference   Takagi, Cao, Yoshikawa, Asymmetric Differential Privacy, 2020, Algorithms 3 and 4, repaired: the pause there
            depends on the data, and several visits of a person are not accounted for.
Checked by  tests/unit/monitor/test_monitor.py, tests/property/test_monitor_loss.py,
            tests/property/test_monitor_policy.py, tests/contract/test_monitor_crash.py.
"""

from __future__ import annotations

import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from tacit.amounts import as_epsilon, shown
from tacit.drawing import Held, draw
from tacit.errors import InternalError, PlanError, Refused, kind_of, sealed
from tacit.ledger.ledger import Ledger
from tacit.monitor import checks, journal
from tacit.monitor.alarm import NO_VALUE, alarm_noise, chance_certainly_below, decide, decide_all
from tacit.monitor.clock import Clock, as_clock
from tacit.monitor.counting import MapCounting, PlaceCounting, visits_by_place, visits_now
from tacit.monitor.events import OPTIONAL_TIME, EventColumns, Events, Span, batch_name, read_events
from tacit.monitor.history import History, MapVerdict, PlaceVerdict, is_paused, map_time, place_verdict
from tacit.monitor.journal import Alarm, Journal
from tacit.monitor.promises import MapPromise, PlacePromise, Promised
from tacit.noise import is_replayed
from tacit.plan.sensitivity.steps import LargestStep
from tacit.policy.policy import Policy
from tacit.release.certificate import Certificate, along_edges
from tacit.rows.guard import closed

_LISTED: Final = 20  # chances that a certificate lists one by one


class _Monitor(Held, ABC):
    """What both monitors share: settings that never change, a journal, a charge, and one step after the other."""

    def __init__(
        self,
        policy: Policy,
        settings: dict[str, Any],
        columns: EventColumns,
        step: LargestStep,
        *,
        state: str | Path | None,
        ledger: str | Path | Ledger | None,
        dataset: str | None,
        analyst: str | None,
    ) -> None:
        from tacit import __version__

        checks.check_columns(columns, policy)
        checks.check_ledger(ledger, dataset, analyst)
        unit = settings["unit"]
        self.policy = checks.kept_policy(policy, settings["attribute"], unit, self._monitored())
        self.threshold, self.epsilon = int(settings["threshold"]), Fraction(settings["epsilon"])
        self._step, self._visits = settings["step"] * (unit["visits"] or 1), unit["visits"]
        checks.check_scale(self._step, self.epsilon)
        self._law = alarm_noise(self.epsilon, step=self._step)
        self._columns, self._why = columns, step.why
        self._settings = {
            **settings,
            "clock": columns.clock.document(),
            "columns": {"place": columns.place, "person": columns.person, "event": columns.event, "time": columns.time},
            "names": columns.names,
            "policy_fingerprint": self.policy.fingerprint,
            "policy": self.policy.document(),
            "tacit": __version__,
        }
        self._guard = threading.Lock()
        self._journal = Journal(state, self._settings)
        self._columns = replace(columns, names=self._journal.names)
        try:
            self._charge(ledger, dataset, analyst)
        except BaseException:
            self._journal.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the state, so that another process may go on with it. Closing twice is harmless."""
        self._journal.close()

    @property
    def history(self) -> History:
        """Everything that was published so far."""
        return History(self._journal.published())

    @property
    def frame(self) -> Any:
        """The published verdicts as a pandas frame."""
        return self.history.frame

    def chart(self, **options: Any) -> Any:
        """Return a chart of the published verdicts: over time, or with `points=` (where the places are) a map."""
        return draw("monitor", self.history, **options)

    def chance_certainly_below(self, visits: int = 0, *, decisions: int = 1) -> float:
        """Return how likely a place with so many visits is called certainly below, in each of so many decisions."""
        found = chance_certainly_below(visits, self.threshold, self.epsilon, step=self._step, decisions=decisions)
        return float(found)

    @property
    def next_step(self) -> int:
        """The number of the next step, unless the clock jumps ahead."""
        with self._journal.transaction() as db:
            return self._next(db, None)

    def has_taken(self, batch_id: str) -> bool:
        """Say whether a batch with this name was taken."""
        with self._journal.transaction() as db:
            return journal.step_of_batch(db, batch_id) is not None

    @abstractmethod
    def _monitored(self) -> Sequence[int]:
        """Return the positions of the monitored places."""

    # ---- one step ---------------------------------------------------------------------------------------------------

    def _step_of(self, given: list[tuple[Any, Any, Any]]) -> int:
        """Take what was given out of its list, as one step; return the step. No frame keeps it when that fails."""
        return closed(lambda: self._fed(*given.pop()), InternalError("a monitor took a step"))

    def _fed(self, batch: Any, step: int | None, batch_id: str | None) -> int:
        """Take one batch as one step, or find the step at which it was taken; return the step."""
        if batch_id is not None and (not isinstance(batch_id, str) or not batch_id):
            given = "an empty one" if isinstance(batch_id, str) else kind_of(batch_id)
            raise PlanError(f"must be a text, not {given}", key="batch_id", fix="Name the batch, or leave it out.")
        name = batch_name(batch) if batch_id is None else batch_id
        with self._guard:
            with self._journal.transaction() as db:
                taken = journal.step_of_batch(db, name)
                at = self._next(db, step) if taken is None else taken
            if taken is None:
                only, span = self._looked_at(at)
                events = read_events(batch, self._columns, only=only, span=span)
                closed(lambda: self._take(at, name, events), InternalError("a monitor took a step"))
            return at

    def _next(self, db: sqlite3.Connection, asked: int | None) -> int:
        last = journal.last_step(db)
        following = 0 if last is None else last + 1
        step = following if asked is None else checks.whole_number(asked, "step", low=0, fix="Leave it out.")
        if step < following:
            raise PlanError(
                f"must be at least {following}: the clock never goes back", key="step", given=asked, fix="Leave it out."
            )
        return step

    def _take(self, at: int, name: str | None, events: Events) -> None:
        """Write one step in one transaction: what the batch adds, the verdict, and that both happened."""
        with self._journal.transaction() as db:
            if self._next(db, None) > at or journal.step_of_batch(db, name) is not None:
                raise PlanError("was already taken by another monitor of this process", key="step", given=at)
            self._counting().count(db, at, events)
            journal.take_step(db, at, name, replayed=is_replayed())
            journal.add_alarms(db, self._decide(db, at))

    @abstractmethod
    def _looked_at(self, at: int) -> tuple[int | None, Span | None]:
        """Return the one place to look at (None: all) and the times that matter at a step (None: all)."""

    @abstractmethod
    def _counting(self) -> PlaceCounting | MapCounting:
        """Return which events of a batch count."""

    @abstractmethod
    def _decide(self, db: sqlite3.Connection, at: int) -> list[Alarm]:
        """Return the alarms of a step."""

    # ---- the cost ---------------------------------------------------------------------------------------------------

    def _charge(self, ledger: str | Path | Ledger | None, dataset: str | None, analyst: str | None) -> None:
        """Charge the cost of the whole life once, however often the process dies in between.

        The charge is announced in the state before the ledger is asked, and carries the number of the state; if the
        announcement is there without a receipt, the ledger's entries tell whether it was paid.
        """
        with self._journal.transaction() as db:
            if journal.receipt_of(db) is not None:
                return
            was_owed = journal.owed(db)
            if ledger is not None:
                journal.announce_charge(db)
        if ledger is None and was_owed:
            rule = "must be named again: the process ended before the charge was noted"
            fix = "Name the ledger and the data set that the monitor was begun with; nothing is charged twice."
            raise PlanError(rule, key="ledger", fix=fix)
        if ledger is None or dataset is None:
            return
        try:
            paid = self._paid(Ledger(ledger) if isinstance(ledger, str | Path) else ledger, dataset, analyst)
        except Refused:
            if self._journal.is_new:
                self._journal.forget()
            elif not was_owed:
                with self._journal.transaction() as db:
                    journal.withdraw_charge(db)
            raise
        with self._journal.transaction() as db:
            journal.note_charge(db, {"dataset": dataset, "entry": paid[0], "hash": paid[1]})

    def _paid(self, ledger: Ledger, dataset: str, analyst: str | None) -> tuple[int, str]:
        number, place = self._journal.number, self._settings.get("place", "all places")
        for entry in ledger.entries(dataset):
            if entry.kind == "charge" and entry.what.startswith(f"monitor {number}:"):
                return entry.number, entry.hash
        what = f"monitor {number}: {place}, threshold {self.threshold}"
        charge = {"dataset": dataset, "analyst": analyst, "policy": self.policy, "what": what}
        receipt = ledger.charge(epsilon=self.epsilon, **charge)  # type: ignore[arg-type]
        return receipt.entry, receipt.hash

    # ---- what is promised -------------------------------------------------------------------------------------------

    @property
    def certificate(self) -> dict[str, Any]:
        """What the monitor promises, as plain data. Nothing in it depends on an event."""
        return self.promise.document()

    @property
    def promise(self) -> Certificate:
        """What the monitor promises."""
        settings, history, promised = self._settings, self.history, self._promised()
        own = ("attribute", "place", "places", "at", "decide_at", "window")
        return along_edges(
            self.policy,
            self.epsilon,
            subject={
                "monitor": settings["kind"],
                **{key: settings[key] for key in own if key in settings},
                "threshold": self.threshold,
            },
            protects=promised.protects(),
            step={"up": 0, "down": settings["step"], "derivation": list(self._why)},
            mechanism="one-sided geometric noise, compared with the threshold",
            noise={"shape": "two-scale", "right": str(history.law.right), "left": "0", "mean": history.law.mean()},
            replayed=history.replayed or is_replayed(),
            version=settings["tacit"],
            details={
                "unit": settings["unit"],
                "counted": promised.counted(),
                "verdicts": promised.words(),
                "chance_certainly_below": {
                    str(n): self.chance_certainly_below(n) for n in range(min(self.threshold, _LISTED))
                },
                "clock": settings["clock"],
                "columns": settings["columns"],
            },
            ledger=history.receipt,
            edges=f"`policy`, which takes away {promised.taken_away()}",
            others="every stream of other visits",
            outputs="sequences of verdicts",
            scope=", over the whole life of the monitor",
        )

    @abstractmethod
    def _promised(self) -> Promised:
        """Return the words of the promise."""


class PlaceMonitor(_Monitor):
    """Whether one place is below a threshold of recent visits, step after step.

    >>> import tacit as tc
    >>> domain = tc.Domain({"visited": tc.Items(["gym", "cafe"])})
    >>> policy = tc.Policy(domain, secrets=tc.secrets.values({"visited": [1]}))
    >>> with PlaceMonitor(policy, place="gym", threshold=1000, epsilon=1, window=14) as monitor:
    ...     print(monitor.feed([{"visited": "gym"}, {"visited": "cafe"}]).verdict)
    certainly below

    Args:
        policy: what is secret; its edges must never raise the number of visits at the place.
        place: an item, a category, or the name of a flag.
        threshold: a whole number from 1.
        epsilon: what the whole life of the monitor costs, for one unit.
        window: for how many steps a visit counts, and for how many an alarm silences the monitor.
        state: the file that survives crashes and restarts. It is private. None: in memory, for tries.
        attribute: the attribute of the domain, where the place alone does not tell.
        item: the column with the place, if it is not called like the attribute.
        person: the column that says whose visit it is; the policy's, if it names one.
        visits_per_person: makes a person the unit: only the first so many visits of a person ever count.
        event: the column with an id of the event, by which duplicates are told.
        time: the column with the time of the event; None: every event is of the step of its batch.
        start: when step 0 begins: a whole number (0 if not given) or a date.
        every: how long a step lasts: 1 if not given; with a date '1 day', for instance.
        ledger, dataset, analyst: where epsilon is charged, once.
    """

    @sealed
    def __init__(
        self,
        policy: Policy,
        *,
        place: Any,
        threshold: int,
        epsilon: Any,
        window: int,
        state: str | Path | None = None,
        attribute: str | None = None,
        item: str | None = None,
        person: str | None = None,
        visits_per_person: int | None = None,
        event: str | None = None,
        time: str | None = OPTIONAL_TIME,
        start: Any = None,
        every: Any = None,
        ledger: str | Path | Ledger | None = None,
        dataset: str | None = None,
        analyst: str | None = None,
    ) -> None:
        checks.check_policy(policy)
        self.place = place.item() if isinstance(place, np.generic) else place
        name, self._position = checks.place_in(policy.domain, self.place, attribute)
        who, visits = checks.unit_of(policy, person, visits_per_person, default=None)
        step = checks.place_step(policy, name, self.place)
        self.window = checks.whole_number(window, "window", fix="For instance 14: two weeks of daily steps.")
        settings = {
            "kind": "place",
            "attribute": name,
            "place": self.place,
            "threshold": checks.checked_threshold(threshold),
            "epsilon": str(as_epsilon(epsilon)),
            "window": self.window,
            "unit": _unit(who, visits),
            "step": step.down,
        }
        columns = EventColumns(
            policy.domain[name],
            checks.place_column(policy, name, item),
            who,
            checks.column_name(event, "event"),
            checks.column_name(time, "time"),
            as_clock(start, every),
        )
        super().__init__(policy, settings, columns, step, state=state, ledger=ledger, dataset=dataset, analyst=analyst)

    def __repr__(self) -> str:
        return f"PlaceMonitor({self.place!r}, threshold {self.threshold:,}, epsilon {shown(self.epsilon)})"

    # not `sealed`: that would take what the handler of a signal raised for a fault of ours; `closed` gives it back
    def feed(self, batch: Any = None, *, step: int | None = None, batch_id: str | None = None) -> PlaceVerdict:
        """Take one batch of events as one step of the clock and return the verdict; all of it happens, or nothing.

        A batch is a path or pattern, a frame, an iterable of records, or None for a step without events. A file that
        is fed again, or a batch with a `batch_id` that was taken before, returns the verdict that was given then.
        `step` lets the clock jump ahead.
        """
        given = [(batch, step, batch_id)]
        del batch, step, batch_id  # what is raised keeps this frame, and a debugger would print it
        at = self._step_of(given)
        with self._journal.transaction() as db:
            last = journal.last_alarm(db, at)
        return place_verdict(at, self._columns.clock.shown(at), self.place, last, self.window, self._law)

    def _monitored(self) -> Sequence[int]:
        return (self._position,)

    def _looked_at(self, at: int) -> tuple[int | None, Span | None]:
        clock = self._columns.clock
        return self._position, (clock.tick(at - self.window + 1), clock.tick(at + self.window + 1))

    def _decide(self, db: sqlite3.Connection, at: int) -> list[Alarm]:
        if self._is_paused(db, at):
            return []
        value = decide(visits_now(db, at), self.threshold, self.epsilon, step=self._step)
        return [] if value is None else [Alarm(at, self._position, value)]

    def _is_paused(self, db: sqlite3.Connection, at: int) -> bool:
        """Say whether the public timer of the last alarm still runs. Nothing private may be looked at here."""
        return is_paused(at, journal.last_alarm(db, at), self.window)

    def _counting(self) -> PlaceCounting:
        return PlaceCounting(self._columns, self.window, self._visits)

    def _promised(self) -> PlacePromise:
        return PlacePromise(self.threshold, self.epsilon, self._visits, self._columns, self.window)


class MapMonitor(_Monitor):
    """Whether each of many places is below a threshold of visits at one designated time, updated batch after batch.

    Protects "was at A -> was nowhere", not "was at A -> was at B". A place that has alarmed is not answered again.

    >>> import tacit as tc
    >>> domain = tc.Domain({"visited": tc.Items(["gym", "cafe"])})
    >>> policy = tc.Policy(domain, secrets=tc.secrets.values({"visited": [1]}))
    >>> with MapMonitor(policy, threshold=1000, epsilon=1, at=7) as monitor:
    ...     print(monitor.feed([{"visited": "gym", "time": 7}])["cafe"].verdict)
    certainly below

    Args:
        policy: what is secret; its edges must never raise the number of visits at any place.
        threshold: a whole number from 1, for every place.
        epsilon: what the whole life of the monitor costs, for one unit.
        at: when the designated time begins: a number or a date. None: all events that are fed.
        every: how long it lasts: 1 if not given; with a date '1 hour', for instance.
        decide_at: the steps at which places are decided, if not all: each decision may be a false alarm, for ever.
        places: the places to monitor; all if not given.
        person: the column that says whose visit it is. Then the unit is a person, of whom the first visit counts, or
            the first `visits_per_person` at different places.
        state, attribute, item, event, time, ledger, dataset, analyst: as for `PlaceMonitor`.
    """

    @sealed
    def __init__(
        self,
        policy: Policy,
        *,
        threshold: int,
        epsilon: Any,
        at: Any = None,
        every: Any = None,
        decide_at: Iterable[int] | None = None,
        state: str | Path | None = None,
        attribute: str | None = None,
        places: Sequence[Any] | None = None,
        item: str | None = None,
        person: str | None = None,
        visits_per_person: int | None = None,
        event: str | None = None,
        time: str | None = OPTIONAL_TIME,
        ledger: str | Path | Ledger | None = None,
        dataset: str | None = None,
        analyst: str | None = None,
    ) -> None:
        checks.check_policy(policy)
        name, watched = checks.map_attribute(policy.domain, attribute)
        self.places = checks.monitored(watched, places)
        who, visits = checks.unit_of(policy, person, visits_per_person, default=1)
        if event is not None and who is not None:
            raise PlanError("must not be given with a person, who counts once at each place", key="event", given=event)
        step = checks.map_step(policy, name, self.places)
        when = None if at is None else checks.column_name(time, "time")
        settings = {
            "kind": "map",
            "attribute": name,
            "places": self.places.document(),
            "at": None if at is None else str(at),
            "decide_at": checks.decision_steps(decide_at),
            "threshold": checks.checked_threshold(threshold),
            "epsilon": str(as_epsilon(epsilon)),
            "unit": _unit(who, visits),
            "step": 1,
        }
        columns = EventColumns(
            watched,
            checks.place_column(policy, name, item),
            who,
            checks.column_name(event, "event"),
            when,
            Clock() if when is None else as_clock(at, every, start_key="at"),
        )
        super().__init__(policy, settings, columns, step, state=state, ledger=ledger, dataset=dataset, analyst=analyst)

    def __repr__(self) -> str:
        many = len(self.places.positions)
        return f"MapMonitor({many:,} places, threshold {self.threshold:,}, epsilon {shown(self.epsilon)})"

    # not `sealed`: that would take what the handler of a signal raised for a fault of ours; `closed` gives it back
    def feed(self, batch: Any = None, *, step: int | None = None, batch_id: str | None = None) -> MapVerdict:
        """Take one batch of events as one update and return the verdict on every place; see `PlaceMonitor.feed`."""
        given = [(batch, step, batch_id)]
        del batch, step, batch_id  # what is raised keeps this frame, and a debugger would print it
        at = self._step_of(given)
        with self._journal.transaction() as db:
            alarms = journal.alarms_until(db, at)
        asked = self._is_asked(at)
        return MapVerdict(at, map_time(self._settings, at), self.places, alarms, self._law, asked=asked)

    def _is_asked(self, at: int) -> bool:
        """Say whether places are decided at a step: a public choice."""
        return self._settings["decide_at"] is None or at in self._settings["decide_at"]

    def _monitored(self) -> Sequence[int]:
        return self.places.positions

    def _looked_at(self, at: int) -> tuple[int | None, Span | None]:
        return None, self._counting().slot()

    def _decide(self, db: sqlite3.Connection, at: int) -> list[Alarm]:
        if not self._is_asked(at):
            return []
        counts = np.zeros(self.places.attribute.cells, dtype=np.int64)
        for place, visits in visits_by_place(db):
            counts[place] = visits
        positions = np.asarray(self.places.positions, dtype=np.int64)
        # noise for every place, also for those that are not answered: how much is drawn depends on nothing
        values = decide_all(counts[positions], self.threshold, self.epsilon, step=self._step)
        values[np.isin(positions, np.array(journal.alarmed_places(db), dtype=np.int64))] = NO_VALUE
        rung = np.flatnonzero(values != NO_VALUE)
        return [Alarm(at, int(positions[line]), int(values[line])) for line in rung]

    def _counting(self) -> MapCounting:
        return MapCounting(self._columns, self.places, self._visits)

    def _promised(self) -> MapPromise:
        some = self._settings["decide_at"] is not None
        return MapPromise(self.threshold, self.epsilon, self._visits, self._columns, is_asked_at_times=some)


def _unit(person: str | None, visits: int | None) -> dict[str, Any]:
    return {"of": "visit" if visits is None else "person", "person": person if visits else None, "visits": visits}

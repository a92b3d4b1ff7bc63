"""The loss of a monitor over its whole life, exact: every stream of a small case, every sequence of verdicts.

The monitors run as they are; only their decisions are scripted, so that every sequence of verdicts is visited and the
count behind each decision is seen. The probability of a sequence is then the product over its decisions, by the law of
the noise. Two planted monitors show that the enumeration finds what leaks.
"""

import math
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import pytest

import tacit as tc
from tacit.monitor import monitor
from tacit.monitor.alarm import NO_VALUE
from tacit.monitor.events import Events

T, WINDOW, STEPS = 2, 2, 4
VALUES = (T, T + 1, T + 3)
EPSILON = 1.0
POLICY = tc.Policy(tc.Domain({"visited": tc.Items(["here", "there"])}), secrets=tc.secrets.values({"visited": [1]}))
SILENT = "silent"

# a visit of a stream: who, when it arrives, when it happened, where
Visit = tuple[str, int, int, int]
Stream = tuple[Visit, ...]


def events(visits: Iterable[Visit], *, people: bool) -> Events:
    """Return a batch as it is after reading."""
    listed = list(visits)
    names = sorted({who for who, *_ in listed})
    count = len(listed)
    return Events(
        rows=np.ones(count, dtype=np.int64),
        places=np.array([place for *_, place in listed], dtype=np.int64),
        ticks=np.array([when for _, _, when, _ in listed], dtype=np.int64),
        timed=np.ones(count, dtype=np.bool_),
        people=np.array([names.index(who) for who, *_ in listed], dtype=np.int64) if people else None,
        names=names if people else None,
        keys=[str(when) for _, _, when, _ in listed] if people else None,
        has_time=True,
    )


def subsets(visits: Iterable[Visit]) -> Iterator[Stream]:
    listed = list(visits)
    return chain.from_iterable(combinations(listed, size) for size in range(len(listed) + 1))


@cache
def log_chance(law: Any) -> Any:
    """Return the logarithm of the probability of one verdict (None: below), given the count behind it."""

    @cache
    def said(count: Any, verdict: Any) -> float:
        if SILENT in (count, verdict):
            return 0.0 if count == verdict else -math.inf
        chance = float(law.cdf(T - 1 - count) if verdict is None else law.pmf(verdict - count))
        return math.log(chance) if chance > 0 else -math.inf

    return said


def log_probability(law: Any, counts: Iterable[Any], said: Iterable[Any]) -> float:
    """Return the logarithm of the probability of a sequence of verdicts, given the counts behind it."""
    chance = log_chance(law)
    return sum(chance(count, verdict) for count, verdict in zip(counts, said, strict=True))


def worst(law: Any, hidden: Any, cover: Any, said: Iterable[Any]) -> float:
    """Return the largest log ratio over sequences of verdicts; `hidden` and `cover` give the counts behind each."""
    found = -math.inf
    for verdicts in said:
        ours = log_probability(law, hidden(verdicts), verdicts)
        if ours > -math.inf:
            theirs = log_probability(law, cover(verdicts), verdicts)
            found = max(found, math.inf if theirs == -math.inf else ours - theirs)
    return found


class Player:
    """Plays streams against a place monitor with scripted alarms, and remembers what was behind each decision."""

    def __init__(self, patch: pytest.MonkeyPatch, kind: type = tc.PlaceMonitor, **options: Any) -> None:
        self.kind, self.options, self.people = kind, options, "person" in options
        self.known: dict[Any, tuple[Any, ...]] = {}
        self.law: Any = None
        patch.setattr(monitor, "decide", self._decide)

    def _decide(self, count: int, threshold: int, epsilon: Any, *, step: int) -> int | None:
        self.counts[-1] = count
        return T if self.alarms[len(self.counts) - 1] else None

    def counts_behind(self, stream: Stream, alarms: tuple[bool, ...]) -> tuple[Any, ...]:
        """Return the count behind each decision, or that there was none, if alarms are raised at these steps."""
        if (stream, alarms) not in self.known:
            self.alarms, self.counts = alarms, []
            options = {"threshold": T, "epsilon": EPSILON, "window": WINDOW, **self.options}
            with self.kind(POLICY, place="here", **options) as played:
                for step in range(STEPS):
                    self.counts.append(SILENT)
                    arriving = [visit for visit in stream if visit[1] == step]
                    played._take(step, None, events(arriving, people=self.people))
                self.law = played.history.law
            self.known[stream, alarms] = tuple(self.counts)
        return self.known[stream, alarms]

    def loss(self, hidden: Stream, cover: Stream) -> float:
        """Return the exact loss of one pair of streams."""

        def behind(stream: Stream) -> Any:
            return lambda said: self.counts_behind(stream, tuple(isinstance(verdict, int) for verdict in said))

        self.counts_behind(hidden, (False,) * STEPS)
        return worst(self.law, behind(hidden), behind(cover), product((None, SILENT, *VALUES), repeat=STEPS))


# in time, late by one (which is all that a window of 2 allows), early by one
VISITS: Stream = (("a", 0, 0, 0), ("b", 1, 1, 0), ("c", 1, 0, 0), ("d", 2, 2, 0), ("e", 1, 2, 0), ("f", 3, 2, 0))


def test_one_visit_pays_epsilon_over_the_whole_life(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Player(monkeypatch)
    losses = {
        (hidden, gone): play.loss(hidden, tuple(visit for visit in hidden if visit != gone))
        for hidden in subsets(VISITS[:5])
        for gone in hidden
    }
    assert len(losses) == 80
    assert max(losses.values()) == pytest.approx(EPSILON, abs=1e-9)


def test_every_single_visit_is_worth_hiding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Late and early visits count as well: alone in the stream, each reaches epsilon."""
    play = Player(monkeypatch)
    assert [play.loss((visit,), ()) for visit in VISITS] == pytest.approx([EPSILON] * len(VISITS), abs=1e-9)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("bound", [1, 2, 3])
def test_a_person_with_bounded_visits_pays_epsilon(monkeypatch: pytest.MonkeyPatch, bound: int) -> None:
    play = Player(monkeypatch, person="u", visits_per_person=bound)
    theirs = [("p", 0, 0, 0), ("p", 1, 1, 0), ("p", 2, 2, 0)]
    others: Stream = (("a", 1, 1, 0), ("b", 2, 1, 0))
    losses = [
        play.loss(others + hidden, others + cover)
        for hidden in subsets(theirs)
        if len(hidden) <= bound
        for cover in subsets(hidden)
    ]
    # a window of 2 holds two of their visits, and the third is in another alarm: all of them are paid for
    assert max(losses) == pytest.approx(EPSILON, abs=1e-9)


def test_an_unbounded_person_pays_for_every_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the certificate of a monitor of single visits says: again for each further alarm."""
    play = Player(monkeypatch)
    theirs: Stream = (("p", 0, 0, 0), ("p", 0, 0, 0), ("p", 2, 2, 0))
    assert play.loss(theirs, ()) == pytest.approx(3 * EPSILON, abs=1e-9)


def test_a_person_over_the_bound_is_covered_as_the_certificate_says(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Player(monkeypatch, person="u", visits_per_person=2)
    theirs: Stream = (("p", 0, 0, 0), ("p", 1, 1, 0), ("p", 3, 3, 0))
    other: Stream = (("a", 3, 3, 0),)
    for cover in subsets(theirs[:2]):  # any of the counted ones, and none of those that are not
        assert play.loss(theirs + other, cover + other) <= EPSILON + 1e-9
    # not promised: were only the first taken away, the third would count in its place
    assert play.loss(theirs + other, theirs[1:] + other) == math.inf


class PausedByData(tc.PlaceMonitor):
    """WRONG ON PURPOSE: silent as long as a counted visit of the last alarm is there, as the paper has it."""

    def _is_paused(self, db: Any, at: int) -> bool:
        last = monitor.journal.last_alarm(db, at)
        if last is None:
            return False
        older = db.execute("SELECT 1 FROM private_visits WHERE first <= ? AND last >= ?", (last.step, at))
        return older.fetchone() is not None


class NeverPaused(tc.PlaceMonitor):
    """WRONG ON PURPOSE: answers right after an alarm."""

    def _is_paused(self, db: Any, at: int) -> bool:
        return False


def test_a_pause_that_depends_on_the_data_leaks_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Player(monkeypatch, PausedByData)
    assert play.loss(VISITS[:1], ()) == math.inf


def test_without_a_pause_a_visit_pays_in_every_step_of_its_window(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Player(monkeypatch, NeverPaused)
    assert play.loss(VISITS[:1], ()) == pytest.approx(WINDOW * EPSILON, abs=1e-9)


class MapPlayer:
    """Plays streams against a map monitor of two places."""

    UPDATES = 2

    def __init__(self, patch: pytest.MonkeyPatch, **options: Any) -> None:
        self.options, self.people = options, "person" in options
        self.known: dict[Any, tuple[Any, ...]] = {}
        patch.setattr(monitor, "decide_all", self._decide_all)

    def _decide_all(self, counts: Any, threshold: int, epsilon: Any, *, step: int) -> Any:
        self.counts.extend(counts.tolist())
        here = self.alarms[len(self.counts) - 2 : len(self.counts)]
        return np.where(np.array(here), T, NO_VALUE)

    def counts_behind(self, stream: Stream, said: tuple[Any, ...]) -> tuple[Any, ...]:
        alarms = tuple(isinstance(verdict, int) for verdict in said)
        if (stream, alarms) not in self.known:
            self.alarms, self.counts = alarms, []
            options = {"threshold": T, "epsilon": EPSILON, "at": 0, **self.options}
            with tc.MapMonitor(POLICY, **options) as played:
                for step in range(self.UPDATES):
                    arriving = [visit for visit in stream if visit[1] == step]
                    played._take(step, None, events(arriving, people=self.people))
                self.law, published = played.history.law, played.history
            first = {verdict.place: verdict.step for verdict in published.verdicts}
            for place, name in enumerate(("here", "there")):
                for step in range(first.get(name, self.UPDATES) + 1, self.UPDATES):
                    self.counts[2 * step + place] = SILENT  # already alarmed: nothing is said
            self.known[stream, alarms] = tuple(self.counts)
        return self.known[stream, alarms]

    def loss(self, hidden: Stream, cover: Stream) -> float:
        self.counts_behind(hidden, (None,) * 4)
        said = product((None, SILENT, *VALUES), repeat=2 * self.UPDATES)
        return worst(
            self.law,
            lambda verdicts: self.counts_behind(hidden, verdicts),
            lambda verdicts: self.counts_behind(cover, verdicts),
            said,
        )


AT_A, AT_B, LATER_AT_A = ("p", 0, 0, 0), ("p", 0, 0, 1), ("q", 1, 0, 0)
MAP: Stream = (AT_A, ("q", 0, 0, 1), LATER_AT_A, ("r", 1, 0, 1))


def test_one_visit_on_a_map_pays_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    play = MapPlayer(monkeypatch)
    losses = [
        play.loss(hidden, tuple(visit for visit in hidden if visit != gone))
        for hidden in subsets(MAP)
        for gone in hidden
    ]
    assert max(losses) == pytest.approx(EPSILON, abs=1e-9)


def test_two_places_of_one_person_on_a_map_of_visits_cost_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MapPlayer(monkeypatch).loss((AT_A, AT_B), ()) == pytest.approx(2 * EPSILON, abs=1e-9)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("bound", [1, 2])
def test_a_person_on_a_map_pays_epsilon(monkeypatch: pytest.MonkeyPatch, bound: int) -> None:
    play = MapPlayer(monkeypatch, person="u", visits_per_person=bound)
    others: Stream = (("a", 0, 0, 0), ("b", 1, 0, 1))
    theirs = (AT_A, AT_B, ("p", 1, 0, 0))
    losses = [play.loss(others + hidden, others) for hidden in subsets(theirs)]
    assert max(losses) == pytest.approx(EPSILON, abs=1e-9)


def test_being_elsewhere_is_not_protected_by_a_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the certificate says: nowhere, not elsewhere."""
    other = ("a", 0, 0, 1)
    assert MapPlayer(monkeypatch, person="u").loss((AT_A, other), (AT_B, other)) == math.inf

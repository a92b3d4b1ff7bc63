"""A monitor keeps every edge of the policy that its ledger entry names: small streams, all of them, exactly.

Streams are fed as records, as a user feeds them, to monitors that are charged in a ledger. Only the decision is
listened to, for the counts behind it. From these counts and the law of the noise the worst log ratio over all sequences
of verdicts follows. Neighbours come from the charged policy and the definition (`policy/inclusion.py`): without a
person one row is taken away; with one, the rows of a person become any others, as long as what counts of them (the set
of their places, whichever `at_most` leaves of it) moves along an edge.
"""

import math
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit as tc
from tacit.monitor import checks, monitor
from tacit.monitor.alarm import NO_VALUE
from tacit.monitor.events import Events, read_events

T, WINDOW, STEPS, EPSILON = 1, 2, 4, 1.0
NAMES = ("gym", "cafe")
POLICY = tc.Policy(tc.Domain({"v": tc.Items(list(NAMES))}), tc.secrets.values({"v": [1]}))
Row = dict[str, Any]
Stream = tuple[tuple[int, Row], ...]  # the step at which a row arrives, and the row


READ: dict[str, Events] = {}


def read_once(batch: Any, columns: Any, **more: Any) -> Events:
    """Read a batch, as a monitor does; streams share most of theirs, and opening a reader for each takes longest."""
    name = repr((batch, columns, more))
    if name not in READ:
        READ[name] = read_events(batch, columns, **more)
        for array in (READ[name].rows, READ[name].places, READ[name].ticks, READ[name].timed, READ[name].people):
            if array is not None:
                array.flags.writeable = False  # what one stream does to it, another would see
    return READ[name]


class Listener:
    """Plays a stream against a monitor that never alarms, and hears the counts behind its decisions."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path, kind: type, policy: tc.Policy, **options: Any) -> None:
        self.kind, self.given, self.options = kind, policy, {"threshold": T, "epsilon": EPSILON, **options}
        self.known: dict[str, list[list[int]]] = {}
        patch.setattr(monitor, "read_events", read_once)
        patch.setattr(monitor, "decide", self._decide)
        patch.setattr(monitor, "decide_all", self._decide_all)
        folder.mkdir(exist_ok=True)
        with tc.Ledger(folder / "ledger.db") as ledger:
            ledger.grant(dataset="town", epsilon=EPSILON)
            with kind(policy, **self.options, ledger=ledger, dataset="town") as played:
                self.charged, self.law = played.policy, played.history.law
            assert ledger.entries("town")[-1].policy == self.charged.fingerprint

    def _decide(self, count: int, *_: Any, **__: Any) -> None:
        self.heard.append([count])

    def _decide_all(self, counts: Any, *_: Any, **__: Any) -> Any:
        self.heard.append(counts.tolist())
        return np.full(len(counts), NO_VALUE)

    def counts(self, stream: Stream) -> list[list[int]]:
        """Return the counts at each place, step by step."""
        name = repr(sorted(stream, key=repr))
        if name not in self.known:
            self.heard: list[list[int]] = []
            with self.kind(self.given, **self.options) as played:
                for step in range(STEPS):
                    played.feed([row for at, row in stream if at == step])
            self.known[name] = [list(counts) for counts in zip(*self.heard, strict=True)]
        return self.known[name]

    def loss(self, hidden: Stream, cover: Stream) -> float:
        """Return the worst log ratio; noise at different places is independent, so their worst cases add up."""
        rests = WINDOW if self.kind is tc.PlaceMonitor else STEPS  # for how long an alarm silences its place
        pairs = zip(self.counts(hidden), self.counts(cover), strict=True)
        return sum(worst(self.law, tuple(before), tuple(after), rests) for before, after in pairs)


@cache
def worst(law: Any, hidden: tuple[int, ...], cover: tuple[int, ...], rests: int) -> float:
    """Return the worst log ratio of one place over all sequences of verdicts (None: certainly below).

    Each verdict adds its ratio to that of the rest of the sequence, so the worst sequence goes on with a worst rest.
    """

    def chance(count: int, verdict: int | None) -> float:
        return float(law.cdf(T - 1 - count) if verdict is None else law.pmf(verdict - count))

    @cache
    def from_step(step: int) -> float:
        if step >= STEPS:
            return 0.0
        found = -math.inf
        for verdict in (None, *range(T, T + 4)):
            ours, theirs = chance(hidden[step], verdict), chance(cover[step], verdict)
            rest = from_step(step + (1 if verdict is None else rests))
            if ours > 0 and rest > -math.inf:  # else hidden never says so
                found = max(found, rest + (math.log(ours / theirs) if theirs > 0 else math.inf))
        return found

    return from_step(0)


def neighbours(policy: tc.Policy, listed: list[Stream]) -> Iterator[tuple[Stream, Stream]]:
    """Go through the pairs of streams, hidden and cover, that an edge of the policy joins."""
    if policy.person is None:
        for stream in listed:
            for gone, (_, row) in enumerate(stream):
                if policy.has_edge({"v": [row["v"]]}, {"v": []}):
                    yield stream, tuple(one for place, one in enumerate(stream) if place != gone)
        return
    for hidden, cover in product(listed, repeat=2):
        before, after = by_person(policy, hidden), by_person(policy, cover)
        moved = [who for who in {*before, *after} if before.get(who, []) != after.get(who, [])]
        if len(moved) == 1 and joined(policy, places(before, moved[0]), places(after, moved[0])):
            yield hidden, cover


def by_person(policy: tc.Policy, stream: Stream) -> dict[Any, list[tuple[int, Row]]]:
    found: dict[Any, list[tuple[int, Row]]] = {}
    for one in stream:
        found.setdefault(one[1][policy.person], []).append(one)
    return found


def places(people: dict[Any, list[tuple[int, Row]]], who: Any) -> frozenset[str]:
    return frozenset(row["v"] for _, row in people.get(who, []))


@cache
def joined(policy: tc.Policy, before: frozenset[str], after: frozenset[str]) -> bool:
    """Say whether what counts of a person may move so: whichever places are cut off, whatever else is in the record."""
    return any(policy.has_edge(a, b) for a, b in product(records(policy, before), records(policy, after)))


def records(policy: tc.Policy, there: frozenset[str]) -> list[dict[str, Any]]:
    domain = policy.domain
    others = {name: one.values for name, one in domain.items() if isinstance(one, tc.Categories)}
    sets = combinations(sorted(there), min(len(there), domain["v"].most_items))
    return [{**dict(zip(others, rest, strict=True)), "v": list(v)} for v in sets for rest in product(*others.values())]


def streams(rows: Iterable[tuple[int, Row]], most: int) -> list[Stream]:
    listed = list(rows)
    return list(chain.from_iterable(combinations(listed, many) for many in range(most + 1)))


def rows_of(number: Any = None) -> list[tuple[int, Row]]:
    """Rows of one person, in time, late, early and without a readable time, and one of somebody else."""
    own = ((0, "gym", 0), (1, "gym", 0), (1, "gym", 2), (3, "gym", None), (0, "cafe", 0))
    found = [(at, {"v": place, "who": 1, "id": number, "time": time}) for at, place, time in own]
    return [*found, (1, {"v": "gym", "who": 2, "id": number, "time": 1})]


PLACE = {"place": "gym", "window": WINDOW}
CASES: dict[str, tuple[type, tc.Policy, dict[str, Any], list[tuple[int, Row]]]] = {
    "place, visits": (tc.PlaceMonitor, POLICY, PLACE, rows_of()),
    "place, visits told apart by person": (tc.PlaceMonitor, POLICY, {**PLACE, "person": "who"}, rows_of()),
    "place, visits with ids": (tc.PlaceMonitor, POLICY, {**PLACE, "event": "id"}, rows_of(7)),
    "place, visits with ids and persons": (
        tc.PlaceMonitor,
        POLICY,
        {**PLACE, "event": "id", "person": "who"},
        rows_of(7),
    ),
    "place, one visit of a person": (
        tc.PlaceMonitor,
        POLICY,
        {**PLACE, "person": "who", "visits_per_person": 1},
        rows_of(),
    ),
    "place, two visits of a person": (
        tc.PlaceMonitor,
        POLICY,
        {**PLACE, "person": "who", "visits_per_person": 2},
        rows_of(),
    ),
    "place, a policy about persons": (tc.PlaceMonitor, POLICY.owned_by("who", 1), PLACE, rows_of()),
    "map, visits": (tc.MapMonitor, POLICY, {"time": None}, rows_of()),
    "map, visits with ids": (tc.MapMonitor, POLICY, {"time": None, "event": "id"}, rows_of(7)),
    "map, one visit of a person": (tc.MapMonitor, POLICY, {"time": None, "person": "who"}, rows_of()),
    "map, two visits of a person": (
        tc.MapMonitor,
        POLICY,
        {"time": None, "person": "who", "visits_per_person": 2},
        rows_of(),
    ),
    "map, a policy about persons": (tc.MapMonitor, POLICY.owned_by("who", 1), {"time": None}, rows_of()),
    "map, at one time": (tc.MapMonitor, POLICY, {"at": 0, "person": "who", "visits_per_person": 2}, rows_of()),
}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("case", CASES)
def test_every_edge_of_the_charged_policy_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, case: str) -> None:
    kind, policy, options, rows = CASES[case]
    play = Listener(monkeypatch, tmp_path, kind, policy, **options)
    listed = streams(rows, 3 if "two" in case else 2)
    losses = [play.loss(hidden, cover) for hidden, cover in neighbours(play.charged, listed)]
    assert len(losses) > 15
    assert max(losses) <= EPSILON + 1e-9
    assert max(losses) > EPSILON / 3  # and something is there to be hidden


# ---- every kind of edge, of a person --------------------------------------------------------------------------------

WARD = tc.Categories(["A", "B"])
THREE = ["gym", "cafe", "bar"]
AWAY = tc.secrets.values({"v": [1]})
SETS, SINGLE = tc.Domain({"v": tc.Items(THREE)}), tc.Domain({"v": tc.Items(THREE, at_most=1)})
TWO = tc.Domain({"v": tc.Items(THREE, at_most=2)})
ONE_PLACE = tc.Domain({"v": tc.Items(["gym"])})
WARDS = tc.Domain({"ward": WARD, "v": tc.Items(THREE)})
WARDS_SINGLE = tc.Domain({"ward": WARD, "v": tc.Items(THREE, at_most=1)})
WARD_OF_ONE = tc.Domain({"ward": tc.Categories(["A"]), "v": tc.Items(THREE)})


def from_to(*sides: list[str]) -> Any:
    return tc.secrets.pairs(
        [({"v": hidden}, {"v": cover}) for hidden, cover in zip(sides[::2], sides[1::2], strict=True)]
    )


def in_ward(hidden: tuple[str, list[str]], cover: tuple[str, list[str]]) -> Any:
    return tc.secrets.pairs([({"ward": hidden[0], "v": hidden[1]}, {"ward": cover[0], "v": cover[1]})])


# what is charged of a place and of a map: the policy as "given", that with at most "one" place, or it is "refused"
PERSONS: dict[str, tuple[tc.Domain, Any, str, str]] = {
    "any place goes": (SETS, AWAY, "one", "one"),
    "any of two places goes": (TWO, AWAY, "one", "one"),
    "the only place goes": (SINGLE, AWAY, "given", "given"),
    "one place": (ONE_PLACE, AWAY, "given", "given"),
    "any place goes, in wards": (WARDS, AWAY, "one", "one"),
    "the only place goes, in wards": (WARDS_SINGLE, AWAY, "given", "given"),
    "the place goes, or the ward moves": (WARDS, AWAY | tc.secrets.attributes("ward"), "refused", "refused"),
    "the only place goes, or the ward moves": (
        WARDS_SINGLE,
        AWAY | tc.secrets.attributes("ward"),
        "refused",
        "refused",
    ),
    "the place goes, and the ward may move": (
        WARDS_SINGLE,
        tc.secrets.values({"v": [1], "ward": ["A"]}),
        "refused",
        "refused",
    ),
    "the ward cannot move": (WARD_OF_ONE, AWAY | tc.secrets.attributes("ward"), "one", "one"),
    "both go at once": (WARDS, in_ward(("A", ["gym"]), ("B", [])), "given", "given"),
    "the ward of one who is there": (WARDS, AWAY | in_ward(("A", ["gym"]), ("B", ["gym"])), "refused", "refused"),
    "the ward of one who is nowhere": (WARDS, AWAY | in_ward(("A", []), ("B", [])), "one", "one"),
    "listed, to nowhere": (SETS, from_to(["gym"], []), "given", "given"),
    "a set, to nowhere": (SETS, from_to(["gym", "cafe"], []), "given", "given"),
    "one of a set": (SETS, from_to(["gym", "cafe"], ["cafe"]), "given", "refused"),
    "another of a set": (SETS, from_to(["gym"], [], ["gym", "cafe"], ["gym"]), "refused", "refused"),
    "the only one, or to another": (SINGLE, AWAY | from_to(["cafe"], ["bar"]), "refused", "refused"),
    "one, or two for two": (TWO, from_to(["gym"], [], ["gym", "cafe"], ["cafe", "bar"]), "refused", "refused"),
    "one, or one for one of two": (TWO, from_to(["gym"], [], ["cafe"], ["bar"]), "given", "refused"),
}
TOLD: dict[str, tuple[type, dict[str, Any]]] = {"place": (tc.PlaceMonitor, PLACE), "map": (tc.MapMonitor, {})}


def persons_rows(domain: tc.Domain) -> list[tuple[int, Row]]:
    own = ((0, "gym"), (2, "gym"), (0, "cafe"), (2, "cafe"), (1, "bar"))
    return [
        (at, {"v": place, "who": 1, "id": n}) for n, (at, place) in enumerate(own) if domain["v"].count > 1 or n < 2
    ]


LONG = {name for name, (domain, *_) in PERSONS.items() if domain is TWO}  # streams of three visits, seconds each


@pytest.mark.one_in(16)
@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("case", [pytest.param(n, marks=[pytest.mark.slow] if n in LONG else []) for n in PERSONS])
def test_a_monitor_of_persons_keeps_all_edges_or_charges_fewer_or_refuses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, case: str, told: str
) -> None:
    domain, secrets, *said = PERSONS[case]
    (kind, options), outcome = TOLD[told], said[list(TOLD).index(told)]
    policy = tc.Policy(domain, secrets, person="who")
    options = {**options, "time": None, "visits_per_person": 2}
    listed = streams(persons_rows(domain), 3 if domain is TWO else 2)
    if outcome != "refused":
        play = Listener(monkeypatch, tmp_path, kind, policy, **options)
        assert play.charged.domain["v"].most_items == (1 if outcome == "one" else domain["v"].most_items)
        losses = [play.loss(hidden, cover) for hidden, cover in neighbours(play.charged, listed)]
        assert 0 < max(losses) <= EPSILON + 1e-9
    else:
        with pytest.raises(tc.PlanError, match="must "):
            kind(policy, threshold=T, epsilon=EPSILON, **options)
    if outcome != "given":  # and not for nothing: as it was given, the policy has an edge that would be broken
        monkeypatch.setattr(checks, "kept_policy", lambda given, *_: given)
        monkeypatch.setattr(checks, "map_step", lambda given, name, _: checks.place_step(given, name, "gym"))
        play = Listener(monkeypatch, tmp_path / "again", kind, policy, **options)
        assert max(play.loss(hidden, cover) for hidden, cover in neighbours(policy, listed)) == math.inf


def test_knowledge_that_an_edge_changes_is_refused() -> None:
    moving = tc.secrets.pairs([({"ward": "A", "v": ["gym"]}, {"ward": "B", "v": []})])
    for kind, options in TOLD.values():
        kind(tc.Policy(WARDS, AWAY, tc.known.marginal("ward")), threshold=T, epsilon=EPSILON, **options).close()
        with pytest.raises(tc.PlanError, match="known must not be what a secret edge changes"):
            kind(tc.Policy(WARDS, moving, tc.known.marginal("ward")), threshold=T, epsilon=EPSILON, **options)

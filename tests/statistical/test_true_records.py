"""True records under audit: whole releases on made-up neighbours, asked once and again, by one and by two applications.

Each planted version must be found on the same inputs on which the right one is not accused.
"""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import tacit as tc
from tacit.audit import Verdict, sampled
from tacit.audit.selfcheck.registry import MECHANISMS
from tacit.noise.kept_coins import name_of_number, name_of_text, new_secret, remembered, secret_for, share_kept, tossed
from tacit.plan.plans.visible_records import showing
from tacit.release.results import shown_records as released

ALPHA = 1e-6
KEY = b"tacit true records, statistical."
SAMPLES = 10_000
DOMAIN = tc.Domain({"arrival": tc.Categories(["ok", "late"])})
POLICY = tc.Policy(DOMAIN, tc.secrets.records("arrival == 'late'"))
QUESTION = tc.true_records("arrival", key="id")


class Positions:
    """Rows that were read before, each with a key of its own."""

    def __init__(self, arrivals):
        places = np.array([DOMAIN["arrival"].position(value) for value in arrivals], dtype=np.uint8)
        self._batch = (
            {"arrival": places},
            {"id": released.Named(range(len(places)), np.arange(len(places)))},
            len(places),
        )

    def records(self, names, key, work):
        yield work(*self._batch)


def shown(plan, rows, own):
    record = released.show_records(plan, rows, lambda line: secret_for(own, line))
    return np.array([value is not None for value in record.columns()["arrival"]])


def asked(*, times=1, applications=(None,)):
    """What a session publishes of one record: the same record under many keys, whose coins are independent."""
    plans = [tc.true_records("arrival", key="id", application=who).plan(POLICY, Fraction(1)) for who in applications]

    def release(arrival, size):
        rows, own = Positions([arrival] * size), new_secret()
        return np.stack([shown(plan, rows, own) for plan in plans for _ in range(times)], axis=1).astype(int)

    return release


def with_others(arrival, size):
    """The same among others, with new coins each time."""
    plan = QUESTION.plan(POLICY, Fraction(1))
    rows = Positions(["ok", arrival, "ok"])
    return np.array([shown(plan, rows, new_secret()) for _ in range(size)]).astype(int)


def verdict(release, epsilon, samples=SAMPLES, ends=("late", "ok")):
    with tc.noise.replayed(tc.noise.Keystream(key=KEY)):
        return sampled(release, *ends, epsilon, samples, ALPHA, workers=1)


def test_one_asking_and_the_same_again_lose_epsilon_and_not_much_less():
    once, thrice = (verdict(asked(times=times), 1.0) for times in (1, 3))
    for found in (once, thrice):
        assert found.verdict == Verdict.NONE_FOUND
        assert found.lower_bound > 0.88


def test_two_applications_lose_the_sum_and_not_less():
    both = asked(applications=("lighting", "planning"))
    assert verdict(both, 2.0).verdict == Verdict.NONE_FOUND
    assert verdict(both, 1.0).verdict == Verdict.LEAK_FOUND


def test_coins_that_are_tossed_anew_are_found(monkeypatch):
    monkeypatch.setattr(released, "remembered", lambda secret, names, epsilon: tossed(epsilon, len(names)))
    assert verdict(asked(times=3), 1.0).verdict == Verdict.LEAK_FOUND


def test_naive_suppression_is_found(monkeypatch):
    monkeypatch.setattr(released, "remembered", lambda secret, names, epsilon: np.ones(len(names), dtype=bool))
    assert verdict(asked(), 1.0).verdict == Verdict.LEAK_FOUND


ROOMS = tc.Domain({"room": tc.Integers(0, 10**6), "arrival": tc.Categories(["ok", "late"])})
BY_ROOM = tc.Policy(ROOMS, tc.secrets.records("arrival == 'late'"))
WHOLE = tc.true_records("arrival", key="room").plan(BY_ROOM, Fraction(1))
GAPS = replace(WHOLE, showing=showing(("arrival",), BY_ROOM, keyed=True))  # a row for each key, though it is a secret


def of_rooms(plan):
    """What a session publishes about two rooms, in one of which a record is; many pairs, with independent coins."""

    def release(record, size):
        room, arrival = record
        places = {"room": 2 * np.arange(size) + room, "arrival": np.full(size, arrival)}
        rows = SimpleNamespace(
            records=lambda names, key, work: [work({name: places[name] for name in names}, {}, size)]
        )
        own = new_secret()
        found = released.show_records(plan, rows, lambda line: secret_for(own, line)).columns()
        drawn = np.zeros(2 * size, dtype=int)  # nothing, a gap, or what is shown
        drawn[list(found["room"])] = [1 if value is None else 2 for value in found["arrival"]]
        return drawn.reshape(size, 2)

    return release


def test_whole_records_under_a_secret_key_lose_epsilon_and_rows_of_gaps_are_found():
    ends = ((0, 1), (1, 0))  # late in the first room, or in time in the second
    right, planted = (verdict(of_rooms(plan), 1.0, ends=ends) for plan in (WHOLE, GAPS))
    assert right.verdict == Verdict.NONE_FOUND
    assert right.lower_bound > 0.88
    assert planted.verdict == Verdict.LEAK_FOUND


@pytest.mark.slow
def test_coins_of_values_are_found(monkeypatch):
    """The others with the same value tell what the coin of the value is."""
    monkeypatch.setattr(
        released, "_names", lambda plan, positions, *_: name_of_number(positions["arrival"].astype(np.uint64))
    )
    assert verdict(with_others, 1.0, 1_000).verdict == Verdict.LEAK_FOUND


@pytest.mark.slow
@pytest.mark.parametrize("key", [None, "id"])
def test_whole_releases_of_a_session_are_not_accused(key):
    with tc.noise.replayed(tc.noise.Keystream(key=KEY)):
        found = tc.audit.release(POLICY, tc.true_records("arrival", key=key), 1, samples=2_000, seconds=60)
    assert found.verdict == Verdict.NONE_FOUND
    assert found.lower_bound > 0.3


@pytest.mark.slow
def test_whole_releases_under_a_secret_key_are_not_accused():
    few = tc.Policy(tc.Domain({**ROOMS, "room": tc.Integers(0, 2)}), BY_ROOM.secrets)
    with tc.noise.replayed(tc.noise.Keystream(key=KEY)):
        found = tc.audit.release(few, WHOLE.query, 1, samples=2_000, seconds=60)
    assert found.verdict == Verdict.NONE_FOUND
    assert found.lower_bound > 0.3


def test_a_shown_share_is_the_planned_one():
    plan = QUESTION.plan(POLICY, Fraction(1, 2))
    many = 10_000
    with tc.noise.replayed(tc.noise.Keystream(key=KEY)):
        coins = remembered(
            new_secret(), np.array([[name_of_text(str(at))] for at in range(many)], dtype="<u8"), plan.each
        )
    assert abs(coins.mean() - share_kept(plan.each)) < 5 * (0.25 / many) ** 0.5
    assert plan.share == pytest.approx(share_kept(Fraction(1, 2)))


def forgetful(monkeypatch, one_in):
    """Let sessions toss a new coin instead of a remembered one, once in so many times."""

    def coins(kept, epsilon, many):
        anew = tc.noise.uniform_below(one_in, many) == 0
        return np.where(anew, tossed(epsilon, many), kept)

    by_name, by_number = released.remembered, released.remembered_by_number
    monkeypatch.setattr(
        released, "remembered", lambda secret, names, each: coins(by_name(secret, names, each), each, len(names))
    )
    monkeypatch.setattr(
        released,
        "remembered_by_number",
        lambda secret, numbers, each: coins(by_number(secret, numbers, each), each, len(numbers)),
    )


ASKED = {"asked once": "true-records-with-a-key", "asked again": "true-records-asked-again"}


@pytest.mark.parametrize(
    ("name", "one_in", "samples"),
    [
        *((name, *case) for name in ASKED for case in ((None, 20_000), (1, 4_000))),
        *(pytest.param(name, 50, 120_000, marks=pytest.mark.slow) for name in ASKED),
    ],
)
def test_coins_that_a_session_forgets_are_found(name, one_in, samples, monkeypatch):
    """Asked along one line, now and again, the coin is the same; a session that forgets it loses more, and shows it."""
    subject = MECHANISMS[ASKED[name]].make()
    if one_in is not None:
        forgetful(monkeypatch, one_in)
    with tc.noise.replayed(tc.noise.Keystream(key=b"r" * 32)):
        found = subject.sampled(samples, 1e-6)
    assert found.verdict == ("NONE_FOUND" if one_in is None else "LEAK_FOUND"), str(found)


@pytest.mark.slow
def test_coins_that_are_never_remembered_are_found_in_whole_releases(monkeypatch):
    forgetful(monkeypatch, 1)
    with tc.noise.replayed(tc.noise.Keystream(key=KEY)):
        found = tc.audit.release(POLICY, tc.true_records("arrival", key="id"), 1, samples=1_000, seconds=60)
    assert found.verdict == Verdict.LEAK_FOUND, str(found)


def test_two_applications_that_share_a_budget_once_are_found() -> None:
    """What two applications see together costs what both pay; half of it is too little."""
    subject = MECHANISMS["true-records-for-two-applications"].make()
    assert subject.exact is not None
    assert subject.exact.forward == pytest.approx(1)
    with tc.noise.replayed(tc.noise.Keystream(key=b"r" * 32)):
        assert subject.sampled(20_000, 1e-6).verdict == "NONE_FOUND"
        assert replace(subject, epsilon=0.5).sampled(5_000, 1e-6).verdict == "LEAK_FOUND"

"""Coins in a ledger: remembered across sessions and processes, raised with what was paid, rotated, never shown."""

from __future__ import annotations

import os
import sqlite3
import stat
from fractions import Fraction

import pandas as pd
import pytest

import tacit as tc
from tacit.ledger.coins import StateMoved

POLICY = tc.Policy(tc.Domain({"age": tc.Integers(0, 9), "ill": tc.Flag()}), tc.secrets.records("ill == True"))
PEOPLE = pd.DataFrame(
    {"id": range(200), "age": [at % 10 for at in range(200)], "ill": [at % 3 == 0 for at in range(200)]}
)
QUESTION = tc.true_records("age", key="id")


def session(path, **more):
    return tc.Session(POLICY, PEOPLE, budget=10, ledger=path, dataset="clinic", **more)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def test_another_session_has_the_same_coins_and_pays_the_difference(path):
    first = session(path).release(QUESTION, epsilon=1)
    again = session(path)
    assert again.remaining == 9
    same = again.release(QUESTION, epsilon=1)
    assert again.remaining == 9
    assert same.frame.equals(first.frame)
    assert same.certificate["ledger"] == first.certificate["ledger"]
    again.release(QUESTION, epsilon=1.5)
    assert again.remaining == Fraction(17, 2)
    assert [entry.epsilon for entry in tc.Ledger(path).entries()] == [10, 1, Fraction(1, 2)]
    assert tc.Ledger(path).verify().ok


def test_two_releases_of_one_reservation_pay_once(path):
    asked = session(path)
    plans = [asked.plan(QUESTION, epsilon) for epsilon in (1, 2, 1)]
    records = [reserved.make() for reserved in asked.reserve(plans)]
    assert asked.remaining == 8
    assert records[0].frame.equals(records[2].frame)


def test_new_coins_are_charged_anew(path):
    first = session(path).release(QUESTION, epsilon=1)
    tc.Ledger(path).rotate_coins(dataset="clinic")
    asked = session(path)
    other = asked.release(QUESTION, epsilon=1)
    assert asked.remaining == 8
    assert not other.frame.equals(first.frame)


def test_looking_at_a_cost_writes_nothing(path):
    asked = session(path)
    assert asked.explain(QUESTION, 1, show=False).remaining == 9
    assert tc.Ledger(path).coins_begun(dataset="clinic", lines=[]) is None
    asked.release(QUESTION, epsilon=1)
    assert asked.explain(QUESTION, 1, show=False).remaining == 9


def test_data_sets_have_coins_of_their_own(path):
    first = session(path).release(QUESTION, epsilon=1)
    other = tc.Session(POLICY, PEOPLE, budget=10, ledger=path, dataset="other").release(QUESTION, epsilon=1)
    assert not other.frame.equals(first.frame)


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE tacit_lines SET epsilon = '5'",
        "UPDATE tacit_coins SET secret = replace(secret, substr(secret, 1, 8), '00000000')",
        "DELETE FROM tacit_coins",
        "DELETE FROM tacit_lines",
    ],
)
def test_what_somebody_else_wrote_counts_for_nothing(path, edit):
    session(path).release(QUESTION, epsilon=1)
    with sqlite3.connect(path) as db:
        db.execute(edit)
    asked = session(path)
    asked.release(QUESTION, epsilon=1)
    assert asked.remaining == 8  # charged anew, never for nothing


def test_lines_that_moved_meanwhile_are_not_raised(path):
    asked = session(path)
    (line,) = asked.plan(QUESTION, 1).lines_asked
    ledger = tc.Ledger(path)
    before = ledger.coins(dataset="clinic", lines=[line])
    asked.release(QUESTION, epsilon=1)
    with pytest.raises(StateMoved):
        ledger.reserve(
            dataset="clinic", charges=[(Fraction(1), "x")], policy=POLICY, coins=(before, {line: Fraction(1)})
        )
    assert ledger.remaining(dataset="clinic") == 9


def test_a_ledger_without_such_tables_gets_them_when_they_are_needed(path):
    tc.Ledger(path).grant(dataset="clinic", epsilon=10)
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE tacit_coins")
        db.execute("DROP TABLE tacit_lines")
    assert tc.Ledger(path).verify().ok
    asked = tc.Session(POLICY, PEOPLE, ledger=path, dataset="clinic")
    asked.release(QUESTION, epsilon=1)
    assert asked.remaining == 9
    assert tc.Ledger(path).verify().ok


def test_the_secret_is_in_nothing_that_is_shown(path):
    record = session(path).release(QUESTION, epsilon=1)
    state = tc.Ledger(path).coins(dataset="clinic", lines=[])
    with sqlite3.connect(path) as db:
        ((secret,),) = db.execute("SELECT secret FROM tacit_coins").fetchall()
    assert bytes.fromhex(secret) == state.secret
    said = f"{record!r} {record.certificate} {state!r} {tc.Ledger(path).statement(dataset='clinic')}"
    assert secret not in said
    assert repr(state.secret) not in said


def test_with_a_key_the_ledger_does_not_hold_the_secret(path, monkeypatch):
    monkeypatch.setenv("TACIT_LEDGER_KEY", "a key that nobody guesses, 0123456789abcdef")
    first = session(path).release(QUESTION, epsilon=1)
    state = tc.Ledger(path).coins(dataset="clinic", lines=[])
    assert state.secret.hex().encode() not in path.read_bytes()
    with sqlite3.connect(path) as db:
        ((kept,),) = db.execute("SELECT secret FROM tacit_coins").fetchall()
    assert bytes.fromhex(kept) != state.secret
    again = session(path)
    assert again.release(QUESTION, epsilon=1).frame.equals(first.frame)
    assert again.remaining == 9
    assert tc.Ledger(path).verify().ok


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such modes")
def test_a_ledger_file_is_for_its_owner_alone(path, monkeypatch):
    def mode():
        return stat.S_IMODE(path.stat().st_mode)

    before = os.umask(0o022)
    try:
        tc.Ledger(path).grant(dataset="clinic", epsilon=10)
        assert mode() == 0o600
        path.chmod(0o664)  # somebody opened it to a group
        tc.Ledger(path).grant(dataset="other", epsilon=10)
        assert mode() == 0o664
        session(path).release(QUESTION, epsilon=1)
        assert mode() == 0o600  # now it holds a secret
    finally:
        os.umask(before)

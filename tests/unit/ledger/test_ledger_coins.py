"""Coins in a ledger: remembered across sessions and processes, raised with what was paid, rotated, never shown."""

from __future__ import annotations

import os
import sqlite3
import stat
from fractions import Fraction

import pandas as pd
import pytest
from tests.older_ledgers import as_older

import tacit as tc
from tacit.jobs.job_file import read_job
from tacit.jobs.job_run import plan_job, run_job
from tacit.ledger.coins import RaisedCoins, StateMoved

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
    # after each charge, what it shows to whom, which costs nothing
    written = [(entry.kind, entry.epsilon) for entry in tc.Ledger(path).entries()]
    assert written == [("grant", 10), ("charge", 1), ("shown", 0), ("charge", Fraction(1, 2)), ("shown", 0)]
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


def test_two_spellings_of_a_data_set_have_the_same_coins(path):
    first, again = (
        tc.Session(POLICY, PEOPLE, budget=10, ledger=path, dataset=name) for name in ("caf\u00e9", "cafe\u0301")
    )
    shown = first.release(QUESTION, epsilon=1)
    assert again.release(QUESTION, epsilon=1).frame.equals(shown.frame)
    assert again.remaining == 9


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
def test_what_somebody_else_wrote_is_refused_before_anything_is_charged(path, edit):
    asked = session(path)
    asked.release(QUESTION, epsilon=1)
    with sqlite3.connect(path) as db:
        db.execute(edit)
    with pytest.raises(tc.LedgerError, match=r"is damaged: a row of tacit_(coins|lines) was changed, taken out"):
        asked.release(QUESTION, epsilon=1)
    assert asked.remaining == 9
    assert not tc.Ledger(path).verify().ok


def test_lines_that_moved_meanwhile_are_not_raised(path):
    asked = session(path)
    (line,) = asked.plan(QUESTION, 1).coin_lines
    ledger = tc.Ledger(path)
    before = ledger.coins(dataset="clinic", lines=[line])
    asked.release(QUESTION, epsilon=1)
    with pytest.raises(StateMoved):
        ledger.reserve(
            dataset="clinic",
            charges=[(Fraction(1), "x")],
            policy=POLICY,
            clauses=[RaisedCoins(before, {line: Fraction(1)}, {})],
        )
    assert ledger.remaining(dataset="clinic") == 9


def test_a_ledger_of_an_older_tacit_gets_such_tables_when_they_are_needed(path):
    tc.Ledger(path).grant(dataset="clinic", epsilon=10)
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE tacit_coins")
        db.execute("DROP TABLE tacit_lines")
    with pytest.raises(tc.LedgerError, match="half-written or damaged ledger: tacit_coins, tacit_lines missing"):
        tc.Ledger(path)
    as_older(f"sqlite:///{path}")
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


ROOMS = tc.Policy(
    tc.Domain({"day": tc.Integers(1, 400), "arrival": tc.Categories(["late", "early", "ok"])}),
    tc.secrets.attributes("arrival", where="arrival == 'late'"),
)
BY_DAY = tc.true_records("arrival", key="day")


def of_file(path, rows, epsilon=1, question=BY_DAY):
    asked = tc.Session(ROOMS, rows, budget=10, ledger=path, dataset="rooms")
    return asked.release(question, epsilon=epsilon).frame, asked.remaining


@pytest.fixture
def rooms(tmp_path):
    """Two files with the same days, and nothing in them that is late."""
    for room in "AB":
        rows = pd.DataFrame({"day": range(1, 401), "arrival": "early"})
        rows.to_csv(tmp_path / f"{room}.csv", index=False)
    return tmp_path


def test_another_file_of_a_data_set_has_coins_of_its_own_and_pays(path, rooms):
    first, left = of_file(path, rooms / "A.csv")
    assert left == 9
    second, left = of_file(path, rooms / "B.csv")
    assert left == 8
    both = pd.crosstab(first["arrival"].notna(), second["arrival"].notna()).to_numpy()
    # independent coins of 1 - 1/e: about 93 of 400 days are shown of one file alone, of shared coins none
    assert min(both[0, 1], both[1, 0]) > 40  # six standard deviations below
    assert tc.Ledger(path).verify().ok


def test_the_same_file_is_the_same_source_however_it_is_named(path, rooms, monkeypatch):
    first, _ = of_file(path, rooms / "A.csv")
    (rooms / "link.csv").symlink_to(rooms / "A.csv")
    monkeypatch.chdir(rooms)
    for same in (f"../{rooms.name}/A.csv", ["[A].csv"], "link.csv"):
        again, left = of_file(path, same)
        assert again.equals(first)
        assert left == 9


def test_a_copy_or_a_frame_is_another_source_and_frames_of_a_data_set_are_one(path, rooms):
    first, _ = of_file(path, rooms / "A.csv")
    (rooms / "copy.csv").write_bytes((rooms / "A.csv").read_bytes())
    copy, left = of_file(path, rooms / "copy.csv")
    assert left == 8
    rows = pd.read_csv(rooms / "A.csv")
    frame, left = of_file(path, rows)
    assert left == 7
    again, left = of_file(path, rows.astype({"day": str}))
    assert left == 7
    assert again.equals(frame)
    assert not first.equals(copy)
    assert not first.equals(frame)


def test_what_applications_were_shown_of_two_files_adds_up(path, rooms):
    asked = tc.true_records("arrival", key="day", application="lighting")
    for room in ("A", "A", "B"):
        of_file(path, rooms / f"{room}.csv", question=asked)
    lines = [one.line for one in tc.Ledger(path).shown(dataset="rooms") if one.attribute == "arrival"]
    assert len(lines) == len(set(lines)) == 2  # A again showed nothing new


def test_a_plan_of_a_job_knows_what_was_paid_for_this_file(path, rooms):
    (rooms / "policy.yaml").write_text(ROOMS.to_yaml())
    for room, cost in (("A", 1), ("A", 0), ("B", 1)):
        (rooms / "job.yaml").write_text(
            f"{{policy: policy.yaml, rows: {room}.csv, dataset: rooms, budget: 5, ledger: ledger.db, releases: "
            "[{name: a, query: {true_records: {columns: [arrival], key: [day]}}, epsilon: 1}]}"
        )
        planned = plan_job(read_job(rooms / "job.yaml"))
        assert planned.cost == cost
        run_job(planned)
    assert tc.Ledger(path).remaining(dataset="rooms") == 3


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

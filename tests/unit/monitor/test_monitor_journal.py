"""The state of a monitor: whole steps or nothing, one process, one setting, and nothing private in the public half."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import PlanError
from tacit.monitor import counting, journal
from tacit.monitor.journal import Alarm, Journal, read_published

SETTINGS = {
    "kind": "place",
    "threshold": 5,
    "policy_fingerprint": "abc",
    "policy": {"name": "town"},
    "columns": {"a": 1},
}


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    found = Journal(tmp_path / "monitor.db", SETTINGS)
    yield found
    found.close()


def test_a_transaction_is_there_as_a_whole_or_not_at_all(opened: Journal) -> None:
    def take(*, broken: bool) -> None:
        with opened.transaction() as db:
            journal.take_step(db, 0, "batch", replayed=False)
            journal.add_alarms(db, [Alarm(0, 0, 9)])
            if broken:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take(broken=True)
    assert opened.published().steps == ()
    take(broken=False)
    assert opened.published().steps == (0,)
    assert read_published(opened.name).alarms == (Alarm(0, 0, 9),)


def test_what_sqlite_says_is_not_repeated(opened: Journal) -> None:
    with pytest.raises(PlanError) as refusal, opened.transaction() as db:
        db.execute("INSERT INTO private_people VALUES ('CANARY', NULL)")
    assert "CANARY" not in str(refusal.value)
    assert str(refusal.value) == f"state could not be used; nothing was changed; got {opened.name!r}."
    with pytest.raises(PlanError), opened.transaction() as db:
        db.executemany("INSERT INTO public_steps VALUES (?, 0)", [(1,), (1,)])
    assert opened.published().steps == ()


def test_a_state_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    Journal(tmp_path / "monitor.db", SETTINGS).close()
    with sqlite3.connect(tmp_path / "monitor.db") as db:
        db.execute("UPDATE public_monitor SET version = 99")
    db.close()
    with pytest.raises(PlanError, match="was written by a newer Tacit"):
        Journal(tmp_path / "monitor.db", SETTINGS)


def test_settings_are_compared_key_by_key_and_a_policy_by_its_fingerprint(tmp_path: Path) -> None:
    state = tmp_path / "monitor.db"
    with_step = Journal(state, SETTINGS)
    with with_step.transaction() as db:
        journal.take_step(db, 0, None, replayed=False)
    with_step.close()
    Journal(state, {**SETTINGS, "policy": {"name": "another name"}}).close()
    for change, key in (
        ({"threshold": 6}, "threshold"),
        ({"policy_fingerprint": "abd"}, "policy"),
        ({"columns": {"a": 2}}, "columns"),
        ({"more": 1}, "more"),
    ):
        with pytest.raises(PlanError) as refusal:
            Journal(state, {**SETTINGS, **change})
        assert refusal.value.key == key


def test_an_empty_file_becomes_a_state_and_is_closed_to_others(tmp_path: Path) -> None:
    state = tmp_path / "monitor.db"
    state.touch(mode=0o666)
    Journal(state, SETTINGS).close()
    assert state.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PlanError, match="state must be"):
        Journal(tmp_path / "monitor.db", SETTINGS)
    tmp_path.chmod(0o700)


def test_what_is_forgotten_leaves_no_file(tmp_path: Path) -> None:
    found = Journal(tmp_path / "monitor.db", SETTINGS)
    found.forget()
    assert list(tmp_path.iterdir()) == []
    Journal(tmp_path / "monitor.db", SETTINGS).close()


def test_threads_take_turns(opened: Journal) -> None:
    def work(first: int) -> None:
        for step in range(first, first + 20):
            with opened.transaction() as db:
                journal.take_step(db, step, f"batch {step}", replayed=False)

    threads = [threading.Thread(target=work, args=(20 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened.published().steps == tuple(range(80))


def kept(
    opened: Journal, *asked: tuple[str, str | None], at_most: int | None = None, remember: bool = True
) -> list[int]:
    with opened.transaction() as db:
        return counting.keep_new(db, [(*one, 5) for one in asked], at_most=at_most, remember=remember)


def test_duplicates_are_kept_once_and_events_without_a_name_each(opened: Journal) -> None:
    assert kept(opened, ("a", "x"), ("a", "x"), ("b", "x"), ("a", None), ("a", None)) == [0, 2, 3, 4]
    assert kept(opened, ("a", "x"), ("a", "y"), ("a", None)) == [1, 2]


def test_the_bound_holds_over_many_calls(opened: Journal) -> None:
    assert kept(opened, ("a", "1"), ("a", "2"), ("b", "1"), at_most=2) == [0, 1, 2]
    assert kept(opened, ("a", "3"), ("b", "1"), ("b", "2"), ("b", "3"), at_most=2) == [2]
    assert kept(opened, ("c", "1"), ("c", "1"), ("c", "2"), ("c", "3"), at_most=2) == [0, 2]


def test_what_is_not_remembered_may_come_again(opened: Journal) -> None:
    assert kept(opened, ("a", None), at_most=1, remember=False) == [0]
    assert kept(opened, ("a", None), ("b", None), at_most=1, remember=False) == [1]


def test_expired_visits_and_their_names_go(opened: Journal) -> None:
    with opened.transaction() as db:
        counting.add_visits(db, [(0, 2, 3), (1, 4, 1), (0, 2, 2)])
        assert [counting.visits_now(db, step) for step in range(6)] == [5, 6, 6, 1, 1, 0]
    assert kept(opened, ("a", "x")) == [0]
    with opened.transaction() as db:
        counting.expire(db, 5)
        assert counting.visits_now(db, 1) == 1 - 1
        assert db.execute("SELECT count(*) FROM private_seen").fetchone() == (1,)  # until step 5
        counting.expire(db, 6)
        assert db.execute("SELECT count(*) FROM private_seen").fetchone() == (0,)


def test_every_table_says_whether_it_is_public(opened: Journal) -> None:
    with opened.transaction() as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {name.partition("_")[0] for name in tables} == {"public", "private"}


def test_reading_what_is_public_touches_no_private_table(tmp_path: Path) -> None:
    state = tmp_path / "monitor.db"
    Journal(state, SETTINGS).close()
    with sqlite3.connect(state) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE name LIKE 'private%'").fetchall():
            db.execute(f"DROP TABLE {name}")
    db.close()
    assert read_published(state).settings == SETTINGS


def test_a_state_in_memory_is_its_own(tmp_path: Path) -> None:
    first, second = Journal(None, SETTINGS), Journal(None, {**SETTINGS, "threshold": 6})
    with first.transaction() as db:
        journal.take_step(db, 0, None, replayed=True)
    assert (first.published().steps, second.published().steps) == ((0,), ())
    assert (first.published().replayed, second.published().replayed) == (True, False)
    first.close()
    second.close()
    assert list(tmp_path.iterdir()) == []


def test_a_commit_that_was_cut_off_is_undone_before_anything_is_shown(tmp_path: Path) -> None:
    """A copy of the files in the middle of a write is what a kill there leaves behind."""
    opened = Journal(tmp_path / "monitor.db", SETTINGS)
    with opened.transaction() as db:
        journal.take_step(db, 0, "first", replayed=False)
    opened._db.execute("PRAGMA cache_size = 10")  # so that pages reach the file before the commit
    with opened.transaction() as db:
        journal.take_step(db, 1, "second", replayed=False)
        db.executemany("INSERT INTO private_people VALUES (?, 1)", ((f"{'p' * 500}{n}",) for n in range(2000)))
        for end in ("", "-journal"):
            (tmp_path / f"killed.db{end}").write_bytes((tmp_path / f"monitor.db{end}").read_bytes())
    opened.close()
    assert read_published(tmp_path / "killed.db").steps == (0,)
    restarted = Journal(tmp_path / "killed.db", SETTINGS)
    with restarted.transaction() as db:
        assert journal.step_of_batch(db, "second") is None
        assert journal.last_step(db) == 0
    restarted.close()
    assert read_published(tmp_path / "monitor.db").steps == (0, 1)

"""Monitors: what counts for how long, who is bounded, what is said, refused, charged and promised."""

from __future__ import annotations

import copy
import json
import os
import pickle
import sqlite3
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tacit as tc
from tacit import noise
from tacit.monitor import counting, journal, monitor
from tacit.monitor.history import History
from tacit.report.charts.monitor_charts import monitor_chart

TOWN = tc.Domain({"visited": tc.Items(["gym", "cafe", "park"])})
POLICY = tc.Policy(TOWN, secrets=tc.secrets.values({"visited": [1]}), name="town")
NEVER = 10**9  # a threshold that no noise reaches
GYM: dict[str, Any] = {"place": "gym", "threshold": NEVER, "epsilon": 1, "window": 3}
MAP: dict[str, Any] = {"threshold": NEVER, "epsilon": 1}


def visits(*times: Any, place: str = "gym", **columns: Any) -> pd.DataFrame:
    """Return visits at a place at these times."""
    return pd.DataFrame({"visited": [place] * len(times), "time": list(times), **columns})


def at_gym(count: int) -> pd.DataFrame:
    return pd.DataFrame({"visited": ["gym"] * count})


def counted(watched: Any) -> int:
    """Return how many visits count at the last step; nobody but the publisher can see this."""
    with watched._journal.transaction() as db:
        last = journal.last_step(db)
        assert last is not None
        return counting.visits_now(db, last)


def by_place(watched: Any) -> dict[Any, int]:
    with watched._journal.transaction() as db:
        return {watched.places.label(place): many for place, many in counting.visits_by_place(db)}


def alarms_at(monkeypatch: pytest.MonkeyPatch, *steps: int) -> None:
    """Let a place monitor alarm at the given decisions, with the count itself as its noisy count."""
    taken = iter(range(10**6))
    monkeypatch.setattr(monitor, "decide", lambda count, *_, **__: count if next(taken) in steps else None)


# ---- what is said ---------------------------------------------------------------------------------------------------


def test_the_example(tmp_path: Path) -> None:
    m = tc.PlaceMonitor(POLICY, place="gym", threshold=5, epsilon=1.0, window=14, state=tmp_path / "monitor.db")
    verdict = m.feed(at_gym(100))
    assert (verdict.step, verdict.place, verdict.verdict) == (0, "gym", "above")
    assert verdict.value is not None
    assert verdict.value >= 100
    assert verdict.estimate == pytest.approx(verdict.value - 1 / (np.e - 1))
    paused = m.feed(at_gym(100))
    assert (paused.step, paused.verdict, paused.value, paused.estimate) == (1, "paused", None, None)


def test_an_alarm_is_followed_by_a_pause_of_exactly_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    alarms_at(monkeypatch, 1, 3)
    with tc.PlaceMonitor(POLICY, **GYM) as watched:
        said = [watched.feed(at_gym(step)).verdict for step in range(9)]
        assert said == [
            *("certainly below", "above", "paused", "paused"),
            *("certainly below", "above", "paused", "paused", "certainly below"),
        ]
        assert [verdict.verdict for verdict in watched.history.verdicts] == said
        assert watched.frame["verdict"].tolist() == said
        assert watched.frame["value"].dropna().tolist() == [1, 12]  # steps 3, 4 and 5, also those in the pause


def test_no_visit_is_in_two_alarms(monkeypatch: pytest.MonkeyPatch) -> None:
    """However visits arrive, a monitor that alarms whenever it may never shows one twice."""
    alarms_at(monkeypatch, *range(100))
    generator = np.random.default_rng(5)
    with tc.PlaceMonitor(POLICY, **GYM) as watched:
        fed = 0
        for step in range(40):
            times = step + generator.integers(-4, 5, size=6)
            fed += int(((times > step - 3) & (times <= step + 3)).sum())
            watched.feed(visits(*times.tolist()))
        shown = sum(verdict.value or 0 for verdict in watched.history.verdicts)
        assert 0.5 * fed < shown <= fed


@pytest.mark.parametrize("batch", [at_gym(2), pl.DataFrame({"visited": ["gym", "gym"]}), iter(["gym", "gym"])])
def test_batches_of_any_kind_are_fed(batch: Any) -> None:
    with tc.PlaceMonitor(POLICY, **GYM) as watched:
        assert watched.feed(batch).verdict == "certainly below"
        assert counted(watched) == 2


def test_a_flag_is_a_place() -> None:
    policy = tc.Policy(tc.Domain({"infected": tc.Flag()}), secrets=tc.secrets.values({"infected": [True]}))
    with tc.PlaceMonitor(policy, **{**GYM, "place": "infected"}) as watched:
        watched.feed(pd.DataFrame({"infected": [True, False, True]}))
        watched.feed([1, 0, 0])
        assert counted(watched) == 3


# ---- how long a visit counts ----------------------------------------------------------------------------------------


def history_of_counts(*batches: Any, **options: Any) -> list[int]:
    found = []
    with tc.PlaceMonitor(POLICY, **{**GYM, **options}) as watched:
        for batch in batches:
            watched.feed(batch)
            found.append(counted(watched))
    return found


def test_a_visit_counts_for_the_window_from_its_arrival_without_times() -> None:
    assert history_of_counts(at_gym(1), at_gym(1), None, None, None) == [1, 2, 2, 1, 0]


def test_a_late_visit_counts_for_what_is_left_of_its_window() -> None:
    # happened at 0, arrives at 2: only step 2 is left of 0, 1, 2
    assert history_of_counts(None, None, visits(0), None) == [0, 0, 1, 0]
    assert history_of_counts(None, None, None, visits(0), None) == [0, 0, 0, 0, 0]


def test_an_early_visit_waits_for_its_time() -> None:
    assert history_of_counts(visits(2), None, None, None, None, None) == [0, 0, 1, 1, 1, 0]
    # three steps ahead is still waited for, four are not
    assert history_of_counts(visits(3, 4), *[None] * 7) == [0, 0, 0, 1, 1, 1, 0, 0]


def test_a_visit_without_a_readable_time_happens_when_it_arrives() -> None:
    batch = pd.DataFrame({"visited": ["gym"] * 3, "time": ["0", "soon", None]})
    assert history_of_counts(None, batch, None, None, None) == [0, 3, 3, 2, 0]


def test_the_order_within_a_batch_makes_no_difference() -> None:
    times = [0, 2, 1, 1, 3, 0]
    forwards = history_of_counts(None, visits(*times), None, None)
    assert history_of_counts(None, visits(*reversed(times)), None, None) == forwards


def test_the_time_column_is_optional_only_under_its_own_name() -> None:
    assert history_of_counts(None, visits(0), None, None, time=None) == [0, 1, 1, 1]
    with pytest.raises(tc.DataRefused, match="column 'when' must be a column of the batch"):
        history_of_counts(at_gym(1), time="when")


def test_steps_may_be_dates() -> None:
    days = pd.DataFrame({"visited": ["gym"] * 3, "time": pd.to_datetime(["2024-03-01 08:00"] * 3)})
    with tc.PlaceMonitor(POLICY, **GYM, start="2024-02-28", every="1 day") as watched:
        assert watched.feed(days).time == "2024-02-28"
        assert counted(watched) == 0
        assert watched.feed(None, step=2).time == "2024-03-01"  # 2024 has a 29th of February
        assert counted(watched) == 3
        assert watched.feed(None, step=5).step == 5
        assert counted(watched) == 0


def test_the_clock_never_goes_back() -> None:
    with tc.PlaceMonitor(POLICY, **GYM) as watched:
        watched.feed(at_gym(1), step=7)
        assert watched.feed(None).step == 8
        for wrong in (8, -1, 1.5, True, "9"):
            with pytest.raises(tc.PlanError, match=r"^step must be"):
                watched.feed(None, step=wrong)  # type: ignore[arg-type]
        assert counted(watched) == 1


# ---- duplicates and people ------------------------------------------------------------------------------------------


def test_without_person_or_id_every_row_counts() -> None:
    assert history_of_counts(visits(0, 0, 0), visits(0, 1)) == [3, 5]


def test_the_same_person_place_and_time_counts_once() -> None:
    first = visits(0, 0, 1, who=["a", "a", "a"])
    again = visits(0, 1, 1, who=["a", "a", "b"])
    assert history_of_counts(first, again, None, None, person="who") == [1, 3, 3, 2]
    other = visits(0, place="cafe", who=["a"])
    assert history_of_counts(first, other, person="who") == [1, 2]


def test_a_duplicate_is_told_in_any_spelling_of_its_time() -> None:
    batches = [
        pd.DataFrame({"visited": ["gym"], "who": ["a"], "time": ["2024-03-01"]}),
        pd.DataFrame({"visited": ["gym"], "who": ["a"], "time": pd.to_datetime(["2024-03-01"])}),
        pd.DataFrame({"visited": ["gym"], "who": ["a"], "time": ["2024-03-01T01:00:00+01:00"]}),
    ]
    assert history_of_counts(*batches, person="who", start="2024-03-01", every="1 day") == [1, 1, 1]


def test_without_times_a_person_counts_once_in_each_batch() -> None:
    batch = pd.DataFrame({"visited": ["gym"] * 3, "who": ["a", "a", "b"]})
    assert history_of_counts(batch, batch, person="who") == [2, 4]


def test_events_with_ids_count_once() -> None:
    batch = pd.DataFrame({"visited": ["gym"] * 4, "id": ["x", "x", None, None]})
    # rows without an id count each on its own, and x from its first arrival until three steps after its second
    assert history_of_counts(batch, batch, None, None, event="id") == [3, 5, 5, 3]


def test_only_the_first_visits_of_a_person_ever_count(tmp_path: Path) -> None:
    state, bound = tmp_path / "monitor.db", {"person": "who", "visits_per_person": 2}
    with tc.PlaceMonitor(POLICY, **GYM, **bound, state=state) as watched:
        watched.feed(visits(0, 0.5, 0.75, 0, who=["a", "a", "a", "b"]))
        assert counted(watched) == 3
    with tc.PlaceMonitor(POLICY, **GYM, **bound, state=state) as watched:
        for step in range(1, 4):
            watched.feed(visits(step, step, step, who=["a", "b", "c"]))
        assert counted(watched) == 3  # of step 1: b and c; of step 2: c
        with watched._journal.transaction() as db:
            kept = dict(db.execute("SELECT person, kept FROM private_people").fetchall())
    assert kept == {"a": 2, "b": 2, "c": 2}


def test_what_is_kept_of_a_person_depends_on_nobody_else() -> None:
    generator = np.random.default_rng(11)
    mine = [visits(*times, who=["me"] * len(times)) for times in ([1, 0], [1, 2, 1], [3, 2])]

    def kept(batches: list[pd.DataFrame]) -> list[Any]:
        with tc.PlaceMonitor(POLICY, **GYM, person="who", visits_per_person=3) as watched:
            found = []
            for batch in batches:
                watched.feed(batch)
                with watched._journal.transaction() as db:
                    seen = db.execute("SELECT event, last FROM private_seen WHERE person = 'me' ORDER BY event")
                    found.append(seen.fetchall())
            return found

    alone = kept(mine)
    for _ in range(5):
        others = [
            visits(*generator.integers(0, 4, 20).tolist(), who=generator.choice(list("abcd"), 20)) for _ in range(3)
        ]
        mixed = [pd.concat([a, b]).sample(frac=1, random_state=1) for a, b in zip(mine, others, strict=True)]
        assert kept(mixed) == alone


def test_rows_without_a_person_are_left_out() -> None:
    assert history_of_counts(visits(0, 0, 0, who=["a", None, None]), person="who") == [1]


def test_a_policy_about_people_makes_people_the_unit() -> None:
    people = POLICY.owned_by("who", 2)
    with tc.PlaceMonitor(people, **GYM) as watched:
        assert watched.certificate["unit"] == {"of": "person", "person": "who", "visits": 2}
        watched.feed(visits(0, 1, 0.5, who=["a", "a", "a"]))
        assert watched.history.law.right == 2


def test_a_monitor_keeps_the_columns_that_a_policy_names() -> None:
    people = POLICY.owned_by("who", 1)
    for kind, options in ((tc.PlaceMonitor, GYM), (tc.MapMonitor, {"threshold": 5, "epsilon": 1})):
        with kind(people, **options) as watched, kind(people.about(order="day", item="venue"), **options) as named:
            assert named.policy == watched.policy.about(order="day", item="venue")
            assert (watched.policy.order, watched.policy.item) == (None, None)
    with tc.PlaceMonitor(people.about(order="day"), **GYM) as watched:
        assert watched.policy.order == "day"
    with tc.PlaceMonitor(POLICY, item="venue", **GYM) as watched:  # where batches have their places
        assert watched.policy == POLICY


def test_places_are_read_from_the_column_that_the_policy_names() -> None:
    named = POLICY.about(item="venue")
    batch = at_gym(50).rename(columns={"visited": "venue"})
    options = {**GYM, "threshold": 5, "epsilon": 100}
    for given in ({}, {"item": "venue"}):
        with tc.PlaceMonitor(named, **options, **given) as watched:
            assert watched.feed(batch).verdict == "above"
    with pytest.raises(tc.PlanError, match="item must be the column that the policy names; got 'place'"):
        tc.PlaceMonitor(named, item="place", **options)


# ---- files and restarts ---------------------------------------------------------------------------------------------


def test_a_file_that_is_fed_again_gets_the_verdict_of_then(tmp_path: Path) -> None:
    batch = tmp_path / "day.parquet"
    at_gym(50).to_parquet(batch)
    options = {**GYM, "threshold": 5, "state": tmp_path / "monitor.db"}
    with tc.PlaceMonitor(POLICY, **options) as watched:
        first = watched.feed(batch)
        assert watched.feed(str(batch)) == first
        assert watched.feed(None).verdict == "paused"
    with tc.PlaceMonitor(POLICY, **options) as watched:
        assert watched.feed([batch]) == first
        assert watched.history.steps == (0, 1)
        assert watched.feed(None, batch_id="x").step == 2
        assert watched.feed(at_gym(9), batch_id="x").step == 2
        assert (watched.has_taken("x"), watched.has_taken("y")) == (True, False)
        at_gym(50).to_parquet(batch)  # written anew: another batch
        assert watched.feed(batch).step == 3
    with pytest.raises(tc.PlanError, match="batch_id must be a text"):
        watched.feed(None, batch_id="")


def test_a_restart_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alarms_at(monkeypatch, 1)
    said = []
    for step in range(6):
        with tc.PlaceMonitor(POLICY, **GYM, state=tmp_path / "monitor.db") as watched:
            said.append(watched.feed(at_gym(step + 1)).verdict)
    assert said == ["certainly below", "above", "paused", "paused", "certainly below", "certainly below"]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"epsilon": 2}, "epsilon"),
        ({"threshold": 6}, "threshold"),
        ({"window": 4}, "window"),
        ({"place": "cafe"}, "place"),
        ({"person": "who", "visits_per_person": 2}, "unit"),
        ({"policy": tc.Policy(TOWN, tc.secrets.values({"visited": [1]}), person="who")}, "unit"),
        (
            {"policy": tc.Policy(tc.Domain({"visited": tc.Items(["gym"])}), tc.secrets.values({"visited": [1]}))},
            "policy",
        ),
        ({"item": "venue"}, "columns"),
        ({"start": 5}, "clock"),
    ],
)
def test_a_restart_with_other_settings_is_refused_with_the_reason(
    tmp_path: Path, change: dict[str, Any], key: str
) -> None:
    state = tmp_path / "monitor.db"
    with tc.PlaceMonitor(POLICY, **GYM, state=state) as watched:
        watched.feed(at_gym(1))
    options = {"policy": POLICY, **GYM, **change}
    before = state.read_bytes()
    with pytest.raises(tc.PlanError) as refusal:
        tc.PlaceMonitor(options.pop("policy"), **options, state=state)
    assert refusal.value.key == key
    assert "must be as when the state" in str(refusal.value)
    assert state.read_bytes() == before
    renamed = tc.Policy(TOWN, tc.secrets.values({"visited": [1]}), name="another name, the same promise")
    with tc.PlaceMonitor(renamed, **GYM, state=state) as watched:
        assert watched.feed(None).step == 1


def test_columns_may_be_put_right_before_anything_was_read(tmp_path: Path) -> None:
    state = tmp_path / "monitor.db"
    with tc.PlaceMonitor(POLICY, **GYM, item="vanue", state=state) as watched, pytest.raises(tc.DataRefused):
        watched.feed(pd.DataFrame({"venue": ["gym"]}))
    with tc.PlaceMonitor(POLICY, **GYM, item="venue", state=state) as watched:
        watched.feed(pd.DataFrame({"venue": ["gym"]}))
    assert History.read(state).settings["columns"]["place"] == "venue"
    with pytest.raises(tc.PlanError, match="epsilon must be as when"):
        tc.PlaceMonitor(POLICY, **{**GYM, "epsilon": 2}, item="venue", state=state)


def test_several_monitors_of_one_process_share_a_state(tmp_path: Path) -> None:
    state = tmp_path / "monitor.db"
    first = tc.PlaceMonitor(POLICY, **GYM, state=state)
    second = tc.PlaceMonitor(POLICY, **GYM, state=state)
    assert [first.feed(at_gym(1)).step, second.feed(at_gym(1)).step, first.feed(None).step] == [0, 1, 2]
    first.close()
    assert second.feed(None).step == 3
    with pytest.raises(tc.PlanError, match="state is closed"):
        first.feed(None)
    second.close()
    second.close()


def test_a_batch_that_cannot_be_read_leaves_everything_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "broken.csv").write_text('visited\n"gym\n', encoding="utf-8")
    with tc.PlaceMonitor(POLICY, **GYM, state=tmp_path / "monitor.db") as watched:
        watched.feed(at_gym(1))
        for batch in (pd.DataFrame({"place": ["gym"]}), tmp_path / "broken.csv", 7):
            with pytest.raises(tc.DataRefused):
                watched.feed(batch)
        assert watched.history.steps == (0,)
        assert watched.feed(None).step == 1


def test_the_state_is_private_and_its_public_half_can_be_read_alone(tmp_path: Path) -> None:
    state = tmp_path / "monitor.db"
    options = {**GYM, "threshold": 1, "person": "who", "state": state}
    with tc.PlaceMonitor(POLICY, **options) as watched:
        watched.feed(visits(0, 0, who=["CANARY-1", "CANARY-2"]))
        for file in tmp_path.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        history = History.read(state)  # while the monitor has it
        assert [verdict.verdict for verdict in history.verdicts] == ["above"]
        public = pickle.dumps([vars(history), watched.certificate, repr(watched)])
        assert b"canary" not in public.lower()
        written = history.write_csv(tmp_path / "verdicts.csv")
        assert written.read_text().splitlines()[0] == "step,time,place,verdict,value,estimate"
        assert "CANARY" not in written.read_text()
    assert b"canary-1" in state.read_bytes()  # or this test would find nothing
    with tc.PlaceMonitor(POLICY, **options) as watched:
        for _ in range(4):
            watched.feed(None)
    assert b"canary" not in state.read_bytes().lower()  # expired visits are overwritten


def test_people_are_told_apart_by_the_rule_that_the_state_was_begun_by(tmp_path: Path) -> None:
    """One person in several spellings counts once; a state that an older Tacit began goes on by texts."""
    spellings = ["7", "007", "+7.0", " 7 ", "7\ufe0f", "7\u3164", "7\x01"]
    people = [*spellings, "Ann", "ANN ", "ann\u200b"]
    for is_older, expected in ((False, {"7", "ann"}), (True, set(people))):
        state = tmp_path / f"{is_older}.db"
        options = {**GYM, "threshold": 1000, "person": "who", "state": state}
        with tc.PlaceMonitor(POLICY, **options) as watched:
            watched.feed(visits(0, who=["somebody"]))
        if is_older:
            with sqlite3.connect(state) as db:
                (settings,) = db.execute("SELECT settings FROM public_monitor").fetchone()
                said = json.loads(settings)
                assert said.pop("names") == "as rows"
                db.execute("UPDATE public_monitor SET settings = ?", (json.dumps(said),))
            db.close()
        with tc.PlaceMonitor(POLICY, **options) as watched:
            watched.feed(visits(*[1] * len(people), who=people))
        with sqlite3.connect(state) as db:
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            found = {cell for table in tables for row in db.execute(f"SELECT * FROM {table}") for cell in row}
        db.close()
        assert {text for text in [*people, "ann"] if text in found} == expected


def test_a_history_of_what_is_no_state_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database", encoding="utf-8")
    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()
    for name in ("gone.db", "text.db", "other.db"):
        with pytest.raises(tc.PlanError, match=r"^state (must be a|is no)"):
            History.read(tmp_path / name)
    for name in ("text.db", "other.db"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(tc.PlanError, match=r"^state is no"):
            tc.PlaceMonitor(POLICY, **GYM, state=tmp_path / name)
        assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize("state", ["", "a\0b", 7, "sqlite:///x", "."])
def test_a_state_must_be_a_file(state: Any) -> None:
    with pytest.raises(tc.PlanError, match=r"^state must be"):
        tc.PlaceMonitor(POLICY, **GYM, state=state)
    with pytest.raises(tc.PlanError, match="state must be in a folder that exists"):
        tc.PlaceMonitor(POLICY, **GYM, state="no/such/folder/monitor.db")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_no_part_in_the_state(tmp_path: Path) -> None:
    watched = tc.PlaceMonitor(POLICY, **GYM, state=tmp_path / "monitor.db")
    child = os.fork()
    if child == 0:
        refused = 0
        for work in (lambda: watched.feed(None), lambda: tc.PlaceMonitor(POLICY, **GYM, state=tmp_path / "monitor.db")):
            try:
                work()
            except tc.PlanError as refusal:
                refused += "process" in str(refusal)
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert watched.feed(None).step == 0
    watched.close()


# ---- the cost -------------------------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path: Path) -> tc.Ledger:
    found = tc.Ledger(tmp_path / "ledger.db")
    found.grant(dataset="town", epsilon=3)
    return found


def test_the_whole_life_is_charged_once(tmp_path: Path, ledger: tc.Ledger) -> None:
    paid = {"ledger": tmp_path / "ledger.db", "dataset": "town", "state": tmp_path / "monitor.db"}
    with tc.PlaceMonitor(POLICY, **GYM, **paid) as watched:
        assert ledger.remaining(dataset="town") == 2
        watched.feed(at_gym(10**6))
        receipt = watched.certificate["ledger"]
    for again in (paid, {"state": tmp_path / "monitor.db"}, {**paid, "ledger": ledger}):
        with tc.PlaceMonitor(POLICY, **GYM, **again) as watched:
            watched.feed(at_gym(10))
            assert watched.certificate["ledger"] == receipt
    assert ledger.remaining(dataset="town") == 2
    entry = ledger.entries("town")[-1]
    assert (entry.number, entry.hash, entry.epsilon) == (receipt["entry"], receipt["hash"], 1)
    assert entry.what.startswith("monitor ")
    assert "gym" in entry.what


def test_several_places_and_times_each_charge_their_own(tmp_path: Path, ledger: tc.Ledger) -> None:
    paid = {"ledger": ledger, "dataset": "town", "analyst": "ana"}
    with tc.PlaceMonitor(POLICY, **GYM, **paid), tc.PlaceMonitor(POLICY, **{**GYM, "place": "cafe"}, **paid):
        assert ledger.remaining(dataset="town") == 1
        with tc.MapMonitor(POLICY, threshold=5, epsilon="1/2", at=7, **paid):
            assert ledger.remaining(dataset="town") == Fraction(1, 2)
        with pytest.raises(tc.BudgetExceeded):
            tc.MapMonitor(POLICY, threshold=5, epsilon="2/3", at=8, state=tmp_path / "map.db", **paid)
    assert ledger.remaining(dataset="town") == Fraction(1, 2)
    assert not [file for file in tmp_path.iterdir() if file.name.startswith("map.db")]


def test_a_charge_that_was_announced_is_made_once(tmp_path: Path, ledger: tc.Ledger) -> None:
    """As if the process had died before the ledger was asked, or after it had answered."""
    state, paid = tmp_path / "monitor.db", {"ledger": ledger, "dataset": "town"}
    with tc.PlaceMonitor(POLICY, **GYM, state=state) as watched, watched._journal.transaction() as db:
        journal.announce_charge(db)
    with pytest.raises(tc.PlanError, match="ledger must be named again"):
        tc.PlaceMonitor(POLICY, **GYM, state=state)
    tc.PlaceMonitor(POLICY, **GYM, state=state, **paid).close()
    assert ledger.remaining(dataset="town") == 2
    with tc.PlaceMonitor(POLICY, **GYM, state=state) as watched, watched._journal.transaction() as db:
        db.execute("UPDATE public_charge SET receipt = NULL")
    tc.PlaceMonitor(POLICY, **GYM, state=state, **paid).close()
    assert ledger.remaining(dataset="town") == 2


def test_a_state_that_was_free_can_be_charged_later_and_a_refusal_changes_nothing(
    tmp_path: Path, ledger: tc.Ledger
) -> None:
    state = tmp_path / "monitor.db"
    options = {**GYM, "epsilon": 2, "state": state}
    tc.PlaceMonitor(POLICY, **options).close()
    ledger.charge(dataset="town", epsilon=2)
    with pytest.raises(tc.BudgetExceeded):
        tc.PlaceMonitor(POLICY, **options, ledger=ledger, dataset="town")
    tc.PlaceMonitor(POLICY, **options).close()  # nothing is owed
    ledger.grant(dataset="town", epsilon=1)
    tc.PlaceMonitor(POLICY, **options, ledger=ledger, dataset="town").close()
    assert ledger.remaining(dataset="town") == 0


SINGLE = tc.Policy(
    tc.Domain({"visited": tc.Items(["gym", "cafe", "park"], at_most=1)}),
    tc.secrets.values({"visited": [1]}),
    person="who",
)


def test_a_ledger_under_a_policy_about_people_takes_no_monitor_of_visits(tmp_path: Path) -> None:
    people = POLICY.owned_by("who", 1)
    with tc.Ledger(tmp_path / "ledger.db") as opened:
        opened.grant(dataset="town", epsilon=3, policy=people)
        opened.grant(dataset="single", epsilon=3, policy=SINGLE)
        with pytest.raises(tc.LedgerError, match="protects less"):
            tc.PlaceMonitor(POLICY, **GYM, ledger=opened, dataset="town")
        with pytest.raises(tc.LedgerError, match="protects less"):  # a set without the cafe may have more of the gym
            tc.PlaceMonitor(POLICY, **GYM, person="who", visits_per_person=1, ledger=opened, dataset="town")
        tc.PlaceMonitor(POLICY, **GYM, person="who", visits_per_person=1, ledger=opened, dataset="single").close()
        assert opened.remaining(dataset="single") == 2


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"ledger": "ledger.db"}, "dataset must be named, because the ledger keeps the budget under this name"),
        ({"dataset": "town"}, "dataset needs a ledger; got 'town'"),
        ({"analyst": "ana"}, "analyst needs a ledger; got 'ana'"),
        ({"ledger": 7, "dataset": "town"}, "ledger must be a path, a URL or a Ledger; got 7"),
    ],
)
def test_a_ledger_needs_a_data_set(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(tc.PlanError) as refusal:
        tc.PlaceMonitor(POLICY, **GYM, **wrong)
    assert sentence in str(refusal.value)


# ---- maps -----------------------------------------------------------------------------------------------------------


def test_a_place_on_a_map_alarms_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "decide_all", lambda counts, *_, **__: np.where(counts >= 2, counts, -1))
    with tc.MapMonitor(POLICY, **MAP) as watched:
        first = watched.feed(iter(["gym", "gym", "cafe"]))
        assert {place: verdict.verdict for place, verdict in first.items()} == {
            "gym": "above",
            "cafe": "certainly below",
            "park": "certainly below",
        }
        assert (first["gym"].value, first["cafe"].value) == (2, None)
        second = watched.feed(iter(["gym", "cafe", "park"]))
        assert [verdict.place for verdict in second.alarms] == ["cafe"]
        assert second["gym"].verdict == "already alarmed"
        assert second["gym"].value is None
        assert second.frame["since"].tolist()[:2] == [0, 1]
        assert second.frame["value"].tolist()[:2] == [2, 2]
        assert watched.history.at(0)["cafe"].verdict == "certainly below"
        assert [(v.place, v.step) for v in watched.history.verdicts] == [("gym", 0), ("cafe", 1)]
        assert watched.frame.equals(second.frame)
        assert len(second) == 3
        with pytest.raises(tc.PlanError, match="place must be one of the items; got 'gim'"):
            second["gim"]


def test_a_map_counts_its_designated_time_only(tmp_path: Path) -> None:
    batch = visits(6, 7, 7.5, 8, None)
    with tc.MapMonitor(POLICY, **MAP, at=7) as watched:
        watched.feed(batch)
        watched.feed(visits(7, place="cafe"))
        assert by_place(watched) == {"gym": 2, "cafe": 1}
        watched.feed(at_gym(3))  # a batch without the column is all of that time
        assert by_place(watched) == {"gym": 5, "cafe": 1}
    with tc.MapMonitor(POLICY, **MAP, at="2024-03-01T12:00", every="1 hour") as watched:
        watched.feed(visits(*pd.to_datetime(["2024-03-01T11:59:59", "2024-03-01T12:00:00", "2024-03-01T13:00:00"])))
        assert by_place(watched) == {"gym": 1}
        assert watched.feed(None)["gym"].time == "2024-03-01T12:00"
    with tc.MapMonitor(POLICY, **MAP, at="the first Monday", time=None) as watched:
        watched.feed(batch)
        assert by_place(watched) == {"gym": 5}


def test_a_person_is_at_one_place_of_a_map() -> None:
    batch = pd.DataFrame(
        {
            "visited": ["park", "cafe", "gym", "gym", "gym"],
            "who": ["a", "a", "a", "b", "b"],
            "time": [7.5, 7.25, 7.25, 7, 7],
        }
    )
    with tc.MapMonitor(POLICY, **MAP, at=7, person="who") as watched:
        watched.feed(batch)
        assert by_place(watched) == {"gym": 2}  # of a: the first by time, then in the order of the places
        watched.feed(visits(7, place="park", who=["a"]))
        assert by_place(watched) == {"gym": 2}
        assert watched.certificate["unit"]["visits"] == 1
    with tc.MapMonitor(POLICY, **MAP, at=7, person="who", visits_per_person=2) as watched:
        watched.feed(batch)
        assert by_place(watched) == {"gym": 2, "cafe": 1}
        watched.feed(visits(7, 7, place="gym", who=["a", "c"]))
        assert by_place(watched) == {"gym": 3, "cafe": 1}
        assert watched.history.law.right == 2


def test_events_with_ids_count_once_on_a_map() -> None:
    batch = pd.DataFrame({"visited": ["gym", "gym", "cafe", "cafe"], "id": ["x", "x", None, None]})
    with tc.MapMonitor(POLICY, **MAP, event="id") as watched:
        watched.feed(batch)
        watched.feed(batch)
        assert by_place(watched) == {"gym": 1, "cafe": 4}


def test_a_map_is_decided_at_chosen_steps_only(tmp_path: Path) -> None:
    options = {"threshold": 1, "epsilon": 1, "decide_at": [3, 1], "state": tmp_path / "map.db"}
    with tc.MapMonitor(POLICY, **options) as watched:
        first = watched.feed(iter(["gym"]))
        assert {verdict.verdict for verdict in first.values()} == {"not asked"}
        assert set(first.frame["verdict"]) == {"not asked"}
        assert set(watched.frame["verdict"]) == {"not asked"}
        second = watched.feed(iter(["cafe"]))
        assert (second["gym"].verdict, second["cafe"].verdict) == ("above", "above")
        third = watched.feed(iter(["park"]))
        assert third["gym"].verdict == "already alarmed"
        assert third["park"].verdict in ("not asked", "already alarmed")
        assert watched.history.decided == (1,)
        assert watched.history.at().step == watched.history.at(2).step == 1
        assert "not asked" in watched.certificate["verdicts"]
        assert watched.next_step == 3
    with pytest.raises(tc.PlanError, match="decide_at must be as when"):
        tc.MapMonitor(POLICY, **{**options, "decide_at": None})


@pytest.mark.parametrize("steps", [[], "1", 3, [-1], [0.5]])
def test_steps_of_decisions_that_are_none_are_refused(steps: Any) -> None:
    with pytest.raises(tc.PlanError, match="decide_at must"):
        tc.MapMonitor(POLICY, **MAP, decide_at=steps)


def test_a_map_of_some_places() -> None:
    with tc.MapMonitor(POLICY, threshold=1, epsilon=1, places=["park", "gym"]) as watched:
        verdict = watched.feed(iter(["cafe", "park"]))
        assert list(verdict) == ["gym", "park"]
        assert by_place(watched) == {"park": 1}
        assert verdict["park"].verdict == "above"
        with pytest.raises(tc.PlanError, match="must be one of the monitored places"):
            verdict["cafe"]


def test_a_large_map_of_numbers(tmp_path: Path) -> None:
    policy = tc.Policy(tc.Domain({"clicked": tc.Items(200_000, first=1)}), tc.secrets.values({"clicked": [1]}))
    with tc.MapMonitor(policy, threshold=1000, epsilon=1, state=tmp_path / "map.db") as watched:
        verdict = watched.feed(pd.DataFrame({"clicked": np.repeat([1, 200_000, 200_001], [1200, 3, 5])}))
        assert verdict[1].verdict == "above"
        assert verdict[200_000].verdict == "certainly below"
        assert len(verdict.frame) == 200_000
    assert History.read(tmp_path / "map.db").at()[np.int64(1)].verdict == "above"


# ---- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"threshold": 0}, "threshold must be a whole number from 1 to 10^12; got 0."),
        ({"threshold": 2.5}, "threshold must be a whole number from 1 to 10^12; got 2.5."),
        ({"threshold": True}, "threshold must be a whole number"),
        ({"threshold": 10**13}, "threshold must be a whole number"),
        ({"window": 0}, "window must be a whole number from 1 to 10^12; got 0. For instance 14"),
        ({"window": "14"}, "window must be a whole number"),
        ({"epsilon": 0}, "epsilon must lie above 0 and at most 1000; got 0."),
        ({"epsilon": -1}, "epsilon must lie above 0"),
        ({"epsilon": float("nan")}, "epsilon must be a finite number"),
        ({"epsilon": 101}, "epsilon must lie between 0.000000000001 and 100 here; got 101."),
        ({"epsilon": "1e-13"}, "epsilon must lie between"),
        ({"place": "gim"}, "place must be one of the items; got 'gim'. Did you mean 'gym'?"),
        ({"place": None}, "place must be one of the items; got None"),
        ({"visits_per_person": 2}, "visits_per_person needs a person; got 2."),
        ({"visits_per_person": 0, "person": "who"}, "visits_per_person must be a whole number from 1"),
        ({"person": 7}, "person must be the name of a column; got 7"),
        ({"person": "visited"}, "person must not be the column of item as well; got 'visited'"),
        ({"item": "venue", "person": "visited"}, "person must not be a column that the policy keeps secret"),
        ({"item": ""}, "item must be the name of a column"),
        ({"time": 3}, "time must be the name of a column"),
        ({"start": "soon", "every": "1 day"}, "start must be a whole number or a date; got 'soon'"),
        (
            {"attribute": "visitd"},
            "attribute must be an attribute of the domain; got 'visitd'. Did you mean 'visited'?",
        ),
    ],
)
def test_what_is_out_of_range_is_refused_with_key_rule_value_and_fix(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises((tc.PlanError, tc.PolicyError)) as refusal:
        tc.PlaceMonitor(POLICY, **{**GYM, **wrong})
    assert sentence in str(refusal.value).replace("1e-12", "0.000000000001")


def test_epsilon_is_bounded_by_the_unit() -> None:
    tc.PlaceMonitor(POLICY, **{**GYM, "epsilon": 101}, person="who", visits_per_person=2).close()


PLACE = tc.Domain({"place": tc.Categories(["A", "B", "nowhere"])})
AWAY = tc.secrets.pairs([("A", "nowhere"), ("B", "nowhere")])


@pytest.mark.parametrize(
    ("policy", "key", "sentence"),
    [
        (tc.Policy(TOWN, tc.secrets.values({"visited": [0, 1]})), "policy", "rises by up to 1"),
        (tc.Policy(TOWN, tc.secrets.values({"visited": [0]})), "policy", "rises by up to 1"),
        (tc.Policy(TOWN, tc.secrets.everything()), "policy", "or a certain verdict would give somebody away"),
        (tc.Policy(TOWN, tc.secrets.values({"visited": [1]}), presence="secret"), "policy", "taking part is secret"),
        (
            tc.Policy(tc.Domain({**TOWN, "age": tc.Integers(0, 9)}), tc.secrets.within(1, "age")),
            "policy",
            "must protect the visits: no secret edge changes their number",
        ),
    ],
)
def test_policies_that_one_sided_noise_cannot_keep_are_refused(policy: Any, key: str, sentence: str) -> None:
    for make in (lambda: tc.PlaceMonitor(policy, **GYM), lambda: tc.MapMonitor(policy, **MAP)):
        with pytest.raises(tc.PlanError) as refusal:
            make()
        assert refusal.value.key == key
        assert sentence in str(refusal.value) or sentence in str(refusal.value.given)


def test_being_elsewhere_is_no_cover_on_a_map() -> None:
    """A -> B would raise the count of B, and its certain verdict would then prove where somebody was not."""
    moving = tc.Policy(PLACE, tc.secrets.values({"place": ["A", "B"]}))
    with pytest.raises(tc.PlanError, match=r"places must be places that no secret edge leads to.*got \['A', 'B'"):
        tc.MapMonitor(moving, **MAP)
    leaving = tc.Policy(PLACE, AWAY)
    with pytest.raises(tc.PlanError, match=r"got \['nowhere'\]"):
        tc.MapMonitor(leaving, **MAP)
    with tc.MapMonitor(leaving, **MAP, places=["A", "B"]) as watched:
        assert list(watched.feed(iter(["A", "nowhere"]))) == ["A", "B"]
    with pytest.raises(tc.PlanError, match="no secret edge changes their number"):
        tc.MapMonitor(tc.Policy(PLACE, tc.secrets.pairs([("A", "nowhere")])), **MAP, places=["B"])
    # one place alone is another matter: whoever is at A looks as if elsewhere, and A is all that is watched
    one = tc.Policy(PLACE, tc.secrets.values({"place": ["A"]}))
    tc.PlaceMonitor(one, **{**GYM, "place": "A"}).close()
    with pytest.raises(tc.PlanError, match="must not let the number of visits rise"):
        tc.PlaceMonitor(one, **{**GYM, "place": "B"})


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: tc.PlaceMonitor("policy", **GYM), "policy must be a Policy"),
        (lambda: tc.MapMonitor(POLICY, **MAP, places=[]), "places must be a list of places; got []"),
        (lambda: tc.MapMonitor(POLICY, **MAP, places="gym"), "places must be a list of places; got 'gym'"),
        (lambda: tc.MapMonitor(POLICY, **MAP, places=["gim"]), "place must be one of the items; got 'gim'"),
        (lambda: tc.MapMonitor(POLICY, **MAP, event="id", person="who"), "event must not be given with a person"),
        (lambda: tc.MapMonitor(POLICY, **MAP, at="noon"), "at must be a whole number or a date; got 'noon'"),
        (
            lambda: tc.MapMonitor(
                tc.Policy(tc.Domain({"here": tc.Flag()}), tc.secrets.values({"here": [1]})), **MAP
            ),
            "attribute must have the places as items or categories",
        ),
        (
            lambda: tc.MapMonitor(
                tc.Policy(tc.Domain({"a": tc.Items(2), "b": tc.Items(2)}), tc.secrets.values({"a": [1]})), **MAP
            ),
            "attribute must say which attribute has the places; got ['a', 'b']",
        ),
        (
            lambda: tc.PlaceMonitor(
                tc.Policy(tc.Domain({"a": tc.Items(2), "b": tc.Items(2)}), tc.secrets.values({"a": [1]})),
                **{**GYM, "place": 1},
            ),
            "place must belong to one attribute of the domain; got 1. Say attribute='a', for instance.",
        ),
        (
            lambda: tc.PlaceMonitor(
                tc.Policy(tc.Domain({"here": tc.Flag()}), tc.secrets.values({"here": [1]})), **GYM
            ),
            "place must be an item, a category or the name of a flag of the domain; got 'gym'. For instance 'here'.",
        ),
    ],
)  # fmt: skip
def test_more_refusals(make: Any, sentence: str) -> None:
    with pytest.raises((tc.PlanError, tc.PolicyError)) as refusal:
        make()
    assert sentence in str(refusal.value)


# ---- what is promised -----------------------------------------------------------------------------------------------


def test_the_certificate_states_the_unit_and_depends_on_no_event() -> None:
    def certificate(batches: list[Any], **options: Any) -> dict[str, Any]:
        with tc.PlaceMonitor(POLICY, **{**GYM, "threshold": 5, **options}) as watched:
            for batch in batches:
                watched.feed(batch)
            found = watched.certificate
            assert json.loads(json.dumps(found)) == found
            return copy.deepcopy(found)

    assert certificate([]) == certificate([at_gym(100), None, at_gym(3)])
    visit = certificate([])
    assert visit["unit"] == {"of": "visit", "person": None, "visits": None}
    assert "again for each further alarm" in visit["protects"]
    assert visit["chance_certainly_below"]["0"] == pytest.approx(1 - np.exp(-5))
    assert visit["noise"]["right"] == "1"
    person = certificate([], person="who", visits_per_person=4)
    assert person["unit"] == {"of": "person", "person": "who", "visits": 4}
    assert "the first 4 visits of a person over the whole life" in person["protects"]
    assert "0.25 for each and 1 in all" in person["protects"]
    assert person["noise"]["right"] == "4"
    assert "nothing is promised from cover to hidden" in person["guarantee"]
    assert visit["step"]["derivation"]


def test_the_certificate_of_a_map_says_nowhere_and_not_elsewhere() -> None:
    with tc.MapMonitor(POLICY, **MAP, at=7, person="who") as watched:
        said = watched.certificate
        assert "looks as if nowhere (not: elsewhere)" in said["protects"]
        assert said["places"] == {"names": ["gym", "cafe", "park"]}
        assert "already alarmed" in said["verdicts"]


def test_replayed_noise_promises_nothing() -> None:
    with tc.PlaceMonitor(POLICY, **GYM) as watched:
        with noise.replayed(noise.Keystream(key=bytes(32))):
            watched.feed(None)
        assert watched.certificate["guarantee"].startswith("none")
        assert watched.certificate["randomness"].startswith("REPLAYED")


def test_the_chance_of_a_certain_verdict_is_known_in_advance() -> None:
    with tc.PlaceMonitor(POLICY, **{**GYM, "threshold": 5}, person="who", visits_per_person=2) as watched:
        assert watched.chance_certainly_below() == pytest.approx(1 - np.exp(-2.5))
        assert watched.chance_certainly_below(4, decisions=3) == pytest.approx((1 - np.exp(-0.5)) ** 3)
        assert watched.chance_certainly_below(5) == 0


def test_monitors_print_what_is_public() -> None:
    with tc.PlaceMonitor(POLICY, **GYM) as one, tc.MapMonitor(POLICY, **MAP) as many:
        assert repr(one) == "PlaceMonitor('gym', threshold 1,000,000,000, epsilon 1)"
        assert repr(many) == "MapMonitor(3 places, threshold 1,000,000,000, epsilon 1)"
        assert repr(many.feed(None)) == "<step 0: 3 places, 0 new alarms, 0 in all>"


def test_a_fault_of_ours_says_nothing_about_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("CANARY")

    with tc.PlaceMonitor(POLICY, **GYM, person="who") as watched:
        monkeypatch.setattr(counting, "cover_new", broken)
        with pytest.raises(tc.InternalError) as refusal:
            watched.feed(visits(0, who=["CANARY"]))
        assert "CANARY" not in str(refusal.value)
        assert (refusal.value.__context__, refusal.value.__cause__) == (None, None)
        assert watched.history.steps == ()
        monkeypatch.undo()
        assert watched.feed(None).step == 0


def test_monitors_are_drawn_by_the_report_stage() -> None:
    with tc.PlaceMonitor(POLICY, **GYM) as watched:
        watched.feed(None)
        assert watched.chart().to_dict() == monitor_chart(watched.history).to_dict()


def test_one_record_with_a_time_does_not_decide_how_the_others_are_read() -> None:
    """Without the one visit at the gym the visits without a time must count just as they do with it: not at all."""
    without_time = [{"visited": "cafe"}] * 50
    for batch in ([{"visited": "gym", "time": 7}, *without_time], without_time):
        watched = tc.MapMonitor(POLICY, at=7, **MAP)
        watched.feed(batch)
        assert by_place(watched).get("cafe", 0) == 0
    untimed = tc.MapMonitor(POLICY, at=7, time=None, **MAP)
    untimed.feed(without_time)
    assert by_place(untimed) == {"cafe": 50}


@pytest.mark.parametrize("cells", [[5, 5], [5, "x"], [5, "2020-01-01"]])
def test_one_cell_of_a_column_of_objects_does_not_decide_whether_a_batch_is_refused(cells: list[Any]) -> None:
    watched = tc.MapMonitor(POLICY, at="2020-01-01", every="1 day", **MAP)
    watched.feed(pd.DataFrame({"visited": ["cafe", "gym"], "time": pd.Series(cells, dtype=object)}))
    assert by_place(watched) == ({"gym": 1} if cells[1] == "2020-01-01" else {})


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("columns", "row", "again", "counts"),
    [
        ({"event": "id"}, {"id": 1}, (1, {}), [1, 1, 1, 1, 0]),
        ({"event": "id"}, {"id": 1, "time": 0}, (2, {"time": 2}), [1, 1, 1, 1, 1]),
        ({"event": "id"}, {"id": 1, "time": 2}, (1, {"time": 0}), [0, 1, 1, 1, 1]),
        ({"event": "id", "person": "who"}, {"id": 1, "who": 1, "time": 0}, (1, {}), [1, 1, 1, 0, 0]),
        ({"person": "who"}, {"who": "a", "time": "noon"}, (2, {}), [1, 1, 2, 1, 1]),
        ({"event": "id", "person": "who", "visits_per_person": 2}, {"id": 1, "who": 1}, (1, {}), [1, 1, 1, 0, 0]),
    ],
)
def test_a_visit_that_is_seen_again_counts_where_any_of_its_rows_would(
    columns: dict[str, Any], row: dict[str, Any], again: tuple[int, dict[str, Any]], counts: list[int]
) -> None:
    """Were the first row counted alone, its absence would let the second one in; of bounded persons it is alone."""
    first = {"visited": "gym", **row}
    watched = tc.PlaceMonitor(POLICY, **GYM, **columns)
    seen = []
    for step in range(5):
        watched.feed([first] if step == 0 else [{**first, **again[1]}] if step == again[0] else [])
        seen.append(counted(watched))
    assert seen == counts


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tc.PlaceMonitor(POLICY, **GYM, person="who", event="id"), "rows with the same who and id count once"),
        (
            lambda: tc.PlaceMonitor(POLICY, **GYM, person="who", event="id", visits_per_person=2),
            "rows with the same who and id are one visit",
        ),
        (lambda: tc.PlaceMonitor(POLICY, **GYM, event="id"), "rows with the same id count once in each step"),
        (lambda: tc.MapMonitor(POLICY, **MAP, event="id"), "rows with the same id count once at each place"),
        (lambda: tc.PlaceMonitor(POLICY, **GYM, person="who"), "rows with the same person, place and time are one"),
    ],
)
def test_the_certificate_says_what_tells_duplicates_apart(make: Any, said: str) -> None:
    with make() as watched:
        assert any(said in line for line in watched.certificate["counted"])


def test_people_who_share_an_id_of_an_event_count_each() -> None:
    batch = pd.DataFrame({"visited": ["gym"] * 3, "who": ["a", "a", "b"], "id": [7, 7, 7]})
    assert history_of_counts(batch, person="who", event="id") == [2]
    assert history_of_counts(batch, person="who", event="id", visits_per_person=2) == [2]
    assert history_of_counts(batch, event="id") == [1]


def test_the_certificate_the_ledger_and_the_monitor_name_one_policy(tmp_path: Path) -> None:
    with tc.Ledger(tmp_path / "ledger.db") as opened:
        opened.grant(dataset="town", epsilon=10)
        for number, (kind, options) in enumerate(
            (
                (tc.PlaceMonitor, GYM),
                (tc.PlaceMonitor, {**GYM, "person": "who"}),
                (tc.PlaceMonitor, {**GYM, "person": "who", "visits_per_person": 2}),
                (tc.MapMonitor, MAP),
                (tc.MapMonitor, {**MAP, "person": "who", "visits_per_person": 2}),
            )
        ):
            with tc.Ledger(tmp_path / "ledger.db") as again:
                again.grant(dataset=f"town {number}", epsilon=1)
                with kind(POLICY, **options, ledger=again, dataset=f"town {number}") as watched:
                    (entry,) = [e for e in again.entries(f"town {number}") if e.kind == "charge"]
                    assert entry.policy == watched.policy.fingerprint == watched.certificate["policy_fingerprint"]
                    assert watched.certificate["policy"] == watched.policy.document()


def test_a_map_of_persons_is_charged_under_the_policy_that_it_keeps(tmp_path: Path) -> None:
    """Under sets of places, one place of a person may be taken away, and then the next one counts."""
    sets = POLICY.owned_by("who", 1)
    with tc.Ledger(tmp_path / "ledger.db") as opened:
        opened.grant(dataset="sets", epsilon=3, policy=sets)
        opened.grant(dataset="rows", epsilon=3, policy=POLICY)
        opened.grant(dataset="single", epsilon=3, policy=SINGLE)
        for dataset in ("sets", "rows"):
            with pytest.raises(tc.LedgerError, match="protects less"):
                tc.MapMonitor(sets, **MAP, person="who", ledger=opened, dataset=dataset)
        with tc.MapMonitor(sets, **MAP, ledger=opened, dataset="single") as watched:
            assert watched.policy.covers(SINGLE)
            assert "all visits of one person" in watched.certificate["guarantee"]
        tc.PlaceMonitor(sets, **GYM, ledger=opened, dataset="single").close()
        tc.MapMonitor(POLICY, **MAP, ledger=opened, dataset="rows").close()


def test_persons_with_a_bound_need_places_that_are_items() -> None:
    away = tc.Policy(PLACE, tc.secrets.pairs([("A", "nowhere"), ("B", "nowhere")]))
    for make in (
        lambda: tc.MapMonitor(away, threshold=5, epsilon=1, places=["A", "B"], person="who"),
        lambda: tc.PlaceMonitor(away, place="A", threshold=5, epsilon=1, window=3, person="who", visits_per_person=1),
        lambda: tc.PlaceMonitor(away.owned_by("who", 1), place="A", threshold=5, epsilon=1, window=3),
    ):
        with pytest.raises(tc.PlanError, match="must have the places as a set of items"):
            make()
    tc.PlaceMonitor(away, place="A", threshold=5, epsilon=1, window=3, person="who").close()
    both = tc.Policy(TOWN, tc.secrets.pairs([({"visited": ["gym", "cafe"]}, {"visited": []})]))
    tc.MapMonitor(both, **MAP, person="who").close()
    left = tc.Policy(TOWN, tc.secrets.pairs([({"visited": ["gym", "cafe"]}, {"visited": ["cafe"]})]))
    with pytest.raises(tc.PlanError, match="must have only edges that surely take away all monitored visits"):
        tc.MapMonitor(left, **MAP, person="who")


def test_a_list_of_texts_is_a_list_of_places_and_never_of_files() -> None:
    """If one record decided whether the others are paths, its text would be in an error."""
    for batch in (["gym", "cafe"], ("gym", None), ["gym", "no/such/file.csv"]):
        watched = tc.PlaceMonitor(POLICY, **GYM)
        watched.feed(batch)
        assert counted(watched) == 1


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_an_event_at_several_places_counts_at_each_whatever_the_order_of_rows(make: Any) -> None:
    rows = {"visited": ["cafe", "gym"] * 300, "id": [f"e{n // 2}" for n in range(600)]}
    for turned in (slice(None), slice(None, None, -1)):
        watched = tc.MapMonitor(POLICY, at=0, event="id", time=None, **MAP)
        watched.feed(make({name: cells[turned] for name, cells in rows.items()}))
        # were one place chosen, taking that visit away would let the other one count
        assert by_place(watched) == {"gym": 300, "cafe": 300}


def test_a_state_that_others_could_read_is_closed_to_them_again(tmp_path: Path) -> None:
    state = tmp_path / "gym.db"
    tc.PlaceMonitor(POLICY, **GYM, state=state).close()
    state.chmod(0o644)
    tc.PlaceMonitor(POLICY, **GYM, state=state).close()
    assert stat.S_IMODE(state.stat().st_mode) == 0o600

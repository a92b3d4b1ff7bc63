"""A monitor that is killed at every point where it writes, and by chance in between: no step is lost, none is doubled.

A helper process loads Tacit once and forks a child for each try. In the child every statement that reaches SQLite, in
the state and in the ledger, is counted, and the child kills itself (SIGKILL, nothing is cleaned up) before the n-th.
"""

import contextlib
import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tacit as tc
from tacit.monitor.history import History
from tacit.monitor.journal import read_published

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

POLICY = tc.Policy(tc.Domain({"visited": tc.Items(["gym", "cafe"])}), secrets=tc.secrets.values({"visited": [1]}))
OPTIONS: dict[str, Any] = {"place": "gym", "threshold": 5, "epsilon": 1, "window": 2}
PEOPLE = {"person": "who", "visits_per_person": 2}

HELPER = """
import contextlib, importlib, json, os, signal, sqlite3, sqlite3.dbapi2, sys, tempfile
import tacit as tc

POLICY = tc.Policy(tc.Domain({"visited": tc.Items(["gym", "cafe"])}), secrets=tc.secrets.values({"visited": [1]}))
connect = sqlite3.connect

def arm(last):
    seen = 0

    def counted(statement):
        nonlocal seen
        seen += 1
        if seen == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(*args, **options):
        db = connect(*args, **options)
        db.set_trace_callback(counted)
        return db

    sqlite3.connect = sqlite3.dbapi2.connect = watched
    return lambda: seen

def play(asked):
    seen = arm(asked["kill_at"])
    make = getattr(tc, asked["kind"])
    monitor = make(POLICY, **asked["options"])
    with open(asked["said"], "a") as said:
        for file in asked["files"]:
            verdict = monitor.feed(file)
            value = verdict["gym"].value if asked["kind"] == "MapMonitor" else verdict.value
            print(json.dumps([os.path.basename(file), verdict.step, value]), file=said, flush=True)
    if "counted" in asked:
        with open(asked["counted"], "w") as counted:
            counted.write(str(seen()))

def load():
    # Tacit loads what it needs when it needs it. A first child says what that is, so that no other has to load it.
    ear, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        with tempfile.TemporaryDirectory() as folder:
            file, ledger = os.path.join(folder, "day.csv"), os.path.join(folder, "ledger.db")
            with open(file, "w") as day:
                day.write("visited,who,time\\ngym,p0,0\\n")
            with tc.Ledger(ledger) as opened:
                opened.grant(dataset="town", epsilon=2)
            paid = {"ledger": ledger, "dataset": "town", "person": "who", "visits_per_person": 2}
            for make, more in ((tc.PlaceMonitor, {"place": "gym", "window": 2}), (tc.MapMonitor, {})):
                state = os.path.join(folder, make.__name__)
                make(POLICY, threshold=5, epsilon=1, state=state, **more, **paid).feed(file)
        with os.fdopen(mouth, "w") as said:
            said.write(" ".join(sys.modules))
        os._exit(0)
    os.close(mouth)
    with os.fdopen(ear) as said:
        names = said.read().split()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)

load()
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            play(json.loads(line))
        except BaseException as fault:
            print(type(fault).__name__, fault, file=sys.stderr, flush=True)
            os._exit(3)
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Helper:
    """The process that forks the children."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HELPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def start(self, **asked: Any) -> int:
        """Start a child and return its process number."""
        assert self.process.stdin is not None
        asked = {"kind": "PlaceMonitor", "kill_at": -1, **asked}
        self.process.stdin.write(json.dumps(asked, default=str) + "\n")
        self.process.stdin.flush()
        return int(self._line())

    def end(self) -> bool:
        """Wait for the child; return whether it was killed. Fails if it came to any other end than its own."""
        code = int(self._line())
        assert code in (0, -signal.SIGKILL), code
        return code != 0

    def play(self, **asked: Any) -> bool:
        self.start(**asked)
        return self.end()


@pytest.fixture(scope="module")
def helper() -> Iterator[Helper]:
    found = Helper()
    yield found
    assert found.process.stdin is not None
    found.process.stdin.close()
    assert found.process.wait(timeout=60) == 0
    assert found.process.stdout is not None
    found.process.stdout.close()


def write_days(folder: Path, *counts: int) -> list[Path]:
    """Write one file of visits for each day; visitors come again every day."""
    files = []
    for day, count in enumerate(counts):
        rows = {"visited": ["gym"] * count, "who": [f"p{n}" for n in range(count)], "time": [day] * count}
        files.append(folder / f"day{day}.csv")
        pd.DataFrame(rows).to_csv(files[-1], index=False)
    return files


def private(state: Path, question: str) -> list[Any]:
    db = sqlite3.connect(state)
    try:
        return db.execute(question).fetchall()
    finally:
        db.close()


def said_in(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(params=[16, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def points(request: pytest.FixtureRequest) -> Callable[[Path], Iterator[int]]:
    """Return what says before which statements to kill: the last few, and some or all of those before them."""

    def listed(counted: Path) -> Iterator[int]:
        statements = int(counted.read_text())
        some = {*range(1, statements + 1, request.param), *range(max(1, statements - 4), statements + 1)}
        return itertools.chain(sorted(some), itertools.count(statements + 1))  # until one comes to its own end

    return listed


@pytest.mark.parametrize("kind", ["PlaceMonitor", "MapMonitor"])
def test_killed_before_every_statement_of_a_step(helper: Helper, points: Any, tmp_path: Path, kind: str) -> None:
    files = write_days(tmp_path, 1, 6)
    options = {**PEOPLE, **(OPTIONS if kind == "PlaceMonitor" else {"threshold": 5, "epsilon": 1})}
    begun = tmp_path / "begun.db"
    while True:  # a first step without an alarm, so that the second one is decided
        begun.unlink(missing_ok=True)
        first = {"options": {**options, "state": begun}, "said": tmp_path / "begun.said"}
        assert not helper.play(kind=kind, files=files[:1], **first)
        if not read_published(begun).alarms:
            break
    before, after = 0, 0
    counted = tmp_path / "counted"
    whole = {
        "options": {**options, "state": shutil.copy(begun, tmp_path / "whole.db")},
        "said": tmp_path / "whole.said",
    }
    assert not helper.play(kind=kind, files=files[1:], counted=counted, **whole)
    for kill_at in points(counted):
        state, said = tmp_path / f"{kill_at}.db", tmp_path / f"{kill_at}.said"
        shutil.copy(begun, state)
        asked = {"kind": kind, "options": {**options, "state": state}, "files": files[1:], "said": said}
        if not helper.play(**asked, kill_at=kill_at):
            break
        published = read_published(state)
        rung = [alarm.value for alarm in published.alarms if alarm.place == 0]
        # the step is there with its alarm, or nothing of it is
        assert (published.steps, len(rung)) in [((0,), 0), ((0, 1), 1)]
        before, after = before + (not rung), after + len(rung)
        shown = said_in(said)
        assert [value for *_, value in shown] in ([], rung)
        assert not helper.play(**asked)
        ((name, step, value),) = said_in(said)[len(shown) :]
        assert (name, step) == ("day1.csv", 1)
        assert value >= 6
        assert rung in ([], [value])  # what was drawn before the kill was not drawn again
        history = History.read(state)
        assert history.steps == (0, 1)
        assert [alarm.value for alarm in read_published(state).alarms if alarm.place == 0] == [value]
        kept = private(state, "SELECT sum(kept), count(*) FROM private_people")
        assert kept == ([(7, 6)] if kind == "PlaceMonitor" else [(6, 6)])  # no visit was counted twice
    assert kill_at > 25  # or nothing was counted
    assert min(before, after) > 0  # kills before and after the commit were both seen


def test_killed_before_every_statement_of_beginning_and_paying(helper: Helper, points: Any, tmp_path: Path) -> None:
    counted = tmp_path / "counted"
    with tc.Ledger(tmp_path / "ledger.db") as ledger:
        ledger.grant(dataset="town", epsilon=3)
    paid = {"ledger": tmp_path / "ledger.db", "dataset": "town", "state": tmp_path / "monitor.db"}
    assert not helper.play(options={**OPTIONS, **paid}, files=[], said=tmp_path / "said", counted=counted)
    for kill_at in points(counted):
        folder = tmp_path / str(kill_at)
        folder.mkdir()
        with tc.Ledger(folder / "ledger.db") as ledger:
            ledger.grant(dataset="town", epsilon=3)
            paid = {"ledger": folder / "ledger.db", "dataset": "town", "state": folder / "monitor.db"}
            asked = {"options": {**OPTIONS, **paid}, "files": [], "said": folder / "said"}
            killed = helper.play(**asked, kill_at=kill_at)
            if killed:
                assert not helper.play(**asked)
            assert ledger.remaining(dataset="town") == 2
            assert [entry.kind for entry in ledger.entries()] == ["grant", "charge"]
            assert ledger.verify().ok
            receipt = History.read(folder / "monitor.db").receipt
            assert receipt is not None
            assert receipt["entry"] == 2
        if not killed:
            break
    assert kill_at > 40


def test_killed_by_chance_again_and_again(helper: Helper, tmp_path: Path) -> None:
    """Kills fall anywhere, also inside a commit; every file is taken once and every verdict stays as it was said."""
    files = write_days(tmp_path, *[3, 60, 1, 0, 2, 80, 1, 1] * 3)
    asked = {
        "options": {**OPTIONS, **PEOPLE, "state": tmp_path / "monitor.db"},
        "files": files,
        "said": tmp_path / "said",
    }
    kills, delay = 0, 0.02
    while True:
        child = helper.start(**asked)
        time.sleep(delay)
        delay = delay * 1.25
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        if not helper.end():
            break
        kills += 1
    assert kills >= 5
    lines = [tuple(line) for line in said_in(tmp_path / "said")]
    assert len(set(lines)) == len(files)  # whatever was said twice was said in the same words
    history = History.read(tmp_path / "monitor.db")
    assert history.steps == tuple(range(len(files)))
    assert {(verdict.step, verdict.value) for verdict in history.verdicts} == {line[1:] for line in lines}
    steps = [verdict.step for verdict in history.verdicts if verdict.verdict == "above"]
    assert len(steps) >= 3
    assert all(later - earlier >= OPTIONS["window"] for earlier, later in itertools.pairwise(steps))


def test_a_second_process_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    state = tmp_path / "monitor.db"
    watched = tc.PlaceMonitor(POLICY, **OPTIONS, state=state)
    script = f"""
import tacit as tc
policy = tc.Policy(tc.Domain({{"visited": tc.Items(["gym", "cafe"])}}), secrets=tc.secrets.values({{"visited": [1]}}))
try:
    print(tc.PlaceMonitor(policy, **{OPTIONS!r}, state={str(state)!r}).feed(None).step)
except tc.PlanError as refusal:
    print(refusal)
"""
    run = [sys.executable, "-c", script]
    refused = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert refused.startswith("state is in use by another process; got ")
    watched.feed(None)
    watched.close()
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "1\n"
    with tc.PlaceMonitor(POLICY, **OPTIONS, state=state) as watched:
        assert watched.feed(None).step == 2

"""Jobs that race for what is left, and jobs that are killed: paid as a whole or not at all, and never drawn twice."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger.ledger import Ledger

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

JOB = """\
name: {name}
policy:
  domain:
    age: {{integers: [0, 9]}}
  secrets: everything
rows: people.csv
dataset: clinic
ledger: {ledger}
out: {name}
releases:
  - {{name: ages, query: {{histogram: [age]}}, epsilon: 0.2}}
  - {{name: young, query: {{count: "age < 3"}}, epsilon: 0.3}}
  - {{name: old, query: {{count: "age > 7"}}, epsilon: 0.1}}
"""

# One process that has loaded everything forks one child for each job: they begin together, and quickly.
RUNNER = """
import json, os, signal, sys
import altair, jinja2, tacit, vl_convert
from tacit.errors import TacitError
from tacit.jobs.job_file import read_job
from tacit.release.session import Session
from tacit.report import job_folder as publishing

# no race is for the pictures, and what draws them takes a second to start in each child
vl_convert.vegalite_to_svg = lambda *_, **__: "<svg xmlns='http://www.w3.org/2000/svg'/>"

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def before(owner, name):
    setattr(owner, name, die)

def after(owner, name):
    made = getattr(owner, name)
    def then(*args, **options):
        made(*args, **options)
        die()
    setattr(owner, name, then)

POINTS = {
    "": lambda: None,
    "before the charge": lambda: before(Session, "reserve"),
    "after the charge": lambda: after(Session, "reserve"),
    "after the first release": lambda: after(publishing, "write_text"),
    "before the rename": lambda: before(publishing, "_put_in_place"),
    "after the mark": lambda: after(publishing.UnfinishedFolder, "unmark"),
    "after the rename": lambda: after(publishing, "_put_in_place"),
}

def run(file, point):
    POINTS[point]()
    try:
        publishing.publish(read_job(file))
        return {"done": True}
    except TacitError as error:
        return {"done": False, "kind": type(error).__name__, "said": str(error)}

def race(listed):
    gate, opened = os.pipe()
    children = []
    for file, point in listed:
        ear, mouth = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(opened)
            os.read(gate, 1)  # until the parent closes its end: all begin at once
            os.write(mouth, json.dumps(run(file, point)).encode())
            os._exit(0)
        os.close(mouth)
        children.append((child, ear))
    os.close(opened)
    os.close(gate)
    for child, ear in children:
        with os.fdopen(ear) as stream:
            text = stream.read()
        os.waitpid(child, 0)
        yield json.loads(text) if text else {"done": False, "kind": "killed"}

for line in sys.stdin:
    print(json.dumps(list(race(json.loads(line)))), flush=True)
"""


class Runner:
    """The process that forks."""

    def __init__(self) -> None:
        env = {name: value for name, value in os.environ.items() if name != "TACIT_LEDGER_KEY"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def run(self, *jobs: Path, points: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        """Run jobs at the same time, each to its point of death if it has one; return how each ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        listed = json.dumps([(str(job), points[place] if points else "") for place, job in enumerate(jobs)])
        self.process.stdin.write(listed + "\n")
        self.process.stdin.flush()
        found: list[dict[str, Any]] = json.loads(self.process.stdout.readline())
        return found


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    found = Runner()
    yield found
    assert found.process.stdin is not None
    assert found.process.stdout is not None
    found.process.stdin.close()
    found.process.stdout.close()
    assert found.process.wait(timeout=60) == 0


def job(folder: Path, name: str, ledger: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "people.csv").write_text("age\n" + "\n".join(str(number % 10) for number in range(50)) + "\n")
    file = folder / f"{name}.yaml"
    file.write_text(JOB.format(name=name, ledger=json.dumps(ledger)))
    return file


@pytest.mark.parametrize(("jobs", "suffices_for"), [(4, 1), pytest.param(8, 3, marks=pytest.mark.slow)])
def test_jobs_race_for_what_does_not_suffice_for_all(
    runner: Runner, where: str, jobs: int, suffices_for: int, tmp_path: Path
) -> None:
    folder = tmp_path / "jobs"
    with Ledger(where) as ledger:
        ledger.grant(dataset="clinic", epsilon=Fraction(3, 5) * suffices_for + Fraction(1, 5))
    ended = runner.run(*(job(folder, f"job{number}", where) for number in range(jobs)))
    refused = [one for one in ended if not one["done"]]
    assert len(refused) == jobs - suffices_for, ended
    for one in refused:
        assert one["kind"] == "BudgetExceeded"
        assert "Nothing was charged" in one["said"]
        assert "was spent" not in one["said"]
    finished = [number for number, one in enumerate(ended) if one["done"]]
    folders = sorted(path.name for path in folder.iterdir() if path.is_dir())
    assert folders == [f"job{number}" for number in finished]  # no draft is left behind
    with Ledger(where) as ledger:
        assert ledger.verify().ok
        assert ledger.remaining(dataset="clinic") == Fraction(1, 5)
        assert len(ledger.entries()) == 1 + 3 * suffices_for
        assert [(one.last - one.first, one.state) for one in ledger.runs()] == [(2, "finished")] * suffices_for


LOST = ("after the charge", "after the first release")
COMPLETE = ("before the rename", "after the mark")


def test_a_killed_job_is_paid_as_a_whole_or_not_at_all_and_never_drawn_again(runner: Runner, tmp_path: Path) -> None:
    points = ("before the charge", *LOST, *COMPLETE, "after the rename")
    jobs = [job(tmp_path / str(number), "job", str(tmp_path / f"{number}.db")) for number in range(len(points))]
    for number in range(len(points)):
        with Ledger(tmp_path / f"{number}.db") as ledger:
            ledger.grant(dataset="clinic", epsilon=2)
    assert [one["kind"] for one in runner.run(*jobs, points=points)] == ["killed"] * len(points)

    def spent(number: int) -> Fraction:
        with Ledger(tmp_path / f"{number}.db", create=False) as ledger:
            assert ledger.verify().ok
            return 2 - ledger.remaining(dataset="clinic")

    cost = Fraction(3, 5)
    assert [spent(number) for number in range(len(points))] == [0, *[cost] * (len(points) - 1)]
    again = dict(zip(points, runner.run(*jobs), strict=True))
    # never paid for: it simply runs
    assert again["before the charge"] == {"done": True}
    # paid for and lost: said so, nothing charged again, what was written is still there
    for point in LOST:
        said = again[point]["said"]
        assert again[point]["kind"] == "JobError"
        assert "which was paid for (entries 2 to 4 of the ledger) and broke off" in said
        assert "lost" in said
        assert "Nothing was charged now" in said
    # complete but for its name: said so, and the name is all that it needs
    for point in COMPLETE:
        said = again[point]["said"]
        assert "it is complete, its finished.json names all of its files" in said
        assert "Nothing was charged now. Rename" in said
        assert "lost" not in said
        assert "broke off" not in said
    # complete
    assert "must be a new or empty folder" in again["after the rename"]["said"]
    assert [spent(number) for number in range(len(points))] == [cost] * len(points)
    for number, state in enumerate(["finished", "lost", "lost", *["finished"] * 3]):
        with Ledger(tmp_path / f"{number}.db", create=False) as ledger:
            assert [one.state for one in ledger.runs()] == [state], points[number]

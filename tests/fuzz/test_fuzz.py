"""Whatever a policy, a job, a monitor file, a predicate or a command line says: an answer or a refusal, in time.

Few examples run with the other tests; `make audit` runs thousands of fresh ones.
"""

import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.shell import Outcome, inside, tacit
from fuzz.documents import CANARY, JOB, MONITOR, POLICY, documents, predicates
from fuzz.harness import Hang, in_time, refusals
from tacit.errors import Exit
from tacit.jobs.job_file import read_job
from tacit.jobs.job_run import plan_job
from tacit.jobs.monitor_file import read_monitor_file
from tacit.plan.questions import count
from tacit.plan.sensitivity.steps import largest_step
from tacit.policy.policy_file import read_policy
from tacit.policy.where import where

MANY = os.environ.get("TACIT_EXAMPLES") == "fresh"
DOMAIN = read_policy(POLICY).domain


def examples(few: int) -> settings:
    return settings(max_examples=few * 100 if MANY else few)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("fuzz")
    lines = [f"{number % 90},{('flu', 'hiv', 'none', CANARY)[number % 4]}" for number in range(40)]
    (made / "clinic.csv").write_text("\n".join(["age,disease", *lines]) + "\n")
    (made / "policy.yaml").write_text(POLICY)
    (made / "job.yaml").write_text(JOB)
    (made / "monitor.yaml").write_text(MONITOR)
    (made / "events").mkdir()
    return made


def checked(outcome: Outcome) -> None:
    said = outcome.out + outcome.err
    assert outcome.code in set(Exit) - {Exit.FAULT}, outcome
    assert "internal fault" not in said, outcome
    assert "Traceback" not in said, outcome
    assert CANARY not in said, outcome
    if outcome.code:
        assert said.strip()


@examples(60)
@given(documents(POLICY))
def test_policies(text: str) -> None:
    with refusals():
        policy = read_policy(text)
        policy.describe()
        read_policy(policy.to_yaml())
        largest_step(count(), policy)


@examples(60)
@given(documents(JOB))
def test_jobs(folder: Path, text: str) -> None:
    file = folder / "broken.job.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with refusals():
        plan_job(read_job(file))


@examples(40)
@given(documents(MONITOR))
def test_monitors(folder: Path, text: str) -> None:
    file = folder / "broken.monitor.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with refusals():
        read_monitor_file(file)


@examples(150)
@given(predicates())
def test_predicates(text: str) -> None:
    with refusals():
        found = where(text)
        found.compile(DOMAIN)
        assert str(where(str(found))) == str(found)


@examples(5)
@given(documents(JOB))
def test_runs(folder: Path, text: str) -> None:
    file = folder / "broken.job.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with in_time():
        checked(inside(folder, "plan", file.name))


WORDS = [
    "demo", "init", "check", "plan", "run", "audit", "ledger", "monitor", "schema", "show", "verify", "grant", "job",
    "list", "policy", "policy.yaml", "job.yaml", "monitor.yaml", "clinic.csv", "ledger.db", "nothing.yaml", "events",
    "--json", "--help", "-h", "--version", "--out", "--policy", "--dataset", "--epsilon", "--budget", "1", "-1", "1e9",
    "", " ", "\n", "a" * 300, "a" * 5000, "../..", "/", "/dev/null", ".", "*", "clinic*", "http://localhost:1/x.csv",
    "sqlite:///x.db", "=1", "--", "-", "--=", "é", "\u202e", "[0]", "%s",
]  # fmt: skip
SLOW = {"demo", "bench", "reproduce", "audit", "all"}


@examples(50)
@given(st.lists(st.sampled_from(WORDS), max_size=5).filter(lambda words: not SLOW & set(words)))
def test_command_lines(folder: Path, words: list[str]) -> None:
    with in_time():
        checked(inside(folder, *words))


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.sampled_from(WORDS), max_size=4).filter(lambda words: not SLOW & set(words)))
def test_command_lines_of_the_installed_command(folder: Path, words: list[str]) -> None:
    checked(tacit(folder, *words))


@pytest.mark.slow
@settings(max_examples=100)
@given(documents(JOB))
def test_jobs_are_run_or_refused_as_a_whole(folder: Path, text: str) -> None:
    import shutil

    file = folder / "run.job.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    outcome = inside(folder, "run", file.name)
    if "results" in outcome.out + outcome.err or outcome.code == 0:
        for left in folder.glob("*.part"):
            pytest.fail(f"{left.name} was left behind: {outcome}")
    checked(outcome)
    for made in [*folder.glob("results*"), *folder.glob("*-release")]:
        shutil.rmtree(made)


def test_the_documents_are_valid_before_they_are_broken(folder: Path) -> None:
    assert read_policy(POLICY).name == "clinic"
    assert len(plan_job(read_job(folder / "job.yaml")).plans) == 7
    assert read_monitor_file(folder / "monitor.yaml").name == "town"


def test_a_hang_is_noticed() -> None:
    with pytest.raises(Hang), in_time(0.05):
        for _ in itertools.repeat(None):  # a loop of Python's own: signals are handled between its steps
            pass

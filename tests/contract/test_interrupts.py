"""An interrupt is an interrupt: whatever an engine makes of it, and whenever it comes."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.errors import InternalError, Terminated, sealed
from tacit.rows.guard import cancelled_by_interrupt, closed

SESSION = """
import os, signal, sys, threading
import duckdb, numpy as np, pandas as pd, polars as pl
import tacit as tc

ages = np.arange(3_000_000) % 100
sources = {
    "duckdb": lambda: duckdb.sql("select (a.range * 7 + b.range) % 100 as age from range(60000) a, range(3000) b"),
    "pandas": lambda: pd.DataFrame({"age": pd.Series([str(age) for age in ages[:400_000]] * 2, dtype=object)}),
    "polars": lambda: pl.LazyFrame({"age": ages}).join(pl.LazyFrame({"b": range(300)}), how="cross").select("age"),
}
policy = tc.Policy(tc.Domain({"age": tc.Integers(0, 99)}), tc.secrets.within(5, "age"))
session = tc.Session(policy, sources[sys.argv[1]](), 100)
session.plan(tc.histogram("age"), 0.001)  # loads what plans need, which may take longer than the time until the signal
try:
    threading.Timer(float(sys.argv[2]), os.kill, (os.getpid(), signal.SIGINT)).start()
    while True:
        session.release(tc.histogram("age"), 0.001)
except KeyboardInterrupt as interrupt:
    assert interrupt.__context__ is None and interrupt.__cause__ is None
    print("interrupted", *getattr(interrupt, "__notes__", []))
"""


def interrupted_session(engine: str, after: float) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SESSION, engine, str(after)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("interrupted"), done.stderr[-2000:]
    return done.stdout


def test_an_interrupt_of_a_query_says_what_was_charged() -> None:
    told = interrupted_session("duckdb", 0.4)
    assert "epsilon 0.001 was charged for this release and stays charged; nothing was released." in told


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["duckdb", "pandas", "polars"])
@pytest.mark.parametrize("attempt", range(10))
def test_an_interrupt_at_any_time_is_one(engine: str, attempt: int) -> None:
    interrupted_session(engine, attempt * 0.15)


ENDLESS = """
import os, signal, sys, threading
from tacit.errors import InternalError, Terminated, terminated
from tacit.rows.sources.source import engine_for
from tacit.rows.guard import cancelled_by_interrupt, closed

number = getattr(signal, sys.argv[2])
if number == signal.SIGTERM:
    signal.signal(number, terminated)
engine = engine_for(sys.argv[1], lists=frozenset(), declared=frozenset())

def work():
    with engine.quiet():
        threading.Timer(0.3, os.kill, (os.getpid(), number)).start()
        engine.connection.execute("select sum(a.range * b.range) from range(10000000) a, range(10000000) b").fetchall()

try:
    closed(work, InternalError("unused"))
except (KeyboardInterrupt, Terminated) as ended:
    print(type(ended).__name__)
"""


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("number", "ended"), [("SIGINT", "KeyboardInterrupt"), ("SIGTERM", "Terminated")])
def test_an_interrupt_does_not_wait_for_a_task_of_the_engine(number: str, ended: str, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("age\n1\n")
    asked = [sys.executable, "-c", ENDLESS, str(rows), number]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{ended}\n", done.stderr[-2000:]


@pytest.mark.parametrize("ended", [KeyboardInterrupt, Terminated])
def test_an_end_outside_of_rows_is_one_too(ended: type[BaseException]) -> None:
    @sealed
    def entry() -> None:
        raise ended

    with pytest.raises(ended):
        entry()


def interrupted() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)


def test_a_listener_of_the_users_hears_its_signals_as_before() -> None:
    hears, tells = socket.socketpair()
    tells.setblocking(False)
    before = signal.set_wakeup_fd(tells.fileno())
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), cancelled_by_interrupt(lambda: None):
            interrupted()
        assert hears.recv(1)[0] == signal.SIGINT
        assert signal.set_wakeup_fd(before) == tells.fileno()
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGINT, handler)
        hears.close()
        tells.close()


# Python handles signals in the main thread of the main interpreter. Elsewhere work is done as if there were none.
ELSEWHERE = """
import sys
import threading
sys.path[:] = {path!r}
import signal
from tacit.errors import InternalError, Terminated, sealed
from tacit.rows.guard import cancelled_by_interrupt, closed

def work():
    with cancelled_by_interrupt(lambda: None):
        return 7

before = signal.getsignal(signal.SIGINT)
assert closed(work, InternalError("not done")) == 7
assert signal.getsignal(signal.SIGINT) is before
with open({file!r}, "w") as done:
    done.write("done")
"""
# the first thread that loads `threading` is the main thread to it, whichever it is
TAKEN_FOR_MAIN = """
import _thread, time
assert "threading" not in __import__("sys").modules
_thread.start_new_thread(exec, ({work!r}, {{}}))
time.sleep({seconds})
"""


def test_a_thread_steps_aside(tmp_path: Path) -> None:
    file = tmp_path / "done"
    with ThreadPoolExecutor(1) as pool:
        pool.submit(exec, ELSEWHERE.format(path=sys.path, file=str(file)), {}).result()
    assert file.read_text() == "done"


def test_a_thread_that_is_taken_for_the_main_one_steps_aside(tmp_path: Path) -> None:
    file = tmp_path / "done"
    code = TAKEN_FOR_MAIN.format(work=ELSEWHERE.format(path=sys.path, file=str(file)), seconds=30)
    beside = subprocess.Popen([sys.executable, "-S", "-c", code], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 30
    while not file.exists() and beside.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    beside.kill()
    said = beside.communicate()[1]
    assert file.exists(), said


def test_an_interpreter_beside_the_main_one_steps_aside(tmp_path: Path) -> None:
    interpreters = pytest.importorskip("_xxsubinterpreters")
    file = tmp_path / "done"
    beside = interpreters.create()
    try:
        interpreters.run_string(beside, ELSEWHERE.format(path=sys.path, file=str(file)))
    finally:
        interpreters.destroy(beside)
    assert file.read_text() == "done"


# ---- the same where engines hide it ---------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden_as", [RuntimeError, InternalError, OSError, None])
def test_what_a_handler_raised_is_raised_whatever_became_of_it(hidden_as: type[Exception] | None) -> None:
    def work() -> int:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            if hidden_as is not None:
                raise hidden_as("the engine says something else") from None
        return 1

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark, for one, leaves a handler of its own
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            closed(work, InternalError("unused"))
        assert caught.value.__context__ is None
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_time_limit_of_the_user_stays_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    class TooLong(Exception):
        pass

    def end(*_: object) -> None:
        raise TooLong("so I said")

    def work() -> None:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            time.sleep(1)
        except TooLong:
            raise RuntimeError("query interrupted") from None

    before = signal.signal(signal.SIGALRM, end)
    try:
        with pytest.raises(TooLong, match="so I said") as caught:
            closed(work, InternalError("unused"))
        assert caught.value.__context__ is None
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_signal_that_its_handler_survives_ends_nothing() -> None:
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        assert closed(lambda: time.sleep(0.05) or 7, InternalError("unused")) == 7  # type: ignore[func-returns-value]
        assert seen == [1]
    finally:
        signal.signal(signal.SIGALRM, before)


# ---- the command line -----------------------------------------------------------------------------------------------

POLICY = "name: big\ndomain:\n  age: {integers: [0, 99]}\nsecrets:\n  - within: {age: 5}\n"
JOB = """\
policy: policy.yaml
rows: rows.csv
budget: 1
ledger: ledger.db
out: results
releases:
  - {name: ages, query: {histogram: [age]}, epsilon: 0.5}
"""


def big_job(folder: Path, rows: int = 2_000_000) -> None:
    """Write a job that takes a while to read its rows."""
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "job.yaml").write_text(JOB)
    with (folder / "rows.csv").open("w") as file:
        file.write("age,other\n")
        file.write("".join(f"{number % 100},a text that is read as well\n" for number in range(1000)) * (rows // 1000))


def ended_by(folder: Path, number: int, wait: float, *, ready: str = "") -> subprocess.CompletedProcess[str]:
    """Run the job and send a signal once the file that `ready` names is there, and some time later."""
    command = [sys.executable, "-m", "tacit_command", "run", "job.yaml"]
    place = folder / "temporary"
    place.mkdir()
    env = {**os.environ, "TMPDIR": str(place)}
    run = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while ready and not (folder / ready).exists() and run.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    time.sleep(wait)
    run.send_signal(number)
    out, err = run.communicate(timeout=100)
    return subprocess.CompletedProcess(command, run.returncode, out, err)


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by SIGTERM")]
)
def test_a_command_that_is_ended_says_so_and_what_it_charged(number: int, code: int, said: str, tmp_path: Path) -> None:
    big_job(tmp_path)
    done = ended_by(tmp_path, number, 0.05, ready="results.part")
    assert done.returncode == code, done
    assert done.stdout == ""
    assert done.stderr.startswith(f"tacit: {said}. ")
    assert "charged" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "temporary").iterdir()) == []  # what was spilled is gone


PEOPLE = """\
name: people
domain:
  age: {integers: [0, 99]}
secrets:
  - within: {age: 5}
person: who
per_person: 3
order: day
"""


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by SIGTERM")]
)
def test_a_command_that_is_ended_while_people_are_counted_says_one_sentence(
    number: int, code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "policy.yaml").write_text(PEOPLE)
    (tmp_path / "job.yaml").write_text(JOB.replace("rows.csv", "rows.parquet"))
    rows = np.arange(3_000_000)
    pq.write_table(
        pa.table({"who": rows * 7 % 1_000_003, "day": rows % 365, "age": rows % 100}), tmp_path / "rows.parquet"
    )
    done = ended_by(tmp_path, number, 0.3, ready="results.part")
    assert (done.returncode, done.stdout) == (code, ""), done
    assert done.stderr.startswith(f"tacit: {said}. ")
    assert done.stderr.count("\n") == 1
    assert list((tmp_path / "temporary").iterdir()) == []


# A thread of DuckDB asks Python for rows for as long as there is a Python, while the command is ended.
STILL_READING = """
import duckdb, pyarrow as pa, threading, time

def rows():
    while True:
        yield pa.record_batch({{"x": [1] * 1000}})

reader = pa.RecordBatchReader.from_batches(next(rows()).schema, rows())
reading = duckdb.connect().from_arrow(reader).aggregate("sum(x)")
threading.Thread(target=reading.fetchall, daemon=True).start()
time.sleep(0.2)
"""


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by SIGTERM")]
)
def test_a_command_that_is_ended_does_not_wait_for_an_engine(number: int, code: int, said: str, tmp_path: Path) -> None:
    ended = ended_while_loading("sqlalchemy.sql.visitors", tmp_path, number, first=STILL_READING)
    assert ended == (code, "", f"tacit: {said}. Nothing was charged.\n")


LIMITS = """
import resource, sys, tacit_command
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
sys.argv = ["tacit", "--version"]
tacit_command.main()
print(resource.getrlimit(resource.RLIMIT_CORE)[0])
"""


def test_no_memory_of_a_command_is_dumped() -> None:
    pytest.importorskip("resource")
    done = subprocess.run([sys.executable, "-c", LIMITS], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] in ("0", "1"), done  # bytes: no dump is that small


def while_loading(
    module: str, *args: str, answer: Any = signal.SIG_DFL, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command and interrupt it as soon as it has loaded a module; its stderr has no line about imports."""
    loading = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "tacit_command", *args],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, answer),
    )
    assert loading.stderr is not None
    for line in loading.stderr:
        if line.split("|")[-1].strip() == module:
            break
    loading.send_signal(signal.SIGINT)
    out, rest = loading.communicate(timeout=100)
    said = [line for line in rest.splitlines(keepends=True) if not line.startswith("import time:")]
    return subprocess.CompletedProcess(loading.args, loading.returncode, out, "".join(said))


@pytest.mark.parametrize("module", ["tacit.errors", "tacit.cli.screen", "typer"])
def test_an_interrupt_while_the_command_loads_is_one_line(module: str) -> None:
    done = while_loading(module, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "tacit: interrupted. Nothing was charged.\n")


def test_an_interrupt_while_the_command_loads_is_a_document_with_json(tmp_path: Path) -> None:
    big_job(tmp_path, rows=1000)
    done = while_loading("numpy", "plan", "job.yaml", "--json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (130, "")
    said = json.loads(done.stdout)["error"]
    assert set(said) == {"kind", "file", "line", "key", "rule", "given", "fix", "message"}
    assert said["kind"] == "Interrupted"
    assert (said["rule"], said["fix"]) == ("interrupted.", "Nothing was charged.")
    assert said["message"] == "interrupted. Nothing was charged."


def test_an_interrupt_that_is_to_be_ignored_is_ignored() -> None:
    done = while_loading("typer", "--version", answer=signal.SIG_IGN)
    assert (done.returncode, done.stderr) == (0, "")


# The command, and a signal in the very moment in which it begins to load a module. What is raised by it there becomes
# an import that failed, as in a library that is made in C.
SIGNALLED = """
import os, sys, time, tacit_command

class Signalling:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            try:
                os.kill(os.getpid(), {number})
                time.sleep(0.02)
            except BaseException:
                raise ImportError("failed to import") from None

sys.meta_path.insert(0, Signalling())
sys.argv = ["tacit", "run", "job.yaml"]
sys.exit(tacit_command.main())
"""
# from the first module that `tacit run` needs to the last
LATE = ("tacit.jobs.job_file", "numpy._core._exceptions", "sqlalchemy.sql.visitors", "pandas._libs.tslibs.nattype")
MORE_LATE = ("numpy", "tacit.plan.question", "duckdb", "pyarrow.lib", "pandas", "narwhals", "jinja2", "altair")


def ended_while_loading(
    module: str, folder: Path, number: int = signal.SIGINT, *, first: str = ""
) -> tuple[int, str, str]:
    """Send a signal to `tacit run` as it begins to load a module; nothing of the run may be left."""
    big_job(folder, rows=1000)
    before = {file.name for file in folder.iterdir()}
    done = signalled(module, folder, number, first=first)
    assert done.returncode, f"a run no longer loads {module}: name another module"
    assert {file.name for file in folder.iterdir()} == before  # no ledger, and nothing half written
    return done.returncode, done.stdout, done.stderr


def signalled(module: str, folder: Path, number: int, *, first: str = "") -> subprocess.CompletedProcess[str]:
    """Send a signal to `tacit run` as it begins to load a module."""
    asked = [sys.executable, "-c", (first + SIGNALLED).format(module=module, number=int(number))]
    return subprocess.run(asked, cwd=folder, capture_output=True, text=True, timeout=100)


@pytest.mark.slow
def test_an_interrupt_while_an_estimate_loads_what_it_needs_says_what_was_charged(tmp_path: Path) -> None:
    big_job(tmp_path, rows=1000)
    rising = JOB.replace("histogram: [age]}", "cumulative: age}, consistent: true")
    assert rising != JOB
    (tmp_path / "job.yaml").write_text(rising)
    done = signalled("scipy.optimize", tmp_path, signal.SIGINT)
    said = "tacit: interrupted. Budget was spent: epsilon 0.5 was charged and stays charged.\n"
    assert (done.returncode, done.stdout, done.stderr) == (130, "", said)
    assert not (tmp_path / "results").exists()


@pytest.mark.one_in(5)
@pytest.mark.parametrize("module", [*LATE, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE_LATE)])
def test_an_interrupt_while_a_run_loads_what_it_needs_is_one_line(module: str, tmp_path: Path) -> None:
    assert ended_while_loading(module, tmp_path) == (130, "", "tacit: interrupted. Nothing was charged.\n")


def test_an_end_while_a_run_loads_what_it_needs_is_one_line(tmp_path: Path) -> None:
    ended = ended_while_loading("pandas._libs.tslibs.nattype", tmp_path, signal.SIGTERM)
    assert ended == (143, "", "tacit: ended by SIGTERM. Nothing was charged.\n")


IMPORTING = """
import signal, sys
from tacit_command import unless_loading

signal.signal(signal.SIGINT, unless_loading(signal.default_int_handler))
try:
    import {module}
    signal.pause()
except BaseException as ended:
    print(hasattr(sys.modules.get({module!r}), {last!r}), type(ended).__name__)
"""
MADE_IN_C = """
import os, signal, time
try:
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
except KeyboardInterrupt:
    raise ImportError("failed to import") from None
last = 1
"""


def test_a_library_never_sees_an_interrupt_while_it_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "made_in_c.py").write_text(MADE_IN_C)
    asked = [sys.executable, "-c", IMPORTING.format(module="made_in_c", last="last")]
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.stderr) == (["True", "KeyboardInterrupt"], "")


def test_a_command_inside_an_import_is_interrupted_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text(IMPORTING.format(module="math", last="pi"))
    start = (
        "import os, signal, threading; threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start(); import tool"
    )
    done = subprocess.run([sys.executable, "-c", start], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.stderr) == (["True", "KeyboardInterrupt"], "")


def test_the_installed_command_begins_with_what_answers_interrupts() -> None:
    # what is declared; an environment follows once the package is installed again
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert declared["project"]["scripts"] == {"tacit": "tacit_command:main"}
    assert "src/tacit_command.py" in declared["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(12))
def test_an_interrupt_of_a_command_at_any_time_while_it_runs(attempt: int, tmp_path: Path) -> None:
    big_job(tmp_path)
    done = ended_by(tmp_path, signal.SIGINT, attempt * 0.12, ready="results.part")
    assert done.returncode in (0, 130), done
    assert "Traceback" not in done.stderr


def test_no_listener_outlives_work_that_fails() -> None:
    before = set(threading.enumerate())
    for _ in range(50):
        with pytest.raises(ValueError, match="failed"), cancelled_by_interrupt(list):
            raise ValueError("failed")
        assert set(threading.enumerate()) <= before  # threads of engines may end meanwhile

"""Wherever it runs, Tacit works, or says that the machine failed: never that the rows did.

Notebook kernels, event loops, threads, servers that listen for signals themselves, no place for temporary files, no
files left, an engine that refuses its settings: each for real, none of them played by a mock of ours.
"""

import asyncio
import contextlib
import errno
import functools
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit as tc
from tacit.draft import draft_policy
from tacit.errors import DataRefused, InternalError, Unread, safe_cause
from tacit.jobs.job_file import read_job
from tacit.monitor.journal import read_published
from tacit.report.draft_folder import begin_draft
from tacit.rows.guard import blind, cancelled_by_interrupt, closed
from tacit.rows.sources import duckdb_engine
from tacit.rows.sources.engine import unreadable
from tacit.rows.spill import PREFIX, private_folder

CANARY = "CANARY-7f3a"
POLICY = tc.Policy(tc.Domain({"age": tc.Integers(0, 9)}), tc.secrets.within(1, "age"))
FRAME = pd.DataFrame({"age": [1, 2, 2, 9], "id": [1, 2, 3, 4]})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


def sources(path: Path) -> dict[str, Callable[[], Any]]:
    return {
        "pandas": lambda: FRAME,
        "polars": lambda: pl.from_pandas(FRAME),
        "lazy": lambda: pl.from_pandas(FRAME).lazy(),
        "pyarrow": lambda: pa.Table.from_pandas(FRAME),
        "duckdb": lambda: duckdb.connect().from_df(FRAME),
        "csv": lambda: path,
    }


def counted(source: Any, **options: Any) -> float:
    """Return what a session says of all people, which no secret changes: 4."""
    return float(tc.Session(POLICY, source, budget=1, **options).release(tc.count(), 0.1).values[0])


# ---------------------------------------------------------------------- notebooks

NOTEBOOK = [
    # before DuckDB has looked for it; None in sys.modules is how Python itself says that a module is not there
    """
    import sys
    sys.modules["ipywidgets"] = None
    import duckdb, pandas as pd, polars as pl, tacit as tc
    try:
        duckdb.connect().execute("SET enable_progress_bar = false")
        raise AssertionError("DuckDB does not mind any more")
    except duckdb.InvalidInputException:
        pass
    """,
    """
    frame = pd.DataFrame({"age": [1, 2, 2, 9], "place": [0, 1, 1, 0], "id": [1, 2, 3, 4]})
    frame.to_csv("rows.csv", index=False)
    policy = tc.Policy(tc.Domain({"age": tc.Integers(0, 9)}), tc.secrets.within(1, "age"))
    session = tc.Session(policy, frame, budget=9)
    """,
    """
    for source in (frame, pl.from_pandas(frame), pl.from_pandas(frame).lazy(), "rows.csv", duckdb.from_df(frame)):
        for options in ({}, {"person": "id"}):
            assert tc.Session(policy, source, budget=1, **options).release(tc.count(), 0.1).values[0] == 4
    """,
    """
    for epsilon in (0.25, 0.125):
        session.explain(tc.histogram("age"), epsilon)
    session.explain(tc.histogram("age"), 0.5)
    """,
    """session.plan(tc.histogram("age"), 0.5)""",
    """
    session.release(tc.histogram("age"), -1)
    """,
    """
    def careless(people, size):
        return sum(people) + tc.noise.geometric(1, size)
    tc.audit.sampled(careless, [0, 1], [1, 1], epsilon=1, samples=20_000).verdict.value
    """,
    """
    record = session.release(tc.histogram("age"), 0.5)
    record.save("released")
    chart = record.chart()
    """,
    """
    assert tc.check_rows(policy, "rows.csv").rows == 4
    towns = tc.Policy(tc.Domain({"place": tc.Items(2)}), tc.secrets.values({"place": [1]}))
    with tc.PlaceMonitor(towns, place=1, threshold=3, window=2, epsilon=1, time=None, state="m.db") as monitor:
        assert monitor.feed("rows.csv").step == 0
    made = tc.publish.generalise("rows.csv", public=["place"], sensitive="age", values=range(10))
    """,
    """
    import asyncio
    assert (await asyncio.to_thread(lambda: session.release(tc.count(), 0.1))).values[0] == 4
    """,
    """
    del sys.modules["ipywidgets"]
    on = "SELECT current_setting('enable_progress_bar')"
    assert duckdb.connect().execute(on).fetchall() == [(True,)], "ipywidgets is there, and DuckDB draws bars"
    from tacit.rows.sources.duckdb_engine import embedded, shared_embedded
    for connection in (embedded(), shared_embedded()):
        assert connection.execute(on).fetchall() == [(False,)]
    for source in (frame, "rows.csv"):
        assert tc.Session(policy, source, budget=1, person="id").release(tc.count(), 0.1).values[0] == 4
    """,
]

REFUSED = 5


def test_a_notebook_with_and_without_widgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import inspect

    import nbclient
    import nbformat.v4 as nb

    for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    cells = [nb.new_code_cell(inspect.cleandoc(cell)) for cell in NOTEBOOK]
    notebook = nb.new_notebook(cells=cells)
    cells[REFUSED].metadata["tags"] = ["raises-exception"]
    client = nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3")
    client.execute(cwd=str(tmp_path))  # raises what a cell raises
    shown = [number for number, cell in enumerate(cells) if cell.outputs]
    assert shown == [3, 4, REFUSED, REFUSED + 1], [cell.outputs for cell in cells]  # no warning, no bar of an engine
    explained = [out["data"] for out in cells[3].outputs]
    assert [re.findall("histogram.*", data["text/plain"])[0] for data in explained] == [
        f"histogram(age): 10 answers for epsilon {epsilon}" for epsilon in ("0.25", "0.125", "0.5")
    ]  # each once
    (plan,) = cells[4].outputs
    assert plan["data"]["text/plain"].startswith("<plan of histogram(age), epsilon 0.5, expected error ")
    assert all(data["text/html"].startswith('<div class="tacit">') for data in (*explained, plan["data"]))
    bar, verdict = (out["data"] for out in cells[REFUSED + 1].outputs)
    assert (bar, verdict) == ({"text/plain": "", "text/html": ""}, {"text/plain": "'LEAK_FOUND'"})  # it is gone
    (refused,) = cells[REFUSED].outputs
    line, message = refused["traceback"]
    assert line == 'line 1: session.release(tc.histogram("age"), -1)'
    assert message.startswith("PlanError: epsilon must ")
    assert (tmp_path / "released" / "certificate.json").exists()


# ---------------------------------------------------------------------- event loops, threads, signals


def test_many_releases_in_an_event_loop_and_in_its_threads(path: Path) -> None:
    session = tc.Session(POLICY, FRAME, budget=100)

    async def released() -> list[float]:
        here = [float(session.release(tc.count(), 0.1).values[0]) for _ in range(150)]
        there = [asyncio.to_thread(lambda: session.release(tc.count(), 0.1).values[0]) for _ in range(150)]
        opened = [asyncio.to_thread(counted, path, person="id") for _ in range(4)]
        return here + list(await asyncio.gather(*there, *opened)) + [counted(path)]

    assert asyncio.run(released()) == [4] * 305
    assert session.remaining == 70


def test_an_event_loop_that_listens_for_signals_goes_on_listening(path: Path) -> None:
    async def released() -> tuple[float, bool]:
        heard = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, heard.set)
        found = counted(path, person="id")
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(heard.wait(), 5)
        return found, heard.is_set()

    assert asyncio.run(released()) == (4, True)
    # `run` handles SIGINT itself, so that nobody else listens for it; a loop that is run otherwise does not
    loop = asyncio.new_event_loop()
    try:
        assert loop.run_until_complete(released()) == (4, True)
    finally:
        loop.close()


SERVER = """
import asyncio, functools, os, signal, sys
import pandas as pd, tacit as tc

policy = tc.Policy(tc.Domain({"age": tc.Integers(0, 9)}), tc.secrets.within(1, "age"))

async def answer(reader, writer):
    session = tc.Session(policy, sys.argv[1], budget=1)  # in the loop itself, as an `async def` of a web framework
    writer.write(str(session.release(tc.count(), 0.1).values[0]).encode())
    writer.close()

async def main():
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, functools.partial(lambda *_, stop: loop.call_soon_threadsafe(stop.set), stop=stop))
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    for _ in range(3):
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        print((await reader.read()).decode(), flush=True)
        writer.close()
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(stop.wait(), 5)
    print("stopped")

asyncio.run(main())
"""


def test_a_server_with_handlers_of_its_own(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SERVER, str(path)], capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.stderr) == (["4.0", "4.0", "4.0", "stopped"], "")


UVICORN = """
import asyncio, http.client, sys
import tacit as tc, uvicorn

policy = tc.Policy(tc.Domain({"age": tc.Integers(0, 9)}), tc.secrets.within(1, "age"))

async def app(scope, receive, send):
    def released():
        return tc.Session(policy, sys.argv[1], budget=1, person="id").release(tc.count(), 0.1).values[0]
    found = released() if scope["path"] == "/loop" else await asyncio.to_thread(released)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(found).encode()})

def asked(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    return connection.getresponse().read().decode()

async def main():
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="off"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    for path in ("/loop", "/thread", "/loop"):
        print(await asyncio.to_thread(asked, port, path), flush=True)
    server.should_exit = True
    await serving
    print("stopped")

asyncio.run(main())
"""


def test_a_web_server(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", UVICORN, str(path)], capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.stderr) == (["4.0", "4.0", "4.0", "stopped"], "")


IPYTHON = """
import pandas as pd, tacit as tc
policy = tc.Policy(tc.Domain({"age": tc.Integers(0, 9)}), tc.secrets.within(1, "age"))
session = tc.Session(policy, pd.read_csv("rows.csv"), budget=1, person="id")
print("found", session.release(tc.count(), 0.1).values[0])
exit()
"""


def test_an_ipython_terminal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(path.parent / "ipython"))
    command = [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--no-confirm-exit"]
    done = subprocess.run(command, input=IPYTHON, capture_output=True, text=True, timeout=60, cwd=path.parent)
    assert "found 4.0" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


MARIMO = """
import marimo

app = marimo.App()

@app.cell
def _():
    import pandas as pd, tacit as tc
    policy = tc.Policy(tc.Domain({"age": tc.Integers(0, 9)}), tc.secrets.within(1, "age"))
    session = tc.Session(policy, pd.read_csv("rows.csv"), budget=1, person="id")
    return session, tc

@app.cell
def _(session, tc):
    print("found", session.release(tc.count(), 0.1).values[0])
    return

if __name__ == "__main__":
    app.run()
"""


@pytest.mark.slow
def test_a_marimo_notebook(path: Path) -> None:
    (path.parent / "notebook.py").write_text(MARIMO)
    command = [sys.executable, "-m", "marimo", "-q", "export", "ipynb", "notebook.py"]
    options = ["--include-outputs", "-o", "done.ipynb"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120, cwd=path.parent)
    assert done.returncode == 0, done.stderr
    assert "found 4.0" in (path.parent / "done.ipynb").read_text()


@pytest.mark.parametrize("engine", ["pandas", "lazy", "duckdb", "csv"])
def test_threads_that_are_not_the_first(engine: str, path: Path) -> None:
    source = sources(path)[engine]
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(counted, source(), person="id") for _ in range(4)]
        assert [one.result() for one in found] == [4] * 4


@contextlib.contextmanager
def handled_by(handler: Any) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    "handler",
    [
        functools.partial(lambda *_, why: None, why="as in asyncio"),
        functools.partial(functools.partial(lambda *_: None)),
        functools.partial(lambda *_: None, "a word"),
        signal.SIG_IGN,
        signal.SIG_DFL,
    ],
    ids=["keyword", "nested", "argument", "ignored", "default"],
)
def test_any_handler_of_a_signal_will_do(handler: Any, path: Path) -> None:
    with handled_by(handler):
        assert counted(path, person="id") == 4


# ---------------------------------------------------------------------- a machine that refuses


@contextlib.contextmanager
def no_more_files() -> Iterator[None]:
    """Let this process open no file, socket or pipe beyond those that it has open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest, before[1]))
    spare = []
    try:
        with contextlib.suppress(OSError):
            while True:
                spare.append(os.dup(0))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for one in spare:
            os.close(one)


on_linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files as Linux does")


@on_linux
def test_no_file_left_to_open_is_no_fact_about_the_rows(path: Path) -> None:
    session = tc.Session(POLICY, FRAME, budget=1)
    assert session.release(tc.count(), 0.1).values[0] == 4  # loads what is needed
    with no_more_files():
        assert session.release(tc.count(), 0.1).values[0] == 4  # nobody listens for an interrupt, and that is all
        with pytest.raises(DataRefused) as refused:
            tc.Session(POLICY, path, budget=1)
    assert str(refused.value) == (
        f"file {str(path)!r} could not be read (too many open files). Ask for permission, or check the disk."
    )


def test_work_goes_on_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with handled_by(signal.default_int_handler), cancelled_by_interrupt(lambda: None):
        done = True
    assert done
    assert signal.set_wakeup_fd(-1) == -1


@pytest.fixture
def fresh_duckdb() -> Iterator[None]:
    """Let the next one be started anew, in a folder of its own."""
    duckdb_engine._shared.clear()
    private_folder.cache_clear()
    yield
    duckdb_engine._shared.clear()
    private_folder.cache_clear()


@pytest.mark.usefixtures("fresh_duckdb")
@pytest.mark.parametrize("engine", ["pandas", "csv"])
def test_no_place_for_temporary_files(engine: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nowhere")
    monkeypatch.chdir("/proc")  # nor is there any here
    assert counted(sources(path)[engine](), person="id") == 4
    spilled_to = "SELECT current_setting('temp_directory')"
    assert duckdb_engine.shared_embedded().execute(spilled_to).fetchall() == [("",)]  # and not where we stand


@pytest.mark.usefixtures("fresh_duckdb")
def test_a_folder_for_temporary_files_that_cannot_be_locked_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def refuse(self: Path, target: Path) -> None:
        raise OSError(errno.EIO, CANARY)

    monkeypatch.setattr(Path, "rename", refuse)
    assert counted(FRAME) == 4
    assert [found for found in tmp_path.iterdir() if found.name.startswith(PREFIX)] == []


@pytest.fixture
def stubborn_duckdb(fresh_duckdb: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every DuckDB that is started refuse to be set up, in its own words."""
    connect = duckdb.connect

    def locked(*args: Any, **options: Any) -> Any:
        connection = connect(*args, **options)
        connection.execute("SET lock_configuration = true")
        return connection

    monkeypatch.setattr(duckdb, "connect", locked)


@pytest.mark.usefixtures("stubborn_duckdb")
@pytest.mark.parametrize("engine", ["pandas", "polars", "pyarrow", "csv"])
def test_an_engine_that_refuses_its_settings_is_no_fact_about_the_rows(engine: str, path: Path) -> None:
    with pytest.raises(InternalError) as refused:
        tc.Session(POLICY, sources(path)[engine](), budget=1)
    said = str(refused.value)
    assert "internal fault while starting DuckDB. The reason is duckdb.InvalidInputException in tacit/rows/" in said
    assert "charged" not in said  # nothing is, where rows are opened
    assert "lock" not in str(refused.value)  # the engine's words may be about anything
    assert refused.value.__context__ is refused.value.__cause__ is None


class Broken(pd.DataFrame):
    """Rows with a method of their own that fails."""

    @property
    def _constructor(self) -> Any:
        raise ZeroDivisionError("patient 0")

    @property
    def columns(self) -> Any:
        raise ZeroDivisionError("patient 0")


def test_methods_of_rows_that_fail_are_not_told_as_a_fault_of_the_machine_after_a_charge(path: Path) -> None:
    with pytest.raises(tc.TacitError) as refused:
        tc.Session(POLICY, Broken(pd.read_csv(path)), budget=1)
    said = str(refused.value)
    assert "no fault of the rows" not in said
    assert "charged" not in said
    assert "patient 0" not in said
    assert refused.value.__context__ is refused.value.__cause__ is None


def test_what_is_said_of_charges_and_of_blame_hangs_on_the_stage() -> None:
    def failing() -> None:
        raise ZeroDivisionError

    with pytest.raises(InternalError, match=r"^internal fault while opening rows\. The reason is ZeroDivisionError"):
        blind(failing, "opening rows")
    with pytest.raises(InternalError, match="while looking again; what was charged stays charged"):
        blind(failing, "looking again", paid=True)
    assert "what was charged stays charged" in str(InternalError("counting rows"))


@pytest.mark.usefixtures("stubborn_duckdb")
def test_an_engine_that_refuses_its_settings_is_no_fact_about_events(path: Path) -> None:
    policy = tc.Policy(tc.Domain({"age": tc.Items(10)}), tc.secrets.values({"age": [1]}))
    options: dict[str, Any] = {"place": 1, "threshold": 3, "window": 2, "epsilon": 1, "time": None}
    with tc.PlaceMonitor(policy, **options) as monitor, pytest.raises(InternalError, match="while starting DuckDB"):
        monitor.feed(path)


@pytest.mark.usefixtures("stubborn_duckdb")
def test_an_engine_that_refuses_its_settings_is_no_fact_about_a_table(path: Path) -> None:
    with pytest.raises(InternalError, match="while starting DuckDB"):
        draft_policy(path)


JOB = """\
policy: {domain: {age: {integers: [0, 9]}}, secrets: everything}
rows: rows.csv
budget: 1
out: results
releases: [{name: all, query: {count: }, epsilon: 0.1}]
"""


@contextlib.contextmanager
def no_room() -> Iterator[None]:
    """Let no file of this process grow, as on a full disk."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_is_not_another_run(path: Path) -> None:
    (path.parent / "a.job.yaml").write_text(JOB)
    job = read_job(path.parent / "a.job.yaml")
    with no_room(), pytest.raises(tc.JobError) as refused:
        begin_draft(job)
    assert "must be a folder that can be made (file too large)" in str(refused.value)
    assert "another run" not in str(refused.value)
    assert not (path.parent / "results.part").exists()
    begin_draft(job).give_up(keep=False)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fails_is_not_another_run(path: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (path.parent / "a.job.yaml").write_text(JOB)
    job = read_job(path.parent / "a.job.yaml")

    def refuse(_: int) -> None:
        raise OSError(number, CANARY)

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(tc.JobError) as refused:
        begin_draft(job)
    assert f"must be a folder that can be made ({os.strerror(number).lower()})" in str(refused.value)
    assert not (path.parent / "results.part").exists()


def test_a_draft_that_cannot_be_looked_at_is_not_one_that_broke_off(path: Path) -> None:
    (path.parent / "a.job.yaml").write_text(JOB)
    (path.parent / "results.part" / ".run").mkdir(parents=True)
    with pytest.raises(tc.JobError) as refused:
        begin_draft(read_job(path.parent / "a.job.yaml"))
    assert "has results.part beside it, and the system does not say whose it is (is a directory)" in str(refused.value)


def test_a_state_that_cannot_be_read_is_not_one_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(tc.PlanError, match=r"state must be a state of a monitor that can be read \(is a directory\)"):
        read_published(tmp_path)


# ---------------------------------------------------------------------- what may be said of a fault


class Told(Exception):
    """An exception that a module has."""


def test_a_fault_that_no_cell_has_a_part_in_is_told_by_its_type_and_our_line() -> None:
    def fail() -> None:
        duckdb.connect().execute(f"SELECT error('{CANARY}')")

    with pytest.raises(InternalError) as refused:
        blind(fail, "looking at nothing")
    assert refused.value.cause == "duckdb.InvalidInputException in tacit/rows/guard.py:" + refused.value.cause[-3:]
    assert CANARY not in repr(vars(refused.value)) + str(refused.value)
    assert safe_cause(Told(CANARY)).endswith("test_environments.Told")
    assert safe_cause(type(CANARY, (Exception,), {})(CANARY)) == "an exception"
    assert safe_cause(OSError(errno.ENOSPC, CANARY, CANARY)) == "OSError (no space left on device)"
    assert safe_cause(OSError(CANARY)) == "OSError (refused)"


FAILING = {  # each fails on the second person, by another exception of DuckDB
    "conversion": "CAST('x' || age AS INTEGER)",
    "range": "CAST(age + 2147483647 AS INTEGER)",
    "own words": f"error('{CANARY}')",
}


def test_what_failed_on_a_cell_is_not_said() -> None:
    said, kinds = set(), set()
    for fails in FAILING.values():
        relation = duckdb.connect().sql(
            f"SELECT CASE WHEN age = 1 THEN 1 ELSE {fails} END AS age FROM (VALUES (1), (2)) t(age)"
        )
        with pytest.raises(duckdb.Error) as raised:
            relation.fetchall()
        kinds.add(type(raised.value))
        with pytest.raises(Unread) as refused:
            tc.Session(POLICY, relation, budget=1).release(tc.histogram("age"), 0.1)
        said.add(str(refused.value))
    assert len(kinds) >= 2
    assert said == {str(unreadable())}


def test_only_what_can_have_one_reason_is_told_as_one() -> None:
    known = {duckdb.ConversionException: DataRefused("is not a number")}

    def fail(failure: BaseException) -> None:
        raise failure

    for failure, expected in {
        duckdb.ConversionException(CANARY): "is not a number.",
        duckdb.IOException(CANARY): str(unreadable()),
        IndexError(CANARY): str(unreadable()),
    }.items():
        with pytest.raises(DataRefused) as refused:
            closed(functools.partial(fail, failure), unreadable(), known)
        assert str(refused.value) == expected

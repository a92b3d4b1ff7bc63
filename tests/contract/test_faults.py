"""Killed, or out of room: what `tacit run` leaves behind is whole or nothing, and what it says is one sentence."""

import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tacit.ledger.ledger import Ledger

TACIT = str(Path(sys.executable).with_name("tacit"))


def whole_or_nothing(folder: Path) -> None:
    """Check that the ledger is sound and that no folder looks finished without being so."""
    if (folder / "ledger.db").exists() and (folder / "ledger.db").stat().st_size:
        with Ledger(folder / "ledger.db", create=False) as ledger:
            assert ledger.verify().ok
    if (folder / "results").exists():
        assert (folder / "results" / "finished.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(15))
def test_killed_at_any_time(clinic: Path, attempt: int) -> None:
    run = subprocess.Popen([TACIT, "run", "clinic.job.yaml"], cwd=clinic, stdout=-3, stderr=-3)
    until = time.monotonic() + 60
    while attempt and not (clinic / "results.part").exists() and run.poll() is None and time.monotonic() < until:
        time.sleep(0.002)
    time.sleep(0.06 * attempt)
    run.send_signal(signal.SIGKILL)
    run.wait()
    whole_or_nothing(clinic)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 100, 1000, 5000, 20_000, 50_000, 100_000])
def test_files_may_not_grow(clinic: Path, size: int) -> None:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    done = subprocess.run(
        [TACIT, "run", "clinic.job.yaml"], cwd=clinic, capture_output=True, text=True, timeout=120, preexec_fn=limit
    )
    # before anything is charged: the folder cannot be made, or the ledger not written
    refused = {1: "out must be a folder that can be made", 5: "was not written"}.get(done.returncode)
    assert refused in done.stderr if refused else done.returncode in (0, 7), done
    assert "Traceback" not in done.stderr
    assert "internal fault" not in done.stderr
    whole_or_nothing(clinic)


@pytest.mark.slow
@pytest.mark.parametrize("words", [("check", "clinic.policy.yaml"), ("plan", "clinic.job.yaml"), ("schema", "job")])
def test_what_is_shown_does_not_fit(clinic: Path, words: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([TACIT, *words], cwd=clinic, stdout=full, stderr=-1, text=True, timeout=120)
    assert done.returncode == 7, done
    assert "Traceback" not in done.stderr
    assert "internal fault" not in done.stderr


def test_a_folder_that_is_gone_is_said(clinic: Path) -> None:
    gone = clinic / "gone"
    gone.mkdir()
    command = "import os, sys; os.rmdir(os.getcwd()); from tacit.cli import main; sys.exit(main(['plan', 'job.yaml']))"
    done = subprocess.run([sys.executable, "-c", command], cwd=gone, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (
        7,
        "tacit: the folder that you are in no longer exists. Change to another one.\n",
    )

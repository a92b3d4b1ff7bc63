"""Rows that were spilled to disk are gone once their process is, however that ended."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.rows import spill

fcntl = pytest.importorskip("fcntl", reason="folders of dead processes are told by file locks")

# the module by itself: nothing else of Tacit is needed to hold a folder
HOLD = """
import importlib.util, os, sys, time
found = importlib.util.spec_from_file_location("spill", sys.argv[2])
spill = importlib.util.module_from_spec(found)
found.loader.exec_module(spill)
folder = spill.private_folder(os.getpid())
(folder / "0").mkdir()
(folder / "0" / "spilled").write_text("rows")
print(folder, flush=True)
time.sleep(float(sys.argv[1]))
"""


def started(place: Path, seconds: float) -> tuple[subprocess.Popen[str], Path]:
    command = [sys.executable, "-c", HOLD, str(seconds), spill.__file__]
    env = {**os.environ, "TMPDIR": str(place)}
    run = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    return run, Path(run.stdout.readline().strip())


def test_the_next_process_removes_what_a_killed_one_left_and_nothing_else(tmp_path: Path) -> None:
    living, kept = started(tmp_path, 60)
    killed, left = started(tmp_path, 60)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert (left / "0" / "spilled").read_text() == "rows"
    # what looks alike but is not ours to remove: a folder without a lock, a link to one with a lock, a file
    other = tmp_path / f"{spill.PREFIX}other"
    other.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "in-use").touch()
    (tmp_path / f"{spill.PREFIX}link").symlink_to(elsewhere)
    linked = tmp_path / f"{spill.PREFIX}linked"
    linked.mkdir()
    (linked / "in-use").symlink_to(elsewhere / "in-use")
    (tmp_path / f"{spill.PREFIX}file").touch()
    following, own = started(tmp_path, 0)
    following.communicate()
    assert not left.exists()
    assert not own.exists()
    assert (kept / "0" / "spilled").exists()
    assert [place.is_dir() for place in (elsewhere, other, linked)] == [True] * 3
    living.kill()
    living.communicate()


def test_folders_of_somebody_else_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / f"{spill.PREFIX}theirs"
    folder.mkdir()
    (folder / "in-use").touch()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    spill._remove_dead(tmp_path)
    assert folder.exists()
    monkeypatch.undo()
    spill._remove_dead(tmp_path)
    assert not folder.exists()


def test_a_folder_is_open_to_its_user_alone(tmp_path: Path) -> None:
    run, folder = started(tmp_path, 60)
    assert folder.stat().st_mode & 0o077 == 0
    run.kill()
    run.communicate()

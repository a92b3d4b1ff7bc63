"""Runs the installed command in an empty folder, as a user would."""

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tacit.cli import main
from tacit.errors import Exit

TACIT = Path(sys.executable).with_name("tacit")
ERROR_KEYS = {"kind", "file", "line", "key", "rule", "given", "fix", "message"}


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Return stdout as JSON; fails if there is anything else on it."""
        return json.loads(self.out)

    def refusal(self) -> str:
        """Return the one sentence of a refusal, after checking that it is one sentence and nothing else."""
        assert self.code not in (Exit.DONE, Exit.USAGE), self
        assert self.out == "", self
        assert self.err.startswith("tacit: "), self
        assert self.err.count("\n") == 1, self
        assert "Traceback" not in self.err
        return self.err.removeprefix("tacit: ").rstrip("\n")

    def error(self) -> dict[str, Any]:
        """Return the error of `--json`, after checking its shape."""
        assert self.err == "", self
        (key,) = self.document
        assert key == "error"
        assert set(self.document["error"]) == ERROR_KEYS
        return dict(self.document["error"])


def tacit(folder: Path, *args: str, command: tuple[str, ...] = (), **env: str) -> Outcome:
    """Run `tacit` with these arguments; nothing of the caller's terminal or settings gets in."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TACIT_", "COLUMNS", "LINES"))}
    done = subprocess.run(
        [*(command or (str(TACIT),)), *args], cwd=folder, env={**kept, **env}, capture_output=True, timeout=120
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def inside(folder: Path, *args: str, **env: str) -> Outcome:
    """Do the same in this process: quick, for the many cases beside the one that runs the installed command."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as settings, contextlib.chdir(folder):
        for name in ("COLUMNS", "LINES"):
            settings.delenv(name, raising=False)
        for name, value in env.items():
            settings.setenv(name, value)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(args))
    return Outcome(code, out.getvalue(), err.getvalue())


def files_in(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder by its relative name."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()
    }

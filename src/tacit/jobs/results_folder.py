"""The folder that the results of a job go to: whether it is free, and whether it holds just what the job asks for.

Guarantee   Nothing is overwritten and no link followed. A job is called done only if the folder holds every file of a
            finished run as that run wrote it, and that run was asked the same under the same policy.
Assumes     Rows under the same name are the same: whoever makes a job for each day names the day in `rows` or `out`.
Why         `finished.json` is written last and has the digest of each file and of what was asked (`Job.asked`).
Checked by  tests/cli/test_schedule.py, tests/unit/report/test_publish.py.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

from tacit.errors import Exit
from tacit.jobs.job_file import Job

FINISHED: Final = "finished.json"  # written last into the folder of a job: a folder without it is half written
MARK: Final = ".run"  # which run is at work in a folder


def finished(folder: Path) -> dict[str, Any]:
    """Return what `finished.json` says if the folder holds the files that it names, unchanged, and no others."""
    try:
        said: dict[str, Any] = json.loads((folder / FINISHED).read_bytes())
        named = said["sha256"]
        files = [file for file in folder.iterdir() if file.name not in (MARK, FINISHED)]
        return said if named == {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files} else {}
    except (OSError, ValueError, TypeError, KeyError):  # not there, not readable, or not one of ours
        return {}


def is_done(job: Job) -> bool:
    """Say whether the folder of a job holds the results of this job, whole and unchanged."""
    return not job.out.is_symlink() and bool(job.asked) and finished(job.out).get("asked") == job.asked


def check_out(job: Job) -> None:
    """Refuse a folder for the results that is not free: nothing is ever overwritten, and no link followed."""
    out = job.out
    if out.is_symlink():
        # also one that leads nowhere: the folder could not be put in its place after everything was paid for
        raise job.refuse("out", "must be a folder of its own, not a link", given=str(out), fix="Name another.")
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    fix, exit_code = "Name another; releases are never overwritten.", Exit.REFUSED
    if is_done(job):
        rule = "must be a new or empty folder; this one has the results of this job, so it is done already"
        fix, exit_code = "Say --skip-if-done where that is no error. Nothing was charged.", Exit.DONE_ALREADY
    elif out.is_dir() and not (out / FINISHED).exists():
        rule = "must be a new or empty folder; this one has no finished.json, so it is half written or not a release"
        fix = "Remove it after a look, or name another."
    elif out.is_dir():
        rule = "must be a new or empty folder; this one has the results of another job, or files that were changed"
    else:
        rule = "must be a new or empty folder"
    raise job.refuse("out", rule, given=str(out), fix=fix, exit_code=exit_code)

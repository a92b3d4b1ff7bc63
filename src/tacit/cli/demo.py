"""`tacit demo`: the whole way from a policy to a report, on data that come with Tacit."""

from __future__ import annotations

import shutil
from importlib import resources
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.plan import notes
from tacit.cli.run import make_releases
from tacit.cli.screen import AsJson, command, note, show, show_json
from tacit.errors import JobError

FILES = ("adult.policy.yaml", "adult.job.yaml")


def run_demo(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="A new folder; tacit-demo if not given.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Release eight statistics of the Adult data under a policy, and leave policy, job and report in a new folder."""
    from tacit.jobs.job_file import read_job

    folder = _new_folder(out)
    for name in FILES:
        with resources.as_file(resources.files("tacit") / "data" / name) as bundled:
            shutil.copyfile(bundled, folder / name)
    policy, job = (folder / name for name in FILES)
    found = read_job(job)
    made = make_releases(found, as_json=as_json)
    if as_json:
        show_json({**made, "policy_file": str(policy), "job_file": str(job)})
        return
    tries = {
        command("check", policy): "what the policy protects, in plain words",
        command("plan", "-v", job): "why each release has the error that it has",
        f"edit {policy}, then plan again": "say `within: {age: 2}` instead of 5",
        command("init", "YOUR_DATA.csv"): "a first draft of a policy for data of your own",
    }
    longest = max(map(len, tries))
    show(f"\nThe report is {made['report']}; open it in a browser.", "\nTry next:")
    show(*(f"  {what:<{longest}}  {why}" for what, why in tries.items()), "")
    note(*notes(found))


def _new_folder(wanted: Path | None) -> Path:
    """Return a new folder; a demo that is run again gets one of its own, since releases are never overwritten."""
    if wanted is not None:
        if wanted.exists() and (not wanted.is_dir() or any(wanted.iterdir())):
            raise JobError("must be a new or empty folder", key="--out", given=str(wanted), fix="Name another.")
        wanted.mkdir(parents=True, exist_ok=True)
        return wanted
    for number in count(1):
        folder = Path("tacit-demo" if number == 1 else f"tacit-demo-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError  # count never ends

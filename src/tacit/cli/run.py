"""`tacit run JOB`: make the releases of a job and write the report."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.plan import by_name, show_table
from tacit.cli.screen import AsJson, progress, show, show_json

if TYPE_CHECKING:
    from tacit.plan.explain import Explanation
    from tacit.release.job import Job


def run_releases(
    job: Annotated[Path, typer.Argument(metavar="JOB.yaml", help="The job file.")], *, as_json: AsJson = False
) -> None:
    """Charge the budget, make every release of a job, and write values, certificates and a report to a new folder."""
    from tacit.release.job import read_job

    found = read_job(job)
    made = make_releases(found, as_json=as_json)
    if as_json:
        show_json(made)
    else:
        show(f"Released. The report is {made['report']}; values and certificates are beside it.")


def make_releases(job: Job, *, as_json: bool) -> dict[str, Any]:
    """Run a job, with a bar while it lasts and then the table of what it cost; return what was made and where."""
    from tacit.report.publish import publish

    explanations = by_name(job)
    with progress("planning", as_json=as_json) as on_progress:
        folder = _from_here(publish(job, on_progress=on_progress))
    if not as_json:
        show_table(explanations, title="Released: what it cost, and how wrong it may be")
        show(*_single_answers(folder, explanations))
    releases = [
        {
            "name": name,
            **said.document(),
            "values": str(folder / f"{name}.csv"),
            "certificate": str(folder / f"{name}.certificate.json"),
        }
        for name, said in explanations.items()
    ]
    return {
        "job": job.name,
        "dataset": job.dataset,
        "cost": str(job.cost),
        "folder": str(folder),
        "report": str(folder / "report.html"),
        "releases": releases,
    }


def _single_answers(folder: Path, explanations: dict[str, Explanation]) -> list[str]:
    """Return a line for each release that is one number."""
    lines = []
    for name, said in explanations.items():
        if said.plan.answers == 1:
            with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
                answer = next(csv.DictReader(file))
            value, lower, upper = (f"{float(answer[key]):,.0f}" for key in ("value", "lower", "upper"))
            lines.append(f"{name}: {value} " + ("(exact)" if lower == upper else f"({lower} to {upper} at 95%)"))
    return lines


def _from_here(folder: Path) -> Path:
    """Return the path as a user would type it, where it lies below this folder."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder

"""`tacit run JOB`: make the releases of a job and write the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.plan import notes, people_and_budget, show_table
from tacit.cli.screen import AsJson, from_here, note, progress, show, show_json

if TYPE_CHECKING:
    from tacit.jobs.job_file import Job
    from tacit.release.results.record import ReleaseRecord


def run_releases(
    job: Annotated[Path, typer.Argument(metavar="JOB.yaml", help="The job file, or a case file.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Charge the budget, make every release of a job, and write values, certificates and a report to a new folder."""
    from tacit.jobs.case_file import read_job_or_case

    found = read_job_or_case(job)
    made = make_releases(found, as_json=as_json)
    if as_json:
        show_json(made)
    else:
        show(f"Released. The report is {made['report']}; values and certificates are beside it.")
        note(*notes(found))


def make_releases(job: Job, *, as_json: bool) -> dict[str, Any]:
    """Run a job, with a bar while it lasts and then the table of what it cost; return what was made and where."""
    from tacit.jobs.job_plan import plan_job
    from tacit.release.results.value_files import planned_file_name
    from tacit.report.job_folder import publish

    plan = plan_job(job)  # the one that is shown, charged, executed and reported
    # before anything is paid for: what cannot be told must not come up afterwards
    documents = {name: explained.document() for name, explained in plan.explanations.items()}
    records: dict[str, ReleaseRecord] = {}
    with progress("planning", as_json=as_json) as on_progress:
        folder = from_here(publish(plan, on_progress=on_progress, on_release=records.__setitem__))
    if not as_json:
        show_table(plan.explanations, records)
    releases = [
        {
            "name": name,
            **documents[name],
            "values": str(folder / planned_file_name(name, explained.plan)),
            "certificate": str(folder / f"{name}.certificate.json"),
        }
        for name, explained in plan.explanations.items()
    ]
    return {
        "job": job.name,
        "dataset": job.dataset,
        **people_and_budget(job),
        "cost": str(job.cost),
        "folder": str(folder),
        "report": str(folder / "report.html"),
        "releases": releases,
    }

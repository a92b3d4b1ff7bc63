"""`tacit plan JOB`: what a job would cost and how wrong its answers would be, before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.screen import AsJson, show, show_json, width

if TYPE_CHECKING:
    from tacit.plan.explain import Explanation
    from tacit.release.job import Job

WIDE = 130  # columns of a terminal on which whole questions can be read
NARROW = 75


def show_plan(
    job: Annotated[Path, typer.Argument(metavar="JOB.yaml", help="The job file.")],
    *,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also say why, for each release.")] = False,
    as_json: AsJson = False,
) -> int:
    """Show cost, expected error and mechanism of every release of a job. Opens no row, spends nothing.

    Exit code 1 if the job would be refused because it costs more than what remains.
    """
    from tacit.plan.explain import shown
    from tacit.release.job import read_job, remaining

    found = read_job(job)
    explanations, left = by_name(found), remaining(found)
    fits = found.cost <= left
    if as_json:
        show_json(
            {
                "job": found.name,
                "dataset": found.dataset,
                "policy_fingerprint": found.policy.fingerprint,
                "cost": str(found.cost),
                "remaining": str(left),
                "fits": fits,
                "releases": [{"name": name, **said.document()} for name, said in explanations.items()],
            }
        )
    else:
        show_table(explanations)
        if verbose:
            show(*(f"\n{name}\n{said}" for name, said in explanations.items()), "")
        if fits:
            show(
                f"Costs {shown(found.cost)} of {shown(left)}. Nothing was spent; `tacit run {job}` makes the releases."
            )
        else:
            show(f"Costs {shown(found.cost)}, but only {shown(left)} remains: `tacit run {job}` would be refused.")
    return 0 if fits else 1


def by_name(job: Job) -> dict[str, Explanation]:
    """Return the plan of each release of a job."""
    from tacit.release.job import plan_job

    return dict(zip((release.name for release in job.releases), plan_job(job), strict=True))


def show_table(explanations: dict[str, Explanation], *, title: str = "") -> None:
    """Print cost and expected error of each release, beside plain differential privacy."""
    from tacit.report.text import plan_table

    table = plan_table(explanations)
    table.title = title or table.title
    # its name says which release it is; a question would be broken into pieces of a few letters
    left_out = () if width() >= WIDE else ("question",) if width() >= NARROW else ("question", "answers", "remains")
    table.columns = [column for column in table.columns if column.header not in left_out]
    show(table)

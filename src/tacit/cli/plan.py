"""`tacit plan JOB`: what a job would cost and how wrong its answers would be, before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.screen import AsJson, command, note, show, show_json, width
from tacit.errors import JobError, PlanError

if TYPE_CHECKING:
    from tacit.jobs.job_file import Job
    from tacit.plan.choose import Explanation
    from tacit.release.results.record import ReleaseRecord

ONE_ROW_EACH = (
    "Each row counts as one person; if a person may own several rows, name the column: `person: ..` in the policy or "
    "the job."
)
LEAKAGE = "leakage"
NO_LEDGER = "No ledger: this budget holds for this run only."
WIDE = 130  # columns of a terminal on which whole questions can be read
MIDDLE = 112
NARROW = 75


def show_plan(
    job: Annotated[Path, typer.Argument(metavar="JOB.yaml", help="The job file; or `leakage` and a case file.")],
    case: Annotated[Path | None, typer.Argument(metavar="[CASE.yaml]", help="After `leakage`: the case file.")] = None,
    *,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also say why, for each release.")] = False,
    as_json: AsJson = False,
) -> int:
    """Show cost, expected error and mechanism of every release of a job. Opens no row, spends nothing.

    Exit code 1 if the job would be refused: it costs more than what remains, has no rows, has a policy that the ledger
    does not take, would tell applications more than a limit, or has files that changed since their first release.

    `tacit plan leakage CASE.yaml` shows the epsilons that release the most while nobody learns more than a limit.
    """
    if case is not None:
        if str(job) != LEAKAGE:
            raise PlanError("must be one file", key="JOB.yaml", given=str(case), fix=f"Or say {LEAKAGE} and a case.")
        from tacit.cli.leakage import plan_leakage

        return plan_leakage(case, as_json=as_json)
    from tacit.amounts import shown
    from tacit.jobs.case_file import read_job_or_case
    from tacit.jobs.job_plan import check_rows, plan_job, refusals, remaining

    found = read_job_or_case(job)
    plan, left = plan_job(found), remaining(found)
    explanations, fits = plan.explanations, plan.cost <= left
    refused, would_refuse = "", refusals(found, plan.plans)
    try:
        check_rows(found)
    except JobError as refusal:
        refused = str(refusal)
    uncovered, telling, changed = (str(would_refuse.get(about, "")) for about in ("policy", "leakage", "files"))
    changed = "" if refused else changed
    if as_json:
        show_json(
            {
                "job": found.name,
                "dataset": found.dataset,
                **people_and_budget(found),
                "policy_fingerprint": found.about().fingerprint,
                "cost": str(plan.cost),
                "remaining": str(left),
                "fits": fits,
                "rows_missing": refused or None,
                "policy_refused": uncovered or None,
                "leakage_refused": telling or None,
                "files_refused": changed or None,
                "releases": [{"name": name, **explained.document()} for name, explained in explanations.items()],
            }
        )
    else:
        show_table(explanations)
        if verbose:
            show(*(f"\n{name}\n{explained}" for name, explained in explanations.items()), "")
        run = f"`{command('run', job)}`"
        if not fits:
            show(f"Costs {shown(plan.cost)}, but only {shown(left)} remains: {run} would be refused.")
        elif refused or uncovered or telling or changed:
            reasons = {"rows": refused, "policy": uncovered, "leakage": telling, "files": changed}
            why = " and ".join(reason for reason, said in reasons.items() if said)
            show(f"Costs {shown(plan.cost)} of {shown(left)}. Nothing was spent; {run} would be refused for its {why}.")
        else:
            show(f"Costs {shown(plan.cost)} of {shown(left)}. Nothing was spent; {run} makes the releases.")
        note(*notes(found), *filter(None, [refused, uncovered, telling, changed]))
    return 0 if fits and not (refused or uncovered or telling or changed) else 1


def people_and_budget(job: Job) -> dict[str, Any]:
    """Return whom a job is about, and whether its budget is shared with other runs."""
    policy = job.about()
    return {"person": policy.person, "per_person": policy.per_person, "has_ledger": job.ledger is not None}


def notes(job: Job) -> list[str]:
    """Return what a job assumes without saying it."""
    policy = job.about()
    return [
        ONE_ROW_EACH if policy.person is None else f"Of each person ({policy.person}) {policy.rows_in_words}.",
        *([NO_LEDGER] if job.ledger is None else []),
        *([left_out_unseen(job)] if any(one.dropped != "nothing" for _, one in job.policy.domain.attributes) else []),
    ]


def left_out_unseen(job: Job) -> str:
    """Say that a release does not tell how many rows do not fit, and which command does."""
    from tacit.jobs.job_file import DEMO

    folder, unseen = Path(job.file).parent, "Rows that do not fit the policy are left out unseen; look first"
    policy = job.places["policy"][1] if "policy" in job.places else ""
    if not policy:
        return f"{unseen}: write the policy to a file of its own for `{command('check', 'POLICY', '--rows', 'DATA')}`"
    written = [job.places[path][1] if path in job.places else path for path in job.rows]
    files = [found if path.startswith(DEMO) else folder / path for path, found in zip(written, job.rows, strict=True)]
    words: list[str | Path] = ["check", folder / policy]
    words += [word for path in files for word in ("--rows", path)]
    for key, said in (("person", job.person), ("per-person", job.per_person), ("order", job.order), ("item", job.item)):
        words += [] if said is None else [f"--{key}", str(said)]
    return f"{unseen}: `{command(*words)}`"


def show_table(explanations: Mapping[str, Explanation], records: dict[str, ReleaseRecord] | None = None) -> None:
    """Print cost and expected error of each release, beside plain differential privacy, and answers once there are."""
    from tacit.report.text import plan_table, release_table

    is_narrow = width() < MIDDLE
    table = plan_table(explanations) if records is None else release_table(records, explanations, narrow=is_narrow)
    # its name says which release it is; a question would be broken into pieces of a few letters
    left_out: tuple[str, ...] = () if width() >= WIDE else ("question",)
    if width() < NARROW:
        left_out = ("question", "answers", "remains", "plain DP" if records is not None else "")
    elif width() < MIDDLE and records is not None:
        left_out = ("question", "answers")  # the answers themselves need the room
    table.columns = [column for column in table.columns if column.header not in left_out]
    for column in table.columns:
        column.no_wrap = column.no_wrap and width() >= NARROW
    show(table)

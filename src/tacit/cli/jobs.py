"""`tacit plan|run|publish|demo`: what a job would cost, its releases, tables, and all of it on bundled data."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib import resources
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from tacit.cli.screen import (
    AsJson,
    LogFormat,
    SetVariables,
    command,
    from_here,
    log,
    note,
    progress,
    show,
    show_json,
    show_wrapped,
    width,
)
from tacit.errors import Exit, JobError, PlanError

if TYPE_CHECKING:
    from tacit.jobs.job_file import Job
    from tacit.jobs.table_file import TableJob
    from tacit.plan.choose import Explanation
    from tacit.release.results.record import ReleaseRecord

Out: TypeAlias = Annotated[
    Path | None, typer.Option("--out", metavar="FOLDER", help="A new folder for the results, instead of the job's.")
]
SkipIfDone: TypeAlias = Annotated[
    bool, typer.Option("--skip-if-done", help="If the folder has the results of this job, say so and exit with 0.")
]
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
    error: Annotated[str, typer.Option("--error", metavar="E", help="What reaches this expected error.")] = "",
    within: Annotated[str, typer.Option("--within", metavar="W", help="What is off by this at most.")] = "",
    level: Annotated[str, typer.Option("--level", metavar="P", help="The probability of --within; 0.95.")] = "",
    sweep: Annotated[bool, typer.Option("--sweep", help="The error against epsilon, beside plain DP.")] = False,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="A new .svg or .csv of --sweep.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also explain each release.")] = False,
    kept: Annotated[
        bool,
        typer.Option(
            "--kept",
            help="For the holder of the rows alone: open them, and show the errors with each number of rows per person "
            "beside the share of rows that would count.",
        ),
    ] = False,
    variables: SetVariables = None,
    as_json: AsJson = False,
) -> int:
    """Show cost, expected error and mechanism of every release of a job. Opens no row but with --kept, spends nothing.

    With --error or --within the epsilons of the job are not looked at: every release has the smallest one that makes it
    as accurate. With --sweep, the error of every release is shown at epsilons from 0.01 to 10.

    A job that would be refused has the exit code of the run: it costs more than what remains, its rows are missing, the
    ledger does not accept its policy, applications would learn more than a limit, or files changed since their first
    release.

    `tacit plan leakage CASE.yaml` shows the epsilons that release the most under the limits of a case.
    """
    from tacit.jobs.variables import read_variables

    given = {key: value for key, value in (("error", error), ("within", within), ("level", level)) if value}
    sweep = sweep or out is not None
    if given and sweep:
        fix = "A sweep shows many errors; look for yours in it."
        raise PlanError("must not be given beside --sweep", key=f"--{next(iter(given))}", fix=fix)
    if kept and sweep:
        raise PlanError("must not be given beside --sweep", key="--kept", fix="Leave one of the two out.")
    if case is not None and (given or sweep or kept):
        raise PlanError("is about a case alone", key=LEAKAGE, fix="Leave the other options out.")
    if case is not None:
        if str(job) != LEAKAGE:
            raise PlanError("must be one file", key="JOB.yaml", given=str(case), fix=f"Or say {LEAKAGE} and a case.")
        from tacit.cli.audit import plan_leakage

        return plan_leakage(case, variables=read_variables(variables), as_json=as_json)
    from tacit.amounts import shown
    from tacit.jobs.job_file import read_job_or_case
    from tacit.jobs.job_run import check_rows, plan_job, refusals, remaining, with_accuracy

    found = read_job_or_case(job, read_variables(variables))
    if sweep:
        return _show_sweep(found, out, as_json=as_json)
    if given:
        from tacit.plan.accuracy import Accuracy, cost_or_accuracy

        wanted = cost_or_accuracy(None, **given)
        assert isinstance(wanted, Accuracy)  # noqa: S101 - without an epsilon it is one
        found = with_accuracy(found, wanted)
    plan, left = plan_job(found), remaining(found)
    explanations, fits = plan.explanations, plan.cost <= left
    would_refuse = dict(refusals(found, plan.plans))
    try:
        check_rows(found)
    except JobError as refusal:
        would_refuse |= {"rows": refusal}
        would_refuse.pop("files", None)
    beside = kept_beside_errors(found, explanations) if kept else {}
    refused = {about: str(would_refuse.get(about, "")) for about in ("rows", "policy", "leakage", "files")}
    reasons = [reason for reason, refusal in refused.items() if refusal]
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
                "rows_missing": refused["rows"] or None,
                **{f"{about}_refused": refused[about] or None for about in ("policy", "leakage", "files")},
                "releases": [{"name": name, **explained.document()} for name, explained in explanations.items()],
                **({"kept": beside} if kept else {}),
            }
        )
    else:
        show_table(explanations)
        if kept:
            show(beside["private"], "Rows per person: what would count, and the expected error of each release.")
            show_wrapped(f"  - {one['words']}" for one in beside["rows_per_person"])
        if verbose:
            show(*(f"\n{name}\n{explained}" for name, explained in explanations.items()), "")
        run = f"`{command('run', job)}`"
        if given:
            written = ", ".join(f"{key}: {value}" for key, value in given.items())
            run = f"the job with `{written}` in place of each `epsilon`"
        if not fits:
            show(f"Costs {shown(plan.cost)}, but only {shown(left)} remains: {run} would be refused.")
        elif reasons:
            why = " and ".join(reasons)
            show(f"Costs {shown(plan.cost)} of {shown(left)}. Nothing was spent; {run} would be refused for its {why}.")
        else:
            show(f"Costs {shown(plan.cost)} of {shown(left)}. Nothing was spent; {run} makes the releases.")
        note(*notes(found), *(refused[reason] for reason in reasons))
    if not fits:
        return Exit.BUDGET_SPENT
    return would_refuse[reasons[0]].exit_code if reasons else Exit.DONE


def _show_sweep(job: Job, out: Path | None, *, as_json: bool) -> int:
    """Show the error of each release against epsilon, as tables, and where asked as a chart or a CSV file."""
    from tacit.jobs.job_run import sweep
    from tacit.report.text import sweep_table

    if out is not None and (out.exists() or out.suffix not in (".svg", ".csv")):
        raise JobError("must be a new file that ends in .svg or .csv", key="--out", given=str(out), fix="Name another.")
    with progress("planning", as_json=as_json) as on_progress:
        found = sweep(job, on_progress)
    points = {name: [_point(one) for one in each] for name, each in found.items()}
    if out is not None and out.suffix == ".csv":
        rows = [(name, *point.values()) for name, each in points.items() for point in each]
        with out.open("x", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("release", *POINT), *rows])
    elif out is not None:
        from tacit.report.charts.release_charts import chart_svg, sweep_chart

        out.write_text(chart_svg(sweep_chart(found)), encoding="utf-8")
    if as_json:
        show_json({"job": job.name, "sweep": [{"name": name, "points": each} for name, each in points.items()]})
        return 0
    for name, explained in found.items():
        show(sweep_table(name, explained))
    note("Nothing was spent, no row was opened.", *([f"Written to {out}."] if out is not None else []))
    return 0


POINT = ("epsilon", "expected_rmse", "half_width_95", "plain_dp_rmse")


def _point(explained: Explanation) -> dict[str, float | None]:
    plan = explained.plan
    numbers = float(plan.epsilon), plan.rmse, plan.half_width(), explained.plain_rmse
    return dict(zip(POINT, numbers, strict=True))


def kept_beside_errors(job: Job, explanations: Mapping[str, Explanation]) -> dict[str, Any]:
    """Return what counts with each number of rows per person, of true rows, beside the errors that plans would have.

    Errors of means and quantiles are for as many rows as would count, or people where each has one number.
    """
    from tacit.amounts import rough
    from tacit.plan.choose import choose
    from tacit.release.curator.row_check import check_rows as check_rows_of

    policy = job.about()
    if policy.person is None:
        fix = "Name the column in the policy or the job: `person: ..`."
        raise PlanError("is about rows of people, and no person column is named", key="--kept", fix=fix)
    checked = check_rows_of(policy, job.source)
    listed = []
    for one in checked.kept_by:
        several = policy.owned_by(policy.person, one.per_person)
        plans = {name: each.plan for name, each in explanations.items() if each.plan.records is None}
        planned = {name: choose(plan.query, several, plan.epsilon) for name, plan in plans.items()}
        rows = max(round(one.rows * checked.kept), 1)
        people = checked.remaining or rows
        errors = {
            name: plan.stated_for(rows if plan.query.each is None else people).rmse for name, plan in planned.items()
        }
        said = ", ".join(f"{name} {rough(error)}" for name, error in errors.items())
        listed.append({**asdict(one), "expected_rmse": errors, "words": f"{one}; errors: {said}"})
    return {"private": checked.private, "rows_per_person": listed}


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
        *left_out_unseen(job),
    ]


def left_out_unseen(job: Job) -> list[str]:
    """Say that releases do not tell how many rows do not fit, and which command does; nothing if all rows fit."""
    from tacit.jobs.job_file import DEMO
    from tacit.plan.plans.reading import left_out
    from tacit.plan.question import resolve

    unseen = left_out(job.policy, [resolve(release.query, job.policy.domain) for release in job.releases])
    if not unseen:
        return []
    folder, unseen = Path(job.file).parent, f"{unseen}; look first"
    policy = job.places["policy"][1] if "policy" in job.places else ""
    if not policy:
        own = f"`{command('check', 'POLICY', '--rows', 'DATA')}`"
        return [f"{unseen}: write the policy to a file of its own for {own}"]
    written = [job.places[path][1] if path in job.places else path for path in job.rows]
    files = [found if path.startswith(DEMO) else folder / path for path, found in zip(written, job.rows, strict=True)]
    words: list[str | Path] = ["check", folder / policy]
    words += [word for path in files for word in ("--rows", path)]
    for key, name in (("person", job.person), ("per-person", job.per_person), ("order", job.order), ("item", job.item)):
        words += [] if name is None else [f"--{key}", str(name)]
    words += [word for key, value in job.source.keys.items() for word in (f"--{key}", value)]
    return [f"{unseen}: `{command(*words)}`"]


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


def run_releases(
    job: Annotated[Path, typer.Argument(metavar="JOB.yaml", help="The job file, or a case file.")],
    *,
    out: Out = None,
    skip_if_done: SkipIfDone = False,
    variables: SetVariables = None,
    log_format: LogFormat = "text",
    as_json: AsJson = False,
) -> None:
    """Charge the budget, make every release of a job, and write values, certificates and a report to a new folder."""
    from tacit.jobs.job_file import read_job_or_case
    from tacit.jobs.variables import read_variables

    found = _into(out, read_job_or_case(job, read_variables(variables)))
    if skip_if_done and _said_to_be_done(found, as_json=as_json):
        return
    made = make_releases(found, as_json=as_json)
    if as_json:
        show_json(made)
    else:
        show(f"Released. The report is {made['report']}; values and certificates are beside it.")
        note(*notes(found), logged=True)


def _into(out: Path | None, job: Job) -> Job:
    """Return a job whose results go to another folder, if one is named."""
    if out is None:
        return job
    kept = {key: place for key, place in job.places.items() if key != "out"}
    return replace(job, out=out.absolute(), places=kept)


def _said_to_be_done(job: Job, *, as_json: bool) -> bool:
    """Say so if the results of a job are there already."""
    from tacit.jobs.results_folder import is_done

    if not is_done(job):
        return False
    folder = from_here(job.out)
    log("done already", job=job.name, folder=folder)
    if as_json:
        show_json({"job": job.name, "dataset": job.dataset, "done_already": True, "folder": str(folder)})
    else:
        show(f"Done already: {folder} has the results of this job. Nothing was charged.")
    return True


def make_releases(job: Job, *, as_json: bool) -> dict[str, Any]:
    """Run a job, with a bar while it lasts and then the table of what it cost; return what was made and where."""
    from tacit.jobs.job_run import plan_job
    from tacit.release.results.value_files import planned_file_name
    from tacit.report.job_folder import publish

    plan = plan_job(job)  # the one that is shown, charged, executed and reported
    # before anything is paid for: what cannot be told must not come up afterwards
    documents = {name: explained.document() for name, explained in plan.explanations.items()}
    records: dict[str, ReleaseRecord] = {}
    with progress("planning", as_json=as_json) as on_progress:
        folder = from_here(publish(plan, on_progress=on_progress, on_release=records.__setitem__))
    log("done", job=job.name, dataset=job.dataset, charged=plan.cost, folder=folder, notes=notes(job))
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


NOT_REMEMBERED = "Without a ledger another run does not know of this table; two tables together reveal more than one."
SIZES = (10, 100, 1_000)  # of groups for which errors are shown before anything is known of the rows

publish_app = typer.Typer(help="Publish tables whose sensitive values are perturbed.", rich_markup_mode=None)


@publish_app.callback()
def start() -> None:
    """Publish tables whose sensitive values are perturbed."""


@publish_app.command("table", short_help="Make the table that a file asks for.")
def publish_table(
    job: Annotated[Path, typer.Argument(metavar="JOB.yaml", help="The file that asks for a table.")],
    *,
    plan: Annotated[bool, typer.Option("--plan", help="Only show the cost and the expected error.")] = False,
    out: Out = None,
    skip_if_done: SkipIfDone = False,
    variables: SetVariables = None,
    log_format: LogFormat = "text",
    as_json: AsJson = False,
) -> None:
    """Charge the budget, make a table, and write it with its certificate and a report to a new folder.

    The report says what is promised, what is not prevented, and how accurate reconstructions from the table are. With
    --plan no row is opened and nothing is spent.
    """
    from tacit.jobs.table_file import read_table_job
    from tacit.jobs.variables import read_variables

    found = read_table_job(job, read_variables(variables))
    found = replace(found, job=_into(out, found.job))
    if plan:
        _show_plan(found, as_json=as_json)
        return
    if skip_if_done and _said_to_be_done(found.job, as_json=as_json):
        return
    from tacit.report.table_folder import publish_table, report_lines

    table, folder = publish_table(found), from_here(found.job.out)
    said = {"job": found.job.name, "dataset": found.job.dataset, "folder": folder}
    log("done", **said, charged=found.job.cost, notes=_notes(found))
    if as_json:
        about = {"folder": str(found.job.out), "dataset": found.job.dataset, **people_and_budget(found.job)}
        show_json({**about, **table.certificate})
    else:
        show(*report_lines(table), "", f"Published. The table, its certificate and this report are in {folder}.")
        note(*_notes(found), logged=True)


def _show_plan(asked: TableJob, *, as_json: bool) -> None:
    from tacit.amounts import shown
    from tacit.jobs.job_run import check_cost, check_paying, check_rows, remaining
    from tacit.jobs.results_folder import check_out
    from tacit.publish.methods.method import PromisingMethod

    for check in (check_out, check_cost, check_rows):
        check(asked.job)
    check_paying(asked.job, asked.plan.note)
    left, cost = remaining(asked.job), asked.plan.epsilon
    expected = {size: asked.plan.expected(size) for size in SIZES}
    promised = sorted({str(how.criterion) for how, _ in expected.values() if isinstance(how, PromisingMethod)})
    if as_json:
        sizes = [{"people": size, "method": how.name, "error": error} for size, (how, error) in expected.items()]
        about = {"job": asked.job.name, "dataset": asked.job.dataset, "cost": str(cost), "remaining": str(left)}
        show_json({**about, **people_and_budget(asked.job), "criterion": promised, "expected": sizes})
        return
    show(
        f"{asked.plan}: costs {shown(cost)} of {shown(left)}. Nothing was spent, no row was opened.",
        *(f"Promised of the frequency f of each value in each group: {one}." for one in promised),
        "Expected error (root mean square) of the count of one value, if all values are equally frequent:",
        *(
            f"  among {size:,} people of one group: {error:,.1f} ({how.name})"
            for size, (how, error) in expected.items()
        ),
    )
    note(*_notes(asked))


def _notes(asked: TableJob) -> list[str]:
    """Return what a file that asks for a table assumes without saying it."""
    return [*notes(asked.job), *([NOT_REMEMBERED] if asked.job.ledger is None else [])]


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

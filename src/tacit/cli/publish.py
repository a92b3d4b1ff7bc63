"""`tacit publish table JOB`: publish a table whose sensitive values are perturbed or masked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.plan import notes, people_and_budget
from tacit.cli.screen import AsJson, note, show, show_json

if TYPE_CHECKING:
    from tacit.jobs.table_file import TableJob

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
    plan: Annotated[
        bool, typer.Option("--plan", help="Only say what it would cost and how wrong it would be.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Charge the budget, make a table, and write it with its certificate and a report to a new folder.

    The report says what is promised, what is not prevented, and how accurate reconstructions from the table are. With
    --plan no row is opened and nothing is spent.
    """
    from tacit.jobs.table_file import read_table_job

    found = read_table_job(job)
    if plan:
        _show_plan(found, as_json=as_json)
        return
    from tacit.report.table_folder import publish_table, report_lines

    table, out = publish_table(found), found.job.out
    if as_json:
        about = {"folder": str(out), "dataset": found.job.dataset, **people_and_budget(found.job)}
        show_json({**about, **table.certificate})
    else:
        show(*report_lines(table), "", f"Published. The table, its certificate and this report are in {out.name}.")
        note(*_notes(found))


def _show_plan(asked: TableJob, *, as_json: bool) -> None:
    from tacit.amounts import shown
    from tacit.jobs.job_plan import check_cost, check_out, check_paying, check_rows, remaining

    for check in (check_out, check_cost, check_rows):
        check(asked.job)
    check_paying(asked.job, asked.plan.note)
    left, cost = remaining(asked.job), asked.plan.epsilon
    expected = {size: asked.plan.expected(size) for size in SIZES}
    if as_json:
        sizes = [{"people": size, "method": how.name, "error": error} for size, (how, error) in expected.items()]
        about = {"job": asked.job.name, "dataset": asked.job.dataset, "cost": str(cost), "remaining": str(left)}
        show_json({**about, **people_and_budget(asked.job), "expected": sizes})
        return
    show(
        f"{asked.plan}: costs {shown(cost)} of {shown(left)}. Nothing was spent, no row was opened.",
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

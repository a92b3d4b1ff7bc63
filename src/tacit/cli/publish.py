"""`tacit publish table JOB`: publish a table whose sensitive values are perturbed or masked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.screen import AsJson, show, show_json

publish_app = typer.Typer(help="Publish tables whose sensitive values are perturbed.", rich_markup_mode=None)


@publish_app.callback()
def start() -> None:
    """Publish tables whose sensitive values are perturbed."""


@publish_app.command("table", short_help="Make the table that a file asks for.")
def publish_table(
    job: Annotated[Path, typer.Argument(metavar="JOB.yaml", help="The file that asks for a table.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Charge the budget, make a table, and write it with its certificate and a report to a new folder.

    The report says what is promised, what is not prevented, and how accurate reconstructions from the table are.
    """
    from tacit.publish.table_job import read_table_job, report_lines, save_table

    found = read_table_job(job)
    table = found.make()
    save_table(table, found.out)
    if as_json:
        show_json({"folder": str(found.out), "dataset": found.dataset, **table.certificate})
    else:
        show(
            *report_lines(table), "", f"Published. The table, its certificate and this report are in {found.out.name}."
        )

"""From a file that asks for a table to a folder that can be published: the table, its certificate and its report.

Guarantee   As for jobs of releases (`report/job_folder.py`): what can be refused is refused before the charge, also a
            folder that cannot be made; the folder appears all at once and complete, or not at all.
Assumes     As there.
Why         It is the same draft folder, the same ledger and the same order of steps.
Checked by  tests/cli/test_tables.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from tacit.jobs.job_file import Job
from tacit.jobs.job_run import check_cost, check_paying, check_rows, session_of
from tacit.jobs.results_folder import check_out
from tacit.jobs.table_file import TableJob
from tacit.publish.estimates import reconstruct
from tacit.publish.paid_tables import paid_table
from tacit.publish.table import PublishedTable
from tacit.release.results.value_files import write_table, written_columns
from tacit.report.draft_folder import synced
from tacit.report.job_folder import write_text, written
from tacit.report.page import PlainSection, plain_page
from tacit.report.shown_tables import ShownRow, ShownTable
from tacit.report.workbook import WORKBOOK, check_workbook, write_workbook

MOST_VALUES: Final = 20
_FINE = 1e-5  # numbers are written with six decimals: parts of a record are 1/64


def publish_table(asked: TableJob) -> PublishedTable:
    """Pay for a table, make it and write it to the folder of the job, all or nothing.

    Raises:
        JobError: If the folder is not free or cannot be made, or rows are missing; nothing is charged.
        PlanError: If it would undo what another table of the data set promises; nothing is charged.
        PublishError: If it was paid for and the folder could not be finished.
    """
    job = asked.job
    for check in (check_out, check_workbook, check_cost, check_rows):
        check(job)
    check_paying(job, asked.plan.note)
    made: dict[str, PublishedTable] = {}

    def fill(folder: Path, run: str, pay: Callable[[], None]) -> None:
        session = session_of(job)
        made["table"] = paid_table(session, asked.plan, run=run, job=job.label, on_paid=pay)
        _write_files(made["table"], folder, job)

    written(job, fill, made)
    return made["table"]


def _write_files(table: PublishedTable, folder: Path, job: Job) -> None:
    counts = np.asarray(table.published.ravel() * float(table.method.unit), np.float64)
    numbers = {"count": counts, "estimate": table.estimates.ravel()}
    synced(folder / write_table(folder, "table", counts.size, table.labels(), numbers, error=_FINE))
    write_text(folder / "certificate.json", json.dumps(table.certificate, indent=2) + "\n")
    if job.xlsx:
        columns = written_columns(table.labels(), numbers, error=_FINE)
        write_workbook(folder / WORKBOOK, {"Table": [list(columns), *zip(*columns.values(), strict=True)]})
        synced(folder / WORKBOOK)
    write_text(folder / "report.html", table_page(table, job.name))


def report_lines(table: PublishedTable) -> list[str]:
    """Return in words what a table promises, and how accurate the best reconstructions from it are."""
    shown = _estimates(table)
    rows = [(*row.labels, *(text for text, _ in row.numbers)) for row in shown.rows]
    return [
        str(table),
        "",
        "estimates among all people, with 95% intervals:",
        *(f"  {value}: {count} ({ends}), {share}" for value, count, ends, share in rows),
        "",
        *shown.notes,
    ]


def table_page(table: PublishedTable, name: str) -> str:
    """Return the same as a page."""
    people = f"{len(table.sizes):,} groups, {int(table.sizes.sum()):,} records, {len(table.values)} sensitive values"
    promised = [*table.undone, table.promise.guarantee, *table.method.words(), *table.merges.words()]
    open_to = [*table.method.leaves_open, *table.warnings]
    marks = ["This is no release: the noise was replayed for a test."] if table.replayed else []
    sections = [
        PlainSection("What is promised", promised),
        PlainSection("What is not prevented", open_to, warns=True),
        PlainSection("What the table says of all people", table=_estimates(table)),
    ]
    about = (
        f"A published table, {table.made[:10]}: {people}; epsilon {float(table.epsilon):.6g}. The table is table.csv."
    )
    return plain_page(name, about, sections, marks=marks)


def _estimates(table: PublishedTable) -> ShownTable:
    """Return how many people have each value, as far as the table tells."""
    rows = []
    for value in table.values[:MOST_VALUES]:
        found = reconstruct(table, value=value)
        low, high = found.interval(0.95)
        texts = (f"{found.count:,.1f}", f"{low:,.1f} to {high:,.1f}", f"{found.frequency:.2%}")
        rows.append(ShownRow([str(value)], [(text, "") for text in texts]))
    errors = table.personal_errors[table.estimates >= 1]
    least, middle, most = np.quantile(errors, [0.1, 0.5, 0.9]) if errors.size else (0.0, 0.0, 0.0)
    more = len(table.values) - MOST_VALUES
    notes = [
        *([f"and {more} more values"] if more > 0 else []),
        f"The typical error of an estimate of one group is {middle:.0%} of it; the best tenth has less than "
        f"{least:.0%}, the worst tenth more than {most:.0%}.",
    ]
    return ShownTable(["Value"], ("Estimate", "95% interval", "Share"), rows, notes)

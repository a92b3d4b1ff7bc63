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

import numpy as np

from tacit.jobs.job_run import check_cost, check_paying, check_rows, session_of
from tacit.jobs.results_folder import check_out
from tacit.jobs.table_file import TableJob
from tacit.publish.estimates import reconstruct
from tacit.publish.paid_tables import paid_table
from tacit.publish.table import PublishedTable
from tacit.release.results.value_files import write_table
from tacit.report.draft_folder import synced
from tacit.report.job_folder import write_text, written

_FINE = 1e-5  # numbers are written with six decimals: parts of a record are 1/64


def publish_table(asked: TableJob) -> PublishedTable:
    """Pay for a table, make it and write it to the folder of the job, all or nothing.

    Raises:
        JobError: If the folder is not free or cannot be made, or rows are missing; nothing is charged.
        PlanError: If it would undo what another table of the data set promises; nothing is charged.
        PublishError: If it was paid for and the folder could not be finished.
    """
    job = asked.job
    for check in (check_out, check_cost, check_rows):
        check(job)
    check_paying(job, asked.plan.note)
    made: dict[str, PublishedTable] = {}

    def fill(folder: Path, run: str, pay: Callable[[], None]) -> None:
        session = session_of(job)
        made["table"] = paid_table(session, asked.plan, run=run, job=job.name, on_paid=pay)
        _write_files(made["table"], folder)

    written(job, fill, made)
    return made["table"]


def _write_files(table: PublishedTable, folder: Path) -> None:
    counts = np.asarray(table.published.ravel() * float(table.method.unit), np.float64)
    numbers = {"count": counts, "estimate": table.estimates.ravel()}
    synced(folder / write_table(folder, "table", counts.size, table.labels(), numbers, error=_FINE))
    write_text(folder / "certificate.json", json.dumps(table.certificate, indent=2) + "\n")
    write_text(folder / "report.txt", "\n".join(report_lines(table)) + "\n")


def report_lines(table: PublishedTable, most: int = 20) -> list[str]:
    """Return in words what a table promises, and how accurate the best reconstructions from it are."""
    lines = [str(table), "", "estimates among all people, with 95% intervals:"]
    for value in table.values[:most]:
        found = reconstruct(table, value=value)
        low, high = found.interval(0.95)
        lines.append(f"  {value}: {found.count:,.1f} ({low:,.1f} to {high:,.1f}), {found.frequency:.2%}")
    errors = table.personal_errors[table.estimates >= 1]
    low, middle, high = np.quantile(errors, [0.1, 0.5, 0.9]) if errors.size else (0.0, 0.0, 0.0)
    return [
        *lines,
        *([f"  and {len(table.values) - most} more values"] if len(table.values) > most else []),
        "",
        f"estimates of single counts of personal groups are wrong by about {middle:.0%} (root mean square, the middle "
        f"one; a tenth by less than {low:.0%}, a tenth by more than {high:.0%})",
    ]

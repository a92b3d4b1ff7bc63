"""Released numbers as one workbook (.xlsx) for colleagues who want neither CSV nor a report.

The first sheet says what was asked, what came out, what it cost, and what is promised; then each table has a sheet,
with the labels and the numbers of its file. Texts are texts: none is a formula, whatever it begins with, and none
becomes one where somebody edits the cell. A workbook needs the package openpyxl, which is missing or not before
anything is charged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

from tacit.errors import printable
from tacit.jobs.job_file import Job
from tacit.release.results.record import ReleaseRecord
from tacit.release.results.value_files import written_columns
from tacit.report.charts.release_charts import condition, question

WORKBOOK: Final = "results.xlsx"
MOST_LINES: Final = 100_000  # of a sheet; longer tables are in their own file alone
_LONGEST_NAME: Final = 31  # of a sheet
_LONGEST_TEXT: Final = 32_767  # of a cell
_WIDTH: Final = 24  # letters of the first column
_HEADINGS: Final = ("name", "what was asked", "answer", "lower", "upper", "epsilon", "typical error", "in units of")
Lines = Iterable[Sequence[Any]]


def check_workbook(job: Job) -> None:
    """Refuse a job that wants a workbook where nothing can write one."""
    if not job.xlsx:
        return
    try:
        import openpyxl  # noqa: F401 - whether it is there
    except ImportError:
        is_there = False
    else:
        is_there = True
    if not is_there:
        fix = "Nothing was charged. Run `pip install 'tacit[xlsx]'`, or leave the key out."
        raise job.refuse("xlsx", "needs the package openpyxl, which is not installed", given="true", fix=fix)


def write_releases(path: Path, promise: str, records: Mapping[str, ReleaseRecord]) -> None:
    """Write all releases of a job to a workbook."""
    overview: list[Sequence[Any]] = [[f"{promise}."], [], _HEADINGS]
    sheets: dict[str, Lines] = {}
    for name, record in records.items():
        plan, numbers = record.done, record.numbers()
        query, domain = plan.query, plan.policy.domain
        ends = [numbers[end][0] if len(record.values) == 1 and end in numbers else None for end in ("lower", "upper")]
        answer = record.values[0] if len(record.values) == 1 else query.size_words(plan.answers, domain)
        asked = f"{question(record)}{condition(query)}"
        overview.append([name, asked, answer, *ends, float(plan.epsilon), plan.rmse, query.error_unit(domain)])
        if len(record.values) > MOST_LINES:
            sheets[name] = [[f"{len(record.values):,} lines: they are in the file of this release"]]
            continue
        columns = written_columns(record.labels(), numbers, error=record.digits_for)
        sheets[name] = chain([list(columns)], zip(*columns.values(), strict=True))
    write_workbook(path, {"Results": overview, **sheets})


def write_workbook(path: Path, sheets: Mapping[str, Lines]) -> None:
    """Write sheets of lines; names of sheets are shortened, and told apart."""
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    taken: set[str] = set()
    for name, lines in sheets.items():
        sheet = book.create_sheet(_free_name(name, taken))
        sheet.column_dimensions["A"].width = _WIDTH
        for line in lines:
            sheet.append([_cell(sheet, value) for value in line])
    book.save(path)


def _free_name(name: str, taken: set[str]) -> str:
    found, number = name[:_LONGEST_NAME], 2
    while found.lower() in taken or found.lower() == "history":  # a name that Excel keeps for itself
        ending = f" {number}"
        found, number = name[: _LONGEST_NAME - len(ending)] + ending, number + 1
    taken.add(found.lower())
    return found


def _cell(sheet: Any, value: Any) -> Any:
    """Return a number, or a text that is never read as anything else."""
    from openpyxl.cell import WriteOnlyCell

    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if math.isfinite(value) else None
    cell = WriteOnlyCell(sheet, printable(str(value))[:_LONGEST_TEXT])
    cell.data_type = "s"
    cell.quotePrefix = True
    return cell

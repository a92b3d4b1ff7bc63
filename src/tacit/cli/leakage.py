"""`tacit audit exclusion CASE` and `tacit plan leakage CASE`: what could be learned, and which epsilons to choose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.screen import AsJson, command, note, show, show_json
from tacit.errors import PlanError, Refused

if TYPE_CHECKING:
    from tacit.audit.case_audit import CaseAudit
    from tacit.jobs.case_file import Case

CaseFile = Annotated[Path, typer.Argument(metavar="CASE.yaml", help="The case file.")]


def audit_exclusion(
    case: CaseFile,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FOLDER", help="Also write a page, charts and data here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what each application and coalition of a case could know about what is protected, on average and at worst.

    Spends nothing, and opens no private row unless the case has them counted (`unprotected: true`). Epsilons are those
    of the case, or those planned under its limit.
    """
    from tacit.audit.case_audit import HEADINGS, audit_case
    from tacit.jobs.case_file import read_case

    found = audit_case(read_case(case))
    written = [] if output is None else _write(found, output)
    if as_json:
        show_json({**found.document(), "files": [str(file) for file in written]})
        return
    from rich.table import Table

    table = Table(title=f"{found.case.name}: what could be learned")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("who", "about", "after") else "right", overflow="fold")
    for row in found.rows:
        table.add_row(*row.cells())
    show(*found.case.dependence.marks, table)
    for name, each in found.epsilon.items():
        show(f"{name} is shown {', '.join(f'{one} at epsilon {epsilon:.6g}' for one, epsilon in each.items())}.")
    show(*found.remarks, *(f"Written: {file}" for file in written))


def plan_leakage(case: Path, *, as_json: bool) -> int:
    """Show the epsilons that release the most under the limit of a case, with a bound on what could be better."""
    from tacit.jobs.case_file import read_case
    from tacit.plan.leakage.leakage_plan import METHODS

    found = read_case(case)
    plan = found.plan()
    refused = "" if found.job is None else _refusal(found)
    if as_json:
        show_json({"case": found.name, "run_refused": refused or None, **plan.document()})
        return 1 if refused else 0
    opened = "private rows were counted for the dependence" if plan.unprotected else "no private row was opened"
    show(str(plan), f"Found by {METHODS[plan.method]}. Nothing was spent; {opened}.")
    if found.job is not None:
        show(f"`{command('run', case)}` {'would be refused.' if refused else 'makes the releases.'}")
    note(*filter(None, [refused]))
    return 1 if refused else 0


def _refusal(case: Case) -> str:
    """Return the sentence with which a run of the case would be refused for what it tells, or nothing."""
    from tacit.jobs.job_plan import plan_job, refusals

    try:
        plan = plan_job(case.to_run())
    except Refused as refusal:
        return str(refusal)
    return str(refusals(plan.job, plan.plans).get("leakage", ""))


def _write(audit: CaseAudit, folder: Path) -> list[Path]:
    """Write the page, the charts and the data of an audit into a new folder."""
    from tacit.cli.screen import plain_document
    from tacit.report.charts.audit_charts import leakage_charts, leakage_page
    from tacit.report.charts.release_charts import chart_png

    if folder.exists():
        raise PlanError("must not exist yet", key="--output", given=str(folder), fix="Name a new folder.")
    charts = leakage_charts(audit)
    page = leakage_page(audit, charts)
    folder.mkdir(parents=True)
    files: dict[Path, Any] = {folder / f"{name}.png": chart_png(chart) for name, chart in charts.items()}
    files[folder / "exclusion.html"] = page.encode()
    files[folder / "exclusion.json"] = json.dumps(plain_document(audit.document()), indent=2).encode()
    for file, content in files.items():
        file.write_bytes(content)
    return list(files)

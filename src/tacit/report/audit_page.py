"""Audits as pages: what applications could learn, what mechanisms lose, and what a job would disclose about groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tacit.audit.case_audit import HEADINGS, CaseAudit
from tacit.audit.disclosure_audits.disclosures import Disclosure
from tacit.audit.sampled_audits.subjects import AuditRow
from tacit.report.charts.release_charts import chart_svg
from tacit.report.page import PlainSection, inline, plain_page
from tacit.report.shown_tables import ShownRow, ShownTable

COLUMNS: Final = (
    "who: an application, or several that put together what they see.",
    "about: the attribute that is protected.",
    "before: how likely it is that the attribute is sensitive, if nothing was shown.",
    "at worst, after: the largest probability that anything shown gives it, and what that is.",
    "nats (value), nats (bit): how much is learned on average about the value; and about whether it is sensitive, "
    "from seeing whether something is shown.",
    "free at epsilon: the epsilon of freedom from exclusion attacks; never where what is shown rules a value out.",
)


def leakage_page(audit: CaseAudit, charts: Mapping[str, Any]) -> str:
    """Return the audit as one self-contained HTML page."""
    shown = [f"{name}: {one} at {epsilon:.4g}" for name, each in audit.epsilon.items() for one, epsilon in each.items()]
    rows = [ShownRow(row.cells()[:2], [(cell, "") for cell in row.cells()[2:]]) for row in audit.rows]
    table = ShownTable(HEADINGS[:2], HEADINGS[2:], rows, COLUMNS)
    sections = [
        PlainSection("What could be learned", audit.remarks, table),
        PlainSection("What is shown, and at what epsilon", shown, charts=_drawn(charts)),
    ]
    about = "An audit of what applications could learn from what they are shown."
    return plain_page(audit.case.name, about, sections, marks=audit.case.dependence.marks)


def losses_page(name: str, rows: Sequence[AuditRow], notes: Sequence[str]) -> str:
    """Return the audit of the releases of a job as one self-contained HTML page."""
    first, *numbers, last = rows[0].headings
    lines = []
    for row in rows:
        audited, *cells, verdict = row.cells()
        lines.append(ShownRow([audited, verdict], [(cell, "") for cell in cells]))
    found = [f"{row.name}: {row.found}" for row in rows]
    table = ShownTable([first, last], numbers, lines, notes)
    sections = [PlainSection("What was found", table=table), PlainSection("By what output", found)]
    about = "An audit of every release of a job, on neighbouring data sets made up from its policy. No row was opened."
    return plain_page(name, about, sections)


def disclosure_page(name: str, audit: Disclosure, charts: Mapping[str, Any]) -> str:
    """Return the audit of what a job would disclose as one self-contained HTML page, for the curator alone."""
    rows = [
        ShownRow(
            [str(row.group), str(row.told)],
            [(cell, "") for cell in (f"{row.share:.1%}", f"{row.size:,}", f"{row.jump:.1f}")],
        )
        for row in audit.worst().itertuples()
    ]
    worst = ShownTable(["group", "disclosed"], ["share of the group", "people", "times the share of all"], rows, [])
    sections = [
        PlainSection("What would be disclosed", audit.summary(), worst if rows else None),
        PlainSection("Disclosures and error against epsilon", charts=_drawn(charts)),
    ]
    about = "An audit of which sensitive values the answers of a job would disclose, in which groups."
    return plain_page(name, about, sections, marks=[audit.private])


def _drawn(charts: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "drawn": inline(chart_svg(chart), name)} for name, chart in charts.items()]

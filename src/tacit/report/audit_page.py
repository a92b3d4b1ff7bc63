"""An audit of what applications could learn, as one page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tacit.audit.case_audit import HEADINGS, CaseAudit
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
    drawn = [{"name": name, "drawn": inline(chart_svg(chart), name)} for name, chart in charts.items()]
    sections = [
        PlainSection("What could be learned", audit.remarks, table),
        PlainSection("What is shown, and at what epsilon", shown, charts=drawn),
    ]
    about = "An audit of what applications could learn from what they are shown."
    return plain_page(audit.case.name, about, sections, marks=audit.case.dependence.marks)

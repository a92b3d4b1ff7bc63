"""Charts for stages before the report stage, which draws them; it is loaded for the first chart.

Imports point left, so a release, a monitor or an audit cannot import the report stage itself.
"""

from importlib import import_module
from typing import Any, Literal


def draw(kind: Literal["release", "monitor", "disclosure"], shown: Any, **options: Any) -> Any:
    """Return the chart of a release's record, of a monitor's history, or of what an audit found."""
    chart = {
        "release": ("release_charts", "chart"),
        "monitor": ("monitor_charts", "monitor_chart"),
        "disclosure": ("audit_charts", "disclosure_chart"),
    }[kind]
    return getattr(import_module(f"tacit.report.charts.{chart[0]}"), chart[1])(shown, **options)

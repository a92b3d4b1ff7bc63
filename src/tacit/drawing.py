"""Charts for whoever asks: the report stage draws them, and is loaded when the first chart is asked for.

Imports point left, so a release or a monitor cannot import the stage that shows it; it asks here instead.
"""

from importlib import import_module
from typing import Any, Literal


def draw(kind: Literal["release", "monitor"], shown: Any, **options: Any) -> Any:
    """Return the chart of a release's record, or of a monitor's history."""
    chart = {"release": ("charts", "chart"), "monitor": ("monitor_chart", "monitor_chart")}[kind]
    return getattr(import_module(f"tacit.report.{chart[0]}"), chart[1])(shown, **options)

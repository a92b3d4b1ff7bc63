"""The charts of the worked case: a day, posteriors, the trade-off, and who asks, depends and colludes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt

from tacit.papers.charts_001 import applications_chart, pattern_chart
from tacit.report.charts import chart_png, chart_svg
from tacit.report.views import styled

__all__ = ["applications_chart", "leakage_chart", "pattern_chart", "posterior_chart", "save"]

COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9"]
Row = Mapping[str, Any]


def posterior_chart(rows: Sequence[Row]) -> Any:
    """The chance of a secret that somebody could believe in, against epsilon, a panel for each attribute."""
    attributes = list(dict.fromkeys(row["attribute"] for row in rows))
    panels = []
    for name in attributes:
        own = [row for row in rows if row["attribute"] == name]
        y = alt.Y("posterior:Q", title="posterior", scale=alt.Scale(domain=[0, 1]))
        x = alt.X("epsilon:Q", title="epsilon of both attributes")
        dash = alt.StrokeDash(
            "after:N", legend=None, scale=alt.Scale(domain=["gaps", "the worst"], range=[[1, 0], [4, 3]])
        )
        base = alt.Chart(alt.Data(values=own)).mark_line()
        drawn = base.encode(x=x, y=y, color=_by(rows, "who"), strokeDash=dash)
        panels.append(drawn.properties(width=220, height=180, title=f"{name} is sensitive"))
    said = "By who sees what. Solid: everything is suppressed. Dashed: at worst, over all that could be seen."
    return styled(alt.hconcat(*panels), "What could be known of a secret", [said])


def leakage_chart(rows: Sequence[Row]) -> Any:
    """How many values of a day are released against what coalitions learn."""
    x = alt.X("leakage:Q", title="learned by the coalition, nats")
    y = alt.Y("releases:Q", title="values released of a day")
    drawn = alt.Chart(alt.Data(values=list(rows))).mark_line(point=True).encode(x=x, y=y, color=_by(rows, "how"))
    said = "Planned: the largest number of releases under each limit."
    return styled(drawn.properties(width=420, height=240), "Leakage against utility", [said])


def save(charts: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write each chart as PNG and SVG."""
    files = []
    for name, chart in charts.items():
        (folder / f"{name}.svg").write_text(chart_svg(chart), encoding="utf-8")
        (folder / f"{name}.png").write_bytes(chart_png(chart))
        files.append(folder / f"{name}.png")
    return files


def _by(rows: Sequence[Row], name: str) -> Any:
    series = list(dict.fromkeys(row[name] for row in rows))
    scale = alt.Scale(domain=series, range=COLOURS[: len(series)])
    return alt.Color(f"{name}:N", title=None, scale=scale, legend=alt.Legend(orient="bottom", labelLimit=260))

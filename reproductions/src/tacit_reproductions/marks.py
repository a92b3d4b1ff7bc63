"""What charts of several documents are made of: a colour for each series, and measured numbers with their errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import altair as alt

from tacit.report.charts.chart_parts import LINE
from tacit_reproductions.measured import Number, Runs

Row = dict[str, Any]
GREEN: Final = "#009E73"


def coloured(
    names: Iterable[str], colours: Iterable[str], of: str = "series", title: str | None = None, **legend: Any
) -> Any:
    """Return a colour for each name, listed below the chart."""
    scale = alt.Scale(domain=list(names), range=list(colours))
    return alt.Color(f"{of}:N", title=title, scale=scale, legend=alt.Legend(orient="bottom", **legend))


def measured_row(x: float, series: str, number: Number) -> Row:
    """Return a measured number as a row, from two standard errors below it to two above it."""
    low, high = number.value - 2 * number.margin, number.value + 2 * number.margin
    return {"x": x, "series": series, "value": number.value, "lower": max(low, number.value / 10), "upper": high}


def quartile_row(x: float, series: str, runs: Runs) -> Row:
    """Return the mean of runs as a row, from the lower to the upper quartile."""
    return {"x": x, "series": series, "value": runs.value, "lower": runs.lower, "upper": runs.upper}


def error_bars(base: Any, width: float) -> Any:
    """Return the errors of measured rows as bars."""
    return base.mark_rule(strokeWidth=width, color=LINE).encode(x="x:Q", y="lower:Q", y2="upper:Q")

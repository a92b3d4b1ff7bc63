"""The figures of document 004, chapter 4, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from tacit.report.charts.chart_parts import styled
from tacit_reproductions.marks import Row

NAMES: Final = {"p": "p", "lam": "lambda", "delta": "delta", "rows": "records"}  # of the parameters that move


def size_chart(rows: Sequence[Row]) -> Any:
    """Return Figure 4.1: the largest size of a group that Eq 4.9 allows."""
    lines = (
        alt.Chart(alt.Data(values=list(rows)))
        .mark_line(point=True)
        .encode(
            x=alt.X("f:Q", title="largest frequency"),
            y=alt.Y("size:Q", title="largest size", scale=alt.Scale(type="log")),
            color=alt.Color("p:N", title="retention"),
        )
        .properties(width=260, height=220)
    )
    return styled(
        lines.facet(column=alt.Column("table:N", title=None)),
        "Figure 4.1: the largest size of a group, by Chernoff's bound",
        ["Above a curve the criterion is violated. By the exact tails they are about a tenth."],
    )


def violation_chart(rows: Sequence[Row]) -> Any:
    """Return Figures 4.2 and 4.4: shares of groups and records that violate the criterion."""
    long = [{**row, "share": row[what], "of": what} for row in rows for what in ("groups", "records")]
    y = alt.Y("share:Q", title="violated", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1]))
    dash = alt.StrokeDash("criterion:N", legend=None)
    return styled(
        _panels(long, y, alt.Color("of:N", title="share of"), dash),
        "Figures 4.2 and 4.4: groups and records that violate the criterion",
        ["Solid: by Eq 4.9; dashed: exact, each tail. Generalised groups. OCC is workers of the census survey."],
    )


def error_chart(rows: Sequence[Row]) -> Any:
    """Return Figures 4.3 and 4.5: mean relative errors of count queries."""
    y = alt.Y("error:Q", title="mean relative error", axis=alt.Axis(format="%"))
    return styled(
        _panels(rows, y, alt.Color("method:N", title="published")),
        "Figures 4.3 and 4.5: errors of count queries",
        ["SPS leaks the frequencies that it hides; masked counts keep both tails together above delta."],
    )


def _panels(rows: Sequence[Row], *encoded: Any) -> Any:
    """Return a line of panels for each table, one for each parameter that moves."""
    lines = []
    for table in dict.fromkeys(row["table"] for row in rows):
        panels = []
        for parameter in (
            key for key in NAMES if any((row["table"], row["parameter"]) == (table, key) for row in rows)
        ):
            own = [row for row in rows if row["table"] == table and row["parameter"] == parameter]
            ticks = sorted({row["at"] for row in own})
            form = "~s" if ticks[-1] > 1 else "~g"
            x = alt.X("at:Q", title=NAMES[parameter], axis=alt.Axis(values=ticks, format=form))
            drawn = alt.Chart(alt.Data(values=own)).mark_line(point=True).encode(x, *encoded)
            title = alt.TitleParams(table, fontSize=11)
            panels.append(drawn.properties(width=150, height=130, title=title))
        lines.append(alt.hconcat(*panels).resolve_scale(y="shared"))
    return alt.vconcat(*lines)

"""The figures of document 004, chapter 4, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from tacit.report.views import styled

Row = dict[str, Any]


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
        ["Above a curve the criterion is violated. By the exact criterion they are about a tenth."],
    )


def violation_chart(rows: Sequence[Row]) -> Any:
    """Return Figures 4.2 and 4.4: shares of groups and records that violate the criterion."""
    long = [{**row, "share": row[what], "of": what} for row in rows for what in ("groups", "records")]
    lines = (
        alt.Chart(alt.Data(values=long))
        .mark_line(point=True)
        .encode(
            x=alt.X("at:Q", title=None),
            y=alt.Y("share:Q", title="violated", axis=alt.Axis(format="%")),
            color=alt.Color("of:N", title="share of"),
            strokeDash=alt.StrokeDash("criterion:N", title="criterion"),
        )
        .properties(width=170, height=140)
    )
    return styled(
        lines.facet(column=alt.Column("parameter:N", title=None), row=alt.Row("table:N", title=None)),
        "Figures 4.2 and 4.4: groups and records that violate the criterion",
        ["Generalised groups. OCC is workers of the census survey."],
    )


def error_chart(rows: Sequence[Row]) -> Any:
    """Return Figures 4.3 and 4.5: mean relative errors of count queries."""
    lines = (
        alt.Chart(alt.Data(values=list(rows)))
        .mark_line(point=True)
        .encode(
            x=alt.X("at:Q", title=None),
            y=alt.Y("error:Q", title="mean relative error", axis=alt.Axis(format="%")),
            color=alt.Color("method:N", title="published"),
        )
        .properties(width=170, height=140)
    )
    return styled(
        lines.facet(column=alt.Column("parameter:N", title=None), row=alt.Row("table:N", title=None)),
        "Figures 4.3 and 4.5: errors of count queries",
        ["SPS leaks the frequencies that it hides; masked counts satisfy the exact criterion."],
    )

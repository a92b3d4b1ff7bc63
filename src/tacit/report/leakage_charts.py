"""Charts of what applications could learn: posteriors against epsilon, leakage against utility, and who asks for what.

Drawn from an audit of a case, which is made of public things only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

import altair as alt

from tacit.audit.excluding.case_audit import EPSILONS, HEADINGS, CaseAudit, posterior_curves, strengths, trade_off
from tacit.report.charts import chart_svg
from tacit.report.views import styled

COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
Row = Mapping[str, Any]


def leakage_charts(audit: CaseAudit) -> dict[str, Any]:
    """Return the charts of an audit by name."""
    found = {"posterior": posterior_chart(posterior_curves(audit.case)), "graph": graph_chart(audit)}
    reached = trade_off(audit.case)
    return {**found, "leakage": trade_off_chart(reached)} if len(reached) > 1 else found


def posterior_chart(rows: Sequence[Row]) -> Any:
    """Return the worst posterior of each protected attribute against epsilon, a line for each coalition."""
    log = alt.Scale(type="log", domain=[EPSILONS[0], EPSILONS[-1]])
    panels = []
    for name in dict.fromkeys(row["attribute"] for row in rows):
        own = [row for row in rows if row["attribute"] == name]
        drawn = (
            alt.Chart(alt.Data(values=own))
            .mark_line()
            .encode(
                x=alt.X("epsilon:Q", title="epsilon of every line", scale=log),
                y=alt.Y("posterior:Q", title="probability, at worst", scale=alt.Scale(domain=[0, 1])),
                color=_by(rows, "who"),
                strokeDash=alt.StrokeDash("who:N", legend=None, sort=None),
            )
        )
        panels.append(drawn.properties(width=240, height=190, title=f"{name} is sensitive"))
    said = ["After the outcome that tells most. Coins are remembered; one epsilon for every line."]
    return styled(alt.hconcat(*panels), "What could be known of a secret", said)


def trade_off_chart(rows: Sequence[Row]) -> Any:
    """Return what can be reached against what is learned, one point for each limit."""
    drawn = (
        alt.Chart(alt.Data(values=list(rows)))
        .mark_line(point=True, color=COLOURS[0])
        .encode(
            x=alt.X("leakage:Q", title="largest leakage, nats"),
            y=alt.Y("reached:Q", title="weighted releases of a record"),
        )
    )
    said = ["Planned under limits from a tenth of the case's to twice it."]
    return styled(drawn.properties(width=420, height=240), "Leakage against utility", said)


def graph_chart(audit: CaseAudit) -> Any:
    """Return who asks for which attribute, which attributes depend on each other, and who colludes."""
    case = audit.case
    places = _places(list(case.applications), list(case.dependence.names))
    lines = [
        _line(places, ("application", name), ("attribute", one), "asks", 2.0)
        for name, asked in case.applications.items()
        for one in asked
    ]
    lines += [
        _line(places, ("attribute", one), ("attribute", other), "depends", 1.0 + 6.0 * share)
        for one, other, share in strengths(case)
        if share > 0.01
    ]
    together = [members for members in case.groups.values() if len(members) > 1]
    pairs = {(one, other) for members in together for one in members for other in members if one < other}
    lines += [_line(places, ("application", a), ("application", b), "colludes", 2.0) for a, b in sorted(pairs)]
    secret = set(case.sensitive)
    nodes = [
        {"x": x, "y": y, "name": name, "kind": kind if kind == "application" or name not in secret else "protected"}
        for (kind, name), (x, y) in places.items()
    ]
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-0.4, 2.5]))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[-0.2, 1.2]))
    tie = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=["asks", "depends", "colludes"], range=[COLOURS[0], "#999999", COLOURS[1]]),
        legend=alt.Legend(orient="bottom", symbolType="stroke"),
    )
    dash = alt.StrokeDash(
        "kind:N", scale=alt.Scale(domain=["asks", "depends", "colludes"], range=[[1, 0], [1, 0], [6, 4]]), legend=None
    )
    drawn = (
        alt.Chart(alt.Data(values=lines))
        .mark_rule()
        .encode(
            x=x,
            y=y,
            x2="x2:Q",
            y2="y2:Q",
            color=tie,
            strokeDash=dash,
            strokeWidth=alt.StrokeWidth("width:Q", scale=None),
        )
    )
    fill = alt.Fill(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=["application", "attribute", "protected"], range=[COLOURS[4], "#ffffff", COLOURS[3]]),
        legend=alt.Legend(orient="bottom"),
    )
    base = alt.Chart(alt.Data(values=nodes)).encode(x=x, y=y)
    dots = base.mark_circle(size=600, opacity=1, stroke="#333333").encode(fill=fill)
    names = base.mark_text(dy=24, fontSize=12, stroke="white", strokeWidth=4, strokeJoin="round").encode(text="name:N")
    names += base.mark_text(dy=24, fontSize=12).encode(text="name:N")
    said = ["The wider a grey line, the more two attributes tell about each other."]
    return styled(
        alt.layer(drawn, dots, names)
        .resolve_scale(color="independent", fill="independent")
        .properties(width=520, height=300),
        "Who asks, what depends, who colludes",
        said,
    )


def leakage_page(audit: CaseAudit, charts: Mapping[str, Any]) -> str:
    """Return the audit as one self-contained HTML page."""
    rows = "\n".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row.cells())}</tr>" for row in audit.rows)
    shown = [f"{name}: {one} at {epsilon:.4g}" for name, each in audit.epsilon.items() for one, epsilon in each.items()]
    mark = (
        "<p><strong>The dependence is unprotected: show this to nobody.</strong></p>"
        if audit.case.dependence.unprotected
        else ""
    )
    drawn = "\n".join(f"<figure>{chart_svg(chart)}</figure>" for chart in charts.values())
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f"<title>{escape(audit.case.name)}: what could be learned</title>"
        "<style>body{font:15px sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
        "table{border-collapse:collapse}td,th{padding:.25em .8em;text-align:left;border-bottom:1px solid #ddd}</style>"
        f"</head><body><h1>{escape(audit.case.name)}: what could be learned</h1>{mark}"
        f"<p>Shown: {escape('; '.join(shown))}.</p>"
        f"<table><tr>{''.join(f'<th>{heading}</th>' for heading in HEADINGS)}</tr>{rows}</table>{drawn}</body></html>\n"
    )


def _by(rows: Sequence[Row], name: str) -> Any:
    series = list(dict.fromkeys(row[name] for row in rows))
    colours = [COLOURS[at % len(COLOURS)] for at in range(len(series))]
    return alt.Color(
        f"{name}:N",
        title=None,
        scale=alt.Scale(domain=series, range=colours),
        legend=alt.Legend(orient="bottom", labelLimit=260),
    )


def _places(applications: Sequence[str], attributes: Sequence[str]) -> dict[tuple[str, str], tuple[float, float]]:
    """Return where everybody stands: applications below each other, attributes on a circle beside them."""
    found = {}
    for at, name in enumerate(applications):
        found["application", name] = (0.0, 1 - (at + 0.5) / len(applications))
    for at, name in enumerate(attributes):
        turn = 2 * math.pi * (at + 0.5) / len(attributes)
        found["attribute", name] = (1.7 + 0.55 * math.cos(math.pi - turn), 0.5 + 0.45 * math.sin(turn))
    return found


def _line(places: Mapping[Any, tuple[float, float]], one: Any, other: Any, kind: str, width: float) -> dict[str, Any]:
    (x, y), (x2, y2) = places[one], places[other]
    return {"x": x, "y": y, "x2": x2, "y2": y2, "kind": kind, "width": width}

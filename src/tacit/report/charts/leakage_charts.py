"""Charts of what applications could learn: posteriors against epsilon, leakage against utility, and who asks for what.

Drawn from an audit of a case. Where its dependence was counted on the private rows, every chart and the page say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

import altair as alt

from tacit.audit.case_audit import EPSILONS, HEADINGS, CaseAudit, posterior_curves, trade_off
from tacit.report.charts.asking_graph import graph_chart
from tacit.report.charts.chart_parts import styled
from tacit.report.charts.release_charts import chart_svg

COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
Row = Mapping[str, Any]


def leakage_charts(audit: CaseAudit) -> dict[str, Any]:
    """Return the charts of an audit by name."""
    marks = audit.case.dependence.marks
    curves = posterior_curves(audit.case)
    found = {"posterior": posterior_chart(curves, marks=marks), "graph": graph_chart(audit.case)}
    reached = trade_off(audit.case)
    return (
        {**found, "leakage": trade_off_chart(reached, own=audit.case.options.get("own", True), marks=marks)}
        if len(reached) > 1
        else found
    )


def posterior_chart(rows: Sequence[Row], *, marks: Sequence[str] = ()) -> Any:
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
                **series([row["who"] for row in rows]),
            )
        )
        panels.append(drawn.properties(width=240, height=190, title=f"{name} is sensitive"))
    said = [
        *marks,
        "After the outcome that tells most of all that is seen, what was shown of the attribute itself included. Coins "
        "are remembered; one epsilon for every line. Thin lines lie on wide ones where they coincide.",
    ]
    return styled(alt.hconcat(*panels), "What could be known of a secret", said)


def trade_off_chart(rows: Sequence[Row], *, own: bool = True, marks: Sequence[str] = ()) -> Any:
    """Return what can be reached against what is learned as limits count it, one point for each limit."""
    drawn = (
        alt.Chart(alt.Data(values=list(rows)))
        .mark_line(point=alt.OverlayMarkDef(color=COLOURS[0]), color=COLOURS[0])
        .encode(
            x=alt.X("leakage:Q", title="largest leakage, nats"),
            y=alt.Y("reached:Q", title="weighted releases of a record"),
        )
    )
    said = [*marks, "Planned under limits from a tenth of the case's to twice it."]
    if not own:
        said.append("As limits count it: without what the release of an attribute says about that attribute itself.")
    return styled(drawn.properties(width=420, height=240), "Leakage against utility", said)


def leakage_page(audit: CaseAudit, charts: Mapping[str, Any]) -> str:
    """Return the audit as one self-contained HTML page."""
    rows = "\n".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row.cells())}</tr>" for row in audit.rows)
    shown = [f"{name}: {one} at {epsilon:.4g}" for name, each in audit.epsilon.items() for one, epsilon in each.items()]
    mark = "".join(f"<p><strong>{escape(one)}</strong></p>" for one in audit.case.dependence.marks)
    drawn = "\n".join(f"<figure>{chart_svg(chart)}</figure>" for chart in charts.values())
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f"<title>{escape(audit.case.name)}: what could be learned</title>"
        "<style>body{font:15px sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
        "table{border-collapse:collapse}td,th{padding:.25em .8em;text-align:left;border-bottom:1px solid #ddd}</style>"
        f"</head><body><h1>{escape(audit.case.name)}: what could be learned</h1>{mark}"
        f"<p>Shown: {escape('; '.join(shown))}.</p>"
        f"{''.join(f'<p>{escape(remark)}</p>' for remark in audit.remarks)}"
        f"<table><tr>{''.join(f'<th>{heading}</th>' for heading in HEADINGS)}</tr>{rows}</table>{drawn}</body></html>\n"
    )


def series(names: Sequence[str]) -> dict[str, Any]:
    """Return how lines of several names are told apart, as encodings of the field `who`.

    Each is thinner than those before it and lies on top of them: where lines coincide, all their colours are seen.
    """
    domain = list(dict.fromkeys(names))
    colours = [COLOURS[at % len(COLOURS)] for at in range(len(domain))]
    widths = [1.5 + 1.5 * (len(domain) - 1 - at) for at in range(len(domain))]
    legend = alt.Legend(orient="bottom", labelLimit=260, symbolType="stroke", symbolSize=400)
    return {
        "color": alt.Color("who:N", title=None, scale=alt.Scale(domain=domain, range=colours), legend=legend),
        "strokeWidth": alt.StrokeWidth(
            "who:N", title=None, scale=alt.Scale(domain=domain, range=widths), legend=legend
        ),
    }

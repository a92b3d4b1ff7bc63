"""The chart of a disclosure audit: disclosures and errors against epsilon, one above the other on one axis.

It shows what an audit of private data found, so it says whom it is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from tacit.audit.disclosure_audits.disclosures import EPSILONS, Disclosure
from tacit.report.charts.chart_parts import BLUE, LINE, WIDTH, styled, tip

ORANGE: Final = "#D55E00"
_HIGH: Final = 130


def disclosure_chart(found: Disclosure, epsilons: Sequence[float] | None = None) -> Any:
    """Return how many values are disclosed, and how wrong counts are, as epsilon grows."""
    planned = found.published.epsilon
    curve = found.curve(sorted({*EPSILONS, planned}) if epsilons is None else epsilons)
    rows = [{"epsilon": row.epsilon, "many": row.disclosures, "error": row.error} for row in curve.itertuples()]
    said = [found.private, f"{found.in_words_when_safe()} The dashed line is what is planned."]
    return styled(conflict(rows, planned), "What is disclosed, and how wrong counts are", said)


def conflict(rows: list[dict[str, Any]], epsilon: float | None = None) -> Any:
    """Return the two curves: fields epsilon, many and error, and a rule at what is planned."""
    base = alt.Chart(alt.Data(values=rows)).properties(width=WIDTH - 60, height=_HIGH)
    shared = alt.X("epsilon:Q", title="epsilon", scale=alt.Scale(type="log"), axis=alt.Axis(format="~g", tickCount=6))
    tips = [tip("epsilon:Q", "epsilon"), tip("many:Q", "disclosures"), tip("error:Q", "error over the count")]
    many = base.mark_line(point=alt.OverlayMarkDef(color=ORANGE), color=ORANGE).encode(
        x=shared, y=alt.Y("many:Q", title="disclosures", axis=alt.Axis(tickMinStep=1, format="d")), tooltip=tips
    )
    error = base.mark_line(point=alt.OverlayMarkDef(color=BLUE), color=BLUE).encode(
        x=shared,
        y=alt.Y("error:Q", title="overall error", scale=alt.Scale(type="log"), axis=alt.Axis(format="~%", tickCount=5)),
        tooltip=tips,
    )
    if epsilon is None:
        return alt.vconcat(many, error)
    rule = alt.Chart(alt.Data(values=[{"epsilon": epsilon}])).mark_rule(color=LINE, strokeDash=[4, 3])
    here = rule.encode(x="epsilon:Q", tooltip=[tip("epsilon:Q", "as planned")])
    return alt.vconcat(alt.layer(many, here), alt.layer(error, here))

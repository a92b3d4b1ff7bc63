"""The figures of document 004, chapters 1 to 3, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt
import numpy as np

from tacit.report.charts.audit_charts import conflict
from tacit.report.charts.chart_parts import BLUE, INK, LINE, SKY, styled
from tacit_reproductions.marks import GREEN, Row, coloured

_RAMP: Final = ("#222222", "#D55E00", "#0072B2")
_PANELS: Final = {"tau": "tau", "share": "confidence", "size": "size of the group"}


def density_chart(scale: float = 10.0, within: float = 30.0) -> Any:
    """Return Figure 1.1: the density of Laplace noise, shaded where it is small."""
    x = np.linspace(-6 * scale, 6 * scale, 241)
    density = np.exp(-np.abs(x) / scale) / (2 * scale)
    rows = [
        {"x": float(at), "y": float(high), "inside": bool(abs(at) <= within)}
        for at, high in zip(x, density, strict=True)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(x=alt.X("x:Q", title="noise"), y=alt.Y("y:Q", title="density"))
    shaded = base.transform_filter("datum.inside").mark_area(color=SKY)
    drawn = alt.layer(shaded, base.mark_line(color=LINE)).properties(width=420, height=200)
    return styled(
        drawn,
        f"Figure 1.1: Laplace noise, b = {scale:g}",
        [f"Shaded: within {within:g}, {-np.expm1(-within / scale):.1%}."],
    )


def densities_chart(laws: Sequence[tuple[float, float]] = ((0, 1), (0, 2), (0, 4), (-5, 4))) -> Any:
    """Return Figure 2.2: densities of Laplace noise, by mean and scale."""
    rows = [
        {"x": at, "y": float(np.exp(-abs(at - mean) / scale) / (2 * scale)), "series": f"mean {mean:g}, b = {scale:g}"}
        for mean, scale in laws
        for at in np.linspace(-15, 15, 241).tolist()
    ]
    names = list(dict.fromkeys(row["series"] for row in rows))
    drawn = (
        alt.Chart(alt.Data(values=rows))
        .mark_line()
        .encode(
            x=alt.X("x:Q", title="noise"),
            y=alt.Y("y:Q", title="density"),
            color=coloured(names, (*_RAMP, GREEN)),
        )
        .properties(width=420, height=200)
    )
    return styled(drawn, "Figure 2.2: Laplace noise", ["Flatter as the scale grows."])


def closeness_chart(curves: Sequence[Row]) -> Any:
    """Return Figure 3.1: closeness by epsilon, in a panel for each parameter that differs from its default."""
    panels = []
    for panel, title in _PANELS.items():
        rows = [{**row, "series": f"{row['value']:g}"} for row in curves if row["panel"] == panel]
        listed = list(dict.fromkeys(row["series"] for row in rows))
        drawn = (
            alt.Chart(alt.Data(values=rows))
            .mark_line(point=True)
            .encode(
                x=alt.X(
                    "epsilon:Q", scale=alt.Scale(type="log"), title="epsilon", axis=alt.Axis(format="~g", tickCount=4)
                ),
                y=alt.Y("closeness:Q", title="closeness probability", scale=alt.Scale(domain=[0, 1])),
                color=coloured(listed, _RAMP, title=title),
            )
        )
        panels.append(drawn.properties(width=190, height=180))
    said = "Delta 25; default: tau 0.2, confidence 0.7, 1,000 people."
    return styled(
        alt.hconcat(*panels).resolve_scale(color="independent"), "Figure 3.1: how close noisy confidences are", [said]
    )


def points_chart(found: Mapping[str, Sequence[Row]]) -> Any:
    """Return Figure 3.2: every disclosure by its jump and its closeness."""
    panels = []
    for name, rows in found.items():
        base = alt.Chart(alt.Data(values=list(rows) or [{"jump": None, "closeness": None}]))
        drawn = base.mark_circle(color=BLUE, opacity=0.6).encode(
            x=alt.X("jump:Q", title="jump", scale=alt.Scale(zero=False)),
            y=alt.Y("closeness:Q", title="closeness probability", scale=alt.Scale(domain=[0.7, 1])),
        )
        panels.append(
            drawn.properties(width=190, height=180, title=alt.TitleParams(f"{name}: {len(rows):,}", color=INK))
        )
    said = "Epsilon 0.5, tau 0.2, closeness 0.7, jump 3. The census survey stands in for the paper's tables."
    return styled(alt.hconcat(*panels), "Figure 3.2: disclosures", [said])


def conflict_chart(curves: Mapping[str, Any]) -> Any:
    """Return Figures 3.3 and 3.4 in one: disclosures above, overall error below, a column for each table."""
    panels = []
    for name, frame in curves.items():
        rows = [{"epsilon": row.epsilon, "many": row.disclosures, "error": row.error} for row in frame.itertuples()]
        panels.append(conflict(rows).properties(title=alt.TitleParams(name, color=INK)))
    said = "Disclosures and overall error as epsilon grows. The census survey stands in for the paper's tables."
    return styled(alt.hconcat(*panels), "Figures 3.3 and 3.4: the conflict", [said])

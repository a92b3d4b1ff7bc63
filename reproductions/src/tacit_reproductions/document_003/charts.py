"""The figures of document 003, drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from tacit.report.charts.chart_parts import BLUE, INK, styled
from tacit_reproductions.document_003 import clusters
from tacit_reproductions.document_003 import ranges as lines
from tacit_reproductions.document_003.constraints import MINUS, PLUS
from tacit_reproductions.document_003.ordered import OrderedHierarchical
from tacit_reproductions.marks import Row, coloured, error_bars, measured_row, quartile_row
from tacit_reproductions.measured import OURS

# one colour for each secret, from everything to the narrowest; readable in grey too
RAMP: Final = ("#222222", "#D55E00", "#E69F00", "#009E73", "#56B4E9", "#0072B2", "#CC79A7")
_RAW: Final = "as measured"
_RISING: Final = "made to rise"
_WIDE: Final = 230
_HIGH: Final = 200


def ranges_chart(found: lines.Measured, figure: str, name: str) -> Any:
    """Return Figure 2(b) or 2(c): error by epsilon, a line for each theta, as measured and made to rise."""
    own = {setting: by for setting, by in found.items() if setting.line == name}
    marks = [
        {**measured_row(float(epsilon), setting.label, getattr(by[mechanism], kind)), "panel": mechanism, "row": title}
        for kind, title in (("raw", _RAW), ("rising", _RISING))
        for mechanism in (lines.PRINTED, lines.BEST, OURS)
        for setting, by_epsilon in own.items()
        for epsilon, by in by_epsilon.items()
    ]
    labels = [setting.label for setting in reversed(own)]
    rows = alt.Row("row:N", title=None, sort=[_RAW, _RISING])
    drawn = _panels(marks, labels, "mean squared error", series="theta").facet(row=rows, **_columns(marks))
    said = "Mean squared error of random ranges. Bars: two standard errors."
    return styled(drawn, f"Figure 2({figure[-1]}): {name}", [said])


def clusters_chart(found: clusters.Measured, figure: str, settings: Sequence[clusters.Setting]) -> Any:
    """Return one of Figures 1(a) to 1(f) but 1(d): objective by epsilon, a line for each secret (1(e): data set)."""
    own = {setting: found[setting] for setting in settings}
    by_data = len({setting.data for setting in own}) > 1
    called = {setting: _called(setting, by_data=by_data) for setting in own}
    marks = [
        {**quartile_row(float(epsilon), called[setting], by[mechanism]), "panel": mechanism}
        for mechanism in clusters.SHOWN
        for setting, by_epsilon in own.items()
        for epsilon, by in by_epsilon.items()
        if mechanism in by
    ]
    labels = list(called.values())
    drawn = _panels(marks, labels, "objective over the best", series="secret").facet(**_columns(marks))
    names = ", ".join(dict.fromkeys(setting.data for setting in own))
    said = "k-means, k = 4: mean objective over the best without privacy. Bars: from lower to upper quartile."
    return styled(drawn, f"Figure 1({figure[-1]}): {names}", [said])


def sizes_chart(found: clusters.Measured, settings: Sequence[clusters.Setting]) -> Any:
    """Return Figure 1(d): how many times larger the objective of Laplace is than that within 128, by size."""
    marks: list[Row] = [
        {"x": float(epsilon), "series": data, "value": ratio, "panel": mechanism, "lower": ratio, "upper": ratio}
        for mechanism, by_data in clusters.size_ratios(found, settings).items()
        for data, by_epsilon in by_data.items()
        for epsilon, ratio in by_epsilon.items()
    ]
    labels = [row["series"] for row in marks]
    drawn = _panels(marks, labels, "Laplace over within 128", series="data set").facet(**_columns(marks))
    return styled(drawn, "Figure 1(d): one set by size", ["Ratio of the mean objectives of k-means, k = 4."])


def structure_chart(mechanism: OrderedHierarchical) -> Any:
    """Return Figure 2(a): which runs of values are counted."""
    rows = [_bar(0, int(end), "S nodes", f"S{at}") for at, end in enumerate(mechanism.ends.tolist(), start=1)]
    for depth, level in enumerate(mechanism.nodes, start=1):
        rows += [
            _bar(start, start + width, "H nodes", f"H{depth}")
            for start, width in zip(level.starts.tolist(), level.widths.tolist(), strict=True)
        ]
    order = list(dict.fromkeys(row["line"] for row in rows))
    bars = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(height=12, stroke="white")
        .encode(
            x=alt.X("start:Q", title="values", axis=alt.Axis(tickMinStep=1, format="d")),
            x2="end:Q",
            y=alt.Y("line:N", title=None, sort=order),
            color=coloured(["S nodes", "H nodes"], [BLUE, "#E69F00"], "kind"),
        )
        .properties(width=420, height=20 * len(order))
    )
    said = [
        f"{mechanism.values} values, theta {mechanism.theta}, fan-out {mechanism.fan_out}, without roots.",
        "Each bar is a count with noise.",
    ]
    return styled(bars, "Figure 2(a): the ordered hierarchical structure", said)


def graph_chart(graph: Mapping[int, set[int]]) -> Any:
    """Return Figure 3(b): the policy graph."""
    counts = [at for at in graph if at >= 0]
    places = {
        at: (math.cos(2 * math.pi * number / len(counts)), math.sin(2 * math.pi * number / len(counts)))
        for number, at in enumerate(counts)
    }
    places |= {PLUS: (-0.5, -1.8), MINUS: (0.5, -1.8)}
    names = {PLUS: "v+", MINUS: "v-", **{at: f"q{at + 1}" for at in counts}}
    edges = [
        {"x": places[a][0], "y": places[a][1], "x2": places[b][0], "y2": places[b][1]}
        for a, ends in graph.items()
        for b in ends
    ]
    nodes = [{"x": places[at][0], "y": places[at][1], "label": names[at]} for at in graph]
    plain: Any = {"axis": None, "scale": alt.Scale(domain=[-2.2, 1.6])}
    arrows = alt.Chart(alt.Data(values=edges)).mark_rule(color=INK, opacity=0.6)
    dots = alt.Chart(alt.Data(values=nodes)).mark_circle(size=700, color=BLUE, opacity=1)
    texts = alt.Chart(alt.Data(values=nodes)).mark_text(color="white", fontWeight="bold")
    drawn = alt.layer(
        arrows.encode(x=alt.X("x:Q", **plain), y=alt.Y("y:Q", **plain), x2="x2:Q", y2="y2:Q"),
        dots.encode(x="x:Q", y="y:Q"),
        texts.encode(x="x:Q", y="y:Q", text="label:N"),
    ).properties(width=300, height=300)
    said = "2 x 2 x 3 values, the marginal of two attributes known. Between counts there are edges both ways."
    return styled(drawn, "Figure 3(b): the policy graph", [said])


def _panels(rows: Sequence[Row], labels: Sequence[str], y_title: str, *, series: str) -> Any:
    """Return lines with error bars by epsilon, to be cut into panels."""
    listed = list(dict.fromkeys(labels))
    colour = coloured(listed, RAMP[: len(listed)], title=series, columns=4)
    base = alt.Chart()
    x = alt.X("x:Q", title="epsilon", axis=alt.Axis(tickCount=5, format=".2~f"), scale=alt.Scale(padding=6))
    y = alt.Y("value:Q", title=y_title, scale=alt.Scale(type="log", nice=False), axis=alt.Axis(format="~g"))
    drawn = base.mark_line(point=alt.OverlayMarkDef(size=18)).encode(x=x, y=y, color=colour)
    return alt.layer(drawn, error_bars(base, 1), data=alt.Data(values=list(rows))).properties(width=_WIDE, height=_HIGH)


def _columns(rows: Sequence[Row]) -> dict[str, Any]:
    """Return one column for each mechanism, in order."""
    order = list(dict.fromkeys(row["panel"] for row in rows))
    return {"column": alt.Column("panel:N", title=None, sort=order)}


def _bar(start: int, end: int, kind: str, line: str) -> Row:
    return {"start": start, "end": end, "kind": kind, "line": line}


def _called(setting: clusters.Setting, *, by_data: bool) -> str:
    return f"{setting.data}: {setting.label}" if by_data else setting.label

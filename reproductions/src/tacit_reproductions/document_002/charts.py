"""The figures of document 002, drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import altair as alt
import numpy as np

from tacit.report.charts.chart_parts import BLUE, LINE, ORANGE, styled
from tacit.report.charts.monitor_charts import ALARM, SAFE
from tacit_reproductions.document_002.lists import MIDDLE, Grid, Measured, Task
from tacit_reproductions.document_002.monitoring import BATCH
from tacit_reproductions.document_002.places import EPSILONS, MAP_THRESHOLD, VARIED, Maps, Point
from tacit_reproductions.document_002.trials import ALGORITHM_1, ALGORITHM_2, FREE_GAP
from tacit_reproductions.marks import GREEN, Row, coloured, error_bars, measured_row
from tacit_reproductions.measured import OURS

COLOURS: Final = {OURS: BLUE, ALGORITHM_1: GREEN, ALGORITHM_2: GREEN, FREE_GAP: ORANGE}
OF_EPSILON: Final = (ORANGE, BLUE, GREEN)
_WIDTH: Final = 150
_WIDE: Final = 260
_HEIGHT: Final = 130


def lists_chart(grid: Grid, sets: Sequence[str], measured: Measured, *, by_rank: bool) -> Any:
    """Return Figure 2 or 3: error and accuracy against epsilon and against k, a row for each data set."""
    names = [OURS, ALGORITHM_1 if by_rank else ALGORITHM_2, FREE_GAP]
    sides = (
        ("epsilon", [(float(epsilon), grid.longest, epsilon) for epsilon in grid.epsilons]),
        ("k", [(float(k), k, MIDDLE) for k in grid.lengths]),
    )
    rows = []
    for data in sets:
        panels = []
        for title, points in sides:
            for kind in ("squared", "accuracy"):
                lines = [
                    measured_row(x, name, getattr(measured[Task(by_rank, data, k, epsilon)][name], kind))
                    for x, k, epsilon in points
                    for name in names
                ]
                panels.append(_panel(lines, title, names, log=kind == "squared"))
        rows.append(alt.hconcat(*panels, title=alt.TitleParams(data, anchor="start")))
    title = "Figure 2: the k largest counts" if by_rank else "Figure 3: counts above a threshold"
    said = f"By epsilon: k = {grid.longest}. By k: epsilon {float(MIDDLE):g}. Bars: two standard errors."
    return styled(alt.vconcat(*rows), title, [said])


def one_place_chart(points: Sequence[Point]) -> Any:
    """Return Figure 4: false alarms by true count, a panel for each threshold."""
    panels = []
    for threshold in sorted({point.threshold for point in points}):
        own = [point for point in points if point.threshold == threshold]
        rows = [
            {
                "x": p.count,
                "series": _epsilon(p.epsilon),
                "value": p.exact,
                "seen": p.seen * (p.exact * p.decisions > 10),
            }
            for p in own
        ]
        base = alt.Chart(alt.Data(values=rows))
        y = alt.Y("value:Q", title="false alarms", scale=_logarithmic(), axis=_powers(rows))
        x = alt.X("x:Q", title="true count", axis=alt.Axis(tickMinStep=1, format="d"))
        lines = base.mark_line().encode(x=x, y=y, color=_series_colour())
        dots = (
            base.transform_filter("datum.seen > 0")
            .mark_point(filled=True, size=30, opacity=1)
            .encode(x=x, y=alt.Y("seen:Q", scale=_logarithmic()), color=_series_colour())
        )
        drawn = alt.layer(lines, dots)
        panels.append(drawn.properties(width=_WIDE, height=200, title=f"threshold {threshold}"))
    said = ["Share of updates at which a place below the threshold is called above.", "Lines: exact; dots: drawn."]
    return styled(alt.hconcat(*panels), "Figure 4: false alarms at one place", said)


def visitors_chart(maps: Maps) -> Any:
    """Return Figure 1: how many places have so many visitors, in one batch of people."""
    many = np.bincount(maps.visitors)
    # a logarithmic bar has no foot at zero: it starts at half a place
    rows: list[Row] = [
        {"visitors": visitors, "places": int(places), "foot": 0.5} for visitors, places in enumerate(many) if places
    ]
    scale = alt.Scale(type="log", domain=[0.5, float(many.max()) * 1.5], nice=False)
    powers = [10.0**power for power in range(math.floor(math.log10(many.max())) + 1)]
    ends = alt.Scale(domain=[-0.8, len(many)], nice=False)
    x = alt.X("visitors:Q", title="visitors", axis=alt.Axis(tickMinStep=1, format="d"), scale=ends)
    y = alt.Y("places:Q", title="places", scale=scale, axis=alt.Axis(values=powers, format=",d"))
    bars = alt.Chart(alt.Data(values=rows)).mark_bar(color=BLUE, size=max(3, 300 // (len(many) + 1)))
    drawn = bars.encode(x=x, y=y, y2="foot:Q").properties(width=420, height=220)
    empty = f"{int(many[0]):,} of {int(many.sum()):,} places have no visitor."
    said = f"{maps.check_ins.name}: one batch of {BATCH:,} people, all their check-ins. {empty}"
    return styled(drawn, "Figure 1: places by visitors", [said])


def maps_chart(maps: Maps) -> Any:
    """Return Figure 5: the true hot spots, and what monitors say for each epsilon."""
    truth = {int(place) for place in (maps.arrivals.counts[-1] >= MAP_THRESHOLD).nonzero()[0]}
    panels = {f"truth: {len(truth):,} hot spots": truth}
    for epsilon in EPSILONS:
        alarmed = {int(verdict.place) for verdict in maps.histories[epsilon].verdicts}
        panels[f"{_epsilon(epsilon)}: {len(alarmed):,} alarms"] = alarmed
    # all panels share one list of places, with a column for each panel
    rows = [
        {
            "lat": lat,
            "lon": lon,
            **{f"p{at}": ALARM if place in hot else SAFE for at, hot in enumerate(panels.values())},
        }
        for place, (lat, lon) in enumerate(maps.check_ins.points.tolist())
    ]
    views = [_map(f"p{at}", title) for at, title in enumerate(panels)]
    said = (
        f"{maps.check_ins.name}, {len(maps.check_ins.points):,} places, {len(maps.arrivals.users)} batches of people."
    )
    title = f"Figure 5: places with {MAP_THRESHOLD} people or more"
    drawn = alt.concat(*views, columns=2, data=alt.Data(values=rows))
    return styled(drawn, title, [said, "An alarm may be noise; blue is certain."])


def updates_chart(maps: Maps) -> Any:
    """Return Figure 6: false alarms at each update."""
    panels = []
    for name, title in (("new", "new at this update"), ("so_far", "so far")):
        shares = {epsilon: maps.shares[epsilon, MAP_THRESHOLD] for epsilon in EPSILONS}
        rows = [
            {**measured_row(at + 1, _epsilon(epsilon), number), "exact": float(exact)}
            for epsilon in EPSILONS
            for at, (number, exact) in enumerate(
                zip(getattr(shares[epsilon], name), getattr(shares[epsilon].expected, name), strict=True)
            )
        ]
        x = alt.X("x:Q", title="update", axis=alt.Axis(tickMinStep=1, format="d"))
        y = alt.Y("exact:Q", title="share of safe places", axis=alt.Axis(format=".1%", tickCount=5))
        limit = alt.Chart(alt.Data(values=[{"value": 0.01}])).mark_rule(color=LINE, strokeDash=[4, 3])
        drawn = alt.layer(*_line_and_dots(rows, x, y), limit.encode(y="value:Q"))
        panels.append(drawn.properties(width=_WIDE, height=200, title=title))
    said = f"{maps.check_ins.name}, threshold {MAP_THRESHOLD}. Lines: expected; dots: drawn. Dashed: 0.01."
    return styled(alt.hconcat(*panels), "Figure 6: false alarms on the map", [said])


def thresholds_chart(maps: Maps) -> Any:
    """Return Figure 7: false alarms by threshold."""
    rows = [
        {
            **measured_row(threshold, _epsilon(epsilon), maps.shares[epsilon, threshold].so_far[-1]),
            "exact": float(maps.shares[epsilon, threshold].expected.so_far[-1]),
        }
        for epsilon in EPSILONS
        for threshold in VARIED
    ]
    x = alt.X("x:Q", title="threshold", axis=alt.Axis(tickMinStep=1, format="d"))
    y = alt.Y("exact:Q", title="share of safe places", scale=_logarithmic(), axis=_powers(rows, "exact"))
    drawn = alt.layer(*_line_and_dots(rows, x, y)).properties(width=420, height=220)
    said = (
        f"{maps.check_ins.name}: alarmed after all updates although below the threshold. Lines: expected; dots: drawn."
    )
    return styled(drawn, "Figure 7: false alarms by threshold", [said])


def _line_and_dots(rows: list[Row], x: Any, y: Any) -> list[Any]:
    """Return a line through what is expected, dots at what was drawn, and their errors."""
    base = alt.Chart(alt.Data(values=rows))
    seen = base.transform_filter("datum.value > 0")
    dots = seen.mark_point(filled=True, size=30, opacity=1).encode(x="x:Q", y="value:Q", color=_series_colour())
    return [base.mark_line().encode(x=x, y=y, color=_series_colour()), error_bars(seen, 1.2), dots]


def _panel(rows: list[Row], x_title: str, names: Sequence[str], *, log: bool) -> Any:
    scale = _logarithmic() if log else alt.Scale(zero=False, domainMax=1)
    x = alt.X("x:Q", title=x_title, axis=alt.Axis(tickCount=4, format=".2~f"), scale=alt.Scale(padding=6))
    axis = _powers(rows) if log else alt.Axis(format=".3~f", tickCount=4)
    y = alt.Y("value:Q", title="mean squared error" if log else "accuracy", scale=scale, axis=axis)
    colour = coloured(names, [COLOURS[name] for name in names])
    base = alt.Chart(alt.Data(values=rows))
    lines = base.mark_line(point=alt.OverlayMarkDef(size=20)).encode(x=x, y=y, color=colour)
    return alt.layer(lines, error_bars(base, 1.2)).properties(width=_WIDTH, height=_HEIGHT)


def _map(column: str, title: str) -> Any:
    """Return one panel: safe places first, so that no alarm is hidden."""
    degrees = {"scale": alt.Scale(zero=False, padding=6), "axis": alt.Axis(format="~f", tickCount=3)}
    layers = [
        alt.Chart()
        .transform_filter(f"datum.{column} == '{kind}'")
        .mark_circle(size=9, opacity=0.8)
        .encode(
            x=alt.X("lon:Q", title=None, **degrees),
            y=alt.Y("lat:Q", title=None, **degrees),
            color=coloured([SAFE, ALARM], [BLUE, ORANGE], column),
        )
        for kind in (SAFE, ALARM)
    ]
    return alt.layer(*layers).properties(width=_WIDE, height=_WIDE, title=title)


def _epsilon(epsilon: Any) -> str:
    return f"epsilon {float(epsilon):g}"


def _series_colour() -> Any:
    return coloured(map(_epsilon, EPSILONS), OF_EPSILON)


def _logarithmic() -> Any:
    return alt.Scale(type="log", nice=False)


def _powers(rows: Sequence[Row], name: str = "value") -> Any:
    """Return an axis with powers of ten alone."""
    low, high = (math.floor(math.log10(end(row[name] for row in rows))) for end in (min, max))
    every = max(1, (high - low) // 5)
    return alt.Axis(format="~e", values=[10.0**power for power in range(low, high + 2, every)])

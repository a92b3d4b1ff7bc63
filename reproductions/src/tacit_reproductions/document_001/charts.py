"""The figures of document 001, drawn, and what its theorems and its trade-off look like."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt
import numpy as np

from tacit.report.charts.chart_parts import BLUE, INK, LINE, ORANGE, SKY, styled
from tacit_reproductions.document_001.building import APPLICATIONS, EQUAL, PLANNED, SUM, Point
from tacit_reproductions.document_001.closed_forms import BitPair
from tacit_reproductions.document_001.occupancy import Days, Occupancy, clock
from tacit_reproductions.marks import GREEN, Row, coloured

_WIDE: Final = 300
DELTAS: Final = ((0.9, 0.1), (0.8, 0.2), (0.5, 0.5), (0.2, 0.6))


def pattern_chart(occupancy: Occupancy, days: Days, title: str = "Figure 1: one day in one room", room: int = 0) -> Any:
    """Return Figure 1: one day of one room, and what can be read off it."""
    own = np.flatnonzero(days.room == room)
    # a day as usual: the one whose arrival is the room's middle one
    at = int(own[np.argsort(days.arrival[own], kind="stable")[len(own) // 2]])
    date = int(np.flatnonzero(occupancy.dates == days.date[at])[0])
    level = occupancy.table[room, date].astype(int)
    rows: list[Row] = [
        {"hour": float(minute) / 60, "level": int(one)} for minute, one in zip(occupancy.times, level, strict=True)
    ]
    rows.append({"hour": 24.0, "level": int(level[-1])})
    hours = alt.Axis(values=list(range(0, 25, 3)), labelExpr="datum.value + ':00'")
    x = alt.X("hour:Q", title="time of day", scale=alt.Scale(domain=[0, 24], nice=False), axis=hours)
    y = alt.Y(
        "level:Q",
        title="occupied",
        scale=alt.Scale(domain=[0, 1.35], nice=False),
        axis=alt.Axis(values=[0, 1], format="d"),
    )
    base = alt.Chart(alt.Data(values=rows))
    drawn = base.mark_area(interpolate="step-after", color=SKY, line={"color": BLUE}).encode(x=x, y=y)
    marks: list[Row] = [
        {"hour": float(minute) / 60, "said": f"{word} {clock(float(minute))}", "side": side}
        for word, minute, side in (("arrival", days.arrival[at], "end"), ("leaving", days.leaving[at], "start"))
    ]
    rules = alt.Chart(alt.Data(values=marks)).mark_rule(color=LINE, strokeDash=[4, 3]).encode(x="hour:Q")
    words = [
        alt.Chart(alt.Data(values=[mark]))
        .mark_text(align="right" if mark["side"] == "end" else "left", dx=-5 if mark["side"] == "end" else 5, color=INK)
        .encode(x="hour:Q", y=alt.value(10), text="said:N")
        for mark in marks
    ]
    many, length = int(days.absences[at]), float(days.mean_absence[at])
    said = (
        f"{occupancy.name}, {occupancy.rooms[room]}, {days.date[at]}: {many} absences of {length:.0f} minutes on "
        f"average, occupied {100 * days.share[at]:.0f}% of 8:00 to 17:00."
    )
    return styled(alt.layer(drawn, rules, *words).properties(width=620, height=150), title, [said])


def applications_chart(
    strengths: Mapping[tuple[str, str], float], title: str = "Figure 2: who asks, what depends, who talks"
) -> Any:
    """Return Figure 2: who asks for what, what depends on what (in nats), and who talks to whom."""
    attributes = list(dict.fromkeys(name for pair in strengths for name in pair))
    places = {name: (float(at), 0.0) for at, name in enumerate(attributes)}
    asked = {name: attributes.index(names[0]) for name, names in APPLICATIONS.items()}
    places |= {name: (float(at), 1.0) for name, at in asked.items()}
    kinds = {"asks": BLUE, "depends": ORANGE, "colludes": GREEN}
    segments: list[Row] = []
    for name, names in APPLICATIONS.items():
        segments += [_segment("asks", places[name], places[one]) for one in names]
    for (one, other), strength in strengths.items():
        segments += _arc("depends", places[one], places[other], f"{strength:.3f} nats")
    first, second = (places[name] for name in APPLICATIONS)
    segments.append(_segment("colludes", first, second))
    ends: dict[str, Any] = {"x2": "x2:Q", "y2": "y2:Q"}
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-0.45, len(attributes) - 0.55], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[-1.05, 1.15], nice=False))
    lines = (
        alt.Chart(alt.Data(values=segments))
        .mark_rule(strokeWidth=2)
        .encode(
            x=x,
            y=y,
            color=coloured(kinds, kinds.values(), "kind"),
            strokeDash=alt.condition("datum.kind == 'asks'", alt.value([5, 4]), alt.value([1, 0])),
            **ends,
        )
    )
    labelled = [{"x": row["x2"], "y": row["y2"], "said": row["said"]} for row in segments if row["said"]]
    numbers = alt.Chart(alt.Data(values=labelled)).mark_text(dy=12, color=INK).encode(x=x, y=y, text="said:N")
    nodes = alt.Chart(
        alt.Data(
            values=[
                {"x": a, "y": b, "name": name, "left": a - 0.38, "right": a + 0.38, "foot": b - 0.1, "head": b + 0.1}
                for name, (a, b) in places.items()
            ]
        )
    )
    corners: dict[str, Any] = {"x2": "right:Q", "y2": "head:Q"}
    boxes = nodes.mark_rect(color="white", stroke=LINE, opacity=1).encode(
        x=alt.X("left:Q", axis=None), y=alt.Y("foot:Q", axis=None), **corners
    )
    names = nodes.mark_text(fontSize=12, fontWeight="bold", color=INK).encode(x=x, y=y, text="name:N")
    said = "Applications above, attributes below. Numbers: what two attributes tell about each other."
    drawn = alt.layer(lines, numbers, boxes, names).properties(width=520, height=260)
    return styled(drawn, title, [said])


def factors_chart() -> Any:
    """Return what a suppression of i does to the chance that j is sensitive, against epsilon and against questions."""
    panels = []
    for title, points in (("epsilon", np.linspace(0, 6, 61)), ("questions at epsilon 0.5, fresh coins", np.arange(13))):
        rows = [
            {"x": float(x), "series": f"delta {first:g}, {second:g}", "value": odds / (1 + odds)}
            for first, second in DELTAS
            for pair in (BitPair(0.2 * first + 0.8 * second, 0.2, first, second),)
            for x in points
            for odds in (_factor(pair, x) * pair.prior_odds,)
        ]
        x = alt.X("x:Q", title=title)
        y = alt.Y("value:Q", title="P(j is sensitive)", scale=alt.Scale(domain=[0, 0.8]), axis=alt.Axis(format=".1f"))
        names = [f"delta {first:g}, {second:g}" for first, second in DELTAS]
        colour = coloured(names, [ORANGE, BLUE, LINE, GREEN]).sort(None)
        panels.append(
            alt.Chart(alt.Data(values=rows))
            .mark_line()
            .encode(x=x, y=y, color=colour)
            .properties(width=_WIDE, height=200)
        )
    said = "The chance is 0.2 before anything is seen. delta: how likely i is sensitive where j is, and where j is not."
    return styled(alt.hconcat(*panels), "Theorem 2 and Corollary 1: i is suppressed", [said])


def trade_off_chart(points: Sequence[Point]) -> Any:
    """Return the trade-off: how many values of a day are released against what is learned."""
    rows = [{"x": p.leakage, "value": p.releases, "series": p.how} for p in points]
    colour = coloured([PLANNED, EQUAL, SUM], [BLUE, GREEN, ORANGE], labelLimit=260)
    x = alt.X("x:Q", title="learned about the other attributes, nats")
    y = alt.Y("value:Q", title="values released of a day")
    lines = alt.Chart(alt.Data(values=rows)).mark_line(point=True).encode(x=x, y=y, color=colour, order="x:Q")
    said = "Three attributes of each day. Planned: a convex program. Sum: the paper's objective, with a cap."
    return styled(lines.properties(width=460, height=260), "The trade-off between leakage and releases", [said])


def _segment(kind: str, start: tuple[float, float], end: tuple[float, float], said: str = "") -> Row:
    return {"kind": kind, "x": start[0], "y": start[1], "x2": end[0], "y2": end[1], "said": said}


def _arc(kind: str, start: tuple[float, float], end: tuple[float, float], said: str) -> list[Row]:
    """Return a curve below both ends, the deeper the further they are apart; its words stand at the lowest point."""
    depth = 0.2 * (end[0] - start[0]) ** 2
    at = np.linspace(0, 1, 13)
    xs = start[0] + (end[0] - start[0]) * at
    ys = start[1] - depth * np.sin(math.pi * at)
    middle = len(at) // 2 - 1
    return [
        _segment(kind, (float(xs[i]), float(ys[i])), (float(xs[i + 1]), float(ys[i + 1])), said if i == middle else "")
        for i in range(len(at) - 1)
    ]


def _factor(pair: BitPair, x: np.number[Any]) -> float:
    """Return what a suppression at an epsilon does to the odds, or so many at epsilon 0.5 if it is a whole number."""
    return pair.suppressed(0.5, int(x)) if isinstance(x, np.integer) else pair.suppressed(float(x))

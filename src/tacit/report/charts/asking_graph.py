"""Who asks for which attribute, which attributes depend on each other, and who colludes, as a drawn graph.

Every name stands beside its mark where the fewest lines run through it. Drawn from a case, which is public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt

from tacit.audit.case_audit import strengths
from tacit.jobs.case_file import Case
from tacit.report.charts.chart_parts import BLUE, styled

WIDTH, HEIGHT = 560, 320
RADIUS: Final = 14  # of a mark, in pixels
LETTER, LINE_HEIGHT = 6.8, 16  # of a name, in pixels
_SIDES: Final = ((-1, 0), (1, 0), (0, -1), (0, 1), (-0.8, -0.8), (0.8, -0.8), (-0.8, 0.8), (0.8, 0.8))
_KINDS: Final = ("asks", "depends", "colludes")
_LINES: Final = (BLUE, "#999999", "#E69F00")
_FILLS: Final = ("#56B4E9", "#ffffff", "#CC79A7")
Point = tuple[float, float]


@dataclass(frozen=True)
class Tie:
    """A line between two marks, in pixels."""

    ends: tuple[Point, Point]
    kind: str
    width: float

    def document(self) -> dict[str, Any]:
        """Return the line as a row of a chart."""
        (x, y), (x2, y2) = self.ends
        return {"x": x, "y": y, "x2": x2, "y2": y2, "kind": self.kind, "width": self.width}


def graph_chart(case: Case) -> Any:
    """Return who asks for which attribute, which attributes depend on each other, and who colludes."""
    places = _places(list(case.applications), list(case.dependence.names))
    ties = _ties(case, places)
    nodes = [
        {"x": x, "y": y, "kind": "protected" if kind == "attribute" and name in case.sensitive else kind}
        for (kind, name), (x, y) in places.items()
    ]
    names = [
        {"x": x, "y": y, "name": name}
        for ((_, name), (x, y)) in zip(places, label_places(places, [tie.ends for tie in ties]), strict=True)
    ]
    drawn = _lines(ties)
    dots = _drawn_at(nodes).mark_circle(size=4 * RADIUS**2 * 0.78, opacity=1, stroke="#333333")
    fill = alt.Fill(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=["application", "attribute", "protected"], range=list(_FILLS)),
        legend=alt.Legend(orient="bottom"),
    )
    texts = _drawn_at(names).mark_text(fontSize=12).encode(text="name:N")
    return styled(
        alt.layer(drawn, dots.encode(fill=fill), texts)
        .resolve_scale(color="independent", fill="independent", strokeDash="independent")
        .properties(width=WIDTH, height=HEIGHT),
        "Who asks, what depends, who colludes",
        [*case.dependence.marks, "The wider a grey line, the more two attributes tell about each other."],
    )


def label_places(places: Mapping[tuple[str, str], Point], lines: Sequence[tuple[Point, Point]]) -> list[Point]:
    """Return the middle of each name: beside its mark, on the side where least is in the way."""
    found: list[Point] = []
    for (_, name), (x, y) in places.items():
        half = len(name) * LETTER / 2, LINE_HEIGHT / 2
        others = [place for place in places.values() if place != (x, y)]

        def obstacles(
            middle: Point, half: Point = half, others: Sequence[Point] = others, at: Point = (x, y)
        ) -> tuple[float, float]:
            crossed = sum(meets(line, middle, half) for line in lines)
            crossed += sum(meets((other, other), middle, (half[0] + RADIUS, half[1] + RADIUS)) for other in others)
            outward = math.hypot(middle[0] - WIDTH / 2, middle[1] - HEIGHT / 2) - math.hypot(
                at[0] - WIDTH / 2, at[1] - HEIGHT / 2
            )
            return crossed, -outward

        sides = [(x + dx * (RADIUS + 4 + half[0]), y + dy * (RADIUS + 4 + half[1])) for dx, dy in _SIDES]
        found.append(min(sides, key=obstacles))
    return found


def meets(line: tuple[Point, Point], middle: Point, half: Point) -> bool:
    """Say whether a line runs through a box, given by its middle and half its sides.

    >>> meets(((0, 0), (10, 10)), (5, 5), (1, 1)), meets(((0, 0), (10, 10)), (9, 1), (1, 1))
    (True, False)
    """
    (x, y), (x2, y2) = line
    first, last = 0.0, 1.0
    for start, step, centre, reach in ((x, x2 - x, middle[0], half[0]), (y, y2 - y, middle[1], half[1])):
        if step == 0:
            if abs(start - centre) > reach:
                return False
            continue
        ends = sorted(((centre - reach - start) / step, (centre + reach - start) / step))
        first, last = max(first, ends[0]), min(last, ends[1])
    return first <= last


def _drawn_at(rows: Sequence[Mapping[str, Any]]) -> Any:
    return alt.Chart(alt.Data(values=list(rows))).encode(
        x=alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, WIDTH])),
        y=alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[HEIGHT, 0])),
    )


def _lines(ties: Sequence[Tie]) -> Any:
    legend = alt.Legend(orient="bottom", symbolType="stroke", symbolSize=400, symbolStrokeWidth=2.5)
    return (
        _drawn_at([tie.document() for tie in ties])
        .mark_rule()
        .encode(
            x2="x2:Q",
            y2="y2:Q",
            color=alt.Color(
                "kind:N",
                title=None,
                scale=alt.Scale(domain=list(_KINDS), range=list(_LINES)),
                legend=legend,
            ),
            strokeDash=alt.StrokeDash(
                "kind:N",
                title=None,
                scale=alt.Scale(domain=list(_KINDS), range=[[1, 0], [1, 0], [6, 4]]),
                legend=legend,
            ),
            strokeWidth=alt.StrokeWidth("width:Q", scale=None),
        )
    )


def _ties(case: Case, places: Mapping[tuple[str, str], Point]) -> list[Tie]:
    def tie(one: tuple[str, str], other: tuple[str, str], kind: str, width: float) -> Tie:
        return Tie((places[one], places[other]), kind, width)

    found = [
        tie(("application", name), ("attribute", one), "asks", 2.0)
        for name, asked in case.applications.items()
        for one in asked
    ]
    found += [
        tie(("attribute", one), ("attribute", other), "depends", 1.0 + 6.0 * share)
        for one, other, share in strengths(case)
        if share > 0.01
    ]
    together = [members for members in case.groups.values() if len(members) > 1]
    pairs = {(one, other) for members in together for one in members for other in members if one < other}
    return [*found, *(tie(("application", a), ("application", b), "colludes", 2.0) for a, b in sorted(pairs))]


def _places(applications: Sequence[str], attributes: Sequence[str]) -> dict[tuple[str, str], Point]:
    """Return where everybody stands: applications below each other on a bow, attributes on a circle beside them."""
    found: dict[tuple[str, str], Point] = {}
    for at, name in enumerate(applications):
        down = (at + 0.5) / len(applications)
        found["application", name] = (170 - 60 * math.sin(math.pi * down), HEIGHT * (0.08 + 0.84 * down))
    for at, name in enumerate(attributes):
        turn = 2 * math.pi * (at + 0.5) / len(attributes)
        across, down = 0.5 - 0.5 * math.cos(turn), 0.5 - 0.5 * math.sin(turn)
        found["attribute", name] = (300 + 200 * across, HEIGHT * (0.1 + 0.8 * down))
    return found

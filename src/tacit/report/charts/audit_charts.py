"""Charts of audits: what applications could learn, who asks for what, and what noisy counts disclose.

Charts of a case need no rows; where its dependence was counted on private rows, every chart and the page say so. The
chart of a disclosure audit shows what private data contain, so it says whom it is for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from tacit.audit.case_audit import EPSILONS, CaseAudit, posterior_curves, strengths, trade_off
from tacit.audit.disclosure_audits.disclosures import EPSILONS as DISCLOSURE_EPSILONS
from tacit.audit.disclosure_audits.disclosures import Disclosure
from tacit.jobs.case_file import Case
from tacit.report.charts.chart_parts import BLUE, LINE, WIDTH, Row, chart_of, coloured, styled, tip

COLOURS: Final = (BLUE, "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_DISCLOSED: Final = "#D55E00"
_HIGH: Final = 130
GRAPH_WIDTH, GRAPH_HEIGHT = 560, 320
RADIUS: Final = 14  # of a mark, in pixels
LETTER, LINE_HEIGHT = 6.8, 16  # of a name, in pixels
_SIDES: Final = ((-1, 0), (1, 0), (0, -1), (0, 1), (-0.8, -0.8), (0.8, -0.8), (-0.8, 0.8), (0.8, 0.8))
_KINDS: Final = ("asks", "depends", "colludes")
Point = tuple[float, float]


def leakage_charts(audit: CaseAudit) -> dict[str, Any]:
    """Return the charts of an audit by name."""
    marks = audit.case.dependence.marks
    curves = posterior_curves(audit.case)
    charts = {"posterior": posterior_chart(curves, marks=marks), "graph": graph_chart(audit.case)}
    points = trade_off(audit.case)
    if len(points) > 1:
        charts["leakage"] = trade_off_chart(points, own=audit.case.options.get("own", True), marks=marks)
    return charts


def posterior_chart(rows: Sequence[Mapping[str, Any]], *, marks: Sequence[str] = ()) -> Any:
    """Return the worst posterior of each protected attribute against epsilon, a line for each coalition."""
    log = alt.Scale(type="log", domain=[EPSILONS[0], EPSILONS[-1]])
    panels = []
    for name in dict.fromkeys(row["attribute"] for row in rows):
        lines = chart_of([row for row in rows if row["attribute"] == name]).mark_line()
        panel = lines.encode(
            x=alt.X("epsilon:Q", title="epsilon of every release", scale=log),
            y=alt.Y("posterior:Q", title="largest probability", scale=alt.Scale(domain=[0, 1])),
            **series([row["who"] for row in rows]),
        )
        panels.append(panel.properties(width=240, height=190, title=f"{name} is sensitive"))
    notes = [
        *marks,
        "After the outcome that tells most; what was shown of the attribute itself counts too. Coins are remembered, "
        "and every release has the same epsilon. Where lines coincide, thin ones lie on wide ones.",
    ]
    return styled(alt.hconcat(*panels), "What could be learned about a secret", notes)


def trade_off_chart(rows: Sequence[Mapping[str, Any]], *, own: bool = True, marks: Sequence[str] = ()) -> Any:
    """Return the planned utility against the leakage that limits count, one point for each limit."""
    line = chart_of(rows).mark_line(point=alt.OverlayMarkDef(color=BLUE), color=BLUE)
    chart = line.encode(
        x=alt.X("leakage:Q", title="largest leakage, nats"), y=alt.Y("reached:Q", title="weighted releases of a record")
    )
    notes = [*marks, "Planned under limits from a tenth of the case's limit to twice that limit."]
    if not own:
        notes.append("The limits leave out what the release of an attribute says about that attribute itself.")
    return styled(chart.properties(width=420, height=240), "Leakage against utility", notes)


def series(names: Sequence[str]) -> dict[str, Any]:
    """Return the colour and the width of each line, as encodings of the field `who`.

    Each line is thinner than those below it, so that all colours are seen where lines coincide.
    """
    domain = list(dict.fromkeys(names))
    colours = [COLOURS[at % len(COLOURS)] for at in range(len(domain))]
    widths = [1.5 + 1.5 * (len(domain) - 1 - at) for at in range(len(domain))]
    legend = alt.Legend(orient="bottom", labelLimit=260, symbolType="stroke", symbolSize=400)
    width = alt.StrokeWidth("who:N", title=None, scale=alt.Scale(domain=domain, range=widths), legend=legend)
    colour = alt.Color("who:N", title=None, scale=alt.Scale(domain=domain, range=colours), legend=legend)
    return {"color": colour, "strokeWidth": width}


# ---- disclosures ---------------------------------------------------------------------------------------------------


def disclosure_chart(found: Disclosure, epsilons: Sequence[float] | None = None) -> Any:
    """Return the number of disclosed values and the error of counts, both against epsilon on one axis."""
    planned = found.published.epsilon
    curve = found.curve(sorted({*DISCLOSURE_EPSILONS, planned}) if epsilons is None else epsilons)
    rows = [{"epsilon": row.epsilon, "many": row.disclosures, "error": row.error} for row in curve.itertuples()]
    notes = [found.private, f"{found.in_words_when_safe()} The dashed line is what is planned."]
    return styled(conflict(rows, planned), "What is disclosed, and how wrong counts are", notes)


def conflict(rows: list[dict[str, Any]], epsilon: float | None = None) -> Any:
    """Return both curves of rows with the fields epsilon, many and error; a rule marks the planned epsilon."""
    base = chart_of(rows).properties(width=WIDTH - 60, height=_HIGH)
    shared = alt.X("epsilon:Q", title="epsilon", scale=alt.Scale(type="log"), axis=alt.Axis(format="~g", tickCount=6))
    tips = [tip("epsilon:Q", "epsilon"), tip("many:Q", "disclosures"), tip("error:Q", "error over the count")]
    many = base.mark_line(point=alt.OverlayMarkDef(color=_DISCLOSED), color=_DISCLOSED).encode(
        x=shared, y=alt.Y("many:Q", title="disclosures", axis=alt.Axis(tickMinStep=1, format="d")), tooltip=tips
    )
    error = base.mark_line(point=alt.OverlayMarkDef(color=BLUE), color=BLUE).encode(
        x=shared,
        y=alt.Y("error:Q", title="overall error", scale=alt.Scale(type="log"), axis=alt.Axis(format="~%", tickCount=5)),
        tooltip=tips,
    )
    if epsilon is None:
        return alt.vconcat(many, error)
    rule = chart_of([{"epsilon": epsilon}]).mark_rule(color=LINE, strokeDash=[4, 3])
    here = rule.encode(x="epsilon:Q", tooltip=[tip("epsilon:Q", "as planned")])
    return alt.vconcat(alt.layer(many, here), alt.layer(error, here))


# ---- who asks, what depends, who colludes --------------------------------------------------------------------------


def graph_chart(case: Case) -> Any:
    """Return who asks for which attribute, which attributes depend on each other, and who colludes."""
    places = _places(list(case.applications), list(case.dependence.names))
    ties = _ties(case, places)
    nodes = [
        {"x": x, "y": y, "kind": "protected" if kind == "attribute" and name in case.sensitive else kind}
        for (kind, name), (x, y) in places.items()
    ]
    label_at = label_places(places, [((tie["x"], tie["y"]), (tie["x2"], tie["y2"])) for tie in ties])
    names = [{"x": x, "y": y, "name": name} for ((_, name), (x, y)) in zip(places, label_at, strict=True)]
    dots = _positioned(nodes).mark_circle(size=4 * RADIUS**2 * 0.78, opacity=1, stroke="#333333")
    kinds = alt.Scale(domain=["application", "attribute", "protected"], range=["#56B4E9", "#ffffff", "#CC79A7"])
    fill = alt.Fill("kind:N", title=None, scale=kinds, legend=alt.Legend(orient="bottom"))
    texts = _positioned(names).mark_text(fontSize=12).encode(text="name:N")
    return styled(
        alt.layer(_lines(ties), dots.encode(fill=fill), texts)
        .resolve_scale(color="independent", fill="independent", strokeDash="independent")
        .properties(width=GRAPH_WIDTH, height=GRAPH_HEIGHT),
        "Who asks, what depends, who colludes",
        [*case.dependence.marks, "The wider a grey line, the more two attributes tell about each other."],
    )


def label_places(places: Mapping[tuple[str, str], Point], lines: Sequence[tuple[Point, Point]]) -> list[Point]:
    """Return the middle of each name: beside its mark, on the side where it covers fewest lines and marks."""
    found: list[Point] = []
    for (_, name), (x, y) in places.items():
        half = len(name) * LETTER / 2, LINE_HEIGHT / 2
        others = [place for place in places.values() if place != (x, y)]

        def obstacles(middle: Point, half: Point = half, others: Sequence[Point] = others) -> tuple[float, float]:
            crossed = sum(meets(line, middle, half) for line in lines)
            crossed += sum(meets((other, other), middle, (half[0] + RADIUS, half[1] + RADIUS)) for other in others)
            return crossed, -math.hypot(middle[0] - GRAPH_WIDTH / 2, middle[1] - GRAPH_HEIGHT / 2)

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


def _positioned(rows: Sequence[Mapping[str, Any]]) -> Any:
    return chart_of(rows).encode(
        x=alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, GRAPH_WIDTH])),
        y=alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[GRAPH_HEIGHT, 0])),
    )


def _lines(ties: list[Row]) -> Any:
    legend: dict[str, Any] = {"orient": "bottom", "symbolType": "stroke", "symbolSize": 400, "symbolStrokeWidth": 2.5}
    dashes = alt.Scale(domain=list(_KINDS), range=[[1, 0], [1, 0], [6, 4]])
    rules = _positioned(ties).mark_rule()
    return rules.encode(
        x2="x2:Q",
        y2="y2:Q",
        color=coloured("kind:N", _KINDS, [BLUE, "#999999", "#E69F00"], **legend),
        strokeDash=alt.StrokeDash("kind:N", title=None, scale=dashes, legend=alt.Legend(**legend)),
        strokeWidth=alt.StrokeWidth("width:Q", scale=None),
    )


def _ties(case: Case, places: Mapping[tuple[str, str], Point]) -> list[Row]:
    """Return the lines between marks, in pixels."""

    def tie(one: tuple[str, str], other: tuple[str, str], kind: str, width: float = 2.0) -> Row:
        (x, y), (x2, y2) = places[one], places[other]
        return {"x": x, "y": y, "x2": x2, "y2": y2, "kind": kind, "width": width}

    asks = [(name, one) for name, attributes in case.applications.items() for one in attributes]
    depends = [(one, other, share) for one, other, share in strengths(case) if share > 0.01]
    coalitions = [members for members in case.groups.values() if len(members) > 1]
    colludes = {(one, other) for members in coalitions for one in members for other in members if one < other}
    return [
        *(tie(("application", a), ("attribute", b), "asks") for a, b in asks),
        *(tie(("attribute", a), ("attribute", b), "depends", 1.0 + 6.0 * share) for a, b, share in depends),
        *(tie(("application", a), ("application", b), "colludes") for a, b in sorted(colludes)),
    ]


def _places(applications: Sequence[str], attributes: Sequence[str]) -> dict[tuple[str, str], Point]:
    """Return the place of each mark: applications below each other on a bow, attributes on a circle beside them."""
    found: dict[tuple[str, str], Point] = {}
    for at, name in enumerate(applications):
        down = (at + 0.5) / len(applications)
        found["application", name] = (170 - 60 * math.sin(math.pi * down), GRAPH_HEIGHT * (0.08 + 0.84 * down))
    for at, name in enumerate(attributes):
        turn = 2 * math.pi * (at + 0.5) / len(attributes)
        across, down = 0.5 - 0.5 * math.cos(turn), 0.5 - 0.5 * math.sin(turn)
        found["attribute", name] = (300 + 200 * across, GRAPH_HEIGHT * (0.1 + 0.8 * down))
    return found

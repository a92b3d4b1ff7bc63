"""Charts of releases: the estimates, their 95% intervals, and in words what is shown and what is left out.

Everything drawn was released, so a chart may be shown to anyone. Each kind of question registers its view with
`report/charts/chart_parts.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt
import vl_convert

from tacit.amounts import error_text, shown_with_decimal
from tacit.errors import printable
from tacit.plan.choose import Explanation
from tacit.release.results.record import ReleaseRecord
from tacit.report.charts import cluster_charts, question_charts  # noqa: F401 - they register theirs
from tacit.report.charts.chart_parts import (
    ALONE,
    BLUE,
    INK,
    LINE,
    MOST_LISTED,
    PALETTE,
    TOP,
    Row,
    View,
    chart_of,
    coloured,
    distinct,
    draw,
    fitted,
    in_order,
    list_parts,
    say,
    styled,
    tip,
)


def chart(record: ReleaseRecord) -> Any:
    """Return an Altair chart of a release: the estimates with their 95% intervals.

    The view depends on what was asked: bars for few values, a line with a band for many, a heat map for two
    attributes or a grid, the largest cells for more, panels for several marginals, a point for one number.
    """
    # Altair would check every axis, mark and layer, and all of them again when the chart is written
    with alt.utils.schemapi.debug_mode(False):
        return _finish(draw(record.plan.query, record), record)


def chart_text(record: ReleaseRecord) -> str:
    """Return what a chart shows in a sentence or two, for readers who cannot see it."""
    query = record.plan.query
    return f"{question(record)}{condition(query)}. {say(query, record)}"


def question(record: ReleaseRecord) -> str:
    """Return in words what was asked, without its condition."""
    return printable(record.plan.query.words(record.plan.policy.domain))


def parts(record: ReleaseRecord) -> str:
    """Return in words the tables or ranges of a question that has several, or an empty text."""
    text, many = list_parts(record.plan.query, record.plan.policy.domain)
    return text if many <= MOST_LISTED else f"{text}; and {many - MOST_LISTED:,} more"


def comparison_chart(explanations: Mapping[str, Explanation] | Sequence[Explanation]) -> Any:
    """Return a chart of the expected error of each release beside that of plain differential privacy."""
    with alt.utils.schemapi.debug_mode(False):  # as in `chart`
        return _compared(explanations)


def _compared(explanations: Mapping[str, Explanation] | Sequence[Explanation]) -> Any:
    named = (
        [*explanations.items()] if isinstance(explanations, Mapping) else [(str(e.plan.query), e) for e in explanations]
    )
    errors = [(name, one.plan.rmse, one.plain_rmse) for name, one in named]
    notes: list[str] = []
    if any(plain is None for _, _, plain in errors):
        notes.append("Where it has no point, plain differential privacy has no answer at this epsilon.")
    if len(errors) > TOP:
        notes.append(f"The first {TOP} of {len(errors):,} releases.")
        errors = errors[:TOP]
    labels = distinct([name for name, _, _ in errors])
    positive = [error for _, *both in errors for error in both if error] or [1.0]
    # zero has no place on a logarithmic axis: exact answers stand at its left end, with the word "exact"
    left = min(positive) / 2
    kinds = ["this policy", "plain differential privacy"]
    rows: list[Row] = []
    spans: list[Row] = []
    for label, (_, here, plain) in zip(labels, errors, strict=True):
        by_kind = {kinds[0]: here} if plain is None else {kinds[0]: here, kinds[1]: plain}
        differs = plain is None or error_text(here) != error_text(plain)
        rows += [
            {"label": label, "kind": kind, "error": max(error, left), "text": error_text(error), "differs": differs}
            for kind, error in by_kind.items()
        ]
        if plain is not None:
            spans.append({"label": label, "low": max(min(here, plain), left), "high": max(here, plain, left)})
    x = alt.X(
        "error:Q",
        title="expected error of one answer (logarithmic)",
        scale=alt.Scale(type="log", domain=[left, max(positive) * 2.5], nice=False),
        axis=alt.Axis(format=",~r", tickCount=5, labelOverlap=True, grid=False),
    )
    y = alt.Y("label:N", title=None, **in_order(labels))
    colour = coloured("kind:N", kinds, [BLUE, PALETTE[1]], orient="top", direction="horizontal", labelLimit=220)
    shape = alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=["circle", "diamond"]), title=None)
    base = chart_of(rows)
    lines = chart_of(spans).mark_rule(color=INK, opacity=0.5).encode(x="low:Q", x2="high:Q", y=y)
    points = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=x, y=y, color=colour, shape=shape, tooltip=[tip("label:N", "release"), "kind:N", tip("text:N", "error")]
    )
    # one number to the right where both errors are the same, otherwise this policy's error above its point
    is_plain = alt.datum.kind == kinds[1]
    text: dict[str, Any] = {"align": "left", "fontSize": 12, "color": LINE}
    beside = base.transform_filter(is_plain).mark_text(dx=9, **text)
    above = base.transform_filter(~is_plain & alt.datum.differs).mark_text(dx=-4, dy=-11, **text)
    view = alt.layer(lines, points, *(one.encode(x=x, y=y, text="text:N") for one in (beside, above)))
    units = list(dict.fromkeys(one.plan.query.error_unit(one.plan.policy.domain) for _, one in named))
    if units not in (["people"], ["rows"]):
        notes.append(f"Each in its own unit: {', '.join(map(printable, units[:MOST_LISTED]))}.")
    return styled(
        fitted(view, ALONE, height=alt.Step(34)),
        "Expected error: this policy and plain differential privacy",
        ["At the same epsilon; further left is better.", *notes],
    )


def sweep_chart(named: Mapping[str, Sequence[Explanation]]) -> Any:
    """Return a chart of the error of each release against epsilon, beside plain differential privacy."""
    kinds = ["this policy", "plain differential privacy"]
    with alt.utils.schemapi.debug_mode(False):  # as in `chart`
        views = []
        for name, explained in named.items():
            points = [(float(one.plan.epsilon), one.plan.rmse, one.plain_rmse) for one in explained]
            rows = [
                {"epsilon": epsilon, "kind": kind, "error": error}
                for epsilon, *both in points
                for kind, error in zip(kinds, both, strict=True)
                if error  # what is exact, or has no answer, has no place on a logarithmic axis
            ]
            view = chart_of(rows).mark_line(point=True)
            exact = " (exact under this policy)" if explained and not any(here for _, here, _ in points) else ""
            unit = explained[0].plan.query.error_unit(explained[0].plan.policy.domain) if explained else ""
            log = alt.Scale(type="log", nice=False)
            axis = alt.Axis(format=",~r", tickCount=4, labelOverlap=True, grid=False)
            dash = alt.Scale(domain=kinds, range=[[1, 0], [6, 5]])  # both are seen where they are the same
            encoded = view.encode(
                x=alt.X("epsilon:Q", title="epsilon (logarithmic)", scale=log, axis=axis),
                y=alt.Y("error:Q", title=printable(unit), scale=log, axis=axis),
                color=coloured("kind:N", kinds, [BLUE, PALETTE[1]], orient="top"),
                strokeDash=alt.StrokeDash("kind:N", scale=dash, title=None),
                tooltip=["kind:N", "epsilon:Q", "error:Q"],
            )
            views.append(encoded.properties(width=420, height=180, title=f"{printable(name)}{exact}"))
        said = ["Root mean square of the error of one answer; further down is better."]
        return styled(alt.vconcat(*views), "Expected error against epsilon", said)


def chart_png(view: Any, *, scale: float = 2.0) -> bytes:
    """Return a chart as a PNG image. Nothing is fetched from anywhere."""
    return bytes(vl_convert.vegalite_to_png(view.to_dict(), scale=scale, **_OFFLINE))


def chart_svg(view: Any) -> str:
    """Return a chart as an SVG image. Nothing is fetched from anywhere."""
    return str(vl_convert.vegalite_to_svg(view.to_dict(validate=False), **_OFFLINE))


_OFFLINE: Final[dict[str, Any]] = {
    "vl_version": ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2]),
    "allowed_base_urls": [],
}


def condition(query: Any) -> str:
    """Return in words the people whom a question is restricted to, or an empty text."""
    return "" if query.picked is None else f", where {printable(query.picked.words)}"


def _finish(view: View, record: ReleaseRecord) -> Any:
    plan = record.done
    cost = f"epsilon {shown_with_decimal(plan.epsilon)}"
    if plan.is_exact:
        contents = f"Exact, {plan.about}: no secret edge changes these answers."
    elif view.has_intervals:
        contents = f"{view.are} with {view.intervals}, {cost}."
    else:
        contents = f"{view.are}, {cost}{'; the table has their 95% intervals' if view.are == 'Estimates' else ''}."
    restricted = [] if plan.query.picked is None else [f"where {printable(plan.query.picked.words)}"]
    titled = styled(view.layers, question(record), [*restricted, contents, *view.notes])
    return titled.properties(description=chart_text(record))

"""Charts of releases: the estimates, their 95% intervals, and in words what is shown and what is left out.

Everything drawn was released, so a chart may be shown to anyone. The view depends on what was asked: each question's
own is registered with `report/charts/chart_parts.py`.
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
from tacit.report.charts import (  # noqa: F401 - they register their questions
    cluster_charts,
    derived_charts,
    linear_charts,
    record_charts,
    selection_charts,
)
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
    # Altair would check every axis, mark and layer by itself, and all of them again as a whole when it is written
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
    """Return in words what the single tables or ranges of a question are, where it has several; or nothing."""
    listed, many = list_parts(record.plan.query, record.plan.policy.domain)
    return listed if many <= MOST_LISTED else f"{listed}; and {many - MOST_LISTED:,} more"


def comparison_chart(explanations: Mapping[str, Explanation] | Sequence[Explanation]) -> Any:
    """Return a chart of the expected error of each release beside that of plain differential privacy."""
    with alt.utils.schemapi.debug_mode(False):  # as in `chart`
        return _compared(explanations)


def _compared(explanations: Mapping[str, Explanation] | Sequence[Explanation]) -> Any:
    named = (
        [*explanations.items()] if isinstance(explanations, Mapping) else [(str(e.plan.query), e) for e in explanations]
    )
    listed = [(name, said.plan.rmse, said.plain_rmse) for name, said in named]
    notes: list[str] = []
    if any(plain is None for _, _, plain in listed):
        notes.append("Where it has no point, plain differential privacy has no answer at this epsilon.")
    if len(listed) > TOP:
        notes.append(f"The first {TOP} of {len(listed):,} releases.")
        listed = listed[:TOP]
    labels = distinct([name for name, _, _ in listed])
    positive = [error for _, *errors in listed for error in errors if error] or [1.0]
    # zero has no place on a logarithmic axis: exact answers stand at its left end, and say so
    left = min(positive) / 2
    kinds = ["this policy", "plain differential privacy"]
    rows: list[Row] = []
    for label, (_, here, plain) in zip(labels, listed, strict=True):
        errors = {kinds[0]: here} if plain is None else {kinds[0]: here, kinds[1]: plain}
        differs = plain is None or error_text(here) != error_text(plain)
        rows += [
            {"label": label, "kind": kind, "error": max(error, left), "said": error_text(error), "differs": differs}
            for kind, error in errors.items()
        ]
    spans = [
        {"label": label, "low": max(min(here, plain), left), "high": max(here, plain, left)}
        for label, (_, here, plain) in zip(labels, listed, strict=True)
        if plain is not None
    ]
    x = alt.X(
        "error:Q",
        title="expected error of one answer (logarithmic)",
        scale=alt.Scale(type="log", domain=[left, max(positive) * 2.5], nice=False),
        axis=alt.Axis(format=",~r", tickCount=5, labelOverlap=True, grid=False),
    )
    y = alt.Y("label:N", title=None, **in_order(labels))
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=kinds, range=[BLUE, PALETTE[1]]),
        legend=alt.Legend(orient="top", direction="horizontal", labelLimit=220),
    )
    shape = alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=["circle", "diamond"]), title=None)
    base = alt.Chart(alt.Data(values=rows))
    lines = alt.Chart(alt.Data(values=spans)).mark_rule(color=INK, opacity=0.5).encode(x="low:Q", x2="high:Q", y=y)
    points = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=x, y=y, color=colour, shape=shape, tooltip=[tip("label:N", "release"), "kind:N", tip("said:N", "error")]
    )
    # one number to the right where both are alike, otherwise this policy's above its point
    is_plain = alt.datum.kind == kinds[1]
    numbers = [
        base.transform_filter(is_plain)
        .mark_text(align="left", dx=9, fontSize=12, color=LINE)
        .encode(x=x, y=y, text="said:N"),
        base.transform_filter(~is_plain & alt.datum.differs)
        .mark_text(align="left", dx=-4, dy=-11, fontSize=12, color=LINE)
        .encode(x=x, y=y, text="said:N"),
    ]
    view = alt.layer(lines, points, *numbers)
    units = list(dict.fromkeys(said.plan.query.error_unit(said.plan.policy.domain) for _, said in named))
    if units != ["people"]:
        notes.append(f"Each in its own unit: {', '.join(map(printable, units[:MOST_LISTED]))}.")
    return styled(
        fitted(view, ALONE, height=alt.Step(34)),
        "Expected error: this policy and plain differential privacy",
        ["At the same epsilon; further left is better.", *notes],
    )


def chart_png(drawn: Any, *, scale: float = 2.0) -> bytes:
    """Return a chart as a PNG image. Nothing is fetched from anywhere."""
    return bytes(vl_convert.vegalite_to_png(drawn.to_dict(), scale=scale, **_OFFLINE))


def chart_svg(drawn: Any) -> str:
    """Return a chart as an SVG image. Nothing is fetched from anywhere."""
    return str(vl_convert.vegalite_to_svg(drawn.to_dict(validate=False), **_OFFLINE))


_OFFLINE: Final[dict[str, Any]] = {
    "vl_version": ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2]),
    "allowed_base_urls": [],
}


def condition(query: Any) -> str:
    """Return in words whom a question is restricted to, or nothing."""
    return "" if query.where is None else f", where {printable(str(query.where))}"


def _finish(view: View, record: ReleaseRecord) -> Any:
    plan = record.done
    said = [] if plan.query.where is None else [f"where {printable(str(plan.query.where))}"]
    if plan.is_exact:
        said.append(f"Exact, {plan.about}: no secret edge changes these answers.")
    elif view.has_intervals:
        said.append(f"{view.are} with {view.intervals}, epsilon {shown_with_decimal(plan.epsilon)}.")
    elif view.are == "Estimates":
        said.append(f"Estimates, epsilon {shown_with_decimal(plan.epsilon)}; the table has their 95% intervals.")
    else:
        said.append(f"{view.are}, epsilon {shown_with_decimal(plan.epsilon)}.")
    drawn = styled(view.layers, question(record), [*said, *view.notes])
    return drawn.properties(description=chart_text(record))

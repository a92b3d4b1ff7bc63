"""Charts of selections: one count beside its threshold, the largest counts, and which items are above, in order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import altair as alt
import numpy as np

from tacit.errors import printable
from tacit.plan.questions import Above, Below, TopK
from tacit.release.results.selections import CountVerdict, ItemVerdicts, Ranking
from tacit.release.results.value_files import with_interval
from tacit.report.charts.chart_parts import (
    ALONE,
    BLUE,
    INK,
    LEVEL,
    LINE,
    MOST_POINTS,
    SKY,
    TOP,
    WIDTH,
    Row,
    View,
    chart_of,
    coloured,
    draw,
    fitted,
    interval_rows,
    labels_of,
    lying_bars,
    number_axis,
    say,
    say_with_ends,
    tips_for,
)

ORANGE: Final = "#E69F00"
NOT_COMPARED: Final = "#dddddd"
HEIGHT: Final = 96
BELOW: Final = replace(ALONE, width=WIDTH - 140, fits=False)  # bars under a strip: two views are sized one by one


@say.register
def _(query: Below, record: CountVerdict) -> str:
    lower, upper = record.interval(LEVEL)
    verdict = f"The verdict: {record.verdict} {query.threshold:,}."
    if np.isnan(record.values[0]):
        return verdict
    return f"{verdict} Released value: {say_with_ends(record, record.values[0], lower[0], upper[0])}."


@say.register
def _(query: Above, record: ItemVerdicts) -> str:
    items, compared = record.plan.answers, len(record.places)
    above = record.plan.words.above
    rest = "" if compared == items else f" The search stopped there and left out the other {items - compared:,}."
    return (
        f"{compared:,} of {items:,} compared, in the order of the domain; {record.verdicts.count(above):,} "
        f"{above}.{rest}"
    )


@say.register
def _(query: TopK, record: Ranking) -> str:
    lower, upper = record.interval(LEVEL)
    first = printable(str(next(iter(record.labels().values()))[0]))
    best = say_with_ends(record, record.values[0], lower[0], upper[0])
    return f"{len(record.places):,} chosen; the largest is {first} with {best}."


@draw.register(TopK)
def _ranking(query: TopK, record: Ranking) -> View:
    """The chosen items by their released values."""
    many = min(len(record.places), TOP)
    notes = (f"The first {many} of {len(record.places):,}; the table has all.",) if many < len(record.places) else ()
    return View(lying_bars(_rows(record, np.arange(many)), _name(record), ALONE), notes)


@draw.register(Below)
def _threshold(query: Below, record: CountVerdict) -> View:
    """One count and its interval, or what the verdict proves, beside the threshold."""
    plan = record.plan
    lower, upper = record.interval(LEVEL)
    threshold, value = query.threshold, record.values[0]
    ends = [bound if np.isfinite(bound) else max(2.0 * threshold, lower[0] + 1) for bound in (lower[0], upper[0])]
    has_value = not np.isnan(value)
    text = f"{record.verdict} {threshold:,}"
    if has_value:
        exact = ", exact" if plan.is_exact else ""  # the subtitle says of what
        text += f": {with_interval(value, ends[0], ends[1], plan.rmse, before='95% interval ')}{exact}"
    drawn = [value if has_value else threshold]
    base = chart_of(interval_rows(drawn, ends[:1], ends[1:], label=["count"], text=[text]))
    widest = max(ends[1], float(threshold)) * 1.15 + 1
    scale = alt.Scale(domain=[0, widest])
    x = alt.X("lower:Q", title="people", scale=scale, axis=number_axis())
    marks = base.mark_bar(color=SKY, height=14).encode(x=x, x2="upper:Q", tooltip=tips_for("label"))
    layers = [marks]
    if has_value:
        layers.append(base.mark_point(filled=True, size=120, color=BLUE, opacity=1).encode(x="value:Q"))
    line = chart_of([{"at": threshold, "text": f"threshold {threshold:,}"}])
    rule = line.mark_rule(color=LINE, strokeDash=[4, 3], strokeWidth=1.5)
    side, away = ("right", -5) if threshold > 0.6 * widest else ("left", 5)
    label = line.mark_text(align=side, dx=away, fontSize=12, color=INK)
    heading = base.mark_text(align="left", fontSize=15, fontWeight="bold", color=LINE)
    layers += [
        rule.encode(x="at:Q", y=alt.value(26), y2=alt.value(HEIGHT)),
        label.encode(x="at:Q", y=alt.value(HEIGHT - 12), text="text:N"),
        heading.encode(x=alt.value(4), y=alt.value(12), text="text:N"),
    ]
    view = fitted(alt.layer(*layers), ALONE, height=HEIGHT)
    return View(view) if has_value else View(view, has_intervals=False, are="What is proved")


@draw.register(Above)
def _scanned(query: Above, record: ItemVerdicts) -> View:
    """A strip of all items in the order of the domain, and below it the values of what was found."""
    plan = record.plan
    compared, items = len(record.places), plan.answers
    certain, other = (plan.words.below, plan.words.above) if plan.costly else (plan.words.above, plan.words.below)
    kinds = {certain: SKY, other: ORANGE, **({"not compared": NOT_COMPARED} if compared < items else {})}
    spans: list[Row] = [{"kind": certain, "from": 0, "to": compared}]
    if compared < items:
        spans.append({"kind": "not compared", "from": compared, "to": items})
    found = record.places[np.asarray(record.is_above) == plan.costly]
    ticks: list[Row] = [{"kind": other, "at": float(place) + 0.5} for place in found[:MOST_POINTS]]
    x = alt.X(
        "from:Q",
        title=f"{_name(record)}, in the order of the domain",
        scale=alt.Scale(domain=[0, items], nice=False),
        axis=number_axis(),
    )
    top: dict[str, Any] = {"orient": "top", "direction": "horizontal", "labelLimit": 220}
    colour = coloured("kind:N", list(kinds), list(kinds.values()), **top)
    wide = max(2.0, (WIDTH - 60) / items)  # as wide as its place on the strip, but never too thin to be seen
    strip = alt.layer(
        chart_of(spans).mark_bar(height=34).encode(x=x, x2="to:Q", color=colour),
        chart_of(ticks).mark_tick(height=34, thickness=wide).encode(x="at:Q", color=colour),
    ).properties(width=WIDTH - 60, height=34)
    notes = [f"Stopped after {plan.query.at_most:,}; later ones were not compared."] if compared < items else []
    valued = np.flatnonzero(~np.isnan(record.values))
    if not len(valued):
        return View(strip, tuple(notes), has_intervals=False, are="Verdicts")
    if len(valued) > TOP:
        notes.append(f"The first {TOP} of {len(valued):,} released values; the table has all.")
    first = valued[:TOP]
    limit = query.threshold if isinstance(query.threshold, int) else plan.thresholds[record.places[first]].tolist()
    bars = lying_bars(_rows(record, first), _name(record), BELOW, limit=limit, colour=ORANGE)
    both = alt.vconcat(strip, bars).resolve_scale(x="independent", color="independent")
    return View(both, tuple(notes), are="Verdicts, and estimates of what was found")


def _rows(record: ItemVerdicts | Ranking, picked: Any) -> list[Row]:
    lower, upper = record.interval(LEVEL)
    labels = labels_of(record.plan.policy.domain[record.plan.query.name], record.places[picked])
    return interval_rows(record.values[picked], lower[picked], upper[picked], label=labels)


def _name(record: ItemVerdicts | Ranking) -> str:
    return printable(record.plan.query.name)

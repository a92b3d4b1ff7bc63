"""Which view each question gets: counts, sums, lines, rectangles, means, quantiles, true records, and selections."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Final, cast

import altair as alt
import numpy as np

from tacit.amounts import shown
from tacit.arrays import Floats, Ints
from tacit.errors import printable
from tacit.plan.question import in_words
from tacit.plan.questions import (
    Above,
    Below,
    Count,
    Cumulative,
    ListedCounts,
    Marginals,
    Quantiles,
    Ranges,
    Rectangles,
    TopK,
    Total,
    TrueRecords,
)
from tacit.plan.questions.listed_counts import PREDICATE
from tacit.plan.questions.moments import Moment
from tacit.plan.questions.time_parts import PartCounts
from tacit.policy.attributes import Attribute, Grid
from tacit.policy.domain import Domain
from tacit.release.results.record import LinearRecord
from tacit.release.results.selections import CountVerdict, ItemVerdicts, Ranking
from tacit.release.results.true_records import TrueRecordsRecord
from tacit.release.results.value_files import with_interval
from tacit.report.charts.chart_parts import (
    ALONE,
    BLUE,
    INK,
    LEVEL,
    LINE,
    MOST_LISTED,
    MOST_POINTS,
    ORANGE,
    SKY,
    TOP,
    WIDTH,
    Row,
    View,
    chart_of,
    coloured,
    distinct,
    draw,
    fitted,
    interval_rows,
    labels_of,
    list_parts,
    lying_bars,
    lying_points,
    number_axis,
    say,
    say_place,
    say_with_ends,
    short_labels,
    tips_for,
)
from tacit.report.charts.histogram_charts import (
    Side,
    below_zero_note,
    heat_map,
    histogram_view,
    one_number,
    panels,
    view_by_cell,
)
from tacit.report.charts.line_charts import HistogramPart, Interval, line_view

MOST_DRAWN: Final = 40  # ranges or rectangles, one bar for each; or steps between the ends of all ranges
NOT_COMPARED: Final = "#dddddd"
STRIP: Final = 96  # the height of one count beside its threshold
UNDER_A_STRIP: Final = replace(ALONE, width=WIDTH - 140, fits=False)  # two views are sized one by one


# ---- the view of each question --------------------------------------------------------------------------------------


@draw.register
def _(query: Count, record: Any) -> View:
    return one_number(query.who, query.who, record.values, *record.interval(LEVEL), error=record.plan.rmse)


@draw.register
def _(query: ListedCounts, record: Any) -> View:
    many, (lower, upper) = min(len(record.values), MOST_DRAWN), record.interval(LEVEL)
    labels = distinct([name for name, _ in query.predicates[:many]])
    rows = interval_rows(record.values[:many], lower[:many], upper[:many], label=labels)
    notes = (f"The first {many} of {len(record.values):,} predicates.",) if many < len(record.values) else ()
    return View(lying_bars(rows, PREDICATE, ALONE, what=query.who), notes)


@draw.register
def _(query: PartCounts, record: Any) -> View:
    domain = query.cells(record.plan.policy.domain)
    return histogram_view(HistogramPart(domain, query.names, record.values, record.interval, query.who), ALONE)


@draw.register
def _(query: Total, record: Any) -> View:
    unit = f"total of {query.unit_words(record.plan.policy.domain)}"
    return _number_or_cells(query, record, query.name, unit, record.plan.rmse, is_amount=True)


@draw.register
def _(query: Moment, record: Any) -> View:
    unit, title = query.unit_words(record.plan.policy.domain), f"{query.keyword} of {query.name}"
    return _number_or_cells(query, record, unit, title, record.digits_for, is_amount=False)


def _number_or_cells(
    query: Total | Moment, record: Any, label: str, title: str, error: float, *, is_amount: bool
) -> View:
    """Return the answer to a question as one number, or by cell."""
    if not query.by:
        return one_number(label, title, record.values, *record.interval(LEVEL), error=error)
    domain = record.plan.policy.domain
    return view_by_cell(HistogramPart(domain, query.by, record.values, record.interval, title, is_amount))


@draw.register
def _(query: Cumulative, record: Any) -> View:
    return _running_counts(query, record, record.values, record.interval)


def _running_counts(query: Cumulative | Ranges, record: Any, values: Floats, interval: Interval) -> View:
    part = HistogramPart(record.plan.policy.domain, (query.name,), values, interval, query.who)
    return line_view(part, ALONE, thinned=True, what=f"{query.who} up to this value")


@draw.register
def _(query: Ranges, record: Any) -> View:
    domain, values = record.plan.policy.domain, record.values
    if query.lists_values(domain):  # too many ranges to draw each
        view = _running_counts(query, record, record.running, record.running_interval)
        return replace(view, notes=(*view.notes, "A range is the difference of two of these counts."))
    attribute = domain[query.name]
    part = HistogramPart(domain, (query.name,), values, record.interval, query.who)
    first, last = query.runs(domain)
    if query.ranges is not None:
        picked = np.arange(min(len(values), MOST_DRAWN))
        labels = distinct(_range_words(attribute, first[picked], last[picked]))
        notes = (f"The first {len(picked)} of {len(values):,} ranges.",) if len(picked) < len(values) else ()
        return View(lying_bars(part.rows(picked, label=labels), query.name, ALONE, what=query.who), notes)
    step = -(-attribute.size // MOST_DRAWN)
    picked = np.flatnonzero((first % step == 0) & ((last % step == 0) | (last == attribute.size - 1)))
    down, across = labels_of(attribute, first[picked]), labels_of(attribute, last[picked])
    columns = [labels_of(attribute, np.array([place]))[0] for place in np.unique(last[picked])]
    sides = Side(list(dict.fromkeys(down)), picked, is_scale=True), Side(columns, picked, is_scale=True)
    rows = part.rows(picked, down=down, across=across)
    view = heat_map(rows, sides, (f"{query.name} from", f"{query.name} to"), ALONE, query.who)
    notes = (f"Ranges with ends {step:,} values apart; the table has all {len(values):,}.",) if step > 1 else ()
    return View(view, (*notes, *below_zero_note(values[picked])), has_intervals=False)


@draw.register
def _(query: Rectangles, record: Any) -> View:
    domain = record.plan.policy.domain
    part = HistogramPart(domain, query.names, record.values, record.interval, query.who)
    if query.rectangles is None:
        return histogram_view(part, ALONE)
    picked = np.arange(min(len(record.values), MOST_DRAWN))
    # a note names the attributes once, so that labels are short
    sides = [[f"{low} to {high}" for _, low, high in _sides(query, domain, int(at))] for at in picked]
    labels, notes = short_labels([", ".join(side) for side in sides], "rectangle")
    if len(picked) < len(part.values):
        notes = (f"The first {len(picked)} of {len(record.values):,} rectangles.", *notes)
    along = [printable(name) for name, _, _ in _sides(query, domain, 0)]
    notes = (*notes, f"Each rectangle by {along[0]}, then by {along[1]}.")
    return View(lying_bars(part.rows(picked, label=labels), "rectangle", ALONE, what=query.who), notes)


@draw.register
def _(query: Marginals, record: Any) -> View:
    domain = record.plan.policy.domain
    starts = np.cumsum([0, *query.sizes(domain)])
    tables = [slice(first, last) for first, last in pairwise(starts)]

    def interval(table: slice, level: float) -> tuple[Floats, Floats]:
        lower, upper = record.interval(level)
        return lower[table], upper[table]

    parts = [
        HistogramPart(
            domain,
            names,
            record.values[table],
            partial(interval, table),
            query.who,
            sums=partial(record.sums, number) if isinstance(record, LinearRecord) else None,
            cells=None if query.each is None else query.each.cells(domain[query.each.name]),
        )
        for number, (names, table) in enumerate(zip(query.sets, tables, strict=True))
    ]
    return histogram_view(parts[0], ALONE) if len(parts) == 1 else panels(parts)


@draw.register
def _(query: Quantiles, record: Any) -> View:
    by_rank = "lower" not in record.numbers(LEVEL)
    lower, upper = (record.values, record.values) if by_rank else record.interval(LEVEL)
    if len(record.values) == 1:
        title = f"{shown(query.shares[0])} of the {query.who} have at most this {query.name}"
        text = record.summary() if by_rank else None
        view = one_number(query.name, title, record.values, lower, upper, error=record.digits_for, text=text)
        return replace(view, has_intervals=False, are="Chosen by its rank") if by_rank else view
    rows = interval_rows(record.values, lower, upper, label=[shown(share) for share in query.shares])
    points = lying_points(rows, f"share of {query.who}", ALONE, what=f"{query.name} that they have at most")
    return View(points, has_intervals=False, are="Chosen by their ranks") if by_rank else View(points)


@draw.register
def _(query: TrueRecords, record: TrueRecordsRecord) -> View:
    rows = interval_rows(record.values, *record.interval(LEVEL), label=distinct(query.shown))
    note = "Records without a secret in each column, estimated from those that are shown."
    return View(lying_bars(rows, "column", ALONE, what="records"), (note,))


# ---- in words -------------------------------------------------------------------------------------------------------


@say.register
def _(query: TrueRecords, record: TrueRecordsRecord) -> str:
    shown_rows = zip(query.shown, record.labels()["rows that show it"], strict=True)
    listed = ", ".join(f"{printable(name)} in {many:,}" for name, many in shown_rows)
    return f"{record.summary()}; shown: {listed}."


@say_place.register
def _(query: Cumulative, domain: Domain, at: int) -> str:
    return f"{printable(query.name)} up to {labels_of(domain[query.name], np.array([at]))[0]}"


@say_place.register
def _(query: Ranges, domain: Domain, at: int) -> str:
    first, last = query.runs(domain)
    ends = labels_of(domain[query.name], np.array([first[at], last[at]]))
    return f"{printable(query.name)} from {ends[0]} to {ends[1]}"


@say_place.register
def _(query: Rectangles, domain: Domain, at: int) -> str:
    return _cell_words(query.names, domain, at) if query.rectangles is None else _rectangle_words(query, domain, at)


@say_place.register
def _(query: Marginals, domain: Domain, at: int) -> str:
    for names, size in zip(query.sets, query.sizes(domain), strict=True):
        if at < size:
            return _cell_words(names, domain, at)
        at -= size
    return "everyone"


@say_place.register
def _(query: ListedCounts, domain: Domain, at: int) -> str:
    return printable(query.predicates[at][0])


@say_place.register
def _(query: PartCounts, domain: Domain, at: int) -> str:
    return _cell_words(query.names, query.cells(domain), at)


@say_place.register(Total)
@say_place.register(Moment)
def _(query: Total | Moment, domain: Domain, at: int) -> str:
    return _cell_words(query.by, domain, at) if query.by else "everyone"


@say_place.register
def _(query: Quantiles, domain: Domain, at: int) -> str:
    return f"{shown(query.shares[at])} of the {query.who}, by {printable(query.name)}"


@list_parts.register
def _(query: Ranges, domain: Domain) -> tuple[str, int]:
    if query.ranges is None:
        return f"every range of neighbouring values of {printable(query.name)}", 1
    first, last = query.runs(domain)
    ranges = _range_words(domain[query.name], first[:MOST_LISTED], last[:MOST_LISTED])
    return f"{printable(query.name)} {'; '.join(ranges)}", len(first)


@list_parts.register
def _(query: Rectangles, domain: Domain) -> tuple[str, int]:
    if query.rectangles is None:
        return "all rectangles, each of which is a sum of these cells", 1
    many = len(query.rectangles)
    return "; ".join(_rectangle_words(query, domain, at) for at in range(min(many, MOST_LISTED))), many


@list_parts.register
def _(query: Marginals, domain: Domain) -> tuple[str, int]:
    if len(query.sets) == 1:
        return "", 0
    tables = (in_words([printable(name) for name in names]) for names in query.sets[:MOST_LISTED])
    return "; ".join(tables), len(query.sets)


def _cell_words(names: tuple[str, ...], domain: Domain, at: int) -> str:
    places = np.unravel_index(np.array([at]), [domain[name].cells for name in names])
    cell = zip(names, places, strict=True)
    return ", ".join(f"{printable(name)} {labels_of(domain[name], place)[0]}" for name, place in cell)


def _range_words(attribute: Attribute, first: Ints, last: Ints) -> list[str]:
    ends = zip(labels_of(attribute, first), labels_of(attribute, last), strict=True)
    return [low if low == high else f"{low} to {high}" for low, high in ends]


def _rectangle_words(query: Rectangles, domain: Domain, at: int) -> str:
    return ", ".join(printable(f"{name} {low} to {high}") for name, low, high in _sides(query, domain, at))


def _sides(query: Rectangles, domain: Domain, at: int) -> list[tuple[str, Any, Any]]:
    """Return both sides of a listed rectangle: the name of the axis, its first and its last value."""
    x_low, x_high, y_low, y_high = (query.rectangles or ())[at]
    down, across = query.names if len(query.names) == 2 else _axes_of(cast("Grid", domain[query.names[0]]))
    return [(down, x_low, x_high), (across, y_low, y_high)]


def _axes_of(grid: Grid) -> tuple[str, str]:
    """Return the names of a grid's axes: its columns hold cell numbers, or else coordinates, which number no cell."""
    return grid.of if grid.low is None else ("row", "column")


# ---- selections: one count beside its threshold, the largest counts, and which items are above, in order -------------


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
        f"{compared:,} of {items:,} compared, in the order of {query.order}; {record.verdicts.count(above):,} "
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
    return View(lying_bars(_rows(record, np.arange(many)), _name(record), ALONE, what=record.plan.query.who), notes)


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
    x = alt.X("lower:Q", title=query.who, scale=scale, axis=number_axis())
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
        rule.encode(x="at:Q", y=alt.value(26), y2=alt.value(STRIP)),
        label.encode(x="at:Q", y=alt.value(STRIP - 12), text="text:N"),
        heading.encode(x=alt.value(4), y=alt.value(12), text="text:N"),
    ]
    view = fitted(alt.layer(*layers), ALONE, height=STRIP)
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
        title=f"{_name(record)}, in the order of {query.order}",
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
    bars = lying_bars(_rows(record, first), _name(record), UNDER_A_STRIP, what=query.who, limit=limit, colour=ORANGE)
    both = alt.vconcat(strip, bars).resolve_scale(x="independent", color="independent")
    return View(both, tuple(notes), are="Verdicts, and estimates of what was found")


def _rows(record: ItemVerdicts | Ranking, picked: Any) -> list[Row]:
    lower, upper = record.interval(LEVEL)
    query, domain, places = record.plan.query, record.plan.policy.domain, record.places[picked]
    is_value = isinstance(query.choices, str)
    labels = labels_of(domain[query.called], places) if is_value else distinct(query.cells(places, domain))
    return interval_rows(record.values[picked], lower[picked], upper[picked], label=labels)


def _name(record: ItemVerdicts | Ranking) -> str:
    return printable(record.plan.query.called)

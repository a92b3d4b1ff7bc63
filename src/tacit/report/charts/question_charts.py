"""Charts of counts, sums, lines, rectangles, marginals, means, quantiles and true records: which view each gets."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np

from tacit.amounts import shown
from tacit.arrays import Floats, Ints
from tacit.errors import printable
from tacit.plan.question import in_words
from tacit.plan.questions import Count, Cumulative, Marginals, Quantiles, Ranges, Rectangles, Total, TrueRecords
from tacit.plan.questions.moments import Moment
from tacit.policy.attributes import Attribute, Grid
from tacit.policy.domain import Domain
from tacit.release.results.true_records import TrueRecordsRecord
from tacit.report.charts.chart_parts import (
    ALONE,
    LEVEL,
    MOST_LISTED,
    View,
    distinct,
    draw,
    interval_rows,
    labels_of,
    list_parts,
    lying_bars,
    lying_points,
    say,
    say_place,
    short_labels,
)
from tacit.report.charts.histogram_charts import (
    HistogramPart,
    Interval,
    Side,
    below_zero_note,
    heat_map,
    histogram_view,
    line_view,
    one_number,
    panels,
    view_by_cell,
)

MOST_DRAWN: Final = 40  # ranges or rectangles, one bar for each; or steps between the ends of all ranges


# ---- the view of each question --------------------------------------------------------------------------------------


@draw.register
def _(query: Count, record: Any) -> View:
    return one_number("people", "people", record.values, *record.interval(LEVEL), error=record.plan.rmse)


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
    part = HistogramPart(record.plan.policy.domain, (query.name,), values, interval)
    return line_view(part, ALONE, thinned=True, what="people up to this value")


@draw.register
def _(query: Ranges, record: Any) -> View:
    domain, values = record.plan.policy.domain, record.values
    if query.lists_values(domain):  # too many ranges to draw each
        view = _running_counts(query, record, record.running, record.running_interval)
        return replace(view, notes=(*view.notes, "A range is the difference of two of these counts."))
    attribute = domain[query.name]
    part = HistogramPart(domain, (query.name,), values, record.interval)
    first, last = query.runs(domain)
    if query.ranges is not None:
        picked = np.arange(min(len(values), MOST_DRAWN))
        labels = distinct(_range_words(attribute, first[picked], last[picked]))
        notes = (f"The first {len(picked)} of {len(values):,} ranges.",) if len(picked) < len(values) else ()
        return View(lying_bars(part.rows(picked, label=labels), query.name, ALONE), notes)
    step = -(-attribute.size // MOST_DRAWN)
    picked = np.flatnonzero((first % step == 0) & ((last % step == 0) | (last == attribute.size - 1)))
    down, across = labels_of(attribute, first[picked]), labels_of(attribute, last[picked])
    columns = [labels_of(attribute, np.array([place]))[0] for place in np.unique(last[picked])]
    sides = Side(list(dict.fromkeys(down)), picked, is_scale=True), Side(columns, picked, is_scale=True)
    rows = part.rows(picked, down=down, across=across)
    view = heat_map(rows, sides, (f"{query.name} from", f"{query.name} to"), ALONE)
    notes = (f"Ranges with ends {step:,} values apart; the table has all {len(values):,}.",) if step > 1 else ()
    return View(view, (*notes, *below_zero_note(values[picked])), has_intervals=False)


@draw.register
def _(query: Rectangles, record: Any) -> View:
    domain = record.plan.policy.domain
    part = HistogramPart(domain, query.names, record.values, record.interval)
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
    return View(lying_bars(part.rows(picked, label=labels), "rectangle", ALONE), notes)


@draw.register
def _(query: Marginals, record: Any) -> View:
    domain = record.plan.policy.domain
    starts = np.cumsum([0, *query.sizes(domain)])
    tables = [slice(first, last) for first, last in pairwise(starts)]

    def interval(table: slice, level: float) -> tuple[Floats, Floats]:
        lower, upper = record.interval(level)
        return lower[table], upper[table]

    parts = [
        HistogramPart(domain, names, record.values[table], partial(interval, table))
        for names, table in zip(query.sets, tables, strict=True)
    ]
    return histogram_view(parts[0], ALONE) if len(parts) == 1 else panels(parts)


@draw.register
def _(query: Quantiles, record: Any) -> View:
    lower, upper = record.interval(LEVEL)
    if len(record.values) == 1:
        title = f"{shown(query.shares[0])} of the people have at most this {query.name}"
        return one_number(query.name, title, record.values, lower, upper, error=record.digits_for)
    rows = interval_rows(record.values, lower, upper, label=[shown(share) for share in query.shares])
    return View(lying_points(rows, "share of people", ALONE, what=f"{query.name} that they have at most"))


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


@say_place.register(Total)
@say_place.register(Moment)
def _(query: Total | Moment, domain: Domain, at: int) -> str:
    return _cell_words(query.by, domain, at) if query.by else "everyone"


@say_place.register
def _(query: Quantiles, domain: Domain, at: int) -> str:
    return f"{shown(query.shares[at])} of the people, by {printable(query.name)}"


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

"""Charts of linear questions: bars, lines, heat maps, maps, and panels of several tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Final, cast

import altair as alt
import numpy as np

from tacit.arrays import Floats, Ints
from tacit.errors import printable
from tacit.plan.question import in_words
from tacit.plan.questions import Count, Cumulative, Marginals, Ranges, Rectangles, Total
from tacit.plan.sensitivity.cells import cells_of
from tacit.policy.attributes import Attribute, Grid
from tacit.policy.domain import Domain
from tacit.release.results.number_texts import with_interval
from tacit.report.charts.chart_parts import (
    ALONE,
    BLUE,
    LEVEL,
    LINE,
    MOST_LISTED,
    NUMBER,
    PALETTE,
    PANEL,
    SKY,
    Room,
    Row,
    View,
    as_points,
    digits_for,
    distinct,
    draw,
    fitted,
    in_order,
    interval_rows,
    labels_of,
    level,
    level_at_once,
    list_parts,
    lying_bars,
    lying_points,
    number_axis,
    rounded,
    say_place,
    short_labels,
    tip,
    tips_for,
    whiskers,
    whole_axis,
    wrapped,
)

RAMP: Final = "blues"
PANELS: Final = 12
GRID_SIDE: Final = 70  # 4,900 cells
Interval = Callable[[float], tuple[Floats, Floats]]  # the ends of all intervals of a level


@dataclass(frozen=True)
class HistogramPart:
    """The answers of one histogram, with the names of its attributes."""

    names: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    values: Floats
    interval: Interval
    what: str = "people"
    is_amount: bool = True  # a number of something, which a bar from zero shows; a mean is none

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """The 95% intervals, each of which holds by itself."""
        return self.interval(LEVEL)

    def rows(self, picked: Ints, *, level: float = LEVEL, **columns: Sequence[Any]) -> list[Row]:
        """Return the picked answers with their intervals as rows with more columns beside."""
        lower, upper = self.ends if level == LEVEL else self.interval(level)
        drawn = interval_rows(self.values[picked], lower[picked], upper[picked])
        return [
            {**{name: column[number] for name, column in columns.items()}, **ends} for number, ends in enumerate(drawn)
        ]


def part_of(
    domain: Domain,
    names: tuple[str, ...],
    values: Floats,
    interval: Interval,
    what: str = "people",
    *,
    is_amount: bool = True,
) -> HistogramPart:
    """Return the answers of one table and their intervals of each level; `what` says what they are numbers of."""
    return HistogramPart(names, tuple(domain[name] for name in names), values, interval, what, is_amount)


def histogram_view(part: HistogramPart, room: Room) -> View:
    """Return the view that suits the attributes of a table."""
    if len(part.attributes) == 2:
        return _two(part, room)
    if len(part.attributes) != 1:
        return _largest(part, room, "cells")
    ((name,), (attribute,)) = part.names, part.attributes
    match attribute.measured:
        case "sets":
            return _largest(part, room, f"items of {name}")
        case "places":
            return _map(part, room)
        case "numbers" | "times":
            return _columns(part, attribute, room) if attribute.size <= room.bars else _line(part, room)
        case _ if attribute.size > room.bars:
            return _line(part, room) if attribute.ordered else _largest(part, room, f"values of {name}")
        case _:
            places = np.arange(attribute.size)
            rows = part.rows(places, label=labels_of(attribute, places))
            return View(_lying(rows, name, part, room))


def _lying(rows: list[Row], name: str, part: HistogramPart, room: Room) -> Any:
    """Return one line for each row: a bar, or a point where the numbers are no amounts."""
    return (lying_bars if part.is_amount else lying_points)(rows, name, room, what=part.what)


def view_by_cell(part: HistogramPart) -> View:
    """Return a view of numbers that are no counts, so that neighbouring cells cannot be added up."""
    if len(part.attributes) == 1 and part.attributes[0].measured != "places":
        return histogram_view(part, ALONE)
    return _largest(part, ALONE, "cells")


def one_number(name: str, title: str, values: Floats, lower: Floats, upper: Floats, *, error: float) -> View:
    """Return a point with its interval."""
    label = printable(name)
    said = with_interval(values[0], lower[0], upper[0], error).replace(" (", "  (")
    rows = [{"label": label, "said": said, **interval_rows(values[:1], lower[:1], upper[:1])[0]}]
    base = alt.Chart(alt.Data(values=rows))
    # not from zero: the interval of a large count would be thinner than the point
    scale = alt.Scale(zero=False, padding=40)
    x = alt.X("value:Q", title=printable(title), scale=scale, axis=number_axis())
    points = base.mark_point(filled=True, size=120, color=BLUE, opacity=1).encode(x=x, tooltip=tips_for("label"))
    numbers = base.mark_text(dy=-18, fontSize=15, fontWeight="bold", color=LINE).encode(x=x, text="said:N")
    return View(fitted(alt.layer(whiskers(base, x="lower:Q", x2="upper:Q"), points, numbers), ALONE, height=56))


def _columns(part: HistogramPart, attribute: Attribute, room: Room) -> View:
    """Few numbers or dates: upright bars, or points."""
    places = np.arange(attribute.size)
    at = [attribute.value(int(place)) for place in places]
    base = alt.Chart(alt.Data(values=part.rows(places, at=at)))
    name = printable(part.names[0])
    x = alt.X("at:O", title=name, **in_order(at), axis=alt.Axis(labelAngle=0, labelOverlap=True))
    ends = whiskers(base, x=x, y="lower:Q", y2="upper:Q")
    if not part.is_amount:
        points = as_points(base).encode(x=x, y=level("y", part.what), tooltip=tips_for("at", name))
        return View(fitted(alt.layer(ends, points), room))
    y = alt.Y("value:Q", title=printable(part.what), axis=number_axis())
    bars = base.mark_bar(color=SKY).encode(x=x, y=y, tooltip=tips_for("at", name))
    return View(fitted(alt.layer(bars, ends), room))


def _line(part: HistogramPart, room: Room, *, thinned: bool = False, what: str = "") -> View:
    """Many ordered values: a line with a band. Cumulative counts are thinned, cell counts averaged over neighbours."""
    attribute, size = part.attributes[0], len(part.values)
    width = -(-size // room.points)
    notes: list[str] = []
    places = np.arange(0, size, width)
    values, (lower, upper) = part.values, part.ends
    has_band = bool((lower < upper).any())
    thinned = thinned or not part.is_amount
    if width > 1 and thinned:
        places = np.unique(np.append(places, size - 1))
        values, lower, upper = values[places], lower[places], upper[places]
        notes.append(f"One point for every {width:,} values; the table has all {size:,}.")
    elif width > 1:
        # intervals are not for means, so none are drawn
        values = np.add.reduceat(values, places) / np.diff(np.append(places, size))
        notes.append(f"Means over {width:,} neighbouring values; the table has all {size:,}.")
        has_band = False
    is_number = attribute.measured == "numbers"
    at: Sequence[Any] = [attribute.value(int(p)) for p in places] if is_number else labels_of(attribute, places)
    rows: list[Row]
    if has_band:
        rows = [{"at": here, **ends} for here, ends in zip(at, interval_rows(values, lower, upper), strict=True)]
    else:
        digits = digits_for(values)
        rows = [{"at": here, "value": rounded(value, digits)} for here, value in zip(at, values, strict=True)]
    name = printable(part.names[0])
    x = (
        alt.X("at:Q", title=name, scale=alt.Scale(zero=False, nice=False), axis=whole_axis(attribute))
        if is_number
        else alt.X("at:O", title=name, **in_order(at), axis=alt.Axis(labelOverlap=True, labelAngle=-40))
    )
    what = printable(what or part.what)
    y = alt.Y("value:Q", title=what, axis=number_axis()) if part.is_amount else level("y", what)
    how = "step" if not (thinned and part.is_amount) else "monotone" if width > 1 else "step-after"
    base = alt.Chart(alt.Data(values=rows))
    tips = tips_for("at", name) if has_band else [tip("at", name), tip("value:Q", "estimate")]
    line = base.mark_line(color=BLUE, interpolate=how, strokeWidth=1.5).encode(x=x, y=y, tooltip=tips)
    if not has_band:
        return View(fitted(line, room), tuple(notes), has_intervals=False)
    band = base.mark_area(color=BLUE, opacity=0.25, interpolate=how).encode(
        x=x, y=alt.Y("lower:Q", title=what) if part.is_amount else level("y", what, "lower:Q"), y2="upper:Q"
    )
    return View(fitted(alt.layer(band, line), room), tuple(notes))


def _largest(part: HistogramPart, room: Room, of: str) -> View:
    """Too many cells to show all: those with the largest released values. Few: all of them, in the domain's order.

    Noise has probably raised a value that is picked for being large, so that an interval that holds for each cell by
    itself misses the truth of picked cells far more often than it says. These hold for all cells at once.
    """
    size = len(part.values)
    all_shown = size <= room.top
    order = np.arange(size) if all_shown else _largest_first(part.values, room.top)
    sizes = [attribute.cells for attribute in part.attributes]
    columns = [
        labels_of(attribute, places)
        for attribute, places in zip(part.attributes, np.unravel_index(order, sizes), strict=True)
    ]
    labels = distinct([", ".join(parts) for parts in zip(*columns, strict=True)])
    title = ", ".join(part.names)
    if all_shown:
        return View(_lying(part.rows(order, label=labels), title, part, room))
    rows = part.rows(order, level=level_at_once(size), label=labels)
    notes = (f"The {len(order)} largest released values out of {size:,} {of}.",)
    return View(_lying(rows, title, part, room), notes, intervals=f"intervals that hold for all {size:,} at once (95%)")


def _largest_first(values: Floats, many: int) -> Ints:
    """Return where the largest values are, of equal ones the first: as sorting them all would, in much less time."""
    if len(values) <= many:
        return np.argsort(-values, kind="stable")
    least = -np.partition(-values, many - 1)[many - 1]
    above = np.flatnonzero(values > least)
    kept = np.concatenate([above, np.flatnonzero(values == least)[: many - len(above)]])
    return kept[np.argsort(-values[kept], kind="stable")]


@dataclass(frozen=True)
class _Side:
    """One attribute as the axis of a table: where each of its values goes, and what each place is called."""

    labels: list[str]
    places: Ints
    note: str = ""
    is_scale: bool = False  # of numbers: a reader can do with every second label


def _side(name: str, attribute: Attribute, weights: Floats, most: int) -> _Side:
    size = len(weights)
    everything = np.arange(size)
    if size <= most:
        return _Side(labels_of(attribute, everything), everything, is_scale=attribute.measured in ("numbers", "times"))
    if attribute.ordered:
        width = -(-size // most)
        first = everything[::width]
        last = np.minimum(first + width - 1, size - 1)
        ends = zip(labels_of(attribute, first), labels_of(attribute, last), strict=True)
        labels = [low if low == high else f"{low}–{high}" for low, high in ends]
        return _Side(
            labels,
            everything // width,
            f"{printable(name)}: {width:,} neighbouring values are added up.",
            is_scale=True,
        )
    kept = np.sort(np.argsort(-weights, kind="stable")[:most])
    places = np.full(size, -1)
    places[kept] = np.arange(len(kept))
    return _Side(
        labels_of(attribute, kept), places, f"{printable(name)}: the {most} largest of {size:,} released values."
    )


def _two(part: HistogramPart, room: Room) -> View:
    """Two attributes: bars in groups or lines if one of them has few values, otherwise a heat map."""
    table = part.values.reshape([attribute.size for attribute in part.attributes])
    few, many = (0, 1) if table.shape[0] <= len(PALETTE) < table.shape[1] else (1, 0)
    if room.fits and table.shape[few] <= len(PALETTE):
        if table.shape[many] <= 12:
            return _grouped(part, table.shape, few, many, room)
        if part.attributes[many].measured == "numbers":
            return _lines(part, table.shape, few, many, room)
    sides = [
        _side(name, attribute, table.sum(axis=1 - axis), room.side)
        for axis, (name, attribute) in enumerate(zip(part.names, part.attributes, strict=True))
    ]
    sums = np.zeros([len(side.labels) for side in sides])
    first, second = np.meshgrid(sides[0].places, sides[1].places, indexing="ij")
    kept = (first >= 0) & (second >= 0)
    np.add.at(sums, (first[kept], second[kept]), table[kept])
    # the longer axis goes down the page: there is more room for it, and its labels stay level
    down, across = (0, 1) if sums.shape[0] >= sums.shape[1] else (1, 0)
    digits = digits_for(sums.ravel())
    rows = [
        {"down": sides[down].labels[i], "across": sides[across].labels[j], "value": rounded(value, digits)}
        for (i, j), value in np.ndenumerate(sums if down == 0 else sums.T)
    ]
    view = _heat(rows, (sides[down], sides[across]), (part.names[down], part.names[across]), room)
    notes = [side.note for side in sides if side.note]
    return View(view, (*notes, *_below_zero(sums)), has_intervals=False)


def _by_group(part: HistogramPart, shape: tuple[int, ...], few: int, many: int) -> tuple[list[str], list[Row]]:
    """Return the names of the few groups, and rows with the group and the position of the other attribute."""
    everything = np.arange(len(part.values))
    places = np.unravel_index(everything, shape)
    groups = labels_of(part.attributes[few], np.arange(shape[few]))
    rows = part.rows(everything, group=[groups[place] for place in places[few]], place=[int(p) for p in places[many]])
    return groups, sorted(rows, key=lambda row: row["place"])


def _group_colour(name: str, groups: list[str], first: str = SKY) -> Any:
    legend = alt.Legend(orient="top", direction="horizontal", labelLimit=240, titleLimit=300, columns=2)
    return alt.Color(
        "group:N",
        title=printable(name),
        scale=alt.Scale(domain=groups, range=[first, *PALETTE[1:]]),
        legend=legend,
    )


def _grouped(part: HistogramPart, shape: tuple[int, ...], few: int, many: int, room: Room) -> View:
    groups, rows = _by_group(part, shape, few, many)
    labels = labels_of(part.attributes[many], np.arange(shape[many]))
    rows = [{**row, "label": labels[row["place"]]} for row in rows]
    base = alt.Chart(alt.Data(values=rows))
    y = alt.Y("label:N", title=printable(part.names[many]), **in_order(labels), axis=alt.Axis(labelLimit=240))
    offset = alt.YOffset("group:N", **in_order(groups))
    tips = [tip("label:N", part.names[many]), tip("group:N", part.names[few]), *tips_for("label")[1:]]
    x = alt.X("value:Q", title=printable(part.what), axis=number_axis())
    bars = base.mark_bar().encode(x=x, y=y, yOffset=offset, color=_group_colour(part.names[few], groups), tooltip=tips)
    rules = whiskers(base, y=y, yOffset=offset, x="lower:Q", x2="upper:Q")
    height = alt.Step(max(14, 30 // len(groups)), **{"for": "offset"})
    return View(fitted(alt.layer(bars, rules), room, height=height))


def _lines(part: HistogramPart, shape: tuple[int, ...], few: int, many: int, room: Room) -> View:
    attribute = part.attributes[many]
    width = -(-shape[many] * shape[few] // room.points)
    groups, rows = _by_group(part, shape, few, many)
    notes: tuple[str, ...] = ()
    if width > 1:
        rows = [row for row in rows if row["place"] % width == 0]
        notes = (f"One point for every {width:,} values; the table has all of them.",)
    rows = [{**row, "at": attribute.value(row["place"])} for row in rows]
    base = alt.Chart(alt.Data(values=rows))
    name = printable(part.names[many])
    x = alt.X("at:Q", title=name, scale=alt.Scale(zero=False, nice=False), axis=whole_axis(attribute))
    colour = _group_colour(part.names[few], groups, first=BLUE)
    band = base.mark_area(opacity=0.2, interpolate="step").encode(
        x=x, y=alt.Y("lower:Q", title=printable(part.what), axis=number_axis(), stack=None), y2="upper:Q", color=colour
    )
    tips = [tip("at", name), tip("group:N", part.names[few]), *tips_for("at")[1:]]
    line = base.mark_line(interpolate="step", strokeWidth=1.5).encode(x=x, y="value:Q", color=colour, tooltip=tips)
    return View(fitted(alt.layer(band, line), room), notes)


def _heat(rows: list[Row], sides: tuple[_Side, _Side], names: tuple[str, str], room: Room) -> Any:
    base = alt.Chart(alt.Data(values=rows))
    (down_name, across_name), down, across = names, sides[0].labels, sides[1].labels
    limit = 220 if room.fits else 170
    y = alt.Y(
        "down:N", title=printable(down_name), **in_order(down), axis=alt.Axis(labelLimit=limit, labelOverlap=True)
    )
    is_slanted = max((len(label) for label in across), default=0) * len(across) > 40
    axis = alt.Axis(
        labelLimit=200,
        labelAngle=-50 if is_slanted else 0,
        labelOverlap=sides[1].is_scale or len(across) > 24,
    )
    x = alt.X("across:N", title=printable(across_name), **in_order(across), axis=axis)
    tips = [tip("down:N", down_name), tip("across:N", across_name), tip("value:Q", "estimate")]
    high = max((row["value"] for row in rows), default=0.0)
    cells = base.mark_rect().encode(x=x, y=y, color=_ramp(high, legend=room.fits), tooltip=tips)
    step = 24 if len(down) <= 20 else 12 if len(down) <= 35 else 8
    if not room.fits:
        step = min(step, 14)
    if not room.fits or len(down) * len(across) > 80 or len(across) > 7:
        return fitted(cells, room, height=alt.Step(step))
    ink = alt.when(alt.datum.value > 0.55 * high).then(alt.value("white")).otherwise(alt.value("black"))
    numbers = base.mark_text(fontSize=11).encode(x=x, y=y, text=alt.Text("value:Q", format=",.0f"), color=ink)
    return fitted(alt.layer(cells, numbers), room, height=alt.Step(step))


def _map(part: HistogramPart, room: Room) -> View:
    """Draw the cells of a grid in place; neighbouring cells are added up where there are too many."""
    grid = cast("Grid", part.attributes[0])  # what is measured in places
    side = GRID_SIDE if room.fits else room.side
    tall, wide = -(-grid.rows // side), -(-grid.columns // side)
    table = part.values.reshape(grid.rows, grid.columns)
    sums = np.add.reduceat(
        np.add.reduceat(table, np.arange(0, grid.rows, tall), axis=0), np.arange(0, grid.columns, wide), axis=1
    )
    low, high = grid.low or (0.0, 0.0), grid.high or (float(grid.rows), float(grid.columns))
    ends = [
        low[axis] + (high[axis] - low[axis]) * np.minimum(np.arange(0, count + step, step)[: parts + 1], count) / count
        for axis, (count, step, parts) in enumerate(
            ((grid.rows, tall, sums.shape[0]), (grid.columns, wide, sums.shape[1]))
        )
    ]
    digits = digits_for(sums.ravel())
    rows = [
        {
            "top": float(ends[0][i]),
            "bottom": float(ends[0][i + 1]),
            "left": float(ends[1][j]),
            "right": float(ends[1][j + 1]),
            "value": rounded(value, digits),
        }
        for (i, j), value in np.ndenumerate(sums)
    ]
    has_coordinates = grid.low is not None
    # coordinates grow upwards, as on a map; row numbers grow downwards, as in a table
    y = alt.Y(
        "top:Q", title=printable(grid.of[0]), scale=alt.Scale(nice=False, zero=False, reverse=not has_coordinates)
    )
    x = alt.X("left:Q", title=printable(grid.of[1]), scale=alt.Scale(nice=False, zero=False))
    cells = (
        alt.Chart(alt.Data(values=rows))
        .mark_rect()
        .encode(
            x=x,
            x2="right:Q",
            y=y,
            y2="bottom:Q",
            color=_ramp(float(sums.max()), legend=room.fits),
            tooltip=[tip("top:Q", grid.of[0]), tip("left:Q", grid.of[1]), tip("value:Q", "estimate")],
        )
    )
    notes = []
    if tall > 1 or wide > 1:
        notes.append(f"Blocks of {tall} x {wide} cells are added up; the table has all {grid.size:,}.")
    ratio = min(max(grid.rows / grid.columns, 0.4), 1.6)
    height = int((room.width - 60) * ratio)
    return View(fitted(cells, room, height=height), (*notes, *_below_zero(sums)), has_intervals=False)


def _ranges(query: Ranges, domain: Domain, values: Floats, interval: Interval) -> View:
    attribute = domain[query.name]
    part = part_of(domain, (query.name,), values, interval)
    first, last = query.runs(domain)
    if query.ranges is not None:
        picked = np.arange(min(len(values), 40))
        ends = zip(labels_of(attribute, first[picked]), labels_of(attribute, last[picked]), strict=True)
        labels = distinct([low if low == high else f"{low} to {high}" for low, high in ends])
        notes = (f"The first {len(picked)} of {len(values):,} ranges.",) if len(picked) < len(values) else ()
        return View(lying_bars(part.rows(picked, label=labels), query.name, ALONE), notes)
    step = -(-attribute.size // 40)
    picked = np.flatnonzero((first % step == 0) & ((last % step == 0) | (last == attribute.size - 1)))
    tails = labels_of(attribute, first[picked]), labels_of(attribute, last[picked])
    rows = part.rows(picked, down=tails[0], across=tails[1])
    names = [list(dict.fromkeys(tail)) for tail in tails]
    names[1] = [labels_of(attribute, np.array([place]))[0] for place in np.unique(last[picked])]
    sides = _Side(names[0], picked, is_scale=True), _Side(names[1], picked, is_scale=True)
    view = _heat(rows, sides, (f"{query.name} from", f"{query.name} to"), ALONE)
    notes = (f"Ranges with ends {step:,} values apart; the table has all {len(values):,}.",) if step > 1 else ()
    return View(view, (*notes, *_below_zero(values[picked])), has_intervals=False)


def _panels(parts: Sequence[HistogramPart]) -> View:
    """Several histograms: one small panel each."""
    drawn = [histogram_view(part, PANEL) for part in parts[:PANELS]]
    views: list[Any] = []
    notes: list[str] = []
    for part, view in zip(parts, drawn, strict=False):
        title = wrapped(" and ".join(map(printable, part.names)), 38)
        notes.extend(view.notes)
        views.append(
            view.layers.properties(title=alt.TitleParams(text=title, anchor="start", frame="group", fontSize=13))
        )
    if len(parts) > PANELS:
        notes.insert(0, f"The first {PANELS} of {len(parts):,} tables; the others are in the table of values.")
    if any(len(part.names) == 2 for part in parts[:PANELS]):
        notes.append("Darker means more people; each panel has its own scale.")
    panels = alt.concat(*views, columns=1).resolve_scale(color="independent", x="independent", y="independent")
    any_intervals = any(view.has_intervals for view in drawn)
    return View(panels, tuple(dict.fromkeys(notes)), has_intervals=any_intervals)


def _ramp(high: float, *, legend: bool) -> Any:
    scale = alt.Scale(scheme=RAMP, domain=[0, max(high, 1.0)], clamp=True)
    bar = alt.Legend(orient="bottom", gradientLength=200, format=NUMBER, tickCount=4) if legend else None
    return alt.Color("value:Q", title="people", scale=scale, legend=bar)


def _below_zero(values: Floats) -> tuple[str, ...]:
    return ("Noisy values below zero have the colour of zero.",) if (values < 0).any() else ()


# ---- which question is drawn how ------------------------------------------------------------------------------------


@draw.register
def _(query: Count, record: Any) -> View:
    return one_number("people", "people", record.values, *record.interval(LEVEL), error=record.plan.rmse)


@draw.register
def _(query: Total, record: Any) -> View:
    title = f"total of {query.unit_words(record.plan.policy.domain)}"
    if not query.by:
        return one_number(query.name, title, record.values, *record.interval(LEVEL), error=record.plan.rmse)
    return view_by_cell(part_of(record.plan.policy.domain, query.by, record.values, record.interval, title))


@draw.register
def _(query: Cumulative, record: Any) -> View:
    part = part_of(record.plan.policy.domain, (query.name,), record.values, record.interval)
    return _line(part, ALONE, thinned=True, what="people up to this value")


@draw.register
def _(query: Ranges, record: Any) -> View:
    domain = record.plan.policy.domain
    if query.lists_values(domain):
        # too many ranges for a picture of each: what any of them is read off
        part = part_of(domain, (query.name,), record.running, record.running_interval)
        view = _line(part, ALONE, thinned=True, what="people up to this value")
        return replace(view, notes=(*view.notes, "A range is the difference of two of these counts."))
    return _ranges(query, record.plan.policy.domain, record.values, record.interval)


@draw.register
def _(query: Rectangles, record: Any) -> View:
    domain = record.plan.policy.domain
    part = part_of(domain, query.names, record.values, record.interval)
    if query.rectangles is None:
        return histogram_view(part, ALONE)
    picked = np.arange(min(len(record.values), 40))
    # names are said once, so that labels are short
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
        part_of(domain, names, record.values[table], partial(interval, table))
        for names, table in zip(query.sets, tables, strict=True)
    ]
    return histogram_view(parts[0], ALONE) if len(parts) == 1 else _panels(parts)


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
    return cell_words(query.names, domain, at) if query.rectangles is None else _rectangle_words(query, domain, at)


def _rectangle_words(query: Rectangles, domain: Domain, at: int) -> str:
    """Say which rectangle it is."""
    return ", ".join(printable(f"{name} {low} to {high}") for name, low, high in _sides(query, domain, at))


def _sides(query: Rectangles, domain: Domain, at: int) -> list[tuple[str, Any, Any]]:
    """Return both sides of a listed rectangle: what lies along it, its first and its last value."""
    x_low, x_high, y_low, y_high = (query.rectangles or ())[at]
    down, across = query.names if len(query.names) == 2 else _lines_of(cast("Grid", domain[query.names[0]]))
    return [(down, x_low, x_high), (across, y_low, y_high)]


def _lines_of(grid: Grid) -> tuple[str, str]:
    """Return what the numbers of cells are called: like the columns that hold them, which coordinates are none of."""
    return grid.of if grid.low is None else ("row", "column")


@say_place.register
def _(query: Marginals, domain: Domain, at: int) -> str:
    for names, size in zip(query.sets, query.sizes(domain), strict=True):
        if at < size:
            return cell_words(names, domain, at)
        at -= size
    return "everyone"


@say_place.register
def _(query: Total, domain: Domain, at: int) -> str:
    return cell_words(query.by, domain, at) if query.by else "everyone"


def cell_words(names: tuple[str, ...], domain: Domain, at: int) -> str:
    """Say which cell of a table it is."""
    places = np.unravel_index(np.array([at]), [cells_of(domain[name]) for name in names])
    cell = zip(names, places, strict=True)
    return ", ".join(f"{printable(name)} {labels_of(domain[name], place)[0]}" for name, place in cell)


@list_parts.register
def _(query: Ranges, domain: Domain) -> tuple[str, int]:
    if query.ranges is None:
        return f"every range of neighbouring values of {printable(query.name)}", 1
    first, last = query.runs(domain)
    ends = [labels_of(domain[query.name], places[:MOST_LISTED]) for places in (first, last)]
    named = [low if low == high else f"{low} to {high}" for low, high in zip(*ends, strict=True)]
    return f"{printable(query.name)} {'; '.join(named)}", len(first)


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
    listed = (in_words([printable(name) for name in names]) for names in query.sets[:MOST_LISTED])
    return "; ".join(listed), len(query.sets)

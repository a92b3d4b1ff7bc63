"""Charts of tables of numbers: bars, points, lines, heat maps, maps of a grid, and panels of several tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

import altair as alt
import numpy as np

from tacit.arrays import Floats, Ints
from tacit.errors import printable
from tacit.policy.attributes import Attribute, Grid
from tacit.policy.domain import Domain
from tacit.release.results.value_files import with_interval
from tacit.report.charts.chart_parts import (
    ALONE,
    BLUE,
    LEVEL,
    LINE,
    NUMBER,
    PALETTE,
    PANEL,
    SKY,
    Room,
    Row,
    View,
    as_points,
    chart_of,
    coloured,
    digits_for,
    distinct,
    fitted,
    in_order,
    interval_rows,
    labels_of,
    level,
    level_at_once,
    lying_bars,
    lying_points,
    number_axis,
    rounded,
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
    """The answers of one table with their intervals at each level; `what` says what the numbers count."""

    domain: Domain
    names: tuple[str, ...]
    values: Floats
    interval: Interval
    what: str = "people"
    is_amount: bool = True  # an amount is drawn as a bar from zero; a mean is no amount

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes of the table."""
        return tuple(self.domain[name] for name in self.names)

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """The ends of the 95% intervals, each of which holds by itself."""
        return self.interval(LEVEL)

    def rows(self, picked: Ints, *, level: float = LEVEL, **columns: Sequence[Any]) -> list[Row]:
        """Return the picked answers with their intervals, and further columns, as rows of a chart."""
        lower, upper = self.ends if level == LEVEL else self.interval(level)
        return interval_rows(self.values[picked], lower[picked], upper[picked], **columns)


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
            return _columns(part, attribute, room) if attribute.size <= room.bars else line_view(part, room)
        case _ if attribute.size > room.bars:
            return line_view(part, room) if attribute.ordered else _largest(part, room, f"values of {name}")
        case _:
            places = np.arange(attribute.size)
            return View(_lying(part.rows(places, label=labels_of(attribute, places)), name, part, room))


def _lying(rows: list[Row], name: str, part: HistogramPart, room: Room) -> Any:
    return (lying_bars if part.is_amount else lying_points)(rows, name, room, what=part.what)


def view_by_cell(part: HistogramPart) -> View:
    """Return a view that adds up no neighbouring cells: their numbers are no counts."""
    if len(part.attributes) == 1 and part.attributes[0].measured != "places":
        return histogram_view(part, ALONE)
    return _largest(part, ALONE, "cells")


def one_number(name: str, title: str, values: Floats, lower: Floats, upper: Floats, *, error: float) -> View:
    """Return a point with its interval."""
    text = with_interval(values[0], lower[0], upper[0], error).replace(" (", "  (")
    base = chart_of(interval_rows(values[:1], lower[:1], upper[:1], label=[printable(name)], text=[text]))
    # the axis does not start at zero: the interval of a large count would be thinner than the point
    scale = alt.Scale(zero=False, padding=40)
    x = alt.X("value:Q", title=printable(title), scale=scale, axis=number_axis())
    points = base.mark_point(filled=True, size=120, color=BLUE, opacity=1).encode(x=x, tooltip=tips_for("label"))
    numbers = base.mark_text(dy=-18, fontSize=15, fontWeight="bold", color=LINE).encode(x=x, text="text:N")
    return View(fitted(alt.layer(whiskers(base, x="lower:Q", x2="upper:Q"), points, numbers), ALONE, height=56))


def _columns(part: HistogramPart, attribute: Attribute, room: Room) -> View:
    """Return a few numbers or dates as upright bars, or as points."""
    places = np.arange(attribute.size)
    at = [attribute.value(int(place)) for place in places]
    base = chart_of(part.rows(places, at=at))
    name = printable(part.names[0])
    x = alt.X("at:O", title=name, **in_order(at), axis=alt.Axis(labelAngle=0, labelOverlap=True))
    ends = whiskers(base, x=x, y="lower:Q", y2="upper:Q")
    if not part.is_amount:
        points = as_points(base).encode(x=x, y=level("y", part.what), tooltip=tips_for("at", name))
        return View(fitted(alt.layer(ends, points), room))
    y = alt.Y("value:Q", title=printable(part.what), axis=number_axis())
    bars = base.mark_bar(color=SKY).encode(x=x, y=y, tooltip=tips_for("at", name))
    return View(fitted(alt.layer(bars, ends), room))


def line_view(part: HistogramPart, room: Room, *, thinned: bool = False, what: str = "") -> View:
    """Return many ordered values as a line with a band; counts of cells are averaged over neighbours, not `thinned`."""
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
        # the intervals hold for single values and not for these means, so none are drawn
        values = np.add.reduceat(values, places) / np.diff(np.append(places, size))
        notes.append(f"Means over {width:,} neighbouring values; the table has all {size:,}.")
        has_band = False
    is_number = attribute.measured == "numbers"
    at: Sequence[Any] = [attribute.value(int(p)) for p in places] if is_number else labels_of(attribute, places)
    if has_band:
        rows = interval_rows(values, lower, upper, at=at)
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
    base = chart_of(rows)
    tips = tips_for("at", name) if has_band else [tip("at", name), tip("value:Q", "estimate")]
    line = base.mark_line(color=BLUE, interpolate=how, strokeWidth=1.5).encode(x=x, y=y, tooltip=tips)
    if not has_band:
        return View(fitted(line, room), tuple(notes), has_intervals=False)
    band = base.mark_area(color=BLUE, opacity=0.25, interpolate=how).encode(
        x=x, y=alt.Y("lower:Q", title=what) if part.is_amount else level("y", what, "lower:Q"), y2="upper:Q"
    )
    return View(fitted(alt.layer(band, line), room), tuple(notes))


def _largest(part: HistogramPart, room: Room, of: str) -> View:
    """Return a few cells in the order of the domain; of more, those with the largest released values.

    Noise has probably raised a value that is picked for being large. An interval that holds for each cell by itself
    would miss the truth of picked cells more often than it says, so the intervals here hold for all cells at once.
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
    """Return the positions of the largest values, as a stable sort would order them, in much less time."""
    if len(values) <= many:
        return np.argsort(-values, kind="stable")
    least = -np.partition(-values, many - 1)[many - 1]
    above = np.flatnonzero(values > least)
    chosen = np.concatenate([above, np.flatnonzero(values == least)[: many - len(above)]])
    return chosen[np.argsort(-values[chosen], kind="stable")]


@dataclass(frozen=True)
class Side:
    """One attribute as the axis of a table: the place of each of its values, and the label of each place."""

    labels: list[str]
    places: Ints
    note: str = ""
    is_scale: bool = False  # of numbers: every second label is enough


def _side(name: str, attribute: Attribute, weights: Floats, most: int) -> Side:
    size = len(weights)
    everything = np.arange(size)
    if size <= most:
        return Side(labels_of(attribute, everything), everything, is_scale=attribute.measured in ("numbers", "times"))
    if attribute.ordered:
        width = -(-size // most)
        first = everything[::width]
        last = np.minimum(first + width - 1, size - 1)
        ends = zip(labels_of(attribute, first), labels_of(attribute, last), strict=True)
        labels = [low if low == high else f"{low}–{high}" for low, high in ends]
        note = f"{printable(name)}: {width:,} neighbouring values are added up."
        return Side(labels, everything // width, note, is_scale=True)
    largest = np.sort(np.argsort(-weights, kind="stable")[:most])
    places = np.full(size, -1)
    places[largest] = np.arange(len(largest))
    note = f"{printable(name)}: the {most} largest of {size:,} released values."
    return Side(labels_of(attribute, largest), places, note)


def _two(part: HistogramPart, room: Room) -> View:
    """Return a table of two attributes: grouped bars or lines if one of them has few values, else a heat map."""
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
    visible = (first >= 0) & (second >= 0)
    np.add.at(sums, (first[visible], second[visible]), table[visible])
    # the longer axis goes down the page: there is more room for it, and its labels stay level
    down, across = (0, 1) if sums.shape[0] >= sums.shape[1] else (1, 0)
    digits = digits_for(sums.ravel())
    rows = [
        {"down": sides[down].labels[i], "across": sides[across].labels[j], "value": rounded(value, digits)}
        for (i, j), value in np.ndenumerate(sums if down == 0 else sums.T)
    ]
    view = heat_map(rows, (sides[down], sides[across]), (part.names[down], part.names[across]), room)
    notes = [side.note for side in sides if side.note]
    return View(view, (*notes, *below_zero_note(sums)), has_intervals=False)


def _by_group(part: HistogramPart, shape: tuple[int, ...], few: int, many: int) -> tuple[list[str], list[Row]]:
    """Return the names of the few groups, and rows with the group and the position of the other attribute."""
    everything = np.arange(len(part.values))
    places = np.unravel_index(everything, shape)
    groups = labels_of(part.attributes[few], np.arange(shape[few]))
    rows = part.rows(everything, group=[groups[place] for place in places[few]], place=[int(p) for p in places[many]])
    return groups, sorted(rows, key=lambda row: row["place"])


def _group_colour(name: str, groups: list[str], first: str = SKY) -> Any:
    legend = {"orient": "top", "direction": "horizontal", "labelLimit": 240, "titleLimit": 300, "columns": 2}
    return coloured("group:N", groups, [first, *PALETTE[1:]], title=printable(name), **legend)


def _grouped(part: HistogramPart, shape: tuple[int, ...], few: int, many: int, room: Room) -> View:
    groups, rows = _by_group(part, shape, few, many)
    labels = labels_of(part.attributes[many], np.arange(shape[many]))
    rows = [{**row, "label": labels[row["place"]]} for row in rows]
    base = chart_of(rows)
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
    notes = (f"One point for every {width:,} values; the table has all of them.",) if width > 1 else ()
    rows = [{**row, "at": attribute.value(row["place"])} for row in rows if row["place"] % width == 0]
    base = chart_of(rows)
    name = printable(part.names[many])
    x = alt.X("at:Q", title=name, scale=alt.Scale(zero=False, nice=False), axis=whole_axis(attribute))
    colour = _group_colour(part.names[few], groups, first=BLUE)
    band = base.mark_area(opacity=0.2, interpolate="step").encode(
        x=x, y=alt.Y("lower:Q", title=printable(part.what), axis=number_axis(), stack=None), y2="upper:Q", color=colour
    )
    tips = [tip("at", name), tip("group:N", part.names[few]), *tips_for("at")[1:]]
    line = base.mark_line(interpolate="step", strokeWidth=1.5).encode(x=x, y="value:Q", color=colour, tooltip=tips)
    return View(fitted(alt.layer(band, line), room), notes)


def heat_map(rows: list[Row], sides: tuple[Side, Side], names: tuple[str, str], room: Room) -> Any:
    """Return a heat map of rows that have the fields `down`, `across` and `value`."""
    base = chart_of(rows)
    (down_name, across_name), down, across = names, sides[0].labels, sides[1].labels
    limit = 220 if room.fits else 170
    y = alt.Y(
        "down:N", title=printable(down_name), **in_order(down), axis=alt.Axis(labelLimit=limit, labelOverlap=True)
    )
    is_slanted = max((len(label) for label in across), default=0) * len(across) > 40
    axis = alt.Axis(
        labelLimit=200, labelAngle=-50 if is_slanted else 0, labelOverlap=sides[1].is_scale or len(across) > 24
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
    """Return the cells of a grid where they lie; neighbouring cells are added up where there are too many."""
    grid = cast("Grid", part.attributes[0])
    side = GRID_SIDE if room.fits else room.side
    tall, wide = -(-grid.rows // side), -(-grid.columns // side)
    table = part.values.reshape(grid.rows, grid.columns)
    sums = np.add.reduceat(
        np.add.reduceat(table, np.arange(0, grid.rows, tall), axis=0), np.arange(0, grid.columns, wide), axis=1
    )
    low, high = grid.low or (0.0, 0.0), grid.high or (float(grid.rows), float(grid.columns))
    steps = zip((grid.rows, grid.columns), (tall, wide), sums.shape, low, high, strict=True)
    down, right = (
        (first + (last - first) * np.minimum(np.arange(parts + 1) * step, count) / count).tolist()
        for count, step, parts, first, last in steps
    )
    digits = digits_for(sums.ravel())
    rows = [
        {
            "top": down[i],
            "bottom": down[i + 1],
            "left": right[j],
            "right": right[j + 1],
            "value": rounded(value, digits),
        }
        for (i, j), value in np.ndenumerate(sums)
    ]
    has_coordinates = grid.low is not None
    # coordinates grow upwards, as on a map; row numbers grow downwards, as in a table
    scale = alt.Scale(nice=False, zero=False, reverse=not has_coordinates)
    y = alt.Y("top:Q", title=printable(grid.of[0]), scale=scale)
    x = alt.X("left:Q", title=printable(grid.of[1]), scale=alt.Scale(nice=False, zero=False))
    tips = [tip("top:Q", grid.of[0]), tip("left:Q", grid.of[1]), tip("value:Q", "estimate")]
    boxes = chart_of(rows).mark_rect().encode(x=x, x2="right:Q", y=y, y2="bottom:Q")
    cells = boxes.encode(color=_ramp(float(sums.max()), legend=room.fits), tooltip=tips)
    notes = []
    if tall > 1 or wide > 1:
        notes.append(f"Blocks of {tall} x {wide} cells are added up; the table has all {grid.size:,}.")
    ratio = min(max(grid.rows / grid.columns, 0.4), 1.6)
    height = int((room.width - 60) * ratio)
    return View(fitted(cells, room, height=height), (*notes, *below_zero_note(sums)), has_intervals=False)


def panels(parts: Sequence[HistogramPart]) -> View:
    """Return several histograms, each in a small panel."""
    views = [histogram_view(part, PANEL) for part in parts[:PANELS]]
    notes = [note for view in views for note in view.notes]
    layers = []
    for part, view in zip(parts, views, strict=False):
        text = wrapped(" and ".join(map(printable, part.names)), 38)
        title = alt.TitleParams(text=text, anchor="start", frame="group", fontSize=13)
        layers.append(view.layers.properties(title=title))
    if len(parts) > PANELS:
        notes.insert(0, f"The first {PANELS} of {len(parts):,} tables; the others are in the table of values.")
    if any(len(part.names) == 2 for part in parts[:PANELS]):
        notes.append("Darker means more people; each panel has its own scale.")
    both = alt.concat(*layers, columns=1).resolve_scale(color="independent", x="independent", y="independent")
    return View(both, tuple(dict.fromkeys(notes)), has_intervals=any(view.has_intervals for view in views))


def _ramp(high: float, *, legend: bool) -> Any:
    scale = alt.Scale(scheme=RAMP, domain=[0, max(high, 1.0)], clamp=True)
    bar = alt.Legend(orient="bottom", gradientLength=200, format=NUMBER, tickCount=4) if legend else None
    return alt.Color("value:Q", title="people", scale=scale, legend=bar)


def below_zero_note(values: Floats) -> tuple[str, ...]:
    """Return the sentence on negative values, which a colour ramp from zero cannot show, if there are any."""
    return ("Noisy values below zero have the colour of zero.",) if (values < 0).any() else ()

"""Charts of tables of numbers: bars, points, heat maps, maps of a grid, and panels of several tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import altair as alt
import numpy as np

from tacit.arrays import Floats, Ints
from tacit.errors import printable
from tacit.policy.attributes import Attribute, Grid
from tacit.release.results.value_files import with_interval
from tacit.report.charts.chart_parts import (
    ALONE,
    BLUE,
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
    wrapped,
)
from tacit.report.charts.line_charts import LINES, HistogramPart, group_colour, in_time, line_view, lines_by_group

MOST_TIMES: Final = 62  # across a heat map, before neighbours are added up
RAMP: Final = "blues"
PANELS: Final = 12
MOST_GROUPED: Final = 12  # values with a bar for each group; an order that has more becomes an axis
GRID_SIDE: Final = 70  # 4,900 cells


def histogram_view(part: HistogramPart, room: Room) -> View:
    """Return the view that suits the attributes of a table."""
    if len(part.attributes) == 2:
        return _two(part, room)
    if len(part.attributes) != 1:
        return _several(part, room)
    ((name,), (attribute,)) = part.names, part.attributes
    match attribute.measured:
        case "sets":
            return _largest(part, room, f"items of {name}")
        case "places":
            return _map(part, room)
        case "numbers":
            return _columns(part, attribute, room) if attribute.size <= room.bars else line_view(part, room)
        case "times":
            return line_view(part, room) if in_time(attribute) else _columns(part, attribute, room)
        case _ if attribute.size > room.bars:
            return line_view(part, room) if attribute.ordered else _largest(part, room, f"values of {name}")
        case _:
            places = np.arange(attribute.size)
            return View(_lying(part.rows(places, label=labels_of(attribute, places)), name, part, room))


def _lying(rows: list[Row], name: str, part: HistogramPart, room: Room) -> Any:
    return (lying_bars if part.is_amount else lying_points)(rows, name, room, what=part.what)


def view_by_cell(part: HistogramPart) -> View:
    """Return a view that adds up no cells: their numbers are no counts."""
    if len(part.attributes) == 1 and part.attributes[0].measured != "places":
        return histogram_view(part, ALONE)
    return _lines_of_cells(part, ALONE) or _largest(part, ALONE, "cells")


def _lines_of_cells(part: HistogramPart, room: Room) -> View | None:
    """Return every cell on one of a few lines along an axis, if there is one that is time or long."""
    along = part.axis
    if along is None or len(part.values) > len(LINES) * part.shape[along]:
        return None
    if not in_time(part.attributes[along]) and part.shape[along] <= MOST_GROUPED:
        return None
    return lines_by_group(part, along, room)


def _several(part: HistogramPart, room: Room) -> View:
    """Return three or more attributes: all cells, if they are few or fit on a few lines, and else sums of them.

    Sums are shown for every value of each attribute, along time where there is time: the largest of many cells would
    be those that noise has raised most.
    """
    if drawn := _lines_of_cells(part, room):
        return drawn
    if len(part.values) <= room.top:
        return _largest(part, room, "cells")
    along = next((at for at, attribute in enumerate(part.attributes) if in_time(attribute)), None)
    others = [at for at in range(len(part.names)) if at != along]
    tables = [part.summed((at,) if along is None else (along, at)) for at in others]
    view = panels(tables)
    note = f"Sums over the other attributes; the table has all {len(part.values):,} cells."
    has_intervals = view.has_intervals and not any(np.isnan(table.ends[0]).all() for table in tables)
    return replace(view, notes=(note, *view.notes), are="Sums of estimates", has_intervals=has_intervals)


def one_number(
    name: str, title: str, values: Floats, lower: Floats, upper: Floats, *, error: float, text: str | None = None
) -> View:
    """Return a point with its interval; `text` says what is known of it where there is none."""
    text = (text or with_interval(values[0], lower[0], upper[0], error)).replace(" (", "  (", 1)
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
    at = part.cells or [attribute.value(int(place)) for place in places]
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
    if (room.fits or any(map(in_time, part.attributes))) and (drawn := _lines_of_cells(part, room)):
        return drawn
    if room.fits and table.shape[few] <= len(PALETTE) and table.shape[many] <= MOST_GROUPED:
        return _grouped(part, few, many, room)
    sides = [
        _side(name, attribute, table.sum(axis=1 - axis), MOST_TIMES if in_time(attribute) else room.side)
        for axis, (name, attribute) in enumerate(zip(part.names, part.attributes, strict=True))
    ]
    sums = np.zeros([len(side.labels) for side in sides])
    first, second = np.meshgrid(sides[0].places, sides[1].places, indexing="ij")
    visible = (first >= 0) & (second >= 0)
    np.add.at(sums, (first[visible], second[visible]), table[visible])
    # time goes across; otherwise the longer axis goes down: there is more room for it, and its labels stay level
    is_time = [in_time(attribute) for attribute in part.attributes]
    down, across = (0, 1) if is_time < is_time[::-1] or (sums.shape[0] >= sums.shape[1] and not is_time[0]) else (1, 0)
    digits = digits_for(sums.ravel())
    rows = [
        {"down": sides[down].labels[i], "across": sides[across].labels[j], "value": rounded(value, digits)}
        for (i, j), value in np.ndenumerate(sums if down == 0 else sums.T)
    ]
    view = heat_map(rows, (sides[down], sides[across]), (part.names[down], part.names[across]), room, part.what)
    notes = [side.note for side in sides if side.note]
    return View(view, (*notes, *below_zero_note(sums)), has_intervals=False)


def _grouped(part: HistogramPart, few: int, many: int, room: Room) -> View:
    everything = np.arange(len(part.values))
    places = np.unravel_index(everything, part.shape)
    groups, labels = (labels_of(part.attributes[at], np.arange(part.shape[at])) for at in (few, many))
    group, label = [groups[place] for place in places[few]], [labels[place] for place in places[many]]
    rows = part.rows(everything, group=group, label=label)
    base = chart_of(rows)
    y = alt.Y("label:N", title=printable(part.names[many]), **in_order(labels), axis=alt.Axis(labelLimit=240))
    offset = alt.YOffset("group:N", **in_order(groups))
    tips = [tip("label:N", part.names[many]), tip("group:N", part.names[few]), *tips_for("label")[1:]]
    x = alt.X("value:Q", title=printable(part.what), axis=number_axis())
    bars = base.mark_bar().encode(
        x=x, y=y, yOffset=offset, color=group_colour(part.names[few], groups, PALETTE), tooltip=tips
    )
    rules = whiskers(base, y=y, yOffset=offset, x="lower:Q", x2="upper:Q")
    height = alt.Step(max(14, 30 // len(groups)), **{"for": "offset"})
    return View(fitted(alt.layer(bars, rules), room, height=height))


def heat_map(rows: list[Row], sides: tuple[Side, Side], names: tuple[str, str], room: Room, what: str) -> Any:
    """Return a heat map of rows that have the fields `down`, `across` and `value`, which is a number of `what`."""
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
    cells = base.mark_rect().encode(x=x, y=y, color=_ramp(high, what, legend=room.fits), tooltip=tips)
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
    cells = boxes.encode(color=_ramp(float(sums.max()), part.what, legend=room.fits), tooltip=tips)
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
        notes.append(f"Darker means more {parts[0].what}; each panel has its own scale.")
    both = alt.concat(*layers, columns=1).resolve_scale(color="independent", x="independent", y="independent")
    return View(both, tuple(dict.fromkeys(notes)), has_intervals=any(view.has_intervals for view in views))


def _ramp(high: float, what: str, *, legend: bool) -> Any:
    scale = alt.Scale(scheme=RAMP, domain=[0, max(high, 1.0)], clamp=True)
    bar = alt.Legend(orient="bottom", gradientLength=200, format=NUMBER, tickCount=4) if legend else None
    return alt.Color("value:Q", title=printable(what), scale=scale, legend=bar)


def below_zero_note(values: Floats) -> tuple[str, ...]:
    """Return the sentence on negative values, which a colour ramp from zero cannot show, if there are any."""
    return ("Noisy values below zero have the colour of zero.",) if (values < 0).any() else ()

"""Charts of releases: the estimates, their 95% intervals, and in words what is shown and what is left out.

Everything drawn was released, so a chart may be shown to anyone. Charts hold at most a few thousand marks: long axes
are merged or thinned and long lists cut after the largest released values, and the subtitle says so. Colours are the
Okabe-Ito palette and one blue ramp, which colour-blind readers tell apart; sizes are made for a phone held upright.

Data fields have fixed names (`label`, `at`, `value`, `lower`, `upper` ..): what users call their attributes only ever
appears as text, so that dots and brackets in a name never matter.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt
import numpy as np
import numpy.typing as npt
import vl_convert

from tacit.plan.explain import OF_THE_ROWS_KEPT, Explanation, shown
from tacit.plan.queries import Count, Cumulative, Marginals, Ranges, Total
from tacit.plan.selections import Selection
from tacit.policy.attributes import Attribute, Grid
from tacit.policy.domain import Domain
from tacit.release.number_texts import number_text, with_interval
from tacit.release.record import ReleaseRecord
from tacit.release.selected import SelectionRecord

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Row = dict[str, Any]

BLUE: Final = "#0072B2"
SKY: Final = "#56B4E9"  # light enough for the interval's line to be seen on a bar
PALETTE: Final = (SKY, "#E69F00", "#009E73", "#CC79A7")
LINE: Final = "#222222"
INK: Final = "#555555"  # readable on white and on black
RAMP: Final = "blues"

WIDTH: Final = 480  # as wide as the report's column: larger letters on a screen, readable ones on a phone
MOST_LISTED: Final = 12  # ranges or sets that are named one by one in a sentence
PANELS: Final = 12
TOP: Final = 30
MOST_BARS: Final = 60
MOST_POINTS: Final = 1_500
GRID_SIDE: Final = 70  # 4,900 cells
NUMBER: Final = ",~f"
LEVEL: Final = 0.95
# a chart library that keeps labels in an object finds these there before it has put anything in
_JAVASCRIPT: Final = frozenset(
    [
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "toLocaleString",
        "toString",
        "valueOf",
        "__proto__",
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
    ]
)


@dataclass(frozen=True)
class Room:
    """How much space a view has: alone on its chart, or as one of several panels."""

    width: int
    height: int
    bar: int
    top: int
    bars: int
    points: int
    side: int
    fits: bool


ALONE: Final = Room(WIDTH, 220, 22, TOP, MOST_BARS, MOST_POINTS, 50, fits=True)
PANEL: Final = Room(310, 150, 16, 10, 40, 150, 16, fits=False)


@dataclass(frozen=True)
class _Part:
    """The answers of one histogram, with the names of its attributes."""

    names: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    values: Floats
    lower: Floats
    upper: Floats

    def rows(self, picked: Ints, **columns: Sequence[Any]) -> list[Row]:
        """Return the picked answers as rows with more columns beside."""
        found = []
        for number, place in enumerate(picked):
            row = {name: column[number] for name, column in columns.items()}
            found.append({**row, **interval_row(self.values[place], self.lower[place], self.upper[place])})
        return found


@dataclass(frozen=True)
class View:
    """A part of a chart and the sentences that say what it leaves out."""

    layers: Any
    notes: tuple[str, ...] = ()
    has_intervals: bool = True
    are: str = "Estimates"  # what is drawn: estimates, or verdicts alone


def chart(record: ReleaseRecord) -> Any:
    """Return an Altair chart of a release: the estimates with their 95% intervals.

    The view depends on what was asked: bars for few values, a line with a band for many, a heat map for two
    attributes or a grid, the largest cells for more, panels for several marginals, a point for one number.
    """
    query, domain = record.plan.query, record.plan.policy.domain
    if isinstance(record, SelectionRecord):
        from tacit.report.selection_charts import selection_view

        return _finished(selection_view(record), record)
    lower, upper = record.interval(LEVEL)
    numbers = (record.values, lower, upper)
    match query:
        case Count() | Total():
            view = _one_number(query, *numbers, error=record.plan.rmse)
        case Cumulative():
            view = _line(_part(domain, (query.name,), *numbers), ALONE, thinned=True, what="people up to this value")
        case Ranges():
            view = _ranges(query, domain, *numbers)
        case Marginals():
            ends = np.cumsum(query.sizes(domain))[:-1]
            split = [np.split(column, ends) for column in numbers]
            parts = [_part(domain, names, *each) for names, *each in zip(query.sets, *split, strict=True)]
            view = _histogram(parts[0], ALONE) if len(parts) == 1 else _panels(parts)
    return _finished(view, record)


def chart_text(record: ReleaseRecord) -> str:
    """Return what a chart shows in a sentence or two, for readers who cannot see it."""
    query, domain = record.plan.query, record.plan.policy.domain
    said = f"{question(record)}{condition(query)}."
    if isinstance(record, SelectionRecord):
        from tacit.report.selection_charts import selection_text

        return f"{said} {selection_text(record)}"
    lower, upper = record.interval(LEVEL)
    best = int(np.argmax(record.values))
    ends = said_with_ends(record, record.values[best], lower[best], upper[best])
    if len(record.values) == 1:
        return f"{said} Released value: {ends}."
    return f"{said} {len(record.values):,} released values; the largest is {ends}, for {_place(query, domain, best)}."


def comparison_chart(explanations: Mapping[str, Explanation] | Sequence[Explanation]) -> Any:
    """Return a chart of the expected error of each release beside that of plain differential privacy."""
    named = (
        [*explanations.items()] if isinstance(explanations, Mapping) else [(str(e.plan.query), e) for e in explanations]
    )
    listed = [(name, said.plan.rmse, said.plain.rmse) for name, said in named]
    notes: list[str] = []
    if len(listed) > TOP:
        notes.append(f"The first {TOP} of {len(listed):,} releases.")
        listed = listed[:TOP]
    labels = _distinct([name for name, _, _ in listed])
    positive = [error for _, *errors in listed for error in errors if error > 0] or [1.0]
    # zero has no place on a logarithmic axis: exact answers stand at its left end, and say so
    left = min(positive) / 2
    rows: list[Row] = []
    for label, (_, here, plain) in zip(labels, listed, strict=True):
        for kind, error in (("this policy", here), ("plain differential privacy", plain)):
            rows.append(
                {
                    "label": label,
                    "kind": kind,
                    "error": max(error, left),
                    "said": _error_text(error),
                    "differs": _error_text(here) != _error_text(plain),
                }
            )
    spans = [
        {"label": label, "low": max(min(here, plain), left), "high": max(here, plain, left)}
        for label, (_, here, plain) in zip(labels, listed, strict=True)
    ]
    x = alt.X(
        "error:Q",
        title="expected error of one answer (logarithmic)",
        scale=alt.Scale(type="log", domain=[left, max(positive) * 2.5], nice=False),
        axis=alt.Axis(format=",~r", tickCount=5, labelOverlap=True, grid=False),
    )
    y = alt.Y("label:N", title=None, **in_order(labels))
    kinds = ["this policy", "plain differential privacy"]
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
    if any(isinstance(said.plan.query, Total) for _, said in named):
        notes.append("In people; for a total, in units of what is added up.")
    return _styled(
        fitted(view, ALONE, height=alt.Step(34)),
        "Expected error: this policy and plain differential privacy",
        ["At the same epsilon; further left is better.", *notes],
    )


def chart_png(drawn: Any, *, scale: float = 2.0) -> bytes:
    """Return a chart as a PNG image. Nothing is fetched from anywhere."""
    return bytes(vl_convert.vegalite_to_png(drawn.to_dict(), scale=scale, **_OFFLINE))


def chart_svg(drawn: Any) -> str:
    """Return a chart as an SVG image. Nothing is fetched from anywhere."""
    return str(vl_convert.vegalite_to_svg(drawn.to_dict(), **_OFFLINE))


_OFFLINE: Final[dict[str, Any]] = {
    "vl_version": ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2]),
    "allowed_base_urls": [],
}


# ---- views ----------------------------------------------------------------------------------------------------------


def _part(domain: Domain, names: tuple[str, ...], values: Floats, lower: Floats, upper: Floats) -> _Part:
    return _Part(names, tuple(domain[name] for name in names), values, lower, upper)


def _histogram(part: _Part, room: Room) -> View:
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
            return View(lying_bars(part.rows(places, label=labels_of(attribute, places)), name, room))


def _one_number(query: Count | Total, values: Floats, lower: Floats, upper: Floats, *, error: float) -> View:
    label = "people" if isinstance(query, Count) else printable(query.name)
    said = with_interval(values[0], lower[0], upper[0], error).replace(" (", "  (")
    rows = [{"label": label, "said": said, **interval_row(values[0], lower[0], upper[0])}]
    base = alt.Chart(alt.Data(values=rows))
    # not from zero: the interval of a large count would be thinner than the point
    scale = alt.Scale(zero=False, padding=40)
    x = alt.X(
        "value:Q", title=f"total of {label}" if isinstance(query, Total) else label, scale=scale, axis=number_axis()
    )
    points = base.mark_point(filled=True, size=120, color=BLUE, opacity=1).encode(x=x, tooltip=tips_for("label"))
    numbers = base.mark_text(dy=-18, fontSize=15, fontWeight="bold", color=LINE).encode(x=x, text="said:N")
    return View(fitted(alt.layer(whiskers(base, x="lower:Q", x2="upper:Q"), points, numbers), ALONE, height=56))


def _columns(part: _Part, attribute: Attribute, room: Room) -> View:
    """Few numbers or dates: upright bars."""
    places = np.arange(attribute.size)
    at = [attribute.value(int(place)) for place in places]
    base = alt.Chart(alt.Data(values=part.rows(places, at=at)))
    name = printable(part.names[0])
    x = alt.X("at:O", title=name, **in_order(at), axis=alt.Axis(labelAngle=0, labelOverlap=True))
    bars = base.mark_bar(color=SKY).encode(
        x=x, y=alt.Y("value:Q", title="people", axis=number_axis()), tooltip=tips_for("at", name)
    )
    return View(fitted(alt.layer(bars, whiskers(base, x=x, y="lower:Q", y2="upper:Q")), room))


def _line(part: _Part, room: Room, *, thinned: bool = False, what: str = "people") -> View:
    """Many ordered values: a line with a band. Cumulative counts are thinned, cell counts averaged over neighbours."""
    attribute, size = part.attributes[0], len(part.values)
    width = -(-size // room.points)
    notes: list[str] = []
    places = np.arange(0, size, width)
    values, lower, upper = part.values, part.lower, part.upper
    has_band = bool((lower < upper).any())
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
    rows = [
        {"at": here, **(interval_row(value, low, high) if has_band else {"value": _rounded(value)})}
        for here, value, low, high in zip(at, values, lower[: len(values)], upper[: len(values)], strict=True)
    ]
    name = printable(part.names[0])
    x = (
        alt.X("at:Q", title=name, scale=alt.Scale(zero=False, nice=False), axis=_whole(attribute))
        if is_number
        else alt.X("at:O", title=name, **in_order(at), axis=alt.Axis(labelOverlap=True, labelAngle=-40))
    )
    y = alt.Y("value:Q", title=what, axis=number_axis())
    how = "monotone" if thinned and width > 1 else "step-after" if thinned else "step"
    base = alt.Chart(alt.Data(values=rows))
    tips = tips_for("at", name) if has_band else [tip("at", name), tip("value:Q", "estimate")]
    line = base.mark_line(color=BLUE, interpolate=how, strokeWidth=1.5).encode(x=x, y=y, tooltip=tips)
    if not has_band:
        return View(fitted(line, room), tuple(notes), has_intervals=False)
    band = base.mark_area(color=BLUE, opacity=0.25, interpolate=how).encode(
        x=x, y=alt.Y("lower:Q", title=what), y2="upper:Q"
    )
    return View(fitted(alt.layer(band, line), room), tuple(notes))


def lying_bars(
    rows: list[Row], name: str, room: Room, *, what: str = "people", limit: int | None = None, colour: str = SKY
) -> Any:
    """Lying bars with interval rules, in the order of the rows; a dashed line at the limit, if there is one."""
    base = alt.Chart(alt.Data(values=rows))
    labels = [row["label"] for row in rows]
    longest = 240 if room.fits else 170
    y = alt.Y("label:N", title=printable(name), **in_order(labels), axis=alt.Axis(labelLimit=longest, titleLimit=200))
    x = alt.X("value:Q", title=what, axis=number_axis(few=not room.fits))
    bars = base.mark_bar(color=colour).encode(x=x, y=y, tooltip=tips_for("label", name))
    layers = [bars, whiskers(base, y=y, x="lower:Q", x2="upper:Q")]
    if limit is not None:
        line = alt.Chart(alt.Data(values=[{"at": limit}])).mark_rule(color=LINE, strokeDash=[4, 3])
        layers.append(line.encode(x="at:Q"))
    return fitted(alt.layer(*layers), room, height=alt.Step(room.bar))


def _largest(part: _Part, room: Room, of: str) -> View:
    """Too many cells to show all: those with the largest released values."""
    size = len(part.values)
    order = np.argsort(-part.values, kind="stable")[: room.top]
    sizes = [attribute.cells for attribute in part.attributes]
    columns = [
        labels_of(attribute, places)
        for attribute, places in zip(part.attributes, np.unravel_index(order, sizes), strict=True)
    ]
    labels = _distinct([", ".join(parts) for parts in zip(*columns, strict=True)])
    title = ", ".join(part.names)
    notes = (f"The {len(order)} largest released values out of {size:,} {of}.",) if size > len(order) else ()
    return View(lying_bars(part.rows(order, label=labels), title, room), notes)


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


def _two(part: _Part, room: Room) -> View:
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
    rows = [
        {"down": sides[down].labels[i], "across": sides[across].labels[j], "value": _rounded(value)}
        for (i, j), value in np.ndenumerate(sums if down == 0 else sums.T)
    ]
    view = _heat(rows, (sides[down], sides[across]), (part.names[down], part.names[across]), room)
    notes = [side.note for side in sides if side.note]
    return View(view, (*notes, *_below_zero(sums)), has_intervals=False)


def _by_group(part: _Part, shape: tuple[int, ...], few: int, many: int) -> tuple[list[str], list[Row]]:
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


def _grouped(part: _Part, shape: tuple[int, ...], few: int, many: int, room: Room) -> View:
    groups, rows = _by_group(part, shape, few, many)
    labels = labels_of(part.attributes[many], np.arange(shape[many]))
    rows = [{**row, "label": labels[row["place"]]} for row in rows]
    base = alt.Chart(alt.Data(values=rows))
    y = alt.Y("label:N", title=printable(part.names[many]), **in_order(labels), axis=alt.Axis(labelLimit=240))
    offset = alt.YOffset("group:N", **in_order(groups))
    tips = [tip("label:N", part.names[many]), tip("group:N", part.names[few]), *tips_for("label")[1:]]
    x = alt.X("value:Q", title="people", axis=number_axis())
    bars = base.mark_bar().encode(x=x, y=y, yOffset=offset, color=_group_colour(part.names[few], groups), tooltip=tips)
    rules = whiskers(base, y=y, yOffset=offset, x="lower:Q", x2="upper:Q")
    height = alt.Step(max(14, 30 // len(groups)), **{"for": "offset"})
    return View(fitted(alt.layer(bars, rules), room, height=height))


def _lines(part: _Part, shape: tuple[int, ...], few: int, many: int, room: Room) -> View:
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
    x = alt.X("at:Q", title=name, scale=alt.Scale(zero=False, nice=False), axis=_whole(attribute))
    colour = _group_colour(part.names[few], groups, first=BLUE)
    band = base.mark_area(opacity=0.2, interpolate="step").encode(
        x=x, y=alt.Y("lower:Q", title="people", axis=number_axis(), stack=None), y2="upper:Q", color=colour
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


def _map(part: _Part, room: Room) -> View:
    """Draw the cells of a grid in place; neighbouring cells are added up where there are too many."""
    (grid,) = part.attributes
    assert isinstance(grid, Grid)  # noqa: S101 - chosen by the caller
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
    rows = [
        {
            "top": float(ends[0][i]),
            "bottom": float(ends[0][i + 1]),
            "left": float(ends[1][j]),
            "right": float(ends[1][j + 1]),
            "value": _rounded(value),
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


def _ranges(query: Ranges, domain: Domain, values: Floats, lower: Floats, upper: Floats) -> View:
    attribute = domain[query.name]
    part = _part(domain, (query.name,), values, lower, upper)
    first, last = query.ends(domain)
    if query.ranges is not None:
        picked = np.arange(min(len(values), 40))
        ends = zip(labels_of(attribute, first[picked]), labels_of(attribute, last[picked]), strict=True)
        labels = _distinct([low if low == high else f"{low} to {high}" for low, high in ends])
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


def _panels(parts: Sequence[_Part]) -> View:
    """Several histograms: one small panel each."""
    drawn = [_histogram(part, PANEL) for part in parts[:PANELS]]
    views: list[Any] = []
    notes: list[str] = []
    for part, view in zip(parts, drawn, strict=False):
        title = _wrapped(" and ".join(map(printable, part.names)), 38)
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


# ---- words and looks ------------------------------------------------------------------------------------------------


def question(record: ReleaseRecord) -> str:
    """Return in words what was asked, without its condition."""
    query, domain = record.plan.query, record.plan.policy.domain
    match query:
        case Selection():
            from tacit.report.selection_charts import selection_question

            return selection_question(query, domain)
        case Count():
            return "Number of people"
        case Total():
            return f"Total of {printable(query.name)}"
        case Cumulative():
            return f"People with {printable(query.name)} up to each value"
        case Ranges():
            return f"People by range of {printable(query.name)}"
        case Marginals(sets=(names,)):
            if query.is_items(domain):
                return f"People by item of {printable(names[0])}"
            return f"People by {_and([printable(name) for name in names])}"
        case Marginals():
            ways = {len(names) for names in query.sets}
            kind = {1: "single attributes", 2: "pairs of attributes"}.get(next(iter(ways)), "sets of attributes")
            return f"People by {kind if len(ways) == 1 else 'sets of attributes'}"


def parts(record: ReleaseRecord) -> str:
    """Return in words what the single tables or ranges of a question are, where it has several; or nothing."""
    query, domain = record.plan.query, record.plan.policy.domain
    match query:
        case Ranges(ranges=None):
            return f"every range of neighbouring values of {printable(query.name)}"
        case Ranges():
            first, last = query.ends(domain)
            ends = [labels_of(domain[query.name], places[:MOST_LISTED]) for places in (first, last)]
            named = [low if low == high else f"{low} to {high}" for low, high in zip(*ends, strict=True)]
            said, many = f"{printable(query.name)} {'; '.join(named)}", len(first)
        case Marginals() if len(query.sets) > 1:
            said = "; ".join(_and([printable(name) for name in names]) for names in query.sets[:MOST_LISTED])
            many = len(query.sets)
        case _:
            return ""
    return said if many <= MOST_LISTED else f"{said}; and {many - MOST_LISTED:,} more"


def condition(query: Any) -> str:
    """Return in words whom a question is restricted to, or nothing."""
    return "" if query.where is None else f", where {printable(str(query.where))}"


def _place(query: Any, domain: Domain, best: int) -> str:
    """Say what one answer is about, without listing all of them."""
    match query:
        case Cumulative():
            return f"{printable(query.name)} up to {labels_of(domain[query.name], np.array([best]))[0]}"
        case Ranges():
            first, last = query.ends(domain)
            ends = labels_of(domain[query.name], np.array([first[best], last[best]]))
            return f"{printable(query.name)} from {ends[0]} to {ends[1]}"
        case Marginals():
            for names, size in zip(query.sets, query.sizes(domain), strict=True):
                if best < size:
                    sizes = [domain[name].cells for name in names]
                    places = np.unravel_index(np.array([best]), sizes)
                    cell = zip(names, places, strict=True)
                    return ", ".join(f"{printable(name)} {labels_of(domain[name], at)[0]}" for name, at in cell)
                best -= size
    return "everyone"


def _finished(view: View, record: ReleaseRecord) -> Any:
    plan = record.plan
    said = [] if plan.query.where is None else [f"where {printable(str(plan.query.where))}"]
    if plan.is_exact:
        said.append(f"Exact, {OF_THE_ROWS_KEPT}: no secret edge changes these answers.")
    elif view.has_intervals:
        said.append(f"{view.are} with 95% intervals, epsilon {shown(plan.epsilon)}.")
    elif view.are == "Estimates":
        said.append(f"Estimates, epsilon {shown(plan.epsilon)}; the table has their 95% intervals.")
    else:
        said.append(f"{view.are}, epsilon {shown(plan.epsilon)}.")
    drawn = _styled(view.layers, question(record), [*said, *view.notes])
    return drawn.properties(description=chart_text(record))


def fitted(view: Any, room: Room, *, height: Any = None) -> Any:
    """Give a view its size; a view alone has its axes and labels inside that width."""
    sized = view.properties(width=room.width, height=room.height if height is None else height)
    # only across: a long title must not eat up the height of what it is the title of
    return sized.properties(autosize=alt.AutoSizeParams(type="fit-x", contains="padding")) if room.fits else sized


def _styled(view: Any, title: str, said: Sequence[str]) -> Any:
    lines = [line for sentence in said for line in _wrapped(sentence, 74)]
    heading = alt.TitleParams(
        text=_wrapped(title, 52),
        subtitle=lines,
        anchor="start",
        frame="bounds",
        fontSize=16,
        subtitleFontSize=12,
        subtitleColor=INK,
        offset=12,
    )
    plain_title = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    return view.properties(title=heading, background="white", padding=8).configure(
        aria=False,  # one text alternative for the whole chart, not one for every mark
        axis=alt.AxisConfig(gridColor="#dddddd", **plain_title),
        legend=alt.LegendConfig(symbolOpacity=1, **plain_title),
        view=alt.ViewConfig(stroke=None),
    )


def in_order(labels: Sequence[Any]) -> dict[str, Any]:
    """Keep values in this order.

    By the scale, not by a list to sort by: that list would become an expression, and a user's text code in it.
    """
    return {"sort": None, "scale": alt.Scale(domain=list(labels))}


def whiskers(base: Any, **where: Any) -> Any:
    """Rules from the lower to the upper end of each interval; none where the answer is exact."""
    return base.transform_filter("datum.lower < datum.upper").mark_rule(color=LINE, strokeWidth=1.5).encode(**where)


def _ramp(high: float, *, legend: bool) -> Any:
    scale = alt.Scale(scheme=RAMP, domain=[0, max(high, 1.0)], clamp=True)
    bar = alt.Legend(orient="bottom", gradientLength=200, format=NUMBER, tickCount=4) if legend else None
    return alt.Color("value:Q", title="people", scale=scale, legend=bar)


def number_axis(*, few: bool = False) -> Any:
    """Return an axis of whole numbers with few labels."""
    return alt.Axis(format=NUMBER, tickCount=3 if few else 4, labelOverlap=True)


def _whole(attribute: Any) -> Any:
    """Numbers on an axis; four digits stay together, as in years."""
    if attribute.unit != 1:
        return alt.Axis(labelOverlap=True, tickCount=6)
    long = max(abs(attribute.number(place)) for place in (0, attribute.size - 1)) >= 10_000
    return alt.Axis(format=",d" if long else "d", tickMinStep=1, labelOverlap=True, tickCount=6)


def tip(where: str, title: str) -> Any:
    """Return a line of the tooltip; fields without a type are names."""
    is_number = where.endswith(":Q")
    return alt.Tooltip(
        where if ":" in where else f"{where}:N",
        title=printable(title),
        **({"format": ",.1f"} if is_number else {}),
    )


def tips_for(field: str, title: str = "") -> list[Any]:
    """Return the tooltip of a value with its interval."""
    return [
        tip(field, title or field),
        tip("value:Q", "estimate"),
        tip("lower:Q", "95% interval from"),
        tip("upper:Q", "to"),
    ]


def _below_zero(values: Floats) -> tuple[str, ...]:
    return ("Noisy values below zero have the colour of zero.",) if (values < 0).any() else ()


def labels_of(attribute: Attribute, places: npt.NDArray[Any]) -> list[str]:
    """Return what values are called on a chart: always different texts for different values."""
    match attribute.measured:
        case "sets":
            return _distinct([attribute.cell(int(place)) for place in places])
        case "truth":
            return [attribute.words(attribute.value(int(place))) for place in places]
        case "names":
            # told apart among all values, not only those shown here, so that a value has the same name everywhere
            named = _distinct(attribute.every_value())
            return [named[int(place)] for place in places]
        case _:
            return [str(attribute.value(int(place))) for place in places]


def _distinct(values: Sequence[Any]) -> list[str]:
    """Return printable texts; where two would be the same (1 and "1"), they are quoted or numbered."""
    texts = [_label(str(value)) for value in values]
    if len(set(texts)) == len(texts):
        return texts
    texts = [printable(repr(value)) for value in values]
    if len(set(texts)) == len(texts):
        return texts
    return [f"{text} #{number}" for number, text in enumerate(texts, start=1)]


def _label(text: str) -> str:
    """Return a text that can stand at an axis: not empty, and no name that every JavaScript object has."""
    return f"'{text}'" if text in _JAVASCRIPT else printable(text) or "(empty)"


def printable(text: str) -> str:
    """Replace what an image file cannot hold, such as control characters."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def interval_row(value: Any, lower: Any, upper: Any) -> Row:
    """Return a value with its interval as fields of a chart."""
    return {"value": _rounded(value), "lower": _rounded(lower, np.floor), "upper": _rounded(upper, np.ceil)}


def _rounded(value: Any, turn: Callable[[float], float] = np.round) -> float:
    """Two decimals are finer than any pixel here, and keep files small; the ends of intervals are turned outwards."""
    return float(turn(round(float(value) * 100, 6))) / 100


def said_with_ends(record: ReleaseRecord, value: float, lower: float, upper: float) -> str:
    """Return a released number in words: with its interval, or what it is the exact number of."""
    if record.plan.is_exact:  # noise can leave an interval no room between its bounds: that makes no value exact
        return f"{number_text('value', value, record.plan.rmse)} (exact, {OF_THE_ROWS_KEPT})"
    return with_interval(value, lower, upper, record.plan.rmse, before="95% interval ")


def _error_text(error: float) -> str:
    return "exact" if error == 0 else f"{error:.3g}" if error < 1000 else f"{error:,.0f}"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _wrapped(text: str, width: int) -> list[str]:
    lines = textwrap.wrap(text, width, break_on_hyphens=False) or [""]
    return lines if len(lines) <= 4 else [*lines[:3], lines[3][: width - 1] + "…"]

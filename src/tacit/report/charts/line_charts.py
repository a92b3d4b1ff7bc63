"""Charts along an axis: time, numbers or an order of names, with one line or one for each group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, Final

import altair as alt
import numpy as np

from tacit.arrays import Bools, Floats, Ints
from tacit.errors import printable
from tacit.policy.attributes import Attribute
from tacit.policy.domain import Domain
from tacit.report.charts.chart_parts import (
    BLUE,
    LEVEL,
    Room,
    Row,
    View,
    chart_of,
    coloured,
    digits_for,
    distinct,
    fitted,
    in_order,
    interval_rows,
    labels_of,
    level,
    number_axis,
    rounded,
    tip,
    tips_for,
    whole_axis,
)

FEWEST_IN_ORDER: Final = 3  # values that make an axis
MOST_DOTS: Final = 200
MOST_TICKS: Final = 8
# how much of 2024-03-01T14:05:00 says which year, month, day, time; and how many of them lie between two ticks
_CLOCK: Final = {4: (1,), 7: (1, 3, 6), 10: (1, 2, 7), 16: (1, 2, 3, 4, 6, 12, 24), 19: (1, 2, 5, 10, 15, 30, 60)}
LINES: Final = (BLUE, "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
Interval = Callable[[float], tuple[Floats, Floats]]  # the ends of all intervals of a level
Sums = Callable[[Ints, float], tuple[Floats, Floats, Floats, Bools]]  # of cells with the same number, and their ends


@dataclass(frozen=True)
class HistogramPart:
    """The answers of one table with their intervals at each level; `what` says what the numbers count."""

    domain: Domain
    names: tuple[str, ...]
    values: Floats
    interval: Interval
    what: str = "people"
    is_amount: bool = True  # an amount is drawn as a bar from zero, and may be added up; a mean is no amount
    sums: Sums | None = None  # where errors of sums of cells are known
    cells: Sequence[Any] | None = None  # what the cells of one attribute are called, if not by their values

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

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells the table has along each attribute."""
        return tuple(attribute.cells for attribute in self.attributes)

    @property
    def axis(self) -> int | None:
        """Which attribute is the axis of lines: time, or else the longest with an order; None if there is none."""
        ordered = [at for at, one in enumerate(self.attributes) if one.ordered and one.size >= FEWEST_IN_ORDER]
        times = [at for at in ordered if self.attributes[at].measured == "times"]
        return max(times or ordered, key=lambda at: self.shape[at], default=None)

    def summed(self, kept: tuple[int, ...]) -> HistogramPart:
        """Return the table of some attributes, in this order: sums of cells, with intervals where they are known."""
        cells = np.unravel_index(np.arange(len(self.values)), self.shape)
        which = np.ravel_multi_index([cells[at] for at in kept], [self.shape[at] for at in kept])
        sums = np.bincount(which, self.values).astype(np.float64)
        unknown = np.full(len(sums), np.nan)

        def interval(level: float) -> tuple[Floats, Floats]:
            return (unknown, unknown) if self.sums is None else self.sums(which, level)[1:3]

        return replace(self, names=tuple(self.names[at] for at in kept), values=sums, interval=interval, sums=None)


def in_time(attribute: Attribute) -> bool:
    """Say whether an attribute is time, and long enough to be an axis."""
    return attribute.measured == "times" and attribute.size >= FEWEST_IN_ORDER


def line_view(part: HistogramPart, room: Room, *, thinned: bool = False, what: str = "") -> View:
    """Return many ordered values as a line with a band; counts of cells are averaged over neighbours, not `thinned`."""
    attribute, size = part.attributes[0], len(part.values)
    width = -(-size // room.points)
    notes: list[str] = []
    places = np.arange(0, size, width)
    values, (lower, upper) = part.values, part.ends
    has_band = bool((lower < upper).any())
    thinned = thinned or not part.is_amount
    if width > 1 and not thinned:
        width = attribute.together(width)
        places = np.arange(0, size, width)
    if width > 1 and thinned:
        places = np.unique(np.append(places, size - 1))
        values, lower, upper = values[places], lower[places], upper[places]
        notes.append(f"One point for every {width:,} values; the table has all {size:,}.")
    elif width > 1:
        # the intervals hold for single values and not for these means, so none are drawn
        values = np.add.reduceat(values, places) / np.diff(np.append(places, size))
        notes.append(f"Means over {width:,} neighbouring values; the table has all {size:,}.")
        has_band = False
    at = _labels(attribute, places)
    if has_band:
        rows = interval_rows(values, lower, upper, at=at)
    else:
        digits = digits_for(values)
        rows = [{"at": here, "value": rounded(value, digits)} for here, value in zip(at, values, strict=True)]
    name = printable(part.names[0])
    x = _axis(name, attribute, at)
    what = printable(what or part.what)
    y = alt.Y("value:Q", title=what, axis=number_axis()) if part.is_amount else level("y", what)
    how = _joined(attribute) if not (thinned and part.is_amount) else "monotone" if width > 1 else "step-after"
    base = chart_of(rows)
    tips = tips_for("at", name) if has_band else [tip("at", name), tip("value:Q", "estimate")]
    line = base.mark_line(color=BLUE, interpolate=how, strokeWidth=1.5, point=_dots(how, len(rows), color=BLUE)).encode(
        x=x, y=y, tooltip=tips
    )
    if not has_band:
        return View(fitted(line, room), tuple(notes), has_intervals=False)
    band = base.mark_area(color=BLUE, opacity=0.25, interpolate=how).encode(
        x=x, y=alt.Y("lower:Q", title=what) if part.is_amount else level("y", what, "lower:Q"), y2="upper:Q"
    )
    return View(fitted(alt.layer(band, line), room), tuple(notes))


def lines_by_group(part: HistogramPart, along: int, room: Room) -> View:
    """Return a line for each group, which the other attributes make, along the axis of one."""
    attribute, others = part.attributes[along], [at for at in range(len(part.shape)) if at != along]
    groups = distinct([", ".join(labels) for labels in _crossed([part.attributes[at] for at in others])])
    table = np.moveaxis(np.arange(len(part.values)).reshape(part.shape), along, -1).reshape(len(groups), -1)
    width = -(-table.size // room.points)
    table = table[:, ::width]
    notes = (f"One point for every {width:,} values; the table has all of them.",) if width > 1 else ()
    at = _labels(attribute, np.arange(0, attribute.size, width))
    rows = part.rows(table.ravel(), at=[*at] * len(groups), group=[group for group in groups for _ in at])
    base, how = chart_of(rows), _joined(attribute)
    name, what = printable(part.names[along]), printable(part.what)
    x = _axis(name, attribute, at)
    title = ", ".join(part.names[at] for at in others)
    colour = group_colour(title, groups, LINES)
    y = alt.Y("value:Q", title=what, axis=number_axis()) if part.is_amount else level("y", what)
    tips = [tip("at", name), tip("group:N", title), *tips_for("at")[1:]]
    line = base.mark_line(interpolate=how, strokeWidth=1.5, point=_dots(how, len(rows)))
    line = line.encode(x=x, y=y, color=colour, tooltip=tips)
    lower, upper = part.ends
    if not (lower < upper).any():
        return View(fitted(line, room), notes, has_intervals=False)
    low = (
        alt.Y("lower:Q", title=what, axis=number_axis(), stack=None) if part.is_amount else level("y", what, "lower:Q")
    )
    band = base.mark_area(opacity=0.2, interpolate=how).encode(x=x, y=low, y2="upper:Q", color=colour)
    return View(fitted(alt.layer(band, line), room), notes)


def group_colour(name: str, groups: list[str], colours: Sequence[str]) -> Any:
    """Return the colour of each of a few groups, with a legend above the chart."""
    legend = {"orient": "top", "direction": "horizontal", "labelLimit": 240, "titleLimit": 300, "columns": 2}
    return coloured("group:N", groups, colours[: len(groups)], title=printable(name), **legend)


def _crossed(attributes: Sequence[Attribute]) -> Iterator[tuple[str, ...]]:
    return product(*(labels_of(attribute, np.arange(attribute.cells)) for attribute in attributes))


def _labels(attribute: Attribute, places: Ints) -> Sequence[Any]:
    if attribute.measured == "numbers":
        return [attribute.value(int(place)) for place in places]
    return labels_of(attribute, places)


def _axis(name: str, attribute: Attribute, at: Sequence[Any]) -> Any:
    if attribute.measured == "numbers":
        return alt.X("at:Q", title=name, scale=alt.Scale(zero=False, nice=False), axis=whole_axis(attribute))
    ticks = _on_a_clock(at) if attribute.measured == "times" and "T" in at[0] else {}
    return alt.X("at:O", title=name, **in_order(at), axis=alt.Axis(labelOverlap=True, labelAngle=-40, **ticks))


def _on_a_clock(at: Sequence[str]) -> dict[str, Any]:
    """Return ticks where a year, month, day, hour or minute begins, whichever are few, and labels as long as that."""
    begins: list[str] = []
    for length in _CLOCK:
        begins = [here for before, here in zip(["", *at], at, strict=False) if before[:length] != here[:length]]
        if len(begins) > MOST_TICKS // 2:
            break
    every = next((step for step in _CLOCK[length] if len(begins) <= MOST_TICKS * step), -(-len(begins) // MOST_TICKS))
    return {"values": begins[::every], "labelExpr": f"replace(slice(datum.value, 0, {length}), 'T', ' ')"}


def _joined(attribute: Attribute) -> str:
    """Return how a line goes from a value to the next: numbers are counted in steps, times follow each other."""
    return "linear" if attribute.measured == "times" else "step"


def _dots(how: str, many: int, **looks: str) -> Any:
    """Mark the values of a line, where they are few and the line has no steps to show them."""
    return alt.OverlayMarkDef(size=24, **looks) if how == "linear" and many <= MOST_DOTS else False

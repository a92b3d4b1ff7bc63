"""The parts that charts are made of, and the registries through which questions are drawn.

Charts hold at most a few thousand marks: long axes are merged or thinned and long lists cut after the largest released
values, and the subtitle says so. Colours are the Okabe-Ito palette and one blue ramp, which colour-blind readers tell
apart; sizes are made for a phone held upright.

Data fields have fixed names (`label`, `at`, `value`, `lower`, `upper` ..): what users call their attributes only ever
appears as text, so that dots and brackets in a name never matter.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Final, Literal

import altair as alt
import numpy as np
import numpy.typing as npt

from tacit.errors import printable
from tacit.policy.attributes import Attribute
from tacit.policy.domain import Domain
from tacit.release.results.record import ReleaseRecord
from tacit.release.results.value_files import number_text, with_interval

Row = dict[str, Any]

BLUE: Final = "#0072B2"
SKY: Final = "#56B4E9"  # light enough for the interval's line to be seen on a bar
ORANGE: Final = "#E69F00"
PALETTE: Final = (SKY, ORANGE, "#009E73", "#CC79A7")
LINE: Final = "#222222"
INK: Final = "#555555"  # readable on white and on black
WIDTH: Final = 480  # as wide as the report's column: larger letters on a screen, readable ones on a phone
LONGEST_LABEL: Final = 36  # letters beside a bar
MOST_LISTED: Final = 12  # ranges or sets that are named one by one in a sentence
TOP: Final = 30
MOST_BARS: Final = 60
MOST_POINTS: Final = 1_500
NUMBER: Final = ",~f"
LEVEL: Final = 0.95
# a chart library that keeps labels in an object finds these there before it has put anything in
_JAVASCRIPT: Final = re.compile(
    "constructor|hasOwnProperty|isPrototypeOf|propertyIsEnumerable|toLocaleString|toString|valueOf|__proto__|"
    "__(define|lookup)(Getter|Setter)__"
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
class View:
    """A part of a chart and the sentences that say what it leaves out."""

    layers: Any
    notes: tuple[str, ...] = ()
    has_intervals: bool = True
    intervals: str = "95% intervals"  # what those that are drawn are called
    are: str = "Estimates"  # what is drawn: estimates, or verdicts alone


# ---- what a chart needs to know of a question; each is registered for the questions in its own module ----------------


@singledispatch
def draw(query: Any, record: Any) -> View:
    """Return what is drawn of a release."""
    raise TypeError(query)


@singledispatch
def say(query: Any, record: Any) -> str:
    """Return what came out in a sentence or two, for readers who cannot see the chart."""
    many = len(record.values)
    if np.isnan(record.values).all():
        return "Nobody is picked, so there is no answer."
    if "lower" not in record.numbers(LEVEL):  # values that were chosen by their ranks
        return f"Released value: {record.summary()}." if many == 1 else f"{many:,} values, each chosen by its rank."
    # the largest was probably raised by its noise, so its interval is one of those that hold for all at once
    lower, upper = record.interval(level_at_once(many))
    best = int(np.nanargmax(record.values))
    ends = say_with_ends(record, record.values[best], lower[best], upper[best])
    if not record.done.is_exact and getattr(record, "exact", np.zeros(many, np.bool_))[best]:
        ends = f"{number_text('value', record.values[best], record.digits_for)} (exact)"  # the others are not
    if many == 1:
        return f"Released value: {ends}."
    where = say_place(query, record.plan.policy.domain, best)
    at_once = ends.replace("95% interval ", f"95% for all {many:,} at once: ")
    return f"{many:,} released values; the largest is {at_once}, for {where}."


@singledispatch
def say_place(query: Any, domain: Domain, at: int) -> str:
    """Say what one answer is about, without listing all of them."""
    return "everyone"


@singledispatch
def list_parts(query: Any, domain: Domain) -> tuple[str, int]:
    """Return in words the first tables or ranges of a question that has several, and how many there are."""
    return "", 0


def level_at_once(many: int) -> float:
    """Return the level at which each of so many intervals must hold by itself for all to hold at once in 95%.

    Whatever the values depend on each other, the chances to miss add up to 5% at the most.

    >>> level_at_once(1), level_at_once(5)
    (0.95, 0.99)
    """
    return 1 - (1 - LEVEL) / many if many > 1 else LEVEL


# ---- words and looks ------------------------------------------------------------------------------------------------


def chart_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return a chart of these rows that has no marks yet."""
    return alt.Chart(alt.Data(values=list(rows)))


def coloured(field: str, names: Sequence[str], colours: Sequence[str], title: str | None = None, **legend: Any) -> Any:
    """Return the colour of each name of a field, with its legend."""
    scale = alt.Scale(domain=list(names), range=list(colours))
    return alt.Color(field, title=title, scale=scale, legend=alt.Legend(**legend))


def lying_bars(
    rows: list[Row],
    name: str,
    room: Room,
    *,
    what: str = "people",
    limit: int | Sequence[int] | None = None,
    colour: str = SKY,
) -> Any:
    """Lying bars with interval rules, in the order of the rows; a dashed line at the limit, or a tick at each's own."""
    x = alt.X("value:Q", title=printable(what), axis=number_axis(few=not room.fits))
    base, y = chart_of(rows), _lines_of(rows, name, room)
    bars = base.mark_bar(color=colour).encode(x=x, y=y, tooltip=tips_for("label", name))
    layers = [bars, whiskers(base, y=y, x="lower:Q", x2="upper:Q")]
    if isinstance(limit, Sequence):
        own = [{"label": row["label"], "at": at} for row, at in zip(rows, limit, strict=True)]
        layers.append(chart_of(own).mark_tick(color=LINE, thickness=2).encode(x="at:Q", y=y))
    elif limit is not None:
        layers.append(chart_of([{"at": limit}]).mark_rule(color=LINE, strokeDash=[4, 3]).encode(x="at:Q"))
    return fitted(alt.layer(*layers), room, height=alt.Step(room.bar))


def lying_points(rows: list[Row], name: str, room: Room, *, what: str) -> Any:
    """Points with interval rules, in the order of the rows, on an axis that need not start at zero."""
    base, y = chart_of(rows), _lines_of(rows, name, room)
    points = as_points(base).encode(x=level("x", what), y=y, tooltip=tips_for("label", name))
    return fitted(alt.layer(whiskers(base, y=y, x="lower:Q", x2="upper:Q"), points), room, height=alt.Step(room.bar))


def _lines_of(rows: list[Row], name: str, room: Room) -> Any:
    """Return the axis with one line for each row."""
    axis = alt.Axis(labelLimit=240 if room.fits else 170, titleLimit=200)
    return alt.Y("label:N", title=printable(name), **in_order([row["label"] for row in rows]), axis=axis)


def as_points(base: Any) -> Any:
    """Return points for numbers that are no amounts, such as means: the length of a bar would say nothing."""
    return base.mark_point(filled=True, size=70, color=BLUE, opacity=1)


def level(
    axis: Literal["x", "y"],
    what: str,
    field: str = "value:Q",
    *,
    downwards: bool = False,
    ends: tuple[float, float] | None = None,
) -> Any:
    """Return an axis that shows where numbers differ, or between `ends`: it may start anywhere, and grow downwards."""
    channel = alt.X if axis == "x" else alt.Y
    between = {} if ends is None else {"domain": list(ends), "nice": False}
    scale = alt.Scale(zero=False, padding=12, **between, **({"reverse": True} if downwards else {}))
    return channel(field, title=printable(what), scale=scale, axis=number_axis())


def short_labels(labels: Sequence[str], what: str) -> tuple[list[str], tuple[str, ...]]:
    """Return labels that no axis cuts, and what to say about them: where one is too long all are numbered instead."""
    told = distinct(labels)
    if max(map(len, told), default=0) <= LONGEST_LABEL:
        return told, ()
    numbered = [f"{what} {number}" for number in range(1, len(told) + 1)]
    return numbered, (f"Numbered as in the table, which says what each {what} is.",)


def fitted(view: Any, room: Room, *, height: Any = None) -> Any:
    """Give a view its size; a view alone has its axes and labels inside that width."""
    sized = view.properties(width=room.width, height=room.height if height is None else height)
    # only across: a long title must not eat up the height of what it is the title of
    return sized.properties(autosize=alt.AutoSizeParams(type="fit-x", contains="padding")) if room.fits else sized


def styled(view: Any, title: str, said: Sequence[str]) -> Any:
    """Give a chart its title and its looks."""
    lines = [line for sentence in said for line in wrapped(sentence, 74)]
    heading = alt.TitleParams(
        text=wrapped(title, 52),
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


def number_axis(*, few: bool = False) -> Any:
    """Return an axis of whole numbers with few labels."""
    return alt.Axis(format=NUMBER, tickCount=3 if few else 4, labelOverlap=True)


def whole_axis(attribute: Any) -> Any:
    """Numbers on an axis; four digits stay together, as in years."""
    if attribute.unit != 1:
        return alt.Axis(labelOverlap=True, tickCount=6)
    long = max(abs(attribute.number(place)) for place in (0, attribute.size - 1)) >= 10_000
    return alt.Axis(format=",d" if long else "d", tickMinStep=1, labelOverlap=True, tickCount=6)


def tip(where: str, title: str) -> Any:
    """Return a line of the tooltip; fields without a type are names."""
    number = {"format": ",.10~r"} if where.endswith(":Q") else {}
    return alt.Tooltip(where if ":" in where else f"{where}:N", title=printable(title), **number)


def tips_for(field: str, title: str = "") -> list[Any]:
    """Return the tooltip of a value with its interval."""
    interval = [tip("lower:Q", "95% interval from"), tip("upper:Q", "to")]
    return [tip(field, title or field), tip("value:Q", "estimate"), *interval]


def labels_of(attribute: Attribute, places: npt.NDArray[Any]) -> list[str]:
    """Return what values are called on a chart: always different texts for different values."""
    match attribute.measured:
        case "sets":
            return distinct([attribute.cell(int(place)) for place in places])
        case "truth":
            return [attribute.words(attribute.value(int(place))) for place in places]
        case "names":
            # told apart among all values, not only those shown here, so that a value has the same name everywhere
            named = distinct(attribute.every_value())
            return [named[int(place)] for place in places]
        case _:
            return [str(attribute.value(int(place))) for place in places]


def distinct(values: Sequence[Any]) -> list[str]:
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
    return f"'{text}'" if _JAVASCRIPT.fullmatch(text) else printable(text) or "(empty)"


def interval_rows(values: Any, lower: Any, upper: Any, **columns: Sequence[Any]) -> list[Row]:
    """Return rows of a chart: further columns, then values with their intervals, whose ends are turned outwards."""
    digits = digits_for(values, lower, upper)
    return [
        {
            **{name: column[at] for name, column in columns.items()},
            "value": rounded(value, digits),
            "lower": rounded(low, digits, np.floor),
            "upper": rounded(high, digits, np.ceil),
        }
        for at, (value, low, high) in enumerate(zip(values, lower, upper, strict=True))
    ]


def digits_for(*columns: Any) -> int:
    """Return the digits after the point that are finer than any pixel of a chart of these numbers: two, or more.

    >>> digits_for([1200.0, 80.0]), digits_for([0.0037, 0.0041], [0.0036, 0.0040])
    (2, 8)
    """
    numbers = np.concatenate([np.asarray(column, dtype=np.float64) for column in columns])
    numbers = numbers[np.isfinite(numbers)]
    span = float(np.ptp(numbers)) if len(numbers) else 0.0
    span = span or float(np.abs(numbers).max(initial=0.0))  # one exact number
    return max(2, 4 - math.floor(math.log10(span))) if span else 2


def rounded(value: float, digits: int, turn: Callable[[float], float] = np.round) -> float | None:
    """Return a number with so many digits after the point, which keeps files small; None for what is no number."""
    if np.isnan(value):
        return None
    scale = 10.0**digits
    return float(turn(round(float(value) * scale, 6))) / scale


def say_with_ends(record: ReleaseRecord, value: float, lower: float, upper: float) -> str:
    """Return a released number in words: with its interval, or what it is the exact number of."""
    if np.isnan(value):
        return "nobody"
    if record.done.is_exact:  # noise can leave an interval no room between its bounds: that makes no value exact
        return f"{number_text('value', value, record.digits_for)} (exact, {record.plan.about})"
    return with_interval(value, lower, upper, record.digits_for, before="95% interval ")


def wrapped(text: str, width: int) -> list[str]:
    """Return a text in lines, cut after four."""
    lines = textwrap.wrap(text, width, break_on_hyphens=False) or [""]
    return lines if len(lines) <= 4 else [*lines[:3], lines[3][: width - 1] + "…"]

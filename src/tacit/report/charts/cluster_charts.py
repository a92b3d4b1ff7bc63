"""Charts of clusters: centres among the cells that were counted, and how many people are around each."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

import altair as alt
import numpy as np

from tacit.arrays import Bools, Floats
from tacit.errors import printable
from tacit.plan.plans.zoom import deviation
from tacit.plan.question import in_words
from tacit.plan.questions import Clusters
from tacit.policy.domain import Domain
from tacit.report.charts.chart_parts import (
    ALONE,
    LEVEL,
    LINE,
    PALETTE,
    Row,
    View,
    chart_of,
    digits_for,
    draw,
    fitted,
    interval_rows,
    level,
    lying_bars,
    rounded,
    say_place,
    short_labels,
    tip,
)

MOST_DRAWN: Final = 2500  # cells
RARE: Final = 5.0  # minus the log of the chance that noise alone stands out somewhere
SMALL: Final = 0.5  # share of the area that a frame may take up where the rest is left out
NEARLY_ALL: Final = 0.95  # share of the people who are then in the frame
MARGIN: Final = 0.1  # on either side, as a share of the width
MANY_COLOURS: Final = len(PALETTE)


@draw.register
def _(query: Clusters, record: Any) -> View:
    columns = query.columns(record.plan.policy.domain)
    if len(columns) == 2:
        attribute: Any = record.plan.policy.domain[query.names[0]]
        is_map = len(query.names) == 1  # rows of a grid lie above each other; row numbers grow downwards, as in a table
        return _map(record, columns, across=1 if is_map else 0, downwards=is_map and attribute.low is None)
    places = record.labels()
    at = [", ".join(f"{places[name][number]:,.10g}" for name in columns) for number in range(len(record.values))]
    labels, notes = short_labels([f"{number}: {where}" for number, where in enumerate(at, start=1)], "cluster")
    rows = interval_rows(record.values, *record.interval(LEVEL), label=labels)
    named = in_words([printable(name) for name in columns])
    return View(
        lying_bars(rows, "centre", ALONE, what=record.plan.query.who), (*notes, f"Where each centre lies: {named}.")
    )


def _map(record: Any, columns: tuple[str, ...], *, across: int, downwards: bool) -> View:
    """Draw the cells in the colour of their centre, denser cells darker, and the centres."""
    grid: Any = record.parts[0].plan.base
    people = np.maximum(record.parts[0].values, 0.0)
    low, high = grid.boxes()
    least, most, seen = _frame(record, low, high)
    density = people / np.prod(high - low, axis=1)  # cells that were cut are smaller
    density /= density.max(initial=0.0) or 1.0
    low, high = (np.clip(ends, least, most) for ends in (low, high))
    order = np.argsort(np.where(seen, -people, 0.0), kind="stable")[:MOST_DRAWN]
    digits = digits_for(people)
    rows: list[Row] = []
    for cell in order.tolist():
        if people[cell] <= 0 or not seen[cell]:
            break
        rows.append(
            {
                "left": float(low[cell, across]),
                "right": float(high[cell, across]),
                "bottom": float(low[cell, 1 - across]),
                "top": float(high[cell, 1 - across]),
                "kind": str(int(record.own[cell]) % MANY_COLOURS),
                "value": rounded(float(people[cell]), digits),
                "density": round(float(density[cell]), 4),
            }
        )
    at, beside = (record.centres[:, axis].astype(float).tolist() for axis in (across, 1 - across))
    labels = [str(number) for number in range(1, len(record.centres) + 1)]
    centres = interval_rows(record.values, *record.interval(LEVEL), at=at, beside=beside, label=labels)
    x_ends, y_ends = ((float(least[axis]), float(most[axis])) for axis in (across, 1 - across))
    x = partial(level, "x", columns[across], ends=x_ends)
    y = partial(level, "y", columns[1 - across], ends=y_ends, downwards=downwards)
    colours = alt.Scale(domain=[str(number) for number in range(MANY_COLOURS)], range=list(PALETTE))
    boxes = chart_of(rows).mark_rect().encode(x=x("left:Q"), x2="right:Q", y=y("bottom:Q"), y2="top:Q")
    cells = boxes.encode(
        color=alt.Color("kind:N", scale=colours, legend=None),
        opacity=alt.Opacity("density:Q", scale=alt.Scale(type="sqrt", range=[0.08, 1.0]), legend=None),
        tooltip=[tip("value:Q", "estimate")],
    )
    base = chart_of(centres)
    where = {"x": x("at:Q"), "y": y("beside:Q")}
    tips = [
        tip("label:N", "cluster"),
        tip("at:Q", columns[across]),
        tip("beside:Q", columns[1 - across]),
        tip("value:Q", f"{record.plan.query.who}, estimate"),
    ]
    marks = base.mark_point(shape="cross", size=160, color=LINE, filled=True, opacity=1).encode(**where, tooltip=tips)
    names = base.mark_text(dx=10, dy=-10, fontSize=13, fontWeight="bold", color=LINE).encode(**where, text="label:N")
    left_out = int((people[seen] > 0).sum()) - len(rows)
    notes = [f"{len(people):,} cells were counted; each has the colour of its nearest centre, denser cells darker."]
    if not seen.all():
        outside = max(float(record.parts[1].values[0] - record.parts[0].values[seen].sum()), 0.0)
        notes.append(
            "The axes show the cells that stand out from their noise, with a margin. "
            f"{int((~seen).sum()):,} cells lie outside, with an estimated {outside:,.0f} "
            f"{record.plan.query.who} in all."
        )
    if left_out > 0:
        notes.append(f"The {len(rows):,} fullest are drawn.")
    view = fitted(alt.layer(cells, marks, names), ALONE, height=ALONE.width - 60)
    return View(view, tuple(notes), has_intervals=False)


def _frame(record: Any, low: Floats, high: Floats) -> tuple[Floats, Floats, Bools]:
    """Return the ends of the axes, and which cells lie between them; both follow from released numbers.

    The frame holds the centres and the cells that stand out from their noise, if these take up a small part of the
    range and hold nearly all people; otherwise it holds everything.
    """
    cells, people = record.parts[:2]
    limit = deviation(cells.plan) * (math.log(max(len(low), 2)) + RARE)
    whole = low.min(axis=0), high.max(axis=0)
    stand_out = cells.values > limit
    least, most = (
        turn(np.concatenate([ends[stand_out], record.centres]), axis=0)
        for turn, ends in ((np.min, low), (np.max, high))
    )
    around = MARGIN * (most - least)
    least, most = np.maximum(least - around, whole[0]), np.minimum(most + around, whole[1])
    seen = ((high > least) & (low < most)).all(axis=1)
    is_small = np.prod(most - least) <= SMALL * np.prod(whole[1] - whole[0])
    if is_small and stand_out.any() and cells.values[seen].sum() >= NEARLY_ALL * people.values[0]:
        return least, most, seen
    return *whole, np.ones(len(low), dtype=np.bool_)


@say_place.register
def _(query: Clusters, domain: Domain, at: int) -> str:
    return f"cluster {at + 1}"

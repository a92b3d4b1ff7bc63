"""Charts of clusters: centres among the cells that were counted, and how many people are around each."""

from __future__ import annotations

from typing import Any, Final

import altair as alt
import numpy as np

from tacit.plan.queries import Clusters
from tacit.plan.query import in_words
from tacit.policy.domain import Domain
from tacit.report.views import (
    ALONE,
    LEVEL,
    LINE,
    PALETTE,
    Row,
    View,
    digits_for,
    draw,
    fitted,
    interval_rows,
    level,
    lying_bars,
    printable,
    rounded,
    say_place,
    short_labels,
    tip,
)

MOST_DRAWN: Final = 2500  # cells; more are left out, and the chart says so
MANY_COLOURS: Final = len(PALETTE)


@draw.register
def _(query: Clusters, record: Any) -> View:
    lower, upper = record.interval(LEVEL)
    drawn = interval_rows(record.values, lower, upper)
    columns = query.columns(record.plan.policy.domain)
    if len(columns) == 2:
        attribute: Any = record.plan.policy.domain[query.names[0]]
        is_map = len(query.names) == 1  # rows of a grid lie above each other; row numbers grow downwards, as in a table
        return _map(record, columns, across=1 if is_map else 0, downwards=is_map and attribute.low is None)
    places = record.labels()
    at = [", ".join(f"{places[name][number]:,.10g}" for name in columns) for number in range(len(drawn))]
    labels, notes = short_labels([f"{number}: {where}" for number, where in enumerate(at, start=1)], "cluster")
    rows = [{"label": label, **ends} for label, ends in zip(labels, drawn, strict=True)]
    named = in_words([printable(name) for name in columns])
    return View(lying_bars(rows, "centre", ALONE), (*notes, f"Where each centre lies: {named}."))


def _map(record: Any, columns: tuple[str, ...], *, across: int, downwards: bool) -> View:
    """Draw the cells in the colour of their centre, the fuller the darker, and the centres."""
    grid: Any = record.parts[0].plan.base
    people = np.maximum(record.parts[0].values, 0.0)
    low, high = grid.boxes()
    order = np.argsort(-people, kind="stable")[:MOST_DRAWN]
    digits = digits_for(people)
    rows: list[Row] = []
    for cell in order.tolist():
        if people[cell] <= 0:
            break
        rows.append(
            {
                "left": float(low[cell, across]),
                "right": float(high[cell, across]),
                "bottom": float(low[cell, 1 - across]),
                "top": float(high[cell, 1 - across]),
                "kind": str(int(record.own[cell]) % MANY_COLOURS),
                "value": rounded(float(people[cell]), digits),
            }
        )
    ends = interval_rows(record.values, *record.interval(LEVEL))
    centres: list[Row] = [
        {
            "at": float(centre[across]),
            "beside": float(centre[1 - across]),
            "label": str(number + 1),
            **ends[number],
        }
        for number, centre in enumerate(record.centres)
    ]
    colours = alt.Scale(domain=[str(number) for number in range(MANY_COLOURS)], range=list(PALETTE))
    cells = (
        alt.Chart(alt.Data(values=rows))
        .mark_rect()
        .encode(
            x=level("x", columns[across], "left:Q"),
            x2="right:Q",
            y=level("y", columns[1 - across], "bottom:Q", downwards=downwards),
            y2="top:Q",
            color=alt.Color("kind:N", scale=colours, legend=None),
            opacity=alt.Opacity("value:Q", scale=alt.Scale(type="sqrt", range=[0.08, 1.0]), legend=None),
            tooltip=[tip("value:Q", "estimate")],
        )
    )
    base = alt.Chart(alt.Data(values=centres))
    where = {
        "x": level("x", columns[across], "at:Q"),
        "y": level("y", columns[1 - across], "beside:Q", downwards=downwards),
    }
    told = [
        tip("label:N", "cluster"),
        tip("at:Q", columns[across]),
        tip("beside:Q", columns[1 - across]),
        tip("value:Q", "people, estimate"),
    ]
    marks = base.mark_point(shape="cross", size=160, color=LINE, filled=True, opacity=1).encode(**where, tooltip=told)
    names = base.mark_text(dx=10, dy=-10, fontSize=13, fontWeight="bold", color=LINE).encode(**where, text="label:N")
    left_out = int((people > 0).sum()) - len(rows)
    notes = [f"{len(people):,} cells were counted; each has the colour of its nearest centre, the fuller the darker."]
    if left_out > 0:
        notes.append(f"The {len(rows):,} fullest are drawn.")
    view = fitted(alt.layer(cells, marks, names), ALONE, height=ALONE.width - 60)
    return View(view, tuple(notes), has_intervals=False)


@say_place.register
def _(query: Clusters, domain: Domain, at: int) -> str:
    return f"cluster {at + 1}"

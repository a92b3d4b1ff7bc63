"""What a notebook shows of everything that somebody holds: a line, a table with intervals, a chart.

Nothing is fetched and no script runs. Every text is escaped where it enters, and charts are taken apart as in reports.
Colours are those of the notebook around it, so that light and dark need nothing else. What was made for the curator
alone says so and shows no more: a notebook file keeps what it shows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch
from typing import Any, Final

import numpy as np
from markupsafe import Markup
from rich.table import Table

from tacit.errors import TacitError, printable
from tacit.ledger.ledger import Ledger
from tacit.plan.choose import Explanation
from tacit.plan.plans.reading import left_out
from tacit.plan.question import Query
from tacit.policy.describe import description
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.publish.table import PublishedTable
from tacit.release.results.record import ReleaseRecord
from tacit.release.session import Session
from tacit.report.charts.release_charts import chart_svg
from tacit.report.page import inline
from tacit.report.shown_tables import shown_tables
from tacit.report.text import ledger_table, plan_table

ROWS_SHOWN: Final = 20
PRINT_IT: Final = "A notebook file keeps what it shows. Print it where nobody else reads the file."
LOOK: Final = "look first: tc.check_rows(policy, rows)"
_LOOKS: Final = Markup("""
.tacit { color: inherit; font-size: .95em; line-height: 1.45; max-width: 52em; overflow-wrap: anywhere; }
.tacit p, .tacit ul { margin: .3em 0; } .tacit ul { padding-left: 1.3em; }
.tacit .soft { opacity: .75; }
.tacit .wide { overflow-x: auto; }
.tacit table { border-collapse: collapse; color: inherit; margin: .5em 0; overflow-wrap: normal; }
.tacit th, .tacit td { background: none; color: inherit; text-align: left; padding: .15em .5em; border: 0; }
.tacit th, .tacit td { border-bottom: 1px solid rgba(128, 128, 128, .4); vertical-align: top; }
.tacit .number { text-align: right; font-variant-numeric: tabular-nums; }
.tacit pre { color: inherit; background: none; white-space: pre-wrap; margin: .3em 0; padding: 0; font-size: .9em; }
.tacit summary { cursor: pointer; }
.tacit svg { display: block; width: 100%; max-width: 40em; height: auto; }
.tacit svg .role-title text, .tacit svg .role-axis text, .tacit svg .role-legend text { fill: currentColor; }
.tacit svg .role-axis-grid line, .tacit svg .role-axis-tick line { stroke: rgba(128, 128, 128, .4); }
.tacit svg .mark-rule.role-mark line, .tacit svg .mark-tick.role-mark path { stroke: currentColor; }
.tacit svg .mark-text.role-mark text { fill: currentColor; }
""")


def html(held: Any) -> Markup:
    """Return what a notebook shows of an object."""
    closed = " ".join(getattr(held, "marks", ()) if getattr(held, "unprotected", False) else ())
    closed = getattr(held, "private", closed)
    try:
        parts = [_line(repr(held)), _line(f"{closed} {PRINT_IT}")] if closed else [*show(held)]
    except TacitError as refusal:  # a ledger may be out of reach by now
        parts = [_line(repr(held)), _line(str(refusal))]
    return Markup('<div class="tacit"><style>{}</style>{}</div>').format(_LOOKS, Markup().join(parts))


@singledispatch
def show(held: Any) -> Iterator[Markup]:
    """Yield the parts of an object: of any that has none of its own, its words, and its chart if it has one."""
    yield _line(repr(held), strong=True) if str(held) == repr(held) else _words(str(held))
    if hasattr(held, "chart"):
        yield _chart(held.chart())


@show.register
def _(held: ReleaseRecord) -> Iterator[Markup]:
    plan = held.done
    yield _line(repr(plan).replace("<plan", "<release"), strong=True)
    if len(held.values) == 1:
        yield _line(held.summary())
    else:
        yield _chart(held.chart())
    for table in shown_tables(held):
        rows = [[*row.labels, *map(" ".join, row.numbers)] for row in table.rows]
        heads = [*table.labels, *table.numbers]
        drawn = _table(heads, rows, range(len(table.labels), len(heads)))
        drawn += Markup().join(map(_line, table.notes))
        yield _details(f"Table: {len(rows):,} lines", drawn) if len(rows) > 1 else drawn
    yield from map(_line, plan.cautions)
    if plan.left_out:
        yield from _left_out(plan.policy, plan.query)


@show.register
def _(held: PublishedTable) -> Iterator[Markup]:
    yield _line(repr(held), strong=True)
    labels, lines = held.labels(), held.published.size
    shows = np.arange(min(lines, ROWS_SHOWN))
    columns = [
        *(_cells(column, shows) for column in labels.values()),
        [f"{count * float(held.method.unit):,.10g}" for count in held.published.ravel()[shows]],
        [f"{estimate:,.1f}" for estimate in held.estimates.ravel()[shows]],
    ]
    heads = [*labels, "count", "estimate"]
    yield _table(heads, zip(*columns, strict=True), range(len(labels), len(heads))) + _line(_first(lines))
    yield _details("What it promises", _words(str(held)))


@show.register
def _(held: Policy) -> Iterator[Markup]:
    about, *sections = description(held)
    yield _line(about.heading, strong=True)
    for at, section in enumerate(sections):
        points = Markup("<ul>{}</ul>").format(
            Markup().join(Markup("<li>{}</li>").format(printable(point)) for point in section.points)
        )
        if not section.points:
            yield _line(section.heading)
        elif at:
            yield _details(section.heading, points)
        else:
            yield _line(section.heading) + points


@show.register
def _(held: Domain) -> Iterator[Markup]:
    yield _line(repr(held), strong=True)
    yield _table(["attribute", "values"], [(name, _shortened(str(kind))) for name, kind in held.items()])


@show.register
def _(held: Explanation) -> Iterator[Markup]:
    yield _line(repr(held), strong=True)
    yield _of_rich(plan_table([held]))
    refused = held.files_refused or held.leakage_refused
    if refused:
        yield _line(f"Would be refused: {refused}")
    yield from _left_out(held.plan.policy, held.plan.query)
    yield _details("How it is answered, and why", _words(str(held)))


@show.register
def _(held: Session) -> Iterator[Markup]:
    yield _line(repr(held), strong=True)
    yield from _left_out(held.policy)
    yield _line(held.texts_read)
    yield _details("Policy", Markup().join(show(held.policy)))


@show.register
def _(held: Ledger) -> Iterator[Markup]:
    yield _line(repr(held), strong=True)
    yield _of_rich(ledger_table(held.accounts()))


def _left_out(policy: Policy, *queries: Query) -> Iterator[Markup]:
    """Yield that rows are left out, and how to see how many."""
    if said := left_out(policy, queries):
        yield _line(f"{said}; {LOOK}")


# ---- parts ----------------------------------------------------------------------------------------------------------


def _line(text: str, *, strong: bool = False) -> Markup:
    words = printable(text)
    return Markup("<p>{}</p>").format(Markup("<strong>{}</strong>").format(words.strip("<>")) if strong else words)


def _words(text: str) -> Markup:
    """Return lines as they are: their spaces put columns below each other."""
    return Markup("<pre>{}</pre>").format("\n".join(map(printable, text.splitlines())))


def _details(summary: str, inside: Markup) -> Markup:
    return Markup("<details><summary>{}</summary>{}</details>").format(printable(summary), inside)


def _chart(drawn: Any) -> Markup:
    svg = chart_svg(drawn)
    # the names of its parts must not be those of another chart in the same notebook
    return inline(svg, f"tacit-{hashlib.sha256(svg.encode()).hexdigest()[:12]}")


def _first(lines: int) -> str:
    return f"The first {ROWS_SHOWN} of {lines:,} lines" if lines > ROWS_SHOWN else f"{lines:,} lines"


def _cells(column: Sequence[Any], shows: Iterable[int]) -> list[str]:
    return ["" if (cell := column[int(place)]) is None else str(cell) for place in shows]


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:198]}.."


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> Markup:
    """Return a table of texts; the columns at `numbers` stand to the right."""
    marks = [Markup(' class="number"') if at in numbers else Markup() for at in range(len(heads))]

    def row(kind: str, cells: Sequence[str]) -> Markup:
        cell = Markup(f"<{kind}{{}}>{{}}</{kind}>")  # noqa: S704 - th or td
        return Markup("<tr>{}</tr>").format(
            Markup().join(cell.format(mark, printable(text)) for mark, text in zip(marks, cells, strict=True))
        )

    body = Markup().join(row("td", cells) for cells in rows)
    return Markup('<div class="wide"><table><thead>{}</thead><tbody>{}</tbody></table></div>').format(
        row("th", heads), body
    )


def _of_rich(table: Table) -> Markup:
    """Return a table for the terminal as one for a notebook, with what stands below it."""
    heads = [str(column.header) for column in table.columns]
    rows = zip(*([str(cell) for cell in column.cells] for column in table.columns), strict=True)
    numbers = [at for at, column in enumerate(table.columns) if column.justify == "right"]
    notes = str(table.caption or "").splitlines()
    return _table(heads, rows, numbers) + Markup().join(_line(note) for note in notes)

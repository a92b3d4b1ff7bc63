"""Charts of true records: about how many have no secret, column by column."""

from __future__ import annotations

from tacit.errors import printable
from tacit.plan.questions import TrueRecords
from tacit.release.results.true_records import TrueRecordsRecord
from tacit.report.charts.chart_parts import (
    ALONE,
    LEVEL,
    View,
    distinct,
    draw,
    interval_rows,
    lying_bars,
    say,
)


@draw.register(TrueRecords)
def _columns(query: TrueRecords, record: TrueRecordsRecord) -> View:
    """The estimates of all columns."""
    lower, upper = record.interval(LEVEL)
    names = distinct(query.shown)
    rows = [{"label": name, **row} for name, row in zip(names, interval_rows(record.values, lower, upper), strict=True)]
    note = "Records without a secret in each column, estimated from those that are shown."
    return View(lying_bars(rows, "column", ALONE, what="records"), (note,))


@say.register
def _(query: TrueRecords, record: TrueRecordsRecord) -> str:
    shown = zip(query.shown, record.labels()["rows that show it"], strict=True)
    listed = ", ".join(f"{printable(name)} in {many:,}" for name, many in shown)
    return f"{record.summary()}; shown: {listed}."

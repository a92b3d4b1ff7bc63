"""Charts of questions that are made of several parts: means and quantiles."""

from __future__ import annotations

from typing import Any

from tacit.amounts import shown
from tacit.plan.queries import Mean, Quantiles
from tacit.policy.domain import Domain
from tacit.report.linear_charts import bars_by_cell, cell_words, one_number, part_of
from tacit.report.views import ALONE, LEVEL, View, draw, lying_bars, printable, say_place
from tacit.report.views import interval_row as with_ends


@draw.register
def _(query: Mean, record: Any) -> View:
    lower, upper = record.interval(LEVEL)
    title = f"mean of {query.name}"
    if not query.by:
        return one_number(query.name, title, record.values, lower, upper, error=record.digits_for)
    return bars_by_cell(part_of(record.plan.policy.domain, query.by, record.values, lower, upper, title))


@draw.register
def _(query: Quantiles, record: Any) -> View:
    lower, upper = record.interval(LEVEL)
    if len(record.values) == 1:
        title = f"{shown(query.shares[0])} of the people have at most this {query.name}"
        return one_number(query.name, title, record.values, lower, upper, error=record.digits_for)
    rows = [
        {"label": shown(share), **with_ends(*numbers)}
        for share, *numbers in zip(query.shares, record.values, lower, upper, strict=True)
    ]
    return View(lying_bars(rows, "share of people", ALONE, what=query.name))


@say_place.register
def _(query: Mean, domain: Domain, at: int) -> str:
    return cell_words(query.by, domain, at) if query.by else "everyone"


@say_place.register
def _(query: Quantiles, domain: Domain, at: int) -> str:
    return f"{shown(query.shares[at])} of the people, by {printable(query.name)}"

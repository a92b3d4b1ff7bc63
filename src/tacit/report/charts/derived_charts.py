"""Charts of questions that are made of several parts: means, variances and quantiles."""

from __future__ import annotations

from typing import Any

from tacit.amounts import shown
from tacit.errors import printable
from tacit.plan.questions import Quantiles
from tacit.plan.questions.moments import Moment
from tacit.policy.domain import Domain
from tacit.report.charts.chart_parts import ALONE, LEVEL, View, draw, interval_rows, lying_points, say_place
from tacit.report.charts.linear_charts import cell_words, one_number, part_of, view_by_cell


@draw.register
def _(query: Moment, record: Any) -> View:
    title, domain = f"{query.keyword} of {query.name}", record.plan.policy.domain
    if not query.by:
        unit = query.unit_words(domain)
        return one_number(unit, title, record.values, *record.interval(LEVEL), error=record.digits_for)
    return view_by_cell(part_of(domain, query.by, record.values, record.interval, title, is_amount=False))


@draw.register
def _(query: Quantiles, record: Any) -> View:
    lower, upper = record.interval(LEVEL)
    if len(record.values) == 1:
        title = f"{shown(query.shares[0])} of the people have at most this {query.name}"
        return one_number(query.name, title, record.values, lower, upper, error=record.digits_for)
    drawn = interval_rows(record.values, lower, upper)
    rows = [{"label": shown(share), **ends} for share, ends in zip(query.shares, drawn, strict=True)]
    return View(lying_points(rows, "share of people", ALONE, what=f"{query.name} that they have at most"))


@say_place.register
def _(query: Moment, domain: Domain, at: int) -> str:
    return cell_words(query.by, domain, at) if query.by else "everyone"


@say_place.register
def _(query: Quantiles, domain: Domain, at: int) -> str:
    return f"{shown(query.shares[at])} of the people, by {printable(query.name)}"

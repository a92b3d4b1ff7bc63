"""Questions in job files: values are read by their attribute, and what a certificate says can be asked again."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.jobs.job_file import read_job
from tacit.plan.question import Query, resolve
from tacit.plan.questions import QUESTIONS
from tacit.policy.attributes import Attribute

DOMAIN: dict[str, Attribute] = {
    "temp": tc.Decimals(34, 42, step=0.1),
    "day": tc.Dates("2022-01-01", "2022-12-31"),
    "month": tc.Dates("2022-01", "2024-12", by="month"),
    "quarter": tc.Dates("2022-Q1", "2024-Q4", by="quarter"),
    "week": tc.Dates("2022-01-03", "2022-12-31", by="week"),
    "year": tc.Dates("2020", "2024", by="year"),
    "age": tc.Integers(0, 99),
    "rank": tc.Categories(["low", "1.5", "high"], ordered=True),
    "ward": tc.Categories(["a", "b"]),
    "sick": tc.Flag(),
    "bought": tc.Items(["tea", "0.5", "7"]),
    "clicked": tc.Items(5),
    "place": tc.Grid(3, 4, of=("row", "column")),
}


def policy_of(*names: str) -> tc.Policy:
    return tc.Policy(tc.Domain({name: DOMAIN[name] for name in names}), tc.secrets.attributes(names[0]))


def asked(folder: Path, policy: tc.Policy, query: str) -> Query:
    """Return the question of a job file that writes it so."""
    said = json.dumps(policy.document())
    text = f"policy: {said}\nrows: people.csv\nbudget: 1\nreleases:\n  - {{name: a, epsilon: 1, query: {query}}}\n"
    (folder / "a.job.yaml").write_text(text, encoding="utf-8")
    return read_job(folder / "a.job.yaml").releases[0].query


@pytest.mark.parametrize(
    ("written", "query"),
    [
        ("{ranges: {attribute: temp, ranges: [[34, 36.9], [37.0, 42]]}}", tc.ranges("temp", [(34, 36.9), (37, 42)])),
        (
            "{ranges: {attribute: day, ranges: [[2022-01-01, '2022-06-30']]}}",
            tc.ranges("day", [("2022-01-01", "2022-06-30")]),
        ),
        ("{ranges: {attribute: month, ranges: [[2022-01, 2022-12]]}}", tc.ranges("month", [("2022-01", "2022-12")])),
        ("{ranges: {attribute: year, ranges: [[2020, 2021]]}}", tc.ranges("year", [("2020", "2021")])),
        (
            "{ranges: {attribute: quarter, ranges: [[2022-Q1, 2022-Q4]]}}",
            tc.ranges("quarter", [("2022-Q1", "2022-Q4")]),
        ),
        ("{ranges: {attribute: age, ranges: [[0, 17]]}}", tc.ranges("age", [(0, 17)])),
        ("{ranges: {attribute: rank, ranges: [[low, '1.5']]}}", tc.ranges("rank", [("low", "1.5")])),
        ("{below: {item: [clicked, 3], threshold: 5}}", tc.below(item=("clicked", 3), threshold=5)),
        ("{below: {item: [bought, '0.5'], threshold: 5}}", tc.below(item=("bought", "0.5"), threshold=5)),
    ],
)
def test_values_are_read_by_their_attribute(tmp_path: Path, written: str, query: Query) -> None:
    policy = policy_of("age", *(query.mentioned() - {"age"}))
    assert asked(tmp_path, policy, written) == resolve(query, policy.domain)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{ranges: {attribute: temp, ranges: [[34, '36.9']]}}", "must be a finite number; got '36.9'. Write 36.9."),
        ("{ranges: {attribute: temp, ranges: [[34, 36.95]]}}", "must be a number from 34 to 42 in steps of 0.1"),
        ("{ranges: {attribute: tmp, ranges: [[34, 36.9]]}}", "'tmp'"),
        ("{below: {item: [temp, 37.5], threshold: 5}}", "must be asked of a set of items"),
        ("{below: {item: [tmp, 37.5], threshold: 5}}", "'tmp'"),
        ("{quantile: {attribute: temp, at: [0.25]}}", "Write `quantiles`"),
        ("{Quantile: {attribute: temp, at: 0.25}}", "Write `quantiles`"),
        ("{quantiles: {attribute: temp, shares: [0.25]}}", "must be a known key"),
        ("{range: {attribute: temp, ranges: [[34, 36.9]]}}", "Did you mean 'ranges'?"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_said_of_quotes(tmp_path: Path, written: str, said: str) -> None:
    with pytest.raises(TacitError) as refused:
        asked(tmp_path, policy_of("temp", "clicked"), written)
    assert said in str(refused.value)
    assert "must be quoted" not in str(refused.value)


def every_question() -> list[tuple[tuple[str, ...], Query]]:
    """Return an example of every question about every kind of attribute that it can be asked of, and some more."""
    found: list[tuple[tuple[str, ...], Query]] = []
    for name in DOMAIN:
        policy = policy_of(name)
        for question in QUESTIONS:
            try:
                found.append(((name,), resolve(question.example(policy), policy.domain)))
            except TacitError:
                continue  # there is no such question about this kind
    more: list[tuple[tuple[str, ...], Any]] = [
        (("temp", "ward"), tc.mean("temp", by="ward", where="temp >= 36.6")),
        (("temp", "ward"), tc.total("temp", by=["ward"], where="ward == 'a'")),
        (("temp",), tc.ranges("temp", [(34.1, 36.9), (37, 42)])),
        (("day",), tc.ranges("day", [(datetime.date(2022, 1, 1), "2022-02-01")])),
        (("week",), tc.ranges("week", [("2022-W02", "2022-W10")], where="week >= '2022-W03'")),
        (("year",), tc.ranges("year", [("2020", "2021")])),
        (("rank",), tc.ranges("rank", [("low", "1.5")])),
        (("temp",), tc.quantiles("temp", [0.1, "1/3"], where="temp > 36.5")),
        (("bought",), tc.below(item=("bought", "0.5"), threshold=2)),
        (("clicked",), tc.top_k("clicked", 2)),
        (("temp",), tc.above("temp", 2, at_most=1, where="temp in [36.6, 36.7]")),
    ]
    return found + [(names, resolve(query, policy_of(*names).domain)) for names, query in more]


def test_what_a_certificate_says_can_be_asked_again(tmp_path: Path) -> None:
    questions = every_question()
    assert {query.keyword for _, query in questions} >= {question.keyword for question in QUESTIONS} - {
        "histogram",
        "median",
    }
    for names, query in questions:
        again = asked(tmp_path, policy_of(*names), json.dumps(query.document()))
        assert (str(again), again.document()) == (str(query), query.document())


def test_a_range_has_two_ends(tmp_path: Path) -> None:
    for written in ("[[34.5]]", "[34.5]", "[[34, 35, 36.5]]"):
        with pytest.raises(TacitError, match=r"must be \[low, high\]"):
            asked(tmp_path, policy_of("temp"), f"{{ranges: {{attribute: temp, ranges: {written}}}}}")

"""Tables for the terminal: on 80 columns texts are broken into lines, and no header and no number is cut."""

from __future__ import annotations

import io
from fractions import Fraction

import pandas as pd
import pytest
from rich.console import Console

import tacit as tc
from tacit.cli.screen import leave_out
from tacit.ledger.ledger import Account
from tacit.report.text import ledger_table, plan_table, release_table

DOMAIN = tc.Domain({"age": tc.Integers(0, 99), "income": tc.Integers(0, 10**9), "sex": tc.Categories(["f", "m"])})
POLICY = tc.Policy(DOMAIN, tc.secrets.attributes("age", "income"))
ASKED = {
    "incomes of everybody in the whole of the country": tc.total("income"),
    "unbreakably_long_name_of_a_release_" + "x" * 60: tc.histogram("age"),
    "sexes": tc.histogram("sex"),
    "old": tc.count("age > 60"),
}


@pytest.fixture(scope="module")
def made() -> tuple[dict[str, tc.Explanation], dict[str, tc.ReleaseRecord]]:
    rows = pd.DataFrame({"age": [1, 70], "income": [10**9, 10**9 - 1], "sex": ["f", "m"]})
    session = tc.Session(POLICY, rows, budget="999.123")
    said = {name: session.explain(query, "1/1000", show=False) for name, query in ASKED.items()}
    return said, {name: session.release(query, "1/1000") for name, query in ASKED.items()}


def shown(table: object, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(table)
    assert all(len(line) <= width for line in out.getvalue().splitlines())
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 100, 160])
def test_nothing_is_cut(made: tuple[dict[str, tc.Explanation], dict[str, tc.ReleaseRecord]], width: int) -> None:
    said, records = made
    planned, released = plan_table(said), release_table(records, said, narrow=width < 112)
    for table in (planned, released):
        leave_out(table, width)
    for text in (shown(planned, width), shown(released, width)):
        assert "\N{HORIZONTAL ELLIPSIS}" not in text
        for header in ("release", "epsilon", "expected", "error"):
            assert f" {header} " in text
        assert f" {said['old'].plan.rmse:,.0f} " in text
        assert " 1.41e+12 " in text
        assert "exact: for the rows that fit the domain" in text
    lower, upper = records["old"].interval()
    assert f"({lower[0]:,.0f} to {upper[0]:,.0f})" in shown(released, width)


@pytest.mark.parametrize("dataset", ["clinic", "a data set with a name of many words", "x" * 60])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_ledger_shows_what_remains_on_every_width(dataset: str, width: int) -> None:
    accounts = [
        Account(dataset, None, "c0ffee" * 10, Fraction(10), Fraction(7, 3), Fraction(23, 3)),
        Account(dataset, "ana", None, Fraction(2), Fraction(1, 8), Fraction(15, 8)),
    ]
    table = ledger_table(accounts)
    leave_out(table, width)
    text = shown(table, width)
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    for word in ("granted", "spent", "remains", "23/3", "1.875"):
        assert f" {word} " in text
    assert ("policy" in text) == (width > 60)

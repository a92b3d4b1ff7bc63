"""In notebooks everything that somebody holds is a line or safe HTML, and says nothing that is for the curator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest

import tacit as tc
from tacit.ledger.ledger import Ledger
from tacit.report.notebook import PRINT_IT

EVIL = "<script>alert('&')</script>"
ALLOWED = {"div", "style", "p", "strong", "pre", "ul", "li", "details", "summary", "table", "thead", "tbody", "tr"}
DRAWN = {"svg", "g", "path", "text", "tspan", "rect", "line", "circle", "defs", "clipPath", "linearGradient", "stop"}


def held_things(folder: Path) -> Iterator[Any]:
    domain = tc.Domain({"age": tc.Integers(0, 99), EVIL: tc.Categories(["A", EVIL, "C"])})
    policy = tc.Policy(domain, tc.secrets.within(5, "age"), name=f"{EVIL}\nsecond line")
    people = pd.DataFrame({"age": [31, 32, 47, 50], EVIL: ["A", EVIL, EVIL, "C"]})
    people.to_csv(folder / "people.csv", index=False)
    session = tc.Session(policy, people, budget=9, ledger=folder / "ledger.db", dataset=EVIL)
    yield from (domain, policy, session, session.split(EVIL), Ledger(folder / "ledger.db"))
    plan = session.plan(tc.cumulative("age"), epsilon=1)
    yield from (plan, plan.step, session.explain(plan, show=False))
    for query in (tc.count(), tc.histogram(EVIL), tc.histogram("age", EVIL), tc.mean("age", by=EVIL), tc.median("age")):
        yield session.release(query, epsilon=0.5)
    record = session.release(tc.top_k("age", 3), epsilon=0.5)
    yield from (record, record.promise, tc.audit.exact(tc.histogram(EVIL), policy.plain(), 1.0))
    places = tc.Policy(tc.Domain({"place": tc.Items(2)}), tc.secrets.values({"place": [1]}))
    yield tc.PlaceMonitor(places, place=1, threshold=3, window=2, epsilon=1, time=None, state=folder / "monitor.db")
    csv = folder / "people.csv"
    yield tc.publish.perturbed(csv, public=[EVIL], sensitive="age", values=[31, 32, 47], retention=0.5)


def parsed(held: Any) -> ElementTree.Element:
    return ElementTree.fromstring(held._repr_html_())  # noqa: S314 - our own, which must be well formed


def test_everything_is_one_line_and_safe_html(tmp_path: Path) -> None:
    for held in held_things(tmp_path):
        assert "\n" not in repr(held), held
        assert len(repr(held)) <= 250, held
        page = parsed(held)
        assert {element.tag for element in page.iter()} <= ALLOWED | DRAWN | {"th", "td"}, held
        assert not [
            name for element in page.iter() for name in element.attrib if name.startswith("on") or "href" in name
        ]
        assert "url(http" not in held._repr_html_()
        assert EVIL not in held._repr_html_()


def test_a_record_has_its_chart_and_its_table_with_intervals() -> None:
    policy = tc.Policy(tc.Domain({"ward": tc.Categories(["A", "B"])}), tc.secrets.taking_part())
    session = tc.Session(policy, pd.DataFrame({"ward": list("AAB")}), budget=1)
    record = session.release(tc.histogram("ward"), epsilon=0.5)
    page = parsed(record)
    assert len(page.findall(".//svg")) == 1
    for before in (session, session.explain(tc.count(), epsilon=0.1, show=False)):
        assert "left out unseen" in before._repr_html_()  # and how to look
    cells = [[cell.text for cell in row] for row in page.iter("tr")]
    assert [row[0] for row in cells] == ["ward", "A", "B", "Sum"][: len(cells)]
    assert all(len(row) == len(cells[0]) > 1 for row in cells)


def test_a_column_is_kept_whose_heading_another_has() -> None:
    domain = tc.Domain({"Sum": tc.Categories(["Sum", "x"]), "x": tc.Categories(["Sum", "x", "y"])})
    session = tc.Session(
        tc.Policy(domain, tc.secrets.taking_part()), pd.DataFrame({"Sum": ["x"], "x": ["y"]}), budget=1
    )
    rows = [len(row) for row in parsed(session.release(tc.histogram("Sum", "x"), epsilon=1)).iter("tr")]
    assert rows == [4] * 5  # the longer one down: its name, two values and their sum; and the sums below


@pytest.fixture
def check(tmp_path: Path) -> tc.RowsCheck:
    (tmp_path / "people.csv").write_text("age\n31\n32\n777777\n")
    policy = tc.Policy(tc.Domain({"age": tc.Integers(0, 99)}), tc.secrets.taking_part())
    return tc.check_rows(policy, tmp_path / "people.csv")


def test_what_is_for_the_curator_is_shown_only_where_it_is_printed(check: tc.RowsCheck) -> None:
    frame = pd.DataFrame({"sex": ["f", "f", "m"], "disease": ["flu", "hiv", "flu"]})
    yardsticks = tc.audit.syntactic(frame, public=["sex"], sensitive="disease")
    for held in (check, yardsticks):
        line, private = [found.text for found in parsed(held).iter("p")]
        assert line == repr(held)
        assert private == f"{held.private} {PRINT_IT}"
        assert not re.search("[0-9]", repr(held) + held.private)
    assert "3 rows" in str(check)


def test_a_ledger_that_is_closed_says_so(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.grant(dataset="clinic", epsilon=1)
        assert "clinic" in ledger._repr_html_()
    assert "closed" in ledger._repr_html_()


def test_a_refusal_shows_the_own_line_and_no_frame_of_ours() -> None:
    with pytest.raises(tc.PolicyError) as refused:
        tc.Integers(9, 3)
    shown = refused.value._render_traceback_()
    assert shown == [f"line {refused.traceback[0].lineno + 1}: tc.Integers(9, 3)", f"PolicyError: {refused.value}"]
    with pytest.raises(TypeError) as wrong:
        tc.Session({}, [], bugdet=1)
    shown = wrong.value._render_traceback_()
    assert shown[0].endswith("tc.Session({}, [], bugdet=1)")
    assert shown[1:] == ["WrongArguments: Session.__init__: got an unexpected keyword argument 'bugdet'"]


def test_small_things_are_one_line_that_says_what_they_are(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        entry = ledger.grant(dataset="clinic", epsilon=2)
        receipt = ledger.charge(dataset="clinic", epsilon="1/3", analyst="ana", what="count of flu")
        (account,) = ledger.accounts()
        charge = ledger.entries()[-1]
    held = {
        tc.histogram("age", "ward"): "<Marginals: histogram(age, ward)>",
        tc.median("age"): "<Quantiles: median(age)>",
        tc.Integers(0, 9): "<Integers: {integers: [0, 9]}>",
        tc.Categories(["a", "b c"]): '<Categories: {categories: [a, "b c"]}>',
        account: "<Account: the total of dataset 'clinic': 2 granted, 1/3 spent, 5/3 remains>",
        receipt: "<Receipt: entry 2, 5/3 remains>",
        entry: f"<LedgerEntry: 1, {entry.time[:16]}, grant of 2 to 'clinic'>",
        charge: f"<LedgerEntry: 2, {charge.time[:16]}, charge of 1/3 to 'clinic' by 'ana': count of flu>",
    }
    assert {one: repr(one) for one in held} == held
    assert all(one._repr_html_() for one in held)

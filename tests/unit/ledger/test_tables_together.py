"""A second table of the same data set: refused where one of both promises a criterion, before anything is charged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import create_engine, text

import tacit as tc
from tacit import noise
from tacit.ledger.clauses import TableNote, check_alone

DOMAIN = tc.Domain(
    {
        "ward": tc.Categories([f"w{n}" for n in range(60)]),
        "ill": tc.Categories(["flu", "hiv", "none"]),
        "work": tc.Categories(["day", "night"]),
    }
)
POLICY = tc.Policy(DOMAIN, tc.secrets.attributes("ill", "work"))
COUNTS = np.array([400, 350, 250])
PEOPLE = pd.DataFrame(
    {
        "ward": np.repeat([f"w{n}" for n in range(60)], 1000),
        "ill": np.tile(np.repeat(["flu", "hiv", "none"], COUNTS), 60),
        "work": np.tile(["day", "night"], 30_000),
    }
)
FEW = PEOPLE.head(1000)
Table = tc.publish.PublishedTable
Ask = Callable[..., Table]


def opened(ledger: Any = None, rows: pd.DataFrame = FEW, **options: Any) -> tc.Session:
    return tc.Session(POLICY, rows, **{"budget": 50, "ledger": ledger, "dataset": "wards", **options})


def private(session: Any, sensitive: Any = "ill", **options: Any) -> Table:
    promise = {"retention": 0.5, "lam": 0.3, "delta": 0.3}
    return tc.publish.reconstruction_private(session, public=["ward"], sensitive=sensitive, **promise, **options)


def perturbed(session: Any, sensitive: Any = "ill", **options: Any) -> Table:
    return tc.publish.perturbed(session, public=["ward"], sensitive=sensitive, retention=0.5, **options)


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (private, private, "which promises that no frequency in a group is estimated too well"),
        (private, perturbed, "which promises that no frequency in a group is estimated too well"),
        (perturbed, private, "and the criterion asked for would not hold"),
    ],
)
@pytest.mark.parametrize("kept", [True, False], ids=["ledger", "session"])
def test_a_second_table_is_refused_before_the_charge(
    first: Ask, second: Ask, why: str, kept: bool, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.db" if kept else None
    session = opened(ledger)
    first(session)
    left = session.remaining
    later = opened(ledger) if kept else session  # as another process would open it
    with pytest.raises(tc.PlanError, match="must not be in two tables: of data set 'wards'") as refused:
        second(later)
    assert why in str(refused.value)
    assert "again=True" in refused.value.fix
    assert session.remaining == left
    if kept:
        assert tc.Ledger(tmp_path / "ledger.db").verify().ok


def test_what_is_refused_would_have_undone_the_promise() -> None:
    def wrong(estimates: Any) -> float:
        return float((np.abs(estimates - COUNTS) > 0.3 * COUNTS).mean(axis=0).min())

    session = opened(rows=PEOPLE)
    with noise.replayed(noise.Keystream(key=bytes(32))):
        tables = [private(session, method="masked", again=True) for _ in range(6)]
    assert wrong(tables[0].estimates) > 0.2
    assert wrong(np.mean([one.estimates for one in tables], axis=0)) < 0.1


def test_asked_for_again_the_certificate_takes_the_promise_back() -> None:
    session = opened()
    alone = private(session)
    assert "again" not in alone.certificate
    assert "promised any more" not in str(alone)
    for make in (private, perturbed):
        made = make(session, again=True)
        first = made.certificate["terms"][0]
        assert "about ill of the same rows" in first
        assert "no (lambda, delta) criterion is promised any more" in first
        assert made.certificate["again"] is True
        assert first in str(made).splitlines()[1]
    with pytest.raises(tc.PlanError, match="must not be in two tables"):
        perturbed(session)  # once said does not go for the next one
    with pytest.raises(tc.PlanError, match="again must be True or False"):
        perturbed(session, again="no")


def test_other_columns_are_another_matter() -> None:
    session = opened()
    private(session)
    assert perturbed(session, "work").certificate["sensitive"] == ["work"]
    with pytest.raises(tc.PlanError, match="must not be in two tables"):
        perturbed(session, ["work", "ill"])
    with pytest.raises(tc.PlanError, match=r"must not be in two tables.*got 'work'"):
        private(session, "work")


def test_perturbed_tables_promise_nothing_about_groups_so_that_any_number_may_be_had() -> None:
    session = opened()
    table = perturbed(session)
    assert perturbed(session).epsilon == table.epsilon
    assert tc.publish.append(table, session).version == 2


def test_counts_are_not_refused_and_the_words_say_so() -> None:
    session = opened()
    table = private(session)
    assert session.release(tc.histogram("ill"), epsilon=1).values.shape == (3,)
    said = " ".join(table.certificate["not_prevented"])
    assert "It does not refuse counts and histograms, and it knows nothing of tables that were made without" in said


def test_a_version_counts_as_a_table() -> None:
    session = opened()
    table = perturbed(session)
    private(session, again=True)
    left = session.remaining
    with pytest.raises(tc.PlanError, match="must not be in two tables"):
        tc.publish.append(table, session)
    assert session.remaining == left
    grown = tc.publish.append(table, session, again=True)
    assert "promised any more" in grown.certificate["terms"][0]
    assert "promised any more" in tc.publish.append(grown, session).certificate["terms"][0]


def test_plain_rows_are_remembered_by_nobody_but_may_say_it() -> None:
    plain = FEW
    values = ["flu", "hiv", "none"]
    private(plain, values=values)
    second = private(plain, values=values, again=True)
    assert "promised any more" in second.certificate["terms"][0]


def test_a_public_column_tells_as_well() -> None:
    promising = TableNote(("ward",), ("ill",), promises=True)
    telling = TableNote(("ill", "ward"), ("work",), promises=False)
    for old, new in ((promising, telling), (telling, promising)):
        with pytest.raises(tc.PlanError, match="must not be in two tables"):
            check_alone(new, [old], "wards")
    check_alone(TableNote(("ward",), ("work",), promises=True), [promising], "wards")


def test_whoever_changes_what_a_ledger_says_of_tables_is_noticed(tmp_path: Path) -> None:
    session = opened(tmp_path / "ledger.db")
    private(session)
    with create_engine(f"sqlite:///{tmp_path / 'ledger.db'}").begin() as db:
        db.execute(text("UPDATE tacit_entries SET policy_text = replace(policy_text, 'true', 'false')"))
    with pytest.raises(tc.LedgerError):
        perturbed(session)
    assert not tc.Ledger(tmp_path / "ledger.db").verify().ok

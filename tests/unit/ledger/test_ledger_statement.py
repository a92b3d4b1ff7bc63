"""What a ledger states about all charges to a data set, over policies."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from fractions import Fraction

import pytest

import tacit as tc

DOMAIN = tc.Domain({"age": tc.Integers(0, 99), "disease": tc.Categories(["flu", "hiv"])})
NARROW = tc.Policy(DOMAIN, tc.secrets.within(5, "age"))
WIDE = tc.Policy(DOMAIN, tc.secrets.within(9, "age") | tc.secrets.attributes("disease"))
OTHER = tc.Policy(DOMAIN, tc.secrets.attributes("disease"))


@pytest.fixture
def ledger(tmp_path):
    with tc.Ledger(tmp_path / "ledger.db") as opened:
        opened.grant(dataset="clinic", epsilon=2, policy=NARROW)
        yield opened


def test_charges_under_several_policies_promise_along_the_edges_of_all(ledger):
    ledger.charge(dataset="clinic", epsilon="1/4", policy=NARROW)
    ledger.charge(dataset="clinic", epsilon="1/2", policy=WIDE)
    ledger.charge(dataset="clinic", epsilon="1/2", policy=WIDE)
    with pytest.raises(tc.LedgerError):
        ledger.charge(dataset="clinic", epsilon="1/4", policy=OTHER)  # has none of the account's edges
    said = ledger.statement(dataset="clinic")
    assert (said.epsilon, said.policy) == (Fraction(5, 4), NARROW.fingerprint)
    assert tc.Policy.from_yaml(said.policy_text) == NARROW
    assert {(part.policy, part.charges, part.epsilon) for part in said.parts} == {
        (NARROW.fingerprint, 1, Fraction(1, 4)),
        (WIDE.fingerprint, 2, Fraction(1)),
    }
    assert f"every secret edge hidden -> cover of policy {NARROW.fingerprint[:12]}" in said.text
    assert "exp(1.25)" in said.text
    assert f"Of this, 1 under policy {WIDE.fingerprint[:12]}" in said.text
    assert said.document()["epsilon"] == "5/4"
    assert all(tc.Policy.from_yaml(said.policy_text).covers(NARROW) for _ in said.parts)


def test_nothing_was_charged(ledger):
    assert ledger.statement(dataset="clinic").text == "Nothing was charged to 'clinic': nothing was released."


def test_charges_without_a_policy_are_named(tmp_path):
    with tc.Ledger(tmp_path / "ledger.db") as opened:
        opened.grant(dataset="clinic", epsilon=2)
        opened.charge(dataset="clinic", epsilon="1/4")
        assert "1 charge to 'clinic', without a policy" in opened.statement(dataset="clinic").text
        opened.charge(dataset="clinic", epsilon="1/4", policy=NARROW)
        said = opened.statement(dataset="clinic")
        assert said.unknown == 1
        assert "1 of the charges without a policy" in said.text
        assert "exp(0.5)" in said.text


def test_a_data_set_without_a_budget_has_no_statement(ledger):
    with pytest.raises(tc.LedgerError, match="has no budget"):
        ledger.statement(dataset="clinik")


# ---- nothing is said from rows that somebody has changed


EDITS = {
    "a charge gets a policy": "UPDATE tacit_entries SET policy = (SELECT policy FROM tacit_entries WHERE number = 3) "
    "WHERE number = 2",
    "a charge is gone": "DELETE FROM tacit_entries WHERE number = 2",
    "the last charge is gone": "DELETE FROM tacit_entries WHERE number = 5",
    "a charge is smaller": "UPDATE tacit_entries SET epsilon = '1/1000' WHERE number = 3",
    "a charge is moved away": "UPDATE tacit_entries SET dataset = 'other' WHERE number = 3",
    "a charge is put in": "INSERT INTO tacit_entries SELECT 6, time, kind, dataset, analyst, epsilon, policy, "
    "policy_text, what, previous, hash FROM tacit_entries WHERE number = 5",
    "less is spent": "UPDATE tacit_accounts SET spent = '1/4' WHERE dataset = 'clinic'",
    "another policy": "UPDATE tacit_accounts SET policy = 'abc' WHERE dataset = 'clinic'",
    "an account is gone": "DELETE FROM tacit_accounts WHERE dataset = 'clinic'",
    "the mark of the key": "UPDATE tacit_head SET key_mark = 'abc'",
    "an older ledger": "UPDATE tacit_head SET version = 2",
}
REPORTS = {
    "statement": lambda ledger: ledger.statement(dataset="clinic"),
    "entries": lambda ledger: ledger.entries(),
    "entries of one": lambda ledger: ledger.entries("clinic"),
    "accounts": lambda ledger: ledger.accounts(),
}
ABOUT_ENTRIES, ABOUT_ACCOUNTS = {"statement", "entries", "entries of one"}, {"statement", "accounts"}
REFUSED = {
    **dict.fromkeys(list(EDITS)[:6], ABOUT_ENTRIES),
    **dict.fromkeys(list(EDITS)[6:9], ABOUT_ACCOUNTS),
    **{edit: set(REPORTS) for edit in list(EDITS)[9:]},
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("key", [None, "k" * 40], ids=["no key", "key"])
def test_what_was_changed_is_refused_and_not_told(tmp_path, edit, key):
    with tc.Ledger(tmp_path / "ledger.db", key=key) as opened:
        opened.grant(dataset="clinic", epsilon=5)
        opened.charge(dataset="clinic", epsilon=1, what="without a policy")
        opened.charge(dataset="clinic", epsilon="1/2", policy=NARROW)
        opened.charge(dataset="clinic", epsilon="1/4", policy=WIDE)
        opened.charge(dataset="clinic", epsilon="1/4", policy=WIDE)
        for report in REPORTS.values():
            report(opened)
        with closing(sqlite3.connect(tmp_path / "ledger.db")) as db, db:
            db.execute(EDITS[edit])
        assert not opened.verify().ok
        for name in REFUSED[edit]:
            with pytest.raises(tc.LedgerError, match=r"is damaged: .*`tacit ledger verify`"):
                REPORTS[name](opened)


def test_runs_lines_of_coins_and_receipts_that_were_changed_are_refused(ledger):
    receipt = ledger.reserve(dataset="clinic", charges=[("1/4", "x")], policy=NARROW, run="r", job="j")[0]
    assert ledger.receipt(dataset="clinic", entry=receipt.entry) == receipt
    assert [run.state for run in ledger.runs()] == ["reserved"]
    file = ledger._store.name
    line = f"INSERT INTO tacit_lines VALUES ('clinic', '{'a' * 64}', '1/2', 2, 'x')"
    for edit, report in {
        "UPDATE tacit_runs SET state = 'finished'": ledger.runs,
        line: lambda: ledger.coin_lines(dataset="clinic"),
        "UPDATE tacit_entries SET hash = 'abc' WHERE number = 2": lambda: ledger.receipt(dataset="clinic", entry=2),
        "DELETE FROM tacit_entries WHERE number = 2": lambda: ledger.receipt(dataset="clinic", entry=2),
    }.items():
        with closing(sqlite3.connect(file)) as db, db:
            db.execute(edit)
        with pytest.raises(tc.LedgerError, match=r"is damaged: .*`tacit ledger verify`"):
            report()


def test_a_report_with_another_key_believes_what_it_cannot_check(tmp_path):
    with tc.Ledger(tmp_path / "ledger.db", key="k" * 40) as opened:
        opened.grant(dataset="clinic", epsilon=5)
        opened.charge(dataset="clinic", epsilon=1, policy=NARROW)
        said = opened.statement(dataset="clinic")
    with tc.Ledger(tmp_path / "ledger.db", key=None) as without:
        assert without.statement(dataset="clinic") == said
        assert len(without.entries()) == 2

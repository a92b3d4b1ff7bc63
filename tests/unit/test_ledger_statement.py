"""What a ledger states about all charges to a data set, over policies."""

from __future__ import annotations

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

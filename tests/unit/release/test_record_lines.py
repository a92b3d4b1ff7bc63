"""Lines of true records: who shares coins with whom, what they cost, and what they let others learn."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import tacit as tc
from tacit.plan.leakage.shown import ShownSoFar, apart

SECRETS = {"arrival": ["late"], "leaving": ["early"]}
DOMAIN = tc.Domain(
    {
        "id": tc.Integers(0, 199),
        "owner": tc.Integers(0, 49),
        "arrival": tc.Categories(["ok", "late"]),
        "leaving": tc.Categories(["ok", "early"]),
    }
)
POLICY = tc.Policy(DOMAIN, tc.secrets.values(SECRETS))
ROWS = pd.DataFrame({"id": range(200), "owner": [at % 50 for at in range(200)], "arrival": "ok", "leaving": "ok"})
BOTH = tc.true_records(["arrival", "leaving"], key="id")


def test_attributes_of_equal_shape_have_coins_of_their_own() -> None:
    with tc.noise.replayed(tc.noise.Keystream(key=b"coins of two attributes, a unit.")):
        record = tc.Session(POLICY, ROWS, 5).release(BOTH, epsilon=1)
    shown = record.frame["arrival"].notna(), record.frame["leaving"].notna()
    assert len(record.plan.coin_lines) == 2
    # each is shown with probability u = 1 - exp(-1/2); independent coins agree with u^2 + (1 - u)^2, 0.52
    kept = -math.expm1(-1 / 2)
    agree = kept**2 + (1 - kept) ** 2
    assert abs((shown[0] == shown[1]).mean() - agree) < 4 * math.sqrt(agree * (1 - agree) / len(ROWS))


@pytest.mark.parametrize("secrets", [SECRETS, {"leaving": ["early"]}], ids=["coins", "no coin"])
def test_what_is_paid_is_what_was_asked_also_for_people_with_several_rows(secrets: dict[str, list[str]]) -> None:
    policy = tc.Policy(DOMAIN, tc.secrets.values(secrets), person="owner", per_person=4)
    session = tc.Session(policy, ROWS, 5)
    question = tc.true_records("arrival", key=["owner", "id"])
    for epsilon, left in ((1, 4), (1, 4), (Fraction(5, 2), Fraction(5, 2))):
        session.release(question, epsilon=epsilon)
        assert session.remaining == left


@pytest.mark.parametrize("key", [(), ("id",)], ids=["no key", "key"])
def test_columns_that_share_a_coin_tell_more_than_one(key: tuple[str, ...]) -> None:
    policy = tc.Policy(DOMAIN, tc.secrets.records("arrival == 'late'"))
    if key:
        policy = tc.Policy(DOMAIN, tc.secrets.attributes("arrival", "leaving", where="arrival == 'late'"))
    for names in (["arrival"], ["arrival", "leaving"]):
        plan = tc.Session(policy, ROWS, 5).plan(tc.true_records(names, key=key, application="lighting"), 1)
        reached = ShownSoFar().after(plan.shows).reached
        (shared,) = {epsilon for (who, name), epsilon in reached.items() if who == "lighting" and name in names}
        assert shared == apart(Fraction(1), len(names))
    assert shared > Fraction(3, 2)


def test_another_policy_has_other_coins_and_pays_for_them(tmp_path: Path) -> None:
    alone = tc.Policy(DOMAIN, tc.secrets.values({"arrival": ["late"]}))
    question = tc.true_records("arrival", key="id")
    frames, lines = [], []
    for policy, left in ((alone, 4), (POLICY, 3), (alone, 3)):
        session = tc.Session(policy, ROWS, 5, ledger=tmp_path / "ledger.db", dataset="days")
        record = session.release(question, epsilon=1)
        assert session.remaining == left
        frames.append(record.frame)
        lines.append(set(record.plan.coin_lines))
    assert frames[0].equals(frames[2])
    assert not frames[0].equals(frames[1])
    assert not lines[0] & lines[1]


def test_only_records_that_no_edge_touches_are_counted_as_they_are() -> None:
    policy = tc.Policy(DOMAIN, tc.secrets.attributes("arrival", where="owner < 25 and arrival == 'late'"))
    record = tc.Session(policy, ROWS, 5).release(tc.true_records("arrival", key=["owner", "id"]), epsilon=1)
    shown = record.frame["arrival"].notna()
    coined = shown & (record.frame["owner"] < 25)
    assert 0 < coined.sum() < 100
    assert shown.sum() == coined.sum() + 100
    share = -math.expm1(-1)
    assert record.estimate("owner < 25 and arrival == 'ok'").value == pytest.approx(coined.sum() / share)
    assert record.estimate("owner >= 25 and arrival == 'ok'").value == 100
    assert record.values[0] == pytest.approx(100 + coined.sum() / share)

"""New versions of tables: who pays for later rows, and what a version promises."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tacit as tc
from tacit.publish.methods.perturbation import Uniform

DOMAIN = tc.Domain({"ward": tc.Categories(["a", "b", "c"]), "ill": tc.Categories(["flu", "hiv", "none"])})
POLICY = tc.Policy(DOMAIN, tc.secrets.attributes("ill"))
FIRST = pd.DataFrame({"ward": ["a", "b"] * 30, "ill": ["flu", "hiv", "none"] * 20})
LATER = pd.DataFrame({"ward": ["b", "c"] * 15, "ill": ["flu", "hiv", "none"] * 10})
ASKED = {"public": ["ward"], "sensitive": "ill"}


def opened(rows: pd.DataFrame = FIRST, policy: tc.Policy = POLICY, **options: Any) -> tc.Session:
    return tc.Session(policy, rows, **{"budget": 5, "dataset": "wards", **options})


def table_of(session: tc.Session, **options: Any) -> tc.publish.PublishedTable:
    return tc.publish.perturbed(session, **ASKED, **{"epsilon": 1, **options})


def test_a_table_that_a_session_paid_for_takes_no_rows_that_nobody_pays_for() -> None:
    session = opened()
    table = table_of(session)
    for rows in (LATER, FIRST, {"ward": ["a"], "ill": ["hiv"]}):
        with pytest.raises(tc.PlanError, match="rows must come through a session, since one has paid") as refused:
            tc.publish.append(table, rows)
        assert "append(table, session)" in refused.value.fix
    assert session.remaining == 5 - table.epsilon


def test_a_session_pays_for_later_rows_and_the_version_says_the_sum(tmp_path: Path) -> None:
    ledger = tc.Ledger(tmp_path / "ledger.db")
    table = table_of(opened(ledger=ledger))
    each = table.epsilon
    second = tc.publish.append(table, opened(LATER, ledger=ledger))
    third = tc.publish.append(second, opened(LATER, ledger=ledger))
    assert ledger.remaining(dataset="wards") == 5 - 3 * each
    assert [one.epsilon for one in (table, second, third)] == [each, 2 * each, 3 * each]
    assert (second.sizes.tolist(), third.sizes.tolist()) == ([30, 45, 15], [30, 60, 30])
    assert (second.published[0] == table.published[0]).all()  # nobody new is in this ward
    said = third.certificate
    assert (said["version"], Fraction(said["epsilon"]), said["dataset"]) == (3, 3 * each, "wards")
    charged = [entry for entry in ledger.entries(dataset="wards") if entry.kind == "charge"]
    entries = [one["entry"] for one in (*said["earlier"], said["ledger"])]
    assert entries == [entry.number for entry in charged]
    assert sum(entry.epsilon for entry in charged) == Fraction(said["epsilon"])
    assert table.certificate["version"] == 1


def test_the_same_rows_again_cost_again() -> None:
    session = opened()
    table = table_of(session)
    again = tc.publish.append(table, session)
    assert session.remaining == 5 - 2 * table.epsilon == 5 - again.epsilon
    poor = opened(budget=table.epsilon / 2)
    with pytest.raises(tc.BudgetExceeded):
        tc.publish.append(again, poor)


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"dataset": "others"}, "dataset must be that of the session which has paid for the table, wards"),
        ({"policy": tc.Policy(DOMAIN, tc.secrets.attributes("ill", where="ill == 'hiv'"))}, "policy must be that of"),
    ],
)
def test_other_sessions_are_refused(other: dict[str, Any], sentence: str) -> None:
    session = opened(LATER, **other)
    with pytest.raises(tc.PlanError, match=sentence):
        tc.publish.append(table_of(opened()), session)
    assert session.remaining == 5


def test_a_table_of_plain_rows_takes_no_session_and_names_no_account() -> None:
    plain = tc.publish.perturbed(FIRST, **ASKED, values=["flu", "hiv", "none"], epsilon=1)
    session = opened(LATER)
    with pytest.raises(tc.PlanError, match="rows must be plain rows, since no session has paid"):
        tc.publish.append(plain, session)
    assert session.remaining == 5
    # also of a table whose account was taken away
    for table in (plain, replace(table_of(opened()), account=None)):
        grown = tc.publish.append(table, LATER)
        assert not {"dataset", "policy", "policy_fingerprint", "ledger"} & set(grown.certificate)
        assert grown.certificate["version"] == 2
        assert "each record was given once" in grown.certificate["assumes"]
        assert grown.epsilon == plain.epsilon


def test_what_draws_is_no_object_that_was_handed_in() -> None:
    class Tells(Uniform):
        def draw(self, counts: Any) -> Any:
            raise AssertionError(counts.tolist())

    table, session = table_of(opened()), opened(LATER)
    assert isinstance(table.method, Uniform)
    with pytest.raises(tc.PlanError, match="must be made by a method of this library"):
        tc.publish.append(replace(table, method=Tells(table.method.channel)), session)
    assert session.remaining == 5


def test_merged_groups_stay_merged() -> None:
    groups = {"ward": {"a": "a or b", "b": "a or b", "c": "c"}}
    table = table_of(opened(), groups=groups)
    assert tc.publish.append(table, opened(LATER)).sizes.tolist() == [75, 15]
    plain = tc.publish.perturbed(FIRST, **ASKED, values=["flu", "hiv", "none"], epsilon=1, groups=groups)
    assert tc.publish.append(plain, LATER).sizes.tolist() == [75, 15]


def test_a_version_with_replayed_noise_promises_nothing() -> None:
    table = table_of(opened())
    with tc.noise.replayed(tc.noise.Keystream(key=b"v" * 32)):
        replayed = table_of(opened())
        grown = tc.publish.append(table, opened(LATER))
    for one in (grown, tc.publish.append(replayed, opened(LATER))):
        assert one.certificate["guarantee"].startswith("none")
    assert tc.publish.append(table, opened(LATER)).certificate["guarantee"] == table.certificate["guarantee"]


# ---- tables that keep a criterion -----------------------------------------------------------------------------------

VALUES = ["flu", "hiv", "none"]
PROMISE = {**ASKED, "values": VALUES, "retention": 0.5, "lam": 0.3, "delta": 0.3}
NEXT_WARD = pd.DataFrame({"ward": ["c"] * 30, "ill": VALUES * 10})


@pytest.mark.parametrize("method", ["masked", "sample", "retention"])
def test_a_criterion_holds_for_all_versions_together(method: str) -> None:
    """Groups that are all new may come; a group in two versions would be known too well, by the sum of both."""
    table = tc.publish.reconstruction_private(FIRST, **PROMISE, method=method)
    grown = tc.publish.append(table, NEXT_WARD)
    assert (grown.version, grown.sizes.tolist(), grown.method) == (2, [30, 30, 30], table.method)
    assert (grown.published[:2] == table.published).all()  # old coins are kept
    assert grown.certificate["terms"] == table.certificate["terms"]
    if method == "masked":  # masked once more: tests/unit/publish/test_grown_groups.py
        return
    with pytest.raises(tc.PlanError, match="rows must have groups that are all old or all new") as refused:
        tc.publish.append(table, LATER)
    assert "year" in refused.value.fix


def test_small_groups_may_grow_while_their_retention_stays() -> None:
    rows = [pd.DataFrame({"ward": ["a"] * many, "ill": ["flu"] * many}) for many in (2, 3, 60)]
    table = tc.publish.reconstruction_private(rows[0], **PROMISE, method="retention")
    grown = tc.publish.append(table, rows[1])
    assert grown.sizes.tolist() == [5]
    assert grown.method.retentions(grown.sizes) == [Fraction(1, 2)]  # type: ignore[attr-defined]
    with pytest.raises(tc.PlanError, match="all old or all new"):
        tc.publish.append(grown, rows[2])


def test_a_session_pays_for_no_criterion_that_might_not_hold() -> None:
    asked = {**PROMISE, "values": None}
    table, later = tc.publish.reconstruction_private(opened(), **asked), opened(LATER)
    with pytest.raises(tc.PlanError, match="must be perturbed uniformly to grow through a session"):
        tc.publish.append(table, later)
    assert later.remaining == 5


@pytest.mark.parametrize(
    ("old", "new"),
    [(2024, "2024"), ("2024-01-01", pd.Timestamp("2024-01-01")), ("North", "north"), ("North", "North ")],
    ids=["number", "date", "case", "space"],
)
def test_an_old_group_in_another_spelling_is_no_new_one(old: Any, new: Any) -> None:
    rows = pd.DataFrame({"year": [old] * 300, "ill": ["flu", "hiv", "none"] * 100})
    asked = {"public": ["year"], "sensitive": "ill", "values": ["flu", "hiv", "none"], "retention": 0.5}
    table = tc.publish.reconstruction_private(rows, **asked, lam=0.3, delta=0.3, method="masked")
    with pytest.raises(tc.PlanError, match=r"rows\.year must be written as in the table"):
        tc.publish.append(table, rows.assign(year=new))
    grown = tc.publish.append(table, rows.assign(year=1999 if isinstance(old, int) else "1999-05-05"))
    assert len(grown.sizes) == 2


@pytest.mark.parametrize("public", [[], ["ward"]])
@pytest.mark.parametrize("first", [0, 30])
@pytest.mark.parametrize("later", [0, 30])
def test_a_version_may_count_nobody(public: list[str], first: int, later: int) -> None:
    """Also without public columns: a table of nobody has no group then, and the next version has one."""
    asked = {"public": public, "sensitive": "ill", "epsilon": 1}
    unlisted = pd.DataFrame({"ward": ["z"], "ill": ["unlisted"]})
    old, new = (pd.concat([unlisted, rows[:many]]) for rows, many in ((FIRST, first), (LATER, later)))
    table = tc.publish.append(tc.publish.perturbed(opened(old), **asked), opened(new))
    assert (table.sizes.sum(), table.published.sum(), table.version) == (first + later, first + later, 2)

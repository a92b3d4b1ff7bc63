"""What a session hands true counts to: a table that `tc.publish` made, and nothing that only looks like one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tacit as tc
from tacit.ledger.clauses import TableNote
from tacit.plan.measure.measured import CellCounts
from tacit.publish import paid_tables as source
from tacit.publish.methods.criterion import Channel
from tacit.publish.methods.perturbation import Uniform
from tacit.release.publication import Publication, announced

DOMAIN = tc.Domain({"ward": tc.Categories(["a", "b"]), "ill": tc.Categories(["flu", "hiv", "none"])})
POLICY = tc.Policy(DOMAIN, tc.secrets.attributes("ill"))
PEOPLE = pd.DataFrame({"ward": ["a", "b"] * 30, "ill": ["flu", "hiv", "none"] * 20})
TALLIES = (CellCounts(("ward", "ill")),)
NOTE = TableNote(("ward",), ("ill",), promises=False)


def counts_as_they_are(counts: Any, *_: Any) -> Any:
    return counts


class LooksLikeOne:
    """Has all that a publication has; counts what it is asked."""

    policy, epsilon, tallies, title, table = POLICY, Fraction(1, 10**9), TALLIES, "nothing special", NOTE
    asked = 0

    def make(self, counts: Any, *_: Any) -> Any:
        type(self).asked += 1
        return counts


def a_real_one(monkeypatch: pytest.MonkeyPatch) -> Publication:
    """The publication of a table: a session is watched while it is handed one."""
    seen: list[Publication] = []
    session = tc.Session(POLICY, PEOPLE, budget=2)
    monkeypatch.setattr(tc.Session, "publish", lambda self, publication, **_: seen.append(publication))
    with pytest.raises(TypeError):
        source.published(
            session,
            source.columns_for(session, ["ward"], "ill", None),
            source.Choice(METHOD.epsilon, lambda _: METHOD, promises=False),
            None,
        )
    monkeypatch.undo()
    return seen[0]


METHOD = Uniform(Channel(Fraction(1, 2), 3))


@pytest.mark.parametrize(
    "forge",
    [
        lambda real: LooksLikeOne(),
        lambda real: Publication(POLICY, Fraction(1, 10**9), TALLIES, "mine", NOTE, counts_as_they_are),
        lambda real: replace(real, make=counts_as_they_are),
        lambda real: replace(real, epsilon=Fraction(1, 10**9)),
        lambda real: copy.copy(real),
        lambda real: type("Derived", (Publication,), {})(
            POLICY, Fraction(1), TALLIES, "mine", NOTE, counts_as_they_are
        ),
        lambda real: None,
        lambda real: PEOPLE,
    ],
    ids=["duck", "by hand", "other make", "cheaper", "copy", "derived", "none", "frame"],
)
def test_nothing_that_looks_like_a_publication_sees_counts(
    forge: Callable[[Publication], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = a_real_one(monkeypatch)
    ledger = tc.Ledger(tmp_path / "ledger.db")
    session = tc.Session(POLICY, PEOPLE, budget=2, ledger=ledger, dataset="d")
    before = ledger.entries(dataset="d")
    with pytest.raises(tc.PlanError, match=r"must be one that `tc.publish` made, and unchanged"):
        session.publish(forge(real))
    assert session.remaining == 2
    assert ledger.entries(dataset="d") == before
    assert LooksLikeOne.asked == 0
    assert session.publish(real).sizes.tolist() == [30, 30]  # type: ignore[attr-defined]
    assert session.remaining == 2 - METHOD.epsilon


@pytest.mark.parametrize("epsilon", [0, -5, Fraction(-1, 3), float("nan"), 10**6])
def test_a_publication_has_a_price(epsilon: Any) -> None:
    with pytest.raises(tc.PlanError, match="epsilon must"):
        announced(POLICY, epsilon, TALLIES, "free", NOTE, counts_as_they_are)


def test_the_policy_is_that_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    session = tc.Session(tc.Policy(DOMAIN, tc.secrets.attributes("ill", where="ill == 'hiv'")), PEOPLE, budget=2)
    with pytest.raises(tc.PlanError, match="must be under the policy of this session"):
        session.publish(a_real_one(monkeypatch))
    assert session.remaining == 2


def test_a_method_that_loses_more_than_was_charged_is_not_drawn() -> None:
    session = tc.Session(POLICY, PEOPLE, budget=2)
    columns = source.columns_for(session, ["ward"], "ill", None)
    with pytest.raises(tc.InternalError):
        source.published(session, columns, source.Choice(METHOD.epsilon / 2, lambda _: METHOD, promises=False), None)
    assert session.remaining == 2 - METHOD.epsilon / 2

"""One record of each household: fair picks, and what a table of them promises."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binomtest

import tacit as tc
from tacit.rows.counts.groups import one_of_each

ASKED = {"public": ["ward"], "sensitive": "ill", "values": ["flu", "hiv", "none"], "retention": 0.5}


def test_each_row_of_a_set_is_picked_as_often() -> None:
    """Sets of 1 + 2 rows and of 3 + 1 rows; 2,000 picks, at alpha 1e-6."""
    sets, counts = np.array([7, 2, -1, 7, 2]), np.array([3, 1, 9, 1, 2])
    with tc.noise.replayed(tc.noise.Keystream(key=b"h" * 32)):
        picked = np.array([one_of_each(sets, counts) for _ in range(2000)])
    assert (sets[picked] == [2, 7]).all()  # one of each, and none that is in no set
    first = int((picked[:, 0] == 1).sum())
    assert binomtest(first, 2000, 1 / 3).pvalue > 1e-6 > binomtest(first, 2000, 1 / 2).pvalue
    second = int((picked[:, 1] == 0).sum())
    assert binomtest(second, 2000, 3 / 4).pvalue > 1e-6 > binomtest(second, 2000, 1 / 2).pvalue


def test_rows_without_a_set_are_left_out() -> None:
    rows = {"ward": ["a"] * 4, "ill": ["flu"] * 4, "home": [None, 1.0, float("nan"), 1.0]}
    assert tc.publish.perturbed(pd.DataFrame(rows), **ASKED, one_per="home").sizes.tolist() == [1]
    assert one_of_each(np.array([-1, -1]), np.array([1, 2])).size == 0


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_table_has_one_record_of_each_household(kind: type) -> None:
    rows = {"ward": ["a", "b"] * 60, "ill": ["flu", "hiv", "none"] * 40, "home": np.repeat(np.arange(30), 4)}
    for made in (
        tc.publish.perturbed(kind(rows), **ASKED, one_per="home"),
        tc.publish.reconstruction_private(kind(rows), **ASKED, lam=0.3, delta=0.3, one_per="home"),
    ):
        assert made.sizes.sum() == 30
        assert made.certificate["one_per"] == "home"
        assert "also if all their values change at once" in made.certificate["terms"][-1]
        assert not any("depend on each other" in one for one in made.warnings)
        with pytest.raises(tc.PlanError, match="a set might be in two versions"):
            tc.publish.append(made, kind(rows))
    whole = tc.publish.perturbed(kind(rows), **ASKED)
    assert whole.sizes.sum() == 120
    assert any("depend on each other" in one for one in whole.warnings)


def test_changing_a_whole_household_costs_epsilon() -> None:
    """Both members of a household change their values at once; 1,000 households, each in a ward of its own."""
    home = np.repeat(np.arange(1000), 2)
    asked = {**ASKED, "values": ["flu", "none"]}

    def both_shown(value: str, one_per: str | None) -> float:
        rows = pd.DataFrame({"ward": home, "ill": [value] * len(home), "home": home})
        found = tc.publish.perturbed(rows, **asked, one_per=one_per)
        return float(np.mean(found.published[:, 0] == found.sizes))

    with tc.noise.replayed(tc.noise.Keystream(key=b"e" * 32)):
        one, both = ([both_shown(value, key) for value in ("flu", "none")] for key in ("home", None))
    # all records of a household show flu: 3/4 against 1/4 with one of them, 9/16 against 1/16 with both
    assert one == pytest.approx([0.75, 0.25], abs=5 * np.sqrt(0.19 / 1000))
    assert both[0] > 5 * both[1]  # more than exp(epsilon) = 3


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("ill", "one_per must not be sensitive"),
        (3, "one_per must be the name of a column"),
        ("nobody", "must be a column"),
    ],
)
def test_what_says_no_set_is_refused(given: object, sentence: str) -> None:
    rows = pd.DataFrame({"ward": ["a"], "ill": ["flu"], "home": [1]})
    with pytest.raises((tc.PlanError, tc.DataRefused), match=sentence):
        tc.publish.perturbed(rows, **ASKED, one_per=given)


def test_a_session_says_person_instead() -> None:
    domain = tc.Domain({"ward": tc.Categories(["a", "b"]), "ill": tc.Categories(["flu", "hiv", "none"])})
    rows = pd.DataFrame({"ward": ["a"] * 4, "ill": ["flu"] * 4, "home": [1, 1, 2, 2]})
    policy = tc.Policy(domain, tc.secrets.attributes("ill"))
    asked = {"public": ["ward"], "sensitive": "ill", "retention": Fraction(1, 2)}
    session = tc.Session(policy, rows, budget=5)
    with pytest.raises(tc.PlanError, match="must not be given for a session") as refused:
        tc.publish.perturbed(session, **asked, one_per="home")
    assert "person='home'" in refused.value.fix
    assert session.remaining == 5
    assert tc.publish.perturbed(tc.Session(policy, rows, budget=5, person="home"), **asked).sizes.tolist() == [2]

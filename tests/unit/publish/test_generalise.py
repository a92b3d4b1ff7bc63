"""Generalised personal groups: the test, the linkages, and maps that are given."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse.csgraph import connected_components
from scipy.stats import chi2_contingency

import tacit as tc
from tacit.publish.generalise import homogeneity, same_impact
from tacit.publish.groups import as_columns, personal_groups

ADULT = {
    "public": ["education", "occupation", "race", "sex"],
    "sensitive": "income",
    "values": ["<=50K", ">50K"],
}
PROMISE = {"retention": 0.5, "lam": 0.3, "delta": 0.3}


@pytest.fixture(scope="module")
def adult() -> pd.DataFrame:
    rows = pd.read_parquet(Path(tc.__file__).parent / "data" / "adult.parquet")
    return rows[(rows != "?").all(axis=1)]


def test_the_test_is_pearsons_of_homogeneity() -> None:
    counts = np.array([[30, 10, 0, 5], [12, 9, 0, 1], [0, 0, 0, 40], [3, 0, 0, 0]])
    found = homogeneity(counts)
    for one, other in ((0, 1), (0, 2), (1, 3), (2, 3)):
        both = counts[[one, other]]
        expected = chi2_contingency(both[:, both.sum(axis=0) > 0], correction=False).pvalue
        assert found[one, other] == pytest.approx(expected, rel=1e-9)
    assert found[0, 0] == 1


def test_nobody_and_one_value_are_told_apart_from_nothing() -> None:
    assert homogeneity(np.array([[5, 0], [9, 0], [0, 0]])).tolist() == np.ones((3, 3)).tolist()
    assert same_impact(np.array([[3, 4]]), 0.05, "complete").tolist() == [0]


def test_components_chain_and_complete_linkage_does_not() -> None:
    """77 values whose frequency drifts from 10% to 90%: neighbours cannot be told apart, the ends can."""
    shares = np.linspace(0.1, 0.9, 77)
    counts = np.rint(np.stack([shares, 1 - shares], axis=1) * 1000).astype(np.int64)
    assert same_impact(counts, 0.05, "components").max() == 0
    clusters = same_impact(counts, 0.05, "complete")
    assert clusters.max() > 8
    for one in range(clusters.max() + 1):
        assert (homogeneity(counts[clusters == one]) > 0.05).all()


@pytest.mark.parametrize(("degrees", "sizes"), [("bins", [7, 4, 2, 2]), ("values", [7, 3, 2, 2])])
def test_table_4_3(adult: pd.DataFrame, degrees: str, sizes: list[int]) -> None:
    """Thesis 004, Table 4.3 on Adult: with the right degrees of freedom; the printed ones give 7/3/2/2."""
    groups = personal_groups(adult, as_columns(**ADULT))
    found = []
    for at, values in enumerate(groups.values):
        counts = np.zeros((len(values), 2), np.int64)
        np.add.at(counts, groups.which[:, at], groups.counts)
        found.append(int(same_impact(counts, 0.05, "components", degrees).max()) + 1)
    assert found == sizes


def test_shares_of_the_generalised_groups(adult: pd.DataFrame) -> None:
    """Golden: 44 of 89 groups (49%), 97.8% of the records."""
    made = tc.publish.generalise(adult, **ADULT, linkage="components")
    assert (list(made.sizes.values()), made.protected) == ([7, 4, 2, 2], False)
    assert "not protected" in str(made)
    found = tc.audit.reconstruction(adult, **ADULT, **PROMISE, criterion="chernoff", groups=made)
    assert (found.count, len(found.frame), round(found.share_of_records, 3)) == (44, 89, 0.978)


def test_maps_that_are_given() -> None:
    rows = pd.DataFrame({"ward": list("aabbcc"), "ill": ["flu", "hiv"] * 3})
    asked = {"public": ["ward"], "sensitive": "ill", "values": ["flu", "hiv"], "retention": 0.5}
    table = tc.publish.perturbed(rows, **asked, groups={"ward": {"a": "north", "b": "north", "c": "south"}})
    assert table.frame["ward"].tolist() == ["north", "north", "south", "south"]
    assert table.sizes.tolist() == [4, 2]
    with pytest.raises(
        tc.PlanError, match=r"groups must say what every value of 'ward' becomes; got \"nothing for 'c'"
    ):
        tc.publish.perturbed(rows, **asked, groups={"ward": {"a": "north", "b": "north"}})
    with pytest.raises(tc.PlanError, match="groups must be about public columns"):
        tc.publish.perturbed(rows, **asked, groups={"wart": {}})
    with pytest.raises(tc.PlanError, match="Did you mean 'complete'"):
        tc.publish.generalise(rows, public=["ward"], sensitive="ill", values=["flu", "hiv"], linkage="complet")


def test_a_session_refuses_an_incomplete_map_before_it_pays() -> None:
    domain = tc.Domain({"ward": tc.Categories(["a", "b"]), "ill": tc.Categories(["flu", "hiv"])})
    rows = pd.DataFrame({"ward": ["a"], "ill": ["flu"]})
    session = tc.Session(tc.Policy(domain, tc.secrets.attributes("ill")), rows, budget=2)
    asked = {"public": ["ward"], "sensitive": "ill", "retention": 0.5}
    with pytest.raises(tc.PlanError, match="must say what every value"):
        tc.publish.perturbed(session, **asked, groups={"ward": {"a": "north"}})
    assert session.remaining == 2
    assert tc.publish.perturbed(session, **asked, groups={"ward": {"a": "x", "b": "x"}}).sizes.tolist() == [1]


def test_released_tables_may_be_used_freely() -> None:
    rows = pd.DataFrame({"ward": list("aabbcc") * 50, "ill": ["flu", "hiv"] * 150})
    table = tc.publish.perturbed(rows, public=["ward"], sensitive="ill", values=["flu", "hiv"], retention=0.9)
    assert tc.publish.generalise(table).protected


WARDS = {"public": ["ward"], "sensitive": "ill"}
VALUES = {"values": ["flu", "hiv"]}


def ward_rows(ill_in_b: int) -> pd.DataFrame:
    """Return two wards of 20: half of ward a is ill with hiv, and so many of ward b."""
    ill = ["flu", "hiv"] * 10 + ["hiv"] * ill_in_b + ["flu"] * (20 - ill_in_b)
    return pd.DataFrame({"ward": ["a"] * 20 + ["b"] * 20, "ill": ill})


def test_a_session_refuses_groups_that_were_made_from_rows() -> None:
    """One record decides whether the wards are one group: the names of the groups would tell it."""
    made = {ill: tc.publish.generalise(ward_rows(ill), **WARDS, **VALUES) for ill in range(10, 20)}
    assert len({str(one.maps) for one in made.values()}) == 2
    domain = tc.Domain({"ward": tc.Categories(["a", "b"]), "ill": tc.Categories(["flu", "hiv"])})
    for publish, asked in (
        (tc.publish.perturbed, {"retention": 0.5}),
        (tc.publish.reconstruction_private, {**PROMISE, "method": "masked"}),
    ):
        session = tc.Session(tc.Policy(domain, tc.secrets.attributes("ill")), ward_rows(10), budget=5)
        maps = made[10].maps
        for groups in (made[10], maps, dict(maps), {"ward": maps["ward"]}, replace(made[10], protected=True)):
            with pytest.raises(tc.PlanError, match="groups must not be made from people's rows"):
                publish(session, **WARDS, **asked, groups=groups)
        assert session.remaining == 5
        public = tc.publish.generalise(ward_rows(10), **WARDS, **VALUES, public_data=True)
        for groups in (public, public.maps, {"ward": {"a": "a or b", "b": "a or b"}}):
            assert publish(session, **WARDS, **asked, groups=groups, again=True).sizes.tolist() == [40]


def test_a_table_of_plain_rows_says_that_its_groups_are_not_covered() -> None:
    rows, words = ward_rows(10), "groups were made from these rows; no epsilon covers them"
    made = tc.publish.generalise(rows, **WARDS, **VALUES)
    table = tc.publish.perturbed(rows, **WARDS, **VALUES, retention=0.5, groups=made)
    assert words in str(table)
    assert words in table.certificate["terms"]
    assert table.certificate["guarantee"].startswith(f"none for the table as a whole: {words}")
    assert words in str(tc.publish.append(table, rows))
    assert not tc.publish.generalise(table).protected  # made of groups that were not
    marked = tc.publish.perturbed(rows, **WARDS, **VALUES, retention=0.5, groups=made.maps)
    assert marked.certificate["terms"] == table.certificate["terms"]
    own = {"ward": {"a": "a or b", "b": "a or b"}}
    plain = tc.publish.perturbed(rows, **WARDS, **VALUES, retention=0.5, groups=own)
    assert words not in str(plain) + str(plain.certificate)
    assert plain.certificate["guarantee"].startswith("for every two records")


def test_rows_that_come_later_fall_into_merged_groups() -> None:
    rows = ward_rows(10)
    table = tc.publish.perturbed(rows, **WARDS, **VALUES, retention=0.5, groups={"ward": {"a": "all", "b": "all"}})
    assert tc.publish.append(table, rows).sizes.tolist() == [80]


@pytest.mark.parametrize("retention", [0.3, 0.5])
def test_values_of_one_law_are_kept_apart_as_rarely_as_was_asked_for(retention: float) -> None:
    """Of a perturbed table: reconstructed counts, taken for true ones, are kept apart in 65% and 40%."""
    names, rng = [f"{number:03d}" for number in range(240)], np.random.default_rng(5)
    rows = pd.DataFrame({"ward": np.repeat(names, 500), "ill": np.where(rng.random(120_000) < 0.3, "flu", "none")})
    asked = {"public": ["ward"], "sensitive": "ill", "values": ["flu", "none"], "retention": retention}
    with tc.noise.replayed(tc.noise.Keystream(key=b"h" * 32)):
        table = tc.publish.perturbed(rows, **asked)
    apart = 0
    for at in range(0, 240, 2):  # pairs, so that the tests are independent
        pair = replace(
            table,
            groups=replace(table.groups, values=(("a", "b"),), which=np.array([[0], [1]])),
            sizes=table.sizes[at : at + 2],
            published=table.published[at : at + 2],
        )
        apart += tc.publish.generalise(pair).sizes["ward"] == 2
    # 5% of 120; beyond 15 once in 2,000 cases, and so the keystream is fixed
    assert apart <= 15


def test_different_laws_are_told_apart_and_other_tables_are_refused() -> None:
    rows = pd.DataFrame({"ward": ["a"] * 2000 + ["b"] * 2000, "ill": ["flu"] * 1500 + ["none"] * 2500})
    asked = {"public": ["ward"], "sensitive": "ill", "values": ["flu", "none"], "retention": 0.5}
    assert tc.publish.generalise(tc.publish.perturbed(rows, **asked)).sizes == {"ward": 2}
    for method in ("masked", "sample", "retention"):
        table = tc.publish.reconstruction_private(rows, **asked, lam=0.3, delta=0.3, method=method)
        with pytest.raises(tc.PlanError, match="source must be perturbed uniformly"):
            tc.publish.generalise(table)


# ---- combinations of columns ----------------------------------------------------------------------------------------

BOTH: dict[str, Any] = {"public": ["ward", "sex"], "sensitive": "ill", "values": ["flu", "hiv"]}


def crossed(each: int = 400) -> pd.DataFrame:
    """Ward and sex tell nothing by themselves: hiv is frequent among women of a, and men of b."""
    parts = []
    for ward, sex in product("ab", "fm"):
        many = each * 3 // 4 if (ward == "a") == (sex == "f") else each // 4
        parts.append(pd.DataFrame({"ward": ward, "sex": sex, "ill": ["hiv"] * many + ["flu"] * (each - many)}))
    return pd.concat(parts, ignore_index=True)


def test_columns_that_tell_nothing_alone_may_tell_together() -> None:
    rows = crossed()
    assert tc.publish.generalise(rows, **BOTH).sizes == {"ward": 1, "sex": 1}
    made = tc.publish.generalise(rows, **BOTH, joint=True)
    assert (made.sizes, made.protected) == ({"ward and sex": 3}, False)  # two groups, and others
    assert str(made) == "ward and sex 4 -> 3; made from people's rows and not protected by any epsilon"
    table = tc.publish.perturbed(rows, **BOTH, retention=0.5, groups=made)
    assert table.groups.columns.public == ("ward and sex",)
    assert table.groups.values == (("1: a, f or b, m", "2: a, m or b, f"),)
    assert table.sizes.tolist() == [800, 800]
    assert table.frame.columns.tolist() == ["ward and sex", "ill", "count", "estimate"]
    later = tc.publish.append(table, rows)  # new rows have the columns of the old ones
    assert later.sizes.tolist() == [1600, 1600]
    audit = tc.audit.reconstruction(rows, **BOTH, **PROMISE, groups=made)
    assert audit.frame["size"].tolist() == [800, 800]


@pytest.mark.parametrize("linkage", ["complete", "components"])
def test_combinations_are_merged_as_the_test_of_every_pair_says(linkage: str) -> None:
    draw = np.random.default_rng(12)
    shares = draw.choice([0.2, 0.3, 0.5, 0.8], (4, 3))
    rows = pd.DataFrame({"ward": draw.integers(0, 4, 6000), "sex": draw.integers(0, 3, 6000)})
    rows["ill"] = np.where(draw.random(6000) < shares[rows.ward, rows.sex], "hiv", "flu")
    made = tc.publish.generalise(rows, **BOTH, joint=True, linkage=linkage).maps["ward", "sex"]
    counts = rows.groupby(["ward", "sex"]).ill.value_counts().unstack()
    # Pearson's test of two rows, by scipy
    alike = {
        (one, other): chi2_contingency(counts.loc[[one, other]], correction=False).pvalue > 0.05
        for one, other in combinations(counts.index, 2)
    }
    assert 1 < len(set(made.values())) - 1 < 12
    if linkage == "complete":
        assert all(alike[pair] for pair in alike if made[pair[0]] == made[pair[1]])
    else:
        assert all(made[one] == made[other] for (one, other), same in alike.items() if same)
        near = pd.DataFrame(False, index=counts.index, columns=counts.index)
        for (one, other), same in alike.items():
            near.loc[one, other] = same
        assert len(set(made.values()) - {"others"}) == connected_components(near.to_numpy(), directed=False)[0]


def test_combinations_of_public_data_serve_a_session() -> None:
    rows = crossed()
    domain = tc.Domain(
        {
            "ward": tc.Categories(["a", "b", "c"]),
            "sex": tc.Categories(["f", "m"]),
            "ill": tc.Categories(["flu", "hiv"]),
        }
    )
    grown = pd.concat([rows, pd.DataFrame({"ward": ["c"], "sex": ["f"], "ill": ["flu"]})], ignore_index=True)
    session = tc.Session(tc.Policy(domain, tc.secrets.attributes("ill")), grown, budget=9)
    asked: dict[str, Any] = {"public": ["ward", "sex"], "sensitive": "ill", "retention": 0.5}
    with pytest.raises(tc.PlanError, match="groups must not be made from people's rows"):
        tc.publish.perturbed(session, **asked, groups=tc.publish.generalise(rows, **BOTH, joint=True))
    made = tc.publish.generalise(rows, **BOTH, joint=True, public_data=True)
    table = tc.publish.perturbed(session, **asked, groups=made)
    assert dict(zip(table.groups.values[0], table.sizes.tolist(), strict=True))["others"] == 1
    later = tc.publish.append(table, session)
    assert later.sizes.sum() == 2 * len(grown)
    own = {("ward", "sex"): {("a", "f"): "x", None: "y"}}
    assert tc.publish.perturbed(session, **asked, groups=own).sizes.tolist() == [400, 1201]
    released = tc.publish.generalise(tc.publish.perturbed(rows, **BOTH, retention=0.9), joint=True)
    assert released.protected
    before = session.remaining
    with pytest.raises(tc.PlanError, match="must say what every value of 'ward and sex' becomes"):
        tc.publish.perturbed(session, **asked, groups={("ward", "sex"): {("a", "f"): "x"}})
    assert session.remaining == before


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({("ward", "age"): {}}, "groups must be about public columns; got 'age'"),
        ({("ward", "sex"): {}, "sex": {}}, "groups must be about each column once; got 'sex'"),
        ({("ward",): {}}, "groups must be about a column, or a tuple of several"),
        ({3: {}}, "groups must be about a column, or a tuple of several"),
        ({("ward", "sex"): {("a", "f"): "x"}}, "groups must say what every value of 'ward and sex' becomes"),
    ],
)
def test_maps_of_combinations_are_checked(groups: Any, words: str) -> None:
    with pytest.raises(tc.PlanError, match=words):
        tc.publish.perturbed(crossed(8), **BOTH, retention=0.5, groups=groups)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(tc.PlanError, match="joint must have at least two public columns"):
        tc.publish.generalise(crossed(8), **{**BOTH, "public": ["ward"]}, joint=True)
    many = pd.DataFrame({"ward": range(4_001), "sex": "f", "ill": "flu"})
    with pytest.raises(
        tc.PlanError, match="must have at most 4,000 combinations of public values that occur; got 4001"
    ):
        tc.publish.generalise(many, **BOTH, joint=True)

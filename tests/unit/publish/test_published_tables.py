"""Perturbed tables: from rows of any kind and from sessions, estimates, versions, refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import tacit as tc

PEOPLE = pd.DataFrame(
    {
        "ward": ["a"] * 600 + ["b"] * 300 + ["c"],
        "sex": (["f", "m"] * 451)[:901],
        "ill": (["flu"] * 2 + ["hiv"] + ["none"] * 3) * 150 + ["flu"],
    }
)
ASKED = {"public": ["ward", "sex"], "sensitive": "ill", "values": ["flu", "hiv", "none"], "retention": 0.5}
DOMAIN = tc.Domain(
    {
        "ward": tc.Categories(["a", "b", "c"]),
        "sex": tc.Categories(["f", "m"]),
        "ill": tc.Categories(["flu", "hiv", "none"]),
    }
)
POLICY = tc.Policy(DOMAIN, tc.secrets.attributes("ill"))


def key(word: bytes) -> tc.noise.Keystream:
    return tc.noise.Keystream(key=word * 8)


@pytest.mark.parametrize(
    "as_rows",
    [lambda f: f, pl.from_pandas, lambda f: pl.from_pandas(f).lazy(), duckdb.from_df],
    ids=["pandas", "polars", "lazy", "duckdb"],
)
def test_any_kind_of_rows_gives_the_same_table(as_rows: object) -> None:
    with tc.noise.replayed(key(b"rows")):
        table = tc.publish.perturbed(as_rows(PEOPLE), **ASKED)  # type: ignore[operator]
    with tc.noise.replayed(key(b"rows")):
        expected = tc.publish.perturbed(PEOPLE.sample(frac=1, random_state=1), **ASKED)
    assert (table.published == expected.published).all()
    assert table.sizes.tolist() == [300, 300, 150, 150, 1]
    assert (table.published.sum(axis=1) == table.sizes).all()
    assert float(table.epsilon) == pytest.approx(math.log(4), abs=1e-11)


def test_the_frame_has_a_line_for_each_group_and_value() -> None:
    table = tc.publish.perturbed(PEOPLE, **ASKED)
    assert list(table.frame) == ["ward", "sex", "ill", "count", "estimate"]
    assert len(table.frame) == 15
    assert table.frame["count"].sum() == 901
    assert table.frame["estimate"].sum() == pytest.approx(901)
    listed = table.rows.groupby(["ward", "sex", "ill"]).size()
    assert listed.sum() == 901
    assert listed["a", "f", "hiv"] == table.frame.query("ward == 'a' and sex == 'f' and ill == 'hiv'")["count"].item()


def test_a_session_pays_and_its_policy_must_allow_it() -> None:
    session = tc.Session(POLICY, PEOPLE, budget=2)
    table = tc.publish.perturbed(session, public=["ward", "sex"], sensitive="ill", retention=0.5)
    assert session.remaining == 2 - table.epsilon
    assert table.sizes.tolist() == [300, 300, 150, 150, 1]
    assert table.certificate["policy_fingerprint"] == POLICY.fingerprint
    with pytest.raises(tc.BudgetExceeded):
        tc.publish.perturbed(session, public=["ward"], sensitive="ill", retention=0.5)
    assert session.remaining == 2 - table.epsilon


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (tc.Policy(DOMAIN, tc.secrets.everything()), "public must not be a column that a secret edge changes"),
        (tc.Policy(DOMAIN, tc.secrets.attributes("ill"), presence="secret"), "presence must be public"),
        (tc.Policy(DOMAIN, tc.secrets.attributes("ill"), person="id", per_person=2), "per_person must be 1"),
        (tc.Policy(DOMAIN, tc.secrets.attributes("ill"), [tc.known.marginal("ill")]), "must not change what is known"),
    ],
)
def test_policies_that_a_table_would_break(policy: tc.Policy, sentence: str) -> None:
    session = tc.Session(policy, PEOPLE.assign(id=range(901)), budget=2)
    with pytest.raises(tc.PlanError, match=sentence):
        tc.publish.perturbed(session, public=["ward"], sensitive="ill", retention=0.5)
    assert session.remaining == 2


def test_estimates_have_no_bias_and_intervals_hold() -> None:
    truth, hits, found = 200, 0, []
    with tc.noise.replayed(tc.noise.Keystream(key=b"c" * 32)):
        table, counts = tc.publish.perturbed(PEOPLE[:600], **ASKED), np.array([[200, 100, 100], [0, 0, 200]])
        for _ in range(100):
            drawn = replace(table, published=table.method.draw(counts), sizes=counts.sum(axis=1))
            made = tc.reconstruct(drawn, where={"ward": "a"}, value="flu")
            low, high = made.interval(0.9)
            hits += low <= truth <= high
            found.append(made.count)
            assert made.frequency == made.count / 600
    deviation = math.sqrt(200 * (2 / 3) * (1 / 3) + 400 * (1 / 6) * (5 / 6)) / 0.5
    assert abs(np.mean(found) - truth) < 5 * deviation / math.sqrt(100)
    assert abs(np.std(found) / deviation - 1) < 5 / math.sqrt(200)
    assert 72 <= hits <= 99  # 90 expected, six standard deviations are 18; at 50% it would be 50


def test_where_value_and_nonnegative() -> None:
    with tc.noise.replayed(tc.noise.Keystream(key=b"w" * 32)):
        table = tc.publish.perturbed(PEOPLE, **ASKED)
    by_text = tc.reconstruct(table, where="ward == 'a' and sex == 'f'", value="hiv")
    by_column = tc.reconstruct(table, where={"ward": "a", "sex": "f"}, value="hiv")
    by_predicate = tc.reconstruct(table, where=(tc.col("ward") == "a") & (tc.col("sex") == "f"), value="hiv")
    assert by_text == by_column == by_predicate
    every = [tc.reconstruct(table, where={"ward": "c"}, value=one, nonnegative=True).count for one in table.values]
    assert min(every) >= 0
    assert sum(every) == pytest.approx(1)
    both = tc.reconstruct(table, value=["flu", "hiv"])
    assert both.count == pytest.approx(901 - tc.reconstruct(table, value="none").count)
    assert both.deviation == pytest.approx(tc.reconstruct(table, value="none").deviation)
    with pytest.raises(tc.PlanError, match=r"where\.ward must be a value of this column .* Known: a, b, c"):
        tc.reconstruct(table, where={"ward": ["a", "z"]}, value="flu")
    for wrong in ({"where": {"wart": 1}}, {"where": "ward > "}, {"value": "cold"}, {"value": []}):
        with pytest.raises(tc.PlanError):
            tc.reconstruct(table, **{"value": "flu", **wrong})


def test_new_rows_leave_old_coins_alone() -> None:
    first = tc.publish.perturbed(PEOPLE[:600], **ASKED)
    later = tc.publish.append(first, PEOPLE[600:])
    assert later.sizes.tolist() == [300, 300, 150, 150, 1]
    assert (later.published[:2] == first.published).all()
    assert later.epsilon == first.epsilon
    again = tc.publish.append(later, PEOPLE[:2])
    assert again.sizes.sum() == 903
    assert (again.published >= later.published).all()


def test_several_sensitive_columns_are_one() -> None:
    asked = {
        "public": ["ward"],
        "sensitive": ["sex", "ill"],
        "values": {"sex": ["f", "m"], "ill": ["flu", "hiv", "none"]},
    }
    table = tc.publish.perturbed(PEOPLE, **asked, epsilon=2)
    assert list(table.frame) == ["ward", "sex", "ill", "count", "estimate"]
    assert 2 - 1e-6 < table.epsilon <= 2
    assert tc.reconstruct(table, value=[("f", "flu"), ("m", "flu")]).size == 901


def test_what_a_reader_must_know() -> None:
    two = tc.publish.perturbed(PEOPLE, public=["ward"], sensitive="sex", values=["f", "m"], retention=0.5)
    assert "there are two sensitive values" in str(two)
    three = tc.publish.perturbed(PEOPLE, **ASKED)
    assert "two sensitive values" not in str(three)
    assert "an unlisted sensitive value are left out" in str(three)
    assert "check the spelling" not in str(three)
    assert "no row had a listed value" in str(tc.publish.perturbed(PEOPLE, **{**ASKED, "values": ["Flu", "Hiv"]}))


def test_errors_are_stated_for_what_is_published() -> None:
    """Where values are not equally frequent, masks are wider than an equal share would need."""
    rows = pd.DataFrame({"ward": np.repeat(["a", "b", "c", "d"], 1000), "ill": (["flu"] + ["none"] * 9) * 400})
    asked = {"public": ["ward"], "sensitive": "ill", "values": ["flu", "none"], "retention": 0.5}
    with tc.noise.replayed(key(b"said")):
        table = tc.publish.reconstruction_private(rows, **asked, lam=0.3, delta=0.3, method="masked")
        again = [
            tc.publish.reconstruction_private(rows, **asked, lam=0.3, delta=0.3, method="masked") for _ in range(60)
        ]
    measured = np.sqrt(np.mean([(one.estimates[:, 0].sum() - 400) ** 2 for one in again]))
    assert table.estimated_errors[0] == tc.reconstruct(table, value="flu").deviation
    assert 0.6 * measured < np.mean([one.estimated_errors[0] for one in again]) < 1.5 * measured
    assert f"about {table.estimated_errors[0]:.4g}" in str(table)


def test_values_of_rows_that_are_left_out_are_not_heard_of() -> None:
    rows = pd.concat([PEOPLE, pd.DataFrame({"ward": ["zzz"], "sex": ["f"], "ill": ["rare"]})])
    table = tc.publish.perturbed(rows, **ASKED)
    assert table.groups.values == (("a", "b", "c"), ("f", "m"))
    assert table.sizes.tolist() == [300, 300, 150, 150, 1]


@pytest.mark.parametrize("coded", [pl.Categorical, pl.Enum], ids=["categorical", "enum"])
def test_coded_columns_are_grouped_as_texts(coded: object) -> None:
    rows = pl.from_pandas(PEOPLE)
    kinds = {name: coded(rows[name].unique()) if coded is pl.Enum else coded for name in rows.columns}  # type: ignore[operator]
    table = tc.publish.perturbed(rows.cast(kinds), **ASKED)  # type: ignore[arg-type]
    assert table.sizes.tolist() == [300, 300, 150, 150, 1]
    assert tc.audit.syntactic(rows.cast(kinds), public=["ward", "sex"], sensitive="ill").k == 1  # type: ignore[arg-type]


def test_the_declared_number_of_people_is_held_to() -> None:
    policies = {n: tc.Policy(DOMAIN, tc.secrets.attributes("ill"), known=[tc.known.size(n)]) for n in (900, 901)}
    asked = {"public": ["ward"], "sensitive": "ill", "epsilon": 1}
    kept = tc.publish.perturbed(tc.Session(policies[901], PEOPLE, budget=1), **asked)
    assert int(kept.sizes.sum()) == 901
    with pytest.raises(tc.DataRefused, match="must hold the declared number of people, 900"):
        tc.publish.perturbed(tc.Session(policies[900], PEOPLE, budget=1), **asked)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"retention": None}, "retention must be given"),
        ({"epsilon": 1}, "retention must be given, or one of epsilon and rho instead"),
        ({"values": ["flu"]}, "values must be at least two"),
        ({"values": "flu"}, "values must be a list of values"),
        ({"values": ["flu", "flu"]}, "must not repeat a value"),
        ({"retention": 1.5}, "retention must lie strictly between 0 and 1"),
        ({"public": ["ward", "ward"]}, "public must not name a column twice"),
    ],
)
def test_refusals(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(tc.PlanError, match=sentence):
        tc.publish.perturbed(PEOPLE, **{**ASKED, **change})


def test_a_missing_column_and_no_rows() -> None:
    with pytest.raises(tc.DataRefused, match="column 'warp' must be a column of the rows"):
        tc.publish.perturbed(PEOPLE, **{**ASKED, "public": ["warp"]})
    empty = tc.publish.perturbed(PEOPLE[:0], **ASKED)
    assert len(empty.frame) == 0
    assert tc.reconstruct(empty, value="flu").frequency == 0


def test_a_type_that_cannot_hold_the_values_is_refused_by_the_type() -> None:
    yes_or_no = PEOPLE.assign(ill=True)
    with pytest.raises(tc.DataRefused, match="column 'ill'"):
        tc.publish.perturbed(yes_or_no, **ASKED)

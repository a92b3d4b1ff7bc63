"""Sums of one number times another: steps by enumeration, and the same sums from every kind of rows."""

from importlib import import_module

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit as tc
from brute_force import assert_step_of_all_edges, edges_of
from tacit.plan.questions.total import MOST_PRODUCTS

DOMAIN = tc.Domain({"v": tc.Integers(-2, 6, 2), "w": tc.Integers(-2, 2), "g": tc.Flag()})
SECRETS = {
    "everything": tc.secrets.everything(),
    "one of them": tc.secrets.attributes("v"),
    "each of them": tc.secrets.attributes("v", "w", "g"),
    "blocks": tc.secrets.partition("w", width=2) | tc.secrets.partition("v", width=4),
    "near l1": tc.secrets.within(4, "v", "w"),
    "near l2": tc.secrets.within(3, "v", "w", metric="l2"),
    "near linf": tc.secrets.within(2, "v", "w", metric="linf"),
    "near, of some": tc.secrets.within(3, "v", "w", where="v > 0 or w < 0"),
    "near, with the flag": tc.secrets.within(3, "v", "w", "g"),
    "values": tc.secrets.values({"v": [4], "w": [-2, 1]}),
    "pairs": tc.secrets.pairs([({"v": 2, "w": 1}, {"v": 6, "w": -2})]),
    "taking part": tc.secrets.taking_part(),
    "taking part, of some": tc.secrets.taking_part(where="w > 0"),
}
QUERIES = [
    tc.total("v", weight="w"),
    tc.total("w", weight="v", where="g == True"),
    tc.total("v", weight="w", by="g"),
    tc.total("v", weight="w", where="v < 3 and w >= 0"),
    tc.total("v", weight="w", by="g", where="v > -1 or w == 2"),
    tc.total("v", weight="w", where="v in [-2, 2, 6] and w in [-2, 0, 2]"),
]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("secrets", SECRETS)
def test_the_step_of_a_weighted_sum_is_what_enumeration_finds(secrets):
    policy = tc.Policy(DOMAIN, SECRETS[secrets])
    for query in QUERIES:
        assert_step_of_all_edges(query, policy)


@pytest.mark.parametrize("metric", ["l1", "l2"])
def test_many_differences_are_bounded_from_above_and_closely(metric, monkeypatch):
    """Runs of differences allow a little more than the edges do, never less, and say so."""
    domain = tc.Domain({"v": tc.Integers(-60, 90), "w": tc.Integers(-30, 40)})
    policy = tc.Policy(domain, tc.secrets.within(50, "v", "w", metric=metric))
    query = tc.total("v", weight="w")
    exact = tc.largest_step(query, policy)
    monkeypatch.setattr(import_module("tacit.plan.questions.total"), "MOST_DIFFERENCES", 25)
    bound = tc.largest_step(query, policy)
    assert exact.exact
    assert not bound.exact
    assert exact.l1 <= bound.l1 <= 1.1 * exact.l1


def test_decimals_are_multiplied_exactly():
    domain = tc.Domain({"hours": tc.Decimals(0, 2, "0.5"), "rate": tc.Decimals("-0.3", "0.3", "0.1")})
    query = tc.total("hours", weight="rate")
    policy = tc.Policy(domain, tc.secrets.within("0.6", "rate", "hours"))
    assert query.unit(domain) == tc.Decimals(0, 2, "0.5").unit * tc.Decimals("-0.3", "0.3", "0.1").unit
    unit = query.unit(domain)
    largest = max(
        abs(round(b[0] * 10) * round(b[1] * 10) - round(a[0] * 10) * round(a[1] * 10)) for a, b in edges_of(policy)
    )
    assert tc.largest_step(query, policy).l1 * unit * 100 == largest
    rows = pd.DataFrame({"hours": [0.5, 2.0, 1.5], "rate": [0.3, -0.1, 0.1], "g": [True, False, True]})
    open_domain = tc.Domain({**domain, "g": tc.Flag(), "s": tc.Flag()})
    session = tc.Session(tc.Policy(open_domain, tc.secrets.attributes("s")), rows.assign(s=False), budget=1)
    assert session.release(query, epsilon=0.1).values.tolist() == [pytest.approx(0.1)]
    assert session.release(tc.total("rate", "g", weight="hours"), epsilon=0.1).values.tolist() == [
        pytest.approx(-0.2),
        pytest.approx(0.3),
    ]


KINDS = {
    "pandas": lambda rows: rows,
    "polars": pl.from_pandas,
    "lazy polars": lambda rows: pl.from_pandas(rows).lazy(),
    "arrow": pa.Table.from_pandas,
    "duckdb": lambda rows: duckdb.from_df(rows),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_rows_has_the_same_weighted_sums(kind):
    random = np.random.default_rng(7)
    rows = pd.DataFrame(
        {"v": random.integers(-1, 4, 300) * 2, "w": random.integers(-2, 3, 300), "g": random.integers(0, 2, 300)}
    )
    policy = tc.Policy(tc.Domain({**DOMAIN, "s": tc.Flag(otherwise=False)}), tc.secrets.attributes("s"))
    session = tc.Session(policy, KINDS[kind](rows.assign(s=0)), budget=1)
    whole = session.release(tc.total("v", weight="w"), epsilon=0.1).values
    assert whole.tolist() == [(rows.v * rows.w).sum()]
    some = session.release(tc.total("w", weight="v", by="g", where="w < 2"), epsilon=0.1).values
    kept = rows[rows.w < 2]
    assert some.tolist() == (kept.v * kept.w).groupby(kept.g).sum().tolist()


def test_rows_of_one_person_are_added_up_each():
    rows = pd.DataFrame({"id": [1, 1, 2], "v": [2, 4, 6], "w": [1, 2, -2], "g": [True, True, True]})
    policy = tc.Policy(DOMAIN, tc.secrets.attributes("g"), person="id", per_person=2)
    session = tc.Session(policy, rows, budget=1)
    assert session.release(tc.total("v", weight="w"), epsilon=0.1).values.tolist() == [2 + 8 - 12]


def test_a_job_file_says_the_weight_and_what_it_cannot_be_is_refused():
    assert tc.total("v", "g", weight="w").document() == {"total": {"attribute": "v", "by": ["g"], "weight": "w"}}
    assert str(tc.total("v", weight="w", where="g == True")) == "total(v times w where g == True)"
    policy = tc.Policy(DOMAIN, tc.secrets.everything())
    for weight, rule in (
        ("v", "must be another attribute"),
        ("g", "must be declared as integers or decimals"),
        ("x", "must be an attribute of the domain"),
    ):
        with pytest.raises(tc.PlanError, match=rule):
            tc.explain(tc.total("v", weight=weight), policy, 1)
    large = tc.Integers(0, MOST_PRODUCTS)
    wide = tc.Policy(tc.Domain({"v": large, "w": large}), tc.secrets.within(3, "v"))
    with pytest.raises(tc.PlanError, match="one sum is made for each"):
        tc.explain(tc.total("v", weight="w"), wide, 1)
    assert tc.largest_step(tc.total("v", weight="w"), wide).l1 == 3 * MOST_PRODUCTS


def test_a_plan_of_a_weighted_sum_keeps_its_promise_and_a_smaller_scale_does_not():
    policy = tc.Policy(DOMAIN, tc.secrets.within(4, "v", "w"))
    found = tc.audit.exact(tc.total("v", weight="w"), policy, 1)
    assert found.keeps
    assert found.forward == 1
    plan = tc.explain(tc.total("v", weight="w"), policy, 1).plan
    assert plan.noise.loss(plan.step.l1) == 1
    assert plan.noise.loss(plan.step.l1 + 1) > 1

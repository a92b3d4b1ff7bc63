"""Sums of squares: steps by enumeration, what they refuse, and the same sums from rows as from plain numbers."""

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from brute_force import assert_never_above, assert_step_of_all_edges, step_by_data_sets
from tacit.errors import PlanError
from tacit.plan.questions.moments import Squares
from tacit.release.estimate.measure import true_answers
from tacit.rows.rows import open_rows

DOMAIN = tc.Domain({"v": tc.Integers(-4, 8, 2), "w": tc.Integers(0, 2), "g": tc.Flag()})
SECRETS = {
    "everything": tc.secrets.everything(),
    "number": tc.secrets.attributes("v"),
    "each of them": tc.secrets.attributes("v", "w", "g"),
    "blocks": tc.secrets.partition("v", width=4) | tc.secrets.partition("w", width=2),
    "uneven blocks": tc.secrets.partition("v", blocks=[[-4, 0, 2], [-2, 6], [4, 8]]),
    "near": tc.secrets.within(2, "v"),
    "near, far": tc.secrets.within(8, "v"),
    "near l1": tc.secrets.within(4, "v", "w"),
    "near l2": tc.secrets.within(5, "v", "w", metric="l2"),
    "near linf": tc.secrets.within(2, "v", "w", metric="linf"),
    "near, of some": tc.secrets.within(4, "v", where="v > 0 or w < 1"),
    "values": tc.secrets.values({"v": [4], "w": [1]}),
    "pairs": tc.secrets.pairs([({"v": 2, "w": 1}, {"v": 6, "w": 0}), ({"v": -4}, {"v": 0})]),
    "records": tc.secrets.records("v > 4"),
    "taking part": tc.secrets.taking_part(),
    "taking part, of some": tc.secrets.taking_part(where="v > 0"),
}
QUERIES = [
    Squares("v"),
    Squares("v", origin=2),
    Squares("v", origin=3),
    Squares("v", origin=-4),
    Squares("v", origin=20),
    Squares("v", origin=-9),
    Squares("v", by=("g",), origin=2),
    Squares("v", by=("w", "g"), origin=1),
    Squares("v", tc.where("v < 3 and w >= 1"), origin=2),
    Squares("v", tc.where("v in [-4, 2, 6]"), ("g",), 1),
]


@pytest.mark.parametrize("secrets", SECRETS)
def test_the_step_of_a_sum_of_squares_is_what_enumeration_finds(secrets):
    for presence in ("secret",) if secrets == "taking part" else ("public", "secret"):
        policy = tc.Policy(DOMAIN, SECRETS[secrets], presence=presence)
        for query in QUERIES:
            assert_step_of_all_edges(query, policy)


@pytest.mark.parametrize("fact", [tc.known.size(), tc.known.count("v > 0"), tc.known.marginal("g")], ids=str)
def test_under_knowledge_the_step_is_never_below_what_data_sets_show(fact):
    domain = tc.Domain({"v": tc.Integers(-1, 2), "g": tc.Flag()})
    for secrets in (tc.secrets.everything(), tc.secrets.within(1, "v"), tc.secrets.attributes("g")):
        policy = tc.Policy(domain, secrets, [fact])
        for query in (Squares("v"), Squares("v", by=("g",), origin=1)):
            assert_never_above(tc.largest_step(query, policy), step_by_data_sets(query, policy, 3))


def test_sums_of_squares_are_what_plain_numbers_add_up_to():
    frame = pd.DataFrame(
        {"v": [-4, 8, 8, 2, 0, 6], "w": [0, 1, 2, 2, 1, 0], "g": [True, False, True, True, False, True]}
    )
    policy = tc.Policy(DOMAIN, tc.secrets.attributes("w"))
    rows = open_rows(frame, DOMAIN)
    assert true_answers(Squares("v", origin=2), rows, policy).tolist() == [((frame.v - 2) ** 2).sum()]
    by_group = ((frame.v - 2) ** 2).groupby(frame.g).sum()
    assert true_answers(Squares("v", by=("g",), origin=2), rows, policy).tolist() == by_group.tolist()
    picked = frame[frame.w > 0]
    found = true_answers(Squares("v", tc.where("w > 0"), origin=2), rows, policy)
    assert found.tolist() == [((picked.v - 2) ** 2).sum()]
    for record in frame.to_dict("records"):
        for query in (Squares("v", origin=2), Squares("v", by=("g",), origin=2)):
            one = open_rows(pd.DataFrame([record]), DOMAIN)
            assert query.added_by(record, DOMAIN).tolist() == true_answers(query, one, policy).tolist()


def test_decimals_are_squared_exactly():
    domain = tc.Domain({"dose": tc.Decimals("-0.3", "0.3", "0.1"), "sick": tc.Flag()})
    policy = tc.Policy(domain, tc.secrets.attributes("sick"))
    session = tc.Session(policy, pd.DataFrame({"dose": [0.1, -0.3, 0.2], "sick": True}), budget=1)
    record = session.release(tc.variance("dose"), epsilon=1)
    assert record.values.tolist() == [pytest.approx(np.var([0.1, -0.3, 0.2]))]


@pytest.mark.parametrize("high", [10_000_000, 10**13])
def test_more_values_than_memory_holds_and_squares_that_would_be_cut_are_refused(high):
    domain = tc.Domain({"x": tc.Integers(0, high, high // 10 if high > 10**9 else 1)})
    with pytest.raises(PlanError, match="variance must"):
        tc.explain(tc.variance("x"), tc.Policy(domain, tc.secrets.everything()), 1)

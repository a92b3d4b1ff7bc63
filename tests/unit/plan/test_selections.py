"""Selections from the user's side: questions, plans, frames, verdicts, certificates, charts, refusals."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tacit as tc
from tacit import noise
from tacit.plan.choose import choose
from tacit.plan.plans.selection_plan import shift
from tacit.plan.plans.top_k import BarPlan, TopKPlan, largest_places
from tacit.report.charts.release_charts import chart_png, chart_text

CLICKS = tc.Domain({"clicked": tc.Items(40)})
FALLING = tc.Policy(CLICKS, tc.secrets.values({"clicked": [1]}))
RISING = tc.Policy(CLICKS, tc.secrets.values({"clicked": [0]}))
BOTH = tc.Policy(CLICKS, tc.secrets.attributes("clicked"))
NOTHING = tc.Policy(
    tc.Domain({"clicked": tc.Items(40), "age": tc.Integers(0, 9)}), tc.secrets.within(2, "age"), name="ages only"
)
COUNTS = np.arange(40) * 250  # item 39 is the most frequent, item 0 nobody has


def session(policy=FALLING, rows=None, **more):
    return tc.Session(policy, tc.ItemCounts(COUNTS, people=20_000) if rows is None else rows, budget=100, **more)


# ---- top_k


def test_a_top_k_list_has_items_values_and_intervals_and_is_sorted():
    record = session().release(tc.top_k("clicked", 5), epsilon=2)
    assert list(record.frame.columns) == ["clicked", "value", "lower", "upper"]
    assert record.frame["clicked"].tolist() == [39, 38, 37, 36, 35]
    assert (np.diff(record.frame["value"]) <= 0).all()
    assert (record.frame["lower"] <= record.frame["value"]).all()
    assert (COUNTS[record.places] <= record.frame["upper"]).all()
    wide, narrow = record.interval(0.99), record.interval(0.5)
    assert (wide[0] <= narrow[0]).all()


def test_long_lists_measure_a_few_more_items_than_they_show_and_their_sum():
    policy = tc.Policy(tc.Domain({"clicked": tc.Items(400)}), tc.secrets.values({"clicked": [1]}))
    plan = choose(tc.top_k("clicked", 100), policy, "0.5")
    assert isinstance(plan, BarPlan)
    assert plan.candidates == 104
    assert plan.centring is not None
    # the choice has nearly all of the budget, and so has the measurement
    assert plan.law.rate * 109 == plan.law.epsilon + plan.law.rate * 2 == Fraction(1, 2)
    assert plan.rmse < 0.33 * 100 / 0.5
    record = tc.Session(policy, tc.ItemCounts(np.arange(400) * 99, people=10**6), budget=1).release(
        tc.top_k("clicked", 100), epsilon=0.5
    )
    assert len(record.frame) == 100


def test_as_many_as_there_are_is_the_histogram():
    plan = choose(tc.top_k("clicked", 40), FALLING, 1)
    assert isinstance(plan, TopKPlan)
    assert plan.choosing is None
    assert plan.measuring == choose(tc.histogram("clicked"), FALLING, 1).noise
    assert sorted(session().release(tc.top_k("clicked", 40), epsilon=1).frame["clicked"]) == list(range(40))


def test_nearly_all_are_measured_together():
    plan = choose(tc.top_k("clicked", 35), BOTH, 1)
    assert plan.choosing is None
    assert len(session(BOTH).release(tc.top_k("clicked", 35), epsilon=1).frame) == 35


def test_a_short_bound_on_items_is_used():
    bounded = tc.Policy(tc.Domain({"clicked": tc.Items(40, at_most=1)}), tc.secrets.values({"clicked": [1]}))
    plan = choose(tc.top_k("clicked", 20), bounded, 1)
    assert isinstance(plan, TopKPlan)
    assert plan.choosing.right == 1 / plan.choosing_epsilon  # one person lowers one count, however many are chosen


def test_categories_can_be_ranked_too():
    domain = tc.Domain({"disease": tc.Categories(["flu", "hiv", "cold"]), "age": tc.Integers(0, 9)})
    people = pd.DataFrame({"disease": ["cold"] * 60 + ["flu"] * 30 + ["hiv"] * 3, "age": [1] * 93})
    policy = tc.Policy(domain, tc.secrets.attributes("disease"))
    record = tc.Session(policy, people, budget=50).release(tc.top_k("disease", 2), epsilon=20)
    assert record.frame["disease"].tolist() == ["cold", "flu"]
    assert "discrete Laplace" in record.plan.mechanism  # a person moves two counts: hiding all of them is cheapest
    young = tc.Session(policy, people, budget=50).release(tc.top_k("disease", 1, where="age < 5"), epsilon=20)
    assert young.frame["disease"].tolist() == ["cold"]


@pytest.mark.parametrize("query", [tc.top_k("clicked", 3), tc.above("clicked", 2, at_most=40)])
def test_what_no_secret_edge_changes_is_exact(query):
    people = pd.DataFrame({"clicked": [[1, 2], [2], [2, 3], []], "age": [1, 2, 3, 4]})
    record = tc.Session(NOTHING, people, budget=1).release(query, epsilon=0.01)
    assert record.plan.mechanism == "exact"
    assert record.values[record.places == 2].tolist() == [3]
    lower, upper = record.interval()
    assert (lower[record.places == 2], upper[record.places == 2]) == ([3], [3])


def test_ties_go_to_the_earlier_item():
    assert largest_places(np.array([5, 7, 5, 7, 5]), 3).tolist() == [0, 1, 3]
    assert largest_places(np.array([5, 5, 5]), 2).tolist() == [0, 1]
    rng = np.random.default_rng(1)
    for _ in range(200):
        counts, k = rng.integers(0, 4, 30), int(rng.integers(1, 31))
        order = np.lexsort((np.arange(30), -counts))
        assert largest_places(counts, k).tolist() == sorted(order[:k].tolist())


# ---- above


def test_above_lists_what_was_asked_until_it_stops():
    record = session().release(tc.above("clicked", 5100, at_most=6), epsilon=5)
    frame = record.frame
    assert list(frame.columns) == ["clicked", "verdict", "value"]
    assert set(frame["verdict"]) == {"certainly below", "above"}
    assert (frame["verdict"] == "above").sum() == 6
    assert frame["verdict"].iloc[-1] == "above"  # it stops right after the last one
    assert frame["value"].isna().tolist() == (frame["verdict"] == "certainly below").tolist()
    assert frame["clicked"].tolist() == list(range(len(frame)))
    certain = frame["clicked"][frame["verdict"] == "certainly below"].to_numpy()
    assert (COUNTS[certain] < 5100).all()
    upper = record.interval()[1]
    assert (upper[certain] == 5099).all()
    assert any("has no row" in line for line in record.certificate["terms"])


def test_above_without_values_spends_everything_on_the_tests():
    plan = choose(tc.above("clicked", 100, at_most=5, values=False), FALLING, 1)
    assert plan.testing.right == 5
    record = session().release(tc.above("clicked", 5000, at_most=5, values=False), epsilon=1)
    assert np.isnan(record.values).all()


def test_counts_that_rise_are_certainly_above():
    record = session(RISING).release(tc.above("clicked", 5000, at_most=25), epsilon=20)
    certain = record.frame["clicked"][record.frame["verdict"] == "certainly above"].to_numpy()
    assert len(certain)
    assert (COUNTS[certain] >= 5000).all()
    assert (record.frame["verdict"] == "below").sum() <= 25


def test_counts_that_do_both_are_probably_this_or_that():
    record = session(BOTH).release(tc.above("clicked", 5000, at_most=3), epsilon=5)
    assert set(record.frame["verdict"]) <= {"probably below", "probably above"}
    assert "noisy threshold" in record.plan.mechanism


def test_each_item_may_have_its_own_threshold():
    thresholds = np.where(np.arange(40) % 2 == 0, 5100, 100)
    record = session().release(tc.above("clicked", thresholds, at_most=10), epsilon=5)
    frame = record.frame
    assert list(frame.columns) == ["clicked", "threshold", "verdict", "value"]
    assert frame["threshold"].tolist() == thresholds[: len(frame)].tolist()
    certain = frame["clicked"][frame["verdict"] == "certainly below"].to_numpy()
    assert (COUNTS[certain] < thresholds[certain]).all()
    assert (record.interval()[1][certain] == thresholds[certain] - 1).all()
    found = frame["clicked"][frame["verdict"] == "above"].to_numpy()
    assert (found % 2 == 1).all()
    assert np.allclose(frame["value"][found], COUNTS[found], atol=40)
    asked = session().explain(tc.above("clicked", thresholds, at_most=12), epsilon=5, show=False)
    assert "under its threshold" in str(asked)
    assert record.certificate["query"]["above"]["threshold"] == thresholds.tolist()


def test_equal_thresholds_are_one():
    for policy in (FALLING, RISING, BOTH):
        one, each = (choose(tc.above("clicked", at, at_most=3), policy, 1) for at in (5, [5] * 40))
        assert (one.testing, one.moving, one.offset, one.noise) == (each.testing, each.moving, each.offset, each.noise)
        counts = list(range(40))
        output = ([False] * 38 + [True, True], []) if policy is FALLING else ([True] * 38 + [False, False], [])
        assert one.log_probability_of_verdicts(counts, output[0]) == each.log_probability_of_verdicts(counts, output[0])


def test_a_million_items_make_a_frame():
    many = 10**6
    policy = tc.Policy(tc.Domain({"clicked": tc.Items(many)}), tc.secrets.values({"clicked": [1]}))
    counts = np.where(np.arange(many) % 100_000 == 7, 900_000, 0)
    record = tc.Session(policy, tc.ItemCounts(counts, people=10**6), budget=1).release(
        tc.above("clicked", 500_000, at_most=20), epsilon=1
    )
    assert (record.frame["verdict"] == "above").sum() == 10
    assert len(record.frame) == many


# ---- below


def test_below_is_certain_or_a_noisy_count():
    s = session()
    certain = s.release(tc.below(item=("clicked", 0), threshold=500), epsilon=1)
    assert certain.verdict == "certainly below"
    assert certain.frame["upper"].tolist() == [499]
    assert np.isnan(certain.values[0])
    counted = s.release(tc.below("clicked.has(30)", 500), epsilon=1)
    assert counted.verdict == "above"
    assert counted.values[0] == pytest.approx(7500, abs=30)
    assert counted.frame["upper"].tolist()[0] >= 7500


def test_below_says_its_chances_before():
    said = str(session().explain(tc.below("clicked.has(3)", 5), epsilon=1, show=False))
    assert "chance of 'certainly below', by how far the count is under the threshold: 1: 63.21%" in said
    plan = choose(tc.below("clicked.has(3)", 5), FALLING, "0.5")
    assert plan.predicted()["chance_by_gap"]["2"] == pytest.approx(1 - math.exp(-1))
    assert choose(tc.below("clicked.has(3)", 5), BOTH, 1).words.below == "probably below"


# ---- all of them


EACH_ITS_OWN = tc.above("clicked", (COUNTS // 2 + 3000).tolist(), at_most=3)
EVERY = [tc.top_k("clicked", 4), tc.above("clicked", 5000, at_most=3), EACH_ITS_OWN, tc.below("clicked.has(3)", 9)]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("query", EVERY, ids=str)
@pytest.mark.parametrize("policy", [FALLING, RISING, BOTH], ids=["falling", "rising", "both"])
def test_every_selection_explains_releases_pickles_draws_and_saves(query, policy, tmp_path):
    s = session(policy)
    explained = s.explain(query, epsilon=1, show=False)
    json.dumps(explained.document(), allow_nan=False)
    record = s.release(query, epsilon=1)
    assert record.plan == explained.plan
    assert tc.largest_step(query, policy) == record.plan.step
    json.dumps(record.certificate, allow_nan=False)
    again = pickle.loads(pickle.dumps(record))  # noqa: S301 - our own record
    assert again.columns().keys() == record.columns().keys()
    assert chart_png(record.chart())[:4] == b"\x89PNG"
    assert chart_text(record)
    assert repr(record).startswith("<release of ")
    saved = record.save(tmp_path / "out")
    assert len(pd.read_csv(saved / "values.csv")) == len(record.values)
    positive = s.release(query, epsilon="0.01", nonnegative=True)
    assert not (positive.values < 0).any()
    assert s.remaining == 100 - 1 - Fraction(1, 100)


def test_rows_of_people_and_items_are_counted_distinct_and_frames_are_of_the_users_kind():
    rows = pl.DataFrame({"user": ["a", "a", "b", "b", "b", "c"], "clicked": [7, 7, 7, 8, 8, 7]})
    record = tc.Session(FALLING, rows, person="user", item="clicked", budget=500).release(
        tc.top_k("clicked", 2), epsilon=400
    )
    assert isinstance(record.frame, pl.DataFrame)
    assert record.frame["clicked"].to_list() == [7, 8]
    assert record.frame["value"].round().to_list() == [3, 1]


def test_replayed_noise_gives_the_same_record():
    def once():
        with noise.replayed(noise.Keystream(key=bytes(32))):
            return session().release(tc.top_k("clicked", 4), epsilon=1)

    assert once().values.tolist() == once().values.tolist()
    assert once().certificate["guarantee"].startswith("none")


def test_explanations_compare_with_plain_differential_privacy():
    for query in EVERY:
        explained = session().explain(query, epsilon=1, show=False)
        assert explained.gain > 1.3
        assert "times larger" in str(explained)


def test_the_step_of_a_few_counts_is_no_larger_than_that_of_all():
    step = tc.largest_step(tc.histogram("clicked"), BOTH)
    few = step.restricted(3)
    assert (few.l1, few.up, few.down) == (3, 1, 1)
    assert few.profiles == ((0, 3), (3, 0))
    assert shift(step, 3) == 6
    assert shift(tc.largest_step(tc.histogram("clicked"), FALLING), 3) == 3


REFUSED = [
    (lambda: tc.top_k("clicked", 0), "top_k.k must be a whole number from 1; got 0"),
    (lambda: tc.top_k("clicked", 2.5), "top_k.k must be a whole number from 1; got 2.5"),
    (lambda: tc.top_k("clicked", True), "top_k.k must be a whole number from 1; got True"),
    (lambda: tc.top_k("clicked", 41), "top_k.k must be from 1 to 40, the number of items of clicked; got 41"),
    (lambda: tc.top_k("clickd", 4), "top_k must be an attribute of the domain; got 'clickd'. Did you mean 'clicked'?"),
    (
        lambda: tc.top_k(["clicked"], 4),
        "top_k.predicates: clicked == True: where: clicked == True must ask for one item. Write clicked.has(item).",
    ),
    (lambda: tc.above("clicked", 5), "above.at_most must be a whole number from 1, not None"),
    (lambda: tc.above("clicked", 5, at_most=41), "above.at_most must be from 1 to 40"),
    (lambda: tc.above("clicked", 0, at_most=4), "above.threshold must be a whole number from 1; got 0"),
    (lambda: tc.above("clicked", -1, at_most=4), "above.threshold must be a whole number from 1; got -1"),
    (lambda: tc.above("clicked", 10**16, at_most=4), "above.threshold must be at most 10^15"),
    (lambda: tc.above("clicked", [5, 6], at_most=2), "above.threshold must be one number, or 40: one for each of the"),
    (lambda: tc.above("clicked", [5, 0], at_most=2), "above.threshold must be a whole number from 1; got 0"),
    (lambda: tc.above("clicked", [], at_most=2), "above.threshold must have a number"),
    (lambda: tc.above("clicked", "5", at_most=2), "above.threshold must be a whole number from 1; got '5'"),
    (lambda: tc.above("clicked", 5, at_most=4, values=1), "above.values must be true or false; got 1"),
    (lambda: tc.below("clicked.has(40)", 5), "where: clicked.has(40) must be an item from 0 to 39; got 40"),
    (lambda: tc.below(item=("clicked", -1), threshold=5), "must be an item from 0 to 39; got -1"),
    (lambda: tc.below(item="clicked", threshold=5), "below.item must be (attribute, item); got 'clicked'"),
    (lambda: tc.below("clicked.has(4)"), "below.threshold must be a whole number from 1, not None"),
    (lambda: tc.below(threshold=5), "below must say whom to count"),
    (lambda: tc.below("clicked.has(4)", 5, item=("clicked", 4)), "must have a predicate or an item, and not both"),
    (lambda: tc.below("age < 4", 5), "where must be an attribute of the domain; got 'age'"),
]


@pytest.mark.parametrize(("ask", "sentence"), REFUSED)
def test_what_cannot_be_is_refused_before_anything_is_charged(ask, sentence):
    s = session()
    with pytest.raises(tc.PlanError) as refused:
        s.release(ask(), epsilon=1)
    assert sentence in str(refused.value)
    assert s.remaining == 100


def test_numpy_numbers_are_numbers():
    assert tc.top_k("clicked", np.int64(3)) == tc.top_k("clicked", 3)
    assert tc.above("clicked", np.int32(3), at_most=np.int64(2)) == tc.above("clicked", 3, at_most=2)

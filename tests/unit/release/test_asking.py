"""Questions one at a time: certain answers are free, the others are counted, and then it stops."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit as tc

POLICY = tc.Policy(tc.Domain({"clicked": tc.Items(50)}), tc.secrets.values({"clicked": [1]}))
ROWS = tc.ItemCounts(np.arange(50) * 1000, people=10**6)


def asking(policy=POLICY, rows=ROWS, *, at_most=3, epsilon=1):
    return tc.Session(policy, rows, budget=10).asking(at_most=at_most, epsilon=epsilon)


def test_certain_answers_are_free_and_the_others_are_counted():
    ask = asking()
    for item in range(20):
        answer = ask.above(item=("clicked", item), threshold=25_000)
        assert answer.verdict == "certainly below"
        assert answer.is_free
    assert ask.left == 3
    answer = ask.above("clicked.has(40)", 25_000)
    assert answer.verdict == "above"
    assert answer.values[0] == pytest.approx(40_000, abs=100)
    assert ask.left == 2
    assert answer.plan.noise.right == 3  # each costly answer has a third of the budget
    assert answer.certificate["part_of"].startswith("asking, at most 3 answers")


def test_it_stops_after_as_many_as_were_paid_for():
    ask = asking(at_most=2)
    for item in (45, 46):
        assert ask.above(item=("clicked", item), threshold=100).verdict == "above"
    with pytest.raises(tc.BudgetExceeded, match="has given all of its 2 answers that are not certain"):
        ask.above(item=("clicked", 1), threshold=10**9)
    assert repr(ask) == "<asking, at most 2 answers that are not certain, epsilon 1: 0 left>"


def test_the_whole_cost_is_charged_when_it_begins():
    session = tc.Session(POLICY, ROWS, budget=1)
    session.asking(at_most=5, epsilon="1/2")
    assert session.remaining == Fraction(1, 2)
    with pytest.raises(tc.BudgetExceeded):
        session.asking(at_most=5, epsilon=0.6)
    assert session.remaining == Fraction(1, 2)


def test_every_answer_counts_where_counts_rise_and_fall_and_none_where_nothing_is_secret():
    both = tc.Policy(POLICY.domain, tc.secrets.attributes("clicked"))
    ask = asking(both, at_most=2)
    assert ask.above("clicked.has(1)", 10**6).verdict == "probably below"
    assert ask.left == 1
    domain = tc.Domain({"age": tc.Integers(0, 99), "sex": tc.Categories(["m", "f"])})
    people = pd.DataFrame({"age": [20, 30, 40], "sex": ["m", "m", "f"]})
    ages = tc.Session(tc.Policy(domain, tc.secrets.within(5, "age")), people, budget=1).asking(at_most=1, epsilon=1)
    for _ in range(3):
        assert ages.above("sex == 'm'", 2).verdict == "certainly above"
    assert ages.left == 1


def test_counts_that_rise_are_the_mirror_image():
    rising = tc.Policy(POLICY.domain, tc.secrets.values({"clicked": [0]}))
    ask = asking(rising)
    assert ask.above("clicked.has(40)", 100).verdict == "certainly above"
    assert ask.left == 3
    assert ask.above("clicked.has(1)", 30_000).verdict == "below"
    assert ask.left == 2


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda ask: ask.above("clicked.has(50)", 3), "must be an item from 0 to 49; got 50"),
        (lambda ask: ask.above("clicked.has(5)", 0), "asking.above.threshold must be a whole number from 1; got 0"),
        (lambda ask: ask.above(threshold=3), "asking.above must say whom to count"),
    ],
)
def test_questions_that_cannot_be_are_refused_and_not_counted(ask, sentence):
    one = asking()
    with pytest.raises(tc.PlanError) as refused:
        ask(one)
    assert sentence in str(refused.value)
    assert one.left == 3


def test_what_item_counts_cannot_answer_is_not_counted_either():
    one = asking()
    with pytest.raises(tc.DataRefused):
        one.above("clicked.has(1) and clicked.has(2)", 3)
    assert one.left == 3


@pytest.mark.parametrize("at_most", [0, -1, 2.5, None, True])
def test_a_bound_that_is_none_is_refused_and_nothing_is_charged(at_most):
    session = tc.Session(POLICY, ROWS, budget=1)
    with pytest.raises(tc.PlanError, match=r"asking\.at_most must be a whole number from 1"):
        session.asking(at_most=at_most, epsilon=1)
    assert session.remaining == 1


def test_answers_cannot_be_doubled():
    ask = asking()
    for double in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(tc.PlanError, match="must not be"):
            double(ask)

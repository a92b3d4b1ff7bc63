"""Asking by accuracy: the smallest epsilon that reaches it, found before anything is charged."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from parameters import replaying
from tacit.plan.accuracy import Accuracy, plan_reaching
from tacit.plan.choose import choose
from tacit.report.text import plan_table

stream = replaying(b"how accurate an answer is, and was "[:32])
DOMAIN = tc.Domain({"age": tc.Integers(0, 9), "ill": tc.Flag(), "bought": tc.Items(6, at_most=2)})
POLICY = tc.Policy(DOMAIN, tc.secrets.within(2, "age") | tc.secrets.values({"bought": [1], "ill": [True]}))
PEOPLE = pd.DataFrame({"age": [1, 2, 2, 9], "ill": [True, False, True, False], "bought": [[0], [1, 2], [], [5]]})
QUESTIONS = [
    tc.count("age < 5"),
    tc.histogram("age"),
    tc.marginals("age", "ill"),
    tc.cumulative("age"),
    tc.ranges("age", "all"),
    tc.rectangles("age", "ill", "all"),
    tc.total("age", by="ill"),
    tc.mean("age"),
    tc.variance("age"),
    tc.median("age"),
    tc.clusters("age", k=2),
    tc.top_k("bought", 2),
    tc.above("bought", 1, at_most=2),
    tc.below("age < 5", 3),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.keyword)
def test_the_wanted_error_is_hit_within_one_percent(question):
    check_hit(question, POLICY)


def test_the_share_of_true_records_that_are_missing_is_hit():
    domain = tc.Domain({"ill": tc.Flag()})
    check_hit(tc.true_records("ill"), tc.Policy(domain, tc.secrets.records("ill == True")))


def check_hit(question, policy):
    at_one = choose(question, policy, 1).rmse
    for wanted in (at_one * 1.3, at_one / 1.7):
        plan = tc.explain(question, policy, error=wanted).plan
        cheaper = choose(question, policy, plan.epsilon * Fraction(99, 100))
        assert plan.rmse <= wanted
        assert plan.rmse >= 0.99 * wanted or cheaper.rmse > wanted  # where the error jumps, no smaller epsilon does


@pytest.mark.parametrize("question", QUESTIONS[:7], ids=lambda question: question.keyword)
def test_half_widths_hold_and_are_reached_by_the_smallest_epsilon(question):
    plan = tc.explain(question, POLICY, within=30, level=0.9).plan
    assert plan.half_width(0.9) <= 30 < choose(question, POLICY, plan.epsilon * Fraction(98, 100)).half_width(0.9)
    low, high = plan.spread.bounds(0.9)
    assert plan.half_width(0.9) == pytest.approx(max(-low.min(), high.max()) * float(plan.unit))


def test_the_measured_error_is_the_wanted_one():
    session = tc.Session(POLICY, PEOPLE, budget=1000)
    plan = session.plan(tc.histogram("age", where="ill == True"), error=20)
    truth = np.bincount(PEOPLE["age"][PEOPLE["ill"]], minlength=10)
    off = np.concatenate([session.release(plan).values - truth for _ in range(400)])
    assert np.sqrt((off**2).mean()) == pytest.approx(20, rel=0.08)
    inside = session.plan(tc.count("age < 5"), within=20).half_width()
    off = [session.release(tc.count("age < 5"), within=20).values[0] - 3 for _ in range(300)]
    assert (np.abs(off) <= inside).mean() > 0.91


def test_a_release_is_charged_what_its_plan_costs_and_never_more_than_remains():
    session = tc.Session(POLICY, PEOPLE, budget="1/3")
    plan = session.plan(tc.count("age < 5"), error=session.plan(tc.count("age < 5"), "1/3").rmse)
    assert Fraction(99, 300) <= plan.epsilon <= Fraction(1, 3)
    session.release(plan)
    assert session.remaining == Fraction(1, 3) - plan.epsilon


@pytest.mark.parametrize("ask", ["plan", "explain", "release"])
def test_what_the_budget_cannot_reach_is_refused_with_what_it_reaches_and_charges_nothing(ask, tmp_path):
    session = tc.Session(POLICY, PEOPLE, budget=1, ledger=tmp_path / "ledger.db", dataset="people")
    session.release(tc.histogram("age"), epsilon=0.5)
    with pytest.raises(
        tc.BudgetExceeded, match=r"error cannot be reached .* epsilon 0.5 reaches \d.*; got 0.1. Say"
    ) as no:
        getattr(session, ask)(tc.histogram("age"), error=0.1)
    assert session.remaining == Fraction(1, 2)
    reached = float(str(no.value).split("Say error=")[1].split(" ")[0])
    assert session.plan(tc.histogram("age"), error=reached).epsilon <= Fraction(1, 2)
    with pytest.raises(tc.BudgetExceeded, match="within cannot be reached"):
        getattr(session, ask)(tc.histogram("age"), within=0.5)
    session.release(tc.histogram("age"), epsilon=0.5)
    with pytest.raises(tc.BudgetExceeded, match="no budget remains"):
        getattr(session, ask)(tc.histogram("age"), error=100)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "epsilon must be given. Say epsilon=0.5, or how accurate"),
        ({"epsilon": 1, "error": 2}, "error must not be given beside epsilon"),
        ({"error": 1, "within": 2}, "within must not be given beside error"),
        ({"error": 2, "level": 0.9}, "level belongs to within; got 0.9"),
        ({"level": 0.9}, "level belongs to within; got 0.9"),
        ({"error": 0}, "error must lie above 0; got 0"),
        ({"error": "many"}, "error must be a finite number"),
        ({"within": -3}, "within must lie above 0; got -3"),
        ({"within": 3, "level": 95}, "level must lie strictly between 0 and 1; got 95"),
    ],
)
def test_what_is_asked_for_twice_or_not_at_all_is_refused_in_words(given, words):
    session = tc.Session(POLICY, PEOPLE, budget=1)
    for ask in (session.plan, session.explain, session.release):
        with pytest.raises(tc.PlanError) as refused:
            ask(tc.count(), **given)
        assert words in str(refused.value)
    assert session.remaining == 1


def test_an_accuracy_is_part_of_a_plan_already():
    session = tc.Session(POLICY, PEOPLE, budget=1)
    plan = session.plan(tc.count("age < 5"), error=20)
    for ask in (session.explain, session.release):
        with pytest.raises(tc.PlanError, match="within is part of the plan already"):
            ask(plan, within=20)


def test_groups_of_a_split_are_asked_by_accuracy_as_well():
    policy = tc.Policy(DOMAIN, tc.secrets.within(2, "age"))
    split = tc.Session(policy, PEOPLE, budget=1).split("ill")
    plan = split[True].plan(tc.count("age < 5"), error=10)
    assert 9.9 <= plan.rmse <= 10
    split[True].release(plan)
    split[False].release(tc.count("age < 5"), error=10)
    assert split.charged == plan.epsilon


def test_questions_whose_intervals_follow_from_rows_have_no_half_width():
    with pytest.raises(tc.PlanError, match="within is for answers whose interval is known before the release"):
        tc.explain(tc.clusters("age", k=2), POLICY, within=20)


def test_an_exact_answer_costs_the_least_that_is_solved():
    policy = tc.Policy(DOMAIN, tc.secrets.attributes("ill"))
    assert tc.explain(tc.count("age < 5"), policy, error=20).plan.epsilon == Fraction(1, 10**6)


def test_a_jump_is_hit_as_closely_as_it_can_be():
    """A made-up question whose error jumps from 30 to 10 at epsilon 0.7371."""
    plans = {}

    class Jumping:
        def __init__(self, epsilon):
            self.epsilon, self.rmse = epsilon, 30.0 if epsilon < Fraction("0.7371") else 10.0

    def at(epsilon):
        return plans.setdefault(epsilon, choose(tc.count("age < 5"), POLICY, epsilon))

    class Wanted(Accuracy):
        def reached_by(self, plan):
            return Jumping(plan.epsilon).rmse

    found = plan_reaching(Wanted(Fraction(20)), at).epsilon
    assert Fraction("0.7371") <= found <= Fraction("0.7371") / Fraction("0.99")
    assert len(plans) < 20


@pytest.mark.parametrize("question", [tc.mean("age"), tc.mean("age", by="ill"), tc.variance("age"), tc.median("age")])
def test_half_widths_of_what_is_derived_are_those_of_a_release_about_as_many_people(question):
    people = pd.DataFrame({"age": [*range(10)] * 200, "ill": np.repeat([True, False], 1000), "bought": [[]] * 2000})
    policy = tc.Policy(DOMAIN, tc.secrets.within(2, "age") | tc.secrets.attributes("ill"), known=[tc.known.size(2000)])
    session = tc.Session(policy, people, budget=1000)
    plan = session.plan(question, 1)
    lower, upper = session.release(plan).interval()
    assert plan.half_width() == pytest.approx((upper - lower).max() / 2, rel=0.1, abs=0.5)
    assert 0.9 * plan.half_width() <= session.plan(question, within=plan.half_width()).half_width() <= plan.half_width()


def test_plans_say_how_far_off_an_answer_may_be():
    plan = choose(tc.count("age < 5"), POLICY, 1)
    assert repr(plan) == "<plan of count(age < 5), epsilon 1, expected error 1.36, with 95% within 3>"
    assert str(plan).endswith("(root mean square): 1.357, with 95% within 3")
    assert plan.document()["half_width_95"] == 3.0
    exact = choose(tc.count("age < 5"), tc.Policy(DOMAIN, tc.secrets.attributes("ill")), 1)
    assert "95%" not in str(exact)


@pytest.mark.parametrize(
    ("question", "epsilon", "said"),
    [
        (tc.count("age < 5"), 50, "epsilon 50 protects next to nothing: what is released may be 5e+21 times as likely"),
        (tc.count("age < 5"), 1000, "may be more than 1e+300 times as likely under one secret as under another"),
        (tc.histogram("age"), "1/1000", "is as large as an answer can be, 100: the answers will tell next to nothing"),
        (tc.mean("age"), "1/1000", "The expected error, 9, is as large as an answer can be, 9: the answers will tell"),
    ],
)
def test_a_silly_epsilon_is_told_and_not_refused(question, epsilon, said):
    policy = tc.Policy(DOMAIN, tc.secrets.within(2, "age"), known=[tc.known.size(100)])
    plan = choose(question, policy, epsilon)
    assert said in " ".join(plan.cautions)
    assert f"  note: {plan.cautions[0]}" in str(plan)
    assert said in str(plan_table([tc.explain(plan)]).caption)
    assert choose(question, policy, 1).cautions == []

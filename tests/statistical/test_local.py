"""Randomised response of single people: exact laws, unbiased estimates, and intervals that hold."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

import tacit as tc
from tacit import noise
from tacit.errors import PlanError

ALPHA = 1e-6
KEY = b"tacit randomised response, tests"
RULES = {"warner": tc.local.warner, "mangat": tc.local.mangat}
MANY = 100_000


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("truth", [True, False])
def test_answers_follow_the_law_and_no_other(name, truth):
    rule, other = RULES[name](1), RULES[name](1.1)
    with noise.replayed(noise.Keystream(key=KEY)):
        yes = int(rule.answers(np.full(MANY, truth)).sum())
    assert binomtest(yes, MANY, rule.law(truth)[True]).pvalue > ALPHA
    if 0 < rule.law(truth)[True] < 1:
        assert binomtest(yes, MANY, other.law(truth)[True]).pvalue < ALPHA


def test_laws_keep_epsilon_and_not_less():
    sick = tc.Domain({"sick": tc.Flag()})
    both, one_way = tc.Policy(sick, tc.secrets.attributes("sick")), tc.Policy(sick, tc.secrets.values({"sick": [True]}))
    warner, mangat = (rule(0.5) for rule in RULES.values())
    for rule, policy, loss in ((warner, both, 0.5), (mangat, one_way, 0.5), (mangat, both, math.inf)):
        found = tc.audit.exact(lambda people, rule=rule: rule.law(people[0][0]), policy, 0.5)
        assert found.forward == pytest.approx(loss)


@pytest.mark.parametrize("name", RULES)
def test_estimates_are_unbiased_and_as_wrong_as_is_said(name):
    rule, truths = RULES[name](1), np.arange(500) < 120
    with noise.replayed(noise.Keystream(key=KEY)):
        found = [rule.estimate(int(rule.answers(truths).sum()), people=500) for _ in range(400)]
    values = np.array([one.value for one in found])
    assert values.mean() == pytest.approx(120, abs=5 * rule.deviation(120, people=500) / 20)
    assert values.std() == pytest.approx(rule.deviation(120, people=500), rel=0.2)
    assert sum(one.lower <= 120 <= one.upper for one in found) >= 370


def test_mangat_is_better_at_the_same_epsilon():
    for epsilon in (0.1, 1, 3):
        errors = [rule(epsilon).deviation(120, people=500) for rule in RULES.values()]
        assert errors[1] < errors[0]


def test_what_makes_no_sense_is_refused():
    with pytest.raises(PlanError, match="True and False"):
        tc.local.warner(1).answers([1, 0])
    with pytest.raises(PlanError, match="from 0 to the number of people"):
        tc.local.warner(1).estimate(7, people=5)
    with pytest.raises(PlanError, match="epsilon must lie above 0"):
        tc.local.mangat(0)

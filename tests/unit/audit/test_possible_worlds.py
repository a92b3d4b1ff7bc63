"""What an adversary with knowledge learns, by enumeration, with and without the policy declaring it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit as tc
from tacit.policy.domain import every_record

FOUR = tc.Domain({"x": tc.Integers(0, 3)})
PAIRS = [tc.known.count(f"x in [{at}, {at + 1}]") for at in range(3)]
TABLE = tc.Domain({"sex": tc.Categories(["F", "M"]), "d": tc.Categories(["a", "b"])})


def test_without_knowledge_the_odds_move_by_epsilon_and_no_more():
    policy = tc.Policy(FOUR, tc.secrets.everything())
    found = tc.audit.posterior_odds(tc.histogram("x"), policy, 0.5, people=2)
    assert found.loss == pytest.approx(0.5)
    assert found.keeps


@pytest.mark.parametrize(("people", "epsilon"), [(2, 1), (3, 0.25)])
def test_undeclared_sums_double_the_loss_and_declared_ones_do_not(people, epsilon):
    silent, said = (tc.Policy(FOUR, tc.secrets.everything(), known) for known in ([], PAIRS))
    undeclared = tc.audit.posterior_odds(tc.histogram("x"), silent, epsilon, people=people, knows=PAIRS)
    declared = tc.audit.posterior_odds(tc.histogram("x"), said, epsilon, people=people)
    assert undeclared.loss == pytest.approx(2 * epsilon)
    assert not undeclared.keeps
    assert declared.loss == pytest.approx(epsilon)
    assert declared.keeps


def by_hand(epsilon):
    """Two people, of whom one is F and one M, and the second has d = b: the first is (F, a) or (M, a)."""
    policy = tc.Policy(TABLE, tc.secrets.everything())
    law = tc.explain(tc.histogram("sex", "d"), policy, epsilon).plan.noise
    hidden, cover = np.array([1, 0, 0, 1]), np.array([0, 1, 1, 0])  # cells Fa, Fb, Ma, Mb
    return sum(math.log(law.pmf(0) / law.pmf(int(step))) for step in hidden - cover)


def test_the_worst_odds_are_those_by_hand():
    """Beliefs about one person, and a known histogram, make two people move at once: four counts change."""
    second = {("F", "b"): 0.5, ("M", "b"): 0.5}
    first = {("F", "a"): 0.5, ("M", "a"): 0.5}
    policy, known = tc.Policy(TABLE, tc.secrets.everything()), [tc.known.marginal("sex")]
    found = tc.audit.posterior_odds(tc.histogram("sex", "d"), policy, 1, people=2, knows=known, priors=[first, second])
    assert found.loss == pytest.approx(by_hand(1)) == pytest.approx(2)
    assert found.known == (1, 1)


def test_what_is_shown_exactly_counts_as_shown():
    """No secret edge changes sexes, so their numbers are exact; a known count makes them tell diseases."""
    known = [tc.known.count("d == 'a'")]
    priors = [{("F", "a"): 0.5, ("F", "b"): 0.5}, {("F", "b"): 0.5, ("M", "a"): 0.5}]
    silent, said = (tc.Policy(TABLE, tc.secrets.attributes("d"), facts) for facts in ([], known))
    query = tc.histogram("sex", "d")
    assert math.isinf(tc.audit.posterior_odds(query, silent, 1, people=2, knows=known, priors=priors).loss)
    assert tc.audit.posterior_odds(query, said, 1, people=2, priors=priors).keeps


@pytest.mark.parametrize("seed", range(3))
def test_no_random_belief_moves_the_odds_by_more_than_declared(seed):
    """Whether declared facts are enough against all beliefs is a conjecture; these are some."""
    random = np.random.default_rng(seed)
    for domain, known in ((FOUR, PAIRS), (FOUR, [tc.known.count("x <= 1")]), (TABLE, [tc.known.marginal("sex")])):
        records = every_record(domain)
        beliefs = [
            dict(zip(records, random.random(4) * (random.random(4) < 0.7) + 1e-9, strict=True)) for _ in range(3)
        ]
        policy = tc.Policy(domain, tc.secrets.everything(), known)
        assert tc.audit.posterior_odds(tc.histogram(*domain), policy, 1, people=3, priors=beliefs).keeps


@pytest.mark.parametrize("people", [2, 5])
def test_restricted_sensitivity_forgets_that_nobody_moves_alone(people):
    policy = tc.Policy(tc.Domain({"x": tc.Flag()}), tc.secrets.everything())
    alike = [[False] * people, [True] * people]
    assert tc.audit.steps_among(tc.count("x == True"), policy, alike) == (people, 1)
    every = [[bool(number >> place & 1) for place in range(people)] for number in range(2**people)]
    assert tc.audit.steps_among(tc.count("x == True"), policy, every) == (1, 1)


def test_steps_among_all_data_sets_that_fit_are_those_of_the_policy():
    worlds = [(a, b, c) for a in range(4) for b in range(4) for c in range(4) if sum(x >= 2 for x in (a, b, c)) == 1]
    policy = tc.Policy(FOUR, tc.secrets.everything(), [tc.known.count("x >= 2")])
    step, restricted = tc.audit.steps_among(tc.histogram("x"), tc.Policy(FOUR, tc.secrets.everything()), worlds)
    assert (step, restricted) == (4, 2)
    assert tc.largest_step(tc.histogram("x"), policy).l1 == step


@pytest.mark.parametrize(
    ("query", "people"),
    [(tc.histogram("x"), 9), (tc.cumulative("x"), 2), (tc.median("x"), 2)],
    ids=["too many data sets", "not its own counts", "several parts"],
)
def test_what_cannot_be_gone_through_is_refused(query, people):
    with pytest.raises(tc.PlanError):
        tc.audit.posterior_odds(query, tc.Policy(FOUR, tc.secrets.within(1, "x")), 1, people=people)


@pytest.mark.parametrize(
    ("prior", "said"),
    [
        ({True: 1.0}, r"about records, as tuples .* got True"),
        ({}, "leave each person a record"),
        ({(True,): 0.0}, "above 0"),
    ],
)
def test_beliefs_that_would_move_no_odds_are_refused(prior, said):
    policy = tc.Policy(tc.Domain({"sick": tc.Flag()}), tc.secrets.everything())
    with pytest.raises(tc.PlanError, match=said):
        tc.audit.posterior_odds(tc.count("sick"), policy, 1, people=1, priors=[prior])

"""Posteriors against people who are drawn, released by their coins, and counted; rules that are wrong are found out.

Each assertion has alpha 1e-6; worlds and coins come from a fixed stream.
"""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

import tacit as tc
from tacit.dependence.suppression import suppression

ALPHA = 1e-6
PEOPLE = 400_000
NAMES = ("a", "b", "c")
EPSILON = {"a": 0.8, "b": 1.3, "c": 0.5}
SENSITIVE = {name: [0] for name in NAMES}
# a and b are nearly copies of each other, so that pairs count the same news twice
COPIES = {(0, 0, 0): 0.40, (1, 1, 0): 0.06, (2, 2, 0): 0.02, (0, 0, 1): 0.04, (1, 1, 1): 0.08, (2, 2, 1): 0.40}


def people(coins: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the values of people, and for each attribute whether each of three questions was answered."""
    rng = np.random.default_rng(31)
    worlds = np.array(list(COPIES))[rng.choice(len(COPIES), PEOPLE, p=list(COPIES.values()))]
    answered = {}
    for place, name in enumerate(NAMES):
        tossed = rng.random((PEOPLE, 3 if coins == "fresh" else 1)) < 1 - math.exp(-EPSILON[name])
        shown = np.broadcast_to(tossed, (PEOPLE, 3))
        answered[name] = shown & (worlds[:, [place]] != 0)
    return worlds, answered


def fits(met: np.ndarray, claimed: float) -> bool:
    """Say whether so many of those who look like this are sensitive as a posterior claims."""
    return binomtest(int(met.sum()), len(met), min(claimed, 1.0)).pvalue > ALPHA


@pytest.mark.parametrize("coins", ["fresh", "remembered"])
def test_drawn_people_are_as_the_posterior_says(coins: str) -> None:
    worlds, answered = people(coins)
    seen = suppression(tc.Dependence.from_table(COPIES, NAMES), SENSITIVE, EPSILON, coins)
    alike = ~answered["a"].any(axis=1) & ~answered["b"][:, :2].any(axis=1)
    met = worlds[alike, 2] == 0
    right = seen.posterior(["c"], suppressed={"a": 3, "b": 2})[0]
    assert fits(met, right)
    other = suppression(
        seen.dependence, SENSITIVE, EPSILON, {"fresh": "remembered", "remembered": "fresh"}[coins]
    ).posterior(["c"], suppressed={"a": 3, "b": 2})[0]
    assert not fits(met, other)


def test_a_product_of_pairwise_factors_is_found_out() -> None:
    worlds, answered = people("fresh")
    seen = suppression(tc.Dependence.from_table(COPIES, NAMES), SENSITIVE, EPSILON)
    met = worlds[~answered["a"][:, 0] & ~answered["b"][:, 0], 2] == 0
    assert fits(met, seen.posterior(["c"], suppressed={"a": 1, "b": 1})[0])
    prior = seen.log_odds("c")
    odds = math.exp(seen.log_odds("c", suppressed={"a": 1}) + seen.log_odds("c", suppressed={"b": 1}) - prior)
    assert not fits(met, odds / (1 + odds))


def test_a_release_shows_its_value_and_not_only_a_bit() -> None:
    worlds, answered = people("fresh")
    seen = suppression(tc.Dependence.from_table(COPIES, NAMES), SENSITIVE, EPSILON)
    met = worlds[answered["a"][:, 0] & (worlds[:, 0] == 1), 2] == 0
    assert fits(met, seen.posterior(["c"], released={"a": 1})[0])
    assert not fits(met, seen.posterior(["c"], released={"a": ...})[0])
    some = worlds[answered["a"][:, 0], 2] == 0
    assert fits(some, seen.posterior(["c"], released={"a": ...})[0])

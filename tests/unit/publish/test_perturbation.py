"""Uniform perturbation: its exact worst loss over all edges, and what follows from a promise."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from tacit.publish.methods.criterion import Channel
from tacit.publish.methods.perturbation import Uniform, likeliest, retention_for


def law_of_table(records: tuple[int, ...], channel: Channel) -> Counter[tuple[int, ...]]:
    """Return the probability of every table of counts, record by record, in fractions."""
    law: Counter[tuple[int, ...]] = Counter({(0,) * channel.values: Fraction(1)})
    for record in records:
        wider: Counter[tuple[int, ...]] = Counter()
        for counts, weight in law.items():
            for value in range(channel.values):
                chance = channel.spread + (channel.retention if value == record else 0)
                wider[tuple(n + (value == at) for at, n in enumerate(counts))] += weight * chance
        law = wider
    return law


@pytest.mark.parametrize(("retention", "values"), [("1/2", 2), ("1/5", 3), ("9/10", 3)])
def test_worst_loss_over_all_edges_is_epsilon(retention: str, values: int) -> None:
    channel = Channel(Fraction(retention), values)
    worst = Fraction(0)
    for others in itertools.combinations_with_replacement(range(values), 2):
        for hidden, cover in itertools.permutations(range(values), 2):
            at_hidden, at_cover = (law_of_table((*others, one), channel) for one in (hidden, cover))
            worst = max(worst, *(weight / at_cover[table] for table, weight in at_hidden.items()))
    # other records hide a little of what one record shows; alone it shows all
    alone = [law_of_table((value,), channel) for value in range(2)]
    largest = max(alone[0][table] / alone[1][table] for table in alone[0])
    epsilon = channel.epsilon
    assert largest == 1 + channel.retention / channel.spread
    assert worst <= largest
    assert math.log(largest) <= epsilon <= math.log(largest) + 2e-12


def test_the_draw_follows_that_law() -> None:
    """The tables of three records, each often enough: chi-square at 1e-6, with a wrong retention refused."""
    from scipy.stats import chisquare

    channel, size = Channel(Fraction(1, 5), 3), 30_000
    with tc.noise.replayed(tc.noise.Keystream(key=b"draw" * 8)):
        drawn = Uniform(channel).draw(np.tile([2, 0, 1], (size, 1)))
    seen = Counter(map(tuple, drawn.tolist()))

    def pvalue(of: Channel) -> float:
        law = law_of_table((0, 0, 2), of)
        assert set(seen) <= set(law)
        return float(chisquare([seen[one] for one in law], [float(weight) * size for weight in law.values()]).pvalue)

    assert pvalue(channel) > 1e-6
    assert pvalue(Channel(Fraction(1, 4), 3)) < 1e-6


@pytest.mark.parametrize("values", [2, 7])
def test_retention_from_epsilon_is_the_largest(values: int) -> None:
    retention = retention_for(values, epsilon=1)
    assert Channel(retention, values).epsilon <= 1 < Channel(retention + Fraction(2, 10**9), values).epsilon


@pytest.mark.parametrize(("low", "high", "values"), [(0.1, 0.5, 10), (0.2, 0.3, 2)])
def test_retention_from_rho_stops_both_breaches(low: float, high: float, values: int) -> None:
    """Over priors of one value against the others, before and after the value that tells most."""
    channel = Channel(retention_for(values, rho=(low, high)), values)
    kept, spread = channel.kept, float(channel.spread)

    def upward(prior: float) -> float:  # the value itself was shown
        return prior * kept / (prior * kept + (1 - prior) * spread)

    def downward(prior: float) -> float:  # another value was shown, which everybody else has
        return prior * spread / (prior * spread + (1 - prior) * kept)

    assert upward(low) < high
    assert downward(high) > low
    assert upward(low) > high - 1e-6


@pytest.mark.parametrize(
    ("rho", "said"),
    [
        ((0.5, 0.1), "0.5, 0.1"),
        ((0, 0.5), "0, 0.5"),
        ((0.1, 1), "0.1, 1"),
        (0.5, "0.5"),
        ([0.25], "0.25"),
        (["0.1", "0.2", "0.3"], "0.1, 0.2, 0.3"),
        ([], "[]"),
    ],
)
def test_rho_is_a_pair_of_probabilities(rho: object, said: str) -> None:
    with pytest.raises(tc.PlanError, match="rho must be") as refused:
        retention_for(3, rho=rho)
    assert said in str(refused.value).partition("For instance")[0]


def test_the_most_likely_frequencies_beat_all_others() -> None:
    channel = Channel(Fraction(1, 2), 4)
    shares = np.array([0.55, 0.3, 0.1, 0.05])
    found = likeliest(shares, channel)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()

    def likelihood(f: np.ndarray) -> np.ndarray:
        return (shares * np.log(f * 0.5 + 0.125)).sum(axis=-1)

    grid = np.array([one for one in itertools.product(range(21), repeat=4) if sum(one) == 20]) / 20
    assert likelihood(grid).max() <= likelihood(found) + 1e-12
    assert likelihood(grid).max() > likelihood(found) - 1e-2
    inside = np.array([0.3, 0.25, 0.25, 0.2])
    assert likeliest(inside, channel) == pytest.approx((inside - 0.125) / 0.5)

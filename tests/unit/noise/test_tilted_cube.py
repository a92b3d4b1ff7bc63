"""The tilted cube: its law against sums term by term, its bounds, and the exact arithmetic behind its coin."""

from __future__ import annotations

import math
from decimal import localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tacit import noise
from tacit.noise.tilted_cube import (
    Radius,
    TiltedCube,
    can_be_tilted,
    exact_weight,
    slack_for,
    tilted_cube,
)

SMALL = TiltedCube(epsilon=Fraction(3, 2), rate=Fraction(1, 2), dimensions=2, cap=4)
LAWS = [
    SMALL,
    tilted_cube(1, Fraction(1, 3), Fraction(1)),
    tilted_cube(5, Fraction(1, 20), Fraction(1, 3)),
    tilted_cube(30, Fraction(1, 400), Fraction(33, 400)),
]


def mass(law: TiltedCube, m: int, above: int) -> float:
    """A_m(d), from its definition."""
    return sum(math.exp(float(law.rate) * min(above + x, max(m, law.cap))) for x in range(m + 1))


@pytest.mark.parametrize("law", LAWS)
def test_the_mass_is_the_sum_of_its_terms(law):
    for m, above in product([0, 1, 3, law.cap - 1, law.cap, law.cap + 7], [-9, -1, 0, 1, 2, law.cap, law.cap + 3, 500]):
        expected = math.log(mass(law, m, above)) - float(law.rate) * max(m, law.cap)
        assert float(law.log_mass(m, above)) == pytest.approx(expected, abs=1e-9)


def test_probabilities_of_small_cases_add_up_to_one():
    for counts, floor in (([4, 1], 2), ([0, 0], 3), ([30, 2], 1)):
        law = SMALL.at(floor)
        near = product(range(34), repeat=2)
        total = sum(math.exp(law.log_probability(counts, [counts[0] + a, counts[1] + b])) for a, b in near)
        assert total == pytest.approx(1, abs=1e-6)
    assert SMALL.log_probability([4, 1], [3, 1]) == -math.inf


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", ["far", "at the floor", "mixed"])
def test_no_later_step_is_steeper_than_the_bound(law, kind):
    rng = np.random.default_rng(3)
    above = {
        "far": np.full(law.dimensions, 10**7),
        "at the floor": np.zeros(law.dimensions, dtype=np.int64),
        "mixed": rng.integers(-law.cap, 3 * law.cap, law.dimensions),
    }[kind]
    radii = np.arange(6 * law.cap)
    steps = np.diff(law.log_weight(radii, above))
    steepest_later = np.maximum.accumulate(steps[::-1])[::-1]
    assert (steepest_later <= law.steepness(radii[:-1], above) + 1e-9).all()


@pytest.mark.parametrize("law", LAWS)
def test_the_second_hump_of_far_counts_is_low(law):
    above = np.full(law.dimensions, 10**9)
    end = 40 * law.cap
    weights = law.log_weight(np.arange(end), above)
    if law.cap > 4:  # the cap of the first law was made up
        assert weights[law.cap :].max() < weights.max() - 25


@pytest.mark.parametrize("law", LAWS)
def test_stairs_lie_above_all_weights_and_not_far(law):
    above = np.linspace(-5, 2 * law.cap, law.dimensions).astype(np.int64)
    radius = Radius(law, above)
    weights = law.log_weight(np.arange(radius._end), np.maximum(above, 0))
    blocks = np.repeat(np.arange(len(radius._widths)), radius._widths)
    heights = np.log(np.array(radius._stairs[:-1], dtype=float) / radius._widths)
    stairs = heights[blocks] + radius._top - radius._unit * math.log(2)
    assert (stairs >= weights).all()
    kept = np.exp(weights - weights.max()).sum() / np.exp(stairs - weights.max()).sum()
    assert kept > 0.4


@pytest.mark.parametrize("law", LAWS)
def test_floats_and_decimals_agree_on_weights(law):
    above = np.maximum(np.linspace(-5, 2 * law.cap, law.dimensions).astype(np.int64), 0)
    for m in (0, 1, law.cap, 3 * law.cap):
        with localcontext() as context:
            context.prec = 80
            exact = exact_weight(law, m, above, 0.0).ln()
        assert float(law.log_weight(m, above)) == pytest.approx(float(exact), abs=1e-9)


def test_the_exact_coin_is_the_float_coin_where_that_can_see():
    law = LAWS[2]
    radius = Radius(law, np.array([0, 5, 50, 500, 5000]))
    for block in (0, len(radius._starts) // 2, len(radius._starts) - 1, len(radius._starts)):
        place = radius._end + 3 if block == len(radius._starts) else int(radius._starts[block])
        chance = math.exp(float(radius._log_chance(np.array([place]), np.array([block]))[0]))
        for word in (chance * 0.999, chance * 1.001):
            if word < 1:
                assert radius._exact_coin(place, block, int(word * 2**63)) == (word < chance)


def test_noise_is_never_negative_and_grows_only_below_the_bar():
    with noise.replayed(noise.Keystream(key=b"tilted cube, a fixed test stream")):
        law = tilted_cube(20, Fraction(1, 92), Fraction(1, 4)).at(1000)
        far = [law.measure(np.full(20, 10**6)) - 10**6 for _ in range(60)]
        low = [law.measure(np.full(20, 0)) for _ in range(60)]
    assert np.min(far) >= 0
    assert np.min(low) >= 0
    assert np.mean(low) > 2 * np.mean(far)


def test_what_can_be_drawn():
    assert can_be_tilted(10_000, Fraction(1, 10**6), Fraction(1))
    assert not can_be_tilted(10_001, Fraction(1, 10), Fraction(1))
    assert not can_be_tilted(10, Fraction(1, 10**12), Fraction(1))
    assert not can_be_tilted(10, Fraction(101), Fraction(100))
    assert can_be_tilted(10, Fraction(5), Fraction(100))
    assert not can_be_tilted(10, Fraction(5), Fraction(101))
    assert slack_for(1) == Fraction(1, 3)
    assert slack_for(100) == 3

"""k-means of document 003: valid sensitivities hold over all edges, printed ones do not; Lloyd against a plain loop."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from parameters import replaying
from tacit import noise
from tacit_reproductions import data
from tacit_reproductions.document_003.kmeans import (
    Weighted,
    best_objective,
    exact_sensitivity,
    lloyd,
    noisy_lloyd,
    printed_sensitivity,
    random_centres,
    spread_centres,
    valid_sensitivity,
)

stream = replaying(b"k-means of document 003, tested.")


@pytest.mark.parametrize("highest", [(30,), (11, 8), (5, 4, 3)])
@pytest.mark.parametrize("reach", [1, 3])
def test_valid_sensitivities_hold_over_all_edges_and_printed_ones_do_not(highest, reach):
    values = np.array(list(product(*(range(high + 1) for high in highest))), dtype=float)
    is_edge = np.abs(values[:, np.newaxis] - values).sum(axis=2) <= reach
    sides = np.array(highest, dtype=float)
    broken = 0
    for centres in random_centres(sides, 12, k=3):
        (bound,), (from_centres,) = valid_sensitivity(centres[np.newaxis], sides, reach)
        origin = centres if from_centres else np.broadcast_to(sides / 2, centres.shape)
        assert exact_sensitivity(values, centres, is_edge, origin) <= bound + 1e-9
        broken += exact_sensitivity(values, centres, is_edge, np.zeros_like(centres)) > printed_sensitivity(reach)
    assert broken >= 10


def test_lloyd_is_what_a_plain_loop_finds():
    points = data.Points.of("few", noise.uniform_below(20, (60, 2)), (19, 19))
    weighted = Weighted.of(points)
    starts = random_centres(weighted.sides, 3, k=2)
    found = lloyd(weighted, starts, 4)
    for run, centres in enumerate(starts):
        own = centres.copy()
        for _ in range(4):
            nearest = ((points.everybody()[:, np.newaxis] - own) ** 2).sum(axis=2).argmin(axis=1)
            for cluster in range(2):
                if (nearest == cluster).any():
                    own[cluster] = points.everybody()[nearest == cluster].mean(axis=0)
        np.testing.assert_allclose(found[run], own, atol=1e-9)
    plain = ((points.everybody()[:, np.newaxis] - found[0]) ** 2).sum(axis=2).min(axis=1).sum()
    assert weighted.objective(found)[0] == pytest.approx(plain)


def test_little_noise_changes_little_and_no_secret_edge_nothing():
    weighted = Weighted.of(data.synthetic_points())
    starts = spread_centres(weighted, 4)  # no cluster is empty
    plain = lloyd(weighted, starts)
    np.testing.assert_array_equal(noisy_lloyd(weighted, starts, 0, Fraction(1), printed=False), plain)
    for printed in (True, False):
        nearly = noisy_lloyd(weighted, starts, 10, Fraction(10**9), printed=printed)
        np.testing.assert_allclose(nearly, plain, atol=1e-3)
    assert best_objective(weighted) <= weighted.objective(plain).min() * (1 + 1e-9)


def test_noise_has_the_scale_of_the_sensitivity():
    """One point at the middle, one iteration's noise: the first centre moves by (noise of the sum) / (noisy size)."""
    heavy = Weighted(np.array([[50.0]]), np.array([1e9]), np.array([100.0]))
    starts = np.full((4_000, 1, 1), 50.0)
    moved = noisy_lloyd(heavy, starts, 3, Fraction(1), printed=True)[:, 0, 0] - 50
    scale = printed_sensitivity(3) * 10 * 2 / 1e9  # ten iterations, half of each for sums
    sizes = 2 * 10 * 2 / 1e9 * 50  # a noisy size divides 50
    expected = np.sqrt(2 * scale**2 + 2 * sizes**2)
    assert moved.std() == pytest.approx(expected, rel=0.1)

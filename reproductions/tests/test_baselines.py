"""The baselines against their definitions: least squares, the order of asking, and the exact law of a choice."""

import math
from fractions import Fraction

import numpy as np
import pytest

from parameters import replaying
from tacit import noise
from tacit.noise.two_scale import TwoScale
from tacit_reproductions.document_002.baselines import (
    NONE,
    FreeGap,
    algorithm_1,
    algorithm_2,
    free_gap_sparse_vector,
    free_gap_top_k,
    with_gaps,
)

FAR = np.array([90_000, 60_000, 30_000, 0], dtype=np.int64)  # noise never changes which are the largest
HALF = Fraction(1, 2)
stream = replaying(bytes(32))


@pytest.mark.parametrize("ratio", [0.5, 1.0, 4.0])
def test_the_estimate_is_the_least_squares_solution(ratio):
    """Measured counts and gaps as rows of one linear system, whitened by the covariance of the gaps."""
    rng = np.random.default_rng(1)
    for k in (1, 2, 5, 9):
        measured, noisy = rng.normal(100, 30, k), rng.normal(100, 30, k)
        differences = np.eye(k)[:-1] - np.eye(k)[1:]
        design = np.vstack([np.eye(k), differences])
        seen = np.concatenate([measured, differences @ noisy])
        covariance = np.zeros((2 * k - 1, 2 * k - 1))
        covariance[:k, :k], covariance[k:, k:] = np.eye(k), ratio * differences @ differences.T
        whitened = np.linalg.inv(np.linalg.cholesky(covariance))
        expected = np.linalg.lstsq(whitened @ design, whitened @ seen, rcond=None)[0]
        np.testing.assert_allclose(with_gaps(measured, noisy, ratio), expected, rtol=1e-9)
        np.testing.assert_allclose(with_gaps(measured, noisy + 17, ratio), expected, rtol=1e-9)


@pytest.mark.parametrize(("form", "ratio"), [("monotone", 1.0), ("general", 4.0), ("exponential", 0.5)])
def test_the_error_of_free_gap_is_what_its_authors_state(form, ratio):
    k, runs = 3, 40_000
    found = free_gap_top_k(FAR, k, HALF, runs, form=FreeGap(form))
    assert (found.places == [0, 1, 2]).all()
    squared = ((found.values - FAR[:3]) ** 2).mean(axis=1)
    expected = TwoScale(2 * k / HALF, 2 * k / HALF).variance() * (1 + ratio * k) / (k + ratio * k)
    assert abs(squared.mean() - expected) < 4 * squared.std() / math.sqrt(runs)
    assert abs((found.values - FAR[:3]).mean()) < 4 * math.sqrt(expected / runs)


def test_algorithm_1_is_unbiased_where_the_choice_is_clear():
    k, runs = 3, 40_000
    found = algorithm_1(FAR, k, HALF, runs)
    error = found.values - FAR[:3]
    law = TwoScale(k / HALF, Fraction(0))
    assert (found.places == [0, 1, 2]).all()
    assert abs(error.mean()) < 4 * math.sqrt(law.variance() / error.size)
    assert abs((error**2).mean() / law.variance() - 1) < 4 * math.sqrt(8 / error.size)  # an exponential has kurtosis 9


def test_algorithm_1_is_biased_upwards_where_counts_are_equal():
    found = algorithm_1(np.full(200, 50, dtype=np.int64), 5, HALF, 2_000)
    assert (
        found.values - 50
    ).mean() > 2 * 5 / HALF  # the five largest of 200 draws are about 3.4 scales above the mean


def test_all_items_can_be_asked_for_and_the_largest_come_first():
    found = algorithm_1(FAR[::-1].copy(), 4, HALF, 3)
    assert found.places.tolist() == [[3, 2, 1, 0]] * 3
    assert (np.diff(found.values, axis=1) < 0).all()


def test_equal_noisy_counts_go_to_the_earlier_place():
    found = algorithm_1(np.zeros(6, dtype=np.int64), 3, Fraction(300), 2_000)  # hardly any noise
    equal = found.values.max(axis=1) == found.values.min(axis=1)
    assert equal.sum() > 1_000
    assert (found.places[equal] == [0, 1, 2]).all()


@pytest.mark.parametrize("form", ["monotone", "general"])
def test_the_choice_of_free_gap_costs_half_of_epsilon(form):
    """Two items, one is chosen. First the exact law, which draws must follow; then its loss along all neighbours."""
    epsilon, runs = Fraction(2), 60_000
    scale = 2 / epsilon * (2 if form == "general" else 1)
    law, wide = TwoScale(scale, scale), np.arange(-80, 81)

    def chance_of_first(first, second):
        return float(np.sum(law.pmf(wide) * law.cdf(first - second + wide)))

    for first, second in ((3, 3), (4, 3), (3, 5)):
        found = free_gap_top_k(np.array([first, second]), 1, epsilon, runs, form=FreeGap(form))
        chance = chance_of_first(first, second)
        assert abs((found.places == 0).mean() - chance) < 4 * math.sqrt(chance * (1 - chance) / runs)
    one_way = [(1, 0), (0, 1), (1, 1)]
    steps = one_way if form == "monotone" else [*one_way, (1, -1), (-1, 1)]
    worst = 0.0
    for gap in range(-6, 7):
        for a, b in steps:
            for sign in (1, -1):
                before, after = chance_of_first(gap, 0), chance_of_first(gap + sign * a, sign * b)
                worst = max(worst, abs(math.log(before / after)), abs(math.log((1 - before) / (1 - after))))
    # the noise is what the definition asks for, which is more than two items need in the general form
    assert 0.5 * float(epsilon) / 2 < worst <= float(epsilon) / 2 + 1e-9


def asked_one_by_one(noisy, threshold, most):
    """Return places and noisy counts as Algorithm 2 finds them, stopped after the last answer."""
    found = []
    for place, value in enumerate(noisy):
        if value >= threshold:
            found.append((place, value))
        if len(found) == most:
            break
    return found


def test_algorithm_2_stops_in_time():
    counts = np.tile(np.array([0, 40, 10, 50, 45, 60, 0, 55]), (500, 1))
    thresholds = np.full(500, 45)
    law = TwoScale(3 / HALF, Fraction(0))
    with noise.replayed(noise.Keystream(key=b"1" * 32)):
        found = algorithm_2(counts, thresholds, 3, HALF)
    with noise.replayed(noise.Keystream(key=b"1" * 32)):
        noisy = counts + noise.sample(law, counts.shape)
    for line in range(500):
        expected = asked_one_by_one(noisy[line], 45, 3)
        assert [(p, v) for p, v in zip(found.places[line], found.values[line], strict=True) if p != NONE] == [
            (place, value - law.mean()) for place, value in expected
        ]
    assert (found.places == NONE).sum() == np.isnan(found.values).sum()


@pytest.mark.parametrize("adaptive", [False, True])
def test_the_sparse_vector_finds_at_most_so_many_in_order(adaptive):
    counts = np.tile(np.array([100, 0, 900, 950, 10, 1_000, 990, 980, 0, 970]), (400, 1))
    found = free_gap_sparse_vector(counts, np.full(400, 500), 4, Fraction(2), adaptive=adaptive)
    assert found.places.tolist() == [[2, 3, 5, 6]] * 400
    error = found.values - counts[0][[2, 3, 5, 6]]
    assert abs(error.mean()) < 4 * error.std() / math.sqrt(400)  # errors of a line share the noise of the threshold


def test_the_sparse_vector_weighs_both_estimates():
    """Far above the threshold nothing is selected by chance, so variances add up as for independent estimates."""
    k, epsilon, runs = 4, Fraction(1), 20_000
    counts = np.full((runs, k), 100_000)
    found = free_gap_sparse_vector(counts, np.zeros(runs, dtype=np.int64), k, epsilon)
    share = k ** (2 / 3)
    by_gap = 8 * (1 + share) ** 3 / float(epsilon) ** 2
    by_measuring = 8 * k**2 / float(epsilon) ** 2
    expected = 1 / (1 / by_gap + 1 / by_measuring)
    squared = ((found.values - 100_000) ** 2).mean(axis=1)
    assert abs(squared.mean() / expected - 1) < 0.01 + 4 * squared.std() / squared.mean() / math.sqrt(runs)


def test_what_the_adaptive_form_saves_goes_into_the_measurement():
    k, epsilon, runs = 4, Fraction(1), 20_000
    counts = np.full((runs, k), 100_000)
    thresholds = np.zeros(runs, dtype=np.int64)
    plain, adaptive = (free_gap_sparse_vector(counts, thresholds, k, epsilon, adaptive=a) for a in (False, True))
    errors = [((one.values - 100_000) ** 2).mean() for one in (plain, adaptive)]
    assert errors[1] < 0.85 * errors[0]


def test_large_tables_are_done_in_parts():
    counts = np.arange(1_000_000, dtype=np.int64)
    found = algorithm_1(counts, 2, HALF, 9)
    assert found.places.shape == (9, 2)
    assert (found.places > 999_000).all()

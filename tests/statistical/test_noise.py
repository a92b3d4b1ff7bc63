"""Draws fit the stated law and no neighbour of it.

Every assertion is a chi-square test at ALPHA; the keys are fixed, so a passing suite stays passing. With fresh keys
a right sampler would fail one assertion in a million.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from parameters import replaying
from tacit import noise
from tacit.noise.cube import Cube
from tacit.noise.cube_radius import RejectedRadius, radius_sampler
from tacit.noise.draws import TabledDraws, as_scale
from tacit.noise.two_scale import TwoScale

ALPHA = 1e-6
KEY = b"tacit statistical tests, key one"
DRAWS = 200_000
F = Fraction
stream = replaying(KEY)


def quantiles(law, chances):
    """Return the quantiles of a law, all at once: one search for each would take longer than the draws."""
    low, high = (np.full(len(chances), law.quantile(chance)) for chance in (chances[0], chances[-1]))
    low -= 1
    while (high - low > 1).any():
        middle = low + (high - low) // 2
        reached = law.cdf(middle) >= chances
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


def p_value(sample, law):
    """Chi-square of a sample against a law, in up to 50 bins of about equal probability."""
    edges = np.unique(quantiles(law, np.linspace(0.01, 0.99, 50)))
    chance = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))
    # A value on an edge belongs to the bin that the edge closes.
    seen = np.bincount(np.searchsorted(edges, sample, side="left"), minlength=edges.size + 1)
    # Outcomes that the law excludes are decisive on their own; bins that are nearly empty are not for a chi-square.
    if np.any(law.pmf(np.array([sample.min(), sample.max()])) == 0):
        return 0.0
    kept = chance * sample.size > 10
    chance, seen = np.append(chance[kept], chance[~kept].sum()), np.append(seen[kept], seen[~kept].sum())
    if chance[-1] * sample.size < 1:
        chance, seen = chance[:-1], seen[:-1]
    return stats.chisquare(seen, chance / chance.sum() * seen.sum()).pvalue


SCALES = ["1/2", "1", "10/3", "50", "119", "121", "1000", "30000", "1e6", "8e11"]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("scale", SCALES)
def test_discrete_laplace_fits_its_scale_and_no_other(scale):
    s = as_scale(scale)
    sample = noise.discrete_laplace(s, DRAWS)
    assert p_value(sample, TwoScale(s, s)) > ALPHA
    for wrong in (s * F(9, 10), s * F(11, 10)):
        assert p_value(sample, TwoScale(wrong, wrong)) < ALPHA
    assert p_value(sample, TwoScale(s, F(0))) < ALPHA
    if s < 50:
        assert p_value(sample + 1, TwoScale(s, s)) < ALPHA


@pytest.mark.one_in(8)
@pytest.mark.parametrize("scale", SCALES)
def test_geometric_fits_its_scale_and_no_other(scale):
    s = as_scale(scale)
    sample = noise.geometric(s, DRAWS)
    assert p_value(sample, TwoScale(s, F(0))) > ALPHA
    for wrong in (s * F(9, 10), s * F(11, 10)):
        assert p_value(sample, TwoScale(wrong, F(0))) < ALPHA
    assert p_value(sample, TwoScale(s, s)) < ALPHA
    if s < 50:
        assert p_value(sample + 1, TwoScale(s, F(0))) < ALPHA


@pytest.mark.parametrize(
    ("right", "left"), [(2, 5), (5, 2), (0, 3), (0, 1000), (1000, 300), (1, 5000), (10**9, 10**6), ("1/2", 200)]
)
def test_two_scale_fits_its_scales_and_no_others(right, left):
    right, left = F(right), F(left)
    sample = noise.two_scale(right, left, DRAWS)
    assert p_value(sample, TwoScale(right, left)) > ALPHA
    assert p_value(sample, TwoScale(left, right)) < ALPHA
    wider = max(right, left) * F(23, 20)
    wrong = TwoScale(wider, left) if right > left else TwoScale(right, wider)
    assert p_value(sample, wrong) < ALPHA


def test_last_digits_of_a_large_scale_are_uniform_and_independent():
    z = noise.discrete_laplace(10**12, DRAWS)
    for shift in (0, 8, 16, 24):
        assert stats.chisquare(np.bincount((z >> shift) & 255, minlength=256)).pvalue > ALPHA
    pairs = np.bincount(((z >> 4) & 15) * 16 + ((z >> 8) & 15), minlength=256)
    assert stats.chisquare(pairs).pvalue > ALPHA
    assert stats.binomtest(int(np.sum(z < 0)), DRAWS).pvalue > ALPHA


@pytest.mark.parametrize("sides", ["right", "left", "both"])
@pytest.mark.parametrize("scale", [F(1), F(5, 2)])
def test_two_coordinates_of_a_cube_have_the_joint_law(scale, sides):
    law = Cube(scale, 2, sides)
    side = {"right": np.arange(0, 8), "left": np.arange(-7, 1), "both": np.arange(-6, 7)}[sides]
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)

    def joint(claimed):
        # Normalised over a window that holds all but 1e-30 of the probability.
        far = np.arange(-250, 251) if sides == "both" else np.arange(0, 251) * (1 if sides == "right" else -1)
        whole = np.exp(claimed.log_weight(np.stack(np.meshgrid(far, far, indexing="ij"), axis=-1))).sum()
        return np.exp(claimed.log_weight(grid)) / whole

    sample = noise.sample(law, DRAWS)
    assert sample.shape == (DRAWS, 2)
    inside = np.all((sample >= side[0]) & (sample <= side[-1]), axis=1)
    cell = (sample[inside, 0] - side[0]) * side.size + (sample[inside, 1] - side[0])
    seen = np.append(np.bincount(cell, minlength=grid.shape[0]), np.sum(~inside))
    for claimed, fits in [
        (law, True),
        (Cube(scale * F(9, 10), 2, sides), False),
        (Cube(scale * F(11, 10), 2, sides), False),
    ]:
        chance = joint(claimed)
        p = stats.chisquare(seen, np.append(chance, 1 - chance.sum()) * DRAWS).pvalue
        assert (p > ALPHA) == fits
    # Independent coordinates with the same marginals would not do: the radius ties them together.
    product = np.outer(law.pmf(side), law.pmf(side)).reshape(-1)
    assert stats.chisquare(seen, np.append(product, 1 - product.sum()) * DRAWS).pvalue < ALPHA


@pytest.mark.one_in(8)
@pytest.mark.parametrize("sides", ["right", "both"])
@pytest.mark.parametrize(
    ("scale", "d", "path"),
    [
        ("1/2", 40, TabledDraws),
        ("3", 7, TabledDraws),
        ("20", 1, TabledDraws),
        ("1000", 1, RejectedRadius),
        ("1000", 3, RejectedRadius),
        ("200", 50, RejectedRadius),
        ("8e11", 2, RejectedRadius),
        ("8e11", 12, RejectedRadius),
    ],
)
def test_one_coordinate_of_a_cube_has_the_marginal_law(scale, d, path, sides):
    s = as_scale(scale)
    law = Cube(s, d, sides)
    assert isinstance(radius_sampler(s, d, both_signs=sides == "both"), path)
    # One coordinate of each vector: those of one vector depend on each other.
    sample = noise.cube(s, d, 60_000, sides)[:, d // 2]
    assert p_value(sample, law) > ALPHA
    for wrong in (F(17, 20), F(23, 20)):
        assert p_value(sample, Cube(s * wrong, d, sides)) < ALPHA
    assert p_value(sample, Cube(s, d, "both" if sides == "right" else "right")) < ALPHA


@pytest.mark.parametrize("both_signs", [False, True])
@pytest.mark.parametrize(("scale", "d"), [(F(6), 2), (F(1), 900), (F(1, 10), 40_000)])
def test_table_and_rejection_draw_the_same_radius(scale, d, both_signs):
    law = Cube(scale, d, "both" if both_signs else "right")
    stream = noise.Keystream(key=KEY)
    tabled = radius_sampler(scale, d, both_signs=both_signs)
    assert isinstance(tabled, TabledDraws)
    rejected = RejectedRadius(scale, d, both_signs=both_signs)
    radii = np.arange(tabled.largest + 1)
    chance = law.radius_pmf(radii)
    frequent = chance * DRAWS > 10
    for sampler in (tabled, rejected):
        drawn = sampler.draw(stream, DRAWS)
        seen = np.bincount(drawn, minlength=radii.size)
        seen = np.append(seen[: radii.size][frequent], DRAWS - seen[: radii.size][frequent].sum())
        expected = np.append(chance[frequent], 1 - chance[frequent].sum()) * DRAWS
        assert stats.chisquare(seen, expected).pvalue > ALPHA
        shifted, scaled = np.roll(seen[:-1], 2), expected[:-1] / expected[:-1].sum() * seen[:-1].sum()
        assert stats.chisquare(shifted, scaled).pvalue < ALPHA


@pytest.mark.parametrize("d", [50_000, 10**6])
def test_coordinates_of_a_long_cube_are_uniform_up_to_the_radius(d):
    x = noise.cube(5, d)
    assert x.shape == (d,)
    bins = np.bincount(x * 100 // (int(x.max()) + 1), minlength=100)
    assert stats.chisquare(bins).pvalue > ALPHA
    # The radius is a gamma variable with shape d+1: within ten standard deviations of its mean.
    assert abs(x.max() / (5 * d) - 1) < 10 / np.sqrt(d)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 1000, 3 * 2**30, 2**32, 2**32 + 1, 3 * 2**61, 2**63])
def test_uniform_integers_are_uniform(n):
    sample = noise.uniform_below(n, DRAWS)
    assert sample.min() >= 0
    assert sample.max() < n
    bins = min(n, 60)
    # Exact bin of an integer that may be close to 2^63.
    seen = np.bincount([int(v) * bins // n for v in sample[:60_000]], minlength=bins)
    expected = np.array([-(-n * (i + 1) // bins) - -(-n * i // bins) for i in range(bins)]) / n * 60_000
    assert bins == 1 or stats.chisquare(seen, expected).pvalue > ALPHA
    if n <= 1000:
        assert stats.chisquare(np.bincount(sample, minlength=n)).pvalue > ALPHA or n == 1


@pytest.mark.parametrize("p", [F(1, 3), F(1, 2), F(1, 1000), F(999, 1000)])
def test_coins_fall_as_often_as_they_should(p):
    heads = int(noise.bernoulli(p, DRAWS).sum())
    assert stats.binomtest(heads, DRAWS, float(p)).pvalue > ALPHA
    assert stats.binomtest(heads, DRAWS, float(p * F(9, 10)) + 0.001).pvalue < ALPHA


def test_all_orders_are_equally_likely():
    seen = {}
    for _ in range(12_000):
        order = tuple(noise.permutation(4).tolist())
        seen[order] = seen.get(order, 0) + 1
    assert len(seen) == 24
    assert stats.chisquare(list(seen.values())).pvalue > ALPHA


def test_opendp_draws_the_same_law():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=20_000), dp.l1_distance(T="i64")
    theirs = np.array(dp.m.make_laplace(*space, scale=3.0)([0] * 20_000))
    ours = noise.discrete_laplace(3, 20_000)
    table = [np.bincount(np.clip(z, -12, 12) + 12, minlength=25) for z in (theirs, ours)]
    assert stats.chi2_contingency(np.array(table)).pvalue > ALPHA

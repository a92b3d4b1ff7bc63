"""Noise with a scale for each group of entries: its numbers, its losses, and that draws fit each group's law."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from tacit import noise
from tacit.errors import PlanError
from tacit.noise.two_scale import GroupedNoise, TwoScale

ALPHA = 1e-6
KEY = b"tacit grouped noise tests, key 1"
LAW = GroupedNoise((2, 3, 1), (Fraction(3, 2), Fraction(5), Fraction(0)))


def test_the_loss_is_the_worst_likelihood_ratio_of_outputs():
    law = GroupedNoise((1, 1), (Fraction(3, 2), Fraction(4)))
    for step in product(range(-2, 3), repeat=2):
        ratios = [
            law.joint_log_pmf(np.array(z)) - law.joint_log_pmf(np.array(z) - step)
            for z in product(range(-3, 4), repeat=2)
        ]
        assert max(ratios) == pytest.approx(float(law.loss(step)), abs=1e-12)


def test_an_exact_entry_must_not_move():
    assert LAW.loss([1, 0, -2, 0, 0, 0]) == Fraction(2, 3) + Fraction(2, 5)
    assert LAW.loss([0, 0, 0, 0, 0, 1]) == math.inf
    assert LAW.loss_of((0, 0, 0)) == 0
    assert LAW.proven_loss([(3, 1), (0, 2)], 1) == math.inf  # whichever group they move: the exact one too
    assert LAW.proven_loss([], 0) == LAW.proven_loss([(0, 0)], 0) == 0
    assert GroupedNoise((2, 3, 0), LAW.scales).proven_loss([(3, 1), (0, 2)], 1) == Fraction(4) / Fraction(3, 2)
    assert GroupedNoise((2,), (Fraction(0),)).proven_loss([(1, 0)], 1) == math.inf


def test_one_number_is_about_an_entry_that_is_picked_at_random():
    k = np.arange(-400, 401)
    assert LAW.pmf(k).sum() == pytest.approx(1)
    assert LAW.mean() == 0
    assert LAW.variance() == pytest.approx(float((LAW.pmf(k) * k**2).sum()))
    np.testing.assert_allclose(np.cumsum(LAW.pmf(k)), LAW.cdf(k), atol=1e-12)
    np.testing.assert_allclose(LAW.cdf(k) + LAW.survival(k), 1)
    for p in (0.01, 0.3, 0.5, 0.9, 0.999):
        assert LAW.cdf(LAW.quantile(p)) >= p > LAW.cdf(LAW.quantile(p) - 1)


def test_every_group_is_drawn_from_its_own_law():
    with noise.replayed(noise.Keystream(key=KEY)):
        drawn = LAW.draw(40_000)
    assert drawn.shape == (40_000, 6)
    assert not drawn[:, 5].any()
    for entries, scale, fits in (((0, 1), 1.5, True), ((0, 1), 1.7, False), ((2, 4), 5, True), ((2, 4), 5.6, False)):
        law = TwoScale(Fraction(scale), Fraction(scale))
        bins = np.arange(-law.quantile(0.999), law.quantile(0.999) + 1)
        seen = np.clip(drawn[:, list(entries)].reshape(-1), bins[0], bins[-1])
        expected = law.pmf(bins)
        expected[[0, -1]] = law.cdf(bins[0]), law.survival(bins[-2])
        counts = np.bincount(seen - bins[0], minlength=len(bins))
        assert (stats.chisquare(counts, expected / expected.sum() * len(seen)).pvalue > ALPHA) == fits


def test_draws_have_the_shape_of_the_entries():
    assert LAW.draw().shape == (6,)
    assert LAW.draw_for((2, 3, 6)).shape == (2, 3, 6)
    with pytest.raises(PlanError):
        LAW.draw_for((5,))


def test_it_is_plain_data():
    said = LAW.document()
    assert json.loads(json.dumps(said)) == said
    assert [group["scale"] for group in said["groups"]] == ["3/2", "5", "0"]
    assert LAW.is_even
    assert LAW.on_sides(falls=True, rises=False) is LAW


@pytest.mark.parametrize(
    ("sizes", "scales"), [((), ()), ((1,), (1, 2)), ((-1, 2), (1, 1)), ((0,), (1,)), ((2,), (-1,))]
)
def test_groups_without_a_scale_are_refused(sizes, scales):
    with pytest.raises(PlanError):
        GroupedNoise(sizes, tuple(map(Fraction, scales)))

"""Bounds from the variance alone: they hold for every symmetric log-concave law, and no smaller ones would."""

import numpy as np
import pytest

from tacit.errors import PlanError
from tacit.noise.variance_bounds import largest_quantile, run_bound

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)


def laws(rng, reach):
    """Even log-concave laws on -reach..reach: logarithms that fall by more and more."""
    k = np.arange(reach + 1)
    for _ in range(150):
        slopes = np.sort(rng.exponential(rng.choice([0.01, 0.1, 1.0]), reach) * rng.choice([0, 1], reach, p=[0.6, 0.4]))
        half = np.exp(-np.concatenate([[0], np.cumsum(slopes)]))
        yield half * (k <= rng.integers(1, reach + 1))
    for rate in (0.01, 0.03, 0.1, 0.5, 3.0):
        for flat in (0, 1, 5, 30):
            for last in (flat, flat + 1, flat + 10, reach):
                yield np.exp(-rate * np.maximum(k - flat, 0)) * (k <= last)


def test_bounds_hold_for_every_law():
    rng = np.random.default_rng(1)
    for half in laws(rng, 120):
        both = np.concatenate([half[:0:-1], half])
        both /= both.sum()
        k = np.arange(-120, 121)
        variance = float((both * k**2).sum())
        for level in LEVELS:
            bound = run_bound(level, variance)
            assert both[np.abs(k) <= bound].sum() >= level - 1e-12


@pytest.mark.parametrize("level", LEVELS)
def test_no_smaller_bound_would_do(level):
    """Some law on a fine lattice comes near to the bound."""
    k, best = np.arange(0, 40_001) / 1000.0, 0.0
    for flat in (0.0, 1.0, 3.0, 10.0):
        for last in (flat + 0.01, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 40.0):
            half = np.exp(-np.maximum(k - flat, 0)) * (k <= last)
            if half.sum():
                half /= half.sum()
                at = k[np.searchsorted(np.cumsum(half), level)]
                best = max(best, at / np.sqrt((half * k**2).sum()))
    assert 0.97 * largest_quantile(level) < best <= 1.001 * largest_quantile(level)


def test_known_quantiles():
    assert largest_quantile(0.5) == pytest.approx(0.5 * np.sqrt(3), rel=1e-5)  # uniform
    assert largest_quantile(0.9999) == pytest.approx(-np.log(0.0001) / np.sqrt(2), rel=1e-5)  # two-sided exponential


def test_no_noise_has_no_bound_and_levels_are_checked():
    assert run_bound(0.95, 0.0) == 0
    for level in (0, 1, float("nan")):
        with pytest.raises(PlanError, match="level"):
            run_bound(level, 1.0)

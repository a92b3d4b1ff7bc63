"""Bounds on weighted sums of discrete Laplace draws, against their exact law by convolution."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tacit.noise.two_scale import TwoScale
from tacit.noise.variance_bounds import half_width
from tacit.plan.measure.line_strategies import bound_of_noise

LEVELS = (0.5, 0.8, 0.95, 0.99, 0.9999)


def weighted_law(laws, weights, lattice):
    """Return the values and probabilities of a sum with weights that are multiples of 1 / lattice."""
    total = np.ones(1)
    for law, weight in zip(laws, weights, strict=True):
        values = np.arange(law.quantile(1e-13), law.quantile(1 - 1e-13) + 1)
        one = np.zeros((len(values) - 1) * abs(weight) + 1)
        one[:: abs(weight)] = law.pmf(values)
        total = np.convolve(total, one)
    return (np.arange(len(total)) - len(total) // 2) / lattice, total


@pytest.mark.parametrize("scale", ["1/8", "1/2", 1, 3])
@pytest.mark.parametrize("weights", [(4,), (4, -4), (1, 1, 1, 1), (3, -1, -1, -1), (4, 2, 1, -2, -1)])
def test_bounds_of_sums_hold_and_are_not_wasteful(scale, weights):
    scales = [Fraction(scale) * (1 + place % 2) for place in range(len(weights))]
    laws = [TwoScale(one, one) for one in scales]
    values, mass = weighted_law(laws, weights, 4)
    variance = float((values**2 * mass).sum())
    for level in LEVELS:
        (bound,) = half_width(level, np.array([variance]), laws)
        assert mass[np.abs(values) <= bound + 1e-9].sum() >= level - 1e-10
        if scales[0] >= 1 and 0.6 < level < 0.999:  # twice the smallest interval that would do
            reached = np.cumsum(mass[np.argsort(np.abs(values), kind="stable")])
            needed = np.sort(np.abs(values))[int(np.searchsorted(reached, level))]
            assert bound <= 2 * needed + 1.5


def test_no_noise_has_no_bounds_and_more_variance_wider_ones():
    for bound in (lambda level, v: half_width(level, v, [TwoScale(Fraction(1), Fraction(1))]), bound_of_noise):
        found = bound(0.95, np.array([0.0, 1.0, 4.0, 400.0]))
        assert found[0] == 0
        assert (np.diff(found) > 0).all()
        assert (bound(0.99, np.array([4.0])) > bound(0.9, np.array([4.0]))).all()

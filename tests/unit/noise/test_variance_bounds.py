"""Bounds from the variance alone: they hold, for every symmetric log-concave law and for sums, and are not far off."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tacit import noise
from tacit.errors import PlanError
from tacit.noise.sum_bounds import error_bounds
from tacit.noise.two_scale import TwoScale
from tacit.noise.variance_bounds import half_width, largest_quantile, run_bound
from tacit.plan.measure.line_strategies import bound_of_noise

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


# sums of two-sided geometric noise


def weighted_law(laws, weights, lattice):
    """Return the values and probabilities of a sum with weights that are multiples of 1 / lattice."""
    total = np.ones(1)
    for law, weight in zip(laws, weights, strict=True):
        values = np.arange(law.quantile(1e-13), law.quantile(1 - 1e-13) + 1)
        one = np.zeros((len(values) - 1) * abs(weight) + 1)
        one[:: abs(weight)] = law.pmf(values)
        total = np.convolve(total, one)
    return (np.arange(len(total)) - len(total) // 2) / lattice, total


WEIGHTS = ((4,), (4, -4), (1, 1, 1, 1), (3, -1, -1, -1), (4, 2, 1, -2, -1))


@pytest.mark.parametrize(
    ("scale", "weights"), [*product(("1/8", "1/2", 1, 3), WEIGHTS), *product(("1/4", 5, 60), WEIGHTS[:1])]
)
def test_bounds_of_sums_hold_and_are_not_wasteful(scale, weights):
    scales = [Fraction(scale) * (1 + place % 2) for place in range(len(weights))]
    laws = [TwoScale(one, one) for one in scales]
    values, mass = weighted_law(laws, weights, 4)
    variance = float((values**2 * mass).sum())
    for level in (*LEVELS, 0.9999):
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


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize(("scales", "weights"), [((5, 60), (1.0, 0.25)), ((1, 5), (0.3, 0.7)), ((60, 60), (1.0, -0.5))])
def test_sums_of_two_laws_are_inside_and_the_bound_is_not_far_from_the_truth(scales, weights, level):
    laws = [TwoScale(Fraction(scale), Fraction(scale)) for scale in scales]
    many = (3, 4)
    terms = tuple(zip(laws, weights, many, strict=True))
    variance = sum(count * weight**2 * law.variance() for law, weight, count in terms)
    far = float(half_width(level, np.array([variance]), laws)[0])
    _, high = error_bounds(terms, level)
    assert high <= far * 1.02  # the truth, up to the lattice of `error_bounds`
    assert far <= (1.5 if level > 0.9 else 2.5) * high * (1 if scales[0] > 1 else 2)


def test_drawn_sums_are_inside_as_often_as_promised():
    laws = [TwoScale(Fraction(3), Fraction(3)), TwoScale(Fraction(40), Fraction(40))]
    weights = [np.array([0.9, -0.2, 0.4]), np.array([0.05, 0.1])]
    variance = sum(float((own**2).sum()) * law.variance() for law, own in zip(laws, weights, strict=True))
    with noise.replayed(noise.Keystream(key=b"sums of two-sided geometric drws")):
        drawn = sum(law.draw_for((40_000, len(own))) @ own for law, own in zip(laws, weights, strict=True))
    for level in (0.5, 0.95):
        inside = np.abs(drawn) <= half_width(level, np.array([variance]), laws)[0]
        assert level <= inside.mean()  # 40,000 draws: far above by more than any chance
        assert inside.mean() <= level + (1 - level) * 0.95
    assert float(drawn.var()) == pytest.approx(variance, rel=0.05)


def test_noise_that_is_nearly_always_zero_is_bounded_by_its_variance():
    law = TwoScale(Fraction(1, 100), Fraction(1, 100))
    assert half_width(0.95, np.array([4.0]), [law])[0] == pytest.approx(2 / np.sqrt(0.05))

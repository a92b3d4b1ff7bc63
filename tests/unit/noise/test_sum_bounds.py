"""Bounds on weighted sums of two-sided geometric noise hold, and are not far from the truth."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tacit import noise
from tacit.noise.sum_bounds import error_bounds
from tacit.noise.two_scale import TwoScale
from tacit.noise.variance_bounds import half_width

SCALES = [Fraction(1, 4), Fraction(1), Fraction(5), Fraction(60)]


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.999])
@pytest.mark.parametrize("scale", SCALES)
def test_a_single_noise_is_inside(scale: Fraction, level: float) -> None:
    law = TwoScale(scale, scale)
    far = float(half_width(level, np.array([law.variance()]), [law])[0])
    assert float(law.cdf(int(np.floor(far))) - law.cdf(-int(np.floor(far)) - 1)) >= level


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize(("scales", "weights"), [((5, 60), (1.0, 0.25)), ((1, 5), (0.3, 0.7)), ((60, 60), (1.0, -0.5))])
def test_sums_of_two_laws_are_inside_and_the_bound_is_not_far_from_the_truth(scales, weights, level) -> None:
    laws = [TwoScale(Fraction(scale), Fraction(scale)) for scale in scales]
    many = (3, 4)
    terms = tuple(zip(laws, weights, many, strict=True))
    variance = sum(count * weight**2 * law.variance() for law, weight, count in terms)
    far = float(half_width(level, np.array([variance]), laws)[0])
    _, high = error_bounds(terms, level)
    assert high <= far * 1.02  # the truth, up to the lattice of `combined`
    assert far <= (1.5 if level > 0.9 else 2.5) * high * (1 if scales[0] > 1 else 2)


def test_drawn_sums_are_inside_as_often_as_promised() -> None:
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


def test_noise_that_is_nearly_always_zero_is_bounded_by_its_variance() -> None:
    law = TwoScale(Fraction(1, 100), Fraction(1, 100))
    assert half_width(0.95, np.array([4.0]), [law])[0] == pytest.approx(2 / np.sqrt(0.05))

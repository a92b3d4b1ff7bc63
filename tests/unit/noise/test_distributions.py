"""Moments, probabilities and quantiles of integer noise against brute summation."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, exp, expm1, inf, log, nan

import numpy as np
import pytest

from tacit.amounts import as_fraction
from tacit.errors import PlanError
from tacit.noise import cube_radius
from tacit.noise.cube import Cube
from tacit.noise.draws import as_scale
from tacit.noise.two_scale import TwoScale

F = Fraction
TWO_SCALES = [
    TwoScale(F(a), F(b))
    for a, b in [("1/100", 0), (1, 0), (0, 7), (0, 0), (3, 3), ("1/3", "1/3"), (10, 2), ("1/2", 40), (40, "1/100")]
]
CUBES = [
    Cube(F(s), d, sides)
    for s, d in [("1/100", 1), ("1/100", 700), ("1/3", 2), (1, 1), (2, 3), (7, 20), (1, 500), (30, 4)]
    for sides in ("right", "left", "both")
]
SMALL = TWO_SCALES + CUBES
LARGE = [TwoScale(F(10) ** 12, F(10) ** 12), TwoScale(F(10) ** 12, F(0)), TwoScale(F(5), F(10) ** 12)] + [
    Cube(F(s), d, sides)
    for s, d in [(10**12, 1), (10**12, 3), (10**12, 10**6), (1000, 50), (1000, 10**6), ("1/100", 10**6), (5000, 2)]
    for sides in ("right", "left", "both")
]


def support(law):
    if isinstance(law, TwoScale):
        return np.arange(-ceil(745 * law.left) - 1, ceil(745 * law.right) + 2)
    reach = law.radius().highest() + 1
    return np.arange(-reach if law.sides != "right" else 0, reach + 1 if law.sides != "left" else 1)


@pytest.mark.parametrize("law", SMALL, ids=repr)
def test_probabilities_sum_to_one_and_moments_are_the_sums(law):
    k = support(law)
    p = law.pmf(k)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    mean = np.sum(k * p)
    assert law.mean() == pytest.approx(mean, rel=1e-10, abs=1e-11)
    assert law.variance() == pytest.approx(np.sum((k - law.mean()) ** 2 * p), rel=1e-10)
    # Each tail is summed from its own far end, so that both keep their relative accuracy.
    below, above = np.cumsum(p), np.append(np.cumsum(p[::-1])[::-1][1:], 0)
    np.testing.assert_allclose(law.cdf(k), below, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(law.survival(k), above, rtol=1e-10, atol=1e-300)


@pytest.mark.one_in(16)
@pytest.mark.parametrize("law", SMALL + LARGE, ids=repr)
@pytest.mark.parametrize("p", [1e-12, 0.025, 0.5, 0.9, 0.95, 1 - 1e-9])
def test_a_quantile_is_the_first_value_to_reach_its_probability(law, p):
    k = law.quantile(p)
    assert law.cdf(k) >= p
    assert law.cdf(k - 1) <= p
    if law.pmf(k) > 1e-12:  # otherwise neighbouring values differ by less than a float shows
        assert law.cdf(k - 1) < p + 1e-15


@pytest.mark.one_in(16)
@pytest.mark.parametrize("law", SMALL + LARGE, ids=repr)
def test_cdf_and_survival_complete_each_other_and_never_fall(law):
    # Every twentieth of the way through the law, doubled steps into both tails: increasing, complementary, in [0, 1].
    points = sorted(
        {law.quantile(p) for p in np.linspace(0.01, 0.99, 20)} | {law.quantile(p) for p in (1e-9, 1 - 1e-9)}
    )
    below, above = law.cdf(points), law.survival(points)
    np.testing.assert_allclose(below + above, 1, rtol=1e-15)
    assert np.all(np.diff(below) >= 0)
    assert np.all(law.pmf(points) >= 0)


def test_a_cube_of_one_dimension_is_the_geometric_and_the_discrete_laplace():
    for scale in (F(1, 100), F(1, 2), F(3), F(377), F(5000), F(10) ** 12):
        k = np.unique(np.geomspace(1, 600 * float(scale) + 2, 60).astype(np.int64)) - 1
        for cube, line in [
            (Cube(scale, 1, "right"), TwoScale(scale, F(0))),
            (Cube(scale, 1, "left"), TwoScale(F(0), scale)),
            (Cube(scale, 1, "both"), TwoScale(scale, scale)),
        ]:
            for method in ("pmf", "cdf", "survival"):
                for points in (k, -k):
                    got, want = getattr(cube, method)(points), getattr(line, method)(points)
                    np.testing.assert_allclose(got, want, rtol=2e-10, atol=1e-250)
            for method in ("mean", "variance"):
                assert getattr(cube, method)() == pytest.approx(getattr(line, method)(), rel=1e-10, abs=1e-50)


def test_one_sided_geometric_has_its_textbook_moments_at_extreme_scales():
    tiny, huge = TwoScale(F(1, 100), F(0)), TwoScale(F(10) ** 12, F(0))
    assert tiny.mean() == pytest.approx(exp(-100), rel=1e-12)
    assert tiny.variance() == pytest.approx(exp(-100), rel=1e-12)
    assert huge.mean() == pytest.approx(1e12 - 0.5, rel=1e-14)
    assert huge.variance() == pytest.approx(1e24, rel=1e-12)
    assert huge.pmf(0) == pytest.approx(-expm1(-1e-12), rel=1e-14)
    assert huge.survival(500 * 10**12) == pytest.approx(exp(-500), rel=1e-11)
    assert huge.quantile(0.95) == pytest.approx(1e12 * log(20), rel=1e-12)


def test_cube_variance_follows_the_large_scale_formulas():
    d, scale = 400, 1e6
    one, both = Cube(F(10**6), d, "right"), Cube(F(10**6), d, "both")
    # radius ~ Gamma(d+1): E r^2 = (d+1)(d+2) scale^2 and Var r = (d+1) scale^2
    assert one.variance() == pytest.approx(((d + 1) * (d + 2) / 12 + (d + 1) / 4) * scale**2, rel=1e-6)
    assert both.variance() == pytest.approx((d + 1) * (d + 2) / 3 * scale**2, rel=1e-6)
    assert one.mean() == pytest.approx((d + 1) * scale / 2, rel=1e-5)


@pytest.mark.parametrize(("scale", "d"), [(F(400), 1), (F(400), 3), (F(350), 40), (F(20), 100_000), (F(7), 10**6)])
@pytest.mark.parametrize("both_signs", [False, True])
def test_integrals_and_sums_over_the_radius_agree(scale, d, both_signs):
    shift, mode = 0.5 if both_signs else 1.0, int(d * scale)
    lowest = cube_radius._edge(scale, d, shift, mode, upward=False)
    highest = cube_radius._edge(scale, d, shift, mode, upward=True)
    summed = cube_radius.SummedRadius(scale, d, shift, lowest, highest)
    smooth = cube_radius.SmoothRadius(scale, d, shift, highest)
    k = np.unique(np.concatenate([[0, 1, 5, 100], np.linspace(lowest, highest, 40).astype(int)]))
    tolerance = {"rtol": 1e-10 if d <= 1000 else 1e-8, "atol": 1e-200}
    np.testing.assert_allclose(smooth.mass(k), summed.mass(k), **tolerance)
    np.testing.assert_allclose(smooth.excess(k), summed.excess(k), **tolerance)
    np.testing.assert_allclose(smooth.within(k), summed.within(k), **tolerance)
    for power in (-1, 0, 1, 2):
        np.testing.assert_allclose(smooth.tail(power, k), summed.tail(power, k), **tolerance)
    np.testing.assert_allclose(smooth.moments(), summed.moments(), rtol=1e-11)


@pytest.mark.parametrize("sides", ["right", "both"])
@pytest.mark.parametrize(("scale", "d"), [(F(1, 100), 3), (F(5, 2), 6), (F(1, 2), 300)])
def test_a_cube_agrees_with_fifty_digits(scale, d, sides):
    step = 2 if sides == "both" else 1
    with localcontext() as context:
        context.prec = 50
        q = (-Decimal(scale.denominator) / scale.numerator).exp()
        weights = [Decimal(step * m + 1) ** d * q**m for m in range(1200)]
        total = sum(weights)
        radii = [float(w / total) for w in weights[:40]]
        marginal = [float(sum(w / (step * m + 1) for m, w in enumerate(weights) if m >= k) / total) for k in range(40)]
    law = Cube(scale, d, sides)
    np.testing.assert_allclose(law.radius_pmf(np.arange(40)), radii, rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(law.pmf(np.arange(40)), marginal, rtol=1e-11, atol=1e-300)
    assert law.radius_pmf(-1) == 0


def test_the_joint_law_in_two_dimensions_has_the_stated_marginal():
    law = Cube(F(2), 2, "both")
    x = np.arange(-120, 121)
    weight = np.exp(law.log_weight(np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1)))
    np.testing.assert_allclose(weight.sum(axis=1) / weight.sum(), law.pmf(x), rtol=1e-9, atol=1e-20)


@pytest.mark.parametrize(
    ("given", "scale"),
    [
        (0.2, F(1, 5)),
        (3, F(3)),
        ("1/3", F(1, 3)),
        ("0.2", F(1, 5)),
        ("1e3", F(1000)),
        (Decimal("2.50"), F(5, 2)),
        (F(7, 3), F(7, 3)),
        (np.float64(0.1), F(1, 10)),
        (np.float32(0.1), F(1, 10)),
        (np.int64(4), F(4)),
        (1e12, F(10**12)),
        (0.01, F(1, 100)),
    ],
)
def test_a_scale_is_the_number_that_was_written(given, scale):
    assert as_scale(given) == scale


@pytest.mark.parametrize(
    "given",
    [
        0,
        -1,
        0.0,
        "0",
        0.009,
        1.1e12,
        "1e13",
        inf,
        nan,
        "inf",
        "nan",
        "x",
        "",
        "1/0",
        "1/2/3",
        "1e999999999",
        None,
        True,
        [2],
    ],
)
def test_a_scale_that_means_nothing_is_refused(given):
    with pytest.raises(PlanError, match=r"^scale must"):
        as_scale(given)


def test_zero_is_a_scale_only_where_a_side_may_be_empty():
    assert as_scale(0, zero=True) == 0
    with pytest.raises(PlanError, match="right must be zero or positive; got"):
        TwoScale(F(-1), F(0))
    with pytest.raises(PlanError, match="scale must be positive"):
        Cube(F(0), 2, "right")
    assert as_fraction("0/5", key="p") == 0


@pytest.mark.parametrize("d", [0, -1, 10**6 + 1, 2.0, True, "3"])
def test_dimensions_must_be_countable(d):
    with pytest.raises(PlanError, match="dimensions must be a whole number from 1 to 1000000"):
        Cube(F(1), d, "right")


def test_other_refusals():
    with pytest.raises(PlanError, match='sides must be "right", "left" or "both"'):
        Cube(F(1), 2, "up")
    with pytest.raises(PlanError, match="p must lie strictly between 0 and 1"):
        TwoScale(F(1), F(1)).quantile(1)
    with pytest.raises(PlanError, match="step must have 2 numbers"):
        Cube(F(1), 2, "both").loss([1])
    with pytest.raises(TypeError, match="integer values"):
        TwoScale(F(1), F(1)).pmf(0.5)


def test_laws_are_values():
    assert TwoScale(F(2), F(1)) == TwoScale(F("2"), F(1))
    assert len({Cube(F(2), 3, "both"), Cube(F(2), 3, "both"), Cube(F(2), 3, "left")}) == 2
    assert eval(repr(Cube(F(2, 3), 3, "left"))) == Cube(F(2, 3), 3, "left")  # noqa: S307 - our own text

"""The ratio of two noisy counts: the closed form against the printed one in 60 digits, and against quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import integrate

import tacit as tc

NEAR = np.array([0, 1e-16, -1e-16, 1e-12, -1e-12, 1e-9, -1e-9, 1e-5, -1e-3, 0.01, -0.02])


def decay(x: Decimal) -> Decimal:
    return x.exp() if x > -2000 else Decimal(0)


def printed_cdf(z: Any, theta: Any, phi: Any, scale: Any) -> Decimal:
    """Lemma 2 of document 004 as it is printed, with its limits at 0, 1 and -1; in 60 digits its gaps do no harm."""
    z, t, f = Decimal(z), Decimal(theta) / Decimal(scale), Decimal(phi) / Decimal(scale)
    if z == 0:
        return decay(-t) * (1 - decay(-f) / 2) / 2 + decay(-f) * (1 - decay(-t) / 2) / 2
    if z == -1:
        return decay(-f) / 2 + decay(-t - f) * ((f - t) / 4 - Decimal(1) / 4)
    if z == 1:
        gap = abs(t - f)
        tail = (2 + gap) * decay(-gap) / 4
        return (1 - tail if t <= f else tail) + decay(-f) / 2 - decay(-t - f) / 4
    shared = decay(-f) / 2 - decay(-t - f) / (2 * (z + 1))
    square = z * z
    if z < 0:
        return shared + square / (2 * (1 - square)) * decay((t - z * f) / z) - decay(z * f - t) / (2 * (square - 1))
    if z * f <= t:
        return shared + square / (2 * (square - 1)) * decay((z * f - t) / z) - decay(z * f - t) / (2 * (square - 1))
    return shared + 1 + square / (2 * (1 - square)) * decay((t - z * f) / z) - decay(t - z * f) / (2 * (1 - square))


def parameters(size: int) -> tuple[np.ndarray, ...]:
    """Return random counts, scales, ratios and shares; most ratios are next to a gap of the printed form."""
    rng = np.random.default_rng(20_004)
    phi = 10 ** rng.uniform(-1, 6, size)
    theta = phi * rng.uniform(0, 1, size) ** rng.choice([0.3, 1, 3], size)
    theta[: size // 20] = phi[: size // 20]
    z = np.where(rng.random(size) < 0.6, rng.choice([0, 1, -1], size) + rng.choice(NEAR, size), rng.normal(size=size))
    z[rng.random(size) < 0.02] *= 1e6
    tau = rng.uniform(0.01, 0.99, size)
    # confidences for which an end of the interval is one, or nearly
    end = slice(size // 20, size // 5)
    theta[end] = phi[end] / (1 + tau[end]) * (1 + rng.choice(NEAR, size // 5 - size // 20))
    return z, theta, phi, 10 ** rng.uniform(-1, 3, size), tau


def check_closed_form(size: int) -> None:
    z, theta, phi, scale, tau = parameters(size)
    with localcontext() as context:
        context.prec = 60
        rows = list(zip(*(one.tolist() for one in (z, theta, phi, scale)), strict=True))
        wanted = np.array([float(printed_cdf(*row)) for row in rows])
        close = []
        for (_, t, f, b), share in zip(rows, tau.tolist(), strict=True):
            high, low = ((1 + sign * Decimal(share)) * Decimal(t) / Decimal(f) for sign in (1, -1))
            close.append(float(printed_cdf(high, t, f, b) - printed_cdf(low, t, f, b)))
    assert np.abs(tc.audit.ratio_cdf(z, theta, phi, scale) - wanted).max() < 1e-12
    assert np.abs(tc.audit.closeness(theta, phi, scale, tau) - close).max() < 1e-12


def test_the_closed_form_has_twelve_digits() -> None:
    check_closed_form(1_200)


@pytest.mark.slow
def test_the_closed_form_has_twelve_digits_for_many_parameters() -> None:
    check_closed_form(100_000)


Distribution = tuple[Callable[[float], float], Callable[[float], float]]  # of noise: its cdf and its density
LAPLACE: Distribution = (
    lambda x: 0.5 * math.exp(x) if x < 0 else 1 - 0.5 * math.exp(-x),
    lambda x: 0.5 * math.exp(-abs(x)),
)
GAUSSIAN: Distribution = (
    lambda x: 0.5 * math.erfc(-x / math.sqrt(2)),
    lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi),
)


def integrated(z: float, theta: float, phi: float, scale: float, noise: Distribution) -> float:
    """Return P(Y/X <= z) by quadrature over the denominator, between its kinks."""
    cdf, density = noise

    def slice_of(x: float) -> float:
        below = cdf((z * x - theta) / scale)
        return density((x - phi) / scale) / scale * (below if x > 0 else 1 - below)

    kinks = sorted({0.0, float(phi), *([theta / z] if z else [])})
    ends = [min(kinks) - 40 * scale, *kinks, max(kinks) + 40 * scale]
    return sum(integrate.quad(slice_of, a, b, epsabs=1e-14, epsrel=1e-13, limit=400)[0] for a, b in pairwise(ends))


@pytest.mark.parametrize("z", [-2.0, -1.0, 0.0, 0.4, 1.0, 1.0 + 1e-12, 3.0])
def test_the_closed_form_is_what_quadrature_finds(z: float) -> None:
    for theta, phi, scale in ((5, 10, 4), (80, 100, 20), (3, 0, 2), (0, 4, 3)):
        wanted = integrated(z, theta, phi, scale, LAPLACE)
        assert tc.audit.ratio_cdf(z, theta, phi, scale) == pytest.approx(wanted, abs=1e-12)


def test_gaussian_noise_is_what_quadrature_finds() -> None:
    for theta, phi, scale, tau in (5, 10, 4, 0.2), (80, 100, 20, 0.1), (10, 12, 50, 0.2), (7, 7, 1, 0.5):
        ends = [integrated((1 + sign * tau) * theta / phi, theta, phi, scale, GAUSSIAN) for sign in (1, -1)]
        found = tc.audit.closeness(theta, phi, scale, tau, noise="gaussian")
        assert found == pytest.approx(ends[0] - ends[1], abs=1e-12)


def test_golden_values() -> None:
    """Document 004: the rule of thumb b/phi = 1/20, and Figure 3.1 at Delta = 25, theta/phi = .7, phi = 1000."""
    found = tc.audit.closeness(np.array([0.5, 0.7, 0.9]) * 1000, 1000, 50, 0.2)
    assert np.round(found, 3).tolist() == [0.824, 0.897, 0.932]
    found = tc.audit.closeness(700, 1000, 25 / np.array([2, 1, 0.5, 0.1, 0.01]), 0.2)
    assert np.round(found, 3).tolist() == [1.000, 0.993, 0.897, 0.313, 0.058]


def test_the_ends_of_the_line() -> None:
    assert tc.audit.ratio_cdf([np.inf, -np.inf], 5, 10, 1).tolist() == [1.0, 0.0]
    # two counts of nobody: the ratio of two Laplace variables around zero, P(Z <= 1) = 3/4
    assert tc.audit.ratio_cdf([0, 1, -1], 0, 0, 7).tolist() == [0.5, 0.75, 0.25]


def test_shapes_are_broadcast() -> None:
    table = tc.audit.closeness(np.arange(1, 4)[:, None], np.arange(3, 8)[None, :], 2.0, 0.2)
    assert table.shape == (3, 5)
    assert table[1, 2] == tc.audit.closeness(2, 5, 2.0, 0.2)
    assert tc.audit.closeness(np.zeros((0, 3)), 1, 1, 0.2).shape == (0, 3)


def test_groups_without_the_value_or_without_people_have_a_defined_result() -> None:
    for noise in ("laplace", "gaussian", "two-sided", "one-sided"):
        assert np.asarray(tc.audit.closeness([0, 0], [10, 0], 3, 0.2, noise=noise)).tolist() == [0.0, 0.0]
    assert tc.audit.closeness(1, 1, 1e-300, 0.2) == 1.0
    assert 0 < tc.audit.closeness(1, 1, 1e300, 0.2) < 0.1


def test_a_wide_interval_reaches_below_zero() -> None:
    wanted = tc.audit.ratio_cdf(1.25, 5, 10, 4) - tc.audit.ratio_cdf(-0.25, 5, 10, 4)
    assert tc.audit.closeness(5, 10, 4, 1.5) == pytest.approx(wanted, abs=1e-15)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"theta": -1}, "theta must be counts"),
        ({"phi": np.nan}, "phi must be counts"),
        ({"scale": 0}, "scale must be a finite number above 0"),
        ({"tau": 0}, "tau must be a finite number above 0"),
        ({"theta": [1, 2], "phi": [1, 2, 3]}, "must have shapes that fit each other"),
        ({"theta": "many"}, "theta must be a number"),
        ({"noise": "laplase"}, "Did you mean 'laplace'"),
        ({"noise": "two-sided", "tau": 1}, "tau must lie between 0 and 1"),
        ({"noise": "one-sided", "theta": 1.5}, "theta must be counts: whole numbers"),
        ({"noise": "two-sided", "scale": -1}, "scale must be a finite number above 0"),
    ],
)
def test_bad_arguments_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(tc.PlanError, match=words):
        tc.audit.closeness(**{"theta": 1, "phi": 2, "scale": 3.0, "tau": 0.2, **given})

"""Masked counts: the criterion by enumeration of small counts, the limit of large ones, and what they add up to."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

import tacit as tc
from tacit.publish.criterion import Channel, Criterion
from tacit.publish.masked import PARTS, WIDEST, Masked, best_multiple, kappa_for, largest_delta

HALF, THIRD = Fraction(1, 2), Fraction(3, 10)
ASKED = Criterion(THIRD, THIRD)
MULTIPLES = np.linspace(0.7, 1.15, 46)


def mask_law(variance: float, reach: int) -> np.ndarray:
    """Return the law of a mask in parts of a record, from -reach to reach: written anew, term by term."""
    fine = min(variance, 4.0)
    parts, whole = int(np.ceil(2 * PARTS**2 * fine)), int(np.ceil(2 * (variance - fine)))
    coarse, fine_law = np.zeros(2 * PARTS * whole + 1), binom.pmf(np.arange(2 * parts + 1), 2 * parts, 0.5)
    coarse[::PARTS] = binom.pmf(np.arange(2 * whole + 1), 2 * whole, 0.5)
    both, law = np.convolve(coarse, fine_law), np.zeros(2 * reach + 1)
    first = reach - PARTS * whole - parts
    cut = max(-first, 0)  # far out there is nothing
    law[first + cut : first + both.size - cut] = both[cut : both.size - cut]
    return law


def chances_of_an_error(method: Masked, count: int, size: int, kappa: float | None = None) -> np.ndarray:
    """Return how likely each multiple of the published count of one of two values is wrong, by the exact law."""
    kappa = method.kappa if kappa is None else kappa
    noise = np.arange(-12, 13)
    reach = PARTS * (4 * size + 40)
    law = np.zeros(2 * reach + 1)
    for moved, weight in zip(noise, method.noise.pmf(noise), strict=True):
        private = count + moved
        shifted = np.roll(mask_law((kappa * max(private, size - private, 1)) ** 2, reach), PARTS * private)
        law += weight * shifted
    shown = np.arange(-reach, reach + 1) / PARTS
    return np.array([law[abs(a * shown - count) > 0.3 * count + 1e-12].sum() for a in MULTIPLES])


def test_the_deviation_is_the_least_that_hides_every_multiple() -> None:
    kappa = kappa_for(THIRD, THIRD)
    assert kappa == 0.3021

    def within(a: np.ndarray | float, at: float) -> np.ndarray:
        return np.asarray(norm.cdf((1.3 / a - 1) / at) - norm.cdf((0.7 / a - 1) / at))

    multiples = np.linspace(0.5, 1.5, 5001)
    assert 0.699 < within(multiples, kappa).max() <= 0.7
    assert within(multiples, 0.2895).max() > 0.715  # enough for the count itself, not for 0.926 of it
    assert within(1, 0.2895) == pytest.approx(0.7, abs=1e-3)


@pytest.mark.parametrize(("kappa", "lam"), [(0.3, 0.3), (10.0, 0.9), (0.02, 0.05), (2.0, 0.5)])
def test_the_best_multiple_is_found_however_small_it_is(kappa: float, lam: float) -> None:
    a = np.geomspace(1e-4, 10, 400_001)
    within = norm.cdf(((1 + lam) / a - 1) / kappa) - norm.cdf(((1 - lam) / a - 1) / kappa)
    assert best_multiple(kappa, lam) == pytest.approx(within.max(), abs=1e-7)


@pytest.mark.parametrize(
    ("lam", "delta", "rule"),
    [
        ("1", "0.3", "lam must be below 1"),
        ("1.1", "0.3", "lam must be below 1"),
        ("0.9", "0.6", "delta must be at most"),
    ],
)
def test_what_no_mask_gives_is_refused_before_anybody_pays(lam: str, delta: str, rule: str) -> None:
    domain = tc.Domain({"ward": tc.Categories(["a", "b"]), "ill": tc.Categories(["flu", "none"])})
    rows = {"ward": ["a", "a", "b"], "ill": ["flu", "none", "none"]}
    session = tc.Session(tc.Policy(domain, tc.secrets.attributes("ill")), pd.DataFrame(rows), budget=2)
    asked = {"public": ["ward"], "sensitive": "ill", "retention": HALF, "lam": lam, "delta": delta}
    with pytest.raises(tc.PlanError, match=rule):
        tc.publish.reconstruction_private(session, **asked, method="masked")
    assert session.remaining == 2


def test_the_best_method_is_another_where_no_mask_will_do() -> None:
    rows = pd.DataFrame({"ward": ["a"] * 40, "ill": ["flu", "none"] * 20})
    asked = {"public": ["ward"], "sensitive": "ill", "values": ["flu", "none"], "retention": Fraction(1, 10)}
    assert tc.publish.reconstruction_private(rows, **asked, lam=1, delta=0.3).method.name != "masked"


def test_the_largest_delta_is_one_that_can_be_kept() -> None:
    for lam in (Fraction(1, 100), THIRD, Fraction(9, 10)):
        delta = largest_delta(lam)
        assert kappa_for(lam, delta) <= WIDEST
        assert best_multiple(kappa_for(lam, delta), float(lam)) <= 1 - float(delta)
        assert best_multiple(WIDEST, float(lam)) > 1 - float(delta) - 0.001


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_two_values_hold_by_enumeration(count: int) -> None:
    method = Masked(Channel(HALF, 2), ASKED)
    for size in (count, 2 * count):
        assert chances_of_an_error(method, count, size).min() >= 0.3
    # a mask that is too narrow is found
    assert count < 7 or chances_of_an_error(method, count, count, kappa=0.2).min() < 0.28


def test_small_counts_fall_short_only_where_epsilon_is_large_and_the_words_say_so() -> None:
    """Retention 0.9 has epsilon 2.94 and holds; 0.99 has 5.29, and a count of one falls short."""
    chances = {
        kept: min(
            chances_of_an_error(Masked(Channel(Fraction(kept), 2), ASKED), count, count).min()
            for count in (1, 2, 3, 23)
        )
        for kept in ("0.9", "0.99")
    }
    assert chances["0.9"] >= 0.3
    assert chances["0.99"] == pytest.approx(0.273, abs=1e-3)
    words = " ".join(Masked(Channel(Fraction("0.99"), 2), ASKED).words())
    assert "around a few records the chance may be lower" in words


def test_published_counts_add_up_and_scales_are_enough() -> None:
    method = Masked(Channel(HALF, 5), ASKED)
    counts = np.array([[9, 0, 1, 0, 0], [5, 5, 5, 5, 5], [40, 30, 20, 10, 0], [0, 0, 0, 0, 1], [100, 99, 2, 2, 2]])
    sizes = counts.sum(axis=1)
    drawn = method.draw(np.repeat(counts, 50, axis=0))
    assert (drawn.sum(axis=1) == PARTS * np.repeat(sizes, 50)).all()
    scales, shares = method.scales(counts, sizes)
    total = (scales * (shares < 1)).sum(axis=1, keepdims=True)
    # what is left of a mask after its share of what is over is given back
    left = scales * (1 - shares) ** 2 + shares**2 * (total - scales)
    need = (method.kappa * np.maximum(counts, 1)) ** 2
    assert (left >= need * (1 - 1e-6)).all()
    assert left[0, 0] == pytest.approx((method.kappa * 10) ** 2)  # more than half of a group counts as all of it


@pytest.mark.parametrize("values", [2, 6])
def test_predicted_errors_are_measured(values: int) -> None:
    counts = np.array([[30, 70], [5, 3], [200, 100]]) if values == 2 else np.array([[30, 20, 25, 10, 5, 30], [9] * 6])
    method, sizes = Masked(Channel(HALF, values), ASKED), counts.sum(axis=1)
    with tc.noise.replayed(tc.noise.Keystream(key=b"m" * 32)):
        published = method.draw(np.tile(counts, (1500, 1)))
    drawn = method.estimates(published, np.tile(sizes, 1500)).reshape(1500, *counts.shape)
    assert drawn.var(axis=0) == pytest.approx(method.variances(counts.astype(float), sizes), rel=0.3)
    assert (abs(drawn.mean(axis=0) - counts) < 5 * drawn.std(axis=0) / np.sqrt(1500) + 0.02).all()


def test_the_noise_of_the_counts_keeps_epsilon() -> None:
    two, many = Masked(Channel(HALF, 2), ASKED), Masked(Channel(HALF, 3), ASKED)
    assert two.noise.loss(1) == two.epsilon  # one number, which a record changes by one
    assert many.noise.loss(1) * 2 == many.epsilon  # two numbers


def test_masks_follow_the_exact_criterion_alone() -> None:
    asked = {"public": [], "sensitive": "ill", "values": ["a", "b"], "retention": 0.5, "lam": 0.3, "delta": 0.3}
    with pytest.raises(tc.PlanError, match="criterion must be exact for masked counts"):
        tc.publish.reconstruction_private(None, **asked, criterion="chernoff", method="masked")

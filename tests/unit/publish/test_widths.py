"""How wide masks are: no multiple of a masked count is right too often, by the exact law of the mask, however small."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, norm

from tacit.noise import Keystream, replayed
from tacit.publish.methods.masked import PARTS, WIDEST, best_multiple, extra_for, kappa_for, largest_delta, masks

THIRD = Fraction(3, 10)
PROMISES = [("0.3", "0.3"), ("0.05", "0.05"), ("0.3", "0.01"), ("0.9", "0.2"), ("0.5", "0.5")]


def likeliest(w: int, lam: Fraction, deviation: float) -> float:
    """Return how likely the likeliest interval [l, r l] is around w, by the exact law of coins of one part each."""
    halves = int(np.ceil(2 * (PARTS * deviation) ** 2))
    law = np.concatenate([[0.0], np.cumsum(binom.pmf(np.arange(2 * halves + 1), 2 * halves, 0.5))])
    first = PARTS * w - halves  # the smallest number that can be shown, in parts
    left = np.arange(max(first, 1), PARTS * w + halves + 1)
    # r l in whole parts; numbers up to it are within
    right = np.minimum(
        left * (lam.denominator + lam.numerator) // (lam.denominator - lam.numerator), PARTS * w + halves
    )
    return float((law[right - first + 1] - law[left - first]).max())


@pytest.mark.parametrize(("lam", "delta"), PROMISES)
def test_every_count_is_hidden_by_the_exact_law(lam: str, delta: str) -> None:
    asked = Fraction(lam), Fraction(delta)
    kappa, extra = kappa_for(*asked), extra_for(*asked)
    found = [likeliest(w, asked[0], kappa * w + extra) for w in (1, 2, 3, 4, 5, 7, 10, 15) if kappa * w < 4]
    assert max(found) <= 1 - float(asked[1])
    # without what is added for whole coins and parts it would not hold: or only just
    if asked == (THIRD, THIRD):
        assert found[-1] > 0.7 - 0.02
        assert likeliest(1, THIRD, 0.25) > 0.7


def test_the_deviation_is_the_least_that_hides_every_multiple() -> None:
    kappa = kappa_for(THIRD, THIRD)

    def within(a: np.ndarray | float, at: float) -> np.ndarray:
        return np.asarray(norm.cdf((1.3 / a - 1) / at) - norm.cdf((0.7 / a - 1) / at))

    multiples = np.linspace(0.5, 1.5, 5001)
    # 1 / 512 is left for coins, which are not quite normal
    assert 0.7 - 1 / 512 - 2e-4 < within(multiples, kappa).max() <= 0.7 - 1 / 512
    assert within(multiples, 0.2895).max() > 0.715  # enough for the count itself, not for 0.926 of it
    assert within(1, 0.2895) == pytest.approx(0.7, abs=1e-3)


@pytest.mark.parametrize(("kappa", "lam"), [(0.3, 0.3), (10.0, 0.9), (0.02, 0.05), (2.0, 0.5)])
def test_the_best_multiple_is_found_however_small_it_is(kappa: float, lam: float) -> None:
    a = np.geomspace(1e-4, 10, 400_001)
    within = norm.cdf(((1 + lam) / a - 1) / kappa) - norm.cdf(((1 - lam) / a - 1) / kappa)
    assert best_multiple(kappa, lam) == pytest.approx(within.max(), abs=1e-7)


def test_the_largest_delta_is_one_that_can_be_kept() -> None:
    for lam in (Fraction(1, 100), THIRD, Fraction(9, 10)):
        delta = largest_delta(lam)
        assert kappa_for(lam, delta) <= WIDEST
        assert best_multiple(kappa_for(lam, delta), float(lam)) <= 1 - float(delta) - 1 / 512
        assert best_multiple(WIDEST, float(lam)) > 1 - float(delta) - 1 / 512 - 0.001


def test_wide_masks_are_as_wide_as_they_say_and_normal() -> None:
    """Coins weigh 1, 8 and 2^17 parts; 1,000 draws: a share of 0.6827 within one deviation, to five of its own."""
    for deviation in (2.0, 120.0, 2e6):
        with replayed(Keystream(key=b"b" * 32)):
            drawn = masks(np.full(4000, deviation)) / PARTS
        assert drawn.std() == pytest.approx(deviation, rel=0.06)
        assert abs(np.mean(abs(drawn) <= deviation) - 0.6827) < 5 * np.sqrt(0.22 / 4000)
        assert len(set((drawn * PARTS % 8).tolist())) == 8  # no last digit tells how much a coin weighs

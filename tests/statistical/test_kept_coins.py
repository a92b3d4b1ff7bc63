"""Coins are kept as often as they should be, and as often as no other probability would have it."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest, chi2_contingency

from tacit import noise
from tacit.noise.kept_coins import name_of_number, new_secret, remembered, secret_for, share_kept, tossed

ALPHA = 1e-6
KEY = b"tacit kept coins, statistical..."
MANY = 200_000


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("kind", ["tossed", "remembered"])
def test_coins_are_kept_with_one_minus_exp(kind, epsilon):
    with noise.replayed(noise.Keystream(key=KEY)):
        names = name_of_number(np.arange(MANY, dtype=np.uint64))
        kept = tossed(epsilon, MANY) if kind == "tossed" else remembered(new_secret(), names, epsilon)
    for claimed, fits in ((share_kept(epsilon), True), (share_kept(epsilon * Fraction(11, 10)), False)):
        assert (binomtest(int(kept.sum()), MANY, claimed).pvalue > ALPHA) == fits


def test_coins_of_two_lines_are_independent():
    with noise.replayed(noise.Keystream(key=KEY)):
        secret = new_secret()
    names = name_of_number(np.arange(MANY, dtype=np.uint64))
    one, other = (remembered(secret_for(secret, line), names, Fraction(1)) for line in ("lighting", "planning"))
    table = np.array([[(one & other).sum(), (one & ~other).sum()], [(~one & other).sum(), (~one & ~other).sum()]])
    assert chi2_contingency(table).pvalue > ALPHA
    same = np.array([[one.sum(), 0], [0, (~one).sum()]])
    assert chi2_contingency(same).pvalue < ALPHA

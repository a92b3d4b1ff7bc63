"""Coins that are kept: exact thresholds, the same coin each time, more of them at a larger epsilon."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from tacit import noise
from tacit.noise import kept_coins
from tacit.noise.kept_coins import (
    name_of_number,
    name_of_text,
    new_secret,
    remembered,
    secret_for,
    threshold_word,
    tossed,
)

SECRET = bytes(range(32))
NUMBERS = name_of_number(np.arange(5000, dtype=np.uint64))


def exp_series(epsilon: Fraction, terms: int) -> Fraction:
    """Partial sums of exp(-epsilon), which alternate around it where terms fall."""
    total, term = Fraction(0), Fraction(1)
    for at in range(terms):
        total += term
        term *= -epsilon / (at + 1)
    return total


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1, 3), Fraction(1), Fraction(7, 2)])
def test_a_threshold_has_the_digits_of_one_minus_exp(epsilon):
    words = sum(threshold_word(epsilon, place) << 64 * (3 - place) for place in range(4))
    low, high = sorted(1 - exp_series(epsilon, terms) for terms in (120, 121))
    assert int(low * 2**256) == words == int(high * 2**256)


def test_the_largest_epsilon_still_leaves_something_out():
    assert threshold_word(Fraction(1000), 0) == 2**64 - 1
    assert any(threshold_word(Fraction(1000), place) < 2**64 - 1 for place in range(30))


def test_a_coin_is_the_same_whenever_and_with_whomever_it_is_asked_for():
    kept = remembered(SECRET, NUMBERS, Fraction(1))
    some = np.array([4999, 17, 3])
    assert (remembered(SECRET, NUMBERS[some], Fraction(1)) == kept[some]).all()


def test_what_is_kept_at_one_epsilon_is_kept_at_every_larger_one():
    kept = [remembered(SECRET, NUMBERS, Fraction(eps, 10)) for eps in (1, 5, 10, 30)]
    for less, more in itertools.pairwise(kept):
        assert (less <= more).all()
        assert less.sum() < more.sum()


def test_lines_have_coins_of_their_own():
    one, other = (remembered(secret_for(SECRET, name), NUMBERS, Fraction(7, 10)) for name in ("one", "other"))
    assert 0.4 < (one == other).mean() < 0.6
    assert secret_for(SECRET, "one") not in (SECRET, secret_for(SECRET, "other"))


def test_ties_are_broken_by_the_digits_after_them():
    """With a threshold whose first words are those of a coin, the next words decide."""
    first, second = threshold_word(Fraction(1), 0), threshold_word(Fraction(1), 1)
    words = np.array([first - 1, first, first, first, first + 1], dtype=np.uint64)
    later = {(1, 1): second - 1, (2, 1): second + 1, (3, 1): second, (3, 2): 0}
    decided = kept_coins._kept(Fraction(1), words, lambda at, place: later[at, place])
    assert decided.tolist() == [True, True, False, True, False]


def test_names_of_several_parts_are_told_apart():
    blocks = np.array(
        [[name_of_text(a), name_of_text(b)] for a, b in (("a", "b"), ("b", "a"), ("a", "a"))], dtype="<u8"
    )
    kept = [remembered(secret_for(SECRET, str(line)), blocks, Fraction(7, 10)) for line in range(200)]
    assert len({tuple(coins.tolist()) for coins in kept}) == 8


def test_new_coins_follow_the_stream():
    with noise.replayed(noise.Keystream(key=bytes(32))):
        first, secret = tossed(Fraction(1), 100), new_secret()
    with noise.replayed(noise.Keystream(key=bytes(32))):
        assert (tossed(Fraction(1), 100) == first).all()
        assert new_secret() == secret
    assert new_secret() != secret


@pytest.mark.parametrize("many", [0, 1, 2**15, 2**15 + 3])
def test_numbers_have_the_coins_of_their_names_however_many_are_asked_for(many):
    numbers = np.arange(many, dtype=np.uint64)[::-1] * np.uint64(2**40 + 1)
    found = kept_coins.remembered_by_number(bytes(32), numbers, Fraction(1))
    assert np.array_equal(found, kept_coins.remembered(bytes(32), kept_coins.name_of_number(numbers), Fraction(1)))
    assert found.dtype == np.bool_

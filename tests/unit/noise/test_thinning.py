"""Draws about many records at once: what follows without statistics."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tacit.noise import Keystream, replayed
from tacit.noise.thinning import LARGEST, bell, halve, pick, spread, thin


def test_nothing_is_lost_and_nothing_is_added() -> None:
    with replayed(Keystream(key=bytes(32))):
        counts = np.array([[0, 1, 2, 3], [1000, 10**6, 5, (3 << LARGEST) + 7]])
        for drawn in (halve(counts), thin(counts, Fraction(1, 3)), thin(counts, 1 - Fraction(1, 10**30))):
            assert drawn.shape == counts.shape
            assert ((drawn >= 0) & (drawn <= counts)).all()
        shared = spread(counts, 5)
        assert shared.shape == (2, 4, 5)
        assert (shared.sum(axis=2) == counts).all()
        picked = pick(np.array([[3, 0, 2], [9, 9, 9], [0, 0, 0]]), [4, 27, 3])
        assert picked.sum(axis=1).tolist() == [4, 27, 0]
        assert picked[1].tolist() == [9, 9, 9]
        assert picked[0, 1] == 0


def test_certain_and_impossible() -> None:
    counts = np.array([0, 7, 100])
    assert thin(counts, Fraction(0)).tolist() == [0, 0, 0]
    assert thin(counts, Fraction(1)).tolist() == [0, 7, 100]
    assert thin(counts, [0, 3, 4], denominator=4)[[0, 2]].tolist() == [0, 100]
    assert spread(counts, 1).ravel().tolist() == [0, 7, 100]
    assert bell([0]).tolist() == [0]


def test_each_count_has_its_own_chance() -> None:
    with replayed(Keystream(key=bytes(32))):
        kept = thin(np.full(3, 10**6), [1, 50, 99], denominator=100)
    # four standard deviations of the widest are 2,000
    assert (abs(kept - np.array([10_000, 500_000, 990_000])) < 2000).all()

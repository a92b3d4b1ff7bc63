"""Draws about many records at once follow their laws, and no other."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chisquare, hypergeom

from tacit.noise import Keystream, replayed
from tacit.noise.thinning import bell, halve, pick, spread, thin

ALPHA = 1e-6
SIZE = 40_000


def fits(drawn: np.ndarray, law: np.ndarray) -> bool:
    """Say whether draws of 0, 1, .. are consistent with their probabilities."""
    expected = law * drawn.size
    wide = expected >= 5
    seen = np.bincount(drawn, minlength=law.size)[: law.size]
    observed = np.append(seen[wide], drawn.size - seen[wide].sum())
    wanted = np.append(expected[wide], max(drawn.size - expected[wide].sum(), 1e-9))
    if wanted[-1] < 5:
        observed, wanted = observed[:-1], wanted[:-1] * observed[:-1].sum() / wanted[:-1].sum()
    return bool(chisquare(observed, wanted).pvalue > ALPHA)


@pytest.mark.parametrize(("n", "p"), [(1, Fraction(1, 3)), (13, Fraction(1, 2)), (60, Fraction(9, 10))])
def test_thinning_is_binomial(n: int, p: Fraction) -> None:
    with replayed(Keystream(key=b"thin" * 8)):
        drawn = thin(np.full(SIZE, n), p)
    assert fits(drawn, binom.pmf(np.arange(n + 1), n, float(p)))
    assert not fits(drawn, binom.pmf(np.arange(n + 1), n, float(p) * 0.95))


@pytest.mark.parametrize("n", [3, 1000, (1 << 20) + 5])
def test_halving_is_binomial(n: int) -> None:
    with replayed(Keystream(key=b"half" * 8)):
        drawn = halve(np.full(SIZE if n < 1 << 20 else 2000, n))
    first, wide = max(n // 2 - 4000, 0), 1 if n < 1 << 20 else 100
    law = binom.pmf(first + np.arange(8000), n, 0.5).reshape(-1, wide).sum(axis=1)
    assert fits((drawn - first) // wide, law)
    assert not fits((drawn - first) // wide, np.roll(law, 2))


@pytest.mark.parametrize(("records", "rows"), [(12, SIZE), (100, SIZE // 4)], ids=["numbers", "coins, then numbers"])
def test_places_are_equally_likely_and_records_go_alone(records: int, rows: int) -> None:
    with replayed(Keystream(key=b"even" * 8)):
        drawn = spread(np.full(rows, records), 5)
    many = np.arange(records + 1)
    for place in range(5):
        assert fits(drawn[:, place], binom.pmf(many, records, 1 / 5))
    assert fits(drawn[:, 0] + drawn[:, 4], binom.pmf(many, records, 2 / 5))
    # what eight places without rejection would give
    assert not fits(drawn[:, 0], binom.pmf(many, records, 3 / 16))


def test_picking_is_without_replacement() -> None:
    with replayed(Keystream(key=b"pick" * 8)):
        drawn = pick(np.tile([6, 3, 5], (SIZE, 1)), np.full(SIZE, 7))
    assert fits(drawn[:, 0], hypergeom.pmf(np.arange(8), 14, 6, 7))
    assert not fits(drawn[:, 0], binom.pmf(np.arange(8), 7, 6 / 14))


def test_a_narrow_bell_is_made_of_coins_of_one_and_a_wide_one_has_every_last_digit() -> None:
    with replayed(Keystream(key=b"even" * 8)):
        drawn, wide = bell(np.full(SIZE, 5.0)), bell(np.full(SIZE, 5000.0))
    assert fits(drawn + 50, binom.pmf(np.arange(101), 100, 0.5))
    assert not fits(drawn + 50, binom.pmf(np.arange(-1, 100), 100, 0.5))
    # coins weigh 8, and what lies between is filled: the last three digits are as good as even
    assert fits(wide % 8, np.full(8, 1 / 8))
    assert abs(wide.var() / 5000**2 - 1) < 5 * np.sqrt(2 / SIZE)

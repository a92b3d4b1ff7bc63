"""The (lambda, delta) criterion: against sums over every outcome, and the numbers of the thesis."""

from __future__ import annotations

from fractions import Fraction
from math import comb, floor

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.publish.methods.criterion import Channel, Criterion, chernoff_size, exact_tails, is_private, largest_size

HALF, THIRD = Fraction(1, 2), Fraction(3, 10)
CHERNOFF = Criterion(THIRD, THIRD, "chernoff", "each")


def brute_tails(count: int, size: int, p: Fraction, m: int, lam: Fraction) -> tuple[Fraction, Fraction]:
    """Add up both tails over every outcome, in fractions."""
    kept, spread = p + (1 - p) / m, (1 - p) / m
    below = above = Fraction(0)
    for i in range(count + 1):
        for j in range(size - count + 1):
            weight = comb(count, i) * kept**i * (1 - kept) ** (count - i)
            weight *= comb(size - count, j) * spread**j * (1 - spread) ** (size - count - j)
            estimate = (Fraction(i + j, size) - spread) / p
            f = Fraction(count, size)
            below += weight if estimate < f - lam * f else 0
            above += weight if estimate > f + lam * f else 0
    return below, above


@pytest.mark.parametrize(("p", "m", "lam"), [(HALF, 2, THIRD), (HALF, 10, THIRD), (Fraction(1, 7), 3, Fraction(9, 10))])
def test_tails_are_sums_over_every_outcome(p: Fraction, m: int, lam: Fraction) -> None:
    pairs = [(count, size) for size in (1, 2, 7, 12) for count in range(1, size + 1)]
    below, above = exact_tails([c for c, _ in pairs], [s for _, s in pairs], Channel(p, m), lam)
    brute = [brute_tails(c, s, p, m, lam) for c, s in pairs]
    assert np.allclose(below, [float(low) for low, _ in brute], atol=1e-13)
    assert np.allclose(above, [float(high) for _, high in brute], atol=1e-13)


@pytest.mark.parametrize("tails", ["each", "together"])
def test_shortcuts_change_no_verdict(tails: str) -> None:
    asked, channel = Criterion(THIRD, THIRD, "exact", tails), Channel(HALF, 10)
    size = np.repeat([30, 300, 1100], 40)
    count = np.maximum(size * np.tile(np.arange(1, 41), 3) // 40, 1)
    below, above = exact_tails(count, size, channel, THIRD)
    right = np.minimum(below, above) >= 0.3 if tails == "each" else below + above > 0.3
    assert is_private(count, size, channel, asked).tolist() == right.tolist()
    assert 0 < right.sum() < right.size


def test_numbers_of_figure_4_1() -> None:
    """Thesis 004, Figure 4.1: p = .5, lambda = delta = .3."""
    two = chernoff_size([0.5, 0.7, 0.9], Channel(HALF, 2), CHERNOFF)
    fifty = chernoff_size([0.1, 0.3, 0.5, 0.9], Channel(HALF, 50), CHERNOFF)
    assert two.round(1).tolist() == [214.0, 131.0, 92.5]
    assert fifty.round(1).tolist() == [642.1, 190.3, 111.3, 60.8]


def test_chernoff_allows_128_where_the_exact_criterion_allows_10() -> None:
    channel = Channel(HALF, 10)
    assert floor(chernoff_size(0.5, channel, CHERNOFF)) == 128
    assert largest_size(0.5, channel, Criterion(THIRD, THIRD, "exact", "each")) == 10


def test_nobody_has_the_value() -> None:
    channel = Channel(HALF, 10)
    for how in ("chernoff", "exact"):
        asked = Criterion(THIRD, THIRD, how, "each")
        assert is_private(0, 50, channel, asked)
        assert largest_size(0.0, channel, asked) == np.inf


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"retention": 1}, "retention must lie strictly between 0 and 1"),
        ({"retention": 0}, "retention must lie strictly between 0 and 1"),
        ({"values": ["flu"]}, "values must be at least two"),
        ({"lam": 3}, r"lam must be at most 1 \+ \(1 - p\) / \(m p\) = 1.5"),
        ({"lam": 0}, "lam must be positive"),
        ({"delta": 1}, "delta must lie between 0 and 1"),
        ({"criterion": "cherno"}, "Did you mean 'chernoff'"),
        ({"sensitive": "ward"}, "sensitive must not be public as well"),
        ({"public": "ward"}, "public must be a list of columns"),
    ],
)
def test_refusals(change: dict[str, object], sentence: str) -> None:
    rows = pd.DataFrame({"ward": ["a"], "ill": ["flu"]})
    given = {"public": ["ward"], "sensitive": "ill", "values": ["flu", "hiv"]}
    with pytest.raises(tc.PlanError, match=sentence):
        tc.audit.reconstruction(rows, **{**given, "retention": 0.5, "lam": 0.3, "delta": 0.3, **change})


def test_the_audit_has_a_line_for_each_group() -> None:
    rows = pd.DataFrame(
        {"ward": ["a"] * 400 + ["b"] + ["c"] * 4, "ill": ["flu"] * 200 + ["hiv"] * 201 + ["flu", "hiv", "?", "hiv"]}
    )
    given = {"public": ["ward"], "sensitive": "ill", "values": ["flu", "hiv"], "retention": 0.5}
    found = tc.audit.reconstruction(rows, **given, lam=0.3, delta=0.3, criterion="chernoff")
    assert found.frame.to_dict("list") == {
        "group": ["ward=a", "ward=b", "ward=c"],
        "ward": ["a", "b", "c"],
        "size": [400, 1, 3],  # the row with an unexpected value is not in the data
        "largest allowed size": [214.0, 80.0, 140.0],
        "violated": [True, False, False],
    }
    assert found.count == 1
    assert "do not publish" in str(found)


def test_shares_of_adult() -> None:
    """Golden: Eq 4.9 on the ungeneralised groups of Adult: 7.3% of the groups, 72.6% of the records."""
    rows = pd.read_parquet(tc.audit.__path__[0].removesuffix("audit") + "data/adult.parquet")
    rows = rows[(rows != "?").all(axis=1)]
    found = tc.audit.reconstruction(
        rows,
        public=["education", "occupation", "race", "sex"],
        sensitive="income",
        values=["<=50K", ">50K"],
        retention=0.5,
        lam=0.3,
        delta=0.3,
        criterion="chernoff",
    )
    assert len(found.frame) == 1084
    assert (round(found.share_of_groups, 3), round(found.share_of_records, 3)) == (0.073, 0.726)

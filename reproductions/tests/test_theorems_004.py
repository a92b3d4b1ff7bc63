"""Lemmas, theorems and corollaries of document 004: verdicts, and the bias of SPS beside draws."""

from fractions import Fraction

import numpy as np
import pytest

from parameters import replaying
from tacit.publish.methods.criterion import Channel, exact_tails
from tacit_reproductions.document_004.reconstruction import _thinned
from tacit_reproductions.document_004.theorems import counts_law, printed_cdf, sampling_bias, theorems
from tacit_reproductions.reproduction import Run

stream = replaying(b"golden numbers of document 004..")


@pytest.fixture(scope="module")
def told():
    run = Run(None, quick=True, paper="004")
    with run.noise_of("theorems"):
        return {claim.figure: claim for claim in theorems(run).claims}


def test_verdicts(told):
    """Laws of ratios and of perturbed counts hold; what rests on Chernoff's bound as the best one does not."""
    fails = {"section 4.2.2", "Corollary 4", "Theorem 6", "Theorem 7"}
    assert {name for name, claim in told.items() if claim.holds == "no"} == fails
    assert all(claim.holds == "yes" for name, claim in told.items() if name not in fails)
    said = " ".join(told)
    assert all(f"Theorem {number}" in said for number in range(1, 8))
    assert all(name in said for name in ("Lemma 2", "Lemma 3", *(f"Corollary {n}" for n in (1, 3, 4, 5))))


def test_the_printed_law_of_a_ratio():
    """Lemma 2 rises from 0 to 1, and has no jump where its forms change."""
    found = [printed_cdf(z, 420, 501, 20) for z in (-50, -0.5, 0.5, 0.8, 0.9, 50)]
    assert found == sorted(found)
    assert 0 <= found[0] < 1e-9 < 1 - 1e-9 < found[-1] <= 1
    edge = 420 / 501
    assert printed_cdf(edge, 420, 501, 20) == pytest.approx(printed_cdf(edge + 1e-12, 420, 501, 20), abs=1e-9)


def test_tails_are_those_of_the_enumerated_law():
    """128 people, half of them with one of ten values: .011 below and .010 above, not .3."""
    law = counts_law(64, 128, Channel(Fraction(1, 2), 10))
    at = (np.arange(129) / 128 - 0.05) / 0.5
    tails = law[at < 0.35 - 1e-12].sum(), law[at > 0.65 + 1e-12].sum()
    assert tails == pytest.approx((0.0108, 0.0101), abs=1e-4)
    assert tails == pytest.approx(tuple(map(float, exact_tails(64, 128, Channel(Fraction(1, 2), 10), Fraction(3, 10)))))


def test_rare_values_are_understated_by_samples_of_their_share():
    """Theorem 7: 91 and nine times 1 of 100, a sample of 12.2: -6%, enumerated and drawn."""
    counts = np.array([91, *[1] * 9])
    bias = sampling_bias(counts, 12.2)[-1]
    drawn = _thinned(np.tile(counts, (40_000, 1)), np.full(40_000, 12.2))
    means = (drawn / drawn.sum(axis=1, keepdims=True))[:, 1:].mean() / 0.01 - 1
    assert bias == pytest.approx(-0.062, abs=0.002)
    assert means == pytest.approx(bias, abs=0.02)

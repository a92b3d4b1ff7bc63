"""The published formulas for two yes/no attributes are special cases of the general computation, to rounding."""

import math

import numpy as np
import pytest

import tacit as tc
from tacit.dependence.suppression import Suppression, mutual_information, suppression
from tacit_reproductions.document_001.closed_forms import bit_pair, own_information, own_suppression

JOINTS = 200
SIDES = {"i": [0, 1], "j": [0, 1]}


def random_release(number: int) -> tuple[Suppression, float, float, int]:
    rng = np.random.default_rng([41, number])
    joint = rng.dirichlet(np.ones(4)).reshape(2, 2)
    seen, target = rng.uniform(0.05, 3, 2).tolist()
    dep = tc.Dependence.from_table(joint, names=("i", "j"), values=SIDES)
    return suppression(dep, {"i": [0], "j": [0]}, {"i": seen, "j": target}), seen, target, int(rng.integers(1, 5))


def odds(release: Suppression, name: str, **seen: object) -> float:
    return math.exp(release.log_odds(name, **seen))


def test_every_formula_agrees_with_the_general_computation() -> None:
    worst = 0.0
    for number in range(JOINTS):
        release, seen, target, times = random_release(number)
        pair = bit_pair(release, "i", "j")
        own = bit_pair(release, "j", "i")
        before = odds(release, "j")
        joint = release.posterior(["i", "j"])
        after = {
            "theorem 1": (odds(release, "j", suppressed={"j": times}) / before, own_suppression(target, times)),
            "theorem 2": (odds(release, "j", suppressed={"i": 1}) / before, pair.suppressed(seen)),
            "corollary 1": (odds(release, "j", suppressed={"i": times}) / before, pair.suppressed(seen, times)),
            "theorem 3": (odds(release, "j", released={"i": 1}) / before, pair.released()),
            "theorem 4": (odds(release, "j", suppressed={"i": 1, "j": 1}) / before, pair.both_suppressed(seen, target)),
            "theorem 4, released": (
                odds(release, "j", released={"i": 1}, suppressed={"j": 1}) / before,
                pair.released_and_suppressed(target),
            ),
            "prior": (before, pair.prior_odds),
            "lemma 1, sensitive": (joint[0, 0] / joint[0].sum(), pair.given_the_bit(is_sensitive=True)),
            "lemma 1, open": (release.posterior(["j"], released={"i": 1})[0], pair.given_the_bit(is_sensitive=False)),
        }
        for name, (general, closed) in after.items():
            assert general == pytest.approx(closed, rel=1e-12), name
            worst = max(worst, abs(general / closed - 1))
        both = release.posterior(["i", "j"], suppressed={"i": times})
        for row, is_sensitive in ((0, True), (1, False)):  # M_i = 0 beside X_i adds nothing
            told = both[row, 0] / both[row].sum()
            assert told == pytest.approx(pair.given_the_bit(is_sensitive=is_sensitive), rel=1e-12)
        for value in (True, False) if number % 2 else ():  # of two values, the value is the bit
            assert mutual_information(release, "j", ["i"], value=value) == pytest.approx(
                pair.information(seen), abs=1e-13
            )
            assert mutual_information(release, "j", ["j"], value=value) == pytest.approx(
                own_information(own.seen_share, target), abs=1e-13
            )
    assert worst < 1e-12


def test_the_formulas_keep_their_limits() -> None:
    """Golden: epsilon zero and equal deltas give the factor one, a large epsilon the ratio of the deltas."""
    pair = bit_pair(random_release(0)[0], "i", "j")
    assert pair.suppressed(0.0) == 1
    assert pair.suppressed(2000.0) == pytest.approx(pair.delta_1 / pair.delta_2, rel=1e-12)
    alike = tc.Dependence.from_table({(0, 0): 0.06, (0, 1): 0.14, (1, 0): 0.24, (1, 1): 0.56}, names=("i", "j"))
    apart = bit_pair(suppression(alike, {"i": [0], "j": [0]}, {"i": 1.0}), "i", "j")
    assert apart.suppressed(1.0) == pytest.approx(1, abs=1e-14)
    assert apart.information(1.0) == pytest.approx(0, abs=1e-14)

"""A sampled audit of measured sums: at epsilon it accuses those with wrong scales, and not the right ones.

The key is fixed, so a passing suite stays passing; a bound is wrong with probability ALPHA at most. With this many
samples each mistake was found under each of eight other keys.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tacit import noise
from tacit.audit import Verdict, sampled
from tacit.noise.grouped import GroupedNoise
from tacit.plan.measure.lines.layout import LineLayout
from tacit.plan.measure.lines.scheme import Scheme
from tacit.plan.sensitivity.line_moves import LineMoves

ALPHA = 1e-6
KEY = b"tacit audit of measured sums, 01"
EPSILON = 2  # a larger loss is seen with fewer samples
F = Fraction

MOVES = LineMoves((6,), 3, leaves=False)
STAYING = LineLayout((6,), leaves=False, block=3, cells=(1,), ramps=True)
ANCHORED = LineLayout((6,), leaves=False, block=2, cells=(1,), anchors=True)
LEAVING = LineLayout((4,), leaves=True, block=4, cells=(4, 1))
# (layout, moves, a pair of neighbours, what is wrong, by how much each group's noise is too small)
CASES = [
    (STAYING, MOVES, (1, 4), "a move changes one cell and not two", (2, 1)),
    pytest.param(STAYING, MOVES, (1, 4), "a ramp is taken for one running count", (1, 3), marks=pytest.mark.slow),
    pytest.param(ANCHORED, MOVES, (1, 4), "one block end is crossed and not two", (1, 2), marks=pytest.mark.slow),
    (LEAVING, LineMoves((4,), 0, leaves=True), (2, None), "the total is published beside the budget", (4, 1)),
]


def release_of(sums):
    def release(person, size):
        counts = np.array([person == value for value in range(sums.layout.values)], dtype=np.int64)
        return sums.layout.entries(counts) + sums.noise.draw(size)

    return release


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("layout", "moves", "pair", "mistake", "factors"), CASES, ids=lambda case: str(case)[:24])
def test_too_little_noise_is_found_and_enough_is_not_accused(layout, moves, pair, mistake, factors):
    groups = len(layout.sizes) - (not layout.leaves)
    right = Scheme.with_rates("right", layout, [F(1)] * groups, moves).sums("a", None, F(EPSILON))
    assert right.loss(moves) == EPSILON
    small = [scale / factor for scale, factor in zip(right.noise.scales, factors, strict=False)]
    wrong = type(right)("a", None, layout, GroupedNoise(layout.sizes, (*small, *right.noise.scales[groups:])))
    assert wrong.loss(moves) > EPSILON
    with noise.replayed(noise.Keystream(key=KEY)):
        kept = sampled(release_of(right), *pair, EPSILON, samples=30_000, alpha=ALPHA)
        broken = sampled(release_of(wrong), *pair, EPSILON, samples=30_000, alpha=ALPHA)
    assert kept.verdict == Verdict.NONE_FOUND
    assert broken.verdict == Verdict.LEAK_FOUND, mistake

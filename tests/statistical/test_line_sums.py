"""A sampled audit of measured sums: at epsilon it accuses those with wrong scales, and not the right ones.

The key is fixed, so a passing suite stays passing; a bound is wrong with probability ALPHA at most. With this many
samples each mistake was found under each of eight other keys.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from line_layouts import noise_of
from tacit import noise
from tacit.audit import Verdict, sampled
from tacit.plan.measure.grid_search import weighted_at
from tacit.plan.measure.regions import GridStrategy
from tacit.plan.measure.sums import LineSums
from tacit.plan.sensitivity.moves import GridMoves

ALPHA = 1e-6
KEY = b"tacit audit of measured sums, 01"
EPSILON = 2  # a larger loss is seen with fewer samples
F = Fraction

MOVES = GridMoves.on_line((6,), 3, may_enter_or_leave=False)
STAYING = GridStrategy((1,), (3, 0))
SHORT = GridStrategy((1,), (2, 0))
LEAVING = GridStrategy((1, 4))
# (strategy, moves, a pair of neighbours, what is wrong, by how much each group's noise is too small)
CASES = [
    (STAYING, MOVES, (1, 4), "a move changes one cell and not two", (2, 1)),
    pytest.param(STAYING, MOVES, (1, 4), "a ramp is taken for one running count", (1, 3), marks=pytest.mark.slow),
    pytest.param(SHORT, MOVES, (1, 4), "one ramp is moved and not two", (1, 2), marks=pytest.mark.slow),
    (
        LEAVING,
        GridMoves.on_line((4,), 0, may_enter_or_leave=True),
        (2, None),
        "the total is published beside the budget",
        (1, 4),
    ),
]


def release_of(sums):
    def release(person, size):
        counts = np.array([person == value for value in range(sums.sizes[0])], dtype=np.int64)
        return sums.of_counts(counts) + sums.noise.draw(size)

    return release


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("strategy", "moves", "pair", "mistake", "factors"), CASES, ids=lambda case: str(case)[:24])
def test_too_little_noise_is_found_and_enough_is_not_accused(strategy, moves, pair, mistake, factors):
    weighted = weighted_at(strategy, np.ones(strategy.groups), strategy.changes(moves), F(EPSILON))
    right = LineSums.on("a", None, weighted, moves)
    assert right.loss(moves) == EPSILON
    exact = right.noise.scales[strategy.groups :]
    small = [scale / factor for scale, factor in zip(right.noise.scales, factors, strict=False)]
    wrong = replace(right, noise=noise_of(right, [*small, *exact]))
    assert wrong.loss(moves) > EPSILON
    with noise.replayed(noise.Keystream(key=KEY)):
        kept = sampled(release_of(right), *pair, EPSILON, samples=30_000, alpha=ALPHA)
        broken = sampled(release_of(wrong), *pair, EPSILON, samples=30_000, alpha=ALPHA)
    assert kept.verdict == Verdict.NONE_FOUND
    assert broken.verdict == Verdict.LEAK_FOUND, mistake

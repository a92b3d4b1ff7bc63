"""Noise on running counts as it is drawn: audits accuse wrong rates and not the right ones.

A bound is wrong with probability ALPHA at most. The keys are fixed, so a passing suite stays passing.
"""

from fractions import Fraction

import numpy as np
import pytest

from line_laws import norm, outputs
from parameters import replaying
from tacit.audit import Verdict, sampled
from tacit.noise.line.law import DRAWN, LineNoise

ALPHA = 1e-6
KEY = b"tacit noise on lines, statistics"
F = Fraction
EPSILON = 1
stream = replaying(KEY)


def release(law):
    return lambda counts, size: np.asarray(counts) + law.draw(size)


# Seven values, blocks of two, moves that change three counts: these have two ends of blocks, not one, and two cells
# of each size. One half of epsilon for the ends, one fifth for pairs and three tenths for single values.
RIGHT = LineNoise((7,), 2, F(1, 4), (F(1, 10), F(3, 20)), None)
WRONG = {
    "one cell of each size instead of two": LineNoise((7,), 2, F(1, 4), (F(1, 5), F(3, 10)), None),
    "three counts over blocks of two rounded down": LineNoise((7,), 2, F(1, 2), (F(1, 10), F(3, 20)), None),
}
HIDDEN = np.array([2, 4, 6, 8, 10, 12, 14])
MOVED = HIDDEN + np.array([0, 1, 1, 1, 0, 0, 0])


def test_the_right_rates_are_not_accused():
    assert RIGHT.loss_of(3, may_enter_or_leave=False) == EPSILON
    found = sampled(release(RIGHT), HIDDEN, MOVED, EPSILON, 60_000, ALPHA)
    assert found.verdict is Verdict.NONE_FOUND


@pytest.mark.one_in(5)
@pytest.mark.parametrize("mistake", WRONG)
def test_wrong_rates_are_accused(mistake):
    assert WRONG[mistake].loss_of(3, may_enter_or_leave=False) == F(3, 2)
    found = sampled(release(WRONG[mistake]), HIDDEN, MOVED, EPSILON, 60_000, ALPHA)
    assert found.verdict is Verdict.LEAK_FOUND


def test_a_missing_end_rate_is_accused():
    """Who leaves changes the last count too: half of the rate that it needs is not enough."""
    hidden, left = np.array([3, 5, 7]), np.array([2, 4, 6])
    right = LineNoise((3,), 4, F(0), (F(0), F(1, 5), F(1, 5)), F(3, 5))
    wrong = LineNoise((3,), 4, F(0), (F(0), F(1, 5), F(1, 5)), F(6, 5))
    assert right.loss_of(2, may_enter_or_leave=True) == EPSILON
    assert sampled(release(right), hidden, left, EPSILON, 50_000, ALPHA).verdict is Verdict.NONE_FOUND
    assert sampled(release(wrong), hidden, left, EPSILON, 50_000, ALPHA).verdict is Verdict.LEAK_FOUND


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "law",
    [
        LineNoise((4,), 2, F(1, 4), (F(1, 3), F(1, 2)), None),
        LineNoise((3,), 2, F(1, 4), (F(1, 3), F(1, 2)), F(1, 3)),
        LineNoise((1, 3), 4, F(0), (F(0), F(1, 3), F(2, 3)), None),
    ],
    ids=repr,
)
def test_draws_follow_the_law_and_no_other(law):
    draws, points = 150_000, outputs(law, 16)
    drawn = law.draw(draws)

    def distance(factor):
        weights = np.exp(-float(DRAWN) * factor * norm(law, points))
        likely = np.argsort(-weights)[:300]
        expected = weights[likely] / weights.sum() * draws
        keys = {tuple(point): at for at, point in enumerate(points[likely].tolist())}
        each, many = np.unique(drawn, axis=0, return_counts=True)
        seen = np.zeros(len(likely))
        for point, count in zip(each.tolist(), many, strict=True):
            if tuple(point) in keys:
                seen[keys[tuple(point)]] = count
        used = expected > 20
        return (((seen - expected) ** 2 / expected)[used].sum() - used.sum()) / np.sqrt(2 * used.sum())

    assert abs(distance(1)) < 6  # a normal variable exceeds 5 in 3e-7 of all cases; chi-squares have heavier tails
    assert distance(1.1) > 20

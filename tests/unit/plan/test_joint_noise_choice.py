"""The joint noise that is chosen for a line: it costs what it may, and reaches the errors that searches found."""

import time
from fractions import Fraction

import numpy as np
import pytest

from tacit import noise
from tacit.noise.keystream import Keystream
from tacit.plan.measure.line_strategies import best_line_noise
from tacit.plan.sensitivity.moves import GridMoves

F = Fraction


def moves(values, reach, *, may_enter_or_leave=False):
    segments = values if isinstance(values, tuple) else (values,)
    return GridMoves.on_line(segments, reach, may_enter_or_leave=may_enter_or_leave)


# 4357 values, mean over all ranges times epsilon squared: the repaired published mechanism at its best fan-out, and the
# share of it that a joint noise was seen to need
PUBLISHED = {
    10: (190, 0.28),
    50: (692, 0.24),
    100: (960, 0.25),
    500: (1890, 0.25),
    1000: (2411, 0.24),
    4356: (2596, 0.24),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("reach", [10, 100, *(pytest.param(r, marks=pytest.mark.slow) for r in (50, 500)), 1000, 4356])
def test_ranges_reach_the_best_that_is_known(reach):
    law = best_line_noise(moves(4357, reach), F(1), "ranges")
    assert law.loss_of(reach, may_enter_or_leave=False) == 1
    published, share = PUBLISHED[reach]
    assert law.mean_variance("ranges") <= published * share


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("reach", "known"), [(4, 12.5), (16, 38.0), (64, 90.1), (256, 163.0), (511, 170.0)])
def test_prefixes_reach_the_best_that_is_known(reach, known):
    law = best_line_noise(moves(512, reach), F(1), "prefixes")
    assert law.mean_variance("prefixes") <= 1.001 * known


@pytest.mark.parametrize("reach", [10, *(pytest.param(r, marks=pytest.mark.slow) for r in (100, 4356))])
def test_small_epsilon_has_the_same_error_in_its_own_units(reach):
    law = best_line_noise(moves(4357, reach), F(1, 100), "ranges")
    published, share = PUBLISHED[reach]
    assert law.loss_of(reach, may_enter_or_leave=False) == F(1, 100)
    assert law.mean_variance("ranges") / 100**2 <= 1.01 * published * share
    with noise.replayed(Keystream(key=bytes(32))):
        assert law.draw().shape == (4357,)


def test_neighbouring_values_need_the_plain_noise_on_each_count():
    law = best_line_noise(moves(4357, 1), F(1, 50), "ranges")
    assert (law.block, law.anchor_rate, law.cell_rates) == (1, F(1, 50), (0,))
    assert law.mean_variance("ranges") / 50**2 == pytest.approx(4, rel=1e-3)


@pytest.mark.one_in(16)
@pytest.mark.parametrize("workload", ["ranges", "prefixes", "cells"])
@pytest.mark.parametrize(
    "line",
    [
        moves(2, 1),
        moves(3, 5),
        moves(16, 3),
        moves(40, 0, may_enter_or_leave=True),
        moves(40, 7, may_enter_or_leave=True),
        moves((10, 10, 7), 4),
        moves((1, 1, 9), 2),
        moves(100, 99),
    ],
    ids=repr,
)
def test_every_line_has_a_noise_that_spends_all(line, workload):
    epsilon = F(1, 3) if line.may_enter_or_leave else F(3, 2)
    law = best_line_noise(line, epsilon, workload)
    assert law.segments == line.segments[0]
    assert law.loss_of(line.reach, may_enter_or_leave=line.may_enter_or_leave) == epsilon
    assert law.is_drawable()
    assert (law.end_rate is not None) == line.may_enter_or_leave


def test_taking_part_alone_costs_half_of_moving_too():
    """Who can only leave changes one cell of each size, not two: noise of half the scale, a quarter of the variance."""
    alone, both = (best_line_noise(moves(1000, reach, may_enter_or_leave=True), F(1), "ranges") for reach in (0, 999))
    assert 0.2 < alone.mean_variance("ranges") / both.mean_variance("ranges") < 0.45


@pytest.mark.parametrize("line", [moves(9, 0), moves(1, 5), moves(tuple(range(1, 90)), 3)], ids=repr)
def test_lines_without_such_noise(line):
    assert best_line_noise(line, F(1), "ranges") is None


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "line", [moves(4_000_000, 100), moves(100, 2), moves(100, 2, may_enter_or_leave=True)], ids=repr
)
def test_noise_that_cannot_be_drawn_is_not_chosen(line):
    assert best_line_noise(line, F(1, 100_000), "ranges") is None


def test_the_choice_depends_on_public_parameters_alone_and_is_kept():
    first = best_line_noise(moves(200, 9), F(1), "ranges")
    assert best_line_noise(moves(200, 9), F(1), "ranges") is first


@pytest.mark.slow
@pytest.mark.parametrize("reach", [10, 1000])
def test_four_million_values(reach):
    begin = time.process_time()
    law = best_line_noise(moves(4_000_000, reach), F(1), "ranges")
    drawn = law.draw()
    assert time.process_time() - begin < 6  # about half of that on a machine with nothing else to do
    low, high = np.sort(np.random.default_rng(1).integers(0, 4_000_000, (2, 100_000)), axis=0)
    below = np.concatenate([[0], drawn])
    measured = ((below[high + 1] - below[low]) ** 2.0).mean()
    assert measured == pytest.approx(law.run_variance(low, high).mean(), rel=0.03)
    assert law.mean_variance("ranges") == pytest.approx(law.run_variance(low, high).mean(), rel=0.01)

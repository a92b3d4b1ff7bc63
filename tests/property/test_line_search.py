"""Sums for lines: all of epsilon is spent and no more, and their errors are as small as they should be."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from line_layouts import matrix
from parameters import examples
from tacit import noise
from tacit.plan.measure.grid_search import UNIT_CELLS, candidates, weighted_at
from tacit.plan.measure.line_strategies import best_line_noise
from tacit.plan.measure.regions import GridStrategy
from tacit.plan.measure.sums import LineSums
from tacit.plan.measure.workload import Workload
from tacit.plan.sensitivity.moves import GridMoves

F = Fraction
KEY = b"tacit tests of schemes for lines"
SMALL = F(1, 1000)


@st.composite
def moves(draw, most=12):
    may_enter_or_leave = draw(st.booleans())
    segments = tuple(draw(st.lists(st.integers(1, most), min_size=1, max_size=1 if may_enter_or_leave else 3)))
    reach = draw(st.integers(0, max(segments) - 1))
    return GridMoves.on_line(segments, reach, may_enter_or_leave=may_enter_or_leave)


def workload(moves, asked):
    if isinstance(asked, str):
        return Workload(moves.sizes, kind=asked)
    return Workload(moves.sizes, tuple((low, high, 0, 0) for low, high in asked))


def found(moves, asked, epsilon=SMALL):
    """Return the best sums of each kind by name, and their mean variances in units of 1 / epsilon^2."""
    each = candidates(moves, workload(moves, asked), epsilon)
    sums = {one.name: LineSums.on("a", None, one.weighted, moves) for one in each if one.weighted is not None}
    return sums, {one.name: one.variance * float(epsilon) ** 2 for one in each if one.weighted is not None}


def worst_loss(sums, moves):
    """The largest loss over all moves that are allowed, from the meaning of the sums."""
    adds, starts = matrix(sums).T, np.cumsum([0, *moves.segments[0]])
    seen = [add for add in adds if moves.may_enter_or_leave]
    for first, end in pairwise(starts.tolist()):
        seen += [adds[v] - adds[u] for u in range(first, end) for v in range(u + 1, min(u + moves.reach + 1, end))]
    ends = np.cumsum([0, *sums.noise.sizes])
    changes = np.abs(np.array(seen, dtype=np.int64).reshape(-1, ends[-1]))
    by_group = np.unique([changes[:, a:b].sum(axis=1) for a, b in pairwise(ends)], axis=1).T
    return max((sums.noise.loss_of(moved) for moved in by_group.tolist()), default=F(0))


@examples(40)
@given(moves(), st.sampled_from([F(1, 7), F(1), F(3)]), st.sampled_from(["ranges", "prefixes", "cells", ((0, 0),)]))
def test_all_sums_spend_exactly_epsilon(moves, epsilon, asked):
    if not moves.may_enter_or_leave and moves.reach == 0:
        return
    for sums in found(moves, asked, epsilon)[0].values():
        assert sums.loss(moves) == epsilon
        assert worst_loss(sums, moves) == epsilon


def test_a_scale_is_never_below_what_can_be_drawn():
    moves = GridMoves.on_line((8,), 7, may_enter_or_leave=False)
    strategy = GridStrategy()
    weighted = weighted_at(strategy, np.ones(1), strategy.changes(moves), F(1000))
    sums = LineSums.on("a", None, weighted, moves)
    assert sums.noise.scales == (F(1, 100), F(0))
    assert sums.loss(moves) == 200


# 1.01 times what a search in the space of all matrices of blocks, ramps and cells found
KNOWN = [
    (512, 4, 37.3),
    (512, 16, 95.3),
    (512, 64, 228),
    (4357, 10, 69.5),
    (4357, 50, 204),
    (4357, 100, 316),
    (4357, 500, 624),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("values", "theta", "most"), KNOWN)
def test_lines_reach_their_best_known_error(values, theta, most):
    """Sums or joint noise; where people move by fewer than a hundred values, joint noise is needed for that."""
    moves = GridMoves.on_line((values,), theta, may_enter_or_leave=False)
    best = min(found(moves, "ranges")[1].values())
    joint = best_line_noise(moves, F(1), "ranges")
    assert min(best, joint.mean_variance("ranges")) <= 1.002 * most
    if theta == 64 or theta >= 100:
        assert 0.9 * most < best <= 1.002 * most


@pytest.mark.parametrize(("values", "most"), [(512, 318), (4096, 819)])
def test_under_plain_differential_privacy_trees_reach_their_best_known_error(values, most):
    """The uniform tree with least squares has 391 and 868."""
    assert min(found(GridMoves.on_line((values,), values - 1, may_enter_or_leave=False), "ranges")[1].values()) <= most


def test_single_values_are_best_for_single_values():
    errors = found(GridMoves.on_line((512,), 64, may_enter_or_leave=False), "cells")[1]
    assert min(errors.values()) >= errors[UNIT_CELLS] * 0.999
    assert errors[UNIT_CELLS] == pytest.approx(8 * 511 / 512, rel=1e-5)


def test_listed_ranges_have_weights_of_their_own():
    moves = GridMoves.on_line((400,), 60, may_enter_or_leave=False)
    long = tuple((low, low + 200) for low in range(0, 200, 20))
    short = tuple((low, low + 20) for low in range(0, 380, 20))
    for asked, other in ((long, short), (short, long)):
        own = min(found(moves, asked)[1].values())
        low, high = np.array(asked).T
        others = [sums.run_variance(low, high).mean() for sums in found(moves, other)[0].values()]
        assert own < min(others) * float(SMALL) ** 2


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("moves", "epsilon"),
    [
        (GridMoves.on_line((100,), 20, may_enter_or_leave=False), F(1)),
        (GridMoves.on_line((90,), 89, may_enter_or_leave=True), F(1, 2)),
        (GridMoves.on_line((40, 15, 40, 1), 39, may_enter_or_leave=False), F(2)),
    ],
)
def test_errors_are_predicted_within_three_percent(moves, epsilon):
    """What is measured has an error of its own, with so many releases of less than one percent."""
    values, _ = moves.sizes
    truth = np.arange(values) % 7
    below = np.cumsum(truth)
    for name, sums in found(moves, "ranges", epsilon)[0].items():
        assert np.allclose(sums.running(sums.of_counts(truth).astype(np.float64)), below)
        # running counts are linear in the entries, so those of each entry alone are enough
        each = np.array([sums.running(entry) for entry in np.eye(sums.noise.entries)])
        with noise.replayed(noise.Keystream(key=KEY)):
            wrong = np.pad(sums.noise.draw(20_000).astype(np.float64) @ each, ((0, 0), (1, 0)))
        pairs = (values + 1) * (wrong**2).sum(axis=1) - wrong.sum(axis=1) ** 2
        ranges = pairs.mean() / (values * (values + 1) / 2)
        assert sums.mean_variance("ranges") == pytest.approx(ranges, rel=0.03), name
        assert sums.mean_variance("prefixes") == pytest.approx((wrong[:, 1:] ** 2).mean(), rel=0.03), name
        assert sums.mean_variance("cells") == pytest.approx((np.diff(wrong) ** 2).mean(), rel=0.03), name

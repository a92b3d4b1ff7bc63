"""Schemes for lines: all of epsilon is spent and no more, and their errors are as small as they should be."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from line_layouts import matrix
from parameters import examples
from tacit import noise
from tacit.noise.grouped import GroupedNoise
from tacit.plan.measure.lines.candidates import line_schemes
from tacit.plan.measure.lines.line_sums import LineSums
from tacit.plan.measure.lines.ordered import ordered_hierarchical
from tacit.plan.measure.lines.ramps import best_ramps
from tacit.plan.measure.lines.trees import best_tree, single_values, uniform_tree
from tacit.plan.sensitivity.line_moves import LineMoves

F = Fraction
KEY = b"tacit tests of schemes for lines"


@st.composite
def moves(draw, most=12):
    leaves = draw(st.booleans())
    segments = tuple(draw(st.lists(st.integers(1, most), min_size=1, max_size=1 if leaves else 3)))
    return LineMoves(segments, draw(st.integers(0, max(segments) - 1)), leaves)


def worst_loss(sums, moves):
    """The largest loss over all moves that are allowed, from the meaning of the sums."""
    adds, starts = matrix(sums.layout).T, np.cumsum([0, *moves.segments])
    seen = [add for add in adds if moves.leaves]
    for first, end in pairwise(starts.tolist()):
        seen += [adds[v] - adds[u] for u in range(first, end) for v in range(u + 1, min(u + moves.reach + 1, end))]
    ends = np.cumsum([0, *sums.layout.sizes])
    changes = np.abs(np.array(seen, dtype=np.int64).reshape(-1, ends[-1]))
    by_group = np.unique([changes[:, a:b].sum(axis=1) for a, b in pairwise(ends)], axis=1).T
    return max((sums.noise.loss_of(moved) for moved in by_group.tolist()), default=F(0))


@examples(60)
@given(moves(), st.sampled_from([F(1, 7), F(1), F(3)]), st.sampled_from(["ranges", "prefixes", "cells", ((0, 0),)]))
def test_every_scheme_spends_exactly_epsilon(moves, epsilon, workload):
    schemes = line_schemes(moves, workload)
    nothing_moves = not moves.leaves and moves.reach == 0
    assert bool(schemes) == (not nothing_moves)
    assert len({scheme.name for scheme in schemes}) == len(schemes)
    for scheme in schemes:
        sums = scheme.sums("a", None, epsilon)
        assert sums.loss(moves) == epsilon
        assert worst_loss(sums, moves) == epsilon


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("values", "theta", "fan_out"),
    [(64, 16, 16), (16, 4, 2), (200, 100, 16), (130, 64, 2), (256, 128, 16), (97, 10, 3)],
)
def test_the_repaired_budget_of_the_published_strategy_is_epsilon(values, theta, fan_out):
    moves = LineMoves((values,), theta, leaves=False)
    assert worst_loss(ordered_hierarchical(moves, fan_out).sums("a", None, F(1)), moves) == 1


@pytest.mark.parametrize(("values", "theta", "fan_out", "loss"), [(64, 16, 16, 1.774), (16, 4, 2, 1.367)])
def test_roots_that_nobody_pays_for_would_cost_what_the_printed_budget_does(values, theta, fan_out, loss):
    """Blowfish privacy, Theorem 7.2: between inner blocks both roots change too, with the noise of trees."""
    moves = LineMoves((values,), theta, leaves=False)
    right = ordered_hierarchical(moves, fan_out).sums("a", None, F(1))
    layout = replace(right.layout, cells=(theta, *right.layout.cells))
    scales = (right.noise.scales[0], *right.noise.scales)
    printed = LineSums("a", None, layout, GroupedNoise(layout.sizes, scales))
    assert float(worst_loss(printed, moves)) == pytest.approx(loss, abs=5e-4)
    assert worst_loss(printed, moves) == printed.loss(moves)


def test_a_scale_is_never_below_what_can_be_drawn():
    scheme = single_values(LineMoves((8,), 7, leaves=False))
    sums = scheme.sums("a", None, F(1000))
    assert sums.noise.scales == (F(1, 100), F(0))
    assert sums.loss(LineMoves((8,), 7, leaves=False)) == 200


@pytest.mark.parametrize(
    ("values", "theta", "most"),
    # box ramps + cells: 1.01 times what a search in the space of all matrices of this shape found
    [
        (512, 4, 37.3),
        (512, 16, 95.3),
        (512, 64, 228),
        (4357, 10, 69.5),
        (4357, 50, 204),
        (4357, 100, 316),
        (4357, 500, 624),
    ],
)
def test_ramps_and_cells_reach_their_best_known_error(values, theta, most):
    scheme = best_ramps(LineMoves((values,), theta, leaves=False), "ranges")
    assert 0.9 * most < scheme.error("ranges") <= 1.002 * most


@pytest.mark.parametrize(("values", "fan_out", "uniform", "most"), [(512, 8, 391, 318), (4096, 16, 868, 819)])
def test_under_plain_differential_privacy_trees_beat_the_uniform_tree(values, fan_out, uniform, most):
    moves = LineMoves((values,), values - 1, leaves=False)
    assert uniform_tree(moves, fan_out).error("ranges") == pytest.approx(uniform, rel=0.01)
    assert best_tree(moves, "ranges").error("ranges") <= most


def test_with_neighbouring_values_alone_the_ordered_strategy_is_best():
    moves = LineMoves((300,), 1, leaves=False)
    errors = {scheme.name: scheme.error("ranges") for scheme in line_schemes(moves, "ranges")}
    assert min(errors, key=errors.get) == "ordered"
    assert errors["ordered"] == pytest.approx(4 * 299 / 301, rel=1e-9)


def test_single_values_are_best_for_single_values():
    errors = {
        scheme.name: scheme.error("cells") for scheme in line_schemes(LineMoves((512,), 64, leaves=False), "cells")
    }
    assert min(errors, key=errors.get) == "single values"
    assert errors["single values"] == pytest.approx(8 * 511 / 512, rel=1e-9)


def test_listed_ranges_have_weights_of_their_own():
    moves = LineMoves((400,), 60, leaves=False)
    long = tuple((low, low + 200) for low in range(0, 200, 20))
    short = tuple((low, low + 20) for low in range(0, 380, 20))
    for workload, other in ((long, short), (short, long)):
        own = min(scheme.error(workload) for scheme in line_schemes(moves, workload))
        assert own < min(scheme.error(workload) for scheme in line_schemes(moves, other))


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("moves", "epsilon"),
    [
        (LineMoves((100,), 20, leaves=False), F(1)),
        (LineMoves((90,), 89, leaves=True), F(1, 2)),
        (LineMoves((40, 15, 40, 1), 39, leaves=False), F(2)),
    ],
)
def test_errors_are_predicted_within_three_percent(moves, epsilon):
    """What is measured has an error of its own, with so many releases of less than one percent."""
    truth = np.arange(moves.values) % 7
    below = np.cumsum(truth)
    for scheme in line_schemes(moves, "ranges"):
        sums = scheme.sums("a", None, epsilon)
        assert np.allclose(sums.running(sums.layout.entries(truth).astype(np.float64)), below)
        # running counts are linear in the entries, so those of each entry alone are enough
        each = np.array([sums.running(entry) for entry in np.eye(sums.noise.entries)])
        with noise.replayed(noise.Keystream(key=KEY)):
            wrong = np.pad(sums.noise.draw(20_000).astype(np.float64) @ each, ((0, 0), (1, 0)))
        pairs = (moves.values + 1) * (wrong**2).sum(axis=1) - wrong.sum(axis=1) ** 2
        ranges = pairs.mean() / (moves.values * (moves.values + 1) / 2)
        assert sums.mean_variance("ranges") == pytest.approx(ranges, rel=0.03), scheme.name
        assert sums.mean_variance("prefixes") == pytest.approx((wrong[:, 1:] ** 2).mean(), rel=0.03), scheme.name
        assert sums.mean_variance("cells") == pytest.approx((np.diff(wrong) ** 2).mean(), rel=0.03), scheme.name

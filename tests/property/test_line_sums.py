"""Measured sums on a line: what a person changes against all moves, least squares against plain linear algebra."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as tc
from brute_force import edges_of
from line_layouts import dense, layouts, matrix, noises
from parameters import examples
from tacit.errors import PlanError
from tacit.noise.grouped import GroupedNoise
from tacit.plan.measure.lines.layout import LineLayout
from tacit.plan.measure.lines.line_sums import LineSums
from tacit.plan.sensitivity.line_moves import LineMoves
from tacit.plan.sensitivity.steps import free_step


def changes(layout, moves):
    """What every move that is allowed changes in the entries."""
    sums, starts = matrix(layout).T, np.cumsum([0, *layout.segments])
    segment = np.searchsorted(starts, np.arange(layout.values), side="right")
    for u in range(layout.values):
        if moves.leaves:
            yield sums[u]
        for v in range(layout.values):
            if 0 < abs(u - v) <= moves.reach and segment[u] == segment[v]:
                yield sums[v] - sums[u]


@examples(50)
@given(layouts(), st.data())
def test_sums_are_what_they_say(layout, data):
    counts = np.array(data.draw(st.lists(st.integers(0, 9), min_size=layout.values, max_size=layout.values)))
    assert layout.entries(counts).tolist() == (matrix(layout) @ counts).tolist()
    assert sum(layout.sizes) == len(matrix(layout))
    assert len(layout.names) == len(layout.sizes)


@examples(300)
@given(layouts(most=14), st.data())
def test_the_loss_is_the_worst_over_all_moves(layout, data):
    moves = LineMoves(layout.segments, data.draw(st.integers(0, 16)), layout.leaves)
    noise = data.draw(noises(layout))
    seen = np.array(list(changes(layout, moves)), dtype=np.int64).reshape(-1, noise.entries)
    # of changes with the same sums by group one is enough: their losses are equal
    ends = np.cumsum([0, *layout.sizes])
    by_group = np.stack([np.abs(seen[:, a:b]).sum(axis=1) for a, b in pairwise(ends)], axis=1)
    _, first = np.unique(by_group, axis=0, return_index=True)
    worst = max((noise.loss(change) for change in seen[first].tolist()), default=Fraction(0))
    assert LineSums("a", None, layout, noise).loss(moves) == worst


def test_a_layout_for_others_hides_nothing():
    layout = LineLayout((6,), leaves=False, block=6, cells=(2, 1))
    sums = LineSums("a", None, layout, GroupedNoise(layout.sizes, (Fraction(4), Fraction(4), Fraction(0))))
    assert sums.loss(LineMoves((6,), 2, leaves=False)) == 1
    assert sums.loss(LineMoves((6,), 2, leaves=True)) == np.inf
    assert sums.loss(LineMoves((3, 3), 2, leaves=False)) == np.inf


@examples(50)
@given(layouts(), st.data())
def test_running_counts_are_those_of_dense_least_squares(layout, data):
    noise = data.draw(noises(layout))
    _, solve = dense(layout, noise.variances())
    entries = np.array(data.draw(st.lists(st.integers(-99, 99), min_size=noise.entries, max_size=noise.entries)))
    found = LineSums("a", None, layout, noise).running(entries.astype(np.float64))
    np.testing.assert_allclose(found, solve @ entries, rtol=1e-9, atol=1e-9 * (1 + np.abs(entries).max()))


@examples(50)
@given(layouts(), st.data())
def test_variances_are_those_of_dense_least_squares(layout, data):
    noise = data.draw(noises(layout))
    sums = LineSums("a", None, layout, noise)
    covariance, _ = dense(layout, noise.variances())
    counts = np.zeros((layout.values + 1,) * 2)
    counts[1:, 1:] = covariance
    own = np.diag(counts)
    runs = own[:, None] + own - 2 * counts
    low, high = np.triu_indices(layout.values)
    expected = runs[low, high + 1]
    close = {"rtol": 1e-7, "atol": 1e-9 * (1 + expected.max())}
    np.testing.assert_allclose(sums.run_variance(low, high), expected, **close)
    np.testing.assert_allclose(sums.mean_variance("ranges"), expected.mean(), **close)
    np.testing.assert_allclose(sums.mean_variance("prefixes"), own[1:].mean(), **close)
    np.testing.assert_allclose(sums.mean_variance("cells"), np.diag(runs, 1).mean(), **close)


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "layout",
    [
        LineLayout((7011,), leaves=False, block=3, cells=(1,), ramps=True),
        LineLayout((7011,), leaves=True, block=3, cells=(1,), anchors=True),
        LineLayout((5000, 5000), leaves=False, block=1, cells=(), anchors=True),
        LineLayout((7011,), leaves=False, block=3, cells=(3, 1)),  # no two blocks in the middle are alike
    ],
)
def test_means_over_long_lines_are_those_of_all_runs(layout):
    scales = [Fraction(3)] * (len(layout.sizes) - (not layout.leaves)) + [Fraction(0)] * (not layout.leaves)
    sums = LineSums("a", None, layout, GroupedNoise(layout.sizes, tuple(scales)))
    every = np.arange(layout.values)
    prefixes = sums.run_variance(np.zeros_like(every), every)
    assert sums.mean_variance("prefixes") == pytest.approx(prefixes.mean(), rel=1e-9)
    assert sums.mean_variance("cells") == pytest.approx(sums.run_variance(every, every).mean(), rel=1e-9)
    # there are 25 million ranges: every seventh start with every eleventh end
    low, high = np.meshgrid(every[::7], every[::11], indexing="ij")
    sample = sums.run_variance(low[low <= high], high[low <= high]).mean()
    assert sums.mean_variance("ranges") == pytest.approx(sample, rel=2e-3)


@pytest.mark.parametrize(
    ("secrets", "presence", "layout"),
    [
        (tc.secrets.within(3, "a"), "public", LineLayout((9,), leaves=False, block=4, cells=(2, 1), ramps=True)),
        (tc.secrets.within(3, "a"), "public", LineLayout((9,), leaves=False, block=2, cells=(1,), anchors=True)),
        (tc.secrets.partition("a", width=3), "public", LineLayout((3, 3, 3), leaves=False, block=3, cells=(2, 1))),
        (tc.secrets.everything(), "secret", LineLayout((9,), leaves=True, block=9, cells=(9, 3, 1), ramps=True)),
    ],
)
def test_the_step_that_is_stated_bounds_every_edge(secrets, presence, layout):
    policy = tc.Policy(tc.Domain({"a": tc.Integers(0, 8)}), secrets, presence=presence)
    scales = [Fraction(2)] * (len(layout.sizes) - (not layout.leaves)) + [Fraction(0)] * (not layout.leaves)
    sums = LineSums("a", None, layout, GroupedNoise(layout.sizes, tuple(scales)))
    step = free_step(sums, policy)

    def adds(record):
        return (
            np.zeros(sums.size(policy.domain))
            if record is tc.ABSENT
            else sums.added_by({"a": record[0]}, policy.domain)
        )

    seen = [adds(cover) - adds(hidden) for hidden, cover in edges_of(policy)]
    assert step.l1 == max(np.abs(change).sum() for change in seen)
    assert step.up >= max(change.max() for change in seen)
    assert step.down >= max((-change).max() for change in seen)
    assert step.square >= max((change**2).sum() for change in seen)


@pytest.mark.parametrize(
    "wrong",
    [
        {"segments": ()},
        {"segments": (3, 0)},
        {"segments": (3, 3), "leaves": True},
        {"cells": (2,)},
        {"cells": (4, 1)},
        {"cells": (1, 1)},
        {"cells": ()},
        {"block": 0},
    ],
)
def test_sums_that_determine_nothing_are_refused(wrong):
    with pytest.raises(PlanError):
        LineLayout(**{"segments": (6,), "leaves": False, "block": 3, "cells": (3, 1), **wrong})


def test_what_is_not_exact_needs_noise():
    layout = LineLayout((6,), leaves=False, block=3, cells=(3, 1))
    for scales in ((0, 1, 0), (1, 1, 1)):
        with pytest.raises(PlanError):
            LineSums("a", None, layout, GroupedNoise(layout.sizes, tuple(map(Fraction, scales))))

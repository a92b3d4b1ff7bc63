"""Measured sums on a line: what a person changes against all moves, least squares against plain linear algebra."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as tc
from brute_force import edges_of
from line_layouts import dense, line_sums, matrix, noise_of, sums_on
from parameters import examples
from tacit.errors import PlanError
from tacit.plan.sensitivity.moves import GridMoves
from tacit.plan.sensitivity.steps import free_step


def changes(sums, moves):
    """What every move that is allowed changes in the entries."""
    adds, starts = matrix(sums).T, np.cumsum([0, *sums.segments[0]])
    values = sums.sizes[0]
    segment = np.searchsorted(starts, np.arange(values), side="right")
    for u in range(values):
        if moves.may_enter_or_leave:
            yield adds[u]
        for v in range(values):
            if 0 < abs(u - v) <= moves.reach and segment[u] == segment[v]:
                yield adds[v] - adds[u]


@examples(50)
@given(line_sums(), st.data())
def test_sums_are_what_they_say(sums, data):
    values = sums.sizes[0]
    counts = np.array(data.draw(st.lists(st.integers(0, 9), min_size=values, max_size=values)))
    assert sums.of_counts(counts).tolist() == (matrix(sums) @ counts).tolist()
    assert sum(sums.noise.sizes) == len(matrix(sums))
    assert len(sums.group_names) == len(sums.noise.sizes)
    assert sums.running(sums.of_counts(counts)) == pytest.approx(np.cumsum(counts), abs=1e-6)


@examples(300)
@given(line_sums(most=14), st.data())
def test_the_loss_is_the_worst_over_all_moves(sums, data):
    moves = GridMoves.on_line(sums.segments[0], data.draw(st.integers(0, 16)), may_enter_or_leave=not sums.has_totals)
    seen = np.array(list(changes(sums, moves)), dtype=np.int64).reshape(-1, sums.noise.entries)
    # of changes with the same sums by group one is enough: their losses are equal
    ends = np.cumsum([0, *sums.noise.sizes])
    by_group = np.stack([np.abs(seen[:, a:b]).sum(axis=1) for a, b in pairwise(ends)], axis=1)
    _, first = np.unique(by_group, axis=0, return_index=True)
    worst = max((sums.noise.loss(change) for change in seen[first].tolist()), default=Fraction(0))
    assert sums.loss(moves) == worst


def test_sums_for_others_hide_nothing():
    sums = sums_on((6,), (1, 2), scales=(4, 4))
    assert sums.loss(GridMoves.on_line((6,), 2, may_enter_or_leave=False)) == 1
    assert sums.loss(GridMoves.on_line((6,), 2, may_enter_or_leave=True)) == np.inf
    assert sums.loss(GridMoves.on_line((3, 3), 2, may_enter_or_leave=False)) == np.inf


@examples(50)
@given(line_sums(), st.data())
def test_running_counts_are_those_of_dense_least_squares(sums, data):
    _, solve = dense(sums)
    many = sums.noise.entries
    entries = np.array(data.draw(st.lists(st.integers(-99, 99), min_size=many, max_size=many)))
    found = sums.running(entries.astype(np.float64))
    np.testing.assert_allclose(found, solve @ entries, rtol=1e-7, atol=1e-7 * (1 + np.abs(entries).max()))


@examples(50)
@given(line_sums())
def test_variances_are_those_of_dense_least_squares(sums):
    covariance, _ = dense(sums)
    values = sums.sizes[0]
    counts = np.zeros((values + 1,) * 2)
    counts[1:, 1:] = covariance
    own = np.diag(counts)
    runs = own[:, None] + own - 2 * counts
    low, high = np.triu_indices(values)
    expected = runs[low, high + 1]
    close = {"rtol": 1e-7, "atol": 1e-9 * (1 + max(sums.noise.variances()))}
    np.testing.assert_allclose(sums.run_variance(low, high), expected, **close)
    np.testing.assert_allclose(sums.mean_variance("ranges"), expected.mean(), **close)
    np.testing.assert_allclose(sums.mean_variance("prefixes"), own[1:].mean(), **close)
    np.testing.assert_allclose(sums.mean_variance("cells"), np.diag(runs, 1).mean(), **close)


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "sums",
    [
        sums_on((7011,), (1, 3), may_enter_or_leave=True),
        sums_on((7011,), (1, 9, 81), 1000),
        sums_on((5000, 5000), (1, 7)),
        sums_on((7011,), (1, 12), 300, may_enter_or_leave=True),
    ],
    ids=str,
)
def test_means_over_long_lines_are_those_of_all_runs(sums):
    every = np.arange(sums.sizes[0])
    prefixes = sums.run_variance(np.zeros_like(every), every)
    assert sums.mean_variance("prefixes") == pytest.approx(prefixes.mean(), rel=1e-9)
    assert sums.mean_variance("cells") == pytest.approx(sums.run_variance(every, every).mean(), rel=1e-9)
    # of 25 million ranges every 13th start with every 11th end, which meet the ends of cells no oftener than others
    low, high = np.meshgrid(every[::13], every[::11], indexing="ij")
    sample = sums.run_variance(low[low <= high], high[low <= high]).mean()
    assert sums.mean_variance("ranges") == pytest.approx(sample, rel=2e-3)


@pytest.mark.parametrize(
    ("secrets", "presence", "sums"),
    [
        (tc.secrets.within(3, "a"), "public", sums_on((9,), (1, 2), 4)),
        (tc.secrets.within(3, "a"), "public", sums_on((9,), (1,), 2)),
        (tc.secrets.partition("a", width=3), "public", sums_on((3, 3, 3), (1, 2))),
        (tc.secrets.everything(), "secret", sums_on((9,), (1, 3, 9), 9, may_enter_or_leave=True)),
    ],
)
def test_the_step_that_is_stated_bounds_every_edge(secrets, presence, sums):
    policy = tc.Policy(tc.Domain({"a": tc.Integers(0, 8)}), secrets, presence=presence)
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


def test_what_is_not_exact_needs_noise():
    sums = sums_on((6,), (1, 3))
    for scales in ((0, 1, 0), (1, 1, 1)):
        with pytest.raises(PlanError):
            replace(sums, noise=noise_of(sums, scales))

"""Sums of cells in blocks with exact totals, against least squares and plain addition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.plan.sums import blocks_of, cells_in_sum, centred


@st.composite
def blocked(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    groups = np.repeat(np.arange(len(sizes)), sizes).astype(np.int64)
    low = draw(st.integers(0, len(groups) - 1))
    high = draw(st.integers(low, len(groups) - 1))
    return groups, low, high


@given(case=blocked())
def test_the_variance_of_a_sum_is_that_of_least_squares(case):
    groups, low, high = case
    # least squares with exact totals projects the noise on vectors whose groups add up to zero
    project = np.eye(len(groups)) - (groups[:, None] == groups) / np.bincount(groups)[groups]
    weights = np.zeros(len(groups))
    weights[low : high + 1] = 1
    slow = weights @ project @ project.T @ weights
    quick = cells_in_sum(np.array([low]), np.array([high]), blocks_of(groups))
    assert quick == pytest.approx([slow])


@settings(max_examples=300)
@given(case=blocked(), data=st.data())
def test_centred_sums_carry_exactly_the_noise_that_is_counted(case, data):
    groups, low, high = case
    truth = np.array(data.draw(st.lists(st.integers(0, 50), min_size=len(groups), max_size=len(groups))))
    blocks = blocks_of(groups)
    ends = np.array([low]), np.array([high])
    value, plus, minus = centred(*ends, blocks, truth + 1.0, truth)  # every cell is one too high
    assert value[0] - truth[low : high + 1].sum() == plus[0] - minus[0]
    for group in set(groups.tolist()):
        inside = int((groups[low : high + 1] == group).sum())
        assert plus[0] + minus[0] <= len(groups)
        if low == high and inside == np.bincount(groups)[group]:
            assert plus[0] == minus[0] == 0  # a whole block is exact
    pieces = [(int((groups[low : high + 1] == g).sum()), int((groups == g).sum())) for g in set(groups.tolist())]
    assert plus[0] + minus[0] == sum(min(k, n - k) for k, n in pieces if k)


def test_groups_with_gaps_are_no_blocks():
    assert blocks_of(np.array([0, 1, 0])) is None

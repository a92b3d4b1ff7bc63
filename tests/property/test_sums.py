"""Sums of cells in blocks with exact totals, against least squares."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.plan.error_laws import blocks_of, cells_in_sum


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


def test_groups_with_gaps_are_no_blocks():
    assert blocks_of(np.array([0, 1, 0])) is None

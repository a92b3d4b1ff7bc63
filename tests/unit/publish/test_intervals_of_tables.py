"""Intervals of masked counts: the law of the noise, levels on a dozen settings, sums, sets and several columns."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

import tacit as tc
from tacit.publish.methods.criterion import Channel, Criterion
from tacit.publish.methods.intervals import (
    column_sums,
    combinations,
    interval_of,
    noise_nodes,
    one_count,
    sums,
)
from tacit.publish.methods.masked import PARTS, Masked
from tacit.publish.methods.masked_columns import FINE, MaskedColumns

HALF, THIRD = Fraction(1, 2), Fraction(3, 10)
ASKED = Criterion(THIRD, THIRD)
LEVELS = np.array([0.9, 0.95, 0.99, 0.999])
DRAWS = 1000
# four and a half deviations: of a thousand levels that are right, one in 300 runs is accused
ACCUSED = LEVELS - 4.5 * np.sqrt(LEVELS * (1 - LEVELS) / DRAWS)


@pytest.fixture(autouse=True)
def _replay() -> Iterator[None]:
    with tc.noise.replayed(tc.noise.Keystream(key=b"j" * 32)):
        yield


def drawn(method: Masked, counts: Any, times: int = DRAWS) -> np.ndarray:
    every = np.tile(np.asarray(counts), (times, 1))
    return method.estimates(method.draw(every), every.sum(axis=1))


def held(chances: np.ndarray) -> np.ndarray:
    """Return how often each level holds the count that chances are of, as intervals use them."""
    return (chances.reshape(-1, 1) >= 0.9 * (1 - LEVELS)).mean(axis=0)


# ---- the law of the noise -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "groups", "cells"), [(2, 1, 1), (3, 1, 1), (10, 4, 1), (12, 2, 5)])
def test_nodes_have_the_law_of_the_noise(values: int, groups: int, cells: int) -> None:
    method = Masked(Channel(HALF, values), ASKED)
    place, weight = noise_nodes(method, groups, cells)
    one = method.noise.variance() * (1 if values == 2 else cells * (1 - cells / values))
    assert weight.sum() == pytest.approx(1, abs=1e-9)
    assert (place * weight).sum() == pytest.approx(0, abs=1e-6)
    assert (place**2 * weight).sum() == pytest.approx(groups * one, rel=0.03)
    if values == 2:  # whole numbers: below -1.5 lies what the law says
        far = np.arange(-60, -1)
        assert weight[place < -1.5].sum() == pytest.approx(method.noise.pmf(far).sum(), rel=0.1)


# ---- single counts --------------------------------------------------------------------------------------------------

SETTINGS: dict[str, tuple[list[int], int, str, str]] = {  # counts, which value, retention, lambda and delta
    "two values": ([60, 40], 1, "0.5", "0.3"),
    "two, one of them rare": ([900, 12], 1, "0.8", "0.2"),
    "ten equal values": ([1000] * 10, 3, "0.5", "0.3"),
    "ten equal values of ten": ([10] * 10, 3, "0.5", "0.3"),
    "three values": ([500, 300, 200], 2, "0.5", "0.3"),
    "the largest of three": ([83, 45, 23], 0, "0.5", "0.3"),
    "beside one that outweighs": ([703, 81, 6], 1, "0.8", "0.2"),
    "far beside one that outweighs": ([8904, 1258, 1145, 1145, 1146], 1, "0.3", "0.5"),
    "the one that outweighs": ([2000, *[100] * 9], 0, "0.95", "0.3"),
    "few beside it": ([48, 1, 1, 1, 1, 1], 1, "0.3", "0.5"),
    "few others": ([88, 4, 3, 2, 1], 0, "0.5", "0.3"),
    "nobody": ([40, 30, 0, 5], 2, "0.5", "0.3"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_single_counts_are_held_as_often_as_is_said(name: str) -> None:
    counts, at, kept, promise = SETTINGS[name]
    method = Masked(Channel(Fraction(kept), len(counts)), Criterion(Fraction(promise), Fraction(promise)))
    shown, sizes = drawn(method, counts), np.full(DRAWS, sum(counts))
    chances = one_count(method, shown, sizes, at, np.full((DRAWS, 1), float(counts[at])))
    assert (held(chances) >= ACCUSED).all()


def test_widths_taken_from_estimates_are_found() -> None:
    """The normal interval of an estimate, with the width of the mask that the estimate itself would have."""
    method = Masked(Channel(HALF, 10), ASKED)
    shown, sizes = drawn(method, [1000] * 10), np.full(DRAWS, 10_000)
    reach = np.sqrt(method.estimated_variances(shown, sizes))[:, :1] * ndtri((1 + LEVELS) / 2)
    normal = (abs(shown[:, :1] - 1000) <= reach).mean(axis=0)
    assert (normal < ACCUSED)[1:].all()
    # what is chosen instead is not wide for nothing: exact for a known layout, less than half longer for an unknown one
    ends = [interval_of(method, shown[[row]], sizes[[row]], [0], 0.95) for row in range(40)]
    exact = 2 * 1.96 * method.kappa / (1 - (1.96 * method.kappa) ** 2)
    assert np.median([(high - low) / shown[row, 0] for row, (low, high) in enumerate(ends)]) < 1.5 * exact


# ---- sums -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "groups", "columns"),
    [
        ([100] * 10, 1, [0, 1, 2, 3]),
        ([60, 40], 5, [0]),
        ([30, 20, 10], 8, [1]),
        ([300, 30, 20, 10], 30, [1, 2]),
        ([20] * 14, 40, [3]),
    ],
)
def test_sums_are_held_as_often_as_is_said(counts: list[int], groups: int, columns: list[int]) -> None:
    method, sizes = Masked(Channel(HALF, len(counts)), ASKED), np.full(groups, sum(counts))
    shown = drawn(method, counts, DRAWS * groups).reshape(DRAWS, groups, -1)
    true = np.full((DRAWS, 1), float(groups * sum(counts[at] for at in columns)))
    assert (held(sums(method, shown, sizes, columns, true)) >= ACCUSED).all()


def test_few_counts_are_added_by_their_own_intervals() -> None:
    method, sizes = Masked(Channel(HALF, 3), ASKED), np.array([100, 60])
    shown = np.array([[50.0, 30.0, 20.0], [30.0, 20.0, 10.0]])
    both = interval_of(method, shown, sizes, [1], 0.9)
    each = [interval_of(method, shown[[row]], sizes[[row]], [1], 0.95) for row in range(2)]
    assert both == pytest.approx((each[0][0] + each[1][0], each[0][1] + each[1][1]))


def test_what_is_left_says_the_same() -> None:
    method, sizes = Masked(Channel(HALF, 3), ASKED), np.array([100])
    shown = np.array([[50.0, 30.0, 20.0]])
    low, high = interval_of(method, shown, sizes, [0], 0.9)
    assert interval_of(method, shown, sizes, [1, 2], 0.9) == (100 - high, 100 - low)
    assert interval_of(method, shown, sizes, [0, 1, 2], 0.9) == (100, 100)


# ---- several columns ------------------------------------------------------------------------------------------------

COLUMNS: dict[str, tuple[np.ndarray, Any, int]] = {  # the table, which combinations, groups
    "a value": (np.outer([300, 900, 1800], np.full(5, 1)) // 5, np.s_[1, :], 1),
    "a combination": (np.full((4, 6), 130), np.s_[2, 3], 1),
    "a combination of three": (np.full((2, 3, 4), 40), np.s_[1, 1, 1], 1),
    "one outweighs": (np.array([[1400, 50, 50, 50], [50, 50, 50, 50], [100, 50, 50, 50]]), np.s_[1, :], 1),
    "a few people": (np.array([[10, 6, 3], [2, 2, 1], [5, 1, 5]]), np.s_[:, 0], 1),
    "many groups": (np.array([[30, 20], [10, 40]]), np.s_[0, :], 20),
    "many groups where one outweighs": (np.array([[300, 60, 20, 20], [150, 20, 5, 5]]), np.s_[1, 1], 20),
    "rare in both columns": (np.array([[2600, 150, 40], [160, 190, 20], [50, 30, 10]]), np.s_[1, 1], 6),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_counts_of_columns_and_combinations_are_held(name: str) -> None:
    table, where, groups = COLUMNS[name]
    method = MaskedColumns(Channel(HALF, table.size, table.shape), ASKED)
    columns = np.arange(table.size).reshape(table.shape)[where].ravel().tolist()
    true = np.full((DRAWS, 1), float(table[where].sum() * groups))
    shown, sizes = drawn(method, table.reshape(1, -1), DRAWS * groups), np.full(groups, table.sum())
    if groups == 1:
        chances = combinations(method, shown, np.repeat(sizes, DRAWS), columns, true)
    else:
        chances = column_sums(method, shown.reshape(DRAWS, groups, -1), sizes, columns, true)
    assert (held(chances) >= ACCUSED).all()


@pytest.mark.parametrize("name", COLUMNS)
def test_variances_of_sums_are_what_is_measured(name: str) -> None:
    """For values, combinations and sets that lie across both columns, whatever the layout of masks."""
    table, where, _ = COLUMNS[name]
    method = MaskedColumns(Channel(HALF, table.size, table.shape), ASKED)
    places, counts = np.arange(table.size).reshape(table.shape), table.reshape(1, -1).astype(np.float64)
    shown = drawn(method, table.reshape(1, -1), 4 * DRAWS)
    for columns in (places[where].ravel().tolist(), places.ravel()[:: table.size // 3].tolist()):
        predicted = np.sqrt(method.sum_variances(counts, np.array([table.sum()]), columns))[0]
        assert shown[:, columns].sum(axis=1).std() == pytest.approx(predicted, rel=0.1)


def test_covariances_of_masks_are_what_is_measured() -> None:
    for counts in ([60, 40], [50, 40, 30, 20], [500, 60, 40, 90], [300, 2, 1, 0, 1]):
        method, every = Masked(Channel(Fraction(95, 100), len(counts)), ASKED), np.tile(counts, (4 * DRAWS, 1))
        measured = np.cov(method.masked(every, every.sum(axis=1)).T / PARTS)
        predicted = method.mask_covariances(np.array([counts], np.float64), np.array([sum(counts)]))[0]
        scale = np.sqrt(np.outer(np.diag(predicted), np.diag(predicted)))
        assert (abs(measured - predicted) < 0.12 * scale).all()


def test_sums_over_many_groups_have_intervals_that_say_something() -> None:
    """A column of two values and one that is outweighed: 0 to everybody before."""
    table = np.array([[60, 120, 20, 80, 100, 20], [150, 30, 2, 4, 10, 4]])
    method, sizes = MaskedColumns(Channel(HALF, 12, (2, 6)), ASKED), np.full(32, table.sum())
    shown = drawn(method, table.reshape(1, -1), 32)
    for columns in ([5], [0], [6], list(range(6)), [1, 7]):
        deviation = np.sqrt(method.sum_variances(table.reshape(1, -1).astype(float), sizes[:1], columns).sum() * 32)
        low, high = interval_of(method, shown, sizes, columns, 0.95)
        assert low <= 32 * table.ravel()[columns].sum() <= high
        assert high - low < 2.5 * 2 * 1.96 * deviation


def test_the_deviation_of_a_column_is_what_is_measured() -> None:
    table, where, _ = COLUMNS["a value"]
    method = MaskedColumns(Channel(HALF, table.size, table.shape), ASKED)
    columns = np.arange(table.size).reshape(table.shape)[where].ravel().tolist()
    shown = drawn(method, table.reshape(1, -1))
    predicted = np.median([method.sum_variance(shown[[row]], np.array([table.sum()]), columns) for row in range(200)])
    measured = shown[:, columns].sum(axis=1).std()
    assert measured < np.sqrt(predicted) * 1.1
    assert np.sqrt(predicted) < 2 * measured


# ---- through the door -----------------------------------------------------------------------------------------------


def test_an_interval_contains_the_estimate_as_it_is_shown() -> None:
    """A mask that is wider than its count shows less than nobody, or more than everybody."""
    rows = pd.DataFrame({"s": ["x"] * 580 + ["y"] * 15 + ["z"] * 5, "t": ["u", "v", "v"] * 200})
    one = {"public": [], "lam": 0.3, "delta": 0.3, "retention": 0.5, "method": "masked"}
    outside = 0
    for more, low_value, high_value in (
        ({"sensitive": "s", "values": ["x", "y", "z"]}, "y", ["x", "z"]),
        (
            {"sensitive": ["s", "t"], "values": [["x", "y", "z"], ["u", "v"]]},
            [("y", "u"), ("y", "v")],
            [("x", "u"), ("x", "v")],
        ),
    ):
        for _ in range(8):
            table = tc.publish.reconstruction_private(rows, **one, **more)
            for value in (low_value, high_value):
                found = tc.reconstruct(table, None, value)
                low, high = found.interval()
                assert low <= found.count <= high
                assert (low, high) == (min(max(low, 0), found.count), max(min(high, 600), found.count))
                outside += not 0 <= found.count <= 600
    assert outside > 8


def test_intervals_grow_with_the_level_and_stay_within_what_is_possible() -> None:
    rows = pd.DataFrame({"g": ["a"] * 90 + ["b"] * 30, "s": ["x", "y", "z"] * 40, "t": ["u", "v"] * 60})
    one = {"public": ["g"], "lam": 0.3, "delta": 0.3, "retention": 0.5, "method": "masked"}
    for more, values in (
        ({"sensitive": "s", "values": ["x", "y", "z"]}, ["x", ["x", "y"]]),
        ({"sensitive": ["s", "t"], "values": [["x", "y", "z"], ["u", "v"]]}, [("x", "u"), [("x", "u"), ("x", "v")]]),
    ):
        table = tc.publish.reconstruction_private(rows, **one, **more)
        for value in values:
            for where in (None, {"g": "b"}):
                found = tc.reconstruct(table, where, value)
                ends = [found.interval(level) for level in (0.5, 0.9, 0.99)]
                assert all(outer[0] <= inner[0] for inner, outer in pairwise(ends))
                assert all(outer[1] >= inner[1] for inner, outer in pairwise(ends))
                assert all(min(0, found.count) <= low <= found.count <= high for low, high in ends)
                assert all(high <= max(found.size, found.count) for _, high in ends)
                assert found.frequency_interval(0.9) == tuple(end / found.size for end in ends[1])
                assert found == tc.reconstruct(table, where, value)
    assert {Fraction(1, PARTS), Fraction(1, FINE)} == {Fraction(1, 64), table.method.unit}

"""Post-processing against slow, general solvers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

import tacit as tc
from tacit.release.estimate import projections
from tacit.release.estimate.projections import (
    agreement,
    check_agreement,
    following,
    increasing,
    nearest,
    nonnegative,
    shared_names,
    with_totals,
)

numbers = st.floats(-20, 20).map(lambda x: round(x, 3))


@given(values=st.lists(numbers, min_size=1, max_size=8), data=st.data())
def test_totals_are_met_with_the_least_change(values, data):
    groups = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(values), max_size=len(values))))
    groups = np.unique(groups, return_inverse=True)[1]
    totals = np.array([data.draw(numbers) for _ in range(groups.max() + 1)])
    variances = np.array([data.draw(st.sampled_from([0.5, 1.0, 4.0])) for _ in values])
    fitted = with_totals(np.array(values), groups, totals, variances)
    assert np.bincount(groups, fitted) == pytest.approx(totals)
    # weighted least squares with a linear constraint: change / variance is the same within each group
    change = (fitted - np.array(values)) / variances
    for group in range(groups.max() + 1):
        assert np.ptp(change[groups == group]) == pytest.approx(0, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(values=st.lists(numbers, min_size=1, max_size=7), data=st.data())
def test_nonnegative_is_the_projection_on_each_simplex(values, data):
    groups = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(values), max_size=len(values))))
    groups = np.unique(groups, return_inverse=True)[1]
    totals = np.array([abs(data.draw(numbers)) for _ in range(groups.max() + 1)])
    fitted = nonnegative(np.array(values), groups, totals)
    assert (fitted >= 0).all()
    assert np.bincount(groups, fitted) == pytest.approx(totals, abs=1e-9)
    for group in range(len(totals)):
        # the optimality conditions: positive values were lowered by one common amount, zeros lie below it
        before, after = np.array(values)[groups == group], fitted[groups == group]
        lowered = (before - after)[after > 0]
        if lowered.size:
            assert np.ptp(lowered) == pytest.approx(0, abs=1e-9)
            assert (before[after == 0] <= lowered[0] + 1e-9).all()


def test_nonnegative_without_totals_only_clips():
    assert nonnegative(np.array([-1.0, 2.0])).tolist() == [0.0, 2.0]


def test_cumulative_counts_never_fall_and_end_at_the_exact_ones():
    noisy = np.array([3.0, 1.0, -2.0, 9.0, 7.0, 30.0, 22.0])
    exact = np.array([False, False, False, True, False, False, True])
    fitted = increasing(noisy, exact, np.array([5.0, 20.0]))
    assert (np.diff(fitted) >= 0).all()
    assert fitted[3] == 5.0
    assert fitted[-1] == 20.0
    assert fitted.min() >= 0


@pytest.mark.parametrize("exact", [[], [4], [8], [2, 8]], ids=str)
def test_counts_that_stayed_follow_those_that_were_moved_as_an_autoregression_does(exact):
    alike, values = 0.8, np.array([7.0, -5.0, 30.0, 31.0, 38.0, 50.0, 44.0, 61.0, 70.0])
    fixed = np.isin(np.arange(9), exact)
    known = values[fixed]
    rising = increasing(values, fixed, known)
    settled = (rising != values) | fixed
    assert settled.any()
    assert not settled.all()
    errors = np.abs(np.subtract.outer(range(-1, 9), range(-1, 9)))
    covariance = alike**errors  # of the count before the first value too, which is zero
    seen, left = np.append(True, settled), np.append(False, ~settled)
    expected = covariance[np.ix_(left, seen)] @ np.linalg.solve(
        covariance[np.ix_(seen, seen)], np.append(0.0, values - rising)[seen]
    )
    found = following(values, rising, fixed, alike)
    np.testing.assert_allclose(found[~settled], values[~settled] - expected)
    assert (found[settled] == rising[settled]).all()
    assert (following(values, rising, fixed, 0.0) == rising).all()


def test_a_huge_group_does_not_drown_a_small_one():
    values = np.array([2.0**53, -3.0, 1.0, 2.5, -4.0])
    fitted = nonnegative(values, np.array([0, 0, 1, 1, 1]), np.array([2.0**53, 3.0]))
    assert fitted.tolist() == [2.0**53, 0.0, 0.75, 2.25, 0.0]


SIZES = {"a": 2, "b": 3, "c": 2}


def flat(tables):
    return np.concatenate([values.reshape(-1) for values in tables.values()])


def fitted(tables, groups=None, truth=None, *, variances=None, positive=False):
    """Return the nearest agreeing tables by name."""
    sizes = [values.shape for values in tables.values()]
    wanted = agreement(list(tables), sizes, groups)
    if groups is not None:
        wanted.totals[wanted.shared < 0] = (wanted.sums @ flat(truth))[wanted.shared < 0]
    start = flat(tables)
    found = nearest(start, np.ones(len(start)) if variances is None else variances, wanted, positive=positive)
    parts = np.split(found, np.cumsum([np.prod(size) for size in sizes])[:-1])
    return {names: part.reshape(size) for names, part, size in zip(tables, parts, sizes, strict=True)}


def slow(tables, *, heavy=(), truth=None, variances=None, positive=False):
    """Least squares over a joint table (not negative, if asked), with exact sums as heavy rows."""
    names = list(SIZES)
    cells = list(np.ndindex(*SIZES.values()))
    rows, wanted = [], []
    weights = np.ones(len(flat(tables))) if variances is None else 1 / np.sqrt(variances)
    pairs = [(n, cell) for n, values in tables.items() for cell in np.ndindex(*values.shape)]
    for weight, (group, cell), value in zip(weights, pairs, flat(tables), strict=True):
        rows.append([weight * all(c[names.index(n)] == v for n, v in zip(group, cell, strict=True)) for c in cells])
        wanted.append(weight * value)
    for group in heavy:
        table = truth.sum(axis=tuple(i for i, n in enumerate(names) if n not in group))
        for cell in np.ndindex(*table.shape):
            rows.append([1e5 * all(c[names.index(n)] == v for n, v in zip(group, cell, strict=True)) for c in cells])
            wanted.append(1e5 * table[cell])
    matrix, wanted = np.array(rows, dtype=float), np.array(wanted)
    joint = nnls(matrix, wanted)[0] if positive else np.linalg.lstsq(matrix, wanted, rcond=None)[0]
    joint = joint.reshape(*SIZES.values())
    return {group: joint.sum(axis=tuple(i for i, n in enumerate(names) if n not in group)) for group in tables}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("heavy", [None, (), ("b",)])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("uneven", [False, True])
def test_agreeing_tables_are_the_least_squares_ones(heavy, positive, uneven):
    rng = np.random.default_rng(7)
    joint = rng.poisson(1.5, tuple(SIZES.values())).astype(float)
    truth = {("a", "b"): joint.sum(2), ("b", "c"): joint.sum(0)}
    for _ in range(20):
        tables = {names: values + rng.normal(0, 4, values.shape) for names, values in truth.items()}
        groups = None
        if heavy is not None:
            places = {names: np.indices(values.shape) for names, values in tables.items()}
            groups = [
                at[names.index("b")].reshape(-1) if heavy else np.zeros(at[0].size, dtype=np.int64)
                for names, at in places.items()
            ]
        variances = rng.choice([0.5, 1.0, 4.0], len(flat(tables))) if uneven else None
        options = {"variances": variances, "positive": positive}
        quick = fitted(tables, groups, truth, **options)
        reference = slow(tables, heavy=() if heavy is None else (heavy,), truth=joint, **options)
        for names in tables:
            assert quick[names] == pytest.approx(reference[names], abs=1e-5)
        assert quick[("a", "b")].sum(0) == pytest.approx(quick[("b", "c")].sum(1), abs=1e-9)
        assert not positive or flat(quick).min() >= 0


def test_cells_without_variance_stay_and_the_others_move_around_them():
    tables = {("a", "b"): np.array([[4.0, 1.0, 0.0], [2.0, 2.0, 5.0]]), ("b",): np.array([7.0, 3.0, 3.0])}
    variances = np.array([0.0, 1, 1, 1, 1, 1, 1, 1, 1])
    quick = fitted(tables, variances=variances, positive=True)
    assert quick[("a", "b")][0, 0] == 4.0
    assert quick[("a", "b")].sum(0) == pytest.approx(quick[("b",)], abs=1e-9)


SKEWED = {
    "few people": lambda rng, size: rng.integers(0, size, 6),
    "one huge cell": lambda rng, size: np.where(rng.random(100_000) < 1e-4, rng.integers(0, size, 100_000), 0),
    "heavy tails": lambda rng, size: rng.zipf(1.5, 3000) % size,
    "even": lambda rng, size: rng.integers(0, size, 5000),
}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("people", SKEWED)
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("sizes", "ways"), [((12, 9, 2, 5), 2), ((2,) * 8, 3)])
def test_any_tables_can_be_made_to_agree_without_negative_cells(people, exact, sizes, ways):
    """Agreement within 1e-9, no cell below zero, exact totals exact, and never further away than the noisy tables."""
    rng = np.random.default_rng(11)
    columns = [SKEWED[people](rng, size) for size in sizes]
    truth = {}
    for names in combinations(range(len(sizes)), ways):
        shape = [sizes[name] for name in names]
        cells = np.ravel_multi_index([columns[name] for name in names], shape)
        truth[tuple(map(str, names))] = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape).astype(float)
    tables = {names: values + np.round(rng.laplace(0, 12, values.shape)) for names, values in truth.items()}
    groups = [np.zeros(values.size, dtype=np.int64) for values in truth.values()] if exact else None
    both, linear = (fitted(tables, groups, truth, positive=positive) for positive in (True, False))
    assert flat(both).min() >= 0
    for one, other in combinations(both, 2):
        shared = set(one) & set(other)
        sums = [both[n].sum(axis=tuple(i for i, name in enumerate(n) if name not in shared)) for n in (one, other)]
        assert sums[0] == pytest.approx(sums[1], abs=1e-9 * max(1, len(columns[0]) / 1000))
    if exact:
        assert all(values.sum() == pytest.approx(len(columns[0]), abs=1e-9, rel=1e-12) for values in both.values())
    errors = [np.sum((flat(found) - flat(truth)) ** 2) for found in (both, linear, tables)]
    assert errors[0] <= errors[1] * (1 + 1e-9) <= errors[2] * (1 + 1e-9) ** 2


def test_tables_that_nearly_agree_are_settled_exactly(monkeypatch):
    """However few steps there are, what comes out agrees and is not negative."""
    monkeypatch.setattr(projections, "FEWEST_STEPS", 8)
    monkeypatch.setattr(projections, "_WORK", 0)
    rng = np.random.default_rng(2)
    truth = {("a", "b"): rng.poisson(0.3, (2, 3)).astype(float)}
    truth[("b", "c")] = np.stack([truth[("a", "b")].sum(0), np.zeros(3)], axis=1)
    for groups in (None, [np.zeros(6, dtype=np.int64)] * 2):
        for _ in range(20):
            tables = {names: values + rng.normal(0, 5, values.shape) for names, values in truth.items()}
            quick = fitted(tables, groups, truth, positive=True)
            assert flat(quick).min() >= 0
            assert quick[("a", "b")].sum(0) == pytest.approx(quick[("b", "c")].sum(1), abs=0.05)


# ---- what is too much is refused before anything is charged ---------------------------------------------------------


def wide(flags: int, people: int = 3) -> tuple[tc.Policy, pd.DataFrame]:
    names = [f"f{number}" for number in range(flags)]
    policy = tc.Policy(tc.Domain({name: tc.Flag() for name in names}), tc.secrets.attributes(names[0]))
    return policy, pd.DataFrame({name: [True] * people for name in names})


def test_too_many_tables_to_agree_are_refused_and_nothing_is_charged(monkeypatch):
    monkeypatch.setattr(projections, "MOST_TABLES", 40)
    policy, rows = wide(10)  # 45 pairs of them
    opened = tc.Session(policy, rows, budget=1)
    with pytest.raises(tc.PlanError, match="consistent is for 40 tables at most, and these are 45"):
        opened.release(tc.marginals(*policy.domain, ways=2), 1, consistent=True)
    assert opened.remaining == 1


def test_tables_that_share_too_many_sums_are_refused():
    tables = list(combinations("abcdefghij", 5))
    with pytest.raises(tc.PlanError, match="consistent is for sums of 32,000,000 cells in all at most"):
        check_agreement(tables, [7900] * len(tables))
    with pytest.raises(tc.PlanError, match="consistent is for tables of 2,000,000 cells at most"):
        check_agreement(tables, [8000] * len(tables))
    check_agreement(tables, [64] * len(tables))


@pytest.mark.parametrize("ways", [1, 2, 3])
def test_what_is_refused_by_is_what_is_laid_out(ways):
    names = tuple("abcde")
    tables = list(combinations(names, ways))
    sizes = [[2 + names.index(name) for name in table] for table in tables]
    cells = [int(np.prod(size)) for size in sizes]
    laid_out = agreement(tables, sizes, None).sums.nnz
    shared = [set(one) for one in shared_names(tuple(tables))]
    each = [many for one in shared for table, many in zip(tables, cells, strict=True) if one <= set(table)]
    assert laid_out == sum(each)

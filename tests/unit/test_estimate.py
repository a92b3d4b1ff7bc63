"""Post-processing against slow, general solvers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.release.estimate import consistent, consistent_and_nonnegative, increasing, nonnegative, with_totals

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


def slow_consistent(tables, sizes, exact):
    """Least squares over a joint table, with exact marginals as heavy rows."""
    order = list(sizes)
    cells = [np.array(cell) for cell in np.ndindex(*sizes.values())]
    rows, wanted = [], []
    for weight, group in ((1.0, tables), (1e4, exact)):
        for names, values in group.items():
            for cell in np.ndindex(*values.shape):
                rows.append(
                    [weight * all(c[order.index(n)] == v for n, v in zip(names, cell, strict=True)) for c in cells]
                )
                wanted.append(weight * values[cell])
    joint = np.linalg.lstsq(np.array(rows, dtype=float), np.array(wanted), rcond=None)[0].reshape(*sizes.values())
    return {names: joint.sum(axis=tuple(i for i, n in enumerate(order) if n not in names)) for names in tables}


@pytest.mark.parametrize("exact_names", [(), ((),), (("a",),)])
def test_consistent_tables_are_the_least_squares_ones(exact_names):
    rng = np.random.default_rng(7)
    sizes = {"a": 2, "b": 3, "c": 2}
    tables = {names: rng.normal(10, 3, [sizes[n] for n in names]) for names in [("a", "b"), ("b", "c"), ("a", "c")]}
    exact = {names: rng.normal(30, 1, [sizes[n] for n in names]) for names in exact_names}
    quick, slow = consistent(tables, sizes, exact), slow_consistent(tables, sizes, exact)
    for names in tables:
        assert quick[names] == pytest.approx(slow[names], abs=1e-4)
    assert quick[("a", "b")].sum(1) == pytest.approx(quick[("a", "c")].sum(1))


def test_consistent_and_nonnegative_tables_come_from_one_joint_table():
    rng = np.random.default_rng(3)
    sizes = {"a": 3, "b": 4, "c": 2}
    joint = rng.poisson(2, (3, 4, 2)).astype(float)
    tables = {
        ("a", "b"): joint.sum(2) + rng.normal(0, 3, (3, 4)),
        ("b", "c"): joint.sum(0) + rng.normal(0, 3, (4, 2)),
    }
    exact = {(): np.array(joint.sum())}
    fitted = consistent_and_nonnegative(tables, sizes, exact)
    assert all((table >= 0).all() for table in fitted.values())
    assert fitted[("a", "b")].sum(0) == pytest.approx(fitted[("b", "c")].sum(1))
    assert fitted[("a", "b")].sum() == pytest.approx(joint.sum())
    raw = sum(np.sum((tables[n] - t) ** 2) for n, t in (((("a", "b")), joint.sum(2)), (("b", "c"), joint.sum(0))))
    now = sum(np.sum((fitted[n] - t) ** 2) for n, t in (((("a", "b")), joint.sum(2)), (("b", "c"), joint.sum(0))))
    assert now < raw

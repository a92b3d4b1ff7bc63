"""Released rectangles: errors are as predicted, and intervals hold."""

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit import noise
from tacit.plan.measure.workload import rectangle_variances
from tacit.plan.plans.linear import blur

REPEATS = 300
KEY = b"rectangles on grids, thirty-two "


def people(rows: int, columns: int, many: int) -> pd.DataFrame:
    at = np.arange(many)
    return pd.DataFrame({"row": at * 7 % rows, "column": at * at % columns})


CASES = {
    "near": (tc.Grid(20, 13), tc.secrets.within(3, "place"), {}),
    "blocks": (tc.Grid(12, 10), tc.secrets.partition("place", width=[6, 4]), {}),
    "everything": (tc.Grid(16, 16), tc.secrets.everything(), {}),
    "whoever comes or leaves": (tc.Grid(9, 8), tc.secrets.within(2, "place"), {"presence": "secret"}),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("case", CASES)
def test_errors_are_as_predicted_and_intervals_hold(case: str) -> None:
    """Mean squared errors of all cells and of some rectangles, over 300 draws of the same noise stream."""
    grid, secrets, more = CASES[case]
    policy = tc.Policy(tc.Domain({"place": grid}), secrets, **more)
    plan = tc.explain(tc.rectangles("place", "all"), policy, 0.7).plan
    table = people(grid.rows, grid.columns, 500)
    counts = np.zeros((grid.rows, grid.columns), dtype=np.int64)
    np.add.at(counts, (table["row"], table["column"]), 1)
    truth = plan.base.answers([counts], policy.domain)
    picked = np.random.default_rng(5)
    ends = np.sort(picked.integers(0, [grid.rows, grid.columns], (400, 2, 2)).transpose(0, 2, 1), axis=2).reshape(-1, 4)
    with noise.replayed(noise.Keystream(key=KEY)):
        noisy = blur(np.tile(truth, (REPEATS, 1)), plan)
    errors = np.empty((REPEATS, len(ends)))
    for number, entries in enumerate(noisy):
        wrong = plan.cells(entries.astype(np.float64)) - counts
        below = np.zeros((grid.rows + 1, grid.columns + 1))
        below[1:, 1:] = wrong.cumsum(axis=0).cumsum(axis=1)
        a, b, c, d = ends.T
        errors[number] = below[b + 1, d + 1] - below[a, d + 1] - below[b + 1, c] + below[a, c]
    expected = plan.variances(ends)
    # 300 independent draws: a ratio of means has a standard deviation below 3%, and rectangles are many
    assert (errors**2).mean() == pytest.approx(expected.mean(), rel=0.12)
    noisy_ones = expected > 1e-6
    assert np.abs(errors[:, ~noisy_ones]).max(initial=0.0) < 1e-6
    ratio = (errors**2).mean(axis=0)[noisy_ones] / expected[noisy_ones]
    assert np.quantile(ratio, 0.02) > 0.5
    assert np.quantile(ratio, 0.98) < 1.7
    for level in (0.8, 0.95):
        inside = np.abs(errors) <= plan.half_widths(level, ends) + 1e-6
        assert inside.mean() >= level
    # a wrong law: the same strategy with the noise of ramps and coarse cells forgotten
    if plan.weighted.strategy.groups > 1:
        wrong = rectangle_variances(
            plan.weighted.strategy, tuple(v / 3 for v in plan.weighted.variances), plan.moves, ends
        )
        assert (errors**2).mean() != pytest.approx(wrong.mean(), rel=0.12)


def test_a_release_holds_what_its_plan_says() -> None:
    policy = tc.Policy(tc.Domain({"place": tc.Grid(12, 10)}), tc.secrets.partition("place", width=[6, 5]))
    table = people(12, 10, 300)
    session = tc.Session(policy, table, budget=100)
    plan = session.plan(tc.rectangles("place", "all"), 1)
    hits = 0
    with noise.replayed(noise.Keystream(key=KEY)):
        for _ in range(40):
            found = session.release(plan)
            low, high = found.interval(0.9, 2, 8, 1, 7)
            truth = int((table["row"].between(2, 8) & table["column"].between(1, 7)).sum())
            hits += low <= truth <= high
            assert found.rectangle(0, 5, 5, 9) == int((table["row"].le(5) & table["column"].ge(5)).sum())
            assert found.rectangle(0, 11, 0, 9) == 300
    assert hits >= 32  # of 40 at 90%: fewer have a probability of 1 in 20 at exactly 90%, and the bound is wider

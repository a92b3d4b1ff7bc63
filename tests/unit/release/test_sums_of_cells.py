"""Sums of cells: their law is that of what they are off by, and their intervals hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit import noise
from tacit.plan.plans.linear import LinearPlan
from tacit.plan.sums_of_cells import spread_of_sums
from tacit.release.estimate.projections import with_totals
from tacit.release.results.record import LinearRecord

DOMAIN = tc.Domain(
    {
        "ward": tc.Categories(["A", "B", "C"]),
        "sex": tc.Categories(["f", "m"]),
        "ill": tc.Categories(["flu", "hiv", "none"]),
    }
)
ROWS = pd.DataFrame({"ward": list("AABBC") * 20, "sex": list("fm") * 50, "ill": ["flu", "none", "hiv", "none"] * 25})
POLICIES = {
    "everything": tc.Policy(DOMAIN, tc.secrets.everything()),
    "coming and going": tc.Policy(DOMAIN, tc.secrets.taking_part()),
    "illness": tc.Policy(DOMAIN, tc.secrets.attributes("ill")),
    "one direction": tc.Policy(DOMAIN, tc.secrets.values({"ill": ["hiv"]})),
    "ward and illness": tc.Policy(DOMAIN, tc.secrets.attributes("ill") | tc.secrets.attributes("ward")),
}
QUERY = tc.marginals(sets=[["ward", "ill"], ["sex", "ill"]])


def errors_of_cells(plan: LinearPlan, table: int, cells: int) -> np.ndarray:
    """Return by how much each cell is off for one unit of noise in each cell, as least squares is carried out."""
    if plan.groups is None:
        return np.eye(cells)
    group = plan.groups[table]
    variances = plan.per_entry(lambda law: law.variance())[9 * table : 9 * table + cells]
    nothing = np.zeros(int(group.max()) + 1)
    return np.array([with_totals(unit, group, nothing, variances) for unit in np.eye(cells)]).T


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("which", ["first", "second", "all", "some"])
def test_the_variance_of_a_sum_is_that_of_least_squares(name: str, which: str) -> None:
    plan = tc.Session(POLICIES[name], ROWS, budget=1).plan(QUERY, 1)
    assert isinstance(plan, LinearPlan)
    for table, shape in enumerate([(3, 3), (2, 3)]):
        first, second = (each.ravel() for each in np.indices(shape))
        picked = {"first": first, "second": second, "all": 0 * first, "some": (first + second) % 2}[which]
        spread = spread_of_sums(plan, table, picked)
        assert spread is not None
        added = np.eye(int(picked.max()) + 1)[:, picked] @ errors_of_cells(plan, table, len(picked))
        of_noise = np.broadcast_to(plan.per_entry(lambda law: law.variance()), (15,))[
            9 * table : 9 * table + len(picked)
        ]
        wanted = (added**2) @ of_noise
        assert spread.variances() == pytest.approx(wanted, rel=1e-9, abs=1e-9)
        assert spread.exact().tolist() == (wanted < 1e-9).tolist()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("everything", {}),
        ("one direction", {}),
        ("illness", {"nonnegative": True}),
        ("ward and illness", {"consistent": True, "nonnegative": True}),
    ],
)
def test_intervals_of_sums_hold(name: str, options: dict[str, bool]) -> None:
    true = ROWS.groupby("ill").size().to_numpy()  # flu, hiv, none
    held, releases = np.zeros(3), 100
    with noise.replayed(noise.Keystream(key=b"sums of cells, stream of a test.")):
        session = tc.Session(POLICIES[name], ROWS, budget=releases)
        plan = session.plan(QUERY, 1, **options)
        for _ in range(releases):
            record = session.release(plan)
            assert isinstance(record, LinearRecord)
            values, lower, upper, _ = record.sums(0, np.indices((3, 3))[1].ravel())
            assert (lower <= values).all()
            assert (values <= upper).all()
            held += (lower <= true + 1e-9) & (true - 1e-9 <= upper)
    assert held.min() >= 0.89 * releases  # at 95%: fewer happens once in 1,000 times


def test_a_sum_that_no_secret_changes_is_exact_and_whole() -> None:
    record = tc.Session(POLICIES["illness"], ROWS, budget=1).release(QUERY, 1)
    values, lower, upper, exact = record.sums(0, np.indices((3, 3))[0].ravel())
    assert exact.all()
    assert values.tolist() == lower.tolist() == upper.tolist() == [40, 40, 20]

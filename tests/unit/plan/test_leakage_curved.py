"""Boxes whose bounds close with their square: mixed derivatives against differences, plans against grids."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from tests.joints import Case, random_case

import tacit as tc
from tacit.plan.leakage.coalition_boxes import largest_mixed
from tacit.plan.leakage.setting import checked_setting

CASES = [random_case(np.random.default_rng(seed), most=4, sizes=(2, 3)) for seed in range(8)]
THREE = [one for one in (random_case(np.random.default_rng(seed), most=3) for seed in range(20)) if len(one.names) == 3]


@pytest.mark.parametrize("all_targets", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_mixed_derivatives_are_those_of_differences_and_enclosed_on_boxes(case: Case, all_targets: bool) -> None:
    names = list(case.names)
    sensitive = {name: case.sensitive[name] for name in (names if all_targets else names[:1])}
    setting = checked_setting(
        case.dependence,
        sensitive=sensitive,
        limit=1,
        measure="value",
        applications={name: [name] for name in names},
        coalitions=[names],
    )
    (joint,) = setting.joint_limits(setting.tables(case.dependence))
    rng, step, units = np.random.default_rng(5), 1e-4, np.eye(len(names))
    for first, second in itertools.combinations(range(len(names)), 2):
        at = rng.uniform(0.1, 0.9, len(names))
        corners = [at + step * (one * units[first] + other * units[second]) for one in (1, -1) for other in (1, -1)]
        values = joint.at(np.stack(corners))
        expected = abs(values[0] - values[1] - values[2] + values[3]) / (4 * step**2)
        assert largest_mixed(joint, first, second, at[None], at[None])[0] == pytest.approx(expected, abs=1e-5)
        width = rng.uniform(0, 0.09, len(names))
        assert largest_mixed(joint, first, second, (at - width)[None], (at + width)[None])[0] >= expected - 1e-5


@pytest.mark.parametrize("objective", ["releases", "epsilon"])
@pytest.mark.parametrize("case", THREE[1:2])
def test_a_coalition_of_three_is_planned_within_a_millionth(case: Case, objective: str) -> None:
    values = case.dependence.values
    shows = {name: 1 for name in case.names if set(values[name]) - set(case.sensitive[name])}
    plan = tc.plan.leakage_budget(
        case.dependence,
        sensitive=case.sensitive,
        limit=0.15,
        coalitions=[list(case.names)],
        cap=3.0,
        objective=objective,
        weights=shows,
    )
    assert plan.gap < 1e-6
    assert plan.leakage <= 0.15
    (joint,) = plan.setting.joint_limits(plan.setting.tables(case.dependence))
    grid = np.array(list(itertools.product(np.linspace(0, -math.expm1(-3.0), 25), repeat=3)))
    allowed = grid[joint.at(grid) <= 0.15]
    open_mass = plan.setting.released(plan.setting.tables(case.dependence))
    # what is always sensitive has no epsilon to speak of
    worth = allowed @ open_mass if objective == "releases" else -np.log1p(-allowed[:, open_mass > 0]).sum(axis=1)
    assert worth.max() <= plan.value + plan.gap + 1e-12

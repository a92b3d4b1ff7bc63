"""The programs behind plans of leakage: against grids and another solver, and bounds that nothing exceeds."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.joints import Case, a_network, learned_together, random_case

import tacit as tc
from tacit.dependence.suppression import outcomes, suppression
from tacit.plan.leakage import outcomes as leakage_outcomes
from tacit.plan.leakage.budget import alone_bounds
from tacit.plan.leakage.convex_program import ConvexProgram, epsilons, solve, solve_sum
from tacit.plan.leakage.one_limit import solve_one
from tacit.plan.leakage.setting import checked_setting

CASES = [random_case(np.random.default_rng(100 + seed), most=3, sizes=(2, 3)) for seed in range(8)]
PAIRS = [case for case in CASES if len(case.names) == 2]


def program(case: Case, limit: float, *, measure: str = "value", each: bool = False, cap: float = 4.0) -> ConvexProgram:
    given = dict.fromkeys(case.sensitive, limit) if each else limit
    setting = checked_setting(case.dependence, sensitive=case.sensitive, limit=given, measure=measure)
    terms = setting.pair_terms(setting.tables(case.dependence))
    lines = len(setting.lines)
    weights = np.random.default_rng(7).uniform(0.5, 2, lines)
    limits = np.array([one.most for one in setting.limits])
    upper = alone_bounds(terms, limits, np.full(lines, -math.expm1(-cap)))
    return ConvexProgram(weights * terms.released, terms, limits, np.zeros(lines), upper)


def program_of_many(lines: int, limit: float) -> ConvexProgram:
    names, dependence = a_network(lines, seed=lines)
    setting = checked_setting(dependence, sensitive={key: ["s"] for key in names}, limit=limit, measure="value")
    terms = setting.pair_terms(setting.tables(dependence))
    upper = alone_bounds(terms, np.array([limit]), np.full(lines, -math.expm1(-3.0)))
    weights = np.random.default_rng(7).uniform(0.5, 2, lines)
    return ConvexProgram(weights, terms, np.array([limit]), np.zeros(lines), upper)


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("limit", [1e-5, 0.3])
@pytest.mark.parametrize("case", CASES[:3])
def test_the_convex_program_agrees_with_another_solver(case: Case, limit: float, each: bool) -> None:
    given = program(case, limit, each=each)
    found = solve(given, tolerance=1e-8 * limit)
    assert found is not None
    assert given.is_allowed(found.u)
    assert ((found.u >= 0) & (found.u <= given.upper)).all()
    assert found.bound >= found.gain - 1e-15
    assert found.bound - found.gain <= 1e-7 * limit
    other = minimize(
        lambda u: -given.gain @ u,
        0.5 * found.u + 1e-9,
        jac=lambda u: -given.gain,
        bounds=list(zip(given.lower, given.upper, strict=True)),
        constraints={
            "type": "ineq",
            "fun": lambda u: (given.limits - given.terms.at(u)) / limit,
            "jac": lambda u: -given.terms.with_slopes(u)[1] / limit,
        },
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 300},
    )
    reached = given.gain @ other.x
    if (given.terms.at(other.x) <= given.limits + 1e-9 * limit).all():
        assert reached <= found.bound + 1e-6 * limit
    assert found.gain >= reached - 1e-4 * limit - 1e-5 * reached


@pytest.mark.parametrize("case", CASES)
def test_no_multipliers_give_a_bound_below_what_is_allowed(case: Case) -> None:
    given = program(case, 0.2)
    rng = np.random.default_rng(3)
    allowed = [u for u in rng.uniform(0, 1, (300, len(given.gain))) * given.upper if given.is_allowed(u)]
    best = max((float(given.gain @ u) for u in allowed), default=0.0)
    for _ in range(50):
        u, multipliers = rng.uniform(0, 0.98, len(given.gain)), rng.exponential(3.0, len(given.limits))
        assert given.bound(u, multipliers) >= best


@pytest.mark.parametrize("limit", [0.05, 0.4])
@pytest.mark.parametrize("case", PAIRS[2:3])
def test_the_sum_of_epsilons_is_the_best_of_a_grid(case: Case, limit: float) -> None:
    given = program(case, limit, cap=3.0)
    found = solve_sum(given, tolerance=1e-5, most_boxes=200)
    assert given.is_allowed(found.u)
    assert found.bound - found.gain <= 1e-4
    grid = -np.expm1(-np.linspace(0, 3, 61))
    values = [
        float(given.gain @ epsilons(np.array(u)))
        for u in itertools.product(grid, repeat=2)
        if given.is_allowed(np.array(u))
    ]
    assert max(values) <= found.bound + 1e-12
    assert max(values) >= found.gain - 0.12 * given.gain.sum()


@pytest.mark.parametrize("measure", ["value", "bit"])
@pytest.mark.parametrize("limit", [0.02, 0.3])
@pytest.mark.parametrize("case", CASES[1:2])
def test_under_one_limit_prices_and_boxes_find_the_same_sum(case: Case, limit: float, measure: str) -> None:
    given = program(case, limit, cap=3.0, measure=measure)
    found = solve_one(given, tolerance=1e-7, most_intervals=300)
    assert found is not None
    assert given.is_allowed(found.u)
    assert ((found.u >= 0) & (found.u <= given.upper)).all()
    assert found.gain == pytest.approx(given.gain @ epsilons(found.u), rel=1e-12)
    assert found.bound - found.gain <= 1e-7
    other = solve_sum(given, tolerance=1e-6, most_boxes=20)
    assert other.gain <= found.bound + 1e-12
    assert found.gain <= other.bound + 1e-12


def test_no_sum_of_epsilons_of_many_lines_beats_the_bound_under_one_limit() -> None:
    """Corners, pairs of lines and random points, each raised until the limit is met."""
    given = program_of_many(12, 0.9)
    found = solve_one(given, tolerance=5e-7, most_intervals=300)
    assert found is not None
    assert found.bound - found.gain <= 5e-7
    rng = np.random.default_rng(2)
    for _ in range(60):
        towards = rng.permutation(12)
        u = np.zeros(12)
        for line in towards[: rng.integers(1, 12)]:
            low, high = 0.0, float(given.upper[line])
            for _ in range(30):
                middle = 0.5 * (low + high)
                there = np.where(np.arange(12) == line, middle, u)
                low, high = (middle, high) if given.is_allowed(there) else (low, middle)
            u[line] = low
        assert given.gain @ epsilons(u) <= found.bound


@pytest.mark.parametrize("lines", [pytest.param(50, marks=pytest.mark.slow), 20])
def test_the_sum_of_epsilons_of_many_attributes_is_planned_within_a_millionth(lines: int) -> None:
    names, dependence = a_network(lines, seed=lines)
    plan = tc.plan.leakage_budget(
        dependence, sensitive={key: ["s"] for key in names}, limit=0.05 * lines, cap=3, objective="epsilon"
    )
    assert plan.gap < 1e-6
    assert plan.leakage <= 0.05 * lines


def test_the_best_sum_of_epsilons_is_in_a_corner_where_the_convex_program_shares() -> None:
    """Two attributes of which each is a fair bit of its own: all of the limit goes to one, not shared out."""
    fair = tc.Dependence.from_table({(a, b): 0.25 for a in "st" for b in "st"}, names=("a", "b"))
    asked = {"sensitive": {"a": ["s"], "b": ["s"]}, "limit": 0.9 * math.log(2), "measure": "bit", "cap": 20.0}
    corner = tc.plan.leakage_budget(fair, objective="epsilon", **asked)
    assert sorted(corner.epsilon.values())[0] == pytest.approx(0.0, abs=1e-6)
    assert corner.value == pytest.approx(3.4787, abs=1e-4)
    assert corner.gap < 1e-4
    shared = tc.plan.leakage_budget(fair, **asked)
    assert shared.epsilon["a"] == pytest.approx(shared.epsilon["b"], rel=1e-3)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("case", PAIRS[1:2])
def test_a_coalition_of_two_is_planned_as_well_as_a_grid(case: Case, own: bool) -> None:
    limit = 0.15 if own else dict.fromkeys(case.names, 0.15)
    asked = {"sensitive": case.sensitive, "limit": limit, "coalitions": [list(case.sensitive)], "own": own, "cap": 3.0}
    plan = tc.plan.leakage_budget(case.dependence, **asked)
    assert plan.leakage <= 0.15
    limits = plan.setting.joint_limits(plan.setting.tables(case.dependence))
    grid = np.array(list(itertools.product(np.linspace(0, -math.expm1(-3.0), 101), repeat=2)))
    open_mass = plan.setting.released(plan.setting.tables(case.dependence))
    values = (grid * open_mass).sum(axis=1)[np.max([one.at(grid) for one in limits], axis=0) <= 0.15]
    assert plan.value + plan.gap >= values.max() - 1e-12
    assert plan.value >= values.max() - 1e-5
    assert plan.gap <= 1e-5


def test_a_large_coalition_keeps_its_limit_by_all_outcomes() -> None:
    rng = np.random.default_rng(5)
    worlds = list(itertools.product((0, 1), repeat=5))
    chances = rng.dirichlet(np.full(len(worlds), 0.5))
    names = tuple("abcde")
    dependence = tc.Dependence.from_table(dict(zip(worlds, chances, strict=True)), names=names)
    plan = tc.plan.leakage_budget(
        dependence,
        sensitive={key: [1] for key in names},
        limit=dict.fromkeys(names, 0.1),
        coalitions=[list(names)],
        own=False,
        cap=3.0,
    )
    release = suppression(dependence, {key: [1] for key in names}, dict(plan.epsilon))
    each = [outcomes(release, name, [one for one in names if one != name]).information() for name in names]
    assert max(each) <= 0.1
    assert plan.method == "safe"
    assert max(each) >= 0.1 - 1e-6 or max(plan.epsilon.values()) == pytest.approx(3.0)  # raised until it is met


def test_a_coalition_with_too_many_outcomes_is_planned_by_what_it_is_evaluated_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = "abcdef"
    worlds = list(itertools.product((0, 1), repeat=6))
    chances = np.random.default_rng(7).dirichlet(np.full(len(worlds), 0.3))
    dependence = tc.Dependence.from_table(dict(zip(worlds, chances, strict=True)), names=list(names))
    monkeypatch.setattr(leakage_outcomes, "MOST_OUTCOMES", 3**4)
    plan = tc.plan.leakage_budget(
        dependence,
        sensitive={"a": [1], "b": [1]},
        limit=0.2,
        applications={name: [name] for name in "cdef"},
        coalitions=[list("cdef")],
        cap=3.0,
    )
    assert plan.method == "safe"
    assert 0.2 - 1e-6 < plan.leakage <= 0.2
    case = Case(dict(zip(worlds, chances, strict=True)), tuple(names), {"a": [1], "b": [1]}, {})
    assert learned_together(case, "ab", "cdef", plan.epsilon) <= plan.leakage


def test_lines_that_tell_the_same_are_planned() -> None:
    """Near the end of the search rounding makes them one line."""
    case = random_case(np.random.default_rng(1016), most=4, sizes=(2, 3))
    asked = {"x": list(case.names)[:2], "y": list(case.names)[1:]}
    plan = tc.plan.leakage_budget(
        case.dependence,
        sensitive={name: case.sensitive[name] for name in ("a0", "a1", "a2")},
        limit=0.1,
        applications=asked,
        coalitions=[["x"], ["x", "y"]],
        cap=3,
    )
    assert plan.leakage <= 0.1


@pytest.mark.one_in(3)
@pytest.mark.parametrize("coalitions", [None, [["a", "b"]]])
@pytest.mark.parametrize("tiny", [1e-100, 1e-200, 1e-310])
def test_tiny_probabilities_are_planned_as_if_they_were_none(tiny: float, coalitions: Any) -> None:
    cells = {("l", "l"): 0.3, ("l", "e"): 0.2, ("e", "e"): 0.5}
    found = []
    for more in (tiny, 0.0):
        rest = {("e", "l"): more, ("z", "e"): more, ("z", "l"): more}
        dependence = tc.Dependence.from_table({**cells, **rest}, names=("a", "b"))
        asked = {"sensitive": {"a": ["l"], "b": ["l"]}, "limit": 0.05, "cap": 3.0, "coalitions": coalitions}
        found.append(tc.plan.leakage_budget(dependence, **asked))
    assert found[0].value == pytest.approx(found[1].value, rel=1e-6)
    assert found[0].leakage == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("coalitions", [None, [["a"]]])
def test_under_a_limit_of_zero_what_is_independent_is_released(coalitions: Any) -> None:
    """The sum over cells is 1e-17 by rounding."""
    worlds = {(a, b): (0.3 if a == "s" else 0.7) * (0.1 if b == "s" else 0.9) for a in "so" for b in "so"}
    apart = tc.Dependence.from_table(worlds, names=("a", "b"))
    asked = {"sensitive": {"b": ["s"]}, "weights": {"a": 1}, "applications": {"a": ["a"]}, "limit": 0, "cap": 3.0}
    plan = tc.plan.leakage_budget(apart, **asked, coalitions=coalitions)
    assert plan.epsilon["a"] == pytest.approx(3.0)
    assert plan.leakage == 0.0
    assert plan.holds_for(apart)

"""Bounds for an adversary who knows the dependence roughly, against greedy optima, bisection and drawn joints."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import tacit as tc
from joints import Case, random_case, weights
from tacit.audit.posterior_bounds import LARGEST_GAP, PosteriorBounds

CASES = [random_case(np.random.default_rng([51, number]), most=3, sizes=(2, 3)) for number in range(8)]
NAMES = ("arrival", "leaving")
SIZES = (0.0, 0.03, 0.2)


def audit(case: Case) -> tc.audit.Exclusion:
    return tc.audit.exclusion(case.dependence, case.sensitive, case.epsilon)


def everything_seen(case: Case) -> dict[str, int]:
    return {name: 1 + place for place, name in enumerate(case.names[1:])}


def cells(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each world its probability, the chance of what was seen, and the target's value."""
    worlds = list(case.worlds)
    plain = Case(dict.fromkeys(worlds, 1.0), case.names, case.sensitive, case.epsilon)
    seen = weights(plain, everything_seen(case), {})
    return (
        np.array([case.worlds[world] for world in worlds]),
        np.array([seen[world] for world in worlds]),
        np.array([world[0] for world in worlds]),
    )


def filled(low: np.ndarray, high: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return the distribution between two bounds that fills cells in this order."""
    found, rest = low.copy(), 1 - low.sum()
    for cell in order:
        more = min(high[cell] - low[cell], rest)
        found[cell] += more
        rest -= more
    return found


def moved(chances: np.ndarray, distance: float, order: np.ndarray) -> np.ndarray:
    """Return the distribution that takes so much from the last cells in this order and gives it to the first."""
    found, rest = chances.copy(), distance
    for cell in order[::-1]:
        taken = min(found[cell], rest)
        found[cell] -= taken
        rest -= taken
    found[order[0]] += distance - rest
    return found


def greedy(case: Case, kind: str, size: float, value: int) -> float:
    """Return the largest posterior of a value.

    Whatever the optimum is, mass is worth most in cells with the value, the more the likelier what was seen is there,
    and least in other cells, the less the likelier it is there. One order is best, and filling finds the optimum.
    """
    chances, seen, target = cells(case)
    worth = np.where(target == value, seen, -seen)
    order = np.argsort(-worth, kind="stable")
    if kind == "variation":
        best = moved(chances, size, order)
    elif kind == "contamination":
        best = filled((1 - size) * chances, np.ones(len(chances)), order)
    else:
        best = filled(np.maximum(chances - size, 0), np.minimum(chances + size, 1), order)
    return float((best * seen)[target == value].sum() / (best * seen).sum())


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", ["contamination", "variation", "cells"])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_neighbourhoods_are_bounded_by_what_filling_finds(kind: str, number: int) -> None:
    case = CASES[number]
    name = case.names[0]
    for size in SIZES:
        found = audit(case).bounds(name, knows={kind: size}, suppressed=everything_seen(case))
        for value in case.dependence.values[name]:
            assert found.high[value] == pytest.approx(greedy(case, kind, size, value), abs=1e-9)
        exact = audit(case).posterior(name, suppressed=everything_seen(case))
        for value, chance in exact.items():
            assert found.low[value] - 1e-9 <= chance <= found.high[value] + 1e-9
        free = {"variation": 1.0} if kind == "contamination" else {"contamination": 1.0}
        solved = audit(case).bounds(name, knows={kind: size, **free}, suppressed=everything_seen(case))
        assert dict(solved.low) == pytest.approx(dict(found.low), abs=1e-9)  # by a program, with nothing more known
        assert dict(solved.high) == pytest.approx(dict(found.high), abs=1e-9)
        assert solved.gap <= LARGEST_GAP
        if size == 0:
            assert dict(found.low) == pytest.approx(exact, abs=1e-9)
            assert dict(found.high) == pytest.approx(exact, abs=1e-9)


def test_attributes_that_do_not_matter_change_nothing() -> None:
    """The image of a neighbourhood of joints is a neighbourhood of the same kind, and cells add up."""
    case = next(case for case in CASES if len(case.names) == 3)
    chances, _, _ = cells(case)
    a, b, _ = case.names
    leak = audit(case)
    for kind in ("contamination", "variation"):
        pair = tc.Dependence.from_table(case.dependence.marginal(a, b), (a, b), values={a: case.dependence.values[a],
                                        b: case.dependence.values[b]})  # fmt: skip
        small = tc.audit.exclusion(pair, {a: case.sensitive[a], b: case.sensitive[b]}, {b: case.epsilon[b]})
        mine = leak.bounds(a, knows={kind: 0.1}, suppressed={b: 1})
        theirs = small.bounds(a, knows={kind: 0.1}, suppressed={b: 1})
        assert dict(mine.high) == pytest.approx(dict(theirs.high), abs=1e-9)
    wide = leak.bounds(a, knows={"cells": 0.02}, suppressed={b: 1})
    both = leak.bounds(a, knows={"cells": 0.02, "contamination": 1.0}, suppressed={b: 1})  # all attributes kept
    assert dict(wide.high) == pytest.approx(dict(both.high), abs=1e-9)
    assert dict(wide.low) == pytest.approx(dict(both.low), abs=1e-9)
    assert len(chances) == math.prod(len(case.dependence.values[name]) for name in case.names)


def bisected(chances: Any, wanted: Any, rows: Any, limits: Any) -> float:
    """Return the largest ratio by asking for each guess whether wanted - guess * chances can be positive."""
    low, high = 0.0, 1.0
    for _ in range(34):
        guess = (low + high) / 2
        found = linprog(-(wanted - guess * chances), A_ub=rows, b_ub=limits, A_eq=np.ones((1, len(chances))), b_eq=[1])
        low, high = (guess, high) if -found.fun > 0 else (low, guess)
    return low


def test_intervals_against_bisection() -> None:
    rng = np.random.default_rng(52)
    for _ in range(2):
        joint = rng.dirichlet(np.ones(6)).reshape(2, 3)
        dep = tc.Dependence.from_table(joint, ("a", "b"), values={"a": [0, 1], "b": [0, 1, 2]})
        leak = tc.audit.exclusion(dep, {"a": [0], "b": [0, 1]}, {"b": 0.8})
        share, cell = joint[0].sum(), joint[1, 2]
        knows = {
            "intervals": {"a": {0: (share * 0.8, min(share * 1.1, 1))}, ("a", "b"): {(1, 2): (cell / 2, cell)}},
            "variation": 0.1,
        }
        found = leak.bounds("a", knows=knows, suppressed={"b": 2})
        seen = np.array([1, 1, math.exp(-1.6)] * 2)
        # the distance by all events at once: 2^6 of them
        events = np.array([[(event >> cell_) & 1 for cell_ in range(6)] for event in range(64)], dtype=float)
        flat = joint.ravel()
        one, last = np.array([1, 1, 1, 0, 0, 0.0]), np.array([0, 0, 0, 0, 0, 1.0])
        rows = np.vstack([events, one, -one, last, -last])
        limits = np.concatenate([events @ flat + 0.1, [min(share * 1.1, 1), -share * 0.8, cell, -cell / 2]])
        largest = bisected(seen, np.where(one > 0, seen, 0), rows, limits)
        least = 1 - bisected(seen, np.where(one > 0, 0, seen), rows, limits)
        assert found.high[0] == pytest.approx(largest, abs=1e-7)
        assert found.low[0] == pytest.approx(least, abs=1e-7)
        assert found.sensitive == pytest.approx((found.low[0], found.high[0]), abs=1e-9)


def test_drawn_distributions_stay_within_the_bounds() -> None:
    rng = np.random.default_rng(53)
    case = CASES[1]
    chances, seen, target = cells(case)
    name = case.names[0]
    for kind in ("contamination", "variation"):
        found = audit(case).bounds(name, knows={kind: 0.15}, suppressed=everything_seen(case))
        for _ in range(200):
            other = 0.85 * chances + 0.15 * rng.dirichlet(np.full(len(chances), 0.1))
            for value in case.dependence.values[name]:
                share = (other * seen)[target == value].sum() / (other * seen).sum()
                assert found.low[value] - 1e-9 <= share <= found.high[value] + 1e-9


def test_after_a_release_only_cells_with_its_value_count() -> None:
    """Of 0.6 with this arrival, 0.1 may have left late, or have come from where this cannot be seen."""
    day = tc.Dependence.from_table({("late", "late"): 0.3, ("late", "early"): 0.1, ("on time", "early"): 0.6}, NAMES)
    leak = tc.audit.exclusion(day, {"arrival": ["late"], "leaving": ["early"]}, {"arrival": 1.0})
    told = leak.bounds("leaving", knows={"variation": 0.1}, released={"arrival": "on time"})
    assert told.low == pytest.approx({"late": 0, "early": 5 / 6}, abs=1e-9)
    assert told.high == pytest.approx({"late": 1 / 6, "early": 1}, abs=1e-9)
    rough = leak.bounds("leaving", knows={"contamination": 0.1}, released={"arrival": "on time"})
    assert rough.high["late"] == pytest.approx(0.1 / (0.54 + 0.1), abs=1e-9)
    boxed = leak.bounds("leaving", knows={"cells": 0.1}, released={"arrival": "on time"})
    assert boxed.high["late"] == pytest.approx(0.1 / 0.6, abs=1e-9)
    assert max(told.gap, rough.gap, boxed.gap) < 1e-9


def test_one_neighbourhood_is_bounded_after_any_number_of_questions() -> None:
    dep = tc.Dependence.from_table({("in", "x"): 0.3, ("out", "x"): 0.2, ("in", "y"): 0.5}, names=("a", "b"))
    leak = tc.audit.exclusion(dep, {"a": ["out"], "b": ["x"]}, {"a": 1.0, "b": 1.0})
    sure = leak.bounds("a", knows={"variation": 0.1}, suppressed={"a": 5000})
    assert sure.sensitive == (1.0, 1.0)  # some of the 0.2 are left
    rough = leak.bounds("a", knows={"variation": 0.2}, suppressed={"a": 5000, "b": 5000})
    assert rough.sensitive == (0.0, 1.0)
    closed = tc.audit.exclusion(dep, {"a": []}, {"a": 1.0, "b": math.inf})
    with pytest.raises(tc.PlanError, match="knows allows no distribution"):
        closed.bounds("a", knows={"variation": 0.1}, suppressed={"b": 1})


def test_who_knows_nothing_may_believe_anything() -> None:
    dep = tc.Dependence.from_table({"x": 0.2, "y": 0.8}, names=["a"])
    found = tc.audit.exclusion(dep, {"a": ["x"]}, {"a": 1}).bounds("a", knows={"contamination": 1})
    assert set(found.low.values()) == {0.0}
    assert set(found.high.values()) == {1.0}
    assert found.odds == (0.0, math.inf)


def test_a_network_is_relaxed_and_says_so() -> None:
    tables = {"a": {0: 0.3, 1: 0.7}, "b": {"given": ["a"], "table": {0: {0: 0.9, 1: 0.1}, 1: {0: 0.2, 1: 0.8}}}}
    network = tc.Dependence.from_network(tables)
    table = tc.Dependence.from_table(network.marginal("a", "b"), ("a", "b"), values=network.values)
    found: list[PosteriorBounds] = [
        tc.audit.exclusion(dep, {"a": [0], "b": [0]}, {"b": 1}).bounds("a", knows={"cells": 0.1}, suppressed=["b"])
        for dep in (network, table)
    ]
    assert [one.relaxed for one in found] == [True, False]
    assert found[0].sensitive == pytest.approx(found[1].sensitive, abs=1e-12)
    assert "also those without its arrows" in str(found[0])
    assert found[0].frame.columns.tolist() == ["a", "low", "high"]


@pytest.mark.parametrize(
    ("knows", "says"),
    [
        ({}, "knows must be a mapping with at least one entry"),
        (0.1, "knows must be a mapping with at least one entry, not a float"),
        ({"variance": 0.1}, "knows must be a kind of knowledge; got 'variance'. Did you mean 'variation'?"),
        ({"variation": -0.1}, "knows.variation must lie between 0 and 1; got -0.1"),
        ({"variation": math.nan}, "knows.variation must lie between 0 and 1; got nan"),
        ({"cells": "0.1"}, "knows.cells must lie between 0 and 1; got '0.1'"),
        ({"intervals": {"z": {0: (0, 1)}}}, "knows.intervals must be an attribute of the dependence; got 'z'"),
        ({"intervals": {"a0": {9: (0, 1)}}}, "knows.intervals.a0 must be a value of a0; got 9"),
        ({"intervals": {"a0": {0: (0.5, 0.1)}}}, "knows.intervals.a0 must have its low end first; got [0.5, 0.1]"),
        ({"intervals": {"a0": {0: 0.5}}}, "knows.intervals.a0 must be two numbers, low and high; got 0.5"),
        ({"intervals": {"a0": {0: (0.9, 1), 1: (0.9, 1)}}}, "knows allows no distribution"),
    ],
)
def test_knowledge_that_is_refused(knows: Any, says: str) -> None:
    with pytest.raises(tc.PlanError) as refused:
        audit(CASES[0]).bounds("a1", knows=knows)
    assert says in str(refused.value)


def test_what_a_solver_could_not_tell_apart_is_refused() -> None:
    case = CASES[0]
    with pytest.raises(tc.PlanError, match="too unlikely for bounds"):
        audit(case).bounds("a0", knows={"variation": 0.1, "cells": 0.1}, suppressed={"a1": 1000})
    names = [f"b{place}" for place in range(15)]
    wide = tc.audit.exclusion(tc.Dependence.from_network({name: {0: 0.5, 1: 0.5} for name in names}), {}, {})
    with pytest.raises(tc.PlanError, match="20,000 is the most"):
        wide.bounds("b0", knows={"variation": 0.1, "cells": 0.1})

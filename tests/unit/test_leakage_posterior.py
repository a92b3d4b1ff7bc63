"""Plans under a limit on how sure any outcome may make: against every world, coin by coin."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from tests.joints import Case, random_case

import tacit as tc

CASES = [random_case(np.random.default_rng(300 + seed), most=3, sizes=(2, 3)) for seed in (1, 2, 5)]


def surest(case: Case, epsilon: dict[str, float], targets: list[str]) -> float:
    """Return the largest probability of any target given any outcome, by the definition."""
    outcomes: dict[tuple[Any, ...], dict[tuple[Any, ...], float]] = {}
    for world, chance in case.worlds.items():
        each = []
        for name, value in zip(case.names, world, strict=True):
            shown = 0.0 if case.is_hidden(name, value) else -math.expm1(-epsilon.get(name, 0.0))
            each.append([(value, shown), (None, 1.0 - shown)])
        for seen in itertools.product(*each):
            mass = chance * math.prod(one for _, one in seen)
            if mass > 0:
                found = outcomes.setdefault(tuple(value for value, _ in seen), {})
                found[world] = found.get(world, 0.0) + mass
    best = 0.0
    for found in outcomes.values():
        for name in targets:
            hidden = sum(mass for world, mass in found.items() if case.is_hidden(name, world[case.names.index(name)]))
            best = max(best, hidden / sum(found.values()))
    return best


def prior(case: Case) -> float:
    return surest(case, {}, list(case.sensitive))


@pytest.mark.parametrize("case", [case for case in CASES if prior(case) < 0.99])
def test_no_outcome_of_a_plan_is_surer_than_allowed(case: Case) -> None:
    most = 0.5 * (prior(case) + 1)
    asked: dict[str, Any] = {"sensitive": case.sensitive, "limit": 5, "coalitions": [list(case.names)], "cap": 3.0}
    plan = tc.plan.leakage_budget(case.dependence, posterior=most, **asked)
    found = surest(case, dict(plan.epsilon), list(case.sensitive))
    assert plan.posterior == pytest.approx(found, abs=1e-12)
    assert found <= most
    free = tc.plan.leakage_budget(case.dependence, **asked)
    assert free.posterior is None
    assert surest(case, dict(free.epsilon), list(case.sensitive)) > most or free.value == pytest.approx(plan.value)
    # nothing on a grid is allowed and better than the plan says
    grid = [0.0, 0.05, 0.4, 1.2, 3.0]
    released = plan.setting.released(plan.setting.tables(case.dependence))
    for one in itertools.product(grid, repeat=len(case.names)):
        if surest(case, dict(zip(case.names, one, strict=True)), list(case.sensitive)) <= most:
            assert -np.expm1(-np.array(one)) @ released <= plan.value + plan.gap + 1e-9


@pytest.mark.parametrize("case", CASES)
def test_the_surest_outcome_rises_with_each_release_probability(case: Case) -> None:
    plan = tc.plan.leakage_budget(
        case.dependence, sensitive=case.sensitive, limit=5, coalitions=[list(case.names)], cap=3.0
    )
    (limit,) = plan.setting.posterior_limits(case.dependence)
    rng = np.random.default_rng(1)
    for _ in range(40):
        low = rng.uniform(0, 1, len(case.names)) * (rng.random(len(case.names)) < 0.7)
        high = low + rng.uniform(0, 1, len(case.names)) * (1 - low)
        first, second = limit.at(np.stack([low, high]))
        assert first <= second + 1e-12


def test_a_value_that_gives_a_secret_away_is_never_shown() -> None:
    worlds = {("x", "s"): 0.3, ("y", "s"): 0.1, ("y", "t"): 0.6}
    told = tc.Dependence.from_table(worlds, names=("a", "b"))
    asked: dict[str, Any] = {"sensitive": {"b": ["s"]}, "limit": 5, "applications": {"one": ["a", "b"]}, "cap": 3.0}
    plan = tc.plan.leakage_budget(told, coalitions=[["one"]], posterior=0.9, **asked)
    assert plan.epsilon["one"]["a"] == 0.0
    assert plan.epsilon["one"]["b"] == pytest.approx(math.log(13.5))  # 0.4 / (0.4 + 0.6 / 13.5) = 0.9
    assert plan.posterior <= 0.9


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no coalition": ({"posterior": 0.9}, "can only be planned for coalitions"),
    "a drift": ({"posterior": 0.9, "coalitions": [["a"]], "drift": 0.001}, "together with a drift"),
    "below the prior": ({"posterior": 0.3, "coalitions": [["a"]]}, "must be at least 0.4"),
    "no probability": ({"posterior": 1.5, "coalitions": [["a"]]}, "must be a probability"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_planned_is_refused(name: str) -> None:
    worlds = {("s", "s"): 0.3, ("s", "t"): 0.1, ("t", "t"): 0.6}
    day = tc.Dependence.from_table(worlds, names=("a", "b"))
    more, sentence = REFUSED[name]
    with pytest.raises(tc.PlanError, match=sentence) as refused:
        tc.plan.leakage_budget(day, sensitive={"a": ["s"]}, limit=1, **more)
    assert refused.value.fix


def test_a_plan_is_made_anew_once_an_outcome_could_be_too_sure() -> None:
    def day(rare: float) -> tc.Dependence:
        worlds = {("s", "s"): 0.3, ("s", "t"): 0.1 - rare, ("t", "t"): 0.6 - rare, ("t", "s"): 2 * rare}
        return tc.Dependence.from_table(worlds, names=("a", "b"))

    asked: dict[str, Any] = {"sensitive": {"a": ["s"]}, "limit": 1, "coalitions": [["b"]], "weights": {"b": 1}}
    plan = tc.plan.leakage_budget(
        day(0.03), applications={"b": ["b"]}, posterior=0.85, cap=3.0, **{**asked, "weights": {"b": 1}}
    )
    assert plan.holds_for(day(0.03))
    assert "An outcome could now give" in str(plan.holds_for(day(0.001)))

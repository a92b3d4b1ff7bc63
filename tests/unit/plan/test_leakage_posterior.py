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
    limits = plan.setting.posterior_limits(case.dependence)
    rng = np.random.default_rng(1)
    for _ in range(40):
        low = rng.uniform(0, 1, len(case.names)) * (rng.random(len(case.names)) < 0.7)
        high = low + rng.uniform(0, 1, len(case.names)) * (1 - low)
        first, second = np.transpose([limit.at(np.stack([low, high])) for limit in limits])
        assert (first <= second + 1e-12).all()


APPLICATIONS = {"one": ["a0"], "two": ["a1"], "three": ["a1"], "four": ["a0"]}
GROUPS = {"alone": ["two"], "both": ["one", "three"], "third": ["four"]}
HIDDEN: dict[str, list[Any]] = {"a0": ["s"], "a1": ["s"]}
WAYS: dict[str, dict[str, Any]] = {
    "one number": {"limit": 5},
    "an attribute": {"limit": {"a0": 5}},
    "a coalition": {"limit": {"both": 5}},
    "a coalition and an attribute": {"limit": {"alone": 5, "a0": 5}},
    "without its own": {"limit": {"a0": 5}, "own": False},
    "each without its own": {"limit": {"a0": 5, "a1": 5}, "own": False},
    "bits": {"limit": {"a0": 5}, "measure": "bit"},
    "sum of epsilons": {"limit": {"alone": 5}, "objective": "epsilon"},
}
TWO = Case({("s", "s"): 0.2, ("s", "t"): 0.1, ("t", "s"): 0.1, ("t", "t"): 0.6}, ("a0", "a1"), HIDDEN, {})
THREE = Case(
    {("s", "s"): 0.15, ("s", "t"): 0.1, ("t", "s"): 0.1, ("t", "t"): 0.3, ("u", "s"): 0.05, ("u", "t"): 0.3},
    ("a0", "a1"),
    HIDDEN,
    {},
)


def seen_by(members: list[str], epsilon: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return the epsilon of each attribute for whoever pools what some applications see: coins of their own add up."""
    found: dict[str, float] = {}
    for application in members:
        for name, one in epsilon[application].items():
            found[name] = found.get(name, 0.0) + one
    return found


@pytest.mark.parametrize(
    ("case", "way"),
    [*((TWO, way) for way in WAYS), (THREE, "an attribute"), (THREE, "a coalition"), (THREE, "without its own")],
)
def test_no_coalition_is_too_sure_of_any_attribute_however_limits_are_given(case: Case, way: str) -> None:
    most = 0.5
    asked: dict[str, Any] = {"sensitive": case.sensitive, "applications": APPLICATIONS, "coalitions": GROUPS, "cap": 3}
    plan = tc.plan.leakage_budget(case.dependence, posterior=most, **asked, **WAYS[way])
    epsilon = {who: dict(each) for who, each in plan.epsilon.items()}
    found = [surest(case, seen_by(members, epsilon), list(case.sensitive)) for members in GROUPS.values()]
    assert plan.posterior == pytest.approx(max(found), abs=1e-12)
    assert max(found) <= most
    # each coalition would be too sure without the limit, and none is held back for nothing
    largest = {who: dict.fromkeys(each, 3.0) for who, each in APPLICATIONS.items()}
    for members, sure in zip(GROUPS.values(), found, strict=True):
        assert surest(case, seen_by(members, largest), list(case.sensitive)) > most
        assert sure > 0.99 * most


def test_what_is_said_of_a_posterior_is_said_of_every_coalition_and_attribute() -> None:
    worlds = {("late", "early"): 0.2, ("late", "on"): 0.1, ("on", "early"): 0.1, ("on", "on"): 0.6}
    day = tc.Dependence.from_table(worlds, names=("arrival", "leaving"))
    asked: dict[str, Any] = {"sensitive": {"arrival": ["late"], "leaving": ["early"]}, "posterior": 0.5, "cap": 5.0}
    line = math.log(7 / 3)  # .3 / (.3 + .7 exp(-epsilon)) = .5
    plan = tc.plan.leakage_budget(
        day, limit={"leaving": 1}, coalitions={"A": ["arrival"]}, weights={"arrival": 1}, **asked
    )
    assert plan.epsilon["arrival"] == pytest.approx(line, abs=1e-6)
    plan = tc.plan.leakage_budget(day, limit={"A": 1}, coalitions={"A": ["arrival"], "B": ["leaving"]}, **asked)
    assert plan.epsilon == pytest.approx({"arrival": line, "leaving": line}, abs=1e-6)
    one, other = (
        tc.plan.leakage_budget(day, coalitions={"AB": ["arrival", "leaving"]}, **asked, **more)
        for more in ({"limit": 1}, {"limit": {"leaving": 1}, "own": False})
    )
    assert other.value == pytest.approx(one.value, abs=1e-5)
    moved = tc.Dependence.from_table({**worlds, ("late", "on"): 0.15, ("on", "on"): 0.55}, names=("arrival", "leaving"))
    assert "An outcome could now give" in str(other.holds_for(moved))


def test_many_lines_of_a_coalition_without_another_limit_are_kept_too() -> None:
    names = tuple(f"a{place}" for place in range(4))
    rng = np.random.default_rng(5)
    chances = rng.dirichlet(np.full(16, 1.0))
    worlds = dict(zip(itertools.product("st", repeat=4), chances.tolist(), strict=True))
    case = Case(worlds, names, {name: ["s"] for name in names}, {})
    most = 0.5 * (prior(case) + 1)
    groups = {"one": ["a0"], "all": list(names)}
    asked: dict[str, Any] = {"sensitive": case.sensitive, "limit": {"one": 5}, "coalitions": groups, "cap": 3.0}
    plan = tc.plan.leakage_budget(case.dependence, posterior=most, **asked)
    found = surest(case, dict(plan.epsilon), list(names))
    assert plan.posterior == pytest.approx(found, abs=1e-12)
    assert most - 1e-3 < found <= most
    assert plan.value > 0


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

    who: dict[str, Any] = {"applications": {"b": ["b"]}, "coalitions": [["b"]], "weights": {"b": 1}}
    plan = tc.plan.leakage_budget(day(0.03), sensitive={"a": ["s"]}, limit=1, posterior=0.85, cap=3.0, **who)
    assert plan.holds_for(day(0.03))
    assert "An outcome could now give" in str(plan.holds_for(day(0.001)))

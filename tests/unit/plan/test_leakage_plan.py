"""Plans of leakage as people ask for them: what they say, when they hold, and what is refused."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from tests.joints import Case, a_network, random_case

import tacit as tc
from tacit.dependence.suppression import outcomes, suppression
from tacit.plan.leakage.leakage_plan import largest_change

DAY = tc.Dependence.from_table(
    {("late", "early"): 0.2, ("late", "late"): 0.1, ("early", "early"): 0.2, ("early", "late"): 0.5},
    names=("arrival", "leaving"),
)
SENSITIVE = {"arrival": ["late"], "leaving": ["early"]}
CASES = [random_case(np.random.default_rng(200 + seed), most=3) for seed in range(3)]


def learned(dependence: tc.Dependence, sensitive: Any, epsilon: Any, target: str, seen: Iterable[str]) -> float:
    """Return a mutual information as the audit computes it."""
    return outcomes(suppression(dependence, sensitive, dict(epsilon)), target, seen).information()


def over_pairs(dependence: tc.Dependence, sensitive: Any, epsilon: Any) -> float:
    return sum(learned(dependence, sensitive, epsilon, target, [name]) for target in sensitive for name in epsilon)


def test_a_plan_keeps_its_limit_as_the_audit_computes_it() -> None:
    plan = tc.plan.leakage_budget(DAY, sensitive=SENSITIVE, limit=0.1, weights={"arrival": 1, "leaving": 2})
    said = over_pairs(DAY, SENSITIVE, plan.epsilon)
    assert plan.leakage == pytest.approx(said, abs=1e-12)
    assert said <= 0.1
    assert said == pytest.approx(0.1, abs=1e-6)
    assert plan.gap < 1e-6
    for name, u in plan.release_probability.items():
        assert u == pytest.approx(-math.expm1(-plan.epsilon[name]), abs=1e-15)


def test_a_limit_for_each_attribute_and_for_each_coalition() -> None:
    each = tc.plan.leakage_budget(DAY, sensitive=SENSITIVE, limit={"arrival": 0.05, "leaving": 0.2})
    assert [use.about for use in each.limits] == [("arrival",), ("leaving",)]
    assert all(use.leakage <= use.limit for use in each.limits)
    who = {"light": ["arrival"], "space": ["leaving"]}
    plan = tc.plan.leakage_budget(
        DAY,
        sensitive=SENSITIVE,
        limit={"light": 0.05, "both": 0.2},
        applications=who,
        coalitions={"light": ["light"], "both": ["light", "space"]},
    )
    assert [use.seen_by for use in plan.limits] == ["light", "both"]
    assert all(use.leakage <= use.limit for use in plan.limits)
    assert plan.epsilon["space"].keys() == {"leaving"}
    json.dumps(plan.document())
    assert "light would learn" in str(plan)


def test_nothing_is_released_where_nothing_may_be_learned() -> None:
    plan = tc.plan.leakage_budget(DAY, sensitive=SENSITIVE, limit=0)
    assert dict(plan.epsilon) == {"arrival": 0.0, "leaving": 0.0}
    assert plan.leakage == 0
    assert plan.gap == 0


def test_with_nothing_left_of_one_limit_what_says_nothing_about_it_is_still_released() -> None:
    worlds = {(a, b): (0.3, 0.7)[a] * (0.4, 0.6)[b] for a, b in itertools.product((0, 1), repeat=2)}
    apart = tc.Dependence.from_table(worlds, names=("a", "b"))
    plan = tc.plan.leakage_budget(apart, sensitive={"a": [1], "b": [1]}, limit={"a": 0.0, "b": 0.1})
    assert plan.epsilon["a"] == 0
    assert plan.epsilon["b"] > 0.1


@pytest.mark.parametrize("objective", ["releases", "epsilon"])
@pytest.mark.parametrize("cap", [2.0, 36.0, 40.0])
def test_a_cap_is_kept(cap: float, objective: str) -> None:
    """The release probability of 40 is one after rounding."""
    plan = tc.plan.leakage_budget(DAY, sensitive=SENSITIVE, limit=5, cap=cap, objective=objective)
    assert max(plan.epsilon.values()) <= cap
    assert plan.value + plan.gap >= (cap * 2 if objective == "epsilon" else 1.3 * -math.expm1(-cap)) - 1e-9
    if cap < 40 or objective == "releases":
        assert dict(plan.epsilon) == pytest.approx({"arrival": cap, "leaving": cap}, abs=1e-11)
        assert f"epsilon {cap:g}" in str(plan)
    else:
        assert min(plan.epsilon.values()) > 36


def test_what_is_not_sensitive_is_released_if_it_has_a_weight() -> None:
    plan = tc.plan.leakage_budget(DAY, sensitive={"leaving": ["early"]}, limit=0.01, weights={"arrival": 1})
    assert plan.epsilon["leaving"] == 0
    assert plan.epsilon["arrival"] > 0


# ---- a dependence that changes --------------------------------------------------------------------------------------


def moved(case: Case, share: float, seed: int) -> tc.Dependence:
    """Return the dependence mixed with another one: at most `share` away."""
    other = np.random.default_rng(seed).dirichlet(np.full(len(case.worlds), 0.3))
    mixed = {
        world: (1 - share) * chance + share * float(new)
        for (world, chance), new in zip(case.worlds.items(), other, strict=True)
    }
    return tc.Dependence.from_table(mixed, names=case.names)


@pytest.mark.parametrize("share", [1e-4, 0.01, 0.2, 0.9])
@pytest.mark.parametrize("case", CASES)
def test_leakage_changes_by_no_more_than_is_proven(case: Case, share: float) -> None:
    for seed in range(3):
        other = moved(case, share, seed)
        distance = case.dependence.total_variation(other)
        for name in case.names:
            before, after = (
                learned(one, case.sensitive, case.epsilon, name, case.names) for one in (case.dependence, other)
            )
            apart = before - after
            values = len(case.dependence.values[name])
            assert abs(apart) <= largest_change(distance, values) + 1e-12


def test_the_bound_on_change_is_not_wider_than_it_must_be() -> None:
    """A target that is shown in full, of a dependence that moves from certain to not: the entropy itself changes."""
    sure = tc.Dependence.from_table({0: 1.0, 1: 0.0}, names=["a"])
    unsure = tc.Dependence.from_table({0: 0.99, 1: 0.01}, names=["a"])
    leaks = [learned(one, {"a": []}, {"a": math.inf}, "a", ["a"]) for one in (sure, unsure)]
    assert largest_change(0.01, 2) / 3 < leaks[1] - leaks[0] <= largest_change(0.01, 2)


def test_a_plan_is_kept_while_the_dependence_drifts_as_planned_and_then_as_long_as_it_holds() -> None:
    case = CASES[1]
    plan = tc.plan.leakage_budget(case.dependence, sensitive=case.sensitive, limit=0.5, drift=1e-3, cap=4.0)
    near, far = moved(case, 1e-3, 1), moved(case, 0.8, 2)
    kept = plan.holds_for(near)
    assert kept
    assert kept.distance <= 1e-3
    assert "was planned for" in str(kept)
    assert over_pairs(near, case.sensitive, plan.epsilon) <= 0.5
    assert plan.holds_for(case.dependence).distance == 0
    asked = plan.holds_for(far)
    assert bool(asked) == (over_pairs(far, case.sensitive, plan.epsilon) <= 0.5)
    assert plan.most_at(1e-3)[0] <= 0.5 + 1e-9


def test_a_plan_without_drift_is_made_anew_once_its_limit_is_broken() -> None:
    plan = tc.plan.leakage_budget(DAY, sensitive=SENSITIVE, limit=0.1)
    more = {("late", "early"): 0.45, ("early", "late"): 0.55}
    asked = plan.holds_for(tc.Dependence.from_table(more, names=DAY.names))
    assert not asked
    assert str(asked).startswith("Plan anew")


# ---- what is refused ------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no bound": (
        {"limit": 5.0},
        "cap must be given, the largest epsilon that a plan may use: without it the epsilon of arrival, leaving has no",
    ),
    "no bound for a sum": ({"limit": 0.7, "objective": "epsilon"}, "has no bound"),
    "negative": ({"limit": -1}, "limit must be a finite number, zero or more; got -1"),
    "nan": ({"limit": math.nan}, "limit must be a finite number"),
    "inf": ({"limit": math.inf}, "limit must be a finite number"),
    "text": ({"limit": "much"}, "limit must be a finite number, zero or more; got 'much'"),
    "weights zero": ({"limit": 0.1, "weights": {"arrival": 0, "leaving": 0}}, "weights must not all be zero"),
    "weights unknown": ({"limit": 0.1, "weights": {"arival": 1}}, "Did you mean 'arrival'?"),
    "weights nan": ({"limit": 0.1, "weights": {"arrival": math.nan}}, "weights must be a finite number"),
    "limit unknown": ({"limit": {"exit": 0.1}}, "limit must be for protected attributes"),
    "sensitive unknown": ({"limit": 0.1, "sensitive": {"exit": ["x"]}}, "must be an attribute of the dependence"),
    "sensitive value": ({"limit": 0.1, "sensitive": {"arrival": ["x"]}}, "must be a value of arrival; got 'x'"),
    "all sensitive": (
        {"limit": 0.1, "sensitive": {"arrival": ["late", "early"]}},
        "every attribute with a weight is always sensitive",
    ),
    "one always sensitive": (
        {"limit": 0.1, "sensitive": {**SENSITIVE, "arrival": ["late", "early"]}, "objective": "epsilon"},
        "sensitive must leave a value of arrival to release where epsilons are added up",
    ),
    "cap": ({"limit": 0.1, "cap": 0}, "cap must lie above 0"),
    "measure": ({"limit": 0.1, "measure": "bits"}, "measure must be value or bit; got 'bits'"),
    "objective": ({"limit": 0.1, "objective": "eps"}, "objective must be releases or epsilon; got 'eps'"),
    "coalition": ({"limit": 0.1, "coalitions": [["arival"]]}, "Did you mean 'arrival'?"),
    "coalition empty": ({"limit": 0.1, "coalitions": []}, "coalitions must not be an empty list"),
    "application": ({"limit": 0.1, "applications": {"light": ["exit"]}}, "must be an attribute of the dependence"),
    "drift": ({"limit": 0.1, "drift": 0.2}, "drift leaves nothing of the limit 0.1"),
    "dependence": ({"limit": 0.1, "dependence": {"late": 1.0}}, "dependence must be a dependence, not a dict"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_has_no_answer_is_refused_with_the_reason(name: str) -> None:
    given, said = WRONG[name]
    dependence = given.get("dependence", DAY)
    options = {"sensitive": SENSITIVE, **{key: value for key, value in given.items() if key != "dependence"}}
    with pytest.raises(tc.PlanError) as refused:
        tc.plan.leakage_budget(dependence, **options)
    assert said in str(refused.value)
    assert refused.value.fix


def test_what_is_always_sensitive_adds_no_epsilon() -> None:
    asked: dict[str, Any] = {"sensitive": {**SENSITIVE, "arrival": ["late", "early"]}, "limit": 0.1, "cap": 2.0}
    summed = tc.plan.leakage_budget(DAY, objective="epsilon", weights={"leaving": 1}, **asked)
    assert summed.epsilon["arrival"] == 0
    assert summed.value == pytest.approx(summed.epsilon["leaving"], abs=1e-12)
    released = tc.plan.leakage_budget(DAY, **asked)  # it releases nothing, at any epsilon, so that its weight is free
    assert released.epsilon == pytest.approx(summed.epsilon, abs=1e-5)


def test_fifty_attributes_are_planned_within_a_millionth() -> None:
    names, dependence = a_network(50, seed=0)
    plan = tc.plan.leakage_budget(dependence, sensitive={key: ["s"] for key in names}, limit=1.0)
    assert plan.gap < 1e-6
    assert plan.leakage <= 1.0
    assert plan.leakage == pytest.approx(1.0, abs=1e-6)

"""Every question is planned or refused at every epsilon, whatever the size of a line: no fault, and nothing unsound."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.plan.choose import choose
from tacit.plan.plans import linear
from tacit.plan.plans.rank_plan import RankPlan

SIZES = (2, 5, 9, 20, 64, 300)
EPSILONS = (
    *(Fraction(1, 10**tens) for tens in (3, 2, 1)),
    *map(
        Fraction, (1, 5, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 95, 100, 130, 200, "335.577", 400, 700, 800, 1000)
    ),
)
POLICIES = {
    "everything": (lambda size: tc.secrets.everything(), "public"),
    "everything, presence secret": (lambda size: tc.secrets.everything(), "secret"),
    "within 1": (lambda size: tc.secrets.within(1, "a"), "public"),
    "within 2": (lambda size: tc.secrets.within(2, "a"), "public"),
    "within a third": (lambda size: tc.secrets.within(max(1, size // 3), "a"), "public"),
    "within 1, presence secret": (lambda size: tc.secrets.within(1, "a"), "secret"),
    "within 1 of some": (lambda size: tc.secrets.within(1, "a", where=f"a <= {size // 2}"), "public"),
    "two values, presence secret": (lambda size: tc.secrets.values({"a": [0, 1]}), "secret"),
    "blocks": (lambda size: tc.secrets.partition("a", width=max(2, size // 4)), "public"),
}
QUESTIONS = {
    "all ranges": lambda size: tc.ranges("a", "all"),
    "all ranges of some": lambda size: tc.ranges("a", "all", where="f == True"),
    "some ranges": lambda size: tc.ranges("a", [(0, size // 2), (1, size - 1), (size // 3, size // 2)]),
    "cumulative": lambda size: tc.cumulative("a"),
    "quantiles": lambda size: tc.quantiles("a", [0.25, 0.75]),
}


def policy_of(name: str, size: int) -> tc.Policy:
    secrets, presence = POLICIES[name]
    return tc.Policy(tc.Domain({"a": tc.Integers(0, size - 1), "f": tc.Flag()}), secrets(size), presence=presence)


@pytest.mark.one_in(18)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("size", SIZES)
def test_lines_are_planned(size, policy):
    first = (SIZES.index(size) + 2 * list(POLICIES).index(policy)) % 8
    for epsilon, question in product(EPSILONS[first::8], QUESTIONS.values()):
        plan = choose(question(size), policy_of(policy, size), epsilon)
        assert 0 <= plan.rmse < math.inf
        assert plan.epsilon <= epsilon
        if isinstance(
            plan, RankPlan
        ):  # what a choice by rank loses is enumerated in `tests/property/test_rank_plan.py`
            continue
        for part in plan.parts:
            assert part.proven_loss() <= part.epsilon
            if part.noise is not None and part.noise.is_joint:
                assert part.noise.draw_for((part.base.size(plan.policy.domain),)).dtype == np.int64


@pytest.mark.one_in(12)
@pytest.mark.parametrize("epsilon", ["0.001", 1, 40, "91.86", "290.59", 1000], ids=str)
@pytest.mark.parametrize("policy", ["everything", "within 2", "within 1 of some", "two values, presence secret"])
@pytest.mark.parametrize("size", [2, 5, 20])
def test_grids_are_planned(size, policy, epsilon):
    secrets, presence = POLICIES[policy]
    domain = tc.Domain({"a": tc.Integers(0, size - 1), "b": tc.Integers(0, 4)})
    made = tc.Policy(domain, secrets(size), presence=presence)
    for listed in ("all", [[0, size // 2, 0, 1], [0, 0, 2, 3]]):
        plan = choose(tc.rectangles("a", "b", listed), made, epsilon)
        assert 0 <= plan.rmse < math.inf
        assert all(0 <= error < math.inf for error in plan.tried.values())
        assert (plan.spread.variances() >= 0).all()  # the fit is made, as it will be after the charge


@pytest.mark.parametrize("epsilon", [80, 85, "335.577", 1000])
def test_what_is_planned_at_a_large_epsilon_is_released(epsilon):
    rows = pd.DataFrame({"a": [0, 1, 2, 3], "f": [True, False, True, True]})
    for name in ("everything, presence secret", "within 1 of some"):
        session = tc.Session(policy_of(name, 9), rows, budget=1000)
        record = session.release(tc.ranges("a", "all"), epsilon)
        assert (record.interval(0.999999)[1] >= record.values).all()
        assert session.remaining == 1000 - Fraction(str(epsilon))


def test_a_fault_while_planning_says_that_nothing_was_charged(monkeypatch):
    def fails(*_):
        return math.sqrt(-1)

    session = tc.Session(policy_of("within 2", 9), pd.DataFrame({"a": [0], "f": [True]}), budget=1)
    monkeypatch.setattr(linear, "every_plan", fails)
    for ask in (session.release, session.plan, session.explain):
        with pytest.raises(tc.InternalError) as fault:
            ask(tc.cumulative("a"), 1)
        said = str(fault.value)
        assert "nothing was charged" in said
        assert "ValueError in tacit/plan/" in said
        assert "rows were open" not in said
        assert "stays charged" not in said
    assert session.remaining == 1

"""Suppressions that cancel each other leave the odds as they were, and the equation finds where they do."""

import math

import numpy as np
import pytest

import tacit as tc
from tacit.audit.exclusion_results import cancellations, cancelling_epsilon
from tacit.dependence.suppression import Suppression, suppression

JOINTS = 200
SIDES = {"i": [0, 1], "j": [0, 1]}


def random_release(number: int) -> tuple[Suppression, float, float]:
    rng = np.random.default_rng([41, number])
    joint = rng.dirichlet(np.ones(4)).reshape(2, 2)
    seen, target = rng.uniform(0.05, 3, 2).tolist()
    dep = tc.Dependence.from_table(joint, names=("i", "j"), values=SIDES)
    return suppression(dep, {"i": [0], "j": [0]}, {"i": seen, "j": target}), seen, target


def odds(release: Suppression, name: str, **seen: object) -> float:
    return math.exp(release.log_odds(name, **seen))


def test_suppressions_cancel_where_the_equation_says() -> None:
    met = dict.fromkeys(("cancel", "reinforce"), 0)
    for number in range(JOINTS // 2):
        release, seen, target = random_release(number)
        for found in cancellations(release):
            if (found.seen, found.target) != ("i", "j"):
                continue
            met[found.effect] += 1
            joint = release.dependence.marginal("i", "j")
            where_sensitive, elsewhere = joint[0] / joint.sum(axis=0)
            assert (found.effect == "cancel") == (where_sensitive < elsewhere)
            both = odds(release, "j", suppressed={"i": 1, "j": 1}) / odds(release, "j")
            assert both == pytest.approx(found.factor, rel=1e-12)
            general = cancelling_epsilon(release, "j", "j", suppressed={"i": 1, "j": 1})
            assert (general is None) == (found.target_epsilon is None) == (found.effect == "reinforce")
            if found.target_epsilon is not None:
                assert general == pytest.approx(found.target_epsilon, rel=1e-9)
                changed = suppression(release.dependence, release.sensitive, {"i": seen, "j": found.target_epsilon})
                factor = odds(changed, "j", suppressed={"i": 1, "j": 1}) / odds(changed, "j")
                assert factor == pytest.approx(1, abs=1e-12)
            other = cancelling_epsilon(release, "j", "i", suppressed={"i": 1, "j": 1})
            assert (other is None) == (found.seen_epsilon is None)
            if found.seen_epsilon is not None:
                assert other == pytest.approx(found.seen_epsilon, rel=1e-7)
                changed = suppression(release.dependence, release.sensitive, {"i": found.seen_epsilon, "j": target})
                factor = odds(changed, "j", suppressed={"i": 1, "j": 1}) / odds(changed, "j")
                assert factor == pytest.approx(1, abs=1e-10)
    assert min(met.values()) > 20


def test_they_cancel_beside_other_suppressions_too() -> None:
    rng = np.random.default_rng(42)
    solved = 0
    for _ in range(60):
        joint = rng.dirichlet(np.full(18, 0.6)).reshape(3, 2, 3)
        dep = tc.Dependence.from_table(joint, tuple("abc"), values={"a": [0, 1, 2], "b": [0, 1], "c": [0, 1, 2]})
        sensitive = {"a": [0], "b": [0], "c": [0, 1]}
        epsilon = dict(zip("abc", rng.uniform(0.2, 2, 3).tolist(), strict=True))
        seen = {"suppressed": {"a": 2, "b": 1}, "released": {"c": 2}}
        release = suppression(dep, sensitive, epsilon)
        for vary in "ab":
            found = cancelling_epsilon(release, "a", vary, **seen)
            if found is None or found > 30:
                continue
            solved += 1
            changed = suppression(dep, sensitive, {**epsilon, vary: found})
            assert changed.log_odds("a", **seen) == pytest.approx(changed.log_odds("a"), abs=1e-9)
    assert solved > 10

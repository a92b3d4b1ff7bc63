"""What is learnt from suppressions, against every world and every way the coins may fall."""

import itertools
import math

import numpy as np
import pytest

import tacit as tc
from joints import Case, information, joint_with_outcomes, random_case, weights
from tacit.dependence.suppression import mutual_information, outcomes, suppression

CASES = [random_case(np.random.default_rng([11, number])) for number in range(150)]


def release(case: Case, coins: str = "fresh"):
    return suppression(case.dependence, case.sensitive, case.epsilon, coins)


def some_pattern(case: Case, number: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return suppressions and releases that a world can bring about."""
    rng = np.random.default_rng([12, number])
    possible = [world for world, chance in case.worlds.items() if chance > 0]
    world = dict(zip(case.names, possible[int(rng.integers(len(possible)))], strict=True))
    suppressed, released = {}, {}
    for name, value in world.items():
        kind = rng.integers(4)
        if kind == 1 and not case.is_hidden(name, value):
            released[name] = value
        if kind >= 2 or (kind == 1 and rng.random() < 0.3):
            suppressed[name] = int(rng.integers(1, 4))
    return suppressed, released


@pytest.mark.parametrize("start", range(0, len(CASES), 25))
def test_the_posterior_is_what_enumeration_finds(start: int) -> None:
    for number in range(start, start + 25):
        check_posterior(CASES[number], number)


def check_posterior(case: Case, number: int) -> None:
    suppressed, released = some_pattern(case, number)
    found = weights(case, suppressed, released)
    total = math.fsum(found.values())
    joint = release(case).posterior(case.names, suppressed=suppressed, released=released)
    domains = case.dependence.values
    for cell in itertools.product(*(range(side) for side in joint.shape)):
        world = tuple(domains[name][code] for name, code in zip(case.names, cell, strict=True))
        assert joint[cell] == pytest.approx(found[world] / total, abs=1e-12)
    for place, name in enumerate(case.names):
        one = release(case).posterior([name], suppressed=suppressed, released=released)
        others = tuple(axis for axis in range(joint.ndim) if axis != place)
        np.testing.assert_allclose(one, joint.sum(axis=others), atol=1e-12)
    assert release(case).chance(suppressed=suppressed, released=released) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("bits", [False, True])
def test_mutual_information_is_what_enumeration_finds(bits: bool) -> None:
    for case, target in [(one, name) for one in CASES[:15] for name in one.names]:
        for size in range(len(case.names) + 1):
            seen = case.names[:size]
            slow = information(joint_with_outcomes(case, target, seen, target_bit=bits, seen_bits=bits))
            fast = mutual_information(release(case), target, seen, value=not bits)
            assert fast == pytest.approx(slow, abs=1e-12)


def test_freedom_is_the_worst_ratio_over_all_outcomes() -> None:
    for case in CASES[:30]:
        check_freedom(case)


def check_freedom(case: Case) -> None:
    target, seen = case.names[0], case.names
    table = joint_with_outcomes(case, target, seen)
    prior: dict[int, float] = {}
    for (value, _), chance in table.items():
        prior[value] = prior.get(value, 0.0) + chance
    worst = 0.0
    for (value, outcome), chance in table.items():
        for other, mass in prior.items():
            if case.is_hidden(target, value) and other != value and chance > 0 and mass > 0:
                against = table.get((other, outcome), 0.0) / mass
                worst = max(worst, math.log(chance / prior[value] / against) if against else math.inf)
    level, hidden, cover, at = outcomes(release(case), target, seen).freedom()
    assert level == pytest.approx(worst, abs=1e-11)
    if 0 < level < math.inf:
        shown = tuple(outcomes(release(case), target, seen).outcome(at).values())
        ratio = table[hidden, shown] / prior[hidden] / (table[cover, shown] / prior[cover])
        assert math.log(ratio) == pytest.approx(level, abs=1e-11)


def test_asking_again_counts_with_fresh_coins_only() -> None:
    case = CASES[0]
    a, b = case.names[:2]
    thrice = release(case).posterior([b], suppressed={a: 3})
    more = suppression(case.dependence, case.sensitive, {**case.epsilon, a: 3 * case.epsilon[a]})
    np.testing.assert_allclose(thrice, more.posterior([b], suppressed={a: 1}), atol=1e-14)
    once = release(case, "remembered").posterior([b], suppressed={a: 3})
    np.testing.assert_allclose(once, release(case).posterior([b], suppressed={a: 1}), atol=1e-14)
    assert not np.allclose(once, thrice, atol=1e-6)
    repeated = mutual_information(release(case), b, [a], questions={a: 3})
    assert repeated == pytest.approx(mutual_information(more, b, [a]), abs=1e-14)
    kept = mutual_information(release(case, "remembered"), b, [a], questions={a: 3})
    assert kept == pytest.approx(mutual_information(release(case), b, [a]), abs=1e-14)


def test_large_weights_are_kept_apart() -> None:
    """Two values that are both as good as excluded, by 2000 and by 2001, still have odds."""
    dep = tc.Dependence.from_table(
        {("in", "x"): 0.25, ("in", "y"): 0.25, ("out", "x"): 0.25, ("out", "z"): 0.25}, names=("a", "b")
    )
    seen = suppression(dep, {"a": ["out"], "b": ["z"]}, {"a": 1.0, "b": 2000.0})
    assert seen.posterior(["a"], suppressed={"a": 1, "b": 1}).tolist() == [0.0, 1.0]
    told = seen.posterior(["a"], suppressed={"a": 2000}, released={"b": "x"})
    assert told[0] == 0.0
    odds = seen.log_odds("a", suppressed={"a": 2000}, released={"b": "x"})
    assert odds == pytest.approx(2000, abs=1e-9)
    both = seen.log_odds("a", suppressed={"a": 2001, "b": 1})
    assert both == pytest.approx(2001 + 2000 - math.log(2), abs=1e-9)


def test_an_infinite_epsilon_always_releases_and_a_zero_one_never() -> None:
    dep = tc.Dependence.from_table({(0, 0): 0.1, (0, 1): 0.2, (1, 0): 0.3, (1, 1): 0.4}, names=("a", "b"))
    sure = suppression(dep, {"a": [0], "b": [0]}, {"a": math.inf, "b": 0.0})
    assert sure.log_odds("a", suppressed={"a": 1}) == math.inf
    np.testing.assert_allclose(sure.posterior(["a"], suppressed={"b": 9}), dep.marginal("a"), atol=1e-14)
    assert mutual_information(sure, "a", ["b"]) == pytest.approx(0, abs=1e-15)
    with pytest.raises(tc.PlanError, match="probability 0"):
        sure.posterior(["a"], released={"b": 1})


def test_a_bit_misses_what_a_value_tells() -> None:
    dep = tc.Dependence.from_table({("s", 0): 0.1, ("s", 1): 0.1, ("a", 0): 0.4, ("b", 1): 0.4}, names=["i", "j"])
    seen = suppression(dep, {"i": ["s"], "j": [0]}, {"i": 1.0})
    assert mutual_information(seen, "j", ["i"], value=False) == pytest.approx(0, abs=1e-15)
    assert mutual_information(seen, "j", ["i"]) == pytest.approx(0.8 * (1 - math.exp(-1)) * math.log(2), abs=1e-15)


def test_copies_are_no_product_of_pairs_either() -> None:
    """Two copies of one attribute tell as much as one at twice the epsilon; the product of factors says 16.96."""
    copies = {(0, 0, 0): 0.45, (1, 1, 0): 0.05, (0, 0, 1): 0.05, (1, 1, 1): 0.45}
    seen = suppression(tc.Dependence.from_table(copies, tuple("abc")), {n: [0] for n in "abc"}, {"a": 2.0, "b": 2.0})
    pair = math.exp(seen.log_odds("c", suppressed=["a"]))
    assert pair**2 == pytest.approx(16.96, abs=0.005)
    both = math.exp(seen.log_odds("c", suppressed=["a", "b"]))
    assert both == pytest.approx((0.9 * math.expm1(4) + 1) / (0.1 * math.expm1(4) + 1), rel=1e-12)
    assert both == pytest.approx(7.74, abs=0.005)


def test_three_attributes_are_no_product_of_pairs() -> None:
    xor = tc.Dependence.from_table(
        {(a, b, a ^ b): 0.25 for a, b in itertools.product((0, 1), repeat=2)}, names=("a", "b", "c")
    )
    seen = suppression(xor, {name: [0] for name in "abc"}, dict.fromkeys("abc", 1.0))
    assert seen.log_odds("c", suppressed={"a": 5}) == pytest.approx(0, abs=1e-15)
    assert seen.log_odds("c", suppressed={"a": 50, "b": 50}) == pytest.approx(50 - math.log(2), abs=1e-9)
    assert mutual_information(seen, "c", ["a"]) == pytest.approx(0, abs=1e-15)
    assert mutual_information(seen, "c", ["a", "b"]) > 0.1

"""What releases say about protected attributes: against every outcome, and the shape that planning relies on."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from tests.joints import Case, learned_together, random_case

from tacit.dependence.dependence import Dependence
from tacit.dependence.suppression import outcomes, suppression
from tacit.errors import PlanError
from tacit.plan.leakage import outcomes as leakage_outcomes
from tacit.plan.leakage.setting import LeakageSetting, Limit, ReleaseLine, checked_setting

CASES = [random_case(np.random.default_rng(seed), most=3, sizes=(2, 3)) for seed in range(4)]


def settings(case: Case, **options: object) -> LeakageSetting:
    return checked_setting(case.dependence, sensitive=case.sensitive, **{"limit": 1.0, "measure": "value", **options})


def information(case: Case, target: str, seen: list[str], epsilon: dict[str, float], measure: str) -> float:
    """Return a mutual information as the audit computes it."""
    release = suppression(case.dependence, case.sensitive, epsilon)
    bit = measure == "bit"
    return outcomes(release, target, seen, target_bit=bit, seen_bits=bit).information()


def points(lines: int, count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.02, 0.97, (count, lines))


@pytest.mark.parametrize("measure", ["value", "bit"])
@pytest.mark.parametrize("case", CASES)
def test_sums_over_pairs_are_those_of_the_audit(case: Case, measure: str) -> None:
    setting = settings(case, measure=measure)
    terms = setting.pair_terms(setting.tables(case.dependence))
    for u in points(len(setting.lines), 3, 1):
        epsilon = dict(zip(case.names, -np.log1p(-u), strict=True))
        said = sum(information(case, j, [i], epsilon, measure) for i in case.names for j in case.names)
        assert terms.at(u)[0] == pytest.approx(said, abs=1e-12)
        assert abs(terms.at(u)[0] - said) <= terms.rounding(u)[0] + 1e-14


@pytest.mark.parametrize("case", CASES)
def test_slopes_and_curvatures_are_those_of_the_sums(case: Case) -> None:
    setting = settings(case)
    terms = setting.pair_terms(setting.tables(case.dependence))
    step = 1e-5
    for u in points(len(setting.lines), 3, 2):
        u = np.minimum(u, 0.9)
        _, slope, curvature = terms.with_curvatures(u)
        for line in range(len(u)):
            moved = np.eye(len(u))[line] * step
            above, below = terms.at(u + moved)[0], terms.at(u - moved)[0]
            assert (above - below) / (2 * step) == pytest.approx(slope[0, line], abs=1e-7)
            bend = (above - 2 * terms.at(u)[0] + below) / step**2
            assert bend == pytest.approx(curvature[0, line], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_each_line_adds_a_convex_function_that_rises_from_zero(case: Case) -> None:
    setting = settings(case)
    terms = setting.pair_terms(setting.tables(case.dependence))
    grid = np.linspace(0, 1, 41)
    curve = np.array([terms.each(np.full(len(setting.lines), u))[0] for u in grid])
    assert (curve[0] == 0).all()
    assert (np.diff(curve, axis=0) >= -1e-13).all()
    assert (np.diff(curve, 2, axis=0) >= -1e-13).all()


@pytest.mark.parametrize("measure", ["value", "bit"])
@pytest.mark.parametrize("case", CASES)
def test_joint_informations_are_about_all_attributes_together(case: Case, measure: str) -> None:
    names = list(case.names)
    for about, seen in itertools.product((names, names[:1], names[1:]), (names, names[:1], names[1:], [])):
        setting = LeakageSetting(
            {name: frozenset(case.sensitive[name]) for name in case.names},
            tuple(ReleaseLine(name, name) for name in seen),
            (Limit("all", tuple(range(len(seen))), tuple(about), 1.0),),
            measure,
            own=True,
            joint=True,
            coalitions={"all": tuple(range(len(seen)))},
        )
        tables = setting.tables(case.dependence)
        (limit,), safe = setting.joint_limits(tables), setting.safe_terms(tables)
        for u in points(len(seen), 2, 3):
            epsilon = dict(zip(seen, -np.log1p(-u), strict=True))
            said = learned_together(case, about, seen, epsilon, measure=measure)
            assert limit.at(u[None])[0] == pytest.approx(said, abs=1e-12)
            assert safe.at(u)[0] >= said - 1e-12


@pytest.mark.parametrize("measure", ["value", "bit"])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_joint_informations_about_one_attribute_are_those_of_the_audit(case: Case, measure: str, own: bool) -> None:
    each = dict.fromkeys(case.names, 1.0)
    setting = settings(case, measure=measure, own=own, coalitions=[list(case.sensitive)], limit=each)
    limits = setting.joint_limits(setting.tables(case.dependence))
    for u in points(len(setting.lines), 2, 3):
        epsilon = dict(zip(case.names, -np.log1p(-u), strict=True))
        for limit, name in zip(limits, case.names, strict=True):
            said = information(case, name, [i for i in case.names if own or i != name], epsilon, measure)
            assert limit.at(u[None])[0] == pytest.approx(said, abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_where_there_are_too_many_outcomes_the_information_is_bounded_from_above(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = list(case.names[1:])
    asked = {"applications": {"one": shown}, "coalitions": [["one"]], "limit": {case.names[0]: 1.0}}
    exact = settings(case, **asked)
    (limit,) = exact.joint_limits(exact.tables(case.dependence))
    most = math.prod(len(case.dependence.values[name]) + 1 for name in shown)
    monkeypatch.setattr(leakage_outcomes, "MOST_OUTCOMES", most)
    (bound,) = exact.joint_limits(exact.tables(case.dependence))
    assert bound.cells <= most
    for u in points(len(shown), 3, 6):
        assert bound.at(u[None])[0] >= limit.at(u[None])[0] - 1e-12
        epsilon = dict(zip(shown, -np.log1p(-u), strict=True))
        assert bound.at(u[None])[0] == pytest.approx(learned_together(case, shown, shown, epsilon), abs=1e-12)
    monkeypatch.setattr(leakage_outcomes, "MOST_OUTCOMES", 1)
    with pytest.raises(PlanError, match="must have at most 1 outcomes together"):
        exact.joint_limits(exact.tables(case.dependence))


@pytest.mark.parametrize("case", CASES)
def test_the_convex_bound_is_never_below_the_joint_information(case: Case) -> None:
    setting = settings(case, coalitions=[list(case.sensitive)])
    tables = setting.tables(case.dependence)
    (limit,), safe = setting.joint_limits(tables), setting.safe_terms(tables)
    for u in [*points(len(setting.lines), 8, 4), np.zeros(len(setting.lines)), np.ones(len(setting.lines))]:
        assert safe.at(u)[0] >= limit.at(u[None])[0] - 1e-12


@pytest.mark.parametrize("case", CASES)
def test_joint_informations_rise_and_are_convex_in_each_line(case: Case) -> None:
    setting = settings(case, coalitions=[list(case.sensitive)])
    (limit,) = setting.joint_limits(setting.tables(case.dependence))
    for line, start in itertools.product(range(len(setting.lines)), points(len(setting.lines), 2, 5)):
        along = np.tile(start, (21, 1))
        along[:, line] = np.linspace(0, 1, 21)
        curve = limit.at(along)
        assert (np.diff(curve) >= -1e-13).all()
        assert (np.diff(curve, 2) >= -1e-13).all()


def test_pairs_miss_what_only_two_lines_together_tell() -> None:
    """The exclusive or of two fair bits: no pair says anything, both together say everything."""
    worlds = {(a, b, a ^ b): 0.25 for a, b in itertools.product((0, 1), repeat=2)}
    xor = Dependence.from_table(worlds, names=("a", "b", "c"))
    options = {"sensitive": {"c": [1]}, "limit": 1.0, "measure": "value", "shown": ["a", "b"], "own": False}
    u = np.array([0.0, 1.0, 1.0])  # c is not shown
    pairs = checked_setting(xor, **options)
    assert pairs.leakages(pairs.tables(xor), u)[0] == pytest.approx(0.0, abs=1e-12)
    joint = checked_setting(xor, **options, coalitions=[["a", "b"]])
    assert joint.leakages(joint.tables(xor), u)[0] == pytest.approx(math.log(2), abs=1e-12)
    assert joint.safe_terms(joint.tables(xor)).at(u)[0] >= math.log(2) - 1e-12


def test_one_line_that_tells_about_two_attributes_only_together_counts_in_full() -> None:
    """The exclusive or of two protected bits says nothing about either, and halves what is open about both."""
    worlds = {(a, b, a ^ b): 0.25 for a, b in itertools.product((0, 1), repeat=2)}
    xor = Dependence.from_table(worlds, names=("a", "b", "x"))
    asked = {"sensitive": {"a": [1], "b": [1]}, "limit": 1.0, "measure": "value", "applications": {"one": ["x"]}}
    joint = checked_setting(xor, **asked, coalitions=[["one"]])
    for u in (0.3, 1.0):
        shown = np.array([u])
        assert joint.leakages(joint.tables(xor), shown)[0] == pytest.approx(u * math.log(2), abs=1e-12)
        assert joint.safe_terms(joint.tables(xor)).at(shown)[0] >= u * math.log(2) - 1e-12


def test_two_applications_with_coins_of_their_own_are_one_with_both_epsilons() -> None:
    case = CASES[0]
    name = case.names[0]
    two = settings(case, applications={"x": [name], "y": [name]}, coalitions=[["x", "y"]])
    one = settings(case, applications={"x": [name]}, coalitions=[["x"]])
    tables = one.tables(case.dependence)
    (both,), (single,) = two.joint_limits(tables), one.joint_limits(tables)
    u = np.array([[-math.expm1(-0.3), -math.expm1(-0.9)]])
    assert both.at(u)[0] == pytest.approx(single.at(np.array([[-math.expm1(-1.2)]]))[0], abs=1e-13)


def test_released_values_tell_what_the_bit_does_not() -> None:
    """Values s, a, b, of which a and b decide the other attribute: the bit says nothing, the value 0.35 nats."""
    worlds = {("s", 0): 0.1, ("s", 1): 0.1, ("a", 0): 0.4, ("b", 1): 0.4}
    dependence = Dependence.from_table(worlds, names=("shown", "other"))
    options = {"sensitive": {"shown": ["s"], "other": [1]}, "limit": {"other": 1.0}, "own": False}
    u = np.array([-math.expm1(-1.0), 0.0])
    bit, value = (checked_setting(dependence, measure=measure, **options) for measure in ("bit", "value"))
    assert bit.leakages(bit.tables(dependence), u)[0] == pytest.approx(0, abs=1e-12)
    assert value.leakages(value.tables(dependence), u)[0] == pytest.approx(0.3505, abs=1e-4)

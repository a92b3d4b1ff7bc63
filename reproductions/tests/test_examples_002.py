"""Document 002's Table 2, Examples 1 to 5 and its claims about errors: exact, from the definition of its policy."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import tacit as tc
from brute_force import edges_of, every_record
from tacit import noise
from tacit.noise.two_scale import TwoScale
from tacit_reproductions.document_002.errors import (
    Errors,
    bound_of_theorem_8,
    certain_under_asymmetry,
    certainty_claims,
    error_claims,
    laplace,
    most_certain,
    one_sided,
    one_sided_median,
    privacy_claims,
)

TABLE_2 = {"Bob": (1, 0), "Tom": (0, 0), "Alice": (1, 1), "Ema": (0, 1)}
PLACES = tc.Domain({"location 1": tc.Integers(0, 1), "location 2": tc.Integers(0, 1)})
VISITS = tc.Policy(PLACES, tc.secrets.values({"location 1": [1], "location 2": [1]}))  # Example 1
DP = tc.Policy(PLACES, tc.secrets.values({"location 1": [0, 1], "location 2": [0, 1]}))  # Example 2


def covers(policy: tc.Policy, record: tuple[int, int]) -> set[tuple[int, int]]:
    """Every other record that this one must look like."""
    return {tuple(cover) for hidden, cover in edges_of(policy) if tuple(hidden) == record and tuple(cover) != record}


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        ("Bob", {(0, 0)}),  # the paper also lists Bob's own record
        ("Alice", {(1, 0), (0, 1), (0, 0)}),
        ("Tom", set()),
        ("Ema", {(0, 0)}),  # not in the paper
    ],
)
def test_examples_1_and_3_neighbours_in_table_2(who, expected):
    assert covers(VISITS, TABLE_2[who]) == expected
    assert {r for r in every_record(PLACES) if r != TABLE_2[who] and VISITS.distance(TABLE_2[who], r) == 1} == expected


def test_example_2_everything_sensitive_is_differential_privacy():
    plain = tc.Policy(PLACES, tc.secrets.everything())
    for record in TABLE_2.values():
        assert covers(DP, record) == covers(plain, record) == set(every_record(PLACES)) - {record}


def test_example_4_a_visit_is_protected_and_staying_away_may_leak():
    visited, stayed = tc.count("`location 1` == 1"), tc.count("`location 2` == 0")
    assert VISITS.distance(TABLE_2["Bob"], (0, 0)) == 1  # Bob's visit looks like none
    for other in ((1, 1), (0, 1)):  # that he was not at location 2 does not look like a visit
        assert math.isinf(VISITS.distance(TABLE_2["Bob"], other))
    assert tc.largest_step(visited, VISITS).down == 1
    assert tc.largest_step(stayed, VISITS).up == 1


@pytest.mark.parametrize("place", PLACES)
def test_example_5_counts_of_table_2_only_fall(place):
    step = tc.largest_step(tc.count(f"`{place}` == 1"), VISITS)
    assert (step.up, step.down, step.monotone) == (0, 1, "falling")
    people = [dict(zip(PLACES, record, strict=True)) for record in TABLE_2.values()]
    truth = sum(person[place] for person in people)
    for at, person in enumerate(people):
        for cover in covers(VISITS, tuple(person.values())):
            changed = [*people[:at], dict(zip(PLACES, cover, strict=True)), *people[at + 1 :]]
            assert sum(one[place] for one in changed) <= truth
    assert tc.largest_step(tc.count(f"`{place}` == 1"), DP).monotone is None  # Theorem 4


def test_errors_in_units_of_one_over_epsilon():
    """Laplace: E|x| = 1, root mean square 1.414. One-sided: 2/e and 1 less the mean, ln 2 less the median."""
    for found, absolute, rms in (
        (laplace(), 1, math.sqrt(2)),
        (one_sided(), 2 / math.e, 1),
        (one_sided_median(), math.log(2), math.hypot(1, 1 - math.log(2))),
    ):
        assert found.absolute == pytest.approx(absolute, abs=2e-3)
        assert found.rms == pytest.approx(rms, abs=2e-3)
    law = TwoScale(Fraction(5), Fraction(0))
    found = Errors.of(law, less=law.mean(), epsilon=Fraction(1))
    assert found.rms == pytest.approx(math.sqrt(law.variance()), rel=1e-9)


def best_by_program(steps: int, epsilon: float, delta: float) -> float:
    """The same as a linear program over p_0 = 0, p_1, .., p_steps: every constraint between neighbours, both ways."""
    rows, limits, factor = [], [], math.exp(epsilon)
    for at in range(steps):
        for here, there in ((at, at + 1), (at + 1, at)):
            yes, no = np.zeros(steps + 1), np.zeros(steps + 1)
            yes[here], yes[there] = 1, -factor  # p_here <= e^eps p_there + delta
            no[here], no[there] = -1, factor  # 1 - p_here <= e^eps (1 - p_there) + delta
            rows += [yes, no]
            limits += [delta, factor + delta - 1]
    goal = np.zeros(steps + 1)
    goal[-1] = -1
    found = linprog(goal, A_ub=np.array(rows), b_ub=limits, bounds=[(0, 0), *[(0, 1)] * steps])
    return float(-found.fun)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
def test_theorem_8_bounds_the_best_mechanism(epsilon, delta):
    for steps in (1, 2, 5, 9):
        best = most_certain(steps, epsilon, delta)
        assert best == pytest.approx(best_by_program(steps, epsilon, delta), abs=1e-8)
        assert best <= bound_of_theorem_8(steps, epsilon, delta) + 1e-12
    assert most_certain(3, epsilon, 1e-3) == pytest.approx(bound_of_theorem_8(3, epsilon, 1e-3), rel=1e-12)  # attained
    assert certain_under_asymmetry(3, Fraction(epsilon)) == pytest.approx(1 - math.exp(-3 * epsilon), rel=1e-9)


def test_verdicts_on_errors_and_certainty():
    verdicts = [(claim.figure, claim.holds) for claim in (*error_claims(), *certainty_claims())]
    assert verdicts == [
        ("section 2.2, Theorem 3", "partly"),
        ("section 1", "partly"),
        ("section 5.1", "yes"),
        ("section 5.1, remark", "no"),
        ("section 5.2", "partly"),
        ("Theorem 8", "yes"),
        ("Theorem 8", "yes"),
        ("Theorem 9", "no"),
        ("Theorems 9, 11", "yes"),
    ]


def test_verdicts_on_privacy():
    """Theorems 12 to 15: the letter of Algorithm 1, Algorithm 2, the queue of Algorithm 3, and A -> B lose too much."""
    with noise.replayed(noise.Keystream(key=b"golden numbers of document 002..")):
        claims = {claim.figure: claim for claim in privacy_claims(10_000)}
    within = {name: [bound <= 1 for bound in claim.checks[0].found] for name, claim in claims.items()}
    assert within == {
        "Theorem 12": [True, False],
        "Theorem 13": [False],
        "Theorem 14": [True, False, False],
        "Theorem 15": [True, False],
    }

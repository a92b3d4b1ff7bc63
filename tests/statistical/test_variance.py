"""Variances against plain numpy on the same rows: intervals hold at their level, and mistakes in them are noticed.

The noise comes from a stream that is fixed by its key, so a failure repeats. With the right law, the coverage of
RUNS runs is below the bound in fewer than one case in 10^6 (a binomial tail).
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import tacit as tc
from parameters import replaying
from tacit.plan.choose import choose
from tacit.plan.plans.linear import LinearPlan
from tacit.release.estimate.infer import infer
from tacit.release.estimate.measure import measure, true_answers
from tacit.release.results.derived import derive
from tacit.rows.rows import open_rows

ALPHA = 1e-6
RUNS = 150
LEVELS = (0.5, 0.8, 0.95)
DOMAIN = tc.Domain({"age": tc.Integers(0, 60), "ward": tc.Categories(list("abcdefg")), "sick": tc.Flag()})
POLICIES = {
    "everything": tc.Policy(DOMAIN, tc.secrets.everything()),
    "secret presence": tc.Policy(DOMAIN, tc.secrets.attributes("age"), presence="secret"),
    "near ages": tc.Policy(DOMAIN, tc.secrets.within(4, "age")),
    "one way": tc.Policy(DOMAIN, tc.secrets.records("sick")),
    "wards": tc.Policy(DOMAIN, tc.secrets.attributes("ward")),
}
stream = replaying(b"variances of a stream of noise!!")


def people(many: int) -> pd.DataFrame:
    """As many in each ward; wards differ in their mean ages and in how far ages lie apart."""
    ward = np.repeat(np.arange(7), many)
    middle = 60 * (ward + 0.5) / 7
    age = np.clip(np.rint(middle + 4 * ward * np.sin(np.arange(7 * many))), 0, 60).astype(int)
    return pd.DataFrame({"age": age, "ward": [DOMAIN["ward"].value(at) for at in ward], "sick": age % 3 == 0})


def truth_of(frame: pd.DataFrame, by: tuple[str, ...]) -> np.ndarray:
    ages = [frame.age] if not by else [group.age for _, group in frame.groupby(list(by))]
    return np.array([np.var(one.to_numpy()) for one in ages])


def releases(plan, frame, runs=RUNS, drawn=None):
    """Release so often; `drawn` are the plans whose noise is added in place of the right one."""
    rows = open_rows(frame, plan.policy.domain)
    truths = [true_answers(part.base, rows, plan.policy) for part in plan.parts]
    for _ in range(runs):
        noisy = [measure(part, truth).noisy for part, truth in zip(drawn or plan.parts, truths, strict=True)]
        measured = [
            replace(measure(part, truth), noisy=values)
            for part, truth, values in zip(plan.parts, truths, noisy, strict=True)
        ]
        yield derive(plan, [infer(one) for one in measured])


def coverage(plan, frame, truth, **options):
    held = {level: np.zeros(len(truth)) for level in LEVELS}
    for record in releases(plan, frame, **options):
        for level in LEVELS:
            lower, upper = record.interval(level)
            assert ((lower <= record.values) & (record.values <= upper)).all()
            held[level] += (lower <= truth + 1e-9) & (truth - 1e-9 <= upper)
    return held


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("by", "many"), [((), 3), ((), 60), (("ward",), 3), (("ward",), 60)])
def test_intervals_of_variances_hold(policy, by, many):
    frame = people(many)
    held = coverage(choose(tc.variance("age", by=by), POLICIES[policy], 1), frame, truth_of(frame, by))
    for level in LEVELS:
        assert (held[level] >= binom.ppf(ALPHA, RUNS, level)).all(), level


@pytest.mark.parametrize("epsilon", [4, 10])
@pytest.mark.parametrize("values", [[4] * 7 + [0] * 3, [2] * 10, [0] * 5 + [4] * 5, [4]])
def test_intervals_hold_where_noise_is_mostly_zero_and_at_the_ends_of_the_range(epsilon, values):
    domain = tc.Domain({"x": tc.Integers(0, 4), "ward": tc.Categories(["a", "b"])})
    frame = pd.DataFrame({"x": [*values, 1, 2], "ward": ["a"] * len(values) + ["b"] * 2})
    policy = tc.Policy(domain, tc.secrets.attributes("x", "ward"))
    truth = np.array([np.var(values)])
    held = coverage(choose(tc.variance("x", where="ward == 'a'"), policy, epsilon), frame, truth, runs=600)
    for level in LEVELS:
        assert held[level][0] >= binom.ppf(ALPHA, 600, level), level


def test_the_interval_is_as_wide_as_numbers_in_the_intervals_of_the_parts_allow():
    """Every variance that squares, sums and counts in their intervals can make lies inside, and both ends are met."""
    frame = people(30)
    plan = choose(tc.variance("age", where="ward == 'd'"), POLICIES["wards"], 2)
    for record in releases(plan, frame, 20):
        level = 1 - 0.05 / sum(not part.exact.all() for part in record.parts)
        ends = [part.interval(level) for part in record.parts]
        squares, sums, counts = (np.linspace(low[0], high[0], 201) for low, high in ends)
        if counts[0] <= 0:
            continue
        people_there = np.maximum(counts, 1.0)[:, None]
        made = squares[None, [0, -1]][:, :, None] / people_there[:, :, None] - (sums / people_there)[:, None, :] ** 2
        lower, upper = record.interval(0.95)
        low, high = np.clip([made.min(), made.max()], *plan.query.range(DOMAIN))
        assert lower[0] <= low + 1e-9
        assert upper[0] >= high - 1e-9
        assert upper[0] - lower[0] <= (high - low) * 1.05 + 1e-6


def planted_interval(record, level):
    """What somebody might write who forgets the noise of the sums and of the counts."""
    squares, sums, counts = record.parts
    people_there = max(counts.values[0], 1)
    return [end[0] / people_there - (sums.values[0] / people_there) ** 2 for end in squares.interval(level)]


def test_an_interval_with_the_noise_of_the_squares_alone_would_not_hold():
    """Guards the tests above: they notice an interval that leaves noise out."""
    frame = people(60)[lambda rows: rows.ward == "a"]
    plan = choose(tc.variance("age"), POLICIES["secret presence"], 1)
    truth, held = float(np.var(frame.age)), 0
    for record in releases(plan, frame):
        lower, upper = planted_interval(record, 0.95)
        held += int(lower <= truth <= upper)
    assert held < binom.ppf(ALPHA, RUNS, 0.95)


@pytest.mark.parametrize(("role", "wards"), [(0, "abcdefg"), (1, "a")])  # sums matter far from the middle of the range
def test_more_noise_than_the_plan_says_would_not_be_held(role, wards):
    """Guards the tests above: they notice squares or sums that have twelve times their noise."""
    frame = people(600)[lambda rows: rows.ward.isin(list(wards))]
    plan = choose(tc.variance("age"), POLICIES["everything"], 1)
    parts: list[LinearPlan] = list(plan.parts)
    wrong = parts[role].noise.widened(12)
    parts[role] = replace(parts[role], noise=wrong)
    held = coverage(plan, frame, truth_of(frame, ()), drawn=parts)
    assert held[0.8][0] < binom.ppf(ALPHA, RUNS, 0.8)


@pytest.mark.parametrize("policy", ["everything", "near ages", "secret presence"])
def test_the_error_of_a_variance_is_about_as_predicted(policy):
    """It is stated for a mean that may be anywhere in the range: for one in its middle it is smaller, never larger."""
    ages = np.tile([10, 20, 30, 40, 50], 200)
    frame = pd.DataFrame({"age": ages, "ward": "a", "sick": False})
    plan = choose(tc.variance("age"), POLICIES[policy], 1)
    errors = [(record.values[0] - np.var(ages)) ** 2 for record in releases(plan, frame, 300)]
    assert 0.3 * plan.rmse < math.sqrt(np.mean(errors)) < 1.1 * plan.rmse


def test_shares_of_epsilon_add_up_and_nothing_is_spent_on_what_is_exact():
    for policy in POLICIES.values():
        for epsilon in (Fraction(1, 10), Fraction(1), Fraction(7)):
            for by in ((), ("ward",)):
                plan = choose(tc.variance("age", by=by), policy, epsilon)
                assert sum(part.epsilon for part in plan.parts) == epsilon
                assert all(part.epsilon > 0 or part.is_exact for part in plan.parts)


def test_a_group_without_people_has_no_variance():
    policy = tc.Policy(DOMAIN, tc.secrets.attributes("age"))
    frame = people(5)[lambda rows: rows.ward != "c"]
    record = tc.Session(policy, frame, budget=5).release(tc.variance("age", by="ward"), epsilon=5)
    assert np.isnan(record.values).tolist() == [ward == "c" for ward in "abcdefg"]
    assert np.isnan(record.interval()).tolist() == [[ward == "c" for ward in "abcdefg"]] * 2


def test_what_is_exact_is_the_variance_of_plain_numbers():
    policy = tc.Policy(DOMAIN, tc.secrets.attributes("sick"))
    frame = people(11)
    record = tc.Session(policy, frame, budget=1).release(tc.variance("age", by="ward"), epsilon=1)
    assert record.values == pytest.approx(truth_of(frame, ("ward",)))
    assert record.plan.rmse == 0
    assert record.plan.query.words(DOMAIN) == "Population variance of age by ward"
    assert any("divided by the number of people, not by one less" in term for term in record.certificate["terms"])
    assert record.plan.query.unit_words(DOMAIN) == "age squared"

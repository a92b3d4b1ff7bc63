"""Two sums that share epsilon: steps by enumeration, the exact loss, a wrong step that is noticed, and what follows."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import tacit as tc
from brute_force import answers_of, assert_never_above, assert_step_of_all_edges, edges_of, step_by_data_sets
from parameters import replaying
from tacit.plan.calibrate import noise_for
from tacit.plan.choose import choose
from tacit.plan.plans.linear import LinearPlan, blur
from tacit.plan.questions.two_sums import TwoSums
from tacit.plan.sensitivity.steps import largest_step
from tacit.release.estimate.measure import true_answers
from tacit.rows.rows import open_rows

ALPHA = 1e-6
DOMAIN = tc.Domain({"v": tc.Integers(-4, 8, 2), "w": tc.Integers(0, 1), "g": tc.Flag()})
SECRETS = {
    "everything": tc.secrets.everything(),
    "number": tc.secrets.attributes("v"),
    "blocks": tc.secrets.partition("v", width=4) | tc.secrets.partition("w", width=1),
    "uneven blocks": tc.secrets.partition("v", blocks=[[-4, 0, 2], [-2, 6], [4, 8]]),
    "near": tc.secrets.within(2, "v"),
    "near l2": tc.secrets.within(5, "v", "w", metric="l2"),
    "near, of some": tc.secrets.within(4, "v", where="v > 0 or w < 1"),
    "values": tc.secrets.values({"v": [4], "w": [1]}),
    "pairs": tc.secrets.pairs([({"v": 2, "w": 1}, {"v": 6, "w": 0}), ({"v": -4}, {"v": 0})]),
    "records": tc.secrets.records("v > 4"),
    "taking part": tc.secrets.taking_part(),
    "taking part, of some": tc.secrets.taking_part(where="v > 0"),
}
PEOPLE = [(None, ()), (tc.where("v < 3 and w >= 1"), ()), (None, ("g",)), (tc.where("v in [-4, 2, 6]"), ("w", "g"))]
QUERIES = [TwoSums("v", where, by) for where, by in PEOPLE]
stream = replaying(b"two sums of people and distances")


def changes_of(query, policy):
    """What the edges change, each such change once."""
    adds = {record: answers_of(query, policy.domain, record) for edge in edges_of(policy) for record in edge}
    return {tuple((adds[cover] - adds[hidden]).tolist()) for hidden, cover in edges_of(policy)}


def worst_loss(noise, query, policy):
    """The exact worst log likelihood ratio over all edges, from the law of the noise alone."""
    costs = (
        noise.loss(change) if noise.is_joint else sum(noise.loss(one) for one in change if one)
        for change in changes_of(query, policy)
    )
    return max(costs, default=0)


@pytest.mark.parametrize("secrets", SECRETS)
def test_steps_are_what_enumeration_finds_and_cost_epsilon_exactly(secrets):
    for presence in ("secret",) if secrets == "taking part" else ("public", "secret"):
        policy = tc.Policy(DOMAIN, SECRETS[secrets], presence=presence)
        for query in QUERIES:
            assert_step_of_all_edges(query, policy)
            noise, _ = noise_for(largest_step(query, policy), Fraction(1, 3), query.size(DOMAIN))
            assert noise is None or worst_loss(noise, query, policy) == Fraction(1, 3)


def test_half_of_the_range_as_step_would_be_noticed():
    """Somebody who comes or leaves moves one sum by half of the range at most, and the other by the other half."""
    policy = tc.Policy(DOMAIN, tc.secrets.taking_part())
    query = TwoSums("v")
    step = largest_step(query, policy)
    wrong = replace(step, l1=step.l1 // 2, profiles=tuple((a // 2, b // 2) for a, b in step.profiles))
    noise, _ = noise_for(replace(wrong, up=wrong.up // 2, down=wrong.down // 2), Fraction(1), 2)
    assert worst_loss(noise, query, policy) == 2


@pytest.mark.parametrize("fact", [tc.known.size(), tc.known.count("v > 0"), tc.known.marginal("g")], ids=str)
def test_under_knowledge_the_step_is_never_below_what_data_sets_show(fact):
    domain = tc.Domain({"v": tc.Integers(-1, 2), "g": tc.Flag()})
    for secrets in (tc.secrets.everything(), tc.secrets.within(1, "v"), tc.secrets.attributes("g")):
        policy = tc.Policy(domain, secrets, [fact])
        for query in (TwoSums("v"), TwoSums("v", by=("g",))):
            assert_never_above(largest_step(query, policy), step_by_data_sets(query, policy, 3))


def test_sums_are_what_plain_numbers_add_up_to_and_give_back_people_and_distances():
    frame = pd.DataFrame(
        {"v": [-4, 8, 8, 2, 0, 6], "w": [0, 1, 1, 1, 1, 0], "g": [True, False, True, True, False, True]}
    )
    rows, policy = open_rows(frame, DOMAIN), tc.Policy(DOMAIN, tc.secrets.attributes("w"))
    for query in QUERIES:
        found = true_answers(query, rows, policy)
        each = [answers_of(query, DOMAIN, record) for record in frame.itertuples(index=False, name=None)]
        assert found.tolist() == np.sum(each, axis=0).tolist()
        for record in frame.to_dict("records"):
            one = open_rows(pd.DataFrame([record]), DOMAIN)
            if query.where is None:
                assert query.added_by(record, DOMAIN).tolist() == true_answers(query, one, policy).tolist()
    record = tc.Session(policy, frame, budget=1).release(tc.mean("v", by="g"), 1)  # exact
    assert record.values.tolist() == [4, 3]


def test_the_better_way_is_taken_and_no_way_is_worse_than_to_split_epsilon():
    def way(*facts, **options):
        policy = tc.Policy(DOMAIN, *facts, **options)
        plan = choose(tc.mean("v"), policy, 1)
        split = super(type(plan.query), plan.query).parts(policy, Fraction(1))
        return plan, plan.query.expected_error(split, 1000) / plan.rmse

    joined, gain = way(tc.secrets.taking_part())
    assert joined.parts[0].query == TwoSums("v")
    assert gain**2 > 1.7
    both, gain = way(tc.secrets.everything(), presence="secret")
    assert both.parts[0].query == TwoSums("v")
    assert gain**2 > 2.1
    moved, gain = way(tc.secrets.attributes("v"))
    assert (len(moved.parts), gain) == (2, 1)  # the people are public


@dataclass
class Part:
    """The noisy sums of many releases side by side."""

    plan: LinearPlan
    values: np.ndarray


@pytest.mark.parametrize("place", [0.03, 0.5, 0.97])
@pytest.mark.parametrize("policy", [(tc.secrets.taking_part(), "secret"), (tc.secrets.everything(), "secret")])
def test_intervals_hold_at_their_level_and_hardly_more_often(policy, place):
    """An interval that left out one of both noises, or split the chance to miss, would be found here."""
    domain, runs = tc.Domain({"v": tc.Integers(0, 100)}), 2000
    plan = choose(tc.mean("v"), tc.Policy(domain, policy[0], presence=policy[1]), Fraction(1, 2))
    values = np.clip(np.rint(100 * place + np.linspace(-3, 3, 3000)), 0, 100).astype(int)
    truth = true_answers(plan.parts[0].base, open_rows(pd.DataFrame({"v": values}), domain), plan.policy)
    drawn = blur(np.tile(truth, (runs, 1)), plan.parts[0]).reshape(-1).astype(float)  # as if each were a group
    for level, most in {0.95: 0.965, 0.99: 0.995}.items():
        lower, upper = plan.query.ends([Part(plan.parts[0], drawn)], domain, level)
        held = int(((lower <= values.mean()) & (values.mean() <= upper)).sum())
        assert binom.ppf(ALPHA, runs, level) <= held <= binom.isf(ALPHA, runs, most)
    found = plan.query.values([Part(plan.parts[0], drawn)], domain)
    error = np.sqrt(np.mean((found - values.mean()) ** 2)) * 3  # of 3,000 people; the plan says it of 1,000 ..
    weights = np.hypot(values.mean(), 100 - values.mean()) / 100 / np.sqrt(2 / 3)  # .. and of a mean anywhere
    assert error / weights == pytest.approx(plan.rmse, rel=0.05)

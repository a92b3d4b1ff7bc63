"""The chosen noise hides every edge within epsilon, exactly, and does not hide more than it must."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from brute_force import answers_of, edges_of
from parameters import examples
from strategies import linear_queries, policies
from tacit.noise.cube import Cube
from tacit.plan.calibrate import independent_noise, noise_for
from tacit.plan.choose import choose
from tacit.plan.question import resolve
from tacit.plan.sensitivity.steps import LargestStep, largest_step

EPSILONS = st.sampled_from([Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(20)])


def changes_of(query, policy):
    """What the edges change in the answers, each such change once."""
    edges = edges_of(policy)
    adds = {record: answers_of(query, policy.domain, record) for record in {one for edge in edges for one in edge}}
    return np.unique([adds[cover] - adds[hidden] for hidden, cover in edges], axis=0) if edges else np.zeros((0, 0))


def loss_of(noise, change):
    moved = [int(x) for x in change]
    return noise.loss(moved) if noise.is_joint else sum((noise.loss(x) for x in moved if x), Fraction(0))


def worst_loss(noise, query, policy):
    """The exact worst log likelihood ratio over all edges, from the law of the noise alone."""
    return max((loss_of(noise, change) for change in changes_of(query, policy)), default=Fraction(0))


@examples(800, 53)
@given(data=st.data(), policy=policies(), epsilon=EPSILONS)
def test_the_worst_loss_over_all_edges_is_epsilon(data, policy, epsilon):
    query = resolve(data.draw(linear_queries(policy.domain)), policy.domain)
    step = largest_step(query, policy)
    noise, _ = noise_for(step, epsilon, query.size(policy.domain))
    if noise is None:
        assert step.l1 == 0
        return
    loss = worst_loss(noise, query, policy)
    assert loss <= epsilon
    if epsilon <= 20 and not (query.keyword == "ranges" and not isinstance(noise, Cube)):
        assert loss == epsilon  # tight: no noise is wasted


@examples(1000, 66)
@given(data=st.data(), policy=policies(), epsilon=EPSILONS)
def test_a_plan_hides_its_base_query(data, policy, epsilon):
    plan = choose(data.draw(linear_queries(policy.domain)), policy, epsilon)
    for change in changes_of(plan.base, policy):
        assert sum((loss_of(law, change[entries]) for law, entries in plan.laws()), Fraction(0)) <= epsilon
        if plan.noise is None:
            assert not change.any()


@given(falls=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=4), epsilon=EPSILONS)
def test_two_scales_are_never_worse_than_one(falls, epsilon):
    profiles = tuple((f, r) for f, r in falls if f + r)
    if not profiles:
        return
    l1 = max(f + r for f, r in profiles)
    step = LargestStep(max(r for _, r in profiles), max(f for f, _ in profiles), l1, l1 * l1, profiles)
    noise = independent_noise(step, epsilon)
    for fall, rise in profiles:
        cost = (Fraction(fall) / noise.right if fall else 0) + (Fraction(rise) / noise.left if rise else 0)
        assert cost <= epsilon
    symmetric = max(Fraction(l1) / epsilon, Fraction(1, 100))
    assert noise.right**2 + noise.left**2 <= 2 * symmetric**2

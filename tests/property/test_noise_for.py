"""The chosen noise hides every edge within epsilon, exactly, and does not hide more than it must."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from brute_force import answers_of, edges_of
from strategies import linear_queries, policies
from tacit.plan.choose import choose
from tacit.plan.distributions import Cube
from tacit.plan.noise_for import independent_noise, noise_for
from tacit.plan.query import resolve
from tacit.plan.steps import LargestStep, largest_step

EPSILONS = st.sampled_from([Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(20)])


def worst_loss(noise, query, policy):
    """The exact worst log likelihood ratio over all edges, from the law of the noise alone."""
    worst = Fraction(0)
    for hidden, cover in edges_of(policy):
        change = answers_of(query, policy.domain, cover) - answers_of(query, policy.domain, hidden)
        if isinstance(noise, Cube):
            worst = max(worst, noise.loss([int(x) for x in change]))
        else:
            worst = max(worst, sum((noise.loss(int(x)) for x in change if x), Fraction(0)))
    return worst


@settings(max_examples=500)
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


@settings(max_examples=700)
@given(data=st.data(), policy=policies(), epsilon=EPSILONS)
def test_a_plan_hides_its_base_query(data, policy, epsilon):
    plan = choose(data.draw(linear_queries(policy.domain)), policy, epsilon)
    for hidden, cover in edges_of(policy):
        change = answers_of(plan.base, policy.domain, cover) - answers_of(plan.base, policy.domain, hidden)
        loss = Fraction(0)
        for law, entries in plan.laws():
            moved = [int(x) for x in change[entries]]
            loss += law.loss(moved) if isinstance(law, Cube) else sum((law.loss(x) for x in moved if x), Fraction(0))
        assert loss <= epsilon
        if plan.noise is None:
            assert not change.any()


@given(
    falls=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=4),
    epsilon=EPSILONS,
)
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

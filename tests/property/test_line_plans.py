"""Every way to measure a line, taken apart: its exact worst loss over all edges is at most epsilon, and hardly less."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as tc
from parameters import examples
from tacit.audit.exact_audit import plan_loss
from tacit.errors import InternalError
from tacit.noise.line.law import LineNoise
from tacit.noise.two_scale import GroupedNoise
from tacit.plan.measure.measured import Strategy
from tacit.plan.plans import linear
from tacit.plan.plans.linear import every_plan
from tacit.plan.question import resolve

NEARLY = 1 - Fraction(1, 2**15)


@st.composite
def lines(draw):
    """Return a policy over a short line, and a question about it."""
    size = draw(st.integers(2, 20))
    domain = tc.Domain({"x": tc.Integers(0, size - 1), "sick": tc.Flag()})
    near = tc.secrets.within(draw(st.integers(1, size)), "x")
    secrets = draw(
        st.sampled_from(
            [
                near,
                tc.secrets.everything(),
                tc.secrets.partition("x", width=draw(st.integers(2, size + 1))),
                near | tc.secrets.attributes("sick"),
            ]
        )
    )
    policy = tc.Policy(domain, secrets, presence=draw(st.sampled_from(["public", "public", "secret"])))
    where = draw(st.sampled_from([None, None, "sick == True", f"x < {max(size // 2, 1)}"]))
    ends = draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), min_size=1, max_size=3))
    listed = [(min(pair), max(pair)) for pair in ends]
    query = draw(
        st.sampled_from(
            [tc.ranges("x", "all", where=where), tc.cumulative("x", where=where), tc.ranges("x", listed, where=where)]
        )
    )
    return policy, resolve(query, domain)


@examples(600, 8)
@given(line=lines(), epsilon=st.sampled_from(["1/100", "1/10", 1, 3, 10]))
def test_the_exact_loss_of_every_way_is_epsilon(line, epsilon):
    policy, query = line
    for plan in every_plan(query, policy, Fraction(epsilon)):
        found = plan_loss(plan)
        assert found.keeps, plan.strategy
        if plan.own_errors is not None:
            assert plan.own_loss <= plan.epsilon
            # nothing is left of epsilon: some edge costs all of it (a predicate on the line itself cuts off some)
            if query.where is None or "x" not in query.where.columns():
                assert found.forward >= float(plan.epsilon * NEARLY), (plan.strategy, plan.noise)


def plans(policy_secrets=None, epsilon=1, **options):
    domain = tc.Domain({"x": tc.Integers(0, 19)})
    policy = tc.Policy(domain, policy_secrets or tc.secrets.within(5, "x"), **options)
    found = every_plan(resolve(tc.ranges("x", "all"), domain), policy, Fraction(epsilon))
    return [plan for plan in found if plan.own_errors is not None]


def shrunk(law):
    if isinstance(law, GroupedNoise):
        return replace(law, scales=tuple(scale * Fraction(4, 5) for scale in law.scales))
    assert isinstance(law, LineNoise)
    more = Fraction(5, 4)
    end = None if law.end_rate is None else law.end_rate * more
    cells = tuple(rate * more for rate in law.cell_rates)
    return replace(law, anchor_rate=law.anchor_rate * more, cell_rates=cells, end_rate=end)


def test_too_little_noise_is_found_in_every_way():
    found = plans()
    assert len(found) >= 3
    for plan in found:
        wrong = plan_loss(replace(plan, noise=shrunk(plan.noise)))
        assert not wrong.keeps
        assert float(wrong.forward) == pytest.approx(1.25, rel=1e-4)


def test_noise_for_shorter_moves_is_found_under_longer_ones():
    """The plan believes that people move by five values at most; they move by six."""
    farther = tc.Policy(plans()[0].policy.domain, tc.secrets.within(6, "x"))
    ways = [plan for plan in plans() if "tree" not in plan.strategy]  # cells do not care how far people move
    assert len(ways) >= 2
    for plan in ways:
        assert not plan_loss(replace(plan, policy=farther, own_loss=None)).keeps, plan.strategy


def test_noise_that_takes_people_for_present_is_found_where_they_may_be_absent():
    absent = tc.Policy(plans()[0].policy.domain, tc.secrets.within(5, "x"), presence="secret")
    for plan in plans():
        assert plan_loss(replace(plan, policy=absent, own_loss=None)).forward == float("inf"), plan.strategy


def test_a_way_that_costs_more_than_was_asked_for_is_never_planned():
    (plan, *_) = plans()
    dear = Strategy("dear", plan.base, plan.noise, errors=plan.own_errors, loss=Fraction(2))
    with pytest.raises(InternalError):
        linear._plan(plan.query, dear, plan.policy, Fraction(1))

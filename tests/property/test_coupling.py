"""Under knowledge the step is never below what enumeration of all small data sets finds."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from brute_force import step_by_data_sets
from strategies import facts, linear_queries, policies
from tacit.errors import PlanError
from tacit.plan.steps import largest_step
from tacit.policy.policy import Policy


def check_bound(data, free):
    assume(free.domain.size <= 6)
    known = data.draw(st.lists(facts(free.domain), min_size=1, max_size=2))
    policy = Policy(free.domain, free.secrets, known, free.presence)
    query = data.draw(linear_queries(policy.domain))
    try:
        quick = largest_step(query, policy)
    except PlanError:
        return  # refused with a reason; nothing is claimed
    people = 4 if policy.domain.size <= 4 else 3
    slow = step_by_data_sets(query, policy, people)
    assert quick.up >= slow["up"]
    assert quick.down >= slow["down"]
    assert quick.l1 >= slow["l1"]
    assert quick.square >= slow["square"]
    for right, left in ((1, 1), (1, 0), (0, 1), (3, 1), (1, 3)):
        most = max((right * fall + left * rise for fall, rise in quick.profiles), default=0)
        assert all(right * fall + left * rise <= most for fall, rise in slow["profiles"])


@settings(max_examples=60)
@given(data=st.data(), free=policies(most=2, largest=3))
def test_the_bound_under_knowledge_is_never_too_small(data, free):
    check_bound(data, free)


@pytest.mark.slow
@settings(max_examples=500)
@given(data=st.data(), free=policies(most=2, largest=3))
def test_the_bound_under_knowledge_is_never_too_small_in_many_policies(data, free):
    check_bound(data, free)

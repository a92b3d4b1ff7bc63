"""The steps of lists of predicates, against every edge, exactly and bounded."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from brute_force import assert_never_above, assert_step_of_all_edges, step_by_edges
from parameters import examples
from strategies import linear_queries, policies
from tacit.plan.questions import ListedCounts
from tacit.plan.sensitivity import listed
from tacit.plan.sensitivity.steps import largest_step


@examples(2000, 150)
@given(data=st.data(), policy=policies())
def test_the_step_of_a_list_is_what_enumeration_of_all_edges_finds(data, policy):
    assert_step_of_all_edges(data.draw(linear_queries(policy.domain, ("listed",))), policy)


@pytest.mark.parametrize("limit", ["MOST_PAIRED", "MOST_CELLS"])
@examples(500, 60)
@given(data=st.data(), policy=policies())
def test_the_bound_of_a_list_is_never_below_any_edge(limit, data, policy):
    """Pairs of cells, or cells as well, are too many: each predicate is then looked at by itself."""
    query = data.draw(linear_queries(policy.domain, ("listed",)))
    assume(isinstance(query, ListedCounts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listed, limit, 0)
        patch.setattr(listed, "MOST_PAIRED", 0)
        step = largest_step(query, policy)
    slow = step_by_edges(query, policy)
    assert_never_above(step, slow, 5)
    assert step.l1 == 0 or not step.exact or policy.absences
    assert (step.up, step.down) == (slow["up"], slow["down"])  # a bound keeps the direction

"""Under knowledge the step is never below what enumeration of all small data sets finds."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from brute_force import assert_never_above, step_by_data_sets
from parameters import every_two_together, examples
from strategies import facts, linear_queries, policies
from tacit.errors import PlanError
from tacit.plan.questions import count, cumulative, histogram, total
from tacit.plan.sensitivity.steps import largest_step
from tacit.policy import knowledge, secrets
from tacit.policy.attributes import Flag, Integers
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy


def check_step(query, policy):
    try:
        quick = largest_step(query, policy)
    except PlanError:
        return  # refused with a reason; nothing is claimed
    people = 4 if policy.domain.size <= 4 else 3
    assert_never_above(quick, step_by_data_sets(query, policy, people))


@examples(500, 20)
@given(data=st.data(), free=policies(most=2, largest=3))
def test_the_bound_under_knowledge_is_never_too_small(data, free):
    assume(free.domain.size <= 6)
    known = data.draw(st.lists(facts(free.domain), min_size=1, max_size=2))
    policy = Policy(free.domain, free.secrets, known, free.presence)
    query = data.draw(linear_queries(policy.domain))
    check_step(query, policy)


DOMAIN = Domain({"x": Integers(0, 2), "s": Flag()})
FACTS = {
    "count": [knowledge.count("x == 0")],
    "marginal": [knowledge.marginal("x")],
    "size": [knowledge.size()],
    "size and count": [knowledge.size(), knowledge.count("s == True")],
    "marginal and count": [knowledge.marginal("x"), knowledge.count("s == True")],
    "two marginals": [knowledge.marginal("x"), knowledge.marginal("s")],
    "two counts": [knowledge.count("x == 0"), knowledge.count("s == True")],
}
FAMILIES = {
    "one attribute": secrets.attributes("x"),
    "everything": secrets.everything(),
    "near": secrets.within(1, "x"),
    "near, of some": secrets.within(1, "x", where="s == True"),
    "taking part, of some": secrets.taking_part(where="x < 2"),
}


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("known", "family", "presence"), every_two_together(FACTS, FAMILIES, ["public", "secret"]))
def test_the_bound_under_each_kind_of_fact_is_never_too_small(known, family, presence):
    policy = Policy(DOMAIN, FAMILIES[family], FACTS[known], presence)
    for query in (count("x == 1"), histogram("x"), histogram("x", "s"), cumulative("x"), total("x", where="s == True")):
        check_step(query, policy)


@pytest.mark.parametrize("cells", [3, 4])
@pytest.mark.parametrize("hidden", ["nothing", "a flag"])
def test_known_sums_of_neighbours_leave_what_enumeration_finds(cells, hidden):
    """The averaging attack of section 3.2: one affine dependency at even numbers of cells, none at odd ones."""
    more = {} if hidden == "nothing" else {"s": Flag()}
    domain = Domain({"x": Integers(0, cells - 1), **more})
    known = [knowledge.count(f"x in [{place}, {place + 1}]") for place in range(cells - 1)]
    policy = Policy(domain, secrets.everything(), known)
    for query in (histogram(*domain), count("x == 1"), cumulative("x")):
        quick, slow = largest_step(query, policy), step_by_data_sets(query, policy, 4 if hidden == "nothing" else 3)
        assert quick.l1 >= slow["l1"]
        assert quick.up >= slow["up"]
        assert quick.square >= slow["square"]
        if hidden == "nothing" and query == histogram("x"):
            assert quick.l1 == slow["l1"] == (4 if cells == 4 else 0)


def test_a_refusal_names_the_facts_and_an_edge():
    domain = Domain({"x": Integers(0, 17), "s": Flag(), "t": Flag()})
    known = [knowledge.marginal("x"), knowledge.count("s == True"), knowledge.count("t == True")]
    policy = Policy(domain, secrets.within(2, "x") | secrets.attributes("s"), known)
    with pytest.raises(PlanError, match="overlaps; the secret edge x 6 -> x 8 changes the histogram of x") as refusal:
        largest_step(histogram("x", "s"), policy)
    assert "how many people satisfy s == True" in str(refusal.value)
    assert "t == True" not in str(refusal.value)  # no secret edge changes it


@pytest.mark.parametrize("known", ["marginal", "marginal and count", "two marginals"])
def test_what_one_fact_fixes_needs_no_noise_whatever_else_is_known(known):
    policy = Policy(DOMAIN, FAMILIES["everything"], FACTS[known], "secret")
    for query in (histogram("x"), cumulative("x"), count("x > 0"), total("x")):
        assert largest_step(query, policy).l1 == 0


def test_what_no_fact_fixes_needs_noise():
    for known in FACTS:
        policy = Policy(DOMAIN, FAMILIES["everything"], [*FACTS[known], knowledge.size(4)], "secret")
        assert largest_step(histogram("x", "s"), policy).l1 > 0

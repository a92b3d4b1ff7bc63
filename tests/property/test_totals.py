"""Totals that a release uses exactly are changed by no secret edge, and under knowledge by no agreeing data set."""

from itertools import combinations_with_replacement

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from brute_force import answers_of, edges_of, every_record, known_numbers
from parameters import examples
from strategies import TABLES, facts, linear_queries, policies, predicates
from tacit.plan.choose import choose
from tacit.plan.question import resolve
from tacit.plan.questions import Cumulative, Marginals, cumulative
from tacit.plan.sensitivity.moves import directions, exact_attributes, exact_cumulative, exact_groups, finest_groups
from tacit.policy.policy import ABSENT, Policy


def sums(query, policy, groups, answers):
    ends = np.cumsum(query.sizes(policy.domain))[:-1]
    return [np.bincount(g, part).tolist() for g, part in zip(groups, np.split(answers, ends), strict=True)]


@examples(600, 43)
@given(data=st.data(), policy=policies(presences=("public", "public", "public", "secret")))
def test_no_edge_changes_an_exact_total(data, policy):
    query = resolve(data.draw(linear_queries(policy.domain, TABLES)), policy.domain)
    assert isinstance(query, Marginals)
    for groups in (exact_groups(query, policy), finest_groups(query, policy)):
        if policy.absences:
            assert groups is None
        if groups is None:
            return
        found = {
            record: sums(query, policy, groups, answers_of(query, policy.domain, record))
            for record in every_record(policy.domain)
        }
        for hidden, cover in edges_of(policy):
            assert found[hidden] == found[cover]


@examples(120)
@given(data=st.data(), policy=policies())
def test_no_edge_raises_or_lowers_a_cell_that_is_said_not_to(data, policy):
    query = resolve(data.draw(linear_queries(policy.domain, TABLES)), policy.domain)
    sides = directions(query, policy)
    if sides is None:
        return
    found = {record: answers_of(query, policy.domain, record) for record in [*every_record(policy.domain), ABSENT]}
    for hidden, cover in edges_of(policy):
        change = found[cover] - found[hidden]
        assert not (change < 0)[~sides[0]].any()
        assert not (change > 0)[~sides[1]].any()


@examples(500, 33)
@given(data=st.data(), policy=policies(presences=("public", "public", "public", "secret")))
def test_no_edge_changes_an_exact_cumulative_count_or_attribute(data, policy):
    lines = [n for n in policy.domain if len(policy.domain.axes_of(n)) == 1 and policy.domain.axes_of(n)[0].ordered]
    assume(lines)
    query = cumulative(data.draw(st.sampled_from(lines)), where=data.draw(st.none() | predicates(policy.domain)))
    assert isinstance(query, Cumulative)
    exact = exact_cumulative(query.name, query.where, policy)
    names = tuple(name for name in policy.domain if policy.domain.axes_of(name))
    fixed = exact_attributes(policy, names)
    answers = {record: answers_of(query, policy.domain, record) for record in every_record(policy.domain)}
    for hidden, cover in edges_of(policy):
        if policy.absences:
            assert exact is None
            break
        change = answers[cover] - answers[hidden]
        assert exact is None or not change[exact].any()
        by_name = [dict(zip(policy.domain, record, strict=True)) for record in (hidden, cover)]
        assert all(by_name[0][name] == by_name[1][name] for name in fixed)


@examples(400, 26)
@given(data=st.data(), free=policies(most=2, largest=3, presences=("public",)))
def test_under_knowledge_agreeing_data_sets_have_the_same_exact_totals(data, free):
    assume(free.domain.size <= 6)
    policy = Policy(free.domain, free.secrets, data.draw(st.lists(facts(free.domain), min_size=1, max_size=2)))
    query = resolve(data.draw(linear_queries(policy.domain, TABLES)), policy.domain)
    groups = finest_groups(query, policy)
    if groups is None:
        return
    coupled = any(known_numbers(policy, (a,)) != known_numbers(policy, (b,)) for a, b in edges_of(policy))
    if not coupled:
        return  # then single edges are the neighbours, and the test above holds
    seen = {}
    answers = {record: answers_of(query, policy.domain, record) for record in every_record(policy.domain)}
    numbers = {record: np.array(known_numbers(policy, (record,))) for record in answers}  # of a data set: their sums
    for world in combinations_with_replacement(answers, 3):
        totals = sums(query, policy, groups, sum(answers[record] for record in world))
        assert seen.setdefault(tuple(sum(numbers[record] for record in world)), totals) == totals


def test_a_plan_with_several_rows_per_person_uses_no_totals():
    from tacit.plan.questions import histogram
    from tacit.policy.attributes import Categories
    from tacit.policy.domain import Domain
    from tacit.policy.secrets import everything

    domain = Domain({"a": Categories(["x", "y"])})
    one, three = Policy(domain, everything()), Policy(domain, everything(), person="id", per_person=3)
    query = resolve(histogram("a"), domain)
    assert query.exact_groups(one) is not None
    assert query.exact_groups(three) is None
    assert choose(query, three, 1).step.l1 == 2  # the two cells, whatever many rows
    assert choose(query, three, 1).step.linf == 1

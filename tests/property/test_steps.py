"""The largest step is what enumeration of all edges finds, for every family of secrets and every query."""

from dataclasses import replace
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from brute_force import answers_of, assert_never_above, assert_step_of_all_edges, edges_of, every_record, largest
from parameters import examples
from strategies import domains, families, linear_queries, policies
from tacit.audit.worlds import every_edge
from tacit.errors import PlanError
from tacit.plan.choose import choose
from tacit.plan.question import resolve
from tacit.plan.questions import Count, ListedCounts, Marginals, Total, count, histogram, marginals, mean, rectangles
from tacit.plan.sensitivity.steps import largest_step
from tacit.policy.attributes import Flag, Integers
from tacit.policy.domain import Domain
from tacit.policy.knowledge import marginal
from tacit.policy.knowledge import size as size_is
from tacit.policy.policy import Policy
from tacit.policy.secrets import attributes, everything, taking_part, within


@examples(2000, 116)
@given(data=st.data(), policy=policies())
def test_largest_step_is_what_enumeration_of_all_edges_finds(data, policy):
    """The largest step, exactly, and a hull of profiles below which every edge lies."""
    assert_step_of_all_edges(data.draw(linear_queries(policy.domain)), policy)


@examples(300, 20)
@given(data=st.data(), policy=policies(items=False, most=1, presences=("public",)), rows=st.integers(2, 3))
def test_a_person_with_several_rows_stays_within_the_step(data, policy, rows):
    """Counted once in each cell; every one of the person's rows may move along an edge, or stay."""
    query = resolve(data.draw(linear_queries(policy.domain)), policy.domain)
    assume(isinstance(query, Count | ListedCounts | Marginals | Total))
    bound = largest_step(query, policy.owned_by("id", rows))
    records = every_record(policy.domain)
    moves = edges_of(policy) + [(record, record) for record in records]
    adds = {record: answers_of(query, policy.domain, record) for record in records}

    def answers(owned):
        table = np.array([adds[record] for record in owned])
        return table.sum(0) if isinstance(query, Total) else table.max(0)

    changes = [
        answers([b for _, b in moved]) - answers([a for a, _ in moved])
        for moved in combinations_with_replacement(moves, rows)
    ]
    assert_never_above(bound, largest(changes), 8)


def test_no_answer_moves_by_more_than_one_however_many_rows_a_person_owns():
    policy = Policy(Domain({"x": Integers(0, 3)}), everything(), person="id", per_person=5)
    alone, three = largest_step(count("x == 0"), policy), largest_step(count("x > 0"), policy)
    assert (alone.l1, set(alone.profiles)) == (three.l1, set(three.profiles)) == (1, {(1, 0), (0, 1)})
    table = largest_step(histogram("x"), policy)
    assert (table.l1, table.square, set(table.profiles)) == (4, 4, {(4, 0), (0, 4)})


@examples(500, 30)
@given(data=st.data(), policy=policies(items=False), rows=st.integers(2, 3))
def test_the_step_of_rows_is_what_enumeration_of_all_their_moves_finds(data, policy, rows):
    """Every row counts: any of the slots of one person may move along an edge, come, leave or stay."""
    query = replace(resolve(data.draw(linear_queries(policy.domain)), policy.domain), of="rows")
    bound = largest_step(query, policy.owned_by("id", rows))
    adds = {record: answers_of(query, policy.domain, record) for record in every_record(policy.domain)}
    nothing = 0 * next(iter(adds.values()))
    edges = {tuple(adds.get(b, nothing) - adds.get(a, nothing)) for a, b in every_edge(policy)} | {tuple(nothing)}
    assume(len(edges) <= 60)
    slow = largest([np.sum(moved, axis=0) for moved in combinations_with_replacement(sorted(edges), rows)])
    assert_never_above(bound, slow, 8)
    if largest_step(query, policy).exact:
        assert (bound.up, bound.down, bound.l1) == (slow["up"], slow["down"], slow["l1"])


def test_rows_are_refused_where_an_edge_changes_what_is_known():
    """In between, a row may have gone and the next one not yet come: the data would contradict a public number."""
    domain = Domain({"x": Integers(0, 3), "sick": Flag()})
    several = {"person": "id", "per_person": 2}
    touched = Policy(domain, everything(), [marginal("x")], **several)
    size = Policy(domain, taking_part(), [size_is(50)], **several)
    for policy, query in ((touched, mean("x")), (touched, histogram("sick")), (size, rectangles("x", "sick", "all"))):
        with pytest.raises(PlanError, match=r"must not be changed by secret edges where a person owns several rows"):
            choose(query, policy, 1)
    untouched = Policy(domain, attributes("sick"), [marginal("x"), size_is(50)], **several)
    free = replace(untouched, known=())
    for query in (count("sick", of="rows"), mean("x", by="sick"), histogram("sick"), histogram("sick", of="rows")):
        assert largest_step(query, untouched).l1 == largest_step(query, free).l1


@examples(1000, 50)
@given(data=st.data(), domain=domains())
def test_a_policy_that_covers_another_has_all_its_edges(data, domain):
    stronger = Policy(domain, data.draw(families(domain)) | data.draw(families(domain)))
    weaker = Policy(domain, data.draw(families(domain)))
    missing = set(edges_of(weaker)) - set(edges_of(stronger))
    if stronger.covers(weaker):
        assert not missing
    if len(every_record(domain)) <= 64:
        assert stronger.covers(weaker) == (not missing)


def test_rows_and_people_cover_each_other_only_where_it_is_true():
    """A row that moves or leaves lets another row of its owner count, so only all that an owner may be covers it."""
    domain = Domain({"x": Integers(0, 3)})
    for presence, secrets, kept, covered in (
        ("public", everything(), 1, True),  # another row may count instead, but none that the domain drops
        ("secret", everything(), 1, True),
        ("secret", everything(), 2, True),
        ("secret", within(2, "x"), 1, False),
    ):
        rows = Policy(domain, secrets, presence=presence)
        people = Policy(domain, secrets, presence=presence, person="id", per_person=kept)
        assert people.covers(rows) == covered
        assert not rows.covers(people)
    two, three = (Policy(domain, everything(), person="id", per_person=kept) for kept in (2, 3))
    assert not three.covers(two)  # which says nothing about the third row
    assert two.covers(three)  # whatever the third row does
    assert not three.covers(Policy(domain, everything(), person="other"))
    total = Domain({"x": Integers(0, 3, otherwise=0)})
    assert Policy(total, everything(), person="id").covers(Policy(total, everything()))


def test_steps_pay_for_rows_that_take_different_edges() -> None:
    """Three rows of one person: one leaves, two move; falls and rises in a proportion that no single edge has."""
    domain = Domain({"a": Integers(0, 4), "b": Flag(), "c": Flag(), "d": Flag()})
    policy = Policy(domain, taking_part(where="a >= 0") | attributes("a"), person="id", per_person=3)
    query = resolve(marginals(ways=1), domain)

    def counted(*rows: tuple[int, bool]) -> np.ndarray:
        records = [{"a": place, **dict.fromkeys("bcd", flag)} for place, flag in rows]
        return np.max([query.added_by(record, domain) for record in records], axis=0)  # each person once in each cell

    change = counted((3, True), (4, True)) - counted((0, False), (1, True), (2, True))
    fall, rise = -int(change[change < 0].sum()), int(change[change > 0].sum())
    assert (fall, rise) == (6, 2)
    for right, left in product(range(9), repeat=2):
        assert right * fall + left * rise <= max(right * f + left * r for f, r in largest_step(query, policy).profiles)

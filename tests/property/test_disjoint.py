"""Between neighbouring data sets one group of a split changes and no other, by enumeration."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from parameters import examples
from strategies import facts, policies, predicates
from tacit.audit.worlds import change_along, contributions, neighbours
from tacit.errors import PlanError
from tacit.plan.choose import choose
from tacit.plan.questions import histogram
from tacit.plan.sensitivity.parallel_composition import disjoint_groups
from tacit.policy import knowledge, secrets
from tacit.policy.attributes import Categories
from tacit.policy.domain import Domain, every_record, positions
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.where import where


def changed_groups(groups, policy, pair):
    """The groups whose people are others in the second data set than in the first."""
    tests = {name: people.compile(policy.domain) for name, people in groups.members.items()}

    def people_of(name, data):
        return Counter(
            one for one in data if one is not ABSENT and tests[name].of_record(positions(policy.domain, one))
        )

    return [name for name in tests if people_of(name, pair.hidden) != people_of(name, pair.cover)]


@given(st.data())
@examples(60)
def test_one_group_changes_between_neighbours(data):
    free = data.draw(policies(most=2, largest=3))
    assume(free.domain.size <= 12)
    known = data.draw(st.lists(facts(free.domain), max_size=2))
    policy = Policy(free.domain, free.secrets, known, "secret" if free.presence == "secret" else None)
    by = data.draw(st.sampled_from(list(policy.domain)))
    if data.draw(st.booleans()):
        one = data.draw(predicates(policy.domain))
        by = [one, ~one] if data.draw(st.booleans()) else [one]
    try:
        groups = disjoint_groups(by, policy)
    except PlanError:
        return  # refused with a reason; nothing is claimed
    for pair in neighbours(policy):
        assert len(changed_groups(groups, policy, pair)) <= 1


def test_the_published_condition_would_accept_what_changes_two_groups():
    """Theorem 4.3: only people of the first group have a secret, and it alone changes what is known."""
    domain = Domain({"who": Categories(["first", "second"]), "v": Categories(["x", "y", "z", "w"])})
    secret = secrets.pairs([({"who": "first", "v": "x"}, {"v": "y", "who": "first"})])
    known = [knowledge.count("(who == 'first' and v == 'y') or (who == 'second' and v == 'z')")]
    policy = Policy(domain, secret, known)
    with pytest.raises(PlanError, match=r"v x -> v y changes what is known .* so that people of other groups"):
        disjoint_groups("who", policy)
    groups = disjoint_groups("who", Policy(domain, secret))  # without the fact nothing is in the way
    assert max(len(changed_groups(groups, policy, pair)) for pair in neighbours(policy)) == 2


def joint_loss(policy, spent):
    """The worst loss of a histogram of `v` in each group, all groups together, over all neighbours."""
    query, domain = histogram("v"), policy.domain
    alone = Policy(domain, policy.secrets)
    plans = {name: choose(query.among(where(f"who == '{name}'")), alone, spent[name]) for name in spent}
    adds = {name: contributions(plan.base, domain, every_record(domain)) for name, plan in plans.items()}

    def loss(name, pair):
        law, change = plans[name].noise, change_along(pair, adds[name])
        return float(law.loss(change) if law.is_joint else sum(law.loss(step) for step in change))

    losses = [sum(loss(name, pair) for name in spent) for pair in neighbours(policy)]
    return max(losses)


def test_rows_of_one_person_in_several_groups_lose_together_what_the_dearest_has_spent():
    """Two rows of a person, one in each group, move at once. Counts of people would lose twice as much."""
    domain = Domain({"who": Categories(["first", "second"]), "v": Categories(["x", "y"])})
    spent = {"first": Fraction(1, 2), "second": Fraction(1, 2)}
    policy = Policy(domain, secrets.attributes("v"), person="id", per_person=2)
    assert disjoint_groups("who", policy).members.keys() == spent.keys()
    one = [{pair.hidden[0][0]: pair for pair in neighbours(policy.of_one_row)}[name] for name in spent]

    def together(query, under):
        lost = 0.0
        for pair in one:
            plan = choose(query.among(where(f"who == '{pair.hidden[0][0]}'")), under, spent[pair.hidden[0][0]])
            adds = contributions(plan.base, domain, every_record(domain))
            change = change_along(pair, adds)
            lost += float(plan.noise.loss(change) if plan.noise.is_joint else sum(map(plan.noise.loss, change)))
        return lost

    assert together(histogram("v", of="rows"), policy) == pytest.approx(0.5)
    assert together(histogram("v"), policy) > 0.5  # refused
    assert together(histogram("v", of="rows"), policy.of_one_row) == pytest.approx(1)


def test_groups_lose_the_largest_sum_together_and_coupled_ones_more():
    domain = Domain({"who": Categories(["first", "second"]), "v": Categories(["x", "y"])})
    spent = {"first": Fraction(1, 2), "second": Fraction(1, 4)}
    free = Policy(domain, secrets.attributes("v"), [knowledge.marginal("who")])
    assert disjoint_groups("who", free).members.keys() == spent.keys()
    assert joint_loss(free, spent) == pytest.approx(0.5)
    coupled = Policy(domain, secrets.attributes("v"), [knowledge.count("v == 'x'")])
    assert joint_loss(coupled, spent) == pytest.approx(0.75)
    with pytest.raises(PlanError, match="people of other groups may have to make up for it"):
        disjoint_groups("who", coupled)

"""Which records may be shown, against the definition: every record, every edge, every output."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as tc
from brute_force import edges_of, every_record
from parameters import examples
from strategies import policies, predicates
from tacit.errors import PlanError
from tacit.plan.plans.visible_records import COIN, HIDDEN, OPEN, changes, changing_edge, showing, tells_presence
from tacit.policy.domain import positions
from tacit.policy.policy import ABSENT


def marks_of(found, policy):
    """The mark of every record by each rule; somebody absent shows nothing."""
    places = {record: positions(policy.domain, record) for record in every_record(policy.domain)}
    return [{ABSENT: HIDDEN, **{record: rule.of_record(at) for record, at in places.items()}} for rule in found.rules]


def law(record, found, marks, columns, policy, epsilon):
    """What is shown of one record, with probabilities: the definition, a coin for each rule."""
    if record is ABSENT:
        return {("nothing",): 1.0}
    values = dict(zip(policy.domain, record, strict=True))
    table = Counter()
    for coins in product([True, False], repeat=len(found.rules)):
        chance, shown = 1.0, {name: values[name] for name in found.public}
        for kept, rule, mark in zip(coins, found.rules, marks, strict=True):
            chance *= -math.expm1(-epsilon) if kept else math.exp(-epsilon)
            if mark[record] == OPEN or (mark[record] == COIN and kept):
                shown |= {name: values[name] for name in rule.names}
        table[tuple(shown.get(name) for name in columns)] += chance
    return dict(table)


def whole(output, columns):
    """Without a key a row is there as a whole or not at all."""
    return output if len(output) == len(columns) and None not in output else ("nothing",)


def loss(hidden, cover):
    return max((math.log(p / cover[out]) if cover.get(out) else math.inf for out, p in hidden.items()), default=0.0)


def worst_loss(policy, columns, found, *, keyed, epsilon=1.0):
    marks = marks_of(found, policy)
    worst = 0.0
    for hidden, cover in edges_of(policy):
        laws = []
        for side in (hidden, cover):
            table = law(side, found, marks, columns, policy, epsilon)
            if not keyed:
                merged = Counter()
                for output, chance in table.items():
                    merged[whole(output, columns)] += chance
                table = merged
            laws.append(table)
        worst = max(worst, loss(*laws))
    return worst


def definition(policy, name):
    """The records from which a chain of edges leads to another value of an attribute, one edge after the other."""
    place = list(policy.domain).index(name)
    edges = [(a, b) for a, b in edges_of(policy) if a is not ABSENT and b is not ABSENT]
    hidden = {a for a, b in edges if a[place] != b[place]}
    while True:
        more = {a for a, b in edges if b in hidden} - hidden
        if not more:
            return hidden
        hidden |= more


@examples(40)
@given(data=st.data(), keyed=st.booleans())
def test_no_edge_loses_more_than_its_coins_and_some_edge_loses_that(data, keyed):
    policy = data.draw(policies(items=False, largest=3, presences=("public",) if keyed else ("public", "secret")))
    domain = policy.domain
    columns = tuple(domain)
    try:
        found = showing(columns, policy, keyed=keyed)
    except PlanError as refused:
        refusal = str(refused)
    else:
        refusal = ""
    if refusal:
        assert "->" in refusal  # with the edge that forbids it
        return
    worst = worst_loss(policy, columns, found, keyed=keyed)
    assert worst <= found.together + 1e-9
    near = {"within", "partition"} & {family.called for family in policy.secrets.families()}
    if not near:
        assert worst == pytest.approx(found.together)


@examples(40)
@given(data=st.data())
def test_hidden_are_the_records_from_which_a_chain_leads_to_another_value(data):
    policy = data.draw(policies(items=False, largest=3, presences=("public",)))
    domain = policy.domain
    near = {"within", "partition"} & {family.called for family in policy.secrets.families()}
    for name in domain:
        true = definition(policy, name)
        try:
            found = showing((name,), policy, keyed=True)
        except PlanError:
            assert near or len(true) == domain.size
            continue
        marks = marks_of(found, policy)
        hidden = {record for record in every_record(domain) if marks and marks[0][record] == HIDDEN}
        assert true <= hidden
        if not near:
            assert true == hidden


@examples(60)
@given(data=st.data())
def test_a_predicate_is_changed_where_an_edge_has_one_end_in_it(data):
    policy = data.draw(policies(items=False, largest=3))
    domain = policy.domain
    where = data.draw(predicates(domain))
    edges = list(edges_of(policy))
    assert tells_presence(policy) == any(ABSENT in edge for edge in edges)
    test = where.compile(domain)
    picked = {record for record in every_record(domain) if test.of_record(positions(domain, record))}
    true = any((a in picked) != (b in picked) for a, b in edges if ABSENT not in (a, b))
    found = changes(test, policy)
    assert found or not true
    if not {"within", "partition"} & {family.called for family in policy.secrets.families()}:
        assert found == true
    assert not found or any(changing_edge(name, policy) for name in where.columns())


ROOMS = tc.Domain(
    {"arrival": tc.Categories(["early", "ok", "late"]), "leaving": tc.Categories(["early", "ok"]), "wing": tc.Flag()}
)
PER_ATTRIBUTE = tc.secrets.attributes("arrival", where="arrival == 'late'") | tc.secrets.attributes(
    "leaving", where="leaving == 'early'"
)


@pytest.mark.parametrize(
    ("secrets", "rules", "together"),
    [
        (tc.secrets.records("arrival == 'late'"), 1, 1),
        (PER_ATTRIBUTE, 2, 1),
        (tc.secrets.values({"arrival": ["late"], "leaving": ["early"]}), 2, 2),
        (tc.secrets.attributes("arrival", where="wing == True and arrival == 'late'"), 1, 1),
    ],
    ids=["records", "attribute by attribute", "values", "in one wing"],
)
def test_columns_that_are_hidden_in_the_same_records_share_a_coin(secrets, rules, together):
    policy = tc.Policy(ROOMS, secrets)
    found = showing(("arrival", "leaving"), policy, keyed=True)
    assert (len(found.rules), found.together) == (rules, together)
    assert worst_loss(policy, ["arrival", "leaving"], found, keyed=True) == pytest.approx(together)


def test_what_no_edge_connects_with_a_secret_needs_no_coin():
    policy = tc.Policy(ROOMS, tc.secrets.attributes("arrival", where="wing == True and arrival == 'late'"))
    (rule,) = showing(("arrival",), policy, keyed=True).rules
    marks = {
        (arrival, wing): rule.of_record(positions(ROOMS, (arrival, "ok", wing)))
        for arrival in ("ok", "late")
        for wing in (True, False)
    }
    assert marks == {("ok", True): COIN, ("late", True): HIDDEN, ("ok", False): OPEN, ("late", False): OPEN}


def test_a_chain_of_edges_hides_what_lies_before_it():
    """Nobody's arrival is a secret in wing B, but whoever is there must look as if they were in wing A."""
    moving = tc.secrets.attributes("wing", where="wing == False")
    policy = tc.Policy(ROOMS, moving | tc.secrets.attributes("arrival", where="wing == True and arrival == 'late'"))
    (rule,) = showing(("arrival",), policy, keyed=True).rules
    assert rule.of_record(positions(ROOMS, ("late", "ok", False))) == HIDDEN
    assert rule.of_record(positions(ROOMS, ("ok", "ok", False))) == COIN


@pytest.mark.parametrize(
    "secrets",
    [
        tc.secrets.everything(),
        tc.secrets.attributes("arrival"),
        tc.secrets.records("arrival == 'late'") | tc.secrets.attributes("arrival"),
    ],
    ids=["everything", "attributes", "both"],
)
def test_where_every_record_has_a_secret_nothing_is_shown(secrets):
    with pytest.raises(PlanError, match=r"no record that may be shown: .* -> arrival"):
        showing(("arrival",), tc.Policy(ROOMS, secrets), keyed=True)


def test_who_may_be_absent_is_never_shown():
    policy = tc.Policy(ROOMS, tc.secrets.taking_part(where="arrival == 'late'"))
    (rule,) = showing(("leaving",), policy, keyed=False).rules
    assert rule.of_record(positions(ROOMS, ("late", "ok", True))) == HIDDEN
    assert rule.of_record(positions(ROOMS, ("ok", "ok", True))) == OPEN
    with pytest.raises(PlanError, match="not in the data"):
        showing(("leaving",), tc.Policy(ROOMS, tc.secrets.taking_part()), keyed=False)


def test_a_long_axis_costs_no_more_than_a_short_one():
    domain = tc.Domain({"age": tc.Integers(0, 10**12), "sick": tc.Flag()})
    found = showing(
        ("age",), tc.Policy(domain, tc.secrets.attributes("age", where="age > 100 and sick == True")), keyed=True
    )
    (rule,) = found.rules
    ages = [0, 100, 101, 10**12]
    marks = rule.of_positions(lambda axis: np.array(ages if axis.name == "age" else [1] * 4), 4)
    assert marks.tolist() == [COIN, COIN, HIDDEN, HIDDEN]


def test_lines_cost_what_they_rise_by():
    policy = tc.Policy(ROOMS, tc.secrets.values({"arrival": ["late"], "leaving": ["early"]}))
    both, one = (tc.true_records(names, key="id") for names in (["arrival", "leaving"], ["arrival"]))
    plan = both.plan(policy, Fraction(1))
    assert plan.each == Fraction(1, 2)
    assert plan.cost({}) == 1
    assert plan.cost(plan.coin_lines) == 0
    alone = one.plan(policy, Fraction(1))
    assert plan.cost(alone.coin_lines) == Fraction(1, 2)  # of arrival, more was paid already
    assert alone.cost(plan.coin_lines) == Fraction(1, 2)

"""Families of secrets: which edges they have, and what is said about those that mean nothing."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings

from brute_force import every_record
from strategies import policies
from tacit.errors import PolicyError
from tacit.policy import knowledge, secrets
from tacit.policy.attributes import Categories, Flag, Grid, Integers, Items
from tacit.policy.domain import Domain
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.secrets import (
    Union,
    Within,
    attributes,
    everything,
    graph,
    pairs,
    partition,
    records,
    values,
    within,
)

DOMAIN = Domain(
    {
        "age": Integers(0, 20, 5),
        "disease": Categories(["flu", "hiv", "cold"]),
        "smoker": Flag(),
        "place": Grid(4, 4),
        "clicked": Items(4),
    }
)
BASE = {"age": 10, "disease": "flu", "smoker": False, "place": (1, 1), "clicked": {1}}


def edge(secret, hidden, cover, **more):
    return Policy(DOMAIN, secret, **more).has_edge({**BASE, **hidden}, {**BASE, **cover})


EDGES = [
    (everything(), {}, {"age": 15, "smoker": True, "clicked": set()}, True),
    (everything(), {}, {}, False),
    (attributes("age", "disease"), {}, {"age": 20}, True),
    (attributes("age", "disease"), {}, {"disease": "hiv"}, True),
    (attributes("age", "disease"), {}, {"age": 20, "disease": "hiv"}, False),
    (attributes("age", "disease"), {}, {"smoker": True}, False),
    (attributes("clicked"), {}, {"clicked": {0, 2, 3}}, True),
    (partition("age", width=10), {"age": 0}, {"age": 5}, True),
    (partition("age", width=10), {"age": 5}, {"age": 10}, False),
    (partition("age", blocks=["0..10", [15, 20]]), {"age": 0}, {"age": 10}, True),
    (partition("age", blocks=["0..10", [15, 20]]), {"age": 10}, {"age": 15}, False),
    (partition("disease", blocks=[["flu", "cold"]]), {}, {"disease": "cold"}, True),
    (partition("disease", blocks=[["flu", "cold"]]), {}, {"disease": "hiv"}, False),
    (partition("place", width=2), {"place": (0, 0)}, {"place": (1, 1)}, True),
    (partition("place", width=[2, 1]), {"place": (0, 0)}, {"place": (1, 1)}, False),
    (within(5, "age"), {}, {"age": 15}, True),
    (within(5, "age"), {}, {"age": 20}, False),
    (within(5, "age"), {}, {"age": 15, "smoker": True}, False),
    (within(2, "place"), {}, {"place": (2, 2)}, True),
    (within("3/2", "place"), {}, {"place": (2, 2)}, False),
    (within("3/2", "place", metric="l2"), {}, {"place": (2, 2)}, True),
    (within("5/4", "place", metric="l3"), {}, {"place": (2, 2)}, False),
    (within("63/50", "place", metric="l3"), {}, {"place": (2, 2)}, True),  # 1.26 is just above the cube root of 2
    (within(1, "place", metric="linf"), {}, {"place": (2, 2)}, True),
    (within(1, "clicked"), {}, {"clicked": {1, 2}}, True),
    (within(1, "clicked"), {}, {"clicked": {2}}, False),
    (within(1, "clicked", metric="linf"), {}, {"clicked": {2, 3}}, True),
    (pairs([({"disease": "hiv"}, {"disease": "flu"})]), {"disease": "hiv"}, {"disease": "flu"}, True),
    (pairs([({"disease": "hiv"}, {"disease": "flu"})]), {"disease": "flu"}, {"disease": "hiv"}, False),
    (pairs([({"disease": "hiv", "smoker": True}, {"disease": "flu"})]), {"disease": "hiv"}, {"disease": "flu"}, False),
    (values({"disease": ["hiv"]}), {"disease": "hiv"}, {"disease": "flu"}, True),
    (values({"disease": ["hiv"]}), {"disease": "flu"}, {"disease": "hiv"}, False),
    (values({"clicked": [1]}), {}, {"clicked": set()}, True),
    (values({"clicked": [1]}), {}, {"clicked": {1, 2}}, False),
    (values({"clicked": [0]}), {}, {"clicked": {1, 2}}, True),
    (values({"clicked": [0, 1]}), {}, {"clicked": {2}}, True),
    (values({"clicked": [1], "disease": ["flu"]}), {}, {"clicked": set(), "disease": "hiv"}, True),
    (records("age < 10"), {"age": 5}, {"age": 20, "smoker": True}, True),
    (records("age < 10"), {"age": 20}, {"age": 5}, False),
    (within(5, "age") | attributes("disease"), {}, {"disease": "hiv"}, True),
    (within(5, "age") | attributes("disease"), {}, {"disease": "hiv", "age": 15}, False),
]


@pytest.mark.parametrize(("secret", "hidden", "cover", "expected"), EDGES)
def test_which_edges_a_family_has(secret, hidden, cover, expected):
    assert edge(secret, hidden, cover) is expected


def test_presence_adds_edges_both_ways():
    public, secret = (Policy(DOMAIN, attributes("age"), presence=p) for p in ("public", "secret"))
    assert not public.has_edge(BASE, ABSENT)
    assert not public.has_edge(ABSENT, BASE)
    assert secret.has_edge(BASE, ABSENT)
    assert secret.has_edge(ABSENT, BASE)
    assert not secret.has_edge(ABSENT, ABSENT)


REFUSED = [  # sentences without their first word, secrets
    (lambda: attributes(), ".attributes must name an attribute; got []."),
    (lambda: attributes("agee"), ".attributes must be an attribute of the domain; got 'agee'. Did you mean 'age'?"),
    (lambda: attributes(["age"]), ".attributes must be given one by one; got ['age']. Remove the brackets."),
    (lambda: attributes("age", "age"), ".attributes must not repeat an attribute; got ['age', 'age']."),
    (lambda: partition("age"), ".partition.age must have either width or blocks. Give one of the two."),
    (lambda: partition("age", width=7), ".partition.age.width must be a positive whole number of steps of 5"),
    (lambda: partition("age", width=2.5), ".partition.age.width must be a whole number; got 2.5. Round it."),
    (lambda: partition("age", width=[5, 5]), ".partition.age must have 1 widths; got (5, 5)."),
    (lambda: partition("disease", width=2), ".partition.disease must list blocks for unordered categories."),
    (lambda: partition("clicked", width=2), ".partition.clicked must not be a set of items."),
    (lambda: partition("place", blocks=[[(0, 0)]]), ".partition.place must have a width on a grid."),
    (lambda: partition("age", blocks=[]), ".partition.age.blocks must list at least one block; got []."),
    (lambda: partition("age", blocks=[5]), ".partition.age.blocks must be a list of values or a range"),
    (lambda: partition("age", blocks=["10..0"]), ".partition.age.blocks must be a list of values or a range"),
    (lambda: partition("age", blocks=["0..10", [10, 15]]), ".partition.age.blocks must not overlap"),
    (lambda: partition("age", blocks=[[0, 7]]), ".partition.age.blocks must be a whole number from 0 to 20"),
    (lambda: within(0, "age"), ".within.theta must be positive; got 0. Raise it."),
    (
        lambda: partition("age", blocks=[[], [5, 10]]),
        ".partition.age.blocks must not have an empty block; got []. Remove it.",
    ),
    (lambda: within("far", "age"), ".within.theta must be a number; got 'far'. Write 5."),
    (lambda: within(float("inf"), "age"), ".within.theta must be a number; got inf. Write 5."),
    (lambda: within("1/0", "age"), ".within.theta must be a number; got '1/0'. Write 5."),
    (lambda: within("1e999999999", "age"), ".within.theta must be a number; got '1e999999999'. Write 5."),
    (lambda: within(True, "age"), ".within.theta must be a number; got True. Write 5."),
    (lambda: within(5, "disease"), ".within must have distances; got 'disease'. Use attributes, or"),
    (
        lambda: within(5, "age", metric="l0"),
        ".within.metric must be l1, l2, l3 and so on up to l64, or linf; got 'l0'.",
    ),
    (lambda: pairs([]), ".pairs must list at least one pair; got []. Add [hidden, cover]."),
    (lambda: pairs([({"age": 0},)]), ".pairs must be [hidden, cover]"),
    (lambda: pairs([({"age": 0}, {"age": 0})]), ".pairs[0] must differ"),
    (
        lambda: pairs([({"age": 0}, {"age": 5, "smoker": True})]),
        ".pairs[0] must be given on the hidden side too; got 'smoker'. Add its value.",
    ),
    (lambda: pairs([({"age": 0}, {"age": 7})]), ".pairs[0].age must be a whole number from 0 to 20"),
    (lambda: values({}), ".values must list an attribute; got {}. Write {name: [values]}."),
    (
        lambda: values("disease", ["hiv"]),
        ".values must be one mapping; got a list. Write values({'disease': ['hiv']}).",
    ),
    (lambda: within("age", 5), ".within.theta must be a number; got 'age'. Write within(5, 'age')."),
    (lambda: values(["age"]), ".values must be a mapping; got ['age']."),
    (lambda: values({"disease": "hiv"}), ".values.disease must be a list; got 'hiv'. Write [value]."),
    (lambda: values({"disease": []}), ".values.disease must list a value; got []. Add one."),
    (lambda: values({"disease": ["x"]}), ".values.disease must be one of the categories; got 'x'."),
    (lambda: values({"clicked": [2]}), ".values.clicked must be 1 (has the item) or 0 (has it not); got 2."),
    (lambda: records("agee < 5"), ".records must be an attribute of the domain; got 'agee'."),
    (lambda: Union(()), " must protect something; got []."),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED)
def test_what_protects_nothing_sensible_is_refused(make, sentence):
    with pytest.raises(PolicyError) as refused:
        Policy(DOMAIN, make())
    assert str(refused.value).startswith(f"secrets{sentence}")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Policy({}, everything()), "domain must be a Domain, not a dict. Write tc.Domain({...})."),
        (
            lambda: Policy(DOMAIN, "everything"),
            "secrets must be secrets, not a text. "
            "Write tc.secrets.everything(); for pairs of values, tc.secrets.graph(pairs).",
        ),
        (
            lambda: Policy(DOMAIN, everything(), presence="hidden"),
            "presence must be public or secret; got 'hidden'. Known: public, secret.",
        ),
        (lambda: Policy(DOMAIN, everything(), name=5), "name must be a text; got 5. Quote it."),
        (
            lambda: Policy(DOMAIN, everything(), ["size"]),
            "known must be knowledge, not a text. Write tc.known.marginal(..).",
        ),
        (
            lambda: Policy(DOMAIN, everything(), [knowledge.marginal("clicked")]),
            "known.marginal must not be a set of items; got 'clicked'. Use count.",
        ),
    ],
)
def test_a_policy_that_is_none_is_refused(make, sentence):
    with pytest.raises(PolicyError) as refused:
        make()
    assert str(refused.value) == sentence


def test_distances_are_exact():
    assert within(0.1, "age") == Within(Fraction(1, 10), ("age",))
    assert within("5/2", "age") == within(2.5, "age") == within(Fraction(5, 2), "age")


def test_a_policy_keeps_its_secrets_in_one_way_of_writing():
    domain = Domain({"a": Integers(0, 9), "b": Items(3), "p": Grid(2, 2)})
    ways = [
        pairs([((1, [2, 0], (0, 1)), (2, [], (0, 1)))]),
        pairs([[{"b": {0, 2}, "p": [0, 1], "a": 1.0}, {"a": np.int64(2), "p": (0, 1), "b": ()}]]),
        Union((pairs([({"a": 1, "b": (0, 2), "p": (0, 1)}, {"a": 2, "b": set()})]),)),
    ]
    kept = [Policy(domain, way) for way in ways]
    assert kept[0] == kept[1] == kept[2]
    assert len({policy.fingerprint for policy in kept}) == 1
    assert Policy(domain, values({"p": [[0, 1]]})) == Policy(domain, values({"p": [(0, 1)]}))


def test_the_fingerprint_does_not_hang_on_the_order_of_the_domain_alone():
    flags = {"a": Flag(), "b": Flag()}
    pair = pairs([((True, False), (False, False))])
    one, other = Policy(Domain(flags), pair), Policy(Domain(dict(reversed(flags.items()))), pair)
    assert one.fingerprint != other.fingerprint  # the same tuple means another person there


@settings(max_examples=60, deadline=None)
@given(policies())
def test_settling_changes_no_edge(policy):
    records = every_record(policy.domain)[:12]
    again = policy.secrets.canonical(policy.domain)
    assert again == policy.secrets
    for a, b in product(records, repeat=2):
        if a != b:
            assert again.has_edge(policy.domain, a, b) == policy.has_edge(a, b)


def test_completion_offers_the_families_and_the_facts_only():
    families = "attributes everything graph pairs partition policies records taking_part values within"
    assert dir(secrets) == families.split()
    assert dir(knowledge) == ["count", "marginal", "size"]


class Network:
    """What is asked of a graph of NetworkX."""

    def __init__(self, edges, directed):
        self._edges, self._directed = edges, directed

    def edges(self):
        return self._edges

    def is_directed(self):
        return self._directed


@pytest.mark.parametrize("of_several", [False, True])
def test_a_graph_has_the_edges_of_a_list_of_pairs(of_several):
    """An edge without a direction protects both ends, and one of several attributes moves nothing else."""
    wards = Categories(["A", "B", "C"])
    domain = Domain({"ward": wards, "smoker": Flag()} if of_several else {"ward": wards})
    name = "ward" if of_several else None

    def edges(given):
        policy = Policy(domain, graph(given, attribute=name))
        found = {pair for pair in product(every_record(domain), repeat=2) if policy.has_edge(*pair)}
        assert all(hidden[1:] == cover[1:] for hidden, cover in found)
        return {(hidden[0], cover[0]) for hidden, cover in found}

    both = {("A", "B"), ("B", "A"), ("B", "C"), ("C", "B")}
    assert edges([("A", "B"), ("C", "B"), ("B", "C")]) == edges(Network([("A", "B"), ("B", "C")], False)) == both
    assert edges(Network([("A", "B")], True)) == edges({"A": ["B"]}) == {("A", "B")}


@pytest.mark.parametrize("given", ["AB", 7, {"A": "B"}, [("A",)], [["A", "B", "C"]]])
def test_what_is_no_graph_is_refused(given):
    with pytest.raises(PolicyError, match=r"secrets\.graph must .* Give a NetworkX graph|Write graph"):
        graph(given)

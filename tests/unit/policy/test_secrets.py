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
from tacit.policy.secrets import Union, Within

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
    (secrets.everything(), {}, {"age": 15, "smoker": True, "clicked": set()}, True),
    (secrets.everything(), {}, {}, False),
    (secrets.attributes("age", "disease"), {}, {"age": 20}, True),
    (secrets.attributes("age", "disease"), {}, {"disease": "hiv"}, True),
    (secrets.attributes("age", "disease"), {}, {"age": 20, "disease": "hiv"}, False),
    (secrets.attributes("age", "disease"), {}, {"smoker": True}, False),
    (secrets.attributes("clicked"), {}, {"clicked": {0, 2, 3}}, True),
    (secrets.partition("age", width=10), {"age": 0}, {"age": 5}, True),
    (secrets.partition("age", width=10), {"age": 5}, {"age": 10}, False),
    (secrets.partition("age", blocks=["0..10", [15, 20]]), {"age": 0}, {"age": 10}, True),
    (secrets.partition("age", blocks=["0..10", [15, 20]]), {"age": 10}, {"age": 15}, False),
    (secrets.partition("disease", blocks=[["flu", "cold"]]), {}, {"disease": "cold"}, True),
    (secrets.partition("disease", blocks=[["flu", "cold"]]), {}, {"disease": "hiv"}, False),
    (secrets.partition("place", width=2), {"place": (0, 0)}, {"place": (1, 1)}, True),
    (secrets.partition("place", width=[2, 1]), {"place": (0, 0)}, {"place": (1, 1)}, False),
    (secrets.within(5, "age"), {}, {"age": 15}, True),
    (secrets.within(5, "age"), {}, {"age": 20}, False),
    (secrets.within(5, "age"), {}, {"age": 15, "smoker": True}, False),
    (secrets.within(2, "place"), {}, {"place": (2, 2)}, True),
    (secrets.within("3/2", "place"), {}, {"place": (2, 2)}, False),
    (secrets.within("3/2", "place", metric="l2"), {}, {"place": (2, 2)}, True),
    (secrets.within(1, "place", metric="linf"), {}, {"place": (2, 2)}, True),
    (secrets.within(1, "clicked"), {}, {"clicked": {1, 2}}, True),
    (secrets.within(1, "clicked"), {}, {"clicked": {2}}, False),
    (secrets.within(1, "clicked", metric="linf"), {}, {"clicked": {2, 3}}, True),
    (secrets.pairs([({"disease": "hiv"}, {"disease": "flu"})]), {"disease": "hiv"}, {"disease": "flu"}, True),
    (secrets.pairs([({"disease": "hiv"}, {"disease": "flu"})]), {"disease": "flu"}, {"disease": "hiv"}, False),
    (
        secrets.pairs([({"disease": "hiv", "smoker": True}, {"disease": "flu"})]),
        {"disease": "hiv"},
        {"disease": "flu"},
        False,
    ),
    (secrets.values({"disease": ["hiv"]}), {"disease": "hiv"}, {"disease": "flu"}, True),
    (secrets.values({"disease": ["hiv"]}), {"disease": "flu"}, {"disease": "hiv"}, False),
    (secrets.values({"clicked": [1]}), {}, {"clicked": set()}, True),
    (secrets.values({"clicked": [1]}), {}, {"clicked": {1, 2}}, False),
    (secrets.values({"clicked": [0]}), {}, {"clicked": {1, 2}}, True),
    (secrets.values({"clicked": [0, 1]}), {}, {"clicked": {2}}, True),
    (secrets.values({"clicked": [1], "disease": ["flu"]}), {}, {"clicked": set(), "disease": "hiv"}, True),
    (secrets.records("age < 10"), {"age": 5}, {"age": 20, "smoker": True}, True),
    (secrets.records("age < 10"), {"age": 20}, {"age": 5}, False),
    (secrets.within(5, "age") | secrets.attributes("disease"), {}, {"disease": "hiv"}, True),
    (secrets.within(5, "age") | secrets.attributes("disease"), {}, {"disease": "hiv", "age": 15}, False),
]


@pytest.mark.parametrize(("secret", "hidden", "cover", "expected"), EDGES)
def test_which_edges_a_family_has(secret, hidden, cover, expected):
    assert edge(secret, hidden, cover) is expected


def test_presence_adds_edges_both_ways():
    public, secret = (Policy(DOMAIN, secrets.attributes("age"), presence=p) for p in ("public", "secret"))
    assert not public.has_edge(BASE, ABSENT)
    assert not public.has_edge(ABSENT, BASE)
    assert secret.has_edge(BASE, ABSENT)
    assert secret.has_edge(ABSENT, BASE)
    assert not secret.has_edge(ABSENT, ABSENT)


REFUSED = [
    (lambda: secrets.attributes(), "secrets.attributes must name an attribute; got []."),
    (
        lambda: secrets.attributes("agee"),
        "secrets.attributes must be an attribute of the domain; got 'agee'. Did you mean 'age'?",
    ),
    (
        lambda: secrets.attributes(["age"]),
        "secrets.attributes must be given one by one; got ['age']. Remove the brackets.",
    ),
    (lambda: secrets.attributes("age", "age"), "secrets.attributes must not repeat an attribute; got ['age', 'age']."),
    (lambda: secrets.partition("age"), "secrets.partition.age must have either width or blocks. Give one of the two."),
    (
        lambda: secrets.partition("age", width=7),
        "secrets.partition.age.width must be a positive whole number of steps of 5",
    ),
    (
        lambda: secrets.partition("age", width=2.5),
        "secrets.partition.age.width must be a whole number; got 2.5. Round it.",
    ),
    (lambda: secrets.partition("age", width=[5, 5]), "secrets.partition.age must have 1 widths; got (5, 5)."),
    (
        lambda: secrets.partition("disease", width=2),
        "secrets.partition.disease must list blocks for unordered categories.",
    ),
    (lambda: secrets.partition("clicked", width=2), "secrets.partition.clicked must not be a set of items."),
    (lambda: secrets.partition("place", blocks=[[(0, 0)]]), "secrets.partition.place must have a width on a grid."),
    (lambda: secrets.partition("age", blocks=[]), "secrets.partition.age.blocks must list at least one block; got []."),
    (lambda: secrets.partition("age", blocks=[5]), "secrets.partition.age.blocks must be a list of values or a range"),
    (
        lambda: secrets.partition("age", blocks=["10..0"]),
        "secrets.partition.age.blocks must be a list of values or a range",
    ),
    (lambda: secrets.partition("age", blocks=["0..10", [10, 15]]), "secrets.partition.age.blocks must not overlap"),
    (
        lambda: secrets.partition("age", blocks=[[0, 7]]),
        "secrets.partition.age.blocks must be a whole number from 0 to 20",
    ),
    (lambda: secrets.within(0, "age"), "secrets.within.theta must be positive; got '0'. Raise it."),
    (
        lambda: secrets.partition("age", blocks=[[], [5, 10]]),
        "secrets.partition.age.blocks must not have an empty block; got []. Remove it.",
    ),
    (lambda: secrets.within("far", "age"), "secrets.within.theta must be a number; got 'far'. Write 5."),
    (lambda: secrets.within(float("inf"), "age"), "secrets.within.theta must be a number; got inf. Write 5."),
    (lambda: secrets.within("1/0", "age"), "secrets.within.theta must be a number; got '1/0'. Write 5."),
    (
        lambda: secrets.within("1e999999999", "age"),
        "secrets.within.theta must be a number; got '1e999999999'. Write 5.",
    ),
    (lambda: secrets.within(True, "age"), "secrets.within.theta must be a number; got True. Write 5."),
    (lambda: secrets.within(5, "disease"), "secrets.within must have distances; got 'disease'. Use attributes, or"),
    (lambda: secrets.within(5, "age", metric="l3"), "secrets.within.metric must be l1, l2 or linf; got 'l3'."),
    (lambda: secrets.pairs([]), "secrets.pairs must list at least one pair; got []. Add [hidden, cover]."),
    (lambda: secrets.pairs([({"age": 0},)]), "secrets.pairs must be [hidden, cover]"),
    (lambda: secrets.pairs([({"age": 0}, {"age": 0})]), "secrets.pairs[0] must differ"),
    (
        lambda: secrets.pairs([({"age": 0}, {"age": 5, "smoker": True})]),
        "secrets.pairs[0] must be given on the hidden side too; got 'smoker'. Add its value.",
    ),
    (lambda: secrets.pairs([({"age": 0}, {"age": 7})]), "secrets.pairs[0].age must be a whole number from 0 to 20"),
    (lambda: secrets.values({}), "secrets.values must list an attribute; got {}. Write {name: [values]}."),
    (
        lambda: secrets.values("disease", ["hiv"]),
        "secrets.values must be one mapping; got a list. Write values({'disease': ['hiv']}).",
    ),
    (lambda: secrets.within("age", 5), "secrets.within.theta must be a number; got 'age'. Write within(5, 'age')."),
    (lambda: secrets.values(["age"]), "secrets.values must be a mapping; got ['age']."),
    (lambda: secrets.values({"disease": "hiv"}), "secrets.values.disease must be a list; got 'hiv'. Write [value]."),
    (lambda: secrets.values({"disease": []}), "secrets.values.disease must list a value; got []. Add one."),
    (lambda: secrets.values({"disease": ["x"]}), "secrets.values.disease must be one of the categories; got 'x'."),
    (
        lambda: secrets.values({"clicked": [2]}),
        "secrets.values.clicked must be 1 (has the item) or 0 (has it not); got 2.",
    ),
    (lambda: secrets.records("agee < 5"), "secrets.records must be an attribute of the domain; got 'agee'."),
    (lambda: Union(()), "secrets must protect something; got []."),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED)
def test_what_protects_nothing_sensible_is_refused(make, sentence):
    with pytest.raises(PolicyError) as refused:
        Policy(DOMAIN, make())
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Policy({}, secrets.everything()), "domain must be a Domain, not a dict. Write tc.Domain({...})."),
        (lambda: Policy(DOMAIN, "everything"), "secrets must be secrets, not a text. Write tc.secrets.everything()."),
        (
            lambda: Policy(DOMAIN, secrets.everything(), presence="hidden"),
            "presence must be public or secret; got 'hidden'. Known: public, secret.",
        ),
        (lambda: Policy(DOMAIN, secrets.everything(), name=5), "name must be a text; got 5. Quote it."),
        (
            lambda: Policy(DOMAIN, secrets.everything(), ["size"]),
            "known must be knowledge, not a text. Write tc.known.marginal(..).",
        ),
        (
            lambda: Policy(DOMAIN, secrets.everything(), [knowledge.marginal("clicked")]),
            "known.marginal must not be a set of items; got 'clicked'. Use count.",
        ),
    ],
)
def test_a_policy_that_is_none_is_refused(make, sentence):
    with pytest.raises(PolicyError) as refused:
        make()
    assert str(refused.value) == sentence


def test_distances_are_exact():
    assert secrets.within(0.1, "age") == Within(Fraction(1, 10), ("age",))
    assert secrets.within("5/2", "age") == secrets.within(2.5, "age") == secrets.within(Fraction(5, 2), "age")


def test_a_policy_keeps_its_secrets_in_one_way_of_writing():
    domain = Domain({"a": Integers(0, 9), "b": Items(3), "p": Grid(2, 2)})
    ways = [
        secrets.pairs([((1, [2, 0], (0, 1)), (2, [], (0, 1)))]),
        secrets.pairs([[{"b": {0, 2}, "p": [0, 1], "a": 1.0}, {"a": np.int64(2), "p": (0, 1), "b": ()}]]),
        Union((secrets.pairs([({"a": 1, "b": (0, 2), "p": (0, 1)}, {"a": 2, "b": set()})]),)),
    ]
    kept = [Policy(domain, way) for way in ways]
    assert kept[0] == kept[1] == kept[2]
    assert len({policy.fingerprint for policy in kept}) == 1
    assert Policy(domain, secrets.values({"p": [[0, 1]]})) == Policy(domain, secrets.values({"p": [(0, 1)]}))


def test_the_fingerprint_does_not_hang_on_the_order_of_the_domain_alone():
    flags = {"a": Flag(), "b": Flag()}
    pair = secrets.pairs([((True, False), (False, False))])
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
    assert dir(secrets) == [
        "attributes",
        "everything",
        "pairs",
        "partition",
        "records",
        "taking_part",
        "values",
        "within",
    ]
    assert dir(knowledge) == ["count", "marginal", "size"]

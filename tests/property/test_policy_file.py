"""Policy files read back as equal policies, whatever the names and values are."""

import contextlib
import json
from fractions import Fraction

import jsonschema
import yaml
from hypothesis import given
from hypothesis import strategies as st

from brute_force import every_record
from parameters import examples
from strategies import facts, policies
from tacit.errors import PolicyError
from tacit.policy import secrets
from tacit.policy.attributes import Categories, Flag, Grid, Integers, Items
from tacit.policy.describe import describe, protected_examples
from tacit.policy.domain import Domain
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.policy_file import policy_document, policy_schema, read_policy, write_policy
from tacit.policy.where import col

VALIDATOR = jsonschema.Draft202012Validator(policy_schema())


@st.composite
def policies_with_facts(draw):
    policy = draw(policies())
    known = draw(st.lists(facts(policy.domain), max_size=2))
    person = draw(st.none() | st.text(min_size=1, max_size=12))
    per_person = 1 if person is None else draw(st.integers(1, 5))
    order = None if person is None else draw(st.none() | st.text(min_size=1, max_size=12))
    item = draw(st.none() | st.text(min_size=1, max_size=12))
    owners = {"person": person, "per_person": per_person, "order": order, "item": item}
    return Policy(policy.domain, policy.secrets, known, policy.presence, draw(st.text(max_size=20)), **owners)


@examples(500, 20)
@given(policies_with_facts())
def test_a_policy_reads_back_as_itself(policy):
    text = write_policy(policy)
    again = read_policy(text)
    assert again == policy
    assert again.fingerprint == policy.fingerprint
    assert json.loads(json.dumps(policy_document(policy))) == policy_document(policy)
    VALIDATOR.validate(yaml.safe_load(text))


NAMES = st.text(min_size=1, max_size=12).filter(
    lambda name: len(name.splitlines()) == 1 and not any(mark in name for mark in "[]`\n")
)
TRAPS = st.sampled_from(
    [
        *("yes", "No", "on", "y", "n", "null", "~", "1e3", "08", "010", "0x1F", "12:30", "2020-01-01", ".inf"),
        *("<<", "=", "", " ", "a#b", " #", "-", "?", ":", "!x", "&x", "*x", "@x", "%x", "{", "---", "..."),
        *("true", "1_000", "+1"),
    ]
)
VALUES = st.text(max_size=12) | TRAPS | st.integers()


@st.composite
def awkward_attributes(draw):
    kind = draw(st.sampled_from(["categories", "integers", "flag", "grid", "items", "named"]))
    if kind == "categories":
        values = draw(st.lists(VALUES, min_size=1, max_size=4, unique=True))
        otherwise = draw(st.none() | st.sampled_from(values))
        return Categories(values, ordered=draw(st.booleans()), otherwise=otherwise)
    if kind == "integers":
        low, step, many = draw(st.integers(-(2**60), 2**60)), draw(st.integers(1, 99)), draw(st.integers(0, 10**6))
        return Integers(low, low + step * many, step, draw(st.sampled_from([None, "clip", low])))
    if kind == "flag":
        return Flag(draw(st.sampled_from([None, True, False])))
    if kind == "grid":
        rows, columns = draw(st.integers(1, 999)), draw(st.integers(1, 999))
        of = draw(st.tuples(NAMES, NAMES).filter(lambda names: names[0] != names[1]))
        low = draw(st.none() | st.tuples(st.floats(-1e9, 1e9), st.integers(-99, 99)))
        high = None if low is None else (low[0] + 1e9 + 0.1, low[1] + 0.25)
        return Grid(rows, columns, of, low, high, draw(st.sampled_from([None, "clip", (0, columns - 1)])))
    if kind == "items":
        many = draw(st.integers(1, 10**9))
        return Items(many, first=draw(st.integers(-5, 5)), at_most=draw(st.none() | st.integers(1, many)))
    return Items(draw(st.lists(VALUES, min_size=1, max_size=4, unique=True)))


@st.composite
def awkward_policies(draw):
    attributes = draw(st.dictionaries(NAMES | TRAPS.filter(bool), awkward_attributes(), min_size=1, max_size=3))
    try:
        domain = Domain(attributes)
    except PolicyError:  # "x" is a grid and somebody is called "x.row"
        domain = Domain({"x": Flag()})
    family = draw(st.sampled_from(["attributes", "within", "values", "pairs", "records"]))
    name = draw(st.sampled_from(list(domain)))
    attribute = domain[name]
    secret = secrets.attributes(name)
    if family == "within" and not isinstance(attribute, Categories):
        axes = [] if attribute.is_set else domain.axes_of(name)
        wide = sum(axis.size * Fraction(axis.spacing) for axis in axes) or Fraction(99)
        secret = secrets.within(min(draw(st.fractions(Fraction(1, 9), 99, max_denominator=9)), wide), name)
    if isinstance(attribute, Categories) and len(attribute.values) > 1:
        first, second = attribute.values[:2]
        if family == "values":
            secret = secrets.values({name: [second, first]})
        if family == "pairs":
            secret = secrets.pairs([({name: first}, {name: second})])
        if family == "records":
            secret = secrets.records((col(name) == first) | ~col(name).is_in({second}))
    if isinstance(attribute, Items) and family == "pairs":
        secret = secrets.pairs([({name: {attribute.item(0)}}, {name: set()})])
    return Policy(domain, secret, presence=draw(st.sampled_from(["public", "secret"])))


@examples(250)
@given(awkward_policies())
def test_awkward_names_and_values_come_back(policy):
    again = read_policy(write_policy(policy))
    assert again == policy
    # equal is not enough: 1 == True
    assert policy_document(again) == policy_document(policy)
    assert json.dumps(policy_document(again)) == json.dumps(policy_document(policy))


@examples(100)
@given(policies_with_facts() | awkward_policies())
def test_every_example_is_what_the_policy_says(policy):
    for example in protected_examples(policy):
        sides = [ABSENT if side is None else side for side in (example.hidden, example.cover)]
        assert policy.has_edge(*sides) is example.protected
        assert example.reason
        json.dumps(example.document())
    assert describe(policy).startswith(f"Policy {policy.name}: ")


@examples(150)
@given(policies())
def test_chains_are_as_short_as_said_and_missing_where_said(policy):
    records = [dict(zip(policy.domain, record, strict=True)) for record in every_record(policy.domain)]
    everyone = [*records, ABSENT]
    for example in protected_examples(policy):
        hidden, cover = (ABSENT if side is None else side for side in (example.hidden, example.cover))
        reached, steps = [hidden], 0
        while not any(_same(policy, cover, one) for one in reached):
            more = [one for one in everyone if any(policy.has_edge(old, one) for old in reached)]
            new = [one for one in more if not any(_same(policy, one, old) for old in reached)]
            if not new:
                steps = None
                break
            steps += 1
            reached += new
        if example.times is not None:
            assert steps is not None
            assert steps <= example.times
        if example.told_apart:
            assert steps is None


def _same(policy, one, other):
    if one is ABSENT or other is ABSENT:
        return one is other
    return policy.domain.record(one) == policy.domain.record(other)


@examples(150)
@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")))
def test_no_text_gets_anything_but_a_policy_or_a_refusal(text):
    for whole in (text, f"domain: {{a: flag}}\nsecrets: {text}", f"domain: {text}\nsecrets: everything"):
        with contextlib.suppress(PolicyError):
            assert isinstance(read_policy(whole), Policy)

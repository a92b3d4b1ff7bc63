"""Policies that people choose: edges, steps, exact cells and losses, against each person's own policy."""

import re
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
import yaml

import tacit as tc
from brute_force import answers_of, edges_of, every_record
from tacit.audit.exact_audit import plan_loss
from tacit.audit.sampled_audits.shown_records import law_of
from tacit.errors import PolicyError
from tacit.plan.choose import choose
from tacit.plan.sensitivity.moves import finest_groups
from tacit.policy.policy_file import policy_schema

WISHES = ["strict", "usual", "open"]
DOMAIN = tc.Domain({"age": tc.Integers(0, 3), "wish": tc.Categories(WISHES), "sick": tc.Flag()})
OWN = {
    "everything": lambda: tc.secrets.everything(),
    "values": lambda: tc.secrets.values({"sick": [True]}),
    "records": lambda: tc.secrets.records("sick == True and age > 0"),
    "within": lambda: tc.secrets.within(2, "age", where="sick == True"),
    "pairs": lambda: tc.secrets.pairs([({"age": 1}, {"age": 3})]),
    "two": lambda: tc.secrets.partition("age", width=2) | tc.secrets.attributes("sick"),
    "nothing": lambda: None,
}
CHOICES = [("everything", "values", "nothing"), ("records", "within", "pairs"), ("two", "nothing", "everything")]
QUERIES = [tc.histogram("age"), tc.histogram("age", "wish", "sick"), tc.total("age", by="wish"), tc.cumulative("age")]


def chosen(names):
    return tc.secrets.policies("wish", {wish: OWN[name]() for wish, name in zip(WISHES, names, strict=True)})


def edges_of_each(names):
    """Word for word: the edges of what this person chose, that leave the choice as it is."""
    records, found = every_record(DOMAIN), set()
    for wish, name in zip(WISHES, names, strict=True):
        if (own := OWN[name]()) is not None:
            policy = tc.Policy(DOMAIN, own)
            mine = [record for record in records if record[1] == wish]
            found |= {(a, b) for a in mine for b in mine if a != b and policy.has_edge(a, b)}
    return found


@pytest.mark.parametrize("names", CHOICES, ids="-".join)
def test_everybody_has_the_edges_of_their_own_policy_and_no_others(names):
    policy = tc.Policy(DOMAIN, chosen(names))
    edges = edges_of_each(names)
    assert set(edges_of(policy)) == edges
    for query in QUERIES:
        adds = {record: answers_of(query, DOMAIN, record) for record in every_record(DOMAIN)}
        changes = np.array([adds[b] - adds[a] for a, b in edges])
        step = tc.largest_step(query, policy)
        assert (step.up, step.down) == (np.maximum(changes, 0).max(), np.maximum(-changes, 0).max())
        assert step.l1 == np.abs(changes).sum(1).max()
        found = tc.audit.exact(query, policy, 1)
        assert found.complete
        assert found.forward.high <= 1 + 1e-9
    (groups,) = finest_groups(QUERIES[1], policy)
    still = ~np.array([answers_of(QUERIES[1], DOMAIN, b) != answers_of(QUERIES[1], DOMAIN, a) for a, b in edges]).any(0)
    assert ((np.bincount(groups)[groups] == 1) <= still).all()
    again = tc.Policy.from_yaml(policy.to_yaml())
    assert (again.secrets, again.fingerprint) == (policy.secrets, policy.fingerprint)


def test_a_weakest_policy_that_is_used_for_all_is_caught():
    """Planted: the plan is made as if everybody had chosen what protects least, and held to what each one chose."""
    names = ("everything", "values", "nothing")
    promised = tc.Policy(DOMAIN, chosen(names))
    weakest = tc.Policy(DOMAIN, tc.secrets.values({"sick": [True]}))
    shown, counted = tc.true_records(["age", "sick"], key="id"), tc.histogram("age", "wish", "sick")
    for made_for, is_kept in ((promised, True), (weakest, False)):
        found = tc.audit.exact(law_of(choose(shown, made_for, 1)), promised, 1)
        assert found.keeps == is_kept
        assert plan_loss(replace(choose(counted, made_for, 1), policy=promised)).keeps == is_kept


@pytest.mark.parametrize(
    ("secrets", "words"),
    [
        (lambda: chosen_from(strict=EVERYTHING, usual=None), "must say a policy for each of the 3 values of wish"),
        (lambda: chosen_from(strict=EVERYTHING, usual=None, opne=None), "Did you mean 'opne'?"),
        (lambda: chosen_from(**ALL, never=EVERYTHING), "must be a policy that somebody may choose; got 'never'"),
        (lambda: chosen_from(strict=None, usual=None, open=None), "must have a policy that protects something"),
        (lambda: chosen_from(**{**ALL, "usual": tc.secrets.attributes("wish")}), "must not change wish"),
        (lambda: chosen_from(**ALL) | tc.secrets.attributes("wish"), "must be public, since people choose"),
        (lambda: chosen_from(**ALL) | EVERYTHING, "must be public, since people choose"),
        (lambda: tc.secrets.policies("wish", {"a": EVERYTHING}, chosen={"strict": "a"}), "must say a policy for each"),
        (lambda: tc.secrets.policies("wishes", ALL), "Did you mean 'wish'?"),
        (lambda: tc.secrets.policies("wish", {"a": chosen_from(**ALL)}), "must not choose once more"),
        (lambda: tc.secrets.policies("wish", {"a": "everything"}), "must be secrets"),
    ],
)
def test_choices_that_mean_nothing_are_refused(secrets, words):
    with pytest.raises(PolicyError, match=re.escape(words)):
        tc.Policy(DOMAIN, secrets())


EVERYTHING = tc.secrets.everything()
ALL = {"strict": EVERYTHING, "usual": None, "open": None}


def chosen_from(**named):
    return tc.secrets.policies("wish", named)


FILE = """
domain: {room: {categories: [A1, A2, B]}, arrival: {categories: [early, late]}}
secrets:
  policies:
    by: room
    named: {office: [{values: {arrival: [late]}}], hall: nothing}
    chosen: {A1: office, A2: office, B: hall}
"""


def test_a_file_says_which_policy_the_people_of_a_room_chose():
    policy = tc.Policy.from_yaml(FILE)
    schema = policy_schema()
    jsonschema.validate(policy.document(), schema)
    jsonschema.validate(yaml.safe_load(FILE), schema)
    same = tc.Policy(policy.domain, tc.secrets.values({"arrival": ["late"]}, where="room in ['A1', 'A2']"))
    assert set(edges_of(policy)) == set(edges_of(same))
    assert policy.covers(same)
    assert same.covers(policy)
    said = " ".join(policy.describe().split())
    assert "of people whose room is A1 or A2 (office), arrival being late: it looks" in said
    assert "of people whose room is B (hall), nothing" in said
    assert "which policy somebody chose is public" in said
    with pytest.raises(PolicyError, match=r":7: secrets.policies.chosen must name a policy.*'hall'"):
        tc.Policy.from_yaml(FILE.replace("B: hall", "B: hal"))


def test_whoever_wishes_may_hide_that_they_take_part():
    policy = tc.Policy(DOMAIN, chosen_from(strict=tc.secrets.taking_part(), usual=None, open=None))
    for record in every_record(DOMAIN):
        assert policy.has_edge(record, tc.ABSENT) == (record[1] == "strict")
        assert not policy.has_edge(tc.ABSENT, record)
    assert tc.largest_step(tc.histogram("wish"), policy).down == 1

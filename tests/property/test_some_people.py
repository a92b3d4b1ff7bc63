"""Secrets that differ by person, and taking part as a secret: edges, steps, exact cells and laws, by enumeration."""

import json
from fractions import Fraction

import jsonschema
import numpy as np
import pandas as pd
import pytest

import tacit as tc
from brute_force import answers_of, edges_of, every_record, step_by_edges
from tacit.noise.two_scale import TwoScale
from tacit.plan.choose import choose
from tacit.plan.sensitivity.moves import directions, exact_cumulative, exact_groups, finest_groups
from tacit.policy.domain import positions
from tacit.policy.policy_file import policy_schema
from tacit.policy.secrets import FAMILIES, TakingPart

ALPHA = 1e-6
DOMAIN = tc.Domain({"age": tc.Integers(0, 4), "sick": tc.Flag(), "seen": tc.Items(1)})
SMALL = tc.Domain({"age": tc.Integers(0, 5), "sick": tc.Flag()})
OF_SOME = {
    "everything": lambda where: tc.secrets.everything(where=where),
    "attributes": lambda where: tc.secrets.attributes("age", "sick", where=where),
    "partition": lambda where: tc.secrets.partition("age", width=3, where=where),
    "within": lambda where: tc.secrets.within(2, "age", where=where),
    "pairs": lambda where: tc.secrets.pairs([({"age": 1}, {"age": 4})], where=where),
    "values": lambda where: tc.secrets.values({"age": [0, 3]}, where=where),
    "records": lambda where: tc.secrets.records("age > 1", where=where),
    "taking_part": lambda where: tc.secrets.taking_part(where=where),
    "policies": lambda where: tc.secrets.policies(
        "sick", {"ill": tc.secrets.everything(), "well": None}, chosen={True: "ill", False: "well"}, where=where
    ),
}
PEOPLE = {
    "another attribute": "sick == True",
    "what the edge changes": "age < 2",
    "both": "age == 1 or sick == True",
    "items": "seen.has(0)",
    "nobody": "age < 0",
}
QUERIES = [
    tc.histogram("age"),
    tc.histogram("age", "sick", where="seen.has(0)"),
    tc.cumulative("age"),
    tc.total("age", by="sick"),
    tc.count("age >= 2 and sick == False"),
]


@pytest.mark.one_in(16)
@pytest.mark.parametrize("people", PEOPLE)
@pytest.mark.parametrize("family", OF_SOME)
def test_a_family_of_some_people_has_their_edges_and_no_others(family, people):
    assert set(OF_SOME) == set(FAMILIES)
    whole = tc.Policy(DOMAIN, OF_SOME[family](None))
    some = tc.Policy(DOMAIN, OF_SOME[family](PEOPLE[people]))
    picks = tc.where(PEOPLE[people]).compile(DOMAIN)
    records = every_record(DOMAIN)
    picked = {record: picks.of_record(positions(DOMAIN, record)) for record in records}
    for hidden in records:
        for cover in [*records, tc.ABSENT]:
            if hidden is not cover:
                assert some.has_edge(hidden, cover) == (whole.has_edge(hidden, cover) and picked[hidden])
        assert not some.has_edge(tc.ABSENT, hidden)  # absence satisfies no predicate


@pytest.mark.one_in(16)
@pytest.mark.parametrize("people", PEOPLE)
@pytest.mark.parametrize("family", OF_SOME)
def test_steps_of_some_people_are_what_enumeration_finds(family, people):
    policy = tc.Policy(DOMAIN, OF_SOME[family](PEOPLE[people]))
    adds = {}
    edges = edges_of(policy)
    for query in QUERIES:
        for record in every_record(DOMAIN):
            adds[record] = answers_of(query, DOMAIN, record)
        adds[tc.ABSENT] = np.zeros_like(adds[every_record(DOMAIN)[0]])
        changes = np.array([adds[b] - adds[a] for a, b in edges] or [adds[tc.ABSENT]])
        step = tc.largest_step(query, policy)
        assert step.exact
        assert step.l1 == np.abs(changes).sum(1).max()
        assert (step.up, step.down) == (np.maximum(changes, 0).max(), np.maximum(-changes, 0).max())
        assert step.square == (changes**2).sum(1).max()


@pytest.mark.parametrize(
    "people", ["sick == True", "age < 2", "age == 5 or sick == True", "age == 1 and sick == False"]
)
@pytest.mark.parametrize("family", [name for name in OF_SOME if name not in ("attributes", "taking_part")])
def test_exact_cells_counts_and_directions_are_those_that_no_edge_changes(family, people):
    policy = tc.Policy(SMALL, OF_SOME[family](people))
    edges = edges_of(policy)
    for query in (tc.histogram("age"), tc.histogram("age", "sick")):
        changes = np.array(
            [answers_of(query, SMALL, b) - answers_of(query, SMALL, a) for a, b in edges]
            or [np.zeros(query.size(SMALL))]
        )
        (products,), (groups,) = exact_groups(query, policy), finest_groups(query, policy)
        assert len({*zip(products, groups, strict=True)}) == groups.max() + 1  # finer than the products
        by_age = products.reshape(6, -1)
        wide = by_age[0].max() + 1
        assert (by_age == by_age[:, :1] // wide * wide + by_age[:1]).all()
        assert set(groups) == set(range(groups.max() + 1))
        for group in range(groups.max() + 1):
            assert not changes[:, groups == group].sum(1).any()
        still = ~changes.any(0)
        alone = np.bincount(groups)[groups] == 1
        assert (alone <= still).all()
        sides = directions(query, policy)
        if sides is not None:
            assert ((changes < 0).any(0) <= sides[0]).all()
            assert ((changes > 0).any(0) <= sides[1]).all()
    counts = tc.cumulative("age")
    exact = exact_cumulative("age", None, policy)
    changes = [answers_of(counts, SMALL, b) - answers_of(counts, SMALL, a) for a, b in edges]
    assert not any(change[exact].any() for change in changes)


def test_what_only_the_others_change_is_exact():
    policy = tc.Policy(SMALL, tc.secrets.within(2, "age", where="sick == True"))
    (groups,) = finest_groups(tc.histogram("age", "sick"), policy)
    well = np.arange(12) % 2 == 0
    assert (np.bincount(groups)[groups] == 1).tolist() == well.tolist()
    young = tc.Policy(SMALL, tc.secrets.within(1, "age", where="age < 2"))
    assert exact_cumulative("age", None, young).tolist() == [False, False, True, True, True, True]
    rows = pd.DataFrame({"age": [0, 0, 1, 4, 5, 5], "sick": [True, False, False, False, True, False]})
    released = tc.Session(policy, rows, budget=1).release(tc.histogram("age", "sick"), epsilon=Fraction(1, 10))
    assert released.values[well].tolist() == [1, 1, 0, 0, 1, 1]
    assert released.values.sum() == pytest.approx(6)


def test_a_policy_covers_that_of_fewer_people():
    some, fewer = (
        tc.Policy(DOMAIN, tc.secrets.within(2, "age", where=where)) for where in ("age < 3", "age < 2 and sick == True")
    )
    assert tc.Policy(DOMAIN, tc.secrets.within(2, "age")).covers(some)
    assert some.covers(fewer)
    assert not fewer.covers(some)
    assert not some.covers(tc.Policy(DOMAIN, tc.secrets.within(2, "age")))
    leaves = tc.Policy(DOMAIN, tc.secrets.taking_part(where="age < 3"))
    assert tc.Policy(DOMAIN, tc.secrets.taking_part()).covers(leaves)
    assert leaves.covers(tc.Policy(DOMAIN, tc.secrets.taking_part(where="age == 1")))
    assert not leaves.covers(tc.Policy(DOMAIN, tc.secrets.taking_part(where="sick == True")))
    assert not leaves.covers(tc.Policy(DOMAIN, tc.secrets.taking_part()))
    assert not tc.Policy(DOMAIN, tc.secrets.everything()).covers(leaves)


# ---- taking part ----------------------------------------------------------------------------------------------------


def test_taking_part_has_the_steps_of_adding_or_removing_one_person():
    domain = tc.Domain({"age": tc.Integers(-7, 5), "ward": tc.Categories(["A", "B", "C"])})
    alone = tc.Policy(domain, tc.secrets.taking_part())
    both = tc.Policy(domain, tc.secrets.everything(), presence="secret")
    for query, step, replaced in (
        (tc.histogram("ward"), 1, 2),
        (tc.histogram("age", "ward"), 1, 2),
        (tc.count(), 1, 1),
        (tc.count("ward == 'A'"), 1, 1),
        (tc.total("age"), 7, 12),
        (tc.marginals("age", "ward", ways=1), 2, 4),
    ):
        assert (tc.largest_step(query, alone).l1, tc.largest_step(query, both).l1) == (step, replaced)
        assert step_by_edges(query, alone)["l1"] == step


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_taking_part_has_the_noise_of_other_tools_at_the_same_epsilon(epsilon):
    """Their sensitivities: 1 for counts and histograms, the largest absolute value for sums; Laplace of that scale."""
    domain = tc.Domain({"age": tc.Integers(-7, 5), "ward": tc.Categories(["A", "B", "C"])})
    policy = tc.Policy(domain, tc.secrets.taking_part())
    for query, sensitivity in ((tc.histogram("ward"), 1), (tc.count(), 1), (tc.total("age"), 7)):
        plan = choose(query, policy, epsilon)
        assert plan.noise == TwoScale(sensitivity / epsilon, sensitivity / epsilon)
        assert plan.groups is None  # no total is public


def test_a_replaced_record_is_protected_at_twice_the_epsilon_and_no_better():
    policy = tc.Policy(SMALL, tc.secrets.taking_part())
    plan = choose(tc.histogram("age"), policy, 1)
    losses = {}
    for hidden, cover in [*edges_of(policy), ((0, False), (5, True)), ((0, False), (0, True))]:
        a, b = (np.zeros(6) if one is tc.ABSENT else answers_of(plan.query, SMALL, one) for one in (hidden, cover))
        losses[hidden, cover] = sum(plan.noise.loss(int(change)) for change in b - a)
    assert losses.pop(((0, False), (5, True))) == 2
    assert losses.pop(((0, False), (0, True))) == 0
    assert set(losses.values()) == {1}
    assert tc.audit.exact(tc.histogram("age"), policy, 1).forward == 1


def test_noise_for_taking_part_is_accused_where_records_are_replaced():
    scale = choose(tc.histogram("age"), tc.Policy(SMALL, tc.secrets.taking_part()), 1).noise.right

    def table(people, size):
        counts = np.bincount(people, minlength=2)
        return counts + tc.noise.discrete_laplace(scale, size * 2).reshape(size, 2)

    with tc.noise.replayed(tc.noise.Keystream(key=bytes(32))):
        assert tc.audit.sampled(table, [0, 1], [1], epsilon=1, samples=20_000, alpha=ALPHA).verdict.name == "NONE_FOUND"
        assert tc.audit.sampled(table, [0], [1], epsilon=1, samples=20_000, alpha=ALPHA).verdict.name == "LEAK_FOUND"


def test_there_is_one_way_to_keep_taking_part():
    domain = tc.Domain({"age": tc.Integers(0, 9)})
    near = tc.secrets.within(2, "age")
    united = tc.Policy(domain, near | tc.secrets.taking_part())
    assert united == tc.Policy(domain, near, presence="secret")
    assert united.fingerprint == tc.Policy(domain, near, presence="secret").fingerprint
    alone = tc.Policy(domain, tc.secrets.taking_part())
    assert (alone.presence, alone.secrets) == ("secret", TakingPart())
    assert tc.Policy.from_yaml(alone.to_yaml()) == alone
    with pytest.raises(tc.PolicyError, match="must not be public where taking part is a secret"):
        tc.Policy(domain, tc.secrets.taking_part(), presence="public")


def test_plain_differential_privacy_comes_in_the_form_that_fits_the_policy():
    domain = tc.Domain({"age": tc.Integers(0, 9)})
    public = tc.Policy(domain, tc.secrets.within(2, "age"))
    secret = tc.Policy(domain, tc.secrets.within(2, "age"), presence="secret")
    assert public.plain().secrets == tc.secrets.everything()
    assert secret.plain().secrets == tc.secrets.taking_part()
    said = tc.explain(tc.histogram("age"), public, 1)
    assert "plain differential privacy (one record replaced, the number of people public) at" in str(said)
    assert said.plain.step.l1 == 2
    said = tc.explain(tc.histogram("age"), secret, 1)
    assert "plain differential privacy (one person added or removed) at the same epsilon" in str(said)
    assert "times smaller: this policy promises more" in str(said)
    assert said.plain.step.l1 == 1
    assert said.document()["plain_dp_form"] == "one person added or removed"


def test_words_say_whose_secret_it_is_and_what_a_replaced_record_costs():
    some = tc.Policy(SMALL, tc.secrets.within(2, "age", where="sick == True")).describe()
    assert "of people for whom sick == True, age up to a distance of 2" in some
    assert "can be distinguished from age 4, sick" not in some
    assert "`within` with `where` protects nobody outside `sick == True`." in some
    assert "(the first does not satisfy sick == True)" in some
    outside = " ".join(tc.Policy(SMALL, tc.secrets.within(2, "age", where="age < 3")).describe().split())
    assert "may change age and so lead to somebody outside `age < 3`; no edge leads back" in outside
    part = " ".join(tc.Policy(SMALL, tc.secrets.taking_part()).describe().split())
    assert "and the other way round; one record looks like another at twice the epsilon" in part
    assert "at 2 times the epsilon, by way of absence: only taking part is a secret" in part
    assert "No secret mentions" not in part


@pytest.mark.parametrize("family", OF_SOME)
def test_every_family_of_some_people_reads_back_and_fits_the_schema(family):
    policy = tc.Policy(DOMAIN, OF_SOME[family]("age < 2") | OF_SOME[family]("sick == True"))
    assert tc.Policy.from_yaml(policy.to_yaml()) == policy
    jsonschema.Draft202012Validator(policy_schema()).validate(json.loads(json.dumps(policy.document())))


def test_where_in_files_reads_back_and_wrong_ones_name_their_place():
    text = "{domain: {age: {integers: [0, 9]}, sick: flag}, secrets: {within: {age: 2}, where: 'sick == True'}}"
    policy = tc.Policy.from_yaml(text)
    assert policy == tc.Policy(policy.domain, tc.secrets.within(2, "age", where="sick == True"))
    assert tc.Policy.from_yaml(policy.to_yaml()) == policy
    for wrong, message in (
        (text.replace("sick == True", "ill == True"), r"secrets\.where.*must be an attribute of the domain"),
        (text.replace("within: {age: 2}, ", ""), "must have exactly one key"),
        (text.replace("}}", "}, presence: public}").replace("within: {age: 2}", "taking_part: "), ""),
    ):
        if message:
            with pytest.raises(tc.PolicyError, match=message):
                tc.Policy.from_yaml(wrong)
        else:
            assert tc.Policy.from_yaml(wrong).absences
    with pytest.raises(tc.PolicyError, match=r"presence.*must not be public where taking part is a secret"):
        tc.Policy.from_yaml("{domain: {age: {integers: [0, 9]}}, secrets: taking_part, presence: public}")

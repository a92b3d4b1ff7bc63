"""A policy in plain words: what is said about each family, and that it is true."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings

from strategies import policies
from tacit.errors import PolicyError
from tacit.plan.sensitivity.steps import is_touched
from tacit.policy import knowledge
from tacit.policy.attributes import Categories, Dates, Decimals, Flag, Grid, Integers, Items
from tacit.policy.describe import Example, describe, description, protected_examples, warnings
from tacit.policy.domain import Domain
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.secrets import attributes, everything, pairs, partition, records, taking_part, values, within

DOMAIN = Domain(
    {
        "age": Integers(17, 90, otherwise="clip"),
        "disease": Categories(["flu", "hiv", "other"], otherwise="other"),
        "smoker": Flag(otherwise=False),
        "clicked": Items(41270),
    }
)


def said(secret, **more):
    return " ".join(describe(Policy(DOMAIN, secret, **more)).split())


def examples(policy, *, protected):
    shown = []
    for example in protected_examples(policy):
        if example.protected is protected and None not in (example.hidden, example.cover):
            changed = [name for name in policy.domain if example.hidden[name] != example.cover[name]]
            shown.append(tuple(tuple(side[name] for name in changed) for side in (example.hidden, example.cover)))
    return shown


def test_the_whole_page():
    policy = Policy(
        Domain({"age": Integers(17, 90), "disease": Categories(["flu", "hiv"], otherwise="flu")}),
        values({"disease": ["hiv"]}),
        name="clinic",
    )
    assert describe(policy) == (
        "Policy clinic: 2 attributes, 148 possible records. Each row is one person.\n"
        "\n"
        "What is protected\n"
        "  - disease being hiv: it looks as if it were otherwise (the other way round nothing is promised)\n"
        "\n"
        "Protected, for instance (somebody with the first looks almost as if they had the second)\n"
        "  - disease hiv looks like disease flu (disease being hiv is secret)\n"
        "\n"
        "NOT protected at all: a release may tell the first from the second\n"
        "  - disease flu can be distinguished from disease hiv (disease being flu is not listed as secret)\n"
        "  - age 40 can be distinguished from age 41 (no secret mentions age)\n"
        "  - age 40, disease flu can be distinguished from somebody who is not in the data (taking part is\n"
        "    public)\n"
        "\n"
        "What is public\n"
        "  - this policy: the attributes, the values they may have, and what is secret\n"
        "  - who is in the data, and how many they are (presence is public)\n"
        "  - age: no secret mentions it, so a release may give exact answers\n"
        "\n"
        "What this policy does not protect\n"
        "  - `values` protects disease being hiv, nothing else: that it is something else may be learnt for\n"
        "    certain.\n"
        "  - No secret mentions age: it may be released exactly.\n"
        "  - Taking part is not protected: who is in the data and how many they are may be published. Write\n"
        "    `presence: secret` to change that.\n"
        "  - Each row counts as one person; if a person may own several rows, name the column: `person: ..`.\n"
        "    Otherwise every row is protected by itself, and the rows of one person add up.\n"
        "  - Rows with an unexpected value in age are dropped, and dropped rows are outside the promise.\n"
        "    Declare `otherwise` to keep them.\n"
    )


@pytest.mark.parametrize(
    ("secret", "sentence"),
    [
        (
            values({"clicked": [1]}),
            "`values` protects having an item of clicked (having visited), not being without it (having stayed away): "
            "that somebody does not have an item may be learnt for certain.",
        ),
        (
            values({"clicked": [0]}),
            "`values` protects being without an item of clicked: that somebody has an item may be learnt for certain.",
        ),
        (
            attributes("age", "disease"),
            "`attributes` protects one attribute at a time. "
            "Two at once, say age and disease, are protected at twice the epsilon",
        ),
        (
            partition("age", width=10),
            "`partition` leaves the block public: which block of age somebody is in may be released exactly.",
        ),
        (
            within(5, "age"),
            "`within` leaves the rough value public: two values of age that are further apart than 5 can be told "
            "apart; the cost grows with the distance, up to 15 times the epsilon between the ends of age.",
        ),
        (
            records("age < 18"),
            "`records` protects nobody outside `age < 18`: anything about them may be released exactly, and that "
            "somebody is not sensitive may be learnt for certain.",
        ),
        (
            pairs([({"disease": "hiv"}, {"disease": "flu"})]),
            "`pairs` protects from the first record to the second only; list the reverse as well if meant.",
        ),
        (records("age < 3"), "`records` protects nothing here: no record satisfies age < 3."),
        (partition("age", width=1), "`partition` protects nothing here: every block of age has one value."),
        (within("1/2", "age"), "`within` protects nothing here: no two values of age are as close as 0.5."),
        (attributes("age"), "No secret mentions disease, smoker or clicked: each may be released exactly."),
        (everything() | attributes("age"), "`everything` includes every other family; the others change nothing."),
        (attributes("age") | partition("age", width=10), "By itself, `partition` leaves the block public"),
    ],
)
def test_what_one_might_wrongly_expect_is_said(secret, sentence):
    assert sentence in said(secret)


def test_nothing_is_said_to_be_exact_where_presence_or_knowledge_forbid_it():
    # by way of absence any two records look alike at 2 epsilon; whoever makes up for a known count may move anyhow
    for more in ({"presence": "secret"}, {"known": [knowledge.marginal("disease")]}):
        for secret in (
            partition("age", width=10) | attributes("disease"),
            records("age < 18"),
            values({"clicked": [1], "disease": ["hiv"]}),
        ):
            text = said(secret, **more)
            assert "exact" not in text
            assert "for certain" not in text
    assert "any two records look alike at twice the epsilon" in said(attributes("age"), presence="secret")
    assert "twice the epsilon" not in said(
        attributes("age", "disease"), presence="secret", known=[knowledge.marginal("disease")]
    )


@pytest.mark.parametrize(
    ("secret", "fact", "edge"),
    [
        (within(5, "age"), knowledge.size(), ""),
        (within(5, "age"), knowledge.marginal("disease"), ""),
        (partition("age", blocks=[[17, 18], [19, 20]]), knowledge.count("age < 19"), ""),
        (within(5, "age"), knowledge.count("age < 40"), "changes how many people satisfy age < 40"),
        (taking_part(), knowledge.size(), "-> somebody who is not in the data changes how many people there are"),
    ],
    ids=str,
)
def test_people_are_said_to_be_coupled_only_by_facts_that_an_edge_changes(secret, fact, edge):
    text = said(secret, known=[fact])
    assert edge in text
    assert ("What is known couples people" in text) == bool(edge)


def test_a_fact_that_no_edge_changes_leaves_the_description_as_it_is():
    near = within(5, "age")
    without = [section for section in description(Policy(DOMAIN, near)) if section.heading != "What is public"]
    known = description(Policy(DOMAIN, near, [knowledge.size()]))
    assert [section for section in known if section.heading != "What is public"] == without
    assert "up to 15 times the epsilon" in said(near, known=[knowledge.size()])


@given(policy=policies())
@settings(max_examples=25)
def test_facts_that_may_couple_people_are_never_too_few(policy):
    names = [name for name in policy.domain if not policy.domain[name].is_set]
    facts = [knowledge.size(), *(knowledge.marginal(name) for name in names)]
    known = Policy(policy.domain, policy.secrets, facts, policy.presence)
    assert {fact for fact in facts if is_touched(fact, policy)} <= set(known.coupling_facts)


def test_a_distance_that_every_value_is_within_leaves_no_rough_value():
    age = Domain({"age": Integers(17, 90)})
    for theta in (73, 74):
        text = describe(Policy(age, within(theta, "age")))
        assert f"age: any value looks like any other, since none are further apart than {theta}" in text
        assert "age 17 looks like age 90" in text
        assert "rough" not in text
    assert "the rough value stays public" in describe(Policy(age, within(72, "age")))
    square = Domain({"x": Integers(0, 3), "y": Integers(0, 4)})
    for theta, metric, reaches in ((7, "l1", True), (6, "l1", False), (5, "l2", True), (4, "linf", True)):
        text = describe(Policy(square, within(theta, "x", "y", metric=metric)))
        assert ("x and y, all at once: any value looks like any other" in text) == reaches


@pytest.mark.parametrize(
    ("names", "theta", "rule"),
    [
        (("age",), 75, "must not be larger than the range of age, 74; got 75. Lower it. If any two values look alike"),
        (("age", "stage"), 80, "must not be larger than the range of age and stage, 79; got 80. Lower it."),
        (("degree",), "1.2", "must not be larger than the range of degree, 1.1; got 1.2"),
    ],
)
def test_a_distance_that_is_wider_than_the_domain_is_refused(names, theta, rule):
    domain = Domain({"age": Integers(17, 90), "stage": Integers(0, 4), "degree": Decimals(0, 1, step=0.1)})
    with pytest.raises(PolicyError) as refusal:
        Policy(domain, within(theta, *names))
    assert rule in str(refusal.value)
    both = within(79, "age", "stage")
    assert both.without_attributes(frozenset(["age"]), domain).theta == 5  # what is left of it is never refused


def test_knowledge_presence_and_dropped_rows_are_mentioned():
    text = said(everything(), known=[knowledge.size(1000), knowledge.count("age < 18")])
    assert "how many people there are (1,000)" in text
    assert "how many people satisfy age < 18" in text
    assert "What is known couples people" in text
    assert "who is in the data, and how many they are (presence is public)" in text
    assert "unexpected value" not in text  # every attribute has an `otherwise`
    assert "In age, `otherwise: clip` keeps numbers out of range only: rows with a missing or unreadable value" in text
    policy = Policy(Domain({"a": Flag(), "b": Items(9, at_most=2)}), everything(), presence="secret")
    assert any("Rows with an unexpected value in a are dropped" in sentence for sentence in warnings(policy))
    assert "Of b, at most 2 items of a person are counted; more are left out." in warnings(policy)


def test_examples_show_both_directions_where_only_one_is_protected():
    policy = Policy(DOMAIN, values({"clicked": [1]}))
    assert examples(policy, protected=True) == [(([6],), ([],))]
    assert (([],), ([6],)) in examples(policy, protected=False)
    policy = Policy(DOMAIN, records("age < 18"))
    assert examples(policy, protected=True) == [((17,), (40,))]
    assert ((40,), (17,)) in examples(policy, protected=False)


def test_examples_lie_at_the_borders():
    assert examples(Policy(DOMAIN, within(5, "age")), protected=True) == [((40,), (45,))]
    assert examples(Policy(DOMAIN, within(5, "age")), protected=False)[0] == ((40,), (46,))
    assert examples(Policy(DOMAIN, partition("age", width=10)), protected=True) == [((37,), (46,))]
    assert examples(Policy(DOMAIN, partition("age", width=10)), protected=False)[0] == ((37,), (47,))
    grid = Policy(Domain({"place": Grid(40, 30)}), within(2, "place"))
    assert examples(grid, protected=True) == [(([20, 15],), ([22, 15],))]
    assert examples(grid, protected=False) == [(([20, 15],), ([23, 15],))]


def test_a_reason_belongs_to_the_family_that_protects():
    policy = Policy(DOMAIN, within(5, "age") | attributes("age"))
    assert "age 40 looks like age 46 (not further apart than 5)" not in describe(policy)


def test_absence_is_an_example():
    policy = Policy(DOMAIN, everything(), presence="secret")
    assert any(example.cover is None and example.protected for example in protected_examples(policy))
    assert any(example.hidden is None and example.protected for example in protected_examples(policy))
    assert policy.has_edge(ABSENT, DOMAIN.record((40, "flu", False, [])))


def section(text, start):
    """Return the lines of the section whose title starts like this, unwrapped."""
    for part in text.split("\n\n"):
        if part.startswith(start):
            return " ".join(part.split())
    return ""


def test_chains_are_kept_apart_from_what_is_not_protected_at_all():
    policy = Policy(DOMAIN, within(5, "age") | attributes("disease", "smoker"))
    text = describe(policy)
    weakly = section(text, "Protected more weakly")
    assert "age 40 looks like age 46 (at 2 times the epsilon: further apart than 5)" in weakly
    assert "(at 2 times the epsilon: disease and smoker differ at once)" in weakly
    apart = section(text, "NOT protected at all")
    assert "clicked {} can be distinguished from clicked {6} (no secret mentions clicked)" in apart
    assert "age" not in apart.replace("age 40, disease flu, smoker no", "")
    blocks = describe(Policy(DOMAIN, partition("age", width=10)))
    assert "age 37 can be distinguished from age 47" in section(blocks, "NOT protected at all")
    one_way = describe(Policy(DOMAIN, pairs([({"disease": "hiv"}, {"disease": "flu"})])))
    assert "disease flu can be distinguished from disease hiv" in section(one_way, "NOT protected at all")
    round_trip = pairs([({"disease": "hiv"}, {"disease": "flu"}), ({"disease": "flu"}, {"disease": "other"})])
    back = pairs([({"disease": "other"}, {"disease": "hiv"})])
    circle = describe(Policy(DOMAIN, round_trip | back))
    assert "disease flu can be distinguished from disease hiv" not in section(circle, "NOT protected at all")
    assert "disease flu looks like disease hiv (at 2 times the epsilon:" in section(circle, "Protected more weakly")


def test_with_presence_secret_everything_is_at_most_two_edges_away():
    text = describe(Policy(DOMAIN, within(1, "age"), presence="secret"))
    assert "taking part: somebody in the data looks like somebody who is not in it" in section(
        text, "What is protected"
    )
    assert "between the ends" not in text
    assert "cost grows" not in text
    weakly = section(text, "Protected more weakly")
    assert "age 40 looks like age 42 (at 2 times the epsilon, by way of absence: further apart than 1)" in weakly
    assert not section(text, "NOT protected")
    whole = describe(Policy(DOMAIN, everything(), presence="secret"))
    assert "twice the epsilon" not in whole
    assert "taking part" in section(whole, "What is protected")


def test_values_in_no_block_are_mentioned():
    text = said(partition("disease", blocks=[["flu", "hiv"]]))
    assert "`partition` protects listed blocks only: the value other of disease is in no block and not prot" in text
    text = said(partition("age", blocks=["20..30"]))
    assert "63 values of age, for instance 17, are in no block and not protected by it." in text
    assert "in no block" not in said(partition("age", blocks=["17..30", "31..90"]))


def test_a_policy_says_about_whom_it_is():
    assert "Each row is one person." in said(everything())
    assert "if a person may own several rows, name the column: `person: ..`." in said(everything())
    people = "A person is all rows with the same patient_id"
    left = "other rows are left out; in counts of people, each person once in each cell."
    text = said(everything(), person="patient_id", per_person=3)
    assert f"{people}: up to 3 rows that fit the domain count, chosen as at random; {left}" in text
    text = said(everything(), person="patient_id", per_person=3, order="day")
    assert f"{people}: up to 3 rows that fit the domain count, the first by day; {left}" in text
    assert "may own several rows" not in text
    text = said(everything(), person="patient_id")  # with a set of items: all of them count
    every = "of all rows that fit the domain count, and all else of one of these rows"
    assert f"{people}: the items {every}, chosen as at random." in text
    text = said(everything(), person="patient_id", order="day", item="thing")
    assert f"{people}: the items in thing {every}, the first by day." in text
    assert "Each row is one person, with the items in thing." in said(everything(), item="thing")
    alone = Policy(Domain({"age": Integers(0, 9)}), everything(), person="patient_id")
    one = "one row that fits the domain counts"
    assert f"{people}: {one}, chosen as at random; other rows are left out." in alone.describe()
    assert f"{people}: {one}, the first by day; other rows are left out." in alone.about(order="day").describe()


def test_an_example_can_go_into_json():
    example = protected_examples(Policy(Domain({"a": Flag()}), everything()))[0]
    fields = {"hidden": {"a": False}, "cover": {"a": True}, "protected": True, "reason": "everything is secret"}
    assert example == Example(**fields, times=1)
    assert example.document() == {**fields, "times": 1, "told_apart": False}


@pytest.mark.parametrize(
    "secret",
    [
        everything(),
        attributes("n", "c", "p"),
        within(10**6, "n", "c", "p"),
        values({"c": [1], "n": [5]}),
        records("n < 3 and c.has(7) or p.row == 5 and not c.has(41269)"),
        partition("n", width=1000),
        pairs([({"c": [1, 2]}, {"c": []})]),
    ],
)
def test_a_huge_domain_is_described_at_once(secret):
    domain = Domain({"n": Integers(0, 10**12), "c": Items(10**6), "p": Grid(10**5, 10**5)})
    policy = Policy(domain, secret, [knowledge.size()], "secret")
    started = time.perf_counter()
    text = describe(policy)
    assert time.perf_counter() - started < 1
    assert "about 10^" in text


def test_the_text_is_the_data_and_nothing_else():
    policy = Policy(DOMAIN, within(5, "age") | values({"disease": ["hiv"]}))
    sections = description(policy)
    lines = [line for section in sections for line in section.lines]
    assert " ".join(describe(policy).split()) == " ".join(" ".join(lines).split())
    assert [section.points for section in sections].count(()) == 1  # what it is about
    assert sections[0].heading.startswith("Policy policy: 4 attributes")
    warned = [section.heading for section in sections if section.warns]
    assert warned == [section.heading for section in sections if re.search("weakly|not protect", section.heading, re.I)]
    assert warned[-1] == "What this policy does not protect"


@pytest.mark.parametrize(
    ("attribute", "theta", "far"),
    [
        (Integers(0, 99), 5, "5"),
        (Decimals(35, 42, step=0.1), 0.5, "0.5"),
        (Decimals(0, 1, step=0.1), "1/3", "1/3"),
        (Dates("2023-01", "2024-12", by="month"), 2, "2 months"),
        (Dates("2023-01-01", "2024-12-31"), 1, "1 day"),
        (Dates("2023-W01", "2024-W52", by="week"), 1.5, "1.5 weeks"),
    ],
)
def test_distances_are_said_in_the_unit_of_the_values(attribute, theta, far):
    text = " ".join(describe(Policy(Domain({"x": attribute}), within(theta, "x"))).split())
    assert f"x up to a distance of {far}: the rough value stays public" in text
    assert f"further apart than {far} can be told apart" in text
    assert f"(not further apart than {far})" in text


def test_several_attributes_say_how_their_distances_add_up():
    both = within(2, "age", "disease", metric="linf")
    domain = Domain({"age": Integers(0, 9), "disease": Categories(["a", "b", "c"], ordered=True)})
    assert "age and disease up to a distance of 2 (linf): the rough" in describe(Policy(domain, both))


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        (within(0.5, "age"), "nothing by `within`: no two values of age are as close as 0.5"),
        (partition("age", width=1), "nothing by `partition`: every block of age has one value"),
    ],
)
def test_what_protects_nothing_is_not_listed_as_a_protection(secret, why):
    (about, first, *_) = description(Policy(DOMAIN, secret | attributes("smoker")))
    assert first.heading == "What is protected"
    assert first.points[0] == why
    assert first.points[1].startswith("the value of smoker")
    assert not about.points


def test_a_printed_policy_is_its_description():
    policy = Policy(DOMAIN, attributes("smoker"))
    assert f"{policy}\n" == describe(policy)
    assert repr(policy) == "<policy policy: age, disease, smoker, clicked>"

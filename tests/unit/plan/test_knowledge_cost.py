"""What a known fact costs is the ratio of two steps, and the secrets that are named do avoid it."""

from __future__ import annotations

import math

import pytest

import tacit as tc
from tacit.plan.sensitivity.fact_cost import costs_for_tables
from tacit.plan.sensitivity.steps import is_touched

DOMAIN = tc.Domain(
    {"age": tc.Integers(0, 17), "sex": tc.Categories(["F", "M"]), "disease": tc.Categories(["flu", "hiv", "cold"])}
)
ALL = tc.histogram("age", "sex", "disease")
FAMILIES = {
    "everything": tc.secrets.everything(),
    "attributes": tc.secrets.attributes("age", "disease"),
    "within": tc.secrets.within(2, "age") | tc.secrets.attributes("sex"),
    "values": tc.secrets.values({"age": [3], "disease": ["hiv"]}),
    "records": tc.secrets.records("disease == 'hiv'"),
    "pairs": tc.secrets.pairs([({"age": 1}, {"age": 2}), ({"age": 1, "sex": "F"}, {"age": 1, "sex": "M"})]),
    "partition": tc.secrets.partition("age", width=3) | tc.secrets.partition("disease", blocks=[["flu", "hiv"]]),
    "some people": tc.secrets.attributes("age", "disease", where="sex == 'F'"),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("fact", [tc.known.marginal("age"), tc.known.count("age < 5")], ids=["marginal", "count"])
def test_a_fact_costs_the_ratio_of_steps_and_what_is_named_avoids_it(family, fact):
    policy, free = (tc.Policy(DOMAIN, FAMILIES[family], known) for known in ([fact], []))
    found = tc.explain(ALL, policy, 1).knowledge
    if not is_touched(fact, free):
        assert found == ()
        return
    (cost,) = found
    assert cost.step == tc.largest_step(ALL, policy).l1
    assert cost.times == cost.step / tc.largest_step(ALL, free).l1
    assert " -> " in cost.edge
    assert cost.ways, "every family here has edges that leave it alone"
    for way in cost.ways:
        narrow = tc.Policy(DOMAIN, way.secrets)
        assert free.covers(narrow)
        assert not is_touched(fact, narrow)
        assert way.step == tc.largest_step(ALL, tc.Policy(DOMAIN, way.secrets, [fact])).l1 == 2
        assert way.text in cost.words


def test_the_sentence_says_by_how_much_and_what_would_avoid_it():
    policy = tc.Policy(DOMAIN, tc.secrets.everything(), [tc.known.marginal("age")])
    (said,) = [line for line in str(tc.explain(ALL, policy, 1)).splitlines() if "knowing" in line]
    assert said.startswith("  knowing the histogram of age multiplies the noise by 18 (age ")
    assert said.endswith("Secrets that leave it alone: {attributes: [sex, disease]} (18 times less noise)")
    (document,) = tc.explain(ALL, policy, 1).document()["knowledge"]
    assert (document["times"], document["avoided_by"]) == (
        18,
        [{"secrets": {"attributes": ["sex", "disease"]}, "step": 2}],
    )


def test_a_known_count_is_avoided_by_blocks_on_either_side_of_it():
    policy = tc.Policy(DOMAIN, tc.secrets.attributes("age"), [tc.known.count("age < 2")])
    (cost,) = costs_for_tables(policy)
    assert "[[0, 1], [2, 3, 4, .., 17]]" in cost.words


def test_what_would_be_exact_without_a_fact_and_what_a_fact_makes_exact():
    policy = tc.Policy(DOMAIN, tc.secrets.within(2, "age"), [tc.known.count("age < 5")])
    (cost,) = tc.explain(tc.count("sex == 'F'"), policy, 1).knowledge
    assert math.isinf(cost.times)
    assert "without knowing how many people satisfy age < 5 the answers would be exact" in cost.words
    assert cost.document()["times"] == "inf"
    (fixed,) = tc.explain(tc.count("age < 5"), policy, 1).knowledge
    assert fixed.words == "knowing how many people satisfy age < 5 fixes the answers: no noise is needed"


def test_facts_that_no_edge_changes_cost_nothing():
    policy = tc.Policy(DOMAIN, tc.secrets.attributes("sex"), [tc.known.marginal("age"), tc.known.size()])
    assert costs_for_tables(policy) == ()
    assert tc.explain(ALL, policy, 1).knowledge == ()

"""Several rows of a person: what is paid for one row after the other is what all of them together can show."""

from dataclasses import replace

import pytest

import tacit as tc
from tacit.audit.exact_audit import plan_loss
from tacit.plan.choose import choose

DOMAIN = tc.Domain({"x": tc.Integers(0, 7), "y": tc.Integers(0, 3), "sick": tc.Flag()})
ROWS = 3
FAMILIES = {
    "everything": tc.secrets.everything(),
    "taking_part": tc.secrets.taking_part(),
    "within": tc.secrets.within(2, "x"),
    "leaving": tc.secrets.taking_part(where="sick") | tc.secrets.partition("x", width=4),
}
QUESTIONS = [
    tc.count("sick", of="rows"),
    tc.histogram("x", of="rows"),
    tc.marginals("x", "sick", ways=1, of="rows"),
    tc.total("x", by="sick"),
    tc.mean("x"),
    tc.variance("x"),
    tc.quantiles("x", [0.25, 0.75]),
    tc.cumulative("x"),
    tc.ranges("x", "all"),
    tc.rectangles("x", "y", "all"),
    tc.rectangles("x", "y", [[0, 3, 0, 3], [2, 6, 1, 2]]),
    tc.clusters("x", k=2),
    tc.below("sick", 4, of="rows"),
    tc.top_k("sick", 1, of="rows"),
    tc.above("sick", 4, at_most=1, of="rows"),
]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("query", QUESTIONS, ids=lambda query: f"{query.keyword}")
def test_the_rows_of_one_person_together_show_what_was_paid_and_no_more(query, family):
    """Exact: all rows that count move alike. A plan that forgets how many they are shows as many times what it says."""
    policy = tc.Policy(DOMAIN, FAMILIES[family], person="id", per_person=ROWS)
    plan = choose(query, policy, 1)
    found = plan_loss(plan)
    assert found.forward.high <= 1 + 1e-9
    # one row alone costs its share, on which splits rely: rows of a person may be in several groups
    alone = plan_loss(replace(plan, policy=policy.of_one_row)).forward
    searched = query.keyword in ("below", "top_k", "above")  # whose upper end is what is claimed of all rows
    assert (alone.low if searched else alone.high) <= 1 / ROWS + 1e-9
    forgetful = plan_loss(replace(choose(replace(query, of="rows"), policy.of_one_row, 1), policy=policy))
    assert (forgetful.forward.low > 1.2) == (not plan.is_exact)
    if query.keyword not in (
        "top_k",
        "above",
        "variance",
        "rectangles",
        "clusters",
    ):  # whose bounds need not be attained
        assert (found.forward.low > 1 - 1e-6) == (not plan.is_exact)

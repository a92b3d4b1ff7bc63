"""What plans and reports say of questions on lines, rectangles and clusters: in which units, about which numbers."""

from __future__ import annotations

from fractions import Fraction

import pandas as pd
import pytest

import tacit as tc
from tacit.plan.any_plan import AnyPlan
from tacit.plan.choose import every_plan
from tacit.report.charts import comparison_chart
from tacit.report.html import html_report
from tacit.report.text import plan_table

DOMAIN = tc.Domain(
    {"age": tc.Integers(0, 29), "income": tc.Integers(0, 19), "place": tc.Grid(rows=6, columns=8), "in": tc.Flag()}
)
POLICY = tc.Policy(DOMAIN, tc.secrets.within(3, "age") | tc.secrets.within(2, "income") | tc.secrets.within(2, "place"))
ROWS = pd.DataFrame({"age": [1, 5, 9, 28], "income": [0, 3, 19, 7], "place.row": 1, "place.column": 2, "in": True})


def planned(query: tc.Query) -> AnyPlan:
    return tc.explain(query, POLICY, 1).plan


def page(query: tc.Query) -> str:
    session = tc.Session(POLICY, pd.DataFrame(ROWS).rename(columns={"place.row": "row", "place.column": "column"}), 9)
    record = session.release(query, 1)
    return html_report("job", POLICY, {"it": record}, [tc.explain(record.plan)])


@pytest.mark.parametrize(
    ("query", "size", "step"),
    [
        (tc.ranges("age", "all"), "all 465 ranges of 30 values", "largest step of a running count: up 1"),
        (tc.ranges("age", [[0, 9]]), "1 range for", "largest step: up 1"),
        (tc.rectangles("age", "income", "all"), "all rectangles of 30 x 20 cells", "largest step of a measured count"),
        (tc.rectangles("place", [[0, 1, 0, 1]]), "1 rectangle for", "largest step (proven bound): up 1"),
        (tc.cumulative("age"), "30 answers", "largest step: up 1"),
        (tc.quantiles("age", [0.5]), "1 answer for", "largest step of a running count: up 1"),
        (tc.clusters("age", k=2), "2 centres", "largest step of a cell"),
    ],
    ids=str,
)
def test_a_plan_says_how_many_answers_there_are_and_what_one_person_moves(query, size, step):
    said = str(planned(query))
    assert size in said
    assert step in said


def test_every_way_to_answer_says_what_it_measures():
    ways = {plan.strategy: plan.moved[0] for plan in every_plan(tc.ranges("age", [[0, 9]]), POLICY, Fraction(1))}
    assert ways["direct"] == "an answer"
    assert ways["by adding up noisy cells"] == "the count of a cell"
    assert ways["as differences of noisy cumulative counts"] == "a running count"
    assert ways["ramps and cells"] == "a measured count"


def test_the_error_of_clusters_is_a_distance_and_not_a_number_of_people():
    query = tc.clusters("age", "income", k=2)
    assert query.unit_words(DOMAIN) == "people"
    assert query.error_unit(DOMAIN) == "distance in age and income"
    assert "expected error of the centres, as a distance (root mean square): " in str(planned(query))
    told = page(query)
    assert '<span class="unit">(distance in age and income)</span>' in told
    assert '<span class="unit">people</span>' not in told
    assert "Expected error of the centres, as a distance" in told
    assert "2 centres for epsilon" in told
    assert "All clusters" in told
    caption = plan_table([tc.explain(query, POLICY, 1), tc.explain(tc.count("age < 5"), POLICY, 1)]).caption
    assert "error of clusters: that of the centres, as a distance" in str(caption)


def test_a_report_counts_rectangles_and_not_cells():
    told = page(tc.rectangles("age", "income", "all"))
    assert "all rectangles of 30 x 20 cells for epsilon" in told
    assert "The first 50 of 600 cells" in told
    assert "600 answers" not in told
    assert "along age" in told
    assert "along x" not in told


def test_a_mechanism_is_named_once():
    plan = planned(tc.ranges("age", "all"))
    assert plan.mechanism == plan.strategy == plan.mechanism_words
    assert f"{plan.mechanism}, {plan.mechanism}" not in page(tc.ranges("age", "all"))


def test_errors_are_compared_each_in_its_own_unit():
    several = {"a": tc.explain(tc.count("age < 5"), POLICY, 1), "b": tc.explain(tc.quantiles("age", [0.5]), POLICY, 1)}
    assert "Each in its own unit: people, age." in " ".join(comparison_chart(several).to_dict()["title"]["subtitle"])
    alone = comparison_chart({"a": several["a"]}).to_dict()["title"]["subtitle"]
    assert "unit" not in " ".join(alone)


WIDE = tc.Policy(tc.Domain({"sum": tc.Integers(0, 10**15)}), tc.secrets.within(1, "sum"))


def test_what_plain_privacy_cannot_answer_is_explained_without_it():
    said = tc.explain(tc.total("sum"), WIDE, "1/100000")
    assert said.plan.rmse > 0
    assert said.plain_rmse is None
    assert said.gain != said.gain
    assert "at the same epsilon: no answer, since it needs noise of scale" in str(said)
    assert said.document()["plain_dp_rmse"] is None
    assert "above the largest" in said.document()["plain_dp_refused"]
    with pytest.raises(tc.PlanError, match="needs noise of scale"):
        _ = said.plain
    assert [str(cell) for cell in plan_table({"it": said}).columns[5].cells] == ["none"]
    drawn = comparison_chart({"it": said}).to_dict()
    assert "has no answer" in " ".join(drawn["title"]["subtitle"])
    session = tc.Session(WIDE, pd.DataFrame({"sum": [1, 2]}), budget=1)
    record = session.release(tc.total("sum"), "1/100000")
    told = html_report("job", WIDE, {"it": record}, [tc.explain(record.plan)])
    assert "plain differential privacy has no answer at the same cost: it needs noise of scale" in told

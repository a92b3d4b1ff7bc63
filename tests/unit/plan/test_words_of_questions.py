"""What plans and reports say of questions on lines, rectangles and clusters: in which units, about which numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

import tacit as tc
from tacit.plan.plans.linear import every_plan
from tacit.plan.plans.plan import Plan
from tacit.report.charts.chart_parts import short_labels
from tacit.report.charts.release_charts import chart, comparison_chart
from tacit.report.html import html_report
from tacit.report.text import plan_table

DOMAIN = tc.Domain({"age": tc.Integers(0, 29), "income": tc.Integers(0, 19), "place": tc.Grid(rows=6, columns=8)})
POLICY = tc.Policy(DOMAIN, tc.secrets.within(3, "age") | tc.secrets.within(2, "income") | tc.secrets.within(2, "place"))
ROWS = pd.DataFrame({"age": [1, 5, 9, 28], "income": [0, 3, 19, 7], "row": 1, "column": 2})


def planned(query: tc.Query) -> Plan:
    return tc.explain(query, POLICY, 1).plan


CLUSTERS = tc.clusters("age", "income", k=2)
REPORTED = {"lines": tc.ranges("age", "all"), "grid": tc.rectangles("age", "income", "all"), "groups": CLUSTERS}


@pytest.fixture(scope="module")
def told() -> dict[str, str]:
    """What a report says of each release: the line in its table, and the article below."""
    session = tc.Session(POLICY, ROWS, budget=9)
    records = {name: session.release(query, 1) for name, query in REPORTED.items()}
    page = html_report("job", POLICY, records, [tc.explain(record.plan) for record in records.values()])
    rows, articles = page.split('<th scope="row"><a href=')[1:4], page.split("<article")[1:4]
    return {name: rows[at].split("</tr>")[0] + articles[at] for at, name in enumerate(records)}


@pytest.mark.parametrize(
    ("query", "size", "step"),
    [
        (tc.ranges("age", "all"), "all 465 ranges of 30 values", "largest step of a running count: up 1"),
        (tc.ranges("age", [[0, 9]]), "1 range for", "largest step: up 1"),
        (tc.rectangles("age", "income", "all"), "all rectangles of 30 x 20 cells", "largest step of a measured count"),
        (tc.rectangles("place", [[0, 1, 0, 1]]), "1 rectangle for", "largest step (proven bound): up 1"),
        (tc.cumulative("age"), "30 answers", "largest step: up 1"),
        (tc.quantiles("age", [0.1, 0.9]), "2 answers for", "largest step of a running count: up 1"),
        (tc.median("age"), "1 answer for", "largest step of a rank (proven bound): up 1, down 1"),
        (tc.clusters("age", k=2), "2 centres", "largest step of the count of a cell"),
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


def test_the_error_of_clusters_is_a_distance_and_not_a_number_of_people(told):
    query, said = CLUSTERS, told["groups"]
    assert query.unit_words(DOMAIN) == "people"
    assert query.error_unit(DOMAIN) == "distance in age and income"
    assert "expected error of the centres, as a distance (root mean square): " in str(planned(query))
    assert "distance in age and income</td>" in said
    assert " (distance in age and income)" in said
    assert "people" not in said[: said.index("</tr>")]
    assert "Expected error of the centres, as a distance" in said
    assert ": 2 centres." in said
    assert "2 clusters of age and income" in said
    caption = plan_table([tc.explain(query, POLICY, 1), tc.explain(tc.count("age < 5"), POLICY, 1)]).caption
    assert "error of clusters: that of the centres, as a distance" in str(caption)


def test_a_report_counts_rectangles_and_not_cells(told):
    said = told["grid"]
    assert ": all rectangles of 30 x 20 cells." in said
    assert "The first 50 of 600 cells" in said
    assert "600 answers" not in said
    assert "along age" in said
    assert "along x" not in said
    assert "place up to a distance of 2 (l1): the rough value stays public -> never moves" not in said
    assert "The other secret never moves them." in said


def test_a_mechanism_is_named_once(told):
    plan = planned(tc.ranges("age", "all"))
    assert plan.mechanism == plan.strategy == plan.mechanism_words
    assert plan.mechanism in told["lines"]
    assert f"{plan.mechanism}, {plan.mechanism}" not in told["lines"]


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
    table = plan_table({"it": said})
    assert [str(cell) for cell in table.columns[6].cells] == ["none"]
    assert str(table.caption).startswith("plain DP none: it needs noise of scale 1e+20, above the largest")
    drawn = comparison_chart({"it": said}).to_dict()
    assert "has no answer" in " ".join(drawn["title"]["subtitle"])
    session = tc.Session(WIDE, pd.DataFrame({"sum": [1, 2]}), budget=1)
    record = session.release(tc.total("sum"), "1/100000")
    told = html_report("job", WIDE, {"it": record}, [tc.explain(record.plan)])
    assert "plain differential privacy has no answer at the same cost: it needs noise of scale" in told


def drawn(query: tc.Query, policy: tc.Policy = POLICY, rows: pd.DataFrame = ROWS) -> dict[str, Any]:
    return chart(tc.Session(policy, rows, budget=9).release(query, 1)).to_dict()


def axes(spec: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Every axis of this name, in all layers."""
    return [layer["encoding"][name] for layer in spec["layer"] if name in layer.get("encoding", {})]


def labels(spec: dict[str, Any]) -> list[str]:
    return [row["label"] for row in spec["data"]["values"]]


def test_a_weighted_total_is_drawn_as_what_it_is():
    assert {axis["title"] for axis in axes(drawn(tc.total("age", weight="income")), "x") if "title" in axis} == {
        "total of age times income"
    }


def test_labels_of_rectangles_and_centres_are_short_and_their_parts_are_named():
    listed = drawn(tc.rectangles("age", "income", [[0, 9, 0, 4], [10, 29, 0, 19]]))
    assert labels(listed) == ["0 to 9, 0 to 4", "10 to 29, 0 to 19"]
    assert "Each rectangle by age, then by income." in listed["title"]["subtitle"]
    on_map = drawn(tc.rectangles("place", [[0, 1, 0, 1]]))
    assert "Each rectangle by row, then by column." in on_map["title"]["subtitle"]
    clusters = drawn(tc.clusters("age", "place", k=2))
    assert [label.count(", ") for label in labels(clusters)] == [2, 2]
    assert "Where each centre lies: age, row and column." in clusters["title"]["subtitle"]


def test_labels_that_would_be_cut_are_numbered():
    long, notes = short_labels(["x" * 36, "y" * 37], "rectangle")
    assert long == ["rectangle 1", "rectangle 2"]
    assert notes == ("Numbered as in the table, which says what each rectangle is.",)
    assert short_labels(["x" * 36, "y"], "rectangle") == (["x" * 36, "y"], ())


def test_row_numbers_grow_downwards_and_coordinates_upwards():
    for query in (tc.clusters("place", k=2), tc.rectangles("place", "all")):
        spec = drawn(query)
        y = axes(spec, "y") if "layer" in spec else [spec["encoding"]["y"]]
        assert all(axis["scale"]["reverse"] for axis in y)
    degrees = tc.Grid(rows=6, columns=8, of=("lat", "lon"), low=(0, 0), high=(6, 8))
    policy = tc.Policy(tc.Domain({"place": degrees}), tc.secrets.within(2, "place"))
    spec = drawn(tc.clusters("place", k=2), policy, pd.DataFrame({"lat": [1.5, 2.5], "lon": [1.5, 7.0]}))
    assert not any(axis["scale"].get("reverse") for axis in axes(spec, "y"))

"""The question about rectangles: what it refuses, how it is written, and what a record of it tells."""

from __future__ import annotations

import copy
import math

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.jobs.job_file import read_job
from tacit.plan.questions.written import from_document

DOMAIN = tc.Domain(
    {
        "age": tc.Integers(0, 9),
        "income": tc.Decimals(0, 2, "0.5"),
        "place": tc.Grid(6, 4),
        "ward": tc.Categories(["A", "B"]),
    }
)
NEAR = tc.Policy(DOMAIN, tc.secrets.within(2, "age"))
PEOPLE = pd.DataFrame(
    {
        "age": [1, 2, 3, 9] * 5,
        "income": [0.0, 0.5, 2.0, 1.5] * 5,
        "row": [0, 1, 2, 5] * 5,
        "column": [0, 0, 3, 3] * 5,
        "ward": list("AABB") * 5,
    }
)


def session(policy: tc.Policy = NEAR) -> tc.Session:
    return tc.Session(policy, PEOPLE, budget=100)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: tc.rectangles(), "must name two ordered attributes"),
        (lambda: tc.rectangles("age", "income"), "must end with 'all' or a list"),
        (lambda: tc.rectangles("age", "all"), "must name two ordered attributes, or a grid"),
        (lambda: tc.rectangles("age", "age", "all"), "must name two different"),
        (lambda: tc.rectangles("age", "ward", "all"), "must have an order"),
        (lambda: tc.rectangles("age", "income", "place", "all"), "must name two different"),
        (lambda: tc.rectangles("age", "income", []), "must list a rectangle"),
        (lambda: tc.rectangles("age", "income", 3), "must be 'all' or a list"),
        (lambda: tc.rectangles("age", "income", [[1, 2, 0]]), "must be [x_low, x_high, y_low, y_high]"),
        (lambda: tc.rectangles("age", "income", [[2, 1, 0, 1]]), "must not end before it starts"),
        (lambda: tc.rectangles("age", "income", [[0, 10, 0, 1]]), "10"),
        (lambda: tc.rectangles("place", [[0, 6, 0, 1]]), "must be a row or column of place"),
        (lambda: tc.rectangles("place", [[0, 1, 0.5, 1]]), "must be a row or column of place"),
        (lambda: tc.rectangles("place", "all", where="height > 2"), "height"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_fix(asked, said: str) -> None:
    with pytest.raises(tc.errors.Refused) as refused:
        session().plan(asked(), epsilon=1)
    assert said in str(refused.value)


def test_grids_that_are_too_large_are_refused_before_anything_is_laid_out() -> None:
    wide = tc.Policy(tc.Domain({"x": tc.Integers(0, 10**9), "y": tc.Integers(0, 1)}), tc.secrets.everything())
    with pytest.raises(tc.errors.PlanError, match="along one side"):
        tc.explain(tc.rectangles("x", "y", [[0, 1, 0, 1]]), wide, 1)


def test_a_question_is_read_as_it_is_written() -> None:
    for query in (
        tc.rectangles("age", "income", "all"),
        tc.rectangles("age", "income", [[0, 3, 0.5, 1.5]], where="ward == 'A'"),
        tc.rectangles("place", [[0, 3, 1, 2]]),
    ):
        assert from_document(query.document()) == query


def test_a_job_file_has_ends_as_their_attributes_read_them(tmp_path) -> None:
    (tmp_path / "policy.yaml").write_text(NEAR.to_yaml())
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "job.yaml").write_text(
        "policy: policy.yaml\nrows: people.csv\nbudget: 2\nreleases:\n"
        "  - {name: a, query: {rectangles: {attributes: [age, income], rectangles: [[0, 3, 0.5, 1.5]]}}, epsilon: 1}\n"
        "  - {name: b, query: {rectangles: {attributes: place, rectangles: [[0, 3, 0, 1]]}}, epsilon: 0.5}\n"
    )
    job = read_job(tmp_path / "job.yaml")
    first, second = (release.query for release in job.releases)
    assert first == tc.rectangles("age", "income", [[0, 3, 0.5, 1.5]]).resolved(DOMAIN)
    assert second == tc.rectangles("place", [[0, 3, 0, 1]])


def test_answers_are_those_of_the_definition() -> None:
    query = tc.rectangles("age", "income", [[0, 2, 0, 1], [3, 3, 0, 2], [0, 9, 0, 2]])
    ages, incomes = PEOPLE["age"], PEOPLE["income"]
    expected = [int((ages.between(a, b) & incomes.between(c, d)).sum()) for a, b, c, d in query.rectangles]
    # no secret edge of a policy about wards changes these
    exact = session(tc.Policy(DOMAIN, tc.secrets.attributes("ward"))).release(query, epsilon=1)
    assert exact.values.tolist() == expected
    assert exact.interval()[0].tolist() == exact.interval()[1].tolist() == expected
    assert exact.rectangle(1, 2, 0, 0.5) == int((ages.between(1, 2) & incomes.between(0, 0.5)).sum())


def test_all_rectangles_are_sums_of_the_released_cells() -> None:
    found = session().release(tc.rectangles("age", "income", "all"), epsilon=1)
    table = found.values.reshape(10, 5)
    assert found.rectangle(2, 7, 0.5, 1.5) == pytest.approx(table[2:8, 1:4].sum())
    low, high = found.interval(0.95, 2, 7, 0.5, 1.5)
    assert low <= found.rectangle(2, 7, 0.5, 1.5) <= high
    # the income of nobody is secret, so that each column of the table has its exact total
    for place, income in enumerate((0.0, 0.5, 1.0, 1.5, 2.0)):
        assert found.rectangle(0, 9, income, income) == int((PEOPLE["income"] == income).sum()), place
        assert found.interval(0.9, 0, 9, income, income) == (found.rectangle(0, 9, income, income),) * 2
    assert found.frame.columns.tolist() == ["age", "income", "value", "lower", "upper"]
    assert copy.deepcopy(found).rectangle(0, 3, 0, 1) == found.rectangle(0, 3, 0, 1)
    with pytest.raises(tc.errors.PlanError, match="level"):
        found.interval(2)


def test_few_listed_rectangles_are_measured_by_themselves_and_tell_no_other() -> None:
    policy = tc.Policy(DOMAIN, tc.secrets.everything())
    found = session(policy).release(tc.rectangles("place", [[0, 5, 0, 1], [0, 5, 2, 3]]), epsilon=1)
    assert found.plan.strategy == "each rectangle by itself"
    assert found.rectangle(0, 5, 0, 1) == found.values[0]
    assert found.interval(0.95, 0, 5, 2, 3) == tuple(float(end[1]) for end in found.interval(0.95))
    ends = [f"place.{axis} {end}" for axis in ("row", "column") for end in ("from", "to")]
    assert found.frame.columns.tolist()[:4] == ends
    with pytest.raises(tc.errors.PlanError, match="only the listed rectangles of"):
        found.rectangle(0, 0, 0, 0)


def test_nested_rectangles_need_noise_for_each_of_them() -> None:
    policy = tc.Policy(tc.Domain({"place": tc.Grid(25, 25)}), tc.secrets.everything())
    nested = [[0, end, 0, end] for end in (10, 15, 20)]
    found = tc.explain(tc.rectangles("place", nested), policy, 1)
    assert found.plan.tried["each rectangle by itself"] == pytest.approx(2 * 3**2, rel=0.05)
    assert tc.audit.exact(tc.rectangles("place", nested), policy, 1).keeps
    small = tc.Policy(tc.Domain({"place": tc.Grid(5, 5)}), tc.secrets.everything())
    for listed, most in (
        ([[0, 4, 0, 2]], 1),
        ([[0, 1, 0, 4], [3, 4, 0, 4]], 2),
        ([[0, 3, 0, 3], [1, 2, 1, 2]], 2),
        ([[0, 3, 0, 3], [1, 2, 1, 2], [4, 4, 4, 4]], 3),
    ):
        plan = tc.explain(tc.rectangles("place", listed), small, 1).plan
        if plan.strategy == "each rectangle by itself":
            assert plan.step.l1 == most
            assert tc.audit.exact(tc.rectangles("place", listed), small, 1).forward == pytest.approx(1)
    assert tc.explain(tc.rectangles("place", [[0, 4, 0, 2]]), small, 1).plan.step.l1 == 1


def test_a_plan_says_what_was_tried_and_the_best_is_taken() -> None:
    policy = tc.Policy(tc.Domain({"place": tc.Grid(24, 20)}), tc.secrets.within(3, "place"))
    plan = tc.explain(tc.rectangles("place", "all"), policy, 0.5).plan
    assert set(plan.tried) == {"unit cells", "two-level grid", "cells and ramps"}
    assert plan.variance == min(plan.tried.values()) == plan.tried["cells and ramps"]
    assert "cells and ramps" in plan.strategy
    assert "two-level grid" in str(tc.explain(plan))
    assert plan.document()["predicted"]["candidates"] == plan.tried
    assert plan.rmse == pytest.approx(math.sqrt(plan.variance))
    groups = plan.noise_document()["groups"]
    assert [group["entries"] for group in groups][-1] == 1
    assert groups[-1]["scale"] == "0"


def test_the_audit_of_a_large_grid_has_the_proven_loss() -> None:
    policy = tc.Policy(tc.Domain({"place": tc.Grid(40, 30)}), tc.secrets.within(3, "place"))
    found = tc.audit.exact(tc.rectangles("place", "all"), policy, 0.5)
    assert found.forward.high == pytest.approx(0.5)
    assert found.keeps


def test_what_is_known_of_columns_leaves_the_cells_alone() -> None:
    """Knowledge that couples people: only cells have a proven step, and the known totals are exact."""
    domain = tc.Domain({"x": tc.Integers(0, 3), "y": tc.Integers(0, 2)})
    policy = tc.Policy(domain, tc.secrets.everything(), [tc.known.marginal("y")])
    plan = tc.explain(tc.rectangles("x", "y", "all"), policy, 1).plan
    assert set(plan.tried) == {"unit cells"}
    assert plan.step.l1 == tc.explain(tc.histogram("x", "y"), policy, 1).plan.step.l1
    assert tc.audit.exact(tc.rectangles("x", "y", "all"), policy, 1).keeps
    counts = np.arange(12).reshape(4, 3)
    entries = plan.base.answers([counts], domain).astype(np.float64)
    entries[:12] += 5.0
    assert plan.cells(entries).sum(axis=0) == pytest.approx(counts.sum(axis=0))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("asked", ["all", [[0, 3, 0, 1], [1, 2, 1, 2]]])
def test_a_release_has_a_chart_and_words(asked) -> None:
    found = session(tc.Policy(DOMAIN, tc.secrets.within(1, "place"))).release(tc.rectangles("place", asked), epsilon=1)
    assert found.chart().to_dict()
    assert "rectangle" in found.plan.query.words(DOMAIN)


def test_no_count_is_below_zero_if_so_asked() -> None:
    policy = tc.Policy(DOMAIN, tc.secrets.within(1, "place"))
    found = session(policy).release(tc.rectangles("place", "all"), epsilon=0.1, nonnegative=True)
    assert (found.values >= 0).all()
    assert all(found.rectangle(row, row, 0, 1) >= 0 for row in range(6))
    low, high = found.interval()
    assert (low <= found.values).all()
    assert (found.values <= high).all()

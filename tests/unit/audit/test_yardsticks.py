"""Syntactic yardsticks against plain loops, with defined results for odd tables; taxonomies and what they refuse."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tacit as tc
from tacit.audit.disclosure_audits.yardsticks import SeveralYardsticks
from tacit.release.curator import PRIVATE

TABLE_2_1 = pd.DataFrame(
    {
        "job": ["Professional"] * 3 + ["Artist"] * 4,
        "sex": ["M"] * 3 + ["F"] * 4,
        "disease": ["Hepatitis", "Hepatitis", "HIV", "Flu", "HIV", "HIV", "HIV"],
    }
)
TAXONOMY = """
job:
  Professional: [Engineer, Lawyer]
  Artist: {Stage: [Dancer, Singer], Studio: [Painter]}
age:
  young: [20..29, 30]
  old: [31..99]
"""


def by_definition(rows: pd.DataFrame, public: list[str], sensitive: str, rho1: float) -> dict[str, float]:
    values = sorted(rows[sensitive].unique())
    q = {value: (rows[sensitive] == value).mean() for value in values}
    found: dict[str, list[float]] = {}
    for _, group in rows.groupby(public):
        p = {value: (group[sensitive] == value).mean() for value in values}
        running, far = 0.0, 0.0
        for value in values:
            running += p[value] - q[value]
            far += abs(running)
        falling = sorted(p.values(), reverse=True)
        for name, number in {
            "k": len(group),
            "distinct": sum(share > 0 for share in p.values()),
            "entropy": math.exp(-sum(share * math.log(share) for share in p.values() if share)),
            "recursive": falling[0] / sum(falling[1:]) if sum(falling[1:]) else math.inf,
            "t_equal": sum(abs(p[value] - q[value]) for value in values) / 2,
            "t_ordered": far / (len(values) - 1),
            "beta": max((p[value] - q[value]) / q[value] for value in values),
            "growth": max(p[value] - q[value] for value in values),
            "rho2": max([0.0, *(p[value] for value in values if q[value] <= rho1)]),
        }.items():
            found.setdefault(name, []).append(number)
    least = ("k", "distinct", "entropy")
    return {name: min(numbers) if name in least else max(numbers) for name, numbers in found.items()}


def test_every_yardstick_is_its_definition() -> None:
    rng = np.random.default_rng(2)
    rows = pd.DataFrame({"a": rng.integers(0, 3, 400), "b": rng.choice(list("xy"), 400)})
    rows["s"] = rng.choice([1, 2, 5, 9], 400, p=[0.6, 0.25, 0.1, 0.05])
    for rho1 in (0.04, 0.15):
        found = tc.audit.syntactic(rows, public=["a", "b"], sensitive="s", rho1=rho1)
        for name, wanted in by_definition(rows, ["a", "b"], "s", rho1).items():
            assert getattr(found, name) == pytest.approx(wanted, abs=1e-12), name


def test_table_2_1_of_document_004() -> None:
    """k = 3; three of four artists have HIV."""
    found = tc.audit.syntactic(TABLE_2_1, public=["job", "sex"], sensitive="disease")
    assert (found.k, found.distinct) == (3, 2)
    assert found.frame.set_index("group").loc["job=Artist, sex=F", "growth"] == pytest.approx(0.75 - 4 / 7)
    assert found.recursive == 3.0
    assert tc.audit.syntactic(TABLE_2_1, public="job", sensitive="disease", l=3).recursive is None


def test_the_order_of_values_can_be_given() -> None:
    given: dict[str, Any] = {"public": "job", "sensitive": "disease"}
    first = tc.audit.syntactic(TABLE_2_1, **given, order=["Flu", "HIV", "Hepatitis"])
    other = tc.audit.syntactic(TABLE_2_1, **given, order=["Flu", "Cold", "Hepatitis", "HIV"])
    assert first.t_equal == other.t_equal
    assert first.t_ordered != other.t_ordered
    with pytest.raises(tc.DataRefused, match="column 'disease' has values that the order misses"):
        tc.audit.syntactic(TABLE_2_1, **given, order=["Flu"])
    with pytest.raises(tc.PlanError, match="order must list each value once"):
        tc.audit.syntactic(TABLE_2_1, **given, order=["Flu", "Flu"])


def test_odd_tables_have_defined_results() -> None:
    one = tc.audit.syntactic(TABLE_2_1.head(1), public="job", sensitive="disease")
    same = tc.audit.syntactic(TABLE_2_1.assign(disease="Flu"), public="job", sensitive="disease")
    for found in (one, same):
        assert (found.distinct, found.entropy, found.recursive) == (1, 1.0, None)
        assert (found.t_equal, found.t_ordered, found.beta, found.growth, found.rho2) == (0, 0, 0, 0, 0)
        json.dumps(found.document(), allow_nan=False)
        assert "nan" not in str(found)
    assert one.k == 1
    with pytest.raises(tc.DataRefused, match="the table must have rows"):
        tc.audit.syntactic(TABLE_2_1.head(0), public="job", sensitive="disease")
    with pytest.raises(tc.DataRefused, match="must have rows with a value in every column that is named"):
        tc.audit.syntactic(TABLE_2_1.assign(job=None), public="job", sensitive="disease")


def test_several_sensitive_attributes_are_measured_each_and_together() -> None:
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({"a": rng.integers(0, 3, 400), "s": rng.choice([1, 2, 5], 400, p=[0.7, 0.2, 0.1])})
    rows["t"] = np.where(rng.random(400) < 0.8, rows.s.map({1: "x", 2: "y", 5: "z"}), "x")
    found = tc.audit.syntactic(rows, public="a", sensitive=["s", "t"], rho1=0.15)
    assert isinstance(found, SeveralYardsticks)
    alone = {name: by_definition(rows, ["a"], name, 0.15) for name in "st"}
    for name, wanted in alone.items():
        for yardstick, number in wanted.items():
            assert getattr(found.each[name], yardstick) == pytest.approx(number, abs=1e-12), (name, yardstick)
    both = by_definition(rows.assign(both=rows.s.astype(str) + rows.t), ["a"], "both", 0.15)
    for yardstick in both.keys() - {"t_ordered"}:
        assert getattr(found.together, yardstick) == pytest.approx(both[yardstick], abs=1e-12), yardstick
    assert found.together.t_ordered is None
    del both["t_ordered"]  # combinations stand in no order
    for yardstick in alone["s"]:
        worst = min if yardstick in ("k", "distinct", "entropy") else max
        wanted = worst(one[yardstick] for one in (*alone.values(), both) if yardstick in one)
        assert getattr(found, yardstick) == pytest.approx(wanted, abs=1e-12), yardstick
    assert found.frame.groupby("sensitive").size().to_dict() == {"s": 3, "t": 3, "s and t": 3}
    json.dumps(found.document(), allow_nan=False)
    assert str(found).startswith(PRIVATE)
    assert "nan" not in str(found)
    assert "sensitive: s and t" in str(found)
    assert repr(found) == "SeveralYardsticks(for the curator only)"
    again = tc.audit.syntactic(rows, public="a", sensitive=["s", "t"], order={"t": ["z", "x", "y"]})
    assert again.each["s"].t_ordered == found.each["s"].t_ordered
    assert again.each["t"].t_ordered != found.each["t"].t_ordered


def test_a_group_of_many_values_of_each_may_have_few_together() -> None:
    rows = pd.DataFrame({"a": [0] * 4 + [1] * 4, "s": list("xyxyxxyy"), "t": list("uvuvuvuv")})
    found = tc.audit.syntactic(rows, public="a", sensitive=["s", "t"])
    assert (found.each["s"].t_equal, found.each["t"].t_equal) == (0, 0)
    assert found.together.t_equal == 0.25  # the first group has two of the four combinations
    assert found.t_equal == 0.25  # and that is what counts
    assert (found.beta, found.growth) == (found.together.beta, found.together.growth) != (0, 0)


def test_rows_that_miss_a_cell_are_left_out_everywhere() -> None:
    """One rule: tables, audits of tables, disclosure and yardsticks count the same people."""
    rows = pd.concat([TABLE_2_1] * 30, ignore_index=True).astype(object)
    rows.loc[:4, "job"], rows.loc[100:106, "disease"] = None, None
    whole, values = rows.dropna(), ["Flu", "HIV", "Hepatitis"]
    columns: dict[str, Any] = {"public": ["job"], "sensitive": "disease"}
    declared = {**columns, "values": values, "retention": 0.5}
    measured, wanted = (tc.audit.syntactic(one, **columns) for one in (rows, whole))
    pd.testing.assert_frame_equal(measured.frame, wanted.frame)
    assert (measured.left_out, wanted.left_out) == (12, 0)
    assert "12 rows miss a cell of a column that is named and are left out." in str(measured)
    told, plain = (tc.audit.disclosure(one, **columns, scale=4.0, ways=1) for one in (rows, whole))
    pd.testing.assert_frame_equal(told.frame, plain.frame)
    assert (told.people, told.incomplete, told.document()["rows_left_out"]) == (len(whole), 12, 12)
    assert "12 rows miss a cell" in str(told)
    table = tc.publish.perturbed(rows, **declared)
    audit = tc.audit.reconstruction(rows, **declared, lam=0.3, delta=0.3)
    sizes = whole.groupby("job").size().tolist()
    assert table.sizes.tolist() == audit.frame["size"].tolist() == measured.frame["size"].tolist() == sizes


@pytest.fixture
def taxonomy(tmp_path: Path) -> Path:
    path = tmp_path / "classes.yaml"
    path.write_text(TAXONOMY, encoding="utf-8")
    return path


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "job": ["Engineer", "Lawyer", "Dancer", "Singer", "Painter", "Painter"],
            "age": [25, 30, 31, 40.0, 99, 20],
            "s": list("abcaba"),
        }
    )


@pytest.mark.parametrize(
    ("levels", "groups"),
    [
        (None, {"job=Artist, age=old", "job=Artist, age=young", "job=Professional, age=young"}),
        ({"job": 0, "age": 1}, {"job=*, age=old", "job=*, age=young"}),
        ({"job": 2, "age": 0}, {"job=Stage, age=*", "job=Studio, age=*", "job=Engineer, age=*", "job=Lawyer, age=*"}),
        ({"job": 9}, None),
        ({"job": 0}, {"job=*, age=old", "job=*, age=young"}),
    ],
)
def test_values_become_more_general(levels: Any, groups: Any, taxonomy: Path) -> None:
    found = tc.audit.syntactic(people(), public=["job", "age"], sensitive="s", taxonomy=taxonomy, levels=levels)
    assert int(found.frame["size"].sum()) == 6
    assert groups is None or set(found.frame.group) == groups


def test_a_taxonomy_that_misses_values_is_refused(taxonomy: Path) -> None:
    rows = people().assign(job=["Engineer", "Lawyer", "Dancer", "Singer", "Painter", "secret agent"])
    with pytest.raises(tc.DataRefused, match="column 'job' has values that the taxonomy misses") as refused:
        tc.audit.syntactic(rows, public="job", sensitive="s", taxonomy=taxonomy)
    assert "agent" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("job: {A: [x], B: [x]}", "must be in one class only"),
        ("job: [x, y]", "must have classes with values"),
        ("job: {A: [[x]]}", "must be a value"),
        ("job: {A: [9..3]}", "the smaller end first"),
        ("", "must not be empty"),
    ],
)
def test_broken_taxonomies_are_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "classes.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(tc.PolicyError, match=words):
        tc.audit.syntactic(people(), public="job", sensitive="s", taxonomy=path)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sensitive": []}, "sensitive must be the names of one or more attributes"),
        ({"sensitive": ["s", "age"], "order": ["a", "b"]}, "order must say which attribute it is of"),
        ({"order": {"job": ["a", "b", "c"]}}, "order must be about sensitive attributes"),
        ({"order": {"s": "abc"}}, "order must be lists of values"),
        ({"order": 3}, "order must be a list of values"),
        ({"public": ["s"]}, "public must not be sensitive as well"),
        ({"l": 0}, "l must be a whole number from 1"),
        ({"rho1": 1}, "rho1 must lie between 0 and 1"),
        ({"levels": {"job": 1}}, "levels needs a taxonomy"),
        ({"taxonomy": "classes.yaml", "levels": {"age": 1}}, "levels must be one of the public attributes"),
        ({"taxonomy": "classes.yaml", "levels": {"job": -1}}, "levels.job must be a whole number from 0"),
        (
            {"public": ["sex"], "taxonomy": "classes.yaml"},
            "taxonomy must have classes for at least one public attribute",
        ),
        ({"taxonomy": 3}, "taxonomy must be the path of a file, not an int"),
        (
            {"public": ["job", "sex"], "taxonomy": "classes.yaml", "levels": {"sex": 1}},
            "must be an attribute of the tax",
        ),
    ],
)
def test_bad_arguments_are_refused(
    given: dict[str, Any], words: str, taxonomy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(taxonomy.parent)
    with pytest.raises(tc.PlanError, match=words):
        tc.audit.syntactic(people().assign(sex="F"), **{"public": ["job"], "sensitive": "s", **given})


# ---- lines that stand for several people ----------------------------------------------------------------------------

LINES = pd.DataFrame(
    {
        "job": ["Professional", "Professional", "Artist", "Artist", "Artist"],
        "disease": ["Hepatitis", "HIV", "Flu", "HIV", "Hepatitis"],
        "count": [2, 1, 1, 3, 0],
        "estimate": [2.5, 0.5, 0.0, 4.0, 0.0],
    }
)


def forms(rows: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """Return rows as frames and files, in which weights are whole numbers, decimals or texts."""
    rows.to_csv(folder / "table.csv", index=False)
    rows.to_parquet(folder / "table.parquet")
    return {
        "pandas": rows,
        "decimals": rows.astype({"count": float}),
        "polars": pl.from_pandas(rows),
        "csv": folder / "table.csv",
        "parquet": folder / "table.parquet",
    }


@pytest.mark.parametrize("form", ["pandas", "decimals", "polars", "csv", "parquet"])
def test_weights_are_people(form: str, tmp_path: Path) -> None:
    source = forms(LINES, tmp_path)[form]
    expected = tc.audit.syntactic(TABLE_2_1, public="job", sensitive="disease").document()
    assert tc.audit.syntactic(source, public="job", sensitive="disease", weight="count").document() == expected
    disclosed = [
        tc.audit.disclosure(rows, public="job", sensitive="disease", scale=1.0, ways=1, **weight).frame.to_dict()
        for rows, weight in ((source, {"weight": "count"}), (TABLE_2_1, {}))
    ]
    assert disclosed[0] == disclosed[1]


@pytest.mark.parametrize("form", ["pandas", "polars", "csv", "parquet"])
def test_counts_that_nobody_speaks_of_are_refused(form: str, tmp_path: Path) -> None:
    """Each line would count as one person: k = 2 where a group has one."""
    source = forms(LINES, tmp_path)[form]
    for audit, more in ((tc.audit.syntactic, {}), (tc.audit.disclosure, {"scale": 1.0})):
        with pytest.raises(tc.DataRefused, match=r"column 'count' may say how many people .* weight='count'"):
            audit(source, public="job", sensitive="disease", **more)
    # a count that is public or sensitive is an attribute of a person
    assert tc.audit.syntactic(LINES, public="job", sensitive="count").k == 2


@pytest.mark.parametrize(
    "weights",
    [
        [2, 1, 1, 3, -1],
        [2, 1, 1, 3, 0.5],
        [2, 1, 1, 3, math.inf],
        [2, 1, 1, 3, math.nan],
        [2, 1, 1, 3, 2**53],
        ["2", "1", "1", "3", "two"],
        ["2", "1", "1", "3", None],
        [True] * 5,
    ],
)
def test_what_is_no_number_of_people_is_refused(weights: list[Any]) -> None:
    with pytest.raises(tc.DataRefused, match="column 'count' must hold whole numbers, zero or more"):
        tc.audit.syntactic(LINES.assign(count=weights), public="job", sensitive="disease", weight="count")


def test_weights_are_columns_of_their_own() -> None:
    for given, rule in ((3, "must be the name of a column"), ("job", "must not be public or sensitive as well")):
        with pytest.raises(tc.PlanError, match=f"weight {rule}"):
            tc.audit.syntactic(LINES, public="job", sensitive="disease", weight=given)
    with pytest.raises(tc.DataRefused, match="column 'counts' must be a column of the rows"):
        tc.audit.syntactic(LINES, public="job", sensitive="disease", weight="counts")


def test_published_tables_are_measured_by_their_records(tmp_path: Path) -> None:
    rows = pd.DataFrame({"ward": ["a"] * 40 + ["b"] * 7 + ["c"], "ill": (["flu", "none", "none"] * 16)})
    asked = {"public": ["ward"], "sensitive": "ill", "values": ["flu", "none"], "retention": 0.5}
    table = tc.publish.perturbed(rows, **asked)
    found = tc.audit.syntactic(table, public="ward", sensitive="ill")
    assert found.k == 1  # line by line it would be 2
    listed = tc.audit.syntactic(table.rows, public="ward", sensitive="ill")
    assert {**found.document(), "private": PRIVATE} == listed.document()
    table.frame.to_csv(tmp_path / "table.csv", index=False)
    again = tc.audit.syntactic(tmp_path / "table.csv", public="ward", sensitive="ill", weight="count")
    assert again.document() == {**found.document(), "private": PRIVATE}
    assert "says no more than the table" in str(found)
    assert repr(found) == "Yardsticks(of a published table)"
    assert "k-anonymity" in found._repr_html_()
    assert "k-anonymity" not in again._repr_html_()  # nobody knows whose lines a file has
    with pytest.raises(tc.DataRefused, match=r"column 'Ward' must be a column of the rows\. Did you mean 'ward'"):
        tc.audit.syntactic(table, public="Ward", sensitive="ill")
    masked = tc.publish.reconstruction_private(rows, **asked, lam=0.3, delta=0.3, method="masked")
    with pytest.raises(tc.PlanError, match="frame must have counts of records: masked counts"):
        tc.audit.syntactic(masked, public="ward", sensitive="ill")
    with pytest.raises(tc.DataRefused, match="column 'count' must hold whole numbers"):
        tc.audit.syntactic(masked.frame, public="ward", sensitive="ill", weight="count")


def test_the_report_says_whom_it_is_for() -> None:
    found = tc.audit.syntactic(TABLE_2_1, public="job", sensitive="disease")
    assert str(found).startswith("For the curator only")
    assert "k-anonymity      k = 3" in str(found)
    assert repr(found) == "Yardsticks(for the curator only)"

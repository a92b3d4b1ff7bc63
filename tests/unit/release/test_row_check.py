"""What `check_rows` says is what a release does: the same cells, the same rows, the same people, on every engine."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as tc
from cli.shell import files_in, inside
from parameters import examples
from tacit.release.curator import PRIVATE
from tacit.release.curator.row_check import KeyCheck
from tacit.rows.files.sample import sample_of

DOMAIN = tc.Domain(
    {
        "age": tc.Integers(0, 99, otherwise="clip"),
        "income": tc.Integers(0, 100, step=10),
        "disease": tc.Categories(["flu", "hiv"]),
        "ward": tc.Categories(["A", "B", "other"], otherwise="other"),
        "smoker": tc.Flag(),
    }
)
CELLS = {
    "age": ["5", "40.5", "120", "-3", "", "x", "true", " 7 "],
    "income": ["0", "10", "15", "10.5", "200", "-10", "", "1,000", "2020-01-31", "ten"],
    "disease": ["flu", "hiv", "FLU", " hiv ", "cold", ""],
    "ward": ["A", "B", "a", "C", ""],
    "smoker": ["1", "0", "true", "FALSE", "2", "yes", ""],
}
TABLE = {name: [cells[place % len(cells)] for place in range(400)] for name, cells in CELLS.items()}
TABLE = {name: [None if cell == "" else cell for cell in cells] for name, cells in TABLE.items()}
TABLE["who"] = [place % 350 if place % 50 else None for place in range(400)]
POLICY = tc.Policy(DOMAIN, tc.secrets.attributes("age"), presence="public")  # a count is exact

ENGINES: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda _: pd.DataFrame(TABLE),
    "polars": lambda _: pl.DataFrame(TABLE),
    "polars lazy": lambda _: pl.LazyFrame(TABLE),
    "pyarrow": lambda _: pa.table(TABLE),
    "duckdb": lambda _: duckdb.from_arrow(pa.table(TABLE)),
    "ibis": lambda _: ibis.memtable(pa.table(TABLE)),
    "csv": lambda folder: pl.DataFrame(TABLE).write_csv(folder / "x.csv") or folder / "x.csv",
    "parquet": lambda folder: pl.DataFrame(TABLE).write_parquet(folder / "x.parquet") or folder / "x.parquet",
}


def released(rows: Any, policy: tc.Policy = POLICY, **who: Any) -> int:
    record = tc.Session(policy, rows, budget=1, **who).release(tc.count(), epsilon=1)
    assert record.plan.is_exact
    return int(record.values[0])


@pytest.mark.one_in(8)
@pytest.mark.parametrize("kind", ENGINES)
def test_what_remains_is_what_a_release_counts(kind: str, tmp_path: Path) -> None:
    rows = ENGINES[kind](tmp_path)
    checked = tc.check_rows(POLICY, rows)
    assert checked.rows == 400
    assert checked.kept == checked.remaining == released(rows)
    found = {column.name: column for column in checked.columns}
    assert found["age"].unexpected == {"missing": 50, "not a number": 50, "below": 50, "above": 50, "decimal": 50}
    assert found["age"].dropped == 100
    assert found["income"].unexpected == {
        **dict.fromkeys(("missing", "date", "comma", "not a number", "below", "above", "decimal", "off step"), 40)
    }
    assert sum(found["income"].unexpected.values()) == found["income"].dropped == 320
    assert {k: v // 66 for k, v in found["disease"].unexpected.items()} == {"missing": 1, "near": 2, "unknown": 1}
    assert found["disease"].dropped == sum(found["disease"].unexpected.values())
    assert found["ward"].unexpected == {"missing": 80, "near": 80, "unknown": 80}
    assert found["ward"].dropped == 0
    assert found["smoker"].dropped == sum(found["smoker"].unexpected.values())
    assert set(found["smoker"].unexpected) == {"missing", "not true or false"}
    assert checked.dropping_most is found["income"]


# with one column most rows are kept, so that some people have two of them
ONE_COLUMN = tc.Policy(tc.Domain({"age": DOMAIN["age"]}), tc.secrets.attributes("age"), presence="public")


@pytest.mark.one_in(8)
@pytest.mark.parametrize("kind", ENGINES)
def test_people_are_counted_as_a_release_counts_them(kind: str, tmp_path: Path) -> None:
    rows = ENGINES[kind](tmp_path)
    checked = tc.check_rows(ONE_COLUMN, rows, person="who", order="who")
    assert checked.remaining == released(rows, ONE_COLUMN, person="who", order="who")
    (person,) = checked.persons
    people = pd.Series(TABLE["who"]).dropna()
    assert (person.people, person.without) == (people.nunique(), 8)
    assert person.several == int((people.value_counts() > 1).sum())
    counted = tc.check_rows(ONE_COLUMN, rows, person="who", per_person=400, order="who")
    assert counted.persons[0].surplus == 0
    assert person.surplus == kept_with_owner() - checked.remaining > 0


@cache
def kept_with_owner() -> int:
    return tc.check_rows(ONE_COLUMN, pd.DataFrame(TABLE)[pd.Series(TABLE["who"]).notna()]).kept


VALUES = st.sampled_from(
    [
        *(None, "", " ", "0", "1", "5", "5.0", "5.5", "-1", "99", "100", "1e1", "true", "no", "A", "a", " A", "B "),
        *("nan", "inf"),
    ]
)
ATTRIBUTES = st.sampled_from(
    [
        *(tc.Integers(0, 10), tc.Integers(-10, 90, step=5), tc.Integers(0, 9, otherwise="clip")),
        *(tc.Integers(0, 9, otherwise=3), tc.Categories(["A", "B"]), tc.Categories(["A", 5, "5.5"])),
        *(tc.Categories(["A", "B"], otherwise="A"), tc.Flag(), tc.Flag(otherwise=True)),
    ]
)


@examples(24)
@given(st.lists(VALUES, min_size=1, max_size=12), ATTRIBUTES, st.booleans())
def test_kinds_add_up_to_what_is_dropped(cells: list[str | None], attribute: Any, typed: bool) -> None:
    """Whatever the cells and the attribute: no cell has two kinds, and a cell without a kind has a position."""
    rows = pd.DataFrame({"x": cells}, dtype=object)
    if typed:
        rows["x"] = pd.to_numeric(rows["x"], errors="coerce").astype(np.float64)
    policy = tc.Policy(tc.Domain({"x": attribute}), tc.secrets.everything())
    checked = tc.check_rows(policy, rows)
    (column,) = checked.columns
    strict = type(attribute)(**{**vars(attribute), "otherwise": None})
    strictly = tc.check_rows(tc.Policy(tc.Domain({"x": strict}), tc.secrets.everything()), rows)
    if checked.remaining is None or strictly.remaining is None:  # a type that cannot have such values at all
        assert column.refused or strictly.columns[0].refused
        return
    assert column.unexpected == strictly.columns[0].unexpected
    assert sum(column.unexpected.values()) == strictly.columns[0].dropped == len(cells) - strictly.remaining
    assert 0 <= column.dropped <= sum(column.unexpected.values())


def test_places_and_items() -> None:
    domain = tc.Domain(
        {"place": tc.Grid(2, 2, of=("lat", "lon"), low=(0, 0), high=(1, 1)), "bought": tc.Items(["bread", "milk"])}
    )
    rows = pl.DataFrame(
        {"lat": [0.5, 2.0, None, 0.1], "lon": [0.5, 0.5, 0.5, -1.0], "bought": [["bread"], ["Bread", "beer"], [], None]}
    )
    checked = tc.check_rows(tc.Policy(domain, tc.secrets.everything()), rows)
    place, bought = checked.columns
    assert place.unexpected == {"missing": 1, "below": 1, "above": 1}
    assert (place.dropped, checked.kept, checked.remaining) == (3, 1, 1)
    assert (bought.cells, bought.unexpected, bought.dropped) == (3, {"near": 1, "unknown": 1}, 0)
    assert "are ignored" in str(bought)


def test_a_column_of_a_type_that_cannot_be_read_is_said() -> None:
    rows = pl.DataFrame({"day": [None, 1]}, schema={"day": pl.Date})
    policy = tc.Policy(tc.Domain({"day": tc.Integers(0, 9)}), tc.secrets.everything())
    checked = tc.check_rows(policy, rows)
    assert checked.remaining is None
    assert "a release would be refused" in str(checked.columns[0])


def test_ids_that_repeat_are_said_also_where_no_person_is_named() -> None:
    rows = pd.DataFrame({"patient_id": [1, 1, 2], "x": [1, 1, 0]})
    policy = tc.Policy(tc.Domain({"x": tc.Flag()}), tc.secrets.everything())
    assert "patient_id: 2 different values, 1 of them in several rows. The policy does not name it" in str(
        tc.check_rows(policy, rows)
    )
    assert tc.check_rows(policy, rows.drop_duplicates()).persons == ()


def test_a_missing_column_is_refused_as_a_release_refuses_it() -> None:
    policy = tc.Policy(tc.Domain({"x": tc.Flag(), "y": tc.Flag()}), tc.secrets.everything())
    with pytest.raises(tc.DataRefused, match="column 'y' must be a column of the data"):
        tc.check_rows(policy, pd.DataFrame({"x": [1]}))
    with pytest.raises(tc.PolicyError, match="must be a Policy"):
        tc.check_rows(pd.DataFrame({"x": [1]}), policy)  # type: ignore[arg-type]


def test_the_command_shows_counts_to_the_holder_and_writes_nothing(clinic_with_other_spellings: Path) -> None:
    folder = clinic_with_other_spellings
    before = files_in(folder)
    said = inside(folder, "check", "clinic.policy.yaml", "--rows", "clinic.csv")
    assert (said.code, said.err) == (0, "")
    words = " ".join(said.out.split())
    assert words.startswith(PRIVATE)
    assert "300 rows; the domain keeps 200 and drops 100 (33.3%)." in words
    assert "Most are dropped by disease: 100." in words
    assert "100 would match a category in other case or without spaces around" in words
    document = inside(folder, "check", "clinic.policy.yaml", "--rows", "clinic.csv", "--json").document
    assert document["private"] == PRIVATE
    assert (document["rows"], document["kept"], document["remaining"], document["drops_most"]) == (
        300,
        200,
        200,
        "disease",
    )
    assert files_in(folder) == before
    assert "CANARY" not in said.out + json.dumps(document)
    assert "needs --rows" in inside(folder, "check", "clinic.policy.yaml", "--person", "who").refusal()


@pytest.fixture
def clinic_with_other_spellings(tmp_path: Path) -> Path:
    diseases = ("flu", "Flu ", "CANARY")
    lines = [f"{number % 90},{diseases[number % 3]}" for number in range(300)]
    (tmp_path / "clinic.csv").write_text("\n".join(["age,disease", *lines]) + "\n")
    (tmp_path / "clinic.policy.yaml").write_text(
        "domain:\n  age: {integers: [0, 99]}\n  disease: {categories: [flu, CANARY]}\nsecrets: everything\n"
    )
    return tmp_path


def test_sentences_count_rows_and_people_as_the_domain_keeps_them() -> None:
    policy = tc.Policy(tc.Domain({"x": tc.Integers(0, 9)}), tc.secrets.everything(), person="who")
    rows = pd.DataFrame({"who": ["a", "a", "a", "b", "c"], "x": [1, 2, 99, 3, 99]})
    said = str(tc.check_rows(policy, rows))
    assert (
        "5 rows; the domain keeps 3 and drops 2 (40.0%).\nOf those that it keeps, releases read 2, of 2 people." in said
    )
    assert "who: 3 different values, 1 of them in several rows; 1 row is left out, because only 1 row of" in said
    twice = str(tc.check_rows(policy, pd.concat([rows] * 3), per_person=2))
    assert "5 rows are left out, because only 2 rows of each person are" in twice


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([5, 12, -1], "they count as the nearest end of the range"),
        ([5, 2.5], "they count as the next lower value"),
        ([5, 2.5, 12, None], "the others count as the nearest end of the range (out of range) or the next lower value"),
        ([None, 1], "1 row is dropped"),
    ],
)
def test_what_clip_makes_of_a_cell_is_said_by_its_kind(cells: list[float | None], said: str) -> None:
    policy = tc.Policy(
        tc.Domain({"x": tc.Integers(0, 9, otherwise="clip")}), tc.secrets.attributes("x"), presence="public"
    )
    rows = pd.DataFrame({"x": cells}, dtype="float64")
    assert said in str(tc.check_rows(policy, rows).columns[0])
    open_policy = tc.Policy(
        tc.Domain({"x": policy.domain["x"], "y": tc.Flag()}), tc.secrets.attributes("y"), presence="public"
    )
    released = tc.Session(open_policy, rows.assign(y=True), budget=1).release(tc.histogram("x"), epsilon=1)
    known = [min(max(math.floor(cell), 0), 9) for cell in cells if cell is not None]
    assert released.values.tolist() == [known.count(value) for value in range(10)]


@pytest.mark.spark
def test_spark_says_the_same(spark: Any) -> None:
    rows = spark.createDataFrame(pa.table(TABLE))
    assert tc.check_rows(POLICY, rows, person="who") == tc.check_rows(POLICY, pa.table(TABLE), person="who")
    sample = sample_of(rows, 100)
    assert (sample.rows, {len(cells) for _, cells in sample.columns}) == (400, {100})


def test_cells_that_are_no_dates_numbers_or_categories_are_called_so():
    domain = tc.Domain(
        {"d": tc.Dates("2024-01-01", "2024-12-31"), "n": tc.Integers(0, 9), "c": tc.Categories(["a", "b"])}
    )
    rows = pd.DataFrame({"d": ["soon", "2024-05-01"], "n": ["many", "5"], "c": ["z", "a"]})
    text = str(tc.check_rows(tc.Policy(domain, tc.secrets.everything()), rows))
    for words in ("1 that are no dates", "1 that are no numbers", "1 that are no category"):
        assert f"({words})" in text


def test_keys_are_looked_at_as_a_release_reads_them() -> None:
    policy = tc.Policy(tc.Domain({"day": tc.Integers(1, 9), "ill": tc.Flag()}), tc.secrets.values({"ill": [True]}))
    rows = pd.DataFrame({"room": ["7", "7.0", "B", "B"], "day": [1, 1, 2, 3], "ill": [True, False, True, None]})
    twice = tc.check_rows(policy, rows, key=["room", "day"])
    assert twice.key == KeyCheck(("room", "day"), 4, 1)
    assert "1 key is there more than once in 4 rows" in str(twice)
    assert tc.check_rows(policy, rows[1:], key=["day", "room"]).key == KeyCheck(("day", "room"), 3, 0)
    missing = tc.check_rows(policy, rows.assign(day=[1, 20, 2, 3]), key=["room", "day"])
    assert missing.key is not None
    assert missing.key.refused.startswith("Column 'day' must have a value in every row")
    assert tc.check_rows(policy, rows).document()["key"] is None

"""Opening rows: what is refused by the schema alone, how files are found and read, item counts, frames that go out."""

from __future__ import annotations

import decimal
import gc
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.errors import DataRefused, PlanError
from tacit.policy.domain import Categories, Domain, Flag, Grid, Integers, Items
from tacit.policy.where import where
from tacit.release.rows import ItemCounts, open_rows

AGES = Domain({"age": Integers(0, 9), "sex": Categories(["m", "w"])})
PEOPLE = pd.DataFrame({"age": [1, 2, 2, 99], "sex": ["m", "w", "w", "m"], "who": [1, 2, 3, 4]})


def sentence(source: Any, domain: Domain = AGES, **options: Any) -> str:
    with pytest.raises(DataRefused) as refused:
        open_rows(source, domain, **options)
    return str(refused.value)


# ---------------------------------------------------------------------- refused by the schema


def test_a_missing_column_is_named_with_its_nearest_neighbour() -> None:
    assert sentence(PEOPLE.rename(columns={"age": "agee"})) == (
        "column 'age' must be a column of the data. Did you mean 'agee'?"
    )
    assert sentence(PEOPLE, person="whom") == "column 'whom' must be a column of the data. Did you mean 'who'?"
    grid = Domain({"place": Grid(2, 2, of=("lat", "lon"))})
    assert sentence(pl.DataFrame({"lat": [1], "long": [1]}), grid) == (
        "column 'lon' must be a column of the data. Did you mean 'long'?"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"per_person": 0}, "per_person must be a whole number from 1. Leave it out for one row per person."),
        ({"per_person": True}, "per_person must be a whole number from 1. Leave it out for one row per person."),
        ({"order": "age"}, "order needs person. Name the column that says whose row it is."),
        ({"item": "age"}, "item can only be given for a domain with one set of items. Leave it out."),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], said: str) -> None:
    assert sentence(PEOPLE, **options) == said


def test_columns_that_hold_no_single_values_are_refused() -> None:
    said = "column 'age' must hold texts, numbers or true/false. Convert the column to text first."
    domain = Domain({"age": Integers(0, 9)})
    assert sentence(pl.DataFrame({"age": [[1], [2]]}), domain) == said
    assert sentence(pd.DataFrame({"age": pd.to_datetime(["2020-01-01"])}), domain) == said
    assert sentence(pa.table({"age": pa.array([b"1"])}), domain) == said
    listed = pl.DataFrame({"age": [1], "who": [[1]]})
    assert sentence(listed, domain, person="who") == "column 'who' must hold one value per row. Name another column."


def test_items_one_per_row_need_a_person() -> None:
    domain = Domain({"item": Items(5)})
    long = pl.DataFrame({"item": [1, 2], "other": [1, 2], "who": [1, 1]})
    assert sentence(long, domain) == (
        "column 'item' has one item per row, so person must be named. "
        "Name the column that says whose row it is, or give a column of lists."
    )
    assert sentence(long, domain, person="who", per_person=2) == (
        "per_person must be 1 in a domain with a set of items. Leave it out."
    )
    two = Domain({"item": Items(5), "other": Items(5)})
    assert sentence(long, two, person="who") == "only one set of items can have one row per item. Use columns of lists."


def test_what_is_no_table_is_refused_by_its_type_alone() -> None:
    assert sentence({"age": [1]}).startswith(
        "rows must be a path, a pandas, polars, Arrow, DuckDB, Spark or Ibis table"
    )
    assert sentence(PEOPLE["age"]).endswith("A pandas Series is none of them.")
    assert sentence([1, 2]).endswith("A list may hold paths only.")
    assert sentence([]).endswith("A builtins list is none of them.")
    twice = pd.DataFrame([[1, 2, "m"]], columns=["age", "age", "sex"])
    assert sentence(twice) == "column 'age' must be there only once. Rename the second one."


def test_questions_that_have_no_cells_are_refused() -> None:
    rows = open_rows(pl.DataFrame({"item": [[1]], "age": [1]}), Domain({"item": Items(5), "age": Integers(0, 2**40)}))
    with pytest.raises(PlanError, match=r"^counts must not be a set of items; got \['item'\]"):
        rows.counts(("item",))
    with pytest.raises(PlanError, match=r"^histogram must have at most 2\^31 cells; got \['age'\]"):
        rows.counts(("age",))
    with pytest.raises(PlanError, match=r"^total must be declared as integers; got 'item'"):
        rows.total("item")
    with pytest.raises(PlanError, match=r"^item_counts must be a set of items; got 'age'"):
        rows.item_counts("age")
    assert rows.total("age") == 1


# ---------------------------------------------------------------------- files


def counted(source: Any, **options: Any) -> list[list[int]]:
    counts: list[list[int]] = open_rows(source, AGES, **options).counts(("sex", "age"))[:, 1:4].tolist()
    return counts


def test_paths_patterns_lists_and_packed_files(tmp_path: Path) -> None:
    PEOPLE.to_csv(tmp_path / "a.csv", index=False)
    PEOPLE.to_csv(tmp_path / "b.csv", index=False)
    with gzip.open(tmp_path / "c.csv.gz", "wt") as packed:
        PEOPLE.to_csv(packed, index=False)
    PEOPLE.to_csv(tmp_path / "d.tsv", index=False, sep="\t")
    PEOPLE.to_parquet(tmp_path / "e.parquet")
    PEOPLE.to_csv(tmp_path / "f[1].csv", index=False, sep=";")
    PEOPLE.to_parquet(tmp_path / "it's.parquet")
    once, twice = [[1, 0, 0], [0, 2, 0]], [[2, 0, 0], [0, 4, 0]]
    for name in ("a.csv", "c.csv.gz", "d.tsv", "e.parquet", "f[1].csv", "it's.parquet"):
        assert counted(tmp_path / name) == once, name
        assert counted(str(tmp_path / name)) == once, name
    assert counted(str(tmp_path / "[ab].csv")) == twice
    assert counted([tmp_path / "a.csv", str(tmp_path / "b.csv")]) == twice
    assert counted([tmp_path / "a.csv", tmp_path / "c.csv.gz"]) == twice
    assert counted(tmp_path / "*.parquet") == twice


def test_a_narwhals_frame_stands_for_what_it_wraps() -> None:
    assert open_rows(nw.from_native(PEOPLE), AGES).kind == "pandas"
    assert open_rows(nw.from_native(pl.LazyFrame(PEOPLE.to_dict("list"))), AGES).kind == "polars"


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    assert sentence("no/such.csv") == (
        "file 'no/such.csv' must exist. Check the path; it is relative to the folder you started in."
    )
    assert sentence(tmp_path / "none.csv") == f"file {str(tmp_path / 'none.csv')!r} must exist."
    assert sentence(f"{tmp_path}/*.parquet") == f"pattern '{tmp_path}/*.parquet' must match a file."
    (tmp_path / "a.xlsx").touch()
    assert sentence(tmp_path / "a.xlsx") == (
        f"file {str(tmp_path / 'a.xlsx')!r} must end in .csv, .tsv, .csv.gz, .tsv.gz or .parquet. "
        "Rename it, or open it with pandas or polars first."
    )
    (tmp_path / "a.csv").touch()
    assert sentence(tmp_path / "a.csv") == (
        f"file {str(tmp_path / 'a.csv')!r} must begin with a line of column names. Add the header."
    )
    (tmp_path / "b.csv").write_text("age,sex\n1,m\n")
    (tmp_path / "c.csv").write_text("sex,age\nm,1\n")
    assert sentence([tmp_path / "b.csv", tmp_path / "c.csv"]) == (
        f"file {str(tmp_path / 'c.csv')!r} must have the same header as {str(tmp_path / 'b.csv')!r}. Rewrite it."
    )
    PEOPLE.to_parquet(tmp_path / "d.parquet")
    assert sentence([tmp_path / "b.csv", tmp_path / "d.parquet"]) == (
        "files must all be CSV or all be Parquet. Open them one kind at a time."
    )
    (tmp_path / "e.csv").write_text("age,sex,age\n1,m,2\n")
    assert sentence(tmp_path / "e.csv") == "column 'age' must be there only once. Rename the second one."


@pytest.mark.parametrize(
    ("content", "people"),
    [
        (b"\xef\xbb\xbfage,sex\r\n1,m\r\n2,w\r\n", [[1, 0, 0], [0, 1, 0]]),  # byte order mark, Windows lines
        (b'age;"sex"\n1;m\n"2";"w"\n', [[1, 0, 0], [0, 1, 0]]),
        (b'note|age|sex\n"a\nb|c"|1|m\n', [[1, 0, 0], [0, 0, 0]]),  # line break and delimiter inside quotes
        (b"age,sex\n1\n2,w,9\n3,w\n", [[0, 0, 0], [0, 0, 1]]),  # lines of the wrong length are no rows
        (b"age,sex\n1,\xff\n3,w\n", [[0, 0, 0], [0, 0, 1]]),  # no UTF-8
        (b"age,sex\n1.0,m\n 2 ,w\n3.5,m\n0x1,m\n,w\n", [[1, 0, 0], [0, 1, 0]]),
        (b"age,sex\n1,m", [[1, 0, 0], [0, 0, 0]]),  # no line break at the end
        (b"age,sex\n", [[0, 0, 0], [0, 0, 0]]),
        (b"\n".join([b"age,sex", *[b"1,m"] * 30_000, b'"2,w']), [[30_000, 0, 0], [0, 0, 0]]),  # a quote never closed
    ],
)
def test_what_a_csv_may_look_like(tmp_path: Path, content: bytes, people: list[list[int]]) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    assert counted(tmp_path / "a.csv") == people


def test_a_quoted_empty_text_is_a_text_and_an_empty_field_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('kind,n\n"",1\n,1\nx,1\n')
    domain = Domain({"kind": Categories(["", "x", "other"], otherwise="other")})
    assert open_rows(tmp_path / "a.csv", domain).counts(("kind",)).tolist() == [1, 1, 1]


def test_parquet_files_whose_columns_have_different_types(tmp_path: Path) -> None:
    pq.write_table(pa.table({"age": [1, 2], "sex": ["m", "w"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"sex": ["m", "w"], "age": ["1", "3"]}), tmp_path / "b.parquet")
    assert counted(tmp_path / "*.parquet") == [[2, 0, 0], [0, 1, 1]]


# ---------------------------------------------------------------------- types of columns


@pytest.mark.parametrize(
    "cells",
    [
        pl.Series("c", ["3", "x", None, "3"], dtype=pl.Categorical),
        pl.Series("c", ["3", "x", None, "3"], dtype=pl.Enum(["x", "3"])),
        pl.Series("c", [3, 2**64 - 1, None, 3], dtype=pl.UInt64),
        pl.Series("c", [3, -(2**100), None, 3], dtype=pl.Int128),
        pl.Series("c", [3, 200, None, 3], dtype=pl.UInt8),
        pl.Series("c", [decimal.Decimal("3.0"), decimal.Decimal("3.5"), None, decimal.Decimal(3)]),
        pl.Series("c", [3.0, 3.5, None, 3.0], dtype=pl.Float32),
    ],
    ids=lambda cells: str(cells.dtype),
)
@pytest.mark.parametrize("attribute", [Categories(["3", "no"], otherwise="no"), Integers(3, 4, otherwise=4)])
def test_every_polars_type_of_column(cells: pl.Series, attribute: Any) -> None:
    assert open_rows(pl.DataFrame({"c": cells}), Domain({"c": attribute})).counts(("c",)).tolist() == [2, 2]


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series(["3", "x", None, "3"], dtype="category"),
        pd.Series([3, 4, None, 3], dtype="category"),
        pd.Series([3, 9, None, 3], dtype="Int64"),
        pd.Series([3, 3.5, None, 3], dtype="Float32"),
        pd.Series([3, float("nan"), None, 3], dtype="float16"),
        pd.Series(["3", "x", None, "3"], dtype="string"),
        pd.Series(["3", "x", None, "3"], dtype=pd.ArrowDtype(pa.large_string())),
        pd.Series(["3", b"3", None, 3], dtype=object),
        pd.Series([3.0, [3], {"3": 3}, decimal.Decimal(3)], dtype=object),
        pd.Series([np.int8(3), object(), 10**400, np.str_("3")], dtype=object),
        pd.Series([3, 2**64 - 1, 0, 3], dtype="uint64"),
    ],
    ids=lambda cells: str(cells.dtype),
)
@pytest.mark.parametrize("attribute", [Categories(["3", "no"], otherwise="no"), Integers(3, 7, step=4, otherwise=7)])
def test_every_pandas_type_of_column(cells: pd.Series[Any], attribute: Any) -> None:
    frame = pd.DataFrame({"c": cells}, index=[5, 5, 6, 7])
    frame["c"] = cells.to_numpy() if cells.dtype == np.dtype(object) else cells.array
    frame["c"] = frame["c"].astype(cells.dtype)
    assert open_rows(frame, Domain({"c": attribute})).counts(("c",)).tolist() == [2, 2]


@pytest.mark.parametrize(
    "cells",
    [
        pa.array(["3", "x", None, "3"]).dictionary_encode(),
        pa.array([3, 4, None, 3]).dictionary_encode(),
        pa.array(["3", "x", None, "3"], pa.string_view()),
        pa.array([3, 2**64 - 1, None, 3], pa.uint64()),
        pa.chunked_array([["3", "x"], [None, "3"]]),
        pa.array([3, None, None, 3], pa.float16()),
    ],
    ids=lambda cells: str(cells.type).split("<")[0],
)
def test_every_arrow_type_of_column(cells: Any) -> None:
    domain = Domain({"c": Categories(["3", "no"], otherwise="no")})
    assert open_rows(pa.table({"c": cells}), domain).counts(("c",)).tolist() == [2, 2]


def test_a_huge_integer_of_duckdb_is_read_like_any_other() -> None:
    relation = duckdb.sql(
        "SELECT CASE WHEN i < 2 THEN 3 ELSE i * 10000000000000000000::HUGEINT END AS c FROM range(4) t(i)"
    )
    assert open_rows(relation, Domain({"c": Integers(3, 4, otherwise=4)})).counts(("c",)).tolist() == [2, 2]


def test_a_person_without_a_number_is_no_person() -> None:
    frame = pl.DataFrame({"age": [1, 2, 3], "sex": "m", "who": [float("nan"), None, 1.0]})
    assert open_rows(frame, AGES, person="who").counts(()) == 1


def test_a_predicate_over_a_thousand_ranges_is_no_deep_tree() -> None:
    domain = Domain({"age": Integers(0, 10_000)})
    frame = pl.DataFrame({"age": list(range(0, 10_000, 7))})
    picked = where("age in " + str([v for v in range(10_000) if v % 5 < 2])).compile(domain)
    assert open_rows(frame, domain).counts((), picked) == sum(v % 5 < 2 for v in range(0, 10_000, 7))


# ---------------------------------------------------------------------- item counts


def test_item_counts_answer_what_they_can() -> None:
    domain = Domain({"clicked": Items(3)})
    source = ItemCounts([5, 0, 2], people=6)
    rows = open_rows(source, domain)
    assert (rows.kind, repr(source), repr(rows)) == ("items", "ItemCounts(3 items)", "Rows(items)")
    assert rows.item_counts("clicked").tolist() == [5, 0, 2]
    assert rows.counts(()) == 6
    assert rows.counts((), where("clicked.has(0)").compile(domain)) == 5
    assert rows.counts((), where("not clicked.has(0)").compile(domain)) == 1
    with pytest.raises(DataRefused, match="cannot say how many people have two items together"):
        rows.counts((), where("clicked.has(0) and clicked.has(2)").compile(domain))
    with pytest.raises(DataRefused, match="cannot be restricted to some people"):
        rows.item_counts("clicked", where("clicked.has(0)").compile(domain))
    with pytest.raises(PlanError):
        rows.total("clicked")
    with pytest.raises(ValueError, match="read-only"):
        source.counts[0] = 1


@pytest.mark.parametrize(
    ("counts", "people", "said"),
    [
        ([424242, -1], 424243, "item counts must lie between 0 and the number of people"),
        ([424242], 424241, "item counts must lie between 0 and the number of people"),
        ([42.4242], 50, "item counts must be a list of whole numbers"),
        ([[424242]], 424242, "item counts must be a list of whole numbers"),
        ([], 5, "item counts must be a list of whole numbers"),
        ([1], -424242, "people must be a whole number from 0"),
        ([1], True, "people must be a whole number from 0"),
    ],
)
def test_item_counts_that_cannot_be_are_refused_without_a_value(counts: Any, people: Any, said: str) -> None:
    with pytest.raises(DataRefused, match=f"^{said}") as refused:
        ItemCounts(counts, people=people)
    assert "424" not in str(refused.value)


def test_item_counts_must_fit_the_domain() -> None:
    source = ItemCounts([1, 2], people=3)
    assert sentence(source, Domain({"i": Items(3)})) == (
        "column 'i' must have one count per item of the domain. Check the two lengths."
    )
    assert sentence(source, AGES) == "item counts need a domain with one set of items. Declare only the items."


# ---------------------------------------------------------------------- frames that go out

COLUMNS = {"age": [1, 2, None], "cell": [(0, 1), (2, 3), (4, 5)], "kind": ["a", 3, None], "count": np.array([1, 2, 3])}


@pytest.mark.parametrize(
    ("source", "kind", "made"),
    [
        (lambda: PEOPLE, "pandas", pd.DataFrame),
        (lambda: pl.DataFrame(PEOPLE.to_dict("list")), "polars", pl.DataFrame),
        (lambda: pl.DataFrame(PEOPLE.to_dict("list")).lazy(), "polars", pl.DataFrame),
        (lambda: pa.Table.from_pandas(PEOPLE), "pyarrow", pa.Table),
        (lambda: duckdb.from_df(PEOPLE), "duckdb", duckdb.DuckDBPyRelation),
        (lambda: ibis.memtable(pa.Table.from_pandas(PEOPLE)), "ibis", ibis.Table),
    ],
    ids=["pandas", "polars", "lazy", "pyarrow", "duckdb", "ibis"],
)
def test_a_frame_goes_out_in_the_kind_that_came_in(source: Callable[[], Any], kind: str, made: type) -> None:
    rows = open_rows(source(), AGES)
    frame = rows.frame(COLUMNS)
    assert rows.kind == kind
    assert repr(rows) == f"Rows({kind})"
    assert isinstance(frame, made)
    assert list(frame.columns if kind != "pyarrow" else frame.column_names) == list(COLUMNS)
    if kind == "duckdb":
        gc.collect()  # the relation keeps what it shows alive
        assert frame.project("count").fetchall() == [(1,), (2,), (3,)]


def test_frames_of_files_and_item_counts_are_pandas(tmp_path: Path) -> None:
    PEOPLE.to_csv(tmp_path / "a.csv", index=False)
    for rows in (open_rows(tmp_path / "a.csv", AGES), open_rows(ItemCounts([1], people=1), Domain({"i": Items(1)}))):
        frame = rows.frame(COLUMNS)
        assert isinstance(frame, pd.DataFrame)
        assert frame["count"].tolist() == [1, 2, 3]


def test_a_flag_that_may_drop_hides_its_row_from_every_question() -> None:
    domain = Domain({"age": Integers(0, 9, otherwise=0), "member": Flag()})
    rows = open_rows(pl.DataFrame({"age": [1, 2, 3], "member": [True, None, False]}), domain)
    assert rows.counts(()) == 2
    assert rows.counts(("age",)).sum() == 2
    assert rows.total("age") == 4

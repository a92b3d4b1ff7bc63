"""Opening rows: what is refused by the schema alone, how files are found and read, item counts, frames that go out."""

from __future__ import annotations

import datetime
import decimal
import gc
import gzip
import subprocess
import sys
import uuid
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

import tacit as tc
from tacit.errors import DataRefused, PlanError
from tacit.plan.measure.measured import CellCounts, ItemHolders
from tacit.policy.attributes import Categories, Flag, Grid, Integers, Items
from tacit.policy.domain import Domain
from tacit.policy.where import where
from tacit.rows.counts.groups import count_groups, group_counts
from tacit.rows.counts.item_counts import ItemCounts
from tacit.rows.rows import open_rows
from tacit.rows.sources.file_engines import CsvEngine

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


@pytest.mark.parametrize("key", ["person", "order", "item"])
def test_a_column_that_is_given_itself_is_not_shown(key: str) -> None:
    for given in (pd.Series(["secret"]), ["secret"], 424242):
        said = sentence(PEOPLE, **{"person": "who", key: given})
        assert said == f"{key} must be the name of a column. Give its name as a text."


def test_columns_that_hold_no_single_values_are_refused() -> None:
    said = "column 'age' must hold texts, numbers or true/false. Make whole numbers of it first: days, years, cents."
    domain = Domain({"age": Integers(0, 9)})
    assert sentence(pl.DataFrame({"age": [[1], [2]]}), domain) == said
    assert sentence(pd.DataFrame({"age": pd.to_datetime(["2020-01-01"])}), domain) == said
    assert sentence(pa.table({"age": pa.array([b"1"])}), domain) == said
    listed = pl.DataFrame({"age": [1], "who": [[1]]})
    assert sentence(listed, domain, person="who") == "column 'who' must hold one value per row. Name another column."


def test_rows_are_ordered_by_numbers_dates_or_texts() -> None:
    table = pa.table(
        {"age": [1], "sex": ["m"], "who": [1], "bytes": pa.array([b"1"]), "day": pa.array([1], pa.date32())}
    )
    assert sentence(table, person="who", order="bytes") == (
        "column 'bytes' must hold numbers, dates or texts, because rows are ordered by it. "
        "Name another column, or convert it first."
    )
    open_rows(table, AGES, person="who", order="day")


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


def test_items_are_of_one_type_whatever_a_batch_holds(tmp_path: Path) -> None:
    paths = []
    for number, cells in enumerate([[[]], [["z"], None], [["b", "a"], ["c"]] * 40]):
        table = pa.table({"item": pa.array(cells, pa.list_(pa.string())), "who": range(len(cells))})
        pq.write_table(table, tmp_path / f"{number}.parquet")
        paths.append(tmp_path / f"{number}.parquet")
    rows = open_rows(paths, Domain({"item": Items(["a", "b", "c"])}), person="who")
    assert rows.item_counts("item").tolist() == [40, 40, 40]


def test_what_is_no_table_is_refused_by_its_type_alone() -> None:
    assert sentence({"age": [1]}).startswith(
        "rows must be a path, a pandas, polars, Arrow, DuckDB, Spark or Ibis table"
    )
    assert sentence(PEOPLE["age"]).endswith(
        "A pandas Series is none of them. Make a table of it first: pandas.DataFrame(..)."
    )
    assert sentence([1, 2]).endswith("A list may hold paths only.")
    assert sentence([]).endswith("A builtins list is none of them. Make a table of it first: pandas.DataFrame(..).")
    twice = pd.DataFrame([[1, 2, "m"]], columns=["age", "age", "sex"])
    assert sentence(twice) == "column 'age' must be there only once. Rename the second one."


def test_questions_that_have_no_cells_are_refused() -> None:
    rows = open_rows(pl.DataFrame({"item": [[1]], "age": [1]}), Domain({"item": Items(5), "age": Integers(0, 2**40)}))
    with pytest.raises(PlanError, match=r"^counts must not be a set of items; got \['item'\]"):
        rows.counts(("item",))
    with pytest.raises(PlanError, match=r"^histogram must have at most 2\^31 cells; got \['age'\]"):
        rows.counts(("age",))
    with pytest.raises(PlanError, match=r"^total must be declared as integers or decimals; got 'item'"):
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
        f"file {str(tmp_path / 'a.xlsx')!r} is a workbook, not a table. Save the sheet as CSV, in Excel as `CSV "
        "UTF-8`; `tacit init` copies one of .xlsx into a CSV file."
    )
    (tmp_path / "a.csv").touch()
    assert sentence(tmp_path / "a.csv") == (
        f"file {str(tmp_path / 'a.csv')!r} must begin with a line of column names. Add the header."
    )
    (tmp_path / "b.csv").write_text("age,sex\n1,m\n")
    (tmp_path / "c.csv").write_text("age\n1\n")
    assert sentence([tmp_path / "b.csv", tmp_path / "c.csv"]) == (
        f"files must all have the column 'sex': {str(tmp_path / 'b.csv')!r} has it, and {str(tmp_path / 'c.csv')!r} "
        "has not. Write the second one again, or leave it out."
    )
    PEOPLE.to_parquet(tmp_path / "d.parquet")
    assert sentence([tmp_path / "b.csv", tmp_path / "d.parquet"]) == (
        "files must all be CSV or all be Parquet. Open them one kind at a time."
    )
    (tmp_path / "e.csv").write_text("age,sex,age\n1,m,2\n")
    assert sentence(tmp_path / "e.csv") == "column 'age' must be there only once. Rename the second one."


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("content", "people"),
    [
        (b"\xef\xbb\xbfage,sex\r\n1,m\r\n2,w\r\n", [[1, 0, 0], [0, 1, 0]]),  # byte order mark, Windows lines
        (b'age;"sex"\n1;m\n"2";"w"\n', [[1, 0, 0], [0, 1, 0]]),
        (b'note|age|sex\n"a\nb|c"|1|m\n', [[1, 0, 0], [0, 0, 0]]),  # line break and delimiter inside quotes
        (b'age,sex\n1,m\n2,w"\n2,w\n', [[1, 0, 0], [0, 1, 0]]),  # a quote inside a field is a sign like any other
        (b"age,sex\r1,m\r2,w\r", [[1, 0, 0], [0, 1, 0]]),  # line ends of old Macs
        (b",age,sex,\n0,1,m,\n1,2,w,\n", [[1, 0, 0], [0, 1, 0]]),  # columns without a name, as pandas writes its index
        (b"age,sex\n1.0,m\n 2 ,w\n3.5,m\n0x1,m\n,w\n", [[1, 0, 0], [0, 1, 0]]),
        (b"age,sex\n1,m", [[1, 0, 0], [0, 0, 0]]),  # no line break at the end
        (b"age,sex\n", [[0, 0, 0], [0, 0, 0]]),
        (b"age,sex,note\n1,m," + b"x" * 5_000_000 + b"\n", [[1, 0, 0], [0, 0, 0]]),
    ],
)
def test_what_a_csv_may_look_like(tmp_path: Path, content: bytes, people: list[list[int]]) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    assert counted(tmp_path / "a.csv") == people
    with gzip.open(tmp_path / "b.csv.gz", "wb") as packed:
        packed.write(content)
    assert counted(tmp_path / "b.csv.gz") == people


MALFORMED = {
    "a line too short": b"age,sex\n1,m\n2\n3,w\n",
    "a line too long": b"age,sex\n1,m\n2,w,9\n3,w\n",
    "no UTF-8": b"age,note,sex\n1,x,m\n3,x,\xff\n",
    "no UTF-8 where rows are counted": b"note,age,sex\nx,1,m\n\xff,3,w\n",
    "a quote never closed": b'age,sex\n1,m\n2,"w\n3,w\n',
    "a quote never closed at the end": b"\n".join([b"age,sex", *[b"1,m"] * 30_000, b'"2,w']),
    "a quote closed too early": b'age,sex\n1,"m"m\n2,w\n',
    "a lone carriage return": b"age,sex,note\n1,m,x\n2,w,a\rb\n",
    "two kinds of line ends": b"age,sex\n1,m\r\n2,w\n",
    "a line beyond all lines": b"age,sex\n1,m\n2," + b"w" * 40_000_000 + b"\n",
}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("content", MALFORMED.values(), ids=list(MALFORMED))
@pytest.mark.parametrize("others", [0, 40])  # DuckDB reads many files in another way, and would not notice there
def test_a_malformed_csv_is_refused_when_it_is_opened(tmp_path: Path, content: bytes, others: int) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    header = content[: content.index(b"\n") + 1]
    for number in range(others):
        (tmp_path / f"b{number}.csv").write_bytes(header)
    with pytest.raises(DataRefused) as refused:
        open_rows(sorted(tmp_path.iterdir()), AGES)
    assert str(refused.value) == (
        f"file {str(tmp_path / 'a.csv')!r} must be well-formed CSV in UTF-8: as many fields in every line as in "
        "the header, quotes closed, one kind of line end. If its letters are in another encoding, say "
        "`encoding: cp1252`. Else write it again with a CSV library; `tacit init` says what is wrong and where."
    )
    assert refused.value.__context__ is None
    assert refused.value.__cause__ is None


def test_letters_that_nobody_reads_may_be_any_and_are_looked_at_before_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"age,sex,note\n1,m,x\n2,w,\xff\n")
    rows = open_rows(path, AGES)
    assert rows.counts(()) == 2
    for later in (lambda: rows.check_naming(["note"]), lambda: open_rows(path, AGES, person="note")):
        with pytest.raises(DataRefused, match="must be well-formed CSV in UTF-8"):
            later()


def test_what_a_wide_csv_costs_is_what_is_read_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB is told of every column each time it binds, at about 30 microseconds a column, so that is seldom done."""
    others = 3_000
    path = tmp_path / "a.csv"
    path.write_text("age,sex" + "".join(f",c{n}" for n in range(others)) + "\n1,m" + ",1" * others + "\n")
    told, read = [], CsvEngine._rows
    monkeypatch.setattr(CsvEngine, "_rows", lambda self, paths: told.append(paths) or read(self, paths))
    rows = open_rows(path, AGES, person="c7")
    assert len(told) == 1
    assert rows.counts(("age",)).tolist() == [0, 1] + [0] * 8
    assert len(told) <= 2
    assert rows.counts(("sex",)).tolist() == [1, 0]
    assert len(told) <= 4


def test_a_header_that_is_too_long_is_called_that(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("age,sex," + "x" * 2**24 + "\n1,m,2\n")
    assert sentence(path) == (
        f"file {str(path)!r} must begin with a line of column names of at most 16 MB. Leave columns out."
    )


def test_a_file_without_a_header_shows_none_of_its_first_person(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    wide = Domain({name: Flag() for name in ("age", "sex", "hiv", "ward")})
    for first in ("hiv,secret,hiv", "age,secret,secret", "secret,secret,1"):
        path.write_text(f"{first}\n1,2,3\n")
        assert sentence(path) == "a column name is there twice. Is there a header? Rename the second one."
    path.write_text("age,secret Bob,sexx\n1,2,3\n")
    assert sentence(path, Domain({"age": Flag(), "unknown": Flag()})) == (
        "column 'unknown' must be a column of the data. Check the name in the header of the file."
    )
    assert sentence(path, Domain({"age": Flag(), "sex": Flag()})).endswith("Did you mean 'sexx'?")
    assert sentence(path, wide).endswith("Check the name in the header of the file.")  # one of four is too few
    path.write_text("1,secret Bob,sexx\n1,2,3\n")
    assert sentence(path).endswith("No declared column was found: is there a header?")
    assert sentence(pl.DataFrame({"age": [1], "zzz": [1]})).endswith("Known: age, zzz.")  # a frame may list its names


def test_a_name_with_signs_of_patterns_is_one_file(tmp_path: Path) -> None:
    for name in ("p[1]", "p1", "q*", "qq", "w?", "ww"):
        PEOPLE.to_csv(tmp_path / f"{name}.csv", index=False)
        PEOPLE.to_parquet(tmp_path / f"{name}.parquet")
    for name in ("p[1]", "q*", "w?"):
        for ending in ("csv", "parquet"):
            assert counted(tmp_path / f"{name}.{ending}") == [[1, 0, 0], [0, 2, 0]], name
    assert counted(tmp_path / "p*.csv") == [[2, 0, 0], [0, 4, 0]]


@pytest.mark.parametrize(
    "rows",
    [
        "age,sex\n1,secret\n",
        "age,sex\r1,secret\r",
        "1,secret\n",
        "1,secret",
        "secret" * 40,
        "secret" * 5000,
        "secret\0",
        "secret\ud800.csv",
        "1,secret,notes.csv",
    ],
)
def test_rows_given_as_a_text_are_not_shown(rows: str) -> None:
    said = (
        "rows given as a text must be the path of a file that exists, or a pattern such as data/*.parquet. "
        "Write them to a file that ends in .csv or .parquet, or open a frame."
    )
    assert sentence(rows) == said
    assert sentence([rows]) == said


def test_a_query_given_as_a_text_is_not_shown() -> None:
    assert sentence("SELECT * FROM people WHERE name = 'secret'") == (
        "rows given as a text must be the path of a file, not a query. "
        "Give the result of the query: duckdb.sql('select ..'), or a frame."
    )


def test_a_header_that_is_no_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("âge,sex\n1,m\n".encode("latin-1"))
    (tmp_path / "b.csv").write_bytes("age,sex\n1,m\n".encode("utf-16"))
    assert sentence(tmp_path / "a.csv") == (
        f"file {str(tmp_path / 'a.csv')!r} must be UTF-8; its letters are in another encoding. "
        "Say which, for instance `encoding: cp1252` (Windows) or `encoding: latin-1`, or save it as UTF-8."
    )
    assert (
        sentence(tmp_path / "b.csv")
        == f"file {str(tmp_path / 'b.csv')!r} is UTF-16, not UTF-8. Say so: `encoding: utf-16`."
    )


SPILL = """
import os, sys
from pathlib import Path
from tacit.rows.sources import duckdb_engine
connection = duckdb_engine.embedded()
connection.execute("SET memory_limit = '60MB'")
connection.execute("SET threads = 1")
connection.execute("CREATE TEMP TABLE t AS SELECT i, i::VARCHAR || repeat('x', 60) AS s FROM range(2000000) r(i)")
folder = Path(connection.sql("SELECT current_setting('temp_directory')").fetchall()[0][0])
assert list(folder.iterdir()) and folder.parent.stat().st_mode & 0o777 == 0o700
assert not os.listdir()
connection.close()
assert not folder.exists()
print(folder.parent)
"""


def test_what_does_not_fit_into_memory_goes_to_a_private_folder(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SPILL], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert not Path(done.stdout.strip()).exists()
    assert list(tmp_path.iterdir()) == []


def test_a_quoted_empty_text_is_a_text_and_an_empty_field_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('kind,n\n"",1\n,1\nx,1\n')
    domain = Domain({"kind": Categories(["", "x", "other"], otherwise="other")})
    assert open_rows(tmp_path / "a.csv", domain).counts(("kind",)).tolist() == [1, 1, 1]


def test_files_that_differ_in_a_column_that_is_used_are_refused_by_its_name(tmp_path: Path) -> None:
    a, b = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"age": [1, 2], "sex": ["m", "w"]}), a)
    for other, said in (
        ({"sex": ["m"]}, f"files must all have the column 'age': {str(a)!r} has it, and {str(b)!r} has not."),
        (
            {"sex": ["m"], "age": ["1"]},
            f"files must have the column 'age' in one type: it is INT64 in {str(a)!r}, and String in {str(b)!r}.",
        ),
        ({"sex": ["m"], "age": [1.0]}, f"it is INT64 in {str(a)!r}, and DOUBLE in {str(b)!r}."),
        (
            {"sex": ["m"], "age": pa.array([1], pa.uint64())},
            f"it is INT64 in {str(a)!r}, and Int(bitWidth=64, isSigned",
        ),
        ({"sex": ["m"], "age": [[1]]}, f"it is INT64 in {str(a)!r}, and a list of INT64 in {str(b)!r}."),
    ):
        pq.write_table(pa.table(other), b)
        assert said in sentence([a, b])


def test_files_may_differ_in_what_nobody_uses_and_in_the_width_of_whole_numbers(tmp_path: Path) -> None:
    parts = [
        {"age": [1, 2], "sex": ["m", "w"]},
        {"sex": ["m", "w"], "age": pa.array([1, 3], pa.int32()), "more": [{"x": 1}, {"x": 2}], "AGES": [1, 1]},
        {"more": ["a", "b"], "age": pa.array([2, 2], pa.uint16()), "ages": ["x", "y"], "sex": ["w", "w"]},
        {"age": [1, 1], "sex": ["m", "m"], "more": pa.array([0, 0], pa.timestamp("ms"))},
    ]
    for number, part in enumerate(parts):
        pq.write_table(pa.table(part), tmp_path / f"{number}.parquet")
    assert counted(sorted(tmp_path.glob("*.parquet"))) == [[4, 0, 0], [0, 3, 1]]
    for number, part in enumerate(parts):
        names = [name for name in part if name != "AGES"]
        cells = zip(*(pa.array(part[name]).to_pylist() for name in names), strict=True)
        lines = [
            ";,"[number % 2].join(names),
            *(";,"[number % 2].join(str(cell).replace(",", "") for cell in row) for row in cells),
        ]
        (tmp_path / f"{number}.csv").write_text("\n".join(lines) + "\n")
    assert counted(sorted(tmp_path.glob("*.csv"))) == [[4, 0, 0], [0, 3, 1]]


def test_neither_order_nor_what_may_be_missing_is_a_type(tmp_path: Path) -> None:
    pq.write_table(pa.table({"age": [1, 2], "sex": ["m", "w"]}), tmp_path / "a.parquet")
    required = pa.schema([pa.field("sex", pa.string(), nullable=False), pa.field("age", pa.int64())])
    coded = pa.table({"sex": pa.array(["m", "w"]), "age": [1, 3]}, schema=required)
    pq.write_table(coded, tmp_path / "e.parquet")
    assert counted([tmp_path / "a.parquet", tmp_path / "e.parquet"]) == [[2, 0, 0], [0, 1, 1]]


# ---------------------------------------------------------------------- types of columns


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    "cells",
    [
        pl.Series("c", ["3", "x", None, "3"], dtype=pl.Categorical),
        pl.Series("c", ["3", "x", None, "3"], dtype=pl.Enum(["x", "3"])),
        pl.Series("c", [3, 2**64 - 1, None, 3], dtype=pl.UInt64),
        pl.Series("c", [3, -(2**100), None, 3], dtype=pl.Int128),
        pl.Series("c", [3, 200, None, 3], dtype=pl.UInt8),
        pl.Series("c", [3, 35, None, 3], dtype=pl.Decimal(38, 0)),
        pl.Series("c", [3.0, 3.5, None, 3.0], dtype=pl.Float32),
    ],
    ids=lambda cells: str(cells.dtype),
)
@pytest.mark.parametrize("attribute", [Categories(["3", "no"], otherwise="no"), Integers(3, 4, otherwise=4)])
def test_every_polars_type_of_column(cells: pl.Series, attribute: Any) -> None:
    assert open_rows(pl.DataFrame({"c": cells}), Domain({"c": attribute})).counts(("c",)).tolist() == [2, 2]


@pytest.mark.one_in(8)
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
        pd.Series([b"3", b"\xff", None, 3], dtype=object),
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


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series(["3", "\ud800", None, "3"], dtype=pd.StringDtype("python")),
        pd.Series(pd.Categorical(["3", 2.5, None, 3], categories=["3", 2.5, 3])),
        pd.Series(pd.Categorical(["3", (1, 2), None, "3"])),
    ],
    ids=["surrogate", "mixed", "tuples"],
)
def test_pandas_columns_that_arrow_cannot_hold_are_read_all_the_same(cells: pd.Series[Any]) -> None:
    domain = Domain({"c": Categories(["3", "no"], otherwise="no")})
    assert open_rows(pd.DataFrame({"c": cells}), domain).counts(("c",)).tolist() == [2, 2]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), "dictionary", "list"], ids=str)
def test_arrow_texts_that_are_no_utf8_are_missing(kind: Any) -> None:
    offsets = np.array([0, 1, 3, 4], dtype=np.int64 if kind == pa.large_string() else np.int32)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"3\xff\xfe3")]
    cells = pa.Array.from_buffers(kind if isinstance(kind, pa.DataType) else pa.string(), 3, buffers)
    if kind == "list":
        listed = pa.ListArray.from_arrays(pa.array([0, 2, None, 3]), cells)  # [3, ?], [3], missing
        rows = open_rows(pa.table({"c": listed}), Domain({"c": Items(["3", "x"])}))
        assert rows.item_counts("c").tolist() == [2, 0]
        return
    if kind == "dictionary":
        cells = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), cells)
    domain = Domain({"c": Categories(["3", "no"], otherwise="no")})
    assert open_rows(pa.table({"c": cells}), domain).counts(("c",)).tolist() == [2, 1]


def test_categories_of_a_type_that_has_no_text_are_refused() -> None:
    said = "column 'c' must hold texts, numbers or true/false. Convert the column to text first."
    domain = Domain({"c": Categories(["3", "no"], otherwise="no")})
    assert sentence(pa.table({"c": pa.array([b"\xff"]).dictionary_encode()}), domain) == said
    assert sentence(pd.DataFrame({"c": pd.cut([1, 2], [0, 1, 2])}), domain) == said
    assert sentence(pd.DataFrame({"c": pd.Categorical(pd.to_datetime(["2020-01-01"]))}), domain) == said


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    "ids",
    [
        [10**30, 10**30 + 1, 10**5000, -(10**30)],
        [2.0**60, 2.0**61, 1e300, float("inf"), 0.1, 0.1 + 1e-17 * 2],
        [decimal.Decimal("1.0000000000000000000000000000000000001"), decimal.Decimal(1), decimal.Decimal("1e99999")],
        [uuid.UUID(int=1), uuid.UUID(int=2)],
        [b"\xff", b"\xfe", b"", "\udcff", "\udcfe"],
        [np.int64(7), np.float64(7.5), "8", True],
        [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 1), "2024-01-01"],
        [
            pd.Timestamp("2024-01-01"),
            pd.Timestamp("2024-01-01", tz="UTC"),
            pd.Timestamp("2024-01-01 00:00:00.000000001"),
        ],
        [datetime.time(1), datetime.time(2), datetime.timedelta(1), pd.Timedelta(1), np.timedelta64(3, "M")],
        [
            datetime.datetime(9999, 1, 1),
            datetime.datetime.min,
            np.datetime64("1500"),
            np.datetime64("2024-01-01", "ps"),
        ],
        [("a", 1), ("a", 2), ("a", "1", None), (("a", 1),), ("a1",), (), ("", ""), (":", "1:")],
        [1j, 2j, 1 + 1j, np.complex128(3j), "1j"],
        [frozenset({1, 2}), frozenset({1}), (1, 2)],
    ],
    ids=[
        *(
            "whole",
            "real",
            "decimal",
            "uuid",
            "bytes",
            "mixed",
            "dates",
            "moments",
            "times",
            "far",
            "tuples",
            "complex",
        ),
        "sets",
    ],
)
def test_ids_of_people_are_never_merged_or_lost(ids: list[Any]) -> None:
    cells = np.empty(2 * len(ids), dtype=object)
    cells[:] = ids + ids
    frame = pd.DataFrame({"age": 1, "sex": "m", "who": pd.Series(cells, dtype=object)})
    assert open_rows(frame, AGES, person="who").counts(()) == len(set(ids))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("kind", ["datetime64[ns]", "datetime64[s]", "timedelta64[us]", "complex128", "float64"])
def test_ids_are_the_same_people_in_a_typed_column_and_as_objects(kind: str) -> None:
    typed = pd.DataFrame({"age": 1, "sex": "m", "who": pd.Series([1, 2, 2, 5]).astype(kind)})
    assert open_rows(typed, AGES, person="who").counts(()) == 3
    assert open_rows(typed.astype({"who": object}), AGES, person="who").counts(()) == 3


def test_an_id_inside_too_many_lists_is_nobody() -> None:
    deep: Any = ()
    for _ in range(10_000):
        deep = (deep,)
    held = np.empty(2, dtype=object)
    held[:] = [(deep, 1), ("a", object())]
    frame = pd.DataFrame({"age": 1, "sex": "m", "who": pd.Series(held, dtype=object)})
    assert open_rows(frame, AGES, person="who").counts(()) == 0


def test_equal_ids_are_one_person_however_they_are_written() -> None:
    ids = [7, 7.0, "7", np.int8(7), decimal.Decimal("7.00"), None, float("nan"), object()]
    frame = pd.DataFrame({"age": 1, "sex": "m", "who": pd.Series(ids, dtype=object)})
    assert open_rows(frame, AGES, person="who").counts(()) == 1
    halves = pd.DataFrame({"age": 1, "sex": "m", "who": pd.Series([0.5, decimal.Decimal("0.50"), "0.5"], dtype=object)})
    assert open_rows(halves, AGES, person="who").counts(()) == 1
    utc, there = datetime.UTC, datetime.timezone(datetime.timedelta(hours=2))
    same: tuple[list[Any], ...] = (
        [
            datetime.datetime(2024, 1, 1),
            pd.Timestamp("2024-01-01"),
            np.datetime64("2024"),
            np.datetime64("2024-01-01", "ns"),
        ],
        [datetime.datetime(2024, 1, 1, 10, tzinfo=utc), datetime.datetime(2024, 1, 1, 12, tzinfo=there)],
        [pd.Timestamp("2024-01-01 10:00", tz="UTC"), datetime.datetime(2024, 1, 1, 12, tzinfo=there)],
        [datetime.timedelta(1), pd.Timedelta(days=1), np.timedelta64(24, "h")],
        [{"a": 1, "b": [2]}, {"b": [2.0], "a": "1"}],
        [(1, 2), (1.0, np.int8(2)), [1, 2]],
        [2 + 0j, 2, "2"],
    )
    for cells in same:
        held = np.empty(len(cells), dtype=object)
        held[:] = cells
        one = pd.DataFrame({"age": 1, "sex": "m", "who": pd.Series(held, dtype=object)})
        assert open_rows(one, AGES, person="who").counts(()) == 1, cells
    both = pd.DataFrame({"age": pd.Series([10**40, 10**41], dtype=object), "sex": "m"})
    clipped = Domain({"age": Integers(0, 9, otherwise="clip")})
    assert open_rows(both, clipped, person="age").counts(("age",)).tolist() == [0] * 9 + [2]  # the two readings of one


@pytest.mark.one_in(8)
@pytest.mark.parametrize("category", ["01000", "+7", " 7", "7 ", "-01", "00.5"])
@pytest.mark.parametrize("numbers", [[1, 2], [0.5, 1.5]])
def test_a_text_that_no_number_spells_is_refused_on_numbers(category: str, numbers: list[Any]) -> None:
    domain = Domain({"zip": Categories(["13001", category])})
    for frame in (pd.DataFrame({"zip": numbers}), pl.DataFrame({"zip": numbers})):
        assert sentence(frame, domain) == (
            f"column 'zip' holds numbers, but the category {category!r} is a text that no number spells. "
            "Read the column as text: dtype={'zip': str} in pandas."
        )
    open_rows(pd.DataFrame({"zip": ["13001", category]}), domain)
    open_rows(pd.DataFrame({"zip": numbers}), Domain({"zip": Categories(["0", "10", "-1", "0.5", "all 0"])}))


def test_a_huge_integer_of_duckdb_is_read_like_any_other() -> None:
    relation = duckdb.sql(
        "SELECT CASE WHEN i < 2 THEN 3 ELSE i * 10000000000000000000::HUGEINT END AS c FROM range(4) t(i)"
    )
    assert open_rows(relation, Domain({"c": Integers(3, 4, otherwise=4)})).counts(("c",)).tolist() == [2, 2]


@pytest.mark.parametrize(
    "setting",
    ["arrow_lossless_conversion", "produce_arrow_string_view", "arrow_large_buffer_size", "arrow_output_list_view"],
)
def test_how_a_connection_hands_out_arrow_changes_no_answer(setting: str) -> None:
    connection = duckdb.connect()
    connection.execute(f"SET {setting} = true")
    connection.execute(
        "CREATE TABLE t AS SELECT i % 10 AS age, 'm' AS sex, i AS who, i::HUGEINT AS wide FROM range(20) r(i)"
    )
    for person in (None, "who", "wide"):
        rows = open_rows(connection.table("t"), AGES, person=person)
        assert rows.total("age") == 90
        assert rows.counts(("age",)).tolist() == [2] * 10
        assert rows.counts(()) == 20
    wide = open_rows(connection.table("t"), Domain({"wide": Integers(0, 19)}))
    assert (wide.total("wide"), wide.counts(("wide",)).tolist()) == (190, [1] * 20)
    connection.execute(
        "CREATE TABLE f AS SELECT i % 4 = 0 AS ill, [i % 2 = 0, NULL] AS signs, i AS who FROM range(8) r(i)"
    )
    flags = Domain({"ill": Flag(), "signs": Items([1, 0])})
    in_order: dict[str, Any] = {"person": "who", "order": "ill"}
    for owners in ({}, {"person": "who"}, {"person": "ill"}, in_order):
        rows = open_rows(connection.table("f"), flags, **owners)
        two_people = owners.get("person") == "ill"
        assert rows.counts(("ill",)).tolist() == ([1, 1] if two_people else [6, 2])
        assert rows.item_counts("signs").tolist() == ([2, 1] if two_people else [4, 4])
    connection.execute(
        "CREATE TABLE g AS SELECT i % 2 AS who, i % 2 = 0 AS ill, "
        "i // 3 * 100000000000000000000000000000000000000::HUGEINT "
        "AS wide FROM range(6) r(i)"
    )
    public = group_counts(connection.table("g"), ["ill", "wide"])
    assert public.values == ((False, True), (0, 10**38))
    assert sorted(zip(*public.codes, public.counts, strict=True)) == [(0, 0, 1), (0, 1, 2), (1, 0, 2), (1, 1, 1)]
    hidden = {"ill": Flag(), "wide": Integers(0, 1, otherwise="clip")}
    assert count_groups(connection.table("g"), [], hidden).counts.tolist() == [[1, 2, 2, 1]]
    private = tc.check_rows(tc.Policy(Domain(hidden), tc.secrets.everything(), person="who"), connection.table("g"))
    assert (private.rows, private.kept, private.remaining, len(private.kept_by)) == (6, 6, 2, 3)


@pytest.mark.parametrize(
    ("kind", "cells"),
    [(pa.decimal256(41, 0), [10**40, 10**40 + 1, 10**40]), (pa.json_(), ["1", "2", "{"])],
    ids=["wider than a float", "no JSON"],
)
def test_what_a_reader_of_parquet_would_round_or_fail_on_is_refused_by_its_type(
    kind: Any, cells: list[Any], tmp_path: Path
) -> None:
    """Two people must not become one, and nobody's cell may end a release that is paid for."""
    typed = (
        kind.wrap_array(pa.array(cells))
        if isinstance(kind, pa.BaseExtensionType)
        else pa.array(map(decimal.Decimal, cells), kind)
    )
    pq.write_table(pa.table({"age": [1, 2, 3], "sex": ["m"] * 3, "who": typed}), tmp_path / "rows.parquet")
    assert open_rows(tmp_path / "rows.parquet", AGES).counts(()) == 3
    who = Domain({"who": Integers(0, 9, otherwise="clip")})
    for domain, named in ((AGES, {"person": "who"}), (AGES, {"person": "age", "order": "who"}), (who, {})):
        with pytest.raises(DataRefused, match="has the column 'who' in a type that cannot be counted here"):
            open_rows(tmp_path / "rows.parquet", domain, **named)


def test_people_are_not_named_by_intervals() -> None:
    """Thirty days are a month to DuckDB, and it has no nanoseconds: two people could become one."""
    spans = pa.array([pa.MonthDayNano([0, 30, 0]), pa.MonthDayNano([1, 0, 0])], pa.month_day_nano_interval())
    table = pa.table({"age": [1, 2], "sex": ["m"] * 2, "who": spans})
    for rows in (table, duckdb.from_arrow(table), table.to_pandas(types_mapper=pd.ArrowDtype)):
        with pytest.raises(DataRefused, match="column 'who' must not hold intervals"):
            open_rows(rows, AGES, person="who")
        assert open_rows(rows, AGES).counts(()) == 2


@pytest.mark.one_in(5)
@pytest.mark.parametrize("at_most", [None, 1])
@pytest.mark.parametrize("person", [None, "who"])
def test_lists_of_decimals_and_of_wide_numbers_hold_items(person: str | None, at_most: int | None) -> None:
    decimals = pa.array([[decimal.Decimal("1.50")], [decimal.Decimal("2.00")]], pa.list_(pa.decimal128(8, 2)))
    wide = pa.array([[1], [2**64 - 1]], pa.list_(pa.uint64()))
    table = pa.table({"decimals": decimals, "wide": wide, "who": [1, 2]})
    connection = duckdb.connect()
    connection.register("arrow", table)
    for source in (
        table,
        pl.DataFrame(table),
        pl.DataFrame(table).lazy(),
        connection.table("arrow"),
        ibis.memtable(table),
    ):
        for name, items, counts in (
            ("decimals", Items(["1.5", "2"], at_most=at_most), [1, 1]),
            ("wide", Items(4, first=-1, at_most=at_most), [0, 0, 1, 0]),
            ("wide", Items(["-1", "1"], at_most=at_most), [0, 1]),
        ):
            rows = open_rows(source, Domain({name: items}), person=person)
            assert rows.item_counts(name).tolist() == counts, (name, type(source))


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
    has, both = where("clicked.has(0)"), where("clicked.has(0) and clicked.has(2)")
    for tally in (CellCounts(()), CellCounts((), has), ItemHolders("clicked")):
        rows.check(tally)
    with pytest.raises(DataRefused, match="cannot say how many people have two items together"):
        rows.check(CellCounts((), both))
    with pytest.raises(DataRefused, match="cannot be restricted to some people"):
        rows.check(ItemHolders("clicked", has))
    with pytest.raises(PlanError):
        rows.check(CellCounts(("age",)))
    open_rows(PEOPLE, AGES).check(CellCounts(("age", "sex")))
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


@pytest.mark.one_in(8)
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

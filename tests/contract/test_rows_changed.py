"""A name means one column, from planning to reading: on every engine, whatever happens to the source in between."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit as tc
from tacit.errors import DataRefused, PlanError
from tacit.plan.measure.measured import CellCounts
from tacit.rows.rows import open_rows

CHANGED = "^the rows must stay as they were when they were opened"
DOMAIN = tc.Domain({"ward": tc.Integers(0, 3), "hiv": tc.Flag()})
POLICY = tc.Policy(DOMAIN, tc.secrets.attributes("hiv"))
COLUMNS: dict[str, list[Any]] = {"ward": [3, 2, 2], "hiv": [1, 0, 1], "id": [1, 2, 3], "when": [1, 2, 3]}
SWAPPED: dict[str, list[Any]] = {"hiv": [1, 0, 1], "ward": [0, 0, 1], "id": [1, 2, 3], "when": [1, 2, 3]}


def csv(columns: dict[str, list[Any]], path: Path) -> Path:
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def parquet(columns: dict[str, list[Any]], path: Path) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


# ---------------------------------------------------------------------- names


def relation(columns: dict[str, list[Any]]) -> Any:
    """Return a relation; of a frame, DuckDB would rename the second of two names alike."""
    named = ", ".join(f'{cells[0]!r} AS "{name}"' for name, cells in columns.items())
    return duckdb.connect().sql(f"SELECT {named}")


ALIKE: dict[str, Callable[[dict[str, list[Any]], Path], Any]] = {
    "pandas": lambda columns, _: pd.DataFrame(columns),
    "polars": lambda columns, _: pl.DataFrame(columns),
    "polars lazy": lambda columns, _: pl.LazyFrame(columns),
    "pyarrow": lambda columns, _: pa.table(columns),
    "duckdb": lambda columns, _: relation(columns),
    "ibis": lambda columns, _: ibis.memtable(pa.table(columns)),
    "csv": lambda columns, folder: csv(columns, folder / "a.csv"),
    "parquet": lambda columns, folder: parquet(columns, folder / "a.parquet"),
}
NAMED = tc.Domain(
    {"ward": tc.Integers(0, 3), "hiv": tc.Flag(), "place": tc.Grid(2, 2, of=("lat", "lon")), "got": tc.Items(3)}
)
ALL = {**COLUMNS, "lat": [0, 0, 0], "lon": [0, 0, 0], "item": [1, 1, 1]}


@pytest.mark.one_in(16)
@pytest.mark.parametrize("engine", ALIKE)
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize(
    ("read", "other"),
    [("ward", "WARD"), ("hiv", "Hiv"), ("id", "ID"), ("when", "When"), ("lat", "LAT"), ("item", "Item")],
)
def test_columns_that_differ_in_case_only_are_refused(
    engine: str, read: str, other: str, first: bool, tmp_path: Path
) -> None:
    columns = {other: ALL[read], **ALL} if first else {**ALL, other: ALL[read]}
    with pytest.raises(DataRefused) as refused:
        open_rows(ALIKE[engine](columns, tmp_path), NAMED, person="id", order="when", item="item")
    shown = "another column" if engine in ("csv", "parquet") else repr(other)
    assert str(refused.value) == f"column {read!r} must differ from {shown} in more than case. Rename one of them."


@pytest.mark.spark
def test_columns_of_spark_that_differ_in_case_only_are_refused(spark: Any) -> None:
    frame = spark.createDataFrame(pa.table(ALL))
    for read, other in (("ward", "WARD"), ("id", "Id"), ("when", "WHEN")):
        alike = frame.select("*", _literal(1).alias("extra")).toDF(*frame.columns, other)
        with pytest.raises(DataRefused, match=f"^column {read!r} must differ from {other!r} in more than case"):
            open_rows(alike, NAMED, person="id", order="when", item="item")


def _literal(value: int) -> Any:
    from pyspark.sql import functions

    return functions.lit(value)


@pytest.mark.parametrize(
    "source",
    [
        lambda: duckdb.connect().sql("SELECT 1 AS ward, 1 AS hiv, 2 AS ward"),
        lambda: pa.table([[1], [1], [2]], names=["ward", "hiv", "ward"]),
        lambda: pd.DataFrame([[1, 1, 2]], columns=["ward", "hiv", "ward"]),
    ],
    ids=["duckdb", "pyarrow", "pandas"],
)
def test_a_column_that_is_there_twice_is_refused(source: Callable[[], Any]) -> None:
    with pytest.raises(DataRefused, match=r"^column 'ward' must be there only once. Rename the second one.$"):
        open_rows(source(), DOMAIN)


def test_a_parquet_file_with_a_column_twice_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table([[1], [1], [2]], names=["ward", "hiv", "ward"]), tmp_path / "a.parquet")
    with pytest.raises(DataRefused, match=r"^column 'ward' must be there only once"):
        open_rows(tmp_path / "a.parquet", DOMAIN)


@pytest.mark.spark
def test_a_column_that_is_twice_in_a_spark_frame_is_refused(spark: Any) -> None:
    frame = spark.createDataFrame(pa.table(COLUMNS)).select("ward", "hiv")
    with pytest.raises(DataRefused, match=r"^column 'ward' must be there only once"):
        open_rows(frame.select("ward", "hiv", "ward"), DOMAIN)
    assert (
        open_rows(frame.select("ward", "hiv", _literal(1).alias("x"), _literal(2).alias("X")), DOMAIN).counts(()) == 3
    )


def test_columns_that_nobody_reads_may_be_called_anything() -> None:
    relation = duckdb.connect().sql("SELECT 1 AS ward, 1 AS hiv, 2 AS x, 3 AS x, 4 AS X")
    assert open_rows(relation, DOMAIN).counts(("ward",)).tolist() == [0, 1, 0, 0]


# ---------------------------------------------------------------------- secrets in two roles


@pytest.mark.parametrize("role", ["person", "order"])
def test_no_secret_column_says_whose_row_it_is_or_which_comes_first(role: str) -> None:
    domain = tc.Domain(
        {"ward": tc.Integers(0, 3), "place": tc.Grid(2, 2, of=("lat", "lon")), "got": tc.Items(["a", "b"])}
    )
    frame = pd.DataFrame({"id": [1], "ward": [1], "lat": [1], "lon": [1], "what": ["a"]})
    secrets = tc.secrets.values({"got": [1]}) | tc.secrets.within(1, "place")
    policy = tc.Policy(domain, secrets)
    for column in ("what", "lat", "lon"):
        with pytest.raises(
            PlanError, match=f"^{role} must not be a column that the policy keeps secret; got '{column}'"
        ):
            tc.Session(policy, frame, budget=1, **{"person": "id", "item": "what", role: column})
    tc.Session(policy, frame, budget=1, **{"person": "id", "item": "what", role: "ward"})


def test_one_column_is_one_attribute_if_one_of_them_is_secret() -> None:
    maps = tc.Domain({"fine": tc.Grid(4, 4, of=("lat", "lon")), "coarse": tc.Grid(2, 2, of=("lat", "lon"))})
    frame = pd.DataFrame({"lat": [1], "lon": [1], "id": [1], "disease": ["hiv"]})
    with pytest.raises(DataRefused, match=r"^column 'lat' must not be read as 'fine' and as 'coarse' if one of them"):
        tc.Session(tc.Policy(maps, tc.secrets.within(1, "fine")), frame, budget=1)
    items = tc.Domain({"disease": tc.Categories(["flu", "hiv"]), "has": tc.Items(["flu", "hiv"])})
    with pytest.raises(DataRefused, match=r"^column 'disease' must not be read as 'disease' and as 'has' if one"):
        tc.Session(tc.Policy(items, tc.secrets.values({"has": [1]})), frame, budget=1, person="id", item="disease")
    third = tc.Domain({**maps, "lat": tc.Integers(0, 3), "free": tc.Flag()})
    with pytest.raises(DataRefused, match=r"must not be read as 'fine' and as 'lat'|'coarse'"):
        tc.Session(tc.Policy(third, tc.secrets.attributes("lat")), frame.assign(free=1), budget=1)
    public = tc.Session(tc.Policy(third, tc.secrets.attributes("free")), frame.assign(free=1), budget=1)
    assert public.release(tc.histogram("coarse"), 0.1).values.tolist() == [0, 0, 0, 1]


# ---------------------------------------------------------------------- files


@pytest.mark.one_in(5)
@pytest.mark.parametrize("written", [csv, parquet])
def test_one_file_counts_once_whatever_it_is_called(tmp_path: Path, written: Any) -> None:
    ending = written.__name__
    (tmp_path / "deep").mkdir()
    path = written(COLUMNS, tmp_path / "deep" / f"a.{ending}")
    (tmp_path / f"soft.{ending}").symlink_to(path)
    os.link(path, tmp_path / f"hard.{ending}")
    for paths in (
        [path, path],
        [path, tmp_path / "deep" / ".." / "deep" / f"a.{ending}"],
        [path, str(tmp_path / "deep" / f"*.{ending}")],
        [path, tmp_path / f"soft.{ending}"],
        [path, tmp_path / f"hard.{ending}"],
        str(tmp_path / "**" / f"*.{ending}"),
        str(tmp_path / "**" / "**" / f"*.{ending}"),
    ):
        assert open_rows(paths, DOMAIN).counts(()) == 3, paths
    copy = written(COLUMNS, tmp_path / f"copy.{ending}")
    assert open_rows([path, copy], DOMAIN).counts(()) == 6  # another file, with people of its own


def rewritten(path: Path, write: Callable[[dict[str, list[Any]], Path], Path]) -> dict[str, Callable[[], object]]:
    """Return what may happen to a file under an open session."""
    content = path.read_bytes()
    return {
        "columns in another order": lambda: write(SWAPPED, path),
        "other rows": lambda: write({name: [*cells, cells[0]] for name, cells in COLUMNS.items()}, path),
        "another file in its place": lambda: os.replace(write(SWAPPED, path.with_name(f"new{path.suffix}")), path),
        "written again as it was": lambda: (path.unlink(), path.write_bytes(content)),
        "gone": path.unlink,
    }


@pytest.mark.one_in(8)
@pytest.mark.parametrize("write", [csv, parquet])
@pytest.mark.parametrize(
    "change", ["columns in another order", "other rows", "another file in its place", "written again as it was", "gone"]
)
def test_a_file_that_changes_under_a_session_is_refused_before_the_charge(
    tmp_path: Path, write: Any, change: str
) -> None:
    path = write(COLUMNS, tmp_path / f"a.{write.__name__}")
    session = tc.Session(POLICY, path, budget=1)
    assert session.release(tc.histogram("ward"), "0.1").values.tolist() == [0, 0, 2, 1]
    os.utime(path, ns=(1, 1))  # a file of another time, so that even a coarse clock tells
    session = tc.Session(POLICY, path, budget=1)
    rewritten(path, write)[change]()
    with pytest.raises(DataRefused, match=CHANGED):
        session.release(tc.histogram("ward"), "0.1")
    assert session.remaining == 1


def test_a_header_that_changes_without_a_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ward,hivs,hiv\n" + "3,0,1\n" * 3)
    os.utime(path, ns=(5, 5))
    rows = open_rows(path, DOMAIN)
    with path.open("r+b") as file:
        file.write(b"hiv,wards,wa\n"[:4] + b"ward,")  # same length, same inode
    os.utime(path, ns=(5, 5))
    with pytest.raises(DataRefused, match=CHANGED):
        rows.counts(("ward",))


@pytest.mark.parametrize("write", [csv, parquet])
def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(COLUMNS, tmp_path / f"a.{write.__name__}")
    rows: Any = open_rows(path, DOMAIN)
    pieces = rows._opened.engine.pieces

    def changed(columns: Any) -> Any:
        os.replace(write(SWAPPED, path.with_name(f"new{path.suffix}")), path)
        return pieces(columns)

    monkeypatch.setattr(rows._opened.engine, "pieces", changed)
    with pytest.raises(DataRefused, match=CHANGED) as refused:
        rows.counts(("ward",))
    assert refused.value.__context__ is None


def test_a_duckdb_relation_whose_source_moves_is_refused(tmp_path: Path) -> None:
    connection = duckdb.connect()
    path = tmp_path / "it's.csv"

    def filled(columns: str) -> None:
        connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT {columns} FROM range(3)")

    sources: dict[str, Callable[[], Any]] = {
        "read_csv": lambda: connection.read_csv(str(path)),
        "file in SQL": lambda: connection.sql(f"FROM '{str(path).replace(chr(39), chr(39) * 2)}'"),
        "table": lambda: connection.table("t"),
        "query": lambda: connection.sql("SELECT * FROM t WHERE ward >= 0"),
    }
    for name, source in sources.items():
        csv(COLUMNS, path)
        filled("3 AS ward, 1 AS hiv")
        rows = open_rows(source(), DOMAIN)
        assert rows.counts(("ward",)).sum() == 3
        csv({**SWAPPED, "more": [1, 1, 1]}, path)
        filled("1 AS hiv, 0 AS ward")
        for asked in (lambda rows=rows: rows.check(CellCounts(())), lambda rows=rows: rows.counts(("ward",))):
            with pytest.raises(DataRefused, match=CHANGED):
                asked()
        assert name


@pytest.mark.filterwarnings("ignore:fetch_arrow_table")
def test_an_ibis_table_that_is_made_anew_is_refused() -> None:
    connection = ibis.duckdb.connect()
    connection.raw_sql("CREATE TABLE t AS SELECT 3 AS ward, 1 AS hiv FROM range(3)")
    rows = open_rows(connection.table("t").filter(ibis._.ward >= 0), DOMAIN)
    assert rows.counts(("ward",)).tolist() == [0, 0, 0, 3]
    connection.raw_sql("CREATE OR REPLACE TABLE t AS SELECT 1 AS hiv, 0 AS ward FROM range(3)")
    with pytest.raises(DataRefused, match=CHANGED):
        rows.counts(("ward",))


def test_frames_are_read_as_they_were_when_opened() -> None:
    frame = pd.DataFrame(COLUMNS)
    rows = open_rows(frame, DOMAIN)
    frame.columns = pd.Index(["hiv", "ward", "id", "when"])
    assert rows.counts(("ward",)).tolist() == [0, 0, 2, 1]
    table = pl.DataFrame(COLUMNS)
    rows = open_rows(table, DOMAIN)
    table.columns = ["hiv", "ward", "id", "when"]
    assert rows.counts(("ward",)).tolist() == [0, 0, 2, 1]


PLACED = "header=true, columns={'ward': 'INT', 'hiv': 'INT'}"


def in_duckdb(query: str, before: str = "SET threads = 1") -> Any:
    connection = duckdb.connect()
    connection.execute(before)
    return connection.sql(query)


def named_view(path: Path, query: str) -> Any:
    return in_duckdb(
        query,
        f"CREATE TABLE t AS SELECT 1 AS x; CREATE VIEW v(ward, hiv) AS SELECT * FROM '{path}'; "
        'CREATE VIEW "a AS b" AS SELECT * FROM v',
    )


def ibis_view(path: Path) -> Any:
    connection = ibis.duckdb.connect()
    connection.raw_sql(f"CREATE VIEW v AS SELECT * FROM read_csv('{path}', {PLACED})")
    return connection.table("v").filter(ibis._.ward >= 0)


PLANS: dict[str, Callable[[Path], Any]] = {
    "read_csv": lambda path: duckdb.connect().read_csv(str(path)),
    "literal": lambda path: in_duckdb(f"SELECT * FROM read_csv('{path}', {PLACED}) WHERE ward >= 0"),
    "list": lambda path: in_duckdb(f"SELECT * FROM read_csv(['{path}'], {PLACED})"),
    "pattern": lambda path: in_duckdb(f"SELECT * FROM read_csv('{path.parent}/*.csv', {PLACED})"),
    "name": lambda path: in_duckdb(f'SELECT * FROM "{path}"'),
    "view": lambda path: in_duckdb("FROM v", f"CREATE VIEW v AS SELECT * FROM read_csv('{path}', {PLACED})"),
    "view of a view": lambda path: named_view(path, 'FROM "a AS b"'),
    "view and table": lambda path: named_view(path, "FROM v, t, range(1)"),
    "view in a with": lambda path: named_view(path, "WITH w AS (FROM V) SELECT * FROM w"),
    "ibis view": ibis_view,
    "polars": pl.scan_csv,
    "polars names": lambda path: pl.scan_csv(path, new_columns=["ward", "hiv"]),
    "polars schema": lambda path: pl.scan_csv(path, schema={"ward": pl.Int64, "hiv": pl.Int64}),
    "polars concat": lambda path: pl.concat([pl.scan_csv(path), pl.LazyFrame({"ward": [0], "hiv": [0]})]).head(3),
}
TWO = {name: COLUMNS[name] for name in ("ward", "hiv")}


@pytest.mark.one_in(8)
@pytest.mark.filterwarnings("ignore:fetch_arrow_table")
@pytest.mark.parametrize("plan", PLANS)
def test_a_csv_behind_a_plan_that_is_written_again_is_refused_before_the_charge(plan: str, tmp_path: Path) -> None:
    path = csv(TWO, tmp_path / "a.csv")
    os.utime(path, ns=(1, 1))
    session = tc.Session(POLICY, PLANS[plan](path), budget=1)
    assert session.release(tc.histogram("ward"), "0.1").values.tolist() == [0, 0, 2, 1]
    csv({name: SWAPPED[name] for name in ("hiv", "ward")}, path)
    left = session.remaining
    with pytest.raises(DataRefused, match=CHANGED):
        session.release(tc.histogram("ward"), "0.1")
    assert session.remaining == left


HIDDEN: dict[str, Callable[[Path], Any]] = {
    "macro": lambda path: in_duckdb("FROM m()", f"CREATE MACRO m() AS TABLE SELECT * FROM read_csv('{path}')"),
    "scalar macro": lambda path: in_duckdb(
        f"SELECT m() AS ward, hiv FROM '{path}'", f"CREATE MACRO m() AS (SELECT max(ward) FROM read_csv('{path}'))"
    ),
    "variable": lambda path: in_duckdb("FROM read_csv(getvariable('f'))", f"SET VARIABLE f = '{path}'"),
    "computed path": lambda path: in_duckdb(f"FROM read_csv('{path}' || '')"),
    "query": lambda path: in_duckdb(f"FROM query($$FROM '{path}'$$)"),
    "computed in a view": lambda path: in_duckdb(
        "FROM v", f"CREATE VIEW v AS SELECT * FROM read_csv(concat('{path}', ''))"
    ),
    "several files of polars": lambda path: pl.scan_csv([path, path]),
    "bytes of polars": lambda path: pl.scan_csv(path.read_bytes()),
}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("plan", HIDDEN)
def test_a_plan_that_does_not_say_which_csv_it_reads_is_refused(plan: str, tmp_path: Path) -> None:
    source = HIDDEN[plan](csv(TWO, tmp_path / "a.csv"))
    with pytest.raises(DataRefused, match=r"^rows must come from files that can be looked at again"):
        open_rows(source, DOMAIN)


def test_a_folder_called_like_a_column_does_not_speak_for_it(tmp_path: Path) -> None:
    folder = tmp_path / "ward=0"
    folder.mkdir()
    for path in (csv(TWO, folder / "a.csv"), parquet(TWO, folder / "a.parquet")):
        assert open_rows(path, DOMAIN).counts(("ward",)).tolist() == [0, 0, 2, 1]


@pytest.mark.spark
def test_a_file_that_changes_under_a_spark_frame_is_refused(spark: Any, tmp_path: Path) -> None:
    path = csv(COLUMNS, tmp_path / "a b.csv")
    rows = open_rows(spark.read.csv(str(path), header=True, inferSchema=True), DOMAIN)
    assert rows.counts(("ward",)).tolist() == [0, 0, 2, 1]
    csv(SWAPPED, path)
    os.utime(path, ns=(1, 1))
    with pytest.raises(DataRefused, match=CHANGED):
        rows.check(CellCounts(()))


@pytest.mark.spark
def test_a_spark_frame_whose_files_cannot_be_listed_is_refused(spark: Any, tmp_path: Path) -> None:
    # Spark evaluates what is small while it plans, and fails on a cell of a column that no question reads
    path = csv({"ward": [3, 2], "hiv": [1, 0], "note": ["1", "2"]}, tmp_path / "a.csv")
    more = spark.createDataFrame(pa.table({"ward": [2], "hiv": [1], "note": ["CANARY"]}))
    frame = spark.read.csv(str(path), header=True, schema="ward bigint, hiv bigint, note string").union(more)
    frame = frame.selectExpr("ward", "hiv", "cast(note as int) as number")
    assert frame.select("ward", "hiv").count() == 3
    with pytest.raises(DataRefused, match=r"^the engine could not read the rows") as refused:
        open_rows(frame, DOMAIN)
    assert "CANARY" not in str(refused.value)
    assert refused.value.__context__ is None

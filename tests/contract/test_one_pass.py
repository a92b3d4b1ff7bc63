"""One pass for many tallies gives what each of them gives alone, by the engine's own grouping, on every engine."""

import random
import threading
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines import ENGINES, Source
from tacit.plan.measure.measured import CellCounts, CellSums, Tally
from tacit.policy.attributes import Categories, Flag, Grid, Integers, Items
from tacit.policy.domain import Domain
from tacit.policy.where import where
from tacit.rows.counts import batches, one_pass
from tacit.rows.counts.engine_tables import EngineTables
from tacit.rows.rows import open_rows
from tacit.rows.sources.source import Opened

ROWS = 700
DOMAIN = Domain(
    {
        "ward": Categories(["B", "A", "7"], otherwise="A"),
        "age": Integers(0, 90, step=5, otherwise="clip"),
        "ill": Flag(),
        "at": Grid(rows=3, columns=4, of=("y", "x"), low=(0.0, 0.0), high=(3.0, 4.0), otherwise="clip"),
        "pay": Integers(-(2**40), 2**40),
    }
)
TALLIES: list[Tally] = [
    CellCounts(()),
    CellCounts(("ill", "ward")),
    CellCounts(("ward", "ill")),
    CellCounts(("at", "age"), where("ward != 'B' and at.row >= 1")),
    CellCounts(("age",), where("age > 20 or not ill")),
    CellCounts(("ward",), where("pay < 1000")),
    CellSums("age"),
    CellSums("pay"),
    CellSums("pay", ("ward", "ill"), where("age < 50")),
    CellSums("age", ("ward",), where("at.column == 2")),
    CellSums("pay", ("ward", "age")),
]
OWNERS: list[dict[str, Any]] = [
    {},
    {"person": "who"},
    {"person": "who", "order": "day"},
    {"person": "who", "order": "day", "per_person": 3},
]


def table() -> pa.Table:
    """Rows with everything that a column can hold amiss."""
    luck = random.Random(7)  # noqa: S311

    def some(*values: Any) -> list[Any]:
        return [luck.choice(values) for _ in range(ROWS)]

    return pa.table(
        {
            "ward": pa.array(some("A", "B", "7", "7.0", "?", None)),
            "age": pa.array(some(-3, 0, 5, 17, 44, 90, 2**40, None), pa.int64()),
            "ill": pa.array(some(True, False, None)),
            "y": pa.array([luck.choice((luck.uniform(-1, 4), None, float("nan"))) for _ in range(ROWS)]),
            "x": pa.array([luck.uniform(-1, 5) for _ in range(ROWS)]),
            "pay": pa.array([luck.choice((luck.randrange(-(2**41), 2**41), 12, None)) for _ in range(ROWS)]),
            "who": pa.array([luck.choice((luck.randrange(150), None)) for _ in range(ROWS)]),
            "day": pa.array(some(1, 2, 3, 4, None)),
        }
    )


def parquet(rows: pa.Table, folder: Path) -> Path:
    """Two files of several row groups, read by Arrow."""
    pq.write_table(rows.slice(0, 300), folder / "a.parquet", row_group_size=64)
    pq.write_table(rows.slice(300), folder / "b.parquet", row_group_size=100, use_dictionary=False)
    return folder / "*.parquet"


SOURCES: dict[str, Source] = {name: made for name, made in ENGINES.items() if name != "pandas-arrow"} | {
    "parquet": parquet
}


def alone(rows: Any) -> list[list[Any]]:
    """Ask for each tally by itself, and let DuckDB group as Spark does."""
    rows._counter = EngineTables(rows._opened)
    return [rows.tally([tally])[0].tolist() for tally in TALLIES]


@cache
def grouped_by_polars(owners: int) -> list[list[Any]]:
    """Return what every engine has to answer: this one groups most quickly."""
    return alone(open_rows(pl.DataFrame(table()), DOMAIN, **OWNERS[owners]))


def owner_names(owners: int) -> str:
    return "-".join(OWNERS[owners]) or "rows"


every_owner = pytest.mark.parametrize("owners", range(len(OWNERS)), ids=owner_names)


@pytest.mark.one_in(16)
@every_owner
@pytest.mark.parametrize("source", SOURCES)
def test_one_pass_gives_what_an_engine_groups(source: str, owners: int, tmp_path: Path) -> None:
    expected = grouped_by_polars(owners)
    rows = open_rows(SOURCES[source](table(), tmp_path), DOMAIN, **OWNERS[owners])
    assert [found.tolist() for found in rows.tally(TALLIES)] == expected
    assert [found.tolist() for found in rows.tally(TALLIES[::-1])][::-1] == expected  # also of what was kept


def own_connection(rows: pa.Table, _: Path) -> Any:
    """A DuckDB of the user's, with a column that Arrow does not hold as DuckDB does."""
    connection = duckdb.connect()
    connection.register("given", rows)
    connection.execute("CREATE TABLE t AS SELECT * REPLACE (CAST(who AS HUGEINT) AS who) FROM given")
    return connection.table("t")


@pytest.mark.one_in(16)
@pytest.mark.parametrize(
    "options", [*OWNERS[::2], {"person": "who", "per_person": 9}], ids=lambda one: "-".join(one) or "rows"
)
@pytest.mark.parametrize("source", [*SOURCES, "own connection"])
def test_several_tables_in_one_go_are_those_of_each(
    source: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = (SOURCES | {"own connection": own_connection})[source](table(), tmp_path)
    rows: Any = open_rows(made, DOMAIN, **options)
    tallies = [*TALLIES[1:4], TALLIES[7]]
    grouped: Any = open_rows(pl.DataFrame(table()), DOMAIN, **options)
    expected = [alone(grouped)[number] for number in (1, 2, 3, 7)]
    # the tables of a relation are those of its own connection, and DuckDB's default one knows none of them
    monkeypatch.delattr(duckdb, "sql")
    assert [found.tolist() for found in rows.tally(tallies)] == expected


@pytest.mark.one_in(5)
@every_owner
def test_spark_counts_all_tables_in_one_job(spark: Any, owners: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = grouped_by_polars(owners)
    rows = open_rows(spark.createDataFrame(table()), DOMAIN, **OWNERS[owners])
    reads = []
    read = Opened.read
    monkeypatch.setattr(Opened, "read", lambda opened, build: reads.append(1) or read(opened, build))
    counts = [number for number, tally in enumerate(TALLIES[:5]) if isinstance(tally, CellCounts)]
    found = rows.tally([TALLIES[number] for number in counts])
    assert [one.tolist() for one in found] == [expected[number] for number in counts]
    assert len(reads) == 1


def test_what_does_not_fit_into_memory_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_pass, "KEPT", 1)
    rows = open_rows(table(), DOMAIN)
    first = rows.tally(TALLIES)
    assert rows._counter._kept is None  # type: ignore[attr-defined]
    assert [one.tolist() for one in rows.tally(TALLIES)] == [one.tolist() for one in first]


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # Ibis calls it for a schema
@pytest.mark.parametrize("engine", ["duckdb", "ibis"])
def test_a_table_that_grew_is_counted_anew(engine: str) -> None:
    backend = ibis.duckdb.connect()
    connection = backend.con if engine == "ibis" else duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT (i % 3)::INT AS n FROM range(300) r(i)")
    rows = open_rows((backend if engine == "ibis" else connection).table("t"), Domain({"n": Integers(0, 5)}))
    assert rows.tally([CellCounts(("n",))])[0].tolist() == [100, 100, 100, 0, 0, 0]
    connection.execute("INSERT INTO t SELECT 5 FROM range(1000)")
    assert rows.tally([CellCounts(("n",))])[0].tolist() == [100, 100, 100, 0, 0, 1000]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("high", [2**31, 2**53, 2**58, 2**61], ids=lambda high: f"2^{high.bit_length() - 1}")
@pytest.mark.parametrize("source", ["pyarrow", "duckdb", "polars"])
def test_sums_of_large_numbers_are_exact_to_the_last_digit(source: str, high: int, tmp_path: Path) -> None:
    numbers = [high - 1, high - 3, 5, 7] * 3
    given = pa.table({"n": numbers, "ill": [True, False] * 6})
    rows: Any = open_rows(SOURCES[source](given, tmp_path), Domain({"n": Integers(0, high), "ill": Flag()}))
    asked: list[Tally] = [CellSums("n"), CellSums("n", ("ill",))]
    whole, by_ill = rows.tally(asked)
    assert whole.tolist() == sum(numbers)
    assert by_ill.tolist() == [sum(numbers[1::2]), sum(numbers[::2])]


def test_people_who_do_not_fit_into_memory_are_counted_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.arange(400_000)
    many = pa.table({"n": numbers % 3, "who": numbers // 2, "day": numbers % 7})
    options: dict[str, Any] = {"person": "who", "per_person": 2, "order": "day"}
    domain = Domain({"n": Integers(0, 2)})
    expected = open_rows(many, domain, **options).counts(("n",)).tolist()
    monkeypatch.setattr(one_pass, "_MEMORY", 2 * 2**20)
    assert open_rows(many, domain, **options).counts(("n",)).tolist() == expected


def test_texts_that_are_none_are_unexpected_values(tmp_path: Path) -> None:
    broken = pa.array([b"A", b"\xff\xfe", b"B"] * 50).cast(pa.binary()).view(pa.string())
    pq.write_table(pa.table({"ward": broken}), tmp_path / "a.parquet")
    rows = open_rows(tmp_path / "a.parquet", Domain({"ward": Categories(["A", "B"])}))
    assert rows.counts(("ward",)).tolist() == [50, 50]


@pytest.mark.parametrize("owners", [{}, {"person": "who"}], ids=["rows", "people"])
@pytest.mark.parametrize("wide", [False, True], ids=["list", "large list"])
def test_texts_that_are_none_are_unexpected_items_and_do_not_fail_those_beside_lists(
    wide: bool, owners: dict[str, Any], tmp_path: Path
) -> None:
    cells = [b"A", b"\xff\xfe", b"B", b"\xff", b"A", b"B"]
    broken = pa.array(cells).view(pa.string())
    lists = (pa.LargeListArray if wide else pa.ListArray).from_arrays(pa.array([0, 2, 2, None, 3, 6]), broken)
    beside = pa.array([b"A", b"B", b"\xff", b"A", b"B"]).view(pa.string())
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"ward": beside, "got": lists, "who": [1, 2, 3, 4, 5]}), file, row_group_size=2)
    domain = Domain({"ward": Categories(["A", "B"], otherwise="B"), "got": Items(["A", "B"])})
    rows = open_rows(file, domain, **owners)
    a = where("ward == 'A'").compile(domain)
    assert rows.item_counts("got").tolist() == [2, 2]
    assert rows.item_counts("got", a).tolist() == [1, 0]
    assert rows.counts(("ward",), where("got.has('A')").compile(domain)).tolist() == [1, 1]


@pytest.mark.parametrize("ends", [ValueError("x"), KeyboardInterrupt()], ids=["failure", "interrupt"])
def test_no_thread_outlives_a_pass(ends: BaseException) -> None:
    before = set(threading.enumerate())

    def work(batch: batches.Batch) -> int:
        if batch.columns["n"][0].as_py() == 3 * batches.BATCH:
            raise ends
        return batch.rows

    pieces = batches.of_columns({"n": pa.chunked_array([np.arange(8 * batches.BATCH)])}, 8 * batches.BATCH)
    with pytest.raises(type(ends)):
        batches.Workers(pieces, work).finish()
    with pytest.raises(type(ends)):
        list(batches.Workers(pieces, work).results())
    assert set(threading.enumerate()) <= before  # threads of engines may end meanwhile

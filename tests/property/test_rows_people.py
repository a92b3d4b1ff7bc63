"""Answers are sums over people of what their own rows say, on every engine, however the rows come.

The definition is written out in plain Python below, person by person. Each engine gets the rows shuffled, split into
files, chunks and partitions, joined and grouped, and must give the same numbers; without one person, numbers that
differ by no more than one person can add.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parameters import examples
from rows_that_count import in_order
from tacit.policy.attributes import Attribute, Categories, Flag, Integers, Items
from tacit.policy.domain import Domain
from tacit.policy.where import where
from tacit.rows.rows import open_rows

Row = dict[str, Any]
Table = list[Row]
CELLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "who": (pa.int64(), [1, 2, 3, 4, 5, 6, None]),
    "when": (pa.float64(), [1.0, 1.0, 2.0, 10.0, -3.0, None, math.nan]),
    "ward": (pa.string(), ["A", "B", "?", None]),
    "hiv": (pa.bool_(), [True, False, False, None]),
    "n": (pa.int64(), [-2, 0, 2, 6, 7, None]),
    "item": (pa.string(), ["a", "b", "c", "z", None]),
    "list": (pa.list_(pa.string()), [None, [], ["a"], ["z", "c", "c", "a"], ["b", None, "a"], ["c", "b"], ["z"]]),
}
PLAIN: dict[str, Attribute] = {
    "hiv": Flag(otherwise=False),
    "ward": Categories(["B", "A"]),
    "n": Integers(-2, 6, step=2, otherwise=0),
}
WARDS, ITEMS = ["B", "A"], ["b", "a", "c"]


@dataclass(frozen=True)
class Case:
    """How rows make people, and which of them are asked for."""

    items: str | None = None  # the column with the items: "item", "list" or none
    person: bool = True
    per_person: int = 1
    order: bool = False
    at_most: int | None = None
    moved: frozenset[str] | None = None
    where: str | None = None

    @property
    def domain(self) -> Domain:
        """The declared attributes."""
        return Domain({**PLAIN, "got": Items(ITEMS, at_most=self.at_most)} if self.items else PLAIN)

    @property
    def options(self) -> dict[str, Any]:
        """What `open_rows` is told."""
        owners = {"person": "who", "per_person": self.per_person} if self.person else {}
        order = {"order": "when"} if self.order else {}
        return {**owners, **order, "moved": self.moved, **({"item": self.items} if self.items else {})}

    @property
    def columns(self) -> list[str]:
        """The columns that the rows need."""
        owners = ["who", "when"] if self.person else []
        return [*owners, *PLAIN, *([self.items] if self.items else [])]


# ---------------------------------------------------------------------- the definition


def places(row: Row) -> dict[str, int | None]:
    """Return the place of each value in the domain, None where there is none."""
    n = row["n"]
    return {
        "hiv": int(row["hiv"] is True),
        "ward": WARDS.index(row["ward"]) if row["ward"] in WARDS else None,
        "n": (n + 2) // 2 if n in (-2, 0, 2, 4, 6) else 1,
    }


def when(case: Case, row: Row) -> tuple[bool, float]:
    cell = row["when"] if case.order else None
    return (True, 0.0) if cell is None or math.isnan(cell) else (False, cell)


def records(case: Case, rows: Table) -> list[dict[str, Any]]:
    """Return the records of one person that count, from that person's rows."""
    fitting = [row for row in rows if None not in places(row).values()]
    first: dict[int, tuple[Any, ...]] = {}
    for row in fitting if case.items else ():
        cell = row[str(case.items)]
        for nth, item in enumerate(cell or [] if isinstance(cell, list | None) else [cell]):
            if item in ITEMS:
                occurs = (when(case, row), nth, ITEMS.index(item))
                first[occurs[2]] = min(first.get(occurs[2], occurs), occurs)
    held = set(sorted(first, key=first.__getitem__)[: case.at_most])
    if case.person and fitting:
        fitting = in_order(fitting[0]["who"], fitting, places, PLAIN, case.moved, lambda row: when(case, row))
    return [{**places(row), "got": held} for row in fitting[: case.per_person]]


def holds(case: Case, record: Mapping[str, Any]) -> bool:
    got, ward, hiv, n = record["got"], WARDS[record["ward"]], bool(record["hiv"]), record["n"] * 2 - 2
    return {
        None: True,
        "ward == 'A' and not hiv or n > 2": (ward == "A" and not hiv) or n > 2,
        "ward == 'A' and got.has('a')": ward == "A" and 1 in got,
        "got.has('c') and n <= 2 or not got.has('b') and hiv": (2 in got and n <= 2) or (0 not in got and hiv),
    }[case.where]


def expected(case: Case, table: Table) -> dict[str, Any]:
    owned: dict[Any, Table] = {}
    for number, row in enumerate(table):
        if not case.person or row["who"] is not None:
            owned.setdefault(row["who"] if case.person else number, []).append(row)
    answers = {"people": 0, "cells": np.zeros((2, 2), int), "total": 0, "items": np.zeros(3, int)}
    answers |= {"rows": 0, "cells of rows": np.zeros((2, 2), int)}
    for rows in owned.values():
        picked = [record for record in records(case, rows) if holds(case, record)]
        answers["people"] += bool(picked)
        for cell in {(record["ward"], record["hiv"]) for record in picked}:
            answers["cells"][cell] += 1
        for record in picked:
            answers["rows"] += 1
            answers["cells of rows"][record["ward"], record["hiv"]] += 1
        answers["total"] += sum(record["n"] * 2 - 2 for record in picked)
        for record in picked:
            answers["items"][list(record["got"])] += 1
    return _plain(case, answers)


def _plain(case: Case, answers: dict[str, Any]) -> dict[str, Any]:
    plain = {name: np.asarray(answer).tolist() for name, answer in answers.items()}
    return plain if case.items else {name: answer for name, answer in plain.items() if name != "items"}


def answered(case: Case, source: Any, *, few: bool = False) -> dict[str, Any]:
    rows = open_rows(source, case.domain, **case.options)
    test = None if case.where is None else where(case.where).compile(case.domain)
    answers: dict[str, Any] = {"people": rows.counts((), test)}
    if case.items:
        answers["items"] = rows.item_counts("got", test)
    if not few:
        answers["cells"] = rows.counts(("ward", "hiv"), test)
        answers["total"] = rows.total("n", test)
        answers["rows"] = rows.counts((), test, rows=True)
        answers["cells of rows"] = rows.counts(("ward", "hiv"), test, rows=True)
    return _plain(case, answers)


# ---------------------------------------------------------------------- the engines


def arrow(table: Table, columns: list[str]) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in table], type=CELLS[name][0]) for name in columns})


def halves(table: Table) -> list[Table]:
    cut = len(table) // 3
    return [table[:cut], table[cut:]]


def csv_files(table: Table, columns: list[str], folder: Path) -> list[Path]:
    paths = []
    for number, part in enumerate(halves(table)):
        frame = arrow(part, columns).to_pandas(types_mapper=pd.ArrowDtype)
        path = folder / f"{len(list(folder.iterdir()))}-{number}.csv"
        frame.assign(keep=1).to_csv(path, index=False)  # a line of one missing cell would be an empty line
        paths.append(path)
    return paths


def parquet_files(table: Table, columns: list[str], folder: Path) -> list[Path]:
    paths = []
    for part in halves(table):
        paths.append(folder / f"{len(list(folder.iterdir()))}.parquet")
        pq.write_table(arrow(part, columns), paths[-1], row_group_size=3)
    return paths


def one_parquet(table: Table, columns: list[str], folder: Path) -> Path:
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(arrow(table, columns), path, row_group_size=2)
    return path


def joined(table: Table, columns: list[str], *, grouped: bool) -> Any:
    """Return a relation of a join, or of a group-by, in an engine that promises no order at all."""
    connection = duckdb.connect()
    connection.execute("SET threads = 4")
    connection.execute("SET preserve_insertion_order = false")
    rows = arrow(table, columns).append_column("key", pa.array(range(len(table)), type=pa.int64()))
    connection.register("seen", rows)
    connection.execute("CREATE TABLE rows AS FROM seen")
    if grouped:
        chosen = ", ".join(f'any_value("{name}") AS "{name}"' for name in columns)
        return connection.sql(f"SELECT {chosen} FROM rows GROUP BY key")
    chosen = ", ".join(f'"{name}"' for name in columns)
    return connection.sql(f"SELECT {chosen} FROM rows JOIN (SELECT key FROM rows ORDER BY hash(key)) USING (key)")


def restless(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return a plan that hands out its rows in another order each time it is run."""
    return frame.with_columns(key=pl.int_range(pl.len()).shuffle()).sort("key").drop("key")


ENGINES: dict[str, Callable[[Table, list[str], Path], Any]] = {
    "csv files": csv_files,
    "parquet": one_parquet,
    "parquet files": parquet_files,
    "pandas": lambda table, columns, _: arrow(table, columns).to_pandas(),
    "polars": lambda table, columns, _: pl.DataFrame(arrow(table, columns)),
    "polars lazy": lambda table, columns, _: restless(pl.DataFrame(arrow(table, columns)).lazy()),
    "pyarrow chunks": lambda table, columns, _: pa.concat_tables(arrow(part, columns) for part in halves(table)),
    "duckdb join": lambda table, columns, _: joined(table, columns, grouped=False),
    "duckdb group-by": lambda table, columns, _: joined(table, columns, grouped=True),
    "ibis": lambda table, columns, _: ibis.memtable(arrow(table, columns)),
}


def made(engine: str, case: Case, table: Table, folder: Path) -> Any:
    if engine == "csv files" and case.items == "list":
        engine = "parquet files"  # a CSV has no lists
    return ENGINES[engine](table, case.columns, folder)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    items = draw(st.sampled_from([None, "item", "list"]))
    person = items == "item" or draw(st.booleans())
    questions = [None, "ward == 'A' and not hiv or n > 2"]
    if items:
        questions += ["ward == 'A' and got.has('a')", "got.has('c') and n <= 2 or not got.has('b') and hiv"]
    return Case(
        items=items,
        person=person,
        per_person=draw(st.integers(1, 3)) if person and not items else 1,
        order=person and draw(st.booleans()),
        at_most=draw(st.none() | st.integers(1, 2)) if items else None,
        moved=draw(st.none() | st.sets(st.sampled_from(list(PLAIN))).map(frozenset)),
        where=draw(st.sampled_from(questions)),
    )


def tables_of(rows: int) -> st.SearchStrategy[Table]:
    return st.lists(
        st.fixed_dictionaries({name: st.sampled_from(cells) for name, (_, cells) in CELLS.items()}), max_size=rows
    )


tables = tables_of(14)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("engine", ENGINES, ids=lambda name: name.replace(" ", "-"))
@given(case=cases(), table=tables, luck=st.randoms(use_true_random=False))
@settings(max_examples=3)
def test_shuffled_rows_are_counted_as_the_definition_says(
    engine: str, case: Case, table: Table, luck: random.Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = made(engine, case, luck.sample(table, len(table)), tmp_path_factory.mktemp("rows"))
    assert answered(case, source) == expected(case, table)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES, ids=lambda name: name.replace(" ", "-"))
@given(case=cases(), table=tables_of(60), luck=st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_many_shuffled_tables_are_counted_as_the_definition_says(
    engine: str, case: Case, table: Table, luck: random.Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = made(engine, case, luck.sample(table, len(table)), tmp_path_factory.mktemp("rows"))
    assert answered(case, source) == expected(case, table)


@given(case=cases(), table=tables, luck=st.randoms(use_true_random=False))
@examples(9)
def test_one_person_adds_no_more_than_one_person_can(case: Case, table: Table, luck: random.Random) -> None:
    owners = {row["who"] for row in table} - {None} if case.person else set(range(len(table)))
    if not owners:
        return
    gone = luck.choice(sorted(owners))
    left = [row for number, row in enumerate(table) if (row["who"] if case.person else number) != gone]
    alone = [row for number, row in enumerate(table) if (row["who"] if case.person else number) == gone]
    most = {"people": 1, "cells": case.per_person, "total": 6 * case.per_person, "items": case.at_most or len(ITEMS)}
    most |= {"rows": case.per_person, "cells of rows": case.per_person}
    for engine in ("duckdb join", "polars lazy"):
        everybody, others, one = (
            answered(case, made(engine, case, luck.sample(part, len(part)), Path())) for part in (table, left, alone)
        )
        for name, answer in everybody.items():
            # a sum over people: what the person adds is what the person's rows give by themselves
            assert np.array_equal(np.array(answer), np.array(others[name]) + np.array(one[name])), (engine, name)
            assert np.abs(np.array(one[name])).sum() <= most[name], (engine, name)


def crowd(people: int, luck: random.Random) -> Table:
    return [
        {name: luck.choice(cells) for name, (_, cells) in CELLS.items()} | {"who": luck.randrange(people)}
        for _ in range(3 * people)
    ]


BUSY = [
    Case(moved=frozenset({"hiv"})),
    Case(per_person=2, order=True, where="ward == 'A' and not hiv or n > 2"),
    Case(items="item", at_most=2, where="ward == 'A' and got.has('a')"),
    Case(items="list", person=False, where="got.has('c') and n <= 2 or not got.has('b') and hiv"),
    Case(items="list", order=True, at_most=1),
]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("case", BUSY, ids=lambda case: f"{case.items}-{case.person}-{case.per_person}")
def test_large_joins_with_several_threads_are_counted_as_the_definition_says(case: Case) -> None:
    table = crowd(2000, random.Random(20240501))  # noqa: S311 - a fixed shuffle
    for grouped in (False, True):
        source = joined(table, case.columns, grouped=grouped)
        assert answered(case, source) == expected(case, table)


SPARK: dict[str, Callable[[Any], Any]] = {
    "repartitioned": lambda frame: frame.repartition(7),
    "by owner": lambda frame: frame.repartition(3, "hiv"),
    "sorted within": lambda frame: frame.repartition(4).sortWithinPartitions("n"),
    "fewer": lambda frame: frame.repartition(5).coalesce(2),
    "union": lambda frame: frame.repartition(3).unionAll(frame.limit(0)),
}


@pytest.mark.one_in(5)
@pytest.mark.spark
@pytest.mark.parametrize(("how", "case"), list(zip(SPARK, BUSY, strict=True)), ids=list(SPARK))
def test_partitions_of_spark_do_not_matter(spark: Any, how: str, case: Case) -> None:
    table = crowd(100, random.Random(20240501))  # noqa: S311 - a fixed shuffle
    source = SPARK[how](spark.createDataFrame(arrow(table, case.columns)))
    truth = expected(case, table)
    found = answered(case, source, few=True)
    assert found == {name: truth[name] for name in found}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("how", SPARK)
@pytest.mark.parametrize("number", range(12))
def test_partitions_of_spark_never_matter(spark: Any, how: str, number: int) -> None:
    luck = random.Random(20240501 + number)  # noqa: S311 - a fixed shuffle
    case = replace(luck.choice(BUSY), moved=luck.choice([None, frozenset({"ward"})]))
    table = crowd(200, luck)
    assert answered(case, SPARK[how](spark.createDataFrame(arrow(table, case.columns)))) == expected(case, table)


@pytest.mark.spark
def test_the_size_of_a_file_decides_about_nobody(spark: Any, tmp_path: Path) -> None:
    """Spark begins with the largest file: one byte less in one of them used to change whose rows came first."""
    found = []
    for first in (10, 9):
        folder = tmp_path / str(first)
        folder.mkdir()
        rows = [f"p{number:03d},{first if number == 0 else 3}\n" for number in range(50)]
        (folder / "part-1.csv").write_text("".join(["who,b\n", *rows]))
        rows = [f"p{number:03d},{10 if number == 1 else 9}\n" for number in range(50)]
        (folder / "part-2.csv").write_text("".join(["who,b\n", *rows]))
        source = spark.read.csv(str(folder), header=True, schema="who string, b int")
        found.append(open_rows(source, Domain({"b": Integers(0, 20)}), person="who").counts(("b",)))
    # two rows each, and one of them counts: of all but two people the same one
    assert found[0].sum() == found[1].sum() == 50
    assert min(found[0][[3, 9]]) > 10
    assert np.abs(found[0] - found[1]).sum() <= 2


# ---------------------------------------------------------------------- what a secret may decide


@given(table=tables, luck=st.randoms(use_true_random=False))
@examples(24)
def test_what_is_secret_decides_nothing_about_what_is_public(table: Table, luck: random.Random) -> None:
    case = Case(moved=frozenset({"hiv"}))
    other = [row | {"hiv": luck.choice([True, False, None])} for row in table]
    sources = [pl.DataFrame(arrow(rows, case.columns)) for rows in (table, other)]
    rows = [open_rows(source, case.domain, **case.options) for source in sources]
    assert rows[0].counts(("ward", "n")).tolist() == rows[1].counts(("ward", "n")).tolist()
    assert rows[0].total("n") == rows[1].total("n")


ORDERED: dict[str, tuple[list[Any], pa.DataType]] = {
    # from first to last; None comes after everything
    "whole": ([-20, -3, 9, 10, 2**60, 2**60 + 1, None], pa.int64()),
    "real": ([-math.inf, -2.5, -0.5, 0.25, 9.0, 10.0, math.inf, None], pa.float64()),
    "texts": (
        ["-7", "9", "10", "1e2", "1152921504606846976", "1152921504606846977", "A", "Z", "a", "\u00e4", None],
        pa.string(),
    ),
    "dates": ([pd.Timestamp(2024, 1, day).date() for day in (1, 2, 10)] + [None], pa.date32()),
    "times": ([pd.Timestamp(2024, 1, 1, hour) for hour in (1, 2, 10)] + [None], pa.timestamp("us")),
    "times with a zone": (
        [pd.Timestamp(2024, 1, 1, hour, tz="Europe/Berlin") for hour in (1, 2, 10)] + [None],
        pa.timestamp("us", tz="Europe/Berlin"),
    ),
    "truths": ([False, True, None], pa.bool_()),
}


@pytest.mark.one_in(16)
@pytest.mark.parametrize("name", ORDERED)
@pytest.mark.parametrize("engine", ["csv", "pandas", "polars", "pyarrow", "duckdb", "ibis"])
def test_the_first_row_by_order_is_the_same_on_every_engine(engine: str, name: str, tmp_path: Path) -> None:
    cells, kind = ORDERED[name]
    pairs = [(early, late) for early in range(len(cells)) for late in range(early)]
    rows = [(number, place) for number, pair in enumerate(pairs) for place in pair]  # the later one comes first
    table = pa.table(
        {
            "who": [number for number, _ in rows],
            "order": pa.array([cells[place] for _, place in rows], type=kind),
            "place": [20 - place for _, place in rows],  # falls as `order` rises: ties would go the other way
        }
    )
    if engine == "csv":
        if name == "real":
            table = table.filter(pa.compute.is_finite(pa.compute.fill_null(table["order"], 0.0)))
        path = tmp_path / "a.csv"
        table.to_pandas(types_mapper=pd.ArrowDtype).to_csv(path, index=False)
    source = {
        "csv": lambda: tmp_path / "a.csv",
        "pandas": lambda: table.to_pandas(integer_object_nulls=True),  # else whole numbers would be floats
        "polars": lambda: pl.DataFrame(table),
        "pyarrow": lambda: table,
        "duckdb": lambda: duckdb.connect().from_arrow(table),
        "ibis": lambda: ibis.memtable(table),
    }[engine]()
    first: dict[int, int] = {}
    for number, place in zip(table["who"].to_pylist(), table["place"].to_pylist(), strict=True):
        first[number] = max(first.get(number, place), place)
    counted = open_rows(source, Domain({"place": Integers(0, 20)}), person="who", order="order").counts(("place",))
    assert counted.tolist() == np.bincount(list(first.values()), minlength=21).tolist()

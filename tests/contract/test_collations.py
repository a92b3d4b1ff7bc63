"""Texts that differ are different, whatever collation a column, a connection or a backend compares them with."""

import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pytest

from tacit.errors import DataRefused
from tacit.policy.attributes import Categories, Integers, Items
from tacit.policy.domain import Domain
from tacit.policy.where import where
from tacit.rows.rows import open_rows

CELLS = ["x", "X", "X", "é", "e", "E", "TRUE", "True", "trüe", "3.0", "3.0E0"]
ROWS = [(f"{'pP'[i % 2]}{i // 2}", cell, [cell, "X", "é"], i % 3) for i, cell in enumerate(CELLS)]
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table")  # Ibis asks DuckDB for it
LISTED = ["x", "X", "e", "é", "true", "3"]
DOMAIN = Domain({"g": Categories(LISTED, otherwise="x"), "n": Integers(0, 2)})


def filled(connection: Any, collation: str, *, default: bool, enum: bool = False) -> None:
    text = "VARCHAR" if default else f"VARCHAR COLLATE {collation}"
    if default:
        connection.execute(f"SET default_collation = '{collation}'")
    kind = f"ENUM({', '.join(map(repr, sorted(set(CELLS))))})" if enum else text
    connection.execute(f"CREATE TABLE t(id {text}, g {kind}, l VARCHAR[], n INT)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ROWS)


def in_duckdb(collation: str, **how: bool) -> Any:
    connection = duckdb.connect()
    filled(connection, collation, **how)
    return connection.sql("SELECT * FROM t")


def in_ibis(collation: str, **how: bool) -> Any:
    connection = ibis.duckdb.connect()
    filled(connection.con, collation, **how)
    return connection.table("t")


SOURCES: dict[str, Callable[[str], Any]] = {
    "column": lambda collation: in_duckdb(collation, default=False),
    "connection": lambda collation: in_duckdb(collation, default=True),
    "enum": lambda collation: in_duckdb(collation, default=True, enum=True),
    "ibis column": lambda collation: in_ibis(collation, default=False),
    "ibis connection": lambda collation: in_ibis(collation, default=True),
}


COLLATIONS = ["NOCASE.NOACCENT", *(pytest.param(one, marks=pytest.mark.slow) for one in ("NOCASE", "NOACCENT"))]


def meant(cell: str, otherwise: str) -> str:
    """Return the category of a cell, as `rows/cells/readings.py` defines it."""
    spelled = {"TRUE": "true", "True": "true", "3.0": "3", "3.0E0": "3"}
    return cell if cell in LISTED else spelled.get(cell, otherwise)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("collation", COLLATIONS)
@pytest.mark.parametrize("source", SOURCES)
def test_a_collation_makes_no_two_texts_one(source: str, collation: str) -> None:
    table = SOURCES[source](collation)
    counted = Counter(meant(cell, "x") for cell in CELLS)
    expected = [counted[value] for value in LISTED]
    unowned = open_rows(table, DOMAIN)
    assert unowned.counts(("g",)).tolist() == expected
    assert unowned.counts(("g", "n")).sum(axis=1).tolist() == expected
    options: dict[str, Any]
    for options in ({}, {"order": "g"}, {"order": "n", "per_person": 2}):
        owned = open_rows(table, DOMAIN, person="id", **options)
        assert owned.counts(("g",)).tolist() == expected  # each row has an owner of its own
        assert owned.total("n") == sum(row[3] for row in ROWS)
    for rows in (unowned, open_rows(table, DOMAIN, person="id")):
        for text in LISTED:
            assert rows.counts((), where(f"g == {text!r}").compile(DOMAIN)) == counted[text], text


@pytest.mark.one_in(5)
@pytest.mark.parametrize("collation", COLLATIONS)
@pytest.mark.parametrize("source", ["connection", "ibis connection"])  # no list has a collation of its own
def test_a_collation_makes_no_two_items_one(source: str, collation: str) -> None:
    table = SOURCES[source](collation)
    for items in (["x", "X", "e", "é"], LISTED):
        for at_most in (None, 1, 2):
            domain = Domain({"l": Items(items, at_most=at_most)})
            expected = Counter[str]()
            for row in ROWS:
                cells = [meant(cell, "?") for cell in row[2]]
                expected.update(list(dict.fromkeys(cell for cell in cells if cell in items))[:at_most])
            wanted = [expected[item] for item in items]
            rows = open_rows(table, domain)
            assert rows.item_counts("l").tolist() == wanted
            assert rows.counts((), where("l.has('X')").compile(domain)) == expected["X"]
            assert open_rows(table, domain, person="id").item_counts("l").tolist() == wanted


def test_which_of_a_persons_rows_is_first_is_no_matter_of_collation() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t(id INT, o VARCHAR COLLATE NOCASE, n INT)")
    connection.execute("INSERT INTO t VALUES (1, 'a', 2), (1, 'B', 1)")
    rows = open_rows(connection.table("t"), Domain({"n": Integers(0, 2)}), person="id", order="o")
    assert rows.counts(("n",)).tolist() == [0, 1, 0]


def test_an_ibis_table_outside_duckdb_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.sqlite") as database:
        database.execute("CREATE TABLE t(g TEXT COLLATE NOCASE, n INT)")
    database.close()
    domain = Domain({"n": Integers(0, 2)})
    for table in (
        ibis.sqlite.connect(tmp_path / "a.sqlite").table("t"),
        ibis.polars.connect({"t": pa.table({"n": [1]})}).table("t"),
    ):
        with pytest.raises(DataRefused, match=r"^an Ibis table must live in DuckDB, and this one lives in"):
            open_rows(table, domain)

"""Keys of rows: fair, and the same for whoever is the same person, wherever the rows are."""

from __future__ import annotations

from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from engines import ENGINES
from rows_that_count import PRIME, START, in_order, row_key
from tacit.policy.attributes import Categories, Integers
from tacit.policy.domain import Domain
from tacit.rows.cells.readings import DataColumn
from tacit.rows.counts.row_choice import row_keys, whole_keys, with_numbers, with_person_keys, with_words
from tacit.rows.rows import open_rows
from tacit.rows.sources.duckdb_engine import DUCKDB

ALPHA = 1e-6
PEOPLE = 60_000


def keys(persons: np.ndarray, word: int, number: int) -> np.ndarray:
    """The keys of many persons at once, by the expressions that engines run."""
    count = len(persons)
    table = pa.table({"u": persons, "w0": np.full(count, word), "n": np.full(count, number), "at": np.arange(count)})
    relation = duckdb.connect().from_arrow(table)
    frame = with_person_keys(DUCKDB, nw.from_native(relation).lazy(), DataColumn("whole"))
    frame = with_numbers(with_words(frame, [("w0", 40)]), "n").select("at", "key")
    found = frame.collect(backend="pyarrow").to_arrow().sort_by("at")
    return np.asarray(found["key"].to_numpy())


def test_keys_are_what_the_definition_says() -> None:
    persons = np.array([0, 1, -1, 17, -(2**63), 2**63 - 1, 2**26, 10**12])
    for word, number in ((0, 1), (2**40 - 1, 7)):
        expected = [row_key(int(who), [(word, 40)], number) for who in persons]
        assert keys(persons, word, number).tolist() == expected
        words, numbers = np.full(len(persons), word), np.full(len(persons), number)
        assert row_keys(whole_keys(persons), [(words, 40)], numbers).tolist() == expected


def orders(found: list[np.ndarray]) -> float:
    """The p-value of all orders of four rows being equally likely."""
    ranked = np.argsort(np.stack(found), axis=0)
    number = {order: place for place, order in enumerate(permutations(range(4)))}
    seen = np.bincount([number[tuple(column)] for column in ranked.T.tolist()], minlength=24)
    return float(stats.chisquare(seen).pvalue)


@pytest.mark.parametrize("persons", [range(PEOPLE), range(10**9, 10**9 + 7 * PEOPLE, 7)], ids=["few", "large"])
def test_all_orders_of_the_rows_of_a_person_are_equally_likely(persons: range) -> None:
    """Of rows that look alike, and of rows that differ."""
    people = np.array(persons)
    assert orders([keys(people, 5, number) for number in (1, 2, 3, 4)]) > ALPHA
    assert orders([keys(people, word, 1) for word in (0, 1, 2, 3)]) > ALPHA


def test_keys_without_the_last_rounds_would_not_be_fair() -> None:
    """What is accepted above can be rejected: without them not all orders are equally likely."""
    person = np.arange(PEOPLE) + START

    def cubed(numbers: np.ndarray) -> np.ndarray:
        return numbers * numbers % PRIME * numbers % PRIME

    state = cubed(cubed(person) + 5 + START)
    assert orders([cubed(state + number + START) for number in (1, 2, 3, 4)]) < ALPHA


# ---------------------------------------------------------------------- the same person, the same rows

SPELLED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "whole": (pa.int64(), [7, 17, 2**63 - 1, -(2**63)]),
    "small": (pa.int16(), [7, 17, 300, -3]),
    "unsigned": (pa.uint64(), [7, 17, 123_456_789_012, 2**64 - 1]),
    "real": (pa.float64(), [7.0, 17.0, 123_456_789_012.0, -3.0]),
    "decimal": (pa.decimal128(38, 2), [Decimal(7), Decimal(17), Decimal(123_456_789_012), Decimal(-3)]),
    "text": (pa.string(), ["7", "17", "9223372036854775807", "-9223372036854775808"]),
    "text of reals": (pa.string(), ["7.0", "17.0", "123456789012.0", "-3.0"]),
    "names": (pa.string(), ["Ana", "Bob", "Zoë", "17a"]),
    "dates": (pa.date32(), [pd.Timestamp(2024, 1, day).date() for day in (1, 2, 3, 4)]),
}
DOMAIN = {"ward": Categories(["A", "B", "C"]), "cost": Integers(0, 99)}


def visits(cells: list[Any]) -> list[dict[str, Any]]:
    return [
        {"who": who, "ward": "ABC"[n % 3], "cost": (n * 29 + place) % 100}
        for place, who in enumerate(cells)
        for n in range(11)
    ]


def places(row: dict[str, Any]) -> dict[str, int]:
    return {"ward": "ABC".index(row["ward"]), "cost": row["cost"]}


@pytest.mark.one_in(9)
@pytest.mark.parametrize("name", SPELLED)
@pytest.mark.parametrize("per_person", [1, 4, 9])
def test_the_same_rows_count_in_every_engine_and_however_a_person_is_spelled(
    name: str, per_person: int, tmp_path: Path
) -> None:
    """In one pass (up to 8 rows) and by the engine (from 9 on)."""
    kind, cells = SPELLED[name]
    moved = frozenset({"cost"})
    expected = np.zeros((3, 100), int)
    for who in cells:
        own = [row for row in visits(cells) if row["who"] == who]
        for row in in_order(who, own, places, DOMAIN, moved)[:per_person]:
            expected["ABC".index(row["ward"]), row["cost"]] += 1
    table = pa.table({"who": pa.array([row["who"] for row in visits(cells)], type=kind)})
    table = table.append_column("ward", pa.array([row["ward"] for row in visits(cells)]))
    table = table.append_column("cost", pa.array([row["cost"] for row in visits(cells)]))
    found = {name: made(table, tmp_path) for name, made in ENGINES.items()}
    if name == "dates":
        del found["pandas"]  # where dates are objects, which are other texts than those of a CSV
    for engine, source in found.items():
        rows = open_rows(source, Domain(DOMAIN), person="who", per_person=per_person, moved=moved)
        assert np.array_equal(rows.counts(("ward", "cost")), expected), engine

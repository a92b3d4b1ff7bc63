"""Rows of people from sorted batches: persons with one hash, people in several batches, rows of several words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rows_that_count import in_order
from tacit.policy.attributes import Categories, Integers
from tacit.policy.domain import Domain
from tacit.rows.counts import chosen_rows
from tacit.rows.counts.batches import Batch
from tacit.rows.counts.chosen_rows import whole_people
from tacit.rows.rows import open_rows

NARROW = {"ward": Categories(["A", "B", "C"]), "cost": Integers(0, 99)}
WIDE = {**NARROW, "far": Integers(0, 2**40), "long": Integers(0, 2**45)}
PERSONS: dict[str, list[Any]] = {
    "whole": list(range(40)),
    "text": [f"person {number}" for number in range(40)],
    "real": [number / 4 for number in range(40)],
}


def check(persons: list[Any], domain: dict[str, Any], per_person: int, *, ordered: bool) -> None:
    """The counts of rows of these persons, up to 12 of each, are those of the definition."""
    stream = np.random.default_rng(5)
    rows = [
        {
            "who": who,
            "ward": "ABC"[stream.integers(3)],
            "cost": int(stream.integers(100)),
            "far": int(stream.integers(2)) * 2**40,
            "long": int(stream.integers(2)),
            "day": int(stream.integers(3)),
        }
        for who in persons
        for _ in range(stream.integers(1, 13))
    ]

    def places(row: dict[str, Any]) -> dict[str, int]:
        return {name: "ABC".index(row[name]) if name == "ward" else row[name] for name in domain}

    moved = frozenset({"cost"})
    expected = np.zeros((3, 100), dtype=int)
    for who in persons:
        own = [row for row in rows if row["who"] == who]
        by = (lambda row: row["day"]) if ordered else (lambda _: 0)
        chosen = in_order(who, own, places, domain, moved, by)[:per_person]
        for ward, cost in {("ABC".index(row["ward"]), row["cost"]) for row in chosen}:
            expected[ward, cost] += 1
    order = "day" if ordered else None
    table = pa.Table.from_pylist([rows[place] for place in stream.permutation(len(rows))])
    opened = open_rows(table, Domain(domain), person="who", per_person=per_person, order=order, moved=moved)
    assert np.array_equal(opened.counts(("ward", "cost")), expected)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("per_person", [1, 4])
@pytest.mark.parametrize("kind", ["text", "real"])
def test_persons_with_one_hash_stay_apart(
    kind: str, per_person: int, ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chosen_rows, "HASH", "hash(u) % 3")
    check(PERSONS[kind], NARROW, per_person, ordered=ordered)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("kind", PERSONS)
def test_rows_of_several_words_are_chosen_alike(kind: str, ordered: bool) -> None:
    check(PERSONS[kind], WIDE, 3, ordered=ordered)


@pytest.mark.parametrize(
    "batches",
    [
        [[1, 1, 2], [2, 2], [2], [3], [3, 4]],
        [[1], [2], [3]],
        [[1, 1], [1, 1], [1]],
        [[1, 2, 3], [], [4, 5]],
        [],
    ],
)
def test_a_batch_has_all_rows_of_its_people(batches: list[list[int]]) -> None:
    def stream() -> Any:
        for people in batches:
            yield Batch(len(people), {"h": pa.array(people, type=pa.int64()), "w": pa.array(people, type=pa.int64())})

    found = [batch for piece in whole_people([stream, stream]) for batch in piece()]
    people = [batch.columns["h"].to_pylist() for batch in found]
    assert [who for own in people for who in own] == [who for own in batches for who in own]
    assert [len(own) for own in people] == [batch.rows for batch in found]
    assert sum(len(set(own)) for own in people) == len({who for own in people for who in own})
    assert all(batch.columns["w"].equals(batch.columns["h"]) for batch in found)

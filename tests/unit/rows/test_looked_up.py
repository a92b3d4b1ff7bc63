"""What is looked up is declared: neither how much it is nor the way that is taken depends on a person's number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tacit.plan.measure.measured import CellCounts
from tacit.policy.attributes import Attribute, Categories, Decimals, Flag, Integers
from tacit.policy.domain import Domain
from tacit.rows.cells import encoder as positions
from tacit.rows.cells.kinds import code_of
from tacit.rows.counts.batches import Batch
from tacit.rows.rows import open_rows
from tacit.rows.sources.engine import schema_of

WIDE = positions._WIDEST_TABLE
ATTRIBUTES: dict[str, Attribute] = {
    "dropped": Integers(0, 99),
    "clipped": Integers(-3, 99, otherwise="clip"),
    "in steps": Integers(10, 90, step=20, otherwise="clip"),
    "otherwise": Integers(5, 99, otherwise=7),
    "beyond small types": Integers(1000, 2000, otherwise="clip"),
    "negative": Integers(-2000, -1000, otherwise="clip"),
    "widest table": Integers(0, WIDE - 1),
    "too wide": Integers(0, WIDE, otherwise="clip"),
    "flag": Flag(otherwise=True),
    "decimals": Decimals(0.5, 99.5, step=0.5, otherwise="clip"),
    "categories": Categories([3, 50, 7], otherwise=3),
    "categories apart": Categories([3, 10**12]),
}
TYPES = ("int8", "uint32", "int64", "uint64")


def looked_up(monkeypatch: pytest.MonkeyPatch, columns: dict[str, Any], domain: Domain) -> tuple[list[int], list[Any]]:
    """Return how many cells each query looked up, and what was counted."""
    asked: list[int] = []
    evaluated = positions._Evaluator._evaluated

    def noted(self: Any, codes: Any, cells: Any) -> Any:
        asked.append(len(next(iter(cells.values()))))
        return evaluated(self, codes, cells)

    with monkeypatch.context() as patched:
        patched.setattr(positions._Evaluator, "_evaluated", noted)
        counts = open_rows(pd.DataFrame(columns), domain).tally([CellCounts((name,)) for name in domain])
    return asked, counts


@pytest.mark.one_in(5)
@pytest.mark.parametrize("kind", ["int8", "int64", "uint64", "Int64"])
def test_no_number_of_a_person_changes_what_is_looked_up(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = np.iinfo(kind.lower())
    others = [5] * 40 + [50] * 40
    values = [0, 99, 100, limits.min, limits.max, 65_000, WIDE - 2, WIDE, 2**22 - 2, 10**9, 10**12]
    persons: list[Any] = [value for value in values if limits.min <= value <= limits.max]
    persons += [None] if kind == "Int64" else []
    domain = Domain(ATTRIBUTES)
    asked = {}
    for person in persons:
        columns = {name: pd.array([person, *others], dtype=kind) for name in ATTRIBUTES}
        found, _ = looked_up(monkeypatch, columns, domain)
        asked[person] = sorted(found)  # attributes are asked for in no order
    assert all(found == asked[0] for found in asked.values()), asked
    assert sum(found == len(others) + 1 for found in asked[0]) == 1  # too wide and not counted: row by row


def test_numbers_of_several_columns_are_looked_up_together_whatever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain({"x": Integers(0, 99), "y": Integers(0, 9), "z": Integers(0, 9)})
    rest = list(range(10)) * 5
    asked = [
        looked_up(monkeypatch, {"x": [person, *rest], "y": [person, *rest], "z": [0, *rest]}, domain)[0]
        for person in (0, 99, 100, 5000, 10**9)
    ]
    assert all(found == [103] for found in asked), asked  # 0 to 99, one below, one above, and a missing one


@pytest.mark.one_in(16)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_table_says_what_the_expressions_say(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attribute, limits = ATTRIBUTES[name], np.iinfo(kind)
    ends = [-2000, -1000, -3, 0, 1, 3, 5, 7, 10, 50, 90, 99, 1000, 2000, WIDE, 10**12, limits.min, limits.max]
    numbers = sorted({near for end in ends for near in (end - 1, end, end + 1) if limits.min <= near <= limits.max})
    column = {"x": np.repeat(np.array(numbers, dtype=kind), np.arange(1, len(numbers) + 1))}
    domain = Domain({"x": attribute})
    _, [by_table] = looked_up(monkeypatch, column, domain)
    monkeypatch.setattr(positions, "_WIDEST_TABLE", 0)
    _, [by_ends] = looked_up(monkeypatch, column, domain)
    assert np.array_equal(np.asarray(by_table), np.asarray(by_ends))
    monkeypatch.setattr(positions._ColumnEncoder, "_ends", lambda *_: None)
    asked, [by_row] = looked_up(monkeypatch, column, domain)
    assert asked == [len(column["x"])]
    assert np.array_equal(np.asarray(by_table), np.asarray(by_row))


@pytest.mark.parametrize("kind", [*TYPES, "int16"])
@pytest.mark.parametrize(
    "attribute",
    [
        Integers(-(10**12), 10**12),
        Integers(-(2**61), 2**62 - 1, otherwise=-7),
        Integers(-100, 2**62 - 1, otherwise="clip"),
        Integers(7, WIDE + 7, otherwise=9),
    ],
    ids=str,
)
def test_positions_of_a_wide_range_are_counted_from_its_first_number(attribute: Integers, kind: str) -> None:
    limits, low, high = np.iinfo(kind), attribute.low, attribute.high
    ends = [low, high, 0, -1000, WIDE, 2**61, limits.min, limits.max]
    near = sorted({end + at for end in ends for at in (-2, -1, 0, 1, 2) if limits.min <= end + at <= limits.max})

    def meant(number: int | None) -> int:
        if number is not None and low <= number <= high:
            return number - low
        if attribute.otherwise == "clip":
            return attribute.size if number is None else (0 if number < low else high - low)
        return attribute.size if attribute.otherwise is None else int(attribute.otherwise) - low

    cells = pa.array([*near, None], type=kind)
    frame = duckdb.connect().from_arrow(pa.table({"k0": cells}))
    code = code_of(attribute, (replace(schema_of(frame)["k0"], raw="k0", name="k0"),))
    encoder = positions.Encoder({"x": code}, {"x": attribute.size}, duckdb.connect())
    found = encoder.codes("x", Batch(len(cells), {"k0": cells}))
    assert found.tolist() == [meant(number) for number in cells.to_pylist()]


def test_truths_are_looked_up_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain({"x": Flag()})
    found = [looked_up(monkeypatch, {"x": [person, True, True]}, domain) for person in (True, False)]
    assert [asked for asked, _ in found] == [[3], [3]]
    assert [np.asarray(counts[0]).tolist() for _, counts in found] == [[0, 3], [1, 2]]

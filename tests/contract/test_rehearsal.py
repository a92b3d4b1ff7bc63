"""What an engine cannot count by its type is refused when rows are opened, with its name, and never later."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from engines import ENGINES
from parameters import one_in
from tacit.errors import DataRefused
from tacit.policy.attributes import Attribute, Categories, Dates, Integers, Items
from tacit.policy.domain import Domain
from tacit.rows.counts import dry_run as rehearsal
from tacit.rows.rows import open_rows

TYPES: list[pa.DataType] = [
    *(pa.decimal256(50, 2), pa.decimal128(38, 0), pa.decimal128(5, -2), pa.decimal32(5, 1), pa.decimal64(10, 1)),
    *(pa.time32("s"), pa.time64("us"), pa.duration("us"), pa.date64(), pa.timestamp("ns", "UTC"), pa.timestamp("s")),
    *(pa.float16(), pa.uint64(), pa.bool_(), pa.null(), pa.bool8(), pa.month_day_nano_interval()),
    *(pa.binary(), pa.large_binary(), pa.binary_view(), pa.string_view(), pa.uuid()),
    *(pa.run_end_encoded(pa.int32(), pa.int64()), pa.struct([("x", pa.int32())]), pa.list_(pa.int32())),
    *(pa.dictionary(pa.int8(), kind) for kind in (pa.timestamp("s"), pa.float64(), pa.binary(), pa.string_view())),
]
ROLES: dict[str, Attribute] = {
    "number": Integers(0, 9, otherwise="clip"),
    "name": Categories(["1", "b"], otherwise="b"),
    "date": Dates("1970-01-01", "1970-12-31", otherwise="clip"),
    "person": Integers(0, 9),
    "order": Integers(0, 9),
}
SOURCES = {name: ENGINES[name] for name in ("pyarrow", "polars", "duckdb", "parquet")}


def counted(source: Any, domain: Domain, **options: Any) -> bool:
    """Say whether rows can be opened; those that can are counted."""
    try:
        rows = open_rows(source, domain, **options)
    except DataRefused:
        return False
    rows.counts(("a",))
    return True


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("role", "source", "third"), one_in(3, ROLES, SOURCES, range(3)))
def test_a_type_is_refused_at_the_door_or_counted(role: str, source: str, third: int, tmp_path: Path) -> None:
    opened = 0
    for kind in TYPES[third::3]:
        cells = pa.nulls(3, kind)
        others = {"a": pa.array([1, 2, 3]), "u": pa.array(["p", "p", "q"]), "o": pa.array([1, 2, 3])}
        table = pa.table({**others, {"person": "u", "order": "o"}.get(role, "a"): cells})
        try:
            made = SOURCES[source](table, tmp_path)
        except BaseException:  # noqa: S112 - a panic of polars is no Exception; it holds no such type
            continue
        opened += counted(made, Domain({"a": ROLES[role]}), person="u", order="o", per_person=2)
    assert opened


@pytest.mark.parametrize(
    ("column", "series"),
    [
        ("u", pd.Series(pd.arrays.SparseArray([1, 0, 3]))),
        ("u", pd.Series(np.array([1, 2, 3], dtype=np.longdouble))),
        ("u", pd.Series([1, 2, 3], dtype=pd.ArrowDtype(pa.decimal256(50, 2)))),
        ("a", pd.Series([None] * 3, dtype=pd.ArrowDtype(pa.decimal128(5, -2)))),
        ("o", pd.Series([None] * 3, dtype=pd.ArrowDtype(pa.decimal128(5, -2)))),
    ],
    ids=["sparse", "longdouble", "decimal256", "negative scale", "order"],
)
def test_a_type_that_pandas_alone_can_hold_is_named(column: str, series: Any) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "u": [1, 2, 3], "o": [1, 2, 3], column: series})
    with pytest.raises(DataRefused) as refusal:
        open_rows(frame, Domain({"a": Integers(0, 9, otherwise="clip")}), person="u", order="o")
    assert refusal.value.column == column
    assert "type that cannot be counted" in str(refusal.value)
    assert refusal.value.__context__ is None


def test_a_refusal_shows_no_value_that_a_type_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: Any = open_rows(pl.DataFrame({"a": [1]}), Domain({"a": Integers(0, 9)}))
    for called, shown in {"Enum(categories=['Ruth'])": "Enum", "decimal256(50, 2)": "decimal256(50, 2)"}.items():
        monkeypatch.setattr(rows._opened.engine, "type_of", lambda _, called=called: called)
        text = str(rehearsal._wrong_type(rows._opened.engine, rows._opened.codes["a"].columns[0]))
        assert f": {shown}" in text
        assert "Ruth" not in text


def test_a_type_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain({"a": Integers(0, 9), "b": Integers(0, 5)})
    monkeypatch.setattr(rehearsal, "_rehearsed", set())
    tried: list[Any] = []
    monkeypatch.setattr(rehearsal, "_fault", lambda work: tried.append(work))
    for table in ({"a": [1], "b": [2]}, {"a": [3, 4], "b": [0, 9]}, {"a": [1.5], "b": [2]}):
        open_rows(pa.table(table), domain)
    assert len(tried) == 2


def test_lists_are_tried_as_well() -> None:
    domain = Domain({"a": Items(3)})
    for kind in (pa.list_(pa.int64()), pa.list_(pa.decimal256(50, 2)), pa.list_(pa.decimal128(5, -2))):
        rows = pa.table({"a": pa.nulls(2, kind), "u": ["p", "q"]})
        for options in ({}, {"person": "u"}):
            try:
                found = open_rows(rows, domain, **options)
            except DataRefused:
                assert kind != pa.list_(pa.int64())
            else:
                assert found.item_counts("a").tolist() == [0, 0, 0]


def test_spark_runs_no_job_to_try_types(spark: Any) -> None:
    rows = pa.table({"a": [1], "d": [Decimal("1.5")], "t": [datetime.date(1970, 1, 1)], "u": ["p"], "o": [1]})
    frame = spark.createDataFrame(rows)
    domain = Domain({"a": Integers(0, 9), "d": Integers(0, 9, otherwise="clip"), "t": ROLES["date"]})
    spark.sparkContext.setJobGroup("opening", "rows are opened")
    found = open_rows(frame, domain, person="u", order="o", per_person=2)
    assert not spark.sparkContext.statusTracker().getJobIdsForGroup("opening")
    assert found.counts(("a",)).sum() == 1

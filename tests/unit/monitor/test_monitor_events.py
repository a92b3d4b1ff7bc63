"""Reading batches: whatever they are, the same events come out, and no cell ever becomes an error."""

from __future__ import annotations

import datetime
from decimal import Decimal
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

import tacit as tc
from tacit.errors import DataRefused, PlanError
from tacit.monitor.clock import Clock, as_clock
from tacit.monitor.event_cells import identity
from tacit.monitor.events import EventColumns, Events, batch_name, read_events
from tacit.policy.attributes import Categories, Flag, Items

PLACES = Items(["gym", "cafe", "park"])
DAYS = as_clock("2024-03-01", "1 day")
ROWS: dict[str, list[Any]] = {
    "visited": ["gym", "cafe", "gym", "nowhere", "gym"],
    "who": ["a", "b", "a", "c", "d"],
    "time": [3, 3, 4, 4, 5],
}
COLUMNS = EventColumns(PLACES, "visited", person="who")


def lines(events: Events) -> list[tuple[Any, ...]]:
    """Return what was read as (person, place, time, rows), in order."""
    people = [None] * len(events.rows) if events.people is None else [events.names[p] for p in events.people]  # type: ignore[index]
    times = [int(tick) if there else None for tick, there in zip(events.ticks, events.timed, strict=True)]
    return sorted(zip(people, events.places.tolist(), times, events.rows.tolist(), strict=True), key=str)


def as_csv(rows: dict[str, list[Any]], folder: Path, name: str = "batch.csv") -> Path:
    path = folder / name
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def sources(rows: dict[str, list[Any]], folder: Path) -> dict[str, Any]:
    table = pa.table(rows)
    pd.DataFrame(rows).to_parquet(folder / "batch.parquet")
    return {
        "csv": as_csv(rows, folder),
        "parquet": str(folder / "batch.parquet"),
        "pattern": str(folder / "*.parquet"),
        "list of paths": [folder / "batch.parquet"],
        "pandas": pd.DataFrame(rows),
        "pandas objects": pd.DataFrame(rows, dtype=object),
        "polars": pl.DataFrame(rows),
        "polars lazy": pl.LazyFrame(rows),
        "arrow": table,
        "duckdb": duckdb.from_arrow(table),
        "ibis": ibis.memtable(table),
        "records": (dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)),
        "list of records": [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)],
    }


EXPECTED = [("a", 0, 3, 1), ("a", 0, 4, 1), ("b", 1, 3, 1), ("d", 0, 5, 1)]


KINDS = (
    "csv",
    "parquet",
    "pattern",
    "list of paths",
    "pandas",
    "pandas objects",
    "polars",
    "polars lazy",
    "arrow",
    "duckdb",
    "ibis",
    "records",
    "list of records",
)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_batch_reads_alike(kind: str, tmp_path: Path) -> None:
    batch = sources(ROWS, tmp_path)[kind]
    assert lines(read_events(batch, COLUMNS)) == EXPECTED
    assert tuple(sources(ROWS, tmp_path)) == KINDS


@pytest.mark.spark
def test_spark_reads_alike(spark: Any) -> None:
    moments = [datetime.datetime(2024, 3, 2, 12), datetime.datetime(2024, 3, 2, 13)]
    batch = spark.createDataFrame([("gym", "a", moments[0]), ("cafe", "b", moments[1])], ["visited", "who", "time"])
    columns = EventColumns(PLACES, "visited", person="who", clock=DAYS)
    found = lines(read_events(batch, columns, span=(DAYS.tick(0), DAYS.tick(9))))
    assert [line[:2] for line in found] == [("a", 0), ("b", 1)]


def test_only_one_place_is_looked_at() -> None:
    assert lines(read_events(pd.DataFrame(ROWS), COLUMNS, only=1)) == [("b", 1, 3, 1)]


def test_without_person_rows_are_counted() -> None:
    doubled = pd.DataFrame({key: values * 2 for key, values in ROWS.items()})
    columns = EventColumns(PLACES, "visited", time=None)
    assert lines(read_events(doubled, columns)) == [(None, 0, None, 6), (None, 1, None, 2)]
    assert lines(read_events(doubled, columns, only=0)) == [(None, 0, None, 6)]


def test_the_span_cuts_times_but_keeps_rows_without_one() -> None:
    batch = pd.DataFrame({"visited": ["gym"] * 4, "time": pd.array([1, 5, None, 9], dtype="Int64")})
    read = read_events(batch, EventColumns(PLACES, "visited"), only=0, span=(4, 8))
    assert lines(read) == [(None, 0, 5, 1), (None, 0, None, 1)]
    real = pd.DataFrame({"visited": ["gym"] * 3, "time": [1.5, 5.25, float("nan")]})
    assert lines(read_events(real, EventColumns(PLACES, "visited"), only=0, span=(4, 8))) == lines(read)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([datetime.datetime(2024, 3, 2, 12), datetime.datetime(2024, 3, 4)], [1, 3]),
        ([datetime.date(2024, 3, 2), datetime.date(2024, 3, 4)], [1, 3]),
        (pd.to_datetime(["2024-03-02T12:00", "2024-03-04T00:00"]), [1, 3]),
        (pd.to_datetime(["2024-03-02T12:00", "2024-03-04T00:00"]).as_unit("ns"), [1, 3]),
        (pd.to_datetime(["2024-03-02T23:30+00:00", "2024-03-04T00:00+00:00"]).tz_convert("America/New_York"), [1, 3]),
        (["2024-03-02", "2024-03-04T07:15:00"], [1, 3]),
        (["2024-03-02T23:30-02:00", " 2024-03-04 "], [2, 3]),
        (["yesterday", None], [None, None]),
    ],
)
def test_dates_in_any_spelling_have_one_step(cells: Any, expected: list[int | None]) -> None:
    columns = EventColumns(PLACES, "visited", clock=DAYS)
    for batch in (pd.DataFrame({"visited": "gym", "time": cells}), [{"visited": "gym", "time": c} for c in cells]):
        read = read_events(batch, columns, only=0, span=(DAYS.tick(-100), DAYS.tick(100)))
        steps = [
            int(DAYS.step_of(np.array([tick]))[0]) if there else None
            for tick, there, rows in zip(read.ticks, read.timed, read.rows, strict=True)
            for _ in range(rows)
        ]
        assert sorted(steps, key=str) == sorted(expected, key=str)


def test_polars_and_arrow_dates(tmp_path: Path) -> None:
    columns = EventColumns(PLACES, "visited", clock=DAYS)
    moments = [datetime.datetime(2024, 3, 2, 12), datetime.datetime(2024, 3, 2, 13)]
    zoned = [moment.replace(tzinfo=datetime.UTC) for moment in moments]
    for times in (moments, zoned):
        rows = {"visited": ["gym", "gym"], "time": times}
        pl.DataFrame(rows).write_parquet(tmp_path / "dates.parquet")
        for batch in (pl.DataFrame(rows), pa.table(rows), tmp_path / "dates.parquet"):
            read = read_events(batch, columns, only=0, span=(DAYS.tick(0), DAYS.tick(9)))
            assert read.rows.sum() == 2
            assert set(DAYS.step_of(read.ticks).tolist()) == {1}
    paris = pl.DataFrame(rows).with_columns(pl.col("time").dt.convert_time_zone("Europe/Paris"))
    for batch in (paris, paris.to_arrow(), paris.to_pandas()):
        assert set(DAYS.step_of(read_events(batch, columns, only=0, span=(0, 1)).ticks).tolist()) <= {1}


# zoned nanoseconds are no type of DuckDB's that is known here, and refused by name
@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("unit", "zone"),
    [("s", None), ("s", "UTC"), ("ms", None), ("ms", "UTC"), ("us", None), ("us", "UTC"), ("ns", None)],
)
def test_events_keep_their_moment_whatever_its_unit(unit: str, zone: str | None, tmp_path: Path) -> None:
    """Attributes stand for their day; the time of an event does not, on any engine."""
    moments = [datetime.datetime(2024, 3, 2, 11), datetime.datetime(2024, 3, 2, 13)]
    times = pa.array(moments, pa.timestamp("us")).cast(pa.timestamp(unit, zone))
    rows = pa.table({"visited": ["gym", "gym"], "time": times})
    pq.write_table(rows, tmp_path / "events.parquet")
    clock = as_clock("2024-03-02T00:00", "1 hour")
    for batch in (rows, rows.to_pandas(), pl.DataFrame(rows), tmp_path / "events.parquet"):
        read = read_events(batch, EventColumns(PLACES, "visited", clock=clock), only=0)
        assert sorted(clock.step_of(read.ticks).tolist()) == [11, 13]


def test_whole_days_are_cut_in_the_engine_only_where_no_step_is_crossed() -> None:
    """Steps of a day from midnight group by day; steps from noon do not."""
    moments = [datetime.datetime(2024, 3, 2, 11), datetime.datetime(2024, 3, 2, 13)]
    batch = pa.table({"visited": ["gym", "gym"], "time": moments})
    for start, steps in (("2024-03-01", [1]), ("2024-03-01T12:00", [0, 1]), ("2024-03-01T00:30", [1])):
        clock = as_clock(start, "1 day")
        read = read_events(batch, EventColumns(PLACES, "visited", clock=clock), only=0)
        assert sorted(set(clock.step_of(read.ticks).tolist())) == steps
        assert read.rows.sum() == 2


def test_nothing_is_an_empty_batch() -> None:
    for batch in (None, [], iter(())):
        assert len(read_events(batch, COLUMNS).rows) == 0
        assert read_events(batch, COLUMNS, only=0).keys == []


def test_people_are_the_same_in_any_type_of_column(tmp_path: Path) -> None:
    rows = {"visited": ["gym", "gym"], "who": [7, 8]}
    batches = [
        pd.DataFrame(rows),
        pd.DataFrame({**rows, "who": [7.0, 8.0]}),
        pd.DataFrame({**rows, "who": ["7", "8"]}),
        as_csv(rows, tmp_path),
        pl.DataFrame({**rows, "who": pl.Series(["7", "8"], dtype=pl.Categorical)}),
        [{"visited": "gym", "who": 7}, {"visited": "gym", "who": "8"}],
    ]
    for batch in batches:
        assert sorted(read_events(batch, COLUMNS, only=0).names or []) == ["7", "8"]


def test_rows_without_a_person_are_left_out() -> None:
    batch = pd.DataFrame({"visited": ["gym"] * 3, "who": ["a", None, "b"]})
    assert [line[0] for line in lines(read_events(batch, COLUMNS, only=0))] == ["a", "b"]
    real = pd.DataFrame({"visited": ["gym"] * 3, "who": [1.0, float("nan"), 2.5]})
    assert [line[0] for line in lines(read_events(real, COLUMNS, only=0))] == ["1", "2.5"]


def test_events_have_ids_and_rows_without_one_are_counted() -> None:
    columns = EventColumns(PLACES, "visited", event="id")
    batch = pd.DataFrame({"visited": ["gym"] * 5, "id": ["x", "x", "y", None, None]})
    read = read_events(batch, columns, only=0)
    assert sorted(zip(read.keys or [], read.rows.tolist(), strict=True), key=str) == [("x", 2), ("y", 1), (None, 2)]


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("places", "cells", "only", "expected"),
    [
        (Items(10), [3, 4, 3, 99], 3, 2),
        (Items(10), ["3", "4", "3.0", "x"], 3, 2),
        (Items(10, first=5), [5, 14, 15], 0, 1),
        (Categories(["A", "B"], otherwise="B"), ["A", "?", None], 1, 2),
        (Categories(["A", "B"]), ["A", "?", None], 0, 1),
        (Flag(), [True, False, True], 1, 2),
        (Flag(), [1, 0, 2], 1, 1),
        (Flag(), ["true", "0", "1"], 1, 2),
    ],
)
def test_places_are_read_as_the_domain_says(places: Any, cells: list[Any], only: int, expected: int) -> None:
    columns = EventColumns(places, "at", time=None)
    batch = pd.DataFrame({"at": cells})
    assert read_events(batch, columns, only=only).rows.sum() == expected
    every = read_events(batch, columns)
    assert every.rows[every.places == only].sum() == expected
    assert read_events(iter(cells), columns, only=only).rows.sum() == expected  # bare values


@pytest.mark.parametrize(
    ("batch", "columns", "sentence"),
    [
        (pd.DataFrame({"place": ["gym"]}), EventColumns(PLACES, "visited"), "column 'visited' must be a column"),
        (pd.DataFrame({"visited": ["gym"]}), COLUMNS, "column 'who' must be a column of the batch"),
        (pd.DataFrame({"visited": ["gym"]}), EventColumns(PLACES, "visited", time="when"), "column 'when' must be"),
        (pd.DataFrame({"visited": ["gym"], "time": pd.to_datetime(["2024-03-01"])}), EventColumns(PLACES, "visited"),
         "column 'time' holds dates, so the monitor needs a clock with dates"),
        (pd.DataFrame({"visited": ["gym"], "time": [1]}), EventColumns(PLACES, "visited", clock=DAYS),
         "column 'time' holds numbers, but the clock of the monitor has dates"),
        (pa.table({"visited": ["gym"], "time": [[1]]}), EventColumns(PLACES, "visited"),
         "column 'time' must hold whole numbers or dates"),
        (pa.table({"visited": [["gym"]]}), EventColumns(PLACES, "visited"), "must hold texts, numbers or true/false"),
        (pa.table({"visited": ["gym"], "who": [["a"]]}), COLUMNS, "column 'who' must hold one value per row"),
        ("gone.csv", EventColumns(PLACES, "visited"), "file 'gone.csv' must exist"),
        (7, EventColumns(PLACES, "visited"), "rows must be a path"),
    ],
)  # fmt: skip
def test_batches_that_cannot_be_read_are_refused_by_their_columns(batch: Any, columns: Any, sentence: str) -> None:
    with pytest.raises(DataRefused) as refusal:
        read_events(batch, columns, only=0)
    assert sentence in str(refusal.value)
    assert refusal.value.__context__ is None


def test_a_broken_file_says_nothing_about_its_rows(tmp_path: Path) -> None:
    (tmp_path / "broken.csv").write_text('visited,who\ngym,"CANARY\n', encoding="utf-8")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1CANARY")
    for name in ("broken.csv", "broken.parquet"):
        with pytest.raises(DataRefused) as refusal:
            read_events(tmp_path / name, COLUMNS)
        assert "CANARY" not in repr(refusal.value) + str(refusal.value.args)
        assert refusal.value.__context__ is None


def test_a_file_is_the_same_batch_until_it_is_written_anew(tmp_path: Path) -> None:
    path = as_csv(ROWS, tmp_path)
    name = batch_name(path)
    assert name is not None
    assert name == batch_name(str(path)) == batch_name([path])
    as_csv(ROWS, tmp_path)
    assert batch_name(path) != name
    assert batch_name(pd.DataFrame(ROWS)) is None
    assert batch_name(tmp_path / "gone.csv") is None


@pytest.mark.parametrize(
    ("start", "every", "sentence"),
    [
        ("soon", "1 day", "start must be a whole number or a date; got 'soon'"),
        (None, "1 day", "start must be given where a step has a duration"),
        ("2024-03-01", None, "every must say how long a step lasts where times are dates; got None"),
        ("2024-03-01", "1 fortnight", "got '1 fortnight'"),
        ("2024-03-01", "0 days", "got '0 days'"),
        ("2024-03-01", datetime.timedelta(0), "got '0:00:00'"),
        (0, "1 day", "every must be a whole number from 1 where times are numbers; got '1 day'"),
        (0, 0, "every must be a whole number from 1"),
        (10**16, None, "start must lie within"),
        (True, None, "start must be a whole number or a date"),
        (pd.NaT, "1 day", "start must be a whole number or a date"),
    ],
)
def test_clocks_that_mean_nothing_are_refused(start: Any, every: Any, sentence: str) -> None:
    with pytest.raises(PlanError) as refusal:
        as_clock(start, every)
    assert sentence in str(refusal.value)


def test_clocks_tell_steps() -> None:
    assert as_clock(5, 10) == Clock(5, 10)
    assert Clock(5, 10).step_of(np.array([4, 5, 14, 15])).tolist() == [-1, 0, 0, 1]
    hours = as_clock(datetime.datetime(2024, 3, 1, 6), datetime.timedelta(hours=6))
    assert [hours.shown(step) for step in (0, 1)] == ["2024-03-01T06:00:00", "2024-03-01T12:00:00"]
    assert as_clock("2024-03-01T06:00+06:00", "week").shown(1) == "2024-03-08"
    assert as_clock(np.int64(3), None).shown(2) == 5
    assert as_clock("2024-03-01", "1 day").shown(10**9) == "step 1000000000"


SAME = {
    "a number": (1, 1.0, "1", "1.0", "1.00", Decimal("1.00"), np.int8(1)),
    "a fraction": (1.5, "1.5", "1.50", Decimal("1.5")),
    "a negative number": (-2, -2.0, "-2", "-2.0"),
    "nothing": (0, 0.0, -0.0, "0", "0.0", "-0.0"),
    "a large number": (2**53 + 1, str(2**53 + 1), Decimal(2**53 + 1)),
    "true": (True, "True", "true", "TRUE"),
    "a day": (datetime.date(2024, 3, 1), datetime.datetime(2024, 3, 1), "2024-03-01"),
}
OTHERS = ("007", "1e0", " 1", "1,0", "one", "1.0.0", "", float(2**53), "2024-03-01T00:00:00")


def test_an_identity_is_one_whatever_its_type() -> None:
    found = {
        kind: {identity(value.item() if isinstance(value, np.generic) else value) for value in values}
        for kind, values in SAME.items()
    }
    assert all(len(texts) == 1 for texts in found.values()), found
    distinct = [text for texts in found.values() for text in texts] + [identity(other) for other in OTHERS]
    assert len(set(distinct)) == len(distinct)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("kind", "same"),
    [
        pytest.param(kind, same, marks=() if (place + other) % 2 == 0 else pytest.mark.slow)
        for place, same in enumerate(SAME)
        for other, kind in enumerate(["place", "map"])
    ],
)
def test_a_person_is_one_across_batches_of_other_types_files_and_restarts(kind: str, same: str, tmp_path: Path) -> None:
    policy = tc.Policy(tc.Domain({"visited": PLACES}), tc.secrets.values({"visited": [1]}))
    batches: list[Any] = []
    for number, value in enumerate(SAME[same]):
        plain = value.item() if isinstance(value, np.generic) else value
        table = pa.table({"visited": ["gym"], "who": pa.array([plain])})
        pq.write_table(table, tmp_path / f"{number}.parquet")
        written = as_csv({"visited": ["gym"], "who": [plain]}, tmp_path, f"{number}.csv")
        kinds = [
            table,
            tmp_path / f"{number}.parquet",
            [{"visited": "gym", "who": plain}],
            pl.from_arrow(table),
            written,
        ]
        first = number % 4 if isinstance(plain, datetime.datetime) else number % 5
        batches += [kinds[first], kinds[first - 3]] if first != 2 else [kinds[2], kinds[0]]
    options = {"threshold": 1, "epsilon": 50, "person": "who", "visits_per_person": 1, "time": None}
    options |= {"state": tmp_path / "monitor.db"}
    for number, batch in enumerate(batches):
        make = tc.MapMonitor if kind == "map" else tc.PlaceMonitor
        with make(policy, **options, **({} if kind == "map" else {"place": "gym", "window": 1})) as watched:
            watched.feed(batch)
            with watched._journal.transaction() as db:
                people = db.execute("SELECT person, kept FROM private_people").fetchall()
        assert len(people) == 1, (number, people)
        assert people[0][1] == 1

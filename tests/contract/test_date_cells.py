"""One table of timestamps, of every unit with and without a zone, held against whole-number arithmetic on every engine.

A timestamp is a number of steps since 1970, and its day is that number divided by the steps of a day, rounded down:
`Moment` says so with Python's own whole numbers, which have no largest one.
"""

import datetime
import zoneinfo
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import engines
import tacit as tc
from engines import Source, as_parquet, by_the_engine
from parameters import one_in
from tacit.errors import Unread
from tacit.policy.attributes import Dates, Integers
from tacit.policy.domain import Domain
from tacit.rows.cells.number_cells import arrow_date
from tacit.rows.rows import open_rows

STEPS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
LARGEST = 2**63 - 1
EPOCH = datetime.date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class Moment:
    """A number of steps since 1970."""

    steps: int
    unit: str

    @property
    def ordinal(self) -> int:
        """The number of its day, as Python counts days from the year 1."""
        return self.steps // (86_400 * STEPS[self.unit]) + EPOCH

    @property
    def year(self) -> int:
        """Its year; 0 and 10000 stand for all that lie before and after the years that dates may have."""
        if not 1 <= self.ordinal <= datetime.date.max.toordinal():
            return 0 if self.ordinal < 1 else 10_000
        return datetime.date.fromordinal(self.ordinal).year


def at(unit: str, year: int, month: int = 1, day: int = 1, *, less: int = 0) -> int:
    """Return the steps at which a day begins, less some; the calendar repeats every 400 years."""
    back, year = divmod(year - 1, 400)
    days = datetime.date(year + 1, month, day).toordinal() + 146_097 * back - EPOCH
    return days * 86_400 * STEPS[unit] - less


def moments(unit: str) -> list[Moment]:
    """Return what a column of this unit can hold, wherever a day, a year or a number of bits ends."""
    steps = [0, 1, -1, LARGEST, LARGEST - 1, -LARGEST, -LARGEST - 1, 2**62, -(2**62)]
    for year in (1, 1600, 1900, 1969, 1970, 1971, 2024, 2262, 10_000, 30_000, 300_000):
        steps += [at(unit, year), at(unit, year, less=1)]
    steps += [at(unit, 2024, 2, 29), at(unit, 2024, 3, 1, less=1), at(unit, 1900, 3, 1, less=1)]
    return [Moment(one, unit) for one in dict.fromkeys(steps) if -LARGEST - 1 <= one <= LARGEST]


def test_the_definition_is_the_calendar() -> None:
    for unit in STEPS:
        assert Moment(-1, unit).ordinal == datetime.date(1969, 12, 31).toordinal()
        assert Moment(at(unit, 2024), unit).ordinal == datetime.date(2024, 1, 1).toordinal()
        assert Moment(at(unit, 2024, less=1), unit).year == 2023
        assert Moment(at(unit, 2024, 3, 1, less=1), unit).ordinal == datetime.date(2024, 2, 29).toordinal()
    assert (Moment(at("s", 1), "s").year, Moment(at("s", 1, less=1), "s").year) == (1, 0)
    assert (Moment(at("s", 10_000, less=1), "s").year, Moment(at("s", 10_000), "s").year) == (9999, 10_000)
    assert at("s", 300_000) == int(np.datetime64("300000-01-01", "s").astype(np.int64))
    assert Moment(LARGEST, "ns").ordinal == datetime.date(2262, 4, 11).toordinal()


ENGINES: dict[str, Source] = {name: made for name, made in engines.ENGINES.items() if name != "csv"} | {
    "duckdb-table": engines.stored_table
}
KINDS = [
    *(("s", None), ("s", "UTC"), ("ms", None), ("ms", "Asia/Tokyo")),
    *(("us", None), ("us", "America/New_York"), ("ns", None), ("ns", "UTC")),
]
EVERY_OTHER_KIND = [("s", None), ("s", "UTC"), ("ms", "UTC"), ("ns", "UTC")]


def held(engine: str, unit: str, zone: str | None) -> list[Moment | None]:
    """Return the cells of the table that an engine has a place for."""
    found = moments(unit)
    if unit == "s" and engine.startswith(("polars", "parquet")):  # they hold milliseconds
        found = [one for one in found if abs(one.steps) * 1000 <= LARGEST]
    if unit in ("s", "ms") and zone is not None and engine.startswith(("duckdb", "ibis")):  # and these microseconds
        found = [one for one in found if abs(one.steps) * 10**6 // STEPS[unit] <= LARGEST]
    return [*found, None]


def column(cells: list[Moment | None], unit: str, zone: str | None) -> pa.Array:
    return pa.array([None if cell is None else cell.steps for cell in cells], pa.int64()).cast(pa.timestamp(unit, zone))


def expected(cells: list[Moment | None], attribute: Dates, engine: str) -> list[int | None]:
    """Return the position of each cell."""
    first, last = int(attribute.start), int(attribute.end)
    found: list[int | None] = []
    for cell in cells:
        nothing = cell is None or (engine == "pandas" and cell.steps == -LARGEST - 1)  # which numpy calls NaT
        year = None if cell is None or nothing else cell.year
        if year is not None and attribute.otherwise == "clip":
            year = min(max(year, first), last)
        found.append(year - first if year is not None and first <= year <= last else None)
    return found


ATTRIBUTES = [Dates("0001", "9999", by="year"), Dates("0001", "9999", by="year", otherwise="clip")]


@pytest.mark.one_in(16)
@pytest.mark.parametrize(("engine", "kind"), one_in(3, ENGINES, KINDS))
def test_a_timestamp_counts_by_its_day(engine: str, kind: tuple[str, str | None], tmp_path: Path) -> None:
    unit, zone = kind
    cells = held(engine, unit, zone)
    table = pa.table({"i": pa.array(range(len(cells)), pa.int64()), "d": column(cells, unit, zone)})
    frame = ENGINES[engine](table, tmp_path)
    for attribute in ATTRIBUTES:
        counts = open_rows(frame, Domain({"i": Integers(0, len(cells) - 1), "d": attribute})).counts(("i", "d"))
        places = [int(row.argmax()) if row.any() else None for row in counts]
        assert counts.max() == 1
        assert places == expected(cells, attribute, engine), attribute
    assert by_the_engine(frame, ATTRIBUTES[1]) == expected(cells, ATTRIBUTES[1], engine)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("engine", "kind"), one_in(3, ENGINES, EVERY_OTHER_KIND))
def test_moments_are_told_apart_and_sorted_whatever_they_are(
    engine: str, kind: tuple[str, str | None], tmp_path: Path
) -> None:
    unit, zone = kind
    cells = sorted((cell for cell in held(engine, unit, zone) if cell is not None), key=lambda cell: cell.steps)
    cells = [cell for cell in cells if cell.steps != -LARGEST - 1]
    rows = len(cells)
    table = pa.table({"i": pa.array(range(rows), pa.int64()), "u": ["p"] * rows, "o": column([*cells], unit, zone)})
    frame = ENGINES[engine](table.take(np.random.default_rng(5).permutation(rows)), tmp_path)
    domain = Domain({"i": Integers(0, rows - 1)})
    for many in (1, rows - 3):  # few are counted in batches, many by the engine
        first = open_rows(frame, domain, person="u", order="o", per_person=many).counts(("i",))
        assert first.tolist() == [1] * many + [0] * (rows - many)
    assert open_rows(frame, domain, person="o").counts(("i",)).tolist() == [1] * rows


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("engine", "kind"), one_in(2, ENGINES, EVERY_OTHER_KIND))
def test_one_persons_far_date_is_no_reason_to_refuse(engine: str, kind: tuple[str, str | None], tmp_path: Path) -> None:
    unit, zone = kind
    far = [one for one in held(engine, unit, zone) if one is not None and one.year == 10_000]
    cells = [Moment(at(unit, 2023), unit), *(far or [Moment(at(unit, 2200), unit)])]
    frame = ENGINES[engine](pa.table({"d": column([*cells], unit, zone)}), tmp_path)
    domain = tc.Domain({"d": Dates("2022", "2024", by="year", otherwise="clip")})
    session = tc.Session(tc.Policy(domain, tc.secrets.attributes("d")), frame, budget=1)
    session.release(tc.histogram("d"), epsilon=0.5)
    assert open_rows(frame, domain).counts(("d",)).tolist() == [0, 1, len(cells) - 1]


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_moment_that_duckdb_cannot_read_is_refused_before_the_charge(unit: str) -> None:
    """DuckDB makes microseconds of Arrow's moments with a zone, whatever is asked of the column."""
    domain = tc.Domain({"d": Dates("2022", "2024", by="year", otherwise="clip"), "i": Integers(0, 9)})
    policy = tc.Policy(domain, tc.secrets.attributes("d"))
    for far, fails in ((0, False), (2**62 // STEPS["ms"] * STEPS[unit], True)):
        table = pa.table({"d": pa.array([0, far], pa.timestamp(unit, "UTC")), "i": [1, 2]})
        relation = duckdb.connect().from_arrow(table)
        if fails:
            with pytest.raises(Unread, match="the engine could not read the rows"):
                tc.Session(policy, relation, budget=1)
        else:
            assert open_rows(relation, domain).counts(("d",)).tolist() == [2, 0, 0]
        assert open_rows(table, domain).counts(("d",)).sum() == 2
        assert open_rows(relation, Domain({"i": Integers(0, 9)})).counts(()).tolist() == 2


def test_a_cell_that_a_cast_of_the_users_fails_on_gets_no_sentence_of_its_own() -> None:
    """DuckDB raises the same for it as for a far moment of Arrow's: what is said must be true of both."""
    domain = tc.Domain({"i": Integers(0, 9)})
    policy = tc.Policy(domain, tc.secrets.everything(), person="who", order="d")

    def told(table: pa.Table, asked: str) -> str:
        db = duckdb.connect()
        db.register("t", table)
        with pytest.raises(tc.DataRefused) as refused:
            tc.Session(policy, db.sql(f"SELECT i, who, {asked} AS d FROM t"), budget=1)
        return str(refused.value)

    texts = pa.table({"d": ["2020-01-01 00:00:00+00", "hiv"], "i": [1, 2], "who": [1, 2]})
    far = pa.table({"d": pa.array([0, 2**62 // 1000], pa.timestamp("s", "UTC")), "i": [1, 2], "who": [1, 2]})
    said = told(texts, "CAST(d AS TIMESTAMPTZ)")
    assert said == told(far, "d") == str(Unread("the engine could not read the rows"))
    assert "Arrow" not in said


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    "kind", ["DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ_NS"]
)
def test_an_infinite_date_lies_outside_of_every_range(kind: str) -> None:
    cells = ["infinity", "-infinity", "2024-05-01", "1969-12-31"]
    listed = ", ".join(f"({place}, CAST('{cell}' AS {kind}))" for place, cell in enumerate(cells))
    frame = duckdb.sql(f"SELECT * FROM (VALUES {listed}, (4, NULL)) AS cells (i, d)")
    for otherwise, wanted in ((None, [None, None, 54, None, None]), ("clip", [54, 0, 54, 0, None])):
        attribute = Dates("1970", "2024", by="year", otherwise=otherwise)
        counts = open_rows(frame, Domain({"i": Integers(0, 4), "d": attribute})).counts(("i", "d"))
        assert [int(row.argmax()) if row.any() else None for row in counts] == wanted
        assert by_the_engine(frame, attribute) == wanted


def test_a_parquet_file_of_other_writers_counts_alike(tmp_path: Path) -> None:
    days = [datetime.datetime(year, 12, 31, 23, 59, 59, 999_999) for year in (1, 1599, 1969, 2023, 9999)]
    table = pa.table({"i": pa.array(range(6), pa.int64()), "d": pa.array([*days, None], pa.timestamp("us"))})
    frame = as_parquet(table, tmp_path, use_deprecated_int96_timestamps=True)  # Arrow would read nanoseconds
    wanted = [0, 1598, 1968, 2022, 9998]
    assert np.flatnonzero(open_rows(frame, Domain({"d": ATTRIBUTES[0]})).counts(("d",))).tolist() == wanted
    assert by_the_engine(frame, ATTRIBUTES[0]) == [*wanted, None]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("statistics", [True, False])
def test_a_far_date_in_a_parquet_file_hides_no_other_column(statistics: bool, tmp_path: Path) -> None:
    far = pa.array([0, 2**62, None], pa.int64()).cast(pa.timestamp("ms", "UTC"))
    table = pa.table({"d": far, "i": [0, 1, 1], "set": [["a"], ["a", "b"], []], "u": ["p", "q", "r"]})
    frame = as_parquet(table, tmp_path, write_statistics=statistics)
    items = tc.Items(["a", "b"])
    assert open_rows(frame, Domain({"i": Integers(0, 1)})).counts(("i",)).tolist() == [1, 2]
    assert open_rows(frame, Domain({"set": items})).item_counts("set").tolist() == [2, 1]
    both = Domain({"d": Dates("1970", "2024", by="year", otherwise="clip"), "set": items})
    for person in (None, "u", "d"):
        assert open_rows(frame, both, person=person).item_counts("set").tolist() == [2, 1]
    assert open_rows(frame, both, person="u", order="d").item_counts("set").tolist() == [2, 1]
    pq.write_table(table.select(["u", "i", "d", "set"]), tmp_path / "more.parquet", write_statistics=statistics)
    assert open_rows(tmp_path / "*.parquet", both).item_counts("set").tolist() == [4, 2]
    alike = pa.table([far, far, table["i"]], names=["d", "D", "i"])
    frame = as_parquet(alike, tmp_path, write_statistics=statistics)
    assert open_rows(frame, Domain({"i": Integers(0, 1)})).counts(("i",)).tolist() == [1, 2]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("engine", ["pyarrow", "polars", "polars-lazy", "parquet", "duckdb", "ibis"])
def test_every_day_that_a_date_can_be(engine: str, tmp_path: Path) -> None:
    days = [-(2**31), 1 - 2**31, -(10**8), -719_163, -719_162, -1, 0, 2_932_896, 2_932_897, 10**8, 2**31 - 1]
    table = pa.table({"i": pa.array(range(len(days)), pa.int64()), "d": pa.array(days, pa.int32()).cast(pa.date32())})
    frame, attribute = ENGINES[engine](table, tmp_path), Dates("0001", "9999", by="year", otherwise="clip")
    wanted = [0, 0, 0, 0, 0, 1968, 1969, 9998, 9998, 9998, 9998]
    assert by_the_engine(frame, attribute) == wanted
    inside = open_rows(frame, Domain({"d": Dates("0001", "9999", by="year")})).counts(("d",))
    assert np.flatnonzero(inside).tolist() == [0, 1968, 1969, 9998]


def test_milliseconds_of_dates_are_rounded_down() -> None:
    cells = pa.array([-1, 0, 1, 86_399_999, -86_400_000, LARGEST, -LARGEST - 1, None], pa.int64()).cast(pa.date64())
    days = arrow_date(cells).cast(pa.int32()).to_pylist()
    assert days == [-1, 0, 0, 0, -1, 2_932_897, -719_163, None]


BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
OBJECTS = [
    (np.datetime64("2024-05-01"), "2024-05-01"),
    (np.datetime64("2024-05-01", "W"), "2024-04-25"),
    *((np.datetime64("2024-05-01T23", unit), "2024-05-01") for unit in ("h", "m", "s", "ms", "us", "ns")),
    *((np.datetime64(-1, unit), "1969-12-31") for unit in ("h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")),
    (np.datetime64("2023-12-31T23:59:59.999999999"), "2023-12-31"),
    (np.datetime64("NaT", "s"), None),
    (np.datetime64("300000-01-01"), None),  # as its spelling in a CSV
    (np.datetime64(LARGEST, "s"), None),
    (datetime.datetime(1890, 1, 1, 0, 53, 27, tzinfo=BERLIN), "1889-12-31"),
    (datetime.datetime(1890, 1, 1, 0, 53, 28, tzinfo=BERLIN), "1890-01-01"),
    (pd.Timestamp("1890-01-01 00:53:27.999999", tz=BERLIN), "1889-12-31"),
    (pd.Timestamp("1890-01-01 00:53:28", tz=BERLIN), "1890-01-01"),
    (datetime.datetime(1850, 12, 31, 19, 3, 57, tzinfo=zoneinfo.ZoneInfo("America/New_York")), "1850-12-31"),
    (datetime.datetime(1850, 12, 31, 19, 3, 58, tzinfo=zoneinfo.ZoneInfo("America/New_York")), "1851-01-01"),
    (datetime.datetime(2024, 5, 1, 0, 30, tzinfo=BERLIN), "2024-04-30"),
    (pd.Timestamp("2024-05-01 23:59:59.999999999"), "2024-05-01"),
    (pd.NaT, None),
]


def test_an_object_counts_by_the_day_that_it_is() -> None:
    cells = pd.Series([cell for cell, _ in OBJECTS], dtype=object)
    frame = pd.DataFrame({"i": range(len(cells)), "d": cells})
    attribute = Dates("1850-01-01", "2030-12-31")
    counts = open_rows(frame, Domain({"i": Integers(0, len(cells) - 1), "d": attribute})).counts(("i", "d"))
    found = [attribute.value(int(row.argmax())) if row.any() else None for row in counts]
    assert found == [day for _, day in OBJECTS]


@pytest.mark.spark
def test_spark_counts_a_timestamp_by_its_day(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    spark = request.getfixturevalue("spark")
    cells: list[Moment | None] = [*moments("us"), None]
    steps = column(cells, "us", None)
    table = pa.table({"i": range(len(cells)), "d": steps.cast(pa.timestamp("us", "UTC")), "n": steps})
    frame = spark.read.parquet(str(as_parquet(table, tmp_path)))
    assert dict(frame.dtypes) == {"i": "bigint", "d": "timestamp", "n": "timestamp_ntz"}
    wanted = expected(cells, ATTRIBUTES[1], "spark")
    for name in ("d", "n"):
        assert by_the_engine(frame.selectExpr("i", f"{name} AS d"), ATTRIBUTES[1]) == wanted

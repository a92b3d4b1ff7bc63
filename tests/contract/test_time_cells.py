"""One table of odd moments, whose times are the same on every engine and those of Python's own clocks.

Clocks are set back and forth in Berlin and New York, days leap, moments are of every unit, with and without a zone, or
texts. The oracle asks `zoneinfo` for each moment; the package asks it only when offsets change.
"""

import datetime
import zoneinfo
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import engines
import tacit as tc
from engines import Source, as_csv, by_the_engine
from parameters import one_in
from tacit.policy.attributes import Times
from tacit.policy.domain import Domain
from tacit.rows.rows import open_rows

STEPS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
EPOCH = datetime.datetime(1970, 1, 1)
ODD = [
    *("2024-03-31T00:59:59.999999999", "2024-03-31T01:00", "2024-03-31T01:30"),  # Berlin, spring
    *("2024-10-26T23:59:59", "2024-10-27T00:00", "2024-10-27T00:59", "2024-10-27T01:00", "2024-10-27T02:00"),  # autumn
    *(
        "2024-03-10T06:59:59",
        "2024-03-10T07:00",
        "2024-11-03T05:15",
        "2024-11-03T06:15",
        "2024-11-03T06:59",
    ),  # New York
    *("2024-02-28T23:59:59.999999", "2024-02-29T00:00", "2024-02-29T23:59:59.000000001", "2024-03-01T00:00"),
    *("2023-12-31T22:59", "2023-12-31T23:00", "2024-01-01T00:00", "2024-01-01T05:00", "2024-12-31T23:59:59.999999999"),
    *("2025-01-01T00:00", "1969-12-31T23:59:59.999999999", "1970-01-01T00:00", "1677-09-22T00:00", "2262-04-11T00:00"),
]
INSTANTS = [
    (int(np.datetime64(one, "s").astype(int)), int(np.datetime64(one, "ns").astype(int)) % 10**9) for one in ODD
]
TEXTS = [
    *(one[:26] for one in ODD),
    *(
        "2024-03-31T02:30",
        "2024-10-27 02:30",
        "2024-10-27T02:30+02:00",
        "2024-10-27T02:30:59.9+0100",
        "2024-03-31T02:30Z",
    ),
    *("2024-02-29 23:59:59-12", "2024-02-29", "2024-12-31 23:59", "2024-06-01T12:00+05:45", "2024-11-03 01:30-04:00"),
]
NONSENSE = [
    *(
        "",
        "nonsense",
        "2024-02-30T10:00",
        "2024-03-31T24:00",
        "2024-03-31T02:60",
        "2024-03-31T2:30",
        "2024-03-31T02",
        "+",
    ),
    *("2024-03-31T02:30 +02:00", "2024-03-31T02:30\n", "31.03.2024 02:30", "1711846800", "2024-03-31T02:30+99:00", "Z"),
]
ATTRIBUTES = [
    Times("2024-01-01", "2024-12-31", zone="Europe/Berlin"),
    Times("2024-02-28T06:00", "2024-11-03T01:30", step="15 minutes", zone="America/New_York", otherwise="clip"),
    Times("2024-01-01T00:20", "2024-12-31", step="100 minutes", otherwise="2024-01-01T00:20"),
    Times("1890-01-01", "2100-01-01", step="7 days", zone="Europe/Berlin", otherwise="clip"),
    Times("2024-02-29T23:59", "2024-03-01T03:00", step="second", zone="Asia/Kathmandu"),
]
ENGINES: dict[str, Source] = {name: made for name, made in engines.ENGINES.items() if name != "csv"} | {
    "duckdb-table": engines.stored_table
}
KINDS = [("s", None), ("ms", "Asia/Tokyo"), ("us", "America/New_York"), ("ns", "UTC"), ("ns", None), ("us", None)]


def place(moment: datetime.datetime | None, attribute: Times) -> int | None:
    """Return the position of a moment; one that knows its offset is an instant."""
    if moment is not None and moment.tzinfo is not None:
        zone = attribute.zone
        moment = None if zone is None else moment.astimezone(zoneinfo.ZoneInfo(zone)).replace(tzinfo=None)
    otherwise = attribute.otherwise
    usual = None if otherwise in (None, "clip") else attribute.position(otherwise)
    if moment is None:
        return usual
    many, unit = [*attribute.step.split(), ""][:2] if " " in attribute.step else ["1", attribute.step + "s"]
    start = datetime.datetime.fromisoformat(attribute.start)
    found = (moment - start) // datetime.timedelta(**{unit: int(many)})
    if otherwise == "clip":
        return min(max(found, 0), attribute.size - 1)
    return found if 0 <= found < attribute.size else usual


def instant(second: int, zone: str | None) -> datetime.datetime:
    found = EPOCH + datetime.timedelta(seconds=second)
    return found if zone is None else found.replace(tzinfo=datetime.UTC)


def column(unit: str, zone: str | None) -> pa.Array:
    steps = [second * STEPS[unit] + rest * STEPS[unit] // 10**9 for second, rest in INSTANTS]
    return pa.array([*steps, None], pa.int64()).cast(pa.timestamp(unit, zone))


@cache
def expected(attribute: Times, zone: str | None) -> list[int | None]:
    return [place(None if second is None else instant(second, zone), attribute) for second, _ in [*INSTANTS, (None, 0)]]


def checked(frame: Any, attribute: Times, wanted: list[int | None]) -> None:
    """Count rows in batches, and let the engine compute the same."""
    assert by_the_engine(frame, attribute) == wanted, attribute
    counts = open_rows(frame, Domain({"d": attribute})).counts(("d",))
    found = np.bincount([one for one in wanted if one is not None], minlength=attribute.size)
    assert np.array_equal(counts, found), attribute


@pytest.mark.one_in(10)
@pytest.mark.parametrize(("engine", "kind"), one_in(3, ENGINES, KINDS))
def test_timestamps_have_the_times_of_their_zone(engine: str, kind: tuple[str, str | None], tmp_path: Path) -> None:
    rows = len(INSTANTS) + 1
    frame = ENGINES[engine](pa.table({"i": pa.array(range(rows), pa.int64()), "d": column(*kind)}), tmp_path)
    for attribute in ATTRIBUTES:
        if kind[1] is not None and attribute.zone is None:
            with pytest.raises(tc.DataRefused, match="with a time zone, and no zone is declared"):
                open_rows(frame, Domain({"d": attribute}))
        else:
            checked(frame, attribute, expected(attribute, kind[1]))


@pytest.mark.parametrize("engine", ["csv", "parquet", "pandas", "polars-lazy", "duckdb"])
def test_texts_are_times_if_they_follow_iso_8601(engine: str, tmp_path: Path) -> None:
    table = pa.table({"i": range(len(TEXTS) + len(NONSENSE)), "d": TEXTS + NONSENSE})
    frame = {**ENGINES, "csv": as_csv}[engine](table, tmp_path)
    for attribute in ATTRIBUTES:
        wanted = [place(datetime.datetime.fromisoformat(one), attribute) for one in TEXTS]
        checked(frame, attribute, [*wanted, *[place(None, attribute)] * len(NONSENSE)])


def test_texts_may_be_written_in_another_form() -> None:
    cells = ["27.10.2024 02:30", "27.10.2024 01:30+00:00", "27.10.2024T01:30Z", "2024-10-27 02:30", "27.10.2024 2:30"]
    frame = tc.Written(pd.DataFrame({"d": cells}), format="DD.MM.YYYY")
    berlin, plain = (Times("2024-10-27", "2024-10-27", zone=zone) for zone in ("Europe/Berlin", None))
    assert open_rows(frame, Domain({"d": berlin})).counts(("d",)).tolist() == [0, 0, 4, *[0] * 21]
    assert open_rows(frame, Domain({"d": plain})).counts(("d",)).tolist() == [0, 0, 2, *[0] * 21]


def test_objects_are_the_times_that_they_are() -> None:
    new_york = zoneinfo.ZoneInfo("America/New_York")
    cells = [
        *(datetime.datetime(2024, 11, 3, 1, 30, tzinfo=new_york, fold=fold) for fold in (0, 1)),
        *(pd.Timestamp("2024-11-03 01:30"), datetime.date(2024, 11, 3), np.datetime64("2024-11-03T01:59:59.9", "ns")),
        *(pd.Timestamp("2024-11-03 06:30:00.000000001", tz="UTC"), pd.NaT, None, 1730611800),
    ]
    attribute = Times("2024-11-03", "2024-11-03", zone="America/New_York")
    counts = open_rows(pd.DataFrame({"d": pd.Series(cells, dtype=object)}), Domain({"d": attribute})).counts(("d",))
    assert counts.tolist() == [1, 5, *[0] * 22]


def test_the_check_of_rows_tells_apart_what_is_no_time() -> None:
    cells = ["2024-10-27T01:30Z", "2024-10-27 02:30", "2024-10-26T23:59", "2024-10-28", "27.10.2024 02:30", "now", None]
    frame = pd.DataFrame({"d": cells})
    found = []
    for zone in (None, "Europe/Berlin"):
        policy = tc.Policy(tc.Domain({"d": Times("2024-10-27", "2024-10-27", zone=zone)}), tc.secrets.everything())
        (check,) = tc.check_rows(policy, frame).columns
        found.append(check)
    others = {"form": 1, "not a time": 1, "missing": 1, "before": 1, "after": 1}
    assert [one.unexpected for one in found] == [others | {"offset": 1}, others]
    assert "whose clocks tell the time, for instance `zone: Europe/Berlin`" in found[0].remedy


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (pa.array([1730611800]), "must hold timestamps, or texts such as 2024-05-01T14:05. Make timestamps first"),
        (pa.array([datetime.date(2024, 1, 1)]), r"Declare \{dates: \[from, to\]\}"),
        (pa.array([1], pa.timestamp("s", "UTC")), "Declare the zone, for instance zone: Europe/Berlin, or zone: UTC"),
    ],
)
def test_columns_are_refused_by_their_type_alone(cells: pa.Array, said: str) -> None:
    for table in (pa.table({"d": cells}), pa.table({"d": cells}).slice(0, 0)):
        with pytest.raises(tc.DataRefused, match=said):
            open_rows(table, Domain({"d": Times("2024-01-01", "2024-12-31")}))


def test_offsets_are_those_of_every_moment() -> None:
    for zone in (
        "Europe/Berlin",
        "America/New_York",
        "Africa/Casablanca",
        "Australia/Lord_Howe",
        "Asia/Kathmandu",
        "UTC",
    ):
        attribute, clock = Times("1950-01-01", "2040-12-31", step="day", zone=zone), zoneinfo.ZoneInfo(zone)
        starts = [start for start, _ in attribute.offsets]
        around = [second + more for second in starts[1:] for more in (-1, 0)]
        for second in (*around, *range(starts[0], attribute.first + attribute.size * 86_400, 1_000_003)):
            offset = attribute.offsets[int(np.searchsorted(starts, second, side="right")) - 1][1]
            found = datetime.datetime.fromtimestamp(second, datetime.UTC).astimezone(clock).utcoffset()
            assert found == datetime.timedelta(seconds=offset), (zone, second)


@pytest.mark.spark
def test_spark_has_the_same_times(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    spark, rows = request.getfixturevalue("spark"), len(INSTANTS) + 1
    steps = column("us", None)
    table = pa.table({"i": range(rows), "d": steps.cast(pa.timestamp("us", "UTC")), "n": steps})
    frame = spark.read.parquet(str(engines.as_parquet(table, tmp_path)))
    texts = pa.table({"i": range(len(TEXTS) + len(NONSENSE)), "d": TEXTS + NONSENSE})
    written = spark.createDataFrame(texts)
    for attribute in ATTRIBUTES[1:3]:  # each is three jobs
        if attribute.zone is not None:
            assert by_the_engine(frame, attribute) == expected(attribute, "UTC")
        assert by_the_engine(frame.selectExpr("i", "n AS d"), attribute) == expected(attribute, None)
        wanted = [place(datetime.datetime.fromisoformat(one), attribute) for one in TEXTS]
        assert by_the_engine(written, attribute) == [*wanted, *[place(None, attribute)] * len(NONSENSE)]

"""What names a row has one spelling: on every engine, in every type, and one coin for whoever has that name."""

from __future__ import annotations

import datetime
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import tacit as tc
from tacit.rows.row_names import name_of

KEY = bytes(32)
POLICY = tc.Policy(
    tc.Domain({"seat": tc.Categories(["s", "o", "p"])}), tc.secrets.attributes("seat", where="seat == 's'")
)
QUESTION = tc.true_records("seat", key="id")


def sources(cells, folder):
    """Yield one table in every engine."""
    table = pa.table({"id": cells, "seat": ["o"] * len(cells)})
    pq.write_table(table, folder / "rows.parquet")
    table.to_pandas().to_csv(folder / "pandas.csv", index=False)
    pyarrow.csv.write_csv(table, folder / "arrow.csv")
    relation = duckdb.connect().from_arrow(table)
    relation.write_csv(str(folder / "duckdb.csv"))
    yield "pandas", table.to_pandas()
    yield "polars", pl.from_arrow(table)
    yield "lazy", pl.from_arrow(table).lazy()
    yield "pyarrow", table
    yield "duckdb", relation
    for name in ("rows.parquet", "pandas.csv", "arrow.csv", "duckdb.csv"):
        yield name, folder / name


def released(rows):
    """Return what is shown with one secret: by name, the coins."""
    with tc.noise.replayed(tc.noise.Keystream(key=KEY)):
        record = tc.Session(POLICY, rows, budget=5).release(QUESTION, epsilon=1)
    return dict(zip(*record.columns().values(), strict=True))


SNOWFLAKES = [1_700_000_000_000_000_000 + 7 * at for at in range(40)]
DAYS = [datetime.datetime(2024, 1, 5) + datetime.timedelta(days=at) for at in range(40)]
HOUR = datetime.timedelta(hours=1)
BERLIN = pa.timestamp("us", tz="Europe/Berlin")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("cells", "names"),
    [
        (pa.array([-at for at in SNOWFLAKES]), [-at for at in SNOWFLAKES]),
        (pa.array([2**64 - 1 - at for at in range(40)], pa.uint64()), [str(2**64 - 1 - at) for at in range(40)]),
        (pa.array([Decimal(10**30 + at) for at in range(40)]), [str(10**30 + at) for at in range(40)]),
        (pa.array([Decimal(at).scaleb(-2) * 100 for at in range(40)], pa.decimal128(10, 2)), list(range(40))),
        (pa.array([-float(at) for at in range(40)]), [-at for at in range(40)]),
        (pa.array([f"{at:03}" for at in range(40)]).dictionary_encode(), list(range(40))),
        (pa.array([f" e\u0301{at} " for at in range(40)]), [f"\u00e9{at}" for at in range(40)]),
        (pa.array([day.date() for day in DAYS]), [str(day.date()) for day in DAYS]),
        (pa.array(DAYS, pa.timestamp("ms")), [str(day.date()) for day in DAYS]),
        # midnight in Berlin is still the day before in UTC
        (pa.array([day - HOUR for day in DAYS], BERLIN), [str((day - HOUR).date()) for day in DAYS]),
    ],
    ids=["19 digits", "unsigned", "31 digits", "decimals", "floats", "zeros", "accents", "dates", "moments", "zones"],
)
def test_every_engine_and_type_has_the_same_names_and_coins(cells, names, tmp_path):
    found = {name: released(rows) for name, rows in sources(cells, tmp_path)}
    found["text"] = released(pd.DataFrame({"id": [str(name) for name in names], "seat": "o"}))
    assert {name for name, shown in found.items() if shown != found["text"]} == set()
    assert set(found["text"]) == set(names)
    assert len(set(found["text"].values())) == 2  # some are shown and some are not


def test_spark_has_the_same_names_and_coins_in_every_type(spark):
    """All types in one key, since every release is a job of its own."""
    cells = {
        "long": (pa.array(SNOWFLAKES), SNOWFLAKES),
        "exact": (pa.array([Decimal(10**30 + at) for at in range(40)]), [str(10**30 + at) for at in range(40)]),
        "cents": (pa.array([Decimal(at) for at in range(40)], pa.decimal128(10, 2)), list(range(40))),
        "float": (pa.array([-float(at) for at in range(40)]), [-at for at in range(40)]),
        "zeros": (pa.array([f" {at:03}" for at in range(40)]), list(range(40))),
        "accent": (pa.array([f"e\u0301{at}" for at in range(40)]), [f"\u00e9{at}" for at in range(40)]),
        "day": (pa.array([day.date() for day in DAYS]), [str(day.date()) for day in DAYS]),
        "moment": (pa.array(DAYS, pa.timestamp("us")), [str(day.date()) for day in DAYS]),
        "zone": (pa.array([day - HOUR for day in DAYS], BERLIN), [str((day - HOUR).date()) for day in DAYS]),
    }
    table = pa.table({name: column for name, (column, _) in cells.items()} | {"seat": ["o"] * 40})
    texts = pd.DataFrame({name: [str(one) for one in names] for name, (_, names) in cells.items()} | {"seat": "o"})
    question = tc.true_records("seat", key=list(cells))
    found = []
    for rows in (spark.createDataFrame(table), texts, table):
        with tc.noise.replayed(tc.noise.Keystream(key=KEY)):
            found.append(tc.Session(POLICY, rows, budget=5).release(question, epsilon=1).columns())
    of_spark, of_texts, of_arrow = ({name: list(column) for name, column in one.items()} for one in found)
    assert of_spark == of_texts == of_arrow
    assert {name: of_spark[name] for name in cells} == {name: names for name, (_, names) in cells.items()}
    assert len(set(of_spark["seat"])) == 2


SPELLINGS = [
    (7, 7.0, "7", "007", "+7", "7.", "7.000", " 7\u00a0", "7e+00", "0.7E1", "70e-1", Decimal("7.0")),
    (0, -0.0, "-0", "0.0", "-.0", "+000"),
    (SNOWFLAKES[1], str(SNOWFLAKES[1]), f"0{SNOWFLAKES[1]}.0", Decimal(SNOWFLAKES[1])),
    ("1" + 5000 * "0", "01" + 5000 * "0" + ".00"),
    ("2.1", "2.10", "02.1", "+2.100", "21e-1"),
    ("2.01", "0201.0e-2"),
    (datetime.date(2024, 1, 5), datetime.datetime(2024, 1, 5, 17), "2024-01-05", "2024-01-05T00:00:00.000",
     "2024-01-05 17:30Z",
     "2024-01-05 00:30-0100", "2024-01-06 00:30+01", "2024-01-06 00:30:00 +01:00"),
    ("10:30", "10:30:00", "10:30:00.000000"),
    ("true", "True", "TRUE"),
    ("caf\u00e9", "cafe\u0301"),
    ("B7", "\ufeffB7", "B\u200b7 \u200e"),
    ("b7",),
    ("B 7",),
    ("12e4",),  # an id: no program writes 120000 so
    (120000, "1.2e+05", "1.2E5"),
    ("2024-13-01",),
    ("1-2",),
    ("-",),
    (".",),
    ("nan",),
]  # fmt: skip


def test_spellings_of_one_name_are_one_and_no_others():
    found = [{name_of(cell) for cell in cells} for cells in SPELLINGS]
    assert [names for names in found if len(names) > 1] == []
    assert len(set().union(*found)) == len(SPELLINGS)
    for (name,) in found:
        assert name_of(name) == name_of(str(name)) == name  # so a name that was shown can be read again


@pytest.mark.parametrize(("one", "other"), [("7", "7.0"), ("2.1", "2.10"), ("caf\u00e9", "cafe\u0301"), ("a", "a ")])
def test_two_spellings_of_one_key_in_a_table_are_refused(one, other, tmp_path):
    rows = pd.DataFrame({"id": [one, "x", other], "seat": "o"})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    for source in (rows, pl.from_pandas(rows).lazy(), tmp_path / "rows.csv"):
        with pytest.raises(tc.DataRefused, match="a key is there twice"):
            released(source)


def test_a_name_that_is_no_whole_number_is_shown_as_it_is_written():
    rooms = pd.DataFrame({"id": ["2.10", "2.20", "x"], "seat": "o"})
    shorter = rooms.assign(id=["2.1", "2.2", "x"])
    assert list(released(rooms)) == ["2.10", "2.20", "x"]
    assert list(released(rooms).values()) == list(released(shorter).values())


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (pa.array([1.7e18, 3.0]), "floats that are too large"),
        (pa.array([2.0**24, 3.0], pa.float32()), "floats that are too large"),
        (pa.array(["1.7e+18", "3"]), "floats that are too large"),
        (pa.array([1.5, 3.0]), "must hold whole numbers"),
        (pa.array([True, False]), "must hold whole numbers"),
        (pa.array([float("nan"), 3.0]), "must have a value in every row"),
        (pa.array(["\u00a0", "3"]), "must have a value in every row"),
    ],
    ids=str,
)
def test_what_has_no_one_name_is_refused(cells, says):
    table = pa.table({"id": cells, "seat": ["o", "o"]})
    for rows in (table, table.to_pandas(), pl.from_arrow(table).lazy()):
        with pytest.raises(tc.DataRefused, match=says):
            released(rows)

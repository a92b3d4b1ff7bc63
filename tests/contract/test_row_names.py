"""What names a row has one spelling: on every engine, in every type, and one coin for whoever has that name."""

import datetime
import unicodedata
import uuid
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import tacit as tc
from tacit.rows.cells.row_names import name_of, not_a_day, person_name, unseen_sign

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
CLOCKS = [datetime.time(10, at, at % 2) for at in range(40)]
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
        (pa.array(CLOCKS, pa.time64("us")), [str(one) for one in CLOCKS]),
        (pa.array(CLOCKS, pa.time64("ns")), [str(one) for one in CLOCKS]),
    ],
    ids=[
        *("19 digits", "unsigned", "31 digits", "decimals", "floats", "zeros", "accents", "dates"),
        *("moments", "times", "fine times"),
    ],
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
    }
    table = pa.table({name: column for name, (column, _) in cells.items()} | {"seat": ["o"] * 40})
    texts = pd.DataFrame({name: [str(one) for one in names] for name, (_, names) in cells.items()} | {"seat": "o"})
    question = tc.true_records("seat", key=list(cells))
    found = []
    in_spark = spark.createDataFrame(table)
    in_spark = in_spark.withColumn("moment", in_spark["moment"].cast("timestamp_ntz"))  # else it has a zone
    for rows in (in_spark, texts, table):
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
    (datetime.date(2024, 1, 5), datetime.datetime(2024, 1, 5), "2024-01-05", "2024-01-05T00:00:00.000",
     "2024-01-05 00:00"),
    ("10:30", "10:30:00", "10:30:00.000000", datetime.time(10, 30)),
    ("true", "True", "TRUE"),
    ("caf\u00e9", "cafe\u0301", "CAF\u00c9"),
    ("B7", "b7", "\uff22\uff17", "\ufeffB7", "B\u200b7 \u200e"),  # of full width
    ("stra\u00dfe", "STRASSE", "Stra\u1e9ee"),
    ("\u0131\u015f\u0131k", "I\u015eIK", "\u0130\u015fik"),  # upper and lower case of programs that know no Turkish
    ("B 7", "b\u00a07"),
    ("12e4", "12E4"),  # an id: no program writes 120000 so
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


def test_case_and_form_of_no_letter_matter():
    letters = [chr(at) for at in (*range(0x2FFF), *range(0xFB00, 0xFFF0), *range(0x10400, 0x10450)) if at % 7 < 2]
    for one in (f"x{letter}x" for letter in letters):
        others = (one.upper(), one.lower(), one.casefold(), unicodedata.normalize("NFD", one), one.swapcase())
        name = name_of(one)
        assert {name_of(other) for other in others} == {name if name is unseen_sign else name_of(name)}


# Unicode's Default_Ignorable_Code_Point (DerivedCoreProperties.txt), and control characters that are no white space
IGNORABLE = [(0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)]
IGNORABLE += [(0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F)]
IGNORABLE += [(0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A)]
IGNORABLE += [(0xE0000, 0xE0FFF), (0, 8), (0xE, 0x1F), (0x7F, 0x84), (0x86, 0x9F)]


def test_no_sign_that_nobody_sees_tells_two_names_apart():
    signs = [chr(at) for first, last in IGNORABLE for at in range(first, last + 1)]
    assert len(signs) > 4000
    for sign in signs:
        for one, plain in ((f"Ann{sign}", "ann"), (f"A{sign}nn", "ann"), (f"{sign}07", 7)):
            assert name_of(one) in (plain, unseen_sign), hex(ord(sign))
            assert person_name(one) == str(plain), hex(ord(sign))


@pytest.mark.parametrize("sign", ["\ufe0f", "\u034f", "\u3164", "\u180b", "\x01"])
def test_a_key_with_such_a_sign_is_refused_on_every_engine(sign, tmp_path):
    cells = [f"Person {at}{sign}" for at in range(3)]
    for _, rows in sources(cells, tmp_path):
        with pytest.raises(tc.DataRefused, match="signs that nobody sees"):
            released(rows)


MOMENTS = [
    datetime.datetime(2024, 1, 5, 17),
    datetime.datetime(2024, 1, 5, 0, 0, 0, 1),
    datetime.datetime(2024, 1, 5, tzinfo=datetime.UTC),
    datetime.time(10, 30, tzinfo=datetime.UTC),
    *("2024-01-05 17:30", "2024-01-05T00:00:00.001", "2024-01-05 24:00", "2024-01-05 12:00 AM"),
    *("2024-01-05T00:00Z", "2024-01-05t00:00z", "2024-01-05 00:00-0100", "2024-01-05 00:00:00 +01:00"),
    *("2024-01-05 00:00:00+00:53:28", "2024-01-05 00:00 UTC", "2024-01-05T00:00+01:00[Europe/Berlin]", "10:30+01"),
]


@pytest.mark.parametrize("cell", MOMENTS, ids=str)
def test_a_moment_that_is_no_day_names_nobody(cell):
    assert name_of(cell) is not_a_day


def refused(rows, policy=POLICY):
    """Return what is said of rows, and what was charged for them."""
    session = tc.Session(policy, rows, budget=5)
    with pytest.raises(tc.DataRefused) as said:
        session.release(QUESTION, epsilon=1)
    return str(said.value), 5 - session.remaining


BY_DATE = tc.Policy(
    tc.Domain({"id": tc.Dates("2024-01-01", "2024-12-31", by="month"), "seat": POLICY.domain["seat"]}),
    tc.secrets.attributes("seat", where="seat == 's'"),
)


@pytest.mark.parametrize("policy", [POLICY, BY_DATE], ids=["column", "attribute"])
def test_moments_of_a_zone_are_refused_as_keys_before_they_are_charged(policy, tmp_path):
    for name, rows in sources(pa.array(DAYS, BERLIN), tmp_path):
        said, charged = refused(rows, policy)
        if name.endswith(".csv"):  # every column is text
            assert said.startswith("column 'id' must hold dates, or moments at midnight without a time zone")
        else:
            assert said.startswith("column 'id' must not hold moments of a time zone")
            assert charged == 0, name


@pytest.mark.one_in(4)
@pytest.mark.parametrize("policy", [POLICY, BY_DATE], ids=["column", "attribute"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_that_are_no_day_are_refused_as_keys(policy, unit, tmp_path):
    late = [*DAYS[:-1], DAYS[-1] + datetime.timedelta(hours=21)]
    found = dict(sources(pa.array(late, pa.timestamp(unit)), tmp_path))
    found["objects"] = pd.DataFrame({"id": pd.Series(late, dtype=object), "seat": "o"})
    assert {name for name, rows in found.items() if not refused(rows, policy)[0].startswith(
        "column 'id' must hold dates, or moments at midnight without a time zone")} == set()  # fmt: skip


@pytest.mark.spark
def test_spark_names_rows_by_days_alone(request):
    spark = request.getfixturevalue("spark")
    moment = "timestamp '2024-01-05 00:00:00' + make_interval(0, 0, 0, cast(id as int))"
    rows = spark.range(5).selectExpr("'o' as seat", f"{moment} as zoned", f"cast({moment} as timestamp_ntz) as naive")
    said, charged = refused(rows.selectExpr("seat", "zoned as id"))
    assert said.startswith("column 'id' must not hold moments of a time zone")
    assert charged == 0
    assert set(released(rows.selectExpr("seat", "naive as id"))) == {f"2024-01-{at:02}" for at in range(5, 10)}
    said, _ = refused(rows.selectExpr("seat", "naive + interval 21 hours as id"))
    assert said.startswith("column 'id' must hold dates")
    assert refused(rows.selectExpr("seat", "zoned as id"), BY_DATE)[1] == 0


def test_a_key_in_capitals_has_the_same_coins_and_is_shown_as_it_is_written(tmp_path):
    small = [str(uuid.UUID(int=10**30 + at)) for at in range(40)]
    lower = released(pd.DataFrame({"id": small, "seat": "o"}))
    for _, rows in sources(pa.array([one.upper() for one in small]), tmp_path):
        upper = released(rows)
        assert list(upper) == [one.upper() for one in lower]
        assert list(upper.values()) == list(lower.values())


@pytest.mark.parametrize(
    ("one", "other"), [("7", "7.0"), ("2.1", "2.10"), ("caf\u00e9", "cafe\u0301"), ("a", "a "), ("a", "A")]
)
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


@pytest.mark.parametrize("why", ["hidden", "not asked for"])
def test_rows_that_are_not_kept_do_not_say_how_others_write_a_name(why):
    domain = tc.Domain({"room": tc.Categories(["r1", "r2", "secret"]), "seen": tc.Categories(["early", "late"])})
    policy = tc.Policy(domain, tc.secrets.records(tc.col("room") == "secret"), presence="public")
    where = None
    if why == "not asked for":
        policy, where = tc.Policy(domain, tc.secrets.attributes("seen", where="seen == 'late'")), "room == 'r1'"
    shown = []
    for other in ("mon", "Mon", "MON"):
        rows = pd.DataFrame({"room": ["r1", "secret"], "day": ["mon", other], "seen": "early"})
        question = tc.true_records("seen", key=["room", "day"], where=where)
        frame = tc.Session(policy, rows, budget=99).release(question, epsilon=30).frame
        shown.append(frame[frame["room"] == "r1"]["day"].tolist())
    assert shown == [["mon"]] * 3

"""True records on every engine: the same rows, the same coins, the same answer, as a frame of the user's own kind."""

import datetime
import gc

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit as tc
from engines import ENGINES
from tacit.release.results import shown_records
from tacit.release.results.true_records import FiledRecords

KEY = bytes(32)
DOMAIN = tc.Domain(
    {
        "day": tc.Dates("2024-01-01", "2024-02-29", by="day"),
        "arrival": tc.Categories(["early", "ok", "late"], otherwise="ok"),
        "hours": tc.Decimals(0, 12, "0.5"),
        "seat": tc.Integers(0, 9, otherwise="clip"),
    }
)
POLICY = tc.Policy(
    DOMAIN,
    tc.secrets.attributes("arrival", where="arrival == 'late'") | tc.secrets.attributes("hours", where="hours < 4"),
)
ROWS = pd.DataFrame(
    [
        {
            "room": room,
            "day": datetime.date(2024, 1, 1) + datetime.timedelta(days=day),
            "arrival": ["late", "ok", "early", "?"][(day * 7 + at) % 4],
            "hours": (day * 3 + at) % 25 / 2,
            "seat": day % 12,
        }
        for at, room in enumerate(["r2", "r1"])
        for day in range(59, -1, -1)
    ]
)
KEYED = tc.true_records(["arrival", "hours", "seat"], key=["room", "day"])


def sources(tmp_path):
    table = pa.Table.from_pandas(ROWS, preserve_index=False)
    yield from ((name, made(table, tmp_path)) for name, made in ENGINES.items())
    yield "shuffled", ROWS.sample(frac=1, random_state=1)


def released(source, question):
    with tc.noise.replayed(tc.noise.Keystream(key=KEY)):
        return tc.Session(POLICY, source, budget=5, dataset="rooms").release(question, epsilon=1)


def cells(record):
    return {name: [None if one is None else str(one) for one in column] for name, column in record.columns().items()}


def test_every_engine_shows_the_same(tmp_path):
    found = {name: released(source, KEYED) for name, source in sources(tmp_path)}
    reference = cells(found["pandas"])
    assert [name for name, record in found.items() if cells(record) != reference] == []
    assert reference["room"] == ["r1"] * 60 + ["r2"] * 60
    assert {one for column in ("arrival", "hours") for one in reference[column]} >= {None, "ok", "12.0"}
    kinds = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "polars-lazy": pl.DataFrame, "pyarrow": pa.Table}
    assert {name: type(found[name].frame) for name in kinds} == kinds


def test_without_a_key_the_order_of_the_source_does_not_show():
    """As many coins are tossed for rows in another order, for other rows; what comes out is sorted."""
    found = cells(released(ROWS, tc.true_records(["day", "arrival", "hours"])))
    lines = list(zip(*found.values(), strict=True))
    order = ["early", "ok", "late"]
    assert lines == sorted(lines, key=lambda row: (row[0], order.index(row[1]), float(row[2])))
    lazy = cells(released(pl.from_pandas(ROWS).lazy(), tc.true_records(["day", "arrival", "hours"])))
    assert lazy == found


def test_spark_shows_the_same(spark):
    rows = spark.createDataFrame(ROWS.to_numpy().tolist(), list(ROWS.columns))
    found, reference = (released(source, KEYED) for source in (rows, ROWS))
    assert cells(found) == cells(reference)
    assert found.frame.count() == len(ROWS)


def test_many_batches_are_put_together_in_the_order_of_the_key(tmp_path):
    many = pd.DataFrame({"id": range(100_000, 0, -1), "seat": [at % 10 for at in range(100_000)]})
    policy = tc.Policy(
        tc.Domain({"id": tc.Integers(1, 10**9), "seat": tc.Integers(0, 9)}),
        tc.secrets.attributes("seat", where="seat == 3"),
    )
    many.to_parquet(tmp_path / "many.parquet", row_group_size=30_000)
    question = tc.true_records("seat", key="id")
    frames = []
    for rows in (many, tmp_path / "many.parquet"):
        with tc.noise.replayed(tc.noise.Keystream(key=KEY)):
            frames.append(tc.Session(policy, rows, budget=5).release(question, epsilon=1).frame)
    assert frames[0].equals(frames[1])
    assert frames[0]["id"].tolist() == list(range(1, 100_001))
    shown = frames[0]["seat"].notna()
    assert (frames[0]["seat"][shown] == (100_000 - frames[0]["id"][shown]) % 10).all()


BY_ID = tc.Domain({"id": tc.Integers(1, 10**9), "wing": tc.Categories(["z", "a"]), "seat": tc.Integers(0, 9)})


@pytest.mark.one_in(3)
@pytest.mark.parametrize("order", ["sorted", "mixed"])
@pytest.mark.parametrize("key", [["id"], ["wing", "id"], None], ids=str)
def test_more_rows_than_memory_should_hold_are_the_same_rows(order, key, tmp_path, monkeypatch):
    """In a file as in memory: with a key, without one, sorted already or not."""
    rows = pd.DataFrame({"id": range(1, 3001), "wing": ["z"] * 1500 + ["a"] * 1500, "seat": [3, 4, 5] * 1000})
    rows = rows if order == "sorted" else rows.sample(frac=1, random_state=1)
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=400)
    policy = tc.Policy(BY_ID, tc.secrets.attributes("seat", where="seat == 3"))
    question = tc.true_records(["wing", "seat"], key=key)
    found = []
    for most in (10**6, 1000):
        monkeypatch.setattr(shown_records, "MOST_IN_MEMORY", most)
        with tc.noise.replayed(tc.noise.Keystream(key=KEY)):
            session = tc.Session(policy, tmp_path / "rows.parquet", budget=5)
            found.append(session.release(question, epsilon=1))
    kept, filed = found
    assert isinstance(filed, FiledRecords)
    assert not isinstance(kept, FiledRecords)
    assert filed.rows == kept.rows or key is None
    if key is not None:
        assert cells(filed) == cells(kept)
        assert filed.values.tolist() == kept.values.tolist()
        assert [end.tolist() for end in filed.interval()] == [end.tolist() for end in kept.interval()]
    else:
        wings = filed.frame["wing"].tolist()
        assert wings == sorted(wings, key=["z", "a"].index)
        assert "3" not in cells(filed)["seat"]
    folder = filed.save(tmp_path / "out")
    written = pd.read_parquet(folder / "values.parquet")
    assert len(written) == filed.rows
    assert set(written.columns) == {"wing", "seat", *(["id"] if key == ["id"] else [])}
    place = filed._file.path
    assert place.exists()
    del filed, found
    gc.collect()
    assert not place.exists()


@pytest.mark.parametrize("order", ["sorted", "mixed"])
@pytest.mark.parametrize("kind", ["whole", "where"])
def test_rows_that_are_looked_at_for_their_keys_alone_are_not_in_the_file(kind, order, tmp_path, monkeypatch):
    """Whole records, and those that a predicate picks: in a file as in memory, whatever order they come in."""
    rows = pd.DataFrame({"id": range(1, 3001), "wing": ["z"] * 1500 + ["a"] * 1500, "seat": [3, 4, 5] * 1000})
    rows = rows if order == "sorted" else rows.sample(frac=1, random_state=1)
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=400)
    secrets = {"whole": tc.secrets.records("seat == 3"), "where": tc.secrets.attributes("seat", where="seat == 3")}
    policy = tc.Policy(BY_ID, secrets[kind])
    question = tc.true_records(["wing", "seat"], key="id", where="wing == 'z'" if kind == "where" else None)
    found = []
    for most in (10**6, 1000):
        monkeypatch.setattr(shown_records, "MOST_IN_MEMORY", most)
        with tc.noise.replayed(tc.noise.Keystream(key=KEY)):
            session = tc.Session(policy, tmp_path / "rows.parquet", budget=5)
            found.append(session.release(question, epsilon=1))
    kept, filed = found
    assert isinstance(filed, FiledRecords)
    assert cells(filed) == cells(kept)
    assert filed.rows == kept.rows == (1500 if kind == "where" else sum(kept.labels()["rows that show it"]) / 2)
    assert filed.values.tolist() == kept.values.tolist()
    assert [end.tolist() for end in filed.interval()] == [end.tolist() for end in kept.interval()]
    assert filed.labels() == kept.labels()
    assert not list(filed._file.path.parent.glob("keys-*"))


@pytest.mark.parametrize("order", ["sorted", "mixed"])
def test_keys_of_rows_that_are_not_shown_must_be_unique_in_a_file_too(order, monkeypatch):
    monkeypatch.setattr(shown_records, "MOST_IN_MEMORY", 1000)
    rows = pd.DataFrame({"id": [*range(1, 3000), 2999], "wing": "z", "seat": [4] * 2998 + [3, 3]})
    rows = rows if order == "sorted" else rows.sample(frac=1, random_state=1)
    policy = tc.Policy(BY_ID, tc.secrets.records("seat == 3"))
    with pytest.raises(tc.DataRefused, match="a key is there twice"):
        tc.Session(policy, rows, budget=5).release(tc.true_records("seat", key="id"), epsilon=1)


def test_a_key_that_is_there_twice_is_refused_in_a_file_too(tmp_path, monkeypatch):
    monkeypatch.setattr(shown_records, "MOST_IN_MEMORY", 1000)
    rows = pd.DataFrame({"id": [*range(1, 3000), 5], "wing": "z", "seat": 4})
    policy = tc.Policy(BY_ID, tc.secrets.attributes("seat", where="seat == 3"))
    with pytest.raises(tc.DataRefused, match="a key is there twice"):
        tc.Session(policy, rows, budget=5).release(tc.true_records("seat", key="id"), epsilon=1)

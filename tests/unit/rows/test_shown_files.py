"""Files of shown rows: whatever batches and order they came in, the file is the same, byte by byte."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit as tc
from tacit.plan.question import Labels
from tacit.release.results import shown_records, true_records
from tacit.rows.files import shown_files
from tacit.rows.files.shown_files import KeyNumbers, ShownFile
from tacit.rows.sources import frames
from tacit.rows.sources.frames import cells_like

WINGS = ["z", "a", "m"]
CELLS = {
    "id": cells_like([0], every=False),
    "wing": cells_like(WINGS, every=True),
    "day": cells_like(["2024-01-01"], every=False),
}


def filed(ids, ends):
    """Return the file of rows that come in batches that end at these places."""
    file = ShownFile(CELLS)
    for some in np.split(np.asarray(ids), ends):
        days = np.unique(some % 7)
        day = Labels([*(f"2024-01-0{one + 1}" for one in days), None], np.searchsorted(days, some % 7))
        wing = Labels([*WINGS, None], some % 4)
        file.add(some.astype(np.uint64), {"id": some, "wing": wing, "day": day})
    assert file.finish({"id": None}, list(CELLS), unique=True)
    return file


def test_neither_batches_nor_order_are_in_the_file(monkeypatch):
    monkeypatch.setattr(frames, "ROWS_IN_A_GROUP", 100)
    ids = np.arange(1050)
    mixed = np.random.default_rng(1).permutation(ids)
    files = [filed(ids, []), filed(ids, [3, 99, 100, 101, 640]), filed(mixed, [500]), filed(mixed, [7, 7, 800])]
    assert len({file.path.read_bytes() for file in files}) == 1
    found = pq.ParquetFile(files[0].path)
    assert [found.metadata.row_group(at).num_rows for at in range(found.num_row_groups)] == [100] * 10 + [50]
    assert found.read()["wing"].to_pylist() == [[*WINGS, None][at % 4] for at in ids]
    assert found.read()["day"].to_pylist() == [f"2024-01-0{at % 7 + 1}" for at in ids]


def test_a_file_of_no_rows_has_its_columns():
    file = ShownFile(CELLS)
    assert file.finish({"id": None}, list(CELLS), unique=True)
    assert pq.read_schema(file.path).types == [pa.int64(), pa.string(), pa.string()]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("attribute", "kind"),
    [
        (tc.Integers(0, 19), pa.int64()),
        (tc.Integers(0, 2), pa.int64()),
        (tc.Decimals(0, 9, "0.5"), pa.float64()),
        (tc.Dates("2020-01-01", "2020-01-31", by="day"), pa.string()),
        (tc.Categories(["x", *range(9)]), pa.string()),
        (tc.Categories(["x", "y"]), pa.string()),
        (tc.Flag(), pa.bool_()),
    ],
    ids=["many numbers", "numbers", "decimals", "dates", "many names", "names", "flag"],
)
def test_types_come_from_the_domain_whatever_the_first_batch_shows(attribute, kind, tmp_path, monkeypatch):
    """Nothing is shown of the first rows, which are all a secret, and then not of the others."""
    monkeypatch.setattr(shown_records, "MOST_IN_MEMORY", 50)
    monkeypatch.setattr(frames, "ROWS_IN_A_GROUP", 64)
    for module in (shown_records, true_records):
        monkeypatch.setattr(module, "FEW", 4)
    secret, other = attribute.value(0), attribute.value(attribute.size - 1)
    hidden = f"v == {secret!r}"
    policy = tc.Policy(tc.Domain({"id": tc.Integers(0, 999), "v": attribute}), tc.secrets.attributes("v", where=hidden))
    kinds = []
    for name, first in (("hidden", secret), ("open", other)):
        table = pa.table({"id": range(300), "v": pa.array([str(first)] * 100 + [str(other)] * 200)})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=50)
        record = tc.Session(policy, tmp_path / f"{name}.parquet", budget=9).release(
            tc.true_records("v", key="id"), epsilon=5
        )
        saved = pq.ParquetFile(record.save(tmp_path / f"{name}-out") / "values.parquet")
        assert [saved.metadata.row_group(at).num_rows for at in range(saved.num_row_groups)] == [64] * 4 + [44]
        assert set(saved.read()["v"].to_pylist()) <= {None, other, str(other)}
        kinds.append(saved.schema_arrow.types)
    assert kinds == [[pa.int64(), kind]] * 2


def test_groups_of_a_saved_table_do_not_tell_who_is_absent(tmp_path, monkeypatch):
    """One row less in the first batch of the source moves every row after it by one place, and ends no group."""
    monkeypatch.setattr(shown_records, "MOST_IN_MEMORY", 50)
    monkeypatch.setattr(frames, "ROWS_IN_A_GROUP", 64)
    policy = tc.Policy(
        tc.Domain({"x": tc.Integers(0, 9999), "ill": tc.Flag()}), tc.secrets.taking_part(where="ill == True")
    )
    rows = pd.DataFrame({"x": range(400), "ill": [at == 5 for at in range(400)]})
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    record = tc.Session(policy, tmp_path / "rows.parquet", budget=40).release(tc.true_records("x"), epsilon=40)
    saved = pq.ParquetFile(record.save(tmp_path / "out") / "values.parquet")
    assert [saved.metadata.row_group(at).num_rows for at in range(saved.num_row_groups)] == [64] * 6 + [15]


@pytest.mark.parametrize("most", [0, 2**20], ids=["sorted", "counted"])
def test_rows_without_a_key_are_the_same_file_sorted_or_counted(most, tmp_path, monkeypatch):
    """All are shown, since no coin hides them at this epsilon; wings have an order that is not that of their names."""
    monkeypatch.setattr(shown_records, "MOST_IN_MEMORY", 50)
    monkeypatch.setattr(shown_records, "MOST_COUNTED", most)
    monkeypatch.setattr(shown_records, "AT_A_TIME", 70)
    monkeypatch.setattr(frames, "ROWS_IN_A_GROUP", 64)
    domain = tc.Domain({"wing": tc.Categories(WINGS), "seat": tc.Integers(0, 9), "ill": tc.Flag()})
    rows = pd.DataFrame({"wing": [WINGS[at % 3] for at in range(400)], "seat": [at * 7 % 9 for at in range(400)]})
    rows.assign(ill=False).to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    session = tc.Session(tc.Policy(domain, tc.secrets.records("ill == True")), tmp_path / "rows.parquet", budget=90)
    record = session.release(tc.true_records(["wing", "seat"]), epsilon=90)
    saved = pq.ParquetFile(record.save(tmp_path / "out") / "values.parquet")
    wanted = sorted(zip(rows["wing"], rows["seat"], strict=True), key=lambda row: (WINGS.index(row[0]), row[1]))
    assert list(zip(*saved.read().to_pydict().values(), strict=True)) == wanted
    assert [saved.metadata.row_group(at).num_rows for at in range(saved.num_row_groups)] == [64] * 6 + [16]
    assert record.labels()["rows that show it"] == [400, 400]


@pytest.mark.parametrize(
    ("batches", "unique"),
    [
        ([[1, 2], [2, 3]], False),  # in order, and the same where one batch ends and the next begins
        ([[1, 2], [3, 4]], True),
        ([[3, 2], [2, 1]], False),
        ([[2, 4], [3, 1]], True),
    ],
)
def test_keys_that_meet_between_two_batches_are_told_apart(batches, unique, monkeypatch):
    monkeypatch.setattr(shown_files, "_AT_A_TIME", 2)
    keys = KeyNumbers()
    for batch in batches:
        keys.add(np.array(batch, dtype=np.uint64))
    assert keys.are_unique() is unique


@pytest.mark.parametrize("ends", [2, 2500])
def test_sorted_keys_that_meet_between_two_batches_are_told_apart(ends, monkeypatch):
    monkeypatch.setattr(shown_files, "_AT_A_TIME", ends)
    keys = KeyNumbers()
    numbers = np.arange(5000, dtype=np.uint64)
    for twice in (2047, 2048, ends - 1, ends):
        again = KeyNumbers()
        again.add(np.append(numbers, np.uint64(twice))[::-1].copy())
        assert not again.are_unique()
    keys.add(numbers[::-1].copy())
    assert keys.are_unique()


def test_columns_that_rows_in_order_are_sorted_by_alone_are_dropped():
    file = ShownFile({"id": CELLS["id"], "seat": CELLS["id"]})
    file.add(np.arange(5, dtype=np.uint64), {"id": np.arange(5), "seat": np.arange(5) % 2})
    assert file.finish({"id": None}, ["seat"], unique=True)
    assert pq.read_table(file.path).to_pydict() == {"seat": [0, 1, 0, 1, 0]}


@pytest.mark.parametrize("rows_each", [2, 3])
def test_a_person_with_too_many_rows_is_refused_in_a_file_too(rows_each, tmp_path, monkeypatch):
    monkeypatch.setattr(shown_records, "MOST_IN_MEMORY", 50)
    domain = tc.Domain({"who": tc.Integers(0, 99), "day": tc.Integers(0, 9), "ill": tc.Flag()})
    policy = tc.Policy(domain, tc.secrets.attributes("ill", where="ill == True"), person="who", per_person=rows_each)
    rows = pd.DataFrame({"who": [*np.repeat(np.arange(100), 2), 7], "day": [*np.tile([0, 1], 100), 2], "ill": False})
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    session = tc.Session(policy, tmp_path / "rows.parquet", budget=9)
    question = tc.true_records("ill", key=["who", "day"])
    if rows_each == 2:
        with pytest.raises(tc.DataRefused, match="must have at most 2 rows of one person"):
            session.release(question, epsilon=9)
    else:
        assert session.release(question, epsilon=9).rows == 201

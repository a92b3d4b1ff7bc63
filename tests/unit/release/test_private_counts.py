"""True counts for the curator: by columns as they are, and at the positions of a domain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit as tc
from tacit.release.curator.private_counts import counts_of_columns, counts_under

ROWS = pd.DataFrame({"sex": ["F", "M", "M", None, "F"], "age": [30.0, 31.0, np.nan, 31.0, 30.0], "who": list("abcde")})
TABLES = [("sex", "age"), ("age",)]


def as_file(frame: pd.DataFrame, folder: Path) -> Any:
    frame.to_parquet(folder / "rows.parquet")
    return str(folder / "rows.parquet")


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "file"])
def test_every_engine_counts_the_same(kind: str, tmp_path: Path) -> None:
    source = {
        "pandas": lambda: ROWS,
        "polars": lambda: pl.from_pandas(ROWS),
        "arrow": lambda: pa.Table.from_pandas(ROWS),
        "file": lambda: as_file(ROWS, tmp_path),
    }[kind]()
    found = counts_of_columns(source, TABLES)
    assert (found.people, found.left_out) == (3, 2)  # one row misses a sex, one an age
    assert list(found.values["sex"]) == ["F", "M"]
    assert list(found.values["age"]) == [30.0, 31.0]
    assert found.tables["sex", "age"].tolist() == [[2, 0], [0, 1]]
    assert found.tables["age",].tolist() == [2, 1]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int64(), pa.string())], ids=str)
def test_a_text_that_is_no_utf8_is_a_missing_cell_of_plain_rows(kind: pa.DataType, tmp_path: Path) -> None:
    raw = pa.array([b"a", b"b", b"\xff"] * 10, pa.binary())
    texts = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    if pa.types.is_dictionary(kind):
        texts = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2] * 10), texts.slice(0, 3))
    days = pa.array([*range(0, 30 * 3_600_000, 3_600_000)], pa.timestamp("ms"))
    table = pa.table({"g": texts if kind == texts.type else texts.cast(kind), "s": ["x", "y"] * 15, "t": days})
    file = tmp_path / "rows.parquet"
    pq.write_table(table, file, row_group_size=7)
    about = {"sensitive": "s", "values": ["x", "y"], "retention": 0.5}
    assert tc.publish.perturbed(file, public=["g"], **about).sizes.tolist() == [10, 10]
    hidden = tc.publish.perturbed(file, public=["s"], sensitive="g", values=["a", "b"], retention=0.5)
    assert hidden.sizes.tolist() == [10, 10]
    found = tc.audit.syntactic(file, public=["g"], sensitive="s")
    assert (found.k, found.left_out) == (10, 10)
    # moments of milliseconds are taken by the day, whichever way the file is read
    both = [counts_of_columns(file, [names]).values["t"] for names in (("t",), ("g", "t"))]
    assert both[0] == both[1]


def test_a_policy_says_whose_rows_count() -> None:
    domain = tc.Domain({"sex": tc.Categories(["F", "M"], otherwise="M"), "age": tc.Integers(29, 31)})
    found = counts_under(tc.Policy(domain, tc.secrets.everything()), ROWS, TABLES)
    assert found.people == 4  # an age is missing
    assert found.tables["sex", "age"].tolist() == [[0, 2, 0], [0, 0, 2]]
    assert list(found.values["age"]) == [29, 30, 31]


def test_rows_that_cannot_be_grouped_are_refused() -> None:
    with pytest.raises(tc.DataRefused, match="column 'sexx' must be a column of the rows"):
        counts_of_columns(ROWS, [("sexx",)])
    with pytest.raises(tc.DataRefused, match="item counts have no cells"):
        counts_of_columns(tc.ItemCounts([1, 2], people=3), [("sex",)])
    lists = pd.DataFrame({"sex": [["a"], ["b"]]})
    with pytest.raises(tc.DataRefused, match="must hold one value per row"):
        counts_of_columns(pa.Table.from_pandas(lists), [("sex",)])
    wide = pd.DataFrame({"a": range(20_000), "b": range(20_000)})
    with pytest.raises(tc.PlanError, match="must have at most 2\\^27 cells"):
        counts_of_columns(wide, [("a", "b")])


def test_every_audit_of_true_counts_reads_columns_alike(tmp_path: Path) -> None:
    """Some engines do not tell `ill` from `ILL`: both audits refuse. An empty text is a cell like others."""
    (tmp_path / "two.csv").write_text("ward,ill,ILL\na,flu,x\nb,hiv,y\n", encoding="utf-8")
    with pytest.raises(tc.DataRefused, match="no other may differ from it in case only"):
        tc.audit.disclosure(str(tmp_path / "two.csv"), public=["ward"], sensitive="ILL", scale=1.0, ways=1)
    promise = {"retention": 0.5, "lam": 0.3, "delta": 0.3}
    asked = {"public": ["ward"], "values": ["x", "y"], **promise}
    with pytest.raises(tc.DataRefused, match="no other may differ from it in case only"):
        tc.audit.reconstruction(str(tmp_path / "two.csv"), sensitive="ILL", **asked)
    rows = pd.DataFrame({"ward": ["", "a", None, "a"], "ill": ["x", "y", "x", None]})
    found = tc.audit.reconstruction(rows, sensitive="ill", **asked)
    assert found.sizes.tolist() == [1, 1]  # a table leaves out who misses a cell, and so does its audit
    assert str(found).startswith(found.private)
    assert counts_of_columns(rows, [("ward",)]).values["ward"] == ("", "a")

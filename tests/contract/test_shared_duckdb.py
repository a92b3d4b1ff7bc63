"""Rows in memory share one DuckDB of the process: apart from each other, replaced when it fails, gone before a fork."""

import os
import subprocess
import sys
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from tacit.policy.attributes import Integers
from tacit.policy.domain import Domain
from tacit.rows.rows import open_rows
from tacit.rows.sources import duckdb_engine

DOMAIN = Domain({"a": Integers(0, 2)})


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every DuckDB that is started in this test; none is there before."""
    found: list[Any] = []
    start = duckdb_engine.embedded

    def embedded() -> Any:
        found.append(start())
        return found[-1]

    monkeypatch.setattr(duckdb_engine, "_shared", [])
    monkeypatch.setattr(duckdb_engine, "embedded", embedded)
    return found


def test_rows_in_memory_start_no_duckdb_each(started: list[Any]) -> None:
    frame, table = pd.DataFrame({"a": [0, 1, 1]}), pa.table({"a": [2, 2, 0]})
    rows = [open_rows(frame, DOMAIN), open_rows(table, DOMAIN)]
    assert [one.counts(("a",)).tolist() for one in rows] == [[1, 2, 0], [1, 0, 2]]
    assert len(started) == 1


def test_one_connection_knows_nothing_of_another(started: list[Any]) -> None:
    first, second = duckdb_engine.shared_embedded(), duckdb_engine.shared_embedded()
    first.register("people", pa.table({"a": [1]}))
    assert first.sql("FROM people").fetchall() == [(1,)]
    with pytest.raises(duckdb.CatalogException):
        second.sql("FROM people")
    first.interrupt()
    assert second.sql("SELECT 1").fetchall() == [(1,)]
    assert len(started) == 1


def test_one_that_failed_is_replaced(started: list[Any]) -> None:
    duckdb_engine.shared_embedded()
    started[0].close()
    assert duckdb_engine.shared_embedded().sql("SELECT 1").fetchall() == [(1,)]
    assert len(started) == 2


FORK = """
import os, sys
import pyarrow as pa
import tacit as tc
from tacit.rows.rows import open_rows

def count():
    return open_rows(pa.table({"a": [0, 1, 1]}), tc.Domain({"a": tc.Integers(0, 2)})).counts(("a",)).tolist()

before, child = count(), os.fork()
print(count() == before, flush=True)
sys.exit(0 if child == 0 else os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_counts_and_comes_to_its_end() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\nTrue\n", "")

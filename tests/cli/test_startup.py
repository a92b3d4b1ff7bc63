"""What a command loads: engines, charts and statistics only where they are needed."""

import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pandas as pd
import pytest

import tacit

ENGINES = {"pandas", "duckdb", "pyarrow", "polars", "narwhals", "pyspark", "ibis"}
HEAVY = ENGINES | {"altair", "scipy", "sqlalchemy", "cvxpy", "jinja2"}
# least squares along a line, for cumulative counts
LINES = {"scipy"}
POLICY = str(resources.files("tacit") / "data" / "adult.policy.yaml")


def loaded(folder: Path, *words: str) -> set[str]:
    """Run Python for real and return every module that it loaded, as it says itself."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *words], cwd=folder, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split("|")[-1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert "importlib.util" in lines or "site" in lines  # else nothing was told
    return set(lines)


def command(folder: Path, *words: str) -> set[str]:
    return loaded(folder, "-m", "tacit_command", *words)


def test_a_command_that_reads_nothing_loads_no_arrays_either(tmp_path: Path) -> None:
    for words in (["--version"], ["--help"], ["plan", "--help"]):
        assert command(tmp_path, *words) & (HEAVY | {"numpy", "rich", "yaml"}) == set(), words


@pytest.mark.one_in(5)
@pytest.mark.parametrize("words", [["schema", "policy"], ["schema", "job"], ["check", POLICY]], ids=" ".join)
def test_a_command_that_opens_no_rows_loads_no_engine(words: list[str], tmp_path: Path) -> None:
    assert command(tmp_path, *words) & HEAVY == set()


def test_a_plan_loads_no_engine(clinic: Path, change_job: object) -> None:
    change_job("ledger: ledger.db\nanalyst: ana\n", "")  # type: ignore[operator]
    modules = command(clinic, "plan", "clinic.job.yaml")
    assert modules & HEAVY <= LINES
    assert not any(name.startswith(("scipy.stats", "scipy.optimize")) for name in modules)


def test_a_plan_loads_a_database_for_its_ledger_and_arrow_for_the_schema_of_a_file(
    clinic: Path, change_job: Callable[[str, str], None]
) -> None:
    assert command(clinic, "plan", "clinic.job.yaml") & HEAVY - LINES == {"sqlalchemy"}
    pd.read_csv(clinic / "clinic.csv").to_parquet(clinic / "clinic.parquet")
    change_job("ledger: ledger.db\nanalyst: ana\n", "")
    change_job("clinic.csv", "clinic.parquet")
    assert command(clinic, "plan", "clinic.job.yaml") & HEAVY - LINES == {"pyarrow"}


def test_the_package_loads_nothing_until_it_is_used(tmp_path: Path) -> None:
    assert loaded(tmp_path, "-c", "import tacit") & (HEAVY | {"numpy", "typer"}) == set()
    used = "import tacit as tc; tc.Policy, tc.Integers, tc.secrets, tc.known, tc.explain, tc.count, tc.largest_step"
    assert loaded(tmp_path, "-c", used) & HEAVY == set()


def test_what_needs_an_engine_loads_it(tmp_path: Path) -> None:
    """Guards the tests above: were modules told in another way, they would guard nothing."""
    modules = loaded(tmp_path, "-c", "import tacit; tacit.Session")
    assert {"pandas", "duckdb", "pyarrow"} <= modules
    assert "scipy" not in modules  # until an estimate needs it


def test_every_public_name_is_there() -> None:
    assert [name for name in tacit.__all__ if not hasattr(tacit, name)] == []
    assert dir(tacit) == sorted(tacit.__all__)

"""What a command loads: engines, charts and statistics only where they are needed."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources

import pytest

import tacit

HEAVY = ("pandas", "duckdb", "pyarrow", "altair", "scipy.stats", "sqlalchemy", "pyspark", "polars")
POLICY = str(resources.files("tacit") / "data" / "adult.policy.yaml")
LOOK = """
import sys
{work}
print([name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""


def loaded(work: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", LOOK.format(work=work, heavy=HEAVY)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("command", [["--version"], ["schema", "policy"], ["check", POLICY]])
def test_a_command_that_opens_no_rows_loads_no_engine(command: list[str]) -> None:
    assert loaded(f"from tacit.cli import main\nmain({command!r})") == "[]"


def test_the_package_loads_nothing_until_it_is_used() -> None:
    assert loaded("import tacit as tc\ntc.Policy, tc.Integers, tc.secrets") == "[]"


def test_every_public_name_is_there() -> None:
    assert [name for name in tacit.__all__ if not hasattr(tacit, name)] == []
    assert dir(tacit) == sorted(tacit.__all__)

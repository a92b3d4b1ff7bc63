"""The direction of the data flow, and who may touch rows and randomness: read off the syntax, so nothing is run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import tacit
from architecture.syntax import imports_of, randomness_in

SRC = Path(tacit.__file__).parent
STAGES = (
    "policy",
    "dependence",
    "noise",
    "plan",
    "ledger",
    "rows",
    "draft",
    "release",
    "monitor",
    "publish",
    "jobs",
    "audit",
    "report",
)
ORDER = (*STAGES, "cli")  # the command line drives all of it
FOR_EVERYBODY = ("arrays", "clock", "errors", "amounts", "drawing")

READERS = ("duckdb", "pyarrow", "narwhals", "polars", "ibis", "pyspark")
MAY_READ_ROWS = (
    "rows/sources/",
    "rows/cells/",
    "rows/counts/",
    "rows/files/",
    "release/curator/row_check.py",
    "monitor/events.py",
    "monitor/event_cells.py",
)
DOOR = "rows/rows.py"  # asks those for rows, and so opens them without a reader of its own
MAY_DRAW_RANDOMNESS = ("noise/keystream.py",)
MAY_ASK_FOR_REPRODUCTIONS = {"cli/reproduce.py"}

MODULES = sorted(SRC.rglob("*.py"))


def name_of(file: Path) -> str:
    return file.relative_to(SRC).as_posix()


def stage_of(file: Path) -> str:
    parts = file.relative_to(SRC).parts
    return parts[0] if len(parts) > 1 else ""


@cache
def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def imported(file: Path) -> tuple[tuple[str, int], ...]:
    return imports_of(text_of(file), "tacit", *file.relative_to(SRC).parent.parts)


def imports_of_stages(file: Path) -> Iterator[tuple[str, str, int]]:
    """Yield the stage, the module and the line of every import from Tacit itself."""
    for module, line in imported(file):
        if module.startswith("tacit."):
            yield module.split(".")[1], module, line


@pytest.mark.parametrize("stage", ORDER)
def test_a_stage_imports_only_itself_and_stages_before_it(stage: str) -> None:
    later = ORDER[ORDER.index(stage) + 1 :]
    wrong = [
        f"{name_of(file)}:{line} imports {module}"
        for file in MODULES
        if stage_of(file) == stage
        for target, module, line in imports_of_stages(file)
        if target in later
    ]
    assert wrong == []


def test_every_folder_with_code_is_in_the_order() -> None:
    assert {stage_of(file) for file in MODULES} - {""} <= set(ORDER)


def test_modules_for_everybody_import_no_stage() -> None:
    wrong = [
        f"{file}.py:{line} imports {module}"
        for file in FOR_EVERYBODY
        for target, module, line in imports_of_stages(SRC / f"{file}.py")
        if target in ORDER
    ]
    assert wrong == []


def test_stages_take_names_from_stages_and_not_from_the_package() -> None:
    """`from tacit import Policy` would import everything, whichever stage asks."""
    wrong = [
        f"{name_of(file)}:{line} imports {module}"
        for file in MODULES
        if stage_of(file) in STAGES
        for target, module, line in imports_of_stages(file)
        if target not in (*ORDER, *FOR_EVERYBODY, "__version__")
    ]
    assert wrong == []


def test_nothing_imports_the_command_line() -> None:
    wrong = [
        f"{name_of(file)}:{line}"
        for file in MODULES
        if stage_of(file) != "cli" and file.name != "__main__.py"
        for target, _, line in imports_of_stages(file)
        if target == "cli"
    ]
    assert wrong == []


def test_the_package_does_not_need_the_reproductions() -> None:
    """They are a distribution of their own: two commands ask for them, and say how to install them."""
    assert {name_of(file) for file in MODULES if "tacit_reproductions" in text_of(file)} == MAY_ASK_FOR_REPRODUCTIONS


def test_only_these_modules_read_rows() -> None:
    wrong = [
        f"{name_of(file)}:{line} imports {module}"
        for file in MODULES
        if not name_of(file).startswith(MAY_READ_ROWS)
        for module, line in imported(file)
        if module.split(".")[0] in READERS
    ]
    assert wrong == []


def test_audit_and_report_never_open_rows() -> None:
    readers = tuple(f"tacit.{name.removesuffix('.py').strip('/').replace('/', '.')}" for name in (DOOR, *MAY_READ_ROWS))
    wrong = [
        f"{name_of(file)}:{line} imports {module}"
        for file in MODULES
        if stage_of(file) in ("audit", "report")
        for module, line in imported(file)
        if module.startswith(readers)
    ]
    assert wrong == []


def test_only_the_keystream_draws_randomness() -> None:
    """A random number from anywhere else is either inexact or predictable, and a release must have neither."""
    wrong = [
        f"{name_of(file)}:{found}"
        for file in MODULES
        if name_of(file) not in MAY_DRAW_RANDOMNESS
        for found in randomness_in(text_of(file))
    ]
    assert wrong == []


def test_the_keystream_takes_its_key_from_the_operating_system() -> None:
    """Guards the tests above: were the one allowed place to move, they would guard nothing."""
    assert all("os.urandom" in (SRC / name).read_text(encoding="utf-8") for name in MAY_DRAW_RANDOMNESS)
    assert all((SRC / name).exists() for name in (DOOR, *MAY_READ_ROWS))


def test_the_command_line_does_no_mathematics() -> None:
    wrong = [
        f"{name_of(file)}:{line} imports {module}"
        for file in MODULES
        if stage_of(file) == "cli"
        for module, line in imported(file)
        if module.split(".")[0] in ("numpy", "scipy", "math", "pandas", "cvxpy")
    ]
    assert wrong == []

"""The package stays in hand: rooms of few modules, tests that mirror them, and one meaning for the name of a class."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import tacit
from architecture.syntax import nodes_of

SRC = Path(tacit.__file__).parent
MODULES = sorted(SRC.rglob("*.py"))
UNIT = Path(__file__).parents[1] / "unit"
FOLDERS = sorted({file.parent for file in MODULES})
MOST_MODULES = 15  # of a folder, beside the one that lists them
# Folders that are larger, with the number that they must not exceed; the aim is to empty this list.
LARGER: dict[str, int] = {}


def name_of(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def classes() -> dict[str, list[str]]:
    """Return every class name, without leading underscores, with the modules that define it."""
    found = defaultdict(list)
    for file in MODULES:
        for node in nodes_of(file.read_text(encoding="utf-8")):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(name_of(file))
    return found


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_folder_has_few_modules(folder: Path) -> None:
    modules = [file.name for file in folder.glob("*.py") if file.name != "__init__.py"]
    assert len(modules) <= LARGER.get(name_of(folder), MOST_MODULES)


def test_larger_folders_are_still_larger() -> None:
    assert all(len(list((SRC / name).glob("*.py"))) - 1 > MOST_MODULES for name in LARGER)


def test_a_class_name_means_one_thing() -> None:
    assert {name: files for name, files in classes().items() if len(files) > 1} == {}


def test_unit_tests_stand_where_the_package_has_what_they_test() -> None:
    """In a folder for each room; a test of a module that belongs to no room is named as it is."""
    tests = [file.relative_to(UNIT) for file in sorted(UNIT.rglob("test_*.py"))]
    alone = [SRC / file.name.removeprefix("test_") for file in tests if file.parent == Path()]
    rooms = {SRC / file.parent for file in tests if file.parent != Path()}
    assert [str(path) for path in alone if not path.is_file()] == []
    assert [str(room) for room in sorted(rooms) if not (room / "__init__.py").is_file()] == []

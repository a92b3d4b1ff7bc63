"""The rules of the package hold here as well: small folders, listed modules, one source of randomness."""

import ast
import re
from pathlib import Path

import pytest

import tacit_reproductions
from architecture.syntax import imports_of, randomness_in
from architecture.test_imports import READERS
from architecture.test_private_names import reached
from architecture.test_sizes import MOST_MODULES

SRC = Path(tacit_reproductions.__file__).parent
MODULES = {file.relative_to(SRC).as_posix(): file.read_text(encoding="utf-8") for file in sorted(SRC.rglob("*.py"))}
PACKAGES = [name for name in MODULES if name.endswith("__init__.py")]
NAME = "tacit_reproductions"


def imported(name: str) -> set[str]:
    return {module for module, _ in imports_of(MODULES[name], NAME, *Path(name).parts[:-1])}


def test_there_are_modules():
    assert len(MODULES) > 30
    assert len(PACKAGES) == 5


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_is_small_and_names_every_module(package):
    folder = (SRC / package).parent
    modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    named = re.findall(r"^    (\w+)  +\S", ast.get_docstring(ast.parse(MODULES[package])) or "", re.MULTILINE)
    assert sorted(named) == sorted(modules - {"__init__"})
    assert len(named) <= MOST_MODULES


@pytest.mark.parametrize("name", MODULES)
def test_a_module_says_what_it_is_and_keeps_to_public_names_and_our_noise(name):
    assert ast.get_docstring(ast.parse(MODULES[name]))
    assert reached(MODULES[name]) == []
    assert randomness_in(MODULES[name]) == []
    assert {module.split(".")[0] for module in imported(name)}.isdisjoint(READERS)


@pytest.mark.parametrize("name", MODULES)
def test_a_document_needs_no_other_document_and_no_command_line(name):
    if name == "command.py":
        return
    documents = {f"{NAME}.{path.split('/')[0]}" for path in MODULES if path.startswith("document_")}
    others = {one for one in documents if one != f"{NAME}.{name.split('/')[0]}"}
    assert [module for module in imported(name) if module.startswith((*others, "tacit.cli"))] == []


def test_true_counts_are_asked_for_by_one_module_of_public_data():
    asking = {name for name in MODULES if "personal_groups" in MODULES[name]}
    assert asking == {"document_004/reconstruction.py"}
    assert not [name for name in MODULES if "tacit.release.curator.private_counts" in imported(name)]

"""A public name is what it says, whatever was imported first: no module of the same name takes its place."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import tacit

SRC = Path(tacit.__file__).parent
PACKAGES = sorted(
    ".".join(("tacit", *file.parent.relative_to(SRC).parts))
    for file in SRC.rglob("__init__.py")
    if "cli" not in file.relative_to(SRC).parts
)
# The module is imported before anything else of the package; then the name must still be what the package exports.
PROGRAM = """
import sys
from importlib import import_module
from types import ModuleType

for package, name in (words.rsplit(".", 1) for words in sys.argv[1:]):
    for loaded in [one for one in sys.modules if one.partition(".")[0] == "tacit"]:
        del sys.modules[loaded]
    import_module(f"{package}.{name}")
    for first in (import_module(package), import_module("tacit"), import_module(f"{package}.{name}")):
        found = getattr(import_module(package), name)
        assert not isinstance(found, ModuleType), f"{package}.{name} is a module after {first.__name__}"
"""


def shared_names(package: str) -> list[str]:
    """Return the public names of a package that a module of it has as well."""
    folder = SRC.joinpath(*package.split(".")[1:])
    modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    found = import_module(package)
    public = getattr(found, "__all__", None) or [name for name in vars(found) if not name.startswith("_")]
    return sorted(name for name in modules & set(public) if not isinstance(getattr(found, name), ModuleType))


SHARED = {package: names for package in PACKAGES if (names := shared_names(package))}


def test_a_public_name_is_never_the_module_that_it_comes_from() -> None:
    """One process tries all of them: libraries are loaded once, the package anew for each name."""
    words = [f"{package}.{name}" for package, names in SHARED.items() for name in names]
    made = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr


@pytest.mark.parametrize("name", ["exact", "exclusion", "release", "sampled", "assert_no_leak"])
def test_an_audit_has_a_module_of_another_name(name: str) -> None:
    """Tools that load a module by its path, and put it in its package, would replace the function."""
    assert callable(getattr(tacit.audit, name))
    assert name not in shared_names("tacit.audit")


def test_there_are_such_names() -> None:
    """Guards the tests above."""
    assert "cube" in SHARED["tacit.noise"]
    assert "ranges" in SHARED["tacit.plan.questions"]

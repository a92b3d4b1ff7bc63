"""Modules that keep a promise say which, under five headings, and name tests that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

import tacit
from architecture.syntax import nodes_of

SRC = Path(tacit.__file__).parent
ROOT = Path(__file__).parents[2]
HEADINGS = ("Guarantee", "Assumes", "Why", "Reference", "Checked by")
# Outside the mechanisms: what noise is calibrated to, and what leaks by dependence.
LINE = ("line/law", "line/tables", "line/draws", "variance_bounds")
CUBE = ("cube", "cube_radius", "tilted_cube")
DRAWS = ("keystream", "draws", "thinning", "two_scale", *CUBE, *LINE)
# Modules of `plan/plans/` that draw; `test_audit_registry.py` holds this list against what they call.
PLANS_THAT_DRAW = ("linear", "rank_plan", "thresholds", "top_k", "visible_records", "zoom")
# Mechanisms that no plan draws.
ALONE = ("monitor/alarm.py", "publish/local.py")
CALIBRATION = (
    "dependence/suppression.py",
    "audit/posterior_bounds.py",
    "publish/methods/criterion.py",
    "publish/methods/perturbation.py",
    "publish/paid_tables.py",
    "publish/methods/sampled.py",
    "publish/methods/groupwise.py",
    "publish/methods/masked.py",
    "plan/sensitivity/steps.py",
    "plan/sensitivity/coupling.py",
    "plan/calibrate.py",
    "plan/sensitivity/moves.py",
    "plan/measure/line_strategies.py",
    "plan/measure/regions.py",
    "plan/measure/sums.py",
)


def tree_of(file: Path) -> ast.Module:
    (tree, *_) = nodes_of(file.read_text(encoding="utf-8"))
    assert isinstance(tree, ast.Module)
    return tree


def promising_modules() -> list[str]:
    """Return every mechanism module that others can call, without exception, what draws, and the calibration."""
    mechanisms = [f"plan/plans/{name}.py" for name in PLANS_THAT_DRAW]
    draws = [f"noise/{name}.py" for name in DRAWS]
    return [*mechanisms, *ALONE, *draws, *CALIBRATION]


def docstring(name: str) -> str:
    return ast.get_docstring(tree_of(SRC / name)) or ""


@pytest.mark.parametrize("name", promising_modules())
def test_the_module_says_what_it_promises(name: str) -> None:
    found = re.findall(rf"^({'|'.join(HEADINGS)})  +\S", docstring(name), re.MULTILINE)
    assert tuple(found) == HEADINGS


@pytest.mark.parametrize("name", promising_modules())
def test_the_tests_that_it_names_exist(name: str) -> None:
    named = re.findall(r"[\w/]*tests/[\w/]+\.py", docstring(name).partition("Checked by")[2])
    assert named, "no test is named"
    assert [file for file in named if not (ROOT / file).is_file()] == []


def test_every_module_has_a_docstring() -> None:
    modules = [file.relative_to(SRC).as_posix() for file in SRC.rglob("*.py")]
    assert [name for name in modules if not docstring(name)] == []


@pytest.mark.parametrize(
    "package", sorted(file.parent.relative_to(SRC).as_posix() for file in SRC.rglob("*/__init__.py"))
)
def test_a_package_names_every_module_in_reading_order(package: str) -> None:
    modules = {
        path.stem for path in (SRC / package).iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    named = re.findall(r"^    (\w+)  +\S", docstring(f"{package}/__init__.py"), re.MULTILINE)
    assert sorted(named) == sorted(modules - {"__init__"})


def contract_of(kind: type, name: str) -> str | None:
    """Return what the class that declares a method says about it."""
    said = (vars(one)[name].__doc__ for one in kind.__mro__[1:] if name in vars(one))
    return next((text for text in said if text), None)


def public_methods() -> Iterator[tuple[type, str, str | None]]:
    """Yield every public function and property of the package's classes, with its docstring."""
    for name in (file.relative_to(SRC) for file in sorted(SRC.rglob("*.py")) if file.name != "__main__.py"):
        module = import_module(".".join(("tacit", *name.with_suffix("").parts)).removesuffix(".__init__"))
        for kind in (
            one
            for one in vars(module).values()
            if isinstance(one, type) and one.__module__ == module.__name__ and one.__name__[0] != "_"
        ):
            for called, method in vars(kind).items():
                is_ours = isinstance(method, property | cached_property | classmethod) or (
                    isinstance(method, FunctionType) and method.__qualname__ == f"{kind.__name__}.{called}"
                )
                if is_ours and not called.startswith("_") and not getattr(method, "__isabstractmethod__", False):
                    yield kind, called, method.__doc__


def test_a_method_says_what_it_does_unless_its_contract_does() -> None:
    wrong = [
        f"{kind.__name__}.{name}" for kind, name, text in public_methods() if not text and not contract_of(kind, name)
    ]
    assert wrong == []


def test_an_overriding_method_does_not_repeat_its_contract() -> None:
    wrong = [
        f"{kind.__name__}.{name}" for kind, name, text in public_methods() if text and text == contract_of(kind, name)
    ]
    assert wrong == []

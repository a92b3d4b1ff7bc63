"""A name with an underscore belongs to its module: nobody else imports it, reads it or sets it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

import tacit
from architecture.syntax import nodes_of

SRC = Path(tacit.__file__).parent
FILES = [file.relative_to(SRC).as_posix() for file in sorted(SRC.rglob("*.py"))]
# Private names of other packages that have no public way to the same thing.
OF_OTHER_PACKAGES = {
    (
        "rows/sources/duckdb_engine.py",
        "_run_pre_execute_hooks",
    ): "Ibis registers tables in memory before a query of its own",
    ("rows/sources/spark_engine.py", "_jvm"): "where Spark's files are",
    ("rows/sources/spark_engine.py", "_jsc"): "where Spark's files are",
    ("rows/sources/spark_log.py", "_jvm"): "the log levels of Spark",
    ("rows/sources/spark_log.py", "_jsc"): "the log levels of Spark",
}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_own(node: ast.expr) -> bool:
    """Say whether an expression is what a method is called on."""
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def defined(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that a module makes itself: functions, classes, variables, fields, and what methods set."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Attribute(value=owner, attr=name, ctx=ast.Store()) if is_own(owner):
                found.add(name)
            case ast.Call(func=ast.Attribute(attr="__setattr__"), args=[owner, ast.Constant(value=str(name)), _]):
                found |= {name} if is_own(owner) else set()
    return found


def reached(text: str) -> list[tuple[int, str]]:
    """Return the private names of elsewhere that a module uses, with the line."""
    nodes = nodes_of(text)
    own = defined(nodes)
    found: list[tuple[int, str]] = []
    for node in nodes:
        match node:
            case ast.ImportFrom(module=module, names=names):
                parts = [*(module or "").split("."), *(alias.name for alias in names)]
                found += [(node.lineno, part) for part in parts if is_private(part)]
            case ast.Import(names=names):
                parts = [part for alias in names for part in alias.name.split(".")]
                found += [(node.lineno, part) for part in parts if is_private(part)]
            case ast.Attribute(attr=name) if is_private(name) and name not in own:
                found.append((node.lineno, name))
            case ast.Call(func=ast.Name(id="getattr" | "setattr" | "hasattr"), args=[_, ast.Constant(value=name), *_]):
                found += [(node.lineno, str(name))] if is_private(str(name)) and name not in own else []
    return found


@pytest.mark.parametrize(
    "line",
    [
        "from tacit.plan.sensitivity.steps import _flags",
        "from tacit.plan import _steps",
        "import tacit.plan._steps",
        "steps._flags()",
        "record._values",
        "record._values = 1",
        "getattr(record, '_values')",
        "class A(B):\n    def f(self): return self._of_b",
    ],
)
def test_every_way_to_reach_is_found(line: str) -> None:
    """Guards the test below."""
    assert reached(line)
    assert not reached("class A:\n    _x = 1\n    def f(self, other): return self._x, other._x, other.__len__")


def test_nobody_reaches_for_private_names() -> None:
    wrong = [
        f"{file}:{line} uses {name}"
        for file in FILES
        for line, name in reached((SRC / file).read_text(encoding="utf-8"))
        if (file, name) not in OF_OTHER_PACKAGES
    ]
    assert wrong == []


def test_the_exceptions_are_still_needed() -> None:
    for file, name in OF_OTHER_PACKAGES:
        assert name in [used for _, used in reached((SRC / file).read_text(encoding="utf-8"))]

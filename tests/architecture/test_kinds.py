"""A kind lives in one place: nobody outside its package asks of which class an attribute, a family of secrets, a
relation, a known fact, a question, a law of noise or a plan is.

Only whether something is one at all may be asked anywhere: of the class that lists what every kind says about itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import GenericAlias, UnionType
from typing import Any

import pytest

import tacit
from architecture.syntax import nodes_of
from tacit.noise.law import Law
from tacit.noise.tilted_cube import TiltedCube
from tacit.plan.plans.plan import Plan
from tacit.plan.question import Query
from tacit.plan.questions import QUESTIONS
from tacit.policy.attributes import KINDS
from tacit.policy.attributes.attribute import Attribute
from tacit.policy.edges.relations import Relation
from tacit.policy.knowledge import FACTS, Known
from tacit.policy.secrets import FAMILIES
from tacit.policy.secrets.family import Secrets

SRC = Path(tacit.__file__).parent
FILES = [file.relative_to(SRC).as_posix() for file in sorted(SRC.rglob("*.py")) if file.name != "__main__.py"]
# What every kind of a sort fills in, and the package in which they live.
SORTS: dict[type, str] = {
    Attribute: "policy/attributes/",
    Secrets: "policy/secrets/",
    Relation: "policy/edges/",
    Known: "policy/knowledge.py",
    Query: "plan/questions/",
    Law: "noise/",
    TiltedCube: "noise/",  # no law of one number, and so of no sort; but one more law of noise
    Plan: "plan/",
}
# File and class, with the reason why one kind alone is meant and nothing would change if another one came.
ONE_KIND_ALONE: dict[tuple[str, str], str] = {}


def module_of(file: str) -> Any:
    name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return tacit if name == "__init__" else import_module(f"tacit.{name}")


def subclasses(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


def kinds() -> dict[str, set[type]]:
    """Return every kind of every sort by its home, also those in between; all modules are imported."""
    for file in FILES:
        module_of(file)
    found: dict[str, set[type]] = {}
    for sort, home in SORTS.items():
        own = {one for one in subclasses(sort) if one.__module__.startswith("tacit.")}
        found.setdefault(home, set()).update(own or {sort})
    return found


HOMES = kinds()


def named(expression: ast.expr, module: Any) -> set[type]:
    """Return the classes that an expression names: as the module knows it (an alias, a union), or else by name."""
    try:
        value = eval(ast.unparse(expression), dict(vars(module)))  # noqa: S307 - our own source
    except NameError:  # imported in a function, or local to it
        names = {one.id for one in ast.walk(expression) if isinstance(one, ast.Name)}
        return {kind for every in HOMES.values() for kind in every if kind.__name__ in names}
    except AttributeError:
        return set()
    classes: set[type] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, tuple):
            waiting += one
        elif isinstance(one, UnionType):
            waiting += one.__args__
        elif isinstance(one, GenericAlias):
            waiting.append(one.__origin__)
        elif isinstance(one, type):
            classes.add(one)
    return classes


def asks_for_a_class(node: ast.AST) -> list[ast.expr]:
    """Return what a piece of syntax compares the class of something with."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
        return node.args[1:2]
    if isinstance(node, ast.MatchClass):
        return [node.cls]
    if isinstance(node, ast.Compare) and any(
        (isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "type")
        or (isinstance(part, ast.Attribute) and part.attr == "__class__")
        for part in (node.left, *node.comparators)
    ):
        return [
            part
            for side in (node.left, *node.comparators)
            for part in (side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side])
            if isinstance(part, ast.Name | ast.Attribute)
        ]
    return []


def type_tests(text: str, module: Any, file: str) -> dict[str, list[int]]:
    """Return the kinds from elsewhere that a module asks for, each with the lines."""
    foreign = {kind for home, every in HOMES.items() if not file.startswith(home) for kind in every}
    found: dict[str, list[int]] = {}
    for node in nodes_of(text):
        for expression in asks_for_a_class(node):
            for kind in named(expression, module) & foreign:
                found.setdefault(kind.__name__, []).append(getattr(node, "lineno", 0))
    return found


def test_every_sort_has_its_kinds() -> None:
    """Guards the tests below: were a base class to move, they would guard nothing."""
    assert set(KINDS.values()) <= HOMES["policy/attributes/"]
    assert set(FAMILIES.values()) <= HOMES["policy/secrets/"]
    assert set(FACTS.values()) <= HOMES["policy/knowledge.py"]
    assert {kind.__name__ for kind in HOMES["noise/"]} >= {"TwoScale", "Cube", "TiltedCube"}
    plans = {kind.__name__ for kind in HOMES["plan/"]}
    assert plans >= {"LinearPlan", "DerivedPlan", "BelowPlan", "AbovePlan", "TopKPlan"}
    assert {kind.__name__ for kind in HOMES["policy/edges/"]} >= {"Same", "FromTo", "Blocks", "Near"}
    assert len(HOMES["plan/questions/"]) > 10
    assert len(QUESTIONS) > 10
    for home in HOMES:
        assert (SRC / home).exists()


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(x, Integers)",
        "isinstance(x, (str, Integers))",
        "isinstance(x, str | Integers)",
        "isinstance(x, Either)",
        "isinstance(x, attributes.Integers)",
        "issubclass(x, Integers)",
        "type(x) is Integers",
        "type(x) in (Flag, Integers)",
        "x.__class__ == Integers",
        "match x:\n    case Integers(): pass",
        "def f():\n    from somewhere import Integers as _\n    isinstance(x, Integers)",
    ],
)
def test_every_way_to_ask_is_found(line: str) -> None:
    """Guards the test below."""
    module: Any = type("module", (), {})
    if "somewhere" not in line:
        module.Integers, module.Flag, module.attributes = KINDS["integers"], KINDS["flag"], import_module("tacit")
        module.Either = KINDS["integers"] | KINDS["flag"]
    assert "Integers" in type_tests(line, module, "report/here.py")
    assert type_tests(line, module, "policy/attributes/here.py") == {}
    assert type_tests("isinstance(x, Attribute); isinstance(x, int)", tacit.policy.domain, "report/here.py") == {}


def test_nobody_asks_for_the_class_of_a_kind() -> None:
    wrong = [
        f"{file}:{lines} asks for {kind}: give the kinds a method instead, or register a function for each"
        for file in FILES
        for kind, lines in type_tests((SRC / file).read_text(encoding="utf-8"), module_of(file), file).items()
        if (file, kind) not in ONE_KIND_ALONE
    ]
    assert wrong == []


def test_the_exceptions_are_still_needed() -> None:
    for file, kind in ONE_KIND_ALONE:
        assert kind in type_tests((SRC / file).read_text(encoding="utf-8"), module_of(file), file)

"""A kind lives in one place: nobody outside its package asks which class an attribute or a family of secrets is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tacit
from tacit.policy.attributes import KINDS
from tacit.policy.secrets import FAMILIES

SRC = Path(tacit.__file__).parent
NAMES = {kind.__name__ for kind in (*KINDS.values(), *FAMILIES.values())}
# Where one kind alone is meant, and nothing would change if another one came.
ONE_KIND_ALONE = {
    "rows/encode.py": "one item is a number or a name",
    "rows/unexpected.py": "one item is a number or a name",
    "rows/item_lists.py": "one item is a number or a name",
    "rows/rows.py": "sets of items have a reading of their own",
    "audit/worlds.py": "sets of items have edges of their own",
    "plan/steps.py": "room in sets of items",
    "monitor/checks.py": "places are items, categories or a flag",
    "monitor/events.py": "places are items, categories or a flag",
    "monitor/history.py": "places are items or categories",
    "report/linear_charts.py": "a map",
}


def type_tests(file: Path) -> Iterator[int]:
    """Yield the lines in which a file asks whether something is of one of the kinds."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        named: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            named = [node.args[1]]
        elif isinstance(node, ast.MatchClass):
            named = [node.cls]
        found = {part.id for one in named for part in ast.walk(one) if isinstance(part, ast.Name)}
        if found & NAMES:
            yield node.lineno  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "file",
    [file.relative_to(SRC).as_posix() for file in sorted(SRC.rglob("*.py")) if "papers" not in file.parts],
)
def test_nobody_asks_for_the_class_of_a_kind(file: str) -> None:
    lines = list(type_tests(SRC / file))
    if file.startswith(("policy/attributes/", "policy/secrets/")) or file in ONE_KIND_ALONE:
        return
    assert lines == [], f"{file} asks in lines {lines}; give the kinds a method instead"


@pytest.mark.parametrize("file", ONE_KIND_ALONE)
def test_the_exceptions_are_still_needed(file: str) -> None:
    assert list(type_tests(SRC / file))

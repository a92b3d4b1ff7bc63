"""Reproductions do not write verdicts: words of verdicts are in one module, and checks compare what was computed."""

import ast
from pathlib import Path

import pytest

import tacit_reproductions
from architecture.syntax import nodes_of

SRC = Path(tacit_reproductions.__file__).parent
WORDS = {"yes", "no", "partly", "not judged"}
NAMES = {"YES", "NO", "PARTLY", "NOT_JUDGED"}
CHECKS = {"check", "same", "about"}
MODULES = [path for path in sorted(SRC.rglob("*.py")) if path.name != "results.py"]


def written_verdicts(text: str) -> list[int]:
    """Return the lines with a verdict that somebody wrote, or with a number compared with a number that he wrote."""
    lines = []
    for node in nodes_of(text):
        if (isinstance(node, ast.Constant) and node.value in WORDS) or (
            isinstance(node, ast.Name) and node.id in NAMES
        ):
            lines.append(node.lineno)
        if isinstance(node, ast.ImportFrom) and any(one.name in NAMES for one in node.names):
            lines.append(node.lineno)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CHECKS:
            found = node.args[1]
            if not any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(found)):
                lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SRC).as_posix())
def test_nobody_writes_a_verdict(path):
    assert written_verdicts(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        'Claim("1", "a", "b", "c", "d", "yes")',
        'word = YES if fits else "no"',
        "from tacit_reproductions.results import PARTLY",
        'check("people", 515_597, "is", 515_597)',
        'same("sizes", (1, 2), found, 0)',
    ],
)
def test_what_is_written_is_found(text):
    assert written_verdicts(text)

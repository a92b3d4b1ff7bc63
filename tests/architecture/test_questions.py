"""A question lives in one module: nothing outside of `plan/queries/` asks which kind of question it has."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import tacit
from tacit.plan.derived import Derived
from tacit.plan.queries import QUESTIONS
from tacit.plan.query import Linear, Query
from tacit.report import charts, views

SRC = Path(tacit.__file__).parent
KINDS = {
    name: kind
    for file in sorted((SRC / "plan" / "queries").glob("*.py"))
    for name, kind in vars(import_module(f"tacit.plan.queries.{file.stem}")).items()
    if file.stem != "__init__" and inspect.isclass(kind) and issubclass(kind, Query) and not inspect.isabstract(kind)
}
FILES = [file for file in sorted(SRC.rglob("*.py")) if "queries" not in file.relative_to(SRC).parts]


def kinds_asked_for(file: Path) -> list[str]:
    """Return the kinds of questions that a file tests for, with the line."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            asked = ast.walk(node.args[1])
        elif isinstance(node, ast.MatchClass):
            asked = ast.walk(node.cls)
        else:
            continue
        found += [
            f"{file.name}:{node.lineno} {one.id}" for one in asked if isinstance(one, ast.Name) and one.id in KINDS
        ]
    return found


def test_there_are_kinds_to_ask_for() -> None:
    """Guards the test below."""
    assert {
        "Count",
        "Marginals",
        "Cumulative",
        "Ranges",
        "Total",
        "Mean",
        "Quantiles",
        "Below",
        "Above",
        "TopK",
    } <= set(KINDS)


def test_nothing_outside_asks_which_question_it_has() -> None:
    assert [found for file in FILES for found in kinds_asked_for(file)] == []


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.keyword)
def test_every_question_has_keys_words_for_the_docs_and_an_example(question: object) -> None:
    assert question.keys
    assert question.shown
    assert callable(question.example)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_question_is_drawn(kind: str) -> None:
    if kind == "MarginalsOf":
        return  # becomes marginals once there is a domain
    assert charts.draw.dispatch(KINDS[kind]) is not views.draw.dispatch(object)
    assert issubclass(KINDS[kind], Linear | Derived) or views.say.dispatch(KINDS[kind]) is not views.say.dispatch(
        object
    )

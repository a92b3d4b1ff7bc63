"""A question lives in one module, with all that it has to say about itself (who asks for it: `test_kinds.py`)."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import pytest

import tacit
from tacit.plan.plans.derived import Derived
from tacit.plan.question import Linear, Query
from tacit.plan.questions import QUESTIONS
from tacit.report.charts import chart_parts as views
from tacit.report.charts import release_charts as charts

SRC = Path(tacit.__file__).parent
KINDS = {
    name: kind
    for file in sorted((SRC / "plan" / "questions").glob("*.py"))
    for name, kind in vars(import_module(f"tacit.plan.questions.{file.stem}")).items()
    if file.stem != "__init__" and inspect.isclass(kind) and issubclass(kind, Query) and not inspect.isabstract(kind)
}


def test_there_are_kinds_to_ask_for() -> None:
    """Guards the tests below."""
    assert {
        "Count",
        "Marginals",
        "Cumulative",
        "Ranges",
        "Total",
        "Mean",
        "Variance",
        "Quantiles",
        "Below",
        "Above",
        "TopK",
    } <= set(KINDS)


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

"""Questions as job files write them, and what to ask instead of those that do not exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tacit.errors import PlanError, nearest
from tacit.plan.question_keys import QuestionKey
from tacit.plan.questions import QUESTIONS

_BY_WORD: Final = {question.keyword: question for question in QUESTIONS}
KEYWORDS: Final = tuple(_BY_WORD)


def from_document(document: Any) -> Any:
    """Read a query as a job file writes it: `{histogram: {attributes: [age], where: "age < 65"}}`."""
    if isinstance(document, str):
        document = {document: {}}
    if not isinstance(document, Mapping) or len(document) != 1:
        raise PlanError("must be one query", key="query", given=document, fix="For instance histogram: [age].")
    keyword, given = next(iter(document.items()))
    if keyword not in _BY_WORD:
        word = str(keyword)
        fix = _NO_QUESTIONS.get(word.lower().replace(" ", "_")) or nearest(word, list(_BY_WORD))
        raise PlanError("must be a known query", key="query", given=keyword, fix=fix)
    return _BY_WORD[keyword].reading(given)


def keys_of(keyword: str) -> dict[str, QuestionKey]:
    """Return the keys of a question by name; none if there is no such question."""
    return {key.name: key for key in _BY_WORD[keyword].keys} if keyword in _BY_WORD else {}


def example(keyword: str, policy: Any) -> Any:
    """Return a question of this kind about the policy's first attribute that suits it, secret ones first."""
    if keyword not in _BY_WORD:
        raise PlanError("must be a kind of question", key="mechanism", given=keyword, fix=nearest(keyword, KEYWORDS))
    return _BY_WORD[keyword].example(policy)


def query_schema() -> dict[str, Any]:
    """Return the JSON schema of a question in a job file."""
    bare = [question.keyword for question in QUESTIONS if not question.required and not question.either]
    return {
        "anyOf": [
            {"enum": bare},
            *(
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": [question.keyword],
                    "properties": {question.keyword: question.schema()},
                }
                for question in QUESTIONS
            ),
        ],
        "description": "One question.",
    }


_SPREAD: Final = "There is none: release a `histogram`, and compute it from that."
_ENDS: Final = (
    "There is none, since one person alone decides it: release `cumulative`, and read off a high or low share."
)
# what people look for under another name, and how they get it
_NO_QUESTIONS: Final = {
    **dict.fromkeys(("average", "avg", "means"), "Write `mean`."),
    **dict.fromkeys(
        ("quantile", "percentile", "percentiles", "quartile", "quartiles", "decile", "deciles"),
        "Write `quantiles`, with shares of the people: {quantiles: {attribute: age, at: [0.25, 0.5, 0.75]}}.",
    ),
    **dict.fromkeys(("medians",), "Write `median`."),
    **dict.fromkeys(("variance", "var", "std", "stddev", "mode"), _SPREAD),
    **dict.fromkeys(("min", "max", "minimum", "maximum"), _ENDS),
    **dict.fromkeys(("sum", "sums"), "Write `total`."),
    **dict.fromkeys(
        ("share", "shares", "percent", "percentage", "proportion"), "Release a `histogram`: its file has shares."
    ),
    **dict.fromkeys(("crosstab", "cross_table", "pivot", "contingency"), "Release a `histogram` of two attributes."),
    **dict.fromkeys(("cluster", "kmeans", "k_means"), "Write `clusters`: {clusters: {attributes: [x, y], k: 4}}."),
    **dict.fromkeys(("group_by", "groupby"), "Release a `histogram` of the attributes to group by."),
}


def no_such_question(word: str) -> str:
    """Return how to get what people look for under a name that no question has, or nothing."""
    return _NO_QUESTIONS.get(word, "")

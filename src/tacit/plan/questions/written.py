"""Questions as job files write them, and what to ask instead of those that do not exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tacit.errors import PlanError, nearest
from tacit.plan.question import Query, resolve
from tacit.plan.question_keys import as_written
from tacit.plan.questions import QUESTIONS
from tacit.policy.domain import Domain
from tacit.policy.keys import mapping
from tacit.policy.yaml_entries import YamlEntry

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


def read_query(entry: YamlEntry, domain: Domain) -> Query:
    """Return the question that a file asks, checked against the domain, or refuse it with the line that is wrong."""
    document = _document(entry, domain)
    blamed, places = entry, {"query": entry}
    if entry.is_mapping and len(document) == 1:
        (keyword, blamed), *_ = entry.mapping().items()
        places |= {keyword: blamed, **(blamed.mapping() if blamed.is_mapping else {})}
    with blamed.blamed(places):
        try:
            return resolve(from_document(document), domain)
        except (TypeError, ValueError):
            pass
        # raised outside the handler; such a query has a list where a text must be, or the other way round
        raise blamed.refuse(
            "must be a query", given=entry.plain(), fix="For instance {histogram: [age]} or {count: 'age < 30'}."
        )


def _document(entry: YamlEntry, domain: Domain) -> Any:
    """Return a question as plain data, each key read as the question says.

    What stands below a word that no question has is not looked at: that word is what is refused.
    """
    if not entry.is_mapping:
        return as_written(entry)
    found: dict[str, Any] = {}
    for keyword, below in entry.mapping().items():
        question = _BY_WORD.get(keyword)
        if question is None or not below.is_mapping:
            found[keyword] = below.plain() if question is None else as_written(below)
            continue
        fields = below.mapping()
        about = fields.get("attribute", fields.get("attributes"))
        names = None if about is None else about.plain()
        readers = {key.name: key.read or as_written for key in question.keys}
        found[keyword] = {
            key: readers[key](value, names, domain) if key in readers else value.plain()
            for key, value in fields.items()
        }
    return found


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
            *(mapping({question.keyword: question.schema()}, [question.keyword]) for question in QUESTIONS),
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
    **dict.fromkeys(("var", "variances"), "Write `variance`."),
    **dict.fromkeys(("std", "stddev"), "Write `variance`, and take its square root."),
    **dict.fromkeys(("mode",), _SPREAD),
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

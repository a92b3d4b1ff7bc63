"""Every question that can be asked, linear or a choice: checked against a domain, and read from job files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from tacit.errors import PlanError, PolicyError, nearest
from tacit.plan.queries import (
    LinearQuery,
    as_plan_error,
    count,
    cumulative,
    histogram,
    marginals,
    ranges,
    resolved,
    total,
)
from tacit.plan.selections import Selection, above, below, top_k
from tacit.policy.domain import Domain

AnyQuery: TypeAlias = LinearQuery | Selection


def asked(query: Any, domain: Domain) -> AnyQuery:
    """Return a query that is checked against a domain, or refuse."""
    if not isinstance(query, Selection):
        return resolved(query, domain)
    query.check(domain)
    return query


def from_document(said: Any) -> Any:
    """Read a query as a job file writes it: `{histogram: {attributes: [age], where: "age < 65"}}`."""
    if isinstance(said, str):
        said = {said: {}}
    if not isinstance(said, Mapping) or len(said) != 1:
        raise PlanError("must be one query", key="query", given=said, fix="For instance histogram: [age].")
    keyword, given = next(iter(said.items()))
    if keyword not in _READERS:
        word = str(keyword)
        fix = _NO_QUESTIONS.get(word.lower().replace(" ", "_")) or nearest(word, list(_READERS))
        raise PlanError("must be a known query", key="query", given=keyword, fix=fix)
    main, optional, read = _READERS[keyword]
    options = dict(given) if isinstance(given, Mapping) else {main: given} if given is not None else {}
    for key in options:
        if key not in (main, *optional):
            fix = _BY_GROUP if str(key) in _GROUPS else nearest(str(key), [main, *optional])
            raise PlanError("must be a known key", key=f"query.{keyword}", given=key, fix=fix)
    try:
        return read(options)
    except KeyError as missing:
        key = str(missing.args[0])
        raise PlanError(
            f"must say {key}", key=f"query.{keyword}", given=given, fix=f"Add `{key}: ..` under `{keyword}:`."
        ) from None
    except PolicyError as refusal:
        raise as_plan_error(refusal, key=f"query.{keyword}.{refusal.key}") from None


_MEAN: Final = (
    "There is no query for the mean: release a `total` and a `count` of the same people, and divide the first by the "
    "second."
)
_MEDIAN: Final = (
    "There is no query for quantiles: release `cumulative`, with consistent: true, and read off the value at which "
    "it passes the wanted share of its last count; half of it for the median."
)
_SPREAD: Final = "There is none: release a `histogram`, and compute it from that."
_ENDS: Final = (
    "There is none, since one person alone decides it: release `cumulative`, and read off a high or low share."
)
_BY_GROUP: Final = "Groups are asked one by one: one release for each, with `where` saying which people."
_GROUPS: Final = ("by", "group", "groups", "group_by", "groupby")
# what people look for under another name, and how they get it
_NO_QUESTIONS: Final = {
    **dict.fromkeys(("mean", "average", "avg", "means"), _MEAN),
    **dict.fromkeys(("median", "quantile", "quantiles", "percentile", "percentiles", "quartiles"), _MEDIAN),
    **dict.fromkeys(("variance", "var", "std", "stddev", "mode"), _SPREAD),
    **dict.fromkeys(("min", "max", "minimum", "maximum"), _ENDS),
    **dict.fromkeys(("sum", "sums"), "Write `total`."),
    **dict.fromkeys(
        ("share", "shares", "percent", "percentage", "proportion"), "Release a `histogram`: its file has shares."
    ),
    **dict.fromkeys(("crosstab", "cross_table", "pivot", "contingency"), "Release a `histogram` of two attributes."),
    **dict.fromkeys(("group_by", "groupby"), "Release a `histogram` of the attributes to group by."),
}


def no_such_question(word: str) -> str:
    """Return how to get what people look for under a name that no question has, or nothing."""
    return _NO_QUESTIONS.get(word, "")


def _names(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


_READERS: Final[dict[str, tuple[str, tuple[str, ...], Any]]] = {
    "count": ("where", (), lambda said: count(said.get("where"))),
    "histogram": ("attributes", ("where",), lambda s: histogram(*_names(s["attributes"]), where=s.get("where"))),
    "cumulative": ("attribute", ("where",), lambda said: cumulative(said["attribute"], where=said.get("where"))),
    "ranges": (
        "attribute",
        ("ranges", "where"),
        lambda said: ranges(said["attribute"], said.get("ranges", "all"), where=said.get("where")),
    ),
    "total": ("attribute", ("where",), lambda said: total(said["attribute"], where=said.get("where"))),
    "below": (
        "where",
        ("threshold", "item"),
        lambda said: below(said.get("where"), said["threshold"], item=said.get("item")),
    ),
    "top_k": ("attribute", ("k", "where"), lambda said: top_k(said["attribute"], said["k"], where=said.get("where"))),
    "above": (
        "attribute",
        ("threshold", "at_most", "values", "where"),
        lambda said: above(
            said["attribute"],
            said["threshold"],
            at_most=said["at_most"],
            values=said.get("values", True),
            where=said.get("where"),
        ),
    ),
    "marginals": (
        "attributes",
        ("ways", "sets", "where"),
        lambda said: marginals(
            *_names(said.get("attributes", [])),
            ways=said.get("ways", 2),
            sets=said.get("sets"),
            where=said.get("where"),
        ),
    ),
}
KEYWORDS: Final = tuple(_READERS)

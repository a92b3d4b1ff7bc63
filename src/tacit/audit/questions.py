"""Questions that are written on the command line of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from tacit.errors import PlanError
from tacit.plan.questions.written import from_document


def written(said: str, keyword: str) -> Any:
    """Return the question of this kind that somebody wrote as a job file does: `histogram: [age]`."""
    try:
        document = yaml.safe_load(said)
    except yaml.YAMLError:
        document = None
    if document is None:
        raise PlanError("must be a question", key="ask", given=said, fix="For instance 'histogram: [age]'.")
    query = from_document(document)
    if keyword not in (document if isinstance(document, Mapping) else [document]):
        raise PlanError(
            f"must be a question of the kind {keyword}", key="ask", given=said, fix="Name that kind instead."
        )
    return query

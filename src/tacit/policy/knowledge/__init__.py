"""What the world already knows about the data set: a module for each kind of fact.

Knowledge couples people: if the number of hiv patients is public and one record changes, another must have changed
with it. So knowledge never makes a release cheaper by itself, it raises the largest step
(`plan/sensitivity/coupling.py`), and in return a release may use the known numbers exactly.

In reading order:

    fact            every behaviour of a fact
    known_size      how many people there are
    known_marginal  the whole histogram of some attributes
    known_count     how many people a predicate picks

A new fact is a module and a line of `FACTS` below.
"""

from __future__ import annotations

from typing import Final

from tacit.policy.knowledge.fact import Known
from tacit.policy.knowledge.known_count import KnownCount
from tacit.policy.knowledge.known_marginal import KnownMarginal
from tacit.policy.knowledge.known_size import KnownSize
from tacit.policy.where import Where, where

FACTS: Final[dict[str, type[Known]]] = {one.key.name: one for one in (KnownSize, KnownMarginal, KnownCount)}


def size(people: int | None = None) -> Known:
    """Declare that the number of people is public."""
    return KnownSize(people)


def marginal(*names: str) -> Known:
    """Declare that the histogram of these attributes is public."""
    return KnownMarginal(tuple(names))


def count(where_picked: Where | str) -> Known:
    """Declare that the number of people that a predicate picks is public."""
    return KnownCount(where(where_picked))


__all__ = ["FACTS", "Known", "KnownCount", "KnownMarginal", "KnownSize", "count", "marginal", "size"]


def __dir__() -> list[str]:
    """Return what a user may want to complete: the facts."""
    return ["count", "marginal", "size"]

"""True answers, counted by the rows' own engine. What is returned here must never leave the release stage."""

from __future__ import annotations

import math
from typing import Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.plan.queries import Count, Cumulative, LinearQuery, Marginals, Ranges, Total
from tacit.policy.domain import Domain
from tacit.policy.where import Test

Ints = npt.NDArray[np.int64]
ONE_SCAN: Final = 1_000_000  # cells of a joint table that is counted once instead of once for each marginal


class Countable(Protocol):
    """Rows that can be counted; see `rows/rows.py`."""

    def counts(self, names: tuple[str, ...], where: Test | None = None) -> Ints:
        """Return the histogram of some attributes."""

    def item_counts(self, name: str, where: Test | None = None) -> Ints:
        """Return how many people have each item."""

    def total(self, name: str, where: Test | None = None) -> int:
        """Return the sum of an attribute."""


def true_answers(query: LinearQuery, rows: Countable, domain: Domain, *, joint_is_safe: bool = True) -> Ints:
    """Return the true answers of a query, flat, in the order of its labels.

    `joint_is_safe` is False where a person may be in several cells, so that marginals are not sums of a joint table.
    """
    test = query.where.compile(domain) if query.where is not None else None
    match query:
        case Count():
            return np.asarray(rows.counts((), test), dtype=np.int64).reshape(1)
        case Total():
            # cut to what 62 bits hold: cutting never moves two totals further apart, so the step still bounds it
            return np.array([max(-(2**62), min(rows.total(query.name, test), 2**62))], dtype=np.int64)
        case Cumulative():
            return np.cumsum(rows.counts((query.name,), test), dtype=np.int64)
        case Ranges():
            below = np.concatenate([[0], np.cumsum(rows.counts((query.name,), test), dtype=np.int64)])
            return range_sums(query, below, domain)
        case Marginals():
            if query.is_items(domain):
                return np.asarray(rows.item_counts(query.sets[0][0], test), dtype=np.int64)
            return np.concatenate([table.reshape(-1) for table in _tables(query, rows, test, domain, joint_is_safe)])


Number = TypeVar("Number", np.int64, np.float64)


def range_sums(query: Ranges, below: npt.NDArray[Number], domain: Domain) -> npt.NDArray[Number]:
    """Return the count of each range from the counts below each position (one more entry than positions)."""
    low, high = query.ends(domain)
    return np.subtract(below[high + 1], below[low])


def _tables(
    query: Marginals,
    rows: Countable,
    test: Test | None,
    domain: Domain,
    joint_is_safe: bool,  # noqa: FBT001
) -> list[Ints]:
    union = tuple(name for name in domain if any(name in names for names in query.sets))
    if len(query.sets) > 1 and joint_is_safe and math.prod(domain[name].size for name in union) <= ONE_SCAN:
        joint = rows.counts(union, test)
        return [
            joint.sum(axis=tuple(place for place, name in enumerate(union) if name not in names)).transpose(
                _order([name for name in union if name in names], names)
            )
            for names in query.sets
        ]
    return [rows.counts(names, test) for names in query.sets]


def _order(have: list[str], want: tuple[str, ...]) -> list[int]:
    return [have.index(name) for name in want]

"""The expected error of a plan, from public parameters alone: the variance of an answer, averaged over the answers.

What is predicted is what `release/infer.py` does by default: subtract the mean of the noise, then use the totals that
no secret edge changes, by least squares. Consistency and non-negativity are projections on sets that hold the truth:
for them the number is an upper bound.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.noise.law import Law
from tacit.plan.directions import Bools, directions
from tacit.plan.queries import Count, Cumulative, LinearQuery, Marginals, Ranges
from tacit.plan.sums import blocks_of, cells_in_sum
from tacit.plan.totals import exact_cumulative, exact_groups
from tacit.policy.policy import Policy

Ints = npt.NDArray[np.int64]


def expected_variance(
    query: LinearQuery,
    base: LinearQuery,
    policy: Policy,
    noise: Law | None,
    sides: tuple[Bools, Bools] | None,
) -> float:
    """Return the variance of an answer, averaged over the answers of a query that is answered through a base query."""
    if noise is None:
        return 0.0
    if query is not base:
        return noise.variance() * _entries_added_up(query, base, policy, noise)
    if isinstance(base, Cumulative):
        exact = exact_entries(base, policy)
        return noise.variance() * (1.0 if exact is None else float(1 - exact.mean()))
    if sides is None or noise.is_joint:
        entries = np.full(base.size(policy.domain), noise.variance())
    else:
        entries = _by_side(noise, sides)
    groups = groups_used(query, base, policy, noise)
    if groups is not None:
        ends = np.cumsum([len(group) for group in groups])[:-1]
        entries = np.concatenate(
            [_after_total(part, group) for part, group in zip(np.split(entries, ends), groups, strict=True)]
        )
    return float(entries.mean())


def _by_side(noise: Law, sides: tuple[Bools, Bools]) -> npt.NDArray[np.float64]:
    right, left = (noise.on_sides(falls=falls, rises=not falls).variance() for falls in (True, False))
    falls, rises = sides
    return np.where(falls & rises, noise.variance(), np.where(falls, right, 0.0) + np.where(rises, left, 0.0))


def _after_total(variances: npt.NDArray[np.float64], group: Ints) -> npt.NDArray[np.float64]:
    """Return what is left of each variance after weighted least squares with an exact total: v - v^2 / sum of v."""
    sums = np.bincount(group, variances)[group]
    return variances - np.divide(variances**2, sums, out=np.zeros_like(variances), where=sums > 0)


def _entries_added_up(query: LinearQuery, base: LinearQuery, policy: Policy, noise: Law) -> float:
    """Return how many noisy entries an answer amounts to, on average, where it is answered through another query."""
    if noise.is_joint and (not noise.is_even or isinstance(base, Marginals)):
        return math.inf  # dependent entries: sums are not predicted, so this strategy is not taken
    low, high = query_ends(query, policy)
    if isinstance(base, Marginals):
        groups = groups_used(query, base, policy, noise)
        return float(cells_in_sum(low, high, None if groups is None else blocks_of(groups[0])).mean())
    assert isinstance(base, Cumulative)  # noqa: S101 - the only other base
    exact = exact_entries(base, policy)
    blurred = np.ones(policy.domain[base.name].size, dtype=np.bool_) if exact is None else ~exact
    return float(blurred[high].mean() + ((low > 0) & blurred[low - 1]).mean())


def query_ends(query: LinearQuery, policy: Policy) -> tuple[Ints, Ints]:
    """Return the first and last position that each answer of a cumulative or range query adds up."""
    if isinstance(query, Cumulative):
        high = np.arange(policy.domain[query.name].size, dtype=np.int64)
        return np.zeros_like(high), high
    assert isinstance(query, Ranges)  # noqa: S101 - the only other query that is answered through another
    return query.ends(policy.domain)


def groups_used(query: LinearQuery, base: LinearQuery, policy: Policy, noise: Law | None) -> list[Any] | None:
    """Return the groups of cells whose exact totals a release uses, or None.

    Least squares wants uncorrelated noise, so a one-sided cube uses none. Sums of cells use groups without gaps only.
    """
    if noise is None or (noise.is_joint and not noise.is_even):
        return None
    groups = groups_for(base, policy)
    if groups is not None and query is not base and blocks_of(groups[0]) is None:
        return None
    return groups


@lru_cache(maxsize=2)  # planned, then used by the release right after; may be large
def groups_for(query: LinearQuery, policy: Policy) -> list[Any] | None:
    """Return the groups of cells whose totals are exact; none where a person may count in several cells."""
    return exact_groups(query, policy) if policy.per_person == 1 and not isinstance(query, Count) else None


@lru_cache(maxsize=2)
def directions_for(query: LinearQuery, policy: Policy) -> tuple[Bools, Bools] | None:
    """Return which entries can fall and which can rise, or None where all can do both."""
    return directions(query, policy) if isinstance(query, Marginals) else None


def exact_entries(query: Cumulative, policy: Policy) -> Bools | None:
    """Return which cumulative counts are exact, or None."""
    return exact_cumulative(query, policy) if policy.per_person == 1 else None

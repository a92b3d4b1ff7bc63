"""The expected error of a plan, from public parameters alone: the variance of an answer, averaged over the answers.

What is predicted is what `release/infer.py` does by default, with the same facts, which the plan holds: subtract the
mean of the noise, then use the totals that no secret edge changes, by least squares. Consistency and non-negativity are
projections on sets that hold the truth: for them the number is an upper bound.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.noise.law import Law
from tacit.plan.query import Bools, Ints, Linear
from tacit.plan.runs import mean_over
from tacit.plan.sums import blocks_of
from tacit.policy.policy import Policy

if TYPE_CHECKING:
    from tacit.plan.choose import Plan


def expected_variance(plan: Plan) -> float:
    """Return the variance of an answer, averaged over the answers."""
    noise, base, domain = plan.noise, plan.base, plan.policy.domain
    if noise is None:
        return 0.0
    if plan.on_line:
        errors = plan.line_errors
        if errors is not None:
            return mean_over(errors, plan.query.workload(domain))
        # entries that depend on each other: their sums are not predicted, so a way that adds them up is not taken
        return noise.variance() * (1 - _share_of(plan.fixed)) if plan.query is base else math.inf
    if plan.sides is None or noise.is_joint:
        # v - v^2 / (n v) for each of the n cells of a group with an exact total: what is left of n cells is n - 1
        exact = sum(int(group.max()) + 1 for group in plan.groups or ())
        return noise.variance() * (1 - exact / base.size(domain))
    entries = _by_side(noise, plan.sides)
    if plan.groups is not None:
        ends = np.cumsum([len(group) for group in plan.groups])[:-1]
        entries = np.concatenate(
            [_after_total(part, group) for part, group in zip(np.split(entries, ends), plan.groups, strict=True)]
        )
    return float(entries.mean())


def groups_used(query: Linear, base: Linear, policy: Policy, noise: Law | None) -> list[Ints] | None:
    """Return the groups of cells whose exact totals a release uses, or None.

    Least squares wants uncorrelated noise, so a one-sided cube uses none. Sums of cells use groups without gaps only.
    """
    if noise is None or (noise.is_joint and not noise.is_even):
        return None
    groups = base.finest_groups(policy)
    if groups is not None and query is not base and blocks_of(groups[0]) is None:
        return None
    return groups


def _share_of(exact: Bools | None) -> float:
    return 0.0 if exact is None else float(exact.mean())


def _by_side(noise: Law, sides: tuple[Bools, Bools]) -> npt.NDArray[np.float64]:
    right, left = (noise.on_sides(falls=falls, rises=not falls).variance() for falls in (True, False))
    falls, rises = sides
    return np.where(falls & rises, noise.variance(), np.where(falls, right, 0.0) + np.where(rises, left, 0.0))


def _after_total(variances: npt.NDArray[np.float64], group: Ints) -> npt.NDArray[np.float64]:
    """Return what is left of each variance after weighted least squares with an exact total: v - v^2 / sum of v."""
    sums = np.bincount(group, variances)[group]
    return variances - np.divide(variances**2, sums, out=np.zeros_like(variances), where=sums > 0)

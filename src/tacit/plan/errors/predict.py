"""The expected error of a plan, from public parameters alone: the variance of an answer, averaged over the answers.

What is predicted is what `release/estimate/infer.py` does by default, with the same facts, which the plan holds:
subtract the
mean of the noise, then use the totals that no secret edge changes, by least squares, and make several tables agree if
that is asked for. Rising counts and non-negativity are projections on sets that hold the truth: for them the number is
an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.arrays import Bools, Ints
from tacit.noise.law import Law
from tacit.plan.errors.runs import mean_over
from tacit.plan.measure.block_sums import blocks_of
from tacit.plan.measure.measured import Measured
from tacit.plan.question import Linear
from tacit.policy.policy import Policy

if TYPE_CHECKING:
    from tacit.plan.plans.linear import LinearPlan


def expected_variance(plan: LinearPlan) -> float:
    """Return the variance of an answer, averaged over the answers."""
    noise, base, domain = plan.noise, plan.base, plan.policy.domain
    if noise is None:
        return 0.0
    agreed = agreed_variance(plan)
    if agreed is not None:
        return agreed
    if plan.line is not None:
        errors = plan.line_errors
        if errors is not None:
            return mean_over(errors, plan.line.asked.workload(domain))
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


def agreed_variance(plan: LinearPlan) -> float | None:
    """Return the variance of a cell, averaged over all, after several tables were made to agree; None where unknown.

    As in the analysis of variance, a table is a sum of orthogonal parts, one for each set S of its attributes, with one
    dimension for each combination of values but the first. A table of n cells of variance v gives the part of S, summed
    up to the n_S cells of S, with variance n v / n_S. Least squares weighs the tables that contain S by the inverse of
    that, and spreads the part evenly over the n / n_S cells of a table that each of these cells stands for.
    """
    domain, noise = plan.policy.domain, plan.noise
    tables = plan.base.tables(domain)
    if not plan.consistent or len(tables) < 2 or plan.query is not plan.base or noise is None:
        return None
    if plan.sides is not None or (noise.is_joint and not noise.is_even):
        return None
    shapes = [tuple(domain[name].size for name in names) for names in tables]
    cells = [math.prod(shape) for shape in shapes]
    entries = plan.per_entry(lambda law: law.variance())
    variances = [float(entries[end - size]) for end, size in zip(np.cumsum(cells), cells, strict=True)]
    weights: dict[frozenset[str], float] = {}
    for names, size, variance in zip(tables, cells, variances, strict=True):
        for part in _subsets(names):
            weights[part] = weights.get(part, 0.0) + (1 / (size * variance) if variance else math.inf)
    for names, shape, group in zip(tables, shapes, plan.groups or (), strict=bool(plan.groups)):
        known = _attributes_of(group, names, shape)
        if known is None:
            return None
        weights.update(dict.fromkeys(_subsets(known), math.inf))
    total = sum(
        math.prod(domain[name].size - 1 for name in part) / (size * weights[part])
        for names, size in zip(tables, cells, strict=True)
        for part in _subsets(names)
    )
    return total / sum(cells)


def _subsets(names: tuple[str, ...]) -> Iterator[frozenset[str]]:
    return (frozenset(some) for many in range(len(names) + 1) for some in combinations(names, many))


def _attributes_of(group: Ints, names: tuple[str, ...], shape: tuple[int, ...]) -> tuple[str, ...] | None:
    """Return the attributes whose cells the groups of a table are; None if the groups are no cells of attributes."""
    labels = group.reshape(shape)
    telling = [axis for axis in range(len(shape)) if np.diff(labels, axis=axis).any()]
    many = math.prod(shape[axis] for axis in telling)
    return tuple(names[axis] for axis in telling) if many == int(group.max()) + 1 else None


def groups_used(query: Linear, base: Measured, policy: Policy, noise: Law | None) -> list[Ints] | None:
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

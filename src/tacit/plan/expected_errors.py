"""The expected error of a plan, from public parameters alone: the variance of an answer, averaged over the answers.

What is predicted is what `release/estimate/infer.py` does by default, with the same facts, which the plan holds:
subtract the mean of the noise, then use the totals that no secret edge changes, by least squares, and make several
tables agree if that is asked for. Rising counts and non-negativity are projections on sets that hold the truth: for
them the number is an upper bound.

Counts on a line are differences of estimated running counts, whatever noise is added to. `LineErrors` is what every way
to estimate them says about itself: the variance of a run of neighbouring positions, the mean over all runs of a kind
without listing them, and bounds that hold, from the law of its error.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.arrays import Bools, Floats, Ints
from tacit.noise.law import Kind, Law
from tacit.plan.error_laws import AnySpread, PositionGroups, blocks_of, cells_in_sum, of_cells, of_two_counts, read_only
from tacit.plan.measure.measured import Measured
from tacit.plan.question import Linear
from tacit.policy.policy import Policy

if TYPE_CHECKING:
    from tacit.plan.plans.linear import LinearPlan


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs low..high of a line of so many values that a question is about: all of a kind, or listed ones."""

    values: int
    kind: Kind | None
    low: Ints | None = None
    high: Ints | None = None


class LineErrors(ABC):
    """How far estimated counts of runs are off."""

    @abstractmethod
    def run_variance(self, low: Ints, high: Ints) -> Floats:
        """Return the variance of the estimated number of people at the positions low..high."""

    @abstractmethod
    def mean_variance(self, kind: Kind) -> float:
        """Return its mean over all ranges, all prefixes or all single positions."""

    @abstractmethod
    def spread(self, low: Ints, high: Ints) -> AnySpread:
        """Return the law of the error of each run, or what is known of it."""


def mean_over(errors: LineErrors, runs: Runs) -> float:
    """Return the mean variance of the runs that are asked for."""
    if runs.kind is not None:
        return float(errors.mean_variance(runs.kind))
    assert runs.low is not None  # noqa: S101 - runs are of a kind or listed
    assert runs.high is not None  # noqa: S101
    return float(errors.run_variance(runs.low, runs.high).mean())


@dataclass(frozen=True, eq=False)
class NoisyCounts(LineErrors):
    """Running counts with uncorrelated noise of one law, but for the exact ones."""

    noise: Law
    noisy: Bools

    def __post_init__(self) -> None:
        object.__setattr__(self, "noisy", read_only(self.noisy))

    def spread(self, low: Ints, high: Ints) -> AnySpread:
        return of_two_counts(self.noise, self.noisy[high], (low > 0) & self.noisy[low - 1])

    def run_variance(self, low: Ints, high: Ints) -> Floats:
        before = (low > 0) & self.noisy[low - 1]
        return np.asarray(self.noise.variance() * (self.noisy[high].astype(np.float64) + before))

    def mean_variance(self, kind: Kind) -> float:
        """A count is the upper end of the p+1 ranges up to it and the lower end of the n-1-p behind it: n in all."""
        values, noisy = len(self.noisy), int(self.noisy.sum())
        match kind:
            case "ranges":
                return self.noise.variance() * 2 * noisy / (values + 1)
            case "prefixes":
                return self.noise.variance() * noisy / values
            case "cells":  # every count but the last is the lower end of one cell as well
                return self.noise.variance() * (2 * noisy - int(self.noisy[-1])) / values


@dataclass(frozen=True, eq=False)
class NoisyCells(LineErrors):
    """Sums of cells with uncorrelated noise of one law, in blocks with exact totals (`plan/error_laws.py`)."""

    noise: Law
    values: int
    blocks: PositionGroups | None

    def __post_init__(self) -> None:
        if self.blocks is not None:
            object.__setattr__(
                self, "blocks", PositionGroups(read_only(self.blocks.first), read_only(self.blocks.last))
            )

    def spread(self, low: Ints, high: Ints) -> AnySpread:
        return of_cells(self.noise, low, high, self.blocks)

    def run_variance(self, low: Ints, high: Ints) -> Floats:
        return self.noise.variance() * cells_in_sum(low, high, self.blocks)

    def mean_variance(self, kind: Kind) -> float:
        """Sums over whole blocks in closed form.

        A block of m cells has the part k with the variance k (1 - k/m). Each of the (m^2 - 1)/6 that the parts
        k = 1..m from either end add up to is met once for every range that begins (ends) here and ends (begins) in
        another block; ranges within the block are those of k cells, m + 1 - k of them.
        """
        n = self.values
        if self.blocks is None:
            return self.noise.variance() * {"ranges": (n + 2) / 3, "prefixes": (n + 1) / 2, "cells": 1.0}[kind]
        starts = np.flatnonzero(self.blocks.first == np.arange(n))
        m = np.diff(starts, append=n).astype(np.float64)
        ends = (m * m - 1) / 6
        match kind:
            case "prefixes":
                total = ends
            case "cells":
                total = m - 1
            case "ranges":
                within = (m + 1) * ends - m * (m + 1) * (2 * m + 1) / 6 + m * (m + 1) ** 2 / 4
                total = within + (n - m) * ends
        return self.noise.variance() * float(total.sum()) / (n * (n + 1) / 2 if kind == "ranges" else n)


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
            return mean_over(errors, plan.line.query.workload(domain))
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

"""Which cells clusters are found from: what is tried, and how far off centres are expected to be.

Everything here is computed from public numbers. Cells are about as wide on one axis as on the others, in the numbers of
the data: squared distances add up over axes, so that an error on one of them weighs as much as on another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tacit.arrays import Floats
from tacit.plan.measure.soft_cells import AxisCells, SoftCells
from tacit.plan.sensitivity.moves import axis_labels
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.where import Where

if TYPE_CHECKING:
    from tacit.plan.plans.linear import LinearPlan

MOST_CELLS: Final = 1 << 20
MOST_ON_AN_AXIS: Final = 4096
MOST_PARTS: Final = 1 << 24  # of a person, in cells with ramps
CELLS_FOR_A_CENTRE: Final = 4  # at least, where the domain has as many
WIDTHS: Final = 2 ** (1 / 4)  # from one width that is tried to the next
# Measured on the sets of bench_clusters.py: by how much cells of width one add to the mean squared distance, on an axis
# with 1, 2, 3 or more of them (with ramps twice that); how many times more noisy cells add than they would in fixed
# regions, since centres follow the noise; and at most which part of the sum of squared ranges.
COARSE: Final = (1 / 12, 0.065, 0.038, 0.024)
RAMPS: Final = 2
CHASED: Final = 4
FARTHEST: Final = 1 / 40


def lines_of(names: tuple[str, ...], domain: Domain) -> list[AxisCells]:
    """Return the axes of some attributes, each as one cell."""
    return [
        AxisCells(axis, (), first, step)
        for name in names
        for axis, (first, step) in zip(domain.axes_of(name), domain[name].coordinates, strict=True)
    ]


def grids(names: tuple[str, ...], where: Where | None, k: int, policy: Policy) -> Iterator[SoftCells]:
    """Yield the grids that are tried: widths in steps, with borders and with ramps; and what no secret edge leaves."""
    lines = lines_of(names, policy.domain)
    finest = math.prod(line.axis.size for line in lines)
    fewest = min(CELLS_FOR_A_CENTRE * k, finest)
    width, seen = max(_range(line) for line in lines), set()
    while True:
        wide = [max(1, round(width / abs(line.step))) for line in lines]
        cut = [_cut(line, one) for line, one in zip(lines, wide, strict=True)]
        many = math.prod(line.many for line in cut)
        if many > MOST_CELLS or any(line.many > MOST_ON_AN_AXIS for line in cut):
            break
        shape = tuple(line.borders for line in cut)
        if many >= fewest and shape not in seen:
            seen.add(shape)
            yield SoftCells(names, tuple(cut), where)
            ramps = [replace(line, ramp=one if line.borders else 1) for line, one in zip(cut, wide, strict=True)]
            if 1 < math.prod(line.parts for line in ramps) <= MOST_PARTS:
                yield SoftCells(names, tuple(ramps), where)
        if many == finest:
            break
        width /= WIDTHS
    if not seen:  # so many axes that even two cells on each are too many
        yield SoftCells(names, tuple(lines), where)
    blocks = [_uncrossed(policy, line) for line in lines]
    if fewest <= math.prod(line.many for line in blocks) <= MOST_CELLS:
        yield SoftCells(names, tuple(blocks), where)


def grid_of(plan: LinearPlan) -> SoftCells:
    """Return the cells that a part of a plan counts."""
    grid: Any = plan.base
    found: SoftCells = grid
    return found


def added_distance(plan: LinearPlan, k: int, people: float) -> float:
    """Return by how much such cells are expected to raise the mean squared distance of people to the nearest centre."""
    axes = grid_of(plan).axes
    coarse = sum(
        COARSE[min(one.many, len(COARSE)) - 1]
        * float(np.mean(one.widths**2) - one.step**2)
        * (RAMPS if one.ramp > 1 else 1)
        for one in axes
    )
    noise = CHASED * _in_fixed_regions(plan, k, people)
    most = FARTHEST * sum(_range(one) ** 2 for one in axes)
    return coarse + (noise * most / (noise + most) if noise else 0.0)


def _in_fixed_regions(plan: LinearPlan, k: int, people: float) -> float:
    """Return what noise adds around the means of k like regions that do not depend on it.

    The noise of a region's cells moves its mean by the sum of noise * position over the people in it. A region is about
    k^(-1/d) of the range wide on each of d axes.
    """
    cut = [one for one in grid_of(plan).axes if one.many > 1]
    if plan.noise is None or not cut:
        return 0.0
    variance = plan.noise.variance() * float(plan.query.unit(plan.policy.domain)) ** 2
    cells = math.prod(one.many for one in cut)
    wide = sum(_range(one) ** 2 for one in cut) / 12
    return float(cells * k ** (1 - 2 / len(cut)) * variance * wide / people**2)


def inside(grid: SoftCells, weights: Floats) -> float:
    """Return what the middles of cells leave out of, or ramps add to, the mean squared distance.

    On each axis, of people who are spread evenly over a cell of w positions, (w^2 - 1)/12; a ramp as wide as a cell
    sends them to two middles, which adds w^2/6 instead.
    """
    low, high = grid.boxes()
    total = 0.0
    for axis, line in enumerate(grid.axes):
        if line.ramp == 1:
            wide = (high - low)[:, axis] ** 2 - line.step**2
            total += float(np.average(wide, weights=weights if weights.any() else None)) / 12
        else:
            total -= float((line.ramp * line.step) ** 2) / 6
    return total


def _range(line: AxisCells) -> float:
    return abs(line.step) * line.axis.size


def _cut(line: AxisCells, wide: int) -> AxisCells:
    """Return an axis in cells of so many positions; what is left over is shared by the first and the last."""
    many = -(-line.axis.size // wide)
    first = wide - (many * wide - line.axis.size) // 2
    return replace(line, borders=tuple(range(first, line.axis.size, wide))[: many - 1])


def _uncrossed(policy: Policy, line: AxisCells) -> AxisCells:
    """Return an axis in cells that no secret edge leaves, as many as may be."""
    labels = axis_labels(policy, line.axis)
    borders = np.flatnonzero(np.diff(labels)) + 1
    if len(np.unique(labels)) != len(borders) + 1:  # positions with one label do not lie together
        return line
    return replace(line, borders=tuple(borders[:: len(borders) // MOST_ON_AN_AXIS + 1].tolist()))

"""People shared out between the cells of a coarse grid: what clusters are found from.

Each axis is cut into cells. With a ramp of one position everybody is wholly in one cell: a histogram. With a wider ramp
whoever stands near a border is partly in the cell on either side, in shares that change linearly across the ramp; on
several axes the shares are multiplied. What one person adds to the cells adds up to one person, always.

From noisy counts of cells to weights (`shared_out`) is post-processing: none is negative, and together they are as many
as the people. The nearest such weights take the same number off every cell, which is a lot in all where many are full:
it stays behind as noise in empty cells, wherever they lie. So the people are shared out from the top: of a block of
cells with halves along every axis each half gets the nearest share of what the block has, down to single cells. The
noise of a sum over a block is far less than that of its cells one by one, so that little is taken off full blocks, and
what is taken off a full cell stays near it. `tacit bench clusters` has both.

Guarantee   Along every secret edge of the policy, by which a record moves by at most r_i positions on axis i, the
            shares that leave cells, and those that come to others, are each at most 1 - product of (1 - t_i), where
            t_i = min(1, r_i / ramp_i) with a ramp, and without one 1 if the edge may cross a border and else 0. Under
            a distance of kind l1, at most the largest of min(1, theta / (ramp_i * spacing_i)).
Assumes     Ramps of one axis do not overlap: borders are at least a ramp apart. One row for each person.
Why         Somebody's shares are the probabilities that independent draws, one for each axis, end in a cell. What
            leaves cells is the total variation distance of two such laws: the chance that the draws differ when they
            are coupled as well as can be. On one axis a step by one position changes the share beyond a border by
            1/ramp at most, and no two borders share a step's worth of ramp: r positions change it by r/ramp. Draws of
            several axes all agree with probability product of (1 - t_i); or they differ with probability at most the
            sum of t_i, which under l1 is largest when one axis has the whole distance.
Reference   Blowfish privacy, section 6, clusters cells where it sums up points; its Lemma 6.1 forgets edges that cross
            a border. Shares that are Lipschitz in the position move by O(theta), whatever border is crossed.
Checked by  tests/property/test_soft_cells.py, tests/unit/plan/test_clusters.py
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.plan.measure.measured import CellCounts, Tally
from tacit.plan.question import Linear, in_words, suffix
from tacit.plan.sensitivity.responses import Jump, PlacedResponse, RecordMove, Response
from tacit.policy.attributes.attribute import Axis, Value
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import Relation
from tacit.policy.policy import Policy
from tacit.policy.where import Where


@dataclass(frozen=True)
class AxisCells:
    """An axis that is cut into cells: `borders` are the first positions of all cells but the first.

    `ramp` is how many positions a border is spread over. Position p has the number `first` + p * `step` in the data.
    """

    axis: Axis
    borders: tuple[int, ...]
    first: float
    step: float
    ramp: int = 1

    @property
    def many(self) -> int:
        """How many cells there are."""
        return len(self.borders) + 1

    @property
    def parts(self) -> int:
        """How many parts a person is cut into, so that every share is a whole number of parts."""
        return self.ramp if self.ramp % 2 else 2 * self.ramp

    @cached_property
    def shares(self) -> tuple[Ints, Ints]:
        """For each position the first cell that it has a share in, and how many parts lie in the cell after that."""
        places = np.arange(self.axis.size, dtype=np.int64)
        if not self.borders:
            return np.zeros_like(places), np.zeros_like(places)
        borders = np.array(self.borders, dtype=np.int64)
        # the border nearest to a position: all others are too far away to share it out
        middles = (borders[:-1] + borders[1:]) / 2
        cell = np.searchsorted(middles, places + 0.5, side="right").astype(np.int64)
        # how far the middle of a position lies beyond the beginning of the ramp, in halves
        beyond = np.clip(2 * places + 1 - 2 * borders[cell] + self.ramp, 0, 2 * self.ramp)
        beyond = beyond * self.parts // (2 * self.ramp)
        whole = beyond == self.parts
        return cell + whole, np.where(whole, 0, beyond)

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """The first and the last position of each cell."""
        borders = np.array(self.borders, dtype=np.float64)
        return np.concatenate([[0.0], borders]), np.append(borders - 1, self.axis.size - 1.0)

    @property
    def middles(self) -> Floats:
        """The middle of each cell, in the numbers of the data."""
        low, high = self.ends
        return self.first + self.step * (low + high) / 2

    @property
    def widths(self) -> Floats:
        """How wide each cell is, in the numbers of the data."""
        low, high = self.ends
        return abs(self.step) * (high - low + 1)

    @property
    def widest(self) -> int:
        """How many positions the widest cell has."""
        low, high = self.ends
        return int((high - low + 1).max())

    def reach(self, relation: Relation) -> Fraction:
        """Return the largest share of a person that a move by this relation can take across borders."""
        everywhere = Intervals.full(self.axis.size)
        if self.ramp > 1:
            far = relation.farthest(everywhere, everywhere) if self.borders else 0
            return min(Fraction(far, self.ramp), Fraction(1))
        return Fraction(int(any(self._crosses(relation, border) for border in self.borders)))

    def _crosses(self, relation: Relation, border: int) -> bool:
        below, beyond = Intervals.of([(0, border - 1)]), Intervals.of([(border, self.axis.size - 1)])
        return bool(relation.targets(below) & beyond and relation.differences(below, beyond)) or bool(
            relation.targets(beyond) & below and relation.differences(beyond, below)
        )


@dataclass(frozen=True)
class SoftCells(Linear):
    """How many people are in each cell of a coarse grid, row by row; those near a ramp partly.

    Numbers are counted in parts of a person.
    """

    names: tuple[str, ...]
    axes: tuple[AxisCells, ...]
    where: Where | None = None
    keyword: ClassVar[str] = "clusters"

    @property
    def parts(self) -> int:
        """How many parts a person is cut into."""
        return math.prod(cells.parts for cells in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells there are along each axis."""
        return tuple(cells.many for cells in self.axes)

    def shape_words(self) -> str:
        """Return in words which cells these are."""
        ramps = " with ramps" if any(one.ramp > 1 for one in self.axes) else ""
        return f"{' x '.join(f'{many:,}' for many in self.shape)} cells{ramps}"

    def boxes(self) -> tuple[Floats, Floats]:
        """Return the lowest and the highest number of each cell along each axis: a row for each cell."""
        halves = [(cells.middles, cells.widths / 2) for cells in self.axes]
        low, high = (np.meshgrid(*(middle + side * half for middle, half in halves), indexing="ij") for side in (-1, 1))
        return tuple(np.stack([one.reshape(-1) for one in ends], axis=1) for ends in (low, high))  # type: ignore[return-value]

    def points(self) -> Floats:
        """Return the middle of each cell, in the numbers of the data: a row for each cell."""
        low, high = self.boxes()
        return (low + high) / 2

    def weights(self, counted: Floats, spread: float, total: float) -> tuple[Floats, Floats]:
        """Return weights of the cells from noisy counts, and numbers of people that noise makes no larger on average.

        Weights are not negative; both add up to `total`. `spread` is the scale of the noise.
        """
        found = shared_out(counted.reshape(self.shape), total).reshape(-1)
        return found, counted + (total - counted.sum()) / len(counted)

    @property
    def word(self) -> str:
        return "cells"

    def mentioned(self) -> frozenset[str]:
        return super().mentioned() | set(self.names)

    def options(self) -> dict[str, Any]:
        """Return the cells as plain data; job files ask for clusters, not for these."""
        return {"axes": [{"axis": one.axis.name, "cells": one.many, "ramp": one.ramp} for one in self.axes]}

    def words(self, domain: Domain) -> str:
        return f"People by cells of {in_words(self.names)}"

    def size(self, domain: Domain) -> int:
        return math.prod(self.shape)

    def unit(self, domain: Domain) -> Fraction:
        return Fraction(1, self.parts)

    def labels(self, domain: Domain) -> dict[str, Sequence[Value]]:
        """Return the middle of each cell."""
        points = self.points()
        return {cells.axis.name: points[:, number].tolist() for number, cells in enumerate(self.axes)}

    def tallies(self, policy: Policy) -> tuple[Tally, ...]:
        return (CellCounts(self.names, self.where),)

    def answers(self, tallied: Sequence[Any], domain: Domain) -> Ints:
        """Share the people of every occupied cell of the domain out to the cells of the grid."""
        table = np.asarray(tallied[0], dtype=np.int64).reshape(-1)
        occupied = np.flatnonzero(table)
        places = np.unravel_index(occupied, [cells.axis.size for cells in self.axes])
        return self._shared_out(places, table[occupied])

    def added_by(self, record: Mapping[str, Any], domain: Domain) -> Ints:
        where = {axis: place for name in self.names for axis, place in domain[name].places(name, record[name]).items()}
        places = [np.array([where[cells.axis.name]]) for cells in self.axes]
        return self._shared_out(places, np.ones(1, dtype=np.int64))

    def _shared_out(self, places: Sequence[Ints], people: Ints) -> Ints:
        """Return how many parts of these people are in each cell; whole numbers throughout."""
        out = np.zeros(math.prod(self.shape), dtype=np.int64)
        found = [tuple(array[place] for array in cells.shares) for cells, place in zip(self.axes, places, strict=True)]
        for corner in product(*([0, 1] if cells.ramp > 1 else [0] for cells in self.axes)):
            cell, parts = np.zeros(len(people), dtype=np.int64), people
            for cells, (first, after), side in zip(self.axes, found, corner, strict=True):
                # a position without a share in the cell after its own adds nothing there
                cell = cell * cells.many + np.minimum(first + side, cells.many - 1)
                parts = parts * (after if side else cells.parts - after)
            np.add.at(out, cell, parts)
        return out

    def response(self, domain: Domain) -> Response:
        is_bound = any(one.ramp > 1 for one in self.axes)
        return SoftCellResponse(self.axes, self.parts, is_bound, cells=self.names)

    def __str__(self) -> str:
        shape = " x ".join(f"{many:,}" for many in self.shape)
        return f"cells({', '.join(self.names)}, {shape}{suffix(self.where, self.of)})"


@dataclass(frozen=True)
class SoftCellResponse(PlacedResponse):
    """Shares of people in cells: how much of one person moves to other cells, or with `bound` at most."""

    axes: tuple[AxisCells, ...]
    parts: int
    bound: bool

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """As many parts leave cells as come to others."""
        parts = math.floor(self._share(move) * self.parts)
        return [Jump(parts, parts, parts, parts, 2 * parts * parts, bound=self.bound)] if parts else []

    def counted_at(self, places: Intervals) -> Iterable[Jump]:
        """All parts of a person come."""
        return [Jump(self.parts, 0, self.parts, 0, self.parts**2, bound=self.bound)]

    def _share(self, move: RecordMove) -> Fraction:
        """Return the largest share of a person that such a move takes to other cells."""
        changed = [cells for cells in self.axes if cells.axis.attribute in move.changed]
        if move.shape is None:
            return Fraction(int(bool(changed)))
        metric = move.shape.metric
        stays, sharing = Fraction(1), []
        for cells in changed:
            relation = move.shape.relation(cells.axis)
            share = cells.reach(relation)
            if metric is not None and metric.kind == "l1" and relation.shares_distance and share:
                sharing.append((cells, share))
            else:
                stays *= 1 - share
        if metric is None or not sharing:
            return 1 - stays
        if len(sharing) == 1:
            return 1 - stays * (1 - sharing[0][1])
        each = [
            metric.theta / (cells.ramp * Fraction(cells.axis.spacing)) if cells.ramp > 1 else share
            for cells, share in sharing
        ]
        return 1 - stays * (1 - min(max(each), Fraction(1)))


def shared_out(noisy: Floats, total: float) -> Floats:
    """Return weights of the cells of a grid, from whole blocks down to single cells.

    >>> shared_out(np.array([[8.0, -1.0], [1.0, 0.0]]), 6).tolist()
    [[6.0, 0.0], [0.0, 0.0]]
    """
    levels = [noisy]
    while max(levels[-1].shape) > 1:
        levels.append(block_sums(levels[-1], 2))
    weights: Floats = np.full(levels[-1].shape, float(total))
    for level in reversed(levels[:-1]):
        # blocks of two along every axis; a half that is not there gets nobody
        blocks = np.pad(level, [(0, many % 2) for many in level.shape], constant_values=-np.inf)
        halves = [part for half in weights.shape for part in (half, 2)]
        axes = range(level.ndim)
        order = [2 * axis for axis in axes] + [2 * axis + 1 for axis in axes]
        rows = blocks.reshape(halves).transpose(order).reshape(weights.size, -1)
        shares = of_totals(rows, weights.reshape(-1)).reshape([*weights.shape, *(2 for _ in axes)])
        weights = shares.transpose(np.argsort(order)).reshape(blocks.shape)
        weights = weights[tuple(slice(many) for many in level.shape)]
    return weights


def of_totals(noisy: Floats, totals: Floats) -> Floats:
    """Return for each row the nearest weights that are not negative and add up to its total."""
    high = -np.sort(-noisy, axis=1)
    over = (np.cumsum(high, axis=1) - totals[:, np.newaxis]) / np.arange(1, high.shape[1] + 1)
    above = high > over
    # none by rounding alone, where there is nearly nobody
    last = np.where(above.any(axis=1), high.shape[1] - 1 - np.argmax(above[:, ::-1], axis=1), 0)
    less = np.take_along_axis(over, last[:, np.newaxis], axis=1)
    found: Floats = np.where(totals[:, np.newaxis] > 0, np.maximum(noisy - less, 0.0), 0.0)
    return found


def block_sums(values: Floats, side: int) -> Floats:
    """Return the sums over blocks of so many cells along every axis."""
    for axis, many in enumerate(values.shape):
        values = np.add.reduceat(values, np.arange(0, many, side), axis=axis)
    return values

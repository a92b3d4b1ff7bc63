"""What is measured on a grid or a line, and least squares on one region of it, exactly.

A line is a grid with one row. What is measured in a region of `width` x `height` cells, with independent noise:

* the cells of some levels, each a tiling by rectangles; those of a level are unions of those of the level before;
* ramps along x: for each stretch of B columns the sum over people of clamp(end of the stretch - column, 0, B), which is
  B times the average of the running counts on the stretch (the last one may be shorter); the same along y;
* the number of people, where no secret edge changes it.

Why it is fast. Let E_l average over the cells of level l, of area a_l, with t_l = 1 / the variance of their noise. The
levels alone have the precision P = sum of t_l a_l E_l. The E_l are projections, each onto a part of the one before, so
P has the eigenvalue p_l = t_0 a_0 + .. + t_l a_l on what E_l keeps and E_(l+1) does not, and its inverse is the sum of
(1/p_l - 1/p_(l-1)) E_l. Ramps and the total are few numbers, K: they are an update of rank K (Woodbury), and averages
of functions of x alone are functions of x alone. So nothing larger than K x K is ever inverted, and a rectangle, an
indicator of x times one of y, has its variance from sums over x and sums over y.

A region is filled up with empty cells to whole cells of its coarsest level. They are measured like the others, so that
all cells of a level are alike. That nobody is in them is used for the total alone, which is that of the other cells.

Guarantee   Independent two-sided geometric noise of scale 1/rate on the sums of each group hides every edge: for every
            edge, the changes of the groups times their rates add up to at most epsilon.
Assumes     `plan/sensitivity/moves.py` bounds the moves.
Why         Two-sided geometric noise of scale s costs |change| / s. A person who moves leaves one cell of a level and
            enters another, or stays in it. All ramps of an axis together are a fall from the first position on, one for
            one: a move by d changes them by d in all, whatever their width. Whoever enters or leaves changes one cell
            of each level, and each running count once: the ramps of an axis by its length at most. Nobody leaves a
            region.
Reference   Blowfish privacy, section 7 (ordered and hierarchical mechanisms), in two dimensions and with ramps.
Checked by  tests/property/test_grids.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.noise.two_scale import TwoScale
from tacit.plan.sensitivity.moves import GridMoves, Pair


@dataclass(frozen=True)
class Region:
    """What is measured in a region: the sides of the cells of each level, and the widths of ramps (0: none)."""

    width: int
    height: int
    sides: tuple[tuple[int, int], ...]
    ramps: tuple[int, int] = (0, 0)
    has_total: bool = True

    @property
    def padded(self) -> tuple[int, int]:
        """Width and height with the empty cells that fill the coarsest cells up."""
        wide, high = self.sides[-1]
        return -(-self.width // wide) * wide, -(-self.height // high) * high

    def ramp_count(self, axis: int) -> int:
        """Return how many ramps there are along an axis."""
        long, each = (self.width, self.height)[axis], self.ramps[axis]
        return -(-long // each) if each else 0

    def ramp_rows(self, axis: int) -> Ints:
        """Return for each ramp (row) what a person at each position (column) adds to it."""
        each, size = self.ramps[axis], (self.width, self.height)[axis]
        starts = each * np.arange(self.ramp_count(axis))
        ends = np.minimum(starts + each, size)
        inside = np.clip(ends[:, None] - np.arange(self.padded[axis]), 0, (ends - starts)[:, None])
        return np.asarray(inside, dtype=np.int64)

    def level_shape(self, level: int) -> tuple[int, int]:
        """Return how many cells a level has along x and along y."""
        (px, py), (wide, high) = self.padded, self.sides[level]
        return px // wide, py // high

    def sums(self, cells: Ints) -> list[Ints]:
        """Return everything that is measured of regions (the first axis) with these counts: levels, ramps, totals."""
        px, py = self.padded
        full = np.zeros((len(cells), px, py), dtype=cells.dtype)
        full[:, : self.width, : self.height] = cells
        found = []
        for level, (wide, high) in enumerate(self.sides):
            nx, ny = self.level_shape(level)
            found.append(full.reshape(-1, nx, wide, ny, high).sum(axis=(2, 4)))
        for axis in (0, 1):
            if self.ramps[axis]:
                found.append(full.sum(axis=2 - axis) @ self.ramp_rows(axis).T)
        if self.has_total:
            found.append(full.sum(axis=(1, 2)))
        return found

    def sum_sizes(self) -> list[int]:
        """Return how many numbers each of these sums has in one region."""
        levels = [nx * ny for nx, ny in map(self.level_shape, range(len(self.sides)))]
        ramps = [self.ramp_count(axis) for axis in (0, 1) if self.ramps[axis]]
        return [*levels, *ramps, *([1] if self.has_total else [])]


class Averages:
    """Averages over the cells of each level along one axis, and of the ramps of that axis."""

    def __init__(self, region: Region, axis: int) -> None:
        self.sides = [side[axis] for side in region.sides]
        self.size = (region.width, region.height)[axis]
        self.padded = region.padded[axis]
        ramps = region.ramp_rows(axis).astype(np.float64) if region.ramps[axis] else np.zeros((0, self.padded))
        self.ones = ramps.sum(axis=1)
        self.rows = np.stack([self.averaged(ramps, side) for side in self.sides])  # level, ramp, position
        self.gram = self.rows @ ramps.T
        # the indicator of the region, averaged, is one but in the last cell, where less is missing the fuller that is
        over = np.array([self.size % side for side in self.sides])
        self.last = self.size - over
        self.missing = np.where(over > 0, 1 - over / self.sides, 0.0)

    def averaged(self, rows: Floats, side: int) -> Floats:
        """Return functions of a position averaged over runs of `side` positions."""
        if side == 1:
            return rows
        means = rows.reshape(*rows.shape[:-1], rows.shape[-1] // side, side).mean(axis=-1)
        return np.repeat(means, side, axis=-1)

    def kept(self, low: Ints, high: Ints) -> Floats:
        """Return for each level and range the squared length of its indicator after averaging."""
        found = np.empty((len(self.sides), len(low)))
        for level, side in enumerate(self.sides):
            first, last = low // side, high // side
            head, tail = np.minimum(high, (first + 1) * side - 1) - low + 1, high - last * side + 1
            inner = np.maximum(last - first - 1, 0) * side**2
            found[level] = (head**2 + np.where(last > first, tail**2 + inner, 0)) / side
        return found

    def inside(self, low: Ints, high: Ints) -> Floats:
        """Return for each level, ramp and range the sum over the range of the ramp after averaging."""
        below = np.concatenate([np.zeros((*self.rows.shape[:2], 1)), self.rows.cumsum(axis=2)], axis=2)
        return np.asarray(below[:, :, high + 1] - below[:, :, low])

    def whole(self, low: Ints, high: Ints) -> Floats:
        """Return for each level and range the sum over the range of the region's indicator after averaging."""
        cut = np.maximum(high - np.maximum(low, self.last[:, None]) + 1, 0)
        return np.asarray(high - low + 1 - self.missing[:, None] * cut)

    def whole_rows(self) -> Floats:
        """Return for each level the region's indicator after averaging."""
        return 1 - self.missing[:, None] * (np.arange(self.padded) >= self.last[:, None])


class RegionModel:
    """The algebra of a region that does not depend on the noise."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.x, self.y = Averages(region, 0), Averages(region, 1)
        self.areas = np.array([wide * high for wide, high in region.sides], dtype=np.float64)
        ends = [(np.array([0]), np.array([axis.size - 1])) for axis in (self.x, self.y)]
        self.squares = (self.x.kept(*ends[0]) * self.y.kept(*ends[1]))[:, 0]  # of the region's indicator

    def shares(self, precisions: Floats) -> Floats:
        """Return the weight of each level's averages in the inverse of the precision of all levels."""
        shares = 1 / np.cumsum(precisions * self.areas)
        shares[1:] -= shares[:-1].copy()
        return np.asarray(shares)

    def few(self, shares: Floats, ramp_variances: Floats) -> Floats:
        """Return the covariance of ramps and total: from the cells alone, with the noise of their measurement added."""
        x, y = self.x, self.y
        constant = float(shares.sum())
        nx, ny, total = len(x.ones), len(y.ones), int(self.region.has_total)
        found = np.empty((nx + ny + total, nx + ny + total))
        found[:nx, :nx] = y.padded * np.einsum("l,lkm->km", shares, x.gram)
        found[nx : nx + ny, nx : nx + ny] = x.padded * np.einsum("l,lkm->km", shares, y.gram)
        _mirrored(found, slice(nx), slice(nx, nx + ny), constant * np.outer(x.ones, y.ones))
        if total:
            along = [axis.rows[:, :, : axis.size].sum(axis=2) for axis in (x, y)]
            _mirrored(found, slice(nx), -1, y.size * (shares @ along[0]))
            _mirrored(found, slice(nx, nx + ny), -1, x.size * (shares @ along[1]))
            found[-1, -1] = shares @ self.squares
        found[np.arange(nx + ny), np.arange(nx + ny)] += ramp_variances
        return found


model_of = lru_cache(maxsize=64)(RegionModel)


def _mirrored(matrix: Floats, rows: Any, columns: Any, part: Floats) -> None:
    """Put a part into a symmetric matrix, on both sides of its diagonal."""
    matrix[rows, columns] = part
    matrix[columns, rows] = part.T


def per_ramp(region: Region, variances: Floats) -> Floats:
    """Return the variance of the noise of each ramp."""
    each = [region.ramp_count(axis) for axis in (0, 1) if region.ramps[axis]]
    return np.repeat(np.asarray(variances, dtype=np.float64), each)


class RegionFit:
    """Least squares on a region, for noise with these variances."""

    def __init__(self, region: Region, variances: tuple[float, ...]) -> None:
        self.region = region
        self._model = model = model_of(region)
        levels = len(region.sides)
        noise = np.asarray(variances, dtype=np.float64)
        self._precisions = 1 / noise[:levels]
        self._shares = model.shares(self._precisions)
        found = model.few(self._shares, per_ramp(region, noise[levels:]))
        self._factor = np.linalg.cholesky(found) if len(found) else None
        # ramps after averaging, and their running sums along the axis: what a range of positions adds to each
        self._rows = [np.einsum("l,lkp->kp", self._shares, axis.rows) for axis in (model.x, model.y)]
        self._below = [np.concatenate([np.zeros((len(rows), 1)), rows.cumsum(axis=1)], axis=1) for rows in self._rows]

    def variance(self, x_low: Ints, x_high: Ints, y_low: Ints, y_high: Ints) -> Floats:
        """Return the variance of the estimate of each rectangle; its ends are positions in the region."""
        model = self._model
        plain = np.einsum("l,ln,ln->n", self._shares, model.x.kept(x_low, x_high), model.y.kept(y_low, y_high))
        if self._factor is None:
            return np.asarray(plain)
        wide, high = x_high - x_low + 1, y_high - y_low + 1
        seen = [
            (self._below[0][:, x_high + 1] - self._below[0][:, x_low]) * high,
            (self._below[1][:, y_high + 1] - self._below[1][:, y_low]) * wide,
        ]
        if self.region.has_total:
            seen.append((self._shares @ (model.x.whole(x_low, x_high) * model.y.whole(y_low, y_high)))[None])
        from scipy.linalg import solve_triangular

        known = solve_triangular(self._factor, np.concatenate(seen), lower=True)
        return np.asarray(np.maximum(plain - np.einsum("kn,kn->n", known, known), 0.0))

    def cells(self, sums: list[Floats]) -> Floats:
        """Return the cells of regions (the first axis) from what was measured of each, in the order of the region."""
        region, model = self.region, self._model
        px, py = region.padded
        weighted = np.zeros((len(sums[0]), px, py))
        for (wide, high), precision, cells in zip(region.sides, self._precisions, sums, strict=False):
            weighted += precision * _spread_out(cells, wide, high)
        found = np.zeros_like(weighted)
        for (wide, high), share in zip(region.sides, self._shares, strict=True):
            found += share * _averaged(weighted, wide, high)
        if self._factor is not None:
            from scipy.linalg import solve_triangular

            missing = self._missing(found, sums[len(region.sides) :])
            pull = solve_triangular(self._factor, missing.T, lower=True)
            pull = solve_triangular(self._factor, pull, lower=True, trans="T").T
            nx, ny = len(model.x.ones), len(model.y.ones)
            found += (pull[:, :nx] @ self._rows[0])[:, :, None] + (pull[:, nx : nx + ny] @ self._rows[1])[:, None, :]
            if region.has_total:
                whole = np.einsum("l,lx,ly->xy", self._shares, model.x.whole_rows(), model.y.whole_rows())
                found += pull[:, -1][:, None, None] * whole
        return np.asarray(found[:, : region.width, : region.height])

    def _missing(self, cells: Floats, measured: list[Floats]) -> Floats:
        """Return by how much the measured ramps and totals exceed those of the cells."""
        region = self.region
        own = [
            cells.sum(axis=2 - axis) @ region.ramp_rows(axis).T.astype(np.float64)
            for axis in (0, 1)
            if region.ramps[axis]
        ]
        if region.has_total:
            own.append(cells[:, : region.width, : region.height].sum(axis=(1, 2))[:, None])
        told = [part.reshape(len(cells), -1) for part in measured]
        return np.asarray(np.concatenate(told, axis=1) - np.concatenate(own, axis=1))


fit_of = lru_cache(maxsize=64)(RegionFit)


def _spread_out(cells: Floats, wide: int, high: int) -> Floats:
    """Return for each unit cell the number of the cell that holds it."""
    return np.repeat(np.repeat(cells, wide, axis=1), high, axis=2)


def _averaged(cells: Floats, wide: int, high: int) -> Floats:
    """Return unit cells averaged over tiles."""
    if wide == high == 1:
        return cells
    regions, px, py = cells.shape
    means = cells.reshape(regions, px // wide, wide, py // high, high).mean(axis=(2, 4))
    return _spread_out(means, wide, high)


@dataclass(frozen=True)
class GridStrategy:
    """Cells of these sides (the first 1), and ramps of these widths along x and y (0: none), in every region."""

    sides: tuple[int, ...] = (1,)
    ramps: tuple[int, int] = (0, 0)

    def region(self, shape: Pair, *, has_total: bool) -> Region:
        """Return what is measured in a region of this size. A cell is at most as long as the region, filled up."""
        levels: list[tuple[int, int]] = []
        for side in self.sides:
            inner = levels[-1] if levels else (1, 1)
            wide, high = (min(side, -(-long // each) * each) for long, each in zip(shape, inner, strict=True))
            levels.append((wide, high))
        return Region(*shape, tuple(levels), self.ramps, has_total)

    @property
    def groups(self) -> int:
        """How many groups of sums have a noise of their own."""
        return len(self.sides) + sum(1 for width in self.ramps if width)

    def names(self, axes: tuple[str, str] = ("x", "y")) -> list[str]:
        """Return what the groups are called on these axes."""
        cells = [f"cells of {side} x {side}" if side > 1 else "unit cells" for side in self.sides]
        ramps = [f"ramps of {width} along {axis}" for width, axis in zip(self.ramps, axes, strict=True) if width]
        return cells + ramps

    def changes(self, moves: GridMoves) -> list[tuple[int, ...]]:
        """Return by how much the sums of each group change at most, all together: one row for each kind of move."""
        if moves.coupled is not None:
            return [(moves.coupled,) * len(self.sides)]  # only asked of unit cells
        found: dict[tuple[int, ...], None] = {}
        for shape in moves.shapes:
            region = self.region(shape, has_total=moves.has_totals)
            for dx, dy in moves.within(shape):
                crossed = [
                    2 * bool((dx and shape[0] > wide) or (dy and shape[1] > high)) for wide, high in region.sides
                ]
                found[(*crossed, *(far for far, width in zip((dx, dy), self.ramps, strict=True) if width))] = None
            if moves.may_enter_or_leave:
                ends = [length for length, width in zip(shape, self.ramps, strict=True) if width]
                found[(*([1] * len(self.sides)), *ends)] = None
        return list(found)


@dataclass(frozen=True)
class Weighted:
    """A strategy with the rate of the noise of each group: 1 / scale."""

    strategy: GridStrategy
    rates: tuple[Fraction, ...]

    @cached_property
    def laws(self) -> tuple[TwoScale, ...]:
        """The noise of each group."""
        return tuple(TwoScale(1 / rate, 1 / rate) for rate in self.rates)

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of the noise of each group."""
        return tuple(law.variance() for law in self.laws)

    def cost_of(self, changes: Sequence[int]) -> Fraction:
        """Return what a step costs that changes the sums of each group by so much in all."""
        return sum((change * rate for change, rate in zip(changes, self.rates, strict=True)), Fraction(0))

    def loss(self, moves: GridMoves) -> Fraction:
        """Return the largest loss along an edge."""
        return max(map(self.cost_of, self.strategy.changes(moves)), default=Fraction(0))


def starts_of(segments: tuple[int, ...]) -> Ints:
    """Return where each stretch begins."""
    return np.concatenate([[0], np.cumsum(segments)[:-1]]).astype(np.int64)

"""What is measured on a grid or a line, as data: sums in groups, how far one person changes each, the noise of each.

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

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.noise.two_scale import TwoScale
from tacit.plan.measure.sums.rates import scales_of
from tacit.plan.measure.sums.regions import Region
from tacit.plan.sensitivity.moves import GridMoves, Pair


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

    @classmethod
    def at(cls, strategy: GridStrategy, shares: Floats, changes: list[tuple[int, ...]], epsilon: Fraction) -> Weighted:
        """Return rates in about these proportions, whose loss is epsilon exactly (or less, at the smallest scale)."""
        return cls(strategy, tuple(1 / scale for scale in scales_of(shares, changes, epsilon)))

    @cached_property
    def laws(self) -> tuple[TwoScale, ...]:
        """The noise of each group."""
        return tuple(TwoScale(1 / rate, 1 / rate) for rate in self.rates)

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of the noise of each group."""
        return tuple(law.variance() for law in self.laws)

    def loss(self, moves: GridMoves) -> Fraction:
        """Return the largest loss along an edge."""
        rows = self.strategy.changes(moves)
        return max(
            (sum((change * rate for change, rate in zip(row, self.rates, strict=True)), Fraction(0)) for row in rows),
            default=Fraction(0),
        )


def starts_of(segments: tuple[int, ...]) -> Ints:
    """Return where each stretch begins."""
    return np.concatenate([[0], np.cumsum(segments)[:-1]]).astype(np.int64)

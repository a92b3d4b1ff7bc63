"""Joint noise on running counts: in the shape of what one person can change along a line.

Guarantee   Let every step of the running counts be a run of them that moves by one: a move between two values changes
            the counts between them, coming or going all counts from one value to the end. Such a step costs at most
            `loss_of(reach, leaves)`, a sum of rates: P(z in O) <= exp(loss) * P(z + step in O) + 2^-150 for the noise z
            and every set O, given an ideal keystream.
Assumes     The keystream (`noise/keystream.py`); running counts at the ends of segments do not change, the last one
            only where it has a rate. Rates are exact fractions.
Why         The noise z has weight exp(-g(z)) with g(z) = anchor_rate * sum of |z| at multiples of `block`, plus for
            every level cell_rates * sum over its cells of |z at the end - z at the start|, plus end_rate * |z at the
            end|; z = 0 where a segment begins, cells end where it ends. g is a norm, so a step s costs at most g(s):
            the worst ratio of exp(-g(z)) and exp(-g(z - s)), reached by z = s, 2s, .. A run of d counts has at most
            ceil(d / block) multiples of the block, and its two ends lie in at most two cells of a level; a run to the
            end has one end, all multiples and the last count. A segment has one cell less than that on levels where it
            is a single cell, which no move inside changes.
            Draws are made at (1 - 2^-16) of the rates; the rest pays for rounding in their tables, which leaves the
            loss as stated, up to events of probability 2^-150 where a number leaves its table (`noise/line/tables.py`).
Reference   Hardt, Talwar, On the Geometry of Differential Privacy, arXiv:0907.3754, for noise shaped by the steps; He,
            Machanavajjhala, Ding, Blowfish Privacy, arXiv:1312.3913, for the steps along a line.
Checked by  tests/property/test_line_noise.py, tests/unit/noise/test_line_draws.py,
            tests/unit/noise/test_line_variances.py, tests/statistical/test_line_noise.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from tacit.amounts import as_fraction
from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.noise.draws import Size, count_of, shape_of
from tacit.noise.keystream import current_stream
from tacit.noise.law import EvenJointLaw, Kind, whole_numbers
from tacit.noise.line.draws import draw_segments
from tacit.noise.line.messages import Rates, kinds_of
from tacit.noise.line.tables import SLACK, LineTables, check_size, log_at_zero, make_tables
from tacit.noise.line.variances import LineVariances

MOST_VALUES: Final = 1 << 23
DRAWN: Final = 1 - Fraction(SLACK)  # share of the rates that is drawn at; the rest pays for rounding
NO_SINGLE_LAW: Final = "noise on a line has no one law for all running counts: ask for run_variance and run_bound"


@dataclass(frozen=True)
class LineNoise(EvenJointLaw):
    """Noise on the running counts of a line, in `segments` between counts that are exact.

    `block` is a power of two; `cell_rates` are those of cells of block, block/2, .., 1 values. `end_rate` is None where
    the last running count is exact, and else its rate.

    >>> law = LineNoise((6,), 2, Fraction(1, 4), (Fraction(1, 8), Fraction(1, 4)), None)
    >>> law.loss_of(reach=3, may_enter_or_leave=False), law.loss([0, 1, 1, 1, 0, 0])
    (Fraction(5, 4), Fraction(5, 4))
    """

    segments: tuple[int, ...]
    block: int
    anchor_rate: Fraction
    cell_rates: tuple[Fraction, ...]
    end_rate: Fraction | None

    def __post_init__(self) -> None:
        segments = tuple(int(length) for length in self.segments)
        if not segments or min(segments) < 1 or sum(segments) > MOST_VALUES:
            fix = "Give the lengths of the stretches between exact running counts."
            raise PlanError(f"must be 1 to {MOST_VALUES} values in all", key="segments", given=sum(segments), fix=fix)
        if self.block < 1 or self.block & (self.block - 1):
            raise PlanError("must be a power of two", key="block", given=self.block)
        if len(self.cell_rates) != self.block.bit_length():
            raise PlanError(
                "must have one rate for each size of cells: block, block/2, .., 1",
                key="cell_rates",
                given=len(self.cell_rates),
            )
        anchor = _rate(self.anchor_rate, "anchor_rate")
        cells = tuple(_rate(rate, "cell_rates") for rate in self.cell_rates)
        if cells[-1] == 0 and (self.block > 1 or anchor == 0):
            raise PlanError("must be positive for single values", key="cell_rates", given=0)
        end = None if self.end_rate is None else _rate(self.end_rate, "end_rate")
        if end == 0:
            raise PlanError("must be positive, or None where the last count is exact", key="end_rate", given=0)
        for name, value in (("segments", segments), ("anchor_rate", anchor), ("cell_rates", cells), ("end_rate", end)):
            object.__setattr__(self, name, value)

    # ---- what it costs ----------------------------------------------------------------------------------------------

    def loss_of(self, reach: int, *, may_enter_or_leave: bool) -> Fraction | float:
        """Return the loss of moves that change up to `reach` running counts, and where asked of entering or leaving."""
        found: Fraction | float = Fraction(0)
        for length in set(self.segments):
            far = min(reach, length - 1)
            if far < 1:
                continue
            anchors = min(-(-far // self.block), -(-length // self.block) - 1)
            sizes = zip(self._sizes, self.cell_rates, strict=True)
            found = max(found, anchors * self.anchor_rate + 2 * sum(rate for size, rate in sizes if size < length))
        if may_enter_or_leave:
            if self.end_rate is None:
                return inf
            anchors = -(-self.segments[-1] // self.block) - 1
            found = max(found, anchors * self.anchor_rate + sum(self.cell_rates) + self.end_rate)
        return found

    def proven_loss(self, profiles: Iterable[tuple[int, int]], largest: int) -> Fraction | float:
        """Return the loss of steps with these (sum of falls, sum of rises), in which no entry moves by more.

        Steps are sums of runs that move by one: as many as `largest`, for falls and for rises.
        """
        may_enter_or_leave = self.end_rate is not None
        each: list[Fraction | float] = [Fraction(0)]
        for fall, rise in profiles:
            runs = [max(1, -(-side // max(largest, 1))) for side in (fall, rise) if side]
            each.append(
                sum((largest * self.loss_of(run, may_enter_or_leave=may_enter_or_leave) for run in runs), Fraction(0))
            )
        return max(each)

    def loss(self, step: Sequence[int]) -> Fraction | float:
        sums = self._sums(np.asarray(step))
        return inf if sums is None else self._added_up(sums)

    @property
    def _sizes(self) -> list[int]:
        return [self.block >> level for level in range(len(self.cell_rates))]

    def _sums(self, points: Ints) -> tuple[int, list[int], int] | None:
        """Return the sums of absolute values that the rates multiply; None if an exact count would change."""
        if points.shape != (sum(self.segments),):
            raise PlanError(f"must have {sum(self.segments)} numbers", key="step", given=points.shape)
        anchors, cells, begin = 0, [0] * len(self.cell_rates), 0
        for number, length in enumerate(self.segments):
            z = np.concatenate([[0], points[begin : begin + length]])
            begin += length
            if z[-1] and (self.end_rate is None or number < len(self.segments) - 1):
                return None
            anchors += int(np.abs(z[:-1][:: self.block]).sum())
            for level, size in enumerate(self._sizes):
                ends = np.append(z[:-1][::size], z[-1])
                cells[level] += int(np.abs(np.diff(ends)).sum())
        return anchors, cells, abs(int(points[-1]))

    def _added_up(self, sums: tuple[int, list[int], int]) -> Fraction:
        anchors, cells, end = sums
        found = self.anchor_rate * anchors + sum(rate * many for rate, many in zip(self.cell_rates, cells, strict=True))
        return found + (self.end_rate or 0) * end

    # ---- probabilities ----------------------------------------------------------------------------------------------

    def joint_log_pmf(self, points: ArrayLike) -> float:
        sums = self._sums(whole_numbers(points))
        if sums is None:
            return -inf
        return _log_at_zero(self) - float(DRAWN * self._added_up(sums))

    def run_variance(self, low: ArrayLike, high: ArrayLike) -> Floats:
        """Return the variance of the noise in how many people are at positions low to high, both included."""
        return _variances(self).of_runs(np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64))

    def mean_variance(self, kind: Kind) -> float:
        """Return the mean variance over all ranges, all prefixes (one for each value), or all cells (single values)."""
        return _variances(self).mean(kind)

    def variance(self) -> float:
        """Return the mean variance of the noise on a running count."""
        return self.mean_variance("prefixes")

    def pmf(self, k: ArrayLike) -> NoReturn:
        raise TypeError(NO_SINGLE_LAW)

    cdf = survival = pmf

    def quantile(self, p: float) -> NoReturn:
        raise TypeError(NO_SINGLE_LAW)

    # ---- what it is -------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return "joint noise on running counts"

    def document(self) -> dict[str, Any]:
        same = len(set(self.segments)) == 1
        return {
            "shape": "line",
            "segments": {"many": len(self.segments), "values": self.segments[0]} if same else list(self.segments),
            "block": self.block,
            "anchor_rate": str(self.anchor_rate),
            "cell_rates": [str(rate) for rate in self.cell_rates],
            "end_rate": None if self.end_rate is None else str(self.end_rate),
            "beside_epsilon": "2^-150",
            "standard_deviation": self.variance() ** 0.5,
        }

    # ---- draws ------------------------------------------------------------------------------------------------------

    def is_drawable(self, *, quickly: bool = False) -> bool:
        """Return whether the tables that it is drawn with are neither too large nor too fine.

        They are made, and kept. `quickly` only estimates how large they are.
        """
        try:
            if quickly:
                check_size(self.segments, _drawn_rates(self))
            else:
                _tables(self)
        except PlanError:
            return False
        return True

    def draw(self, size: Size | None = None) -> Ints:
        """Draw noise on all running counts; the last axis has one entry for each. Without `size` once."""
        return self.draw_for((*shape_of(size), sum(self.segments)))

    def draw_for(self, shape: tuple[int, ...]) -> Ints:
        values = sum(self.segments)
        if shape[-1:] != (values,):
            raise PlanError(f"must have {values} running counts", key="shape", given=shape)
        rows, tables, stream = count_of(shape[:-1]), _tables(self), current_stream()
        out = np.empty((rows, values), np.int64)
        begins = np.concatenate([[0], np.cumsum(self.segments)])[:-1]
        kinds = kinds_of(self.segments, tables.rates)
        for kind in np.unique(kinds):
            chain, where = tables.chains[int(kind)], begins[kinds == kind]
            drawn = draw_segments(tables, chain, stream, rows * where.size)
            if where.size == 1:
                out[:, where[0] : where[0] + chain.length] = drawn
            else:
                at = where[:, np.newaxis] + np.arange(chain.length)
                out[:, at] = drawn.reshape(rows, where.size, chain.length)
        return out.reshape(shape)


def _rate(value: Any, key: str) -> Fraction:
    rate = as_fraction(value, key=key)
    if rate < 0:
        raise PlanError("must be zero or positive", key=key, given=value)
    return rate


def _drawn_rates(law: LineNoise) -> Rates:
    anchor, *cells = (float(DRAWN * rate) for rate in (law.anchor_rate, *law.cell_rates))
    return Rates(anchor, tuple(cells), None if law.end_rate is None else float(DRAWN * law.end_rate))


# Tables hold up to some 100 MB where epsilon is small.
@lru_cache(maxsize=4)
def _tables(law: LineNoise) -> LineTables:
    return make_tables(law.segments, _drawn_rates(law))


@lru_cache(maxsize=64)
def _log_at_zero(law: LineNoise) -> float:
    return log_at_zero(_tables(law), law.segments)


@lru_cache(maxsize=16)
def _variances(law: LineNoise) -> LineVariances:
    return LineVariances(law.segments, _drawn_rates(law))

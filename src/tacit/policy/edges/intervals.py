"""Sets of positions on one axis, kept as sorted, disjoint, closed intervals.

Every attribute value has a position 0, 1, 2, .. on its axis. Predicates, blocks and sensitive values are sets of
positions. Intervals keep them exact and small even when the axis has 10^12 positions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

_FEW_PAIRS: Final = 10_000  # of intervals, whose differences are taken one by one
_SHORT: Final = 2**17  # positions of an axis on which all differences are found by one convolution


@dataclass(frozen=True)
class Intervals:
    """A set of integers as sorted, disjoint, closed intervals.

    >>> Intervals.of([(0, 3), (3, 5), (9, 9)])
    Intervals(parts=((0, 5), (9, 9)))
    >>> Intervals.of([(0, 5)]) & Intervals.of([(4, 9)])
    Intervals(parts=((4, 5),))
    """

    parts: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, parts: Iterable[tuple[int, int]]) -> Intervals:
        """Build from intervals in any order; touching ones are joined, empty ones dropped."""
        joined: list[tuple[int, int]] = []
        for low, high in sorted((low, high) for low, high in parts if low <= high):
            if joined and low <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], max(joined[-1][1], high))
            else:
                joined.append((low, high))
        return cls(tuple(joined))

    @classmethod
    def points(cls, positions: Iterable[int]) -> Intervals:
        """Build from single positions."""
        return cls.of((position, position) for position in positions)

    @classmethod
    def full(cls, size: int) -> Intervals:
        """Return all positions of an axis of this size."""
        return cls.of([(0, size - 1)])

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self.parts)

    def __contains__(self, position: int) -> bool:
        place = bisect_right(self.parts, position, key=lambda part: part[0]) - 1
        return place >= 0 and position <= self.parts[place][1]

    def __and__(self, other: Intervals) -> Intervals:
        for one, rest in ((self, other), (other, self)):
            if len(one.parts) == 1 and rest.parts and one.lowest <= rest.lowest and rest.highest <= one.highest:
                return rest
        # both are sorted: go along the two, and leave the part that ends first
        found: list[tuple[int, int]] = []
        left, right = 0, 0
        while left < len(self.parts) and right < len(other.parts):
            (a, b), (c, d) = self.parts[left], other.parts[right]
            if max(a, c) <= min(b, d):
                found.append((max(a, c), min(b, d)))
            left, right = (left + 1, right) if b < d else (left, right + 1)
        return Intervals(tuple(found))  # between two of these parts, one of the sets has a gap: they do not touch

    def __or__(self, other: Intervals) -> Intervals:
        return Intervals.of(self.parts + other.parts)

    def __le__(self, other: Intervals) -> bool:
        return (self & other) == self

    def without(self, other: Intervals) -> Intervals:
        """Return the positions that are in this set and not in the other."""
        left: list[tuple[int, int]] = []
        first = 0
        for low, high in self.parts:
            start = low
            while first < len(other.parts) and other.parts[first][1] < low:
                first += 1
            place = first
            while place < len(other.parts) and other.parts[place][0] <= high:
                left.append((start, other.parts[place][0] - 1))
                start = other.parts[place][1] + 1
                place += 1
            left.append((start, high))
        return Intervals.of(left)

    @property
    def lowest(self) -> int:
        """The smallest position; the set must not be empty."""
        return self.parts[0][0]

    @property
    def highest(self) -> int:
        """The largest position; the set must not be empty."""
        return self.parts[-1][1]

    @property
    def ends(self) -> list[int]:
        """The lowest and the highest position, if there is one."""
        return sorted({self.lowest, self.highest}) if self else []

    @property
    def count(self) -> int:
        """How many positions the set has."""
        return sum(high - low + 1 for low, high in self.parts)

    def widened(self, reach: int) -> Intervals:
        """Return every position within `reach` of one of these."""
        return Intervals.of((low - reach, high + reach) for low, high in self.parts)

    def closest_to(self, target: int) -> int:
        """Return the member nearest to a target; the set must not be empty."""
        return min(
            (min(max(target, low), high) for low, high in self.parts), key=lambda position: abs(position - target)
        )

    def minus(self, other: Intervals, low: int, high: int) -> Intervals:
        """Return the differences `a - b` of a position here and a position in `other`, from low to high.

        The result is exact if the sets have few parts or are close together. Otherwise it contains all differences: its
        ends, zero and the differences nearest to zero are exact, other gaps are filled.

        >>> Intervals.of([(4, 5)]).minus(Intervals.of([(0, 1), (9, 9)]), -9, 9).parts
        ((-5, -4), (3, 5))
        """
        if not self or not other or low > high:
            return Intervals()
        window = Intervals.of([(low, high)])
        if len(self.parts) * len(other.parts) <= _FEW_PAIRS:
            return window & Intervals.of((c - b, d - a) for a, b in other.parts for c, d in self.parts)
        if max(self.highest, other.highest) - min(self.lowest, other.lowest) < _SHORT:
            return window & self._all_minus(other)
        found = []
        for start, end in ((low, min(-1, high)), (max(low, 0), min(0, high)), (max(1, low), high)):
            if start <= end:
                ends = _smallest(self, other, start), _largest(self, other, end)
                if ends[0] is not None and ends[1] is not None and ends[0] <= end and ends[1] >= start:
                    found.append((ends[0], ends[1]))
        return Intervals.of(found)

    def _all_minus(self, other: Intervals) -> Intervals:
        start = min(self.lowest, other.lowest)
        size = max(self.highest, other.highest) - start + 1
        here, there = (each.marks(np.arange(start, start + size)).astype(np.float64) for each in (self, other))
        length = 2 * size
        pairs = np.fft.irfft(np.fft.rfft(here, length) * np.conj(np.fft.rfft(there, length)), length)
        # pairs are whole numbers; place p is the difference p, and from the end backwards -1, -2, ..
        differ = np.flatnonzero(np.concatenate([pairs[size + 1 :], pairs[:size]]) > 0.5) - (size - 1)
        breaks = np.flatnonzero(np.diff(differ) > 1)
        firsts, lasts = differ[np.concatenate([[0], breaks + 1])], differ[np.concatenate([breaks, [len(differ) - 1]])]
        return Intervals(tuple((int(a), int(b)) for a, b in zip(firsts, lasts, strict=True)))

    def marks(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return for an array of positions which of them are in the set."""
        if not self.parts:
            return np.zeros(positions.shape, dtype=np.bool_)
        starts = np.array([low for low, _ in self.parts], dtype=np.int64)
        ends = np.array([high for _, high in self.parts], dtype=np.int64)
        place = np.searchsorted(starts, positions, side="right") - 1
        return (place >= 0) & (positions <= ends[np.maximum(place, 0)])


def _smallest(here: Intervals, there: Intervals, least: int) -> int | None:
    """Return the smallest difference `a - b` that is at least so much, or None."""
    ends = np.array([high for _, high in here.parts])
    starts = np.array([low for low, _ in here.parts])
    a, b = (np.array([part[side] for part in there.parts]) for side in (0, 1))
    # of the parts here that reach far enough, the first begins lowest
    place = np.searchsorted(ends, a + least)
    fits = place < len(ends)
    return int(np.maximum(starts[place[fits]] - b[fits], least).min()) if fits.any() else None


def _largest(here: Intervals, there: Intervals, most: int) -> int | None:
    """Return the largest difference `a - b` that is at most so much, or None."""
    mirrored = [Intervals(tuple((-high, -low) for low, high in reversed(each.parts))) for each in (here, there)]
    found = _smallest(mirrored[0], mirrored[1], -most)
    return None if found is None else -found

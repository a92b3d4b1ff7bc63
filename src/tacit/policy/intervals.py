"""Sets of positions on one axis, kept as sorted, disjoint, closed intervals.

Every attribute value has a position 0, 1, 2, .. on its axis. Predicates, blocks and sensitive values are sets of
positions. Intervals keep them exact and small even when the axis has 10^12 positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


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
        return any(low <= position <= high for low, high in self.parts)

    def __and__(self, other: Intervals) -> Intervals:
        return Intervals.of(
            (max(a, c), min(b, d)) for a, b in self.parts for c, d in other.parts if max(a, c) <= min(b, d)
        )

    def __or__(self, other: Intervals) -> Intervals:
        return Intervals.of(self.parts + other.parts)

    def __le__(self, other: Intervals) -> bool:
        return (self & other) == self

    def without(self, other: Intervals) -> Intervals:
        """Return the positions that are in this set and not in the other."""
        left: list[tuple[int, int]] = []
        for low, high in self.parts:
            start = low
            for c, d in other.parts:
                if d < start or c > high:
                    continue
                left.append((start, c - 1))
                start = d + 1
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
    def count(self) -> int:
        """How many positions the set has."""
        return sum(high - low + 1 for low, high in self.parts)

    def widened(self, reach: int) -> Intervals:
        """Return every position within `reach` of one of these."""
        return Intervals.of((low - reach, high + reach) for low, high in self.parts)

    def closest_to(self, target: int) -> int:
        """Return the member nearest to a target; the set must not be empty."""
        return min(
            (min(max(target, low), high) for low, high in self.parts),
            key=lambda position: abs(position - target),
        )

    def marks(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return for an array of positions which of them are in the set."""
        if not self.parts:
            return np.zeros(positions.shape, dtype=np.bool_)
        starts = np.array([low for low, _ in self.parts], dtype=np.int64)
        ends = np.array([high for _, high in self.parts], dtype=np.int64)
        place = np.searchsorted(starts, positions, side="right") - 1
        return (place >= 0) & (positions <= ends[np.maximum(place, 0)])

"""Sums of neighbouring noisy cells whose groups have exact totals.

A range of cells cuts at most two groups; all groups in between are exact. Of a group of n cells with an exact total, a
part of k cells is known as well from its own k noisy cells as from the n - k others; least squares uses both, and the
variance left is k (1 - k/n) times that of one cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Ints


@dataclass(frozen=True)
class PositionGroups:
    """For each position the first and last position of its group; groups are unbroken."""

    first: Ints
    last: Ints


def blocks_of(groups: Ints) -> PositionGroups | None:
    """Return the groups as blocks, or None if some group has a gap."""
    if not groups.any():  # one group
        return PositionGroups(np.zeros_like(groups), np.full_like(groups, len(groups) - 1))
    if (np.diff(groups) < 0).any():
        return None
    first = np.searchsorted(groups, groups, side="left")
    last = np.searchsorted(groups, groups, side="right") - 1
    return PositionGroups(first.astype(np.int64), last.astype(np.int64))


def cells_in_sum(low: Ints, high: Ints, blocks: PositionGroups | None) -> Floats:
    """Return the variance of the sum of the cells low..high, in units of one cell's noise variance."""
    if blocks is None:
        return (high - low + 1).astype(np.float64)
    same = blocks.first[low] == blocks.first[high]
    within = _left(high - low + 1, blocks.last[low] - blocks.first[low] + 1)
    head = _left(blocks.last[low] - low + 1, blocks.last[low] - blocks.first[low] + 1)
    tail = _left(high - blocks.first[high] + 1, blocks.last[high] - blocks.first[high] + 1)
    return np.where(same, within, head + tail)


def _left(part: Ints, whole: Ints) -> Floats:
    return part * (1 - part / whole)

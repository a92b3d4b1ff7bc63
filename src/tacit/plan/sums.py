"""Sums of neighbouring noisy cells whose groups have exact totals.

A range of cells cuts at most two groups; all groups in between are exact. Of a group of n cells with an exact total, a
part of k cells is known as well from its own k noisy cells as from the n - k others; least squares uses both, and the
variance left is k (1 - k/n) times that of one cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Blocks:
    """For each position the first and last position of its group; groups are unbroken."""

    first: Ints
    last: Ints


def blocks_of(groups: Ints) -> Blocks | None:
    """Return the groups as blocks, or None if some group has a gap."""
    if (np.diff(groups) < 0).any():
        return None
    first = np.searchsorted(groups, groups, side="left")
    last = np.searchsorted(groups, groups, side="right") - 1
    return Blocks(first.astype(np.int64), last.astype(np.int64))


def cells_in_sum(low: Ints, high: Ints, blocks: Blocks | None) -> Floats:
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


def centred(low: Ints, high: Ints, blocks: Blocks, noisy: Floats, truth: Ints) -> tuple[Floats, Ints, Ints]:
    """Return raw sums and how many noisy cells each adds and subtracts, from whichever side needs fewer cells.

    `truth` enters only through the totals of whole blocks, which are exact.
    """
    below = np.concatenate([[0.0], np.cumsum(noisy)])
    exact = np.concatenate([[0], np.cumsum(truth)])

    def summed(start: Ints, end: Ints) -> tuple[Floats, Ints, Ints]:
        """Sum start..end, all in one block."""
        first, last = blocks.first[start], blocks.last[start]
        inside, whole = end - start + 1, last - first + 1
        direct = inside <= whole - inside
        others = below[last + 1] - below[end + 1] + below[start] - below[first]
        value = np.where(direct, below[end + 1] - below[start], exact[last + 1] - exact[first] - others)
        return value, np.where(direct, inside, 0), np.where(direct, 0, whole - inside)

    same = blocks.first[low] == blocks.first[high]
    one = summed(low, np.where(same, high, low))
    head = summed(low, blocks.last[low])
    tail = summed(blocks.first[high], high)
    middle = np.maximum(exact[blocks.first[high]] - exact[blocks.last[low] + 1], 0)
    value = np.where(same, one[0], head[0] + tail[0] + middle)
    return value, np.where(same, one[1], head[1] + tail[1]), np.where(same, one[2], head[2] + tail[2])

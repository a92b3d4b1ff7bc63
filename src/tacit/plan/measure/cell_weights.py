"""From noisy counts of cells to weights: none is negative, and together they are as many as the people.

This is post-processing. The nearest such weights take the same number off every cell, which is a lot in all where many
are full: it stays behind as noise in empty cells, wherever they lie. So the people are shared out from the top: of a
block of cells with halves along every axis each half gets the nearest share of what the block has, down to single
cells. The noise of a sum over a block is far less than that of its cells one by one, so that little is taken off full
blocks, and what is taken off a full cell stays near it. `tacit bench clusters` has both.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats


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

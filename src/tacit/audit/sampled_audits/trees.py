"""A small classifier for outputs with structure: shallow trees, each correcting the sum of those before it.

It only has to find an event that a later, independent count confirms, so it may be wrong but never misleading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from tacit.arrays import Floats
from tacit.audit.sampled_audits.features import Columns

BINS: Final = 32
ROUNDS: Final = 20
DEPTH: Final = 3
MOST_ROWS: Final = 60_000
MOST_COLUMNS: Final = 40
RATE: Final = 0.4


@dataclass(frozen=True)
class _Tree:
    """Splits by level (every node of a level has its own column and bin), and a value for each leaf."""

    columns: tuple[npt.NDArray[np.int64], ...]
    bins: tuple[npt.NDArray[np.int64], ...]
    leaves: Floats

    def score(self, binned: npt.NDArray[np.uint8]) -> Floats:
        node = np.zeros(binned.shape[1], dtype=np.int64)
        rows = np.arange(binned.shape[1])
        for column, at in zip(self.columns, self.bins, strict=True):
            node = 2 * node + (binned[column[node], rows] > at[node])
        return self.leaves[node]


@dataclass(frozen=True)
class BoostedTrees:
    """A sum of shallow trees over columns that are cut into bins; its score grows with the odds of `hidden`."""

    names: tuple[str, ...]
    ends: tuple[Floats, ...]
    trees: tuple[_Tree, ...]

    @classmethod
    def trained(cls, hidden: Columns, cover: Columns) -> BoostedTrees:
        """Learn to tell the outputs of hidden from those of cover."""
        names = tuple(hidden)[:MOST_COLUMNS]
        rows = min(len(hidden[names[0]]), MOST_ROWS)
        parts = {name: np.concatenate([hidden[name][:rows], cover[name][:rows]]) for name in names}
        ends = tuple(_ends(parts[name]) for name in names)
        binned = _binned(parts, names, ends)
        label = np.repeat([1.0, 0.0], rows)
        score, trees = np.zeros(2 * rows), []
        for _ in range(ROUNDS):
            chance = expit(score)
            tree = _grown(binned, label - chance, chance * (1 - chance))
            score += tree.score(binned)
            trees.append(tree)
        return cls(names, ends, tuple(trees))

    def score(self, columns: Columns) -> Floats:
        """Return a number for each output that is larger the more it looks like one of hidden's."""
        binned = _binned(columns, self.names, self.ends)
        return sum((tree.score(binned) for tree in self.trees), np.zeros(binned.shape[1]))


def _ends(column: npt.NDArray[Any]) -> Floats:
    finite = column[np.isfinite(column)] if column.dtype.kind == "f" else column
    if not len(finite):
        return np.zeros(0)
    return np.unique(np.quantile(finite, np.linspace(0, 1, BINS + 1)[1:-1], method="nearest")).astype(np.float64)


def _binned(columns: Columns, names: tuple[str, ...], ends: tuple[Floats, ...]) -> npt.NDArray[np.uint8]:
    return np.stack(
        [
            np.searchsorted(end, columns[name].astype(np.float64)).astype(np.uint8)
            for name, end in zip(names, ends, strict=True)
        ]
    )


def _grown(binned: npt.NDArray[np.uint8], slope: Floats, weight: Floats) -> _Tree:
    """Return the tree that lowers the loss most, split by split (second-order steps)."""
    node = np.zeros(binned.shape[1], dtype=np.int64)
    levels_columns, levels_bins = [], []
    for level in range(DEPTH):
        nodes, first_cell = 2**level, node * BINS
        sums = np.empty((2, len(binned), nodes * BINS))
        for column, values in enumerate(binned):
            cell = first_cell + values
            sums[0, column], sums[1, column] = (np.bincount(cell, part, nodes * BINS) for part in (slope, weight))
        left = np.cumsum(sums.reshape(2, len(binned), nodes, BINS), axis=3)
        right = left[..., -1:] - left
        gain = left[0] ** 2 / (left[1] + 1) + right[0] ** 2 / (right[1] + 1)
        columns = gain.max(axis=2).argmax(axis=0)
        bins = gain[columns, np.arange(nodes)].argmax(axis=1)
        levels_columns.append(columns)
        levels_bins.append(bins)
        node = 2 * node + (binned[columns[node], np.arange(binned.shape[1])] > bins[node])
    total, weights = (np.bincount(node, part, 2**DEPTH) for part in (slope, weight))
    return _Tree(tuple(levels_columns), tuple(levels_bins), RATE * total / (weights + 1))

"""Views of outputs, in which a leak may show: coordinates, sums, differences, orders, last digits, forms of texts.

And a small classifier for outputs with structure: shallow trees, each correcting the sum of those before it. It only
has to find an event that a later, independent count confirms, so it may be wrong but never misleading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from tacit.arrays import Floats, Ints

Columns = Mapping[str, npt.NDArray[Any]]
Makers = dict[str, Callable[[], Any]]

MOST_PAIRS: Final = 24  # coordinates of which all differences are looked at
SHORT: Final = 1 << 16  # a table of numbers that stays in the cache
MIXING: Final = np.uint64(0x9E3779B97F4A7C15)


def span(*columns: npt.NDArray[Any]) -> tuple[int, int] | None:
    """Return the ends of whole numbers that are so near each other that a table of all of them is short, else None."""
    if not all(column.dtype == np.int64 and len(column) for column in columns):
        return None
    low, high = min(int(column.min()) for column in columns), max(int(column.max()) for column in columns)
    return (low, high) if high - low < SHORT else None


class Views(Columns):
    """Views of outputs by name, each made when it is first looked at. The `plain` ones are the outputs themselves."""

    def __init__(self, plain: Makers, derived: Makers, *, texts: bool = False) -> None:
        self.plain, self.derived, self.texts = list(plain), list(derived), texts
        self._makers = {**plain, **derived}
        self._made = dict[str, npt.NDArray[Any]]()

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self._made:
            with np.errstate(invalid="ignore", over="ignore"):
                self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def columns_of(outputs: npt.NDArray[Any]) -> Views:
    """Return the views of an array of outputs: its coordinates, and what is telling about several together."""
    if outputs.dtype.names:
        fields: Makers = {name: partial(np.ascontiguousarray, outputs[name]) for name in outputs.dtype.names}
        # the text and the form are no numbers, so nothing is subtracted from them
        return Views(fields, _differences(dict(list(fields.items())[2:])), texts=True)
    flat = outputs.reshape(len(outputs), -1)
    names = ["output"] if flat.shape[1] == 1 else [f"output[{i}]" for i in range(flat.shape[1])]
    columns: Makers = {name: partial(np.ascontiguousarray, flat[:, i]) for i, name in enumerate(names)}
    plain, derived = dict(columns), Makers()
    if flat.dtype.kind == "f":
        plain["numbers that are not finite"] = partial(_not_finite, flat)
        derived |= {f"bits of {name}": partial(_bits, flat, i) for i, name in enumerate(names)}
    derived |= {f"lowest binary digit of {name}": partial(_lowest_digit, flat, i) for i, name in enumerate(names)}
    if flat.shape[1] > 1:
        plain |= {
            "sum": partial(flat.sum, axis=1),
            "largest": partial(flat.max, axis=1),
            "smallest": partial(flat.min, axis=1),
            "place of the largest": partial(flat.argmax, axis=1),
        }
        if 2 < flat.shape[1] <= MOST_PAIRS:
            plain["reversed pairs"] = partial(_reversed_pairs, flat)
        derived |= _differences(columns)
    return Views(plain, derived)


def _differences(columns: Makers) -> Makers:
    """Return the difference of every pair, or of neighbours only where there are many."""
    pairs = combinations(columns, 2) if len(columns) <= MOST_PAIRS else pairwise(columns)
    return {f"{b} - {a}": partial(_difference, columns[a], columns[b]) for a, b in pairs}


def _difference(a: Callable[[], npt.NDArray[Any]], b: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return np.asarray(b() - a())


def _reversed_pairs(flat: npt.NDArray[Any]) -> Ints:
    """Return how many pairs of a row are in falling order."""
    many = np.zeros(len(flat), np.int64)
    for i, j in combinations(range(flat.shape[1]), 2):
        many += flat[:, i] > flat[:, j]
    return many


def _not_finite(flat: Floats) -> Ints:
    """Return one number for how many numbers of a row are none, infinite, or infinite and negative."""
    parts = (np.isnan(flat), np.isposinf(flat), np.isneginf(flat))
    return sum((part.sum(axis=1) * 10 ** (6 * i) for i, part in enumerate(parts)), np.zeros(len(flat), np.int64))


def _bits(flat: Floats, at: int) -> Ints:
    """Return each double as a whole number that no other has: zeros have signs, and not every NaN is the same."""
    return np.ascontiguousarray(flat[:, at].astype(np.float64)).view(np.int64)


def _lowest_digit(flat: npt.NDArray[Any], at: int) -> Ints:
    """Return the largest j for which a value is a multiple of 2^j: where the noise was rounded."""
    values = flat[:, at]
    if values.dtype.kind != "f":
        whole = values.astype(np.int64)
        digit = np.where(whole == 0, 1, whole & -whole).view(np.uint64)
        return np.where(whole == 0, 64, np.log2(digit.astype(np.float64))).astype(np.int64)
    finite = np.where(np.isfinite(values), values, 0.0).astype(np.float64)
    mantissa, exponent = np.frexp(finite)
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    lowest = np.where(whole == 0, 1, whole & -whole)
    return np.where(whole == 0, 2000, exponent - 53 + np.log2(lowest).astype(np.int64)).astype(np.int64)


FEW_BINS: Final = 32
ROUNDS: Final = 20
DEPTH: Final = 3
MOST_ROWS: Final = 60_000
MOST_SPLIT: Final = 40
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
        names = tuple(hidden)[:MOST_SPLIT]
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
    return np.unique(np.quantile(finite, np.linspace(0, 1, FEW_BINS + 1)[1:-1], method="nearest")).astype(np.float64)


def _binned(columns: Columns, names: tuple[str, ...], ends: tuple[Floats, ...]) -> npt.NDArray[np.uint8]:
    return np.stack([_bins(columns[name], end) for name, end in zip(names, ends, strict=True)])


def _bins(column: npt.NDArray[Any], ends: Floats) -> npt.NDArray[np.uint8]:
    near = span(column)
    values = column if near is None else np.arange(near[0], near[1] + 1)
    bins = np.searchsorted(ends, values.astype(np.float64)).astype(np.uint8)
    return bins if near is None else bins[column - near[0]]


def _grown(binned: npt.NDArray[np.uint8], slope: Floats, weight: Floats) -> _Tree:
    """Return the tree that lowers the loss most, split by split (second-order steps)."""
    node = np.zeros(binned.shape[1], dtype=np.int64)
    levels_columns, levels_bins = [], []
    for level in range(DEPTH):
        nodes, first_cell = 2**level, node * FEW_BINS
        sums = np.empty((2, len(binned), nodes * FEW_BINS))
        for column, values in enumerate(binned):
            cell = first_cell + values
            sums[0, column], sums[1, column] = (np.bincount(cell, part, nodes * FEW_BINS) for part in (slope, weight))
        left = np.cumsum(sums.reshape(2, len(binned), nodes, FEW_BINS), axis=3)
        right = left[..., -1:] - left
        gain = left[0] ** 2 / (left[1] + 1) + right[0] ** 2 / (right[1] + 1)
        columns = gain.max(axis=2).argmax(axis=0)
        bins = gain[columns, np.arange(nodes)].argmax(axis=1)
        levels_columns.append(columns)
        levels_bins.append(bins)
        node = 2 * node + (binned[columns[node], np.arange(binned.shape[1])] > bins[node])
    total, weights = (np.bincount(node, part, 2**DEPTH) for part in (slope, weight))
    return _Tree(tuple(levels_columns), tuple(levels_bins), RATE * total / (weights + 1))

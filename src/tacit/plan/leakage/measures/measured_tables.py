"""Joint tables of attributes as a measure of leakage looks at them: by value, or only as sensitive or not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from tacit.arrays import Floats
from tacit.dependence.dependence import Dependence
from tacit.plan.leakage.measures.convex_terms import Mask

BLOCK = 128  # cells of a group of attributes that are inferred together
MEASURES = {
    "value": "what is seen (the value, or nothing) tells about the value of the protected attribute",
    "bit": "whether something is seen tells about whether the protected attribute is sensitive",
}


class MeasuredTables:
    """The tables of one dependence, under one measure; each is made once.

    Under `bit` every attribute has two values, sensitive and not: then both what is protected and what is seen is one
    bit, as in the paper. Under `value` both are whole values, and a released one shows itself.
    """

    def __init__(
        self, dependence: Dependence, sensitive: Mapping[str, frozenset[int]], names: Sequence[str], measure: str
    ) -> None:
        self._dependence = dependence
        self._sensitive = sensitive
        self._is_bit = measure == "bit"
        self._block = _blocks({name: len(dependence.values[name]) for name in names})
        self._joint = cache(dependence.marginal)
        self.table = cache(self._table)

    def sensitive(self, name: str) -> Mask:
        """Say which values of an attribute are never shown."""
        if self._is_bit:
            return np.array([True, False])
        return self._by_value(name)

    def size(self, name: str) -> int:
        """Return how many values an attribute has."""
        return 2 if self._is_bit else len(self._dependence.values[name])

    def released(self, name: str) -> float:
        """Return how likely an attribute is not sensitive."""
        return float(self.table(name)[~self.sensitive(name)].sum())

    def _pair(self, first: str, second: str) -> Floats:
        """Return the joint of two attributes, from that of the blocks they are in: an inference serves many pairs."""
        together = sorted({self._block[first], self._block[second]})
        names = [name for block in together for name in block]
        axes = [names.index(first), names.index(second)]
        joint = self._joint(*names)
        found: Floats = joint.sum(axis=tuple(axis for axis in range(len(names)) if axis not in axes))
        return found if axes[0] < axes[1] else found.T

    def _by_value(self, name: str) -> Mask:
        hidden = self._sensitive.get(name, frozenset())
        return np.array([at in hidden for at in range(len(self._dependence.values[name]))])

    def _table(self, *names: str) -> Floats:
        """Return the joint of attributes, one axis for each; an attribute that is named twice agrees with itself."""
        once = list(dict.fromkeys(names))
        found = self._pair(*once) if len(once) == 2 else self._joint(*once)
        if self._is_bit:
            for axis, name in enumerate(once):
                hidden = self._by_value(name)
                halves = [found.compress(side, axis=axis).sum(axis=axis) for side in (hidden, ~hidden)]
                found = np.stack(halves, axis=axis)
        found = found / found.sum()
        for axis, name in enumerate(names):
            if name in names[:axis]:
                found = _repeated(found, names.index(name), axis)
        return found


def _blocks(sizes: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Return small groups of attributes, by attribute, whose joint tables have few cells."""
    groups: list[list[str]] = [[]]
    for name, size in sizes.items():
        if math.prod(sizes[one] for one in groups[-1]) * size > BLOCK:
            groups.append([])
        groups[-1].append(name)
    return {name: tuple(group) for group in groups for name in group}


def _repeated(table: Floats, axis: int, at: int) -> Floats:
    """Return a table with an axis put in that always agrees with an earlier one."""
    size = table.shape[axis]
    moved = np.moveaxis(table, axis, 0)
    found = np.zeros((size, size, *moved.shape[1:]))
    found[np.arange(size), np.arange(size)] = moved
    return np.moveaxis(found, [0, 1], [axis, at])

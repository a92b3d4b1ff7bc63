"""Columns of labels: each label once, and for every answer which of them it has.

A table of ten million cells has a few hundred labels. Nothing is made for each cell but a small number, so that frames
and files of large tables are made by numpy and Arrow, without a loop over cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tacit.policy.attributes.attribute import Value


class Labels(Sequence["Value"]):
    """A column of labels, read like a list. `values` has each of them once, `which` its place there, for every row.

    >>> list(Labels(["f", "m"], np.array([0, 0, 1])))
    ['f', 'f', 'm']
    """

    def __init__(self, values: Sequence[Value], which: npt.NDArray[Any]) -> None:
        self.values, self.which = values, which

    def __len__(self) -> int:
        return len(self.which)

    @overload
    def __getitem__(self, place: int) -> Value: ...
    @overload
    def __getitem__(self, place: slice) -> Labels: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return Labels(self.values, self.which[place])
        return self.values[int(self.which[place])]

    def __iter__(self) -> Iterator[Value]:
        return map(self.values.__getitem__, self.which.tolist())


def labels_of_cells(values: Sequence[Sequence[Value]]) -> list[Labels]:
    """Return the labels of a table written row by row, one column for the values of each of its attributes.

    >>> [list(column) for column in labels_of_cells([["f", "m"], [1, 2, 3]])]
    [['f', 'f', 'f', 'm', 'm', 'm'], [1, 2, 3, 1, 2, 3]]
    """
    sizes = [len(each) for each in values]
    columns = []
    for at, each in enumerate(values):
        inner, outer = math.prod(sizes[at + 1 :]), math.prod(sizes[:at])
        places = np.arange(len(each), dtype=np.min_scalar_type(len(each)))
        columns.append(Labels(each, np.tile(np.repeat(places, inner), outer)))
    return columns


def one_below_the_other(parts: Sequence[Labels | int]) -> Labels:
    """Return several columns as one. A number stands for so many rows without a label, which is then None."""
    values: list[Value] = []
    taken: dict[int, int] = {}  # where the values of a column begin; tables of one attribute share theirs
    blank: int | None = None
    which = []
    for part in parts:
        if isinstance(part, int):
            if blank is None:
                blank = len(values)
                values.append(None)
            which.append(np.full(part, blank, dtype=np.int64))
            continue
        start = taken.get(id(part.values))
        if start is None:
            start = taken[id(part.values)] = len(values)
            values.extend(part.values)
        which.append(part.which.astype(np.int64) + start)
    return Labels(values, np.concatenate(which))

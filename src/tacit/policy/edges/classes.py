"""Positions that no predicate can tell apart, gathered into classes.

A predicate looks at an axis only through its atoms. Two positions that lie in the same atoms are interchangeable, so
an axis of 10^12 positions with three atoms has at most eight classes, and usually four.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final

from tacit.policy.attributes.attribute import Axis
from tacit.policy.edges.intervals import Intervals
from tacit.policy.where import Test

MOST_COMBINATIONS: Final = 20_000  # of classes, of which those that satisfy a predicate are looked for


def classes(size: int, sets: Iterable[Intervals]) -> list[Intervals]:
    """Split the positions 0..size-1 into the classes that these sets tell apart.

    >>> [part.parts for part in classes(10, [Intervals.of([(2, 4)]), Intervals.of([(4, 9)])])]
    [((0, 1),), ((2, 3),), ((4, 4),), ((5, 9),)]
    """
    found = [Intervals.full(size)]
    for chosen in dict.fromkeys(sets):
        found = [part for piece in found for part in (piece.without(chosen), piece & chosen) if part]
    return sorted(found, key=lambda piece: piece.parts)


def axes_of(tests: Iterable[Test | None]) -> dict[str, tuple[Axis, list[Intervals]]]:
    """Return for each axis that these predicates mention the classes that they tell apart."""
    atoms: dict[str, tuple[Axis, list[Intervals]]] = {}
    for test in tests:
        for axis, positions in test.atoms if test is not None else ():
            atoms.setdefault(axis.name, (axis, []))[1].append(positions)
    return {name: (axis, classes(axis.size, sets)) for name, (axis, sets) in atoms.items()}


def cells(split: dict[str, tuple[Axis, list[Intervals]]]) -> Iterator[dict[str, Intervals]]:
    """Go through all combinations of one class for each axis."""
    for combination in product(*(parts for _, parts in split.values())):
        yield dict(zip(split, combination, strict=True))


def projected(test: Test | None, axis: Axis) -> Intervals:
    """Return the positions of an axis at which a predicate may hold, whatever the other axes are; never too few."""
    split = axes_of([test])
    if axis.name not in split or math.prod(len(parts) for _, parts in split.values()) > MOST_COMBINATIONS:
        return Intervals.full(axis.size)
    found = [cell[axis.name] for cell in cells(split) if holds(test, cell)]
    return Intervals.of(part for positions in found for part in positions)


def holds(test: Test | None, cell: dict[str, Intervals]) -> bool:
    """Return the predicate's answer for a combination of classes (no predicate: yes)."""
    if test is None:
        return True
    # classes never straddle an atom, so one member answers for all
    return bool(test.holds(lambda axis, found: cell[axis.name].lowest in found, lambda answer: not answer))

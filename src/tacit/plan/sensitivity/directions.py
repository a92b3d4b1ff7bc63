"""Which cells of a histogram can rise along a secret edge, and which can fall.

Under one-directional policies most cells move one way only: if `hiv` must look like any other disease, the count of
`hiv` only falls and all others only rise. Each cell then needs noise on one side only. The answers here err on the
side of "can move": a cell that is said not to rise never does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from tacit.arrays import Bools, Ints
from tacit.plan.sensitivity.cells import CellTables, everybody
from tacit.plan.sensitivity.coupling import couples_people
from tacit.plan.sensitivity.steps import shape_jumps
from tacit.policy.attributes.attribute import Axis
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.shapes import EdgeShape, axes_of, projected
from tacit.policy.policy import Policy
from tacit.policy.where import Test

LARGEST: Final = 5_000_000  # cells; beyond this the planning would take longer than it saves


def directions(query: CellTables, policy: Policy) -> tuple[Bools, Bools] | None:
    """Return which cells can fall and which can rise, or None where all can do both (or nobody looked)."""
    domain = policy.domain
    if query.is_items(domain) or query.size(domain) > LARGEST:
        return None
    if couples_people(policy):
        return None  # others move as well, and anywhere
    test = query.where.compile(domain) if query.where is not None else None
    falls, rises = [], []
    for names in query.sets:
        axes = [axis for name in names for axis in domain.axes_of(name)]
        places = dict(zip((a.name for a in axes), _grid([a.size for a in axes]), strict=True))
        inside = _possible(test, None, None, places, axes)
        fall, rise = np.zeros_like(inside), np.zeros_like(inside)
        for absence in policy.absences:
            fall |= _possible(test, absence.only_from, None, places, axes)
            rise |= inside & absence.joins
        for shape in policy.shapes:
            more_fall, more_rise = _by_shape(query, policy, shape, test, places, axes, inside)
            fall |= more_fall
            rise |= more_rise
        falls.append(fall)
        rises.append(rise)
    fall, rise = np.concatenate(falls), np.concatenate(rises)
    return None if (fall & rise).all() else (fall, rise)


def _by_shape(
    query: CellTables,
    policy: Policy,
    shape: EdgeShape,
    test: Test | None,
    places: dict[str, Ints],
    axes: Sequence[Axis],
    inside: Bools,
) -> tuple[Bools, Bools]:
    picked_changes = query.where is not None and any(
        True for _ in shape_jumps(everybody(query.where), policy.domain, shape)
    )
    start, end = np.ones(inside.shape, dtype=np.bool_), np.ones(inside.shape, dtype=np.bool_)
    leave, arrive = np.zeros(inside.shape, dtype=np.bool_), np.zeros(inside.shape, dtype=np.bool_)
    for axis in axes:
        relation = shape.relation(axis)
        may_start, may_end, may_leave, may_arrive = relation.sides(axis.size)
        if shape.only_from is not None:
            reached = relation.targets(projected(shape.only_from, axis)).marks(np.arange(axis.size, dtype=np.int64))
            may_end, may_arrive = may_end & reached, may_arrive & reached
        at = places[axis.name]
        start, end = start & may_start[at], end & may_end[at]
        leave, arrive = leave | may_leave[at], arrive | may_arrive[at]
    hidden = start & _possible(test, shape.only_from, shape, places, axes)
    sources = start & _possible(None, shape.only_from, shape, places, axes)
    fall = hidden & (leave | picked_changes)
    rise = end & inside & (arrive | picked_changes)
    if not picked_changes and sources.sum() == 1:
        rise &= ~sources  # the only cell that people can move away from is not one that they move to
    return fall, rise


def _possible(
    test: Test | None, condition: Test | None, shape: EdgeShape | None, places: dict[str, Ints], axes: Sequence[Axis]
) -> Bools:
    """Return for each cell whether some record in it satisfies both predicates (and may be an edge's hidden end)."""
    elsewhere = {n: found for n, found in axes_of([test, condition]).items() if n not in places}
    shape_of = next(iter(places.values())).shape
    found = np.zeros(shape_of, dtype=np.bool_)
    for combination in product(*(parts for _, parts in elsewhere.values())):
        chosen = dict(zip(elsewhere, combination, strict=True))
        if shape is not None and not all(
            shape.relation(elsewhere[name][0]).sources(Intervals.full(elsewhere[name][0].size)) & part
            for name, part in chosen.items()
            if elsewhere[name][0].item is None  # a set of items may hold any item before it moves
        ):
            continue
        here: Any = np.ones(shape_of, dtype=np.bool_)
        for predicate in (test, condition):
            if predicate is not None:
                here = here & predicate.holds(
                    lambda axis, positions, chosen=chosen: (  # type: ignore[misc]
                        positions.marks(places[axis.name])
                        if axis.name in places
                        else np.bool_(chosen[axis.name].lowest in positions)
                    ),
                    np.logical_not,
                )
        found |= here
    return found


def _grid(sizes: list[int]) -> list[Ints]:
    """Return the position on each axis for every cell, in the order of the answers."""
    return [part.reshape(-1).astype(np.int64) for part in np.indices(sizes)]

"""Totals that no secret edge changes, and that a release may therefore use exactly.

Along an edge a person's position on each axis moves only within the axis' *label*: all positions that edges connect.
The combination of labels never changes, so the number of people with each combination is public under the policy.
With presence public and nothing else fixed there is one label everywhere: the total number of people. Where only some
people have a secret, edges connect only what leads away from their positions, and cells at which no edge starts or ends
(`plan/sensitivity/directions.py`) are exact by themselves. With knowledge that couples people, other people may move
anywhere; then exactly what is known stays exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tacit.arrays import Ints
from tacit.plan.sensitivity.cells import CellTables, everybody
from tacit.plan.sensitivity.coupling import couples_people
from tacit.plan.sensitivity.directions import directions
from tacit.plan.sensitivity.steps import free_step
from tacit.policy.attributes.attribute import Axis
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.shapes import projected
from tacit.policy.policy import Policy
from tacit.policy.where import Where


def axis_labels(policy: Policy, axis: Axis) -> Ints:
    """Return a label for each position such that no secret edge leads from one label to another."""
    labels = np.arange(axis.size, dtype=np.int64)
    for shape in policy.shapes:
        starts = None
        if shape.only_from is not None:
            starts = projected(shape.only_from, axis)
            if starts == Intervals.full(axis.size):
                starts = None
        shape.relation(axis).join(labels, starts)
    if not labels.any():
        return labels
    # without gaps, in the same order; labels are positions, so that nothing need be sorted
    there = np.zeros(len(labels), dtype=np.bool_)
    there[labels] = True
    return (np.cumsum(there) - 1)[labels].astype(np.int64)


def exact_groups(query: CellTables, policy: Policy) -> list[Ints] | None:
    """Return for each histogram a label per cell such that the sums over equal labels are exact; None if there is none.

    Sums are exact because no edge of the policy changes them. A restriction by `where` keeps this only if no edge
    changes whether somebody is picked. Labels are products: those of the first axis, within each those of the second,
    and so on.
    """
    if query.is_items(policy.domain) or policy.absences:
        return None
    if query.where is not None and free_step(everybody(query.where), policy).l1 > 0:
        return None
    coupled = couples_people(policy)
    if coupled and query.where is not None:
        return None
    found = []
    for names in query.sets:
        known = _known_exactly(policy, names) if coupled else []
        groups = np.zeros(1, dtype=np.int64)
        for axis in (axis for name in names for axis in policy.domain.axes_of(name)):
            if not coupled:
                labels = axis_labels(policy, axis)
            elif axis.attribute in known:
                labels = np.arange(axis.size, dtype=np.int64)
            else:
                labels = np.zeros(axis.size, dtype=np.int64)
            # cells are written row by row: each of those so far becomes a run of cells
            many = int(labels.max()) + 1
            if many > 1:
                groups = np.add.outer(groups * many, labels).reshape(-1)
            else:
                groups = np.repeat(groups, axis.size) if groups.any() else np.zeros(len(groups) * axis.size, np.int64)
        found.append(groups)  # every combination of labels occurs, so the numbers have no gaps
    return found


def finest_groups(query: CellTables, policy: Policy) -> list[Ints] | None:
    """Return groups as `exact_groups` does, with cells that no edge changes alone: then no product of the axes' labels.

    >>> from tacit.policy.attributes import Flag, Integers
    >>> from tacit.policy.domain import Domain
    >>> from tacit.policy.secrets import within
    >>> domain = Domain({"age": Integers(0, 2), "ill": Flag()})
    >>> policy = Policy(domain, within(1, "age", where="ill == True"))
    >>> [groups(CellTables((("ill", "age"),)), policy)[0].tolist() for groups in (exact_groups, finest_groups)]
    [[0, 0, 0, 1, 1, 1], [0, 1, 2, 3, 3, 3]]
    """
    groups = exact_groups(query, policy)
    if groups is None or couples_people(policy):
        return groups
    return [
        _apart(group, CellTables((names,), query.where), policy)
        for names, group in zip(query.sets, groups, strict=True)
    ]


def _apart(groups: Ints, query: CellTables, policy: Policy) -> Ints:
    """Give cells that no edge changes labels of their own: where secrets are of some people, those of the others."""
    axes = [axis for names in query.sets for name in names for axis in policy.domain.axes_of(name)]
    if len(axes) < 2 or all(shape.only_from is None for shape in policy.shapes):
        return groups  # the labels of one axis say it already
    sides = directions(query, policy)
    if sides is None or (still := ~(sides[0] | sides[1])).sum() == 0:
        return groups
    own = np.where(still, int(groups.max()) + 1 + np.arange(len(groups)), groups)
    _, first, labels = np.unique(own, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))  # in the order of the cells, so that groups may stay unbroken
    return rank[labels].astype(np.int64)


def exact_cumulative(name: str, where: Where | None, policy: Policy) -> npt.NDArray[np.bool_] | None:
    """Return which cumulative counts no secret edge changes (with presence public, at least the last one).

    None where there is none, as where some edge changes whether `where` picks somebody.
    """
    if policy.absences:
        return None
    if where is not None and free_step(everybody(where), policy).l1 > 0:
        return None
    coupled = couples_people(policy)
    if coupled and where is not None:
        return None
    axis = policy.domain.axes_of(name)[0]
    exact = np.zeros(axis.size, dtype=np.bool_)
    exact[-1] = True
    if not coupled:
        labels = axis_labels(policy, axis)
        if not labels.any():
            return exact  # one label: people may move from end to end
        # a count is exact if every label lies entirely at or below it, or entirely above it
        last = np.zeros(int(labels.max()) + 1, dtype=np.int64)
        np.maximum.at(last, labels, np.arange(axis.size))
        exact |= np.maximum.accumulate(last[labels]) == np.arange(axis.size)
    return exact


def _known_exactly(policy: Policy, names: Sequence[str]) -> list[str]:
    """Return the largest set of this histogram's attributes whose histogram is known."""
    known = [fact.histogram for fact in policy.known if set(fact.histogram) <= set(names)]
    return list(sorted(known, key=len)[-1] if known else ())


def exact_attributes(policy: Policy, names: Sequence[str]) -> tuple[str, ...]:
    """Return the attributes of a histogram that no edge changes, so that their own histogram is exact."""
    if couples_people(policy):
        return tuple(_known_exactly(policy, names))
    return tuple(
        name
        for name in names
        if all(len(np.unique(axis_labels(policy, axis))) == axis.size for axis in policy.domain.axes_of(name))
    )

"""Totals that no secret edge changes, and that a release may therefore use exactly.

Along an edge a person's position on each axis moves only within the axis' *label*: all positions that edges connect.
The combination of labels never changes, so the number of people with each combination is public under the policy.
With presence public and nothing else fixed there is one label everywhere: the total number of people. With knowledge
that couples people, other people may move anywhere; then exactly what is known stays exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tacit.plan.cells import Cells, everybody
from tacit.plan.steps import free_step
from tacit.policy.attributes.attribute import Axis
from tacit.policy.edges import Blocks, FromTo, Near, Same
from tacit.policy.intervals import Intervals
from tacit.policy.knowledge import KnownMarginal
from tacit.policy.policy import Policy
from tacit.policy.where import Where

IntArray = npt.NDArray[np.int64]


def axis_labels(policy: Policy, axis: Axis) -> IntArray:
    """Return a label for each position such that no secret edge leads from one label to another."""
    labels = np.arange(axis.size, dtype=np.int64)
    for shape in policy.shapes:
        match shape.relation(axis.name, axis.size):
            case Same():
                pass
            case FromTo(hidden, cover):
                _join(labels, [hidden | cover])
            case Near(reach):
                if reach >= 1:
                    labels[:] = 0
            case Blocks(width):
                _join_steps(labels, width)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def exact_groups(query: Cells, policy: Policy) -> list[IntArray] | None:
    """Return for each histogram a label per cell such that the sums over equal labels are exact; None if there is none.

    Sums are exact because no edge of the policy changes them. A restriction by `where` keeps this only if no edge
    changes whether somebody is picked.
    """
    if query.is_items(policy.domain) or policy.presence == "secret":
        return None
    alone = Policy(policy.domain, policy.secrets, (), policy.presence)
    if query.where is not None and free_step(everybody(query.where), alone).l1 > 0:
        return None
    coupled = _couples(policy, alone)
    if coupled and query.where is not None:
        return None
    found = []
    for names, cells in zip(query.sets, query.sizes(policy.domain), strict=True):
        groups = np.zeros(cells, dtype=np.int64)
        if coupled:
            for name in _known_exactly(policy, names):
                groups = groups * policy.domain[name].size + _positions(policy, names, name)
        else:
            for name in names:
                for axis, places in _axis_positions(policy, names, name):
                    labels = axis_labels(policy, axis)
                    groups = groups * (int(labels.max()) + 1) + labels[places]
        found.append(groups)  # every combination of labels occurs, so the numbers have no gaps
    return found


def exact_cumulative(name: str, where: Where | None, policy: Policy) -> npt.NDArray[np.bool_] | None:
    """Return which cumulative counts no secret edge changes (with presence public, at least the last one)."""
    if policy.presence == "secret" or where is not None:
        return None
    alone = Policy(policy.domain, policy.secrets, (), policy.presence)
    axis = policy.domain.axes_of(name)[0]
    exact = np.zeros(axis.size, dtype=np.bool_)
    exact[-1] = True
    if not _couples(policy, alone):
        labels = axis_labels(policy, axis)
        # a count is exact if every label lies entirely at or below it, or entirely above it
        last = np.zeros(int(labels.max()) + 1, dtype=np.int64)
        np.maximum.at(last, labels, np.arange(axis.size))
        exact |= np.maximum.accumulate(last[labels]) == np.arange(axis.size)
    return exact


def _couples(policy: Policy, alone: Policy) -> bool:
    from tacit.plan.coupling import is_touched

    return any(is_touched(fact, alone) for fact in policy.known)


def _known_exactly(policy: Policy, names: Sequence[str]) -> list[str]:
    """Return the largest set of this histogram's attributes whose histogram is known."""
    known = [fact.names for fact in policy.known if isinstance(fact, KnownMarginal) and set(fact.names) <= set(names)]
    return list(sorted(known, key=len)[-1] if known else ())


def _positions(policy: Policy, names: Sequence[str], name: str) -> IntArray:
    """Return the position of each cell of a histogram in one of its attributes."""
    sizes = [policy.domain[other].size for other in names]
    at = list(names).index(name)
    inner = int(np.prod(sizes[at + 1 :], dtype=np.int64))
    outer = int(np.prod(sizes[:at], dtype=np.int64))
    return np.tile(np.repeat(np.arange(sizes[at], dtype=np.int64), inner), outer)


def _axis_positions(policy: Policy, names: Sequence[str], name: str) -> list[tuple[Axis, IntArray]]:
    places = _positions(policy, names, name)
    axes = policy.domain.axes_of(name)
    if len(axes) == 1:
        return [(axes[0], places)]
    return [(axes[0], places // axes[1].size), (axes[1], places % axes[1].size)]


def _join(labels: IntArray, sets: list[Intervals]) -> None:
    """Give all positions of each set one label, together with whatever shares a label with them."""
    for positions in sets:
        inside = positions.marks(np.arange(len(labels), dtype=np.int64))
        if inside.any():
            labels[np.isin(labels, np.unique(labels[inside]))] = labels[inside].min()


def _join_steps(labels: IntArray, width: int) -> None:
    if len(np.unique(labels)) == len(labels):
        labels[:] = np.arange(len(labels)) // width
    else:
        for start in range(0, len(labels), width):
            _join(labels, [Intervals.of([(start, min(start + width, len(labels)) - 1)])])


def exact_attributes(policy: Policy, names: Sequence[str]) -> tuple[str, ...]:
    """Return the attributes of a histogram that no edge changes, so that their own histogram is exact."""
    alone = Policy(policy.domain, policy.secrets, (), policy.presence)
    if _couples(policy, alone):
        return tuple(_known_exactly(policy, names))
    return tuple(
        name
        for name in names
        if all(len(np.unique(axis_labels(policy, axis))) == axis.size for axis in policy.domain.axes_of(name))
    )

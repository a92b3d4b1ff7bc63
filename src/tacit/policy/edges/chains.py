"""The shortest chain of secret edges between two records.

Guarantee   A distance of k comes with a chain of k secret edges, and no shorter chain exists; infinity means that there
            is no chain. A search that would take too long is refused, never guessed. If nothing is known, a pair at
            distance k is protected at k times the epsilon; if something is known, see `Distance.keeps_known`.
Assumes     The policy's shapes are its edges (tests compare them with the definitions, edge by edge).
Why         Axes that no shape moves stay as they are, so predicates about them are decided first. Shapes then fall into
            groups that share no axis. An edge moves one group alone, so the distances of groups add up.
            Within a group, boxes hold all records that k edges lead to (`policy/edges/shapes.py`). A group that has
            only one shared distance has closed forms (`_shared`). Otherwise the search first gives each axis the whole
            of a shared distance, and each person any number of items. That can only make chains shorter; so if a chain
            of real edges between real records is as short, it is a shortest one. If there is none, a shared distance
            leads from a box to one box for each largest way of sharing it. At last, small domains are searched record
            by record. Absence is one more record, which only those who may leave can reach.
Reference   Blowfish privacy, equation 9: the loss grows with the distance in the policy's graph.
Checked by  tests/property/test_distance.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice, product
from typing import Any, Final

import numpy as np

from tacit.errors import PolicyError
from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain, every_record, positions
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import Near, Relation
from tacit.policy.edges.shapes import (
    EFFORT,
    BoxMove,
    EdgeShape,
    Leg,
    Metric,
    Places,
    TooMany,
    are_listed,
    axes_of,
    cells,
    holds,
    listed_legs,
    shortest_legs,
)
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.where import Test

_SMALL: Final = 400  # records that are gone through one by one
_MOST_REGIONS: Final = 5_000  # combinations of classes at which a predicate is asked
_MOST_WAYS: Final = 5_000  # of sharing a distance
_MOST_TABLE: Final = 20_000_000  # numbers in a table of what two axes can share


class Distance(float):
    """A number of secret edges, or infinity, with the chain itself.

    >>> from tacit.policy.attributes import Integers
    >>> from tacit.policy.secrets import within
    >>> policy = Policy(Domain({"age": Integers(0, 99)}), within(5, "age"))
    >>> far = distance(policy, {"age": 30}, {"age": 42})
    >>> far == 3, far.path
    (True, [{'age': 30}, {'age': 35}, {'age': 40}, {'age': 42}])
    """

    _policy: Policy
    _legs: Sequence[Leg]
    _last: Sequence[Any]

    def __new__(cls, policy: Policy, last: Sequence[Any] = (), legs: Sequence[Leg] = ()) -> Distance:
        """Make a distance from legs and from the records that follow them; without either there is no chain."""
        edges = sum(leg.edges for leg in legs) + len(last) - (not legs)
        made = super().__new__(cls, edges if legs or last else math.inf)
        made._policy, made._legs, made._last = policy, tuple(legs), tuple(last)
        return made

    def __repr__(self) -> str:
        return "inf" if math.isinf(self) else str(int(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return Distance, (self._policy, self._last, self._legs)

    def records(self) -> Iterator[Any]:
        """Go through the records of the chain, from the first to the last; `ABSENT` is somebody not in the data."""
        if self._legs:
            here: Places = dict(self._legs[0].start)
            yield _record_at(self._policy.domain, here)
            for leg in self._legs:
                for there in leg.places():
                    here |= there
                    yield _record_at(self._policy.domain, here)
        yield from self._last

    def then(self, *records: Any) -> Distance:
        """Return the distance by a chain that goes on to these records."""
        return Distance(self._policy, [*self._last, *records], legs=self._legs)

    @property
    def path(self) -> list[dict[str, Any] | None]:
        """The records of the chain by attribute, None for "not in the data"; empty where there is no chain."""
        domain = self._policy.domain
        return [None if one is ABSENT else dict(zip(domain, one, strict=True)) for one in self.records()]

    @property
    def keeps_known(self) -> bool:
        """Whether every record of the chain adds the same to all that is known.

        Then each edge is a pair of neighbours, and the first record looks like the last at the distance times the
        epsilon. Otherwise other people have to change as well, and nothing is claimed.
        """
        domain, facts = self._policy.domain, self._policy.known
        if not facts:
            return True
        first = None
        for record in self.records():
            person = None if record is ABSENT else record
            added = tuple(fact.added_by(person, domain) for fact in facts)
            first = added if first is None else first
            if added != first:
                return False
        return True


def distance(policy: Policy, hidden: Any, cover: Any, *, effort: int = EFFORT) -> Distance:
    """Return how many secret edges lead from one record to another, with a shortest chain; None: not in the data."""
    domain = policy.domain
    a: Any
    b: Any
    a, b = (ABSENT if side is None or side is ABSENT else domain.record(side) for side in (hidden, cover))
    if a is b or a == b:
        return Distance(policy, [a])
    if policy.has_edge(a, b):
        return Distance(policy, [a, b])
    joins = any(absence.joins for absence in policy.absences)  # absence has edges to all records, or to none
    if a is ABSENT:
        return Distance(policy)
    if joins and policy.has_edge(a, ABSENT):
        return Distance(policy, [a, ABSENT, b])
    direct = Distance(policy) if b is ABSENT else _between(policy, a, [_End.at(domain, b)], effort)
    if not (joins or b is ABSENT) or direct <= 2:
        return direct
    ends = [end for absence in policy.absences for end in _End.where(absence.only_from)]
    leaving = _between(policy, a, ends, effort)
    through = [ABSENT] if b is ABSENT else [ABSENT, b]
    if leaving + len(through) >= direct:
        return direct
    return leaving.then(*through)


def _between(policy: Policy, hidden: Any, ends: Sequence[_End], effort: int) -> Distance:
    """Return the distance from one record to the nearest of several ends, without absence."""
    for generous in (True, False):
        try:
            found = [_search(policy, hidden, end, effort, generous=generous) for end in ends]
        except TooMany:
            continue
        chains = [legs for legs in found if legs is not None]
        shortest = min((sum(leg.edges for leg in legs) for legs in chains), default=math.inf)
        for legs in chains:
            if sum(leg.edges for leg in legs) == shortest and _is_real(policy, legs):
                return Distance(policy, legs=legs)
        if not chains:
            return Distance(policy)
    if policy.domain.size <= _SMALL:
        return Distance(policy, _one_by_one(policy, hidden, ends))
    rule = "is too far to look for: too many ways lead on from this record"
    fix = "Ask about records that differ in fewer attributes."
    raise PolicyError(rule, key="distance", given=dict(zip(policy.domain, hidden, strict=True)), fix=fix)


@dataclass(frozen=True)
class _End:
    """The end of a chain: one record, or all records with some axes at certain positions."""

    parts: Mapping[Axis, Intervals]
    record: Any = None

    @classmethod
    def at(cls, domain: Domain, record: Any) -> _End:
        """Return the end that is one record."""
        places = positions(domain, record)
        parts = {axis: Intervals.points([places[axis.name]]) for name in domain for axis in domain.axes_of(name)}
        for (name, attribute), value in zip(domain.attributes, record, strict=True):
            chosen = attribute.positions(value) if attribute.is_set else ()
            parts |= {_item_axis(name, item): Intervals.points([1]) for item in chosen}
        return cls(parts, record)

    @classmethod
    def where(cls, test: Test | None) -> Iterator[_End]:
        """Go through the ends at which a predicate holds."""
        split = axes_of([test])
        if math.prod(len(parts) for _, parts in split.values()) > _MOST_REGIONS:
            raise PolicyError("must tell fewer classes of records apart", key="where", fix="Simplify the predicate.")
        for cell in cells(split):
            if holds(test, cell):
                yield cls({split[name][0]: part for name, part in cell.items()})

    def part(self, axis: Axis) -> Intervals:
        """Return where an axis may end."""
        if axis in self.parts:
            return self.parts[axis]
        return Intervals.points([0]) if self.record is not None else Intervals.full(axis.size)

    def has(self, domain: Domain, record: Any) -> bool:
        """Say whether a record is at this end."""
        if self.record is not None:
            return bool(record == self.record)
        at = positions(domain, record)
        return all(at[axis.name] in part for axis, part in self.parts.items())


def _item_axis(name: str, item: int) -> Axis:
    return Axis(name, 2, ordered=True, item=item)


def _record_at(domain: Domain, places: Mapping[Axis, int]) -> Any:
    found: list[Any] = []
    for name, attribute in domain.attributes:
        if attribute.is_set:
            chosen = [axis for axis, place in places.items() if axis.attribute == name and place]
            found.append(frozenset(attribute.cell(axis.item) for axis in chosen if axis.item is not None))
            continue
        at = [places[axis] for axis in domain.axes_of(name)]
        found.append(attribute.value(at[0]) if len(at) == 1 else tuple(at))
    return tuple(found)


def _is_real(policy: Policy, legs: Sequence[Leg]) -> bool:
    """Say whether all edges of a chain are real: no set has too many items, and shared distances are shared.

    The first edge of a leg goes as far as any other of it on every axis; items change on legs of one edge alone.
    """
    here: Places = dict(legs[0].start)
    for leg in legs:
        for there in islice(leg.places(), 1):
            records = [_record_at(policy.domain, side) for side in (here, here | there)]
            fits = all(
                not attribute.is_set or len(value) <= attribute.most_items
                for record in records
                for attribute, value in zip(policy.domain.values(), record, strict=True)
            )
            if not fits or not policy.has_edge(*records):
                return False
        here |= leg.end
    return True


@dataclass(frozen=True)
class _Reading:
    """A shape on the relevant axes: their relations, the regions where edges start, and the shared distance."""

    relations: Mapping[Axis, Relation]
    regions: Sequence[Mapping[Axis, Intervals]]
    metric: Metric | None

    @property
    def axes(self) -> set[Axis]:
        """The axes that it changes or tests."""
        return set(self.relations).union(*self.regions)

    @property
    def sharing(self) -> list[Axis]:
        """The axes whose distances add up; where one alone counts, or only the largest, nothing is shared."""
        near = [axis for axis, relation in self.relations.items() if relation.shares_distance]
        return near if self.metric is not None and self.metric.kind != "linf" and len(near) > 1 else []

    def moves(self, *, generous: bool) -> Iterator[BoxMove]:
        """Go through moves that are this shape together, each with a relation of its own for every axis.

        `generous`: more than that, every axis has the whole of a shared distance.
        """
        for shares in [{}] if generous else self._shares():
            for region in self.regions:
                yield BoxMove({**self.relations, **shares}, region)

    def _shares(self) -> Iterator[dict[Axis, Near]]:
        sharing = self.sharing
        if not sharing or self.metric is None:
            yield {}
            return
        *others, last = sharing
        whole = {axis: Intervals.full(axis.size) for axis in others}
        reaches = [self.relations[axis].farthest(positions, positions) for axis, positions in whole.items()]
        if math.prod(reach + 1 for reach in reaches) > _MOST_WAYS:
            raise TooMany
        for moved in product(*(range(reach + 1) for reach in reaches)):
            spent = [Fraction(far * axis.spacing) for axis, far in zip(others, moved, strict=True)]
            left = self.metric.steps_left(spent, last.spacing)
            if left >= 0:
                yield {axis: Near(far) for axis, far in zip(sharing, (*moved, left), strict=True)}


def _search(policy: Policy, hidden: Any, end: _End, effort: int, *, generous: bool) -> list[Leg] | None:
    """Return the legs of a shortest chain from a record to an end, or None if there is none."""
    axes = list(_axes(policy, hidden, end))
    at = positions(policy.domain, hidden)
    start, ends = {axis: at[axis.name] for axis in axes}, {axis: end.part(axis) for axis in axes}
    moving = [(shape, {axis: shape.relation(axis) for axis in axes}) for shape in policy.shapes]
    moved = {axis for _, relations in moving for axis, relation in relations.items() if relation.can_move}
    readings = []
    for shape, relations in moving:
        regions = _regions(shape, {axis.name: place for axis, place in start.items() if axis not in moved}, moved)
        if regions:
            movable = {axis: relation for axis, relation in relations.items() if relation.can_move}
            readings.append(_Reading(movable, regions, shape.metric))
    legs: list[Leg] = [Leg(start, start, edges=0)]
    unmoved = set(axes)
    for group in _groups(readings):
        looked_at = set[Axis]().union(*(reading.axes for reading in group))
        unmoved -= looked_at
        here = {axis: start[axis] for axis in axes if axis in looked_at}
        there = {axis: ends[axis] for axis in here}
        if all(place in there[axis] for axis, place in here.items()):
            continue
        found = _shared(group, here, there)
        if found is None:
            moves = [move for reading in group for move in reading.moves(generous=generous)]
            found = listed_legs(moves, here, there) if are_listed(moves) else shortest_legs(moves, here, there, effort)
        if found is None:
            return None
        legs += found
    return legs if all(start[axis] in ends[axis] for axis in unmoved) else None


def _axes(policy: Policy, hidden: Any, end: _End) -> Iterator[Axis]:
    """Go through the relevant axes: all fixed ones, and those of items in a record or in a shape."""
    domain = policy.domain
    for (name, attribute), value in zip(domain.attributes, hidden, strict=True):
        if not attribute.is_set:
            yield from domain.axes_of(name)
            continue
        items = set(attribute.positions(value))
        tests = [shape.only_from for shape in policy.shapes if shape.only_from is not None]
        for shape in policy.shapes:
            exactly = shape.item_moves(name).exactly
            items |= exactly[0] | exactly[1] if exactly is not None else frozenset()
        for axis in (*end.parts, *(axis for test in tests for axis, _ in test.atoms)):
            items |= {axis.item} if axis.attribute == name and axis.item is not None else set()
        yield from (_item_axis(name, item) for item in sorted(items))


def _regions(shape: EdgeShape, unmoved: Mapping[str, int], moved: set[Axis]) -> list[dict[Axis, Intervals]]:
    """Return where edges of a shape may begin, given the positions that never change."""
    if shape.only_from is None:
        return [{}]
    split = axes_of([shape.only_from])
    for name, place in unmoved.items():
        if name in split:
            axis, parts = split[name]
            split[name] = (axis, [part for part in parts if place in part])
    if math.prod(len(parts) for _, parts in split.values()) > _MOST_REGIONS:
        raise TooMany
    every = list(cells(split))
    chosen = [cell for cell in every if holds(shape.only_from, cell)]
    if len(chosen) == len(every):
        return [{}]
    return [{split[name][0]: part for name, part in cell.items() if split[name][0] in moved} for cell in chosen]


def _groups(readings: Sequence[_Reading]) -> list[list[_Reading]]:
    """Return the shapes in groups that have no axis in common."""
    groups: list[tuple[set[Axis], list[_Reading]]] = []
    for reading in readings:
        axes, together = reading.axes, [reading]
        near = [group for group in groups if group[0] & axes]
        if near:
            # into the largest, so that thousands of readings of one axis are not copied one after the other
            into = max(near, key=lambda group: len(group[1]))
            axes, together = into[0] | axes.union(*(group[0] for group in near)), into[1]
            together += [*chain.from_iterable(group[1] for group in near if group is not into), reading]
        groups = [group for group in groups if all(group is not one for one in near)] + [(axes, together)]
    return [group for _, group in groups]


def _shared(group: Sequence[_Reading], start: Places, ends: Mapping[Axis, Intervals]) -> list[Leg] | None:
    """Return a shortest chain if the group has only one distance that several axes share; None if it has more.

    If a way of sharing a distance is allowed, so is every smaller one. So a chain never has to go back on an axis, or
    to move an axis that is in place: the question is how few ways add up to at least the differences.
    """
    only, metric = group[0], group[0].metric
    if len(group) > 1 or metric is None or list(only.regions) != [{}] or len(only.sharing) < len(only.relations):
        return None
    end = {axis: part.closest_to(start[axis]) for axis, part in ends.items()}
    # what is given up comes first, so that sets of items never grow in between
    differ = sorted((axis for axis in start if start[axis] != end[axis]), key=lambda axis: end[axis] - start[axis])
    far = [abs(end[axis] - start[axis]) for axis in differ]
    costs = {axis.spacing for axis in differ}
    if len(costs) == 1 and (metric.kind == "l1" or max(far) == 1):
        # one after the other: every unit costs the same, whichever axis it is on
        spacing = costs.pop()
        shares = _in_turn(far, math.floor(metric.limit / Fraction(spacing) ** (metric.power or 1)))
    elif len(differ) == 2:
        shares = _two_axes(far, differ, metric)
    else:
        return None
    if shares is None:
        return None
    legs, here = [], dict(start)
    for share in shares:
        there = dict(here)
        for axis, steps in zip(differ, share, strict=True):
            left = end[axis] - here[axis]
            there[axis] = here[axis] + (min(steps, left) if left > 0 else -min(steps, -left))
        legs.append(Leg(here, there))
        here = there
    return legs


def _in_turn(far: Sequence[int], each: int) -> list[tuple[int, ...]] | None:
    if sum(far) > each * _MOST_TABLE // max(len(far), 1):
        return None
    left, found = list(far), []
    while any(left):
        room, way = each, []
        for place, more in enumerate(left):
            way.append(min(more, room))
            left[place] -= way[-1]
            room -= way[-1]
        found.append(tuple(way))
    return found


def _two_axes(far: Sequence[int], axes: Sequence[Axis], metric: Metric) -> list[tuple[int, ...]] | None:
    """Return the fewest ways that add up to two differences: a table of how much of the second goes with the first."""
    first = [Fraction(moved * axes[0].spacing) for moved in range(far[0] + 1)]
    most = [metric.steps_left([moved], axes[1].spacing) for moved in first]
    gains = np.array([more for more in most if more >= 0], dtype=np.int64)  # by how far the first one moves
    best = [np.where(np.arange(far[0] + 1) == 0, 0, -1)]  # -1: not yet
    while best[-1][far[0]] < far[1]:
        if len(best) * (far[0] + 1) * len(gains) > _MOST_TABLE:
            return None
        before, after = best[-1], np.full(far[0] + 1, -1, dtype=np.int64)
        for moved, more in enumerate(gains):
            earlier = before[: far[0] + 1 - moved]
            after[moved:] = np.maximum(after[moved:], np.where(earlier >= 0, earlier + more, -1))
        best.append(np.minimum(after, far[1]))
        if np.array_equal(best[-1], before):
            return None
    ways: list[tuple[int, ...]] = []
    at, need = far
    for before in best[-2::-1]:
        moved = next(
            moved
            for moved in range(min(at, len(gains) - 1), -1, -1)
            if before[at - moved] >= 0 and before[at - moved] + gains[moved] >= need
        )
        ways.append((moved, int(gains[moved])))
        at, need = at - moved, max(0, need - int(gains[moved]))
    return ways


def _one_by_one(policy: Policy, hidden: Any, ends: Sequence[_End]) -> list[Any]:
    domain = policy.domain
    left = set(every_record(domain)) - {hidden}
    before: dict[Any, Any] = {hidden: None}
    newest = [hidden]
    while newest:
        arrived = [one for one in newest if any(end.has(domain, one) for end in ends)]
        if arrived:
            found = arrived[:1]
            while before[found[-1]] is not None:
                found.append(before[found[-1]])
            return found[::-1]
        beyond = []
        for here in newest:
            reached = [there for there in left if policy.secrets.has_edge(domain, here, there)]
            before.update(dict.fromkeys(reached, here))
            left.difference_update(reached)
            beyond += reached
        newest = beyond
    return []

"""Whether one policy protects all that another one protects.

A release under the stronger policy may be charged to the weaker one's budget, never the other way round. The answer is
yes only where it is proved: each shape of the weaker policy lies within one shape of the stronger, or the domain is
so small that every edge can be looked at.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Final

from tacit.policy.classes import axes_of, cells, holds
from tacit.policy.domain import Domain, Items
from tacit.policy.edges import EdgeShape, ItemMoves
from tacit.policy.intervals import Intervals

if TYPE_CHECKING:
    from tacit.policy.policy import Policy

SMALL: Final = 64  # records; pairs of these are looked at one by one


def includes(stronger: Policy, weaker: Policy) -> bool:
    """Say whether every edge of `weaker` is surely an edge of `stronger`, with the same knowledge."""
    if stronger.domain != weaker.domain or set(stronger.known) != set(weaker.known):
        return False
    if weaker.presence == "secret" and stronger.presence == "public":
        return False
    if not _owners_within(stronger, weaker):
        return False
    domain = stronger.domain
    if all(any(_shape_within(small, large, domain) for large in stronger.shapes) for small in weaker.shapes):
        return True
    if domain.size > SMALL:
        return False
    records = list(product(*(_every_value(attribute) for _, attribute in domain.attributes)))
    return all(
        stronger.secrets.has_edge(domain, a, b)
        for a, b in product(records, repeat=2)
        if a != b and weaker.secrets.has_edge(domain, a, b)
    )


def _owners_within(stronger: Policy, weaker: Policy) -> bool:
    """Say whether protecting all rows of the stronger policy's people protects those of the weaker one's."""
    if weaker.person is None:
        # One row's move is one of its owner's. But a row that leaves lets the owner's next row in, which is two moves.
        return stronger.person is None or weaker.presence == "public" or stronger.per_person >= 2
    return stronger.person == weaker.person and stronger.per_person >= weaker.per_person


def _shape_within(small: EdgeShape, large: EdgeShape, domain: Domain) -> bool:
    axes = [axis for name in domain for axis in domain.axes_of(name)]
    for axis in axes:
        if not small.relation(axis.name, axis.size).within(large.relation(axis.name, axis.size), axis.size):
            return False
    item_names = [name for name in domain if isinstance(domain[name], Items)]
    if not all(small.item_moves(name).within(large.item_moves(name)) for name in item_names):
        return False
    return _distance_within(small, large, domain) and _condition_within(small, large)


def _distance_within(small: EdgeShape, large: EdgeShape, domain: Domain) -> bool:
    if large.metric is None:
        return True
    if small.metric is not None and small.metric.kind == large.metric.kind and small.metric.theta <= large.metric.theta:
        return True
    farthest: list[Fraction] = []
    for name in domain:
        for axis in domain.axes_of(name):
            full = Intervals.full(axis.size)
            found = small.relation(axis.name, axis.size).differences(full, full)
            if found:
                farthest.append(Fraction(max(found.highest, -found.lowest) * axis.spacing))
        attribute = domain[name]
        if isinstance(attribute, Items):
            changed = _most_changed(small.item_moves(name), attribute)
            farthest.extend([Fraction(1)] * changed if large.metric.kind == "l2" else [Fraction(changed)])
    return large.metric.allows(farthest)


def _most_changed(moves: ItemMoves, attribute: Items) -> int:
    if moves.exactly is not None:
        return len(moves.exactly[0] ^ moves.exactly[1])
    return min(attribute.count, attribute.most * (moves.lose + moves.gain))


def _condition_within(small: EdgeShape, large: EdgeShape) -> bool:
    if large.only_from is None:
        return True
    split = axes_of([small.only_from, large.only_from])
    for cell in cells(split):
        reachable = all(
            small.relation(name, axis.size).sources(Intervals.full(axis.size)) & cell[name]
            for name, (axis, _) in split.items()
            if "[" not in name  # a set of items may hold any item before it moves
        )
        if reachable and holds(small.only_from, cell) and not holds(large.only_from, cell):
            return False
    return True


def _every_value(attribute: Any) -> list[Any]:
    if isinstance(attribute, Items):
        names = [attribute.item(place) for place in range(attribute.count)]
        return [frozenset(chosen) for many in range(attribute.most + 1) for chosen in combinations(names, many)]
    return [attribute.value(place) for place in range(attribute.size)]

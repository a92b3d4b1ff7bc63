"""How far apart two records are in secret edges, as far as that is known: for what `describe` says about weak spots.

A chain of k edges protects a pair at k times the epsilon. `chain_length` returns a length only where a chain of that
length surely exists; `surely_unconnected` says yes only where surely no chain exists. Between the two is what is not
known, and nothing is claimed about it. Where something is publicly known, nothing is claimed at all: the data sets in
the middle of a chain would have to fit what is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain, Record, positions
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.secrets import Attributes, Pairs, Partition, Records, Secrets, Values, Within

_LARGEST_AXIS: Final = 300  # positions of an axis that are searched for a way from one to another


def chain_length(policy: Policy, hidden: Any, cover: Any) -> int | None:
    """Return the length of some chain of secret edges from one record to another, or None if none is known."""
    if policy.known:
        return None
    if policy.has_edge(hidden, cover):
        return 1
    if policy.presence == "secret":
        return 2  # present -> absent -> present
    if hidden is ABSENT or cover is ABSENT:
        return None
    domain = policy.domain
    a, b = domain.record(hidden), domain.record(cover)
    # one attribute after the other: these families do not ask what the other attributes are
    whole = 0
    for place, name in enumerate(domain):
        if a[place] == b[place]:
            continue
        lengths = [_alone(family, domain, place, name, a, b) for family in policy.secrets.families()]
        known = [length for length in lengths if length is not None]
        if not known:
            return None
        whole += min(known)
    return whole


def _alone(family: Secrets, domain: Domain, place: int, name: str, a: Record, b: Record) -> int | None:
    """Return how many edges of one family lead from a to b in one attribute while nothing else changes."""
    match family:
        case Attributes() | Partition() | Values():
            changed = (*a[:place], b[place], *a[place + 1 :])
            return 1 if family.has_edge(domain, a, changed) else None
        case Within(theta, names, metric) if name in names:
            return _steps(theta, metric, domain, name, a[place], b[place])
    return None


def _steps(theta: Any, metric: str, domain: Domain, name: str, a: Any, b: Any) -> int | None:
    attribute = domain[name]
    if attribute.is_set:
        reach = {"l1": int(theta), "l2": int(theta * theta)}.get(metric, attribute.cells if theta >= 1 else 0)
        # items are given up before others are added, so that no bound on their number is in the way
        return _up(len(a - b), reach) + _up(len(b - a), reach) if reach else None
    axes = domain.axes_of(name)
    reaches = [int(theta // axis.spacing) for axis in axes]
    at, to = attribute.places(name, a), attribute.places(name, b)
    parts = [abs(at[axis.name] - to[axis.name]) for axis in axes]
    if any(part and not reach for part, reach in zip(parts, reaches, strict=True)):
        return None
    # one axis after the other is a way under every metric
    return sum(_up(part, reach) for part, reach in zip(parts, reaches, strict=True) if part)


def _up(distance: int, reach: int) -> int:
    return -(-distance // reach)


def surely_unconnected(policy: Policy, hidden: Any, cover: Any) -> bool:
    """Say whether surely no chain of secret edges leads from one record to another."""
    if policy.known or policy.presence == "secret":
        return False
    if hidden is ABSENT or cover is ABSENT:
        return True  # presence is public: no edge leads to absence or away from it
    domain = policy.domain
    families = policy.secrets.families()
    a, b = domain.record(hidden), domain.record(cover)
    if all(_is_stuck(family, domain, a) for family in families):
        return True
    # an edge changes an axis in one of the ways below; without a way on one axis there is no chain
    at, to = positions(domain, a), positions(domain, b)
    for place, name in enumerate(domain):
        if a[place] == b[place]:
            continue
        if domain[name].is_set:
            loses, gains = _item_ways(families, name)
            if (a[place] - b[place] and not loses) or (b[place] - a[place] and not gains):
                return True
            continue
        for number, axis in enumerate(domain.axes_of(name)):
            if at[axis.name] != to[axis.name] and not _leads(
                families, domain, name, axis, number, at[axis.name], to[axis.name]
            ):
                return True
    return False


def _is_stuck(family: Secrets, domain: Domain, record: Record) -> bool:
    """Say whether surely no edge of a family starts at a record."""
    match family:
        case Records(where):
            return not where.compile(domain).of_record(positions(domain, record))
        case Values(sensitive):
            said = dict(zip(domain, record, strict=True))
            return not any(
                (1 in values and said[name]) or 0 in values if domain[name].is_set else said[name] in values
                for name, values in sensitive
            )
        case Pairs():
            said = dict(zip(domain, record, strict=True))
            return not any(all(said[name] == a[name] for name in a) for a, _ in family._named(domain))
    return False


def _item_ways(families: tuple[Secrets, ...], name: str) -> tuple[bool, bool]:
    """Say whether some edge may take an item away, and whether some edge may add one."""
    loses = gains = False
    for family in families:
        match family:
            case Values(sensitive):
                values = dict(sensitive).get(name, ())
                loses, gains = loses or 1 in values, gains or 0 in values
            case Attributes(names) | Within(_, names):
                loses, gains = loses or name in names, gains or name in names
            case Partition():
                pass  # never of a set of items
            case _:
                return True, True
    return loses, gains


def _leads(
    families: tuple[Secrets, ...], domain: Domain, name: str, axis: Axis, number: int, start: int, end: int
) -> bool:
    """Say whether edges may lead from one position of an axis to another; yes wherever it is not known."""
    movers = [family for family in families if _may_move(family, name)]
    if not movers:
        return start == end
    ways = [_ways(family, domain, name, axis, number) for family in movers]
    if axis.size > _LARGEST_AXIS:
        # too far to search; but blocks do not overlap, so one partition by itself leads nowhere else
        return len(movers) > 1 or not isinstance(movers[0], Partition) or ways[0](start, end)
    found, new = {start}, [start]
    while new and end not in found:
        here = new.pop()
        reached = [there for there in range(axis.size) if there not in found and any(way(here, there) for way in ways)]
        found.update(reached)
        new.extend(reached)
    return end in found


def _may_move(family: Secrets, name: str) -> bool:
    match family:
        case Attributes(names) | Within(_, names):
            return name in names
        case Partition(moved):
            return moved == name
        case Values(sensitive):
            return name in dict(sensitive)
    return True


def _ways(family: Secrets, domain: Domain, name: str, axis: Axis, number: int) -> Callable[[int, int], bool]:
    """Return whether an edge of a family may lead from here to there on an axis; yes wherever it is not known."""
    attribute = domain[name]
    is_line = len(attribute.axes(name)) == 1
    match family:
        case Within(theta):
            reach = theta // axis.spacing
            return lambda here, there: abs(here - there) <= reach
        case Partition(_, width, _) if width is not None:
            size = family._widths(domain)[number]
            return lambda here, there: here // size == there // size
        case Partition():
            blocks = family._block_positions(domain)
            return lambda here, there: any(here in block and there in block for block in blocks)
        case Values(sensitive) if is_line:
            hidden = {attribute.position(value) for value in dict(sensitive)[name]}
            return lambda here, there: here in hidden
        case Pairs() if is_line:
            named = [(a[name], b[name]) for a, b in family._named(domain) if name in a]
            pairs = {(attribute.position(a), attribute.position(b)) for a, b in named}
            return lambda here, there: (here, there) in pairs
        case Records(where) if where.columns() == {name} and is_line:
            test = where.compile(domain)
            return lambda here, there: test.of_record({name: here})
    return lambda here, there: True

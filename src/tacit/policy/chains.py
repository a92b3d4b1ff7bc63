"""How far apart two records are in secret edges, as far as that is known: for what `describe` says about weak spots.

A chain of k edges protects a pair at k times the epsilon. `chain_length` returns a length only where a chain of that
length surely exists; `surely_unconnected` says yes only where surely no chain exists. Between the two is what is not
known, and nothing is claimed about it. Where something is publicly known, nothing is claimed at all: the data sets in
the middle of a chain would have to fit what is known.
"""

from __future__ import annotations

from typing import Any, Final

from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain, positions
from tacit.policy.edges import Absence
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.secrets import Secrets

_LARGEST_AXIS: Final = 300  # positions of an axis that are searched for a way from one to another


def chain_length(policy: Policy, hidden: Any, cover: Any) -> int | None:
    """Return the length of some chain of secret edges from one record to another, or None if none is known."""
    if policy.known:
        return None
    if policy.has_edge(hidden, cover):
        return 1
    if Absence() in policy.absences:
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
        lengths = [family.steps_alone(domain, name, a, b) for family in policy.secrets.families()]
        known = [length for length in lengths if length is not None]
        if not known:
            return None
        whole += min(known)
    return whole


def surely_unconnected(policy: Policy, hidden: Any, cover: Any) -> bool:
    """Say whether surely no chain of secret edges leads from one record to another."""
    if policy.known or any(absence.joins for absence in policy.absences):
        return False
    if hidden is ABSENT or (cover is ABSENT and not policy.absences):
        return True  # no edge leads away from absence, or to it
    if cover is ABSENT:
        return False  # edges may lead to somebody who may leave
    domain = policy.domain
    families = policy.secrets.families()
    a, b = domain.record(hidden), domain.record(cover)
    if all(family.is_stuck(domain, a) for family in families):
        return True
    # an edge changes an axis in one of the ways below; without a way on one axis there is no chain
    at, to = positions(domain, a), positions(domain, b)
    for place, name in enumerate(domain):
        if a[place] == b[place]:
            continue
        if domain[name].is_set:
            ways = [family.item_ways(name) for family in families]
            loses, gains = any(loses for loses, _ in ways), any(gains for _, gains in ways)
            if (a[place] - b[place] and not loses) or (b[place] - a[place] and not gains):
                return True
            continue
        for number, axis in enumerate(domain.axes_of(name)):
            if at[axis.name] != to[axis.name] and not _leads(
                families, domain, axis, number, at[axis.name], to[axis.name]
            ):
                return True
    return False


def _leads(families: tuple[Secrets, ...], domain: Domain, axis: Axis, number: int, start: int, end: int) -> bool:
    """Say whether edges may lead from one position of an axis to another; yes wherever it is not known."""
    movers = [family for family in families if family.may_move(axis.attribute)]
    if not movers:
        return start == end
    ways = [family.ways(domain, axis, number) for family in movers]
    if axis.size > _LARGEST_AXIS:
        # too far to search; but one family whose edges lead no further together than alone is looked at
        return len(movers) > 1 or not movers[0].is_transitive or ways[0](start, end)
    found, new = {start}, [start]
    while new and end not in found:
        here = new.pop()
        reached = [there for there in range(axis.size) if there not in found and any(way(here, there) for way in ways)]
        found.update(reached)
        new.extend(reached)
    return end in found

"""The definitions, word for word and slowly: every record, every edge, every small data set."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np

from tacit.plan.queries import Count, Cumulative, Marginals, Ranges, Total, resolved
from tacit.policy.domain import Items
from tacit.policy.knowledge import KnownCount, KnownMarginal, KnownSize
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.secrets import positions


def every_value(attribute: Any) -> list[Any]:
    if isinstance(attribute, Items):
        names = [attribute.item(place) for place in range(attribute.count)]
        return [frozenset(c) for many in range(attribute.most + 1) for c in combinations(names, many)]
    return [attribute.value(place) for place in range(attribute.size)]


def every_record(domain: Any) -> list[Any]:
    return list(product(*(every_value(attribute) for attribute in domain.values())))


def answers_of(query: Any, domain: Any, record: Any) -> np.ndarray:
    """What one person adds to the answers, straight from the meaning of the query."""
    query = resolved(query, domain)
    size = query.size(domain)
    out = np.zeros(size, dtype=np.int64)
    if record is ABSENT:
        return out
    if query.where is not None and not query.where.compile(domain).of_record(positions(domain, record)):
        return out
    by_name = dict(zip(domain, record, strict=True))
    match query:
        case Count():
            out[0] = 1
        case Total():
            out[0] = by_name[query.name]
        case Cumulative():
            out[domain[query.name].position(by_name[query.name]) :] = 1
        case Ranges():
            labels = query.labels(domain)
            at = domain[query.name].position(by_name[query.name])
            for place, (low, high) in enumerate(zip(*labels.values(), strict=True)):
                out[place] = domain[query.name].position(low) <= at <= domain[query.name].position(high)
        case Marginals():
            start = 0
            for names, cells in zip(query.sets, query.sizes(domain), strict=True):
                attribute = domain[names[0]]
                if isinstance(attribute, Items):
                    for place in attribute.positions(by_name[names[0]]):
                        out[start + place] = 1
                else:
                    cell = 0
                    for name in names:
                        cell = cell * domain[name].size + domain[name].position(by_name[name])
                    out[start + cell] = 1
                start += cells
    return out


def largest(changes: list[np.ndarray]) -> dict[str, Any]:
    if not changes:
        return {"up": 0, "down": 0, "l1": 0, "square": 0, "profiles": []}
    table = np.array(changes)
    rises, falls = np.maximum(table, 0), np.maximum(-table, 0)
    return {
        "up": int(rises.max()),
        "down": int(falls.max()),
        "l1": int(np.abs(table).sum(1).max()),
        "square": int((table**2).sum(1).max()),
        "profiles": sorted({(int(f), int(r)) for f, r in zip(falls.sum(1), rises.sum(1), strict=True)}),
    }


def edges_of(policy: Policy) -> list[tuple[Any, Any]]:
    records = every_record(policy.domain)
    found = [(a, b) for a, b in product(records, repeat=2) if a != b and policy.secrets.has_edge(policy.domain, a, b)]
    if policy.presence == "secret":
        found += [(record, ABSENT) for record in records] + [(ABSENT, record) for record in records]
    return found


def step_by_edges(query: Any, policy: Policy) -> dict[str, Any]:
    """The largest step over all edges, without knowledge."""
    adds = {}

    def of(record: Any) -> np.ndarray:
        if record not in adds:
            adds[record] = answers_of(query, policy.domain, record)
        return adds[record]

    return largest([of(b) - of(a) for a, b in edges_of(policy)])


def known_numbers(policy: Policy, people: tuple[Any, ...]) -> tuple[int, ...]:
    numbers: list[int] = []
    for fact in policy.known:
        match fact:
            case KnownSize():
                numbers.append(sum(record is not ABSENT for record in people))
            case KnownMarginal(names):
                numbers += sum(answers_of(Marginals((names,)), policy.domain, record) for record in people).tolist()
            case KnownCount(where):
                numbers += sum(answers_of(Count(where), policy.domain, record) for record in people).tolist()
    return tuple(numbers)


def step_by_data_sets(query: Any, policy: Policy, people: int) -> dict[str, Any]:
    """The largest step over all minimal neighbours among data sets of so many people that agree on what is known.

    Neighbours: at least one person moved along a secret edge; no other agreeing data set makes only some of these
    secret moves (but at least one), or the same secret moves with only some of the other ones.
    """
    values: list[Any] = every_record(policy.domain) + ([ABSENT] if policy.presence == "secret" else [])
    secret = set(edges_of(policy))
    worlds: dict[tuple[int, ...], list[tuple[Any, ...]]] = {}
    for world in product(values, repeat=people):
        worlds.setdefault(known_numbers(policy, world), []).append(world)
    adds = {record: answers_of(query, policy.domain, record) for record in values}
    changes = []
    for start in combinations_with_replacement(values, people):
        agreeing = worlds[known_numbers(policy, start)]
        moves = {}
        for world in agreeing:
            changed = [(i, b) for i, (a, b) in enumerate(zip(start, world, strict=True)) if a != b]
            along = frozenset((i, b) for i, b in changed if (start[i], b) in secret)
            moves[world] = (along, frozenset(changed) - along)
        secret_sets = {along for along, _ in moves.values() if along}
        both = set(moves.values())
        for world, (along, other) in moves.items():
            if not along or any(smaller < along for smaller in secret_sets):
                continue
            if any(a == along and o < other for a, o in both):
                continue
            changes.append(sum(adds[b] - adds[a] for a, b in zip(start, world, strict=True)))
    return largest(changes)

"""The definitions, word for word and slowly: every record, every edge, every small data set."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

from tacit.audit.worlds import added, every_edge, every_record, every_value, known_numbers
from tacit.plan.queries import resolved
from tacit.policy.policy import ABSENT, Policy

__all__ = [
    "answers_of",
    "edges_of",
    "every_record",
    "every_value",
    "known_numbers",
    "largest",
    "step_by_data_sets",
    "step_by_edges",
]

edges_of = every_edge


def answers_of(query: Any, domain: Any, record: Any) -> np.ndarray:
    """What one person adds to the answers, straight from the meaning of the query."""
    return added(resolved(query, domain), domain, record)


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


def step_by_edges(query: Any, policy: Policy) -> dict[str, Any]:
    """The largest step over all edges, without knowledge."""
    adds = {}

    def of(record: Any) -> np.ndarray:
        if record not in adds:
            adds[record] = answers_of(query, policy.domain, record)
        return adds[record]

    return largest([of(b) - of(a) for a, b in edges_of(policy)])


def step_by_data_sets(query: Any, policy: Policy, people: int) -> dict[str, Any]:
    """The largest step over all minimal neighbours among data sets of so many people that agree on what is known.

    Neighbours: at least one person moved along a secret edge; no other agreeing data set makes only some of these
    secret moves (but at least one), or the same secret moves with only some of the other ones.
    """
    values: list[Any] = every_record(policy.domain) + ([ABSENT] if policy.presence == "secret" else [])
    secret = set(edges_of(policy))
    numbers = {value: np.array(known_numbers(policy, (value,))) for value in values}  # of a data set: their sums
    known = {world: tuple(sum(numbers[value] for value in world)) for world in product(values, repeat=people)}
    worlds: dict[tuple[int, ...], list[tuple[Any, ...]]] = {}
    for world, told in known.items():
        worlds.setdefault(told, []).append(world)
    adds = {record: answers_of(query, policy.domain, record) for record in values}
    changes = []
    for start in combinations_with_replacement(values, people):
        moves: dict[frozenset[Any], list[tuple[frozenset[Any], tuple[Any, ...]]]] = {}
        for world in worlds[known[start]]:
            changed = [(i, b) for i, (a, b) in enumerate(zip(start, world, strict=True)) if a != b]
            along = frozenset((i, b) for i, b in changed if (start[i], b) in secret)
            moves.setdefault(along, []).append((frozenset(changed) - along, world))
        for along, ways in moves.items():
            if not along or any(smaller < along for smaller in moves if smaller):
                continue
            for other, world in ways:
                if not any(smaller < other for smaller, _ in ways):
                    changes.append(sum(adds[b] - adds[a] for a, b in zip(start, world, strict=True)))
    return largest(changes)

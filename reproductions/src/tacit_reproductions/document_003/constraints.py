"""Neighbours under public knowledge, by definition: what the theorems of document 003 are checked against.

A data set is a tuple with the value of each person; what is known are counts of people with a value in some sets.
Everything is enumerated, so domains and groups of people are small.

Definition 4.1 as printed leaves no neighbours at all: its condition 3 is met by the data set itself, which differs in
no secret pair. Repaired, the smaller data set has to differ in at least one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, combinations_with_replacement, permutations, product
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Values: TypeAlias = tuple[int, ...]
Moves: TypeAlias = frozenset[tuple[int, int]]
PLUS: Final = -1
MINUS: Final = -2


@dataclass(frozen=True)
class SmallPolicy:
    """A policy on the values 0, 1, ..: which pairs are secret, and of which sets of values the counts are known."""

    values: int
    edges: frozenset[frozenset[int]]
    known: tuple[frozenset[int], ...] = ()

    def is_edge(self, one: int, other: int) -> bool:
        """Say whether two values are a secret pair."""
        return frozenset((one, other)) in self.edges

    def lifted_and_lowered(self, old: int, new: int) -> tuple[list[int], list[int]]:
        """Return which known counts rise and which fall when somebody moves (Definition 8.1)."""
        lifted = [at for at, members in enumerate(self.known) if old not in members and new in members]
        lowered = [at for at, members in enumerate(self.known) if old in members and new not in members]
        return lifted, lowered

    def is_sparse(self) -> bool:
        """Say whether every secret move lifts at most one known count and lowers at most one (Definition 8.2)."""
        moved = (self.lifted_and_lowered(*pair) for edge in self.edges for pair in permutations(edge))
        return all(len(lifted) <= 1 and len(lowered) <= 1 for lifted, lowered in moved)

    def on_all_pairs(self) -> SmallPolicy:
        """Return the same knowledge with everything secret: the graph that the repaired Theorem 8.2 needs."""
        return SmallPolicy(self.values, complete(self.values), self.known)


def complete(values: int) -> frozenset[frozenset[int]]:
    """Return all pairs: everything is secret."""
    return frozenset(map(frozenset, combinations(range(values), 2)))


def line(values: int, theta: int) -> frozenset[frozenset[int]]:
    """Return the pairs at a distance of at most theta."""
    return frozenset(frozenset((a, b)) for a, b in combinations(range(values), 2) if b - a <= theta)


def attribute_graph(sizes: Sequence[int]) -> tuple[list[Values], frozenset[frozenset[int]]]:
    """Return the cells of a table, and the pairs of them that differ in one attribute."""
    cells = list(product(*map(range, sizes)))
    near = (
        frozenset((a, b))
        for a, b in combinations(range(len(cells)), 2)
        if sum(x != y for x, y in zip(cells[a], cells[b], strict=True)) == 1
    )
    return cells, frozenset(near)


def marginal(cells: Sequence[Values], *attributes: int) -> tuple[frozenset[int], ...]:
    """Return the sets of cells that agree in some attributes: what a known marginal counts."""
    by: dict[Values, set[int]] = {}
    for at, cell in enumerate(cells):
        by.setdefault(tuple(cell[attribute] for attribute in attributes), set()).add(at)
    return tuple(map(frozenset, by.values()))


@dataclass(frozen=True)
class Neighbour:
    """A neighbouring data set: who moved along a secret pair, and who moved otherwise."""

    values: Values
    secret: Moves
    other: Moves


class World:
    """All data sets of some people under a policy."""

    def __init__(self, policy: SmallPolicy, people: int) -> None:
        self.policy, self.people = policy, people
        self._all = np.array(list(product(range(policy.values), repeat=people)), dtype=np.int64)
        counted = np.array([[value in members for members in policy.known] for value in range(policy.values)])
        self._counts = counted.astype(np.int64).reshape(policy.values, -1)[self._all].sum(axis=1)

    def neighbours(self, start: Values, *, literal: bool = False) -> Iterator[Neighbour]:
        """Yield the neighbours of a data set (Definition 4.1, repaired; or by the letter, which leaves none)."""
        allowed = self._all[(self._counts == self._counts[self._number(start)]).all(axis=1)]
        moved = {tuple(map(int, row)): self._moves(start, row) for row in allowed}
        secret = {one for one, _ in moved.values()}
        both = set(moved.values())
        for values, (edges, others) in moved.items():
            if not edges or any(less in secret for less in _smaller(edges, 0 if literal else 1)):
                continue
            if any((edges, less) in both for less in _smaller(others, 0)):
                continue
            yield Neighbour(values, edges, others)

    def sensitivity(self, change: Callable[[Values, Values], int] | None = None) -> int:
        """Return the largest change between neighbours, of the histogram unless another is given."""
        measure = change or (lambda old, new: histogram_change(old, new, self.policy.values))
        starts = combinations_with_replacement(range(self.policy.values), self.people)
        changes = (measure(start, near.values) for start in starts for near in self.neighbours(start))
        return max(changes, default=0)

    def _number(self, start: Values) -> int:
        return int(np.ravel_multi_index(start, (self.policy.values,) * self.people))

    def _moves(self, start: Values, row: npt.NDArray[np.int64]) -> tuple[Moves, Moves]:
        moves = [(who, int(new)) for who, (old, new) in enumerate(zip(start, row, strict=True)) if old != new]
        edges = frozenset(move for move in moves if self.policy.is_edge(start[move[0]], move[1]))
        return edges, frozenset(moves) - edges


def histogram_change(old: Values, new: Values, values: int) -> int:
    """Return by how much the counts of all values change in sum."""
    before, after = (np.bincount(np.array(one), minlength=values) for one in (old, new))
    return int(np.abs(before - after).sum())


def policy_graph(policy: SmallPolicy) -> dict[int, set[int]]:
    """Return the policy graph (Definition 8.3): from a count that a move lowers to the one that it lifts."""
    graph: dict[int, set[int]] = {at: set() for at in (*range(len(policy.known)), PLUS, MINUS)}
    graph[PLUS].add(MINUS)
    for pair in chain.from_iterable(permutations(edge) for edge in policy.edges):
        lifted, lowered = policy.lifted_and_lowered(*pair)
        if lifted or lowered:
            graph[lowered[0] if lowered else PLUS].add(lifted[0] if lifted else MINUS)
    return graph


def longest_cycle(graph: dict[int, set[int]]) -> int:
    """Return the number of edges of the longest simple cycle, alpha in the paper."""
    return max((len(path) for at in graph for path in _paths(graph, [at]) if at in graph[path[-1]]), default=0)


def longest_path(graph: dict[int, set[int]]) -> int:
    """Return the number of edges of the longest simple path from v+ to v-, xi in the paper."""
    return max((len(path) - 1 for path in _paths(graph, [PLUS]) if path[-1] == MINUS), default=0)


def theorem_8_2(policy: SmallPolicy) -> int:
    """Return the sensitivity that Theorem 8.2 states: twice the longer of both."""
    graph = policy_graph(policy)
    return 2 * max(longest_cycle(graph), longest_path(graph))


def _paths(graph: dict[int, set[int]], path: list[int]) -> Iterator[list[int]]:
    yield path
    for at in graph[path[-1]]:
        if at not in path:
            yield from _paths(graph, [*path, at])


def _smaller(moves: Moves, least: int) -> Iterable[Moves]:
    """Yield the proper subsets with at least so many members."""
    return (frozenset(some) for many in range(least, len(moves)) for some in combinations(moves, many))

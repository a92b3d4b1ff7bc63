"""How many people move together where counts are known.

Guarantee   What is known is a few *tables*: ways to put every possible person into one of several cells, so that the
            number of people in each is known. Then at most so many people differ between data sets that are compared:
            * `most_in_a_set`, adversary `independent`: minimal sets of moves, one of them along a secret edge, that
              keep what is known. `some_in_a_set` is a size that such a set surely can have: no bound is below it.
            * `together`, adversaries `alike` and `group`: data sets that agree on what is known, where one person moves
              along an edge that changes these tables and the others move anywhere. If for all of these Pr[M(D)] <=
              exp(epsilon) Pr[M(D')], then M changes the odds between the two ends of the edge by at most exp(epsilon),
              for every adversary of that kind.
Assumes     With presence secret, being absent is one more cell, and how many people there might be is fixed.
Why         `docs/decisions/0036-known-tables.md` has the proofs. In short:
            independent  One table of m cells: simple cycles, at most m moves. Two tables, one of 2 cells: the moves are
              simple cycles through the m cells of the other, whose sums over the second table are in [-m, m] and have
              no part that sums to zero; so at most m of one sign and m - 1 of the other (Lambert), or two cycles. Small
              sizes: complete search. In general, m and k cells: a family of moves that doubles has 2^(n+2) - 2 of them.
            alike  Given what is known, the others' cells at the hidden and at the cover record are two tables of
              counts. Given their sum, law and people drop out: they are a uniform colouring, in two colours, of the
              edges of a bipartite graph between cells. Edges of different colours are paired at random in each cell;
              exchanging colours on the loop-erased trails between unpaired edges turns one into the other, and is a
              symmetric kernel. The people on these simple paths move.
            group  The others are known, so that at most the group moves. Fewer than 1 + J people, where an edge changes
              J tables, cannot always restore them; 1 + J can, where the tables are decomposable: the missing parts of
              the cover record are put together from one person for each table.
Reference   Blowfish privacy, section 8; Theorem 8.5 claims 2 max size(C_i) for several marginals, which is too small.
Checked by  tests/property/test_known_tables.py, tests/property/test_coupling.py
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tacit.policy.adversary import ALIKE
from tacit.policy.edges.shapes import axes_of, cells, holds
from tacit.policy.knowledge import Known
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.where import Test

MOST_CELLS: Final = 100_000  # combinations of what predicates tell apart
# the largest minimal sets of moves of small tables, by complete search
_LARGEST: Final = {(2, 2): 4, (2, 3): 8, (2, 4): 12, (3, 3): 15, (2, 2, 2): 10}


@dataclass(frozen=True)
class KnownTable:
    """Facts that together say how many people there are in each of some cells, absence among them."""

    facts: tuple[Known, ...]
    cells: int

    @property
    def about(self) -> frozenset[str]:
        """The attributes that decide in which cell somebody is."""
        return frozenset[str]().union(*(fact.about for fact in self.facts))

    @property
    def words(self) -> str:
        """The facts in words."""
        return ", ".join(fact.words() for fact in self.facts)


def essential(policy: Policy) -> list[Known]:
    """Drop facts that follow from a larger known marginal, and the size where presence is public."""
    facts = [fact for fact in dict.fromkeys(policy.known) if policy.absences or not fact.is_size]
    marginals = [fact for fact in facts if fact.histogram]

    def follows(fact: Known) -> bool:
        others = [one for one in marginals if fact.about <= one.about and one != fact]
        if not fact.histogram:
            return bool(others)
        # of marginals of the same attributes, the first is kept
        return any(fact.about < one.about or marginals.index(one) < marginals.index(fact) for one in others)

    return [fact for fact in facts if not follows(fact)]


def known_tables(policy: Policy) -> list[KnownTable]:
    """Return what is known as few tables: each marginal is one, and so are counts that are no more than one.

    Counts are compatible if of the four ways to be in both, one or neither only three occur (disjoint or nested
    predicates, for instance). Counts that are compatible in pairs tell how many people there are in each cell that they
    tell apart: such splits are the edges of a tree, whose nodes are the cells.
    """
    facts = essential(policy)
    found = [
        KnownTable((fact,), size_of(policy, fact.about) + bool(policy.absences)) for fact in facts if fact.histogram
    ]
    counts = [fact for fact in facts if not fact.histogram]
    if not counts:
        return found
    seen = _signatures(policy, counts)
    if seen is None:
        return found + [KnownTable((fact,), 2) for fact in counts]
    crosses = [[len({(one[a], one[b]) for one in seen}) == 4 for b in range(len(counts))] for a in range(len(counts))]
    for members in _classes(crosses):
        cells_told = {tuple(one[at] for at in members) for one in seen}
        found.append(KnownTable(tuple(counts[at] for at in members), len(cells_told)))
    return [table for table in found if table.cells > 1]


def size_of(policy: Policy, names: Iterable[str]) -> int:
    """Return how many cells the marginal of these attributes has."""
    return math.prod(axis.size for name in names for axis in policy.domain.axes_of(name))


def _signatures(policy: Policy, counts: Sequence[Known]) -> set[tuple[bool, ...]] | None:
    """Return which of these counts somebody may be in; absent, in none. None where there are too many cells to tell."""
    tests: list[Test | None] = [fact.tests(policy.domain)[0] if fact.picked is not None else None for fact in counts]
    split = axes_of(tests)
    if math.prod(len(parts) for _, parts in split.values()) > MOST_CELLS:
        return None
    seen = {tuple(holds(test, cell) for test in tests) for cell in cells(split)}
    return seen | ({(False,) * len(counts)} if policy.absences else set())


def _classes(crosses: Sequence[Sequence[bool]]) -> list[list[int]]:
    """Return compatible classes: two if two are enough (neighbours first, each into the first class that it fits)."""
    classes: list[list[int]] = []
    waiting, placed = deque[int](), set[int]()
    for start in range(len(crosses)):
        waiting.append(start)
        while waiting:
            one = waiting.popleft()
            if one in placed:
                continue
            placed.add(one)
            fits = next((some for some in classes if not any(crosses[one][other] for other in some)), None)
            classes.append([one]) if fits is None else fits.append(one)
            waiting += [other for other in range(len(crosses)) if crosses[one][other]]
    return classes


def changed_tables(tables: Sequence[KnownTable], policy: Policy, hidden: Any, cover: Any) -> list[int]:
    """Return which tables change when one person moves between two records."""
    sides = [None if side is ABSENT else side for side in (hidden, cover)]

    def changes(fact: Known) -> bool:
        before, after = (fact.added_by(side, policy.domain) for side in sides)
        return bool(before != after)

    return [at for at, table in enumerate(tables) if any(map(changes, table.facts))]


def most_in_a_set(tables: Sequence[KnownTable]) -> int | None:
    """Return how many people may have to move in a minimal set that keeps what is known; None if no bound is small."""
    sizes = tuple(sorted(table.cells for table in tables))
    if len(sizes) == 2 and sizes[0] == 2:
        return _LARGEST.get(sizes, sizes[1] * (2 * sizes[1] - 1))
    return _LARGEST.get(sizes)


def some_in_a_set(policy: Policy, tables: Sequence[KnownTable], changed: Iterable[int]) -> int | None:
    """Return a size that some minimal set surely has, of two known marginals without an attribute in common.

    One secret edge between people who are there, which changes one of the tables, is enough; and as many people.
    """
    if len(tables) != 2 or not all(table.facts[0].histogram for table in tables) or tables[0].about & tables[1].about:
        return None
    sizes = [size_of(policy, table.about) for table in tables]  # in which people who are there may be
    small = min(sizes)
    return max((2 ** (small + (small < sizes[at])) - 2 for at in changed), default=None)


def together(policy: Policy, tables: Sequence[KnownTable], changed: Sequence[int]) -> int | None:
    """Return how many people move together along an edge that changes these tables; None where nothing is proved.

    The adversary is a named one: `alike` or `group`.
    """
    if not changed:
        return 1
    if policy.adversary.kind != ALIKE:
        people = policy.adversary.people or 0
        return people if people > len(changed) and decomposable(tables) else None
    if len(tables) != 2:
        return 2 if len(tables) == 1 else None
    m, k = _sizes_of_two(policy, tables)
    if len(changed) == 2:
        return max(1 + min(m - 1, k) + min(m, k - 1), 2 * min(m, k))
    return 1 + (min(m - 1, k) if changed[0] == 0 else min(m, k - 1))


def _sizes_of_two(policy: Policy, tables: Sequence[KnownTable]) -> tuple[int, int]:
    """Return how many cells of two tables a path may visit: of two marginals, those that agree on what they share."""
    one, other = tables
    if one.facts[0].histogram and other.facts[0].histogram:
        return size_of(policy, one.about - other.about), size_of(policy, other.about - one.about)
    return one.cells, other.cells


def decomposable(tables: Sequence[KnownTable]) -> bool:
    """Say whether marginals have a junction tree, and counts no attribute in common with any other table.

    >>> from tacit.policy.knowledge import marginal
    >>> for sets in (["ab", "bc"], ["ab", "bc", "ac"]):
    ...     print(decomposable([KnownTable((marginal(*names),), 4) for names in sets]))
    True
    False
    """
    for table in tables:
        if not table.facts[0].histogram and any(table.about & other.about for other in tables if other is not table):
            return False
    left = [set(table.about) for table in tables]
    while len(left) > 1:  # Graham's reduction
        left = [{name for name in one if sum(name in other for other in left) > 1} for one in left]
        ear = next((a for a, one in enumerate(left) for b, other in enumerate(left) if a != b and one <= other), None)
        if ear is None:
            return False
        del left[ear]
    return True

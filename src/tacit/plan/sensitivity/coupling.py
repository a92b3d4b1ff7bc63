"""Steps under public knowledge: when one record changes, others must have changed with it.

Guarantee   For every two data sets that agree on all that is known and are neighbours (at least one person moved
            along a secret edge, others moved along any values, and no smaller such set of moves agrees with what is
            known), the answers differ by at most the returned step. Where no bound can be proved the query is refused.
Assumes     Knowledge is a set of linear counts: size, marginals, counts of predicates. A person's *signature* is what
            they contribute to these counts.
Why         The moves of minimal neighbours cannot be split into two groups that each keep the known counts: one
            of them alone would be a smaller neighbour. So they are a primitive zero-sum set of signature changes.
            (1) No secret edge changes a signature: every minimal neighbour is a single edge, nothing is coupled.
            (2) The signatures are affinely independent: zero sum then means that for each signature as many people
            arrive as leave, so a primitive set is a simple cycle through signatures. Regroup its sum by signature: one
            record with signature s disappears and one with signature s appears. Hence at most the sum, over all
            signatures, of the largest step between two records of that signature.
            (3) Otherwise primitive sets are found by exhaustive search, or bounded by the sizes of few tables
            (`known_cells.py`); the longest one times the largest step between any two records is a bound. So is the
            number of people, where it is declared.
            (4) If the signatures have one affine dependency, with whole coefficients c without a common divisor: count
            for each signature how many people more arrive than leave. Zero sum means that these numbers are m times c.
            The moves have no cycle (it would be a smaller set), or are one, as in (2); so they are simple paths from
            signatures that lose people to such that gain some. For m > 1, 1/m of the paths between each two signatures
            is a flow that loses and gains c; so there is one in whole paths too (flows have whole solutions), and that
            is a smaller set. Hence m = 1 and there are P = |c|_1 / 2 paths. Regroup their sum by signature: each path
            passes a signature at most once, so that there at most P records are exchanged for others of that signature;
            what is left are P jumps between any two records. Hence at most P times the largest step between any two
            records, plus P times the sum over all signatures of the largest step between two records of that signature.
            Where the policy names an adversary (`policy/adversary.py`), neighbours are other pairs: both agree on what
            is known, one person moved along a secret edge, and so many others at most as `known_cells.py` says moved in
            any way. The sum of their steps is a bound; so are (1), and the number of people. With one table and people
            who are alike there are two who move, or one: such pairs are neighbours as above, with the same bounds.
Reference   Blowfish privacy, section 8, whose Corollary 8.3 and Theorems 8.2, 8.5 and 8.6 understate the step; one
            marginal of K cells gives 2K for a full histogram (Theorem 8.4, right), p disjoint counts 2(p+1).
Checked by  tests/property/test_coupling.py, tests/golden/test_published_steps.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial, reduce
from typing import Final

import numpy as np

from tacit.errors import PlanError
from tacit.plan.sensitivity.known_cells import (
    KnownTable,
    decomposable,
    essential,
    known_tables,
    most_in_a_set,
    size_of,
    some_in_a_set,
    together,
)
from tacit.plan.sensitivity.responses import CellTables, Jump, Watched
from tacit.plan.sensitivity.steps import (
    LargestStep,
    Restriction,
    free_step,
    gather,
    in_data,
    outermost,
    presence_jumps,
    shape_jumps,
    touched_facts,
)
from tacit.policy.describe import edge_that_changes
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import Same
from tacit.policy.edges.shapes import Absence, EdgeShape, axes_of, cells, holds
from tacit.policy.knowledge import Known
from tacit.policy.policy import Policy
from tacit.policy.secrets import Everything
from tacit.policy.where import Test

MOST_SIGNATURES: Final = 4096
MOST_CHANGES: Final = 16  # distinct signature changes that the exhaustive search may juggle
MOST_SEARCH: Final = 200_000
MOST_DEPENDENT: Final = 128  # signatures whose dependencies are found exactly

Signature = tuple[int, ...]


def coupled_step(query: Watched, policy: Policy) -> LargestStep:
    """Return a proven bound on the largest step under the policy's knowledge, or refuse with the reason."""
    touched = list(touched_facts(policy))
    if not touched:
        step = free_step(query, policy)
        note = "no secret edge changes anything that is known, so what is known couples nobody"
        return replace(step, why=(*step.why, note))
    anything = free_step(query, Policy(policy.domain, Everything(), (), "secret" if policy.absences else "public"))
    for fact in policy.known:
        if _is_fixed_by(query, policy, fact, anything):
            why = (f"publicly known: {fact.words()}", "what is known fixes the answers -> never moves")
            return LargestStep(0, 0, 0, 0, (), why, exact=True)
    tables = known_tables(policy)
    people, bounds = policy.known_people, []
    if policy.adversary.is_named:
        bounds += _by_adversary(query, policy, tables, anything)
    else:
        bounds += _by_minimal_sets(query, policy, tables, anything)
    if people is not None:
        # nobody can move who is not there
        bounds.append((anything.times(max(people, 1)), f"at most {people} people can move"))
    if not bounds:
        raise _no_bound(query, policy, touched, tables)
    step, reason = min(bounds, key=lambda bound: bound[0].l1)
    words = ", ".join(fact.words() for fact in touched)
    why = (f"publicly known: {words}", f"{reason} -> moves by at most {in_data(step.l1, query, policy.domain)} in all")
    return replace(step, why=why, exact=False, unmoved_reasons=())


def _by_minimal_sets(
    query: Watched, policy: Policy, tables: list[KnownTable], anything: LargestStep
) -> list[tuple[LargestStep, str]]:
    """Return the bounds on minimal sets of moves that keep what is known."""
    facts = essential(policy)
    if len(facts) == 1 and facts[0].histogram:
        return [_one_marginal(query, policy, facts[0])]
    most = most_in_a_set(tables)
    bounds = [] if most is None else [(anything.times(most), _moves_together(most))]
    return bounds + _by_signatures(query, policy, facts, anything)


def _moves_together(people: int) -> str:
    return f"up to {people:,} people must move together to keep what is known"


def _by_adversary(
    query: Watched, policy: Policy, tables: list[KnownTable], anything: LargestStep
) -> list[tuple[LargestStep, str]]:
    """Return the bound on one person along a secret edge, and as many others as its tables let move with them."""
    found, most = [], 1
    for jumps, changed in _edges(query, policy, tables):
        people = together(policy, tables, changed)
        if people is None:
            return []
        found.append(_summed([(1, gather(jumps)), (people - 1, anything)]))
        most = max(most, people)
    bounds = [(_largest(found), f"up to {most:,} people move together ({policy.adversary.kind})")]
    if len(tables) == 1 and policy.adversary.people is None:
        bounds += _by_minimal_sets(query, policy, tables, anything)
    return bounds


def _edges(query: Watched, policy: Policy, tables: list[KnownTable]) -> Iterator[tuple[list[Jump], list[int]]]:
    """Go through the kinds of secret edges: what they do to the answers, and which tables they may change."""
    domain = policy.domain
    counted = [
        [CellTables((fact.histogram,), fact.picked) for fact in table.facts if not fact.is_size] for table in tables
    ]
    for shape in policy.shapes:
        changed = [
            at
            for at, counts in enumerate(counted)
            if any(jump.rise or jump.fall for one in counts for jump in shape_jumps(one, domain, shape))
        ]
        yield list(shape_jumps(query, domain, shape)), changed
    for absence in policy.absences:
        yield list(presence_jumps(query, domain, absence)), list(range(len(tables)))


def _largest(steps: list[LargestStep]) -> LargestStep:
    """Return a step that is at least each of these."""
    return LargestStep(
        max(step.up for step in steps),
        max(step.down for step in steps),
        max(step.l1 for step in steps),
        max(step.square for step in steps),
        outermost(profile for step in steps for profile in step.profiles),
        exact=False,
    )


def _no_bound(query: Watched, policy: Policy, touched: list[Known], tables: list[KnownTable]) -> PlanError:
    """Return the refusal of facts that no bound is known for, with an edge that changes the first of them."""
    edges = ((fact, edge_that_changes(fact, policy)) for fact in touched)
    shown = next((f"; the secret edge {edge} changes {fact.words()}" for fact, edge in edges if edge), "")
    why = f"{'what is known overlaps' if len(touched) > 1 else 'too much is known at once'}{shown}"
    ways = "Declare the number of people, tc.known.size(n), or fewer facts, or choose secrets that leave them alone"
    if policy.adversary.is_named:
        changed = max((len(changed) for _, changed in _edges(query, policy, tables)), default=0)
        if policy.adversary.people is None:
            why += f"; for people who are alike two tables at most, and these are {len(tables)}"
        elif decomposable(tables):
            why += f"; a group needs at least {1 + changed} people, or nobody in it can make up for an edge"
            ways = f"Write adversary: {{group: {1 + changed}}}, or declare the number of people, tc.known.size(n)"
        else:
            why += "; for a group the tables must be marginals that form a tree, or have no attribute in common"
    else:
        at_least = some_in_a_set(policy, tables, {at for _, changed in _edges(query, policy, tables) for at in changed})
        if at_least is not None:
            why += f", and there are sets of {at_least:,} people, or larger ones, who must move together to keep both"
        ways += ", or name a weaker adversary, such as `adversary: alike` (docs/knowledge.md)"
    return PlanError(
        f"has no proven bound under this knowledge: {why}",
        key=str(query),
        given=[fact.words() for fact in touched],
        fix=f"{ways}.",
    )


def _is_fixed_by(query: Watched, policy: Policy, fact: Known, anything: LargestStep) -> bool:
    """Say whether records that contribute the same to one fact contribute the same to the answers.

    Whatever else is known, as many people leave each signature of that fact as arrive, so the answers stay.
    """
    if fact.histogram:
        return _one_marginal(query, policy, fact)[0].l1 == 0
    return any(step.l1 == 0 for step, _ in _by_signatures(query, policy, [fact], anything))


def _one_marginal(query: Watched, policy: Policy, fact: Known) -> tuple[LargestStep, str]:
    """Bound by regrouping: the sum over the marginal's cells of the largest step between records of that cell.

    Cells that the query's predicate does not tell apart have the same step, so one of each class is enough.
    """
    domain = policy.domain
    axes = {axis.name: axis for name in fact.histogram for axis in domain.axes_of(name)}
    shape = EdgeShape({name: Same() for name in axes}, any_elsewhere=True)
    tests = [one.compile(domain) for one in (query.where, *query.listed) if one is not None]
    split = {name: found for name, found in axes_of(tests).items() if name in axes}
    parts = []
    for cell in cells(split):
        only = Restriction(partial(_in_cell, cell), cell=cell)
        many = math.prod(axis.size for name, axis in axes.items() if name not in cell) * math.prod(
            positions.count for positions in cell.values()
        )
        parts.append((many, gather(shape_jumps(query, domain, shape, only))))
    cells_known = math.prod(axis.size for axis in axes.values())
    return _summed(parts), f"up to {cells_known} people move in a cycle through the {cells_known} known cells"


def _in_cell(cell: dict[str, Intervals], here: dict[str, Intervals]) -> bool:
    return all(here[name] == positions for name, positions in cell.items())


def _has_signature(
    signature: Callable[[dict[str, Intervals]], Signature], chosen: Signature, here: dict[str, Intervals]
) -> bool:
    return signature(here) == chosen


def _by_signatures(
    query: Watched, policy: Policy, facts: list[Known], anything: LargestStep
) -> list[tuple[LargestStep, str]]:
    tests = _signature_tests(policy, facts)
    if tests is None or _has_no_bound(policy, facts):
        return []
    counts_presence = any(fact.is_size for fact in facts)
    split = axes_of(tests)

    def signature(cell: dict[str, Intervals]) -> Signature:
        return tuple(int(holds(test, cell)) for test in tests) + ((1,) if counts_presence else ())

    found = {signature(cell) for cell in cells(split)} if split else {signature({})}
    absent: Signature = (0,) * (len(tests) + counts_presence)
    if policy.absences:
        found.add(absent)
    if len(found) > MOST_SIGNATURES:
        return []
    signatures = sorted(found)

    def within_signatures() -> list[tuple[int, LargestStep]]:
        parts = []
        for chosen in signatures:
            only = Restriction(partial(_has_signature, signature, chosen), tests)
            jumps = list(shape_jumps(query, policy.domain, EdgeShape(any_elsewhere=True), only))
            if policy.absences and chosen == absent:
                jumps += list(presence_jumps(query, policy.domain, Absence(), only))
            parts.append((1, gather(jumps)))
        return parts

    if _affinely_independent(signatures):
        reason = f"up to {len(signatures)} people move in a cycle through what is known of them"
        return [(_summed(within_signatures()), reason)]
    bounds = []
    # there are no fewer changes than signatures but one
    longest = longest_primitive(_changes(signatures)) if len(signatures) <= MOST_CHANGES + 1 else None
    if longest is not None:
        bounds.append((anything.times(longest), _moves_together(longest)))
    paths = _paths(signatures)
    if paths is not None:
        parts = [(paths, anything), *((paths * many, step) for many, step in within_signatures())]
        bounds.append((_summed(parts), f"people move on {paths} paths between what is known of them"))
    return bounds


def _has_no_bound(policy: Policy, facts: list[Known]) -> bool:
    """Say at once that marginals have too many signatures for any of these bounds, before going through them."""
    if not all(fact.histogram for fact in facts):
        return False
    signatures = size_of(policy, frozenset[str]().union(*(fact.about for fact in facts)))
    dimensions = sum(size_of(policy, fact.about) - 1 for fact in facts)
    return signatures > max(dimensions + 2, MOST_CHANGES + 1)


def _signature_tests(policy: Policy, facts: list[Known]) -> list[Test] | None:
    """Return the predicates whose counts are known; a marginal is one for each of its cells."""
    tests: list[Test] = []
    for fact in facts:
        if fact.picked is not None:
            tests.append(fact.picked.compile(policy.domain))
        elif fact.histogram:
            axes = [axis for name in fact.histogram for axis in policy.domain.axes_of(name)]
            if math.prod(axis.size for axis in axes) > MOST_SIGNATURES // 8:
                return None
            for cell in np.ndindex(*(axis.size for axis in axes)):
                atoms = [Test.atom(axis, Intervals.points([place])) for axis, place in zip(axes, cell, strict=True)]
                tests.append(reduce(lambda one, other: one.joined(other, "and"), atoms))
    return tests


def _affinely_independent(signatures: list[Signature]) -> bool:
    if len(signatures) == 1:
        return True
    vectors = np.array(signatures, dtype=np.float64)
    # entries are 0 and 1 and there are at most a few thousand: the rank is safe in floating point
    return int(np.linalg.matrix_rank(vectors[1:] - vectors[0])) == len(signatures) - 1


def _paths(signatures: list[Signature]) -> int | None:
    """Return how many paths a change of the one affine dependency of the signatures takes; None if it is not one.

    >>> _paths([(1, 0, 0), (1, 1, 0), (0, 1, 1), (0, 0, 1)])  # four cells, sums of two neighbours known
    2
    """
    if len(signatures) > MOST_DEPENDENT:
        return None
    # rows of one affine equation for each number that is known, brought into echelon form, exactly
    rows = [[Fraction(1)] * len(signatures), *([Fraction(x) for x in each] for each in zip(*signatures, strict=True))]
    pivots: list[int] = []
    for column in range(len(signatures)):
        place = next((at for at in range(len(pivots), len(rows)) if rows[at][column]), None)
        if place is None:
            continue
        top = len(pivots)
        rows[top], rows[place] = rows[place], [*rows[top]]
        rows[top] = [x / rows[top][column] for x in rows[top]]
        rows = [
            row if at == top or not row[column] else [x - row[column] * y for x, y in zip(row, rows[top], strict=True)]
            for at, row in enumerate(rows)
        ]
        pivots.append(column)
    free = [column for column in range(len(signatures)) if column not in pivots]
    if len(free) != 1:
        return None
    solution = [Fraction(0)] * len(signatures)
    solution[free[0]] = Fraction(1)
    for at, column in enumerate(pivots):
        solution[column] = -rows[at][free[0]]
    whole = math.lcm(*(x.denominator for x in solution))
    numbers = [int(x * whole) for x in solution]
    return sum(abs(x) for x in numbers) // math.gcd(*numbers) // 2


def _changes(signatures: list[Signature]) -> list[Signature]:
    found = {tuple(int(b - a) for a, b in zip(x, y, strict=True)) for x in signatures for y in signatures}
    return sorted(change for change in found if any(change))


def longest_primitive(changes: list[Signature]) -> int | None:
    """Return the size of the largest zero-sum multiset of changes without a smaller one inside, or None if too hard.

    Complete search for the minimal solutions of `sum_v m_v v = 0` in whole numbers (Contejean and Devie): extend only
    in directions that lead back towards zero, never beyond a solution that was found.

    >>> longest_primitive([(1,), (-1,)])
    2
    """
    if not changes:
        return 1
    if len(changes) > MOST_CHANGES:
        return None
    vectors = np.array(changes, dtype=np.int64)
    solutions: list[tuple[int, ...]] = []
    frontier = {tuple(int(i == j) for j in range(len(changes))) for i in range(len(changes))}
    looked = 0
    while frontier:
        following: set[tuple[int, ...]] = set()
        solved = []
        for multiset in frontier:
            looked += 1
            if looked > MOST_SEARCH:
                return None
            total = np.array(multiset) @ vectors
            if not total.any():
                solved.append(multiset)
                continue
            for place in np.flatnonzero(vectors @ total < 0):
                following.add(tuple(m + int(i == place) for i, m in enumerate(multiset)))
        solutions += solved
        frontier = {
            candidate
            for candidate in following
            if not any(all(s <= c for s, c in zip(solution, candidate, strict=True)) for solution in solutions)
        }
    return max((sum(solution) for solution in solutions), default=1)


def _summed(parts: list[tuple[int, LargestStep]]) -> LargestStep:
    """Return the step of one record of each kind changing for another of its kind, `many` kinds of each sort."""
    up = sum(many * step.up for many, step in parts)
    down = sum(many * step.down for many, step in parts)
    l1 = sum(many * step.l1 for many, step in parts)
    fall = sum(many * step.largest_fall for many, step in parts)
    rise = sum(many * step.largest_rise for many, step in parts)
    # lengths of vectors add up at worst, |a + b|_2 <= |a|_2 + |b|_2; steps of one length add up to a whole square
    by_square: dict[int, int] = {}
    for many, step in parts:
        by_square[step.square] = by_square.get(step.square, 0) + (many if step.square else 0)
    lengths = [(many, square) for square, many in by_square.items() if many]
    if len(lengths) <= 1:
        square = sum(many * many * square for many, square in lengths)
    else:
        square = math.ceil(sum(many * math.sqrt(square) for many, square in lengths) ** 2 * (1 + 1e-12))
    square = min(l1 * l1, square)
    bound = gather(
        [
            Jump(l1 - min(fall, l1), min(fall, l1), up, down, square),
            Jump(min(rise, l1), l1 - min(rise, l1), up, down, square),
        ]
    )
    return LargestStep(min(up, rise), min(down, fall), l1, square, bound.profiles, exact=False)

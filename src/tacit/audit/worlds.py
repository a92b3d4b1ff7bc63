"""Worlds for an audit: records, secret edges and neighbouring data sets, straight from the definitions.

Slow and simple on purpose: nothing here uses the planner's largest steps, so that a wrong one shows. A domain that is
too large to go through is represented by the values at which predicates, blocks and distances begin and end. Two data
sets that somebody gives are refused with the reason unless one secret edge separates them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product
from math import isqrt, prod
from typing import Any, Final

import numpy as np

from tacit.arrays import Ints
from tacit.errors import PolicyError
from tacit.plan.measure.measured import Measured
from tacit.plan.questions import Count, Marginals
from tacit.plan.sensitivity.known_cells import KnownTable, changed_tables, known_tables, together
from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain, every_record, positions
from tacit.policy.edges.shapes import EdgeShape
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.where import Test

MOST_RECORDS: Final = 400  # all ordered pairs of them are tried
MOST_COUPLED: Final = 100  # the same where others have to move as well
MOST_NEIGHBOURS: Final = 300_000  # pairs of data sets, where knowledge couples people
MOST_ENDS: Final = 40
MOST_NUMBERS: Final = 30_000_000  # answers of all records together


@dataclass(frozen=True)
class Neighbours:
    """Two data sets, as tuples of records: the same people, of whom one (or several, coupled) moved."""

    hidden: tuple[Any, ...]
    cover: tuple[Any, ...]


def added(query: Measured, domain: Domain, record: Any) -> Ints:
    """Return what one person adds to the answers, straight from the meaning of the query."""
    picked = record is not ABSENT and (
        query.where is None or query.where.compile(domain).of_record(positions(domain, record))
    )
    if not picked:
        return np.zeros(query.size(domain), dtype=np.int64)
    return query.added_by(dict(zip(domain, record, strict=True)), domain)


def answers(query: Measured, domain: Domain, people: Iterable[Any]) -> Ints:
    """Return the answers on a data set of these people."""
    return sum((added(query, domain, record) for record in people), np.zeros(query.size(domain), dtype=np.int64))


def contributions(query: Measured, domain: Domain, records: Iterable[Any]) -> dict[Any, Ints]:
    """Return what each of these records adds to the answers; nobody adds nothing."""
    return {record: added(query, domain, record) for record in (*records, ABSENT)}


def change_along(pair: Neighbours, adds: dict[Any, Ints]) -> Ints:
    """Return how the answers change from hidden to cover."""
    moves = [adds[b] - adds[a] for a, b in zip(pair.hidden, pair.cover, strict=True)]
    return moves[0] if len(moves) == 1 else np.sum(moves, axis=0, dtype=np.int64)


def every_edge(policy: Policy, records: Sequence[Any] | None = None) -> list[tuple[Any, Any]]:
    """Return every secret edge between these records (all of the domain), in the order of the domain."""
    records = every_record(policy.domain) if records is None else records
    found = [(a, b) for a, b in product(records, repeat=2) if a != b and policy.secrets.has_edge(policy.domain, a, b)]
    if policy.absences:
        both = [*((record, ABSENT) for record in records), *((ABSENT, record) for record in records)]
        found += [edge for edge in both if policy.has_edge(*edge)]
    return found


def known_numbers(policy: Policy, people: Iterable[Any]) -> tuple[int, ...]:
    """Return what is public about a data set of these people."""
    people, numbers = tuple(people), list[int]()
    for fact in policy.known:
        counts = Marginals((fact.histogram,)) if fact.histogram else Count(fact.picked)
        numbers += answers(counts, policy.domain, people).tolist()
    return tuple(numbers)


def neighbours(policy: Policy, records: Sequence[Any] | None = None) -> list[Neighbours]:
    """Return neighbouring data sets, as small as they can be.

    One person along an edge where that leaves everything known as it was; otherwise one or two more people move to
    restore it, if the policy's adversary lets so many move. That is every such pair and triple, or some of them where
    there are too many.
    """
    values = every_record(policy.domain) if records is None else list(records)
    secret = every_edge(policy, values)
    if not policy.known:
        return [Neighbours((a,), (b,)) for a, b in secret]
    everybody = [*values, ABSENT] if policy.absences else values
    numbers = {record: known_numbers(policy, (record,)) for record in everybody}
    by_change: dict[tuple[int, ...], list[tuple[Any, Any]]] = {}
    for a, b in product(everybody, repeat=2):
        if a != b:
            by_change.setdefault(minus(numbers[b], numbers[a]), []).append((a, b))
    tables, found = known_tables(policy) if policy.adversary.is_named else [], list[Neighbours]()
    for left, (a, b) in zip(range(len(secret), 0, -1), secret, strict=True):
        room = max(1, (MOST_NEIGHBOURS - len(found)) // left)  # shared evenly by the edges that are left
        change = minus(numbers[b], numbers[a])
        if not any(change):
            found.append(Neighbours((a,), (b,)))
            continue
        back, most = minus((0,) * len(change), change), _most_together(policy, tables, a, b)
        found += [Neighbours((a, c), (b, d)) for c, d in _some(by_change.get(back, []), room)]
        if most < 3:
            continue
        each = isqrt(room // min(room, len(by_change)))
        for one, moves in islice(by_change.items(), room):
            rest = minus(back, one)
            if any(one) and one != back and any(rest) and rest in by_change:
                both = product(_some(moves, each), _some(by_change[rest], each))
                found += [Neighbours((a, c, e), (b, d, f)) for (c, d), (e, f) in both]
    return found


def _most_together(policy: Policy, tables: list[KnownTable], hidden: Any, cover: Any) -> int:
    """Return how many people may move where one moves along this edge, in data sets that are compared."""
    if not policy.adversary.is_named:
        return MOST_MOVED
    return together(policy, tables, changed_tables(tables, policy, hidden, cover)) or MOST_MOVED


def of_all_rows(pairs: list[Neighbours], policy: Policy, watched: Iterable[Measured]) -> list[Neighbours]:
    """Return the same pairs where all rows of a person move alike, if every row counts: nothing moves further."""
    if policy.per_person == 1 or not all(one.counts_rows for one in watched):
        return pairs
    return [Neighbours(pair.hidden * policy.per_person, pair.cover * policy.per_person) for pair in pairs]


def _some(moves: list[tuple[Any, Any]], most: int) -> list[tuple[Any, Any]]:
    """Return so many moves at most, spread evenly."""
    return moves[:: (len(moves) - 1) // most + 1]


def is_coupled(policy: Policy, records: Sequence[Any]) -> bool:
    """Say whether somebody who moves along an edge changes what is known, so that others have to move as well."""
    return bool(policy.known) and any(
        known_numbers(policy, (a,)) != known_numbers(policy, (b,)) for a, b in every_edge(policy, records)
    )


def minus(whole: tuple[int, ...], part: tuple[int, ...]) -> tuple[int, ...]:
    """Return the differences, number by number."""
    return tuple(x - y for x, y in zip(whole, part, strict=True))


def records_to_try(policy: Policy, query: Measured) -> tuple[list[Any], bool]:
    """Return records that between them should show the worst edges, and whether they are all that there are."""
    domain, at_once = policy.domain, MOST_COUPLED if policy.known else MOST_RECORDS
    most = max(2, min(at_once, MOST_NUMBERS // max(query.size(domain), 1)))
    if domain.size <= most:
        return every_record(domain), True
    found: dict[Any, None] = {}
    shapes = policy.shapes or (EdgeShape(),)
    for shape in shapes:
        tried = {name: list(dict.fromkeys(_values_to_try(name, policy, shape, query))) for name in domain}
        while prod(len(values) for values in tried.values()) > max(2, most // len(shapes)):
            longest = max(tried, key=lambda name: len(tried[name]))
            tried[longest].pop()
        found.update(dict.fromkeys(product(*tried.values())))
    return list(found), False


def _values_to_try(name: str, policy: Policy, shape: EdgeShape, query: Measured) -> Iterator[Any]:
    """Yield the values of an attribute at which something begins or ends along these edges, the most telling first."""
    domain, tests = policy.domain, _tests(policy, shape, query)
    attribute = domain[name]
    if attribute.is_set:
        mentioned = [axis.item for test in tests for axis, _ in test.atoms if axis.attribute == name]
        looked_at = mentioned or name in query.mentioned() or shape.moves(domain, name)
        places = [place for place in dict.fromkeys(mentioned) if place is not None]
        yield from list(attribute.telling_sets(places))[: None if looked_at else 1]
        return
    by_axis = []
    for axis in domain.axes_of(name):
        tested = any(found.name == axis.name for test in tests for found, _ in test.atoms)
        ends = list(dict.fromkeys(_positions_to_try(axis, shape, tests)))
        if name in query.mentioned() or tested:
            by_axis.append(ends)
        else:
            # the query does not see it: only as much as the edges need
            by_axis.append(ends[:1] if shape.any_elsewhere or not shape.relation(axis).can_move else ends[:2])
    # a grid has two axes, everything else one
    yield from (attribute.value(places[0]) if len(places) == 1 else tuple(places) for places in product(*by_axis))


def _tests(policy: Policy, shape: EdgeShape, query: Measured) -> list[Test]:
    asked = [one.compile(policy.domain) for one in (query.where, *query.listed) if one is not None]
    starts = [shape.only_from, *(absence.only_from for absence in policy.absences)]
    return [*asked, *(test for test in starts if test is not None)]


def _positions_to_try(axis: Axis, shape: EdgeShape, tests: list[Test]) -> Iterator[int]:
    last = axis.size - 1
    ends, reaches = shape.relation(axis).telling(axis.size)
    for test in tests:
        for tested, found in test.atoms:
            if tested.name == axis.name:
                ends += [at for low, high in found for at in (low, low - 1, high, high + 1)]
    ends = [place for place in dict.fromkeys([*ends, 0, last]) if 0 <= place <= last][:MOST_ENDS]
    for place in ends:
        yield place
        for reach in reaches:
            yield from (near for near in (place + reach, place - reach) if 0 <= near <= last)


MOST_MOVED: Final = 16  # people in whose moves a smaller set of moves is looked for


def check_neighbours(policy: Policy, hidden: Any, cover: Any) -> None:
    """Refuse two data sets that no secret edge separates, with the reason."""
    a, b = _people(policy, hidden, "hidden"), _people(policy, cover, "cover")
    if policy.absences and abs(len(a) - len(b)) <= policy.per_person:
        for _ in range(abs(len(a) - len(b))):
            _align(*sorted((a, b), key=len))
    if len(a) != len(b):
        raise PolicyError(
            f"must have as many people as `hidden`, {len(a):,}, since taking part is not secret in this policy"
            if not policy.absences
            else f"must differ from `hidden`, which has {len(a):,} people, in one person",
            key="cover",
            given=len(b),
            fix="Move one person along an edge.",
        )
    moved = [(x, y) for x, y in zip(a, b, strict=True) if x != y]
    if not moved:
        raise PolicyError("must differ from `hidden` in one person", key="cover", fix="Move one person along an edge.")
    if policy.known and known_numbers(policy, a) != known_numbers(policy, b):
        raise PolicyError(
            "must agree with `hidden` on everything that is known", key="cover", fix="Let others restore it."
        )
    if len(moved) > policy.per_person and not policy.known:
        rows = "one person" if policy.per_person == 1 else f"{policy.per_person} rows of one person"
        raise PolicyError(
            f"must differ from `hidden` in {rows}, not in {len(moved)}",
            key="cover",
            fix="Keep the others as they are; each further person costs epsilon once more.",
        )
    along = [policy.has_edge(x, y) for x, y in moved]
    if not (any(along) if policy.known else all(along)):
        x, y = moved[along.index(False)]
        back = policy.has_edge(y, x)
        raise PolicyError(
            f"must be reached along a secret edge: {_describe(policy, x)} -> {_describe(policy, y)} is none"
            + (", only the way back is" if back else ""),
            key="cover",
            fix="Swap the two." if back else "Look at `tacit check` for the edges.",
        )
    if policy.adversary.is_named:
        tables = known_tables(policy)
        most = max(_most_together(policy, tables, *move) for move, is_edge in zip(moved, along, strict=True) if is_edge)
        if len(moved) > most:
            rule = f"must differ from `hidden` in at most {most} people under {policy.adversary.document()!r}"
            fix = "Keep the others as they are; each further step costs epsilon once more."
            raise PolicyError(rule, key="cover", given=len(moved), fix=fix)
    elif policy.known:
        _check_smallest(policy, moved, along)


def _check_smallest(policy: Policy, moved: list[tuple[Any, Any]], along: list[bool]) -> None:
    """Refuse moves of which some alone, a secret one among them, agree with what is known: that is a nearer pair."""
    if len(moved) > MOST_MOVED:
        raise PolicyError(
            f"must not move more than {MOST_MOVED} people, or it cannot be checked that all of them are needed",
            key="cover",
            given=len(moved),
            fix="Move fewer people.",
        )
    changes = [minus(known_numbers(policy, (y,)), known_numbers(policy, (x,))) for x, y in moved]
    for many in range(1, len(moved)):
        for some in combinations(range(len(moved)), many):
            if any(along[at] for at in some) and not any(map(sum, zip(*(changes[at] for at in some), strict=True))):
                raise PolicyError(
                    f"must be a nearest neighbour of `hidden`: {many} of the {len(moved)} moves already agree with "
                    "everything that is known",
                    key="cover",
                    fix="Keep the others as they are; each further step costs epsilon once more.",
                )


def _people(policy: Policy, people: Any, key: str) -> list[Any]:
    is_table = hasattr(people, "columns") or hasattr(people, "column_names")
    if isinstance(people, str | Mapping) or not isinstance(people, Iterable) or is_table:
        fix = "For instance [{'age': 30}, {'age': 41}]" + (", which `to_dict('records')` makes." if is_table else ".")
        raise PolicyError("must be a list of records where a policy is given", key=key, fix=fix)
    return [ABSENT if record is ABSENT else policy.domain.record(record) for record in people]


def _align(shorter: list[Any], longer: list[Any]) -> None:
    """Put ABSENT where the person is missing."""
    pairs = enumerate(zip(shorter, longer, strict=False))
    at = next((i for i, (x, y) in pairs if x is not ABSENT and x != y), len(shorter))
    shorter.insert(at, ABSENT)


def _describe(policy: Policy, record: Any) -> str:
    if record is ABSENT:
        return "absent"
    return ", ".join(f"{name}={value}" for name, value in zip(policy.domain, record, strict=True))

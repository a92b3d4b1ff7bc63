"""The definitions, word for word and slowly: every record, every edge, every small data set."""

from functools import lru_cache
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np

from line_layouts import matrix
from tacit.plan.measure.sums import LineSums
from tacit.plan.question import Query, resolve
from tacit.plan.questions import Count, Cumulative, ListedCounts, Marginals, Ranges, Rectangles, Total
from tacit.plan.questions.moments import Squares
from tacit.plan.questions.two_sums import TwoSums
from tacit.plan.sensitivity.steps import LargestStep, largest_step
from tacit.policy.attributes import Items
from tacit.policy.domain import positions
from tacit.policy.knowledge import KnownCount, KnownMarginal, KnownSize
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.secrets import TakingPart


def every_value(attribute: Any) -> list[Any]:
    """Every value that one attribute can have, in order; of a set of items, every set that is small enough."""
    if isinstance(attribute, Items):
        names = [attribute.item(place) for place in range(attribute.count)]
        return [frozenset(some) for many in range(attribute.most_items + 1) for some in combinations(names, many)]
    return [attribute.value(place) for place in range(attribute.size)]


def every_record(domain: Any) -> list[Any]:
    return list(product(*(every_value(attribute) for attribute in domain.values())))


def edges_of(policy: Policy) -> list[tuple[Any, Any]]:
    """Every secret edge, by the definition of its family."""
    records = every_record(policy.domain)
    found = [(a, b) for a in records for b in records if a != b and policy.secrets.has_edge(policy.domain, a, b)]
    hides = [family for family in policy.secrets.families() if isinstance(family, TakingPart)]
    if policy.presence == "secret" or TakingPart() in hides:
        found += [(record, ABSENT) for record in records] + [(ABSENT, record) for record in records]
    for family in hides:
        if family.where is not None:
            picks = family.where.compile(policy.domain)
            found += [(record, ABSENT) for record in records if picks.of_record(positions(policy.domain, record))]
    return list(dict.fromkeys(found))


def known_numbers(policy: Policy, people: Any) -> tuple[int, ...]:
    """What is public about a data set of these people."""
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


def answers_of(query: Any, domain: Any, record: Any) -> np.ndarray:
    """What one person adds to the answers, straight from the meaning of the query; nothing of the package's own."""
    picks, tests = _meaning(query, domain)
    if record is ABSENT or (picks is not None and not picks.of_record(positions(domain, record))):
        return np.zeros(len(tests), dtype=np.int64)
    person = dict(zip(domain, record, strict=True))
    return np.array([test(person) for test in tests], dtype=np.int64)


@lru_cache(maxsize=256)
def _meaning(query: Any, domain: Any) -> tuple[Any, list[Any]]:
    """Whom a query is about, and for each answer what a person adds to it; the same for all records."""
    query = resolve(query, domain) if isinstance(query, Query) else query  # measured sums are no questions
    return None if query.where is None else query.where.compile(domain), _answers(query, domain)


def _answers(query: Any, domain: Any) -> list[Any]:
    """For each answer what a person adds to it."""

    def at_most(name: str, last: Any) -> Any:
        values = every_value(domain[name])
        return lambda person: values.index(person[name]) <= values.index(last)

    def between(name: str, low: Any, high: Any) -> Any:
        values = every_value(domain[name])
        return lambda person: values.index(low) <= values.index(person[name]) <= values.index(high)

    match query:
        case Count():
            return [lambda person: 1]
        case TwoSums():
            values = every_value(domain[query.name])
            return [
                lambda person, cell=cell, end=end: (
                    abs(values.index(person[query.name]) - end) * int(_of(person, query.by) == cell)
                )
                for cell in product(*(every_value(domain[name]) for name in query.by))
                for end in (0, len(values) - 1)
            ]
        case Squares():
            return [
                lambda person, cell=cell: (person[query.name] - query.origin) ** 2 * int(_of(person, query.by) == cell)
                for cell in product(*(every_value(domain[name]) for name in query.by))
            ]
        case Total():
            return [
                lambda person, cell=cell: (
                    (person[query.name] - query.origin)
                    * (1 if query.weight is None else person[query.weight])
                    * int(_of(person, query.by) == cell)
                )
                for cell in product(*(every_value(domain[name]) for name in query.by))
            ]
        case Cumulative():
            return [at_most(query.name, last) for last in every_value(domain[query.name])]
        case Ranges(ranges=None):
            values = every_value(domain[query.name])
            return [between(query.name, *ends) for ends in combinations_with_replacement(values, 2)]
        case Ranges():
            return [between(query.name, low, high) for low, high in query.ranges]
        case Rectangles(rectangles=None):
            cells = product(*(every_value(domain[name]) for name in query.names))
            return [lambda person, cell=cell: _of(person, query.names) == cell for cell in cells]
        case Rectangles(names=(name,)):
            return [
                lambda person, ends=ends: (
                    ends[0] <= person[name][0] <= ends[1] and ends[2] <= person[name][1] <= ends[3]
                )
                for ends in query.rectangles
            ]
        case Rectangles(names=(x, y)):
            sides = [(between(x, *ends[:2]), between(y, *ends[2:])) for ends in query.rectangles]
            return [lambda person, both=both: both[0](person) and both[1](person) for both in sides]
        case ListedCounts():
            tests = [one.compile(domain) for _, one in query.predicates]
            return [
                lambda person, test=test: int(test.of_record(positions(domain, tuple(person.values()))))
                for test in tests
            ]
        case Marginals():
            found: list[Any] = []
            for names in query.sets:
                attribute = domain[names[0]]
                if isinstance(attribute, Items):
                    items = [attribute.item(place) for place in range(attribute.count)]
                    found += [lambda person, item=item, name=names[0]: item in person[name] for item in items]
                else:
                    cells = product(*(every_value(domain[name]) for name in names))
                    found += [lambda person, cell=cell, names=names: _of(person, names) == cell for cell in cells]
            return found
        case LineSums():
            values = every_value(domain[query.names[0]])
            return [lambda person, sums=sums: sums[values.index(person[query.names[0]])] for sums in matrix(query)]
    raise TypeError(query)


def _of(person: dict[str, Any], names: Any) -> tuple[Any, ...]:
    return tuple(person[name] for name in names)


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
    secret = set(edges_of(policy))
    may_be_absent = any(ABSENT in edge for edge in secret)
    values: list[Any] = every_record(policy.domain) + ([ABSENT] if may_be_absent else [])
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


def assert_never_above(step: LargestStep, slow: dict[str, Any], most_rate: int = 3) -> None:
    """Check that nothing that was found by enumeration lies above a step, or outside the hull of its profiles."""
    for name in ("up", "down", "l1", "square"):
        assert getattr(step, name) >= slow[name], name
    for right, left in product(range(most_rate + 1), repeat=2):
        most = max((right * fall + left * rise for fall, rise in step.profiles), default=0)
        assert all(right * fall + left * rise <= most for fall, rise in slow["profiles"])


def assert_step_of_all_edges(query: Any, policy: Policy) -> None:
    """Check a step that says that it is exact against all edges."""
    slow, step = step_by_edges(query, policy), largest_step(query, policy)
    assert step.exact
    found = {"up": step.up, "down": step.down, "l1": step.l1, "square": step.square}
    assert found == {name: slow[name] for name in found}, str(query)
    assert_never_above(step, slow, 5)

"""Made-up data sets one secret step of one person apart, as rows that a session can open.

Nothing is read from anybody's rows: people, records and the steps that they take come from the policy. The person who
moves owns as many rows as count (and more, where it does not matter which of them count), or as many items; others
stand where a selection is about to change. A step is one that the policy's definition knows, whatever the planner says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd

from tacit.audit.worlds import (
    Ints,
    Neighbours,
    answers,
    change_along,
    contributions,
    every_edge,
    neighbours,
    records_to_try,
)
from tacit.errors import PlanError
from tacit.plan.any_plan import AnyPlan
from tacit.policy.attributes import Attribute
from tacit.policy.policy import ABSENT, Policy

Person = tuple[Any, ...]  # the records of the rows that somebody owns
MOST_EDGES: Final = 400
MOST_SUBSETS: Final = 200
MORE_ROWS: Final = 2  # than count
MOST_OTHERS: Final = 300  # who have the same value
MOST_CELLS: Final = 12  # in which others stand
MOST_PEOPLE: Final = 200_000


@dataclass(frozen=True)
class MadeUp:
    """Rows of two neighbouring data sets, and in words how the one became the other."""

    words: str
    hidden: pd.DataFrame
    cover: pd.DataFrame


def made_up(plan: AnyPlan) -> list[MadeUp]:
    """Return pairs of neighbouring data sets on which a release should show what it loses."""
    policy = plan.policy
    order, item = policy.order, policy.item
    taken = {column for name in policy.domain for column in policy.domain[name].read_from(name, item)}
    if policy.person in taken:
        raise PlanError(
            "must not be an attribute, or nobody can own several made-up rows",
            key="person",
            given=policy.person,
            fix="Name another column for the audit.",
        )
    found = []
    for words, hidden, cover in _moves(plan, ordered=order is not None and order not in taken):
        others = _others(plan, hidden, cover)
        frames = (_frame([*others, *world], policy, order, item, plan.naming) for world in (hidden, cover))
        found.append(MadeUp(words, *frames))
    return found


def _moves(plan: AnyPlan, *, ordered: bool) -> Iterator[tuple[str, list[Person], list[Person]]]:
    """Yield in words what happens, and the people to whom it happens at hidden and at cover."""
    policy, base = plan.policy, plan.base
    records, _ = records_to_try(policy, base)
    adds = contributions(base, policy.domain, records)
    has_items = any(attribute.is_set for attribute in policy.domain.values())

    def far(change: Ints) -> tuple[int, int]:
        return int(np.abs(change).sum()), int(np.abs(change).max(initial=0))

    pairs = neighbours(policy, records)
    if not pairs:
        nobody = [(records[0],)]
        yield "nothing is secret", nobody, nobody
        return
    best = max(pairs, key=lambda pair: far(change_along(pair, adds)))
    if policy.person is None or has_items or policy.known:
        yield _one_row_each(policy, best, has_items=has_items)
        if policy.absences and not policy.known and policy.has_edge(best.cover[0], best.hidden[0]):
            # the other way round, for noise that is large enough one way only
            yield _one_row_each(policy, Neighbours(best.cover, best.hidden), has_items=has_items)
        return
    # of somebody who is there; who comes or leaves does so with all rows
    edges = [(a, b) for a, b in every_edge(policy, records) if a is not ABSENT and b is not ABSENT]
    summed, many = not base.counts_people, policy.per_person + MORE_ROWS
    if edges:
        chosen = _farthest_rows(edges[:: (len(edges) - 1) // MOST_EDGES + 1], adds, many, far, summed=summed)
        # which rows of more than count are kept must not matter for whether this is one step
        if not ordered and not all(policy.has_edge(a, b) for a, _ in chosen for _, b in chosen):
            chosen = chosen[: policy.per_person]
        hidden, cover = tuple(a for a, _ in chosen), tuple(b for _, b in chosen)
        yield f"{len(chosen)} rows of one person, of which {policy.per_person} count", [hidden], [cover]
    leaving = [(record, ABSENT) for record in records if policy.has_edge(record, ABSENT)]
    if leaving:
        chosen = _farthest_rows(leaving[:: (len(leaving) - 1) // MOST_EDGES + 1], adds, many, far, summed=summed)
        gone = tuple(record for record, _ in chosen)
        yield f"a person of {len(gone)} rows leaves", [gone], [()]
        if all(policy.has_edge(ABSENT, record) for record in gone):
            yield f"a person of {len(gone)} rows joins", [()], [gone]


def _one_row_each(policy: Policy, pair: Neighbours, *, has_items: bool) -> tuple[str, list[Person], list[Person]]:
    hidden, cover = ([() if one is ABSENT else (one,) for one in side] for side in (pair.hidden, pair.cover))
    words = "one person" if len(hidden) == 1 else f"{len(hidden)} people, coupled by what is known,"
    if has_items and not policy.known and hidden[0] and cover[0]:
        fuller = _fuller(policy, hidden[0][0], cover[0][0])
        return f"{words} with {_items_of(fuller)} items", [(fuller,)], cover
    return words, hidden, cover


def _items_of(record: Any) -> int:
    return sum(len(value) for value in record if isinstance(value, frozenset))


def _fuller(policy: Policy, hidden: Any, cover: Any) -> Any:
    """Return a person with more items than count, if every choice of those that count may look like `cover`."""
    record = list(hidden)
    for at, attribute in enumerate(policy.domain.values()):
        if not attribute.is_set or attribute.most == attribute.cells or policy.person is None:
            continue
        rest = [attribute.cell(place) for place in range(min(attribute.cells, 50))]
        more = [one for one in rest if one not in record[at]][:MORE_ROWS]
        larger = frozenset([*record[at], *more])
        subsets = [
            (*record[:at], frozenset(some), *record[at + 1 :])
            for some in (
                combinations(larger, attribute.most) if math.comb(len(larger), attribute.most) <= MOST_SUBSETS else ()
            )
        ]
        if subsets and all(policy.secrets.has_edge(policy.domain, one, cover) for one in subsets):
            record[at] = larger
    return tuple(record)


def _counted(policy: Policy, record: Any) -> Any:
    """Return a record with no more items than count."""
    return tuple(
        frozenset(sorted(value, key=str)[: attribute.most]) if attribute.is_set else value
        for attribute, value in zip(policy.domain.values(), record, strict=True)
    )


def _farthest_rows(
    edges: Sequence[tuple[Any, Any]],
    adds: dict[Any, Ints],
    many: int,
    far: Callable[[Ints], tuple[int, int]],
    *,
    summed: bool,
) -> list[tuple[Any, Any]]:
    """Return the steps of so many rows that together change the answers most, one row after the other."""
    join = np.add if summed else np.maximum  # a person counts once in each cell, and every row in a total
    nothing = adds[ABSENT]
    before, after, chosen = nothing, nothing, list[tuple[Any, Any]]()
    for _ in range(many):
        best = max(edges, key=lambda edge: far(join(after, adds[edge[1]]) - join(before, adds[edge[0]])))
        before, after = join(before, adds[best[0]]), join(after, adds[best[1]])
        chosen.append(best)
    return chosen


def _others(plan: AnyPlan, hidden: list[Person], cover: list[Person]) -> list[Person]:
    """Return people who stay where they are: around what a selection decides, and as many as are known to be there."""
    policy = plan.policy
    records, _ = records_to_try(policy, plan.base)
    found: list[Person] = [(record,) for record in records[:3]]
    sides = [[_counted(policy, record) for person in side for record in person] for side in (hidden, cover)]
    totals = [answers(plan.base, policy.domain, side) for side in sides]
    moves = totals[0] != totals[1]
    telling = plan.telling_others(moves)
    if telling is not None:
        found = []
        adds = contributions(plan.base, policy.domain, records)
        counts = np.minimum(telling, MOST_OTHERS)
        cells = [*np.flatnonzero(moves).tolist(), *np.flatnonzero(~moves).tolist()][:MOST_CELLS]
        for cell in cells:
            alone = min((r for r in records if adds[r][cell]), key=lambda r: int(adds[r].sum()), default=None)
            found += [(alone,)] * int(counts[cell]) if alone is not None else []
    found = _beside(plan, [record for person in (*hidden, *cover) for record in person], found)
    known = policy.known_people
    if known is not None:
        room = known - len(hidden)
        if not 0 <= room <= MOST_PEOPLE:
            raise PlanError(
                f"must be from {len(hidden)} to {MOST_PEOPLE:,} for an audit, which makes up as many people",
                key="known.size",
                given=known,
                fix="Audit with a smaller number, or leave it out.",
            )
        found = (found + [(records[0],)] * room)[:room]
    return found


def _beside(plan: AnyPlan, taken: list[Any], others: list[Person]) -> list[Person]:
    """Return those of some people who can be in one data set with these records, and with each other."""
    found, there = [], list(taken)
    for person in others:
        if all(plan.fit_together(there, record) for record in person):
            found.append(person)
            there += person
    return found


def _frame(
    people: list[Person], policy: Policy, order: str | None, item: str | None, naming: Sequence[str]
) -> pd.DataFrame:
    """Return rows of these people, each with the number of its owner; what names rows are numbers too."""
    columns: dict[str, list[Any]] = {}
    owners, places = [], []
    for number, person in enumerate(people):
        for place, row in enumerate(_rows_of(person, policy)):
            owners.append(number)
            places.append(place)
            for name, value in zip(policy.domain, row, strict=True):
                for column, cell in zip(
                    policy.domain[name].read_from(name, item), _cells(policy.domain[name], value), strict=True
                ):
                    columns.setdefault(column, []).append(cell)
    frame = pd.DataFrame({name: _typed(cells) for name, cells in columns.items()})
    if policy.person is not None:
        frame[policy.person] = owners
    if order is not None and order not in frame:
        frame[order] = places
    for name in naming:
        if name not in frame:
            frame[name] = range(len(frame))
    return frame


def _rows_of(person: Person, policy: Policy) -> Iterator[list[Any]]:
    """Yield the rows of a person: one for each record, or for each item where a person is named."""
    for record in person:
        sets = [at for at, attribute in enumerate(policy.domain.values()) if attribute.is_set]
        if not sets or policy.person is None:
            yield list(record)
            continue
        # one column has an item in each row, others have lists
        first = sets[0]
        for one in sorted(record[first], key=str) or [None]:
            yield [one if at == first else value for at, value in enumerate(record)]


def _cells(attribute: Attribute, value: Any) -> tuple[Any, ...]:
    """Return the cells of a value; where a row holds one item of a set, the item."""
    return attribute.raw(value) if not attribute.is_set or isinstance(value, frozenset) else (value,)


def _typed(cells: list[Any]) -> Any:
    """Return a column that keeps whole numbers whole where some are missing."""
    if any(one is None for one in cells) and all(one is None or type(one) is int for one in cells):
        return pd.array(cells, dtype="Int64")
    return cells

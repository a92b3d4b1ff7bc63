"""Made-up data sets one secret step of one person apart, as rows that a session can open.

Nothing is read from anybody's rows: people, records and the steps that they take come from the policy. The person who
moves owns as many rows as count (and more, where it does not matter which of them count), or as many items; others
stand elsewhere, or where a selection is about to change. Every kind of step has a pair of its own. A step is one that
the policy's definition knows, whatever the planner says.

Where one number is made of somebody's rows, these come, leave and move as the policy of the rows says, all that count
at once or, where they may leave, all but one. Of each kind of change the one is taken that moves the answers most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd

from tacit.arrays import Ints
from tacit.audit.worlds import Neighbours, added, answers, change_along, contributions, neighbours, records_to_try
from tacit.errors import PlanError
from tacit.plan.plans.plan import Plan
from tacit.plan.questions import Count, Marginals
from tacit.policy.attributes import Attribute
from tacit.policy.domain import positions
from tacit.policy.person_numbers import NumberPolicy
from tacit.policy.policy import ABSENT, Policy

Person = tuple[Any, ...]  # the records of the rows that somebody owns
OTHERS: Final = 3  # who stand somewhere, where it does not matter
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


def made_up(plan: Plan) -> list[MadeUp]:
    """Return pairs of neighbouring data sets on which a release should show what it loses."""
    policy = plan.policy.charged
    order, item = policy.order, policy.item
    taken = {column for name in policy.domain for column in policy.domain[name].read_from(name, item)}
    if policy.person in taken:
        raise PlanError(
            "must not be an attribute, or nobody can own several made-up rows",
            key="person",
            given=policy.person,
            fix="Name another column for the audit.",
        )
    if isinstance(plan.policy, NumberPolicy):
        moves = _of_numbers(plan, plan.policy)
        return [MadeUp(words, *(_frame(side, policy, order, item, ()) for side in sides)) for words, *sides in moves]
    found = []
    for words, hidden, cover in _moves(plan, ordered=order is not None and order not in taken):
        others = _others(plan, hidden, cover)
        naming = () if plan.records is None else plan.records.naming
        frames = (_frame([*others, *world], policy, order, item, naming) for world in (hidden, cover))
        found.append(MadeUp(words, *frames))
    return found


def _moves(plan: Plan, *, ordered: bool) -> Iterator[tuple[str, list[Person], list[Person]]]:
    """Yield in words what happens, and the people to whom it happens at hidden and at cover, the farthest move first.

    Every kind of edge that changes an answer has its own: coming, leaving, and those of each family of secrets, apart
    for answers that only fall and answers that only rise, since noise may be large enough one way only.
    """
    policy = plan.policy
    adds = _Contributions(plan)
    has_items = any(attribute.is_set for attribute in policy.domain.values())
    kinds: dict[str, list[Neighbours]] = {}
    farthest: dict[str, tuple[tuple[int, int, int], Neighbours]] = {}
    for pair in neighbours(policy, adds.records):
        change = adds.change(pair)
        kind, far = _kind_of(policy, pair, change), adds.far(change)
        kinds.setdefault(kind, []).append(pair)
        if kind not in farthest or far > farthest[kind][0]:
            farthest[kind] = far, pair
    if not kinds:
        nobody = [(adds.records[0],)]
        yield "nothing is secret", nobody, nobody
        return
    chosen = sorted(kinds, key=lambda kind: farthest[kind][0], reverse=True)
    for kind in [kind for kind in chosen if any(farthest[kind][0])] or chosen[:1]:
        if policy.person is None or has_items or policy.known:
            yield _one_row_each(policy, farthest[kind][1], has_items=has_items)
        else:
            yield _several_rows(policy, kinds[kind], adds, ordered=ordered)


def _kind_of(policy: Policy, pair: Neighbours, change: Ints) -> str:
    """Return along which kind of edge the first person moves; others, coupled by what is known, move along."""
    hidden, cover = pair.hidden[0], pair.cover[0]
    if hidden is ABSENT or cover is ABSENT:
        return "comes" if hidden is ABSENT else "leaves"
    families = policy.secrets.families()
    family = next(at for at, family in enumerate(families) if family.has_edge(policy.domain, hidden, cover))
    rises, falls = (change > 0).any(), (change < 0).any()
    return f"{family}, {'either way' if rises == falls else 'up' if rises else 'down'}"


class _Contributions:
    """What each of some records adds to the answers of all parts of a plan."""

    def __init__(self, plan: Plan) -> None:
        policy, parts = plan.policy, [part.base for part in plan.parts]
        self.records = list(dict.fromkeys(r for part in parts for r in records_to_try(policy, part)[0]))
        each = [contributions(part, policy.domain, self.records) for part in parts]
        self._of = {record: np.concatenate([one[record] for one in each]) for record in each[0]}
        # a person counts once in each cell, or each of their rows
        self._summed = np.concatenate(
            [np.full(len(one[ABSENT]), part.counts_rows) for part, one in zip(parts, each, strict=True)]
        )

    def change(self, pair: Neighbours) -> Ints:
        """Return how answers change from hidden to cover."""
        return change_along(pair, self._of)

    def farthest_rows(self, edges: Sequence[tuple[Any, Any]], many: int) -> list[tuple[Any, Any]]:
        """Return the steps of so many rows that together change the answers most, one row after the other."""
        before = after = self._of[ABSENT]
        chosen = list[tuple[Any, Any]]()
        for _ in range(many):
            best = max(edges, key=lambda edge: self.far(self._join(after, edge[1]) - self._join(before, edge[0])))
            before, after = self._join(before, best[0]), self._join(after, best[1])
            chosen.append(best)
        return chosen

    def _join(self, sums: Ints, record: Any) -> Ints:
        more = self._of[record]
        return np.asarray(np.where(self._summed, sums + more, np.maximum(sums, more)))

    @staticmethod
    def far(change: Ints) -> tuple[int, int, int]:
        """Return how far answers move: in all, at most, and of equals how far apart those stand that do."""
        moved = np.flatnonzero(change)
        return int(np.abs(change).sum()), int(np.abs(change).max(initial=0)), int(np.ptp(moved)) if len(moved) else 0


def _several_rows(
    policy: Policy, pairs: list[Neighbours], adds: _Contributions, *, ordered: bool
) -> tuple[str, list[Person], list[Person]]:
    """Return somebody who moves, comes or leaves with all rows that count, and more."""
    edges = [(pair.hidden[0], pair.cover[0]) for pair in pairs]
    chosen = adds.farthest_rows(edges[:: (len(edges) - 1) // MOST_EDGES + 1], policy.per_person + MORE_ROWS)
    comes, leaves = (chosen[0][side] is ABSENT for side in (0, 1))
    # which rows of more than count are kept must not matter for whether this is one step
    if not (ordered or comes or leaves or all(policy.has_edge(a, b) for a, _ in chosen for _, b in chosen)):
        chosen = chosen[: policy.per_person]
    hidden, cover = (tuple(edge[side] for edge in chosen if edge[side] is not ABSENT) for side in (0, 1))
    if comes or leaves:
        return f"a person of {len(chosen)} rows {'joins' if comes else 'leaves'}", [hidden], [cover]
    return f"{len(chosen)} rows of one person, of which {policy.per_person} count", [hidden], [cover]


def _one_row_each(policy: Policy, pair: Neighbours, *, has_items: bool) -> tuple[str, list[Person], list[Person]]:
    hidden, cover = ([() if one is ABSENT else (one,) for one in side] for side in (pair.hidden, pair.cover))
    words = "one person" if len(hidden) == 1 else f"{len(hidden)} people, coupled by what is known,"
    if has_items and not policy.known and hidden[0] and cover[0]:
        fuller = _fuller(policy, hidden[0][0], cover[0][0])
        items = sum(len(value) for value in fuller if isinstance(value, frozenset))
        return f"{words} with {items} items", [(fuller,)], cover
    return words, hidden, cover


def _fuller(policy: Policy, hidden: Any, cover: Any) -> Any:
    """Return a person with more items than count, if every choice of those that count may look like `cover`."""
    record = list(hidden)
    for at, attribute in enumerate(policy.domain.values()):
        if not attribute.is_set or attribute.most_items == attribute.cells or policy.person is None:
            continue
        rest = [attribute.cell(place) for place in range(min(attribute.cells, 50))]
        more = [one for one in rest if one not in record[at]][:MORE_ROWS]
        larger = frozenset([*record[at], *more])
        subsets = [
            (*record[:at], frozenset(some), *record[at + 1 :])
            for some in (
                combinations(larger, attribute.most_items)
                if math.comb(len(larger), attribute.most_items) <= MOST_SUBSETS
                else ()
            )
        ]
        if subsets and all(policy.secrets.has_edge(policy.domain, one, cover) for one in subsets):
            record[at] = larger
    return tuple(record)


def _counted(policy: Policy, record: Any) -> Any:
    """Return a record with no more items than count."""
    return tuple(
        frozenset(sorted(value, key=str)[: attribute.most_items]) if attribute.is_set else value
        for attribute, value in zip(policy.domain.values(), record, strict=True)
    )


def _others(plan: Plan, hidden: list[Person], cover: list[Person]) -> list[Person]:
    """Return people who stay where they are: around what a selection decides, and as many as are known to be there."""
    policy = plan.policy
    records, _ = records_to_try(policy, plan.base)
    adds = contributions(plan.base, policy.domain, records)
    sides = [[_counted(policy, record) for person in side for record in person] for side in (hidden, cover)]
    totals = [answers(plan.base, policy.domain, side) for side in sides]
    moves = totals[0] != totals[1]
    # not where the move is, if they can: an answer that becomes zero, or no longer is, may show more than others do
    apart = sorted(records, key=lambda record: bool(adds[record][moves].any()))
    found: list[Person] = [(record,) for record in apart[:OTHERS]]
    telling = plan.telling_others(moves)
    if telling is not None:
        found = []
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


def _beside(plan: Plan, taken: list[Any], others: list[Person]) -> list[Person]:
    """Return those of some people who can be in one data set with these records, and with each other."""
    found, there = [], list(taken)
    for person in others:
        if plan.records is None or all(plan.records.fit_together(there, record) for record in person):
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
    return attribute.as_cells(value) if not attribute.is_set or isinstance(value, frozenset) else (value,)


def _typed(cells: list[Any]) -> Any:
    """Return a column that keeps whole numbers whole where some are missing."""
    if any(one is None for one in cells) and all(one is None or type(one) is int for one in cells):
        return pd.array(cells, dtype="Int64")
    return cells


def _of_numbers(plan: Plan, policy: NumberPolicy) -> list[tuple[str, list[Person], list[Person]]]:
    """Return in words what happens, and all people at hidden and at cover, the farthest move of each kind."""
    number, rows = policy.grid.number, policy.rows
    name = number.attribute
    looked_at = Count(number.where) if name is None else Marginals(((name,),), number.where)
    records, _ = records_to_try(rows, looked_at)
    edges = [(pair.hidden[0], pair.cover[0]) for pair in neighbours(rows, records)]
    farthest: dict[str, tuple[int, Person, Person]] = {}
    for hidden, cover in edges[:: (len(edges) - 1) // MOST_EDGES + 1] if edges else ():
        for words, before, after in _changes(hidden, cover, rows.per_person):
            moved = int(np.abs(_number_answers(plan, policy, after) - _number_answers(plan, policy, before)).sum())
            if words not in farthest or moved > farthest[words][0]:
                farthest[words] = moved, before, after
    others = [(record,) for record in records[:OTHERS]]
    if not farthest:
        return [("nothing is secret", others, others)]
    chosen = sorted(farthest.items(), key=lambda one: -one[1][0])
    return [(words, [*others, before], [*others, after]) for words, (_, before, after) in chosen]


def _changes(hidden: Any, cover: Any, many: int) -> Iterator[tuple[str, Person, Person]]:
    if cover is ABSENT:
        yield f"a person of {many} rows leaves", (hidden,) * many, ()
        yield f"a person of {many} rows keeps one", (hidden,) * many, (hidden,)
    elif hidden is ABSENT:
        yield f"a person of {many} rows joins", (), (cover,) * many
        yield f"a person of one row gets {many}", (cover,), (cover,) * many
    else:
        yield f"{many} rows of one person move", (hidden,) * many, (cover,) * many


def _number_answers(plan: Plan, policy: NumberPolicy, person: Person) -> Ints:
    """Return what the number of a person adds to the answers of all parts of a plan."""
    value = _number(policy, person)
    return np.concatenate([added(part.base, policy.domain, value) for part in plan.parts])


def _number(policy: NumberPolicy, person: Person) -> Any:
    """Return the number of a person as a record of its policy; absent without a row that is picked."""
    grid, domain = policy.grid, policy.rows.domain
    number = grid.number
    picks = None if number.where is None else number.where.compile(domain)
    picked = [record for record in person if picks is None or picks.of_record(positions(domain, record))]
    if not picked:
        return ABSENT
    at = list(domain).index(number.attribute) if number.attribute is not None else 0
    places = [domain[number.attribute].position(record[at]) if number.attribute else 0 for record in picked]
    made = max(places) if number.each == "max" else sum(places)
    (place,) = grid.places(np.array([len(picked)]), np.array([made]))
    return (grid.values.value(int(place)),)

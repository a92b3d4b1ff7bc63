"""Made-up people of whose rows one number is made, one of whom changes: what the rows of one person may do.

Rows come, leave and move as the policy of the rows says, all that count at once or, where they may leave, all but one.
Of each kind of change the one is taken that moves the answers most.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from tacit.arrays import Ints
from tacit.audit.worlds import added, neighbours, records_to_try
from tacit.plan.plans.plan import Plan
from tacit.plan.questions import Count, Marginals
from tacit.policy.domain import positions
from tacit.policy.person_numbers import NumberPolicy
from tacit.policy.policy import ABSENT

Person = tuple[Any, ...]  # the records of the rows that somebody owns
OTHERS: Final = 3  # who stand somewhere, where it does not matter
_MOST_EDGES: Final = 400


def of_numbers(plan: Plan, policy: NumberPolicy) -> list[tuple[str, list[Person], list[Person]]]:
    """Return in words what happens, and all people at hidden and at cover, the farthest move of each kind."""
    number, rows = policy.grid.number, policy.rows
    name = number.attribute
    looked_at = Count(number.where) if name is None else Marginals(((name,),), number.where)
    records, _ = records_to_try(rows, looked_at)
    edges = [(pair.hidden[0], pair.cover[0]) for pair in neighbours(rows, records)]
    farthest: dict[str, tuple[int, Person, Person]] = {}
    for hidden, cover in edges[:: (len(edges) - 1) // _MOST_EDGES + 1] if edges else ():
        for words, before, after in _changes(hidden, cover, rows.per_person):
            moved = int(np.abs(_answers(plan, policy, after) - _answers(plan, policy, before)).sum())
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


def _answers(plan: Plan, policy: NumberPolicy, person: Person) -> Ints:
    """Return what the number of a person adds to the answers of all parts of a plan."""
    value = _value(policy, person)
    return np.concatenate([added(part.base, policy.domain, value) for part in plan.parts])


def _value(policy: NumberPolicy, person: Person) -> Any:
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

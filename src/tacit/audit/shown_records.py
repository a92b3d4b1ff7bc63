"""True records under audit: what is shown of one record, with which probability, and how it is drawn.

The law is written down from the marks of a plan (`plan/showing.py`); edges come from the definition of the policy. What
is drawn goes through the mechanism with coins of the same kind as a session's: tossed anew without a key, and with one
remembered for each of many keys. A record that is shown as a whole shows its key as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.audit.worlds import every_edge, records_to_try
from tacit.mechanism.suppression import shown
from tacit.noise.kept_coins import name_of_number, new_secret, remembered, tossed
from tacit.plan.records_plan import RecordsPlan
from tacit.plan.showing import COIN, HIDDEN, Rule
from tacit.policy.domain import positions
from tacit.policy.policy import ABSENT

MISSING = -1


def law_of(plan: RecordsPlan) -> Callable[[Any], dict[Any, float]]:
    """Return the law of what is shown of a data set: of each record its columns, or None where they are missing."""
    kept, rules = -math.expm1(-float(plan.each)), _rules(plan)

    def of_record(record: Any) -> dict[Any, float]:
        values = dict(zip(plan.policy.domain, record, strict=True))
        found: dict[Any, float] = {}
        for coins in product((True, False), repeat=len(rules)):
            chance = math.prod(kept if coin else 1 - kept for coin in coins)
            marks = [rule.of_record(positions(plan.policy.domain, record)) for rule in rules]
            gone = {
                name
                for rule, mark, coin in zip(rules, marks, coins, strict=True)
                if mark == HIDDEN or (mark == COIN and not coin)
                for name in rule.names
            }
            cells = tuple(None if name in gone else values[name] for name in plan.told)
            output = None if plan.is_whole and gone else cells
            found[output] = found.get(output, 0.0) + chance
        return found

    def of_people(people: Any) -> dict[Any, float]:
        outputs: dict[Any, float] = {(): 1.0}
        for record in people:
            joined: dict[Any, float] = {}
            for (before, chance), (one, other) in product(outputs.items(), of_record(record).items()):
                after = before if one is None else (*before, one)
                joined[after] = joined.get(after, 0.0) + chance * other
            outputs = joined
        return outputs

    return of_people


def telling_records(plan: RecordsPlan) -> tuple[Any, Any]:
    """Return the two ends of an edge along which most rules go from hidden to shown."""
    records, _ = records_to_try(plan.policy, plan.base)
    edges = [(a, b) for a, b in every_edge(plan.policy, records) if a is not ABSENT and b is not ABSENT]

    def tells(edge: tuple[Any, Any]) -> int:
        marks = [[rule.of_record(positions(plan.policy.domain, end)) for end in edge] for rule in _rules(plan)]
        return sum(before == HIDDEN and after != HIDDEN for before, after in marks)

    return max(edges, key=tells, default=(records[0], records[0]))


def drawn(plan: RecordsPlan) -> Callable[[Any, int], npt.NDArray[np.int64]]:
    """Return how outputs about one record, given by its positions, are drawn."""
    domain, rules = plan.policy.domain, _rules(plan)

    def release(record: Any, size: int) -> npt.NDArray[np.int64]:
        values = domain.record({name: domain[name].value(int(at)) for name, at in zip(domain, record, strict=True)})
        places = positions(domain, values)
        cells = {name: np.full(size, at) for name, at in zip(domain, record, strict=True)}
        missing = np.zeros(size, dtype=np.bool_)
        for rule in rules:
            is_shown = shown(rule, np.full(size, rule.of_record(places), dtype=np.uint8), _coins(plan))
            for name in rule.names:
                cells[name] = np.where(is_shown, cells[name], MISSING)
            missing |= ~is_shown
        made = np.stack([cells[name] for name in plan.told], axis=1)
        return np.where(missing[:, None], MISSING, made) if plan.is_whole else made

    return release


def _coins(plan: RecordsPlan) -> Callable[[int], npt.NDArray[np.bool_]]:
    if not plan.query.key:
        return lambda many: tossed(plan.each, many)
    secret = new_secret()
    return lambda many: remembered(secret, name_of_number(np.arange(many, dtype=np.uint64)), plan.each)


def _rules(plan: RecordsPlan) -> tuple[Rule, ...]:
    return () if plan.showing is None else plan.showing.rules

"""True records under audit: what is shown of one record, with which probability, and how it is drawn.

The law is written down from the marks of a plan (`plan/plans/visible_records.py`); edges come from the definition of
the policy. With
a key, what is drawn is what a session releases of many rows that are alike but for their keys: each has a coin of its
own, so each is a draw. All plans ask one after the other, and then again, which costs nothing: where they ask along one
line of coins the coin is the same, and a session that forgets it shows that here. Without a key, or with a key of
attributes, of which made-up rows have too few, it goes through the mechanism with coins of the same kind. A record that
is shown as a whole shows its key as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from tacit.audit.worlds import every_edge, records_to_try
from tacit.noise.kept_coins import name_of_number, new_secret, remembered, tossed
from tacit.plan.plans.records import RecordsPlan
from tacit.plan.plans.visible_records import COIN, HIDDEN, shown
from tacit.policy.domain import positions
from tacit.policy.policy import ABSENT
from tacit.release.session import Session

MISSING = -1
TIMES: Final = 4  # that a session is asked, so that coins which it forgets now and then show as well


def law_of(*plans: RecordsPlan) -> Callable[[Any], dict[Any, float]]:
    """Return the law of what is shown of a data set: of each record its columns, or None where they are missing.

    Of several plans, what each of them shows of it.
    """
    asked = [_CoinPlan(plan, number) for number, plan in enumerate(plans)]
    # a coin is a number from 0 to 1, shown to a plan if it lies below what is kept there
    ends: dict[Any, set[float]] = {}
    for one in asked:
        for coin in one.coins:
            ends.setdefault(coin, {0.0, 1.0}).add(one.kept)
    parts = {coin: list(pairwise(sorted(cuts))) for coin, cuts in ends.items()}

    def of_record(record: Any) -> dict[Any, float]:
        found: dict[Any, float] = {}
        for tossed_ in product(*parts.values()):
            chance = math.prod(high - low for low, high in tossed_)
            below = dict(zip(parts, (high for _, high in tossed_), strict=True))
            outputs = tuple(one.shown(record, below) for one in asked)
            output = outputs[0] if len(asked) == 1 else outputs
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


class _CoinPlan:
    """One of several plans, and the coins that it looks at."""

    def __init__(self, plan: RecordsPlan, number: int) -> None:
        self._plan, self._rules = plan, plan.showing.rules
        self.kept = -math.expm1(-float(plan.each))
        # without a key every plan tosses coins of its own
        self.coins = [plan.line(rule.digest) if plan.query.key else (number, rule.digest) for rule in self._rules]

    def shown(self, record: Any, below: Mapping[Any, float]) -> Any:
        """Return what is shown of a record where each coin lies below such a number, and above what is less."""
        domain = self._plan.policy.domain
        places, values = positions(domain, record), dict(zip(domain, record, strict=True))
        gone = set[str]()
        for rule, coin in zip(self._rules, self.coins, strict=True):
            mark = rule.of_record(places)
            if mark == HIDDEN or (mark == COIN and below[coin] > self.kept):
                gone.update(rule.names)
        if self._plan.is_whole and gone:
            return None
        return tuple(None if name in gone else values[name] for name in self._plan.hideable)


def claimed(*plans: RecordsPlan) -> Fraction:
    """Return what these plans cost, asked one after the other: a line of coins pays for what it reaches."""
    reached: dict[str, Fraction] = {}
    total = Fraction(0)
    for plan in plans:
        total += plan.cost(reached)
        for line, at in plan.coin_lines.items():
            reached[line] = max(at, reached.get(line, at))
    return total


def telling_records(plan: RecordsPlan) -> tuple[Any, Any]:
    """Return the two ends of an edge along which most rules go from hidden to shown."""
    records, _ = records_to_try(plan.policy, plan.base)
    edges = [(a, b) for a, b in every_edge(plan.policy, records) if a is not ABSENT and b is not ABSENT]

    def tells(edge: tuple[Any, Any]) -> int:
        marks = [[rule.of_record(positions(plan.policy.domain, end)) for end in edge] for rule in plan.showing.rules]
        return sum(before == HIDDEN and after != HIDDEN for before, after in marks)

    return max(edges, key=tells, default=(records[0], records[0]))


def is_named(plans: Sequence[RecordsPlan]) -> bool:
    """Say whether rows have names of their own in all plans, so that a session can be asked about many at once."""
    return all(plan.naming for plan in plans)


def drawn(*plans: RecordsPlan) -> Callable[[Any, int], npt.NDArray[np.int64]]:
    """Return how outputs about one record, given by its positions, are drawn: what each plan shows, side by side."""

    def release(record: Any, size: int) -> npt.NDArray[np.int64]:
        if is_named(plans):
            return _released(plans, record, size)
        secrets: dict[str, bytes] = {}
        return np.concatenate([_drawn(plan, record, size, secrets) for plan in plans], axis=1)

    return release


def _released(plans: Sequence[RecordsPlan], record: Any, size: int) -> npt.NDArray[np.int64]:
    """Return what a session shows of so many rows like this one, asked by all plans, and by all of them again."""
    policy = plans[0].policy
    columns: dict[str, Any] = {}
    for name, at in zip(policy.domain, record, strict=True):
        attribute = policy.domain[name]
        for column, cell in zip(
            attribute.read_from(name, policy.item), attribute.as_cells(attribute.value(int(at))), strict=True
        ):
            columns[column] = [cell] * size
    owned = [name for name in (policy.person, policy.order) if name is not None]
    numbered = [*owned, *(name for plan in plans for name in plan.naming)]
    columns |= {name: np.arange(size) for name in numbered if name not in columns}
    session = Session(policy, pd.DataFrame(columns), claimed(*plans))
    asked = (*plans, *plans) * max(1, TIMES // (2 * len(plans)))
    return np.concatenate([_codes(session.release(plan.query, plan.epsilon), plan, size) for plan in asked], axis=1)


def _codes(record: Any, plan: RecordsPlan, size: int) -> npt.NDArray[np.int64]:
    """Return the positions that a record shows of each row, in the order of their names."""
    found, domain = record.columns(), plan.policy.domain
    rows = np.array(list(found[plan.naming[0]]), dtype=np.int64)
    codes = np.full((size, len(plan.hideable)), MISSING, dtype=np.int64)
    for place, name in enumerate(plan.hideable):
        cells = found[name]
        of_entry = [MISSING if entry is None else domain[name].position(entry) for entry in cells.values]
        codes[rows, place] = np.array(of_entry, dtype=np.int64)[cells.which]
    return codes


def _drawn(plan: RecordsPlan, record: Any, size: int, secrets: dict[str, bytes]) -> npt.NDArray[np.int64]:
    """Return what one plan shows of as many records like this one, of which each has a key of its own."""
    domain = plan.policy.domain
    values = domain.record({name: domain[name].value(int(at)) for name, at in zip(domain, record, strict=True)})
    places = positions(domain, values)
    cells = {name: np.full(size, at) for name, at in zip(domain, record, strict=True)}
    missing = np.zeros(size, dtype=np.bool_)
    for rule in plan.showing.rules:
        marks = np.full(size, rule.of_record(places), dtype=np.uint8)
        is_shown = shown(rule, marks, _coins(plan, plan.line(rule.digest), secrets))
        for name in rule.names:
            cells[name] = np.where(is_shown, cells[name], MISSING)
        missing |= ~is_shown
    made = np.stack([cells[name] for name in plan.hideable], axis=1)
    return np.where(missing[:, None], MISSING, made) if plan.is_whole else made


def _coins(plan: RecordsPlan, line: str, secrets: dict[str, bytes]) -> Callable[[int], npt.NDArray[np.bool_]]:
    if not plan.query.key:
        return lambda many: tossed(plan.each, many)
    secret = secrets.setdefault(line, new_secret())
    return lambda many: remembered(secret, name_of_number(np.arange(many, dtype=np.uint64)), plan.each)

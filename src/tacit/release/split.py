"""Sessions about disjoint groups of people, which together cost as much as the dearest of them.

Guarantee   For every two neighbouring data sets, all that was released about the groups of a split, taken together,
            loses at most what the session was charged for the split.
Assumes     `plan/sensitivity/parallel_composition.py`: between neighbours one group changes and no other. What each
            group has spent is kept in this process alone.
Why         The session has always been charged at least as much as any single group has spent: a release is made only
            after the sum of its group is known to fit in what was charged, or the difference was charged to the session
            in one transaction of its ledger, as for any release. Only then is the sum moved. Whoever crashes in between
            or loses the split has paid too much and never too little: a new split begins at nothing, and charges add
            up.
            Every part of a plan is asked whether it looks at people of its group alone.
Checked by  tests/unit/release/test_split.py.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NoReturn

from tacit.amounts import shown
from tacit.drawing import Held
from tacit.errors import BudgetExceeded, InternalError, PlanError, sealed
from tacit.ledger.ledger import Receipt
from tacit.plan.accuracy import cost_of
from tacit.plan.choose import Explanation, explain
from tacit.plan.plans.plan import Plan
from tacit.plan.question import resolve
from tacit.plan.sensitivity.parallel_composition import DisjointGroups, check_about_rows
from tacit.policy.edges.shapes import axes_of, cells, holds
from tacit.policy.policy import Policy
from tacit.policy.where import Where
from tacit.release.planner import Planner
from tacit.release.results.record import ReleaseRecord

Costs = Sequence[tuple[Fraction, str]]
Charge = Callable[[Costs], Sequence[Receipt | None]]
Pay = Callable[[Costs, Charge], Sequence[Receipt | None]]


@dataclass(frozen=True)
class Parent:
    """What a split needs of the session that it is made from: its policy, its budget, and how it makes releases."""

    policy: Policy
    remaining: Callable[[], Fraction]
    check: Callable[[Plan], None]
    make: Callable[[Plan, Pay, str], ReleaseRecord]


class Split(Held, Mapping[str, "Group"]):
    """The groups of a split by name, each a session of its own. Made by `Session.split`."""

    def __init__(self, groups: DisjointGroups, parent: Parent) -> None:
        self.by = groups.by
        self._parent = parent
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._spent = dict.fromkeys(groups.members, Fraction(0))
        self._charged = Fraction(0)
        self._receipt: Receipt | None = None
        self._groups = {name: Group(name, people, self, parent) for name, people in groups.members.items()}
        self._names = groups.names

    def __getitem__(self, name: str) -> Group:
        # a value as the attribute has it (True, 3), or the name of a group
        return self._groups[self._names.get((type(name), name), name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def __repr__(self) -> str:
        return f"<split by {self.by}: {len(self)} groups, {shown(self._charged)} charged>"

    def __reduce__(self) -> NoReturn:
        raise PlanError("must not be copied, since its budget would be spent twice", key="split", fix="Share it.")

    @property
    def charged(self) -> Fraction:
        """What the session was charged for all groups together: as much as the dearest of them has spent."""
        return self._charged

    def spent(self, name: str) -> Fraction:
        """Return what one group has spent."""
        return self._spent[name]

    def pay(self, name: str, costs: Costs, charge: Charge) -> Sequence[Receipt | None]:
        """Charge the session for what one group spends beyond what was charged for any; nothing if it fits in that.

        `charge` is called either way: it also holds what a release shows of single records against limits.
        """
        if os.getpid() != self._process:
            fix = "Split the session of this process."
            raise BudgetExceeded("belongs to the process that made it", key="split", fix=fix)
        epsilon = sum((cost for cost, _ in costs), Fraction(0))
        with self._lock:
            more = self._spent[name] + epsilon - self._charged
            if more > 0:
                notes = "; ".join(what for _, what in costs)
                # whoever spends no more than that leaves no entry, so this one says for whom it was paid
                covered = shown(self._charged + more)
                (self._receipt,) = charge([(more, f"split by {self.by}, each group up to {covered} in all: {notes}")])
                self._charged += more
            else:
                charge([])
            self._spent[name] += epsilon
            return [self._receipt] * len(costs)


class Group(Held):
    """A session about one group of a split: the same questions, about its people alone."""

    def __init__(self, name: str, people: Where, split: Split, parent: Parent) -> None:
        self.name, self.people = name, people
        self._split, self._parent = split, parent
        self._planner = Planner(parent.policy)

    def __repr__(self) -> str:
        return f"<group {self.name!r} of a split by {self._split.by}, {shown(self.remaining)} remains>"

    def __reduce__(self) -> NoReturn:
        raise PlanError("must not be copied, since its budget would be spent twice", key="group", fix="Share it.")

    @property
    def remaining(self) -> Fraction:
        """What may still be spent on this group: what remains of the session, and what others made it pay already."""
        return self._parent.remaining() + self._split.charged - self._split.spent(self.name)

    @sealed
    def plan(
        self,
        query: Any,
        epsilon: Any = None,
        *,
        error: Any = None,
        within: Any = None,
        level: Any = None,
        consistent: bool = False,
        nonnegative: bool = False,
    ) -> Plan:
        """Return how a question will be answered about this group, as `Session.plan` does."""
        cost = cost_of(query, epsilon, error, within, level)
        asked = resolve(query, self._parent.policy.domain).among(self.people)
        options: dict[str, Any] = {"consistent": consistent, "nonnegative": nonnegative}
        plan = self._planner.plan(asked, cost, lambda: self.remaining, **options)
        check_about_rows(plan.query, self._parent.policy)
        looked_at = [part.base.where if plan.query.each is None else plan.query.picked for part in plan.parts]
        if not all(_looks_within(picked, self.people, self._parent.policy) for picked in looked_at):
            raise InternalError("a question looks beyond its group")
        self._parent.check(plan)
        return plan

    @sealed
    def explain(self, query: Any, epsilon: Any = None, **accuracy: Any) -> Explanation:
        """Say what a release would cost this group and how wrong it would be. Nothing is charged, no row is opened."""
        plan = self._own(query, epsilon=epsilon, **accuracy)
        return explain(plan, remaining=self.remaining - plan.epsilon)

    @sealed
    def release(
        self, query: Any, epsilon: Any = None, *, consistent: bool = False, nonnegative: bool = False, **accuracy: Any
    ) -> ReleaseRecord:
        """Answer a question about this group, or execute a plan of this group."""
        plan = self._own(query, epsilon=epsilon, consistent=consistent, nonnegative=nonnegative, **accuracy)
        part_of = f"a split by {self._split.by}: groups that no secret edge connects, of which the dearest is charged"
        return self._parent.make(plan, partial(self._split.pay, self.name), part_of)

    def _own(self, given: Any, **options: Any) -> Plan:
        if not isinstance(given, Plan):
            made: Plan = self.plan(given, **options)
            return made
        for key, option in options.items():
            if option not in (None, False):
                raise PlanError("is part of the plan already", key=key, fix="Leave it out. Nothing was charged.")
        if not self._planner.has_made(given):
            fix = "Make it here: group.plan(query, epsilon=..). Nothing was charged."
            raise PlanError("must be a plan that this group made, and unchanged", key="plan", fix=fix)
        return given


def _looks_within(picked: Where | None, people: Where, policy: Policy) -> bool:
    if picked is None:
        return False
    chosen, group = picked.compile(policy.domain), people.compile(policy.domain)
    return all(holds(group, cell) for cell in cells(axes_of([chosen, group])) if holds(chosen, cell))

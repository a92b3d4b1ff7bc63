"""Releases that were paid for: counted and given their noise together, each made once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import NoReturn

from tacit.arrays import Ints
from tacit.errors import PlanError, sealed
from tacit.ledger.coins import CoinState
from tacit.plan.plans.plan import Plan
from tacit.release.estimate.measure import check_people, count_once
from tacit.release.results import derived, ranges, selections, shown_records  # noqa: F401 - they register records
from tacit.release.results.record import ReleaseRecord, draw_record
from tacit.rows.rows import Rows


class Reserved:
    """A release that was paid for. It is made once: its noise is drawn once."""

    def __init__(self, plan: Plan, make: Callable[[], ReleaseRecord]) -> None:
        self.plan = plan
        self._make: Callable[[], ReleaseRecord] | None = make
        self._process = os.getpid()

    def __reduce__(self) -> NoReturn:
        raise PlanError("must not be copied: it was paid for once", key="release", fix="Share it, or ask again.")

    @sealed
    def make(self) -> ReleaseRecord:
        """Open the rows and answer.

        Raises:
            PlanError: The second time, also if the first failed: what it had drawn may have been seen. In a forked
                process, which would draw noise of its own for the same price.
        """
        if os.getpid() != self._process:
            fix = "Make it there, or ask here again, which costs again."
            raise PlanError("belongs to the process that paid for it", key="release", fix=fix)
        make, self._make = self._make, None
        if make is None:
            raise PlanError("was paid for once and made once", key="release", fix="Ask again, which costs again.")
        return make()


class Drawn:
    """What was drawn for plans that were paid for together: counted in one go, each handed out once.

    True answers live in one frame while noise is added to them; what waits here for its turn is noisy already.
    """

    def __init__(self, plans: Sequence[Plan], rows: Rows, coins: CoinState) -> None:
        self._plans, self._rows, self._coins = plans, rows, coins
        self._waiting: list[Callable[[], ReleaseRecord] | None] | None = None
        self._lock = threading.Lock()

    def take(self, number: int) -> Callable[[], ReleaseRecord]:
        """Return what makes the record of one plan, and forget it."""
        with self._lock:
            if self._waiting is None:
                truths = count_plans(self._plans, self._rows)
                self._waiting = [
                    draw_record(plan, truth, self._rows, self._coins)
                    for plan, truth in zip(self._plans, truths, strict=True)
                ]
            made, self._waiting[number] = self._waiting[number], None
        assert made is not None  # noqa: S101 - a release is made once
        return made


def count_plans(plans: Sequence[Plan], rows: Rows) -> list[list[Ints]]:
    """Return the true answers of what each plan looks at; plans spend of one policy, and each is counted once."""
    declared = plans[0].policy.charged.known_people
    distinct = {id(plan): plan.tallied for plan in plans}
    bases = [(base, plan.policy) for plan in {id(plan): plan for plan in plans}.values() for base in plan.tallied]
    if not bases:
        return [[] for _ in plans]
    people, found = count_once(bases, rows, people=declared is not None)
    check_people(people, declared)
    answers = iter(found)
    of_plan = {plan: [next(answers) for _ in tallied] for plan, tallied in distinct.items()}
    return [of_plan[id(plan)] for plan in plans]

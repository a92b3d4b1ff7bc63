"""Releases that were paid for: counted and blurred in one go, each made once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial, singledispatch
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from tacit.errors import PlanError, sealed
from tacit.ledger.clauses.coins import CoinState
from tacit.plan.draws.zoom import draw_stages
from tacit.plan.plans.derived import DerivedPlan
from tacit.plan.plans.grid_plan import GridPlan
from tacit.plan.plans.linear import LinearPlan
from tacit.plan.plans.plan import Plan
from tacit.plan.plans.records import RecordsPlan
from tacit.plan.plans.selection_plan import SelectionPlan
from tacit.plan.questions.clusters import ClustersPlan
from tacit.release.estimate.answers import check_people, count_once
from tacit.release.estimate.infer import infer
from tacit.release.estimate.measure import Measurements, measure
from tacit.release.results.clusters import clustered
from tacit.release.results.derived import derive
from tacit.release.results.record import ReleaseRecord
from tacit.release.results.rectangles import infer_rectangles
from tacit.release.results.selections import select
from tacit.release.results.suppress_records import show_records
from tacit.rows.rows import Rows

Ints = npt.NDArray[np.int64]


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
    """What was drawn for plans that were paid for together: counted and blurred in one go, each handed out once.

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
                truths = true_answers(self._plans, self._rows)
                self._waiting = [
                    _draw(plan, truth, self._rows, self._coins) for plan, truth in zip(self._plans, truths, strict=True)
                ]
            made, self._waiting[number] = self._waiting[number], None
        assert made is not None  # noqa: S101 - a release is made once
        return made


def true_answers(plans: Sequence[Plan], rows: Rows) -> list[list[Ints]]:
    """Return the true answers of what each plan looks at. The plans are under one policy; one plan is counted once."""
    policy = plans[0].policy
    declared = policy.known_people
    distinct = {id(plan): plan.tallied for plan in plans}
    bases = [base for tallied in distinct.values() for base in tallied]
    if not bases:
        return [[] for _ in plans]
    people, found = count_once(bases, rows, policy, people=declared is not None)
    check_people(people, declared)
    answers = iter(found)
    of_plan = {plan: [next(answers) for _ in tallied] for plan, tallied in distinct.items()}
    return [of_plan[id(plan)] for plan in plans]


@singledispatch
def _draw(plan: Plan, truths: Sequence[Ints], rows: Rows, coins: CoinState) -> Callable[[], ReleaseRecord]:
    """Add noise to true answers, which live in this frame and below it, and return what makes a record of the noisy."""
    raise TypeError(type(plan))


@_draw.register
def _(plan: LinearPlan, truths: Sequence[Ints], rows: Rows, coins: CoinState) -> Callable[[], ReleaseRecord]:
    return partial(infer, measure(plan, *truths), consistent=plan.consistent, nonnegative=plan.nonnegative)


@_draw.register
def _(plan: GridPlan, truths: Sequence[Ints], rows: Rows, coins: CoinState) -> Callable[[], ReleaseRecord]:
    return partial(infer_rectangles, measure(plan, *truths), plan)


@_draw.register
def _(plan: DerivedPlan, truths: Sequence[Ints], rows: Rows, coins: CoinState) -> Callable[[], ReleaseRecord]:
    return partial(_derived, plan, [measure(part, truth) for part, truth in zip(plan.parts, truths, strict=True)])


def _derived(plan: DerivedPlan, measured: Sequence[Measurements]) -> ReleaseRecord:
    return derive(plan, [infer(part, consistent=True) for part in measured])


@_draw.register
def _(plan: ClustersPlan, truths: Sequence[Ints], rows: Rows, coins: CoinState) -> Callable[[], ReleaseRecord]:
    settled, parts = draw_stages(plan, *truths)
    measured = [Measurements(part.plan, part.noisy, None, None) for part in parts]
    return partial(_clustered, plan, settled, measured)


def _clustered(plan: ClustersPlan, settled: ClustersPlan, measured: Sequence[Measurements]) -> ReleaseRecord:
    return clustered(plan, settled, [infer(part) for part in measured])


@_draw.register
def _(plan: SelectionPlan, truths: Sequence[Ints], rows: Rows, coins: CoinState) -> Callable[[], ReleaseRecord]:
    record = select(plan, *truths)
    return lambda: record


@_draw.register
def _(plan: RecordsPlan, truths: Sequence[Ints], rows: Rows, coins: CoinState) -> Callable[[], ReleaseRecord]:
    record = show_records(plan, rows, coins.secret_of)
    return lambda: record

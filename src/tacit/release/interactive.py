"""Ask whether counts are above thresholds, one at a time: answers that are certain are free, the others are counted.

Guarantee   All answers together, however the questions were chosen: for every secret edge hidden -> cover and every set
            O of answers, Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O].
Assumes     `plan/plans/thresholds.py` for one question. Counts of answers are kept in this process alone.
Why         Each question is decided with epsilon / at_most. A certain verdict that stands alone never becomes less
            likely along an edge, so it costs nothing; any other answer costs at most epsilon / at_most, and there are
            at most `at_most` of them: the next question is refused. The budget is charged when the asking begins.
Checked by  tests/unit/release/test_asking.py
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.amounts import shown
from tacit.errors import BudgetExceeded, PlanError
from tacit.plan.plans.thresholds import BelowPlan, plan_below
from tacit.plan.questions import Below
from tacit.plan.questions.selections import predicate_for, whole_from_one, whole_threshold
from tacit.policy.policy import Policy
from tacit.policy.where import Where
from tacit.release.results.selections import SelectionRecord


@dataclass(frozen=True)
class Allowance:
    """What is charged when an asking begins. It is no plan: each question that is asked has one of its own."""

    policy: Policy
    epsilon: Fraction
    at_most: int

    @property
    def each(self) -> Fraction:
        """What one answer costs that is not free."""
        return self.epsilon / self.at_most

    def __str__(self) -> str:
        return f"asking, at most {self.at_most} answers that are not certain"


class Asking:
    """Questions one at a time. Made by `Session.asking`; refuses after `at_most` answers that were not free."""

    def __init__(
        self, allowance: Allowance, check: Callable[[BelowPlan], None], answer: Callable[[BelowPlan], SelectionRecord]
    ) -> None:
        self.allowance = allowance
        self._check, self._answer = check, answer
        self._given = 0
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"<{self.allowance}, epsilon {shown(self.allowance.epsilon)}: {self.left} left>"

    def __copy__(self) -> Asking:
        raise PlanError("must not be copied, since its answers would be given twice", key="asking", fix="Share it.")

    def __deepcopy__(self, memo: dict[int, Any]) -> Asking:
        return self.__copy__()

    def __reduce__(self) -> str:
        raise PlanError("must not be pickled, since it holds rows and a budget", key="asking", fix="Begin a new one.")

    @property
    def left(self) -> int:
        """How many answers that are not certain may still be given."""
        return self.allowance.at_most - self._given

    def above(
        self, predicate: Where | str | None = None, threshold: int | None = None, *, item: tuple[str, Any] | None = None
    ) -> SelectionRecord:
        """Say whether at least `threshold` people are picked by a predicate, or have an item."""
        where = predicate_for(predicate, item, keyword="asking.above")
        question = Below(where, whole_threshold(threshold, "asking.above"))
        question.check(self.allowance.policy.domain)
        planned = plan_below(question, self.allowance.policy, self.allowance.each)
        self._check(planned)
        with self._lock:
            if os.getpid() != self._process:
                raise BudgetExceeded("belongs to the process that began it", key="asking", fix="Begin one here.")
            if self.left == 0:
                rule = f"has given all of its {self.allowance.at_most:,} answers that are not certain"
                raise BudgetExceeded(rule, key="asking", fix="Begin another one, with its own epsilon.")
            self._given += 1  # first: whatever happens now, this answer is not given twice
            record = self._answer(planned)
            if record.is_free:
                self._given -= 1
        return record


def allow(policy: Policy, at_most: Any, epsilon: Fraction) -> Allowance:
    """Return what an asking costs, or refuse."""
    return Allowance(policy, epsilon, whole_from_one(at_most, "asking.at_most", "Say how many answers may cost: 5."))

"""How wrong an answer may be, said instead of an epsilon, and the plan of the smallest epsilon that is as accurate.

Guarantee   The plan that is returned is at least as accurate as was asked, by its own expected error, and costs at most
            `at_most`. Nothing is charged here and no row is opened: errors follow from the policy and the question.
Assumes     What a plan says of its own error (`plan/error_laws.py`); the same question at the same epsilon has the same
            plan.
Why         The search holds two decimals of four digits, a larger one whose plan is accurate enough and a smaller one
            whose plan is not, and returns the larger once its error is at least `CLOSE` of what was asked, or once the
            two are as close to each other. An error that jumps, as half widths of whole numbers do, is hit as closely
            as it can be. The next guess takes the error to be in proportion to a power of epsilon, which
            is nearly so; every third guess halves the rest, so that it also ends where that is wrong.
Checked by  tests/unit/plan/test_accuracy.py
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cache
from typing import Any, Final

from tacit.amounts import LARGEST_EPSILON, as_epsilon, as_fraction, as_share, shown
from tacit.errors import BudgetExceeded, PlanError
from tacit.plan.plans.plan import LEVEL, Plan
from tacit.plan.question import check_query

SMALLEST_EPSILON: Final = Fraction(1, 10**6)  # of what is solved; an answer without noise costs this
CLOSE: Final = 0.99  # two numbers with this ratio are close enough
AIM: Final = (1 + CLOSE) / 2
SMALLER: Final = 0.96  # of what is enough, tried next
FACTOR: Final = 1000  # by which a guess moves at most
_FOUR_DIGITS: Final = Context(prec=4, rounding=ROUND_CEILING)
_HOW: Final = "Say epsilon=0.5, or how accurate the answer must be: error=20 (root mean square), or within=20 (95%)."


@dataclass(frozen=True)
class Accuracy:
    """How wrong an answer may be: its root mean squared error or, with a level, the half width of its interval."""

    error: Fraction
    level: Fraction | None = None

    def reached_by(self, plan: Plan) -> float:
        """Return the error of a plan that is compared with the wanted one, or refuse where it is not known."""
        found = plan.rmse if self.level is None else plan.half_width(float(self.level))
        if found is None:
            rule = "is for answers whose interval is known before the release"
            raise PlanError(rule, key=self.key, given=str(plan.query), fix="Say error=.., the root mean square.")
        return found

    @property
    def key(self) -> str:
        """The word by which it was asked for."""
        return "error" if self.level is None else "within"

    def __str__(self) -> str:
        words = "expected error" if self.level is None else f"{float(self.level):.4g}% half width"
        return f"{words} {shown(self.error)}"


def cost_of(query: Any, epsilon: Any, error: Any, within: Any, level: Any) -> Fraction | Accuracy:
    """Return what a question may cost, as `cost_or_accuracy` does; what is no question is refused first."""
    check_query(query)
    return cost_or_accuracy(epsilon, error, within, level)


def cost_or_accuracy(epsilon: Any, error: Any = None, within: Any = None, level: Any = None) -> Fraction | Accuracy:
    """Return the epsilon or the accuracy that was asked for; refuse none of them, and more than one."""
    given = {
        key: value for key, value in (("epsilon", epsilon), ("error", error), ("within", within)) if value is not None
    }
    if level is not None and "within" not in given:
        share = as_fraction(level, key="level")
        raise PlanError("belongs to within", key="level", given=share, fix="Say within=20, level=0.95.")
    if not given:
        raise PlanError("must be given", key="epsilon", fix=_HOW)
    if len(given) > 1:
        rule = f"must not be given beside {' and '.join(list(given)[:-1])}: each of them decides what the answer costs"
        raise PlanError(rule, key=list(given)[-1], fix="Leave one out. Nothing was charged.")
    (key,) = given
    if key == "epsilon":
        return as_epsilon(epsilon)
    wanted = as_fraction(given[key], key=key)
    if not 0 < wanted < 10**300:
        raise PlanError("must lie above 0", key=key, given=wanted, fix="For instance 20, in the unit of the answer.")
    if key == "error":
        return Accuracy(wanted)
    share = as_share(LEVEL if level is None else level, key="level")
    if not 0 < share < 1:
        raise PlanError("must lie strictly between 0 and 1", key="level", given=share, fix="Use 0.95.")
    return Accuracy(wanted, share)


def plan_reaching(wanted: Accuracy, plan_at: Callable[[Fraction], Plan], at_most: Fraction | None = None) -> Plan:
    """Return the plan of the smallest epsilon that is as accurate as wanted; refuse what `at_most` cannot reach."""
    target = float(wanted.error)
    most = Fraction(LARGEST_EPSILON) if at_most is None else min(at_most, Fraction(LARGEST_EPSILON))
    if most <= 0:
        raise BudgetExceeded("cannot be reached, since no budget remains", key=wanted.key, fix="Grant more budget.")

    @cache
    def at(epsilon: Fraction) -> tuple[float, Plan | PlanError]:
        try:
            plan = plan_at(epsilon)
        except PlanError as refused:
            if refused.key != "epsilon":
                raise
            return math.inf, refused.retold(PlanError)  # more noise than can be drawn
        return wanted.reached_by(plan), plan

    best: Plan | None = None  # the cheapest that is accurate enough, of epsilon `high`
    low, high = Fraction(0), most  # `low` is too small
    guess, tried = min(Fraction(1), most), 0
    while True:
        error, found = at(guess)
        if isinstance(found, Plan) and error <= target:
            best, high = found, guess
            # half widths are whole numbers: the same one may cost less
            if (error >= CLOSE * target and wanted.level is None) or guess <= SMALLEST_EPSILON:
                return best
        elif guess == most:
            raise _out_of_reach(wanted, most, error, found, limited=at_most is not None)
        else:
            low = guess
        if best is not None and low >= CLOSE * high:
            return best
        tried += 1
        wish = float(guess) * min(max(error / (AIM * target), 1 / FACTOR), FACTOR)
        if best is not None and not low:
            wish = min(wish, SMALLER * high)
        elif best is not None and (tried % 3 == 0 or not low < CLOSE * wish < CLOSE**2 * high):
            wish = math.sqrt(low * high)
        guess = min(max(_rounded(wish), SMALLEST_EPSILON), high)


def _out_of_reach(
    wanted: Accuracy, most: Fraction, error: float, found: Plan | PlanError, *, limited: bool
) -> PlanError | BudgetExceeded:
    if isinstance(found, PlanError):
        return found
    reached = shown(_rounded(error))
    fix = f"Say {wanted.key}={reached} or more"
    if limited:
        rule = f"cannot be reached with what remains of the budget: epsilon {shown(most)} reaches {reached}"
        fix = f"{fix}, or grant more budget. Nothing was charged."
        return BudgetExceeded(rule, key=wanted.key, given=wanted.error, fix=fix)
    rule = f"cannot be reached: the largest epsilon, {shown(most)}, reaches {reached}"
    return PlanError(rule, key=wanted.key, given=wanted.error, fix=f"{fix}.")


def _rounded(number: float) -> Fraction:
    """Return the next decimal of four digits that is not smaller."""
    return Fraction(_FOUR_DIGITS.create_decimal(Decimal(number)))

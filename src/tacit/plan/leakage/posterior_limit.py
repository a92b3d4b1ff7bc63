"""A limit on how sure any outcome may make a coalition, checked: what can be planned, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.dependence.dependence import Dependence
from tacit.errors import PlanError, word_or_kind
from tacit.plan.leakage.measures.posterior_terms import PosteriorLimit
from tacit.plan.leakage.setting import LeakageSetting


@dataclass(frozen=True)
class Sure:
    """The largest probability that outcomes may give, and what each coalition could see."""

    most: float
    each: Sequence[PosteriorLimit]

    def excess(self, over: Sequence[int], u: Floats) -> Floats:
        """Return by how much the surest outcome of some coalitions, by place, is above it, at rows of probabilities."""
        found: Floats = np.max([self.each[at].at(u) for at in over], axis=0) - self.most
        return found


def checked_posterior(given: Any, setting: LeakageSetting, dependence: Dependence, *, drift: float) -> Sure | None:
    """Return the limit, None if there is none, or refuse one that cannot be planned or kept."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise PlanError("must be a probability", key="posterior", given=word_or_kind(given), fix="For instance 0.9.")
    if not setting.joint:
        raise PlanError(
            "can only be planned for coalitions: it is about outcomes that somebody sees together",
            key="posterior",
            given=given,
            fix="Say who pools what they see: coalitions=[[..]]. An application alone is a coalition too.",
        )
    if drift:
        raise PlanError(
            "cannot be planned together with a drift: rare outcomes may move by any amount with the dependence",
            key="posterior",
            given=given,
            fix="Leave drift out, and ask plan.holds_for(..) after a change.",
        )
    before = largest_posterior(setting, dependence, np.zeros(len(setting.lines)))
    if before > given:
        raise PlanError(
            f"must be at least {before:.4g}: so likely an attribute is sensitive before anything is shown",
            key="posterior",
            given=given,
            fix="Choose a larger one, or protect values that are rarer.",
        )
    return Sure(float(given), setting.posterior_limits(dependence))


def largest_posterior(setting: LeakageSetting, dependence: Dependence, u: Floats) -> float:
    """Return how sure the surest outcome makes any coalition, by going through all of them."""
    return max(float(limit.at(u[None])[0]) for limit in setting.posterior_limits(dependence))

"""Where two suppressions cancel each other, and where they reinforce each other.

The odds that the target is sensitive, as a function of w = exp(-n epsilon) of one suppressed attribute, are
(a + b w) / (c + d w): a and b come from records where both are sensitive and where only the target is, c and d from the
other records. They equal the prior odds at one w at most, found by dividing. The published equation
f_1(epsilon_i) exp(epsilon_j) = 1 is the case of two attributes; this one holds beside any suppressions and releases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tacit.dependence.suppression import Suppression, questions_of
from tacit.errors import PlanError, word_or_kind

_ALIKE = 1e-12  # two shares that differ by less are the same up to rounding


@dataclass(frozen=True)
class Cancellation:
    """How the suppression of one attribute and the suppression of the target work together, on the target's odds.

    `factor` is f_1(epsilon_i) exp(epsilon_j), at the epsilons in force. `target_epsilon` and `seen_epsilon` are what
    one of the two would have to be, the other left as it is, for the factor to be one; None where nothing does it.
    """

    seen: str
    target: str
    effect: Literal["cancel", "reinforce", "nothing"]
    factor: float
    target_epsilon: float | None
    seen_epsilon: float | None

    def __str__(self) -> str:
        verb = {
            "cancel": "works against",
            "reinforce": "reinforces",
            "nothing": "says nothing beside",
        }[self.effect]
        said = f"suppressed {self.seen} {verb} suppressed {self.target}: odds times {self.factor:.4g}"
        for name, epsilon in ((self.target, self.target_epsilon), (self.seen, self.seen_epsilon)):
            said += f"; they cancel at epsilon {epsilon:.4g} of {name}" if epsilon is not None else ""
        return said


def cancellations(release: Suppression) -> Iterator[Cancellation]:
    """Yield how two suppressions work together, for every pair of attributes whose second may be sensitive or not."""
    for target, target_epsilon in release.epsilon.items():
        hidden = release.is_sensitive(target)
        share = release.dependence.marginal(target)[hidden].sum()
        if not 0 < share < 1 or not hidden.any():
            continue
        for seen, seen_epsilon in release.epsilon.items():
            if seen == target:
                continue
            yield _of_two(release, seen, seen_epsilon, target, target_epsilon)


def _of_two(release: Suppression, seen: str, seen_epsilon: float, target: str, target_epsilon: float) -> Cancellation:
    """Return how two suppressions work together: `seen` may be sensitive more or less often where `target` is."""
    joint, hidden = release.dependence.marginal(seen, target), release.is_sensitive(target)
    sensitive = joint[release.is_sensitive(seen)]
    both, own = float(sensitive[:, hidden].sum()), float(joint[:, hidden].sum())
    with_it, without = both / own, (float(sensitive.sum()) - both) / (1 - own)
    if abs(with_it - without) < _ALIKE:
        effect: Literal["cancel", "reinforce", "nothing"] = "nothing"
    else:
        effect = "reinforce" if with_it > without else "cancel"
    stays_in = math.exp(-seen_epsilon)
    above, below = (share * (1 - stays_in) + stays_in for share in (with_it, without))
    alone = above / below if below else 1.0 if not above else math.inf  # of `seen`, on the target's odds
    if target_epsilon < 700:
        factor, slope = alone * math.exp(target_epsilon), without - with_it * math.exp(target_epsilon)
    else:  # beyond, exp(epsilon) is no number, and nothing in the data cancels it
        factor, slope = math.inf, -math.inf
    cancels = effect == "cancel"
    return Cancellation(
        seen,
        target,
        effect,
        factor,
        -math.log(alone) if cancels and 0 < alone < 1 else None,
        # (with_it (E - 1) + 1) exp(epsilon of target) = without (E - 1) + 1, with E = exp(epsilon of seen)
        math.log1p(math.expm1(target_epsilon) / slope) if cancels and slope > 0 and target_epsilon > 0 else None,
    )


def cancelling_epsilon(
    release: Suppression, target: str, vary: str, *, suppressed: Any = None, released: Any = None
) -> float | None:
    """Return the epsilon of one suppressed attribute at which all that was seen leaves the target's odds as they were.

    None where no epsilon does.
    """
    times = questions_of(suppressed, key="suppressed")
    if not isinstance(vary, str) or vary not in times:
        raise PlanError(
            "must be a suppressed attribute", key="vary", given=word_or_kind(vary), fix="Add it to suppressed."
        )
    questions = min(times.pop(vary), 1) if release.coins == "remembered" else times.pop(vary)
    prior = release.log_odds(target)
    if math.isinf(prior):
        raise PlanError("must have odds before anything is seen", key="target", given=target, fix="Take another one.")
    names = [target] if vary == target else [target, vary]
    logs = release.log_joint(names, suppressed=times, released=released)
    weights = np.exp(logs - logs.max())
    hidden, varied = release.is_sensitive(target), release.is_sensitive(vary)
    table = np.diag(weights) if vary == target else weights
    a, b = table[np.ix_(hidden, varied)].sum(), table[np.ix_(hidden, ~varied)].sum()
    c, d = table[np.ix_(~hidden, varied)].sum(), table[np.ix_(~hidden, ~varied)].sum()
    odds = math.exp(prior)
    above, below = a - odds * c, odds * d - b  # a + b w = odds (c + d w)
    if abs(below) <= _ALIKE * (odds * d + b):
        return None  # this attribute's coin moves nothing
    found = above / below
    return float(-math.log(found) / questions) if 0 < found <= 1 else None

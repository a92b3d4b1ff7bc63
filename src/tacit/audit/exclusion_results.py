"""What an exclusion audit finds: the worst outcome, freedom from attacks, what coalitions learn, and what cancels.

The odds that the target is sensitive, as a function of w = exp(-n epsilon) of one suppressed attribute, are
(a + b w) / (c + d w): a and b come from records where both are sensitive and where only the target is, c and d from the
other records. They equal the prior odds at one w at most, found by dividing. The published equation
f_1(epsilon_i) exp(epsilon_j) = 1 is the case of two attributes; this one holds beside any suppressions and releases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from tacit.dependence.nearby import Around
from tacit.dependence.suppression import NOTHING, SOME_VALUE, Suppression, questions_of
from tacit.drawing import Held
from tacit.errors import PlanError, word_or_kind


@dataclass(frozen=True, repr=False)
class WorstOutcome(Held):
    """What could be seen that raises the odds of an attribute being sensitive most.

    `outcome` has for each attribute seen the value shown, or None where it was suppressed; `chance` is how often it
    comes out. `prior` and `posterior` are the probabilities of being sensitive, `factor` is by how much the odds rise.
    """

    attribute: str
    outcome: Mapping[str, Any]
    chance: float
    prior: float
    posterior: float
    factor: float

    def __str__(self) -> str:
        return (
            f"{self.attribute} is sensitive with probability {self.posterior:.4g} instead of {self.prior:.4g} "
            f"(odds times {self.factor:.4g}) after {in_words(self.outcome)}, which has probability {self.chance:.4g}"
        )


@dataclass(frozen=True, repr=False)
class LeakBounds(Held):
    """What everything seen tells about an attribute: the least and the largest that it can be, equal if it is exact.

    `information` in nats, of `entropy` in all; `posterior` is how sure the surest outcome makes that the attribute is
    sensitive, `prior` how likely that was before; `freedom` is the smallest epsilon of freedom from exclusion attacks.
    """

    attribute: str
    around: Around
    information: tuple[float, float]
    entropy: float
    posterior: tuple[float, float]
    prior: float
    freedom: tuple[float, float]

    @property
    def is_exact(self) -> bool:
        """Whether all outcomes were gone through."""
        return not self.around.border

    def __str__(self) -> str:
        told, sure, free = (_range(*ends) for ends in (self.information, self.posterior, self.freedom))
        found = (
            f"{self.attribute}: what is seen tells {told} of {self.entropy:.4g} nats; at worst it is sensitive with "
            f"probability {sure} instead of {self.prior:.4g}; free from exclusion attacks at epsilon {free}"
        )
        if self.is_exact:
            return found
        border = self.around.border
        listed = ", ".join(border[:6]) + (f" and {len(border) - 6} more" if len(border) > 6 else "")
        return (
            f"{found}. These are bounds: the smaller numbers leave out what is seen beyond {listed}, and the larger "
            "ones take these for known"
        )


def _range(least: float, most: float) -> str:
    low, high = f"{least:.4g}", f"{most:.4g}"
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True, repr=False)
class Freedom(Held):
    """The smallest epsilon at which a release is free from exclusion attacks, and what needs it.

    `hidden` is a sensitive value of the attribute and `cover` another value; no outcome raises the odds of any such
    pair by more than exp(level). It is infinite where something that can be seen rules a value out.
    """

    level: float
    attribute: str | None
    hidden: Any
    cover: Any
    outcome: Mapping[str, Any]

    @property
    def is_free(self) -> bool:
        """Whether there is freedom from exclusion attacks at any epsilon at all."""
        return self.level < math.inf

    def __str__(self) -> str:
        if self.attribute is None:
            return "nothing that can be seen raises the odds of a sensitive value"
        pair = f"{self.attribute} {self.hidden!r} against {self.cover!r}, after {in_words(self.outcome)}"
        if not self.is_free:
            return f"not free from exclusion attacks at any epsilon: {pair}, which rules {self.cover!r} out"
        return f"free from exclusion attacks at epsilon {self.level:.6g}: worst for {pair}"


@dataclass(frozen=True)
class LeakRow:
    """What one application or coalition learns about one attribute. Information is in nats."""

    who: tuple[str, ...]
    attribute: str
    prior: float
    worst: WorstOutcome
    bit: float
    value: float
    entropy: float
    freedom: float


@dataclass(frozen=True, repr=False)
class LeakReport(Held):
    """What every application and every coalition learns about every attribute that has sensitive values.

    `marks` stand first wherever it is printed: that its dependence was counted on the private rows.
    """

    rows: tuple[LeakRow, ...]
    marks: tuple[str, ...] = ()

    @property
    def unprotected(self) -> bool:
        """Whether it follows from private rows that nobody paid for."""
        return bool(self.marks)

    @property
    def frame(self) -> pd.DataFrame:
        """The rows, as a pandas frame; with a column `unprotected` where it is for nobody else to see."""
        return pd.DataFrame(
            {
                **({"unprotected": [True] * len(self.rows)} if self.unprotected else {}),
                "who": [" + ".join(row.who) for row in self.rows],
                "attribute": [row.attribute for row in self.rows],
                "prior": [row.prior for row in self.rows],
                "worst posterior": [row.worst.posterior for row in self.rows],
                "after": [in_words(row.worst.outcome) for row in self.rows],
                "odds times": [row.worst.factor for row in self.rows],
                "information of the bit": [row.bit for row in self.rows],
                "information of the value": [row.value for row in self.rows],
                "of at most": [row.entropy for row in self.rows],
                "free at epsilon": [row.freedom for row in self.rows],
            }
        )

    def __str__(self) -> str:
        lines = list(self.marks)
        for row in self.rows:
            free = f"free at epsilon {row.freedom:.4g}" if row.freedom < math.inf else "not free at any epsilon"
            lines.append(
                f"{' + '.join(row.who)}, {row.attribute}: sensitive with probability {row.prior:.4g}, at worst "
                f"{row.worst.posterior:.4g} after {in_words(row.worst.outcome)}; "
                f"{row.value:.4g} of {row.entropy:.4g} nats ({row.bit:.4g} of the bit alone); {free}"
            )
        return "\n".join(lines)


def in_words(outcome: Mapping[str, Any]) -> str:
    """Return an outcome in words."""
    parts = []
    for name, shown in outcome.items():
        parts.append(
            f"{name} suppressed" if shown is NOTHING else f"{name} {'released' if shown is SOME_VALUE else shown}"
        )
    return ", ".join(parts) or "nothing"


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
        verb = {"cancel": "works against", "reinforce": "reinforces", "nothing": "says nothing beside"}[self.effect]
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

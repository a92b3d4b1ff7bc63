"""The published formulas for two yes/no attributes, as they stand in the paper, for tests and for its reproduction.

`seen` is attribute i, `target` attribute j; X = 0 means sensitive and M = 0 suppressed. All of them follow from the
general computation in `suppression` and `information`, and agree with it to rounding. Three remarks. A release shows
its value, and `released` asks only whether there was one, so that with several values it understates the leak. The
factors of several attributes do not multiply unless these are independent given the target. And the paper's remark on
when a release works against a suppression has its sign turned: `released` is below one where delta_1 is above delta_2.

Reference   Lee and Smith, Privacy Leakage over Dependent Attributes in One-Sided Differential Privacy: Lemma 1,
            Theorems 1 to 4, Corollary 1, and section V.C.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.dependence.suppression import Suppression
from tacit.errors import PlanError


@dataclass(frozen=True)
class BitPair:
    """What the formulas ask about two attributes: how often each is sensitive, and how often together.

    `seen_share` and `target_share` are P(X_i = 0) and P(X_j = 0); `delta_1` and `delta_2` are P(X_i = 0 | X_j = 0) and
    P(X_i = 0 | X_j = 1).
    """

    seen_share: float
    target_share: float
    delta_1: float
    delta_2: float

    @property
    def prior_odds(self) -> float:
        """P(X_j = 0) / P(X_j = 1)."""
        return self.target_share / (1 - self.target_share)

    def given_the_bit(self, *, is_sensitive: bool) -> float:
        """Return P(X_j = 0 | X_i), which Lemma 1 says is P(X_j = 0 | X_i, M_i) for whatever M_i."""
        ours, others = (self.delta_1, self.delta_2) if is_sensitive else (1 - self.delta_1, 1 - self.delta_2)
        share = ours * self.target_share
        return share / (share + others * (1 - self.target_share))

    def suppressed(self, epsilon: float, questions: int = 1) -> float:
        """Return f_1, by which the odds of X_j change when i is suppressed: Theorem 2, Corollary 1."""
        stays_in = math.exp(-epsilon * questions)  # the formula, divided by exp(n epsilon): finite for any epsilon
        above = self.delta_1 * (1 - stays_in) + stays_in
        below = self.delta_2 * (1 - stays_in) + stays_in
        return above / below if below else 1.0 if not above else math.inf

    def released(self) -> float:
        """Return f_2, by which the odds of X_j change when i is released: Theorem 3."""
        above, below = 1 - self.delta_1, 1 - self.delta_2
        return above / below if below else math.inf

    def both_suppressed(self, seen_epsilon: float, target_epsilon: float) -> float:
        """Return f_1 exp(epsilon_j): both are suppressed, and the two applications talk. Theorem 4."""
        return self.suppressed(seen_epsilon) * own_suppression(target_epsilon)

    def released_and_suppressed(self, target_epsilon: float) -> float:
        """Return f_2 exp(epsilon_j): i is released, j suppressed. Theorem 4."""
        return self.released() * own_suppression(target_epsilon)

    def cancelling_target_epsilon(self, seen_epsilon: float) -> float | None:
        """Return the epsilon_j with f_1(epsilon_i) exp(epsilon_j) = 1, if there is one."""
        found = -math.log(self.suppressed(seen_epsilon)) if self.suppressed(seen_epsilon) else math.inf
        return found if 0 < found < math.inf else None

    def information(self, epsilon: float) -> float:
        """Return I(X_j; M_i), in nats."""
        suppressed = self.seen_share + math.exp(-epsilon) * (1 - self.seen_share)
        afterwards = [
            (self.suppressed(epsilon), suppressed),
            (self.released(), -math.expm1(-epsilon) * (1 - self.seen_share)),
        ]
        left = sum(binary_entropy(_share(factor * self.prior_odds)) * chance for factor, chance in afterwards if chance)
        return binary_entropy(self.target_share) - left


def own_suppression(epsilon: float, questions: int = 1) -> float:
    """Return exp(n epsilon), by which the odds of X_i change when i itself is suppressed n times: Theorem 1."""
    return math.exp(epsilon * questions)


def own_information(share: float, epsilon: float) -> float:
    """Return I(X_i; M_i), in nats, where P(X_i = 0) is `share`."""
    suppressed = share + math.exp(-epsilon) * (1 - share)
    return binary_entropy(share) - binary_entropy(share / suppressed) * suppressed


def binary_entropy(share: float) -> float:
    """Return the entropy of a coin, in nats."""
    return -sum(part * math.log(part) for part in (share, 1 - share) if part > 0)


def bit_pair(release: Suppression, seen: str, target: str) -> BitPair:
    """Return what the formulas ask about two attributes of a dependence, values taken together by their bits."""
    joint = release.dependence.marginal(seen, target)
    rows, columns = release.is_sensitive(seen), release.is_sensitive(target)
    both = float(joint[np.ix_(rows, columns)].sum())
    share, own = float(joint[rows].sum()), float(joint[:, columns].sum())
    if not 0 < own < 1:
        raise PlanError(
            "must have both sensitive and other values that are possible",
            key=target,
            given=float(f"{own:.6g}"),
            fix="Choose an attribute that may or may not be sensitive.",
        )
    return BitPair(share, own, both / own, (share - both) / (1 - own))


def _share(odds: float) -> float:
    return odds / (1 + odds) if odds < math.inf else 1.0

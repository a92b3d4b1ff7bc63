"""Randomised response of single people, who need trust nobody: Warner's and Mangat's, for a yes/no secret.

Guarantee   For one person's answer, where yes is the secret: for every set O of answers,
            Pr[M(yes) in O] <= exp(epsilon) * Pr[M(no) in O]; under Warner's also with yes and no exchanged.
Assumes     People follow the rule and draw their own coins; here they are drawn for tests, simulations and for those
            who hold true answers and want to give them away.
Why         Warner: a lie with probability 1 / (1 + exp(epsilon)), so that each answer is exp(epsilon) times as likely
            when it is true. Mangat: whoever has the secret says yes, the others say yes with probability exp(-epsilon):
            yes is exp(epsilon) times as likely with the secret, and no is impossible with it, which the promise allows.
            If n people answer and a share p has the secret, yes has probability lie + p (1 - 2 lie) (Warner) or
            p + (1 - p) lie (Mangat); solved for p this is unbiased. Intervals: of the share of yes by Clopper and
            Pearson, turned into ends for p, which is a rising function of it.
            Lies are drawn exactly: 1 / (1 + exp(epsilon)) is the chance that of the coins of chance exp(-epsilon) and
            1/2, tossed until one decides, the first decides (a Bernoulli factory): with x = exp(-epsilon), each round
            gives a lie with x / 2, the truth with 1 / 2, and else goes on; x / (1 + x) in all.
Reference   Warner, Randomized response, 1965. Mangat, An improved randomized response strategy, 1994.
Checked by  tests/statistical/test_local.py
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import betaincinv

from tacit.amounts import as_epsilon, shown
from tacit.arrays import Bools
from tacit.errors import PlanError
from tacit.noise.draws import bernoulli
from tacit.noise.kept_coins import tossed


@dataclass(frozen=True)
class People:
    """About how many people have the secret: an unbiased estimate, and an interval that holds the true number."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True)
class RandomisedResponse(ABC):
    """How one person answers a yes/no question. `epsilon` is what the answer costs."""

    epsilon: Fraction

    @property
    @abstractmethod
    def lie(self) -> float:
        """The probability that somebody who may lie does."""

    @abstractmethod
    def answers(self, truths: Sequence[bool] | Bools) -> Bools:
        """Return what people with these true answers say."""

    @abstractmethod
    def law(self, truth: bool) -> dict[bool, float]:  # noqa: FBT001
        """Return how likely each answer of somebody with this true answer is."""

    def __str__(self) -> str:
        return f"{type(self).__name__.lower()}(epsilon {shown(self.epsilon)})"

    def estimate(self, yes: int, *, people: int, level: float = 0.95) -> People:
        """Estimate how many of these people have the secret, from how many said yes."""
        if not 0 <= yes <= people or not people or not 0 < level < 1:
            rule = "must be from 0 to the number of people, and the level between 0 and 1"
            raise PlanError(rule, key="estimate", given=yes, fix="Count who said yes.")
        tail = (1 - level) / 2
        low = 0.0 if not yes else float(betaincinv(yes, people - yes + 1, tail))
        high = 1.0 if yes == people else float(betaincinv(yes + 1, people - yes, 1 - tail))
        without, having = self.law(truth=False)[True], self.law(truth=True)[True]

        def with_secret(share: float) -> float:
            return people * (share - without) / (having - without)

        value = with_secret(yes / people)
        lower, upper = (min(max(with_secret(end), 0.0), float(people)) for end in (low, high))
        return People(value, min(lower, value), max(upper, value))

    def deviation(self, having: int, *, people: int) -> float:
        """Return the standard deviation of the estimate where this number of people have the secret."""
        no, yes = self.law(truth=False)[True], self.law(truth=True)[True]
        variance = having * yes * (1 - yes) + (people - having) * no * (1 - no)
        return math.sqrt(variance) / (yes - no)


@dataclass(frozen=True)
class Warner(RandomisedResponse):
    """Everybody lies with probability 1 / (1 + exp(epsilon))."""

    @property
    def lie(self) -> float:
        return 1 / (1 + math.exp(float(self.epsilon)))

    def law(self, truth: bool) -> dict[bool, float]:  # noqa: FBT001
        return {truth: 1 - self.lie, not truth: self.lie}

    def answers(self, truths: Sequence[bool] | Bools) -> Bools:
        truth = _truths(truths)
        lies, waiting = np.zeros(len(truth), dtype=np.bool_), np.arange(len(truth))
        while len(waiting):
            first = bernoulli(Fraction(1, 2), len(waiting))  # which of the two coins is looked at
            lost = ~tossed(self.epsilon, len(waiting))  # with probability exp(-epsilon)
            lies[waiting[first & lost]] = True
            waiting = waiting[first & ~lost]
        return np.asarray(truth ^ lies)


@dataclass(frozen=True)
class Mangat(RandomisedResponse):
    """Whoever has the secret says yes; the others say yes with probability exp(-epsilon)."""

    @property
    def lie(self) -> float:
        return math.exp(-float(self.epsilon))

    def law(self, truth: bool) -> dict[bool, float]:  # noqa: FBT001
        return {True: 1.0, False: 0.0} if truth else {True: self.lie, False: 1 - self.lie}

    def answers(self, truths: Sequence[bool] | Bools) -> Bools:
        truth = _truths(truths)
        return np.asarray(truth | ~tossed(self.epsilon, len(truth)))


def warner(epsilon: Any) -> Warner:
    """Return Warner's randomised response at this epsilon."""
    return Warner(as_epsilon(epsilon))


def mangat(epsilon: Any) -> Mangat:
    """Return Mangat's randomised response at this epsilon."""
    return Mangat(as_epsilon(epsilon))


def __dir__() -> list[str]:
    return ["mangat", "warner"]


def _truths(given: Sequence[bool] | Bools) -> Bools:
    found = np.asarray(given)
    if found.dtype != np.bool_ or found.ndim != 1:
        raise PlanError("must be a list of True and False", key="truths", fix="Say who has the secret.")
    return found

"""Many runs of mechanisms on the counts of an ordered attribute: how far off range counts are.

What is measured of ours is the mechanism of a release: the plan for all ranges, measured and inferred as a session
does it, without opening rows or charging a budget.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit.plan.choose import choose
from tacit.plan.questions import cumulative, ranges
from tacit.policy.attributes import Integers
from tacit.policy.domain import Domain
from tacit.policy.knowledge import size
from tacit.policy.policy import Policy
from tacit.policy.secrets import everything, within
from tacit.release.estimate.infer import infer
from tacit.release.estimate.measure import measure
from tacit.release.estimate.projections import increasing
from tacit_reproductions.measured import Number

IntArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_VALUE = "value"


@dataclass(frozen=True)
class RangeErrors:
    """The mean squared error of ranges: as measured, and after running counts were made not to fall.

    `how` says in words how it was done, where there was a choice.
    """

    raw: Number
    rising: Number
    how: str = ""


@dataclass(frozen=True, eq=False)
class Asked:
    """Ranges from one of the numbers 0, 1, .. to another, drawn once for all mechanisms."""

    low: IntArray
    high: IntArray

    @classmethod
    def drawn(cls, values: int, many: int) -> Asked:
        """Draw ranges, each as likely as any other."""
        # a range is a pair of different running counts, of 0, 1, .., `values` values
        at = noise.uniform_below(values * (values + 1) // 2, many)
        high = ((np.sqrt(8.0 * at + 1) - 1) // 2).astype(np.int64)
        high += (high + 1) * (high + 2) // 2 <= at
        high -= high * (high + 1) // 2 > at
        return cls(at - high * (high + 1) // 2, high + 1)

    def mean_squares(self, error: npt.NDArray[Any]) -> Floats:
        """Return the mean squared error of the ranges in each run, from the errors of all running counts."""
        off = (error[:, self.high] - error[:, self.low]).astype(np.float64)
        return np.asarray((off**2).mean(axis=1))


def scored(asked: Asked, running: IntArray, error: npt.NDArray[Any], how: str = "") -> RangeErrors:
    """Compare noisy running counts (of 0, 1, .. values; a line for each run) with the truth, also made to rise."""
    last = np.zeros(len(running) - 1, dtype=np.bool_)
    last[-1] = True
    rising = np.stack([increasing((running + line)[1:], last, running[-1:].astype(np.float64)) for line in error * 1.0])
    after = np.concatenate([np.zeros((len(error), 1)), rising - running[1:]], axis=1)
    return RangeErrors(Number.mean(asked.mean_squares(error)), Number.mean(asked.mean_squares(after)), how)


def line_policy(values: int, theta: int) -> Policy:
    """Return the policy of the paper: values up to theta apart look alike, and everybody knows how many people.

    Where theta reaches over the whole line this is plain differential privacy.
    """
    secret = within(theta, _VALUE) if theta < values - 1 else everything()
    return Policy(Domain({_VALUE: Integers(0, values - 1)}), secret, [size()])


def our_noise(counts: IntArray, theta: int, epsilon: Fraction, runs: int) -> tuple[Floats, str]:
    """Draw the errors of running counts as our plan for all ranges has them, and say how it does it.

    The running counts that answers are read off are themselves the answers of `cumulative`.
    """
    policy = line_policy(len(counts), theta)
    plan: Any = choose(ranges(_VALUE, "all"), policy, epsilon)
    line = cumulative(_VALUE)
    asked = replace(plan, query=plan.base if plan.base == line else line, answers=len(counts))
    truth = plan.base.answers([counts], policy.domain)
    values = np.stack([infer(measure(asked, truth)).values for _ in range(runs)])
    return np.concatenate([np.zeros((runs, 1)), values - np.cumsum(counts)], axis=1), plan.strategy

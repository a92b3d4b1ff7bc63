"""What document 002 says about errors (sections 1, 2.2, 5.1, 5.2) and about answers that are never wrong (Theorem 8).

Everything here is computed from the laws of the noise, nothing is drawn. Errors are given in units of 1/epsilon, for
small epsilon, where whole-number noise and the paper's real-valued noise agree to three digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from tacit.noise.two_scale import TwoScale
from tacit.papers.results import Claim, judged
from tacit.papers.trials import items_policy
from tacit.plan.queries import below
from tacit.plan.verdicts import plan_below

SMALL: Final = Fraction(1, 100)  # epsilon
_REACH: Final = 50  # scales; beyond lies less than 1e-20
_SAME: Final = 0.002  # of 1/epsilon: what rounding to whole numbers may change
ROOT_TWO: Final = math.sqrt(2)
FAILURE: Final = Fraction(1, 1000)  # the delta of Theorem 8's rows
STEPS: Final = (1, 2, 3, 4, 5, 6, 7, 8)


@dataclass(frozen=True)
class Errors:
    """How wrong a noisy count is on average, times epsilon: in absolute value, and as a root mean square."""

    absolute: float
    rms: float

    @classmethod
    def of(cls, law: TwoScale, *, less: float, epsilon: Fraction = SMALL) -> Errors:
        """Return the errors of an estimate: a count with this noise, less a public number."""
        far = _REACH * math.ceil(max(law.right, law.left))
        drawn = np.arange(-far if law.left else 0, far + 1 if law.right else 1)
        chances, off = law.pmf(drawn), drawn - less
        return cls(float(epsilon) * float(chances @ np.abs(off)), float(epsilon) * math.sqrt(float(chances @ off**2)))


def laplace(scale: Fraction = 1 / SMALL) -> Errors:
    """Return the errors of two-sided noise of this scale."""
    return Errors.of(TwoScale(scale, scale), less=0.0)


def one_sided(scale: Fraction = 1 / SMALL) -> Errors:
    """Return the errors of one-sided noise, less its mean."""
    law = TwoScale(scale, Fraction(0))
    return Errors.of(law, less=law.mean())


def one_sided_median(scale: Fraction = 1 / SMALL) -> Errors:
    """Return the errors of one-sided noise, less its median: the least absolute error of all shifts."""
    return Errors.of(TwoScale(scale, Fraction(0)), less=round(math.log(2) * float(scale)))


def most_certain(steps: int, epsilon: float, delta: float) -> float:
    """Return how often the best (epsilon, delta)-private mechanism can say "certainly yes" so far from a "no".

    Let p_j be the chance of saying so j changes away from the nearest data set with the answer no: p_0 = 0. Neighbours
    bound p_j by e^epsilon p_{j-1} + delta, and 1 - p_{j-1} by e^epsilon (1 - p_j) + delta. Both grow with p_{j-1}, so
    taking the largest p_j at every step is best; a chain of data sets attains it.
    """
    best, factor = 0.0, math.exp(epsilon)
    for _ in range(steps):
        best = min(factor * best + delta, 1 - (1 - best - delta) / factor, 1.0)
    return best


def bound_of_theorem_8(steps: int, epsilon: float, delta: float) -> float:
    """Return the printed bound: delta times the sum of e^((i - 1) epsilon) over i = 1, .., steps."""
    return delta * sum(math.exp((i - 1) * epsilon) for i in range(1, steps + 1))


def certain_under_asymmetry(steps: int, epsilon: Fraction) -> float:
    """Return how often ours says "certainly below" of a count that is so far under the threshold."""
    query, policy = below(item=("item", 0), threshold=steps), items_policy(1)
    return plan_below(query, policy, epsilon).chance(steps)


def error_claims() -> list[Claim]:
    """Return what the paper says about errors, as expected absolute values, beside the laws."""
    two, one, median = laplace(), one_sided(), one_sided_median()
    doubled = laplace(2 / SMALL)
    bias = abs(TwoScale(1 / SMALL, Fraction(0)).mean() * float(SMALL) - 1) < 1e-2
    ratio = one.rms / doubled.rms
    return [
        Claim(
            "section 2.2, Theorem 3",
            "mean absolute error of a count under differential privacy",
            "at least 1.414/epsilon, which the Laplace mechanism has",
            f"Laplace {two.absolute:.3f}/epsilon; root mean square {two.rms:.3f}/epsilon",
            *judged([two.absolute >= ROOT_TWO - _SAME, abs(two.rms - ROOT_TWO) < _SAME], why=_MIXED),
        ),
        Claim(
            "section 1",
            "mean absolute error of a count under asymmetric DP",
            "1/epsilon instead of 1.414/epsilon",
            f"{one.absolute:.3f}/epsilon instead of {two.absolute:.3f}/epsilon ({median.absolute:.3f} less its "
            f"median); root mean squares {one.rms:.3f} and {two.rms:.3f}",
            *judged([abs(one.absolute - 1) < _SAME, abs(one.rms - 1) < _SAME], why=_MIXED),
        ),
        Claim(
            "section 5.1",
            "variance of one-sided noise, and its estimator",
            "1/epsilon^2, half of Laplace's; unbiased less 1/epsilon",
            f"{one.rms**2:.3f}/epsilon^2 against {two.rms**2:.3f}; the mean of whole-number noise is 1/(e^epsilon - 1)",
            *judged([abs(one.rms**2 - 1) < 2 * _SAME, abs(two.rms**2 - 2) < 4 * _SAME, bias]),
        ),
        Claim(
            "section 5.1, remark",
            "lower bound on mean absolute error under asymmetric DP",
            "0.707/epsilon, which one-sided noise does not reach",
            f"one-sided noise less its median has {median.absolute:.3f}/epsilon",
            *judged([median.absolute >= ROOT_TWO / 2], why="it lies below; for root mean squares 1 is above 0.707"),
        ),
        Claim(
            "section 5.2",
            "error of one-sided noise of scale k/epsilon over Laplace noise of scale 2k/epsilon",
            f"1/(2 sqrt 2) = {1 / (2 * ROOT_TWO):.3f} times",
            f"root mean squares {ratio:.3f} times; mean absolute error {one.absolute / doubled.absolute:.3f} times; "
            f"where counts move one way, Laplace noise needs k/epsilon: {one.rms / two.rms:.3f} times",
            *judged([abs(ratio - 1 / (2 * ROOT_TWO)) < _SAME, one.rms / two.rms < 0.4], why=_ONE_WAY),
        ),
    ]


def certainty_claims() -> list[Claim]:
    """Return what the paper says about verdicts that are never wrong: Theorems 8, 9 and 11."""
    delta, epsilon = float(FAILURE), 1.0
    bounds, best = ([f(k, epsilon, delta) for k in STEPS] for f in (bound_of_theorem_8, most_certain))
    attained = max(k for k, bound, most in zip(STEPS, bounds, best, strict=True) if math.isclose(bound, most))
    ours = [certain_under_asymmetry(k, Fraction(1)) for k in STEPS]
    stated = [1 - math.exp(-k) for k in STEPS]
    return [
        Claim(
            "Theorem 8",
            f"chance of a certain yes, (1, {delta:g})-DP, 1 to {STEPS[-1]} changes from a no",
            f"at most {_listed(bounds)}",
            f"best possible {_listed(best)}: the bound itself up to {attained} changes",
            *judged([most <= bound * (1 + 1e-12) for bound, most in zip(bounds, best, strict=True)]),
        ),
        Claim(
            "Theorem 8",
            "the same without delta, and for one change with delta = 1/n",
            "0; 1/n",
            f"{most_certain(8, epsilon, 0.0):g} for 8 changes; {most_certain(1, epsilon, 1e-4):g} for n = 10,000",
            *judged([most_certain(8, epsilon, 0.0) == 0, math.isclose(most_certain(1, epsilon, 1e-4), 1e-4)]),
        ),
        Claim(
            "Theorems 9, 11",
            f"the same under asymmetric DP, epsilon 1, 1 to {STEPS[-1]} changes",
            f"at most {_listed(stated)}, attained",
            f"`below`: {_listed(ours)}",
            *judged([math.isclose(a, b, rel_tol=1e-9) for a, b in zip(stated, ours, strict=True)]),
        ),
    ]


_MIXED: Final = "true of root mean squares, not of mean absolute error, which the paper defines"
_ONE_WAY: Final = "for noise; for counts that only move one way the other side needs half of it, too"


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.3g}" for number in numbers)

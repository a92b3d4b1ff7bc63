"""What document 002 says about errors (sections 1, 2.2, 5.1, 5.2), certain answers and privacy (Theorems 8 to 15).

Errors and chances are computed from the laws of the noise, and privacy is audited by drawing. Errors are given in units
of 1/epsilon, for small epsilon, where whole-number noise and the paper's real-valued noise agree to three digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tacit.audit import sampled
from tacit.audit.selfcheck.planted import planted
from tacit.audit.selfcheck.planted.planted_leak import Release
from tacit.noise.two_scale import TwoScale
from tacit.plan.plans.thresholds import plan_below
from tacit.plan.questions import below
from tacit_reproductions.document_002.trials import items_policy
from tacit_reproductions.results import Claim, check, same

SMALL: Final = Fraction(1, 100)  # epsilon
_REACH: Final = 50  # scales; beyond lies less than 1e-20
_SAME: Final = 0.002  # of 1/epsilon: what rounding to whole numbers may change
ROOT_TWO: Final = math.sqrt(2)
FAILURE: Final = Fraction(1, 1000)  # the delta of Theorem 8's rows
STEPS: Final = (1, 2, 3, 4, 5, 6, 7, 8)
LAW: Final = "the law of whole-number noise at epsilon 0.01; no data"
ALPHA: Final = 1e-6


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
    mean = TwoScale(1 / SMALL, Fraction(0)).mean() * float(SMALL)
    ratio = one.rms / doubled.rms
    return [
        Claim(
            "section 2.2, Theorem 3",
            "mean absolute error of a count under differential privacy",
            LAW,
            "at least 1.414/epsilon, which the Laplace mechanism has",
            f"Laplace {two.absolute:.3f}/epsilon; root mean square {two.rms:.3f}/epsilon",
            (
                check("mean absolute error", two.absolute, "at least", ROOT_TWO - _SAME),
                same("root mean square", two.rms, ROOT_TWO, _SAME),
            ),
            _MIXED,
        ),
        Claim(
            "section 1",
            "mean absolute error of a count under asymmetric DP",
            LAW,
            "1/epsilon instead of 1.414/epsilon",
            f"{one.absolute:.3f}/epsilon instead of {two.absolute:.3f}/epsilon ({median.absolute:.3f} less its "
            f"median); root mean squares {one.rms:.3f} and {two.rms:.3f}",
            (same("mean absolute error", one.absolute, 1, _SAME), same("root mean square", one.rms, 1, _SAME)),
            _MIXED,
        ),
        Claim(
            "section 5.1",
            "variance of one-sided noise, and its estimator",
            LAW,
            "1/epsilon^2, half of Laplace's; unbiased less 1/epsilon",
            f"{one.rms**2:.3f}/epsilon^2 against {two.rms**2:.3f}; the mean of whole-number noise is 1/(e^epsilon - 1)",
            (
                same("variances", (one.rms**2, two.rms**2), (1, 2), 4 * _SAME),
                same("mean of one-sided noise times epsilon", mean, 1, 0.01),
            ),
        ),
        Claim(
            "section 5.1, remark",
            "lower bound on mean absolute error under asymmetric DP",
            LAW,
            "0.707/epsilon, which one-sided noise does not reach",
            f"one-sided noise less its median has {median.absolute:.3f}/epsilon",
            (check("mean absolute error less the median", median.absolute, "at least", ROOT_TWO / 2),),
            "it lies below; for root mean squares 1 is above 0.707",
        ),
        Claim(
            "section 5.2",
            "error of one-sided noise of scale k/epsilon over Laplace noise of scale 2k/epsilon",
            LAW,
            f"1/(2 sqrt 2) = {1 / (2 * ROOT_TWO):.3f} times",
            f"root mean squares {ratio:.3f} times; mean absolute error {one.absolute / doubled.absolute:.3f} times; "
            f"where counts move one way, Laplace noise needs k/epsilon: {one.rms / two.rms:.3f} times",
            (
                same("root mean squares of the noises", ratio, 1 / (2 * ROOT_TWO), _SAME),
                same("the same where counts move one way", one.rms / two.rms, 1 / (2 * ROOT_TWO), _SAME),
            ),
            _ONE_WAY,
        ),
    ]


def certainty_claims() -> list[Claim]:
    """Return what the paper says about verdicts that are never wrong: Theorems 8, 9 and 11."""
    way_down = items_policy(1).distance({"item": [0]}, {"item": []})
    way_up = items_policy(1).distance({"item": []}, {"item": [0]})
    delta, epsilon = float(FAILURE), 1.0
    bounds, best = ([f(k, epsilon, delta) for k in STEPS] for f in (bound_of_theorem_8, most_certain))
    attained = max(k for k, bound, most in zip(STEPS, bounds, best, strict=True) if math.isclose(bound, most))
    ours = [certain_under_asymmetry(k, Fraction(1)) for k in STEPS]
    stated = [1 - math.exp(-k) for k in STEPS]
    return [
        Claim(
            "Theorem 8",
            f"chance of a certain yes, (1, {delta:g})-DP, 1 to {STEPS[-1]} changes from a no",
            "the best mechanism on a chain of data sets; no data",
            f"at most {_listed(bounds)}",
            f"best possible {_listed(best)}: the bound itself up to {attained} changes",
            (
                check(
                    "best over bound", [m / bound for m, bound in zip(best, bounds, strict=True)], "at most", 1 + 1e-12
                ),
            ),
        ),
        Claim(
            "Theorem 8",
            "the same without delta, and for one change with delta = 1/n",
            "the best mechanism on a chain of data sets; no data",
            "0; 1/n",
            f"{most_certain(8, epsilon, 0.0):g} for 8 changes; {most_certain(1, epsilon, 1e-4):g} for n = 10,000",
            (same("chances", (most_certain(8, epsilon, 0.0), most_certain(1, epsilon, 1e-4)), (0, 1e-4), 1e-12),),
        ),
        Claim(
            "Theorem 9",
            "the bound by the letter: k secret edges lead from D, below the threshold, to a data set that is not",
            "the policy of Example 1; no data",
            "at most 1 - e^(-k epsilon), below 1",
            f"edges from having an item to not having it: {float(way_down):g}; back: {float(way_up):g}, so that no "
            "edges lead up and the bound is 1",
            (check("bound at epsilon 1 and one missing visitor", 1 - math.exp(-float(way_up)), "below", 1),),
            "the proof goes the other way: k counts edges from a data set that is not below into D",
        ),
        Claim(
            "Theorems 9, 11",
            f"the same, with k edges from a data set that is not below into D, epsilon 1, k from 1 to {STEPS[-1]}",
            "`below` of Tacit, the law of its noise; no data",
            f"at most {_listed(stated)}, attained",
            f"`below`: {_listed(ours)}",
            (same("chances", ours, stated, 1e-9),),
        ),
    ]


def privacy_claims(samples: int) -> list[Claim]:
    """Return what audits of Algorithms 1 to 4 find, in every reading of what is printed: Theorems 12 to 15."""
    twice, late, pause, again, moves = (planted[name] for name in _PLANTED)
    alone = ((0, 1), (0, 0))  # of those who were at two places only the second person is left
    readings: dict[str, tuple[tuple[str, Release, Any, Any], ...]] = {
        "Theorem 12": (
            ("Algorithm 1, each count added once", twice.repaired, twice.hidden, twice.cover),
            ("lines 2 and 3 by the letter", twice.release, twice.hidden, twice.cover),
        ),
        "Theorem 13": (("Algorithm 2, which gives c + 1 answers", late.release, late.hidden, late.cover),),
        "Theorem 14": (
            ("Algorithm 3, one visit, everybody in the queue", pause.repaired, pause.hidden, pause.cover),
            ("visitors alone in the queue", pause.release, pause.hidden, pause.cover),
            ("a person with two visits", again.release, again.hidden, again.cover),
        ),
        "Theorem 15": (
            ("Algorithm 4, at A instead of nowhere", moves.release, moves.hidden, alone),
            ("at A instead of at B", moves.release, moves.hidden, moves.cover),
        ),
    }
    claims = []
    for where, cases in readings.items():
        least = [
            sampled(release, hidden, cover, epsilon=1, samples=samples, alpha=ALPHA, workers=1).lower_bound
            for _, release, hidden, cover in cases
        ]
        claims.append(
            Claim(
                where,
                "loss between two made-up data sets one secret edge apart, epsilon 1",
                f"as printed, {len(cases)} reading{'s' * (len(cases) > 1)}, {samples:,} draws of each data set",
                "at most epsilon",
                "; ".join(f"{case[0]}: at least {bound:.2f}" for case, bound in zip(cases, least, strict=True))
                + f" (a bound is wrong with probability {ALPHA:g} at most)",
                (check("lower bound on the loss in each reading", least, "at most", 1),),
                _READINGS[where],
            )
        )
    return claims


_PLANTED: Final = (
    "top-k-adds-count-twice",
    "sparse-vector-one-more-answer",
    "monitor-pauses-by-data",
    "monitor-person-with-several-visits",
    "map-moves-between-places",
)
_READINGS: Final = {
    "Theorem 12": "aLap contains the count already, and line 3 adds it again",
    "Theorem 13": "it stops when more than c answers were given, that is one too late",
    "Theorem 14": "the rest must go by the clock, and the promise is for a visit, not for a person",
    "Theorem 15": "the promise is for one place of a person, against nowhere",
}
_MIXED: Final = "true of root mean squares, not of mean absolute error, which the paper defines"
_ONE_WAY: Final = "for noise; for counts that only move one way the other side needs half of it, too"


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.3g}" for number in numbers)

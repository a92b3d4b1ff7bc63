"""Decide whether a count is below a threshold: "certainly below", or a noisy count.

Guarantee   Let the count fall by at most `step` and never rise along every secret edge hidden -> cover. Then for every
            set O of outputs Pr[decide(hidden) in O] <= exp(epsilon) * Pr[decide(cover) in O]; nothing is promised from
            cover to hidden. "Certainly below" is never wrong, and it is free: along an edge it only becomes more
            likely, so any number of such answers costs nothing and only an alarm costs epsilon. A count that is k
            below the threshold is called so with probability 1 - exp(-k * epsilon / step), the largest that any
            mechanism with this guarantee and no wrong answer can have (for step = 1).
Assumes     The direction and the size of the step, which the caller derives from the policy
            (`plan/sensitivity/steps.py`).
Why         noisy = count + geometric noise z >= 0, so noisy < threshold proves count < threshold. Above it, the weight
            of an output v is exp(-(v - count) * epsilon / step), which a fall by d <= step lowers by exp(d * epsilon /
            step) at most. The noise is memoryless: given an alarm, noisy - max(count, threshold) is geometric again,
            so noisy minus the mean of the noise is an unbiased estimate of max(count, threshold).
Reference   Takagi, Cao, Yoshikawa, Asymmetric Differential Privacy, 2020: Theorem 11 (with k = T - f), Algorithms 3, 4.
Checked by  tests/statistical/test_alarm.py, tests/property/test_monitor_loss.py.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit.arrays import Floats, Ints
from tacit.noise.two_scale import TwoScale

CERTAINLY_BELOW: Final = "certainly below"
ABOVE: Final = "above"
NO_VALUE: Final = -1  # stands where a count is certainly below the threshold: nothing else about it is known


def alarm_noise(epsilon: Fraction, *, step: int = 1) -> TwoScale:
    """Return the law of the noise: one-sided, so that a noisy count is never less than the count."""
    return TwoScale(step / epsilon, Fraction(0))


def decide(count: int, threshold: float, epsilon: Fraction, *, step: int = 1) -> int | None:
    """Return the noisy count if it reaches the threshold, or None: the count is certainly below.

    >>> decide(12, 5, Fraction(1)) >= 12, decide(0, 10**6, Fraction(1)) is None
    (True, True)
    """
    (value,) = decide_all(np.array([count], dtype=np.int64), threshold, epsilon, step=step).tolist()
    return None if value == NO_VALUE else int(value)


def decide_all(counts: npt.ArrayLike, threshold: float, epsilon: Fraction, *, step: int = 1) -> Ints:
    """Return a noisy count, or `NO_VALUE` for "certainly below", for each count, all with independent noise.

    >>> decide_all([0, 10**7], 10**6, Fraction(1)).tolist()[0] == NO_VALUE
    True
    """
    true = np.asarray(counts, dtype=np.int64)
    noisy = true + noise.sample(alarm_noise(epsilon, step=step), true.shape)
    return np.where(noisy >= threshold, noisy, NO_VALUE)


def chance_certainly_below(
    counts: npt.ArrayLike, threshold: float, epsilon: Fraction, *, step: int = 1, decisions: int = 1
) -> Floats:
    """Return how likely counts are called certainly below, in every one of so many decisions; needs no data.

    >>> round(float(chance_certainly_below(0, 5, Fraction(1))), 4)
    0.9933
    """
    gap = np.maximum(math.ceil(threshold) - np.asarray(counts, dtype=np.float64), 0.0)
    once = -np.expm1(-gap * float(epsilon / step))
    return np.asarray(once**decisions, dtype=np.float64)

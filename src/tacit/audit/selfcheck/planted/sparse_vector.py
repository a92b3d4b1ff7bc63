"""The sparse vector technique, which asks for the first of many counts above a threshold, wrong in four ways.

sparse-vector-one-more-answer           One-sided: all counts fall together when a person hides. Only answers above the
                                        threshold cost something, so noise of scale c/eps pays for c of them. Printed:
                                        stop when more than c were given, that is after c + 1. Right: stop at c.
                                        c = 1, counts 4 -> 3, threshold 3: at `hidden` every output has two answers of 4
                                        or more; loss 2.
sparse-vector-no-fresh-threshold-noise  Two-sided: `below` costs nothing only because one noisy threshold is compared
                                        with all counts, and shifting it by one pays for all of them together. (Drawing
                                        it once and keeping it is right.) Here the threshold has no noise, and each
                                        `below` costs eps/4: 20 counts, 0 -> 1, lose 5. Event: at least 8 are below,
                                        with probability 0.01 at `hidden`, loses 2.
sparse-vector-noise-reused              Two-sided, one draw blurs all counts, so that their order shows: of (0, 1) the
                                        second may be the first above the threshold, of (1, 0) never. Infinite loss, by
                                        an event of probability 0.084.
sparse-vector-values-from-same-noise    Two-sided, and the noisy count that was compared is published as well. It bounds
                                        the noisy threshold, so that it cannot be shifted any more to pay for `below`.
                                        Counts 0^8 1 -> 1^8 0: loss 9/2. Event: at least four below and then a value of
                                        at most 1, with probability 0.016 at `hidden`, loses 1.98. Right: half of the
                                        budget finds the count, the other half pays for its value, with fresh noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from tacit import noise
from tacit.arrays import Ints
from tacit.audit.selfcheck.planted.planted_leak import PlantedLeak

BELOW, STOPPED = 0, -1
_ONE_SIDED_THRESHOLD = 3
_TWO_SIDED_THRESHOLD = 1


def _one_sided(counts: Sequence[int], size: int, *, stop_after: int) -> Ints:
    """Return for each count its noisy value, or that it is below; noise is for one answer at epsilon = 1."""
    out = np.full((size, len(counts)), STOPPED)
    given = np.zeros(size, np.int64)
    for at, count in enumerate(counts):
        noisy = count + noise.geometric(1, size)
        going = given < stop_after
        out[:, at] = np.where(going, np.where(noisy >= _ONE_SIDED_THRESHOLD, noisy, BELOW), STOPPED)
        given += going & (noisy >= _ONE_SIDED_THRESHOLD)
    return out


def _first_above(counts: Sequence[int], size: int, *, threshold_noise: bool = True, fresh: bool = True) -> Ints:
    """Return the place of the first count above the threshold, or their number if none is, at epsilon = 1."""
    threshold = np.full(size, _TWO_SIDED_THRESHOLD)
    if threshold_noise:
        threshold += noise.discrete_laplace(2, size)
    first, draw = np.full(size, len(counts)), noise.discrete_laplace(4, size)
    for at, count in enumerate(counts):
        if at and fresh:
            draw = noise.discrete_laplace(4, size)
        first[(first == len(counts)) & (count + draw >= threshold)] = at
    return first


def _first_above_with_value(counts: Sequence[int], size: int, *, fresh_value: bool) -> Ints:
    """Return the place of the first count above the threshold, and its noisy value, at epsilon = 1."""
    if fresh_value:
        threshold_scale, count_scale = 4, 8  # at epsilon = 1/2
    else:
        threshold_scale, count_scale = 2, 2  # as in the lecture notes
    threshold = _TWO_SIDED_THRESHOLD + noise.discrete_laplace(threshold_scale, size)
    first, value = np.full(size, len(counts)), np.zeros(size, np.int64)
    for at, count in enumerate(counts):
        compared = count + noise.discrete_laplace(count_scale, size)
        found = (first == len(counts)) & (compared >= threshold)
        published = count + noise.discrete_laplace(2, size) if fresh_value else compared  # BROKEN: the compared one
        first[found], value[found] = at, published[found]
    return np.stack([first, value], axis=1)


PLANTED = (
    PlantedLeak(
        name="sparse-vector-one-more-answer",
        mistake="stops when more than c answers were given, and so gives c + 1",
        source="Asymmetric differential privacy, Algorithm 2",
        claimed_epsilon=1.0,
        hidden=(4, 4, 4),
        cover=(3, 3, 3),
        release=partial(_one_sided, stop_after=2),  # BROKEN: count > c instead of count >= c
        repaired=partial(_one_sided, stop_after=1),
        exact_loss=2.0,
    ),
    PlantedLeak(
        name="sparse-vector-no-fresh-threshold-noise",
        mistake="the threshold has no noise of its own, so that each answer `below` costs",
        source="classic; Lyu, Su, Li, Understanding the Sparse Vector Technique, arXiv:1603.01699",
        claimed_epsilon=1.0,
        hidden=(0,) * 20,
        cover=(1,) * 20,
        release=partial(_first_above, threshold_noise=False),  # BROKEN: nothing pays for the answers below
        repaired=_first_above,
        exact_loss=20 / 4,
    ),
    PlantedLeak(
        name="sparse-vector-noise-reused",
        mistake="one draw blurs all counts, so that their true order shows",
        source="classic; Lyu, Su, Li, arXiv:1603.01699, Algorithm 5 (counts without noise of their own)",
        claimed_epsilon=1.0,
        hidden=(0, 1),
        cover=(1, 0),
        release=partial(_first_above, fresh=False),  # BROKEN: the same draw blurs all counts
        repaired=_first_above,
        exact_loss=math.inf,
    ),
    PlantedLeak(
        name="sparse-vector-values-from-same-noise",
        mistake="publishes the noisy count that was compared with the threshold",
        source="classic; Lyu, Su, Li, arXiv:1603.01699, Algorithm 3 (from lecture notes of 2011)",
        claimed_epsilon=1.0,
        hidden=(0,) * 8 + (1,),
        cover=(1,) * 8 + (0,),
        release=partial(_first_above_with_value, fresh_value=False),
        repaired=partial(_first_above_with_value, fresh_value=True),
        exact_loss=9 / 2,
    ),
)

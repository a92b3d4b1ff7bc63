"""Top-k lists, wrong in three ways. An output is the place and the noisy count of each winner; ties go to the first.

Printed and right: if hiding a value only lowers counts, one-sided noise of scale k/eps on each pays for k winners,
since losers only become likelier to lose.

mixed-directions-top-k      One count may fall and another rise along the same edge, and each gets one-sided noise in
                            its own direction: (5, 5) -> (4, 6). A winner that falls and a loser that rises both cost:
                            loss 2, by the output (first, 5) of probability 0.63. Right: two-sided noise for both.
top-k-adds-count-twice      Printed: f + aLap(f), where aLap(f) contains f already. A step of 1 becomes 2: loss 2, by an
                            event of probability 0.99: the items 0 and 1 win, with at least 10 and 8.
debias-by-realised-maximum  The largest of noisy counts is too large on average. Right: subtract a public number. Here
                            the largest of the drawn noises is subtracted, which undoes the noise whenever it fell on
                            the winner: 5 is then shown, and 4 is the most that (4, 4, 2) can show. Infinite loss, by an
                            event of probability 0.55.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from tacit import noise
from tacit.arrays import Ints
from tacit.audit.selfcheck.planted.planted_leak import PlantedLeak

# The mean of the largest of three one-sided draws of scale 1 is 1.24; outputs are whole numbers.
_EXPECTED_MAXIMUM = 1


def _winners(noisy: Ints, k: int) -> Ints:
    """Return place and value of the k largest of each row."""
    order = np.argsort(-noisy, axis=1, kind="stable")[:, :k]
    return np.stack([order, np.take_along_axis(noisy, order, axis=1)], axis=2).reshape(len(noisy), -1)


def _top_one_of_two(counts: Sequence[int], size: int, *, one_sided: bool) -> Ints:
    """Return the larger of a count that may fall and one that may rise, at epsilon = 1."""
    draws = noise.geometric(1, (size, 2)) * (1, -1) if one_sided else noise.discrete_laplace(2, (size, 2))
    return _winners(counts + draws, 1)


def _top_two(counts: Sequence[int], size: int, *, twice: bool) -> Ints:
    """Return the two largest of counts that may fall, at epsilon = 1."""
    noisy = counts + noise.geometric(2, (size, len(counts)))
    if twice:
        noisy += counts  # BROKEN: the counts are in the noisy counts already
    return _winners(noisy, 2)


def _top_one(counts: Sequence[int], size: int, *, realised: bool) -> Ints:
    """Return the largest of counts that may fall, less what is expected of the noise, at epsilon = 1."""
    draws = noise.geometric(1, (size, len(counts)))
    winner = _winners(counts + draws, 1)
    winner[:, 1] -= draws.max(axis=1) if realised else _EXPECTED_MAXIMUM  # BROKEN: the noise that was drawn
    return winner


PLANTED = (
    PlantedLeak(
        name="mixed-directions-top-k",
        mistake="one-sided noise although the same person lowers one count and raises another",
        source="Asymmetric differential privacy, Algorithm 1 outside its scope",
        claimed_epsilon=1.0,
        hidden=(5, 5),
        cover=(4, 6),
        release=partial(_top_one_of_two, one_sided=True),  # BROKEN: wants all counts to move in one direction
        repaired=partial(_top_one_of_two, one_sided=False),
        exact_loss=2.0,
    ),
    PlantedLeak(
        name="top-k-adds-count-twice",
        mistake="adds the count to a noisy value that contains it",
        source="Asymmetric differential privacy, Algorithm 1, lines 2 and 3 taken literally",
        claimed_epsilon=1.0,
        hidden=(5, 4, 0, 0),
        cover=(4, 3, 0, 0),
        release=partial(_top_two, twice=True),
        repaired=partial(_top_two, twice=False),
        exact_loss=2.0,
    ),
    PlantedLeak(
        name="debias-by-realised-maximum",
        mistake="corrects the winner by the largest noise that was drawn",
        source="a tempting correction of asymmetric differential privacy, Algorithm 1",
        claimed_epsilon=1.0,
        hidden=(5, 4, 2),
        cover=(4, 4, 2),
        release=partial(_top_one, realised=True),
        repaired=partial(_top_one, realised=False),
        exact_loss=math.inf,
    ),
)

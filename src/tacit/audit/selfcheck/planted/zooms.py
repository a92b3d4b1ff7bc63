"""Looks at halves of a line, then counts in the half where people seem to be, wrong in two ways.

Everything is secret on 0..3, and three people are public. Right, for epsilon = 1: the people in the lower half, with
noise for a half of epsilon, say which half is looked into (the lower one if they seem to be two at least); the count of
its first value has noise for the other half. A move from 0 to 2 changes both by one. An output is the look, which half,
and the count.

zoom-by-true-counts  The half is chosen by the true count, as if choosing told nothing. Of the lower half, which only
                     (0, 0, 2) looks into, every output is impossible at (0, 2, 2): infinite loss, by an event of
                     probability 1.
zoom-spends-again    The count has noise for the whole of epsilon, as if a look cost nothing: loss 1/2 + 1, by a look
                     and a count at or above the true ones, an event of probability 0.46.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from tacit import noise
from tacit.arrays import Ints
from tacit.audit.selfcheck.planted.planted_leak import PlantedLeak


def _zoomed(places: Sequence[int], size: int, *, by_truth: bool = False, again: bool = False) -> Ints:
    """Return the look, the half that is looked into, and the count of its first value."""
    below, firsts = sum(place < 2 for place in places), (places.count(0), places.count(2))
    look = below + noise.discrete_laplace(2, size)
    half = np.where((np.full(size, below) if by_truth else look) >= 2, 0, 1)  # BROKEN: `by_truth` takes the true count
    scale = 1 if again else 2  # BROKEN: `again` forgets that half of epsilon went into the look
    return np.stack([look, half, np.array(firsts)[half] + noise.discrete_laplace(scale, size)], axis=1)


PLANTED = (
    PlantedLeak(
        name="zoom-by-true-counts",
        mistake="true counts choose the cells that are counted anew",
        source="a look at coarse cells before a count of finer ones",
        claimed_epsilon=1.0,
        hidden=(0, 0, 2),
        cover=(0, 2, 2),
        release=partial(_zoomed, by_truth=True),
        repaired=_zoomed,
        exact_loss=math.inf,
    ),
    PlantedLeak(
        name="zoom-spends-again",
        mistake="the count after a look spends the whole epsilon again",
        source="a look at coarse cells before a count of finer ones",
        claimed_epsilon=1.0,
        hidden=(0, 0, 2),
        cover=(0, 2, 2),
        release=partial(_zoomed, again=True),
        repaired=_zoomed,
        exact_loss=1.5,
    ),
)

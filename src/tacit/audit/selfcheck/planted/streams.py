"""Alarms on streams, wrong in three ways. Counts are blurred by one-sided noise and shown from a threshold of 2 on.

monitor-pauses-by-data             One visit -> none, a window of two steps. After an answer the monitor must rest until
                                   all that it counted has left the window. Printed: rest while the queue holds somebody
                                   who was counted. If it holds visitors only, an answer without visitors is followed by
                                   no rest at all, so a rest proves a visitor: infinite loss, by an event of probability
                                   0.37. Right: rest two steps, by the clock.
monitor-person-with-several-visits Same, by the clock, but a person comes twice and `one person -> nobody` is promised:
                                   each visit pays. Loss 2, by an event of probability 0.14 (an answer at both visits).
                                   Right: bound the visits of a person, and noise for that many.
map-moves-between-places           A map shows each place once its noisy count reaches the threshold. One-sided noise
                                   protects `at A -> nowhere`. Along `A -> B` the count of B rises: with one person
                                   there it may be called safe, with two never. Infinite loss, by an event of
                                   probability 0.63. Right: two-sided noise for two counts that change, in every slot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tacit import noise
from tacit.arrays import Ints
from tacit.audit.selfcheck.planted.planted_leak import PlantedLeak

BELOW, PAUSED = 0, -1
_THRESHOLD, _WINDOW = 2, 2


def _pause_by_clock(arrivals: Sequence[int], now: int) -> int:
    """Return the step at which the monitor goes on after an answer given now, whoever arrived."""
    return now + _WINDOW


def _pause_by_data(arrivals: Sequence[int], now: int) -> int:
    """Return the step at which the last visitor who was counted now has left the window."""
    counted = [step for step in range(max(0, now - _WINDOW + 1), now + 1) if arrivals[step]]
    return counted[-1] + _WINDOW if counted else now + 1  # BROKEN: the length of the pause tells who was there


def _monitor(
    arrivals: Sequence[int], size: int, *, pause: Callable[[Sequence[int], int], int], visits: int = 1
) -> Ints:
    """Return for each step the noisy number of visitors in the window, or that it is below, or a pause."""
    out = np.full((size, len(arrivals)), PAUSED)
    resumes = np.zeros(size, np.int64)
    for step in range(len(arrivals)):
        noisy = sum(arrivals[max(0, step - _WINDOW + 1) : step + 1]) + noise.geometric(visits, size)
        awake, alarm = resumes <= step, noisy >= _THRESHOLD
        out[:, step] = np.where(awake, np.where(alarm, noisy, BELOW), PAUSED)
        resumes[awake & alarm] = pause(arrivals, step)
    return out


def _map(slots: Sequence[Sequence[int]], size: int, *, one_sided: bool) -> Ints:
    """Return for each slot and place the noisy number of people so far, or that it is below, or that it was shown."""
    out = np.full((size, len(slots), len(slots[0])), PAUSED)
    for place in range(len(slots[0])):
        shown, count = np.zeros(size, np.bool_), 0
        for at, slot in enumerate(slots):
            count += slot[place]
            if one_sided:
                noisy = count + noise.geometric(1, size)  # BROKEN: whoever moves makes another count rise
            else:
                noisy = count + noise.discrete_laplace(2 * len(slots), size)
            out[:, at, place] = np.where(shown, PAUSED, np.where(noisy >= _THRESHOLD, noisy, BELOW))
            shown |= noisy >= _THRESHOLD
    return out.reshape(size, -1)


PLANTED = (
    PlantedLeak(
        name="monitor-pauses-by-data",
        mistake="rests until the visitors have left, so that the length of the rest tells about them",
        source="Asymmetric differential privacy, Algorithm 3",
        claimed_epsilon=1.0,
        hidden=(1, 0, 0, 0),
        cover=(0, 0, 0, 0),
        release=partial(_monitor, pause=_pause_by_data),
        repaired=partial(_monitor, pause=_pause_by_clock),
        exact_loss=math.inf,
    ),
    PlantedLeak(
        name="monitor-person-with-several-visits",
        mistake="promises for a person what holds for a visit",
        source="Asymmetric differential privacy, Algorithm 3",
        claimed_epsilon=1.0,
        hidden=(1, 0, 0, 1, 0),
        cover=(0, 0, 0, 0, 0),
        release=partial(_monitor, pause=_pause_by_clock, visits=1),  # BROKEN: a person may come twice
        repaired=partial(_monitor, pause=_pause_by_clock, visits=2),
        exact_loss=2.0,
    ),
    PlantedLeak(
        name="map-moves-between-places",
        mistake="one-sided noise for people who may have been at another place instead of nowhere",
        source="Asymmetric differential privacy, Algorithm 4",
        claimed_epsilon=1.0,
        hidden=((1, 1), (0, 0)),
        cover=((0, 2), (0, 0)),
        release=partial(_map, one_sided=True),
        repaired=partial(_map, one_sided=False),
        exact_loss=math.inf,
    ),
)

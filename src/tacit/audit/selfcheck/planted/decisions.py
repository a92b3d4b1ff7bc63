"""Mechanisms that decide what they show or count next, wrong in twelve ways.

The sparse vector technique asks for the first of many counts above a threshold.

sparse-vector-one-more-answer: One-sided: all counts fall together when a person hides. Only answers above the
    threshold cost something, so noise of scale c/eps pays for c of them. Printed: stop when more than c were given,
    that is after c + 1. Right: stop at c. c = 1, counts 4 -> 3, threshold 3: at `hidden` every output has two answers
    of 4 or more; loss 2.
sparse-vector-no-fresh-threshold-noise: Two-sided: `below` costs nothing only because one noisy threshold is compared
    with all counts, and shifting it by one pays for all of them together. (Drawing it once and keeping it is right.)
    Here the threshold has no noise, and each `below` costs eps/4: 20 counts, 0 -> 1, lose 5. Event: at least 8 are
    below, with probability 0.01 at `hidden`, loses 2.
sparse-vector-noise-reused: Two-sided, one draw blurs all counts, so that their order shows: of (0, 1) the second may
    be the first above the threshold, of (1, 0) never. Infinite loss, by an event of probability 0.084.
sparse-vector-values-from-same-noise: Two-sided, and the noisy count that was compared is published as well. It bounds
    the noisy threshold, so that it cannot be shifted any more to pay for `below`. Counts 0^8 1 -> 1^8 0: loss 9/2.
    Event: at least four below and then a value of at most 1, with probability 0.016 at `hidden`, loses 1.98. Right:
    half of the budget finds the count, the other half pays for its value, with fresh noise.

Alarms on streams: counts are blurred by one-sided noise and shown from a threshold of 2 on.

monitor-pauses-by-data: One visit -> none, a window of two steps. After an answer the monitor must rest until all that
    it counted has left the window. Printed: rest while the queue holds somebody who was counted. If it holds visitors
    only, an answer without visitors is followed by no rest at all, so a rest proves a visitor: infinite loss, by an
    event of probability 0.37. Right: rest two steps, by the clock.
monitor-person-with-several-visits: Same, by the clock, but a person comes twice and `one person -> nobody` is
    promised: each visit pays. Loss 2, by an event of probability 0.14 (an answer at both visits). Right: bound the
    visits of a person, and noise for that many.
map-moves-between-places: A map shows each place once its noisy count reaches the threshold. One-sided noise protects
    `at A -> nowhere`. Along `A -> B` the count of B rises: with one person there it may be called safe, with two
    never. Infinite loss, by an event of probability 0.63. Right: two-sided noise for two counts that change, in every
    slot.

Top-k lists: an output is the place and the noisy count of each winner; ties go to the first.

Printed and right: if hiding a value only lowers counts, one-sided noise of scale k/eps on each pays for k winners,
since losers only become likelier to lose.

mixed-directions-top-k: One count may fall and another rise along the same edge, and each gets one-sided noise in its
    own direction: (5, 5) -> (4, 6). A winner that falls and a loser that rises both cost: loss 2, by the output
    (first, 5) of probability 0.63. Right: two-sided noise for both.
top-k-adds-count-twice: Printed: f + aLap(f), where aLap(f) contains f already. A step of 1 becomes 2: loss 2, by an
    event of probability 0.99: the items 0 and 1 win, with at least 10 and 8.
debias-by-realised-maximum: The largest of noisy counts is too large on average. Right: subtract a public number. Here
    the largest of the drawn noises is subtracted, which undoes the noise whenever it fell on the winner: 5 is then
    shown, and 4 is the most that (4, 4, 2) can show. Infinite loss, by an event of probability 0.55.

Looks at halves of a line, then counts in the half where people seem to be.

Everything is secret on 0..3, and three people are public. Right, for epsilon = 1: the people in the lower half, with
noise for a half of epsilon, say which half is looked into (the lower one if they seem to be two at least); the count of
its first value has noise for the other half. A move from 0 to 2 changes both by one. An output is the look, which half,
and the count.

zoom-by-true-counts: The half is chosen by the true count, as if choosing told nothing. Of the lower half, which only
    (0, 0, 2) looks into, every output is impossible at (0, 2, 2): infinite loss, by an event of probability 1.
zoom-spends-again: The count has noise for the whole of epsilon, as if a look cost nothing: loss 1/2 + 1, by a look and
    a count at or above the true ones, an event of probability 0.46.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


_SPARSE_VECTOR = (
    PlantedLeak(
        name="sparse-vector-one-more-answer",
        mistake="stops when more than c answers were given, and so gives c + 1",
        source="Asymmetric differential privacy, Algorithm 2",
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
        hidden=(0, 1),
        cover=(1, 0),
        release=partial(_first_above, fresh=False),  # BROKEN: the same draw blurs all counts
        repaired=_first_above,
    ),
    PlantedLeak(
        name="sparse-vector-values-from-same-noise",
        mistake="publishes the noisy count that was compared with the threshold",
        source="classic; Lyu, Su, Li, arXiv:1603.01699, Algorithm 3 (from lecture notes of 2011)",
        hidden=(0,) * 8 + (1,),
        cover=(1,) * 8 + (0,),
        release=partial(_first_above_with_value, fresh_value=False),
        repaired=partial(_first_above_with_value, fresh_value=True),
        exact_loss=9 / 2,
    ),
)


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


_STREAMS = (
    PlantedLeak(
        name="monitor-pauses-by-data",
        mistake="rests until the visitors have left, so that the length of the rest tells about them",
        source="Asymmetric differential privacy, Algorithm 3",
        hidden=(1, 0, 0, 0),
        cover=(0, 0, 0, 0),
        release=partial(_monitor, pause=_pause_by_data),
        repaired=partial(_monitor, pause=_pause_by_clock),
    ),
    PlantedLeak(
        name="monitor-person-with-several-visits",
        mistake="promises for a person what holds for a visit",
        source="Asymmetric differential privacy, Algorithm 3",
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
        hidden=((1, 1), (0, 0)),
        cover=((0, 2), (0, 0)),
        release=partial(_map, one_sided=True),
        repaired=partial(_map, one_sided=False),
    ),
)


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


_TOP_K = (
    PlantedLeak(
        name="mixed-directions-top-k",
        mistake="one-sided noise although the same person lowers one count and raises another",
        source="Asymmetric differential privacy, Algorithm 1 outside its scope",
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
        hidden=(5, 4, 2),
        cover=(4, 4, 2),
        release=partial(_top_one, realised=True),
        repaired=partial(_top_one, realised=False),
    ),
)


def _zoomed(places: Sequence[int], size: int, *, by_truth: bool = False, again: bool = False) -> Ints:
    """Return the look, the half that is looked into, and the count of its first value."""
    below, firsts = sum(place < 2 for place in places), (places.count(0), places.count(2))
    look = below + noise.discrete_laplace(2, size)
    half = np.where((np.full(size, below) if by_truth else look) >= 2, 0, 1)  # BROKEN: `by_truth` takes the true count
    scale = 1 if again else 2  # BROKEN: `again` forgets that half of epsilon went into the look
    return np.stack([look, half, np.array(firsts)[half] + noise.discrete_laplace(scale, size)], axis=1)


_ZOOMS = (
    PlantedLeak(
        name="zoom-by-true-counts",
        mistake="true counts choose the cells that are counted anew",
        source="a look at coarse cells before a count of finer ones",
        hidden=(0, 0, 2),
        cover=(0, 2, 2),
        release=partial(_zoomed, by_truth=True),
        repaired=_zoomed,
    ),
    PlantedLeak(
        name="zoom-spends-again",
        mistake="the count after a look spends the whole epsilon again",
        source="a look at coarse cells before a count of finer ones",
        hidden=(0, 0, 2),
        cover=(0, 2, 2),
        release=partial(_zoomed, again=True),
        repaired=_zoomed,
        exact_loss=1.5,
    ),
)

PLANTED = (*_SPARSE_VECTOR, *_STREAMS, *_TOP_K, *_ZOOMS)

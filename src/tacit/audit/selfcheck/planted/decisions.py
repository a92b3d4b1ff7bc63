"""Mechanisms that decide what they show or count next, wrong in twelve ways."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit import noise
from tacit.arrays import Ints
from tacit.audit.selfcheck.planted.planted_leak import plant

# ---- the sparse vector technique: the first of many counts above a threshold ---------------------------------------

BELOW, STOPPED, PAUSED = 0, -1, -1
_ONE_SIDED_THRESHOLD = 3
_TWO_SIDED_THRESHOLD = 1
_UNDERSTANDING = "classic; Lyu, Su, Li, Understanding the Sparse Vector Technique, arXiv:1603.01699"
_LYU = "classic; Lyu, Su, Li, arXiv:1603.01699, Algorithm"


@plant((4, 4, 4), (3, 3, 3), loss=2.0, source="Asymmetric differential privacy, Algorithm 2")
def sparse_vector_one_more_answer(counts: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Stops when more than c answers were given, and so gives c + 1.

    One-sided: all counts fall together when a person hides. Only answers above the threshold cost something, so noise
    of scale c/eps pays for c of them. Printed: stop when more than c were given, that is after c + 1. Right: stop at c.
    c = 1, counts 4 -> 3, threshold 3: at `hidden` every output has two answers of 4 or more; loss 2.
    """
    out = np.full((size, len(counts)), STOPPED)
    given = np.zeros(size, np.int64)
    for at, count in enumerate(counts):
        noisy = count + noise.geometric(1, size)
        going = given <= 1 if broken else given < 1  # BROKEN: count > c instead of count >= c
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


@plant((0,) * 20, (1,) * 20, loss=20 / 4, source=_UNDERSTANDING)
def sparse_vector_no_fresh_threshold_noise(counts: Sequence[int], size: int, *, broken: bool) -> Ints:
    """The threshold has no noise of its own, so that each answer `below` costs.

    Two-sided: `below` costs nothing only because one noisy threshold is compared with all counts, and shifting it by
    one pays for all of them together. (Drawing it once and keeping it is right.) Here the threshold has no noise, and
    each `below` costs eps/4: 20 counts, 0 -> 1, lose 5. Event: at least 8 are below, with probability 0.01 at `hidden`,
    loses 2.
    """
    return _first_above(counts, size, threshold_noise=not broken)  # BROKEN: nothing pays for the answers below


@plant((0, 1), (1, 0), source=f"{_LYU} 5 (counts without noise of their own)")
def sparse_vector_noise_reused(counts: Sequence[int], size: int, *, broken: bool) -> Ints:
    """One draw blurs all counts, so that their true order shows.

    Two-sided: of (0, 1) the second may be the first above the threshold, of (1, 0) never. Infinite loss, by an event of
    probability 0.084.
    """
    return _first_above(counts, size, fresh=not broken)  # BROKEN: the same draw blurs all counts


@plant((0,) * 8 + (1,), (1,) * 8 + (0,), loss=9 / 2, source=f"{_LYU} 3 (from lecture notes of 2011)")
def sparse_vector_values_from_same_noise(counts: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Publishes the noisy count that was compared with the threshold.

    Two-sided. The count that was compared bounds the noisy threshold, so that it cannot be shifted any more to pay for
    `below`. Counts 0^8 1 -> 1^8 0: loss 9/2. Event: at least four below and then a value of at most 1, with probability
    0.016 at `hidden`, loses 1.98. Right: half of the budget finds the count, the other half pays for its value, with
    fresh noise.
    """
    threshold_scale, count_scale = (2, 2) if broken else (4, 8)  # as in the lecture notes; at epsilon = 1/2
    threshold = _TWO_SIDED_THRESHOLD + noise.discrete_laplace(threshold_scale, size)
    first, value = np.full(size, len(counts)), np.zeros(size, np.int64)
    for at, count in enumerate(counts):
        compared = count + noise.discrete_laplace(count_scale, size)
        found = (first == len(counts)) & (compared >= threshold)
        published = compared if broken else count + noise.discrete_laplace(2, size)  # BROKEN: the compared one
        first[found], value[found] = at, published[found]
    return np.stack([first, value], axis=1)


# ---- alarms on streams: counts are blurred by one-sided noise and shown from a threshold of 2 on --------------------

_THRESHOLD, _WINDOW = 2, 2


def _monitor(arrivals: Sequence[int], size: int, *, by_data: bool, visits: int) -> Ints:
    """Return for each step the noisy number of visitors in the window, or that it is below, or a pause."""
    out = np.full((size, len(arrivals)), PAUSED)
    resumes = np.zeros(size, np.int64)
    for now in range(len(arrivals)):
        start = max(0, now - _WINDOW + 1)
        noisy = sum(arrivals[start : now + 1]) + noise.geometric(visits, size)
        awake, alarm = resumes <= now, noisy >= _THRESHOLD
        out[:, now] = np.where(awake, np.where(alarm, noisy, BELOW), PAUSED)
        counted = [step for step in range(start, now + 1) if arrivals[step]] if by_data else [now]
        resumes[awake & alarm] = counted[-1] + _WINDOW if counted else now + 1
    return out


@plant((1, 0, 0, 0), (0, 0, 0, 0), source="Asymmetric differential privacy, Algorithm 3")
def monitor_pauses_by_data(arrivals: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Rests until the visitors have left, so that the length of the rest tells about them.

    One visit -> none, a window of two steps. After an answer the monitor must rest until all that it counted has left
    the window. Printed: rest while the queue holds somebody who was counted. If it holds visitors only, an answer
    without visitors is followed by no rest at all, so a rest proves a visitor: infinite loss, by an event of
    probability 0.37. Right: rest two steps, by the clock.
    """
    return _monitor(arrivals, size, by_data=broken, visits=1)  # BROKEN: the length of the pause tells who was there


@plant((1, 0, 0, 1, 0), (0, 0, 0, 0, 0), loss=2.0, source="Asymmetric differential privacy, Algorithm 3")
def monitor_person_with_several_visits(arrivals: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Promises for a person what holds for a visit.

    By the clock, but a person comes twice and `one person -> nobody` is promised: each visit pays. Loss 2, by an event
    of probability 0.14 (an answer at both visits). Right: bound the visits of a person, and noise for that many.
    """
    return _monitor(arrivals, size, by_data=False, visits=1 if broken else 2)  # BROKEN: a person may come twice


@plant(((1, 1), (0, 0)), ((0, 2), (0, 0)), source="Asymmetric differential privacy, Algorithm 4")
def map_moves_between_places(slots: Sequence[Sequence[int]], size: int, *, broken: bool) -> Ints:
    """One-sided noise for people who may have been at another place instead of nowhere.

    A map shows each place once its noisy count reaches the threshold. One-sided noise protects `at A -> nowhere`. Along
    `A -> B` the count of B rises: with one person there it may be called safe, with two never. Infinite loss, by an
    event of probability 0.63. Right: two-sided noise for two counts that change, in every slot.
    """
    out = np.full((size, len(slots), len(slots[0])), PAUSED)
    for place in range(len(slots[0])):
        shown, count = np.zeros(size, np.bool_), 0
        for at, slot in enumerate(slots):
            count += slot[place]
            # BROKEN: one-sided, and whoever moves makes another count rise
            noisy = count + (noise.geometric(1, size) if broken else noise.discrete_laplace(2 * len(slots), size))
            out[:, at, place] = np.where(shown, PAUSED, np.where(noisy >= _THRESHOLD, noisy, BELOW))
            shown |= noisy >= _THRESHOLD
    return out.reshape(size, -1)


# ---- top-k lists: an output is the place and the noisy count of each winner; ties go to the first -------------------
# Printed and right: if hiding a value only lowers counts, one-sided noise of scale k/eps on each pays for k winners,
# since losers only become likelier to lose.

# The mean of the largest of three one-sided draws of scale 1 is 1.24; outputs are whole numbers.
_EXPECTED_MAXIMUM = 1
_ALGORITHM_1 = "Asymmetric differential privacy, Algorithm 1"


def _winners(noisy: Ints, k: int) -> Ints:
    """Return place and value of the k largest of each row."""
    order = np.argsort(-noisy, axis=1, kind="stable")[:, :k]
    return np.stack([order, np.take_along_axis(noisy, order, axis=1)], axis=2).reshape(len(noisy), -1)


@plant((5, 5), (4, 6), loss=2.0, source=f"{_ALGORITHM_1} outside its scope")
def mixed_directions_top_k(counts: Sequence[int], size: int, *, broken: bool) -> Ints:
    """One-sided noise although the same person lowers one count and raises another.

    Each of the two gets one-sided noise in its own direction: (5, 5) -> (4, 6). A winner that falls and a loser that
    rises both cost: loss 2, by the output (first, 5) of probability 0.63. Right: two-sided noise for both.
    """
    # BROKEN: one-sided noise wants all counts to move in one direction
    draws = noise.geometric(1, (size, 2)) * (1, -1) if broken else noise.discrete_laplace(2, (size, 2))
    return _winners(counts + draws, 1)


@plant((5, 4, 0, 0), (4, 3, 0, 0), loss=2.0, source=f"{_ALGORITHM_1}, lines 2 and 3 taken literally")
def top_k_adds_count_twice(counts: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Adds the count to a noisy value that contains it.

    Printed: f + aLap(f), where aLap(f) contains f already. A step of 1 becomes 2: loss 2, by an event of probability
    0.99: the items 0 and 1 win, with at least 10 and 8.
    """
    noisy = counts + noise.geometric(2, (size, len(counts)))
    return _winners(noisy + counts if broken else noisy, 2)  # BROKEN: the counts are in the noisy counts already


@plant((5, 4, 2), (4, 4, 2), source="a tempting correction of asymmetric differential privacy, Algorithm 1")
def debias_by_realised_maximum(counts: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Corrects the winner by the largest noise that was drawn.

    The largest of noisy counts is too large on average. Right: subtract a public number. Here the largest of the drawn
    noises is subtracted, which undoes the noise whenever it fell on the winner: 5 is then shown, and 4 is the most that
    (4, 4, 2) can show. Infinite loss, by an event of probability 0.55.
    """
    draws = noise.geometric(1, (size, len(counts)))
    winner = _winners(counts + draws, 1)
    winner[:, 1] -= draws.max(axis=1) if broken else _EXPECTED_MAXIMUM  # BROKEN: the noise that was drawn
    return winner


# ---- looks at halves of a line, then counts in the half where people seem to be -------------------------------------
# Everything is secret on 0..3, and three people are public. Right, for epsilon = 1: the people in the lower half, with
# noise for a half of epsilon, say which half is looked into (the lower one if they seem to be two at least); the count
# of its first value has noise for the other half. A move from 0 to 2 changes both by one. An output is the look, which
# half, and the count.

_LOOK = "a look at coarse cells before a count of finer ones"


def _zoomed(places: Sequence[int], size: int, *, by_truth: bool = False, scale: int = 2) -> Ints:
    """Return the look, the half that is looked into, and the count of its first value with noise of this scale."""
    below, firsts = sum(place < 2 for place in places), (places.count(0), places.count(2))
    look = below + noise.discrete_laplace(2, size)
    half = np.where((np.full(size, below) if by_truth else look) >= 2, 0, 1)
    return np.stack([look, half, np.array(firsts)[half] + noise.discrete_laplace(scale, size)], axis=1)


@plant((0, 0, 2), (0, 2, 2), source=_LOOK)
def zoom_by_true_counts(places: Sequence[int], size: int, *, broken: bool) -> Ints:
    """True counts choose the cells that are counted anew.

    As if choosing told nothing. Of the lower half, which only (0, 0, 2) looks into, every output is impossible at
    (0, 2, 2): infinite loss, by an event of probability 1.
    """
    return _zoomed(places, size, by_truth=broken)  # BROKEN: takes the true count


@plant((0, 0, 2), (0, 2, 2), loss=1.5, source=_LOOK)
def zoom_spends_again(places: Sequence[int], size: int, *, broken: bool) -> Ints:
    """The count after a look spends the whole epsilon again.

    As if a look cost nothing: loss 1/2 + 1, by a look and a count at or above the true ones, an event of probability
    0.46.
    """
    return _zoomed(places, size, scale=1 if broken else 2)  # BROKEN: half of epsilon went into the look

"""Noise of the wrong shape or size: the mechanism is a true answer plus noise, and the noise does not fit the steps.

kmeans-two-theta: Within theta = 10 on 0..1000, centroids 250 and 750. Printed: the cluster sums have sensitivity 2
    theta. But an edge may cross the border between clusters, and then both sums change by a whole point: 500 -> 510
    moves them by 500 + 510 = 1010. Loss 50.5 instead of 1, by the first sum above 250 (probability almost 1).
hierarchical-printed-budget: Within theta = 16 on 0..63, trees of fan-out 16 over blocks of 16, and cumulative counts
    at the ends of the blocks. Printed: the first block takes the whole budget, and every tree publishes its root. A
    move between the blocks 2 and 3 changes one cumulative count, two leaves and two roots: loss eps_S + 2 eps_H =
    1.774, by all five on the hidden side of the step (probability 0.07). Right: no root but n, which is public; the
    cumulative count after the first block joins the others. Loss eps_S + eps_H = 1.
constraint-sensitivity: Everything is secret on 0..3, and how many people have 2 or 3 is known. Printed: the histogram
    has sensitivity 2 max(|Q|, 1) = 2. But when one person moves 0 -> 2, another has to leave {2, 3}, here 3 -> 1: four
    counts change, all four with probability 0.15. Right: 2 (|Q| + 1) = 4. Loss 2.
one-sided-noise-two-directions: One-sided noise on a count that may rise along an edge, 3 -> 4: the output 3
    (probability 0.63) is impossible at `cover`. Right: two-sided noise.
sensitivity-one-for-replaced-records: Everything is secret and the number of people public: a person who changes cell
    lowers one count and raises another. Noise for one step loses 2. Event: both counts on the hidden side, probability
    0.53. Right: noise for two.
composition-unpaid: Two independent answers at eps each, sold as eps. Loss 2, probability 0.53. Right: half of the
    budget for each.
noise-scale-rounded: Scale 1/eps = 5/3 rounded down to a whole number: 1. Loss 1 instead of 0.6, by any output of 5 or
    more, probability 0.73.
randomised-response-second-coin: ln 3 is right for `half of the people tell the truth, the others toss a coin`. With
    three quarters for a half the loss is ln 7 (probability 7/8).
bounds-from-data: A sum of values in 0..100, with noise for the largest value that occurs: 100 at `hidden`, 30 at
    `cover`. The tails have different widths, so the loss has no bound; outputs from 175 on (probability 0.5) lose 3.3.
    Right: the declared bound.
cells-read-off-the-data: A noisy histogram of the cells that occur. A cell that is there proves that somebody is in it:
    infinite loss, probability 1. Right: all declared cells.
joint-noise-one-cell: Joint noise on the running counts of 0..2, within 1: 0.4 for the count that a move changes, and
    0.6 for the cells, as if it changed one. It leaves one and joins another: loss 1.6, by outputs whose first count is
    1 or more and no less than the second, probability 0.67. Right: 0.3 for each of two cells. (A share 2^-16 is never
    drawn: it pays for rounding.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit import noise
from tacit.arrays import Ints
from tacit.audit.selfcheck.planted.planted_leak import PlantedLeak
from tacit.noise.line.law import DRAWN, LineNoise

_THETA = 10
_CENTROIDS = (250, 750)

_VALUES, _BLOCK = 64, 16
# The split that the paper finds best for (|T|, theta, f) = (64, 16, 16), to three digits.
_EPSILON_S, _EPSILON_H = Fraction(226, 1000), Fraction(774, 1000)


def _cluster_sums(points: Sequence[int], size: int, *, sensitivity: int) -> Ints:
    """Return the sum of the points nearest to each public centroid, blurred for epsilon = 1."""
    nearest = [min(range(2), key=lambda cluster: abs(point - _CENTROIDS[cluster])) for point in points]
    sums = [sum(point for point, own in zip(points, nearest, strict=True) if own == cluster) for cluster in range(2)]
    return np.array(sums) + noise.discrete_laplace(sensitivity, (size, 2))


def _nodes(*, printed: bool) -> list[tuple[int, int, Fraction]]:
    """Return what is counted, from the first to before the second number, with the scale of its noise."""
    by_tree = 2 / _EPSILON_H  # trees of height one: a move changes two leaves
    ends = range(_BLOCK, _VALUES + 1, _BLOCK)
    # s_1 is the root of the first tree in the printed version, and n = s_k is public in the right one.
    nodes = [(0, end, 1 / _EPSILON_S) for end in (ends[1:] if printed else ends[:-1])]
    for end in ends:
        scale = Fraction(2) if printed and end == _BLOCK else by_tree  # BROKEN: block 1 takes the whole budget
        if printed:
            nodes.append((end - _BLOCK, end, scale))  # BROKEN: roots change too, and nobody pays for them
        nodes += [(value, value + 1, scale) for value in range(end - _BLOCK, end)]
    return nodes


def _ordered_hierarchical(values: Sequence[int], size: int, *, printed: bool) -> NDArray[np.int32]:
    """Return all nodes, blurred for epsilon = 1, one column for each."""
    nodes = _nodes(printed=printed)
    # Row by row, and half as wide as usual: there are 71 nodes.
    counts = np.empty((len(nodes), size), np.int32)
    for row, (first, end, scale) in zip(counts, nodes, strict=True):
        row[:] = sum(first <= value < end for value in values) + noise.discrete_laplace(scale, size)
    return counts.T


def _four_cells(values: Sequence[int], size: int, *, sensitivity: int) -> Ints:
    """Return how many people have each of the values 0 to 3, blurred for epsilon = 1."""
    return np.bincount(values, minlength=4) + noise.discrete_laplace(sensitivity, (size, 4))


_BLOWFISH = (
    PlantedLeak(
        name="kmeans-two-theta",
        mistake="noise for 2 theta, although an edge across the border moves both cluster sums by a whole point",
        source="Blowfish privacy, Lemma 6.1",
        hidden=(120, 500, 900),
        cover=(120, 510, 900),
        release=partial(_cluster_sums, sensitivity=2 * _THETA),  # BROKEN: forgets edges that change the cluster
        repaired=partial(_cluster_sums, sensitivity=500 + 510),
        exact_loss=(500 + 510) / (2 * _THETA),
    ),
    PlantedLeak(
        name="hierarchical-printed-budget",
        mistake="roots of subtrees are published, and the budget is shared out as if they were not",
        source="Blowfish privacy, Theorem 7.2",
        hidden=(3, 24, 60),
        cover=(3, 40, 60),
        release=partial(_ordered_hierarchical, printed=True),
        repaired=partial(_ordered_hierarchical, printed=False),
        exact_loss=float(_EPSILON_S + 2 * _EPSILON_H),
    ),
    PlantedLeak(
        name="constraint-sensitivity",
        mistake="sensitivity 2, although a known count makes a second person move along",
        source="Blowfish privacy, Corollary 8.3",
        hidden=(0, 3),
        cover=(2, 1),
        release=partial(_four_cells, sensitivity=2),  # BROKEN: one move never comes alone
        repaired=partial(_four_cells, sensitivity=4),
        exact_loss=4 / 2,
    ),
)


ABSENT = -1000  # stands for a cell that is not in the output; no noisy count comes near it
_LARGEST_VALUE = 100
_OF_A_COUNT = Fraction(2, 5)


def _one_sided_count(count: int, size: int) -> Ints:
    """Return a count with one-sided noise at epsilon = 1."""
    return count + noise.geometric(1, size)  # BROKEN: the count may rise along an edge


def _count(count: int, size: int, *, scale: Fraction | int = 1) -> Ints:
    """Return a count with two-sided noise."""
    return count + noise.discrete_laplace(scale, size)


def _two_counts(counts: Sequence[int], size: int, *, scale: int) -> Ints:
    """Return a histogram of two cells with two-sided noise."""
    return np.array(counts) + noise.discrete_laplace(scale, (size, 2))


def _two_answers(count: int, size: int, *, scale: int) -> Ints:
    """Return the same count twice, with independent two-sided noise."""
    return count + noise.discrete_laplace(scale, (size, 2))


def _randomised_response(answer: int, size: int, *, truthful: Fraction) -> Ints:
    """Return the true answer with this probability, and else that of a fair coin."""
    return np.where(noise.bernoulli(truthful, size), answer, noise.uniform_below(2, size))


def _sum(values: Sequence[int], size: int, *, declared: bool) -> Ints:
    """Return the sum of values that are zero or more, at epsilon = 1."""
    bound = _LARGEST_VALUE if declared else max(values)  # BROKEN: the largest value of the data is no public bound
    return sum(values) + noise.discrete_laplace(bound, size)


def _histogram(cells: Sequence[int], size: int, *, declared: bool) -> Ints:
    """Return how many people are in each of three cells, at epsilon = 1."""
    counts = np.bincount(cells, minlength=3)
    noisy = counts + noise.discrete_laplace(2, (size, 3))
    if not declared:
        noisy[:, counts == 0] = ABSENT  # BROKEN: which cells are listed depends on the data
    return noisy


def _running_counts(values: Sequence[int], size: int, *, cell: Fraction) -> Ints:
    """Return for each of the values 0 to 2 how many people have at most that, with joint noise; the last is public."""
    counts = np.cumsum(np.bincount(values, minlength=3))
    return counts + LineNoise((3,), 1, _OF_A_COUNT, (cell,), None).draw(size)


_NOISE = (
    PlantedLeak(
        name="one-sided-noise-two-directions",
        mistake="one-sided noise on a count that may rise as well as fall",
        source="Asymmetric differential privacy (aLap) outside its scope",
        hidden=3,
        cover=4,
        release=_one_sided_count,
        repaired=_count,
    ),
    PlantedLeak(
        name="sensitivity-one-for-replaced-records",
        mistake="noise for one count, although a replaced record changes two",
        hidden=(5, 3),
        cover=(4, 4),
        release=partial(_two_counts, scale=1),  # BROKEN: two counts change by one
        repaired=partial(_two_counts, scale=2),
        exact_loss=2.0,
    ),
    PlantedLeak(
        name="composition-unpaid",
        mistake="two answers about the same people for the price of one",
        hidden=5,
        cover=4,
        release=partial(_two_answers, scale=1),  # BROKEN: each answer costs the whole epsilon
        repaired=partial(_two_answers, scale=2),
        exact_loss=2.0,
    ),
    PlantedLeak(
        name="noise-scale-rounded",
        mistake="the scale of the noise is rounded to a whole number, downwards",
        claimed_epsilon=0.6,
        hidden=5,
        cover=4,
        release=partial(_count, scale=int(1 / 0.6)),  # BROKEN: int() of 1.67 is 1
        repaired=partial(_count, scale=Fraction(5, 3)),
        exact_loss=1.0,
    ),
    PlantedLeak(
        name="randomised-response-second-coin",
        mistake="the share of people who tell the truth is taken for the share of true answers",
        claimed_epsilon=math.log(3),
        hidden=1,
        cover=0,
        release=partial(_randomised_response, truthful=Fraction(3, 4)),  # BROKEN: true answers are 7/8 then
        repaired=partial(_randomised_response, truthful=Fraction(1, 2)),
        exact_loss=math.log(7),
    ),
    PlantedLeak(
        name="bounds-from-data",
        mistake="noise is scaled to the largest value that occurs",
        hidden=(20, 30, 25, 100),
        cover=(20, 30, 25, 0),
        release=partial(_sum, declared=False),
        repaired=partial(_sum, declared=True),
    ),
    PlantedLeak(
        name="cells-read-off-the-data",
        mistake="lists the cells that occur, each with a noisy count",
        hidden=(0, 0, 1, 2),
        cover=(0, 0, 1, 0),
        release=partial(_histogram, declared=False),
        repaired=partial(_histogram, declared=True),
    ),
    PlantedLeak(
        name="joint-noise-one-cell",
        mistake="joint noise on running counts pays for one cell, although a move leaves one and joins another",
        hidden=(0, 2),
        cover=(1, 2),
        release=partial(_running_counts, cell=1 - _OF_A_COUNT),  # BROKEN: two cells change
        repaired=partial(_running_counts, cell=(1 - _OF_A_COUNT) / 2),
        exact_loss=float(DRAWN * (_OF_A_COUNT + 2 * (1 - _OF_A_COUNT))),
    ),
)

PLANTED = (*_BLOWFISH, *_NOISE)

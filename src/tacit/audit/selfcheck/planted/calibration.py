"""Noise of the wrong shape or size: the mechanism is a true answer plus noise, and the noise does not fit the steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit import noise
from tacit.arrays import Ints
from tacit.audit.selfcheck.planted.planted_leak import plant
from tacit.noise.line.law import DRAWN, LineNoise

_THETA = 10
_CENTROIDS = (250, 750)

_VALUES, _BLOCK = 64, 16
# The split that the paper finds best for (|T|, theta, f) = (64, 16, 16), to three digits.
_EPSILON_S, _EPSILON_H = Fraction(226, 1000), Fraction(774, 1000)


@plant((120, 500, 900), (120, 510, 900), loss=(500 + 510) / (2 * _THETA), source="Blowfish privacy, Lemma 6.1")
def kmeans_two_theta(points: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Noise for 2 theta, although an edge across the border moves both cluster sums by a whole point.

    Within theta = 10 on 0..1000, centroids 250 and 750. Printed: the cluster sums have sensitivity 2 theta. But an edge
    may cross the border between clusters, and then both sums change by a whole point: 500 -> 510 moves them by
    500 + 510 = 1010. Loss 50.5 instead of 1, by the first sum above 250 (probability almost 1).
    """
    nearest = [min(range(2), key=lambda cluster: abs(point - _CENTROIDS[cluster])) for point in points]
    sums = [sum(point for point, own in zip(points, nearest, strict=True) if own == cluster) for cluster in range(2)]
    sensitivity = 2 * _THETA if broken else 500 + 510  # BROKEN: forgets edges that change the cluster
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


@plant((3, 24, 60), (3, 40, 60), loss=float(_EPSILON_S + 2 * _EPSILON_H), source="Blowfish privacy, Theorem 7.2")
def hierarchical_printed_budget(values: Sequence[int], size: int, *, broken: bool) -> NDArray[np.int32]:
    """Roots of subtrees are published, and the budget is shared out as if they were not.

    Within theta = 16 on 0..63, trees of fan-out 16 over blocks of 16, and cumulative counts at the ends of the blocks.
    Printed: the first block takes the whole budget, and every tree publishes its root. A move between the blocks 2 and
    3 changes one cumulative count, two leaves and two roots: loss eps_S + 2 eps_H = 1.774, by all five on the hidden
    side of the step (probability 0.07). Right: no root but n, which is public; the cumulative count after the first
    block joins the others. Loss eps_S + eps_H = 1.
    """
    nodes = _nodes(printed=broken)
    # Row by row, and half as wide as usual: there are 71 nodes.
    counts = np.empty((len(nodes), size), np.int32)
    for row, (first, end, scale) in zip(counts, nodes, strict=True):
        row[:] = sum(first <= value < end for value in values) + noise.discrete_laplace(scale, size)
    return counts.T


@plant((4, 4, 4), (3, 3, 3), loss=3.0)
def list_with_the_step_of_one_query(counts: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Noise for one count of a list, although one person is picked by all of its predicates.

    Counts only fall along the secret edge, so one-sided noise is enough. Three predicates that hold together fall
    together: 4, 4, 4 -> 3, 3, 3. Noise of scale 1 hides one of them; all three are 4 or more with probability 1 at
    `hidden`, and e^-3 at `cover`: loss 3. Right: the step of the whole list, scale 3.
    """
    scale = 1 if broken else len(counts)  # BROKEN: the step of one query
    return np.array(counts) + noise.geometric(scale, (size, len(counts)))


@plant((0, 3), (2, 1), loss=2.0, source="Blowfish privacy, Corollary 8.3")
def constraint_sensitivity(values: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Sensitivity 2, although a known count makes a second person move along.

    Everything is secret on 0..3, and how many people have 2 or 3 is known. Printed: the histogram has sensitivity
    2 max(|Q|, 1) = 2. But when one person moves 0 -> 2, another has to leave {2, 3}, here 3 -> 1: four counts change,
    all four with probability 0.15. Right: 2 (|Q| + 1) = 4. Loss 2.
    """
    sensitivity = 2 if broken else 4  # BROKEN: one move never comes alone
    return np.bincount(values, minlength=4) + noise.discrete_laplace(sensitivity, (size, 4))


ABSENT = -1000  # stands for a cell that is not in the output; no noisy count comes near it
_LARGEST_VALUE = 100
_OF_A_COUNT = Fraction(2, 5)


@plant(3, 4, source="Asymmetric differential privacy (aLap) outside its scope")
def one_sided_noise_two_directions(count: int, size: int, *, broken: bool) -> Ints:
    """One-sided noise on a count that may rise as well as fall.

    It rises along an edge, 3 -> 4: the output 3 (probability 0.63) is impossible at `cover`. Right: two-sided noise.
    """
    return count + (noise.geometric if broken else noise.discrete_laplace)(1, size)  # BROKEN: the count may rise


@plant((5, 3), (4, 4), loss=2.0)
def sensitivity_one_for_replaced_records(counts: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Noise for one count, although a replaced record changes two.

    Everything is secret and the number of people public: a person who changes cell lowers one count and raises another.
    Noise for one step loses 2. Event: both counts on the hidden side, probability 0.53. Right: noise for two.
    """
    return np.array(counts) + noise.discrete_laplace(1 if broken else 2, (size, 2))  # BROKEN: two counts change by one


@plant(5, 4, loss=2.0)
def composition_unpaid(count: int, size: int, *, broken: bool) -> Ints:
    """Two answers about the same people for the price of one.

    Two independent answers at eps each, sold as eps. Loss 2, probability 0.53. Right: half of the budget for each.
    """
    return count + noise.discrete_laplace(1 if broken else 2, (size, 2))  # BROKEN: each answer costs the whole epsilon


@plant(5, 4, claimed=0.6, loss=1.0)
def noise_scale_rounded(count: int, size: int, *, broken: bool) -> Ints:
    """The scale of the noise is rounded to a whole number, downwards.

    Scale 1/eps = 5/3 rounded down: 1. Loss 1 instead of 0.6, by any output of 5 or more, probability 0.73.
    """
    scale = int(1 / 0.6) if broken else Fraction(5, 3)  # BROKEN: int() of 1.67 is 1
    return count + noise.discrete_laplace(scale, size)


@plant(1, 0, claimed=math.log(3), loss=math.log(7))
def randomised_response_second_coin(answer: int, size: int, *, broken: bool) -> Ints:
    """The share of people who tell the truth is taken for the share of true answers.

    ln 3 is right for `half of the people tell the truth, the others toss a coin`. With three quarters for a half the
    loss is ln 7 (probability 7/8).
    """
    truthful = Fraction(3, 4) if broken else Fraction(1, 2)  # BROKEN: true answers are 7/8 then
    return np.where(noise.bernoulli(truthful, size), answer, noise.uniform_below(2, size))


@plant((20, 30, 25, 100), (20, 30, 25, 0))
def bounds_from_data(values: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Noise is scaled to the largest value that occurs.

    A sum of values in 0..100, with noise for the largest value that occurs: 100 at `hidden`, 30 at `cover`. The tails
    have different widths, so the loss has no bound; outputs from 175 on (probability 0.5) lose 3.3. Right: the declared
    bound.
    """
    bound = max(values) if broken else _LARGEST_VALUE  # BROKEN: the largest value of the data is no public bound
    return sum(values) + noise.discrete_laplace(bound, size)


@plant((0, 0, 1, 2), (0, 0, 1, 0))
def cells_read_off_the_data(cells: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Lists the cells that occur, each with a noisy count.

    A cell that is there proves that somebody is in it: infinite loss, probability 1. Right: all declared cells.
    """
    counts = np.bincount(cells, minlength=3)
    noisy = counts + noise.discrete_laplace(2, (size, 3))
    if broken:
        noisy[:, counts == 0] = ABSENT  # BROKEN: which cells are listed depends on the data
    return noisy


@plant((0, 2), (1, 2), loss=float(DRAWN * (_OF_A_COUNT + 2 * (1 - _OF_A_COUNT))))
def joint_noise_one_cell(values: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Joint noise on running counts pays for one cell, although a move leaves one and joins another.

    Joint noise on the running counts of 0..2, of which the last is public, within 1: 0.4 for the count that a move
    changes, and 0.6 for the cells, as if it changed one. Loss 1.6, by outputs whose first count is 1 or more and no
    less than the second, probability 0.67. Right: 0.3 for each of two cells. (A share 2^-16 is never drawn: it pays for
    rounding.)
    """
    counts = np.cumsum(np.bincount(values, minlength=3))
    cell = (1 - _OF_A_COUNT) / (1 if broken else 2)  # BROKEN: two cells change
    return counts + LineNoise((3,), 1, _OF_A_COUNT, (cell,), None).draw(size)

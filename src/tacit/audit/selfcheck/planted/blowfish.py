"""Three results of the Blowfish paper that leak if they are copied as printed.

kmeans-two-theta             Within theta = 10 on 0..1000, centroids 250 and 750. Printed: the cluster sums have
                             sensitivity 2 theta. But an edge may cross the border between clusters, and then both sums
                             change by a whole point: 500 -> 510 moves them by 500 + 510 = 1010. Loss 50.5 instead of 1.
hierarchical-printed-budget  Within theta = 16 on 0..63, trees of fan-out 16 over blocks of 16, and cumulative counts at
                             the ends of the blocks. Printed: the first block takes the whole budget, and every tree
                             publishes its root. A move between the blocks 2 and 3 changes one cumulative count, two
                             leaves and two roots: loss eps_S + 2 eps_H = 1.774. Right: no root but n, which is public;
                             the cumulative count after the first block joins the others. Loss eps_S + eps_H = 1.
constraint-sensitivity       Everything is secret on 0..3, and how many people have 2 or 3 is known. Printed: the
                             histogram has sensitivity 2 max(|Q|, 1) = 2. But when one person moves 0 -> 2, another has
                             to leave {2, 3}, here 3 -> 1: four counts change. Right: 2 (|Q| + 1) = 4. Loss 2.

Events, with their probability at `hidden`: the first sum above 250 (almost 1); all five counts that change on the
hidden side of the step (0.07); all four of them (0.15).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit import noise
from tacit.arrays import Ints
from tacit.audit.selfcheck.planted.planted_leak import PlantedLeak

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


def _histogram(values: Sequence[int], size: int, *, sensitivity: int) -> Ints:
    """Return how many people have each of the values 0 to 3, blurred for epsilon = 1."""
    return np.bincount(values, minlength=4) + noise.discrete_laplace(sensitivity, (size, 4))


PLANTED = (
    PlantedLeak(
        name="kmeans-two-theta",
        mistake="noise for 2 theta, although an edge across the border moves both cluster sums by a whole point",
        source="Blowfish privacy, Lemma 6.1",
        claimed_epsilon=1.0,
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
        claimed_epsilon=1.0,
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
        claimed_epsilon=1.0,
        hidden=(0, 3),
        cover=(2, 1),
        release=partial(_histogram, sensitivity=2),  # BROKEN: one move never comes alone
        repaired=partial(_histogram, sensitivity=4),
        exact_loss=4 / 2,
    ),
)

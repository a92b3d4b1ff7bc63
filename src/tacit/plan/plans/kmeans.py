"""Weighted k-means on released numbers: where centres lie, and who is nearest to which.

This is post-processing: it sees weights that were released, and points that are public. Starts are spread out by a
fixed rule in place of chance (k-means++ with fractions of the golden ratio), so that the same numbers always give the
same centres, and nothing but the released numbers decides on them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tacit.arrays import Floats, Ints

GOLDEN: Final = 0.6180339887498949
STARTS: Final = 10
TRIED: Final = 3  # points of which the best becomes the next centre of a start
ROUNDS: Final = 60
LAST_ROUNDS: Final = 12  # on all points, after the thinned-out ones have settled
CHUNK: Final = 1 << 15  # points whose distances fit into a cache
FEW_POINTS: Final = 10_000  # on which all starts are tried; more are thinned out first


def centres_of(points: Floats, weights: Floats, k: int) -> Floats:
    """Return k centres with a small weighted sum of squared distances; the heaviest cluster first.

    >>> points = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> centres_of(points, np.array([1.0, 1.0, 3.0, 3.0]), 2).tolist()
    [[10.5], [0.5]]
    """
    there = np.flatnonzero(weights > 0)
    if len(there) < k:  # fewer points than centres: the others lie where nobody is
        there = np.argsort(-weights, kind="stable")[:k]
    points, weights = points[there], weights[there]
    some, heavy = (points, weights) if len(points) <= FEW_POINTS else _thinned(points, weights)
    found = [_improved(some, heavy, _start(some, heavy, k, number)) for number in range(STARTS)]
    best = min(found, key=lambda centres: spread_around(some, heavy, centres))
    if some is not points:
        best = _improved(points, weights, best, LAST_ROUNDS)
    people = np.bincount(nearest(points, best), weights, k)
    return best[np.lexsort((*best.T[::-1], -people))]


def nearest(points: Floats, centres: Floats) -> Ints:
    """Return for each point which centre is nearest; of equally near ones, the first."""
    out = np.zeros(len(points), dtype=np.int64)
    common = (centres * centres).sum(axis=1)
    for low in range(0, len(points), CHUNK):
        part = slice(low, low + CHUNK)
        # squared distances, less what all centres have in common; a running minimum is faster than one over rows
        apart = common[:, np.newaxis] - 2 * (centres @ points[part].T)
        least, own = apart[0], out[part]
        for number in range(1, len(centres)):
            own[apart[number] < least] = number
            np.minimum(least, apart[number], out=least)
    return out


def spread_around(points: Floats, weights: Floats, centres: Floats) -> float:
    """Return the weighted sum of squared distances to the nearest centre."""
    apart = points - centres[nearest(points, centres)]
    return float(np.einsum("ij,ij,i->", apart, apart, weights))


def _start(points: Floats, weights: Floats, k: int, number: int) -> Floats:
    """Return k centres to begin with: each where many people are far away from those before it."""
    fraction = (number + 0.5) / STARTS
    chosen = [int(np.searchsorted(np.cumsum(weights), fraction * weights.sum()))]
    far = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    for _ in range(k - 1):
        below = np.cumsum(weights * far)
        if below[-1] <= 0:  # all points are taken
            chosen.append(len(chosen) % len(points))
            continue
        tried = []
        for _ in range(TRIED):
            fraction = (fraction + GOLDEN) % 1.0
            at = min(int(np.searchsorted(below, fraction * below[-1])), len(points) - 1)
            left = np.minimum(far, ((points - points[at]) ** 2).sum(axis=1))
            tried.append((float(weights @ left), at, left))
        _, at, far = min(tried, key=lambda one: one[:2])
        chosen.append(at)
    return points[chosen]


def _improved(points: Floats, weights: Floats, centres: Floats, rounds: int = ROUNDS) -> Floats:
    """Move each centre to the mean of the points that are nearest to it, until none moves (Lloyd)."""
    k = len(centres)
    moments = weights[:, np.newaxis] * points
    before = None
    for _ in range(rounds):
        own = nearest(points, centres)
        if before is not None and np.array_equal(own, before):
            break
        before = own
        people = np.bincount(own, weights, k)
        sums = np.stack([np.bincount(own, column, k) for column in moments.T], axis=1)
        centres = np.where(people[:, np.newaxis] > 0, sums / np.maximum(people, 1e-300)[:, np.newaxis], centres)
    return centres


def _thinned(points: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return fewer points, each with the weight and at the mean of some that lie close together."""
    low, wide = points.min(axis=0), np.ptp(points, axis=0)
    axes = np.flatnonzero(wide > 0)
    side = int(FEW_POINTS ** (1 / max(len(axes), 1)))
    label = np.zeros(len(points), dtype=np.int64)
    for axis in axes:
        box = np.minimum((points[:, axis] - low[axis]) * side // wide[axis], side - 1)
        label = label * side + box.astype(np.int64)
    _, label = np.unique(label, return_inverse=True)
    heavy: Floats = np.bincount(label, weights).astype(np.float64)
    means = np.stack([np.bincount(label, weights * column) / heavy for column in points.T], axis=1)
    return means, heavy

"""k-means as document 003 does it: noisy sizes and sums of clusters, with the printed and with a valid sensitivity.

Baselines for measurements only: no session uses them. Points have whole coordinates in a box whose corner is 0. In each
iteration every cluster's size and sum get Laplace noise, half of the iteration's part of epsilon each; all runs of one
setting go on together.

Guarantee   Valid: epsilon for every secret edge x -> y with |x - y|_1 at most `reach`; all graphs of the paper are of
            this kind (whole domain, one attribute, a block, within theta). Printed: none. Its loss is up to 50 epsilon.
Assumes     Sizes of the box, k, iterations and reach are public; the number of people too. Noise is drawn on a fine
            lattice, as a measurement needs it and no more.
Why         For given centres an edge within one cluster changes its sum by |x - y|. An edge that crosses a border
            changes two sums by a whole point each, which Lemma 6.1 forgets. With sums of x - m, m the middle of the
            box, that is |x - m| + |y - m|, at most the sum of the sides. With sums of x - centre it is |x - a| +
            |y - b| for points near the border of a and b: if |x - y| <= reach then the linear function
            |x - b|^2 - |x - a|^2, which is 0 on the border, is at most reach 2 max |a - b| at x. A convex function is
            largest at a corner of the box between two such planes; these are looked at. The smaller of both is taken,
            from the centres alone, which are public by then.
Reference   He, Machanavajjhala, Ding, Blowfish Privacy, 2014, section 6. Blum, Dwork, McSherry, Nissim, Practical
            Privacy: the SuLQ Framework, 2005.
Checked by  reproductions/tests/test_kmeans_003.py, reproductions/tests/test_reproduce_003.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from typing import Final

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit_reproductions.data import Points

IntArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ITERATIONS: Final = 10
K: Final = 4
_SIZES: Final = 2  # an edge moves somebody from one cluster to another
_FINE: Final = 1 << 20
_AT_ONCE: Final = 1 << 22  # distances in memory


@dataclass(frozen=True, eq=False)
class Weighted:
    """Points with weights, as numbers to reckon with."""

    at: Floats
    weights: Floats
    sides: Floats

    @classmethod
    def of(cls, points: Points) -> Weighted:
        """Return the points of a data set."""
        highest = np.array(points.highest, dtype=np.float64)
        return cls(points.at.astype(np.float64), points.counts.astype(np.float64), highest)

    def objective(self, centres: Floats) -> Floats:
        """Return for each run the sum of squared distances to the nearest centre."""
        found = [self.nearest(part)[1] for part in self._parts(centres)]
        return np.concatenate([(distances * self.weights).sum(axis=1) for distances in found])

    def totals(self, centres: Floats) -> tuple[Floats, Floats]:
        """Return size and sum of every cluster: runs x k, and runs x k x dimensions."""
        k = centres.shape[1]
        sizes, sums = [], []
        for part in self._parts(centres):
            runs = len(part)
            cells = (self.nearest(part)[0] + k * np.arange(runs)[:, np.newaxis]).ravel()

            def added(amounts: Floats, cells: IntArray = cells, runs: int = runs) -> Floats:
                return np.bincount(cells, np.tile(amounts, runs), k * runs).astype(np.float64).reshape(runs, k)

            sizes.append(added(self.weights))
            sums.append(np.stack([added(self.weights * line) for line in self.at.T], axis=2))
        return np.concatenate(sizes), np.concatenate(sums)

    def nearest(self, centres: Floats) -> tuple[IntArray, Floats]:
        """Return the nearest centre of each point and the squared distance to it, a line for each run."""
        # without matrix products: with two to four dimensions they only wake up threads
        shape = (len(centres), len(self.at))
        best, least = np.zeros(shape, dtype=np.int64), np.full(shape, np.inf)
        for cluster in range(centres.shape[1]):
            own = centres[:, cluster, np.newaxis]
            distance = np.broadcast_to((own**2).sum(axis=2), shape).copy()
            for axis, line in enumerate(self.at.T):
                distance -= 2 * own[..., axis] * line
            best[distance < least] = cluster
            np.minimum(least, distance, out=least)
        return best, np.maximum(least + (self.at**2).sum(axis=1), 0.0)

    def _parts(self, centres: Floats) -> Iterator[Floats]:
        many = max(1, _AT_ONCE // len(self.at))
        for start in range(0, len(centres), many):
            yield centres[start : start + many]


def random_centres(sides: Floats, runs: int, k: int = K) -> Floats:
    """Draw starts anywhere in the box: they must not depend on the data."""
    return np.asarray(noise.uniform_below(2**53, (runs, k, len(sides))) / 2**53 * sides)


def spread_centres(data: Weighted, runs: int, k: int = K) -> Floats:
    """Draw starts among the points, far from each other (k-means++). Only for the reference without privacy."""
    found = np.empty((runs, k, data.at.shape[1]))
    weights = np.tile(data.weights, (runs, 1))
    for cluster in range(k):
        below = np.cumsum(weights, axis=1)
        drawn = noise.uniform_below(2**53, runs) / 2**53 * below[:, -1]
        at = [int(np.searchsorted(line, until, side="right")) for line, until in zip(below, drawn, strict=True)]
        found[:, cluster] = data.at[np.minimum(at, len(data.at) - 1)]
        weights = data.nearest(found[:, : cluster + 1])[1] * data.weights
    return found


def lloyd(data: Weighted, centres: Floats, iterations: int = ITERATIONS) -> Floats:
    """Return centres after some iterations without noise; a cluster without points stays where it is."""
    for _ in range(iterations):
        sizes, sums = data.totals(centres)
        full = sizes > 0
        moved = sums / np.maximum(sizes, 1)[..., np.newaxis]
        moved = np.where(full[..., np.newaxis], moved, centres)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres


def best_objective(data: Weighted, starts: int = 20) -> float:
    """Return the best objective that many starts without privacy find."""
    return float(data.objective(lloyd(data, spread_centres(data, starts), 50)).min())


def printed_sensitivity(reach: float) -> float:
    """Return what Lemma 6.1 says: twice the longest edge."""
    return 2 * reach


def valid_sensitivity(centres: Floats, sides: Floats, reach: float) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return for each run a sensitivity of the sums that holds, and whether it is for offsets from the centres."""
    middle = np.broadcast_to(sides / 2, centres.shape)
    around_middle = np.minimum(crossing(centres, sides, reach, middle), sides.sum())
    around_centres = crossing(centres, sides, reach, centres)
    found = np.maximum(reach, np.minimum(around_middle, around_centres))
    return np.minimum(found, sides.sum()), (around_centres < around_middle) & (found < sides.sum())


def crossing(centres: Floats, sides: Floats, reach: float, origin: Floats) -> Floats:
    """Return for each run a bound on |x - o(a)| + |y - o(b)| over edges that cross the border of clusters a and b."""
    if centres.shape[1] == 1:
        return np.zeros(len(centres))
    runs, k, dimensions = centres.shape
    here, there = np.array(list(permutations(range(k), 2))).T
    own, other, zero = (one.reshape(-1, dimensions) for one in (centres[:, here], centres[:, there], origin[:, here]))
    far = _farthest(own, other, zero, sides, reach).reshape(runs, -1)
    # both ends of an edge: in a towards b, and in b towards a
    back = [list(zip(here, there, strict=True)).index((b, a)) for a, b in zip(here, there, strict=True)]
    return np.asarray((far + far[:, back]).max(axis=1))


def _farthest(own: Floats, other: Floats, origin: Floats, sides: Floats, reach: float) -> Floats:
    """Return the largest |x - origin|_1 in the box between the border with `other` and as far inside as edges reach."""
    # |x - other|^2 - |x - own|^2 = slope x + shift, 0 on the border
    slope = 2 * (own - other)
    shift = (other**2).sum(axis=1) - (own**2).sum(axis=1)
    most = reach * np.abs(slope).max(axis=1)
    corners = np.array(list(product((0.0, 1.0), repeat=len(sides)))) * sides
    above = (corners[:, np.newaxis] * slope).sum(axis=2) + shift  # corners x runs
    far = np.abs(corners[:, np.newaxis] - origin)
    best = np.where((above >= 0) & (above <= most), far.sum(axis=2), 0.0).max(axis=0)
    for axis, side in enumerate(sides):
        starts = corners[:, axis] == 0
        beside = far[starts].sum(axis=2) - far[starts][:, :, axis]
        for level in (np.zeros_like(most), most):
            with np.errstate(divide="ignore", invalid="ignore"):
                along = (level - above[starts]) / slope[:, axis]
            inside = (along >= 0) & (along <= side)
            there = beside + np.abs(np.where(inside, along, 0.0) - origin[:, axis])
            best = np.maximum(best, np.where(inside, there, 0.0).max(axis=0))
    return np.asarray(best)


def noisy_lloyd(data: Weighted, centres: Floats, reach: float, epsilon: Fraction, *, printed: bool) -> Floats:
    """Return centres after all iterations with noise: sums as Lemma 6.1 protects them, or as it has to be."""
    if not reach:
        return lloyd(data, centres)  # no secret edge: nothing to hide
    rate = float(epsilon) / ITERATIONS / 2
    middle = data.sides / 2
    for _ in range(ITERATIONS):
        sizes, sums = data.totals(centres)
        noisy_sizes = np.maximum(sizes + _laplace(sizes.shape) * (_SIZES / rate), 1.0)[..., np.newaxis]
        if printed:
            blurred = sums + _laplace(sums.shape) * (printed_sensitivity(reach) / rate)
            centres = blurred / noisy_sizes
            continue
        scales, from_centres = valid_sensitivity(centres, data.sides, reach)
        origin = np.where(from_centres[:, np.newaxis, np.newaxis], centres, middle)
        offsets = sums - sizes[..., np.newaxis] * origin
        blurred = offsets + _laplace(sums.shape) * (scales / rate)[:, np.newaxis, np.newaxis]
        centres = np.clip(origin + blurred / noisy_sizes, 0, data.sides)
    return centres


def exact_sensitivity(everywhere: Floats, centres: Floats, is_edge: npt.NDArray[np.bool_], origin: Floats) -> float:
    """Return the largest change of the sums of x - origin over all edges, by going through all of them.

    `everywhere` are all values of the domain, `is_edge` says which pairs are secret, `origin` is what is subtracted in
    each cluster.
    """
    nearest = ((everywhere[:, np.newaxis] - centres) ** 2).sum(axis=2).argmin(axis=1)
    moved = np.zeros((len(everywhere), *centres.shape))
    moved[np.arange(len(everywhere)), nearest] = everywhere - origin[nearest]
    flat = moved.reshape(len(everywhere), -1)
    worst = 0.0
    for at, row in enumerate(flat):
        own = np.abs(flat[is_edge[at]] - row).sum(axis=1)
        worst = max(worst, float(own.max(initial=0.0)))
    return worst


def _laplace(shape: tuple[int, ...]) -> Floats:
    """Draw Laplace noise of scale one, on a fine lattice."""
    return np.asarray(noise.discrete_laplace(_FINE, shape) / _FINE)

"""What chosen counts are, from their measurement by a tilted cube: intervals that hold, and best estimates.

Everything here is post-processing: it sees noisy counts and public numbers only.

Intervals. A count lies between v - m and v, where the radius m is not released. The lower counts are, the larger m
tends to be, but if m is q then no count is lower than v - q. The largest q that is a quantile of its own consequences
(of the law of m for the counts v - q) holds at its level, and so do all intervals [v - q, v] at once; v itself is never
too small.
(That lower counts make m larger is exact up to the cap of the law; beyond, it is checked by simulation, where each
interval by itself has two percent to spare.)

Estimates. For each radius that may have been, a count is spread over v - m .. v with weight 1 / A_m: the law of v given
that it was chosen, so that choosing adds no bias; radii are weighted by how well they fit the counts they imply.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.noise.tilted_cube import TiltedCube

_RADII: Final = 48
_COMPARED: Final = 160
_POINTS: Final = 32
_BINS: Final = 64


def largest_radius(noisy: Ints, law: TiltedCube, level: float) -> int:
    """Return a radius that holds with this probability: no larger one fits its own consequences."""
    above = law.over(noisy)
    # from the counts that make it largest; if the radius is q, counts are no lower than v - q, and so on down
    radius = _quantile(np.zeros_like(above), law, level)
    while True:
        smaller = _quantile(above - radius, law, level)
        if smaller >= radius:
            return radius
        radius = smaller


def _quantile(above: Ints, law: TiltedCube, level: float) -> int:
    """Return a quantile of the radius for counts that are so far over the floor, rounded up."""
    binned = _binned(above, law, np.floor)
    end = law.reach(binned)
    radii = np.unique(np.concatenate([np.linspace(0, 2 * law.cap, 2048), np.geomspace(1, end, 512)]).astype(np.int64))
    weights = law.log_weight(radii, binned)
    mass = np.exp(weights - weights.max()) * np.diff(np.append(radii, radii[-1] + 1))
    at = int(np.searchsorted(np.cumsum(mass), level * mass.sum()))
    return int(radii[min(at + 1, len(radii) - 1)])


def estimate_counts(noisy: Ints, law: TiltedCube, middle: tuple[float, float] | None = None) -> Floats:
    """Return the best estimates of the counts; `middle` is a noisy mean of them, less that of `noisy`, and its rate."""
    # distances from what was seen, and from the floor: counts may be as large as a float can hold, differences are not
    over = law.over(noisy).astype(np.float64)
    lowest = _lowest_radius(law.over(noisy), law)
    highest = largest_radius(noisy, law, 0.999)
    tried = _spread(lowest, highest, _RADII)
    compared = _spread(lowest // 2, 2 * highest, _COMPARED)
    below, fit = np.empty((len(tried), len(over))), np.empty(len(tried))
    for place, m in enumerate(tried.tolist()):
        # the whole numbers v - m .. v, one by one or, if they are many, as parts of equal length
        points = min(m + 1, _POINTS)
        offsets = 0.5 - (m + 1) * (np.arange(points) + 0.5) / points
        mass = law.log_mass(m, over[:, np.newaxis] + offsets)
        least = mass.min(axis=1, keepdims=True)
        weight = np.exp(least - mass)
        spread = weight.mean(axis=1)
        weight /= weight.sum(axis=1, keepdims=True)
        below[place] = weight @ offsets
        top = max(m, law.cap)
        tilt = float(law.rate) * (np.minimum(over, top) - top)
        fit[place] = np.sum(np.log(spread * (m + 1)) - least[:, 0] + tilt)
        implied = _binned(over + below[place], law, np.round)
        fit[place] += float(law.log_weight(m, implied)) - float(np.logaddexp.reduce(law.log_weight(compared, implied)))
        if middle is not None:
            variances = (weight * (offsets - below[place][:, np.newaxis]) ** 2).sum(axis=1)
            gap = middle[0] - float(below[place].mean())
            fit[place] += _fits_middle(gap, middle[1], math.sqrt(variances.sum()) / len(over))
    trust = np.exp(fit - fit.max())
    return np.asarray(noisy + trust @ below / trust.sum())


def _fits_middle(gap: float, rate: float, spread: float) -> float:
    """Return how well a noisy mean fits: exponential noise above a mean that is itself known up to a normal spread."""
    from scipy.special import log_ndtr  # takes longer to load than most releases to be made

    return float(-rate * gap + log_ndtr(gap / max(spread, 1e-9) - rate * spread))


def _lowest_radius(highest: Ints, law: TiltedCube) -> int:
    """Return a radius below which the true one hardly lies: with the highest counts, radii are smallest."""
    radii = _spread(0, law.cap, 2048)
    weights = law.log_weight(radii, _binned(highest, law, np.ceil))
    mass = np.cumsum(np.exp(weights - weights.max()))
    return max(int(radii[int(np.searchsorted(mass, 0.001 * mass[-1]))]) - 1, 0)


def _spread(first: int, last: int, most: int) -> Ints:
    """Return all radii from first to last, or that many with equal distances."""
    last = max(last, first + 1)
    return np.unique(np.linspace(first, last, min(most, last - first + 1)).round().astype(np.int64))


def _binned(above: Any, law: TiltedCube, rounded: Any) -> Ints:
    """Return distances over the floor on few values: what lies under it or far over it weighs alike anyway."""
    width = max(1, law.cap // _BINS)
    return np.asarray(rounded(np.clip(above, 0, 64 * law.cap) / width) * width, dtype=np.int64)

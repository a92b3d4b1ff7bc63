"""Bounds that hold the noise of an answer with a stated probability.

One entry's noise has exact quantiles. An answer that adds up several independent entries has the convolved law, which
is computed on a lattice whose cells are rounded outwards. Where many entries add up to a wide law, that is the normal
law, widened by its first corrections for skewness and heavy tails and rounded outwards.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from tacit.plan.distributions import Cube, Distribution, TwoScale

MANY = 40  # entries, and
WIDE = 50  # standard deviation, from which on a sum is treated as normal
CELLS_PER_SCALE = 64


@lru_cache(maxsize=4096)
def noise_bounds(noise: Distribution, plus: int, minus: int, level: float) -> tuple[float, float]:
    """Return (low, high) with low <= sum of `plus` entries minus sum of `minus` entries <= high at this level."""
    entries = plus + minus
    if entries == 0:
        return 0.0, 0.0
    if entries == 1:
        low, high = _one(noise, level)
        return (low, high) if plus else (-high, -low)
    if isinstance(noise, Cube):
        # dependent coordinates: each within its own bound at a share of the error
        low, high = _one(noise, 1 - (1 - level) / entries)
        return plus * low - minus * high, plus * high - minus * low
    if entries > MANY and math.sqrt(entries * noise.variance()) > WIDE:
        return _normal(noise, plus, minus, level)
    return _convolved(noise, plus, minus, level)


def _one(noise: Distribution, level: float) -> tuple[float, float]:
    left, right = _sides(noise)
    if not left:
        return 0.0, float(noise.quantile(level))
    if not right:
        return float(noise.quantile(1 - level)), 0.0
    return float(noise.quantile((1 - level) / 2)), float(noise.quantile((1 + level) / 2))


def _sides(noise: Distribution) -> tuple[bool, bool]:
    if isinstance(noise, Cube):
        return noise.sides != "right", noise.sides != "left"
    return noise.left > 0, noise.right > 0


def _normal(noise: TwoScale, plus: int, minus: int, level: float) -> tuple[float, float]:
    entries = plus + minus
    mean = (plus - minus) * noise.mean()
    deviation = math.sqrt(entries * noise.variance())
    z = NormalDist().inv_cdf((1 + level) / 2)
    # One entry's excess kurtosis is at most 6 plus 1 over its variance, its skewness at most 2 plus 1 over the standard
    # deviation (one-sided geometric noise); both shrink as entries add up.
    heavy = (6 + 1 / noise.variance()) / entries * (z**3 - 3 * z) / 24
    skew = (2 + 1 / math.sqrt(noise.variance())) / math.sqrt(entries) * (z**2 - 1) / 6
    wide = deviation * (z + max(heavy, 0) + max(skew, 0))
    return float(math.floor(mean - wide)), float(math.ceil(mean + wide))


def _convolved(noise: TwoScale, plus: int, minus: int, level: float) -> tuple[float, float]:
    width = max(1, math.ceil(float(max(noise.left, noise.right)) / CELLS_PER_SCALE))
    tail = 1e-10
    first, last = math.floor(noise.quantile(tail) / width), math.ceil(noise.quantile(1 - tail) / width)
    edges = np.arange(first, last + 2, dtype=np.int64) * width
    mass = np.diff(noise.cdf(edges - 1))  # cell i holds edges[i] .. edges[i+1]-1
    mass = np.clip(mass, 0, None) / mass.sum()
    length = 1 << math.ceil(math.log2((len(mass) + 1) * (plus + minus)))
    law = np.fft.rfft(mass, length) ** plus * np.fft.rfft(mass[::-1], length) ** minus
    total = np.cumsum(np.clip(np.fft.irfft(law, length), 0, None))
    total /= total[-1]
    start = plus * first - minus * (first + len(mass) - 1)
    low = int(np.searchsorted(total, (1 - level) / 2)) + start
    high = int(np.searchsorted(total, (1 + level) / 2)) + start
    # each cell stands for up to width-1 more to the right (plus) or to the left (minus)
    return float(low * width - minus * (width - 1)), float(high * width + plus * (width - 1))

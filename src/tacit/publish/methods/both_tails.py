"""How wide masks are for each tail: an estimate is too low, and too high, with probability delta at least.

Let x = c + nu be a private count of c people, nu even noise, and a = max(x, 0). What is published is x and its mask.

Guarantee   For every count c >= 1, what is published is above (1 + lam) c with probability delta at least, and below
            (1 - lam) c with probability delta at least, if the mask is normal, of deviation kappa a + extra or more.
Assumes     The noise is even, and its variance is as given. A normal mask differs from the normal law as
            `publish/methods/masked.py` says.
Why         With u = nu / c and w = extra / c the chance of too high an estimate given nu is G(u) =
            Phi(-(lam - u) / (kappa max(1 + u, 0) + w)) or, if the mask is wider, no less than that or than 1/2. For
            any K with G(u) >= G(0) + G'(0) u - K u^2 for all u, E[G] >= G(0) - K Var(nu) / c^2, since nu has mean 0.
            This decides where counts are larger than the noise. And Phi(-v) >= 1/2 - v / sqrt(2 pi), so that E[G] >=
            1/2 - (lam + sqrt(Var(nu)) / (2 c)) / (w sqrt(2 pi)), since E max(-u, 0) = E|u| / 2: this decides where
            they are smaller. Too low an estimate: the same with lam + u. Both are checked for all counts of a cell at
            once, by their worst, and cells become so small that kappa leaves room for them; above the last one K
            Var(nu) / c^2 is within this room. No mask can do this for every multiple of what is published: as the
            multiple goes to 0 no estimate is too high.
Reference   Han, Sensitive disclosures under differential privacy guarantees, 2016: Definitions 8 and 9.
Checked by  tests/unit/publish/test_both_tails.py.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import ndtr, ndtri

from tacit.arrays import Floats

_ROOM: Final = 1 / 512  # of delta: half for masks of many coins, half for cells of counts and for the largest ones
_OFF: Final = 0.75 / 64  # over the deviation of a mask: what few coins, and whole parts, change one tail at most
_CELL: Final = 0.003  # the width of a cell, relative to its counts
_SLOPE: Final = 1.05  # K is taken larger by this factor, since its points are a grid
_U: Final = np.concatenate([-np.geomspace(100, 1e-3, 150), np.geomspace(1e-3, 100, 150)])
_WIDER: Final = 1.3  # than by itself: a mask beside a shared one is no wider


@lru_cache(maxsize=64)
def normal_widths(lam: Fraction, delta: Fraction, variance: float) -> tuple[float, float]:
    """Return kappa and extra: a mask of deviation kappa a + extra keeps each tail, where noise has this variance.

    There are some if delta is below 1/2 by more than the room that is left.

    >>> kappa, extra = normal_widths(Fraction(3, 10), Fraction(3, 10), 1.3)
    >>> 0.57 < kappa < 0.58, 0.5 < extra < 3
    (True, True)
    """
    share, low, high = float(lam), 0.0, 1.0
    kappa = kappa_each(lam, delta)
    while not _holds(share, float(delta), variance, kappa, high):
        low, high = high, 2 * high
    for _ in range(7):
        middle = (low + high) / 2
        low, high = (low, middle) if _holds(share, float(delta), variance, kappa, middle) else (middle, high)
    return kappa, high


def kappa_each(lam: Fraction, delta: Fraction) -> float:
    """Return the deviation of normal masks around large counts, relative to the count; infinite if there is none."""
    chance = float(delta) + _ROOM
    return float(lam) / -float(ndtri(chance)) if chance < 1 / 2 else float("inf")


def _holds(lam: float, delta: float, variance: float, kappa: float, extra: float) -> bool:
    """Say whether masks of these widths keep both tails, for every count from 1 on."""
    noise, large = np.sqrt(variance), float(_curve(lam, kappa, np.zeros(1))[0])
    last = max(240 / kappa, noise * np.sqrt(16 / _ROOM * large), 64.0)
    ends = np.geomspace(1, last, int(np.log(last) / _CELL) + 2)
    least, most = ends[:-1], ends[1:]
    crowded = 1 / 2 - (lam * most + noise / 2) / (extra * np.sqrt(2 * np.pi)) - _OFF / extra
    open_ = np.flatnonzero(crowded < delta + _ROOM / 2)
    least, farther, w = least[open_], lam * most[open_] / least[open_], extra / least[open_]
    # masks of few coins are around few people: x is below c / 2 rarely, by Chebyshev
    few = _OFF / (kappa * least / 2 + extra) + _OFF / extra * np.minimum(4 * variance / least**2, 1)
    clear = ndtr(-farther / (kappa + w)) - _curve(farther, kappa, w) * variance / least**2 - few
    return bool((clear >= delta + _ROOM / 2).all())


def _curve(lam: float | Floats, kappa: float, w: Floats) -> Floats:
    """Return K: the chance of either tail, as a function of u = nu / c, lies above its tangent at 0 less K u^2."""
    far, wide, found = np.broadcast_to(lam, w.shape), kappa + w, np.zeros(w.shape)
    for sign in (1, -1):  # too high, too low
        slope = np.exp(-((far / wide) ** 2) / 2) / np.sqrt(2 * np.pi) * (sign * wide + far * kappa) / wide**2
        chance = np.minimum(
            ndtr((sign * _U - far[:, None]) / (kappa * np.maximum(1 + _U, 0) + w[:, None] + 1e-300)), 0.5
        )
        over = (ndtr(-far / wide)[:, None] + slope[:, None] * _U - chance) / _U**2
        found = np.maximum(found, over.max(axis=1))
    return np.asarray(_SLOPE * found)


@lru_cache(maxsize=64)
def beside_ratio(lam: Fraction, delta: Fraction) -> float | None:
    """Return how much wider masks of counts are that share the mask of a larger one as well; None for no such width.

    In the limit of large counts such a count shows c (1 + kappa N) (1 + f), where f is the shared mask relative to what
    it is shared by, even and of any width. The product is too low as often as without f, but less often too high.

    >>> 1.05 < beside_ratio(Fraction(3, 10), Fraction(3, 10)) < 1.08, beside_ratio(Fraction(1, 5), Fraction(2, 5))
    (True, None)
    """
    kappa, points = kappa_each(lam, delta), np.linspace(-9, 9, 1501)
    weights = np.exp(-(points**2) / 2) / np.exp(-(points**2) / 2).sum()
    shared = 1 + np.concatenate([np.linspace(0, 1, 51), np.geomspace(1.05, 100, 60)])[:, None] * points
    size, sign = np.maximum(abs(shared), 1e-12), np.sign(shared)
    for ratio in np.arange(1, _WIDER, 0.005):
        wide = ratio * kappa
        high = ndtr(-((1 + float(lam)) / size - sign) / wide) @ weights
        low = ndtr(((1 - float(lam)) / size - sign) / wide) @ weights
        if min(high.min(), low.min()) >= float(delta) + _ROOM / 2:
            return float(ratio)
    return None

"""How wide masks are for each tail: an estimate is too low, and too high, with probability delta at least.

Let x = c + nu be a private count of c people, nu even noise, and a = max(x, 0). What is published is x and its mask.

Guarantee   For every count c >= 1, what is published is above (1 + lam) c with probability delta at least, and below
            (1 - lam) c with probability delta at least: with a normal mask of deviation kappa a + extra or more
            (`normal_widths`), and with any mask that is lam a + t or more with probability q at least, and -(lam a + t)
            or less with probability q at least (`reach_for`).
Assumes     The noise is even. For `normal_widths` its variance is as given, for `reach_for` its law is that of discrete
            Laplace noise of this scale, of several values less the mean of all of them, which is what moving counts to
            a public size leaves. A normal mask differs from the normal law as `publish/methods/masked.py` says.
Why         Normal masks: with u = nu / c and w = extra / c the chance of too high an estimate given nu is G(u) =
            Phi(-(lam - u) / (kappa max(1 + u, 0) + w)) or, if the mask is wider, no less than that or than 1/2. For
            any K with G(u) >= G(0) + G'(0) u - K u^2 for all u, E[G] >= G(0) - K Var(nu) / c^2, since nu has mean 0.
            This decides where counts are larger than the noise. And Phi(-v) >= 1/2 - v / sqrt(2 pi), so that E[G] >=
            1/2 - (lam + sqrt(Var(nu)) / (2 c)) / (w sqrt(2 pi)), since E max(-u, 0) = E|u| / 2: this decides where
            they are smaller. Too low an estimate: the same with lam + u. Both are checked for all counts of a cell at
            once, by their worst, and cells become so small that kappa leaves room for them; above the last one K
            Var(nu) / c^2 is within this room. Reach: t = (1 + lam) j and q = delta / Pr[nu > -j]. Too high: let nu >
            -j and the mask lam a + t or more. If x >= 0, what is published is (1 + lam) x + t or more, and (1 + lam) nu
            + t > 0. If x < 0, then c < -nu < j, so that it is x + t > c - j + (1 + lam) j = c + lam j > (1 + lam) c.
            Too low: let nu <= j and the mask -(lam a + t) or less. If x >= 0, what is published is (1 - lam) x - t or
            less, below (1 - lam) c since (1 - lam) nu <= (1 - lam) j < t. If x < 0 it is negative. Both have
            probability q Pr[nu > -j] at least, as nu is even. Of several values nu is known by its characteristic
            function on a lattice of 1/m; where that is too long, nu is the value's own noise less the mean R of all
            others: Pr[nu <= -j] <= Pr[own part <= -(j - r)] + Pr[R > r], the latter by Chernoff's bound. No mask can do
            this for every multiple of what is published: as the multiple goes to 0 no estimate is too high.
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
_LONGEST: Final = 1 << 21  # points of the lattice of the law of noise
_FAR: Final = 45  # scales of the noise: what is beyond weighs less than 1e-19
_TYPICAL: Final = (
    100.0  # the count at which the reach is smallest; a larger j costs small counts, a larger q large ones
)
_TRIED: Final = 60


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


@lru_cache(maxsize=64)
def reach_for(lam: Fraction, delta: Fraction, scale: Fraction, values: int) -> tuple[float, float]:
    """Return how far a mask goes beyond lam times its count, in records, and how likely it is on either side.

    There is one if delta is below 1/2.

    >>> t, q = reach_for(Fraction(3, 10), Fraction(3, 10), Fraction(2, 3), 10)
    >>> 1 < t < 4, 0.3 < q < 0.34
    (True, True)
    """
    j = float(scale) * np.linspace(0.05, 12, _TRIED)
    q = float(delta) / (1 - noise_beyond(j, scale, values))
    t = (1 + float(lam)) * j
    # what a mask of two lumps adds to the error
    cost = np.where(q < 1 / 2, np.sqrt(q) * (float(lam) * _TYPICAL + t), np.inf)
    best = int(cost.argmin()) if np.isfinite(cost).any() else _TRIED - 1
    return float(t[best]), float(q[best])


def noise_beyond(j: Floats, scale: Fraction, values: int) -> Floats:
    """Return Pr[nu >= j] for j > 0, rounded up: exact for two values, by Fourier or Chernoff for more."""
    r, q = float(scale), np.exp(-1 / float(scale))

    def alone(from_: Floats) -> Floats:  # Pr[N >= from_] of one count's noise
        least = np.ceil(from_ - 1e-9)
        return np.asarray(np.where(least > 0, q ** np.maximum(least, 0) / (1 + q), 1.0))

    if values == 2:
        return alone(j)
    m = values
    points = 1 << int(np.ceil(np.log2(2 * _FAR * r * m + 2)))
    if points <= _LONGEST:
        turn = 2 * np.pi * np.fft.fftfreq(points)

        def law(times: int) -> Floats:
            return np.asarray((1 - q) ** 2 / (1 - 2 * q * np.cos(times * turn) + q * q))

        mass = np.maximum(np.real(np.fft.ifft(law(m - 1) * law(1) ** (m - 1))), 0.0)  # of m nu
        beyond = np.cumsum(mass[: points // 2][::-1])[::-1]
        first = np.minimum(np.ceil(j * m - 1e-9), points // 2 - 1).astype(np.int64)
        return np.asarray(beyond[first] + 1e-12)
    part = 1 - 1 / m
    tilts = np.geomspace(1e-3, 0.999, 200) * m / r  # the mean of the others, moved by r, is rarer than this
    logs = (m - 1) * np.log((1 - q) ** 2 / np.maximum((1 - q * np.exp(tilts / m)) * (1 - q * np.exp(-tilts / m)), 0))
    off = np.linspace(0, 1, 101)[None, 1:-1] * j[:, None]
    rare = np.exp(np.min(logs[:, None, None] - tilts[:, None, None] * off[None], axis=0))
    return np.asarray(np.minimum(alone((j[:, None] - off) / part) + rare, 1.0).min(axis=1))

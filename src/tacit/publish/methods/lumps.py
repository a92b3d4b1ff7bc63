"""Masks in three lumps, for each tail of a count of which the size of its group tells the rest: of two values.

A mask around a private count a is within lam a of it with probability 1 - 2q, and with probability q each between
lam a + t and 2 lam a + t above it, or as much below it; uniform in each lump.

Guarantee   Let x = c + nu be a private count with discrete Laplace noise nu, and w >= max(x, 0). With a mask around w,
            x and its mask is above (1 + lam) c with probability delta at least, and below (1 - lam) c with probability
            delta at least, for every count c >= 1. Every multiple is wrong by more than lam c with probability delta at
            least.
Assumes     nu has the scale that was stated.
Why         t = (1 + lam) j and q = delta / Pr[nu > -j]. Too high: let nu > -j and the mask lam w + t or more. If x >=
            0, x and its mask is (1 + lam) x + t or more, and (1 + lam) nu + t > 0. If x < 0, then c < -nu < j, so that
            it is x + t > c - j + (1 + lam) j = c + lam j > (1 + lam) c. Too low: let nu <= j and the mask -(lam w + t)
            or less. If x >= 0, it is (1 - lam) x - t or less, below (1 - lam) c since (1 - lam) nu <= (1 - lam) j < t.
            If x < 0 it is negative. Both have probability q Pr[nu > -j] = delta at least, as nu is even. Multiples: the
            outer lumps are farther apart than by the factor (1 + lam) / (1 - lam), or differ in sign, so that every
            interval in which a multiple would be right misses one of them. Lumps are wide for those who know the count
            roughly: exact steps of lam (least variance) would tell it to whoever can rule out two of three, and are not
            drawn. Nor are lumps for more values: these add up to the size of their group only if one coin moves all of
            them, and somebody who knows ten of them to within 40% finds that coin.
Reference   Han, Sensitive disclosures under differential privacy guarantees, 2016: Definitions 8 and 9.
Checked by  tests/unit/publish/test_both_tails.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.noise.draws import uniform_below

_FINE: Final = 1 << 32
_TYPICAL: Final = (
    100.0  # the count at which the error is smallest: a larger j costs small counts, a larger q large ones
)
_TRIED: Final = 100


@dataclass(frozen=True)
class Lumps:
    """The law of masks in three lumps. q is infinite if no lumps keep each tail."""

    lam: float
    t: float  # records
    q: float

    def draw(self, around: Floats, parts: int) -> Ints:
        """Return masks in parts of a record."""
        coin, place = (uniform_below(_FINE, around.shape) for _ in range(2))
        outer = np.ceil(self.q * _FINE)
        sign = (coin < outer).astype(np.int64) - (coin >= _FINE - outer)
        wide = parts * self.lam * around * place / _FINE
        middle = np.rint(2 * wide - parts * self.lam * around)
        lump = np.ceil(parts * (self.lam * around + self.t)) + np.floor(wide)
        return np.where(sign == 0, middle, sign * lump).astype(np.int64)

    def below(self, mask: Floats, around: Floats) -> Floats:
        """Return how likely the mask around a number is smaller than this."""
        width = np.maximum(self.lam * around, 1e-9)
        low, middle, high = ((mask - start) / width for start in (-2 * width - self.t, -width, width + self.t))
        outer = self.q * (np.clip(low, 0, 1) + np.clip(high, 0, 1))
        return np.asarray(outer + (1 - 2 * self.q) * np.clip(middle / 2, 0, 1))

    def deviations(self, around: Floats) -> Floats:
        """Return the standard deviation of the mask around each number."""
        width, near = self.lam * around, self.lam * around + self.t
        outer = near**2 + near * width + width**2 / 3
        return np.sqrt(2 * self.q * outer + (1 - 2 * self.q) * width**2 / 3)


@lru_cache(maxsize=64)
def lumps_for(lam: Fraction, delta: Fraction, scale: Fraction) -> Lumps:
    """Return lumps that keep each tail, with the least error around a count of 100 people.

    >>> found = lumps_for(Fraction(3, 10), Fraction(3, 10), Fraction(9, 10))
    >>> 1 < found.t < 5, 0.3 < found.q < 0.35
    (True, True)
    """
    k = np.unique(np.floor(float(scale) * np.linspace(0, 16, _TRIED)))
    q = np.exp(-1 / float(scale))
    outer = float(delta) / (1 - q ** (k + 1) / (1 + q))  # nu > -j for j a little above k
    tried = [
        Lumps(float(lam), float((1 + lam) * (Fraction(int(j)) + Fraction(1, 1024))), float(chance))
        for j, chance in zip(k, outer, strict=True)
        if chance < 1 / 2
    ]
    return min(
        tried, key=lambda one: float(one.deviations(np.array(_TYPICAL))), default=Lumps(float(lam), 0.0, float("inf"))
    )

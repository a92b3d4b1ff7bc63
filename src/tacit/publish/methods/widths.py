"""How wide a mask must be, so that neither a masked count nor any multiple of it is right too often.

Guarantee   A mask of deviation s = kappa w + extra, around a number that is at most w in size (w >= 1), hides it: for
            every multiple a of what is published and every count c, |a y - c| <= lambda c has probability at most
            1 - delta. It is no limit: it holds for every count, however small.
Assumes     The mask is even, independent of the number, and on every interval within max(1.5 / s, 1 / 512) of a normal
            law, where s is its deviation in parts of a record.
Why         For a > 0 the event is that y lies in an interval [l, r l] with r = (1 + lambda) / (1 - lambda); for a < 0
            that -y does. Around a larger number the likeliest such interval is no less likely: move it along, and it
            lies in one that is longer. So the number w is the worst, and all smaller ones, of either sign, follow. For
            a normal mask the likeliest interval has the chance `best_multiple(s / w)`, which falls with s / w. The mask
            itself differs from it by little: coins that weigh u parts each, s in all, are within 0.56 u / (2 s) of
            the normal law (Berry and Esseen with Shevtsova's constant), twice for the two ends of an interval; whole
            parts move an end by less than one part, which a normal law meets with 1 / (s sqrt(2 pi)). Together that is
            less than 1.5 / s, and where coins weigh more than a part there are 2^20 of them: 1 / 512. kappa leaves room
            for the latter, `extra` for what the former adds to it.
Reference   Shevtsova, An improvement of convergence rate estimates in the Lyapunov theorem, 2010.
Checked by  tests/unit/publish/test_widths.py.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from tacit.arrays import Floats, Ints
from tacit.noise.thinning import bell

# A mask of whole records would stand out around small counts: 3 of 10 is an error of exactly 0.3, and whole numbers
# land there. So masks come in parts of a record.
PARTS: Final = 64
WIDEST: Final = 10  # times a count: a mask that is wider would leave nothing to learn
_STEPS: Final = 60  # halvings of an interval
_DIGITS: Final = 10**4
_LEAST_OFF: Final = 1 / 512  # what many coins differ from the normal law at most
_OFF: Final = 1.5  # over the deviation in parts: what few coins, and whole parts, differ from it at most


def masks(deviations: npt.ArrayLike) -> Ints:
    """Return a mask of at least each deviation, which is in records; the mask is in parts of a record."""
    return bell(PARTS * np.asarray(deviations, np.float64))


@lru_cache(maxsize=64)
def kappa_for(lam: Fraction, delta: Fraction) -> float:
    """Return the least deviation of wide masks, relative to the count, at which no multiple is right too often.

    There is one if lam is below 1 and delta at most `largest_delta(lam)`.

    >>> kappa_for(Fraction(3, 10), Fraction(3, 10))
    0.3034
    """
    found = _least(np.array([1 - float(delta) - _LEAST_OFF]), float(lam))[0]
    return float(np.ceil(found * _DIGITS) / _DIGITS)


@lru_cache(maxsize=64)
def extra_for(lam: Fraction, delta: Fraction) -> float:
    """Return what is added to the deviation of every mask, in records, since coins and parts are whole.

    With s = kappa w + extra, what is asked for is s >= k(s) w, where k(s) is the least relative deviation of a normal
    mask that leaves room for 1.5 / s: so extra >= s (1 - kappa / k(s)) for every s that occurs. k falls with s, so the
    right end of a small interval and the k of its left end bound all in between.

    >>> 0.03 < extra_for(Fraction(3, 10), Fraction(3, 10)) < 0.07
    True
    """
    kappa = kappa_for(lam, delta)
    narrowest, many = kappa * PARTS, _OFF / _LEAST_OFF  # around one record; from where on kappa alone is enough
    if narrowest >= many:
        return 0.0
    s = np.geomspace(max(narrowest, _OFF), many, 2000)
    wanted = s[1:] * (1 - kappa / _least(1 - float(delta) - _OFF / s[:-1], float(lam)))
    from_here = np.maximum.accumulate(wanted[::-1])[::-1]
    enough = s[:-1][from_here <= s[:-1] - narrowest].min(initial=many)
    return float(enough - narrowest) / PARTS


def largest_delta(lam: Fraction) -> Fraction:
    """Return the largest delta, rounded down, for which some mask of at most WIDEST times a count is wide enough.

    >>> largest_delta(Fraction(3, 10))
    Fraction(419, 500)
    """
    return Fraction(floor((1 - _LEAST_OFF - float(best_multiple(float(WIDEST), float(lam)))) * 1000), 1000)


def best_multiple(kappa: Any, lam: float) -> Any:
    """Return how often the best multiple a of a masked count is within lam of the count, for a normal mask.

    With w = 1 / (a kappa) that is Phi((1 + lam) w - 1 / kappa) - Phi((1 - lam) w - 1 / kappa). It rises with w and then
    falls; on top, w (w - 1 / kappa) = ln((1 + lam) / (1 - lam)) / (2 lam). It falls with kappa, but not to nothing.
    """
    narrow, bend = 1 / kappa, (np.log1p(lam) - np.log1p(-lam)) / lam
    w = (narrow + np.sqrt(narrow**2 + 2 * bend)) / 2
    return ndtr((1 + lam) * w - narrow) - ndtr((1 - lam) * w - narrow)


def _least(allowed: Floats, lam: float) -> Floats:
    """Return the least kappa at which the best multiple is right no oftener than is allowed; infinite if none is."""
    low, high = np.full(allowed.shape, 1e-9), np.full(allowed.shape, 1e9)
    none = best_multiple(high, lam) > allowed
    for _ in range(2 * _STEPS):
        middle = np.sqrt(low * high)
        too_often = best_multiple(middle, lam) > allowed
        low, high = np.where(too_often, middle, low), np.where(too_often, high, middle)
    return np.where(none, np.inf, high)

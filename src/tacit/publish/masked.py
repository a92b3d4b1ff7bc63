"""Masked private counts: counts that are private already, each hidden once more by noise that grows with it.

Guarantee   Epsilon for every edge between two records that agree in the public columns, against anybody. And the
            (lambda, delta) criterion, in the limit of large counts: the published count, and every multiple of it, is
            wrong by more than lambda times the true count with probability at least delta, whatever is known about
            other groups. Masks of different groups are independent. For counts of two values up to 30 it holds by
            exact enumeration at (0.3, 0.3) and retentions of 0.5 to 0.9 (an epsilon of 2.9). Where epsilon is larger,
            a mask around a few records is not yet normal, and the noise of the count does not make up for it: 0.273
            instead of 0.3 for a count of one at a retention of 0.99, and about 0.04 instead of 0.05 at (0.05, 0.05).
Assumes     The scales of the masks stay secret: they are made of private counts and are never published. Nobody knows
            some counts of a group and wants others. Sizes of groups are public.
Why         Counts with discrete Laplace noise keep epsilon: a record that moves from one value to another changes two
            of them by one (epsilon / 2 each), and of two values one number is enough, since the size is public
            (epsilon). All else is made of these noisy counts and of fresh noise. A mask is a centred binomial: whole,
            even, with one mode, and as wide as is asked for. If its deviation is kappa times the count, the error of a
            y is normal with mean (a - 1) and deviation a kappa, relative to the count; kappa is the least at which no
            a is within lambda more often than 1 - delta. A group's counts add up to its size, which would tell a count
            from the others: so the published counts add up to the size, and their masks are wide enough after that. If
            one value outweighs the others (its square is more than the sum of theirs), they carry its mask, and the
            spread of many of them would tell how wide it is, to within 1 / sqrt(2 m). So its width follows from the
            public size n: kappa n if it has more than half of the group, else kappa n / 2; either is at least kappa
            times the count. A mask that the others share would not do: it moves all of them, and by how far they are
            apart they tell their sum.
Reference   Han, Sensitive disclosures under differential privacy guarantees, 2016 (the criterion); Ghosh, Roughgarden,
            Sundararajan, arXiv:0811.2841 (the noise of the counts).
Checked by  tests/unit/test_masked.py, tests/statistical/test_private_tables.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import ClassVar, Final

import numpy as np
from scipy.special import ndtr

from tacit.amounts import shown
from tacit.errors import PlanError
from tacit.noise.thinning import symmetric
from tacit.noise.two_scale import TwoScale, discrete_laplace
from tacit.publish.criterion import Bools, Channel, Criterion, not_prevented
from tacit.publish.method import Floats, Ints, PromisingMethod

_STEPS: Final = 60  # halvings of an interval
_DIGITS: Final = 10**4
WIDEST: Final = 10  # times a count: a mask that is wider would leave nothing to learn
# A mask of whole records would stand out around small counts: 3 of 10 is an error of exactly 0.3, and whole numbers
# land there. So masks come in parts of a record; up to this variance all of them.
PARTS: Final = 16
_FINE_VARIANCE: Final = 4.0
_DOUBT: Final = 0.5  # deviations by which the largest count of a group may have been shown too low


@lru_cache(maxsize=64)
def kappa_for(lam: Fraction, delta: Fraction) -> float:
    """Return the least relative deviation at which no multiple of a masked count is within lam too often.

    There is one if lam is below 1 and delta at most `largest_delta(lam)`.

    >>> kappa_for(Fraction(3, 10), Fraction(3, 10))
    0.3021
    """
    low, high = 0.0, float(WIDEST)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if best_multiple(middle, float(lam)) > 1 - float(delta) else (low, middle)
    return float(np.ceil(high * _DIGITS) / _DIGITS)


def largest_delta(lam: Fraction) -> Fraction:
    """Return the largest delta, rounded down, for which some mask of at most WIDEST times a count is wide enough.

    >>> largest_delta(Fraction(3, 10))
    Fraction(21, 25)
    """
    return Fraction(floor((1 - best_multiple(float(WIDEST), float(lam))) * 1000), 1000)


def best_multiple(kappa: float, lam: float) -> float:
    """Return how often the best multiple a of a masked count is within lam of the count.

    With w = 1 / (a kappa) that is Phi((1 + lam) w - 1 / kappa) - Phi((1 - lam) w - 1 / kappa). It rises with w and then
    falls; on top, w (w - 1 / kappa) = ln((1 + lam) / (1 - lam)) / (2 lam). It falls with kappa, but not to nothing.
    """
    narrow, bend = 1 / kappa, float(np.log1p(lam) - np.log1p(-lam)) / lam
    w = (narrow + np.sqrt(narrow**2 + 2 * bend)) / 2
    return float(ndtr((1 + lam) * w - narrow) - ndtr((1 - lam) * w - narrow))


@dataclass(frozen=True)
class Masked(PromisingMethod):
    """Private counts with masks. `channel` says which perturbation has the same epsilon."""

    channel: Channel
    criterion: Criterion

    name: ClassVar[str] = "masked"

    @property
    def noise(self) -> TwoScale:
        """The noise that makes the counts private."""
        scale = (1 if self.channel.values == 2 else 2) / self.epsilon
        return TwoScale(scale, scale)

    @property
    def kappa(self) -> float:
        """The deviation of a mask, relative to the count that it hides."""
        return kappa_for(self.criterion.lam, self.criterion.delta)

    def check(self) -> None:
        """Refuse a criterion that masks do not follow, and what no mask can give.

        Of the latter the multiple 0, or a wide enough guess, would be right too often.
        """
        if self.criterion.how != "exact":
            raise PlanError(
                "must be exact for masked counts, whose masks do not follow a bound on the chance of an error",
                key="criterion",
                given=self.criterion.how,
                fix="Leave it out, or name another method.",
            )
        lam, delta = self.criterion.lam, self.criterion.delta
        if lam >= 1:
            raise PlanError(
                "must be below 1 for masked counts: the multiple 0 of any count is wrong by no more than the count",
                key="lam",
                given=shown(lam),
                fix="Ask for a smaller error, or take method='best'.",
            )
        if delta > largest_delta(lam):
            raise PlanError(
                f"must be at most {shown(largest_delta(lam))} for masked counts and lam = {shown(lam)}: however wide "
                "the masks are, the best multiple of a masked count is right more often",
                key="delta",
                given=shown(delta),
                fix="Ask for a smaller lam or delta, or take method='best'.",
            )

    def draw(self, counts: Ints) -> Ints:
        """Return masked counts, whole numbers that add up to the size of their group."""
        sizes = counts.sum(axis=1)
        if self.channel.values == 2:
            private = counts[:, 0] + discrete_laplace(self.noise.right, len(sizes))
            widest = np.maximum(np.maximum(private, sizes - private), 1)
            first = PARTS * private + masks((self.kappa * widest) ** 2)
            return np.stack([first, PARTS * sizes - first], axis=1)
        private = counts + discrete_laplace(self.noise.right, counts.shape)
        scales, shares = self.scales(private, sizes)
        raw = PARTS * private + masks(scales)
        over = raw.sum(axis=1) - PARTS * sizes
        masked = np.rint(raw - shares * over[:, None]).astype(np.int64)
        # what rounding took away or added goes where the mask is widest
        masked[np.arange(len(sizes)), scales.argmax(axis=1)] += PARTS * sizes - masked.sum(axis=1)
        return np.asarray(masked)

    @property
    def unit(self) -> Fraction:
        """What one unit of the published numbers is worth."""
        return Fraction(1, PARTS)

    def scales(self, private: Ints, sizes: Ints) -> tuple[Floats, Floats]:
        """Return the variances of the masks of each group, and the share of what is over that each value gives back.

        Let q be the variance that a value needs and T that of its mask. After what is over in the sum, with variance A,
        is given back in proportion to T, T (A - T) / A is left of it: T follows from A by a quadratic equation, and A
        by bisection from the sum of all T.
        """
        need, top, alone = self.needs(private, sizes)
        rows = np.arange(len(sizes))
        most = need[rows, top]
        others = need.sum(axis=1) - most
        scales = need * np.where(alone, most / np.maximum(others, 1e-300), 1.0)[:, None]
        shares = np.zeros_like(need)
        shares[rows[alone], top[alone]] = 1.0
        scales[rows[alone], top[alone]] = 0.0
        some = np.flatnonzero(~alone)
        scales[some] = _balanced(need[some], top[some])
        shares[some] = scales[some] / scales[some].sum(axis=1, keepdims=True)
        return scales, shares

    def needs(self, counts: Ints | Floats, sizes: Ints) -> tuple[Floats, Ints, Bools]:
        """Return the variance that each value needs, which value is the largest, and whether the others carry its mask.

        If they do, they are as wide as the size of the group asks for, and not as the largest count does.
        """
        rows, top = np.arange(len(sizes)), counts.argmax(axis=1)
        need = (self.kappa * np.maximum(counts, 1)) ** 2
        large = 2 * counts[rows, top] > sizes
        most = np.where(large, (self.kappa * np.maximum(sizes, 1)) ** 2, need[rows, top])
        alone = need.sum(axis=1) - need[rows, top] <= most
        need[rows, top] = np.where(alone, np.maximum(most, (self.kappa * sizes / 2) ** 2), most)
        return need, top, alone

    def estimates(self, published: Ints, sizes: Ints) -> Floats:
        """Return the masked counts: they have nearly no bias."""
        return np.asarray(published / PARTS)

    def variances(self, counts: Floats, sizes: Ints) -> Floats:
        """Return about the variance of masked counts where these are the true ones."""
        have = np.maximum(counts, 0)
        if self.channel.values == 2:
            have = np.maximum(have, sizes[:, None] - have)
            return np.asarray((self.kappa * np.maximum(have, 1)) ** 2 + self.noise.variance())
        need, top, alone = self.needs(have, sizes)
        rows = np.arange(len(sizes))
        most = need[rows, top]
        others = need.sum(axis=1) - most
        found = need * np.where(alone, most / np.maximum(others, 1e-300), 1.0)[:, None]
        found[rows, top] = most
        noise = np.full(found.shape, self.noise.variance())
        noise[rows, top] += np.where(alone, (found.shape[1] - 2) * self.noise.variance(), 0.0)  # that of all others
        return np.asarray(found + noise)

    def estimated_variances(self, estimates: Floats, sizes: Ints) -> Floats:
        """Return about the variance of masked counts, or more; true counts are unknown, and which one is the largest.

        A square of a published count holds its own variance, so squares are not too small on average. A value whose
        count was shown too low may yet have more than half of a group: it is taken for that from _DOUBT deviations
        below on. What the others carry of its mask is in proportion to their squares; a part s of it is taken for
        s (2 - s), since parts that vary are too small on average where one of the others has nearly all.
        """
        if self.channel.values == 2:
            return self.variances(estimates, sizes)
        rows, top = np.arange(len(sizes)), estimates.argmax(axis=1)
        squares = np.maximum(estimates**2, 1.0)
        own = squares[rows, top]
        others = squares.sum(axis=1) - own
        large = estimates[rows, top] > (1 / 2 - _DOUBT * self.kappa) * sizes
        alone = large | (own >= others)
        most = np.where(large, 1.0 * sizes**2, np.where(alone, sizes**2 / 4, own))
        part = np.minimum(squares / others[:, None], 1.0)
        found = np.where(alone[:, None], part * (2 - part) * most[:, None], squares)
        found[rows, top] = most
        carried = np.where(alone, squares.shape[1] - 2, 0) * self.noise.variance()
        found = self.kappa**2 * found + self.noise.variance()
        found[rows, top] += carried
        return np.asarray(found)

    @property
    def leaves_open(self) -> list[str]:
        """What it does not prevent."""
        return [
            *not_prevented(self.criterion),
            *(
                []
                if self.channel.values == 2
                else [
                    "how far the counts of many values are apart tells whether one value outweighs all others of its "
                    "group together, and whether it has more than half of it",
                    "who knows that some values of a group are equally frequent may average their counts, and what is "
                    "left of the group is then known better as well",
                ]
            ),
        ]

    def words(self) -> list[str]:
        """Say what is done, and what it promises."""
        return [
            f"counts of each group with noise that keeps epsilon, masked by whole-number noise of {self.kappa:.4g} "
            "times each count; scales of masks are secret, masks of groups are independent",
            f"the published count and every multiple of it: the chance of an error above {shown(self.criterion.lam)} "
            f"times the true count is at least {shown(self.criterion.delta)}, whatever is known about other groups",
            "that is the limit of large counts: around a few records the chance may be lower, by a tenth of delta or "
            "more where epsilon is above 2.9",
        ]


def masks(variances: Floats) -> Ints:
    """Return a mask of each variance, in parts of a record; rounded up.

    A binomial of whole records for what is wide, one of parts for the rest: every mask has parts, so that they do not
    tell how wide it is.
    """
    fine = np.minimum(variances, _FINE_VARIANCE)
    parts = np.ceil(2 * PARTS**2 * fine).astype(np.int64)
    return PARTS * symmetric(np.ceil(2 * (variances - fine)).astype(np.int64)) + symmetric(parts)


def _balanced(need: Floats, top: Ints) -> Floats:
    """Return the variances of masks of which, after what is over is given back, what is needed is left."""
    rows = np.arange(len(top))
    least = 4 * need.max(axis=1)

    def small(total: Floats) -> Floats:
        a = total[:, None]
        return np.asarray(a / 2 * (1 - np.sqrt(np.maximum(1 - 4 * need / a, 0))))

    def missing(total: Floats) -> Floats:
        """Return how far the masks fall short of their sum; the largest one may be the larger of its two roots."""
        parts = small(total)
        own = parts[rows, top]
        rest = parts.sum(axis=1) - own
        return np.asarray(np.where(two_roots, own - rest, rest + own - total))

    two_roots = small(least).sum(axis=1) < least
    low, high = least.copy(), least.copy()
    grows = missing(high) > 0
    while grows.any():
        high[grows] *= 4
        grows = (missing(high) > 0) & (high < least * 1e12)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        short = missing(middle) > 0
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    found = small(high)
    found[rows, top] = np.where(two_roots, high - (found.sum(axis=1) - found[rows, top]), found[rows, top])
    return found

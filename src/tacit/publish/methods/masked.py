"""Masked private counts: private counts, each of which is also hidden by noise that grows with it.

Guarantee   Epsilon for every edge between two records that agree in the public columns, against anybody. And the
            (lambda, delta) criterion, for every count and every frequency: the published count, and every multiple of
            it, is wrong by more than lambda times the true count with probability at least delta, whatever is known
            about other groups. Masks of different groups are independent. It is proved for all counts but one kind: the
            counts beside a largest one whose mask they share. For these it is the limit of large counts, by quadrature.
            A mask of deviation s = kappa w + extra, around a number that is at most w in size (w >= 1), hides it: for
            every multiple a of what is published and every count c, |a y - c| <= lambda c has probability at most
            1 - delta. It is no limit: it holds for every count, however small. With `tails="each"` masks are wider, and
            the published count is also too low, and too high, by more than lambda with probability delta at least, for
            every count, with the same exception.
Assumes     A mask is even, independent of the number, and on every interval within max(1.5 / s, 1 / 512) of a normal
            law, where s is its deviation in parts of a record. The scales of the masks stay secret: they are made of
            private counts and are never published. Nobody knows some counts of a group, or how the others relate to
            each other, and wants the rest. Sizes are public.
Why         Counts with discrete Laplace noise keep epsilon: a record that moves from one value to another changes two
            of them by one (epsilon / 2 each), and of two values one number is enough, since the size is public
            (epsilon). All else is made of these noisy counts and of fresh noise: first they are moved alike, so that
            they add up to the size (least squares). A mask of deviation kappa w + extra hides every number of size w
            and less, and all multiples (below); so it does given the noise, whatever that was. Published counts add up
            to the size, so a count is told by the others: their masks together must be as wide as its own. Mostly they
            are. If one value outweighs the others (its square is more than the sum of theirs), they carry what is
            missing. Each by itself would have to be far wider, and the spread of many would tell the width, hence the
            largest count, to within 1 / sqrt(2 m). So they share one mask, in proportion to what is masked already: all
            grow or shrink alike, their proportions do not change, and only their sum, one number, says anything about
            the largest count. Given the shared mask, what another value shows is nearly a multiple of its masked count,
            and that is hidden. Counts within the noise stay out of it (weight x^3 / (x^2 + t^2)): the scale of noise is
            public, and a mask that moved it could be read off. Where too much of a group lies in such counts they
            cannot share a mask: each is made wider then, and all together kappa n wide, by the public size n, which
            tells nothing. Widths: for a > 0 the event is that y lies in an interval [l, r l] with r = (1 + lambda) / (1
            - lambda); for a < 0 that -y does. Around a larger number the likeliest such interval is no less likely:
            move it along, and it lies in one that is longer. So the number w is the worst, and all smaller ones, of
            either sign, follow. For a normal mask the likeliest interval has the chance `best_multiple(s / w)`, which
            falls with s / w. The mask itself differs from it by little: coins that weigh u parts each, s in all, are
            within 0.56 u / (2 s) of the normal law (Berry and Esseen with Shevtsova's constant), twice for the two ends
            of an interval; whole parts move an end by less than one part, which a normal law meets with 1 / (s sqrt(2
            pi)). Together that is less than 1.5 / s, and where coins weigh more than a part there are 2^20 of them: 1 /
            512. kappa leaves room for the latter, `extra` for what the former adds to it.
Reference   Han, Sensitive disclosures under differential privacy guarantees, 2016 (the criterion); Ghosh, Roughgarden,
            Sundararajan, arXiv:0811.2841 (the noise of the counts). Shevtsova, An improvement of convergence rate
            estimates in the Lyapunov theorem, 2010.
Checked by  tests/unit/publish/test_masked.py, tests/unit/publish/test_widths.py,
            tests/statistical/test_private_tables.py, reproductions/tests/test_mask_attacks.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from tacit.amounts import shown
from tacit.arrays import Bools, Floats, Ints
from tacit.errors import PlanError
from tacit.noise.thinning import bell
from tacit.noise.two_scale import TwoScale, discrete_laplace
from tacit.publish.methods.both_tails import beside_ratio, kappa_each, normal_widths
from tacit.publish.methods.criterion import READINGS, Channel, Criterion, not_prevented
from tacit.publish.methods.lumps import Lumps, lumps_for
from tacit.publish.methods.method import PromisingMethod

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

    With s = kappa w + extra, s >= k(s) w is needed, where k(s) is the least relative deviation of a normal mask that
    leaves room for 1.5 / s: so extra >= s (1 - kappa / k(s)) for every s that occurs. k falls with s, so the right end
    of a small interval and the k of its left end bound all in between.

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

    With w = 1 / (a kappa) that is Phi((1 + lam) w - 1 / kappa) - Phi((1 - lam) w - 1 / kappa). It rises with w up to
    w (w - 1 / kappa) = ln((1 + lam) / (1 - lam)) / (2 lam), and then falls. It falls with kappa, but not to 0.
    """
    narrow, bend = 1 / kappa, (np.log1p(lam) - np.log1p(-lam)) / lam
    w = (narrow + np.sqrt(narrow**2 + 2 * bend)) / 2
    return ndtr((1 + lam) * w - narrow) - ndtr((1 - lam) * w - narrow)


def _least(allowed: Floats, lam: float) -> Floats:
    """Return the least kappa at which the best multiple is right at most as often as `allowed`; infinite if none is."""
    low, high = np.full(allowed.shape, 1e-9), np.full(allowed.shape, 1e9)
    none = best_multiple(high, lam) > allowed
    for _ in range(2 * _STEPS):
        middle = np.sqrt(low * high)
        too_often = best_multiple(middle, lam) > allowed
        low, high = np.where(too_often, middle, low), np.where(too_often, high, middle)
    return np.where(none, np.inf, high)


_CLEAR: Final = 4.0  # deviations of the noise: a larger count is clear of it
_MOST: Final = 0.8  # of the others of a group must be clear of the noise, or they share no mask
SHARED_ONLY_IN_THE_LIMIT: Final = (
    "that is proved for every count, but for those that share the mask of a far larger one {place}: there it is the "
    "limit of large counts"
)


@dataclass(frozen=True)
class MaskLayout:
    """How the masks of groups are laid out: a row for each group.

    `need` are the variances that values need, `top` is the largest value, `alone` says that its square outweighs the
    others. Then these share one mask if `shared` is set; else theirs are wider, with the variance `most` in all.
    """

    need: Floats
    top: Ints
    alone: Bools
    shared: Bools
    most: Floats

    @property
    def missing(self) -> Floats:
        """The variance that the masks of the others lack to hide the largest count, where they share a mask."""
        rows = np.arange(len(self.top))
        own = self.need[rows, self.top]
        return np.where(self.shared, np.maximum(2 * own - self.need.sum(axis=1), 0.0), 0.0)

    def others(self) -> Floats:
        """Return the variances that the others need, and 0 for the largest value."""
        found = self.need.copy()
        found[np.arange(len(self.top)), self.top] = 0.0
        return found


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
        """The deviation of a mask of a large count, relative to the count."""
        asked = self.criterion.lam, self.criterion.delta
        if self.lumps:
            return float(self.lumps.deviations(np.array(1e9))) / 1e9
        return max(kappa_for(*asked), kappa_each(*asked) if self.criterion.each else 0.0)

    @property
    def lumps(self) -> Lumps | None:
        """The law of masks that are not normal: of two values, for each tail."""
        if self.channel.values > 2 or not self.criterion.each:
            return None
        return lumps_for(self.criterion.lam, self.criterion.delta, self.noise.right)

    def deviations(self, counts: Ints | Floats) -> Floats:
        """Return the deviation of the mask that hides each count."""
        asked, have = (self.criterion.lam, self.criterion.delta), np.asarray(counts, np.float64)
        found = kappa_for(*asked) * np.maximum(abs(have), 1.0) + extra_for(*asked)
        if not self.criterion.each:
            return np.asarray(found)
        if self.lumps:
            return self.lumps.deviations(np.maximum(have, 0.0))
        kappa, extra = normal_widths(*asked, self.noise_variance * self.moved_by)
        return np.maximum(found, kappa * np.maximum(have, 0.0) + extra)

    def check(self) -> None:
        """Refuse a criterion that masks do not follow, or that no mask keeps."""
        if self.criterion.how != "exact":
            rule = "must be exact for masked counts, whose masks do not follow a bound on the chance of an error"
            fix = "Leave it out, or name another method."
            raise PlanError(rule, key="criterion", given=self.criterion.how, fix=fix)
        lam, delta = self.criterion.lam, self.criterion.delta
        if lam >= 1:
            rule = "must be below 1 for masked counts: the multiple 0 of any count is wrong by no more than the count"
            raise PlanError(rule, key="lam", given=lam, fix="Ask for a smaller error, or take method='best'.")
        if delta > largest_delta(lam):
            raise PlanError(
                f"must be at most {shown(largest_delta(lam))} for masked counts and lam = {shown(lam)}: however wide "
                "the masks are, the best multiple of a masked count is right more often",
                key="delta",
                given=delta,
                fix="Ask for a smaller lam or delta, or take method='best'.",
            )
        if self.criterion.each and not self.kappa <= WIDEST:
            rule = f"must be smaller for tails='each': no mask of at most {WIDEST} times a count keeps each tail"
            raise PlanError(rule, key="delta", given=delta, fix="Ask for a smaller lam or delta.")

    def draw(self, counts: Ints) -> Ints:
        sizes = counts.sum(axis=1)
        if self.channel.values == 2:
            first = counts[:, 0] + discrete_laplace(self.noise.right, len(sizes))
            return self.whole(np.stack([first, sizes - first], axis=1), sizes)
        return self.whole(moved(counts + discrete_laplace(self.noise.right, counts.shape), sizes), sizes)

    def whole(self, private: Ints | Floats, sizes: Ints, hidden: Floats | None = None) -> Ints:
        """Return `masked` in whole parts, each less than one away, that add up to what the sums say."""
        found = self.masked(private, sizes, hidden)
        return np.asarray(np.diff(np.rint(np.cumsum(found, axis=1)).astype(np.int64), axis=1, prepend=0))

    def masked(self, private: Ints | Floats, sizes: Ints, hidden: Ints | Floats | None = None) -> Floats:
        """Return private counts, which add up to the sizes of groups, with masks: in parts, and with the same sums.

        Masks are wide enough for the counts that are `hidden`, if they are others.
        """
        found = PARTS * np.asarray(private, np.float64)
        hidden = private if hidden is None else hidden
        if self.channel.values == 2:
            largest = np.asarray(hidden.max(axis=1), np.float64)
            mask = self.lumps.draw(largest, PARTS) if self.lumps else masks(self.deviations(largest))
            return found + np.stack([mask, -mask], axis=1)
        layout = self.layout(hidden, sizes)
        even = np.flatnonzero(~layout.alone)
        found[even] += _summing_to_zero(layout.need[even], layout.top[even])
        alone = np.flatnonzero(layout.alone)
        found[alone] = self._carried(found[alone] / PARTS, sizes[alone], hidden[alone])
        return found

    def _carried(self, private: Floats, sizes: Ints, hidden: Ints | Floats) -> Floats:
        """Return masked counts, in parts, of groups whose largest value outweighs the others."""
        rows, layout = np.arange(len(sizes)), self.layout(hidden, sizes)
        need = layout.others()
        factor = np.where(layout.shared, 1.0, layout.most / np.maximum(need.sum(axis=1), 1e-300))
        found = PARTS * private + masks(np.sqrt(need * factor[:, None]))
        found[rows, layout.top] = 0.0
        common = masks(np.sqrt(layout.missing))
        found += common[:, None] * self.weights(found / PARTS, private, layout)
        found[rows, layout.top] = PARTS * sizes - found.sum(axis=1)
        return np.asarray(found)

    @property
    def unit(self) -> Fraction:
        return Fraction(1, PARTS)

    @property
    def clear(self) -> float:
        """The least count that is clear of the noise."""
        return _CLEAR * float(np.sqrt(self.noise_variance + self.kappa**2))

    @property
    def noise_variance(self) -> float:
        """The variance of the noise in each count, before counts are moved."""
        return self.noise.variance()

    @property
    def beside(self) -> float | None:
        """How much wider masks of counts are beside one whose mask they share; None if they share none."""
        return beside_ratio(self.criterion.lam, self.criterion.delta) if self.criterion.each else 1.0

    @property
    def moved_by(self) -> float:
        """What moving counts to the size of their group leaves of the variance of their noise."""
        return 1.0 if self.channel.values == 2 else 1 - 1 / self.channel.values

    def told(self, counts: Floats) -> Floats:
        """Return the part of each count that is clear of the noise."""
        there = np.maximum(counts, 0.0)
        return np.asarray(there**3 / (there**2 + self.clear**2))

    def weights(self, masked: Floats, private: Floats, layout: MaskLayout) -> Floats:
        """Return which part of the shared mask each value carries: in proportion to what is masked already."""
        rows = np.arange(len(layout.top))
        found, instead = self.told(masked), self.told(private)
        for one in (found, instead):
            one[rows, layout.top] = 0.0
        found = np.where(found.sum(axis=1, keepdims=True) > 0, found, instead)
        return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300))

    def layout(self, counts: Ints | Floats, sizes: Ints) -> MaskLayout:
        """Return how masks are laid out where these are the counts."""
        rows, top = np.arange(len(sizes)), counts.argmax(axis=1)
        need = self.deviations(counts) ** 2
        own = need[rows, top]
        alone = need.sum(axis=1) - own <= own
        ratio = self.beside
        need[alone] *= (ratio or 1.0) ** 2
        need[rows, top] = own
        others = np.maximum(np.asarray(counts, np.float64), 0.0)
        others[rows, top] = 0.0
        told = self.told(others).sum(axis=1)
        shared = alone & (ratio is not None) & (told > 0) & (told >= _MOST * others.sum(axis=1))
        return MaskLayout(need, top, alone, shared, self.public_widths(own, sizes))

    def public_widths(self, own: Floats, sizes: Ints) -> Floats:
        """Return the variance of the mask of the largest count where the others share none: by the public size."""
        return np.maximum(self.deviations(sizes) ** 2, own)

    def estimates(self, published: Ints, sizes: Ints) -> Floats:
        return np.asarray(published * float(self.unit))  # nearly no bias; units are powers of two

    def variances(self, counts: Floats, sizes: Ints) -> Floats:
        return np.asarray(self.mask_variances(counts, sizes) + self.noise_variance * self.moved_by)

    def mask_variances(self, counts: Floats, sizes: Ints) -> Floats:
        """Return about the variance of the masks alone."""
        have = np.maximum(counts, 0)
        if self.channel.values == 2:
            return np.asarray(self.deviations(np.maximum(have, sizes[:, None] - have)) ** 2)
        return self._laid_out(have, self.layout(have, sizes))

    def _laid_out(self, counts: Floats, layout: MaskLayout) -> Floats:
        """Return the variances of the masks of counts under a layout."""
        rows, others = np.arange(len(layout.top)), layout.others()
        wider = layout.alone & ~layout.shared
        factor = np.where(wider, layout.most / np.maximum(others.sum(axis=1), 1e-300), 1.0)
        found = others * factor[:, None] + layout.missing[:, None] * self.weights(counts, counts, layout) ** 2
        found[rows, layout.top] = np.where(wider, layout.most, layout.need[rows, layout.top])
        return np.asarray(found)

    def mask_covariances(self, counts: Floats, sizes: Ints) -> Floats:
        """Return about how the masks of the values of each group vary together: they add up to zero."""
        have = np.maximum(counts, 0)
        if self.channel.values == 2:
            one = self.deviations(np.maximum(have.max(axis=1), sizes - have.min(axis=1))) ** 2
            return np.asarray(one[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]]))
        rows, layout, diagonal = np.arange(len(sizes)), self.layout(have, sizes), np.eye(have.shape[1])
        own = balanced(layout.need, layout.top)
        even = own[:, :, None] * (diagonal - (own / own.sum(axis=1, keepdims=True))[:, None, :])
        others, weights = layout.others(), self.weights(have, have, layout)
        factor = np.where(layout.shared, 1.0, layout.most / np.maximum(others.sum(axis=1), 1e-300))
        beside = (others * factor[:, None])[:, :, None] * diagonal
        beside += layout.missing[:, None, None] * weights[:, :, None] * weights[:, None, :]
        beside[rows, layout.top, :] = -beside.sum(axis=1)
        beside[rows, :, layout.top] = -(beside.sum(axis=2) - beside[rows, :, layout.top])
        return np.where(layout.alone[:, None, None], beside, even)

    def estimated_variances(self, estimates: Floats, sizes: Ints) -> Floats:
        # Squares of published counts include their variance, so they are not too small on average. A group with a count
        # below zero that noise does not explain has masks that are wider than their counts: there squares are taken.
        base = self.variances(estimates, sizes)
        if self.channel.values == 2:
            return base
        rows, top = np.arange(len(sizes)), estimates.argmax(axis=1)
        wide = np.any(estimates < -self.clear, axis=1, keepdims=True)
        squares = np.maximum(base, estimates**2)
        squares[rows, top] = np.maximum(base[rows, top], self.deviations(sizes) ** 2)
        return np.where(wide, squares, base)

    def holds_together(self, old: Ints, new: Ints) -> Bools:
        # both versions are masked once more (`publish/methods/grown.py`): for one column, both tails together
        found = super().holds_together(old, new)
        return found | (not self.criterion.each and not self.channel.shape)

    @property
    def leaves_open(self) -> list[str]:
        several = [
            "the distances between the counts of a group show whether one value has more records than all others "
            "together, if each of the others has only a few",
            "somebody who knows how some values of a group relate to each other, for instance that they are equally "
            "frequent, can average their counts, and then knows the rest of the group better as well",
        ]
        return [*not_prevented(self.criterion), *(several if self.channel.values > 2 else [])]

    def words(self) -> list[str]:
        return [
            f"counts of each group with noise that keeps epsilon, masked by whole-number noise of {self.kappa:.4g} "
            f"times each count{', in three lumps' if self.lumps else ''}; scales of masks are secret, masks of groups "
            "are independent",
            *self.promises(),
            *(
                [SHARED_ONLY_IN_THE_LIMIT.format(place="in their group")]
                if self.channel.values > 2 and self.beside is not None
                else []
            ),
        ]

    def promises(self) -> list[str]:
        """Say what is promised of each published count."""
        lam, delta = shown(self.criterion.lam), shown(self.criterion.delta)
        wrong = f"the chance of an error above {lam} times the true count is at least {delta}, "
        weaker = f"{wrong}{READINGS['together']}, whatever is known about other groups"
        if not self.criterion.each:
            return [f"the published count and every multiple of it: {weaker}"]
        return [
            f"the published count: {wrong}{READINGS['each']}, for every count, whatever is known about other groups",
            f"every multiple of it, which cannot do so on each side: {weaker}",
        ]


def moved(noisy: Ints | Floats, sizes: Ints) -> Floats:
    """Return noisy counts, moved alike in each group, so that they add up to its size."""
    return np.asarray(noisy - ((noisy.sum(axis=1) - sizes) / noisy.shape[1])[:, None])


def _summing_to_zero(need: Floats, top: Ints) -> Floats:
    """Return masks in parts with the needed variances that add up to zero in each group."""
    variances = balanced(need, top)
    raw = masks(np.sqrt(variances))
    shares = variances / np.maximum(variances.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(raw - shares * raw.sum(axis=1, keepdims=True))


def balanced(need: Floats, top: Ints) -> Floats:
    """Return the variances of masks that have the needed variances after their sum is taken off.

    Let q be the variance that a value needs and T that of its mask. After the sum, with variance A, is taken off in
    proportion to T, T (A - T) / A is left: T follows from A by a quadratic equation, and A by bisection from the sum of
    all T.
    """
    rows = np.arange(len(top))
    least = 4 * need.max(axis=1)

    def small(total: Floats) -> Floats:
        a = total[:, None]
        return np.asarray(a / 2 * (1 - np.sqrt(np.maximum(1 - 4 * need / a, 0))))

    def missing(total: Floats) -> Floats:
        # the largest mask may be the larger of its two roots
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

"""When an estimate about a personal group is too good: the (lambda, delta) criterion of reconstruction privacy.

A group has `size` records, of which `count` have a value: the frequency is f = count / size. From the perturbed group
somebody estimates F'. The value is hidden well enough if F' is wrong by more than lambda * f often enough:

    each      Pr[F' < f - lambda f] >= delta and Pr[F' > f + lambda f] >= delta     (the thesis' Definition 8)
    together  Pr[|F' - f| > lambda f] > delta                                       (weaker; what publications promise
                                                                                     unless they say `each`)

`chernoff` takes Chernoff's bound for the lower tail, as the thesis does: an upper bound on the probability of an error,
so it calls groups private that are not. `exact` sums the tail of two binomials; its terms beyond 8.5 standard
deviations, less than 1e-15, are left out. The exact tail does not fall steadily with the size.

Guarantee   `is_private` decides each (count, size) by the stated probability, up to rounding of 1e-12.
Assumes     Each record keeps its value with probability `retention`, else gets one of `values` uniformly, by itself.
Why         The perturbed count is Bin(count, p + (1-p)/m) + Bin(size - count, (1-p)/m), and F' is that count, moved
            and divided (Lemma 3), so an error beyond lambda f is a count beyond an exact rational threshold. Two
            shortcuts skip only what they prove: with Chernoff's bound the exact tail is below delta; the normal tail is
            within 0.56 / sd of the exact one (Berry and Esseen, with Shevtsova's constant).
Reference   Han, Sensitive disclosures under differential privacy guarantees, 2016: Definition 8, Corollary 5, Eq 4.9.
            Shevtsova, An improvement of convergence rate estimates in the Lyapunov theorem, 2010.
Checked by  tests/unit/publish/test_criterion.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, bdtrc, gammaln, ndtr

from tacit.amounts import FINEST_SHARE, as_fraction, as_share, shown
from tacit.arrays import Bools, Floats, Ints
from tacit.errors import PlanError, nearest, word_or_kind

CRITERIA: Final = ("chernoff", "exact")
READINGS: Final = {  # what certificates call them
    "each": "both for too low and for too high an estimate (each tail, as Definition 8 asks)",
    "together": "for too low and too high estimates together (both tails together, less than Definition 8 asks)",
}
TAILS: Final = tuple(READINGS)
_DIGITS: Final = Decimal("1e-12")  # the epsilon of a retention is rounded up to this
_REACH: Final = 8.5  # standard deviations on either side; what lies beyond weighs less than 1e-15
_BERRY_ESSEEN: Final = 0.56
_TERMS: Final = 1 << 21  # added up at once
MOST_VALUES: Final = 1_000_000  # of the sensitive columns together; a public limit, so that every group fits in memory
LOOKED_AT: Final = 512  # sizes among which the largest allowed one is looked for by the exact criterion


@dataclass(frozen=True)
class Channel:
    """How one record is perturbed: it keeps its value with probability `retention`, else gets any of `values`.

    Where values are combinations of several columns, `shape` says how many values each of these has.

    >>> Channel(Fraction(1, 2), 6, (3, 1, 2)).shape, Channel(Fraction(1, 2), 3, (3, 1)).shape
    ((3, 2), ())
    """

    retention: Fraction
    values: int
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "retention", as_retention(self.retention))
        several = tuple(size for size in self.shape if size > 1)  # a column with one value says nothing
        object.__setattr__(self, "shape", several if len(several) > 1 else ())
        if self.values < 2:
            rule = "must be at least two: a value that everybody has is no secret"
            fix = "List every value that the sensitive attribute may have."
            raise PlanError(rule, key="values", given=self.values, fix=fix)
        if self.values > MOST_VALUES:
            rule = f"must have at most {MOST_VALUES:,} values: each group has a count for every one of them"
            fix = "Declare the sensitive attribute in coarser steps, or name fewer columns."
            raise PlanError(rule, key="sensitive", given=self.values, fix=fix)

    @property
    def kept(self) -> float:
        """The probability that a record shows the value that it has."""
        return float(self.retention + self.spread)

    @property
    def spread(self) -> Fraction:
        """The probability that a record shows a given value that it does not have."""
        return (1 - self.retention) / self.values

    @property
    def epsilon(self) -> Fraction:
        """What one record loses at most, ln(1 + p m / (1 - p)), rounded up.

        >>> float(Channel(Fraction(1, 2), 2).epsilon)  # ln 3
        1.098612288669
        """
        ratio = 1 + self.retention / self.spread
        with localcontext() as context:
            context.prec = 60
            exact = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
            return Fraction(exact.quantize(_DIGITS, rounding=ROUND_CEILING))

    @property
    def parts(self) -> list[Channel]:
        """How the values of each column and of combinations are perturbed; each part must keep a criterion.

        A value of some columns is a set of combinations. A record that has one of them shows one of them with
        probability p + (1-p)/m, where m is the number of values of these columns, and any other record with (1-p)/m: as
        if there were no other columns.

        >>> [part.values for part in Channel(Fraction(1, 2), 24, (2, 3, 4)).parts]
        [24, 12, 8, 6, 4, 3, 2]
        """
        found = {1}
        for size in self.shape or (self.values,):
            found |= {size * other for other in found}
        return [Channel(self.retention, values) for values in sorted(found - {1}, reverse=True)]

    def variance(self, count: npt.ArrayLike, size: npt.ArrayLike) -> Floats:
        """Return the variance of how many of `size` records show a value that `count` of them have."""
        return coin_variance(count, size, float(self.retention), self.values)


def coin_variance(count: npt.ArrayLike, size: npt.ArrayLike, retention: npt.ArrayLike, values: int) -> Floats:
    """Return the variance of how many records show a value, for any retentions."""
    p, have = np.asarray(retention, np.float64), np.asarray(count, np.float64)
    rest = (1 - p) / values
    return have * (p + rest) * (1 - p - rest) + (np.asarray(size, np.float64) - have) * rest * (1 - rest)


def check_known(given: Any, known: tuple[str, ...], key: str) -> None:
    """Refuse a word that is none of those that are known."""
    if given not in known:
        word = word_or_kind(given)
        raise PlanError(f"must be one of {', '.join(known)}", key=key, given=word, fix=nearest(str(word), known))


@dataclass(frozen=True)
class Criterion:
    """An error, how often an estimate must exceed it, and how that is decided."""

    lam: Fraction
    delta: Fraction
    how: str = "exact"
    tails: str = "together"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", as_share(self.lam, key="lam"))
        object.__setattr__(self, "delta", as_share(self.delta, key="delta"))
        for key, given, known in (("criterion", self.how, CRITERIA), ("tails", self.tails, TAILS)):
            check_known(given, known, key)
        if self.lam <= 0:
            raise PlanError("must be positive", key="lam", given=self.lam, fix="For instance 0.3.")
        if not 0 < self.delta < 1:
            raise PlanError("must lie between 0 and 1", key="delta", given=self.delta, fix="For instance 0.3.")

    @property
    def each(self) -> bool:
        """Whether too low and too high an estimate must each be that likely: the thesis' Definition 8."""
        return self.tails == "each"

    @property
    def tail(self) -> float:
        """How likely an error to one side must be about, if both sides are as likely."""
        return float(self.delta) / (1 if self.each else 2)

    def is_met(self, below: Floats, above: Floats) -> Bools:
        """Say whether estimates that are too low, and too high, with these probabilities are wrong often enough."""
        delta = float(self.delta)
        return np.asarray(np.minimum(below, above) >= delta if self.each else below + above > delta)

    def check(self, channel: Channel) -> None:
        """Refuse an error so large that no estimate can be that far below the truth."""
        largest = 1 + channel.spread / channel.retention
        if self.lam > largest:
            raise PlanError(
                f"must be at most 1 + (1 - p) / (m p) = {float(largest):.6g}: the estimate of a frequency "
                "near 1 cannot be wrong by more on the lower side",
                key="lam",
                given=self.lam,
                fix="Ask for a smaller error, or keep fewer values.",
            )

    def __str__(self) -> str:
        tail = {"chernoff": "Chernoff's bound on the chance", "exact": "the chance"}[self.how]
        return f"{tail} of an error above {shown(self.lam)} f is at least {shown(self.delta)}, {READINGS[self.tails]}"


def largest_count(size: int, channel: Channel, bound: Fraction) -> int:
    """Return the largest count that a value may have in a group, if no frequency is above a public bound.

    Some value has at least the mean count, whatever the bound is: of a single person, the whole.

    >>> [largest_count(size, Channel(Fraction(1, 2), 3), Fraction(2, 5)) for size in (1, 4, 10)]
    [1, 2, 4]
    """
    return max(floor(bound * size), ceil(Fraction(size, channel.values)))


def not_prevented(asked: Criterion) -> list[str]:
    """Return what a table that keeps a criterion does not prevent."""
    lam = shown(asked.lam)
    return [
        "a good estimate of a group's frequencies may come from elsewhere, without this table: often the rate among "
        f"all people is within {lam} of a group's own",
        "better estimates are wrong less often than is promised for the published estimate and its multiples: those "
        "that lean towards other groups (empirical Bayes), that are cut off at 0 and at the size of the group, or, in "
        "groups of a few people, that are rounded to whole numbers",
        "a second table, or counts and histograms, about the same people can be averaged with this one, and the mean "
        "is more accurate than each. A session refuses a second table of its data set as long as its ledger is kept "
        "(without a ledger, as long as the session lives). It does not refuse counts and histograms, and it knows "
        "nothing of tables that were made without a session",
        "nothing is promised about aggregates of several groups: learning these is what the table is for",
        "nothing is promised about several values of a column together, such as ten of thirty: what is added up is "
        "known better than each of them. Whoever needs such a set hidden makes it one value",
    ]


def as_retention(value: Any) -> Fraction:
    """Return a retention probability as an exact fraction strictly between 0 and 1, or refuse."""
    retention = as_fraction(value, key="retention")
    if 0 < retention < FINEST_SHARE:
        raise PlanError(
            "must be at least 1e-9", key="retention", given=retention, fix="So little tells nothing; raise it."
        )
    if not 0 < retention < 1:
        rule = "must lie strictly between 0 and 1"
        fix = "At 0 nothing could be learnt, at 1 nothing would be hidden. For instance 0.5."
        raise PlanError(rule, key="retention", given=retention, fix=fix)
    return retention


# ---- the thesis' bound ----------------------------------------------------------------------------------------------


def chernoff_size(frequency: npt.ArrayLike, channel: Channel, criterion: Criterion) -> Floats:
    """Return the largest size that Chernoff's bound allows at a frequency (Eq 4.9); at frequency 0 any size.

    >>> channel, asked = Channel(Fraction(1, 2), 10), Criterion(Fraction(3, 10), Fraction(3, 10), "chernoff", "each")
    >>> float(np.floor(chernoff_size(0.5, channel, asked)))
    128.0
    """
    f = np.asarray(frequency, np.float64)
    p, spread, lam = float(channel.retention), float(channel.spread), float(criterion.lam)
    with np.errstate(divide="ignore"):
        return np.where(f > 0, -2 * (f * p + spread) * np.log(float(criterion.delta)) / (lam * p * f) ** 2, np.inf)


def _chernoff_tails(count: Ints, size: Ints, channel: Channel, criterion: Criterion) -> tuple[Floats, Floats]:
    """Return bounds on the probabilities of too low and too high an estimate (Eq 4.7, 4.6)."""
    mean = count * float(channel.retention) + size * float(channel.spread)
    omega = float(criterion.lam) * float(channel.retention) * count / mean
    below = np.where(omega <= 1, np.exp(-(omega**2) * mean / 2), 0.0)
    return below, np.exp(-(omega**2) * mean / (2 + omega))


# ---- the tails themselves -------------------------------------------------------------------------------------------


def thresholds(
    count: Ints, size: Ints, channel: Channel, lam: Fraction, sample: tuple[int, int] = (1, 1)
) -> tuple[Ints, Ints]:
    """Return the largest perturbed count that is too low, and the largest that is not too high; exact.

    `sample` is the part of the records that is perturbed, if not all of them are: so many of so many.
    """
    p, m = channel.retention, channel.values
    drawn, of = sample
    # F' < f - lam f  iff  O < (size (1-p)/m + p (1-lam) count) sample;  all multiplied by the denominators
    unit = p.denominator * m * lam.denominator * of
    of_size = (p.denominator - p.numerator) * lam.denominator * drawn
    of_low = p.numerator * m * (lam.denominator - lam.numerator) * drawn
    of_high = p.numerator * m * (lam.denominator + lam.numerator) * drawn
    largest = (int(np.max(size, initial=0)) + 1) * max(of_size + max(of_high, abs(of_low)), unit)
    kind: Any = np.int64 if largest < 1 << 62 else object
    whole, many = np.asarray(count).astype(kind), np.asarray(size).astype(kind)
    low = -((-(many * of_size + whole * of_low)) // unit) - 1
    high = (many * of_size + whole * of_high) // unit
    return low.astype(np.int64), high.astype(np.int64)


def exact_tails(count: npt.ArrayLike, size: npt.ArrayLike, channel: Channel, lam: Fraction) -> tuple[Floats, Floats]:
    """Return the probabilities that the estimate is below f - lam f, and above f + lam f, for each pair.

    >>> below, above = exact_tails([5], [10], Channel(Fraction(1, 2), 10), Fraction(3, 10))
    >>> bool(min(below[0], above[0]) >= 0.3)
    True
    """
    have, many = np.broadcast_arrays(np.asarray(count, np.int64), np.asarray(size, np.int64))
    shape, have, many = have.shape, have.ravel(), many.ravel()
    low, high = thresholds(have, many, channel, lam)
    kept, spread = channel.kept, float(channel.spread)
    # the narrower binomial is added up term by term, the other one is a distribution function
    swap = have * kept * (1 - kept) > (many - have) * spread * (1 - spread)
    n_sum, n_cdf = np.where(swap, many - have, have), np.where(swap, have, many - have)
    p_sum, p_cdf = np.where(swap, spread, kept), np.where(swap, kept, spread)
    reach = _REACH * np.sqrt(n_sum * p_sum * (1 - p_sum)) + _REACH
    first = np.maximum(np.floor(n_sum * p_sum - reach), 0).astype(np.int64)
    terms = np.minimum(np.ceil(n_sum * p_sum + reach).astype(np.int64), n_sum) - first + 1
    below, above = np.empty(have.size), np.empty(have.size)
    ends = np.concatenate([[0], np.cumsum(terms)])
    start = 0
    while start < have.size:
        stop = max(int(np.searchsorted(ends, ends[start] + _TERMS, "right")) - 1, start + 1)
        part = slice(start, stop)
        of = np.repeat(np.arange(stop - start), terms[part])
        begins = ends[part] - ends[start]
        j = np.arange(of.size) - begins[of] + first[part][of]
        weight = _binomial_pmf(j, n_sum[part][of], p_sum[part][of])
        n, p = n_cdf[part][of], p_cdf[part][of]
        at_most = _binomial_tail(bdtr, low[part][of] - j, n, p, below_zero=0.0)
        more = _binomial_tail(bdtrc, high[part][of] - j, n, p, below_zero=1.0)
        below[part] = np.add.reduceat(weight * at_most, begins)
        above[part] = np.add.reduceat(weight * more, begins)
        start = stop
    return below.reshape(shape), above.reshape(shape)


def _binomial_pmf(k: Ints, n: Ints, p: Floats) -> Floats:
    log = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0) + k * np.log(p) + (n - k) * np.log1p(-p)
    return np.asarray(np.exp(log))


def _binomial_tail(of: Any, k: Ints, n: Ints, p: Floats, *, below_zero: float) -> Floats:
    """Return a tail of the binomial law at any k: what `of` says from 0 to n, and its limits beyond."""
    inside = of(np.clip(k, 0, np.maximum(n, 0)).astype(np.float64), n, p)
    return np.where(k < 0, below_zero, np.where(k >= n, 1 - below_zero, inside))


# ---- deciding -------------------------------------------------------------------------------------------------------


def is_private(count: npt.ArrayLike, size: npt.ArrayLike, channel: Channel, criterion: Criterion) -> Bools:
    """Say of each pair whether the criterion holds; it does where nobody has the value."""
    have, many = np.broadcast_arrays(np.asarray(count, np.int64), np.asarray(size, np.int64))
    keys = (many.ravel().astype(np.uint64) << np.uint64(32)) | have.ravel().astype(np.uint64)
    distinct, which = np.unique(keys, return_inverse=True)
    c = (distinct & np.uint64((1 << 32) - 1)).astype(np.int64)
    n = (distinct >> np.uint64(32)).astype(np.int64)
    verdict: Bools = _decided(c, n, channel, criterion)[which.ravel()]
    return verdict.reshape(have.shape)


def _decided(count: Ints, size: Ints, channel: Channel, criterion: Criterion) -> Bools:
    found = np.ones(count.size, np.bool_)
    there = np.flatnonzero(count > 0)
    count, size = count[there], size[there]
    if criterion.how == "chernoff":
        found[there] = size <= chernoff_size(count / size, channel, criterion)
        return found
    delta, each = float(criterion.delta), criterion.each
    below, above = _chernoff_tails(count, size, channel, criterion)
    refuted = (np.minimum(below, above) if each else below + above) < delta
    deviation = np.sqrt(channel.variance(count, size))
    normal = ndtr(-float(criterion.lam) * float(channel.retention) * count / deviation)
    # a threshold between two whole numbers costs nothing: the bound holds for every real one
    slack = _BERRY_ESSEEN / deviation
    proved = normal - slack > delta if each else 2 * (normal - slack) > delta
    refuted |= normal + slack < delta if each else 2 * (normal + slack) < delta
    open_ = np.flatnonzero(~refuted & ~proved)
    verdict = ~refuted
    below, above = exact_tails(count[open_], size[open_], channel, criterion.lam)
    verdict[open_] = criterion.is_met(below, above)
    found[there] = verdict
    return found


def largest_size(frequency: npt.ArrayLike, channel: Channel, criterion: Criterion) -> Floats:
    """Return the largest size at which a value of this frequency is hidden well enough; 0 if there is none.

    By the exact criterion: the largest s up to LOOKED_AT such that the nearest whole number to s f, out of s, is hidden
    well enough; smaller sizes may be too telling, since the tail does not fall steadily. A frequency so small that
    larger sizes may be allowed gets the size that the normal law allows.

    >>> channel = Channel(Fraction(1, 2), 10)
    >>> largest_size([0.5], channel, Criterion(Fraction(3, 10), Fraction(3, 10), "exact", "each")).tolist()
    [10.0]
    """
    f = np.asarray(frequency, np.float64)
    if criterion.how == "chernoff":
        return np.floor(chernoff_size(f, channel, criterion))
    distinct, which = np.unique(f.ravel(), return_inverse=True)
    found = np.where(distinct > 0, 0.0, np.inf)
    table = _private_counts(channel, criterion)
    for s in range(1, LOOKED_AT + 1):
        c = np.rint(distinct * s).astype(np.int64)
        found[(c > 0) & table[s, c]] = s
    far = (distinct > 0) & (found > 0.9 * LOOKED_AT)
    found[far] = np.maximum(found[far], _normal_size(distinct[far], channel, criterion))
    return found[which.ravel()].reshape(f.shape)


@lru_cache(maxsize=8)
def _private_counts(channel: Channel, criterion: Criterion) -> Bools:
    """Return for each size up to LOOKED_AT which counts are hidden well enough."""
    size, count = np.tril_indices(LOOKED_AT + 1)
    table = np.zeros((LOOKED_AT + 1, LOOKED_AT + 1), np.bool_)
    table[size, count] = _decided(count.astype(np.int64), size.astype(np.int64), channel, criterion)
    return table


def _normal_size(f: Floats, channel: Channel, criterion: Criterion) -> Floats:
    from scipy.special import ndtri

    return np.floor(
        ndtri(criterion.tail) ** 2 * channel.variance(f, 1) / (float(criterion.lam) * float(channel.retention) * f) ** 2
    )

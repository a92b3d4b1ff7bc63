"""Repaired sampling: a simple random sample of a public size from each group, perturbed, then scaled up.

Guarantee   Epsilon of the perturbation for every edge between two records that agree in the public columns. And the
            exact (lambda, delta) criterion for the unbiased estimate of every value in every group, for every count
            that the public bound on frequencies allows: Pr[|F' - f| > lambda f] > delta, or with `tails="each"` each of
            Pr[F' < f - lambda f] and Pr[F' > f + lambda f] at least delta. Of several columns, of every value of every
            column, and of every combination of some or all columns.
Assumes     Sizes of groups are public. The bound on frequencies is public and true.
Why         Who is sampled depends on nobody's value, and the size of a sample on the group's public size alone; what
            is published is a perturbed sample, and the reader scales it up. So nothing follows from a sample's size,
            and the thesis' attack through it finds what the plain estimate finds. The law of the perturbed count is
            added up over the hypergeometric number of sampled records with the value; each size of a group gets the
            largest sample that holds for all counts, tried one by one, since the tail is not steady in the size. If a
            single record of a group of one holds, so does one of any group: its estimate is either too low, or right
            with probability (1-p)/m + p f at most, which is largest at f = 1. So it is known before anybody pays that
            every size has a sample. For each tail that does not follow: the estimate from a sample of one is too high
            with probability (1-p)/m + p f, and too low otherwise, and it holds at every size if that lies between delta
            and 1 - delta from f = 0 to 1. Else whether there is a sample is seen with the public sizes of groups: a
            session, which pays before it sees them, refuses. Values of some of several columns are perturbed as if
            there were no others (`Channel.parts`), so a sample must hold for the values of each part.
Reference   Han, Sensitive disclosures under differential privacy guarantees, 2016: Algorithm 1, which samples by
            secret frequencies, kept as a planted leak (`audit/selfcheck/planted/releases.py`).
Checked by  tests/unit/publish/test_sampled.py, tests/statistical/test_private_tables.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import ClassVar, Final

import numpy as np
from scipy.special import gammaln, ndtri

from tacit.amounts import shown
from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.noise.thinning import pick
from tacit.publish.methods.criterion import Channel, Criterion, chernoff_size, largest_count, thresholds
from tacit.publish.methods.method import PromisingMethod
from tacit.publish.methods.perturbation import perturb

_ROUNDING: Final = Fraction(1, 10**9)
MOST_SAMPLED: Final = 300  # a larger sample would hold where frequencies are small, and take long to prove


@lru_cache(maxsize=1 << 16)
def largest_sample(size: int, channel: Channel, criterion: Criterion, bound: Fraction) -> int:
    """Return the largest sample of a group of this size that holds for every count that the bound allows; 0 if none.

    >>> half, asked = Channel(Fraction(1, 2), 2), Criterion(Fraction(3, 10), Fraction(3, 10))
    >>> [largest_sample(size, half, asked, Fraction(1)) for size in (7, 12, 1000)]
    [7, 7, 11]
    """
    parts = [(part, largest_count(size, part, bound)) for part in channel.parts]
    if criterion.how == "chernoff":
        return min(size, *(floor(float(chernoff_size(most / size, part, criterion))) for part, most in parts))
    first = min(size, MOST_SAMPLED, *(ceil(1.3 * _normal_sample(size, *part, criterion)) + 6 for part in parts))
    return next((s for s in range(first, 0, -1) if all(_holds(size, s, *part, criterion) for part in parts)), 0)


def _normal_sample(size: int, channel: Channel, most: int, criterion: Criterion) -> float:
    f, p = most / size, float(channel.retention)
    variance = float(channel.variance(f, 1)) + p * p * f * (1 - f)
    return float(ndtri(criterion.tail)) ** 2 * variance / (float(criterion.lam) * p * f) ** 2


def _holds(size: int, sample: int, channel: Channel, most: int, criterion: Criterion) -> bool:
    return all(
        criterion.is_met(*error_tails(counts, size, sample, channel, criterion.lam)).all()
        for counts in (np.arange(max(most - 2, 1), most + 1), np.arange(1, most + 1))  # the largest fail first
    )


def error_tails(counts: Ints, size: int, sample: int, channel: Channel, lam: Fraction) -> tuple[Floats, Floats]:
    """Return for each true count how likely the estimate from a perturbed sample is lam f too low, and too high."""
    low, high = thresholds(counts, np.full_like(counts, size), channel, lam, (sample, size))
    k = np.arange(sample + 1)
    drawn = _hypergeometric(counts[:, None], k, size, sample)
    upto = np.cumsum(_shown(sample, channel), axis=1)
    rows = np.arange(len(counts))
    law = drawn @ np.concatenate([np.zeros((sample + 1, 1)), upto], axis=1)  # column x + 1: at most x are shown
    return law[rows, np.clip(low, -1, sample) + 1], 1 - law[rows, np.clip(high, -1, sample) + 1]


def _hypergeometric(counts: Ints, k: Ints, size: int, sample: int) -> Floats:
    possible = (k <= counts) & (sample - k <= size - counts)
    k_, c = np.where(possible, k, 0), np.where(possible, counts, 0)
    rest = np.where(possible, sample - k, 0)
    log = _choose(c, k_) + _choose(size - c, rest) - _choose(np.float64(size), np.float64(sample))
    return np.where(possible, np.exp(log), 0.0)


def _choose(n: Floats | Ints | np.float64, k: Floats | Ints | np.float64) -> Floats:
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


@lru_cache(maxsize=64)
def _shown(sample: int, channel: Channel) -> Floats:
    """Return how likely each number of records shows a value that k of the sampled records have: a row for each k."""
    found = np.zeros((sample + 1, sample + 1))
    for k in range(sample + 1):
        law = np.ones(1)
        for many, chance in ((k, channel.kept), (sample - k, float(channel.spread))):
            j = np.arange(many + 1)
            log = _choose(np.float64(many), j) + j * np.log(chance) + (many - j) * np.log1p(-chance)
            law = np.convolve(law, np.exp(log))
        found[k] = law
    return found


@dataclass(frozen=True)
class Sampled(PromisingMethod):
    """A simple random sample of each group, perturbed."""

    channel: Channel
    criterion: Criterion
    bound: Fraction

    name: ClassVar[str] = "sample"

    def samples(self, sizes: Ints) -> Ints:
        """Return how many records of each group are sampled: public, as it follows from sizes alone."""
        distinct, which = np.unique(sizes, return_inverse=True)
        found = [largest_sample(int(size), self.channel, self.criterion, self.bound) for size in distinct]
        if 0 in found:
            raise self._too_much()
        return np.array(found, np.int64)[which.ravel()]

    def _too_much(self) -> PlanError:
        rule = "must be smaller: at this one, even a single perturbed record tells too much for the criterion"
        fix = "Keep values less often, or take method='best', which finds one that can."
        return PlanError(rule, key="retention", given=self.channel.retention, fix=fix)

    def check(self) -> None:
        """Refuse if a group of one person cannot be published; if it can, every group can give a sample of one."""
        self.samples(np.array([1]))
        if self.criterion.how == "chernoff":
            return
        # so close to delta that rounding might tell the same chance differently for another size
        tails = [error_tails(np.array([1]), 1, 1, part, self.criterion.lam) for part in self.channel.parts]
        chance = min(float((min if self.criterion.each else sum)([*below, *above])) for below, above in tails)
        if chance < self.criterion.delta + _ROUNDING:
            raise self._too_much()

    @property
    def has_every_size(self) -> bool:
        # too high if the one that is sampled shows the value, too low if not: for every frequency up to 1
        lam, delta = self.criterion.lam, self.criterion.delta
        return not self.criterion.each or all(
            part.spread > delta + _ROUNDING
            and part.retention + part.spread < 1 - delta - _ROUNDING
            and (1 - part.spread) / part.retention > 1 + lam
            and -part.spread / part.retention < 1 - lam
            for part in self.channel.parts
        )

    def draw(self, counts: Ints) -> Ints:
        return perturb(pick(counts, self.samples(counts.sum(axis=1))), self.channel)

    def estimates(self, published: Ints, sizes: Ints) -> Floats:
        # without bias: scaled by the sizes of group and sample
        samples = np.maximum(self.samples(sizes), 1)[:, None]
        spread, p = float(self.channel.spread), float(self.channel.retention)
        return np.asarray((published - samples * spread) / p * sizes[:, None] / samples)

    def variances(self, counts: Floats, sizes: Ints) -> Floats:
        samples = np.maximum(self.samples(sizes), 1)[:, None].astype(np.float64)
        size = np.maximum(sizes[:, None], 1).astype(np.float64)
        f = np.clip(counts / size, 0, 1)
        coins = samples * self.channel.variance(f, 1) / float(self.channel.retention) ** 2
        drawn = samples * f * (1 - f) * (size - samples) / np.maximum(size - 1, 1)
        return np.asarray((size / samples) ** 2 * (coins + drawn))

    def words(self) -> list[str]:
        return [
            "of each group a simple random sample, whose size follows from the group's alone; each sampled record "
            f"keeps its value with probability {shown(self.channel.retention)}",
            self.words_for_frequencies(self.bound),
        ]

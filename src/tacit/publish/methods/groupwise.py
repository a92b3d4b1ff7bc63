"""Group-wise retention: every record is perturbed, and the larger a group is, the less often a value is kept.

Guarantee   At most epsilon of the largest retention for every edge between two records that agree in the public
            columns. And the exact (lambda, delta) criterion for the unbiased estimate of every value in every group,
            for every count that the public bound on frequencies allows: for too low and too high an estimate
            together, or with `tails="each"` for each. Of several columns, of every value of every column, and of every
            combination of some or all columns.
Assumes     Sizes of groups are public. The bound on frequencies is public and true.
Why         The retention of a group follows from its public size. For each size it is the largest of a fine grid, at
            or below what the normal law suggests, at which every count passes the exact criterion
            (`publish/methods/criterion.py`); the normal rule by itself fails at most sizes. As the retention goes to
            0, the perturbed count goes to Bin(n, 1/m), whatever is true, and an estimate is right for one count at
            most, n/m: the likeliest of all of these is 1 of a group of m. So if groups of one and of m have a
            retention, every size has one, and it is known before anybody pays. For each tail it is not: of ten people
            with 46 values no retention holds, and of two with two values none at delta = 0.3, since nothing shows more
            than one of the two oftener than a quarter of the time. So a session, which pays before it sees sizes,
            refuses. Values of some of several columns are
            perturbed as if there were no others (`Channel.parts`), so a retention must hold for each part.
Reference   Han, Sensitive disclosures under differential privacy guarantees, 2016, section 4.3, names it and leaves
            it.
Checked by  tests/unit/publish/test_sampled.py, tests/statistical/test_private_tables.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import ClassVar, Final

import numpy as np
from scipy.special import ndtri

from tacit.amounts import shown
from tacit.arrays import Bools, Floats, Ints
from tacit.errors import PlanError
from tacit.noise.thinning import spread, thin
from tacit.publish.methods.criterion import Channel, Criterion, coin_variance, is_private, largest_count
from tacit.publish.methods.method import PromisingMethod

_GRID: Final = 1 << 16
_STEP: Final = 64  # each retention that fails is followed by one that is smaller by this part


@lru_cache(maxsize=1 << 16)
def largest_retention(size: int, channel: Channel, criterion: Criterion, bound: Fraction) -> Fraction:
    """Return the largest tried retention at which a group of this size passes for every count; 0 if none does."""
    tried = min(floor(channel.retention * _GRID), floor(normal_retention(size, channel, criterion, bound) * _GRID) + 1)
    if _holds(size, channel, criterion, bound):
        return channel.retention
    while tried:
        own = replace(channel, retention=Fraction(tried, _GRID))
        if _holds(size, own, criterion, bound):
            return own.retention
        tried -= max(tried // _STEP, 1)
    return Fraction(0)


def _holds(size: int, channel: Channel, criterion: Criterion, bound: Fraction) -> bool:
    parts = [(part, largest_count(size, part, bound)) for part in channel.parts]
    return all(is_private(most, size, part, criterion) for part, most in parts) and all(
        is_private(np.arange(1, most + 1), size, part, criterion).all() for part, most in parts
    )


def normal_retention(size: int, channel: Channel, criterion: Criterion, bound: Fraction) -> float:
    """Return the retention at which an error beyond lambda is as likely as delta, by the normal law; of all parts."""
    return min(_normal_retention(size, part, criterion, bound) for part in channel.parts)


def _normal_retention(size: int, channel: Channel, criterion: Criterion, bound: Fraction) -> float:
    f, z = largest_count(size, channel, bound) / size, -float(ndtri(criterion.tail))
    low, high = 0.0, float(channel.retention)
    for _ in range(40):
        p = (low + high) / 2
        deviation = np.sqrt(size * coin_variance(f, 1, p, channel.values))
        low, high = (p, high) if float(criterion.lam) * p * f * size < z * deviation else (low, p)
    return low


@dataclass(frozen=True)
class Groupwise(PromisingMethod):
    """Perturbation with a retention for each size of a group."""

    channel: Channel
    criterion: Criterion
    bound: Fraction

    name: ClassVar[str] = "retention"

    def retentions(self, sizes: Ints) -> list[Fraction]:
        """Return the retention of each group: public, as it follows from sizes alone."""
        found = []
        for size in sizes:
            found.append(largest_retention(int(size), self.channel, self.criterion, self.bound))
            if not found[-1]:
                rule = "must be smaller: there is no retention at which groups of some size pass"
                fix = "Ask for less, or take method='masked'."
                raise PlanError(rule, key="delta", given=self.criterion.delta, fix=fix)
        return found

    def check(self) -> None:
        """Refuse if a group of one person, or of as many as there are values, cannot be published: others can."""
        if not self.criterion.each:
            self.retentions(np.array([1, *(part.values for part in self.channel.parts)]))

    @property
    def has_every_size(self) -> bool:
        return not self.criterion.each

    def draw(self, counts: Ints) -> Ints:
        kept, retentions = np.zeros_like(counts), self.retentions(counts.sum(axis=1))
        for retention in sorted(set(retentions), reverse=True):
            rows = np.flatnonzero([own == retention for own in retentions])
            kept[rows] = thin(counts[rows], retention)
        return kept + spread(counts.sum(axis=1) - kept.sum(axis=1), self.channel.values)

    def holds_together(self, old: Ints, new: Ints) -> Bools:
        # also of groups with one retention: old, new and all records were perturbed alike then
        found = super().holds_together(old, new)
        for at in np.flatnonzero(~found):
            kept = {self.retentions(np.array([size]))[0] for size in (old[at], new[at], old[at] + new[at])}
            found[at] = len(kept) == 1
        return found

    def estimates(self, published: Ints, sizes: Ints) -> Floats:
        p = np.array([float(one) for one in self.retentions(sizes)])[:, None]
        return np.asarray((published - sizes[:, None] * (1 - p) / self.channel.values) / p)

    def variances(self, counts: Floats, sizes: Ints) -> Floats:
        return self.variances_at(np.array([float(one) for one in self.retentions(sizes)]), counts, sizes)

    def variances_at(self, retentions: Floats, counts: Floats, sizes: Ints) -> Floats:
        """Return the variances at any retentions of the groups."""
        p = retentions[:, None]
        coins = coin_variance(np.clip(counts, 0, sizes[:, None]), sizes[:, None], p, self.channel.values)
        return np.asarray(coins / p**2)

    def least_error(self, sizes: Ints, values: int) -> float:
        """Return a lower bound on the expected error, by the normal law, without proving any retention."""
        even = np.repeat(sizes[:, None] / values, values, axis=1)
        distinct, which = np.unique(sizes, return_inverse=True)
        found = [normal_retention(int(size), self.channel, self.criterion, self.bound) for size in distinct]
        return float(np.sqrt(self.variances_at(np.array(found)[which.ravel()], even, sizes)[:, 0].sum()))

    def words(self) -> list[str]:
        return [
            f"each record keeps its value with a probability that follows from the size of its group, at most "
            f"{shown(self.channel.retention)}",
            self.words_for_frequencies(self.bound),
        ]

"""Attacks on tables that claim reconstruction privacy, and tables that are wrong on purpose.

These mistakes cost no epsilon: each record stays as private as it was, and what they break is the (lambda, delta)
criterion. So they are no `PlantedLeak`s; what an attack measures is how often it is within lambda of the true count.

masks-that-add-up: Masks of private counts that add up to zero over all groups: aggregates are nearly exact. Whoever
    knows the counts of the other groups finds a group's own from the total. Right: independent masks.
scales-published: Masked counts, with the scales of the masks beside them: a scale is proportional to the private
    count. Right: scales stay secret.
widths-by-count: Masked counts of many values, where the others of a group carry the mask of its largest count, each a
    part of that width: how far they are apart tells it. Right: they share one mask in proportion.
sampled-by-share: The thesis' SPS: a sample whose size follows from the largest frequency, copies up to the size of the
    group. Counts are near multiples of the number of copies, and that number tells the frequency. Right: a simple
    random sample of a public size.
masks-by-combination: Masks of every combination of two columns by itself: the counts of one column are sums of many,
    and hardly masked. Right: masks of every column.
masks-added-up: Masks of two columns that are added, each count x (1 + u_i + w_j): of independent columns the table has
    rank two, and the true counts lie in the plane of its columns. Right: they are multiplied.
versions-added-up: Masked counts of new records added to those of the old ones of a group: their masks are narrower
    together. Right: the sum is masked once more.
too-low-for-too-high: Masks of the weaker reading (both tails together) where each tail is promised. Right: wider ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from scipy.special import gammaln

from tacit.arrays import Floats, Ints
from tacit.noise.thinning import thin
from tacit.noise.two_scale import discrete_laplace
from tacit.publish.methods.criterion import Channel, Criterion, chernoff_size
from tacit.publish.methods.grown import grown
from tacit.publish.methods.masked import PARTS, Masked, MaskLayout, masks
from tacit.publish.methods.masked_columns import FINE, MaskedColumns
from tacit.publish.methods.perturbation import perturb
from tacit.publish.methods.sampled import Sampled


@dataclass(frozen=True)
class PlantedTable:
    """A way to publish that is wrong on purpose, the attack that shows it, and the way that is right.

    `publish(counts)` and `repaired(counts)` return what an adversary sees; `attack(seen, counts)` returns estimates of
    what `truth` says, mostly the first column of counts. Of the true counts it uses only what its words allow: sizes,
    and in one case the counts of other groups.
    """

    name: str
    mistake: str
    publish: Callable[[Ints], Any]
    repaired: Callable[[Ints], Any]
    attack: Callable[[Any, Ints], Floats]
    truth: Callable[[Ints], Ints] = lambda counts: counts[:, 0]
    side: str = "wrong"  # or high, low: what estimates must be often enough

    def successes(self, counts: Ints, lam: float) -> tuple[float, float]:
        """Return in which share of groups the attack is within lam of the true count: as planted, and repaired."""
        found = [self.attack(one(counts), counts) for one in (self.publish, self.repaired)]
        truth = self.truth(counts)
        planted, repaired = (float(np.mean(abs(one - truth) <= lam * truth)) for one in found)
        return planted, repaired


_CRITERION: Final = Criterion(Fraction(3, 10), Fraction(3, 10))
_TWO: Final = Masked(Channel(Fraction(1, 2), 2), _CRITERION)
_TEN: Final = Channel(Fraction(1, 2), 10)


def _masked_pairs(counts: Ints, *, add_up: bool) -> Ints:
    sizes = counts.sum(axis=1)
    private = counts[:, 0] + discrete_laplace(_TWO.noise.right, len(sizes))
    mask = masks(_TWO.deviations(np.maximum(private, sizes - private)))
    if add_up:
        mask[-1] = -mask[:-1].sum()  # BROKEN: whoever knows the other groups knows this one
        mask -= mask.sum() // len(mask)
    return np.asarray(PARTS * private + mask)


def _from_the_total(seen: Ints, counts: Ints) -> Floats:
    """Estimate each group from the total and the true counts of all other groups."""
    others = counts[:, 0].sum() - counts[:, 0]
    return np.asarray(seen.sum() / PARTS - others)


def _with_scales(counts: Ints, *, shown: bool) -> tuple[Ints, Floats]:
    sizes = counts.sum(axis=1)
    private = counts[:, 0] + discrete_laplace(_TWO.noise.right, len(sizes))
    scale = _TWO.deviations(np.maximum(private, sizes - private))
    # BROKEN: the scale is shown, and it is a function of the private count
    return PARTS * private + masks(scale), scale if shown else np.full(len(sizes), np.nan)


def _from_the_scale(seen: tuple[Ints, Floats], counts: Ints) -> Floats:
    """Estimate each group from the scale of its mask: it is kappa times the count, or times what the others have."""
    masked, scale = seen
    count, size = scale / _TWO.kappa, counts.sum(axis=1)
    nearer = np.where(abs(masked / PARTS - count) <= abs(masked / PARTS - size + count), count, size - count)
    return np.where(np.isnan(scale), masked / PARTS, nearer)


class _ByCount(Masked):
    """Masked counts of which each is wider where the largest one asks for it, and as wide as that one does."""

    def layout(self, counts: Ints | Floats, sizes: Ints) -> MaskLayout:
        found = super().layout(counts, sizes)
        own = found.need[np.arange(len(sizes)), found.top]
        # BROKEN: each of the others carries its part of that width, and many of them tell how wide it is
        return replace(found, shared=np.zeros_like(found.shared), most=own)


def _from_the_spread(seen: Ints, counts: Ints) -> Floats:
    """Estimate the largest count of each group from how far the published counts of the others are apart."""
    others = seen[:, 1:] / PARTS
    return np.asarray(others.std(axis=1) * np.sqrt(others.shape[1]) / _TWO.kappa)


def _copied(shown: Ints, sizes: Ints) -> Ints:
    """Scale perturbed samples up by copies, one more for some records at random."""
    many = np.maximum(shown.sum(axis=1), 1)
    copies, rest = sizes // many, sizes % many
    found = shown * copies[:, None]
    for row in range(len(shown)):
        found[row] += thin(shown[row], Fraction(int(rest[row]), int(many[row])))
    return np.asarray(found)


def _by_share(counts: Ints) -> tuple[Ints, None]:
    sizes = counts.sum(axis=1)
    sample = np.minimum(chernoff_size(counts.max(axis=1) / sizes, _TEN, _CRITERION), sizes)  # BROKEN: follows from f
    shares = counts * (sample / sizes)[:, None]
    certain = np.floor(shares).astype(np.int64)
    part = np.rint((shares - certain) * (1 << 40)).astype(np.int64)
    return _copied(perturb(certain + thin(np.ones_like(certain), part, denominator=1 << 40), _TEN), sizes), None


def _by_public_size(counts: Ints) -> tuple[Ints, Ints]:
    method, sizes = Sampled(_TEN, _CRITERION, Fraction(1)), counts.sum(axis=1)
    return _copied(method.draw(counts), sizes), method.samples(sizes)


def plain_estimates(scaled: Ints, sizes: Ints) -> Floats:
    """Return the estimate of the first count that anybody would make of a scaled table."""
    share = scaled[:, 0] / np.maximum(scaled.sum(axis=1), 1)
    return np.asarray((share - float(_TEN.spread)) / float(_TEN.retention) * sizes)


def _from_the_copies(seen: tuple[Ints, Ints | None], counts: Ints) -> Floats:
    """Find the size of the sample that makes the counts most likely as copies, and the frequency that it follows from.

    Where the size is public there is nothing to find, and the plain estimate is all there is.
    """
    scaled, samples = seen
    sizes = counts.sum(axis=1)
    plain = plain_estimates(scaled, sizes)
    if samples is not None:
        return plain
    return np.array(
        [_frequency(row, share / size) * size for row, share, size in zip(scaled, plain, sizes, strict=True)]
    )


def _frequency(scaled: Ints, plain: float) -> float:
    total, p, spread = int(scaled.sum()), float(_TEN.retention), float(_TEN.spread)
    grid = np.linspace(max(plain / 2, 0.05), min(2 * plain, 1.0), 4000)
    sizes = np.rint(chernoff_size(grid, _TEN, _CRITERION)).astype(np.int64)
    kept = p + spread
    best, found = -np.inf, plain
    for sample in np.unique(sizes):
        f = float(np.median(grid[sizes == sample]))
        deviation = np.sqrt((f * kept * (1 - kept) + (1 - f) * spread * (1 - spread)) / sample) / p
        copies, part = divmod(total, int(sample))
        chance = part / sample
        low, high = -(-scaled // (copies + 1)), scaled // max(copies, 1)
        if (low > high).any() or not 0 < chance < 1:
            continue
        shown = low[:, None] + np.arange(int((high - low).max()) + 1)
        more = scaled[:, None] - copies * shown
        fits = (shown <= high[:, None]) & (more >= 0) & (more <= shown)
        more_, shown_ = np.where(fits, more, 0), np.where(fits, shown, 0)
        log = gammaln(shown_ + 1.0) - gammaln(more_ + 1.0) - gammaln(shown_ - more_ + 1.0)
        log = np.where(fits, log + more_ * np.log(chance) + (shown_ - more_) * np.log1p(-chance), -np.inf)
        top = log.max(axis=1)
        if not np.isfinite(top).all():
            continue
        told = (top + np.log(np.exp(log - top[:, None]).sum(axis=1))).sum() - len(scaled) * np.log(sample)
        weight = told - (plain - f) ** 2 / (2 * deviation**2)
        if weight > best:
            best, found = float(weight), f
    return found


TWO_COLUMNS: Final = (6, 8)  # values of either
_OF_BOTH: Final = Channel(Fraction(1, 2), TWO_COLUMNS[0] * TWO_COLUMNS[1], TWO_COLUMNS)
_COLUMNS: Final = MaskedColumns(_OF_BOTH, _CRITERION)


class _AddedMasks(MaskedColumns):
    """Masked counts of combinations of two columns whose masks are added."""

    def combined(self, private: Floats, sizes: Ints) -> Floats:
        found = [self.factors(one, self.margins(private, at), sizes)[0] for at, one in enumerate(self.columns)]
        masks_ = found[0][:, :, None] + found[1][:, None, :] - 1  # BROKEN: right is the product of both
        return np.asarray((self.table(private) * masks_).reshape(private.shape))


def first_value(counts: Ints | Floats) -> Any:
    """Return the counts of the first value of the first of two columns."""
    return counts.reshape(len(counts), *TWO_COLUMNS)[:, 0].sum(axis=1)


def _from_the_plane(seen: Floats, counts: Ints) -> Floats:
    """Estimate the counts of the first column, if columns are known to be independent: look for them in the plane.

    If counts are p q' then p (1 + u) q' + p (q w)' is seen: the true p and the sums p (1 + u) span its columns. Of all
    p in that plane with the right sum, the likeliest by the masks that follow is taken.
    """
    kappa, sums = _COLUMNS.kappa, seen.sum(axis=2)
    found = []
    for table, row, size in zip(seen, sums, counts.sum(axis=1), strict=True):
        plane = np.linalg.svd(table)[0][:, :2]
        across = plane @ np.array([-plane[:, 1].sum(), plane[:, 0].sum()])  # within the plane, and adds up to zero
        every = row * (size / row.sum()) + np.linspace(-1.5, 1.5, 301)[:, None] * across * row.max() / abs(across).max()
        every = every[(every > 0).all(axis=1)]
        best, chosen = -np.inf, row
        for p in every:
            (q, qw), *_ = np.linalg.lstsq(np.stack([row, p], axis=1), table, rcond=None)
            if (q <= 0).any():
                continue
            off = (q.sum() - 1) ** 2 + qw.sum() ** 2
            told = -((row / p - 1) ** 2).sum() / kappa**2 - ((qw / q) ** 2).sum() / kappa**2 - off / 0.02**2
            if told > best:
                best, chosen = float(told), p
        found.append(chosen[0])
    return np.array(found)


def _in_two_versions(counts: Ints, *, masked_again: bool) -> Ints:
    method, old = Masked(_TEN, _CRITERION), counts // 2
    first, added = method.draw(old), method.draw(counts - old)
    # BROKEN: the masks of two halves are one of 0.71 times the width around the whole
    return grown(method, first + added, added, counts.sum(axis=1))[1] if masked_again else first + added


def _first_of_parts(seen: Ints, counts: Ints) -> Floats:
    return np.asarray(seen[:, 0] / PARTS)


planted_tables: Mapping[str, PlantedTable] = MappingProxyType(
    {
        one.name: one
        for one in (
            PlantedTable(
                "masks-that-add-up",
                "masks of different groups add up to zero, so that other groups tell about one",
                lambda counts: _masked_pairs(counts, add_up=True),
                lambda counts: _masked_pairs(counts, add_up=False),
                _from_the_total,
            ),
            PlantedTable(
                "scales-published",
                "the scale of a mask is shown, and it follows from the count that is masked",
                lambda counts: _with_scales(counts, shown=True),
                lambda counts: _with_scales(counts, shown=False),
                _from_the_scale,
            ),
            PlantedTable(
                "widths-by-count",
                "the others of a group carry the mask of its largest count, and their spread tells how wide it is",
                lambda counts: _ByCount(Channel(Fraction(1, 2), counts.shape[1]), _CRITERION).draw(counts),
                lambda counts: Masked(Channel(Fraction(1, 2), counts.shape[1]), _CRITERION).draw(counts),
                _from_the_spread,
            ),
            PlantedTable(
                "sampled-by-share",
                "the size of a sample follows from the largest frequency, and copies show the size",
                _by_share,
                _by_public_size,
                _from_the_copies,
            ),
            PlantedTable(
                "masks-by-combination",
                "every combination of two columns has a mask by itself, and sums of many are hardly masked",
                lambda counts: first_value(Masked(_OF_BOTH, _CRITERION).draw(counts) / PARTS),
                lambda counts: first_value(_COLUMNS.draw(counts) / FINE),
                lambda seen, counts: seen,
                first_value,
            ),
            PlantedTable(
                "masks-added-up",
                "masks of two columns are added, so that independent columns show a table of rank two",
                lambda counts: _COLUMNS.table(_AddedMasks(_OF_BOTH, _CRITERION).draw(counts) / FINE),
                lambda counts: _COLUMNS.table(_COLUMNS.draw(counts) / FINE),
                _from_the_plane,
                first_value,
            ),
            PlantedTable(
                "versions-added-up",
                "masked counts of new records are added to those of old ones, and their masks are narrower together",
                lambda counts: _in_two_versions(counts, masked_again=False),
                lambda counts: _in_two_versions(counts, masked_again=True),
                _first_of_parts,
            ),
            PlantedTable(
                "too-low-for-too-high",
                "masks of the weaker reading are published where each tail is promised",
                lambda counts: Masked(_TEN, _CRITERION).draw(counts),  # BROKEN: together is less than each
                lambda counts: Masked(_TEN, replace(_CRITERION, tails="each")).draw(counts),
                _first_of_parts,
                side="high",
            ),
        )
    }
)

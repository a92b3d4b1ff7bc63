"""Exact draws about many records at once, by their counts: how many keep something, where the rest goes, who is picked.

Guarantee   `thin(counts, p)` is binomial for each count, `spread(counts, m)` shares each count out over m places
            uniformly and record by record, `pick(counts, sizes)` draws so many records of each row of counts without
            replacement; all up to 2^-170 in total variation for each table that is read, given an ideal keystream.
            `bell(deviations)` is even, and made of N >= min(4 d^2, 2^20) fair coins that weigh the same: within
            0.56 / sqrt(N) of a normal law.
Assumes     The keystream (`noise/keystream.py`); probabilities are exact fractions.
Why         Halving: of n fair coins, the number of heads is the sum over the binary digits of n of Bin(2^k, 1/2), each
            from a table with exact thresholds (`noise/draws.py`); above 2^LARGEST, as many of that as are needed.
            Every other law is made of halvings. A record keeps something with probability p if a uniform number is
            below p; the binary digits of the number are compared with those of p one at a time, and only records whose
            digits were equal so far need the next one. For a place among m, coins name a number below 2^j >= m, and
            records whose number is m or more try again; a few records draw a number below m each, which is the same
            law. Picking takes one record after the other among those that are left. A wide bell needs no more coins
            than a narrow one: each weighs a power of two, and the difference of two uniform numbers below that power
            fills in what lies between, so that no last digit tells the weight.
Reference   Devroye, Non-Uniform Random Variate Generation (1986), chapter X.4; Farach-Colton, Tsai, Exact sublinear
            binomial sampling, Algorithmica 73 (2015) (halving).
Checked by  tests/unit/noise/test_thinning.py, tests/statistical/test_thinning.py.

The work of a draw grows with the logarithm of a count, so how long it takes tells about how large counts are; see
docs/limits.md on time.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.arrays import Ints
from tacit.noise.draws import GUARD_BITS, KEPT_BITS, LazyTable, TabledDraws, chunks, uniform_below, uniform_upto
from tacit.noise.keystream import current_stream

LARGEST: Final = 22  # the largest table is of 2^22 coins: about 34,000 thresholds
_FEW: Final = 16  # records for each place: up to so many, numbers of their own are faster than coins for all of them
_BITS: Final = KEPT_BITS + GUARD_BITS
_CUT: Final = 1 << (_BITS - 190)  # what is left out on either side weighs less than 2^-180


def halve(counts: npt.ArrayLike) -> Ints:
    """Return how many of so many fair coins show heads, for each count."""
    many = np.asarray(counts, np.int64)
    stream, flat, heads = current_stream(), many.ravel(), np.zeros(many.size, np.int64)
    for k in range(LARGEST):
        there = np.flatnonzero(flat >> k & 1)
        if there.size:
            heads[there] += _table(k).draw(stream, there.size)
    times = flat >> LARGEST
    for part in chunks(flat.size):  # few at once: a count may need very many draws
        for at in np.flatnonzero(times[part]) + part.start:
            heads[at] += sum(
                int(_table(LARGEST).draw(stream, piece.stop - piece.start).sum()) for piece in chunks(times[at])
            )
    return heads.reshape(many.shape)


def thin(counts: npt.ArrayLike, p: Fraction | npt.ArrayLike, denominator: int | None = None) -> Ints:
    """Return how many of each count keep something that each keeps with probability p.

    `p` is one fraction, or whole numbers over one `denominator`, one for each count.
    """
    many = np.asarray(counts, np.int64)
    left = many.ravel().copy()
    kept = np.zeros(left.size, np.int64)
    if denominator is None:
        chance = Fraction(p)  # type: ignore[arg-type]
        p, unit = chance.numerator, chance.denominator
    else:
        unit = int(denominator)
    kind: Any = np.int64 if unit < 1 << 61 else object  # Python's own whole numbers have no end
    rest = np.broadcast_to(np.asarray(p, kind), many.shape).ravel().copy()
    # a chance of one keeps everybody; below, its digits behind the point are looked at
    certain = rest >= unit
    kept[certain], left[certain] = left[certain], 0
    open_ = np.flatnonzero(left)
    while open_.size:
        twice = rest[open_] * 2
        digit = (twice >= unit).astype(np.bool_)
        rest[open_] = np.where(digit, twice - unit, twice)
        ones = halve(left[open_])
        # the number's next digit is 1 for `ones` records: where that of p is 1, the others are below p, and keep
        kept[open_] += np.where(digit, left[open_] - ones, 0)
        left[open_] = np.where(digit, ones, left[open_] - ones)
        open_ = open_[(left[open_] > 0) & (rest[open_] > 0)]
    return kept.reshape(many.shape)


def spread(counts: npt.ArrayLike, places: int) -> Ints:
    """Share each count out over so many places, each record with the same chance for each place; a last axis more."""
    many = np.asarray(counts, np.int64)
    found = np.zeros((many.size, places), np.int64)
    left = many.ravel().copy()
    levels = (places - 1).bit_length()
    open_ = np.flatnonzero(left)
    while open_.size and int(left[open_].sum()) > _FEW * open_.size * places:
        parts = left[open_, None]
        for _ in range(levels):
            ones = halve(parts)
            parts = np.stack([parts - ones, ones], axis=2).reshape(open_.size, -1)
        found[open_] += parts[:, :places]
        left[open_] = parts[:, places:].sum(axis=1)
        open_ = open_[left[open_] > 0]
    alone = np.repeat(open_, left[open_])
    cells = alone * places + uniform_below(places, alone.size)
    found += np.bincount(cells, minlength=found.size).reshape(found.shape)
    return found.reshape(*many.shape, places)


def pick(counts: npt.ArrayLike, sizes: npt.ArrayLike) -> Ints:
    """Return how many records of each kind are among so many that are drawn from each row, without replacement."""
    left = np.array(counts, np.int64)
    want = np.minimum(np.asarray(sizes, np.int64), left.sum(axis=1))
    taken, stream = np.zeros_like(left), current_stream()
    for already in range(int(want.max(initial=0))):
        rows = np.flatnonzero(want > already)
        within = np.cumsum(left[rows], axis=1)
        number = uniform_upto(stream, within[:, -1].astype(np.uint64), wide=bool((within[:, -1] >= 1 << 32).any()))
        kind = (number[:, None] >= within).sum(axis=1)
        taken[rows, kind] += 1
        left[rows, kind] -= 1
    return taken


def bell(deviations: npt.ArrayLike) -> Ints:
    """Return whole numbers around zero with at least these standard deviations, nearly normal; even, exactly.

    Of N fair coins, how many more than half show heads, times a power of two, and a little more in between.
    """
    wide = np.asarray(deviations, np.float64)
    # at most 2^LARGEST coins of variance 1/4: each weighs 2^power
    power = np.maximum(np.ceil(np.log2(np.maximum(wide, 1.0)) - (LARGEST - 2) / 2), 0).astype(np.int64)
    halves = np.ceil(2 * (wide / (1 << power)) ** 2).astype(np.int64)
    between = [_below(power) for _ in range(2)]
    return np.asarray(((halve(2 * halves) - halves) << power) + between[0] - between[1])


def _below(power: Ints) -> Ints:
    words = current_stream().words(np.uint64, power.size).reshape(power.shape)
    return (words & ((np.uint64(1) << power.astype(np.uint64)) - np.uint64(1))).astype(np.int64)


@lru_cache(maxsize=LARGEST + 1)
def _table(power: int) -> TabledDraws:
    """Return the table of Bin(2^power, 1/2)."""
    n = 1 << power
    middle = n // 2
    # weights relative to the middle one: each is the one before, times (n - k) / (k + 1); rounded down by less than one
    # unit of 2^-256, so that all of them together are off by less than 2^15 units
    weight, falling = 1 << _BITS, []
    k = middle
    while weight > _CUT and k <= n:
        falling.append(weight)
        weight = weight * (n - k) // (k + 1)
        k += 1
    # the law is even around n / 2; one coin has two values, and they are not in the middle
    above = falling[1:]
    weights = [*reversed(above), *falling] if n > 1 else falling
    first = middle - len(above) if n > 1 else 0
    total, sum_, thresholds = sum(weights), 0, []
    for one in weights[:-1]:
        sum_ += one
        thresholds.append((sum_ << KEPT_BITS) // total)
    return TabledDraws(LazyTable(thresholds, first))

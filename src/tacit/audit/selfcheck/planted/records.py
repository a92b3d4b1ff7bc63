"""Records and tables that are released as they are, after a choice which tells more than the records.

naive-suppression: Sensitive records are left out, all others are released. What is missing is then known to be
    sensitive (the exclusion attack): infinite loss, probability 1. Right: one-sided randomised response, which leaves
    out other records too, each with probability exp(-eps).
coin-tossed-anew: One-sided randomised response, asked three times with a new coin each: a record that is missing
    thrice is sensitive, or unlucky with probability exp(-3 eps). Loss 3, probability 1. Right: remember the coin of a
    record.
coin-forgotten-at-times: The same, asked five times: the coin is remembered, but one asking in ten tosses a new one. Of
    a record that is not sensitive all five are missing with probability exp(-eps) times (1 - 0.0632)^4: loss 1.26,
    probability 1. Right: remember it always.
coin-of-the-value: One-sided randomised response whose coin is remembered for each value: of two people with the same
    value both are shown or none. Where the one is shown and the other not, that one is sensitive: infinite loss,
    probability 0.63. Right: remember the coin of a record, by its public key.
scaled-tables: A group of 12 records is sampled, each value replaced by a random one with probability 1/2, and the
    sample scaled up to 12 by copies. Printed: the size s of the sample follows from the frequency f of the most
    frequent value, and each value gives its share of s, rounded at random. Copies show the size of the sample, hence
    f: with frequencies 9 and 3 a sample has 2 to 4 records and all counts are multiples of 6, 4 or 3; with 8 and 4 it
    may have 5, and a record has 2 or 3 copies. Infinite loss, by an event of probability 0.46. Right: a simple random
    sample of a public size. A public size alone is not enough: rounding the share of each value tells its count in the
    same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from tacit import noise
from tacit.arrays import Ints
from tacit.audit.selfcheck.planted.planted_leak import PlantedLeak

SUPPRESSED = -1
_SENSITIVE = 2
_RELEASED = Fraction(632, 1000)  # just below 1 - exp(-1)
_ASKINGS = 5
_FORGOTTEN = Fraction(1, 10)

# The promise of reconstruction privacy (lambda, delta), and how many values keep their place.
_ERROR, _CHANCE = 0.9, 0.7
_KEPT, _VALUES = Fraction(1, 2), 2
_PUBLIC_SAMPLE = 3
_MOST_SAMPLED = 6


def _released_records(records: Sequence[int], size: int, *, share: Fraction) -> Ints:
    """Return the records that are not sensitive, each with this probability, and what is missing."""
    shown = np.array([SUPPRESSED if record == _SENSITIVE else record for record in records])
    return np.where(noise.bernoulli(share, (size, len(records))), shown, SUPPRESSED)


def _ask_three_times(record: int, size: int, *, remembered: bool) -> Ints:
    """Return three answers about one record."""
    coins = noise.bernoulli(_RELEASED, (size, 3))
    if remembered:
        coins[:] = coins[:, :1]
    shown = SUPPRESSED if record == _SENSITIVE else record
    return np.where(coins, shown, SUPPRESSED)


def _ask_many_times(record: int, size: int, *, forgotten: Fraction) -> Ints:
    """Return five answers about one record, of which some look at a new coin."""
    coins = np.repeat(noise.bernoulli(_RELEASED, (size, 1)), _ASKINGS, axis=1)
    if forgotten:
        anew = noise.bernoulli(forgotten, (size, _ASKINGS - 1)).astype(np.bool_)
        fresh = noise.bernoulli(_RELEASED, (size, _ASKINGS - 1))
        coins[:, 1:] = np.where(anew, fresh, coins[:, 1:])  # BROKEN: a coin that is not remembered
    shown = SUPPRESSED if record == _SENSITIVE else record
    return np.where(coins, shown, SUPPRESSED)


def _coins_of_values(records: Sequence[int], size: int, *, by_value: bool) -> Ints:
    """Return the records that are not sensitive and whose coin is kept: that of the value, or that of the record."""
    coins = noise.bernoulli(_RELEASED, (size, max(len(records), _SENSITIVE + 1)))
    kept = coins[:, list(records)] if by_value else coins[:, : len(records)]
    shown = np.array([SUPPRESSED if record == _SENSITIVE else record for record in records])
    return np.where(kept, shown, SUPPRESSED)


def _sampled_by_frequency(counts: Sequence[int], size: int) -> Ints:
    """Return how many records of each value are sampled: their share of a size that Chernoff's bound allows."""
    p, f, people = float(_KEPT), max(counts) / sum(counts), sum(counts)
    allowed = -2 * (f * p + (1 - p) / _VALUES) * math.log(_CHANCE) / (_ERROR * p * f) ** 2  # BROKEN: f is not public
    shares = [Fraction(count * allowed / people).limit_denominator(10**6) for count in counts]
    return np.stack([math.floor(share) + noise.bernoulli(share % 1, size) for share in shares], axis=1)


def _sampled_publicly(counts: Sequence[int], size: int) -> Ints:
    """Return how many of a public number of records, drawn without looking at them, have each value."""
    first = np.zeros(size, np.int64)
    for drawn in range(_PUBLIC_SAMPLE):
        first += noise.uniform_below(sum(counts) - drawn, size) < counts[0] - first
    return np.stack([first, _PUBLIC_SAMPLE - first], axis=1)


def _scaled_table(counts: Sequence[int], size: int, *, public: bool) -> Ints:
    """Return the counts of two values after sampling, perturbation and scaling."""
    sample = (_sampled_publicly if public else _sampled_by_frequency)(counts, size)
    many = sample.sum(axis=1, keepdims=True)
    place = np.arange(_MOST_SAMPLED)
    shape = (size, _MOST_SAMPLED)
    value = np.where(noise.bernoulli(_KEPT, shape), place >= sample[:, :1], noise.uniform_below(_VALUES, shape))
    # People / many copies on average. All samples have 2 to 6 records, so the chance of one more is a multiple of 1/60.
    people = sum(counts)
    copies = people // many + (noise.uniform_below(60, shape) * many < 60 * (people % many))
    copies[place >= many] = 0
    return np.stack([(copies * (value == v)).sum(axis=1) for v in range(_VALUES)], axis=1)


PLANTED = (
    PlantedLeak(
        name="naive-suppression",
        mistake="releases every record but the sensitive ones, which the gaps give away",
        source="One-sided differential privacy, arXiv:1712.05888 (exclusion attack)",
        claimed_epsilon=1.0,
        hidden=(0, 2, 1),
        cover=(0, 1, 1),
        release=partial(_released_records, share=Fraction(1)),  # BROKEN: only sensitive records are missing
        repaired=partial(_released_records, share=_RELEASED),
        exact_loss=math.inf,
    ),
    PlantedLeak(
        name="coin-tossed-anew",
        mistake="tosses a new coin whenever the same record is asked for",
        source="Privacy leakage over dependent attributes in one-sided differential privacy, repeated queries",
        claimed_epsilon=1.0,
        hidden=2,
        cover=1,
        release=partial(_ask_three_times, remembered=False),  # BROKEN: three coins instead of one
        repaired=partial(_ask_three_times, remembered=True),
        exact_loss=-3 * math.log(1 - _RELEASED),
    ),
    PlantedLeak(
        name="coin-forgotten-at-times",
        mistake="remembers the coin of a record, but for one asking in ten",
        source="classic",
        claimed_epsilon=1.0,
        hidden=2,
        cover=1,
        release=partial(_ask_many_times, forgotten=_FORGOTTEN),
        repaired=partial(_ask_many_times, forgotten=Fraction(0)),
        exact_loss=-math.log(1 - _RELEASED) - (_ASKINGS - 1) * math.log(1 - _FORGOTTEN * _RELEASED),
    ),
    PlantedLeak(
        name="coin-of-the-value",
        mistake="remembers the coin by the value, so that others with the same value tell it",
        source="what comes to mind where records have no key",
        claimed_epsilon=1.0,
        hidden=(1, 2, 1),
        cover=(1, 1, 1),
        release=partial(_coins_of_values, by_value=True),  # BROKEN: a coin that many share
        repaired=partial(_coins_of_values, by_value=False),
        exact_loss=math.inf,
    ),
    PlantedLeak(
        name="scaled-tables",
        mistake="the size of the sample follows from the data, and copies show it",
        source="Han, Sensitive disclosures under differential privacy guarantees, 2016 (SPS)",
        claimed_epsilon=math.log(3),  # ln(1 + p m / (1 - p)): what perturbation of each record promises
        hidden=(8, 4),
        cover=(9, 3),
        release=partial(_scaled_table, public=False),
        repaired=partial(_scaled_table, public=True),
        exact_loss=math.inf,
    ),
)

"""Mistakes around a sound mechanism: in whole releases, in the machine that runs them, and in what is left out.

Whole releases go wrong in which rows count, after the noise, or once in a while.

noise-for-one-row-of-three: Three rows of a person count in a histogram, and the noise is that for one: a person who
    moves with all three changes six counts. Loss 3, spread over six answers. Right: noise for three rows.
truth-in-post-processing: Two noisy counts; one that is truly zero is set to zero. A count that is not zero is then
    known not to be: infinite loss, probability 0.85. Right: noisy values below zero are set to zero.
order-by-a-true-count: The two largest of two noisy counts, listed in an order that depends on whether a true count is
    odd. Infinite loss, probability 1, in nothing but the order. Right: by the noisy counts.
mean-over-the-true-count: A noisy sum, divided by how many people there are truly, where taking part is secret. With
    four people every mean is a multiple of 1/4, with three of 1/3: infinite loss, probability 3/4. Right: divide by a
    noisy count.
noise-left-out-at-times: Twelve noisy counts; once in 2,000 releases all of them are the true ones. By itself all noise
    is zero once in 20 million: loss 10.3, by an event of probability 1/2000. About 400,000 samples of either side find
    it at alpha 1e-6; with 20,000 it is beyond an audit. Right: noise, always.

The machine goes wrong in digits, processes and error texts.

floating-point-laplace: Laplace noise by -ln(u) in double precision. A double near 0 has more binary digits after the
    point than one near 1, so that noise added to 0 shows digits that a sum with 1 rounds away: outputs between -1 and
    1 that are no multiple of 2^-53 (probability 0.27) are impossible at `cover`. Right: noise on a public lattice,
    here of 2^-10.
forked-noise-reuse: Two sessions in two processes, forked after the generator was seeded, draw the same noise. The
    difference of their answers is exact: infinite loss, probability 1. Right: fresh noise.
error-raised-on-value: A release that refuses implausible values, and says which one it saw. At `hidden` it always
    raises. Right: every value of the domain is counted, and nothing is said about it.
error-text-quotes-value: A text instead of a count below 5, decided by the true count, which it quotes: infinite loss,
    probability 1. Right: decided by the noisy count.

Records and tables are released as they are, after a choice that tells more than they do.

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit import noise
from tacit.arrays import Floats, Ints
from tacit.audit.selfcheck.planted.planted_leak import PlantedLeak

CELLS = 6
_OLDEST = 9
_FEW = Fraction(1, 2_000)
_MANY = 12


def _histogram_of_rows(rows: Sequence[int], size: int, *, counted: int) -> Ints:
    """Return a noisy histogram of a person's rows among others, with noise for so many rows, at epsilon = 1."""
    counts = np.bincount(rows, minlength=CELLS)
    return counts + noise.discrete_laplace(2 * counted, (size, CELLS))


def _never_negative(counts: Sequence[int], size: int, *, by_truth: bool) -> Ints:
    """Return two noisy counts of which none is below zero, at epsilon = 1."""
    noisy = np.array(counts) + noise.discrete_laplace(2, (size, 2))
    if by_truth:
        return np.where(np.array(counts) == 0, 0, noisy)  # BROKEN: which counts are zero is no public thing
    return np.maximum(noisy, 0)


def _two_largest(counts: Sequence[int], size: int, *, by_truth: bool) -> Ints:
    """Return both of two items, each with its noisy count, at epsilon = 1."""
    noisy = np.array(counts) + noise.discrete_laplace(1, (size, 2))
    first = np.argmax(noisy, axis=1)
    if by_truth:
        first[:] = counts[0] % 2  # BROKEN: the order shows whether a true count is odd
    rows = np.arange(size)
    return np.stack([first, noisy[rows, first], 1 - first, noisy[rows, 1 - first]], axis=1)


def _mean(ages: Sequence[int], size: int, *, by_truth: bool) -> Floats:
    """Return the mean of ages from 0 to 9, at epsilon = 1: a half for the sum, a half for the number of people."""
    sums = sum(ages) + noise.discrete_laplace(2 * _OLDEST, size)
    if by_truth:
        return sums / len(ages)  # BROKEN: who takes part is secret, so their number has to be noisy
    return sums / np.maximum(len(ages) + noise.discrete_laplace(2, size), 1)


def _counts_with_gaps(counts: Sequence[int], size: int, *, share: Fraction) -> Ints:
    """Return noisy counts at epsilon = 1, and the true ones in so many of all releases."""
    noisy = np.array(counts) + noise.discrete_laplace(2, (size, len(counts)))
    if not share:
        return noisy
    left_out = noise.bernoulli(share, size).astype(np.bool_)
    return np.where(left_out[:, None], np.array(counts), noisy)  # BROKEN: a release without noise


def _loss_of_gaps() -> float:
    """Return the loss at the true counts of `hidden`, which come without noise or by twelve zeros."""
    zero = math.tanh(1 / 4) ** _MANY  # discrete Laplace noise of scale 2 is zero with probability (1 - r) / (1 + r)
    share = float(_FEW)
    return math.log(share + (1 - share) * zero) - math.log((1 - share) * zero) + 1


_AROUND = (
    PlantedLeak(
        name="noise-for-one-row-of-three",
        mistake="three rows of a person count, and the noise is that for one",
        hidden=(0, 1, 2),
        cover=(3, 4, 5),
        release=partial(_histogram_of_rows, counted=1),  # BROKEN: three rows count
        repaired=partial(_histogram_of_rows, counted=3),
        exact_loss=3.0,
    ),
    PlantedLeak(
        name="truth-in-post-processing",
        mistake="sets to zero what is truly zero, after the noise",
        hidden=(1, 3),
        cover=(0, 4),
        release=partial(_never_negative, by_truth=True),
        repaired=partial(_never_negative, by_truth=False),
    ),
    PlantedLeak(
        name="order-by-a-true-count",
        mistake="lists noisy counts in an order that shows whether a true one is odd",
        hidden=(5, 3),
        cover=(4, 3),
        release=partial(_two_largest, by_truth=True),
        repaired=partial(_two_largest, by_truth=False),
    ),
    PlantedLeak(
        name="mean-over-the-true-count",
        mistake="divides a noisy sum by the true number of people, who may have stayed away",
        hidden=(4, 4, 4, 4),
        cover=(4, 4, 4),
        release=partial(_mean, by_truth=True),
        repaired=partial(_mean, by_truth=False),
    ),
    PlantedLeak(
        name="noise-left-out-at-times",
        mistake="once in 2,000 releases there is no noise",
        hidden=(5, 3, *[4] * (_MANY - 2)),
        cover=(4, 4, *[4] * (_MANY - 2)),
        release=partial(_counts_with_gaps, share=_FEW),
        repaired=partial(_counts_with_gaps, share=Fraction(0)),
        exact_loss=_loss_of_gaps(),
    ),
)


_LATTICE = 1 << 10
_OLDEST_PLAUSIBLE = 100
_FEWEST = 5


def _laplace_of_doubles(count: int, size: int) -> Floats:
    """Return count plus Laplace noise of scale 1, as it is usually computed."""
    uniform = (noise.uniform_below(1 << 53, size) + 1).astype(np.float64) / 2.0**53
    magnitude: Floats = -np.log(uniform)
    laplace = np.where(noise.bernoulli(0.5, size), magnitude, -magnitude)
    return count + laplace  # BROKEN: which doubles can come out depends on the count


def _laplace_on_a_lattice(count: int, size: int) -> Floats:
    """Return count plus Laplace noise of scale 1 on the multiples of 2^-10."""
    return (count * _LATTICE + noise.discrete_laplace(_LATTICE, size)) / _LATTICE


def _two_sessions(counts: Sequence[int], size: int, *, forked: bool) -> Ints:
    """Return one count from each of two processes, half of epsilon = 1 for each."""
    parent = noise.discrete_laplace(2, size)
    child = parent if forked else noise.discrete_laplace(2, size)  # BROKEN: the child repeats its parent's draws
    return np.stack([counts[0] + parent, counts[1] + child], axis=1)


def _count_of_the_oldest(ages: Sequence[int], size: int, *, checked: bool) -> Ints:
    """Return how many people are older than is plausible, at epsilon = 1."""
    for age in ages:
        if checked and age > _OLDEST_PLAUSIBLE:
            message = f"age {age} is not plausible"
            raise ValueError(message)  # BROKEN: that there is an error, and what it says, depends on a person
    return sum(age > _OLDEST_PLAUSIBLE for age in ages) + noise.discrete_laplace(1, size)


def _count_or_text(people: int, size: int, *, by_true_count: bool) -> NDArray[Any]:
    """Return texts: a noisy count at epsilon = 1, or that it is too small."""
    values, place = np.unique(people + noise.discrete_laplace(1, size), return_inverse=True)
    if by_true_count:
        if people < _FEWEST:
            return np.full(size, f"refused: {people} people are too few")  # BROKEN: decided by, and quotes, the truth
        return values.astype(np.str_)[place]
    return np.where(values < _FEWEST, "refused: too few people", values.astype(np.str_))[place]


_MACHINE = (
    PlantedLeak(
        name="floating-point-laplace",
        mistake="noise in double precision, whose last digits depend on what it was added to",
        source="Mironov, On Significance of the Least Significant Bits for Differential Privacy, 2012",
        hidden=0,
        cover=1,
        release=_laplace_of_doubles,
        repaired=_laplace_on_a_lattice,
    ),
    PlantedLeak(
        name="forked-noise-reuse",
        mistake="two processes go on with the same stream of noise",
        hidden=(5, 3),
        cover=(4, 4),
        release=partial(_two_sessions, forked=True),
        repaired=partial(_two_sessions, forked=False),
    ),
    PlantedLeak(
        name="error-raised-on-value",
        mistake="refuses a value that it finds implausible, by name",
        hidden=(41, 104, 77),
        cover=(41, 99, 77),
        release=partial(_count_of_the_oldest, checked=True),
        repaired=partial(_count_of_the_oldest, checked=False),
    ),
    PlantedLeak(
        name="error-text-quotes-value",
        mistake="refuses small counts by the true count, and quotes it",
        hidden=4,
        cover=5,
        release=partial(_count_or_text, by_true_count=True),
        repaired=partial(_count_or_text, by_true_count=False),
    ),
)


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
    return np.where(noise.bernoulli(share, (size, len(records))), *_shown_and_missing(*records))


def _shown_and_missing(*records: int) -> tuple[Ints, int]:
    """Return what is shown of records where their coins allow it, and what stands for a missing one."""
    return np.array([SUPPRESSED if record == _SENSITIVE else record for record in records]), SUPPRESSED


def _ask_three_times(record: int, size: int, *, remembered: bool) -> Ints:
    """Return three answers about one record."""
    coins = noise.bernoulli(_RELEASED, (size, 3))
    if remembered:
        coins[:] = coins[:, :1]
    return np.where(coins, *_shown_and_missing(record))


def _ask_many_times(record: int, size: int, *, forgotten: Fraction) -> Ints:
    """Return five answers about one record, of which some look at a new coin."""
    coins = np.repeat(noise.bernoulli(_RELEASED, (size, 1)), _ASKINGS, axis=1)
    if forgotten:
        anew = noise.bernoulli(forgotten, (size, _ASKINGS - 1)).astype(np.bool_)
        fresh = noise.bernoulli(_RELEASED, (size, _ASKINGS - 1))
        coins[:, 1:] = np.where(anew, fresh, coins[:, 1:])  # BROKEN: a coin that is not remembered
    return np.where(coins, *_shown_and_missing(record))


def _coins_of_values(records: Sequence[int], size: int, *, by_value: bool) -> Ints:
    """Return the records that are not sensitive and whose coin allows it: a coin for each value, or for each record."""
    coins = noise.bernoulli(_RELEASED, (size, max(len(records), _SENSITIVE + 1)))
    own = coins[:, list(records)] if by_value else coins[:, : len(records)]
    return np.where(own, *_shown_and_missing(*records))


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


_RECORDS = (
    PlantedLeak(
        name="naive-suppression",
        mistake="releases every record but the sensitive ones, which the gaps give away",
        source="One-sided differential privacy, arXiv:1712.05888 (exclusion attack)",
        hidden=(0, 2, 1),
        cover=(0, 1, 1),
        release=partial(_released_records, share=Fraction(1)),  # BROKEN: only sensitive records are missing
        repaired=partial(_released_records, share=_RELEASED),
    ),
    PlantedLeak(
        name="coin-tossed-anew",
        mistake="tosses a new coin whenever the same record is asked for",
        source="Privacy leakage over dependent attributes in one-sided differential privacy, repeated queries",
        hidden=2,
        cover=1,
        release=partial(_ask_three_times, remembered=False),  # BROKEN: three coins instead of one
        repaired=partial(_ask_three_times, remembered=True),
        exact_loss=-3 * math.log(1 - _RELEASED),
    ),
    PlantedLeak(
        name="coin-forgotten-at-times",
        mistake="remembers the coin of a record, but for one asking in ten",
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
        hidden=(1, 2, 1),
        cover=(1, 1, 1),
        release=partial(_coins_of_values, by_value=True),  # BROKEN: a coin that many share
        repaired=partial(_coins_of_values, by_value=False),
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
    ),
)

PLANTED = (*_AROUND, *_MACHINE, *_RECORDS)
